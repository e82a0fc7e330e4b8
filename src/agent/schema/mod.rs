//! Checks a tool call's arguments against the tool's JSON schema, after converting small mistakes of models:
//! `"2"` to 2, `null` to an absent option.
//!
//! Keywords that tools do not use are not checked. Messages name the path and the rule, so that a model can
//! correct its call.
//!
//! [`check`] has the rules, [`bend`] the conversions, [`scope`] the references, and [`survey`] finds keywords
//! that are not checked.

mod bend;
mod check;
mod scope;
mod survey;

use crate::base::json::json;
use check::Faults;
use scope::Scope;
use serde_json::{Map, Value};

pub use survey::unsupported;

/// Returns converted arguments that satisfy the schema, or the error message for the model.
pub fn validate(
    tool: &str,
    schema: &Value,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut value = Value::Object(arguments.clone());
    let scope = Scope::new(schema, &value);
    bend::drop_optional_nulls(&mut value, schema, &scope);
    bend::coerce(&mut value, schema, &scope);
    let faults = all_faults(&value, schema, &scope);
    match value {
        Value::Object(map) if faults.is_empty() => Ok(map),
        _ => {
            let lines: Vec<String> = faults.iter().map(|fault| format!("  - {fault}")).collect();
            let received = serde_json::to_string_pretty(&shortened(arguments)).unwrap_or_default();
            Err(format!(
                "Validation failed for tool \"{tool}\":\n{}\n\nReceived arguments:\n{received}",
                lines.join("\n")
            ))
        }
    }
}

/// Checks `value` without converting it. Returns one string for each fault, with path and rule.
pub fn faults(value: &Value, schema: &Value) -> Vec<String> {
    all_faults(value, schema, &Scope::new(schema, value))
}

fn all_faults<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>) -> Vec<String> {
    let mut faults = Faults::all();
    check::check(value, schema, scope, "", &mut faults);
    faults.into_lines()
}

/// Maximum length of a string that an error message repeats, in characters.
const SHOWN_MAX: usize = 500;

fn shortened(arguments: &Map<String, Value>) -> Map<String, Value> {
    fn shorten(value: &Value) -> Value {
        match value {
            Value::String(text) => match text.char_indices().nth(SHOWN_MAX) {
                Some((at, _)) => {
                    json!(format!("{}... [{} bytes]", text.split_at(at).0, text.len()))
                }
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(shorten).collect(),
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shorten(value))).collect(),
            other => other.clone(),
        }
    }
    arguments.iter().map(|(key, value)| (key.clone(), shorten(value))).collect()
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let kind = &schema["type"];
    kind.as_str().into_iter().chain(kind.as_array().into_iter().flatten().filter_map(Value::as_str))
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests;
