//! The events of a stream.

use crate::llm::message::Usage;
use crate::llm::model::Model;
use crate::wire::parse::{Count, Flag, Object, Text};
use serde_json::Value;

/// An event of any type; each type uses a few of the fields.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event<'a> {
    #[serde(borrow)]
    pub r#type: Text<'a>,
    /// The block's index in the answer.
    pub content_index: Count,
    #[serde(borrow)]
    pub delta: Text<'a>,
    /// The complete content of a block, at its end.
    #[serde(borrow)]
    pub content: Text<'a>,
    #[serde(borrow)]
    pub content_signature: Text<'a>,
    pub redacted: Flag,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub tool_name: Text<'a>,
    #[serde(borrow)]
    pub tool_call: Object<RawCall<'a>>,
    #[serde(borrow)]
    pub reason: Text<'a>,
    pub usage: Option<Value>,
    #[serde(borrow)]
    pub error_message: Text<'a>,
    #[serde(borrow)]
    pub response_id: Text<'a>,
    #[serde(borrow)]
    pub provider_thinking_level: Text<'a>,
    /// Changes to the request by a policy of the gateway.
    pub rewrite: Object<serde_json::Map<String, Value>>,
    /// An error outside any event.
    pub error: Option<Value>,
}

/// A call in the format of stored messages.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RawCall<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    pub arguments: Object<serde_json::Map<String, Value>>,
    #[serde(borrow)]
    pub thought_signature: Text<'a>,
}

/// Usage in the format of stored messages. The gateway's prices are used, otherwise those of the catalogue.
pub fn usage(value: &Value, model: &Model) -> Option<Usage> {
    if !value.is_object() {
        return None;
    }
    let mut usage: Usage = serde_json::from_value(value.clone()).ok()?;
    if !value["cost"].is_object() {
        model.price(&mut usage);
    }
    Some(usage)
}
