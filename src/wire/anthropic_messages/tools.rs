//! Converts tools to Anthropic's format.

use super::compat::Compat;
use crate::base::json::json;
use crate::llm::body::CacheControl;
use crate::llm::event::StreamError;
use crate::llm::message::ToolSpec;
use crate::wire::schema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A tool that is declared but never active. The first deferred tool changes the text that the provider puts
/// before the prompt, which would invalidate the cache; with this tool present from the start it does not
/// change.
const PLACEHOLDER_NAME: &str = "__pi_deferred_placeholder__";
const PLACEHOLDER_TEXT: &str = "Holds a place. Cannot be called.";

#[derive(Serialize)]
pub struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager_input_streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    input_schema: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    /// True for a tool that is inactive until a message adds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    defer_loading: Option<bool>,
}

fn convert<'a>(tool: &'a ToolSpec, compat: &Compat<'_>) -> Result<WireTool<'a>, StreamError> {
    let strict = schema::strict_parameters_without(tool, compat.supports_strict_tools, is_refused)?;
    let is_strict = strict.is_some();
    Ok(WireTool {
        name: &tool.name,
        description: &tool.description,
        eager_input_streaming: compat.eager_input_streaming.then_some(true),
        strict: is_strict.then_some(true),
        input_schema: match strict {
            Some(Value::Object(schema)) => schema,
            _ => plain_schema(&tool.parameters),
        },
        cache_control: None,
        defer_loading: None,
    })
}

pub fn convert_all<'a>(
    tools: &'a [ToolSpec],
    compat: &Compat<'_>,
    mark: Option<CacheControl>,
) -> Result<Vec<WireTool<'a>>, StreamError> {
    let tools = tools.iter().map(|tool| convert(tool, compat));
    let mut tools = tools.collect::<Result<Vec<_>, _>>()?;
    if let Some(last) = tools.last_mut() {
        last.cache_control = mark.filter(|_| compat.cache_control_on_tools);
    }
    Ok(tools)
}

pub fn placeholder() -> WireTool<'static> {
    WireTool {
        name: PLACEHOLDER_NAME,
        description: PLACEHOLDER_TEXT,
        eager_input_streaming: None,
        strict: None,
        input_schema: plain_schema(&Value::Null),
        cache_control: None,
        defer_loading: Some(true),
    }
}

/// Schema keywords that the provider's strict mode rejects.
const REFUSED: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];

/// String formats that the provider's strict mode accepts.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

fn is_refused(keyword: &str, value: &Value) -> bool {
    match keyword {
        "minItems" => !matches!(value.as_u64(), Some(0 | 1)),
        "format" => !value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        keyword => REFUSED.contains(&keyword),
    }
}

/// The part of a schema that every server with this protocol accepts.
fn plain_schema(parameters: &Value) -> Map<String, Value> {
    let field = |name: &str, default: Value| match parameters.get(name) {
        None | Some(Value::Null) => default,
        Some(value) => value.clone(),
    };
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), field("properties", json!({})));
    schema.insert("required".to_owned(), field("required", json!([])));
    // Properties may refer to these definitions.
    for name in ["$defs", "definitions"] {
        if let Some(shared) = parameters.get(name) {
            schema.insert(name.to_owned(), shared.clone());
        }
    }
    schema
}
