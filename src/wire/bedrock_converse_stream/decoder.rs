//! An answer of ConverseStream, from its events to ours.
//!
//! Only calls of tools have a beginning on the wire: other blocks begin with their first delta. The
//! answer is whole when its stop reason was said; the usage comes after it.

use super::event::{Event, RawUsage, Reasoning, ToolUse};
use super::fault as bedrock_fault;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::message::{StopReason, Usage};
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::ids::Ids;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

const REDACTED: &str = "[Reasoning redacted]";
const NO_NAME: &str = "unknown";

pub struct ConverseDecoder {
    model: Model,
    ids: Ids,
    has_calls: bool,
    /// How many blocks there are.
    blocks: usize,
    open: Vec<Open>,
    finish: Option<Result<StopReason, String>>,
    /// The usage was told, which is the last thing said.
    done: bool,
}

/// A block that has begun and not ended.
struct Open {
    /// The server's number.
    number: u64,
    index: usize,
    kind: Kind,
}

enum Kind {
    Text,
    Thinking {
        signature: String,
        /// What is encrypted comes in pieces; together they are the signature.
        redacted: Option<Vec<u8>>,
    },
    Call,
}

impl ConverseDecoder {
    pub fn new(model: &Model, context: &Context) -> Self {
        Self {
            model: model.clone(),
            ids: Ids::new(context),
            has_calls: false,
            blocks: 0,
            open: Vec::new(),
            finish: None,
            done: false,
        }
    }

    fn event(
        &mut self,
        name: &str,
        event: &Event<'_>,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        let number = event.content_block_index.or_zero();
        match name {
            "contentBlockDelta" => {
                let Some(delta) = &event.delta.0 else {
                    return Ok(());
                };
                if let Some(text) = delta.text.as_str() {
                    self.text_delta(number, text, out);
                } else if let Some(call) = &delta.tool_use.0 {
                    self.call_delta(number, call.input.as_str(), out);
                } else if let Some(reasoning) = &delta.reasoning_content.0 {
                    self.thinking_delta(number, reasoning, out);
                }
            }
            "contentBlockStart" => {
                if let Some(start) = &event.start.0
                    && let Some(call) = &start.tool_use.0
                {
                    self.call_start(number, call, out);
                }
            }
            "contentBlockStop" => {
                let found = self.open.iter().position(|block| block.number == number);
                if let Some(at) = found {
                    self.open.remove(at).end(out);
                }
            }
            "messageStart" => {
                let role = event.role.as_str().unwrap_or("assistant");
                if role != "assistant" {
                    let message =
                        format!("Unexpected assistant message start but got {role} message start instead");
                    return Err(StreamError::new(ErrorKind::Protocol, message));
                }
            }
            "messageStop" => {
                if let Some(reason) = event.stop_reason.as_str() {
                    self.take_finish(reason, out);
                }
            }
            "metadata" => {
                if let Some(usage) = &event.usage.0 {
                    self.tell_usage(usage, out);
                    self.done = self.finish.is_some();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The open block of that number, or a new one; `None` if the open one is of another kind.
    fn begin(
        &mut self,
        number: u64,
        kind: Kind,
        start: impl FnOnce(usize) -> AssistantEvent,
        out: &mut Vec<AssistantEvent>,
    ) -> Option<&mut Open> {
        let at = match self.open.iter().position(|block| block.number == number) {
            Some(at) => at,
            None => {
                let index = self.blocks;
                self.blocks += 1;
                out.push(start(index));
                self.open.push(Open { number, index, kind });
                return self.open.last_mut();
            }
        };
        let block = self.open.get_mut(at)?;
        (std::mem::discriminant(&block.kind) == std::mem::discriminant(&kind)).then_some(block)
    }

    fn text_delta(&mut self, number: u64, text: &str, out: &mut Vec<AssistantEvent>) {
        let start = |index| AssistantEvent::TextStart { index };
        if let Some(block) = self.begin(number, Kind::Text, start, out) {
            let (index, delta) = (block.index, text.to_owned());
            out.push(AssistantEvent::TextDelta { index, delta });
        }
    }

    fn thinking_delta(&mut self, number: u64, reasoning: &Reasoning<'_>, out: &mut Vec<AssistantEvent>) {
        let start = |index| AssistantEvent::ThinkingStart { index };
        let kind = Kind::Thinking { signature: String::new(), redacted: None };
        let Some(block) = self.begin(number, kind, start, out) else {
            return;
        };
        let index = block.index;
        let Kind::Thinking { signature, redacted } = &mut block.kind else {
            return;
        };
        if let Some(text) = reasoning.text.as_str() {
            let delta = text.to_owned();
            out.push(AssistantEvent::ThinkingDelta { index, delta });
        }
        if let Some(piece) = reasoning.signature.as_str() {
            signature.push_str(piece);
        }
        if let Some(sealed) = reasoning.redacted_content.as_str()
            && let Ok(bytes) = BASE64_STANDARD.decode(sealed)
            && !bytes.is_empty()
        {
            if redacted.is_none() {
                let delta = REDACTED.to_owned();
                out.push(AssistantEvent::ThinkingDelta { index, delta });
            }
            redacted.get_or_insert_default().extend_from_slice(&bytes);
        }
    }

    fn call_start(&mut self, number: u64, call: &ToolUse<'_>, out: &mut Vec<AssistantEvent>) {
        if self.open.iter().any(|block| block.number == number) {
            return;
        }
        self.has_calls = true;
        let index = self.blocks;
        self.blocks += 1;
        let id = self.ids.take(call.tool_use_id.as_str().unwrap_or_default(), index);
        let name = call.name.as_str().unwrap_or(NO_NAME).to_owned();
        out.push(AssistantEvent::ToolCallStart { index, id, name });
        self.open.push(Open { number, index, kind: Kind::Call });
    }

    fn call_delta(&mut self, number: u64, input: Option<&str>, out: &mut Vec<AssistantEvent>) {
        let mut open = self.open.iter();
        let block = open.find(|block| block.number == number && matches!(block.kind, Kind::Call));
        if let (Some(block), Some(input)) = (block, input) {
            let (index, delta) = (block.index, input.to_owned());
            out.push(AssistantEvent::ToolCallDelta { index, delta });
        }
    }

    fn take_finish(&mut self, reason: &str, out: &mut Vec<AssistantEvent>) {
        self.finish = Some(match reason {
            "end_turn" | "stop_sequence" => Ok(StopReason::Stop),
            "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
            "tool_use" => Ok(StopReason::ToolUse),
            other => Err(format!("Provider stopped with: {other}")),
        });
        out.push(AssistantEvent::info(Info { raw_stop_reason: Some(reason.to_owned()), ..Info::default() }));
    }

    fn tell_usage(&mut self, raw: &RawUsage, out: &mut Vec<AssistantEvent>) {
        let long = raw.cache_details.as_ref().map(|details| {
            let long = details.0.iter().filter(|detail| {
                let ttl = detail.ttl.as_ref().and_then(|ttl| ttl.as_str());
                ttl == Some("1h")
            });
            long.fold(0, |sum: u64, detail| sum.saturating_add(detail.input_tokens.or_zero()))
        });
        let (input, output) = (raw.input_tokens.or_zero(), raw.output_tokens.or_zero());
        let total = raw.total_tokens.0.filter(|total| *total > 0);
        let mut usage = Usage {
            input,
            output,
            cache_read: raw.cache_read_input_tokens.or_zero(),
            cache_write: raw.cache_write_input_tokens.or_zero(),
            cache_write_1h: long,
            total_tokens: total.unwrap_or(input + output),
            ..Usage::default()
        };
        self.model.price(&mut usage);
        out.push(AssistantEvent::info(Info { usage: Some(usage), ..Info::default() }));
    }
}

impl Decoder for ConverseDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if self.done {
            return Ok(());
        }
        let (name, data) = match frame {
            Frame::Sse { event, data } => (event, data),
            Frame::Body(body) => {
                let value = lax::value(body).map_err(|_| fault::not_understood("answer", body))?;
                return Err(fault::provider_error(&value));
            }
        };
        if name == "error" {
            return Err(bedrock_fault::unmodeled(data));
        }
        if name.ends_with("Exception") || name == "exception" {
            return Err(bedrock_fault::in_stream(name, data));
        }
        if let Ok(event) = serde_json::from_str::<Event<'_>>(data) {
            return self.event(name, &event, out);
        }
        let value = lax::value(data).map_err(|_| fault::not_understood("stream", data))?;
        let event = Event::deserialize(&value);
        let event = event.map_err(|_| fault::not_understood("stream", data))?;
        self.event(name, &event, out)
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.done = true;
        for block in self.open.drain(..) {
            block.end(out);
        }
        let reason = match self.finish.take() {
            None => {
                let message = "Bedrock stream ended without a stop reason";
                return Err(fault::cut_short(message));
            }
            Some(Err(message)) => return Err(StreamError::new(ErrorKind::Provider, message)),
            Some(Ok(StopReason::Stop)) if self.has_calls => StopReason::ToolUse,
            Some(Ok(reason)) => reason,
        };
        out.push(AssistantEvent::Done { reason });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Open {
    fn end(self, out: &mut Vec<AssistantEvent>) {
        let index = self.index;
        out.push(match self.kind {
            Kind::Text => AssistantEvent::TextEnd { index, signature: None },
            Kind::Thinking { signature, redacted } => AssistantEvent::ThinkingEnd {
                index,
                redacted: redacted.is_some(),
                signature: Some(match redacted {
                    Some(bytes) => BASE64_STANDARD.encode(bytes),
                    None => signature,
                }),
            },
            Kind::Call => {
                AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature: None }
            }
        });
    }
}
