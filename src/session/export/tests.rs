//! Sessions of any content as pages: what the reader's browser sees.

use super::*;
use crate::base::testing::TempDir;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Opens a file of `entries` (id, parent, fields) to export it.
fn log(scratch: &TempDir, entries: &[(&str, Option<&str>, Value)]) -> Log {
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
    assert_eq!(write(log, options, &crate::tools::describe, &mut out).unwrap(), [] as [String; 0]);
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
                "href" => assert!(value.starts_with('#') || crate::markdown::is_safe_link(value), "{value}"),
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
        ("1", None, json!({"type": "session_info", "name": format!("x{w}")})),
        ("2", Some("1"), json!({"type": "model_change", "provider": w, "modelId": w})),
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
        ("11", Some("9"), json!({"type": "branch_summary", "summary": markdown, "fromId": w})),
        ("12", Some("11"), json!({"type": "label", "targetId": "4", "label": format!("x{w}")})),
        ("13", Some("12"), json!({"type": "custom", "customType": w, "data": {w: [w]}})),
        ("14", Some("13"), json!({"type": w, "more": w})),
        (
            "15",
            Some("14"),
            json!({"type": "message", "message": {"role": "bashExecution", "command": w, "output": format!("x{w}")}}),
        ),
        ("16", Some("15"), json!({"type": "message", "message": {"role": w, "more": w}})),
        ("17", Some("16"), json!({"type": "context_edit", "targetId": w, "replacement": null})),
        ("18", Some("17"), json!({"type": "usage", "kind": w, "model": w, "usage": usage})),
        ("19", Some("18"), json!({"type": "thinking_level_change", "thinkingLevel": w})),
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
    let scratch = TempDir::create();
    let page = |words: &str| {
        let page = export(&log(&scratch, &of_words(words, "word")), &Options::default());
        tags(&page)
    };
    // Words that are no base64: in place of an image stands a paragraph.
    let plain = page("a word");
    assert!(plain.len() > 300 && !plain.contains(&"img".to_owned()));
    for nasty in NASTY {
        assert_eq!(page(nasty), plain, "{nasty:?}");
    }
}

#[test]
fn a_page_has_a_policy_that_knows_its_script_and_style() {
    let scratch = TempDir::create();
    let page = export(&log(&scratch, &[]), &Options::default());
    let between =
        |from: &str, to: &str| page.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    for (element, name) in [("style", "style-src"), ("script", "script-src")] {
        let text = between(&format!("<{element}>"), &format!("</{element}>"));
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, hash);
        assert!(policy.contains(&format!("{name} &#39;sha256-{hash}&#39;")), "{policy}");
    }
    assert!(policy.starts_with("default-src &#39;none&#39;; img-src data:;"));
    assert!(page.contains("Nothing was said in this session."));
}

/// The ids of a page's entries: those of the current branch, and the others.
fn ids(page: &str) -> (Vec<String>, Vec<String>) {
    let all = |text: &str| {
        let ids = text.split(" id=\"").skip(1);
        ids.map(|rest| rest.split_once('"').unwrap().0.to_owned()).collect()
    };
    let main = page.split_once("<div class=\"path\">").unwrap().1;
    let (path, others) = main.split_once("<details class=\"others\">").unwrap_or((main, ""));
    (all(path), all(others))
}

#[test]
fn every_entry_is_on_the_page_once() {
    let label = || json!({"type": "custom", "customType": "x"});
    type Rows<'a> = &'a [(&'a str, Option<&'a str>)];
    let check = |rows: Rows<'_>, path: &[&str], others: &[&str]| {
        let scratch = TempDir::create();
        let entries: Vec<_> = rows.iter().map(|(id, parent)| (*id, *parent, label())).collect();
        let page = export(&log(&scratch, &entries), &Options::default());
        tags(&page);
        let (on, off) = ids(&page);
        assert_eq!(
            (on, off),
            (
                path.iter().map(ToString::to_string).collect(),
                others.iter().map(ToString::to_string).collect()
            ),
            "{rows:?}"
        );
    };
    check(&[("a", None), ("b", Some("a"))], &["a", "b"], &[]);
    check(&[("a", None), ("b", Some("a")), ("c", Some("a"))], &["a", "c"], &["b"]);
    check(&[("a", None), ("b", Some("a")), ("c", None)], &["c"], &["a", "b"]);
    // Two that hang on each other, and one below them.
    check(&[("a", Some("b")), ("b", Some("a")), ("c", Some("b"))], &["a", "b", "c"], &[]);
    check(&[("a", None), ("x", Some("y")), ("y", Some("x")), ("b", Some("a"))], &["a", "b"], &["x", "y"]);
    check(&[("x\" y", None), ("b", Some("x\" y"))], &["x&quot; y", "b"], &[]);
}

#[test]
fn a_leaf_in_the_middle_ends_the_current_branch() {
    let scratch = TempDir::create();
    let x = || json!({"type": "custom", "customType": "x"});
    let mut log = log(&scratch, &[("a", None, x()), ("b", Some("a"), x()), ("c", Some("b"), x())]);
    log.set_leaf(Some("b")).unwrap();
    let (on, off) = ids(&export(&log, &Options::default()));
    assert_eq!((on, off), (vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]));
}

#[test]
fn a_running_conversation_is_exported_by_the_ending_of_the_name() {
    let scratch = TempDir::create();
    let cwd = scratch.path().to_owned();
    let log = log(&scratch, &of_words("word", "word"));
    for (name, begins) in [
        (None, "<!DOCTYPE html>"),
        (Some("a.md"), "# xword"),
        (Some("b.jsonl"), "{\"type\":\"session\""),
        (Some("c"), "<!DOCTYPE html>"),
    ] {
        let path = export_live(&log, name.map(Path::new), &cwd, None, &crate::tools::describe).unwrap();
        assert_eq!(path, cwd.join(name.unwrap_or("pi-session-s.html")));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(begins), "{name:?}");
    }
    let said =
        |log: &Log| export_live(log, None, &cwd, None, &crate::tools::describe).unwrap_err().to_string();
    assert_eq!(said(&Log::in_memory(&cwd, None).unwrap()), "Cannot export in-memory session to HTML");
    let new = Log::create(&cwd, &cwd, None, crate::session::log::SyncMode::Never).unwrap();
    assert_eq!(said(&new), "Nothing to export yet - start a conversation first");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_session_is_a_page_of_known_tags(
        words in "([<>&\"'`*_#=/:;\\[\\]() \n\ta-z0-9]|</script>|javascript:|\\PC){0,24}",
        markdown in "([-*_~`#>|=\\[\\]()!<&;\\\\:. \t\n0-9ab\"']|http://|javascript:|\\|-\\||\n\n|- |```|</p>){0,60}",
    ) {
        let scratch = TempDir::create();
        let log = log(&scratch, &of_words(&words, &markdown));
        tags(&export(&log, &Options::default()));
        for format in [Format::Markdown, Format::Jsonl] {
            export(&log, &Options { format, ..Options::default() });
        }
    }
}

#[test]
fn a_called_skill_is_folded_and_in_the_outline_as_it_was_typed() {
    let scratch = TempDir::create();
    let text =
        "<skill name=\"deploy\" location=\"/s/SKILL.md\">\nSecret *steps*\n</skill>\n\nto the **moon**";
    for content in [json!(text), json!([{"type": "text", "text": text}])] {
        let message =
            json!({"type": "message", "message": {"role": "user", "content": content, "timestamp": 1}});
        let log = log(&scratch, &[("a", None, message)]);
        let page = export(&log, &Options::default());
        assert!(page.contains("<code class=\"gist\">deploy</code>"), "{page}");
        assert!(page.contains("Secret <em>steps</em>"));
        assert!(page.contains("to the <strong>moon</strong>"));
        assert!(page.contains("/skill:deploy to the **moon**"));
        assert!(!page.contains("&lt;skill"), "{page}");
    }
}
