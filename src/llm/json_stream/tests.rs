//! What is read must not depend on how the text is cut, and must be what serde reads.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn parse<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (Value, Option<String>) {
    let mut parser = PartialJson::new();
    for piece in pieces {
        parser.push(piece);
    }
    let (object, problem) = parser.finish();
    (Value::Object(object), problem)
}

/// The result for `text`, which must not depend on how it is cut.
#[track_caller]
fn parse_every_way(text: &str) -> (Value, Option<String>) {
    let whole = parse([text]);
    for at in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
        assert_eq!(parse([&text[..at], &text[at..]]), whole, "cut at {at}");
    }
    let mut buffer = [0; 4];
    let mut parser = PartialJson::new();
    for piece in text.chars() {
        parser.push(piece.encode_utf8(&mut buffer));
    }
    let (object, problem) = parser.finish();
    assert_eq!((Value::Object(object), problem), whole, "single characters");
    whole
}

#[track_caller]
fn good(text: &str, expected: Value) {
    assert_eq!(parse_every_way(text), (expected, None), "{text}");
}

#[track_caller]
fn bad(text: &str, expected: Value, problem: &str) {
    let expected = (expected, Some(problem.to_owned()));
    assert_eq!(parse_every_way(text), expected, "{text}");
}

#[test]
fn whole_objects() {
    good("", json!({}));
    good(" \n", json!({}));

    good(" {} ", json!({}));
    good(r#"{"a":"b"}"#, json!({"a": "b"}));
    good(
        r#" { "a" : [ 1 , -2.5e3 , [ ] , { } , true , false , null , "x" ] , "b" : { "c" : "" } } "#,
        json!({"a": [1, -2500.0, [], {}, true, false, null, "x"], "b": {"c": ""}}),
    );
    good(r#"{"a":{"x":"1"},"b":2,"a":"last"}"#, json!({"a": "last", "b": 2}));
    good(r#"{"":{"":[""]}}"#, json!({"": {"": [""]}}));
}

#[test]
fn numbers() {
    good(r#"{"a":18446744073709551615}"#, json!({"a": u64::MAX}));
    good(r#"{"a":-9223372036854775808}"#, json!({"a": i64::MIN}));
    good(r#"{"a":123456789012345678901234567890}"#, json!({"a": 123456789012345678901234567890.0}));
    good(r#"{"a":1e999,"b":-1e999}"#, json!({"a": null, "b": null}));
    let huge = format!(r#"{{"a":{}}}"#, "9".repeat(500));
    good(&huge, json!({"a": null}));
    for text in ["01", "1.", ".5", "+1", "1e", "--1", "0x10", "1e+", "01e999", "1.e999", "1e999x", "inf"] {
        let (_, problem) = parse_every_way(&format!(r#"{{"a":{text}}}"#));
        assert!(problem.is_some(), "{text}");
    }
}

#[test]
fn escapes() {
    good(r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\u0000"}"#, json!({"a": "\"\\/\u{8}\u{c}\n\r\té\0"}));
    good(r#"{"\u0061\n":1}"#, json!({"a\n": 1}));
    good(r#"{"a":"\ud83d\ude00 \uD83D\uDE00"}"#, json!({"a": "😀 😀"}));
}

#[test]
fn surrogates_without_a_partner_are_replaced() {
    good(r#"{"a":"\ud83d"}"#, json!({"a": "\u{fffd}"}));
    good(r#"{"a":"\ude00x"}"#, json!({"a": "\u{fffd}x"}));
    good(r#"{"a":"\ud83dx\ude00"}"#, json!({"a": "\u{fffd}x\u{fffd}"}));
    good(r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"}));
    good(r#"{"a":"\ud83d\n"}"#, json!({"a": "\u{fffd}\n"}));
    good(r#"{"a":"\ud83d\q"}"#, json!({"a": "\u{fffd}\\q"}));
    good(r#"{"a":"\ud83d\u00"}"#, json!({"a": "\u{fffd}\\u00"}));
}

#[test]
fn what_models_write_in_strings_is_repaired() {
    good("{\"a\":\"1\n2\t3\u{1}\"}", json!({"a": "1\n2\t3\u{1}"}));
    good("{\"a\nb\":1}", json!({"a\nb": 1}));
    good(r#"{"a":"C:\Users\Öl \d+ \' \x41"}"#, json!({"a": r"C:\Users\Öl \d+ \' \x41"}));
    good(r#"{"a":"\u12","b":"\u12G4","c":"\u"}"#, json!({"a": r"\u12", "b": r"\u12G4", "c": r"\u"}));
    good("{\"a\":\"\\\n\"}", json!({"a": "\\\n"}));
}

#[test]
fn text_that_stops_too_early() {
    bad("{", json!({}), "the text ends inside an object at byte 1");
    bad(r#"{"a"#, json!({}), "the text ends inside a string at byte 3");
    bad(r#"{"a":"#, json!({}), "the text ends inside an object at byte 5");
    bad(r#"{"a":"bc"#, json!({"a": "bc"}), "the text ends inside a string at byte 8");
    bad(r#"{"a":"b\"#, json!({"a": "b"}), "the text ends inside a string at byte 8");
    bad(r#"{"a":12"#, json!({"a": 12}), "the text ends inside an object at byte 7");
    bad(r#"{"a":tru"#, json!({}), "not a JSON value at byte 5: tru");
    bad(r#"{"a":[1,{"b":"c"#, json!({"a": [1, {"b": "c"}]}), "the text ends inside a string at byte 15");
}

#[test]
fn text_that_is_not_one_object() {
    bad("[1]", json!({}), "expected an object at byte 0, found '['");
    bad("null", json!({}), "expected an object at byte 4");
    bad(r#""a""#, json!({}), "expected an object at byte 0, found '\"'");
    bad("x", json!({}), "expected an object at byte 0, found 'x'");
    bad("nil", json!({}), "not a JSON value at byte 0: nil");
    bad("null null", json!({}), "expected an object at byte 4, found ' '");
    bad("{a:1}", json!({}), "expected a key or } at byte 1, found 'a'");
    bad("{\u{e9}", json!({}), "expected a key or } at byte 1, found 'é'");
    bad(r#"{"a" 1}"#, json!({}), "expected : at byte 5, found '1'");
    bad(r#"{"a":,}"#, json!({}), "expected a value at byte 5, found ','");
    bad(r#"{"a":1,}"#, json!({"a": 1}), "expected a key at byte 7, found '}'");
    bad(r#"{"a":1]"#, json!({"a": 1}), "expected , or } at byte 6, found ']'");
    bad(r#"{"a":[1}"#, json!({"a": [1]}), "expected , or ] at byte 7, found '}'");
    bad(r#"{"a":[1,]}"#, json!({"a": [1]}), "expected a value at byte 8, found ']'");
    bad(r#"{"a":nan}"#, json!({}), "not a JSON value at byte 5: nan");
    bad(r#"{"a":1}{"a":1}"#, json!({"a": 1}), "expected nothing more at byte 7, found '{'");
}

#[test]
fn the_object_is_alive_while_it_is_read() {
    let mut parser = PartialJson::new();
    let mut check = |piece: &str, expected: Value| {
        parser.push(piece);
        assert_eq!(Value::Object(parser.object().clone()), expected, "{piece}");
    };
    check("", json!({}));
    check(r#"{"pa"#, json!({}));
    check(r#"th":"#, json!({}));
    check(r#" "sr"#, json!({"path": "sr"}));
    check(r"c\", json!({"path": "src"}));
    check("n", json!({"path": "src\n"}));
    check(r#"", "edits": [{"old"#, json!({"path": "src\n", "edits": [{}]}));
    check(r#"":"a"}, "#, json!({"path": "src\n", "edits": [{"old": "a"}]}));
    check(r#"["x"#, json!({"path": "src\n", "edits": [{"old": "a"}, ["x"]]}));
    check(r#""],4"#, json!({"path": "src\n", "edits": [{"old": "a"}, ["x"]]}));
    check("2]", json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}));
    check("}", json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}));
    check("garbage", json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}));
}

#[test]
fn deep_nesting_ends_in_a_problem() {
    for unit in ["[", r#"{"a":"#] {
        let text = format!(r#"{{"a":{}"#, unit.repeat(100_000));
        let mut parser = PartialJson::new();
        parser.push(&text);
        parser.push(&text);
        let (_, problem) = parser.finish();
        assert!(problem.unwrap().starts_with("more than 100 levels"), "{unit}");
    }
    let fits = format!(r#"{{"a":{}{}}}"#, "[".repeat(99), "]".repeat(99));
    assert_eq!(parse_every_way(&fits).1, None);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn valid_objects_are_read_as_serde_reads_them(
        members in prop::collection::vec((any::<String>(), any_value()), 0..4),
        pretty: bool,
    ) {
        let object = Value::Object(members.into_iter().collect());
        let text = match pretty {
            true => serde_json::to_string_pretty(&object).unwrap(),
            false => object.to_string(),
        };
        let expected: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(parse_every_way(&text), (expected, None));
    }

    /// Without backslashes and control characters there is nothing to repair.
    #[test]
    fn text_is_whole_exactly_when_serde_says_so(
        text in r#"[{}\[\]:,"a1 .e-]{0,24}|\{("a":(1|"b"|\[1\]|\{\}|true)[,}]?){0,3}\}?"#,
    ) {
        let (object, problem) = parse_every_way(&text);
        match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(expected) => prop_assert_eq!((object, problem), (Value::Object(expected), None)),
            Err(_) if text.trim().is_empty() => {}
            Err(_) => prop_assert!(problem.is_some()),
        }
    }

    #[test]
    fn no_text_is_too_much(text in r#"([{}\[\]:,"\\ua1]|\\u[dD][8-9c-f][0-9]{2}|\PC){0,40}"#) {
        parse_every_way(&text);
        parse_every_way(&format!(r#"{{"a":"{text}"#));
    }
}
