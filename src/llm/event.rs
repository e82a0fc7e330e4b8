//! What happens while an answer streams, and the fold that turns it into a message.
//!
//! Events carry only what is new: memory and time are linear in the answer. Whoever needs the answer so
//! far reads it from the [`Fold`] that the stream's handle keeps.

use super::json_stream::PartialJson;
use super::message::{
    AssistantMessage, Block, Extra, StopReason, TextContent, ThinkingContent, ToolCall, Usage,
};
use serde_json::Value;
use std::time::Duration;

/// One step of an answer. `index` is the block's place in the message's content.
///
/// A stream begins with `Start` and ends with exactly one `Done` or `Error`; a failure before the
/// provider answered may be an `Error` alone. A block's events come in the order start, deltas, end;
/// blocks may be open at the same time. A block of text that turns out to have been thinking ends, and the
/// same index begins again as what it was.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantEvent {
    Start,
    TextStart {
        index: usize,
    },
    TextDelta {
        index: usize,
        delta: String,
    },
    TextEnd {
        index: usize,
        signature: Option<String>,
    },
    ThinkingStart {
        index: usize,
    },
    ThinkingDelta {
        index: usize,
        delta: String,
    },
    ThinkingEnd {
        index: usize,
        signature: Option<String>,
        redacted: bool,
    },
    ToolCallStart {
        index: usize,
        id: String,
        name: String,
    },
    /// A piece of the arguments' JSON text.
    ToolCallDelta {
        index: usize,
        delta: String,
    },
    /// The call is complete; what is `Some` here replaces what the start said.
    ToolCallEnd {
        index: usize,
        id: Option<String>,
        name: Option<String>,
        thought_signature: Option<String>,
    },
    /// Facts about the answer as a whole.
    Info(Box<Info>),
    Done {
        reason: StopReason,
    },
    Error(StreamError),
}

impl AssistantEvent {
    pub fn info(info: Info) -> Self {
        Self::Info(Box::new(info))
    }
}

/// Facts that replace earlier ones where they are `Some`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Cumulative, with the cost filled in.
    pub usage: Option<Usage>,
    pub response_id: Option<String>,
    pub response_model: Option<String>,
    pub provider_thinking_level: Option<String>,
    pub raw_stop_reason: Option<String>,
    pub end_turn: Option<bool>,
    /// Tokens of the prompt that were read, and all there are. Not part of the message.
    pub prompt_progress: Option<(u64, u64)>,
    /// Notice to the user about a setting that the server rejected. Not part of the message.
    pub notice: Option<String>,
    /// What is said of blocks beside their own events.
    pub blocks: Vec<BlockInfo>,
    /// Further fields of the message, as the reference stores them.
    pub extra: Extra,
}

/// Facts about one block, which may come after its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockInfo {
    pub index: usize,
    pub thinking_signature: Option<String>,
    /// Namespace of a tool call.
    pub namespace: Option<String>,
}

/// Why a stream failed. The text is what the user reads; the rest is for who decides what comes next.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamError {
    pub kind: ErrorKind,
    pub message: String,
    /// HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// What the server asked for.
    pub retry_after_ms: Option<u64>,
    pub request_id: Option<String>,
    /// Fields that the message of the failed answer keeps, as the reference stores them.
    pub extra: Option<Box<Extra>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user's own abort.
    Aborted,
    /// No key, or the key was refused.
    Auth,
    /// The request could not be made (unknown api, bad model, bad header), or the server calls it invalid.
    Request,
    /// Name lookup, connection, TLS, a body cut short.
    Transport,
    /// One of the two clocks ran out.
    Timeout,
    /// The server answered with an error status or an error inside the stream.
    Provider,
    /// The server sent what the protocol does not allow.
    Protocol,
}

impl StreamError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after_ms: None,
            request_id: None,
            extra: None,
        }
    }

    pub fn aborted() -> Self {
        Self::new(ErrorKind::Aborted, "Request was aborted")
    }
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StreamError {}

/// The answer so far.
pub struct Fold {
    message: AssistantMessage,
    /// One parser for each tool call that is open, by block index.
    arguments: Vec<(usize, PartialJson)>,
}

/// Short: an answer that streams would be repeated with every step of it.
impl std::fmt::Debug for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fold").field("blocks", &self.message.content.len()).finish_non_exhaustive()
    }
}

impl Fold {
    /// `message` is the empty answer: api, provider, model and timestamp.
    pub fn new(message: AssistantMessage) -> Self {
        Self { message, arguments: Vec::new() }
    }

    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The answer, without the room that its texts grew in.
    pub fn into_message(mut self) -> AssistantMessage {
        let content = &mut self.message.content;
        content.shrink_to_fit();
        for block in content {
            match block {
                Block::Text(block) => block.text.shrink_to_fit(),
                Block::Thinking(block) => block.thinking.shrink_to_fit(),
                _ => {}
            }
        }
        self.message
    }

    /// The arguments of an open tool call as far as they are known.
    pub fn open_arguments(&self, index: usize) -> Option<&PartialJson> {
        self.arguments.iter().find(|(at, _)| *at == index).map(|(_, parser)| parser)
    }

    /// Takes one event in. Cost: the size of the event.
    pub fn apply(&mut self, event: &AssistantEvent) {
        match event {
            AssistantEvent::Start => {}
            AssistantEvent::TextStart { index } => self.put(*index, Block::Text(TextContent::default())),
            AssistantEvent::TextDelta { index, delta } => {
                if let Some(Block::Text(block)) = self.message.content.get_mut(*index) {
                    block.text.push_str(delta);
                }
            }
            AssistantEvent::TextEnd { index, signature } => {
                if let Some(Block::Text(block)) = self.message.content.get_mut(*index) {
                    block.text_signature.clone_from(signature);
                }
            }
            AssistantEvent::ThinkingStart { index } => {
                self.put(*index, Block::Thinking(ThinkingContent::default()));
            }
            AssistantEvent::ThinkingDelta { index, delta } => {
                if let Some(Block::Thinking(block)) = self.message.content.get_mut(*index) {
                    block.thinking.push_str(delta);
                }
            }
            AssistantEvent::ThinkingEnd { index, signature, redacted } => {
                if let Some(Block::Thinking(block)) = self.message.content.get_mut(*index) {
                    block.thinking_signature.clone_from(signature);
                    block.redacted = redacted.then_some(true);
                }
            }
            AssistantEvent::ToolCallStart { index, id, name } => {
                let call = ToolCall { id: id.clone(), name: name.clone(), ..ToolCall::default() };
                self.put(*index, Block::ToolCall(Box::new(call)));
                self.arguments.push((*index, PartialJson::new()));
            }
            AssistantEvent::ToolCallDelta { index, delta } => {
                if let Some((_, parser)) = self.arguments.iter_mut().find(|(at, _)| at == index) {
                    parser.push(delta);
                }
            }
            AssistantEvent::ToolCallEnd { index, id, name, thought_signature } => {
                self.end_tool_call(*index, id.as_ref(), name.as_ref(), thought_signature.as_ref());
            }
            AssistantEvent::Info(info) => self.inform(info),
            AssistantEvent::Done { reason } => {
                while let Some(&(index, _)) = self.arguments.first() {
                    self.end_tool_call(index, None, None, None);
                }
                self.message.stop_reason = *reason;
            }
            AssistantEvent::Error(error) => {
                self.keep_open_calls();
                let aborted = error.kind == ErrorKind::Aborted;
                self.message.stop_reason = if aborted { StopReason::Aborted } else { StopReason::Error };
                self.message.error_message = Some(error.message.clone());
                if let Some(extra) = &error.extra {
                    self.message
                        .extra
                        .extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
            }
        }
    }

    fn put(&mut self, index: usize, block: Block) {
        // Protocols number blocks from zero without gaps; a gap would be filled with empty text.
        while self.message.content.len() < index {
            self.message.content.push(Block::Text(TextContent::default()));
        }
        if index == self.message.content.len() {
            self.message.content.push(block);
        } else {
            self.message.content[index] = block;
        }
    }

    fn end_tool_call(
        &mut self,
        index: usize,
        id: Option<&String>,
        name: Option<&String>,
        thought_signature: Option<&String>,
    ) {
        let Some(at) = self.arguments.iter().position(|(open, _)| *open == index) else {
            return;
        };
        let (_, parser) = self.arguments.swap_remove(at);
        if let Some(Block::ToolCall(call)) = self.message.content.get_mut(index) {
            (call.arguments, call.arguments_error) = parser.finish_whole();
            if let Some(id) = id {
                call.id.clone_from(id);
            }
            if let Some(name) = name {
                call.name.clone_from(name);
            }
            call.thought_signature = thought_signature.cloned();
        }
    }

    /// Calls of a failed answer keep what was read of them.
    fn keep_open_calls(&mut self) {
        for (index, parser) in self.arguments.drain(..) {
            if let Some(Block::ToolCall(call)) = self.message.content.get_mut(index) {
                call.arguments = parser.finish().0;
            }
        }
    }

    /// The answer has ended, so long after it was begun.
    pub fn took(&mut self, time: Duration) {
        self.message.duration_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    }

    fn inform(&mut self, info: &Info) {
        let message = &mut self.message;
        if let Some(usage) = &info.usage {
            message.usage.clone_from(usage);
        }
        let set = |to: &mut Option<String>, from: &Option<String>| {
            if from.is_some() {
                to.clone_from(from);
            }
        };
        set(&mut message.response_id, &info.response_id);
        set(&mut message.response_model, &info.response_model);
        set(&mut message.provider_thinking_level, &info.provider_thinking_level);
        set(&mut message.raw_stop_reason, &info.raw_stop_reason);
        message.end_turn = info.end_turn.or(message.end_turn);
        for block in &info.blocks {
            match message.content.get_mut(block.index) {
                Some(Block::Thinking(thinking)) => {
                    set(&mut thinking.thinking_signature, &block.thinking_signature);
                }
                Some(Block::ToolCall(call)) => set(&mut call.namespace, &block.namespace),
                _ => {}
            }
        }
        for (key, value) in info.extra.iter() {
            match (message.extra.get_mut(key), value) {
                // Diagnostics come from several places.
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more.iter().cloned()),
                _ => drop(message.extra.insert(key.clone(), value.clone())),
            }
        }
    }
}
