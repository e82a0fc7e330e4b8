//! The `yield` tool, by which a helper gives its result.

use crate::agent::schema;
use crate::base::json::json;
use serde_json::{Map, Value};

pub const NAME: &str = "yield";

/// The result of a helper, as it gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Yielded {
    Text(String),
    /// A value that satisfies the wanted schema.
    Data(Value),
    /// The helper could not do its task, for this reason.
    Failure(String),
}

/// The declaration of the tool for RPC mode. Without a schema, the result is a text.
pub fn declaration(schema: Option<&Value>) -> Value {
    let error = json!({"type": "string", "description": "Only if the task cannot be done: why"});
    let mut parameters = json!({"type": "object", "properties": {}});
    match schema {
        None => {
            let text = json!({"type": "string", "description": "The whole result, as Markdown"});
            parameters["properties"] = json!({"result": text, "error": error});
        }
        Some(schema) => {
            let mut data = schema.clone();
            // References start at the root of the parameters.
            for key in ["$defs", "definitions"] {
                if let Some(definitions) = data.as_object_mut().and_then(|data| data.remove(key)) {
                    parameters[key] = definitions;
                }
            }
            parameters["properties"] = json!({"data": data, "error": error});
        }
    }
    json!({"name": NAME, "label": NAME, "readOnly": true, "parameters": parameters,
        "description": "Give the result of your task. Your work ends with it.",
        "snippet": "Give the result of your task"})
}

/// Faults of a schema that results cannot be checked against; `None` if it can be used.
pub fn fault_of(schema: &Value) -> Option<String> {
    let faults = schema::unsupported(schema);
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// Reads a call, whose arguments satisfy the declared schema. An error is told to the helper.
pub fn read(arguments: &Map<String, Value>) -> Result<Yielded, String> {
    let text =
        |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    match (text("result"), arguments.get("data"), text("error")) {
        (None, None, Some(why)) => Ok(Yielded::Failure(why.to_owned())),
        (Some(text), None, None) => Ok(Yielded::Text(text.to_owned())),
        (None, Some(data), None) => Ok(Yielded::Data(data.clone())),
        (None, None, None) => Err("yield needs your result; or error, if the task cannot be done".into()),
        _ => Err("yield takes a result or an error, not both".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_a_text_a_value_or_a_failure() {
        let rows = [
            (json!({"result": "r"}), Ok(Yielded::Text("r".into()))),
            (json!({"result": "r", "error": ""}), Ok(Yielded::Text("r".into()))),
            (json!({"data": [1]}), Ok(Yielded::Data(json!([1])))),
            (json!({"error": "no"}), Ok(Yielded::Failure("no".into()))),
            (json!({}), Err("yield needs your result")),
            (json!({"result": " "}), Err("yield needs your result")),
            (json!({"data": 1, "error": "no"}), Err("yield takes a result or an error")),
        ];
        for (arguments, expected) in rows {
            match (read(arguments.as_object().unwrap()), expected) {
                (Err(fault), Err(expected)) => assert!(fault.starts_with(expected), "{arguments}: {fault}"),
                (got, expected) => assert_eq!(got.ok(), expected.ok(), "{arguments}"),
            }
        }
    }

    #[test]
    fn definitions_of_a_schema_stay_where_references_find_them() {
        let schema =
            json!({"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}});
        let parameters = &declaration(Some(&schema))["parameters"];
        let check = |data: Value| {
            let arguments = json!({"data": data});
            schema::validate(NAME, parameters, arguments.as_object().unwrap()).is_ok()
        };
        assert!(check(json!([1, 2])));
        assert!(!check(json!(["x"])));
        assert!(fault_of(&schema).is_none());
        assert!(fault_of(&json!({"properties": {"a": {"format": "date"}}})).is_some());
    }
}
