//! Tools whose arguments the provider forces to match a schema or a grammar.

use crate::base::json::json;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::ToolSpec;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Keywords that no provider's strict mode accepts.
const UNSUPPORTED: [&str; 16] = [
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
];

/// True for a keyword with a value that a provider's strict mode rejects.
type Refuses = fn(&str, &Value) -> bool;

/// The schema of a tool's arguments; always an object.
pub fn parameters(tool: &ToolSpec) -> Cow<'_, Value> {
    if tool.parameters.is_object() {
        return Cow::Borrowed(&tool.parameters);
    }
    Cow::Owned(json!({"type": "object", "properties": {}}))
}

/// The strict form of a tool's schema, if the tool requests it and the provider supports it. An error if the
/// tool requires strict mode and it is impossible.
pub fn strict_parameters(tool: &ToolSpec, supported: bool) -> Result<Option<Value>, StreamError> {
    strict_parameters_without(tool, supported, |_, _| false)
}

/// Like [`strict_parameters`], for a provider that rejects further keywords.
pub fn strict_parameters_without(
    tool: &ToolSpec,
    supported: bool,
    refuses: Refuses,
) -> Result<Option<Value>, StreamError> {
    let Some(config) = config(tool, "json_schema") else {
        return Ok(None);
    };
    let strict = if supported {
        strict_schema(&tool.parameters, refuses)
    } else {
        Err("strict tools are unsupported".to_owned())
    };
    match strict {
        Ok(schema) => Ok(Some(schema)),
        Err(_) if config.get("strict").and_then(Value::as_str) != Some("require") => Ok(None),
        Err(reason) => Err(refused(format!(
            "Tool \"{}\" requires JSON-schema constrained sampling, but {reason}.",
            tool.name
        ))),
    }
}

/// A grammar for a tool's only argument.
pub struct Grammar<'a> {
    /// `lark` or `regex`.
    pub syntax: &'static str,
    pub definition: &'a str,
    /// Name of the argument that follows the grammar.
    pub property: &'a str,
}

/// The grammar of a tool, if it has one and the provider supports grammars.
pub fn grammar(tool: &ToolSpec, supported: bool) -> Result<Option<Grammar<'_>>, StreamError> {
    let Some(config) = config(tool, "grammar").filter(|_| supported) else {
        return Ok(None);
    };
    let variant = |name: &str| {
        let text = config.get("variants")?.get(name)?.as_str()?;
        (!text.trim().is_empty()).then_some(text)
    };
    let failed = |reason: &str| {
        refused(format!("Tool \"{}\" cannot use grammar constrained sampling: {reason}.", tool.name))
    };
    let (syntax, definition) = match (variant("openai_lark"), variant("openai_regex")) {
        (Some(lark), _) => ("lark", lark),
        (None, Some(regex)) => ("regex", regex),
        (None, None) => return Err(failed("no supported grammar variant was provided")),
    };
    let property = only_property(&tool.parameters).map_err(failed)?;
    Ok(Some(Grammar { syntax, definition, property }))
}

fn config<'a>(tool: &'a ToolSpec, kind: &str) -> Option<&'a Map<String, Value>> {
    let config = tool.constrained_sampling.as_ref()?.as_object()?;
    (config.get("type")?.as_str()? == kind).then_some(config)
}

fn refused(message: String) -> StreamError {
    StreamError::new(ErrorKind::Request, message)
}

fn only_property(schema: &Value) -> Result<&str, &'static str> {
    if schema["type"] != "object" {
        return Err("grammar constrained sampling requires an object parameter schema");
    }
    let required = schema["required"].as_array().map(Vec::as_slice);
    let Some([Value::String(name)]) = required else {
        return Err("grammar constrained sampling requires exactly one required string property");
    };
    if schema["properties"][name]["type"] != "string" {
        return Err("the required property of a grammar must have type string");
    }
    Ok(name)
}

/// Closes every object and makes every property required; an optional property may be `null` instead.
fn strict_schema(schema: &Value, refuses: Refuses) -> Result<Value, String> {
    let mut schema = schema.clone();
    make_strict(&mut schema, refuses)?;
    if schema["type"] != "object" {
        return Err("root schema must have type object".to_owned());
    }
    Ok(schema)
}

fn make_strict(schema: &mut Value, refuses: Refuses) -> Result<(), String> {
    let Value::Object(schema) = schema else {
        return Err("boolean schemas are unsupported".to_owned());
    };
    if let Some(key) = UNSUPPORTED.iter().find(|key| schema.contains_key(**key)) {
        return Err(format!("{key} schemas are unsupported"));
    }
    if let Some((key, value)) = schema.iter().find(|(key, value)| refuses(key, value)) {
        return Err(format!("{key}: {value} is unsupported"));
    }
    match schema.get_mut("anyOf") {
        None => {}
        Some(Value::Array(variants)) if !variants.is_empty() => {
            for variant in variants {
                if is_structured(variant) {
                    return Err("object and array unions are unsupported".to_owned());
                }
                make_strict(variant, refuses)?;
            }
        }
        Some(_) => return Err("anyOf must contain at least one schema".to_owned()),
    }
    match schema.get_mut("items") {
        None => {}
        Some(Value::Array(_)) => return Err("tuple schemas are unsupported".to_owned()),
        Some(items) => make_strict(items, refuses)?,
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        if schema.contains_key("properties") {
            return Err("properties require type object".to_owned());
        }
        return Ok(());
    }
    close_object(schema, refuses)
}

fn close_object(schema: &mut Map<String, Value>, refuses: Refuses) -> Result<(), String> {
    if !matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false))) {
        return Err("schema-valued or true additionalProperties is unsupported".to_owned());
    }
    let required: Vec<String> = match schema.get("required") {
        None => Vec::new(),
        Some(required) => serde_json::from_value(required.clone())
            .map_err(|_| "object required must be a string array".to_owned())?,
    };
    let mut none = Map::new();
    let properties = match schema.get_mut("properties") {
        None => &mut none,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("object properties must be a schema map".to_owned()),
    };
    if required.iter().any(|key| !properties.contains_key(key)) {
        return Err("required contains an unknown property".to_owned());
    }
    for (key, property) in properties.iter_mut() {
        make_strict(property, refuses)?;
        if !required.contains(key) && !allows_null(property) {
            let own = property.take();
            *property = json!({"anyOf": [own, {"type": "null"}]});
        }
    }
    let names = properties.keys().cloned().map(Value::from).collect();
    schema.insert("required".to_owned(), Value::Array(names));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    Ok(())
}

fn is_structured(schema: &Value) -> bool {
    let structured = |kind: &Value| kind == "object" || kind == "array";
    let kind = &schema["type"];
    let kinds = kind.as_array();
    structured(kind)
        || kinds.is_some_and(|kinds| kinds.iter().any(structured))
        || schema.get("properties").is_some()
        || schema.get("items").is_some()
}

fn allows_null(schema: &Value) -> bool {
    let lists = |value: &Value, wanted: &Value| value.as_array().is_some_and(|list| list.contains(wanted));
    let kind = &schema["type"];
    let null = Value::from("null");
    *kind == null
        || lists(kind, &null)
        || schema.get("const") == Some(&Value::Null)
        || lists(&schema["enum"], &Value::Null)
        || schema["anyOf"].as_array().is_some_and(|variants| variants.iter().any(allows_null))
}

/// Keywords whose values are objects of schemas by name.
const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose values are schemas or lists of schemas.
const SCHEMAS: [&str; 16] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Replaces strings and numbers in `const` by an `enum` of one value, since Gemini ignores `const`.
pub fn const_as_enum(schema: Cow<'_, Value>) -> Cow<'_, Value> {
    fn has_const(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.contains_key("const") || fields.values().any(has_const),
            Value::Array(items) => items.iter().any(has_const),
            _ => false,
        }
    }
    match has_const(&schema) {
        true => Cow::Owned(rewrite_const(schema.into_owned(), false)),
        false => schema,
    }
}

fn rewrite_const(value: Value, names: bool) -> Value {
    let fields = match value {
        Value::Array(items) => return items.into_iter().map(|item| rewrite_const(item, false)).collect(),
        Value::Object(fields) => fields,
        other => return other,
    };
    let rewritten = fields.into_iter().map(|(key, value)| {
        let value = match key.as_str() {
            key if names || SCHEMAS.contains(&key) => rewrite_const(value, false),
            key if MAPS.contains(&key) => rewrite_const(value, true),
            _ => value,
        };
        (key, value)
    });
    let mut fields: Map<String, Value> = rewritten.collect();
    let is_single = matches!(fields.get("const"), Some(Value::String(_) | Value::Number(_)));
    if !names
        && is_single
        && !fields.contains_key("enum")
        && let Some(value) = fields.shift_remove("const")
    {
        fields.insert("enum".to_owned(), json!([value]));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(parameters: Value, sampling: Value) -> ToolSpec {
        ToolSpec { name: "t".into(), parameters, constrained_sampling: Some(sampling), ..ToolSpec::default() }
    }

    #[test]
    fn a_strict_schema_requires_all_and_closes_objects() {
        let schema = json!({"type":"object","properties":{
            "path":{"type":"string"},
            "limit":{"type":"number"},
            "mode":{"type":["string","null"]},
            "list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}
        },"required":["path"]});
        let strict = strict_schema(&schema, |_, _| false).unwrap();
        assert_eq!(
            strict,
            json!({"type":"object","properties":{
                "path":{"type":"string"},
                "limit":{"anyOf":[{"type":"number"},{"type":"null"}]},
                "mode":{"type":["string","null"]},
                "list":{"anyOf":[{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}},{"type":"null"}]}
            },"required":["path","limit","mode","list"],"additionalProperties":false})
        );
    }

    #[test]
    fn what_strict_mode_cannot_say_is_refused_with_the_reason() {
        let cases = [
            (json!(true), "boolean"),
            (json!({"type":"string"}), "root"),
            (json!({"type":"object","oneOf":[]}), "oneOf"),
            (json!({"type":"object","additionalProperties":true}), "additionalProperties"),
            (json!({"type":"object","required":["x"]}), "unknown property"),
            (json!({"type":"object","required":[1]}), "string array"),
            (json!({"type":"object","properties":[]}), "schema map"),
            (json!({"type":"object","properties":{"a":{"anyOf":[]}}}), "anyOf"),
            (json!({"type":"object","properties":{"a":{"anyOf":[{"type":"object"}]}}}), "unions"),
            (json!({"type":"object","properties":{"a":{"items":[]}}}), "tuple"),
            (json!({"properties":{}}), "type object"),
        ];
        for (schema, reason) in cases {
            let error = strict_schema(&schema, |_, _| false).unwrap_err();
            assert!(error.contains(reason), "{schema}: {error}");
            let preferred = tool(schema.clone(), json!({"type":"json_schema","strict":"prefer"}));
            assert_eq!(strict_parameters(&preferred, true), Ok(None));
            let required = tool(schema, json!({"type":"json_schema","strict":"require"}));
            assert!(strict_parameters(&required, true).is_err());
        }
    }

    #[test]
    fn a_grammar_needs_one_string_argument_and_a_provider_that_takes_it() {
        let schema = json!({"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"]});
        let sampling = json!({"type":"grammar","variants":{"openai_lark":"start: x"}});
        let good = tool(schema.clone(), sampling.clone());
        let found = grammar(&good, true).unwrap().unwrap();
        assert_eq!((found.syntax, found.property), ("lark", "patch"));
        assert!(grammar(&good, false).unwrap().is_none());
        let bare = tool(schema, json!({"type":"grammar","variants":{}}));
        assert!(grammar(&bare, true).is_err());
        let two = tool(json!({"type":"object","required":["a","b"]}), sampling);
        assert!(grammar(&two, true).is_err());
    }

    #[test]
    fn a_constant_becomes_a_list_of_one_value() {
        let cases = [
            (json!({"const": "a"}), json!({"enum": ["a"]})),
            (json!({"const": true}), json!({"const": true})),
            (json!({"const": 1, "enum": [1, 2]}), json!({"const": 1, "enum": [1, 2]})),
            (
                json!({"properties": {"const": {"const": 3}, "b": {"anyOf": [{"const": "x"}]}}, "default": {"const": "y"}}),
                json!({"properties": {"const": {"enum": [3]}, "b": {"anyOf": [{"enum": ["x"]}]}}, "default": {"const": "y"}}),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(*const_as_enum(Cow::Owned(schema)), expected);
        }
    }
}
