//! What is read, and what is refused.

use super::*;
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(parse(text), Ok(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = parse(text).expect_err(text).to_string();
    assert_eq!(error, expected, "{text}");
}

#[test]
fn keys_and_values() {
    check("", Value::Null);
    check("# nothing\n\n", Value::Null);
    check(
        "name: pdf-tools\ndescription: Reads PDFs.",
        json!({"name":"pdf-tools","description":"Reads PDFs."}),
    );
    check("a: b # c\nd: e#f\ng:\nh: 'i: # j'", json!({"a":"b","d":"e#f","g":null,"h":"i: # j"}));
    check(
        "a: true\nb: False\nc: ~\nd: 12\ne: -1.5\nf: 1.2.3\ng: 'true'\nh: 2024-01-02",
        json!({"a":true,"b":false,"c":null,"d":12,"e":-1.5,"f":"1.2.3","g":"true","h":"2024-01-02"}),
    );
    check("\"a b\": 1\nurl: http://x/y:z\ntime: 10:30", json!({"a b":1,"url":"http://x/y:z","time":"10:30"}));
    check("a: \"x\\n\\\"y\\u00e9\"\nb: 'it''s'", json!({"a":"x\n\"yé","b":"it's"}));
    check("a: b\r\nc: d\r\n", json!({"a":"b","c":"d"}));
    check("just text", json!("just text"));
    check("hint: <file> [more]", json!({"hint":"<file> [more]"}));
    check("a: - b", json!({"a":"- b"}));
}

#[test]
fn nesting() {
    check("m:\n  a: 1\n  b:\n    c: 2\nd: 3", json!({"m":{"a":1,"b":{"c":2}},"d":3}));
    check(
        "l:\n  - a\n  - b: 1\n    c: 2\n  - - x\n    - y\n  -\n    z: 1",
        json!({"l":["a",{"b":1,"c":2},["x","y"],{"z":1}]}),
    );
    check("l:\n- a\n- b\nk: v", json!({"l":["a","b"],"k":"v"}));
    check("l: [a, 'b, c', 1, [d], {e: f}]", json!({"l":["a","b, c",1,["d"],{"e":"f"}]}));
    check("l: [a,\n  b,\n  c ] # all", json!({"l":["a","b","c"]}));
    check("m: {a: 1, \"b\": [x], c}", json!({"m":{"a":1,"b":["x"],"c":null}}));
    check("l: []\nm: {}", json!({"l":[],"m":{}}));
}

#[test]
fn texts_of_several_lines() {
    check("a: one\n  two\n\n  three\nb: c", json!({"a":"one two\nthree","b":"c"}));
    check("a:\n  one\n  two\nb: c", json!({"a":"one two","b":"c"}));
    check("a: \"one\n  two\"\nb: c", json!({"a":"one two","b":"c"}));
    check("a: |\n  one\n    two\n\n  three\nb: c", json!({"a":"one\n  two\n\nthree\n","b":"c"}));
    check(
        "a: >\n  one\n  two\n\n  three\n    four\n  five\nb: c",
        json!({"a":"one two\nthree\n  four\nfive\n","b":"c"}),
    );
    check("a: >-\n  one\n  two\n\nb: c", json!({"a":"one two","b":"c"}));
    check("a: |-\n  # no comment\n  k: v\n", json!({"a":"# no comment\nk: v"}));
    check("a: |+\n  one\n\nb: c", json!({"a":"one\n\n","b":"c"}));
    check("a: |2\n    one\n  two", json!({"a":"  one\ntwo\n"}));
    check("a: |\nb: c", json!({"a":"","b":"c"}));
}

#[test]
fn what_is_not_supported_has_a_name() {
    refused("a: &x b", "line 1: anchors (&) are not supported");
    refused("a: 1\nb: *x", "line 2: aliases (*) are not supported; put the value in quotes");
    refused("a: !!str b", "line 1: tags (!) are not supported; put the value in quotes");
    refused("? a\n: b", "line 1: complex keys (?) are not supported");
    refused("a: 1\n---\nb: 2", "line 2: several documents are not supported");
    refused("a: b: c", "line 1: a colon and a space inside a value: put the value in quotes");
    refused("a: b\n  c: d", "line 1: a colon and a space inside a value: put the value in quotes");
    refused("a: @b", "line 1: a value cannot begin with @ or `: put it in quotes");
    refused("a: 1\na: 2", "line 2: the key a is there twice");
    refused("a: 1\n\tb: 2", "line 2: tabs cannot indent");
    refused("a: \"b", "line 1: no end of what begins with \"");
    refused("a: [b", "line 1: no end of what begins with [");
    refused("a: 'b' c", "line 1: nothing may follow here: c");
    refused("a: \"\\q\"", "line 1: \\q is no escape; write \\\\ for a backslash");
    refused("a: 1\nb", "line 2: expected a key and a colon");
    refused("- a\nb: c", "line 2: this does not belong to what stands above it");
    refused("a:\n    b: 1\n  c: 2", "line 3: indented further than the key above it");
    let deep = "[".repeat(1000);
    refused(&format!("a: {deep}"), "line 1: nested too deeply");
}

proptest! {
    #[test]
    fn no_text_does_harm(text in "[-a: #\"'\\[\\]{},|>\\\\\n\t&é?!*~1]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_quoted_text_comes_back(text in "\\PC{0,30}") {
        let quoted = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(parse(&format!("a: {quoted}\nb: 1")), Ok(json!({"a": text, "b": 1})));
        let single = format!("'{}'", text.replace('\'', "''"));
        prop_assert_eq!(parse(&format!("a: [{single}]")), Ok(json!({"a": [text]})));
    }

    #[test]
    fn block_texts_keep_their_lines(lines in prop::collection::vec("[a-z:#-]{1,8}( [a-z]{1,3})?", 1..6)) {
        let text = lines.join("\n");
        let block: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        prop_assert_eq!(parse(&format!("a: |\n{block}")), Ok(json!({"a": format!("{text}\n")})));
    }
}
