//! Whether the result of a handler has the form that its event takes. What it means is decided in the runtime.

use crate::agent::message::AgentMessage;
use crate::llm::message::{Block, Usage};
use crate::runtime::hook::custom_message;
use serde::Deserialize;
use serde_json::Value;

/// Looks at a field of the result of an event.
type Check = fn(&Value, &Value) -> bool;

/// Events, a field of their results, and what it has to be. Null stands for no field.
const FIELDS: &[(&[&str], &str, &str, Check)] = &[
    (&["input"], "action", "\"continue\", \"transform\" or \"handled\"", |_, action| {
        ["continue", "transform", "handled"].iter().any(|known| action == known)
    }),
    (&["input"], "text", A_TEXT, is_text),
    (&["input"], "images", "a list of blocks", are_blocks),
    (&["before_agent_start"], "message", "an object with \"customType\" and \"content\"", |_, message| {
        message.is_object() && custom_message(message.clone()).is_some()
    }),
    (&["before_agent_start"], "systemPrompt", A_TEXT, is_text),
    (&["before_agent_start"], "systemPromptOptions", AN_OBJECT, is_object),
    (&["message_end"], "message", "a message of the role that it had", |event, message| {
        message["role"] == event["message"]["role"] && is_message(message)
    }),
    (&["context", "context_with_system"], "messages", "a list of messages", |_, messages| {
        messages.as_array().is_some_and(|messages| messages.iter().all(is_message))
    }),
    (&["tool_result"], "content", "a list of blocks", are_blocks),
    (&["tool_result"], "usage", AN_OBJECT, |_, usage| Usage::deserialize(usage).is_ok()),
    (&["before_provider_request"], "payload", AN_OBJECT, is_object),
    (&["session_before_switch", "session_before_fork"], "cancel", "", |_, _| true),
    (&["session_before_compact"], "compaction", "an object with a \"summary\"", |_, made| {
        made["summary"].is_string()
    }),
    (&["session_before_tree"], "summary", "an object with a \"summary\"", |_, made| {
        made["summary"].is_string()
    }),
    (&["session_before_tree"], "customInstructions", A_TEXT, is_text),
    (&["session_before_tree"], "label", A_TEXT, is_text),
    (&["resources_discover"], "skillPaths", A_LIST, are_texts),
    (&["resources_discover"], "promptPaths", A_LIST, are_texts),
    (&["resources_discover"], "themePaths", A_LIST, are_texts),
    (&["cache_warming_decision"], "action", "\"warm\" or \"stop\"", |_, action| {
        action == "warm" || action == "stop"
    }),
    (&["project_trust"], "trusted", "\"yes\", \"no\" or \"undecided\"", |_, trusted| {
        ["yes", "no", "undecided"].iter().any(|known| trusted == known)
    }),
    (&["terminal_input"], "data", A_TEXT, is_text),
];

const A_TEXT: &str = "a text";
const AN_OBJECT: &str = "an object";
const A_LIST: &str = "a list of texts";

/// What is wrong with the `result` of a handler of `event`. That of `tool_call` and of `user_bash`, where a wrong one
/// counts as a failure, is looked at where it is decided on.
pub fn fault(event: &Value, result: &Value) -> Option<String> {
    let name = event["type"].as_str().unwrap_or_default();
    // An empty list is how some languages write an empty object.
    let is_empty = result.as_array().map_or(result.is_null(), Vec::is_empty);
    let rows = || FIELDS.iter().filter(|(events, ..)| events.contains(&name));
    if is_empty || rows().next().is_none() {
        return None;
    }
    if !result.is_object() {
        return Some("it must be an object".to_owned());
    }
    let wrong =
        rows().find(|(_, field, _, check)| !result[*field].is_null() && !check(event, &result[*field]));
    wrong.map(|(_, field, what, _)| format!("\"{field}\" must be {what}"))
}

fn is_text(_: &Value, value: &Value) -> bool {
    value.is_string()
}

fn is_object(_: &Value, value: &Value) -> bool {
    value.is_object()
}

fn are_texts(_: &Value, value: &Value) -> bool {
    value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))
}

fn are_blocks(_: &Value, value: &Value) -> bool {
    let is_known = |block: &Block| !matches!(block, Block::Other(_));
    Vec::<Block>::deserialize(value).is_ok_and(|blocks| blocks.iter().all(is_known))
}

/// True for a message that a request can hold, and for one of a role that only newer versions know.
fn is_message(value: &Value) -> bool {
    let is_known =
        ["system", "user", "assistant", "toolResult", "custom"].iter().any(|role| value["role"] == *role);
    value["role"].is_string()
        && AgentMessage::deserialize(value)
            .is_ok_and(|message| !is_known || !matches!(message, AgentMessage::Unknown(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn a_result_of_another_form_has_a_fault() {
        let message = || json!({"role": "user", "content": "x", "timestamp": 1});
        let rows = [
            ("input", json!(null), ""),
            ("input", json!([]), ""),
            ("input", json!({"action": "transform", "text": "x", "images": null, "more": 1}), ""),
            ("input", json!({"action": "drop"}), "\"action\" must be"),
            ("input", json!({"action": "transform", "text": 5}), "\"text\" must be a text"),
            ("input", json!("handled"), "must be an object"),
            ("turn_start", json!(true), ""),
            ("session_before_fork", json!(true), "must be an object"),
            ("turn_start", json!({"anything": 1}), ""),
            ("context", json!({"messages": [message()]}), ""),
            ("context", json!({"messages": [{"role": "newer", "x": 1}]}), ""),
            ("context", json!({"messages": {}}), "a list of messages"),
            ("context", json!({"messages": [{"role": "user", "content": 5}]}), "a list of messages"),
            ("message_end", json!({"message": message()}), ""),
            ("message_end", json!({"message": {"role": "assistant", "content": []}}), "the role that it had"),
            ("tool_result", json!({"content": [{"type": "text", "text": "x"}], "details": 5}), ""),
            ("tool_result", json!({"content": "x"}), "a list of blocks"),
            ("tool_result", json!({"content": [{"type": "video"}]}), "a list of blocks"),
            ("before_agent_start", json!({"message": {"content": "x"}}), "customType"),
            ("before_agent_start", json!({"message": {"customType": "t", "content": "x"}}), ""),
            ("before_agent_start", json!({"systemPrompt": ["x"]}), "\"systemPrompt\" must be"),
            ("before_provider_request", json!({"payload": "x"}), "\"payload\" must be"),
            ("session_before_switch", json!({"cancel": 1}), ""),
            ("session_before_compact", json!({"compaction": "x"}), "\"compaction\" must be"),
            ("resources_discover", json!({"skillPaths": "x"}), "a list of texts"),
            ("tool_call", json!("deny"), ""),
        ];
        for (event, result, expected) in rows {
            let fault = fault(&json!({"type": event, "message": {"role": "user"}}), &result);
            let is_right = match (&fault, expected) {
                (None, "") => true,
                (Some(fault), part) => !part.is_empty() && fault.contains(part),
                _ => false,
            };
            assert!(is_right, "{event} {result}: {fault:?}");
        }
    }
}
