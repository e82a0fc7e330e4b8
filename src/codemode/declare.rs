//! Tools as scripts see them: names that JavaScript takes, and declarations in TypeScript.

use crate::agent::tool::{Exposure, Tool, ToolInfo};
use crate::base::order::Order;
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
    let of = |schema: &Value| {
        let text = of_schema(schema, schema, 0);
        if text.len() > TYPE_MAX { "unknown".to_owned() } else { text }
    };
    let arguments = of(&info.spec.parameters);
    let result = match (&info.result, &info.namespace) {
        (Some(schema), _) => of(schema),
        (None, Some(_)) => "{ content: object[]; structuredContent?: object; isError?: boolean }".to_owned(),
        (None, None) => "string".to_owned(),
    };
    format!("tools.{}(args: {arguments}): Promise<{result}>;", identifier(&info.spec.name))
}

/// Declarations of tools: as many as fit into `chars_max`, the shorter ones first, in the order of `infos`. Those of a
/// group follow its name.
pub fn listed(infos: &[&ToolInfo], chars_max: usize) -> String {
    let samples: Vec<String> = infos.iter().map(|info| sample(info)).collect();
    let mut by_length: Vec<usize> = (0..samples.len()).collect();
    by_length.order_by_key(|at| samples[*at].len());
    let mut rest = chars_max;
    by_length.retain(|at| {
        let left = rest.checked_sub(samples[*at].len());
        rest = left.unwrap_or(0);
        left.is_some()
    });
    let mut text = String::new();
    let mut group = None;
    for (at, info) in infos.iter().enumerate().filter(|(at, _)| by_length.contains(at)) {
        if group != info.namespace {
            group.clone_from(&info.namespace);
            if let Some(namespace) = &group {
                let about = namespace.description.as_deref().map(|about| format!(": {about}"));
                text.push_str(&format!("\n\n{}{}", namespace.name, about.unwrap_or_default()));
            }
        }
        text.push_str(&format!("\n\n{}", samples[at]));
    }
    text
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
    let about = |schema: &Value| {
        let text = schema.get("description").and_then(Value::as_str)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let field = |(name, schema): (&String, &Value)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let name =
            if identifier(name) == *name { name.clone() } else { Value::from(name.as_str()).to_string() };
        format!("{name}{mark}: {}", inner(schema))
    };
    if properties.values().all(|schema| about(schema).is_none()) {
        return format!("{{ {} }}", properties.iter().map(field).collect::<Vec<_>>().join("; "));
    }
    // What is known of a field stands behind it.
    let line = |(name, schema): (&String, &Value)| {
        let about = about(schema).map(|about| format!(" // {about}")).unwrap_or_default();
        format!("  {};{about}", field((name, schema)).replace('\n', "\n  "))
    };
    format!("{{\n{}\n}}", properties.iter().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::llm::message::ToolSpec;

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
    fn what_fits_is_listed_in_order_and_short_tools_go_first() {
        let tool = |name: &str, about: &str| ToolInfo {
            spec: ToolSpec {
                name: name.into(),
                description: about.into(),
                parameters: json!({"type": "object", "properties": {"n": {"type": "number", "description": "How\n many"}}}),
                ..ToolSpec::default()
            },
            result: Some(json!({"type": "object", "properties": {"x": {"type": "boolean"}}})),
            ..ToolInfo::default()
        };
        let (long, short) = (tool("long", &"x".repeat(50)), tool("short", "Does it."));
        let expected =
            "\n\nDoes it.\ntools.short(args: {\n  n?: number; // How many\n}): Promise<{ x?: boolean }>;";
        assert_eq!(listed(&[&long, &short], 130), expected);
        assert_eq!(listed(&[&long, &short], 10), "");
        let all = listed(&[&long, &short], 1000);
        assert!(all.starts_with("\n\nxxx") && all.ends_with(expected), "{all}");
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
