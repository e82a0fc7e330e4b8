//! Arguments of tool calls, and helpers for their schema.

use crate::agent::tool::{Invocation, ToolError};
use crate::base::json::json;
use serde_json::{Map, Value};

/// Schema option that requests strict adherence from providers that support it.
pub fn strict_if_possible() -> Value {
    json!({"type": "json_schema", "strict": "prefer"})
}

/// Renames an argument, unless the target name is taken.
pub fn rename(arguments: &mut Map<String, Value>, from: &str, to: &str) {
    if !arguments.contains_key(to)
        && let Some(value) = arguments.shift_remove(from)
    {
        arguments.insert(to.to_owned(), value);
    }
}

/// A required text argument.
pub fn text<'a>(call: &Invocation<'a>, name: &str) -> Result<&'a str, ToolError> {
    let value = call.arguments.get(name).and_then(Value::as_str);
    value.ok_or_else(|| ToolError::new(format!("The argument \"{name}\" must be a text.")))
}

/// An optional count or line number. Fractions are dropped, and negative numbers become zero.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
pub fn number(call: &Invocation<'_>, name: &str) -> Option<u64> {
    let value = call.arguments.get(name)?.as_f64()?;
    Some(value as u64)
}
