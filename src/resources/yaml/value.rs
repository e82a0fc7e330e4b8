//! Parses single values: plain scalars, numbers, quoted strings, and flow collections in brackets.

use super::DEPTH_MAX;
use serde_json::{Map, Number, Value};

/// Returns `text` without a trailing comment.
pub fn uncomment(text: &str) -> &str {
    let cut = text
        .char_indices()
        .zip(std::iter::once(' ').chain(text.chars()))
        .find(|((_, c), before)| *c == '#' && before.is_whitespace())
        .map(|((at, _), _)| at);
    text.get(..cut.unwrap_or(text.len())).unwrap_or(text).trim_end()
}

/// Parses a plain scalar on one line.
pub fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if is_number && let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    let number = is_number.then(|| text.parse::<f64>().ok()).flatten();
    match number.and_then(Number::from_f64) {
        Some(number) => number.into(),
        None => text.into(),
    }
}

/// Parses the quoted string at the beginning of `text`. Returns it with the rest; `None` if its end is
/// missing.
pub fn quoted(text: &str) -> Option<(std::result::Result<String, String>, &str)> {
    let quote = text.chars().next()?;
    let body = text.get(1..)?;
    let mut out = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' => {
                let rest = body.get(at + 1..)?;
                if !rest.starts_with('\'') {
                    return Some((Ok(out), rest));
                }
                chars.next();
                out.push('\'');
            }
            '"' if quote == '"' => return Some((Ok(out), body.get(at + 1..)?)),
            '\\' if quote == '"' => {
                let (_, escape) = chars.next()?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                let plain = match escape {
                    'n' => Some('\n'),
                    't' => Some('\t'),
                    'r' => Some('\r'),
                    '0' => Some('\0'),
                    'e' => Some('\u{1b}'),
                    'a' => Some('\u{7}'),
                    'b' => Some('\u{8}'),
                    'f' => Some('\u{c}'),
                    'v' => Some('\u{b}'),
                    '_' => Some('\u{a0}'),
                    'N' => Some('\u{85}'),
                    '"' | '/' | '\\' | ' ' => Some(escape),
                    _ => None,
                };
                if digits > 0 {
                    let mut code = 0u32;
                    for _ in 0..digits {
                        let (_, digit) = chars.next()?;
                        let Some(digit) = digit.to_digit(16) else {
                            return Some((Err(format!("\\{escape} needs {digits} hex digits")), ""));
                        };
                        code = code.wrapping_mul(16).wrapping_add(digit);
                    }
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                } else if let Some(plain) = plain {
                    out.push(plain);
                } else {
                    return Some((Err(format!("\\{escape} is no escape; write \\\\ for a backslash")), ""));
                }
            }
            c => out.push(c),
        }
    }
    None
}

/// A value or an error message, with the rest of the text; `None` if the end of the value is missing.
type Flow = Option<(std::result::Result<Value, String>, String)>;

/// Parses a flow collection, in brackets or braces, at the beginning of `text`. `None` if its end is missing.
pub fn flow(text: &str, depth: usize) -> Flow {
    let mut reader = FlowReader { rest: text };
    let value = reader.value(depth);
    match value {
        Ok(Some(value)) => Some((Ok(value), reader.rest.to_owned())),
        Ok(None) => None,
        Err(message) => Some((Err(message), String::new())),
    }
}

struct FlowReader<'a> {
    rest: &'a str,
}

impl FlowReader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip();
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parses a value; `Ok(None)` if the text ends before the value does.
    fn value(&mut self, depth: usize) -> std::result::Result<Option<Value>, String> {
        if depth > DEPTH_MAX {
            return Err("nested too deeply".into());
        }
        if self.eat('[') {
            let mut list = Vec::new();
            loop {
                if self.eat(']') {
                    return Ok(Some(list.into()));
                }
                let Some(value) = self.value(depth + 1)? else {
                    return Ok(None);
                };
                list.push(value);
                if !self.eat(',') {
                    self.skip();
                    if self.rest.is_empty() {
                        return Ok(None);
                    }
                    if !self.rest.starts_with(']') {
                        return Err("expected , or ] in a list".into());
                    }
                }
            }
        }
        if self.eat('{') {
            let mut map = Map::new();
            loop {
                if self.eat('}') {
                    return Ok(Some(map.into()));
                }
                let Some(key) = self.value(depth + 1)? else {
                    return Ok(None);
                };
                let key = match key {
                    Value::String(key) => key,
                    key => key.to_string(),
                };
                let value = if self.eat(':') { self.value(depth + 1)? } else { Some(Value::Null) };
                let Some(value) = value else {
                    return Ok(None);
                };
                map.insert(key, value);
                if !self.eat(',') {
                    self.skip();
                    if self.rest.is_empty() {
                        return Ok(None);
                    }
                    if !self.rest.starts_with('}') {
                        return Err("expected , or } in a mapping".into());
                    }
                }
            }
        }
        self.skip();
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        if matches!(first, '"' | '\'') {
            let Some((value, rest)) = quoted(self.rest) else {
                return Ok(None);
            };
            self.rest = rest;
            return value.map(|text| Some(text.into()));
        }
        if matches!(first, '&' | '*' | '!') {
            return Err("anchors, aliases and tags are not supported".into());
        }
        let mut end = self.rest.len();
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, c)| *c);
            let ends_key = c == ':' && next.is_none_or(|c| c.is_whitespace() || ",[]{}".contains(c));
            if ends_key || ",[]{}".contains(c) {
                end = at;
                break;
            }
        }
        let (text, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        if rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(scalar(text.trim())))
    }
}
