//! Finds parts of a schema that are not checked.

use super::{join, scope, types};
use serde_json::Value;
use std::collections::BTreeSet;

/// Keywords that are checked or need no check.
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
    "$ref",
    "$defs",
    "definitions",
];

pub const TYPES: &[&str] = &["number", "integer", "boolean", "string", "null", "array", "object"];

/// Returns one string for each part of `schema` that is not checked, with path and keyword.
pub fn unsupported(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    survey(schema, schema, "", &mut found);
    found
}

fn survey(schema: &Value, root: &Value, path: &str, found: &mut Vec<String>) {
    let Value::Object(map) = schema else {
        if !schema.is_boolean() {
            found.push(at(path, "is neither an object nor a boolean"));
        }
        return;
    };
    for (keyword, value) in map {
        let inner = join(path, keyword);
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    survey(schema, root, &join(&inner, name), found);
                }
            }
            ("$ref", reference) => match reference.as_str() {
                Some(reference) if scope::resolve(root, reference).is_none() => {
                    found.push(at(path, &format!("\"$ref\" leads nowhere: {reference}")));
                }
                Some(_) if is_endless(schema, root) => found.push(at(path, scope::ENDLESS)),
                Some(_) => {}
                None => found.push(at(path, "\"$ref\" is not a string")),
            },
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                for (index, part) in parts.iter().enumerate() {
                    survey(part, root, &join(&inner, &index.to_string()), found);
                }
            }
            ("items" | "additionalProperties", part) => survey(part, root, &inner, found),
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

/// True if references form a cycle without a step into the value.
fn is_endless<'a>(schema: &'a Value, root: &'a Value) -> bool {
    /// True if a reference in `path` occurs again. References in `done` are known to end.
    fn returns<'a>(
        schema: &'a Value,
        root: &'a Value,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> bool {
        if let Some(reference) = schema["$ref"].as_str() {
            if path.contains(&reference) {
                return true;
            }
            if path.len() < scope::DEPTH_MAX && !done.contains(reference) {
                let target = scope::resolve(root, reference).unwrap_or(&Value::Null);
                path.push(reference);
                if returns(target, root, path, done) {
                    return true;
                }
                path.pop();
                done.insert(reference);
            }
        }
        ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| schema[keyword].as_array())
            .flatten()
            .any(|part| returns(part, root, path, done))
    }
    returns(schema, root, &mut Vec::new(), &mut BTreeSet::new())
}
