//! The part of YAML that the heads of Markdown files are written in.
//!
//! Mappings and lists by indentation, lists and mappings in brackets, plain and quoted texts, also over
//! several lines, block texts (`|`, `>`), comments. Anchors, aliases, tags, complex keys and several
//! documents are refused by name, and so is what is no YAML.

use serde_json::{Map, Number, Value};
use std::fmt;

/// Deeper nesting is no head of a file.
const DEPTH_MAX: usize = 16;

/// What cannot be read, and where: lines count from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct YamlError {
    pub line: usize,
    pub message: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

type Result<T> = std::result::Result<T, YamlError>;

/// Reads a document. An empty one is `null`.
pub fn parse(text: &str) -> Result<Value> {
    let lines = text.lines().enumerate();
    let lines = lines
        .map(|(number, text)| Line::new(number + 1, text))
        .collect();
    let mut reader = Reader { lines, at: 0 };
    let value = match reader.peek()? {
        Some(line) => {
            let indent = line.indent;
            reader.block(indent, 0)?
        }
        None => Value::Null,
    };
    match reader.peek()? {
        Some(line) => Err(line.fail("this does not belong to what stands above it")),
        None => Ok(value),
    }
}

#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    indent: usize,
    /// Without the indentation.
    text: &'a str,
}

impl<'a> Line<'a> {
    fn new(number: usize, text: &'a str) -> Self {
        let text = text.trim_end();
        let rest = text.trim_start_matches(' ');
        Self {
            number,
            indent: text.len() - rest.len(),
            text: rest,
        }
    }

    fn fail(&self, message: impl Into<String>) -> YamlError {
        YamlError {
            line: self.number,
            message: message.into(),
        }
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    /// What stands after the dash of a list's entry, and how far in.
    fn entry(&self) -> Option<Line<'a>> {
        let rest = self.text.strip_prefix('-')?;
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return None;
        }
        let inner = rest.trim_start();
        Some(Line {
            number: self.number,
            indent: self.indent + self.text.len() - inner.len(),
            text: inner,
        })
    }

    /// The key that the line begins with, and what follows its colon.
    fn pair(&self) -> Result<Option<(String, Line<'a>)>> {
        let (key, rest) = match self.text.chars().next() {
            Some('"' | '\'') => {
                let Some((key, rest)) = quoted(self.text) else {
                    return Ok(None);
                };
                let Some(rest) = rest.trim_start().strip_prefix(':') else {
                    return Ok(None);
                };
                (key.map_err(|message| self.fail(message))?, rest)
            }
            Some('[' | '{') => return Ok(None),
            _ => match colon(self.text) {
                Some((key, rest)) => (key.trim_end().to_owned(), rest),
                None => return Ok(None),
            },
        };
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return Ok(None);
        }
        let value = Line {
            text: rest.trim_start(),
            ..*self
        };
        Ok(Some((key, value)))
    }
}

/// Cuts at the first colon that ends a key.
fn colon(text: &str) -> Option<(&str, &str)> {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '#' && before.is_whitespace() {
            return None;
        }
        if c == ':' {
            let (key, rest) = (text.get(..at)?, text.get(at + 1..)?);
            if rest.is_empty() || rest.starts_with([' ', '\t']) {
                return Some((key, rest));
            }
        }
        before = c;
    }
    None
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next line with something on it.
    fn peek(&mut self) -> Result<Option<Line<'a>>> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() {
                if line.text.starts_with('\t') {
                    return Err(line.fail("tabs cannot indent"));
                }
                if line.indent == 0 && (line.text == "---" || line.text == "...") {
                    return Err(line.fail("several documents are not supported"));
                }
                return Ok(Some(*line));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// A mapping, a list or one value, whose lines begin at `indent`.
    fn block(&mut self, indent: usize, depth: usize) -> Result<Value> {
        let Some(line) = self.peek()? else {
            return Ok(Value::Null);
        };
        if depth > DEPTH_MAX {
            return Err(line.fail("nested too deeply"));
        }
        if line.entry().is_some() {
            self.list(indent, depth)
        } else if line.pair()?.is_some() {
            self.mapping(indent, depth)
        } else {
            refuse(&line)?;
            self.at += 1;
            self.inline(line, indent.wrapping_sub(1), depth)
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value> {
        let mut map = Map::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return Err(line.fail("indented further than the key above it"));
            }
            refuse(&line)?;
            let Some((key, rest)) = line.pair()?.filter(|_| line.entry().is_none()) else {
                return Err(line.fail("expected a key and a colon"));
            };
            self.at += 1;
            let value = self.after_key(rest, indent, depth)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(line.fail(format!("the key {key} is there twice")));
            }
        }
        Ok(map.into())
    }

    /// The value of a key at `indent`, on its line or below it.
    fn after_key(&mut self, rest: Line<'a>, indent: usize, depth: usize) -> Result<Value> {
        if !rest.is_blank() {
            refuse(&rest)?;
            if !rest.text.starts_with(['"', '\'', '[', '{', '|', '>']) && colon(rest.text).is_some()
            {
                return Err(
                    rest.fail("a colon and a space inside a value: put the value in quotes")
                );
            }
            return self.inline(rest, indent, depth);
        }
        match self.peek()? {
            Some(line) if line.indent > indent => self.block(line.indent, depth + 1),
            // A list may stand right below its key.
            Some(line) if line.indent == indent && line.entry().is_some() => {
                self.list(indent, depth + 1)
            }
            _ => Ok(Value::Null),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Value> {
        let mut list = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent >= indent) {
            let Some(entry) = line.entry().filter(|_| line.indent == indent) else {
                // The next key of the mapping that the list stands in.
                if line.indent == indent {
                    break;
                }
                return Err(line.fail("expected an entry of the list"));
            };
            if depth > DEPTH_MAX {
                return Err(line.fail("nested too deeply"));
            }
            if entry.is_blank() {
                self.at += 1;
                list.push(match self.peek()? {
                    Some(line) if line.indent > indent => self.block(line.indent, depth + 1)?,
                    _ => Value::Null,
                });
            } else if entry.entry().is_some() || entry.pair()?.is_some() {
                // The entry's first line, as if it stood alone.
                if let Some(line) = self.lines.get_mut(self.at) {
                    *line = entry;
                }
                list.push(self.block(entry.indent, depth + 1)?);
            } else {
                refuse(&entry)?;
                self.at += 1;
                list.push(self.inline(entry, indent, depth)?);
            }
        }
        Ok(list.into())
    }

    /// A value that begins on a line; lines that are indented further than `indent` may go on with it.
    fn inline(&mut self, first: Line<'a>, indent: usize, depth: usize) -> Result<Value> {
        match first.text.chars().next() {
            Some('|' | '>') => self.block_text(first, indent),
            Some(open @ ('"' | '\'' | '[' | '{')) => {
                let mut text = first.text.to_owned();
                loop {
                    let done = match open {
                        '"' | '\'' => quoted(&text)
                            .map(|(value, rest)| (value.map(Value::from), rest.to_owned())),
                        _ => flow(&text, depth),
                    };
                    if let Some((value, rest)) = done {
                        let rest = rest.trim_start();
                        if !rest.is_empty() && !rest.starts_with('#') {
                            return Err(first.fail(format!("nothing may follow here: {rest}")));
                        }
                        return value.map_err(|message| first.fail(message));
                    }
                    let Some(more) = self.further(indent) else {
                        return Err(first.fail(format!("no end of what begins with {open}")));
                    };
                    text.push(if more.is_empty() { '\n' } else { ' ' });
                    text.push_str(more);
                }
            }
            _ => {
                let mut text = uncomment(first.text).to_owned();
                let mut is_plain = true;
                while let Some(more) = self.further(indent) {
                    is_plain = false;
                    let more = uncomment(more);
                    if colon(more).is_some() {
                        return Err(first
                            .fail("a colon and a space inside a value: put the value in quotes"));
                    }
                    let glue = match (more.is_empty(), text.ends_with('\n')) {
                        (true, _) => "\n",
                        (false, true) => "",
                        (false, false) => " ",
                    };
                    text.push_str(glue);
                    text.push_str(more);
                }
                let text = text.trim_end();
                Ok(if is_plain { scalar(text) } else { text.into() })
            }
        }
    }

    /// The next line, if it goes on with the value above. A blank one does when another follows.
    fn further(&mut self, indent: usize) -> Option<&'a str> {
        let rest = self.lines.get(self.at..)?;
        let next = rest.iter().find(|line| !line.text.is_empty())?;
        let goes_on = indent == usize::MAX || next.indent > indent;
        if !goes_on || next.text.starts_with('#') {
            return None;
        }
        let text = rest.first()?.text;
        self.at += 1;
        Some(text)
    }

    /// `|` keeps line ends, `>` joins lines.
    fn block_text(&mut self, first: Line<'a>, indent: usize) -> Result<Value> {
        let mut marks = uncomment(first.text).chars();
        let joins = marks.next() == Some('>');
        let (mut chomp, mut own) = (' ', None);
        for mark in marks {
            match mark {
                '+' | '-' => chomp = mark,
                '1'..='9' => own = mark.to_digit(10),
                _ => {
                    return Err(
                        first.fail(format!("a block text cannot begin with {}", first.text))
                    );
                }
            }
        }
        let parent = if indent == usize::MAX { 0 } else { indent };
        let mut lines: Vec<(usize, &str)> = Vec::new();
        let floor = indent.wrapping_add(1);
        let mut margin = own.map(|own| parent + own as usize);
        while let Some(line) = self.lines.get(self.at) {
            if !line.text.is_empty() {
                let least = *margin.get_or_insert(line.indent.max(floor));
                if line.indent < least {
                    break;
                }
            }
            lines.push((line.indent, line.text));
            self.at += 1;
        }
        let margin = margin.unwrap_or(0);
        let trailing = lines
            .iter()
            .rev()
            .take_while(|(_, text)| text.is_empty())
            .count();
        lines.truncate(lines.len().saturating_sub(trailing));
        let mut out = String::new();
        let mut blanks = 0;
        // Whether the line before was indented further than the text; none before the first.
        let mut before: Option<bool> = None;
        for (indent, text) in lines {
            if text.is_empty() {
                blanks += 1;
                continue;
            }
            let is_deeper = indent > margin;
            let ends = match before {
                None => blanks,
                Some(false) if joins && !is_deeper => blanks,
                Some(_) => blanks + 1,
            };
            out.extend(std::iter::repeat_n('\n', ends));
            if ends == 0 && before.is_some() {
                out.push(' ');
            }
            out.extend(std::iter::repeat_n(' ', indent.saturating_sub(margin)));
            out.push_str(text);
            before = Some(is_deeper);
            blanks = 0;
        }
        match chomp {
            '-' => {}
            '+' => out.extend(std::iter::repeat_n('\n', trailing + 1)),
            _ if out.is_empty() => {}
            _ => out.push('\n'),
        }
        Ok(out.into())
    }
}

/// Names what the subset leaves out.
fn refuse(line: &Line<'_>) -> Result<()> {
    let what = match line.text.chars().next() {
        Some('&') => "anchors (&) are not supported",
        Some('*') => "aliases (*) are not supported; put the value in quotes",
        Some('!') => "tags (!) are not supported; put the value in quotes",
        Some('%') => "directives (%) are not supported; put the value in quotes",
        Some('@' | '`') => "a value cannot begin with @ or `: put it in quotes",
        Some('?') if line.text.len() == 1 || line.text.starts_with("? ") => {
            "complex keys (?) are not supported"
        }
        _ => return Ok(()),
    };
    Err(line.fail(what))
}

/// Without a comment at the end.
fn uncomment(text: &str) -> &str {
    let cut = text
        .char_indices()
        .zip(std::iter::once(' ').chain(text.chars()))
        .find(|((_, c), before)| *c == '#' && before.is_whitespace())
        .map(|((at, _), _)| at);
    text.get(..cut.unwrap_or(text.len()))
        .unwrap_or(text)
        .trim_end()
}

/// A plain value of one line.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if is_number && let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    let number = is_number.then(|| text.parse::<f64>().ok()).flatten();
    match number.and_then(Number::from_f64) {
        Some(number) => number.into(),
        None => text.into(),
    }
}

/// A quoted text at the beginning of `text`, and what follows it. `None` while its end is missing.
fn quoted(text: &str) -> Option<(std::result::Result<String, String>, &str)> {
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
                            return Some((
                                Err(format!("\\{escape} needs {digits} hex digits")),
                                "",
                            ));
                        };
                        code = code.wrapping_mul(16).wrapping_add(digit);
                    }
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                } else if let Some(plain) = plain {
                    out.push(plain);
                } else {
                    return Some((
                        Err(format!(
                            "\\{escape} is no escape; write \\\\ for a backslash"
                        )),
                        "",
                    ));
                }
            }
            c => out.push(c),
        }
    }
    None
}

type Flow = Option<(std::result::Result<Value, String>, String)>;

/// A list or mapping in brackets at the beginning of `text`. `None` while its end is missing.
fn flow(text: &str, depth: usize) -> Flow {
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

    /// `Ok(None)`: the text ends before the value does.
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
                let value = if self.eat(':') {
                    self.value(depth + 1)?
                } else {
                    Some(Value::Null)
                };
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
            let ends_key =
                c == ':' && next.is_none_or(|c| c.is_whitespace() || ",[]{}".contains(c));
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

#[cfg(test)]
mod tests {
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
        check(
            "a: b # c\nd: e#f\ng:\nh: 'i: # j'",
            json!({"a":"b","d":"e#f","g":null,"h":"i: # j"}),
        );
        check(
            "a: true\nb: False\nc: ~\nd: 12\ne: -1.5\nf: 1.2.3\ng: 'true'\nh: 2024-01-02",
            json!({"a":true,"b":false,"c":null,"d":12,"e":-1.5,"f":"1.2.3","g":"true","h":"2024-01-02"}),
        );
        check(
            "\"a b\": 1\nurl: http://x/y:z\ntime: 10:30",
            json!({"a b":1,"url":"http://x/y:z","time":"10:30"}),
        );
        check(
            "a: \"x\\n\\\"y\\u00e9\"\nb: 'it''s'",
            json!({"a":"x\n\"yé","b":"it's"}),
        );
        check("a: b\r\nc: d\r\n", json!({"a":"b","c":"d"}));
        check("just text", json!("just text"));
        check("hint: <file> [more]", json!({"hint":"<file> [more]"}));
        check("a: - b", json!({"a":"- b"}));
    }

    #[test]
    fn nesting() {
        check(
            "m:\n  a: 1\n  b:\n    c: 2\nd: 3",
            json!({"m":{"a":1,"b":{"c":2}},"d":3}),
        );
        check(
            "l:\n  - a\n  - b: 1\n    c: 2\n  - - x\n    - y\n  -\n    z: 1",
            json!({"l":["a",{"b":1,"c":2},["x","y"],{"z":1}]}),
        );
        check("l:\n- a\n- b\nk: v", json!({"l":["a","b"],"k":"v"}));
        check(
            "l: [a, 'b, c', 1, [d], {e: f}]",
            json!({"l":["a","b, c",1,["d"],{"e":"f"}]}),
        );
        check("l: [a,\n  b,\n  c ] # all", json!({"l":["a","b","c"]}));
        check(
            "m: {a: 1, \"b\": [x], c}",
            json!({"m":{"a":1,"b":["x"],"c":null}}),
        );
        check("l: []\nm: {}", json!({"l":[],"m":{}}));
    }

    #[test]
    fn texts_of_several_lines() {
        check(
            "a: one\n  two\n\n  three\nb: c",
            json!({"a":"one two\nthree","b":"c"}),
        );
        check("a:\n  one\n  two\nb: c", json!({"a":"one two","b":"c"}));
        check("a: \"one\n  two\"\nb: c", json!({"a":"one two","b":"c"}));
        check(
            "a: |\n  one\n    two\n\n  three\nb: c",
            json!({"a":"one\n  two\n\nthree\n","b":"c"}),
        );
        check(
            "a: >\n  one\n  two\n\n  three\n    four\n  five\nb: c",
            json!({"a":"one two\nthree\n  four\nfive\n","b":"c"}),
        );
        check(
            "a: >-\n  one\n  two\n\nb: c",
            json!({"a":"one two","b":"c"}),
        );
        check(
            "a: |-\n  # no comment\n  k: v\n",
            json!({"a":"# no comment\nk: v"}),
        );
        check("a: |+\n  one\n\nb: c", json!({"a":"one\n\n","b":"c"}));
        check("a: |2\n    one\n  two", json!({"a":"  one\ntwo\n"}));
        check("a: |\nb: c", json!({"a":"","b":"c"}));
    }

    #[test]
    fn what_is_not_supported_has_a_name() {
        refused("a: &x b", "line 1: anchors (&) are not supported");
        refused(
            "a: 1\nb: *x",
            "line 2: aliases (*) are not supported; put the value in quotes",
        );
        refused(
            "a: !!str b",
            "line 1: tags (!) are not supported; put the value in quotes",
        );
        refused("? a\n: b", "line 1: complex keys (?) are not supported");
        refused(
            "a: 1\n---\nb: 2",
            "line 2: several documents are not supported",
        );
        refused(
            "a: b: c",
            "line 1: a colon and a space inside a value: put the value in quotes",
        );
        refused(
            "a: b\n  c: d",
            "line 1: a colon and a space inside a value: put the value in quotes",
        );
        refused(
            "a: @b",
            "line 1: a value cannot begin with @ or `: put it in quotes",
        );
        refused("a: 1\na: 2", "line 2: the key a is there twice");
        refused("a: 1\n\tb: 2", "line 2: tabs cannot indent");
        refused("a: \"b", "line 1: no end of what begins with \"");
        refused("a: [b", "line 1: no end of what begins with [");
        refused("a: 'b' c", "line 1: nothing may follow here: c");
        refused(
            "a: \"\\q\"",
            "line 1: \\q is no escape; write \\\\ for a backslash",
        );
        refused("a: 1\nb", "line 2: expected a key and a colon");
        refused(
            "- a\nb: c",
            "line 2: this does not belong to what stands above it",
        );
        refused(
            "a:\n    b: 1\n  c: 2",
            "line 3: indented further than the key above it",
        );
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
}
