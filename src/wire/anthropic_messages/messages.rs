//! Converts the conversation to Anthropic's format: messages of blocks, with tool results in the user's turn.

use super::compat::Compat;
use super::tools::{self, WireTool};
use crate::llm::body::{CacheControl, Items};
use crate::llm::event::StreamError;
use crate::llm::message::SystemMessage;
use crate::llm::model::Model;
use crate::wire::ids;
use crate::wire::transcript::{Transcript, update_text};
use crate::wire::transform::{Assistant, AssistantBlock, CallResult, Part, Turn, text_of, transform};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

const SEE_IMAGE: &str = "(see attached image)";

/// Maximum length of a call id, in characters.
const ID_LIMIT: usize = 64;

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<WireBlock<'a>>,
    /// The effort, in a message that has no other content.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Clone, Copy, Serialize)]
pub struct OutputConfig<'a> {
    pub effort: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockKind<'a> {
    Text { text: Cow<'a, str> },
    Image { source: ImageSource<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: Cow<'a, str>, name: Cow<'a, str>, input: &'a Map<String, Value> },
    ToolResult { tool_use_id: Cow<'a, str>, content: ResultContent<'a>, is_error: bool },
    ToolRemoval { tool: ToolReference<'a> },
    ToolAddition { tool: ToolDefinition<'a> },
}

#[derive(Serialize)]
struct WireBlock<'a> {
    #[serde(flatten)]
    kind: BlockKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct ImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(String),
    Blocks(Vec<WireBlock<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "tool_reference")]
struct ToolReference<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "tool_definition")]
struct ToolDefinition<'a> {
    definition: WireTool<'a>,
}

/// Writes all messages of the request. `tool_changes`: tools are added and removed inside the conversation.
/// `effort`: the effort to send inside the conversation.
pub fn convert<'a>(
    model: &Model,
    transcript: &Transcript<'a>,
    compat: &Compat<'_>,
    tool_changes: bool,
    mark: Option<CacheControl>,
    effort: Option<&'a str>,
    items: &mut Items<'_>,
) -> Result<(), StreamError> {
    let mut messages = Vec::new();
    // A system message may come neither between calls and their results nor before the user message that it
    // belongs to, so all are held until the next answer.
    let mut held = Vec::new();
    for turn in transform(transcript.context, &transcript.messages, model, &|id| ids::plain(id, ID_LIMIT)) {
        // The last one may get the mark.
        items.extend(messages.drain(..messages.len().saturating_sub(1)));
        match turn {
            Turn::System(system) => held.extend(system_message(system, tool_changes.then_some(compat))?),
            Turn::User(user) => {
                let blocks = user.parts.into_iter().filter_map(WireBlock::of_part);
                messages.extend(WireMessage::new("user", blocks.collect()));
            }
            Turn::Results(results) => {
                // Images of failed calls are rejected in results, so they follow all results.
                let mut images = Vec::new();
                let results = results.into_iter().map(|mut result| {
                    if let Some((title, taken)) = result.take_error_images() {
                        images.push(WireBlock::text(title));
                        images.extend(taken.into_iter().map(Part::Image).filter_map(WireBlock::of_part));
                    }
                    WireBlock::of_result(result)
                });
                let mut blocks: Vec<WireBlock<'_>> = results.collect();
                blocks.append(&mut images);
                messages.extend(WireMessage::new("user", blocks));
            }
            Turn::Assistant(answer) => {
                let past_effort = effort.is_some().then(|| past_effort(&answer, model)).flatten();
                let blocks = answer.blocks.into_iter();
                let blocks = blocks.filter_map(|said| WireBlock::of_said(said, compat));
                let message = WireMessage::new("assistant", blocks.collect());
                if message.is_some() {
                    messages.append(&mut held);
                    messages.extend(past_effort.map(WireMessage::effort));
                }
                messages.extend(message);
            }
        }
    }
    messages.append(&mut held);
    if let (Some(mark), Some(last)) = (mark, messages.last_mut())
        && last.role != "assistant"
        && let Some(block) = last.content.last_mut()
    {
        block.cache_control = Some(mark);
    }
    messages.extend(effort.map(WireMessage::effort));
    items.extend(messages);
    Ok(())
}

impl<'a> WireMessage<'a> {
    /// `None` for a message without content, which the server would reject.
    fn new(role: &'static str, content: Vec<WireBlock<'a>>) -> Option<Self> {
        (!content.is_empty()).then_some(Self { role, content, output_config: None })
    }

    fn effort(effort: &'a str) -> Self {
        Self { role: "system", content: Vec::new(), output_config: Some(OutputConfig { effort }) }
    }
}

impl<'a> WireBlock<'a> {
    fn new(kind: BlockKind<'a>) -> Self {
        Self { kind, cache_control: None }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(BlockKind::Text { text: text.into() })
    }

    /// `None` for blank text, which the server would reject.
    fn of_part(part: Part<'a>) -> Option<Self> {
        match part {
            Part::Text(text) if text.trim().is_empty() => None,
            Part::Text(text) => Some(Self::text(text)),
            Part::Image(image) => Some(Self::new(BlockKind::Image {
                source: ImageSource { media_type: &image.mime_type, data: &image.data },
            })),
        }
    }

    fn of_said(said: AssistantBlock<'a>, compat: &Compat<'_>) -> Option<Self> {
        let blank = |text: &str| text.trim().is_empty();
        match said {
            AssistantBlock::Text { text, .. } => (!blank(text)).then(|| Self::text(text)),
            AssistantBlock::Thinking { signature, redacted: true, .. } => {
                let data = signature?;
                Some(Self::new(BlockKind::RedactedThinking { data }))
            }
            AssistantBlock::Thinking { text, signature, .. } => {
                match signature.filter(|signature| !blank(signature)) {
                    Some(signature) => Some(Self::new(BlockKind::Thinking { thinking: text, signature })),
                    None if blank(text) => None,
                    None if compat.allow_empty_signature => {
                        Some(Self::new(BlockKind::Thinking { thinking: text, signature: "" }))
                    }
                    None => Some(Self::text(text)),
                }
            }
            AssistantBlock::Call(call) => {
                Some(Self::new(BlockKind::ToolUse { id: call.id, name: call.name, input: call.arguments }))
            }
        }
    }

    fn of_result(result: CallResult<'a>) -> Self {
        let has_image = result.parts.iter().any(|p| matches!(p, Part::Image(_)));
        let content = if has_image {
            let parts = result.parts.into_iter();
            let mut blocks: Vec<Self> = parts.filter_map(Self::of_part).collect();
            if !blocks.iter().any(|b| matches!(b.kind, BlockKind::Text { .. })) {
                blocks.insert(0, Self::text(SEE_IMAGE));
            }
            ResultContent::Blocks(blocks)
        } else {
            ResultContent::Text(text_of(&result.parts))
        };
        Self::new(BlockKind::ToolResult { tool_use_id: result.call_id, content, is_error: result.is_error })
    }
}

/// A system message inside the conversation; `None` if it is empty. `tools` is set if it also adds and
/// removes tools.
fn system_message<'a>(
    system: &'a SystemMessage,
    tools: Option<&Compat<'_>>,
) -> Result<Option<WireMessage<'a>>, StreamError> {
    let mut blocks = Vec::new();
    let text = update_text(system);
    if !text.is_empty() {
        blocks.push(WireBlock::text(text));
    }
    if let Some(compat) = tools {
        // A new definition replaces the old one.
        let again = |name: &str| system.tools_added.iter().any(|tool| tool.name == name);
        let removed = system.tools_removed.iter().filter(|tool| !again(&tool.name)).map(|tool| {
            let name = &tool.name;
            let tool = ToolReference { name };
            WireBlock::new(BlockKind::ToolRemoval { tool })
        });
        blocks.extend(removed);
        for definition in tools::convert_all(&system.tools_added, compat, None)? {
            let tool = ToolDefinition { definition };
            blocks.push(WireBlock::new(BlockKind::ToolAddition { tool }));
        }
    }
    Ok(WireMessage::new("system", blocks))
}

/// The effort that an earlier answer of this provider was requested with.
fn past_effort<'a>(answer: &Assistant<'a>, model: &Model) -> Option<&'a str> {
    let message = answer.message;
    if message.api != model.api || message.provider != model.provider {
        return None;
    }
    let effort = message.provider_thinking_level.as_deref()?;
    ["low", "medium", "high", "xhigh", "max"].contains(&effort).then_some(effort)
}
