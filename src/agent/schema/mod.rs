//! Checks a tool call's arguments against the tool's JSON schema, after bending what models get nearly
//! right: `"2"` for 2, `null` for an absent option.
//!
//! The subset of JSON Schema is what tool parameters use; a keyword that is not known here is not
//! checked. Messages name the place and the rule, so that a model can mend its call.
//!
//! The rules themselves are in [`check`], the bending in [`bend`], what a reference leads to in
//! [`scope`], and what this knows of JSON Schema in [`survey`].

mod bend;
mod check;
mod scope;
mod survey;

use check::Faults;
use scope::Scope;
use serde_json::{Map, Value, json};

pub use survey::unsupported;

/// The arguments as the tool may rely on them, or what the model is told.
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

/// What is wrong with `value`, which is taken as it is: place and rule, one string each.
pub fn faults(value: &Value, schema: &Value) -> Vec<String> {
    all_faults(value, schema, &Scope::new(schema, value))
}

fn all_faults<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>) -> Vec<String> {
    let mut faults = Faults::all();
    check::check(value, schema, scope, "", &mut faults);
    faults.into_lines()
}

/// Letters shown of one string: the model knows what it sent.
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
