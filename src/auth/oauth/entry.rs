//! The auth.json entry of a sign-in, and the errors of a sign-in.

use crate::llm::event::{ErrorKind, StreamError};
use serde_json::{Map, Value};

/// An entry of auth.json.
pub type Entry = Map<String, Value>;

pub(super) fn cancelled() -> StreamError {
    StreamError::new(ErrorKind::Aborted, "Login cancelled")
}

pub(super) fn failed(text: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Auth, text)
}

pub(super) fn text<'e>(entry: &'e Entry, name: &str) -> Option<&'e str> {
    let text = entry.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

pub(super) fn refresh_token(entry: &Entry) -> Result<&str, StreamError> {
    text(entry, "refresh").ok_or_else(|| failed("there is no \"refresh\" token"))
}
