//! Converts the conversation to Bedrock's format: messages of blocks, with tool results in the user's turn.
//!
//! Bedrock rejects blank text and empty messages: blank text is left out, and an empty message gets a
//! placeholder. User and model must alternate: adjacent messages of one role are joined.

use super::family::Family;
use crate::llm::body::Items;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::ImageContent;
use crate::llm::model::Model;
use crate::wire::ids;
use crate::wire::transcript::Transcript;
use crate::wire::transform::{AssistantBlock, CallResult, Part, Turn, transform};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

const EMPTY: &str = "<empty>";

/// Maximum length of a call id, in characters.
const ID_LIMIT: usize = 64;

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<WireBlock<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum WireBlock<'a> {
    Image(Image<'a>),
    ReasoningContent(Reasoning<'a>),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Map<String, Value>>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<WireBlock<'a>>,
        status: &'static str,
    },
    CachePoint(CachePoint),
    #[serde(untagged)]
    Text {
        text: Cow<'a, str>,
    },
}

#[derive(Serialize)]
struct Image<'a> {
    format: &'static str,
    source: ImageSource<'a>,
}

#[derive(Serialize)]
struct ImageSource<'a> {
    bytes: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    RedactedContent(&'a str),
}

/// Marks the end of a part of the request that is kept in the prompt cache.
#[derive(Clone, Copy, Serialize)]
pub struct CachePoint {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CachePoint {
    /// A mark that lasts an hour if `long`, otherwise five minutes.
    pub fn new(long: bool) -> Self {
        Self { r#type: "default", ttl: long.then_some("1h") }
    }
}

/// Writes all messages of the request. `mark` is appended to the last message if it is the user's.
pub fn convert<'a>(
    model: &Model,
    transcript: &Transcript<'a>,
    mark: Option<CachePoint>,
    items: &mut Items<'_>,
) -> Result<(), StreamError> {
    let family = &Family::of(model);
    let mut messages: Vec<WireMessage<'_>> = Vec::new();
    for turn in transform(transcript.context, &transcript.messages, model, &|id| ids::plain(id, ID_LIMIT)) {
        // The last one may be joined with the next.
        items.extend(messages.drain(..messages.len().saturating_sub(1)));
        let (role, content) = match turn {
            Turn::System(_) => continue,
            Turn::User(user) => ("user", said_or_empty(user.parts)?),
            Turn::Results(results) => {
                // Claude rejects images in the results of failed calls, so they follow all results.
                let mut images = Vec::new();
                let mut blocks = Vec::with_capacity(results.len());
                for mut result in results {
                    let taken = family.is_claude().then(|| result.take_error_images()).flatten();
                    if let Some((title, taken)) = taken {
                        images.push(WireBlock::Text { text: Cow::Owned(title) });
                        for image in taken {
                            images.push(WireBlock::Image(Image::new(image)?));
                        }
                    }
                    blocks.push(WireBlock::of_result(result)?);
                }
                blocks.append(&mut images);
                ("user", blocks)
            }
            Turn::Assistant(answer) => {
                let blocks = answer.blocks.into_iter();
                let blocks = blocks.filter_map(|said| WireBlock::of_said(said, family));
                ("assistant", blocks.collect())
            }
        };
        if content.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some(last) if last.role == role => join(last, content),
            _ => messages.push(WireMessage { role, content }),
        }
    }
    if let (Some(mark), Some(last)) = (mark, messages.last_mut())
        && last.role == "user"
    {
        last.content.push(WireBlock::CachePoint(mark));
    }
    items.extend(messages);
    Ok(())
}

/// Appends `content` to a message, unless it holds only placeholders for empty text.
fn join<'a>(message: &mut WireMessage<'a>, content: Vec<WireBlock<'a>>) {
    let says_something = |block: &WireBlock<'_>| !matches!(block, WireBlock::Text { text } if text == EMPTY);
    if content.iter().any(says_something) {
        message.content.extend(content);
    }
}

fn said_or_empty(parts: Vec<Part<'_>>) -> Result<Vec<WireBlock<'_>>, StreamError> {
    let blocks = parts.into_iter().filter_map(WireBlock::of_part);
    let mut blocks: Vec<_> = blocks.collect::<Result<_, _>>()?;
    if blocks.is_empty() {
        blocks.push(WireBlock::Text { text: EMPTY.into() });
    }
    Ok(blocks)
}

impl<'a> WireBlock<'a> {
    /// `None` for blank text.
    fn text(text: &'a str) -> Option<Self> {
        (!text.trim().is_empty()).then_some(Self::Text { text: text.into() })
    }

    fn of_part(part: Part<'a>) -> Option<Result<Self, StreamError>> {
        match part {
            Part::Text(text) => Self::text(text).map(Ok),
            Part::Image(image) => Some(Image::new(image).map(Self::Image)),
        }
    }

    fn of_said(said: AssistantBlock<'a>, family: &Family) -> Option<Self> {
        match said {
            AssistantBlock::Text { text, .. } => Self::text(text),
            AssistantBlock::Thinking { signature, redacted: true, .. } => {
                // Data that is not base64 was not written by Bedrock, and would cause a rejection.
                let sealed = signature
                    .filter(|sealed| BASE64_STANDARD.decode(sealed).is_ok_and(|bytes| !bytes.is_empty()))?;
                Some(Self::ReasoningContent(Reasoning::RedactedContent(sealed)))
            }
            AssistantBlock::Thinking { text, .. } if text.trim().is_empty() => None,
            AssistantBlock::Thinking { text, signature, .. } => {
                let signature = signature.filter(|signature| !signature.trim().is_empty());
                match (family.is_claude(), signature) {
                    // Claude accepts thinking only with its signature.
                    (true, None) => Some(Self::Text { text: text.into() }),
                    (claude, signature) => Some(Self::ReasoningContent(Reasoning::ReasoningText {
                        text,
                        signature: signature.filter(|_| claude),
                    })),
                }
            }
            AssistantBlock::Call(call) => {
                Some(Self::ToolUse { tool_use_id: call.id, name: call.name, input: document(call.arguments) })
            }
        }
    }

    fn of_result(result: CallResult<'a>) -> Result<Self, StreamError> {
        Ok(Self::ToolResult {
            tool_use_id: result.call_id,
            content: said_or_empty(result.parts)?,
            status: match result.is_error {
                true => "error",
                false => "success",
            },
        })
    }
}

impl<'a> Image<'a> {
    fn new(image: &'a ImageContent) -> Result<Self, StreamError> {
        let format = match image.mime_type.as_str() {
            "image/jpeg" | "image/jpg" => "jpeg",
            "image/png" => "png",
            "image/gif" => "gif",
            "image/webp" => "webp",
            other => {
                let message = format!("Unknown image type: {other}");
                return Err(StreamError::new(ErrorKind::Request, message));
            }
        };
        let source = ImageSource { bytes: &image.data };
        Ok(Self { format, source })
    }
}

/// Replaces empty field names, which Bedrock rejects in a JSON document.
fn document(value: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    match has_empty_name(value) {
        true => Cow::Owned(named(value)),
        false => Cow::Borrowed(value),
    }
}

fn has_empty_name(object: &Map<String, Value>) -> bool {
    fn inside(value: &Value) -> bool {
        match value {
            Value::Object(object) => has_empty_name(object),
            Value::Array(items) => items.iter().any(inside),
            _ => false,
        }
    }
    object.iter().any(|(name, value)| name.is_empty() || inside(value))
}

fn named(object: &Map<String, Value>) -> Map<String, Value> {
    fn clean(value: &Value) -> Value {
        match value {
            Value::Object(object) => named(object).into(),
            Value::Array(items) => items.iter().map(clean).collect(),
            other => other.clone(),
        }
    }
    let fields = object.iter().filter(|(name, _)| !name.is_empty());
    fields.map(|(name, value)| (name.clone(), clean(value))).collect()
}
