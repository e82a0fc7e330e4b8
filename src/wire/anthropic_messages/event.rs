//! The events of a stream, and a complete message.

use crate::wire::billed::Bill;
use crate::wire::parse::{Count, List, Object, Text};
use serde::Deserialize;
use serde_json::{Map, Value};

/// An event of any type; each type uses a few of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event<'a> {
    #[serde(borrow)]
    pub r#type: Text<'a>,
    pub index: Count,
    #[serde(borrow)]
    pub delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub content_block: Object<ContentBlock<'a>>,
    #[serde(borrow)]
    pub message: Object<Message<'a>>,
    pub usage: Object<RawUsage>,
    pub input_transformations: List<Value>,
}

/// A change of a block or of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub r#type: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub thinking: Text<'a>,
    #[serde(borrow)]
    pub signature: Text<'a>,
    #[serde(borrow)]
    pub partial_json: Text<'a>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
    pub stop_details: Object<StopDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StopDetails {
    pub explanation: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContentBlock<'a> {
    #[serde(borrow)]
    pub r#type: Text<'a>,
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub thinking: Text<'a>,
    #[serde(borrow)]
    pub signature: Text<'a>,
    /// Encrypted thinking.
    #[serde(borrow)]
    pub data: Text<'a>,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    pub input: Object<Map<String, Value>>,
}

/// The start of a streamed message, or a complete message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub model: Text<'a>,
    pub usage: Object<RawUsage>,
    #[serde(borrow)]
    pub content: List<Object<ContentBlock<'a>>>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
    pub stop_details: Object<StopDetails>,
    pub input_transformations: List<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawUsage {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub cache_read_input_tokens: Count,
    pub cache_creation_input_tokens: Count,
    pub cache_creation: Object<CacheCreation>,
    pub output_tokens_details: Object<OutputDetails>,
    cost: Value,
    is_byok: Value,
    cost_details: Value,
}

impl RawUsage {
    /// The cost of the answer as reported by the server.
    pub fn bill(&self) -> Bill<'_> {
        Bill { cost: &self.cost, is_byok: &self.is_byok, cost_details: &self.cost_details }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    pub ephemeral_1h_input_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    pub thinking_tokens: Count,
}
