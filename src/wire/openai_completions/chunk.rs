//! The chunks of a streamed answer, and a complete answer.

use super::reasoning;
use crate::llm::message::Usage;
use crate::wire::billed::Bill;
use crate::wire::parse;
use crate::wire::parse::{Count, First, Lenient, List, Object, Text};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess};
use serde_json::Value;
use std::borrow::Cow;

/// One event of an answer. Fields that most events lack are boxed: the struct is moved once a token.
#[derive(Debug, Default, serde::Deserialize)]
pub struct Chunk<'a> {
    #[serde(default, borrow)]
    pub id: Text<'a>,
    #[serde(default, borrow)]
    pub model: Text<'a>,
    #[serde(default, borrow)]
    pub object: Text<'a>,
    #[serde(default, borrow)]
    pub choices: First<Object<Choice<'a>>>,
    #[serde(default)]
    pub usage: Object<Box<RawUsage>>,
    /// How much of the prompt llama.cpp has processed.
    #[serde(default)]
    pub prompt_progress: Object<Box<PromptProgress>>,
    #[serde(default)]
    pub error: Option<Box<Value>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct PromptProgress {
    pub processed: Count,
    pub total: Count,
}

#[derive(Debug, Default, serde::Deserialize)]
pub struct Choice<'a> {
    #[serde(default, borrow)]
    pub delta: Object<Delta<'a>>,
    /// The complete answer of a server that does not stream.
    #[serde(default, borrow)]
    pub message: Object<Box<Delta<'a>>>,
    #[serde(default, borrow)]
    pub finish_reason: Text<'a>,
    /// Some servers report usage here.
    #[serde(default)]
    pub usage: Object<Box<RawUsage>>,
}

#[derive(Debug, Default, serde::Deserialize)]
pub struct Delta<'a> {
    #[serde(default, borrow)]
    pub content: Content<'a>,
    #[serde(default, borrow)]
    pub reasoning_content: Text<'a>,
    #[serde(default, borrow)]
    pub reasoning: Text<'a>,
    #[serde(default, borrow)]
    pub reasoning_text: Text<'a>,
    #[serde(default, borrow)]
    pub tool_calls: List<Object<CallDelta<'a>>>,
    #[serde(default, borrow)]
    pub reasoning_details: List<reasoning::Piece<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct CallDelta<'a> {
    pub index: Count,
    #[serde(borrow)]
    pub id: Text<'a>,
    #[serde(borrow)]
    pub function: Object<FunctionDelta<'a>>,
    #[serde(borrow)]
    pub custom: Object<CustomDelta<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub arguments: Arguments<'a>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct CustomDelta<'a> {
    #[serde(borrow)]
    pub name: Text<'a>,
    #[serde(borrow)]
    pub input: Text<'a>,
}

/// Text, or a list of text and thinking parts.
#[derive(Debug, Default)]
pub enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct ContentPart<'a> {
    #[serde(borrow)]
    pub text: Text<'a>,
    /// A list of parts, or text.
    pub thinking: Option<Value>,
}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        let parts = List::<ListedPart<'de>>::list(list)?;
        let parts = parts.0.into_iter().filter_map(|part| part.0);
        Ok(Self::Parts(parts.collect()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::read(deserializer)
    }
}

/// A content part, or its text.
#[derive(Debug, Default)]
struct ListedPart<'a>(Option<ContentPart<'a>>);

impl<'de: 'a, 'a> Lenient<'de> for ListedPart<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(ContentPart { text: Text::text(text), thinking: None }))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        Ok(Self(Object::object(object)?.0))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ListedPart<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::read(deserializer)
    }
}

impl ContentPart<'_> {
    /// The part's thinking as text.
    pub fn thinking_text(&self) -> String {
        match &self.thinking {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                texts.collect()
            }
            _ => String::new(),
        }
    }
}

/// Arguments as JSON text. Some servers send a JSON object instead, which is converted to text.
#[derive(Debug, Default)]
pub struct Arguments<'a>(pub Option<Cow<'a, str>>);

impl<'de: 'a, 'a> Lenient<'de> for Arguments<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text).filter(|text| !text.is_empty()))
    }

    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let object = Object::<serde_json::Map<String, Value>>::object(object)?;
        let text = serde_json::to_string(&object.0).ok();
        Ok(Self(text.map(Cow::Owned)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::read(deserializer)
    }
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct RawUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    #[serde(alias = "prompt_token_details")]
    prompt_tokens_details: Object<PromptDetails>,
    completion_tokens_details: Object<CompletionDetails>,
    prompt_cache_hit_tokens: Count,
    #[serde(alias = "num_cached_tokens")]
    cached_tokens: Count,
    cost: Value,
    is_byok: Value,
    cost_details: Value,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl RawUsage {
    /// The cost of the answer as reported by the server.
    pub fn bill(&self) -> Bill<'_> {
        Bill { cost: &self.cost, is_byok: &self.is_byok, cost_details: &self.cost_details }
    }

    /// Converts to [`Usage`]. Cached tokens are included in the prompt's count, and each vendor reports them
    /// in another field; thinking tokens are included in the answer's.
    pub fn to_usage(&self) -> Usage {
        let details = self.prompt_tokens_details.0.as_ref();
        let cached = details.and_then(|details| details.cached_tokens.0);
        let cache_read =
            cached.or(self.prompt_cache_hit_tokens.0).or(self.cached_tokens.0).unwrap_or_default();
        let cache_write = details.map_or(0, |details| details.cache_write_tokens.or_zero());
        let prompt = self.prompt_tokens.or_zero();
        let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
        let output = self.completion_tokens.or_zero();
        let thinking = self.completion_tokens_details.0.as_ref();
        let parts = [input, output, cache_read, cache_write];
        Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning: Some(thinking.map_or(0, |details| details.reasoning_tokens.or_zero())),
            total_tokens: parts.into_iter().fold(0, u64::saturating_add),
            ..Usage::default()
        }
    }
}
