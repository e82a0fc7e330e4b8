//! The arguments of a tool call, and how their schema is declared.

use crate::agent::tool::{Invocation, ToolError};
use serde_json::{Map, Value, json};

/// Asks for strict adherence to the schema where a provider can do that.
pub fn strict_if_possible() -> Value {
    json!({"type": "json_schema", "strict": "prefer"})
}

/// Gives an argument that came under another name its own, unless that is taken.
pub fn rename(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    if !arguments.contains_key(to)
        && let Some(value) = arguments.shift_remove(from)
    {
        arguments.insert(to.to_owned(), value);
    }
}

/// A text that the schema requires.
pub fn text<'a>(call: &Invocation<'a>, name: &str) -> Result<&'a str, ToolError> {
    let value = call.arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| ToolError::new(format!("The argument \"{name}\" must be a text.")))
}

/// A count or a line number that may be missing. Fractions are dropped, and nothing is below zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
pub fn number(call: &Invocation<'_>, name: &str) -> Option<u64> {
    let value = call.arguments.get(name)?.as_f64()?;
    Some(value as u64)
}
