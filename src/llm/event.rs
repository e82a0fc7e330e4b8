//! Events of a streamed answer, and the [`Fold`] that builds a message from them.
//!
//! An event carries only new content, so that memory and time are linear in the answer. The answer so far is
//! in the [`Fold`] of the stream's handle.

use super::json_stream::PartialJson;
use super::message::{
    AssistantMessage, Block, Extra, StopReason, TextContent, ThinkingContent, ToolCall, Usage,
};
use serde_json::Value;
use std::time::Duration;

/// One event of an answer. `index` is the position of a block in the message's content.
///
/// A stream begins with `Start` and ends with exactly one `Done` or `Error`; a failure before the provider
/// answers may be an `Error` alone. The events of a block are start, deltas, end; several blocks may be open
/// at a time. A text block that turns out to be thinking ends, and a thinking block begins at its index.
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
    /// The end of a tool call. A field that is `Some` replaces the value from the start event.
    ToolCallEnd {
        index: usize,
        id: Option<String>,
        name: Option<String>,
        thought_signature: Option<String>,
    },
    /// Information about the answer as a whole.
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

/// Information about an answer. A field that is `Some` replaces an earlier value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Total usage so far, with its cost.
    pub usage: Option<Usage>,
    pub response_id: Option<String>,
    pub response_model: Option<String>,
    pub provider_thinking_level: Option<String>,
    pub raw_stop_reason: Option<String>,
    pub end_turn: Option<bool>,
    /// Tokens of the prompt that the server has processed, and the total. Not part of the message.
    pub prompt_progress: Option<(u64, u64)>,
    /// Notice to the user about a setting that the server rejected. Not part of the message.
    pub notice: Option<String>,
    /// Information about single blocks.
    pub blocks: Vec<BlockInfo>,
    /// Additional fields of the message, in the reference's format.
    pub extra: Extra,
}

/// Information about one block, which may arrive after the block's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockInfo {
    pub index: usize,
    pub thinking_signature: Option<String>,
    /// Namespace of a tool call.
    pub namespace: Option<String>,
}

/// Why a stream failed. `message` is for the user; the other fields are for deciding on a retry.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamError {
    pub kind: ErrorKind,
    pub message: String,
    /// HTTP status, if the server answered.
    pub status: Option<u16>,
    /// Wait before a retry that the server requested, in milliseconds.
    pub retry_after_ms: Option<u64>,
    pub request_id: Option<String>,
    /// Fields to store in the message of the failed answer, in the reference's format.
    pub extra: Option<Box<Extra>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user aborted the request.
    Aborted,
    /// The key is missing or was rejected.
    Auth,
    /// The request could not be built (unknown API, invalid model or header), the server called it invalid, or
    /// its certificate is not trusted.
    Request,
    /// A failure of name lookup, connection or TLS, or a body that was cut off.
    Transport,
    /// A time limit was exceeded, such as one of [`Clocks`](crate::llm::options::Clocks).
    Timeout,
    /// The server answered with an error status, or sent an error inside the stream.
    Provider,
    /// The server violated the protocol.
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

/// Builds the message of an answer from its events.
pub struct Fold {
    message: AssistantMessage,
    /// A parser for each open tool call, with the index of its block.
    arguments: Vec<(usize, PartialJson)>,
}

/// Brief, so that logs do not repeat a streamed answer at each event.
impl std::fmt::Debug for Fold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fold").field("blocks", &self.message.content.len()).finish_non_exhaustive()
    }
}

impl Fold {
    /// `message` is the empty answer, with api, provider, model and timestamp.
    pub fn new(message: AssistantMessage) -> Self {
        Self { message, arguments: Vec::new() }
    }

    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The answer, without spare capacity in its texts.
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

    /// The arguments of an open tool call as far as received.
    pub fn open_arguments(&self, index: usize) -> Option<&PartialJson> {
        self.arguments.iter().find(|(at, _)| *at == index).map(|(_, parser)| parser)
    }

    /// Applies one event, in time linear in its size.
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
        // Protocols number blocks from zero without gaps; a gap is filled with empty text.
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

    /// Stores the arguments received so far in the calls that a failed answer left open.
    fn keep_open_calls(&mut self) {
        for (index, parser) in self.arguments.drain(..) {
            if let Some(Block::ToolCall(call)) = self.message.content.get_mut(index) {
                call.arguments = parser.finish().0;
            }
        }
    }

    /// Sets the duration of the answer.
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
