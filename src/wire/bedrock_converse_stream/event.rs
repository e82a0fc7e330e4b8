//! The events of a stream.

use crate::wire::parse::{Count, List, Object, Text};
use serde::Deserialize;

/// The data of any event; each type uses a few of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event<'a> {
    #[serde(borrow)]
    pub role: Text<'a>,
    pub content_block_index: Count,
    #[serde(borrow)]
    pub start: Object<Start<'a>>,
    #[serde(borrow)]
    pub delta: Object<Delta<'a>>,
    #[serde(borrow)]
    pub stop_reason: Text<'a>,
    pub usage: Object<RawUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Start<'a> {
    #[serde(borrow)]
    pub tool_use: Object<ToolUse<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ToolUse<'a> {
    #[serde(borrow)]
    pub tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    /// A piece of the arguments' JSON text.
    #[serde(borrow)]
    pub input: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Delta<'a> {
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub tool_use: Object<ToolUse<'a>>,
    #[serde(borrow)]
    pub reasoning_content: Object<Reasoning<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Reasoning<'a> {
    #[serde(borrow)]
    pub text: Text<'a>,
    #[serde(borrow)]
    pub signature: Text<'a>,
    /// Base64.
    #[serde(borrow)]
    pub redacted_content: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RawUsage {
    pub input_tokens: Count,
    pub output_tokens: Count,
    pub total_tokens: Count,
    pub cache_read_input_tokens: Count,
    pub cache_write_input_tokens: Count,
    /// `None` if the server does not report how long cached tokens are kept.
    pub cache_details: Option<List<CacheDetail>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CacheDetail {
    pub ttl: Option<serde_json::Value>,
    pub input_tokens: Count,
}
