//! The JSON value that a run must end with, as `--output-schema` describes it.
//!
//! The system prompt tells the model the schema. The last answer is parsed as JSON and checked against the
//! schema, without repairs; after a wrong answer the model is told its faults and asked again.

use crate::agent::schema;
use crate::llm::message::{AssistantMessage, Block, StopReason};
use serde_json::Value;

/// How often the model is asked again after a wrong answer.
pub const RETRIES_MAX: usize = 2;

/// The JSON schema of the value that a run must end with.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    schema: Value,
}

impl Wanted {
    /// Parses a schema. An error says that `text` is not JSON, or names keywords that pi cannot check.
    pub fn parse(text: &str) -> Result<Self, String> {
        let schema = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        match schema::unsupported(&schema).as_slice() {
            [] => Ok(Self { schema }),
            faults => Err(faults.join("; ")),
        }
    }

    /// Returns the text about the schema for the system prompt.
    pub fn demand(&self) -> String {
        format!(
            "When the work is done, your last answer must be one JSON value and nothing else: no words before or \
             after it. The value must satisfy this JSON schema:\n{}",
            self.schema
        )
    }

    /// Parses and checks an answer. An error says what is wrong with the answer.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let text = fenced(answer).unwrap_or(answer).trim();
        let value = serde_json::from_str(text)
            .map_err(|error| format!("the answer is not one JSON value: {error}"))?;
        match schema::faults(&value, &self.schema).as_slice() {
            [] => Ok(value),
            faults => Err(format!("the answer does not satisfy the schema: {}", faults.join("; "))),
        }
    }

    /// Returns the message to the model after a wrong answer.
    pub fn ask_again(&self, fault: &str) -> String {
        format!("That cannot be used: {fault}. Answer again with one JSON value and nothing else.")
    }
}

/// True if the answer ended without an error, an abort or tool calls.
pub fn is_whole(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::ToolUse)
}

pub fn text(answer: &AssistantMessage) -> String {
    answer.content.iter().filter_map(Block::as_text).collect()
}

/// Returns the text inside the last code fence, if there is one.
fn fenced(text: &str) -> Option<&str> {
    let (before, _) = text.trim_end().rsplit_once("```")?;
    let (_, inside) = before.rsplit_once("```")?;
    let (_language, body) = inside.split_once('\n')?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn wanted() -> Wanted {
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "minimum": 1}}});
        Wanted::parse(&schema.to_string()).unwrap_or_else(|fault| panic!("{fault}"))
    }

    #[test]
    fn answers_are_read_and_checked_as_they_are() {
        let rows: [(&str, Result<Value, &str>); 8] = [
            (r#"{"n": 1}"#, Ok(json!({"n": 1}))),
            (" {\"n\": 1}\n", Ok(json!({"n": 1}))),
            ("```json\n{\"n\": 2}\n```", Ok(json!({"n": 2}))),
            ("Here:\n```\n{\"n\": 3}\n```\n", Ok(json!({"n": 3}))),
            ("```", Err("the answer is not one JSON value: ")),
            (r#"{"n": "1"}"#, Err("the answer does not satisfy the schema: n: expected integer, got string")),
            (r#"{"n": 0}"#, Err("the answer does not satisfy the schema: n: expected >= 1")),
            ("", Err("the answer is not one JSON value: ")),
        ];
        for (answer, expected) in rows {
            match (wanted().check(answer), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{answer}"),
                (Err(fault), Err(expected)) => {
                    assert!(fault.starts_with(expected), "{answer}: {fault}");
                }
                (got, _) => panic!("{answer}: {got:?}"),
            }
        }
    }

    #[test]
    fn schemas_that_cannot_be_checked_are_refused_by_name() {
        for (schema, part) in [
            ("{", "no JSON"),
            (r##"{"$ref": "#/x"}"##, "\"$ref\""),
            (r#"{"properties": {"a": {"format": "date"}}}"#, "properties.a: \"format\""),
            (r#"{"anyOf": [{"not": {}}]}"#, "anyOf.0: \"not\""),
            (r#"{"items": {"uniqueItems": true}}"#, "items: \"uniqueItems\""),
            (r#"{"type": "text"}"#, "\"text\""),
            (r#"{"pattern": "("}"#, "pattern"),
            ("3", "neither an object nor a boolean"),
        ] {
            let fault = Wanted::parse(schema).err().unwrap_or_default();
            assert!(fault.contains(part), "{schema}: {fault}");
        }
    }
}
