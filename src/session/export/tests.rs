//! Sessions of any content as pages: what the reader's browser sees.

use super::*;
use crate::session::scratch::Scratch;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Opens a file of `entries` (id, parent, fields) to export it.
fn log(scratch: &Scratch, entries: &[(&str, Option<&str>, Value)]) -> Log {
    let mut text = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2024-12-03T14:00:00.000Z", "cwd": "/w"}).to_string();
    for (id, parent, fields) in entries {
        let mut entry = json!({"type": fields["type"], "id": id, "parentId": parent, "timestamp": "2024-12-03T14:01:00.000Z"});
        for (name, value) in fields.as_object().unwrap() {
            entry[name] = value.clone();
        }
        text.push('\n');
        text.push_str(&entry.to_string());
    }
    text.push('\n');
    let path = scratch.path().join("s.jsonl");
    std::fs::write(&path, text).unwrap();
    open(&path).unwrap()
}

fn export(log: &Log, options: &Options) -> String {
    let mut out = Vec::new();
    assert_eq!(write(log, options, &mut out).unwrap(), [] as [String; 0]);
    String::from_utf8(out).unwrap()
}

/// The tags of a page in order, without the text between them. Fails on anything that this module did not
/// mean to write: an unknown tag or attribute, an element that is not closed, an address that acts.
#[track_caller]
fn tags(page: &str) -> Vec<String> {
    const TAGS: &[&str] = &[
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "dl",
        "div",
        "dt",
        "dd",
        "nav",
        "details",
        "summary",
        "ol",
        "ul",
        "li",
        "span",
        "main",
        "section",
        "article",
        "time",
        "p",
        "pre",
        "code",
        "b",
        "em",
        "strong",
        "s",
        "br",
        "hr",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "img",
        "footer",
        "script",
    ];
    const ATTRIBUTES: &[&str] = &[
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "rel",
        "title",
        "datetime",
        "aria-label",
        "aria-current",
        "tabindex",
        "data-run",
        "data-parent",
        "data-to",
        "alt",
        "loading",
        "src",
        "start",
    ];
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some((_, tag)) = rest.split_once('<') {
        // A quoted value cannot hold the end of the tag: `>` is escaped in it.
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{tag}");
            found.push(format!("/{name}"));
            continue;
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(TAGS.contains(&name), "<{tag}>");
        while !attributes.is_empty() {
            let (attribute, value) = attributes.split_once("=\"").unwrap();
            let (value, after) = value.split_once('"').unwrap();
            assert!(ATTRIBUTES.contains(&attribute), "<{tag}>");
            match attribute {
                "href" => assert!(
                    value.starts_with('#') || crate::markdown::is_safe_link(value),
                    "{value}"
                ),
                "src" => assert!(value.starts_with("data:image/"), "{value}"),
                _ => {}
            }
            attributes = after.trim_start_matches(' ');
        }
        found.push(name.to_owned());
        if let "style" | "script" = name {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
        }
        if !matches!(name, "meta" | "br" | "hr" | "img") {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, [] as [String; 0]);
    found
}

/// A session that has `words` wherever a session can have words.
fn of_words(words: &str, markdown: &str) -> Vec<(&'static str, Option<&'static str>, Value)> {
    let w = words;
    let usage = json!({"input": 1, "output": 2, "cost": {"total": 0.5}});
    let result = |call: &str, bad: bool| {
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": call, "toolName": w, "isError": bad,
            "content": [{"type": "text", "text": format!("x{w}")}, {"type": "image", "data": w, "mimeType": "image/png"},
            {"type": w, "z": w}], "details": {"diff": format!("x{w}").replace('\n', "")}}})
    };
    vec![
        (
            "1",
            None,
            json!({"type": "session_info", "name": format!("x{w}")}),
        ),
        (
            "2",
            Some("1"),
            json!({"type": "model_change", "provider": w, "modelId": w}),
        ),
        (
            "3",
            Some("2"),
            json!({"type": "message", "message": {"role": "system", "content": format!("x{w}"), "sections": {w: w, "b": null},
            "toolsAdded": [{"name": w, "description": w, "parameters": {w: w}}], "toolsRemoved": [{"name": w}]}}),
        ),
        (
            "4",
            Some("3"),
            json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": markdown}]}}),
        ),
        (
            "5",
            Some("4"),
            json!({"type": "message", "message": {"role": "assistant", "api": w, "provider": w, "model": format!("x{w}"), "usage": usage,
            "stopReason": "error", "errorMessage": w, "content": [
                {"type": "thinking", "thinking": format!("x {markdown}")}, {"type": "text", "text": markdown},
                {"type": "toolCall", "id": "a", "name": format!("x{w}"), "arguments": {format!("x{w}"): w}},
                {"type": "toolCall", "id": "b", "name": "bash", "arguments": {"command": w}},
                {"type": "toolCall", "id": "c", "name": "edit", "arguments": {"path": w, "oldText": "", "newText": ""}}]}}),
        ),
        ("6", Some("5"), result("a", false)),
        ("7", Some("6"), result("b", true)),
        ("8", Some("7"), result("stray", false)),
        (
            "9",
            Some("8"),
            json!({"type": "custom_message", "customType": w, "content": markdown, "display": true}),
        ),
        (
            "10",
            Some("9"),
            json!({"type": "compaction", "summary": markdown, "firstKeptEntryId": w, "tokensBefore": 1}),
        ),
        (
            "11",
            Some("9"),
            json!({"type": "branch_summary", "summary": markdown, "fromId": w}),
        ),
        (
            "12",
            Some("11"),
            json!({"type": "label", "targetId": "4", "label": format!("x{w}")}),
        ),
        (
            "13",
            Some("12"),
            json!({"type": "custom", "customType": w, "data": {w: [w]}}),
        ),
        ("14", Some("13"), json!({"type": w, "more": w})),
        (
            "15",
            Some("14"),
            json!({"type": "message", "message": {"role": "bashExecution", "command": w, "output": format!("x{w}")}}),
        ),
        (
            "16",
            Some("15"),
            json!({"type": "message", "message": {"role": w, "more": w}}),
        ),
        (
            "17",
            Some("16"),
            json!({"type": "context_edit", "targetId": w, "replacement": null}),
        ),
        (
            "18",
            Some("17"),
            json!({"type": "usage", "kind": w, "model": w, "usage": usage}),
        ),
        (
            "19",
            Some("18"),
            json!({"type": "thinking_level_change", "thinkingLevel": w}),
        ),
    ]
}

const NASTY: &[&str] = &[
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'--><!--",
    "<![CDATA[",
    "&lt;script&gt;",
    "javascript:alert(1)",
    "{{x}}",
    "\u{202e}\u{0}\u{1b}[31m",
    "</style><style>",
    "</pre></details></article>",
    "\" onload=\"x",
    "<svg/onload=x>",
    "é\u{10ffff}",
    " ",
    "\n+<b>\n-<i>",
];

#[test]
fn words_never_become_markup() {
    let scratch = Scratch::new();
    let plain = tags(&export(
        &log(&scratch, &of_words("word", "word")),
        &Options::default(),
    ));
    for nasty in NASTY {
        // Data of an image that is none is left out, in the plain page too: `word` is base64, these are not.
        let page = export(
            &log(&scratch, &of_words(nasty, "word")),
            &Options::default(),
        );
        let mut images = 0;
        let tags: Vec<String> = tags(&page).into_iter().collect();
        let known: Vec<&String> = plain.iter().filter(|tag| *tag != "img").collect();
        let without: Vec<&String> = tags.iter().filter(|tag| *tag != "img").collect();
        images += tags.len() - without.len();
        assert_eq!(images, 0, "{nasty:?}");
        // In place of each of the three images stands a paragraph.
        assert_eq!(without.len(), known.len() + 6, "{nasty:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_session_is_a_page_of_known_tags(
        words in "([<>&\"'`*_#=/:;\\[\\]() \n\ta-z0-9]|</script>|javascript:|\\PC){0,24}",
        markdown in "([-*_~`#>|=\\[\\]()!<&;\\\\:. \t\n0-9ab\"']|http://|javascript:|\\|-\\||\n\n|- |```|</p>){0,60}",
    ) {
        let scratch = Scratch::new();
        let log = log(&scratch, &of_words(&words, &markdown));
        tags(&export(&log, &Options::default()));
        for format in [Format::Markdown, Format::Jsonl] {
            export(&log, &Options { format, ..Options::default() });
        }
    }
}
