//! Messages between the user, the model and the tools.
//!
//! The JSON format is that of the reference, field for field; unknown fields are kept in `extra` and written
//! back. Timestamps are Unix milliseconds.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

/// Unknown fields, such as those of a newer version, which are written back. One word in size if empty, since
/// every block contains an `Extra`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(Option<Box<Map<String, Value>>>);

/// A message for a provider. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    System(Arc<SystemMessage>),
    User(Arc<UserMessage>),
    Assistant(Arc<AssistantMessage>),
    ToolResult(Arc<ToolResultMessage>),
}

/// One block of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Block {
    Text(TextContent),
    Thinking(ThinkingContent),
    Image(ImageContent),
    /// Boxed, since each element of a list takes the size of the largest variant.
    ToolCall(Box<ToolCall>),
    /// An unknown kind of block: kept, but never sent.
    #[serde(untagged)]
    Other(Value),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    pub thinking: String,
    /// Opaque data with which the provider can continue from this block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// True if the text was withheld; the encrypted payload is in `thinking_signature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Base64, standard alphabet with padding.
    pub data: String,
    pub mime_type: String,
    #[serde(flatten)]
    pub extra: Extra,
}

impl ImageContent {
    /// The image as a data URL.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
    /// Why the arguments are not a JSON object, with their text. Such a call must not run; `arguments` is
    /// empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Plain text or blocks; both occur in files and in clients' requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Blocks(#[serde(deserialize_with = "exact")] Vec<Block>),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    #[serde(default)]
    pub content: Content,
    /// Named parts of the prompt, in order; `null` removes an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<ToolSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<ToolReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool as declared to the model. `parameters` is a JSON schema of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub parameters: Value,
    /// `false`, or the reference's constrained sampling configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolReference {
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    pub content: Content,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    #[serde(deserialize_with = "exact")]
    pub content: Vec<Block>,
    pub api: String,
    pub provider: String,
    pub model: String,
    #[serde(default)]
    pub usage: Usage,
    pub stop_reason: StopReason,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that answered, if it differs from the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_turn: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Box<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Box<Value>>,
    /// Milliseconds from `timestamp` to the end of the answer, by a monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The thinking level that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<Box<str>>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    pub tool_call_id: String,
    pub tool_name: String,
    #[serde(default, deserialize_with = "exact")]
    pub content: Vec<Block>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Usage of models inside the tool; not part of the conversation's own usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default)]
    pub is_error: bool,
    /// Running time of the tool in milliseconds, by a monotonic clock; `None` if the call did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Why a message ended. `Pending` is used only during streaming and is never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    #[default]
    Pending,
    Stop,
    Length,
    ToolUse,
    Error,
    Aborted,
    Deferred,
}

/// Tokens of one answer, and their cost in US dollars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    #[serde(default, with = "number::count")]
    pub input: u64,
    #[serde(default, with = "number::count")]
    pub output: u64,
    #[serde(default, with = "number::count")]
    pub cache_read: u64,
    #[serde(default, with = "number::count")]
    pub cache_write: u64,
    /// The part of `cache_write` that is cached for an hour.
    #[serde(default, rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// The part of `output` that was thinking, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    #[serde(default, with = "number::count")]
    pub total_tokens: u64,
    #[serde(default)]
    pub cost: UsageCost,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageCost {
    #[serde(default, with = "number::amount")]
    pub input: f64,
    #[serde(default, with = "number::amount")]
    pub output: f64,
    #[serde(default, with = "number::amount")]
    pub cache_read: f64,
    #[serde(default, with = "number::amount")]
    pub cache_write: f64,
    #[serde(default, with = "number::amount")]
    pub total: f64,
    /// True if `total` is the provider's bill, not a sum of catalogue prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}

/// Reads a list without spare capacity: most lists have one block, but a vector would reserve room for four.
fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    let mut blocks = Vec::deserialize(deserializer)?;
    blocks.shrink_to_fit();
    Ok(blocks)
}

impl Extra {
    pub const fn new() -> Self {
        Self(None)
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Box::new(fields)))
    }
}

impl FromIterator<(String, Value)> for Extra {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        Map::from_iter(fields).into()
    }
}

impl IntoIterator for Extra {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map_or_else(Map::new, |fields| *fields).into_iter()
    }
}

impl Deref for Extra {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Extra {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.get_or_insert_default()
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&**self)
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Content {
    /// The text of all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => text_of(blocks),
        }
    }

    /// The content as blocks. Plain text becomes one text block, or none if it is empty.
    pub fn to_blocks(&self) -> Vec<Block> {
        match self {
            Self::Text(text) if text.is_empty() => Vec::new(),
            Self::Text(text) => vec![Block::text(text)],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent {
            data: data.into(),
            mime_type: mime_type.into(),
            ..ImageContent::default()
        })
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

/// The text blocks of `blocks`, joined by newlines.
pub fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
}

impl Message {
    pub fn timestamp(&self) -> u64 {
        match self {
            Self::System(message) => message.timestamp,
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
        }
    }
}

impl SystemMessage {
    /// The message as a prompt: its content, then its sections, separated by empty lines.
    pub fn prompt(&self) -> String {
        let content = self.content.text();
        let sections = self.sections.iter().flatten();
        let sections = sections.filter_map(|(_, text)| text.as_str());
        let parts = std::iter::once(content.as_str()).chain(sections);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

impl UserMessage {
    pub fn new(content: Content) -> Self {
        Self { content, timestamp: now_ms(), extra: Extra::new() }
    }
}

impl AssistantMessage {
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Block::as_tool_call)
    }

    /// True if the answer ended in an error or was aborted: it is stored, but never sent again.
    pub fn is_failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

/// Unix time in milliseconds.
pub fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Numbers in JavaScript's format: whole numbers have no fraction, regardless of the type.
pub mod number {
    use serde::{Deserialize, Deserializer, Serializer};

    pub mod count {
        use super::*;

        pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u64(*value)
        }

        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
            Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0) as u64)
        }
    }

    pub mod amount {
        use super::*;

        #[allow(clippy::cast_possible_truncation)] // checked to be a small whole number
        pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
            if value.fract() == 0.0 && value.abs() < 1e15 {
                serializer.serialize_i64(*value as i64)
            } else {
                serializer.serialize_f64(*value)
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
            Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(json: &str) {
        let message: Message = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
    }

    #[test]
    fn json_is_written_back_as_it_was_read() {
        round_trip(
            r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"bash","arguments":{},"argumentsError":"e\n\nReceived arguments:\n{","thoughtSignature":"s"}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0.5,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5,"totalFromProvider":false}},"stopReason":"toolUse","timestamp":6,"responseId":"r","rawStopReason":"tool_calls","durationMs":7,"thinkingLevel":"off"}"#,
        );
        round_trip(
            r#"{"role":"toolResult","toolCallId":"1","toolName":"codemode","content":[{"type":"text","text":"x"}],"details":{},"isError":false,"durationMs":27,"timestamp":7,"nestedCalls":{"calls":[{"id":"1/1","name":"bash","status":"ok","arguments":{"command":"ls"},"durationMs":36}],"complete":true}}"#,
        );
        round_trip(r#"{"role":"user","content":"hi","timestamp":5}"#);
        round_trip(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}],"timestamp":5,"later":{"x":[1]}}"#,
        );
        round_trip(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},{"type":"hologram","z":1,"a":2},{"type":"toolCall","id":"1","name":"bash","arguments":{"b":1,"a":2}}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0.5,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}},"stopReason":"toolUse","timestamp":6}"#,
        );
        round_trip(
            r#"{"role":"toolResult","toolCallId":"1","toolName":"bash","content":[{"type":"text","text":"x"}],"details":{},"isError":false,"timestamp":7}"#,
        );
        round_trip(
            r#"{"role":"system","content":"","sections":{"preamble":"p","cwd":null},"toolsAdded":[{"name":"read","description":"d","parameters":{"type":"object"}}],"timestamp":8}"#,
        );
    }
}
