//! The JSON Schema of `settings.json`, made from the table of settings.

use super::form::{Form, LEVELS};
use super::table::{self, Key};
use crate::base::json::json;
use serde_json::{Map, Value};

/// The schema of the file. It is open: settings of other versions are let through.
pub fn schema() -> Value {
    let mut properties = Map::new();
    properties.insert("$schema".into(), json!({"type": "string"}));
    for key in table::keys() {
        let mut place = &mut properties;
        let mut names = key.path.split('.').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                place.insert(name.to_owned(), described(key));
                break;
            }
            let group =
                place.entry(name).or_insert_with(|| json!({"type": "object", "properties": Map::new()}));
            let Some(inner) = group["properties"].as_object_mut() else { break };
            place = inner;
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "settings.json of pi",
        "type": "object",
        "properties": properties,
    })
}

fn described(key: &Key) -> Value {
    let mut schema = key.form.schema();
    let place = if key.is_global { "; not in a project's file" } else { "" };
    schema["description"] = format!("{}{place}", key.help).into();
    if let Some(preset) = key.preset.value() {
        schema["default"] = preset;
    }
    schema
}

impl Form {
    /// The JSON Schema of values of the form.
    pub fn schema(self) -> Value {
        let counts = |names: &[&str]| {
            let count = |name: &&str| ((*name).to_owned(), Self::Count.schema());
            json!({"type": "object", "properties": names.iter().map(count).collect::<Map<_, _>>()})
        };
        match self {
            Self::Flag => json!({"type": "boolean"}),
            Self::FlagOr(words) => json!({"anyOf": [{"type": "boolean"}, {"enum": words}]}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Range(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
            Self::CountOr(word, least, most) => {
                json!({"anyOf": [{"const": word}, Self::Range(least, most).schema()]})
            }
            Self::Amount | Self::Seconds => json!({"type": "number", "exclusiveMinimum": 0}),
            Self::Timeout => json!({"anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": "^(disabled|[0-9]+)$"},
            ]}),
            Self::Text => json!({"type": "string"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::List => json!({"type": "array"}),
            Self::OneOf(words) => json!({"enum": words}),
            Self::Levels => json!({"type": "object", "additionalProperties": {"enum": LEVELS}}),
            Self::Hooks => {
                let command = json!({"type": "object", "required": ["command"], "properties": {
                    "type": {"const": "command"},
                    "command": {"type": "string"},
                    "timeout": {"type": "number", "exclusiveMinimum": 0},
                }});
                let group = json!({"type": "object", "required": ["hooks"], "properties": {
                    "matcher": {"type": "string"},
                    "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
                    "hooks": {"type": "array", "items": command},
                }});
                json!({"type": "object", "additionalProperties": {"type": "array", "items": group}})
            }
            Self::TextLists => json!({"type": "object", "additionalProperties": Self::Texts.schema()}),
            Self::Counts(names) => counts(names),
            Self::ModelCounts(names) => json!({"type": "object", "additionalProperties": counts(names)}),
        }
    }
}
