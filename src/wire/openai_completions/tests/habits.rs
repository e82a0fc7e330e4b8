//! Answers as local servers and small models send them.

use super::*;
use crate::llm::protocol::Frame;
use proptest::prelude::*;

fn local() -> Model {
    model(json!({"baseUrl": "http://127.0.0.1:8080/v1"}))
}

/// Feeds `content` whole, cut in two at every character, and character by character.
#[track_caller]
fn check_text(content: &str, expected: &str) {
    let m = local();
    let frames = |parts: &[&str]| -> Vec<String> {
        let chunks = parts.iter().filter(|part| !part.is_empty()).map(|part| text(part).to_string());
        chunks.chain([finish("stop").to_string()]).collect()
    };
    check_raw(&m, &frames(&[content]), expected);
    let shown = |parts: &[&str]| {
        let data = frames(parts);
        let frames: Vec<_> = data.iter().map(|data| Frame::Sse { event: "", data }).collect();
        testing::decode(decoder(&m), &frames).shown()
    };
    let cuts = content.char_indices().map(|(at, _)| at);
    for cut in cuts.clone() {
        let (head, tail) = content.split_at(cut);
        assert_eq!(shown(&[head, tail]), expected, "cut at {cut}");
    }
    let ends = cuts.clone().skip(1).chain([content.len()]);
    let single: Vec<&str> = cuts.zip(ends).map(|(from, to)| &content[from..to]).collect();
    assert_eq!(shown(&single), expected);
}

#[test]
fn thinking_between_tags() {
    check_text("<think>\nhm\n</think>\n\nHi", r#"think "hm\n" -; text "Hi"; stop"#);
    check_text("\n<think>a</think>b", r#"think "a" -; text "b"; stop"#);
    check_text("<think></think>\n\nHi", r#"text "Hi"; stop"#);
    check_text("<think>a < b </thin </think>c", r#"think "a < b </thin " -; text "c"; stop"#);
    check_text("<think>never closed", r#"think "never closed" -; stop"#);
    // The template opened the tag.
    check_text("hm\nhm\n</think>\n\nHi", r#"think "hm\nhm\n" -; text "Hi"; stop"#);
    check_text("</think>\n\nHi", r#"text "Hi"; stop"#);
}

#[test]
fn tags_that_are_talked_about_stay_text() {
    check_text("The <think> tag", r#"text "The <think> tag"; stop"#);
    check_text("The </think> tag", r#"text "The </think> tag"; stop"#);
    check_text("if a <b [TOOL", r#"text "if a <b [TOOL"; stop"#);
    check_text("<thin", r#"text "<thin"; stop"#);
    check_text("<think>a</think>b\n</think>c", r#"think "a" -; text "b\n</think>c"; stop"#);
    let off = model(json!({}));
    check(&off, &[text("<think>a</think>"), finish("stop")], r#"text "<think>a</think>"; stop"#);
}

#[test]
fn thinking_that_the_server_split_off_is_left_alone() {
    let chunks = [delta(json!({"reasoning_content": "r"})), text("a\n</think>\nb"), finish("stop")];
    check(&local(), &chunks, r#"think "r" reasoning_content; text "a\nb"; stop"#);
}

#[test]
fn calls_written_as_text() {
    let call = r#"call call_5_2_0 ls {"path":"a\"}</tool_call>"}; tooluse"#;
    check_text(
        "<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \"a\\\"}</tool_call>\"}}\n</tool_call>",
        call,
    );
    check_text(
        "Look:\n<tool_call>{\"name\":\"ls\",\"parameters\":{\"path\":\"x\"}}</tool_call>\n<tool_call>{\"name\":\"write\",\"arguments\":\"{}\"}</tool_call>\n",
        r#"text "Look:\n"; call call_5_2_1 ls {"path":"x"}; call call_5_2_2 write {}; tooluse"#,
    );
    check_text(
        "<tool_call>\n<function=ls>\n<parameter=path>\na <b>\n</parameter>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>",
        r#"call call_5_2_0 ls {"path":"a <b>","n":5}; tooluse"#,
    );
    check_text("<function=ls></function>", "call call_5_2_0 ls {}; tooluse");
    check_text(
        "[TOOL_CALLS] [{\"name\":\"ls\",\"arguments\":{\"path\":\"é\"}},{\"name\":\"ls\",\"arguments\":{}}]",
        r#"call call_5_2_0 ls {"path":"é"}; call call_5_2_1 ls {}; tooluse"#,
    );
    check_text(
        "[TOOL_CALLS]ls[ARGS]{\"path\":\"a\"}[TOOL_CALLS]ls[ARGS]{}",
        r#"call call_5_2_0 ls {"path":"a"}; call call_5_2_1 ls {}; tooluse"#,
    );
    check_text(
        "<think>t</think>\n<tool_call>{\"name\":\"ls\",\"arguments\":{}}</tool_call>done",
        r#"think "t" -; call call_5_2_1 ls {}; text "done"; tooluse"#,
    );
}

#[test]
fn what_only_looks_like_a_call_stays_text() {
    for content in [
        // Not a tool that was offered.
        "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>",
        "<function=rm><parameter=a>b</parameter></function>",
        "[TOOL_CALLS]rm[ARGS]{\"name\":\"ls\"}",
        // Half a call.
        "<tool_call>{\"name\":\"ls\",\"arguments\":{",
        "<tool_call>\n<function=ls>\n<parameter=path>x",
        "<function=ls>\n<parameter=path>x</parameter>",
        "<tool_call>",
        "[TOOL_CALLS]",
        // Not a call.
        "<tool_call>{\"name\":\"ls\",\"arguments\":5}</tool_call>",
        "<tool_call>{'name':'ls'}</tool_call>",
        "<tool_call>hello</tool_call>",
        "<function=ls>hello</function>",
        "[TOOL_CALLS] []",
    ] {
        check_text(content, &format!("text {content:?}; stop"));
    }
    // A call after what was none.
    check_text(
        "<tool_call> x <tool_call>{\"name\":\"ls\"}</tool_call>",
        r#"text "<tool_call> x "; call call_5_2_1 ls {}; tooluse"#,
    );
}

proptest! {
    /// Any text made of marks and what may stand between them: how it is cut changes nothing, and all of
    /// it comes out somewhere.
    #[test]
    fn how_text_is_cut_changes_nothing(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let content = words.concat();
        let m = local();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(content.len() + 1)).collect();
        cuts.extend([0, content.len()]);
        cuts.sort_unstable();
        let parts = |cuts: &[usize]| -> Vec<String> {
            let parts = cuts.windows(2).map(|pair| text(content.get(pair[0]..pair[1]).unwrap()));
            parts.chain([finish("stop")]).map(|chunk| chunk.to_string()).collect()
        };
        let shown = |data: &[String]| {
            let frames: Vec<_> = data.iter().map(|data| Frame::Sse { event: "", data }).collect();
            testing::decode(decoder(&m), &frames).shown()
        };
        prop_assert_eq!(shown(&parts(&cuts)), shown(&parts(&[0, content.len()])));
    }
}

const WORDS: &[&str] = &[
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<function=ls>",
    "</function>",
    "<parameter=path>",
    "</parameter>",
    "{\"name\":\"ls\"}",
    "{\"name\":\"no\"}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "<",
    "ls",
    " ",
    "\n",
    "x",
];

#[test]
fn ids_names_and_indexes_that_are_missing() {
    let m = model(json!({}));
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    // No id.
    check(
        &m,
        &[calls(json!([{"index": 0, "function": function("ls", "{}")}])), finish("tool_calls")],
        "call call_5_2_0 ls {}; tooluse",
    );
    // The id comes late.
    check(
        &m,
        &[
            calls(json!([{"index": 0, "id": "", "function": function("ls", "")}])),
            calls(json!([{"index": 0, "id": "late", "function": {"arguments": "{}"}}])),
            finish("tool_calls"),
        ],
        "call late ls {}; tooluse",
    );
    // No index: the pieces follow each other, and a name begins another call.
    check(
        &m,
        &[
            calls(json!([{"function": function("ls", "{\"path\":")}])),
            calls(json!([{"function": {"arguments": "\"a\"}"}}])),
            calls(json!([{"function": function("ls", "{\"path\":\"b\"}")}])),
            calls(json!([{"id": "x", "function": function("write", "{}")}])),
            finish("tool_calls"),
        ],
        r#"call call_5_2_0 ls {"path":"a"}; call call_5_2_1 ls {"path":"b"}; call x write {}; tooluse"#,
    );
    // One index for all calls.
    check(
        &m,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": function("ls", "{\"path\":\"a\"}")}, {"index": 0, "id": "b", "function": function("ls", "{\"path\":\"b\"}")}]),
            ),
            finish("stop"),
        ],
        r#"call a ls {"path":"a"}; call b ls {"path":"b"}; tooluse"#,
    );
    // One id for all calls.
    check(
        &m,
        &[
            calls(
                json!([{"index": 0, "id": "a", "function": function("ls", "{}")}, {"index": 1, "id": "a", "function": function("write", "{}")}]),
            ),
            finish("tool_calls"),
        ],
        "call a ls {}; call call_5_2_1 write {}; tooluse",
    );
    // The name comes late, or never.
    check(
        &m,
        &[
            calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{\"path\":"}}])),
            calls(json!([{"index": 0, "function": function("ls", "\"x\"}")}])),
            finish("tool_calls"),
        ],
        r#"call a ls {"path":"x"}; tooluse"#,
    );
    check(
        &m,
        &[calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}])), finish("tool_calls")],
        "call a unknown {}; tooluse",
    );
    // Nothing at all.
    check(&m, &[calls(json!([{}, null, {"function": null}])), text("x"), finish("stop")], "text \"x\"; stop");
}

#[test]
fn names_ids_and_arguments_that_are_repeated() {
    let m = model(json!({}));
    let piece = |arguments: Value| {
        calls(json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": arguments}}]))
    };
    let expected = r#"call a ls {"path":"x"}; tooluse"#;
    // In each piece.
    check(&m, &[piece(json!("{\"path\"")), piece(json!(":\"x\"}")), finish("tool_calls")], expected);
    // With another id in each piece.
    let with_id = |id: &str, arguments: &str| {
        calls(json!([{"index": 0, "id": id, "function": {"name": "ls", "arguments": arguments}}]))
    };
    check(&m, &[with_id("a", "{\"path\""), with_id("b", ":\"x\"}"), finish("tool_calls")], expected);
    // The whole arguments once more, with other blanks, or as an object.
    check(
        &m,
        &[
            piece(json!("{\"path\":")),
            piece(json!("\"x\"}")),
            piece(json!("{\"path\":\"x\"}")),
            finish("tool_calls"),
        ],
        expected,
    );
    check(
        &m,
        &[
            piece(json!("{\"path\":\"x\"}")),
            piece(json!("{ \"path\": \"x\" }")),
            piece(json!("\n")),
            finish("tool_calls"),
        ],
        expected,
    );
    check(&m, &[piece(json!({"path": "x"})), finish("tool_calls")], expected);
    // Before they are known.
    check(&m, &[piece(json!("{}")), piece(json!("{\"path\":\"x\"}")), finish("tool_calls")], expected);
    check(&m, &[piece(json!({})), piece(json!({"path": "x"})), finish("tool_calls")], expected);
    // Only at the end.
    check(
        &m,
        &[piece(json!(null)), piece(json!("")), piece(json!("{\"path\":\"x\"}")), finish("stop")],
        expected,
    );
    // All so far, each time: only where the model says so.
    let cumulative = model(json!({"compat": {"cumulativeToolArguments": true}}));
    check(
        &cumulative,
        &[
            piece(json!("{\"pa")),
            piece(json!("{\"path\":")),
            piece(json!("{\"path\":\"x\"}")),
            finish("tool_calls"),
        ],
        expected,
    );
    let nested = [piece(json!("{\"a\":")), piece(json!("{\"a\":1}}")), finish("tool_calls")];
    check(&m, &nested, r#"call a ls {"a":{"a":1}}; tooluse"#);
    // A custom part that says nothing.
    let with_custom = calls(
        json!([{"index": 0, "id": "a", "custom": {}, "function": {"name": "ls", "arguments": "{\"path\":\"x\"}"}}]),
    );
    let custom_alone = calls(json!([{"index": 0, "custom": {}}]));
    check(&m, &[with_custom, custom_alone, finish("tool_calls")], expected);
}

#[test]
fn content_in_parts_empty_deltas_and_null_fields() {
    let m = local();
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}, {"type": "image"}]);
    check(
        &m,
        &[
            delta(json!({"content": parts})),
            delta(json!({})),
            delta(
                json!({"content": null, "reasoning_content": null, "tool_calls": null, "reasoning_details": null}),
            ),
            json!({"choices": []}),
            json!({"choices": null}),
            json!({"choices": [{"delta": null}]}),
            json!(null),
            delta(json!({"content": [{"type": "text", "text": "b"}]})),
            finish("stop"),
        ],
        r#"think "t" -; text "ab"; stop"#,
    );
}

#[test]
fn blank_text_around_calls_is_no_answer() {
    let call = json!([{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{}"}}]);
    check(&local(), &[text("\n\n"), calls(call), finish("tool_calls")], "call a ls {}; tooluse");
}
