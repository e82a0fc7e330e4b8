//! An answer from its chunks to its events.
//!
//! Parts come in order: a run of texts of one kind is one block, and a call, which is always whole, ends
//! the block before it. A signature belongs to the block that it came with.

use super::chunk::{Candidate, Chunk, Feedback, FunctionCall, Part};
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::lax::Text;
use crate::llm::message::StopReason;
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::google::variant::Google;
use crate::wire::ids::Ids;
use serde::Deserialize;
use serde_json::Value;

const NO_NAME: &str = "unknown";

pub struct ChunkDecoder {
    api: Google,
    model: Model,
    ids: Ids,
    /// Blocks so far.
    blocks: usize,
    has_calls: bool,
    open: Option<Open>,
    response_id_told: bool,
    response_model_told: bool,
    finish: Option<Result<StopReason, StreamError>>,
    done: bool,
}

/// The block that is being said.
struct Open {
    index: usize,
    thinking: bool,
    signature: Option<String>,
}

impl ChunkDecoder {
    pub fn new(api: Google, model: &Model, context: &Context) -> Self {
        Self {
            api,
            model: model.clone(),
            ids: Ids::new(context),
            blocks: 0,
            has_calls: false,
            open: None,
            response_id_told: false,
            response_model_told: false,
            finish: None,
            done: false,
        }
    }

    fn sse(&mut self, data: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let data = data.trim();
        // Gateways may end the stream as other protocols do.
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if data.starts_with('{')
            && let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data)
        {
            return self.chunk(chunk, out);
        }
        let value = lax::value(data).map_err(|_| fault::not_understood("stream", data))?;
        self.value(&value, "stream", out)
    }

    /// A chunk, or a list of them: that is how the server streams when it is not asked for events.
    fn value(&mut self, value: &Value, what: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if let Value::Array(chunks) = value {
            return chunks.iter().try_for_each(|chunk| self.one_value(chunk, what, out));
        }
        self.one_value(value, what, out)
    }

    fn one_value(
        &mut self,
        value: &Value,
        what: &str,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        let not_understood = || fault::not_understood(what, &value.to_string());
        if !value.is_object() {
            return Err(not_understood());
        }
        let chunk = Chunk::deserialize(value).map_err(|_| not_understood())?;
        self.chunk(chunk, out)
    }

    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if let Some(error) = chunk.error.filter(|error| !fault::is_nothing(error)) {
            return Err(error_of(&error));
        }
        self.tell_identity(&chunk.response_id, &chunk.model_version, out);
        let usage = chunk.usage_metadata.0.as_ref();
        if let Some(usage) = usage.and_then(|usage| usage.to_usage(&self.model)) {
            out.push(AssistantEvent::info(Info { usage: Some(usage), ..Info::default() }));
        }
        // Only one answer was asked for.
        let candidate = chunk.candidates.0.into_iter().next();
        if let Some(candidate) = candidate.and_then(|candidate| candidate.0) {
            self.candidate(candidate, out);
        }
        match chunk.prompt_feedback.0 {
            Some(feedback) if self.finish.is_none() => blocked(&feedback),
            _ => Ok(()),
        }
    }

    fn tell_identity(&mut self, id: &Text<'_>, model: &Text<'_>, out: &mut Vec<AssistantEvent>) {
        let mut info = Info::default();
        if let Some(id) = id.as_str().filter(|_| !self.response_id_told) {
            self.response_id_told = true;
            info.response_id = Some(id.to_owned());
        }
        if let Some(model) = model.as_str().filter(|model| *model != self.model.id)
            && !self.response_model_told
        {
            self.response_model_told = true;
            info.response_model = Some(model.to_owned());
        }
        if info != Info::default() {
            out.push(AssistantEvent::info(info));
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, out: &mut Vec<AssistantEvent>) {
        let parts = candidate.content.0.map(|content| content.parts.0);
        for part in parts.into_iter().flatten().filter_map(|part| part.0) {
            self.part(part, out);
        }
        if let Some(reason) = candidate.finish_reason.as_str() {
            self.finish = Some(stop_reason(reason, candidate.finish_message.as_str()));
            out.push(AssistantEvent::info(Info {
                raw_stop_reason: Some(reason.to_owned()),
                ..Info::default()
            }));
        }
    }

    fn part(&mut self, part: Part<'_>, out: &mut Vec<AssistantEvent>) {
        let signature = part.thought_signature.0.map(|signature| signature.into_owned());
        match part.function_call.0 {
            None => {
                if let Some(text) = part.text.0 {
                    self.say(&text, part.thought.0, signature, out);
                }
            }
            Some(call) => {
                // A part is one thing; text beside a call is a gateway's doing.
                let text = part.text.0.unwrap_or_default();
                self.say(&text, part.thought.0, None, out);
                self.call(call, signature, out);
            }
        }
    }

    fn say(&mut self, text: &str, thinking: bool, signature: Option<String>, out: &mut Vec<AssistantEvent>) {
        if text.is_empty() && signature.is_none() {
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
            Open { index, thinking, signature: None }
        });
        // Some parts of a signed block come without.
        if signature.is_some() {
            open.signature = signature;
        }
        if !text.is_empty() {
            let (index, delta) = (open.index, text.to_owned());
            out.push(if thinking {
                AssistantEvent::ThinkingDelta { index, delta }
            } else {
                AssistantEvent::TextDelta { index, delta }
            });
        }
    }

    fn close(&mut self, out: &mut Vec<AssistantEvent>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let Open { index, signature, .. } = open;
        out.push(if open.thinking {
            AssistantEvent::ThinkingEnd { index, signature, redacted: false }
        } else {
            AssistantEvent::TextEnd { index, signature }
        });
    }

    fn call(
        &mut self,
        call: FunctionCall<'_>,
        thought_signature: Option<String>,
        out: &mut Vec<AssistantEvent>,
    ) {
        self.close(out);
        self.has_calls = true;
        let index = self.blocks;
        self.blocks += 1;
        let given = call.id.as_str().unwrap_or_default();
        let arguments = match call.args {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments) => arguments.to_string(),
        };
        out.push(AssistantEvent::ToolCallStart {
            index,
            id: self.ids.take(given, index),
            name: call.name.as_str().unwrap_or(NO_NAME).to_owned(),
        });
        out.push(AssistantEvent::ToolCallDelta { index, delta: arguments });
        out.push(AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature });
    }
}

impl Decoder for ChunkDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if self.done {
            return Ok(());
        }
        match frame {
            Frame::Sse { data, .. } => self.sse(data, out),
            Frame::Body(body) => {
                let value = lax::value(body).map_err(|_| fault::not_understood("answer", body))?;
                self.value(&value, "answer", out)?;
                self.done = true;
                Ok(())
            }
        }
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.done = true;
        self.close(out);
        let reason = match self.finish.take() {
            Some(Ok(StopReason::Stop)) if self.has_calls => StopReason::ToolUse,
            Some(Ok(StopReason::ToolUse)) if !self.has_calls => {
                return Err(stopped(&format!("Provider stopped with: {CALL}, but there is no call"), None));
            }
            Some(reason) => reason?,
            None => {
                return Err(fault::cut_short(match self.api {
                    Google::GenerativeAi => "Google stream ended without a finish reason",
                    Google::Vertex => "Google Vertex stream ended without a finish reason",
                }));
            }
        };
        out.push(AssistantEvent::Done { reason });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// The reason of gateways for an answer that ends with calls; Google itself says `STOP`.
const CALL: &str = "FUNCTION_CALL";

/// Every reason but these is a refusal, or an answer that the server itself could not use.
fn stop_reason(reason: &str, message: Option<&str>) -> Result<StopReason, StreamError> {
    match reason {
        "STOP" => Ok(StopReason::Stop),
        "MAX_TOKENS" => Ok(StopReason::Length),
        CALL => Ok(StopReason::ToolUse),
        other => Err(stopped(&format!("Provider stopped with: {other}"), message)),
    }
}

fn blocked(feedback: &Feedback<'_>) -> Result<(), StreamError> {
    let Some(reason) = feedback.block_reason.as_str() else {
        return Ok(());
    };
    let text = format!("Provider blocked the prompt: {reason}");
    Err(stopped(&text, feedback.block_reason_message.as_str()))
}

fn stopped(text: &str, message: Option<&str>) -> StreamError {
    let text = match message {
        Some(message) => format!("{text} ({})", lax::excerpt(message)),
        None => text.to_owned(),
    };
    StreamError::new(ErrorKind::Provider, text)
}

/// An error with the word that programs go by.
fn error_of(error: &Value) -> StreamError {
    let mut found = fault::provider_error(error);
    if let Some(word) = error["status"].as_str()
        && !found.message.contains(word)
    {
        found.message = format!("{} ({word})", found.message);
    }
    found
}
