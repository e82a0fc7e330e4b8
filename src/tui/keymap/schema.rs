//! The JSON Schema of `keybindings.json`, made from the table of actions.

use super::{Application, ROWS, Row};
use crate::base::json::json;
use crate::tui::key;
use serde_json::{Map, Value};

/// The schema of the file, with the actions of editor and lists, and those of an application.
pub fn schema(application: &Application) -> Value {
    let action = |row: &Row| {
        (row.id.to_owned(), json!({"$ref": "#/$defs/Keys", "description": row.about, "default": row.keys}))
    };
    let mut properties: Map<String, Value> = ROWS.iter().chain(application.rows).map(action).collect();
    properties.insert("$schema".into(), json!({"type": "string"}));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "keybindings.json of pi",
        "type": "object",
        "properties": properties,
        "additionalProperties": {"$ref": "#/$defs/Keys"},
        "$defs": {
            "Key": {"type": "string", "pattern": key::pattern()},
            "Keys": {"anyOf": [
                {"$ref": "#/$defs/Key"},
                {"type": "array", "items": {"$ref": "#/$defs/Key"}},
            ]},
        },
    })
}
