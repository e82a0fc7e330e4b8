//! The JSON Schema of a theme file, made from the list of roles.

use super::Role;
use super::file::EXPORT_COLORS;
use crate::base::json::json;
use serde_json::{Map, Value};

/// The schema of the file. It is closed, as the parser is.
pub fn schema() -> Value {
    let color = || json!({"$ref": "#/$defs/Color"});
    let colors: Map<String, Value> =
        Role::ALL.map(|role| (role.name().to_owned(), color())).into_iter().collect();
    let required = Role::ALL.into_iter().filter(|role| role.fallback().is_none()).map(Role::name);
    let export: Map<String, Value> =
        EXPORT_COLORS.map(|name| (name.to_owned(), color())).into_iter().collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A theme of pi",
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "name": {"type": "string", "pattern": "^[^/]*$"},
            "appearance": {"enum": ["dark", "light"]},
            "vars": {"type": "object", "additionalProperties": color()},
            "colors": {
                "type": "object",
                "properties": colors,
                "required": required.collect::<Vec<_>>(),
                "additionalProperties": false,
            },
            "export": {"type": "object", "properties": export, "additionalProperties": false},
        },
        "required": ["name", "colors"],
        "additionalProperties": false,
        "$defs": {"Color": {
            "description": "#rrggbb, #rgb, oklch(...), okhsl(...), the name of a variable, empty for the terminal's own, or a number of the palette",
            "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 255}],
        }},
    })
}
