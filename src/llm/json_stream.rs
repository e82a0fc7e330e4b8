//! An incremental parser for the JSON of tool arguments, which arrives in pieces.
//!
//! The object is alive: after every [`push`](PartialJson::push) it holds all that is known, with the
//! string being read as far as it goes. A key, a number or a literal shows when it is complete. Time is
//! linear in the text, whatever the pieces.
//!
//! Models get strings wrong in two ways, and both are repaired as the reference does: raw control
//! characters are taken as they are, and a backslash before a character that cannot follow one stands
//! for itself (`C:\Users`). A surrogate without its partner becomes U+FFFD. All else that is not JSON
//! stops the parser, keeps what was read, and is told by [`finish`](PartialJson::finish).

use memchr::memchr2;
use serde_json::{Map, Number, Value};

/// Containers inside each other, the object itself included. Readers of stored messages stop at 128
/// levels, some of which the message around the arguments takes.
const MAX_DEPTH: usize = 100;

pub struct PartialJson {
    object: Map<String, Value>,
    /// The way from `object` to the innermost open container.
    path: Vec<Step>,
    /// While a piece is read: the open containers, each taken out of its parent.
    open: Vec<Value>,
    state: State,
    /// The key being read, then the key whose value is read.
    key: String,
    /// The number or literal being read.
    scalar: String,
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u16>,
    /// Bytes in the pieces before this one.
    position: usize,
    /// Why the text is not JSON.
    problem: Option<String>,
}

/// Where a container sits in its parent.
enum Step {
    Member(String),
    LastElement,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Before the object.
    Start,
    /// After `{`.
    FirstKey,
    /// After a comma in an object.
    NextKey,
    Key,
    Colon,
    /// After `[`.
    FirstElement,
    /// After a colon, or a comma in an array.
    Value,
    String,
    /// A number or a literal, up to the character that ends it.
    Scalar,
    /// The same instead of the object.
    RootScalar,
    AfterValue,
    /// After the object.
    End,
    Broken,
}

/// The part of an escape sequence that was read.
#[derive(Clone, Copy)]
enum Escape {
    None,
    Backslash,
    /// `\u` and `count` digits.
    Unicode {
        digits: [u8; 4],
        count: usize,
    },
}

impl PartialJson {
    pub fn new() -> Self {
        Self {
            object: Map::new(),
            path: Vec::new(),
            open: Vec::new(),
            state: State::Start,
            key: String::new(),
            scalar: String::new(),
            escape: Escape::None,
            high: None,
            position: 0,
            problem: None,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        self.take_apart();
        let mut at = 0;
        while at < piece.len() && self.state != State::Broken {
            at += self.step(piece, at);
        }
        self.put_together();
        self.position += piece.len();
    }

    /// The object as far as it is known.
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// The object, and what is wrong with the text if it is not one whole JSON object. No text at all,
    /// or `null`, stands for an object without members.
    pub fn finish(mut self) -> (Map<String, Value>, Option<String>) {
        if matches!(self.state, State::Scalar | State::RootScalar) {
            self.take_apart();
            self.end_scalar("", 0);
            self.put_together();
        }
        let inside = match self.state {
            State::Start | State::End | State::Broken => return (self.object, self.problem),
            State::Key | State::String => "a string",
            _ => "an object",
        };
        let end = self.position;
        let problem = format!("the text ends inside {inside} at byte {end}");
        (self.object, Some(problem))
    }

    /// Reads at `at` and says how many bytes it took; none when another state has to look at the same
    /// character.
    fn step(&mut self, piece: &str, at: usize) -> usize {
        match self.state {
            State::Key | State::String => return self.string(piece, at),
            State::Scalar | State::RootScalar => return self.scalar(piece, at),
            _ => {}
        }
        let byte = piece.as_bytes()[at];
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            return 1;
        }
        let in_array = matches!(self.open.last(), Some(Value::Array(_)));
        match (self.state, byte) {
            (State::Start, b'{') => {
                self.open.push(Value::Object(Map::new()));
                self.state = State::FirstKey;
            }
            (State::FirstKey | State::NextKey, b'"') => {
                self.key.clear();
                self.state = State::Key;
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::AfterValue, b',') if in_array => self.state = State::Value,
            (State::AfterValue, b',') => self.state = State::NextKey,
            (State::FirstKey, b'}') | (State::FirstElement, b']') => self.close(),
            (State::AfterValue, b'}') if !in_array => self.close(),
            (State::AfterValue, b']') if in_array => self.close(),
            (State::Value | State::FirstElement, b'"') => {
                self.put(Value::String(String::new()));
                self.state = State::String;
            }
            (State::Value | State::FirstElement, b'{' | b'[') => {
                if self.open.len() == MAX_DEPTH {
                    let position = self.position + at;
                    self.fail(format!(
                        "more than {MAX_DEPTH} levels of nesting at byte {position}"
                    ));
                } else if byte == b'{' {
                    self.enter(Value::Object(Map::new()));
                    self.state = State::FirstKey;
                } else {
                    self.enter(Value::Array(Vec::new()));
                    self.state = State::FirstElement;
                }
            }
            (State::Start, b'n') => {
                self.state = State::RootScalar;
                return 0;
            }
            (State::Value | State::FirstElement, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.scalar.clear();
                self.state = State::Scalar;
                return 0;
            }
            _ => self.unexpected(piece, at),
        }
        1
    }

    /// Opens a container as the next value.
    fn enter(&mut self, container: Value) {
        let step = match self.open.last() {
            Some(Value::Object(_)) => Step::Member(self.key.clone()),
            _ => Step::LastElement,
        };
        self.put(Value::Null); // keeps the place until the container comes back
        self.path.push(step);
        self.open.push(container);
    }

    /// Ends the innermost container.
    fn close(&mut self) {
        let (closed, step) = (self.open.pop(), self.path.pop());
        match (closed, step) {
            (Some(closed), Some(step)) => {
                if let Some(place) = self.open.last_mut().and_then(|parent| step.place(parent)) {
                    *place = closed;
                }
                self.state = State::AfterValue;
            }
            (Some(Value::Object(object)), None) => {
                self.object = object;
                self.state = State::End;
            }
            _ => self.state = State::End,
        }
    }

    /// Puts the next value into the innermost container.
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Value::Object(members)) => {
                members.insert(self.key.clone(), value);
            }
            Some(Value::Array(elements)) => elements.push(value),
            _ => {}
        }
    }

    /// Reads on in a string: a key, or a value that grows in its place.
    fn string(&mut self, piece: &str, start: usize) -> usize {
        let text = match (self.state, self.open.last_mut()) {
            (State::Key, _) => Some(&mut self.key),
            (_, Some(Value::Object(members))) => as_string(members.get_mut(&self.key)),
            (_, Some(Value::Array(elements))) => as_string(elements.last_mut()),
            _ => None,
        };
        let Some(text) = text else {
            self.unexpected(piece, start);
            return 0;
        };
        let mut at = start;
        while let Some(&byte) = piece.as_bytes().get(at) {
            match self.escape {
                Escape::None => {
                    let rest = &piece[at..];
                    let run = memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
                    if run > 0 {
                        flush_high(&mut self.high, text);
                        text.push_str(&rest[..run]);
                        at += run;
                    } else if byte == b'\\' {
                        self.escape = Escape::Backslash;
                        at += 1;
                    } else {
                        flush_high(&mut self.high, text);
                        self.state = match self.state {
                            State::Key => State::Colon,
                            _ => State::AfterValue,
                        };
                        return at + 1 - start;
                    }
                }
                Escape::Backslash => {
                    self.escape = Escape::None;
                    let meant = match byte {
                        b'"' | b'\\' | b'/' => byte as char,
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => {
                            self.escape = Escape::Unicode {
                                digits: [0; 4],
                                count: 0,
                            };
                            at += 1;
                            continue;
                        }
                        _ => {
                            flush_high(&mut self.high, text);
                            text.push('\\');
                            continue;
                        }
                    };
                    flush_high(&mut self.high, text);
                    text.push(meant);
                    at += 1;
                }
                Escape::Unicode { mut digits, count } => {
                    if byte.is_ascii_hexdigit() {
                        digits[count] = byte;
                        at += 1;
                        self.escape = Escape::Unicode {
                            digits,
                            count: count + 1,
                        };
                        if count == 3 {
                            self.escape = Escape::None;
                            push_unit(&mut self.high, code_unit(digits), text);
                        }
                    } else {
                        // Too few digits: the text meant itself.
                        self.escape = Escape::None;
                        flush_high(&mut self.high, text);
                        text.push_str("\\u");
                        text.extend(digits[..count].iter().map(|&digit| digit as char));
                    }
                }
            }
        }
        at - start
    }

    /// Reads on in a number or a literal.
    fn scalar(&mut self, piece: &str, start: usize) -> usize {
        let rest = &piece[start..];
        let part_of = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let run = rest.bytes().position(|byte| !part_of(byte));
        self.scalar.push_str(&rest[..run.unwrap_or(rest.len())]);
        match run {
            Some(run) => {
                self.end_scalar(piece, start + run);
                run
            }
            None => rest.len(),
        }
    }

    /// Puts the number or literal that ends before `at`.
    fn end_scalar(&mut self, piece: &str, at: usize) {
        let value = match self.scalar.as_str() {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => match number(text) {
                Some(value) => value,
                None => {
                    let begin = (self.position + at).saturating_sub(text.len());
                    let shown: String = text.chars().take(20).collect();
                    self.fail(format!("not a JSON value at byte {begin}: {shown}"));
                    return;
                }
            },
        };
        if self.state == State::Scalar {
            self.put(value);
            self.state = State::AfterValue;
        } else if value.is_null() {
            self.state = State::End;
        } else {
            self.unexpected(piece, at);
        }
    }

    fn unexpected(&mut self, piece: &str, at: usize) {
        let in_array = matches!(self.open.last(), Some(Value::Array(_)));
        let wanted = match self.state {
            State::Start | State::RootScalar => "an object",
            State::FirstKey => "a key or }",
            State::NextKey => "a key",
            State::Colon => ":",
            State::FirstElement => "a value or ]",
            State::AfterValue if in_array => ", or ]",
            State::AfterValue => ", or }",
            State::End => "nothing more",
            _ => "a value",
        };
        let found = piece.get(at..).and_then(|rest| rest.chars().next());
        let found = found.map_or_else(String::new, |found| format!(", found {found:?}"));
        let position = self.position + at;
        self.fail(format!("expected {wanted} at byte {position}{found}"));
    }

    fn fail(&mut self, problem: String) {
        self.problem = Some(problem);
        self.state = State::Broken;
    }

    /// Takes every open container out of its parent, so that the innermost is at hand.
    fn take_apart(&mut self) {
        if matches!(self.state, State::Start | State::RootScalar | State::End) {
            return;
        }
        let mut container = Value::Object(std::mem::take(&mut self.object));
        for step in &self.path {
            let inner = step.place(&mut container).map(Value::take);
            self.open.push(container);
            container = inner.unwrap_or_default();
        }
        self.open.push(container);
    }

    /// Puts every open container back into its parent.
    fn put_together(&mut self) {
        let Some(mut container) = self.open.pop() else {
            return;
        };
        for step in self.path.iter().rev() {
            let Some(mut parent) = self.open.pop() else {
                return;
            };
            if let Some(place) = step.place(&mut parent) {
                *place = container;
            }
            container = parent;
        }
        if let Value::Object(object) = container {
            self.object = object;
        }
    }
}

impl Default for PartialJson {
    fn default() -> Self {
        Self::new()
    }
}

impl Step {
    fn place<'a>(&self, parent: &'a mut Value) -> Option<&'a mut Value> {
        match (self, parent) {
            (Self::Member(key), Value::Object(members)) => members.get_mut(key),
            (Self::LastElement, Value::Array(elements)) => elements.last_mut(),
            _ => None,
        }
    }
}

fn as_string(value: Option<&mut Value>) -> Option<&mut String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A JSON number. One beyond the range of a double is `null`, as JavaScript would write it.
fn number(text: &str) -> Option<Value> {
    if let Ok(number) = serde_json::from_str::<Number>(text) {
        return Some(Value::Number(number));
    }
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let well_formed = match digits {
        [b'0', rest @ ..] => rest.first().is_none_or(|byte| !byte.is_ascii_digit()),
        [first, ..] => first.is_ascii_digit(),
        [] => false,
    };
    let whole_parts = text
        .split(['e', 'E'])
        .all(|part| part.ends_with(|last: char| last.is_ascii_digit()));
    let too_large = text.parse::<f64>().is_ok_and(f64::is_infinite);
    (well_formed && whole_parts && too_large).then_some(Value::Null)
}

fn code_unit(digits: [u8; 4]) -> u16 {
    digits.iter().fold(0, |unit, &digit| {
        let value = (digit as char).to_digit(16).unwrap_or(0);
        unit << 4 | value as u16 // a hexadecimal digit
    })
}

/// Adds a UTF-16 code unit from an escape.
fn push_unit(high: &mut Option<u16>, unit: u16, text: &mut String) {
    if let Some(first) = *high
        && (0xdc00..0xe000).contains(&unit)
    {
        *high = None;
        let pair = char::decode_utf16([first, unit]).next();
        text.push(pair.and_then(Result::ok).unwrap_or('\u{fffd}'));
        return;
    }
    flush_high(high, text);
    if (0xd800..0xdc00).contains(&unit) {
        *high = Some(unit);
    } else {
        text.push(char::from_u32(unit.into()).unwrap_or('\u{fffd}'));
    }
}

/// The first half of a pair is not followed by the second.
fn flush_high(high: &mut Option<u16>, text: &mut String) {
    if high.take().is_some() {
        text.push('\u{fffd}');
    }
}

#[cfg(test)]
mod tests {
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
        good("null", json!({}));
        good(" {} ", json!({}));
        good(r#"{"a":"b"}"#, json!({"a": "b"}));
        good(
            r#" { "a" : [ 1 , -2.5e3 , [ ] , { } , true , false , null , "x" ] , "b" : { "c" : "" } } "#,
            json!({"a": [1, -2500.0, [], {}, true, false, null, "x"], "b": {"c": ""}}),
        );
        good(
            r#"{"a":{"x":"1"},"b":2,"a":"last"}"#,
            json!({"a": "last", "b": 2}),
        );
        good(r#"{"":{"":[""]}}"#, json!({"": {"": [""]}}));
    }

    #[test]
    fn numbers() {
        good(r#"{"a":18446744073709551615}"#, json!({"a": u64::MAX}));
        good(r#"{"a":-9223372036854775808}"#, json!({"a": i64::MIN}));
        good(
            r#"{"a":123456789012345678901234567890}"#,
            json!({"a": 123456789012345678901234567890.0}),
        );
        good(r#"{"a":1e999,"b":-1e999}"#, json!({"a": null, "b": null}));
        let huge = format!(r#"{{"a":{}}}"#, "9".repeat(500));
        good(&huge, json!({"a": null}));
        for text in [
            "01", "1.", ".5", "+1", "1e", "--1", "0x10", "1e+", "01e999", "1.e999", "1e999x", "inf",
        ] {
            let (_, problem) = parse_every_way(&format!(r#"{{"a":{text}}}"#));
            assert!(problem.is_some(), "{text}");
        }
    }

    #[test]
    fn escapes() {
        good(
            r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\u0000"}"#,
            json!({"a": "\"\\/\u{8}\u{c}\n\r\té\0"}),
        );
        good(r#"{"\u0061\n":1}"#, json!({"a\n": 1}));
        good(
            r#"{"a":"\ud83d\ude00 \uD83D\uDE00"}"#,
            json!({"a": "😀 😀"}),
        );
    }

    #[test]
    fn surrogates_without_a_partner_are_replaced() {
        good(r#"{"a":"\ud83d"}"#, json!({"a": "\u{fffd}"}));
        good(r#"{"a":"\ude00x"}"#, json!({"a": "\u{fffd}x"}));
        good(
            r#"{"a":"\ud83dx\ude00"}"#,
            json!({"a": "\u{fffd}x\u{fffd}"}),
        );
        good(r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"}));
        good(r#"{"a":"\ud83d\n"}"#, json!({"a": "\u{fffd}\n"}));
        good(r#"{"a":"\ud83d\q"}"#, json!({"a": "\u{fffd}\\q"}));
        good(r#"{"a":"\ud83d\u00"}"#, json!({"a": "\u{fffd}\\u00"}));
    }

    #[test]
    fn what_models_write_in_strings_is_repaired() {
        good("{\"a\":\"1\n2\t3\u{1}\"}", json!({"a": "1\n2\t3\u{1}"}));
        good("{\"a\nb\":1}", json!({"a\nb": 1}));
        good(
            r#"{"a":"C:\Users\Öl \d+ \' \x41"}"#,
            json!({"a": r"C:\Users\Öl \d+ \' \x41"}),
        );
        good(
            r#"{"a":"\u12","b":"\u12G4","c":"\u"}"#,
            json!({"a": r"\u12", "b": r"\u12G4", "c": r"\u"}),
        );
        good("{\"a\":\"\\\n\"}", json!({"a": "\\\n"}));
    }

    #[test]
    fn text_that_stops_too_early() {
        bad("{", json!({}), "the text ends inside an object at byte 1");
        bad(
            r#"{"a"#,
            json!({}),
            "the text ends inside a string at byte 3",
        );
        bad(
            r#"{"a":"#,
            json!({}),
            "the text ends inside an object at byte 5",
        );
        bad(
            r#"{"a":"bc"#,
            json!({"a": "bc"}),
            "the text ends inside a string at byte 8",
        );
        bad(
            r#"{"a":"b\"#,
            json!({"a": "b"}),
            "the text ends inside a string at byte 8",
        );
        bad(
            r#"{"a":12"#,
            json!({"a": 12}),
            "the text ends inside an object at byte 7",
        );
        bad(r#"{"a":tru"#, json!({}), "not a JSON value at byte 5: tru");
        bad(
            r#"{"a":[1,{"b":"c"#,
            json!({"a": [1, {"b": "c"}]}),
            "the text ends inside a string at byte 15",
        );
    }

    #[test]
    fn text_that_is_not_one_object() {
        bad("[1]", json!({}), "expected an object at byte 0, found '['");
        bad(
            r#""a""#,
            json!({}),
            "expected an object at byte 0, found '\"'",
        );
        bad("x", json!({}), "expected an object at byte 0, found 'x'");
        bad("nil", json!({}), "not a JSON value at byte 0: nil");
        bad(
            "null null",
            json!({}),
            "expected nothing more at byte 5, found 'n'",
        );
        bad(
            "{a:1}",
            json!({}),
            "expected a key or } at byte 1, found 'a'",
        );
        bad(
            "{\u{e9}",
            json!({}),
            "expected a key or } at byte 1, found 'é'",
        );
        bad(r#"{"a" 1}"#, json!({}), "expected : at byte 5, found '1'");
        bad(
            r#"{"a":,}"#,
            json!({}),
            "expected a value at byte 5, found ','",
        );
        bad(
            r#"{"a":1,}"#,
            json!({"a": 1}),
            "expected a key at byte 7, found '}'",
        );
        bad(
            r#"{"a":1]"#,
            json!({"a": 1}),
            "expected , or } at byte 6, found ']'",
        );
        bad(
            r#"{"a":[1}"#,
            json!({"a": [1]}),
            "expected , or ] at byte 7, found '}'",
        );
        bad(
            r#"{"a":[1,]}"#,
            json!({"a": [1]}),
            "expected a value at byte 8, found ']'",
        );
        bad(r#"{"a":nan}"#, json!({}), "not a JSON value at byte 5: nan");
        bad(
            r#"{"a":1}{"a":1}"#,
            json!({"a": 1}),
            "expected nothing more at byte 7, found '{'",
        );
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
        check(
            r#"", "edits": [{"old"#,
            json!({"path": "src\n", "edits": [{}]}),
        );
        check(
            r#"":"a"}, "#,
            json!({"path": "src\n", "edits": [{"old": "a"}]}),
        );
        check(
            r#"["x"#,
            json!({"path": "src\n", "edits": [{"old": "a"}, ["x"]]}),
        );
        check(
            r#""],4"#,
            json!({"path": "src\n", "edits": [{"old": "a"}, ["x"]]}),
        );
        check(
            "2]",
            json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}),
        );
        check(
            "}",
            json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}),
        );
        check(
            "garbage",
            json!({"path": "src\n", "edits": [{"old": "a"}, ["x"], 42]}),
        );
    }

    #[test]
    fn deep_nesting_ends_in_a_problem() {
        for unit in ["[", r#"{"a":"#] {
            let text = format!(r#"{{"a":{}"#, unit.repeat(100_000));
            let mut parser = PartialJson::new();
            parser.push(&text);
            parser.push(&text);
            let (_, problem) = parser.finish();
            assert!(
                problem.unwrap().starts_with("more than 100 levels"),
                "{unit}"
            );
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
}
