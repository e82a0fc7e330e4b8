//! Decodes an answer of Google's `generateContent`.
//!
//! Adjacent texts of one kind form one block; a call, which is always complete, ends the block before it. A
//! signature belongs to the block with which it arrived.

use super::chunk::{Candidate, Chunk, Feedback, FunctionCall, Part};
use crate::llm::event::{Info, StreamError};
use crate::llm::http::fault;
use crate::llm::message::StopReason;
use crate::wire::answer::{Answer, Kind, Reader};
use crate::wire::google::variant::Google;
use crate::wire::parse;
use serde::Deserialize;
use serde_json::Value;

pub struct ChunkReader {
    api: Google,
    /// The open text or thinking block.
    open: Option<usize>,
}

impl ChunkReader {
    pub fn new(api: Google) -> Self {
        Self { api, open: None }
    }

    /// Reads a chunk, or a list of chunks, which the server sends if it does not stream events.
    fn value(&mut self, value: &Value, what: &str, answer: &mut Answer) -> Result<(), StreamError> {
        if let Value::Array(chunks) = value {
            return chunks.iter().try_for_each(|chunk| self.one_value(chunk, what, answer));
        }
        self.one_value(value, what, answer)
    }

    fn one_value(&mut self, value: &Value, what: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let not_understood = || fault::not_understood(what, &value.to_string());
        if !value.is_object() {
            return Err(not_understood());
        }
        let chunk = Chunk::deserialize(value).map_err(|_| not_understood())?;
        self.chunk(chunk, answer)
    }

    fn chunk(&mut self, chunk: Chunk<'_>, answer: &mut Answer) -> Result<(), StreamError> {
        if let Some(error) = chunk.error.filter(|error| !fault::is_nothing(error)) {
            return Err(error_of(&error));
        }
        answer.identify(&chunk.response_id, &chunk.model_version);
        let usage = chunk.usage_metadata.0.as_ref();
        if let Some(usage) = usage.and_then(|usage| usage.to_usage(&answer.model)) {
            answer.info(Info { usage: Some(usage), ..Info::default() });
        }
        // Only one candidate was requested.
        let candidate = chunk.candidates.0.into_iter().next();
        if let Some(candidate) = candidate.and_then(|candidate| candidate.0) {
            self.candidate(candidate, answer);
        }
        match chunk.prompt_feedback.0 {
            Some(feedback) if !answer.is_finished() => blocked(&feedback),
            _ => Ok(()),
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, answer: &mut Answer) {
        let parts = candidate.content.0.map(|content| content.parts.0);
        for part in parts.into_iter().flatten().filter_map(|part| part.0) {
            self.part(part, answer);
        }
        if let Some(reason) = candidate.finish_reason.as_str() {
            answer.stop(reason, stop_reason(reason, candidate.finish_message.as_str()));
        }
    }

    fn part(&mut self, part: Part<'_>, answer: &mut Answer) {
        let signature = part.thought_signature.to_owned();
        let kind = if part.thought.0 { Kind::Thinking } else { Kind::Text };
        match part.function_call.0 {
            None => {
                if let Some(text) = part.text.0 {
                    self.say(&text, kind, signature, answer);
                }
            }
            Some(call) => {
                // A part has one kind of content; text beside a call comes from a gateway.
                self.say(&part.text.0.unwrap_or_default(), kind, None, answer);
                self.call(call, signature, answer);
            }
        }
    }

    fn say(&mut self, text: &str, kind: Kind, signature: Option<String>, answer: &mut Answer) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        if self.open.is_some_and(|open| answer.kind(open) != Some(kind)) {
            self.close(answer);
        }
        let index = *self.open.get_or_insert_with(|| answer.begin(kind, None));
        // Some parts of a signed block have no signature.
        if signature.is_some() {
            answer.set_signature(index, signature);
        }
        answer.tell(index, text);
    }

    fn close(&mut self, answer: &mut Answer) {
        if let Some(open) = self.open.take() {
            answer.end(open);
        }
    }

    fn call(&mut self, call: FunctionCall<'_>, signature: Option<String>, answer: &mut Answer) {
        self.close(answer);
        let index = answer.begin_call(None, call.id.or_empty(), call.name.or_empty());
        let arguments = match call.args {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments) => arguments.to_string(),
        };
        answer.tell(index, &arguments);
        answer.set_signature(index, signature);
        answer.end(index);
    }
}

impl Reader for ChunkReader {
    fn event(&mut self, _: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let data = data.trim();
        // Gateways may send the end marker of other protocols.
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if data.starts_with('{')
            && let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data)
        {
            return self.chunk(chunk, answer);
        }
        let value = parse::value(data).map_err(|_| fault::not_understood("stream", data))?;
        self.value(&value, "stream", answer)
    }

    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let value = parse::value(body).map_err(|_| fault::not_understood("answer", body))?;
        self.value(&value, "answer", answer)
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        answer.end_all();
        let reason = answer.reason(match self.api {
            Google::GenerativeAi => "Google stream ended without a finish reason",
            Google::Vertex => "Google Vertex stream ended without a finish reason",
        })?;
        if reason == StopReason::ToolUse && !answer.has_calls() {
            return Err(stopped(&format!("Provider stopped with: {CALL}, but there is no call"), None));
        }
        Ok(reason)
    }
}

/// The stop reason that gateways send for an answer with calls; Google sends `STOP`.
const CALL: &str = "FUNCTION_CALL";

/// Converts a stop reason. Any other reason is a refusal, or an answer that the server itself rejected.
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
    match message {
        Some(message) => fault::stopped(format!("{text} ({})", fault::excerpt(message))),
        None => fault::stopped(text),
    }
}

/// The error with the name of its status, which classifies it.
fn error_of(error: &Value) -> StreamError {
    let mut found = fault::provider_error(error);
    if let Some(word) = error["status"].as_str()
        && !found.message.contains(word)
    {
        found.message = format!("{} ({word})", found.message);
    }
    found
}
