//! Parses the subset of YAML that heads of Markdown files use.
//!
//! The subset has mappings and lists by indentation or in brackets, plain and quoted scalars, also over
//! several lines, block scalars (`|`, `>`), and comments. Anchors, aliases, tags, complex keys and multiple
//! documents are errors that name the feature.

mod value;

use serde_json::{Map, Value};
use std::fmt;
use value::{flow, quoted, scalar, uncomment};

/// Maximum nesting that is parsed.
const DEPTH_MAX: usize = 16;

/// A syntax error, and its line, counted from 1.
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

/// Parses a document. An empty document is `null`.
pub fn parse(text: &str) -> Result<Value> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(number, text)| Line::new(number + 1, text)).collect();
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
    /// The line without its indentation.
    text: &'a str,
}

impl<'a> Line<'a> {
    fn new(number: usize, text: &'a str) -> Self {
        let text = text.trim_end();
        let rest = text.trim_start_matches(' ');
        Self { number, indent: text.len() - rest.len(), text: rest }
    }

    fn fail(&self, message: impl Into<String>) -> YamlError {
        YamlError { line: self.number, message: message.into() }
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    /// Returns the text after the dash of a list item, as a line with the indentation of that text.
    fn entry(&self) -> Option<Line<'a>> {
        let rest = self.text.strip_prefix('-')?;
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return None;
        }
        let inner = rest.trim_start();
        Some(Line { number: self.number, indent: self.indent + self.text.len() - inner.len(), text: inner })
    }

    /// Returns the key at the beginning of the line, and the text after its colon.
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
        let value = Line { text: rest.trim_start(), ..*self };
        Ok(Some((key, value)))
    }
}

/// Splits at the first colon that ends a key.
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
    /// Returns the next line that is not blank.
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

    /// Parses a mapping, a list or a scalar whose lines begin at `indent`.
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

    /// Parses the value of a key at `indent`, on the key's line or below it.
    fn after_key(&mut self, rest: Line<'a>, indent: usize, depth: usize) -> Result<Value> {
        if !rest.is_blank() {
            refuse(&rest)?;
            if !rest.text.starts_with(['"', '\'', '[', '{', '|', '>']) && colon(rest.text).is_some() {
                return Err(rest.fail("a colon and a space inside a value: put the value in quotes"));
            }
            return self.inline(rest, indent, depth);
        }
        match self.peek()? {
            Some(line) if line.indent > indent => self.block(line.indent, depth + 1),
            // A list may have the indentation of its key.
            Some(line) if line.indent == indent && line.entry().is_some() => self.list(indent, depth + 1),
            _ => Ok(Value::Null),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Value> {
        let mut list = Vec::new();
        while let Some(line) = self.peek()?.filter(|line| line.indent >= indent) {
            let Some(entry) = line.entry().filter(|_| line.indent == indent) else {
                // The next key of the mapping that contains the list.
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
                // The item's first line is parsed as the first line of a block.
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

    /// Parses a value that begins on a line. Lines with more than `indent` blanks may continue it.
    fn inline(&mut self, first: Line<'a>, indent: usize, depth: usize) -> Result<Value> {
        match first.text.chars().next() {
            Some('|' | '>') => self.block_text(first, indent),
            Some(open @ ('"' | '\'' | '[' | '{')) => {
                let mut text = first.text.to_owned();
                loop {
                    let done = match open {
                        '"' | '\'' => {
                            quoted(&text).map(|(value, rest)| (value.map(Value::from), rest.to_owned()))
                        }
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
                        return Err(first.fail("a colon and a space inside a value: put the value in quotes"));
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

    /// Returns the next line if it continues the value. A blank line continues the value if a later line
    /// does.
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

    /// Parses a block scalar. `|` keeps line breaks, `>` joins lines.
    fn block_text(&mut self, first: Line<'a>, indent: usize) -> Result<Value> {
        let mut marks = uncomment(first.text).chars();
        let joins = marks.next() == Some('>');
        let (mut chomp, mut own) = (' ', None);
        for mark in marks {
            match mark {
                '+' | '-' => chomp = mark,
                '1'..='9' => own = mark.to_digit(10),
                _ => {
                    return Err(first.fail(format!("a block text cannot begin with {}", first.text)));
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
        let trailing = lines.iter().rev().take_while(|(_, text)| text.is_empty()).count();
        lines.truncate(lines.len().saturating_sub(trailing));
        let mut out = String::new();
        let mut blanks = 0;
        // True if the previous line had more indentation than the text; `None` on the first line.
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

/// Returns an error for YAML features outside of the subset.
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

#[cfg(test)]
mod tests;
