//! Converts arguments that nearly satisfy a schema.

use super::check::is_valid;
use super::scope::Scope;
use super::{has_type, names, types};
use crate::base::json::json;
use serde_json::{Number, Value};

/// Removes optional properties that are `null` although their schema does not allow it.
pub fn drop_optional_nulls<'a>(value: &mut Value, schema: &'a Value, scope: &Scope<'a>) {
    if let Ok(Some(step)) = scope.follow(schema) {
        drop_optional_nulls(value, step.target(), scope);
    }
    match value {
        Value::Array(items) => {
            let _inside = scope.enter();
            for item in items {
                drop_optional_nulls(item, &schema["items"], scope);
            }
        }
        Value::Object(map) => {
            let Some(properties) = schema["properties"].as_object() else {
                return;
            };
            let _inside = scope.enter();
            for (key, property) in properties {
                let required = names(&schema["required"]).any(|name| name == key);
                match map.get_mut(key) {
                    Some(Value::Null) if !required && !is_valid(&Value::Null, property, scope) => {
                        map.shift_remove(key);
                    }
                    Some(inner) => drop_optional_nulls(inner, property, scope),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

pub fn coerce<'a>(value: &mut Value, schema: &'a Value, scope: &Scope<'a>) {
    if let Ok(Some(step)) = scope.follow(schema) {
        coerce(value, step.target(), scope);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        coerce(value, part, scope);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[union].as_array() {
            coerce_to_one_of(value, choices, scope);
        }
    }
    let types: Vec<&str> = types(schema).collect();
    if !types.iter().any(|kind| has_type(value, kind))
        && let Some(bent) = types.iter().find_map(|kind| bend(value, kind))
    {
        *value = bent;
    }
    let _inside = scope.enter();
    match value {
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            let rest = Some(&schema["additionalProperties"]).filter(|rest| rest.is_object());
            for (key, inner) in map {
                if let Some(property) = properties.and_then(|known| known.get(key)).or(rest) {
                    coerce(inner, property, scope);
                }
            }
        }
        Value::Array(items) => {
            let schemas = &schema["items"];
            for (index, item) in items.iter_mut().enumerate() {
                let rule = if schemas.is_array() { &schemas[index] } else { schemas };
                coerce(item, rule, scope);
            }
        }
        _ => {}
    }
}

fn coerce_to_one_of<'a>(value: &mut Value, choices: &'a [Value], scope: &Scope<'a>) {
    if choices.iter().any(|choice| is_valid(value, choice, scope)) {
        return;
    }
    for choice in choices {
        let mut bent = value.clone();
        coerce(&mut bent, choice, scope);
        if is_valid(&bent, choice, scope) {
            *value = bent;
            return;
        }
    }
}

/// Converts `value` to the JSON type `kind`. `None` if that would lose information.
fn bend(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("number" | "integer", Value::Null | Value::Bool(false)) => Some(json!(0)),
        ("number" | "integer", Value::Bool(true)) => Some(json!(1)),
        ("number" | "integer", Value::String(text)) => {
            let number = number(text.trim())?;
            (kind == "number" || has_type(&number, "integer")).then_some(number)
        }
        ("boolean", Value::Null) => Some(json!(false)),
        ("boolean", Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(json!(true)),
            "false" | "0" => Some(json!(false)),
            _ => None,
        },
        ("boolean", Value::Number(number)) => match number.as_f64() {
            Some(1.0) => Some(json!(true)),
            Some(0.0) => Some(json!(false)),
            _ => None,
        },
        ("string", Value::Null) => Some(json!("")),
        ("string", Value::Number(number)) => Some(json!(number.to_string())),
        ("string", Value::Bool(flag)) => Some(json!(flag.to_string())),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::String(text)) if matches!(text.as_str(), "" | "0" | "null") => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        ("object", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object),
        ("array", Value::String(text)) => {
            let list = serde_json::from_str(text).ok().filter(Value::is_array);
            list.or_else(|| Some(json!([text])))
        }
        // A single item becomes a list.
        ("array", Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Some(json!([value])),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(json!(whole));
    }
    // "inf" and "nan" are numbers to Rust, but not to JSON.
    text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
}
