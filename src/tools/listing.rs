//! The result of `grep`, `find` and `ls`: lines up to the byte limit, and notices in brackets.

use super::argument;
use super::truncate::{self, Limits, MAX_BYTES, Totals};
use crate::agent::call::Arguments;
use crate::agent::tool::{Invocation, ToolOutput};
use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub struct Listing {
    /// The lines, up to a little more than fits.
    text: String,
    totals: Totals,
    limit_notice: Option<String>,
    notices: Vec<String>,
    details: Map<String, Value>,
}

impl Listing {
    /// Adds one or more lines.
    pub fn push(&mut self, lines: &str) {
        if self.has_room() {
            if self.totals.lines > 0 {
                self.text.push('\n');
            }
            self.text.push_str(lines);
        }
        self.count(lines.split('\n').count(), lines.len());
    }

    /// Counts lines that no longer fit. `bytes` excludes the last newline.
    pub fn count(&mut self, lines: usize, bytes: usize) {
        let newline = usize::from(self.totals.lines > 0);
        self.totals.lines += lines as u64;
        self.totals.bytes += (newline + bytes) as u64;
    }

    pub fn has_room(&self) -> bool {
        self.text.len() <= MAX_BYTES
    }

    /// Adds the notice that the call's own limit was reached, and the field of `details` for it.
    pub fn limit_reached(&mut self, field: &str, limit: usize, notice: String) {
        self.details.insert(field.to_owned(), limit.into());
        self.limit_notice = Some(notice);
    }

    pub fn notice(&mut self, notice: String) {
        self.notices.push(notice);
    }

    pub fn notice_first(&mut self, notice: String) {
        self.notices.insert(0, notice);
    }

    pub fn detail(&mut self, field: &str, value: impl Into<Value>) {
        self.details.insert(field.to_owned(), value.into());
    }

    /// The result; `nothing` is its text if there are no lines.
    pub fn finish(mut self, nothing: &str) -> ToolOutput {
        let mut notices: Vec<String> = self.limit_notice.into_iter().collect();
        let mut text = if self.totals.lines == 0 {
            nothing.to_owned()
        } else {
            let cut = truncate::head_of(&self.text, self.totals, Limits::BYTES_ONLY);
            if cut.truncated {
                notices.push(format!("{} limit reached", truncate::size(MAX_BYTES as u64)));
                let details = serde_json::to_value(&cut).unwrap_or_default();
                self.details.insert("truncation".to_owned(), details);
            }
            cut.content
        };
        notices.append(&mut self.notices);
        if !notices.is_empty() {
            text.push_str(&format!("\n\n[{}]", notices.join(". ")));
        }
        let output = ToolOutput::text(text);
        if self.details.is_empty() {
            return output;
        }
        output.with_details(Value::Object(self.details))
    }
}

/// A limit argument, at least one.
pub fn limit(call: &Invocation<'_>, default: usize) -> usize {
    let limit = argument::number(call, "limit");
    limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(usize::MAX).max(1))
}

/// The limit argument of a call, for display.
pub fn limit_note(arguments: &Arguments) -> Vec<String> {
    let limit = arguments.get("limit").and_then(Value::as_u64);
    limit.map(|limit| format!(" (limit {limit})")).into_iter().collect()
}

/// The path argument of a call, otherwise the working folder.
pub fn given_path<'a>(call: &Invocation<'a>) -> &'a str {
    let path = call.arguments.get("path").and_then(Value::as_str);
    path.filter(|path| !path.is_empty()).unwrap_or(".")
}

/// A path for a model to read: invalid UTF-8 and line breaks are replaced.
pub fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).replace(char::is_control, "\u{fffd}")
}
