//! An incremental parser for JSON tool arguments that arrive in pieces.
//!
//! After every [`push`](PartialJson::push) the object holds all values received so far, including the start
//! of an incomplete string. A key, a number or a literal appears once complete. Time is linear in the text,
//! regardless of the pieces.
//!
//! Two errors in strings are common in models' output, and are repaired as in the reference: raw control
//! characters are accepted, and a backslash that begins no valid escape is kept (`C:\Users`). An unpaired
//! surrogate becomes U+FFFD. Any other error stops the parser, keeps the values read so far, and is returned
//! by [`finish`](PartialJson::finish).

#[cfg(test)]
mod tests;

use memchr::memchr2;
use serde_json::{Map, Number, Value};

/// Maximum nesting of containers, including the object itself. Readers of stored messages accept 128 levels,
/// some of which the surrounding message uses.
const MAX_DEPTH: usize = 100;

pub struct PartialJson {
    object: Map<String, Value>,
    /// The path from `object` to the innermost open container.
    path: Vec<Step>,
    /// The open containers during a `push`, each taken out of its parent.
    open: Vec<Value>,
    state: State,
    /// The current key.
    key: String,
    /// The number or literal being read.
    scalar: String,
    escape: Escape,
    /// The first half of a surrogate pair.
    high: Option<u16>,
    /// Total bytes of the earlier pieces.
    position: usize,
    /// Why the text is not JSON.
    problem: Option<String>,
    /// The whole text so far.
    text: String,
}

/// The position of a container in its parent: a member of an object, or the last element of an array.
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
    /// A number or a literal in place of the object.
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
            text: String::new(),
        }
    }

    /// Parses the next piece.
    pub fn push(&mut self, piece: &str) {
        self.take_apart();
        let mut at = 0;
        while at < piece.len() && self.state != State::Broken {
            at += self.step(piece, at);
        }
        self.put_together();
        self.position += piece.len();
        self.text.push_str(piece);
    }

    /// The object as far as received.
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// The complete object, and an error if the text is invalid, which quotes the text. Empty text yields an
    /// empty object; a value other than an object yields an empty object and an error.
    pub fn finish_whole(mut self) -> (Map<String, Value>, Option<String>) {
        let text = std::mem::take(&mut self.text);
        match self.finish() {
            (_, Some(problem)) => (Map::new(), Some(format!("{problem}\n\nReceived arguments:\n{text}"))),
            whole => whole,
        }
    }

    /// The object as far as it was read, and an error if the text is not one complete JSON object.
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

    /// Reads from `at`, and returns the number of bytes read; 0 if the new state must read the character
    /// again.
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
                    self.fail(format!("more than {MAX_DEPTH} levels of nesting at byte {position}"));
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

    /// Closes the innermost container.
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

    /// Adds a value to the innermost container.
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Value::Object(members)) => {
                members.insert(self.key.clone(), value);
            }
            Some(Value::Array(elements)) => elements.push(value),
            _ => {}
        }
    }

    /// Continues to read a string: a key, or a value that is extended in place.
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
                            self.escape = Escape::Unicode { digits: [0; 4], count: 0 };
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
                        self.escape = Escape::Unicode { digits, count: count + 1 };
                        if count == 3 {
                            self.escape = Escape::None;
                            push_unit(&mut self.high, code_unit(digits), text);
                        }
                    } else {
                        // Too few digits: the text is kept.
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

    /// Continues to read a number or a literal.
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

    /// Adds the number or literal that ends before `at`.
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

    /// Moves every open container out of its parent, so that the innermost is accessible.
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

    /// Moves every open container back into its parent.
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

/// Parses a JSON number. A number beyond the range of a double becomes `null`, as in JavaScript.
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
    let whole_parts = text.split(['e', 'E']).all(|part| part.ends_with(|last: char| last.is_ascii_digit()));
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

/// Replaces an unpaired first surrogate by U+FFFD.
fn flush_high(high: &mut Option<u16>, text: &mut String) {
    if high.take().is_some() {
        text.push('\u{fffd}');
    }
}
