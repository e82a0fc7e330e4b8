//! A question as a form of one field, in the schema that ACP and MCP share for elicitations.

use crate::base::json::json;
use crate::runtime::ui::{Dialog, YES};
use serde_json::Value;

const FIELD: &str = "answer";
pub const NO: &str = "no";

/// The message and the schema of the form for `dialog`.
pub fn of(dialog: &Dialog<'_>) -> (String, Value) {
    let (message, mut field) = match *dialog {
        Dialog::Select { title, options } => (title, json!({"type": "string", "enum": options})),
        Dialog::Confirm { message, .. } => {
            let choices = json!([{"const": YES, "title": "Yes"}, {"const": NO, "title": "No"}]);
            (message, json!({"type": "string", "oneOf": choices}))
        }
        Dialog::Input { title, placeholder: Some(text) } => {
            (title, json!({"type": "string", "description": text}))
        }
        Dialog::Input { title, placeholder: None } => (title, json!({"type": "string"})),
        Dialog::Editor { title, prefill } => {
            (title, json!({"type": "string", "default": prefill.unwrap_or_default()}))
        }
    };
    field["title"] = dialog.title().into();
    let schema = json!({"type": "object", "properties": {FIELD: field}, "required": [FIELD]});
    (message.to_owned(), schema)
}

/// The answer in the result of an elicitation; `None` if the user gave none.
pub fn answer(result: &Value) -> Option<String> {
    (result["action"] == "accept").then(|| result["content"][FIELD].as_str().map(str::to_owned)).flatten()
}
