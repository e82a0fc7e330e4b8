//! Decodes an answer of ConverseStream.
//!
//! Only tool calls have a start event; other blocks begin with their first delta. The answer is complete
//! after its stop reason; the usage follows.

use super::event::{Event, RawUsage, Reasoning};
use super::fault as bedrock_fault;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::fault;
use crate::llm::message::{StopReason, Usage};
use crate::wire::answer::{Answer, Kind, Reader};
use crate::wire::parse;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::collections::HashMap;

#[derive(Default)]
pub struct ConverseReader {
    /// Encrypted thinking by block index, which arrives in pieces and becomes the signature.
    sealed: HashMap<usize, Vec<u8>>,
}

impl ConverseReader {
    fn thinking_delta(&mut self, number: u64, reasoning: &Reasoning<'_>, answer: &mut Answer) {
        let Some(index) = answer.open_or_begin(number, Kind::Thinking) else {
            return;
        };
        answer.tell(index, reasoning.text.or_empty());
        answer.sign(index, reasoning.signature.or_empty());
        if let Some(sealed) = reasoning.redacted_content.as_str()
            && let Ok(bytes) = BASE64_STANDARD.decode(sealed)
            && !bytes.is_empty()
        {
            answer.tell_redacted(index);
            self.sealed.entry(index).or_default().extend_from_slice(&bytes);
        }
    }

    fn end_block(&mut self, index: usize, answer: &mut Answer) {
        if let Some(bytes) = self.sealed.remove(&index) {
            answer.set_signature(index, Some(BASE64_STANDARD.encode(bytes)));
        }
        answer.end(index);
    }
}

impl Reader for ConverseReader {
    fn event(&mut self, name: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError> {
        if name == "error" {
            return Err(bedrock_fault::unmodeled(data));
        }
        if name.ends_with("Exception") || name == "exception" {
            return Err(bedrock_fault::in_stream(name, data));
        }
        let mut mended = String::new();
        let event: Event<'_> = parse::event(data, &mut mended)?;
        let number = event.content_block_index.or_zero();
        match name {
            "contentBlockDelta" => {
                let Some(delta) = &event.delta.0 else {
                    return Ok(());
                };
                if let Some(text) = delta.text.as_str() {
                    if let Some(index) = answer.open_or_begin(number, Kind::Text) {
                        answer.tell(index, text);
                    }
                } else if let Some(call) = &delta.tool_use.0 {
                    if let Some(index) = answer.open_of(number, Kind::Call) {
                        answer.tell(index, call.input.or_empty());
                    }
                } else if let Some(reasoning) = &delta.reasoning_content.0 {
                    self.thinking_delta(number, reasoning, answer);
                }
            }
            "contentBlockStart" => {
                if let Some(start) = &event.start.0
                    && let Some(call) = &start.tool_use.0
                    && answer.open_at(number).is_none()
                {
                    answer.begin_call(number, call.tool_use_id.or_empty(), call.name.or_empty());
                }
            }
            "contentBlockStop" => {
                if let Some(index) = answer.open_at(number) {
                    self.end_block(index, answer);
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
                    answer.stop(reason, stop_reason(reason));
                }
            }
            "metadata" => {
                if let Some(usage) = &event.usage.0 {
                    answer.usage(usage_of(usage));
                    // The usage is the last event.
                    if answer.is_finished() {
                        answer.done();
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn body(&mut self, body: &str, _: &mut Answer) -> Result<(), StreamError> {
        let value = parse::value(body).map_err(|_| fault::not_understood("answer", body))?;
        Err(fault::provider_error(&value))
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        for index in 0..answer.len() {
            self.end_block(index, answer);
        }
        answer.reason("Bedrock stream ended without a stop reason")
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, StreamError> {
    match reason {
        "end_turn" | "stop_sequence" => Ok(StopReason::Stop),
        "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
        "tool_use" => Ok(StopReason::ToolUse),
        other => Err(fault::stopped(format!("Provider stopped with: {other}"))),
    }
}

fn usage_of(raw: &RawUsage) -> Usage {
    let long = raw.cache_details.as_ref().map(|details| {
        let long = details.0.iter().filter(|detail| {
            let ttl = detail.ttl.as_ref().and_then(|ttl| ttl.as_str());
            ttl == Some("1h")
        });
        long.fold(0, |sum: u64, detail| sum.saturating_add(detail.input_tokens.or_zero()))
    });
    let (input, output) = (raw.input_tokens.or_zero(), raw.output_tokens.or_zero());
    let total = raw.total_tokens.0.filter(|total| *total > 0);
    Usage {
        input,
        output,
        cache_read: raw.cache_read_input_tokens.or_zero(),
        cache_write: raw.cache_write_input_tokens.or_zero(),
        cache_write_1h: long,
        total_tokens: total.unwrap_or(input + output),
        ..Usage::default()
    }
}
