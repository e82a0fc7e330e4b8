//! Parses a tool call that a model wrote as text.
//!
//! | first mark | form |
//! |---|---|
//! | `<tool_call>` | `{"name": …, "arguments": {…}}`, or the next form, then `</tool_call>` |
//! | `<function=` | `NAME>`, then any number of `<parameter=KEY>VALUE</parameter>`, then `</function>` |
//! | `[TOOL_CALLS]` | a list of such objects, or `NAME[ARGS]{…}` |
//!
//! Text in any other form is returned unchanged.

use super::inline::Tools;
use crate::wire::balance::Balance;
use memchr::memmem;
use serde_json::{Map, Value};

const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const ARGS: &str = "[ARGS]";

/// Bytes that a capture takes first of a text; doubled each time, so that many calls in one text cost no more
/// than the text is long.
const FIRST_BYTES: usize = 256;

/// Maximum length of a name or key, in bytes.
const NAME_LIMIT: usize = 256;

pub enum Captured {
    Calls(Vec<(String, Map<String, Value>)>),
    Text(String),
}

/// The text after the end of a capture.
pub enum Left {
    /// The rest of the last piece, from this offset.
    OfMore(usize),
    /// This text, a part of which arrived with earlier pieces.
    Earlier(String),
}

pub struct Capture {
    /// All text from the opening tag on.
    text: String,
    /// Length of the part of `text` that was parsed.
    at: usize,
    form: Form,
}

enum Form {
    /// After `<tool_call>`: JSON or a function.
    Tagged,
    /// After `[TOOL_CALLS]`: JSON or a name.
    Listed,
    Json {
        start: usize,
        balance: Balance,
        /// Name of the tool, if it came before the arguments.
        name: Option<String>,
    },
    Function {
        name: String,
        arguments: Map<String, Value>,
        /// The key whose value is being read, and the start of the value.
        key: Option<(String, usize)>,
    },
    /// The name of a function up to `>`.
    FunctionName,
}

enum Step {
    Again,
    More,
    Done(Captured),
    /// Not a call.
    Text,
}

impl Capture {
    pub fn new(mark: &str) -> Self {
        Self {
            text: mark.to_owned(),
            at: mark.len(),
            form: match mark {
                FUNCTION => Form::FunctionName,
                "[TOOL_CALLS]" => Form::Listed,
                _ => Form::Tagged,
            },
        }
    }

    /// Adds text. At the end of the call returns the call or the text, and what follows it.
    pub fn feed(&mut self, more: &str, tools: &Tools) -> Option<(Captured, Left)> {
        let (mut rest, mut bytes) = (more, FIRST_BYTES);
        while !rest.is_empty() {
            let end = (bytes..rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            if let Some((captured, left)) = self.feed_piece(piece, tools) {
                let left = match left {
                    Left::OfMore(used) => Left::OfMore(more.len() - rest.len() + used),
                    Left::Earlier(text) => Left::Earlier(text + after),
                };
                return Some((captured, left));
            }
            rest = after;
            bytes *= 2;
        }
        None
    }

    fn feed_piece(&mut self, more: &str, tools: &Tools) -> Option<(Captured, Left)> {
        let before = self.text.len();
        self.text.push_str(more);
        let captured = loop {
            match self.step(tools) {
                Step::Again => {}
                Step::More => return None,
                Step::Done(captured) => break Some(captured),
                Step::Text => break None,
            }
        };
        let left = match self.at.checked_sub(before) {
            Some(used) => Left::OfMore(used),
            None => Left::Earlier(self.text.split_off(self.at)),
        };
        self.text.truncate(self.at);
        let text = || Captured::Text(std::mem::take(&mut self.text));
        Some((captured.unwrap_or_else(text), left))
    }

    /// The captured text, at the end of the answer: an incomplete call is text.
    pub fn into_text(self) -> String {
        self.text
    }

    fn step(&mut self, tools: &Tools) -> Step {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match &mut self.form {
            Form::Tagged | Form::Listed => self.choose(),
            Form::Json { start, balance, name } => {
                let Some(length) = balance.feed(rest) else {
                    self.at = self.text.len();
                    return Step::More;
                };
                self.at += length;
                let json = self.text.get(*start..self.at).unwrap_or_default();
                match calls(json, name.take(), tools) {
                    Some(calls) => Step::Done(Captured::Calls(calls)),
                    None => Step::Text,
                }
            }
            Form::FunctionName => match take_name(rest, ">") {
                Name::Whole(name, length) if tools.contains_key(name) => {
                    let name = name.to_owned();
                    self.at += length;
                    self.form = Form::Function { name, arguments: Map::new(), key: None };
                    Step::Again
                }
                Name::Partial => Step::More,
                _ => Step::Text,
            },
            Form::Function { .. } => self.step_function(tools),
        }
    }

    /// Chooses the form by the text after the opening tag.
    fn choose(&mut self) -> Step {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let start = self.text.len() - trimmed.len();
        let listed = matches!(self.form, Form::Listed);
        if trimmed.is_empty() {
            return Step::More;
        }
        if trimmed.starts_with(['{', '[']) {
            self.at = start;
            self.form = Form::Json { start, balance: Balance::default(), name: None };
            return Step::Again;
        }
        if listed {
            return match take_name(trimmed, ARGS) {
                Name::Whole(name, length) => {
                    let name = name.to_owned();
                    self.at = start + length;
                    self.form = Form::Json { start: self.at, balance: Balance::default(), name: Some(name) };
                    Step::Again
                }
                Name::Partial => Step::More,
                Name::None => Step::Text,
            };
        }
        if trimmed.starts_with(FUNCTION) {
            self.at = start + FUNCTION.len();
            self.form = Form::FunctionName;
            return Step::Again;
        }
        if FUNCTION.starts_with(trimmed) { Step::More } else { Step::Text }
    }

    fn step_function(&mut self, tools: &Tools) -> Step {
        let Form::Function { name, arguments, key } = &mut self.form else {
            return Step::Text;
        };
        if let Some((parameter, start)) = key {
            let bytes = self.text.as_bytes();
            let unseen = bytes.get(self.at..).unwrap_or_default();
            let Some(found) = memmem::find(unseen, PARAMETER_END.as_bytes()) else {
                // The end tag may be incomplete: the next search begins before it.
                self.at = (bytes.len().saturating_sub(PARAMETER_END.len())).max(*start);
                return Step::More;
            };
            let end = self.at + found;
            let text = self.text.get(*start..end).unwrap_or_default();
            let schema = tools.get(name.as_str());
            let value = typed(schema, parameter, text);
            arguments.insert(std::mem::take(parameter), value);
            *key = None;
            self.at = end + PARAMETER_END.len();
            return Step::Again;
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        let start = self.text.len() - trimmed.len();
        if let Some(after) = trimmed.strip_prefix(PARAMETER) {
            return match take_name(after, ">") {
                Name::Whole(parameter, length) => {
                    let at = start + PARAMETER.len() + length;
                    *key = Some((parameter.to_owned(), at));
                    self.at = at;
                    Step::Again
                }
                Name::Partial => Step::More,
                Name::None => Step::Text,
            };
        }
        if trimmed.starts_with(FUNCTION_END) {
            self.at = start + FUNCTION_END.len();
            let call = (std::mem::take(name), std::mem::take(arguments));
            return Step::Done(Captured::Calls(vec![call]));
        }
        if PARAMETER.starts_with(trimmed) || FUNCTION_END.starts_with(trimmed) {
            Step::More
        } else {
            Step::Text
        }
    }
}

enum Name<'a> {
    /// The name, and its length with the end mark.
    Whole(&'a str, usize),
    Partial,
    None,
}

/// Reads a name at the start of `text`, up to `end`.
fn take_name<'a>(text: &'a str, end: &str) -> Name<'a> {
    let length = text.find(|c: char| !(c.is_alphanumeric() || "_-.:/ ".contains(c)));
    let (name, rest) = text.split_at(length.unwrap_or(text.len()));
    if name.len() > NAME_LIMIT || (name.trim().is_empty() && !rest.is_empty()) {
        Name::None
    } else if rest.starts_with(end) {
        Name::Whole(name.trim(), name.len() + end.len())
    } else if end.starts_with(rest) {
        Name::Partial
    } else {
        Name::None
    }
}

/// The calls in `json`: an object, a list of objects, or the arguments of `name`. `None` if any of them is
/// not a call of a known tool.
fn calls(json: &str, name: Option<String>, tools: &Tools) -> Option<Vec<(String, Map<String, Value>)>> {
    let value: Value = serde_json::from_str(json).ok()?;
    let known = |name: &str| tools.contains_key(name);
    if let Some(name) = name {
        return match value {
            Value::Object(arguments) if known(&name) => Some(vec![(name, arguments)]),
            _ => None,
        };
    }
    let list = match value {
        Value::Array(list) if !list.is_empty() => list,
        Value::Object(_) => vec![value],
        _ => return None,
    };
    let calls = list.into_iter().map(|mut call| {
        let call = call.as_object_mut()?;
        let arguments = ["arguments", "parameters"].into_iter();
        let arguments = arguments.filter_map(|field| call.remove(field)).next();
        let arguments = match arguments {
            Some(Value::Object(arguments)) => arguments,
            Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
            None => Map::new(),
            Some(_) => return None,
        };
        let name = call.get("name")?.as_str().filter(|name| known(name))?;
        Some((name.to_owned(), arguments))
    });
    calls.collect()
}

/// Converts the text of a parameter: a string if the schema says so, otherwise JSON if it is valid.
fn typed(schema: Option<&Value>, key: &str, text: &str) -> Value {
    let text = text.strip_prefix('\n').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let kind = schema.map(|schema| &schema["properties"][key]["type"]);
    if kind.is_some_and(|kind| kind == "string") {
        return Value::from(text);
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
