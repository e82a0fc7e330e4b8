//! Tools as scripts see them: names that JavaScript takes, and declarations in TypeScript.

use crate::agent::tool::{Exposure, Tool, ToolInfo};
use crate::runtime::control::Control;
use serde_json::Value;
use std::sync::Arc;

/// Depth of a schema that is declared; what is deeper is `unknown`.
const DEPTH_MAX: usize = 12;
/// Characters of a declared type; a longer one is `unknown`.
const TYPE_MAX: usize = 16_000;

/// The name of a tool or server as an identifier.
pub fn identifier(name: &str) -> String {
    let fits =
        |at: usize, c: char| c.is_ascii_alphabetic() || "_$".contains(c) || (at > 0 && c.is_ascii_digit());
    let name: String = name.chars().enumerate().map(|(at, c)| if fits(at, c) { c } else { '_' }).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// The tools that scripts can call.
pub fn callable(control: &Control) -> Vec<Arc<dyn Tool>> {
    let is_callable = |tool: &Arc<dyn Tool>, is_active: bool| match tool.info().exposure {
        Exposure::Direct => is_active,
        Exposure::Codemode | Exposure::Deferred => true,
        Exposure::ModelOnly | Exposure::Hidden => false,
    };
    let all = control.tools().all().into_iter();
    all.filter(|(tool, active)| is_callable(tool, *active)).map(|(tool, _)| tool).collect()
}

/// Description, rules and declaration of a tool.
pub fn sample(info: &ToolInfo) -> String {
    let spec = &info.spec;
    let mut text = spec.description.trim().to_owned();
    info.rules.iter().for_each(|rule| text.push_str(&format!("\n- {}", rule.trim())));
    format!("{text}\n{}", declaration(info))
}

/// `tools.name(args: { … }): Promise<…>;`
pub fn declaration(info: &ToolInfo) -> String {
    let schema = &info.spec.parameters;
    let arguments = of_schema(schema, schema, 0);
    let arguments = if arguments.len() > TYPE_MAX { "unknown".to_owned() } else { arguments };
    let result = match &info.namespace {
        Some(_) => "{ content: object[], structuredContent?: object, isError?: boolean }",
        None => "string",
    };
    format!("tools.{}(args: {arguments}): Promise<{result}>;", identifier(&info.spec.name))
}

fn of_schema(schema: &Value, root: &Value, depth: usize) -> String {
    const UNKNOWN: &str = "unknown";
    if depth > DEPTH_MAX {
        return UNKNOWN.to_owned();
    }
    let inner = |schema: &Value| of_schema(schema, root, depth + 1);
    let union = |types: Vec<String>| {
        let mut all: Vec<String> = Vec::new();
        types.into_iter().for_each(|one| {
            if !all.contains(&one) {
                all.push(one)
            }
        });
        if all.is_empty() || all.iter().any(|one| one == UNKNOWN) {
            UNKNOWN.to_owned()
        } else {
            all.join(" | ")
        }
    };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|path| root.pointer(path));
        return target.map_or_else(|| UNKNOWN.to_owned(), inner);
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(Value::to_string).collect());
    }
    if let Some(variants) = ["anyOf", "oneOf"].iter().find_map(|name| schema.get(*name)?.as_array()) {
        return union(variants.iter().map(inner).collect());
    }
    let of_type = |kind: &str| match kind {
        "string" | "boolean" | "null" => kind.to_owned(),
        "number" | "integer" => "number".to_owned(),
        "array" => {
            let item = schema.get("items").map_or_else(|| UNKNOWN.to_owned(), inner);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" => object(schema, &inner),
        _ => UNKNOWN.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(kind)) => of_type(kind),
        Some(Value::Array(kinds)) => union(kinds.iter().filter_map(Value::as_str).map(of_type).collect()),
        _ if schema.get("properties").is_some() => object(schema, &inner),
        _ => UNKNOWN.to_owned(),
    }
}

fn object(schema: &Value, inner: &dyn Fn(&Value) -> String) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
        return match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("Record<string, {}>", inner(values)),
            _ => "object".to_owned(),
        };
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field = |(name, schema): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let name =
            if identifier(name) == *name { name.clone() } else { Value::from(name.as_str()).to_string() };
        format!("{name}{mark}: {}", inner(schema))
    };
    format!("{{ {} }}", properties.iter().map(field).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::ToolSpec;
    use serde_json::json;

    #[test]
    fn schemas_become_types() {
        for (schema, expected) in [
            (
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"},
                "b-c": {"type": "integer"}}}),
                r#"{ a: string; "b-c"?: number }"#,
            ),
            (json!({"type": "array", "items": {"enum": ["x", 1]}}), r#"("x" | 1)[]"#),
            (json!({"anyOf": [{"type": "null"}, {"type": "boolean"}, {"type": "null"}]}), "null | boolean"),
            (json!({"anyOf": [{"type": "null"}, {}]}), "unknown"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"const": "go"}), "\"go\""),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}), "string"),
            (json!({"$ref": "#"}), "unknown"),
            (json!({"$ref": "https://elsewhere"}), "unknown"),
            (json!({}), "unknown"),
        ] {
            assert_eq!(of_schema(&schema, &schema, 0), expected, "{schema}");
        }
    }

    #[test]
    fn a_tool_is_declared_by_an_identifier() {
        assert_eq!(["a-b.c", "1x", "", "é"].map(identifier), ["a_b_c", "_x", "_", "_"]);
        let spec = ToolSpec {
            name: "mcp__a-b__c".into(),
            description: "Does it.".into(),
            parameters: json!({"type": "object", "properties": {}}),
            ..ToolSpec::default()
        };
        let info = ToolInfo { spec, rules: vec!["Carefully".into()], ..ToolInfo::default() };
        let expected = "Does it.\n- Carefully\ntools.mcp__a_b__c(args: object): Promise<string>;";
        assert_eq!(sample(&info), expected);
    }
}
