//! The chunks of a streamed answer, and the error that may end it.

use crate::llm::message::Usage;
use crate::llm::model::Model;
use crate::wire::parse;
use crate::wire::parse::{Count, Flag, Lenient, List, Object, Text};
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Chunk<'a> {
    #[serde(borrow)]
    pub response_id: Text<'a>,
    /// The model that answered; differs from the requested id if that is an alias.
    #[serde(borrow)]
    pub model_version: Text<'a>,
    #[serde(borrow)]
    pub candidates: List<Object<Candidate<'a>>>,
    #[serde(borrow)]
    pub prompt_feedback: Object<Feedback<'a>>,
    pub usage_metadata: Object<RawUsage>,
    pub error: Option<Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Candidate<'a> {
    #[serde(borrow)]
    pub content: Object<Content<'a>>,
    #[serde(borrow)]
    pub finish_reason: Text<'a>,
    #[serde(borrow)]
    pub finish_message: Text<'a>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct Content<'a> {
    #[serde(borrow)]
    pub parts: List<Object<Part<'a>>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Part<'a> {
    #[serde(borrow)]
    pub text: Spoken<'a>,
    /// True if the text is a summary of thinking.
    pub thought: Flag,
    #[serde(borrow)]
    pub thought_signature: Text<'a>,
    #[serde(borrow)]
    pub function_call: Object<FunctionCall<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct FunctionCall<'a> {
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub name: Text<'a>,
    pub args: Option<Value>,
}

/// Why a prompt was blocked.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Feedback<'a> {
    #[serde(borrow)]
    pub block_reason: Text<'a>,
    #[serde(borrow)]
    pub block_reason_message: Text<'a>,
}

/// Text that may be empty, since it can carry a signature.
#[derive(Debug, Default)]
pub struct Spoken<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Lenient<'de> for Spoken<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Spoken<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::read(deserializer)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RawUsage {
    prompt_token_count: Count,
    /// Included in the prompt's count.
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    /// Tokens of results of server-side tools; not included in the prompt's count.
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
}

impl RawUsage {
    /// Converts to [`Usage`]; `None` if there are no counts, as in early chunks.
    pub fn to_usage(&self, model: &Model) -> Option<Usage> {
        let counts = [
            self.prompt_token_count,
            self.candidates_token_count,
            self.thoughts_token_count,
            self.total_token_count,
        ];
        counts.iter().find(|count| count.0.is_some())?;
        let cache_read = self.cached_content_token_count.or_zero();
        let prompt = self.prompt_token_count.or_zero();
        let input =
            prompt.saturating_sub(cache_read).saturating_add(self.tool_use_prompt_token_count.or_zero());
        let thoughts = self.thoughts_token_count.or_zero();
        let output = self.candidates_token_count.or_zero().saturating_add(thoughts);
        let sum = input.saturating_add(cache_read).saturating_add(output);
        let total = self.total_token_count.or_zero();
        let mut usage = Usage {
            input,
            output,
            cache_read,
            reasoning: Some(thoughts),
            total_tokens: if total > 0 { total } else { sum },
            ..Usage::default()
        };
        model.price(&mut usage);
        Some(usage)
    }
}
