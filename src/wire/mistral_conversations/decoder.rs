//! An answer from its chunks to its events.
//!
//! Text and thinking are blocks in the order in which they come. Calls, whole or in pieces, are put
//! together as those of chat completions are, and end with the answer.

use super::messages::legal_id;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::lax::Text;
use crate::llm::message::StopReason;
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::ids::Ids;
use crate::wire::openai_completions::calls::Calls;
use crate::wire::openai_completions::chunk::{Chunk, Content, Delta};
use serde::Deserialize;
use std::collections::HashMap;

/// What some models give for an id that they do not have.
const NO_ID: &str = "null";

pub struct ChunkDecoder {
    model: Model,
    /// Blocks so far, and which of them are calls.
    blocks: usize,
    call_blocks: Vec<usize>,
    open: Option<Open>,
    calls: Calls,
    identity_told: bool,
    finish: Option<Result<StopReason, StreamError>>,
    done: bool,
}

/// The block that is being said.
struct Open {
    index: usize,
    thinking: bool,
}

impl ChunkDecoder {
    pub fn new(model: &Model, context: &Context) -> Self {
        let ids = Ids::with_form(context, legal_id);
        Self {
            model: model.clone(),
            blocks: 0,
            call_blocks: Vec::new(),
            open: None,
            calls: Calls::new(ids, HashMap::new(), false),
            identity_told: false,
            finish: None,
            done: false,
        }
    }

    fn json(&mut self, json: &str, whole: bool, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let what = if whole { "answer" } else { "stream" };
        let not_understood = || fault::not_understood(what, json);
        if json.starts_with('{')
            && let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(json)
            && !chunk.choices.0.is_empty()
        {
            return self.chunk(chunk, whole, out);
        }
        let value = lax::value(json).map_err(|_| not_understood())?;
        if !value.is_object() {
            return Err(not_understood());
        }
        let chunk = Chunk::deserialize(&value).map_err(|_| not_understood())?;
        if chunk.choices.0.is_empty() && chunk.usage.0.is_none() {
            // An error may be the whole object.
            let inside = value.get("error").filter(|error| !fault::is_nothing(error));
            if let Some(error) = inside.or(value.get("message").map(|_| &value)) {
                return Err(fault::provider_error(error));
            }
            if whole {
                return Err(not_understood());
            }
        }
        self.chunk(chunk, whole, out)
    }

    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        whole: bool,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        if let Some(error) = chunk.error.filter(|error| !fault::is_nothing(error)) {
            return Err(fault::provider_error(&error));
        }
        self.tell_identity(&chunk.id, &chunk.model, out);
        let choice = chunk.choices.0.into_iter().next();
        let choice = choice.and_then(|choice| choice.0).unwrap_or_default();
        if let Some(usage) = chunk.usage.0.as_ref().or(choice.usage.0.as_ref()) {
            let mut usage = usage.to_usage(&self.model);
            // Tokens of thinking are not told apart.
            usage.reasoning = usage.reasoning.filter(|tokens| *tokens > 0);
            out.push(AssistantEvent::info(Info { usage: Some(usage), ..Info::default() }));
        }
        let delta = if whole { choice.message.0 } else { choice.delta.0 };
        if let Some(delta) = delta {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.as_str() {
            self.finish = Some(stop_reason(reason));
            out.push(AssistantEvent::info(Info {
                raw_stop_reason: Some(reason.to_owned()),
                ..Info::default()
            }));
        }
        if self.finish.is_some() {
            self.calls.settle(out);
        }
        Ok(())
    }

    fn tell_identity(&mut self, id: &Text<'_>, model: &Text<'_>, out: &mut Vec<AssistantEvent>) {
        let Some(id) = id.as_str().filter(|_| !self.identity_told) else {
            return;
        };
        self.identity_told = true;
        let model = model.as_str().filter(|model| *model != self.model.id);
        out.push(AssistantEvent::info(Info {
            response_id: Some(id.to_owned()),
            response_model: model.map(str::to_owned),
            ..Info::default()
        }));
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<AssistantEvent>) {
        match delta.content {
            Content::None => {}
            Content::Text(text) => self.say(&text, false, out),
            Content::Parts(parts) => {
                for part in parts {
                    self.say(&part.thinking_text(), true, out);
                    self.say(part.text.as_str().unwrap_or_default(), false, out);
                }
            }
        }
        for mut call in delta.tool_calls.0.into_iter().filter_map(|call| call.0) {
            self.close(out);
            if call.id.as_str() == Some(NO_ID) {
                call.id = Text::default();
            }
            if self.calls.take(&call, self.blocks, out) {
                self.add_call();
            }
        }
    }

    fn add_call(&mut self) {
        self.call_blocks.push(self.blocks);
        self.blocks += 1;
    }

    fn say(&mut self, text: &str, thinking: bool, out: &mut Vec<AssistantEvent>) {
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.thinking != thinking) {
            self.close(out);
        }
        let blocks = &mut self.blocks;
        let open = self.open.get_or_insert_with(|| {
            let index = *blocks;
            *blocks += 1;
            out.push(if thinking {
                AssistantEvent::ThinkingStart { index }
            } else {
                AssistantEvent::TextStart { index }
            });
            Open { index, thinking }
        });
        let (index, delta) = (open.index, text.to_owned());
        out.push(if thinking {
            AssistantEvent::ThinkingDelta { index, delta }
        } else {
            AssistantEvent::TextDelta { index, delta }
        });
    }

    fn close(&mut self, out: &mut Vec<AssistantEvent>) {
        let Some(Open { index, thinking }) = self.open.take() else {
            return;
        };
        let signature = None;
        out.push(if thinking {
            AssistantEvent::ThinkingEnd { index, signature, redacted: false }
        } else {
            AssistantEvent::TextEnd { index, signature }
        });
    }
}

impl Decoder for ChunkDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if self.done {
            return Ok(());
        }
        match frame {
            Frame::Sse { data, .. } => {
                let data = data.trim();
                if data == "[DONE]" {
                    self.done = true;
                } else if !data.is_empty() {
                    self.json(data, false, out)?;
                }
            }
            Frame::Body(body) => {
                self.json(body.trim(), true, out)?;
                self.done = true;
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.done = true;
        self.close(out);
        for _ in 0..self.calls.start_nameless(self.blocks, out) {
            self.add_call();
        }
        for block in &self.call_blocks {
            self.calls.end(*block, out);
        }
        let reason = match self.finish.take() {
            Some(Ok(StopReason::Stop)) if !self.call_blocks.is_empty() => StopReason::ToolUse,
            Some(reason) => reason?,
            None => {
                let text = "Mistral stream ended without a finish reason";
                return Err(fault::cut_short(text));
            }
        };
        out.push(AssistantEvent::Done { reason });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, StreamError> {
    match reason {
        "stop" => Ok(StopReason::Stop),
        "length" | "model_length" => Ok(StopReason::Length),
        "tool_calls" => Ok(StopReason::ToolUse),
        other => {
            let text = format!("Provider stopped with: {other}");
            Err(StreamError::new(ErrorKind::Provider, text))
        }
    }
}
