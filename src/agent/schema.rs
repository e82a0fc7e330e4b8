//! Checks a tool call's arguments against the tool's JSON schema, after bending what models get nearly
//! right: `"2"` for 2, `null` for an absent option.
//!
//! The subset of JSON Schema is what tool parameters use; a keyword that is not known here is not
//! checked. Messages name the place and the rule, so that a model can mend its call.

use serde_json::{Map, Number, Value, json};

/// The arguments as the tool may rely on them, or what the model is told.
pub fn validate(
    tool: &str,
    schema: &Value,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut value = Value::Object(arguments.clone());
    drop_optional_nulls(&mut value, schema);
    coerce(&mut value, schema);
    let mut faults = Vec::new();
    check(&value, schema, "", &mut faults);
    match value {
        Value::Object(map) if faults.is_empty() => Ok(map),
        _ => {
            let lines: Vec<String> = faults
                .iter()
                .map(|(path, fault)| {
                    format!(
                        "  - {}: {fault}",
                        if path.is_empty() { "root" } else { path }
                    )
                })
                .collect();
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
    let mut faults = Vec::new();
    check(value, schema, "", &mut faults);
    let place = |path: String| match path.as_str() {
        "" => "root".to_owned(),
        _ => path,
    };
    faults
        .into_iter()
        .map(|(path, fault)| format!("{}: {fault}", place(path)))
        .collect()
}

/// Keywords that are checked, and those that are for people.
const KNOWN: &[&str] = &[
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "allOf",
    "anyOf",
    "oneOf",
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$id",
    "$comment",
];

const TYPES: &[&str] = &[
    "number", "integer", "boolean", "string", "null", "array", "object",
];

/// What in `schema` is not checked here: place and keyword, one string each.
pub fn unsupported(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    survey(schema, "", &mut found);
    found
}

fn survey(schema: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(map) = schema else {
        if !schema.is_boolean() {
            found.push(at(path, "is neither an object nor a boolean"));
        }
        return;
    };
    for (keyword, value) in map {
        let inner = join(path, keyword);
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    survey(property, &join(&inner, name), found);
                }
            }
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                for (index, part) in parts.iter().enumerate() {
                    survey(part, &join(&inner, &index.to_string()), found);
                }
            }
            ("items" | "additionalProperties", part) => survey(part, &inner, found),
            ("pattern", Value::String(pattern)) => {
                if let Err(error) = regex::Regex::new(pattern) {
                    found.push(at(&inner, &format!("cannot be used: {error}")));
                }
            }
            ("type", _) => {
                for kind in types(schema).filter(|kind| !TYPES.contains(kind)) {
                    found.push(at(path, &format!("the type \"{kind}\" is not known")));
                }
            }
            (keyword, _) if KNOWN.contains(&keyword) => {}
            (keyword, _) => found.push(at(path, &format!("\"{keyword}\" is not supported"))),
        }
    }
}

fn at(path: &str, text: &str) -> String {
    match path {
        "" => text.to_owned(),
        _ => format!("{path}: {text}"),
    }
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
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), shorten(value)))
                .collect(),
            other => other.clone(),
        }
    }
    arguments
        .iter()
        .map(|(key, value)| (key.clone(), shorten(value)))
        .collect()
}

fn is_valid(value: &Value, schema: &Value) -> bool {
    let mut faults = Vec::new();
    check(value, schema, "", &mut faults);
    faults.is_empty()
}

/// Takes away `null` where the property is optional and does not allow it.
fn drop_optional_nulls(value: &mut Value, schema: &Value) {
    match value {
        Value::Array(items) => {
            for item in items {
                drop_optional_nulls(item, &schema["items"]);
            }
        }
        Value::Object(map) => {
            let Some(properties) = schema["properties"].as_object() else {
                return;
            };
            for (key, property) in properties {
                let required = names(&schema["required"]).any(|name| name == key);
                match map.get_mut(key) {
                    Some(Value::Null) if !required && !is_valid(&Value::Null, property) => {
                        map.shift_remove(key);
                    }
                    Some(inner) => drop_optional_nulls(inner, property),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

fn coerce(value: &mut Value, schema: &Value) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        coerce(value, part);
    }
    for union in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[union].as_array() {
            coerce_to_one_of(value, choices);
        }
    }
    let types: Vec<&str> = types(schema).collect();
    if !types.iter().any(|kind| has_type(value, kind))
        && let Some(bent) = types.iter().find_map(|kind| bend(value, kind))
    {
        *value = bent;
    }
    match value {
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            let rest = Some(&schema["additionalProperties"]).filter(|rest| rest.is_object());
            for (key, inner) in map {
                if let Some(property) = properties.and_then(|known| known.get(key)).or(rest) {
                    coerce(inner, property);
                }
            }
        }
        Value::Array(items) => {
            let schemas = &schema["items"];
            for (index, item) in items.iter_mut().enumerate() {
                coerce(
                    item,
                    if schemas.is_array() {
                        &schemas[index]
                    } else {
                        schemas
                    },
                );
            }
        }
        _ => {}
    }
}

fn coerce_to_one_of(value: &mut Value, choices: &[Value]) {
    if choices.iter().any(|choice| is_valid(value, choice)) {
        return;
    }
    for choice in choices {
        let mut bent = value.clone();
        coerce(&mut bent, choice);
        if is_valid(&bent, choice) {
            *value = bent;
            return;
        }
    }
}

/// `value` as `kind`, where that loses nothing.
fn bend(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("number" | "integer", Value::Null | Value::Bool(false)) => Some(json!(0)),
        ("number" | "integer", Value::Bool(true)) => Some(json!(1)),
        ("number" | "integer", Value::String(text)) => {
            let number = number(text.trim())?;
            (kind == "number" || has_type(&number, "integer")).then_some(number)
        }
        ("boolean", Value::Null) => Some(json!(false)),
        ("boolean", Value::String(text)) => text.parse().ok().map(Value::Bool),
        ("boolean", Value::Number(number)) => match number.as_f64() {
            Some(1.0) => Some(json!(true)),
            Some(0.0) => Some(json!(false)),
            _ => None,
        },
        ("string", Value::Null) => Some(json!("")),
        ("string", Value::Number(number)) => Some(json!(number.to_string())),
        ("string", Value::Bool(flag)) => Some(json!(flag.to_string())),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::String(text)) if text.is_empty() => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(json!(whole));
    }
    // "inf" and "nan" are numbers to Rust, but not to JSON.
    text.parse::<f64>()
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let kind = &schema["type"];
    kind.as_str().into_iter().chain(
        kind.as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str),
    )
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "number" => value.is_number(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

type Faults = Vec<(String, String)>;

fn check(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    if schema == &Value::Bool(false) {
        faults.push((path.into(), "schema is false".into()));
        return;
    }
    let mut fault = |text: String| faults.push((path.to_owned(), text));
    let allowed: Vec<&str> = types(schema).collect();
    if !allowed.is_empty() && !allowed.iter().any(|kind| has_type(value, kind)) {
        fault(match allowed[..] {
            [kind] => format!("must be {kind}"),
            _ => format!("must be either {}", allowed.join(" or ")),
        });
        return;
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|allowed| !allowed.contains(value))
    {
        fault("must be equal to one of the allowed values".into());
    }
    if schema.get("const").is_some_and(|wanted| wanted != value) {
        fault("must be equal to constant".into());
    }
    match value {
        Value::Number(number) => check_number(number.as_f64().unwrap_or(0.0), schema, &mut fault),
        Value::String(text) => check_string(text, schema, &mut fault),
        Value::Array(items) => {
            let count = items.len() as u64;
            if schema["minItems"]
                .as_u64()
                .is_some_and(|least| count < least)
            {
                fault(format!(
                    "must not have fewer than {} items",
                    schema["minItems"]
                ));
            }
            if schema["maxItems"].as_u64().is_some_and(|most| count > most) {
                fault(format!(
                    "must not have more than {} items",
                    schema["maxItems"]
                ));
            }
            let schemas = &schema["items"];
            for (index, item) in items.iter().enumerate() {
                let rule = if schemas.is_array() {
                    &schemas[index]
                } else {
                    schemas
                };
                check(item, rule, &join(path, &index.to_string()), faults);
            }
        }
        Value::Object(map) => check_object(map, schema, path, faults),
        _ => {}
    }
    check_unions(value, schema, path, faults);
}

fn check_number(number: f64, schema: &Value, fault: &mut impl FnMut(String)) {
    type Holds = fn(&f64, &f64) -> bool;
    let rules: [(&str, &str, Holds); 4] = [
        ("minimum", ">=", f64::ge),
        ("maximum", "<=", f64::le),
        ("exclusiveMinimum", ">", f64::gt),
        ("exclusiveMaximum", "<", f64::lt),
    ];
    for (key, sign, holds) in rules {
        if schema[key]
            .as_f64()
            .is_some_and(|bound| !holds(&number, &bound))
        {
            fault(format!("must be {sign} {}", schema[key]));
        }
    }
}

fn check_string(text: &str, schema: &Value, fault: &mut impl FnMut(String)) {
    let count = text.chars().count() as u64;
    if schema["minLength"]
        .as_u64()
        .is_some_and(|least| count < least)
    {
        fault(format!(
            "must not have fewer than {} characters",
            schema["minLength"]
        ));
    }
    if schema["maxLength"]
        .as_u64()
        .is_some_and(|most| count > most)
    {
        fault(format!(
            "must not have more than {} characters",
            schema["maxLength"]
        ));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && regex::Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        fault(format!("must match pattern {pattern:?}"));
    }
}

fn check_object(map: &Map<String, Value>, schema: &Value, path: &str, faults: &mut Faults) {
    let missing: Vec<&str> = names(&schema["required"])
        .filter(|name| !map.contains_key(*name))
        .collect();
    if let Some(first) = missing.first() {
        let text = format!("must have required properties {}", missing.join(", "));
        faults.push((join(path, first), text));
    }
    let properties = schema["properties"].as_object();
    let rest = &schema["additionalProperties"];
    let mut unknown = false;
    for (key, inner) in map {
        match properties.and_then(|known| known.get(key)) {
            Some(property) => check(inner, property, &join(path, key), faults),
            None => {
                unknown = true;
                check(inner, rest, &join(path, key), faults);
            }
        }
    }
    if unknown && rest == &Value::Bool(false) {
        faults.push((path.into(), "must not have additional properties".into()));
    }
}

fn check_unions(value: &Value, schema: &Value, path: &str, faults: &mut Faults) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(value, part, path, faults);
    }
    for (union, text) in [
        ("anyOf", "must match a schema in anyOf"),
        ("oneOf", "must match exactly one schema in oneOf"),
    ] {
        let Some(choices) = schema[union].as_array() else {
            continue;
        };
        let matching = choices
            .iter()
            .filter(|choice| is_valid(value, choice))
            .count();
        if matching == 0 || (union == "oneOf" && matching > 1) {
            if matching == 0 {
                for choice in choices {
                    check(value, choice, path, faults);
                }
            }
            faults.push((path.into(), text.into()));
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.into()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "offset": {"type": "number"}, "a": {"type": "integer", "minimum": 3, "maximum": 5},
            "b": {"enum": ["p", "q"]}, "c": {"const": 1}, "d": {"anyOf": [{"type": "string"}, {"type": "number"}]},
            "e": {"type": "boolean"}, "f": {"type": ["string", "null"]}, "g": {"type": "string", "minLength": 2, "pattern": "^a"},
            "h": {"type": "array", "items": {"type": "number"}, "maxItems": 1},
            "i": {"oneOf": [{"type": "number"}, {"type": "boolean"}]}, "j": {"type": "null"},
            "k": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["x", "y"],
                "additionalProperties": false, "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}}}})
    }

    /// Checks one property beside a valid `path`: the value it becomes, or the lines that are said.
    #[track_caller]
    fn property(given: Value, expected: Result<Value, &str>) {
        let (key, value) = given.as_object().unwrap().iter().next().unwrap();
        let mut arguments = Map::new();
        arguments.insert("path".into(), json!("p"));
        arguments.insert(key.clone(), value.clone());
        let got = validate("t", &schema(), &arguments);
        match expected {
            Ok(value) => {
                let mut map = got.unwrap_or_else(|fault| panic!("{given}: {fault}"));
                assert_eq!(
                    map.shift_remove(key).unwrap_or(json!("absent")),
                    value,
                    "{given}"
                );
            }
            Err(lines) => {
                let fault = got.expect_err(&given.to_string());
                let said = fault
                    .split("\n\n")
                    .next()
                    .unwrap()
                    .replace("Validation failed for tool \"t\":\n", "");
                assert_eq!(said, lines, "{given}");
            }
        }
    }

    #[test]
    fn near_misses_are_bent() {
        property(json!({"offset": "2"}), Ok(json!(2)));
        property(json!({"offset": "2.5"}), Ok(json!(2.5)));
        property(json!({"offset": null}), Ok(json!("absent")));
        property(json!({"path": 1}), Ok(json!("1")));
        property(json!({"path": null}), Ok(json!("")));
        property(json!({"d": true}), Ok(json!("true")));
        property(json!({"e": "true"}), Ok(json!(true)));
        property(json!({"e": 1}), Ok(json!(true)));
        property(json!({"f": null}), Ok(json!(null)));
        property(json!({"f": 3}), Ok(json!("3")));
        property(json!({"h": ["1"]}), Ok(json!([1])));
        property(json!({"i": "true"}), Ok(json!(true)));
        property(json!({"a": "4"}), Ok(json!(4)));
        property(json!({"unknown": {"x": 1}}), Ok(json!({"x": 1})));
    }

    #[test]
    fn faults_name_the_place_and_the_rule() {
        property(json!({"path": ["a"]}), Err("  - path: must be string"));
        property(json!({"offset": "abc"}), Err("  - offset: must be number"));
        property(json!({"offset": "inf"}), Err("  - offset: must be number"));
        property(json!({"a": 1}), Err("  - a: must be >= 3"));
        property(json!({"a": 9}), Err("  - a: must be <= 5"));
        property(json!({"a": 4.5}), Err("  - a: must be integer"));
        property(
            json!({"b": "z"}),
            Err("  - b: must be equal to one of the allowed values"),
        );
        property(json!({"c": 2}), Err("  - c: must be equal to constant"));
        property(
            json!({"d": []}),
            Err(
                "  - d: must be string\n  - d: must be number\n  - d: must match a schema in anyOf",
            ),
        );
        property(json!({"e": 2}), Err("  - e: must be boolean"));
        property(
            json!({"g": "a"}),
            Err("  - g: must not have fewer than 2 characters"),
        );
        property(json!({"g": "bb"}), Err("  - g: must match pattern \"^a\""));
        property(
            json!({"h": [1, 2]}),
            Err("  - h: must not have more than 1 items"),
        );
        property(json!({"h": "1"}), Err("  - h: must be array"));
        property(json!({"j": 1}), Err("  - j: must be null"));
        property(
            json!({"k": []}),
            Err("  - k: must not have fewer than 1 items"),
        );
        property(
            json!({"k": [{"x": 1}]}),
            Err("  - k.0.y: must have required properties y"),
        );
        property(
            json!({"k": [{"x": "a", "y": "b", "z": 1}]}),
            Err("  - k.0.z: schema is false\n  - k.0: must not have additional properties"),
        );
    }

    #[test]
    fn the_message_shows_what_was_received() {
        let fault = validate("read", &schema(), &Map::new()).unwrap_err();
        assert_eq!(
            fault,
            "Validation failed for tool \"read\":\n  - path: must have required properties path\n\nReceived arguments:\n{}"
        );
    }
}
