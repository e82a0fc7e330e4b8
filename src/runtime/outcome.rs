//! One value that a run is to end with, as `--output-schema` describes it.
//!
//! The model is told the schema with its prompt. What it answers at the end is read as JSON and checked,
//! with nothing bent; a wrong answer is asked for again, with what is wrong with it.

use crate::agent::schema;
use crate::llm::message::{AssistantMessage, Block, StopReason};
use serde_json::Value;

/// How often a wrong answer is asked for again.
pub const RETRIES_MAX: usize = 2;

/// The JSON schema of the value that a run is to end with.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    schema: Value,
}

impl Wanted {
    /// Reads a schema. An error says what in it cannot be checked here.
    pub fn parse(text: &str) -> Result<Self, String> {
        let schema = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        match schema::unsupported(&schema).as_slice() {
            [] => Ok(Self { schema }),
            faults => Err(faults.join("; ")),
        }
    }

    /// What the system prompt says about it.
    pub fn demand(&self) -> String {
        format!(
            "When the work is done, your last answer must be one JSON value and nothing else: no words before or \
             after it. The value must satisfy this JSON schema:\n{}",
            self.schema
        )
    }

    /// The value in an answer, or what is wrong with it.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let text = fenced(answer).unwrap_or(answer).trim();
        let value = serde_json::from_str(text)
            .map_err(|error| format!("the answer is not one JSON value: {error}"))?;
        match schema::faults(&value, &self.schema).as_slice() {
            [] => Ok(value),
            faults => Err(format!("the answer does not satisfy the schema: {}", faults.join("; "))),
        }
    }

    /// What is said to the model about a wrong answer.
    pub fn ask_again(&self, fault: &str) -> String {
        format!("That cannot be used: {fault}. Answer again with one JSON value and nothing else.")
    }
}

/// True if the model itself ended the answer.
pub fn is_whole(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::ToolUse)
}

pub fn text(answer: &AssistantMessage) -> String {
    answer.content.iter().filter_map(Block::as_text).collect()
}

/// What is inside the last fence, where there is one.
fn fenced(text: &str) -> Option<&str> {
    let (before, _) = text.trim_end().rsplit_once("```")?;
    let (_, inside) = before.rsplit_once("```")?;
    let (_language, body) = inside.split_once('\n')?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
