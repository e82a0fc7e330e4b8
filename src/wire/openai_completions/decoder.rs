//! An answer of chat completions, from its chunks to its events.
//!
//! All text of an answer is one block and all thinking another, however they alternate; each call of a
//! tool is a block of its own. The protocol does not say where a block ends: all end with the answer, in
//! the order in which they began.

use super::calls::Calls;
use super::chunk::{CallDelta, Chunk, Content, Delta, RawUsage};
use super::compat::Compat;
use super::inline::{Inline, Piece, Tools};
use super::reasoning;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::lax::Text;
use crate::llm::message::StopReason;
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::grammar;
use crate::wire::ids::Ids;
use serde::Deserialize;

pub struct ChunkDecoder {
    model: Model,
    supports_finish_reason: bool,
    answer: Answer,
    /// Looks into plain text, where that is wanted.
    inline: Option<Inline>,
    response_id_told: bool,
    response_model_told: bool,
    finish: Option<Result<StopReason, String>>,
    done: bool,
}

/// The blocks of the answer.
struct Answer {
    kinds: Vec<Kind>,
    /// Indexes of the one block of text and the one of thinking.
    text: Option<usize>,
    thinking: Option<usize>,
    /// The field that thinking came in.
    reasoning_field: Option<&'static str>,
    details: reasoning::Details,
    calls: Calls,
    /// All text so far, while it may yet turn out to be thinking.
    unsure: Option<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl ChunkDecoder {
    pub fn new(model: &Model, context: &Context) -> Self {
        let compat = Compat::of(model);
        let grammar = grammar::owned_properties(context, compat.supports_grammar_tools);
        let offered = if compat.text_tool_calls {
            let tools = context.head().tools.into_iter();
            tools.map(|tool| (tool.name, tool.parameters)).collect()
        } else {
            Tools::new()
        };
        let calls = Calls::new(Ids::new(context), grammar, compat.cumulative_arguments);
        Self {
            supports_finish_reason: compat.supports_finish_reason,
            answer: Answer {
                kinds: Vec::new(),
                text: None,
                thinking: None,
                reasoning_field: None,
                details: reasoning::Details::default(),
                calls,
                unsure: compat.think_tags.then(String::new),
            },
            inline: (compat.think_tags || !offered.is_empty())
                .then(|| Inline::new(compat.think_tags, offered)),
            response_id_told: false,
            response_model_told: false,
            finish: None,
            done: false,
            model: model.clone(),
        }
    }

    fn sse(&mut self, event: &str, data: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let data = data.trim();
        if data.starts_with("[DONE]") {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        if event == "error" {
            return Err(error_of(data));
        }
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data) {
            return self.chunk(chunk, false, out);
        }
        let value = lax::value(data).map_err(|_| fault::not_understood("stream", data))?;
        if !value.is_object() {
            return Ok(());
        }
        let chunk = Chunk::deserialize(&value);
        let chunk = chunk.map_err(|_| fault::not_understood("stream", data))?;
        self.chunk(chunk, false, out)
    }

    fn body(&mut self, body: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let not_understood = |_| fault::not_understood("answer", body);
        let value = lax::value(body).map_err(not_understood)?;
        let chunk = Chunk::deserialize(&value).map_err(not_understood)?;
        if chunk.error.is_none() && chunk.choices.0.is_empty() {
            return Err(error_of(body));
        }
        self.done = true;
        self.chunk(chunk, true, out)?;
        // All of it is here, whatever it does not say.
        self.finish.get_or_insert(Ok(StopReason::Stop));
        Ok(())
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
        let usage = chunk.usage.0.as_ref().or(choice.usage.0.as_ref());
        if let Some(usage) = usage {
            self.tell_usage(usage, out);
        }
        if let Some(progress) = &chunk.prompt_progress.0 {
            out.push(AssistantEvent::info(Info {
                prompt_progress: progress.processed.0.zip(progress.total.0),
                ..Info::default()
            }));
        }
        if let Some(reason) = choice.finish_reason.as_str() {
            self.take_finish(reason, out);
        }
        let whole = whole || chunk.object.as_str() == Some("chat.completion");
        let delta = match choice.delta.0 {
            None if whole => choice.message.0,
            delta => delta,
        };
        if let Some(delta) = delta {
            self.delta(delta, out);
        }
        if self.finish.is_some() {
            self.answer.calls.settle(out);
        }
        Ok(())
    }

    fn tell_identity(&mut self, id: &Text<'_>, model: &Text<'_>, out: &mut Vec<AssistantEvent>) {
        let mut info = Info::default();
        if let Some(id) = id.as_str().filter(|_| !self.response_id_told) {
            self.response_id_told = true;
            info.response_id = Some(id.to_owned());
        }
        let other = |model: &&str| *model != self.model.id;
        if let Some(model) = model.as_str().filter(other)
            && !self.response_model_told
        {
            self.response_model_told = true;
            info.response_model = Some(model.to_owned());
        }
        if info.response_id.is_some() || info.response_model.is_some() {
            out.push(AssistantEvent::info(info));
        }
    }

    fn tell_usage(&self, usage: &RawUsage, out: &mut Vec<AssistantEvent>) {
        out.push(AssistantEvent::info(Info { usage: Some(usage.to_usage(&self.model)), ..Info::default() }));
    }

    fn take_finish(&mut self, reason: &str, out: &mut Vec<AssistantEvent>) {
        self.finish = Some(match reason {
            "stop" | "end" => Ok(StopReason::Stop),
            "length" => Ok(StopReason::Length),
            "tool_calls" | "function_call" => Ok(StopReason::ToolUse),
            other => Err(format!("Provider finish_reason: {other}")),
        });
        out.push(AssistantEvent::info(Info { raw_stop_reason: Some(reason.to_owned()), ..Info::default() }));
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<AssistantEvent>) {
        match delta.content {
            Content::None => {}
            Content::Text(text) => self.text(&text, out),
            Content::Parts(parts) => {
                for part in parts {
                    self.answer.think(&part.thinking_text(), None, out);
                    self.text(part.text.as_str().unwrap_or_default(), out);
                }
            }
        }
        // The first that says something: some servers send the same text in two of them.
        let fields = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("reasoning_text", &delta.reasoning_text),
        ];
        let said = fields.into_iter().find_map(|(name, text)| Some((name, text.as_str()?)));
        if let Some((name, text)) = said {
            let field = reasoning::field(&self.model.provider, name);
            self.answer.think(text, field, out);
        }
        for call in delta.tool_calls.0.iter().filter_map(|call| call.0.as_ref()) {
            self.answer.call(call, out);
        }
        for detail in delta.reasoning_details.0 {
            if self.answer.details.push(detail) {
                self.answer.thinking_block(out);
            }
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<AssistantEvent>) {
        let answer = &mut self.answer;
        match &mut self.inline {
            Some(inline) => inline.feed(text, &mut |piece| answer.piece(piece, out)),
            None => answer.say(text, out),
        }
    }
}

impl Decoder for ChunkDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if self.done {
            return Ok(());
        }
        match frame {
            Frame::Sse { event, data } => self.sse(event, data, out),
            Frame::Body(body) => self.body(body, out),
        }
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.done = true;
        let answer = &mut self.answer;
        if let Some(inline) = &mut self.inline {
            inline.end(&mut |piece| answer.piece(piece, out));
        }
        answer.end(out);
        let has_calls = !answer.calls.is_empty();
        let reason = match self.finish.take() {
            Some(Ok(StopReason::Stop)) if has_calls => StopReason::ToolUse,
            Some(Ok(reason)) => reason,
            Some(Err(message)) => return Err(StreamError::new(ErrorKind::Provider, message)),
            None if self.supports_finish_reason => {
                return Err(fault::cut_short("Stream ended without finish_reason"));
            }
            None if has_calls => StopReason::ToolUse,
            None => StopReason::Stop,
        };
        out.push(AssistantEvent::Done { reason });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Answer {
    fn add(&mut self, kind: Kind) -> usize {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    fn say(&mut self, text: &str, out: &mut Vec<AssistantEvent>) {
        if text.is_empty() {
            return;
        }
        let index = self.text.unwrap_or_else(|| {
            let index = self.add(Kind::Text);
            self.text = Some(index);
            out.push(AssistantEvent::TextStart { index });
            index
        });
        let delta = text.to_owned();
        out.push(AssistantEvent::TextDelta { index, delta });
    }

    fn think(&mut self, text: &str, field: Option<&'static str>, out: &mut Vec<AssistantEvent>) {
        if text.is_empty() {
            return;
        }
        let index = self.thinking_block(out);
        self.reasoning_field = self.reasoning_field.or(field);
        let delta = text.to_owned();
        out.push(AssistantEvent::ThinkingDelta { index, delta });
    }

    fn thinking_block(&mut self, out: &mut Vec<AssistantEvent>) -> usize {
        self.thinking.unwrap_or_else(|| {
            let index = self.add(Kind::Thinking);
            self.thinking = Some(index);
            out.push(AssistantEvent::ThinkingStart { index });
            index
        })
    }

    fn call(&mut self, call: &CallDelta<'_>, out: &mut Vec<AssistantEvent>) {
        if self.calls.take(call, self.kinds.len(), out) {
            self.kinds.push(Kind::Call);
        }
    }

    /// What was found in plain text.
    fn piece(&mut self, piece: Piece<'_>, out: &mut Vec<AssistantEvent>) {
        match piece {
            Piece::Text(text) => {
                if let Some(unsure) = &mut self.unsure {
                    unsure.push_str(text);
                }
                self.say(text, out);
            }
            Piece::Thinking(text) => {
                self.unsure = None;
                self.think(text, None, out);
            }
            Piece::WasThinking => self.rethink(out),
            Piece::Call { name, arguments } => {
                self.unsure = None;
                let arguments = serde_json::to_string(&arguments).unwrap_or_default();
                let block = self.kinds.len();
                self.calls.take_whole(&name, arguments, block, out);
                self.kinds.push(Kind::Call);
            }
        }
    }

    /// The text so far was thinking: its block ends, and begins again as what it was.
    fn rethink(&mut self, out: &mut Vec<AssistantEvent>) {
        let Some(said) = self.unsure.take() else {
            return;
        };
        if self.thinking.is_some() {
            return;
        }
        let Some(index) = self.text.take() else {
            return;
        };
        let signature = None;
        out.push(AssistantEvent::TextEnd { index, signature });
        if let Some(kind) = self.kinds.get_mut(index) {
            *kind = Kind::Thinking;
        }
        self.thinking = Some(index);
        out.push(AssistantEvent::ThinkingStart { index });
        out.push(AssistantEvent::ThinkingDelta { index, delta: said });
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) {
        for _ in 0..self.calls.start_nameless(self.kinds.len(), out) {
            self.kinds.push(Kind::Call);
        }
        for (index, kind) in self.kinds.iter().enumerate() {
            match kind {
                Kind::Text => out.push(AssistantEvent::TextEnd { index, signature: None }),
                Kind::Thinking => {
                    let field = self.reasoning_field.map(str::to_owned);
                    out.push(AssistantEvent::ThinkingEnd {
                        index,
                        signature: self.details.signature().or(field),
                        redacted: false,
                    });
                }
                Kind::Call => self.calls.end(index, out),
            }
        }
    }
}

/// An error that does not stand in a field of its own.
fn error_of(data: &str) -> StreamError {
    match lax::value(data) {
        Ok(value) if value.get("error").is_some_and(|error| !fault::is_nothing(error)) => {
            fault::provider_error(&value["error"])
        }
        Ok(value) if value.get("message").is_some() => fault::provider_error(&value),
        _ => fault::not_understood("answer", data),
    }
}
