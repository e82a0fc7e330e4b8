//! An answer from the gateway's events to ours.
//!
//! They are nearly the same. What is made good here: blocks are numbered from zero without gaps, begin
//! before they go on, and end once; and what comes only at a block's end is told before it.

use super::event::{self, Event, RawCall};
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::message::{Extra, StopReason, now_ms};
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::ids::Ids;
use serde::Deserialize;
use serde_json::{Value, json};

const NO_NAME: &str = "unknown";

pub struct EventDecoder {
    model: Model,
    ids: Ids,
    /// In their order, which is their index for us.
    blocks: Vec<Block>,
    finish: Option<StopReason>,
    done: bool,
}

struct Block {
    /// The gateway's index.
    place: u64,
    kind: Kind,
    open: bool,
    /// Bytes that were told.
    told: usize,
    /// The gateway gave the call an id at its start.
    has_id: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

/// What a block's end may bring.
#[derive(Default)]
struct End {
    signature: Option<String>,
    redacted: bool,
    id: Option<String>,
    name: Option<String>,
}

impl EventDecoder {
    pub fn new(model: &Model, context: &Context) -> Self {
        Self { model: model.clone(), ids: Ids::new(context), blocks: Vec::new(), finish: None, done: false }
    }

    fn json(&mut self, json: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let not_understood = || fault::not_understood("stream", json);
        if json.starts_with('{')
            && let Ok(event) = serde_json::from_str::<Event<'_>>(json)
        {
            return self.event(event, json, out);
        }
        let value = lax::value(json).map_err(|_| not_understood())?;
        if !value.is_object() {
            return Err(not_understood());
        }
        let event = Event::deserialize(&value).map_err(|_| not_understood())?;
        self.event(event, json, out)
    }

    fn event(
        &mut self,
        event: Event<'_>,
        json: &str,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        let place = event.content_index.or_zero();
        match event.r#type.as_str() {
            Some("text_start") => {
                self.start(place, Kind::Text, out);
            }
            Some("thinking_start") => {
                self.start(place, Kind::Thinking, out);
            }
            Some("toolcall_start") => {
                let (id, name) = (event.id.as_str(), event.tool_name.as_str());
                self.start_as(place, Kind::Call, id, name, out);
            }
            Some("text_delta") => self.delta(place, Kind::Text, &event.delta, out),
            Some("thinking_delta") => self.delta(place, Kind::Thinking, &event.delta, out),
            Some("toolcall_delta") => self.delta(place, Kind::Call, &event.delta, out),
            Some("text_end") => self.end_said(place, Kind::Text, &event, out),
            Some("thinking_end") => self.end_said(place, Kind::Thinking, &event, out),
            Some("toolcall_end") => {
                self.end_call(place, event.tool_call.0.unwrap_or_default(), out);
            }
            Some("done") => {
                self.tell_facts(&event, out);
                self.finish = Some(stop_reason(event.reason.as_str().unwrap_or_default())?);
                self.done = true;
            }
            Some("error") => {
                self.tell_facts(&event, out);
                return Err(error_of(&event));
            }
            kind => match event.error.filter(|error| !fault::is_nothing(error)) {
                Some(error) => return Err(fault::provider_error(&error)),
                // A start, or a kind of a later version.
                None if kind.is_some() => {}
                None => return Err(fault::not_understood("stream", json)),
            },
        }
        Ok(())
    }

    /// The last block with this place.
    fn find(&self, place: u64) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.place == place)
    }

    /// The open block with this place and kind.
    fn find_open(&self, place: u64, kind: Kind) -> Option<usize> {
        let is_it = |block: &Block| block.open && block.place == place && block.kind == kind;
        self.blocks.iter().rposition(is_it)
    }

    /// Begins a block; one that is open at this place ends.
    fn start(&mut self, place: u64, kind: Kind, out: &mut Vec<AssistantEvent>) -> usize {
        self.start_as(place, kind, None, None, out)
    }

    /// `id` and `name` are those of a call.
    fn start_as(
        &mut self,
        place: u64,
        kind: Kind,
        id: Option<&str>,
        name: Option<&str>,
        out: &mut Vec<AssistantEvent>,
    ) -> usize {
        if let Some(before) = self.find(place) {
            self.close(before, End::default(), out);
        }
        let index = self.blocks.len();
        self.blocks.push(Block { place, kind, open: true, told: 0, has_id: id.is_some() });
        out.push(match kind {
            Kind::Text => AssistantEvent::TextStart { index },
            Kind::Thinking => AssistantEvent::ThinkingStart { index },
            Kind::Call => AssistantEvent::ToolCallStart {
                index,
                id: self.ids.take(id.unwrap_or_default(), index),
                name: name.unwrap_or(NO_NAME).to_owned(),
            },
        });
        index
    }

    fn delta(&mut self, place: u64, kind: Kind, delta: &lax::Text<'_>, out: &mut Vec<AssistantEvent>) {
        let Some(delta) = delta.as_str() else {
            return;
        };
        let open = self.find_open(place, kind);
        let index = open.unwrap_or_else(|| self.start(place, kind, out));
        self.tell(index, delta, out);
    }

    fn tell(&mut self, index: usize, delta: &str, out: &mut Vec<AssistantEvent>) {
        let Some(block) = self.blocks.get_mut(index) else {
            return;
        };
        block.told += delta.len();
        let delta = delta.to_owned();
        out.push(match block.kind {
            Kind::Text => AssistantEvent::TextDelta { index, delta },
            Kind::Thinking => AssistantEvent::ThinkingDelta { index, delta },
            Kind::Call => AssistantEvent::ToolCallDelta { index, delta },
        });
    }

    fn end_said(&mut self, place: u64, kind: Kind, event: &Event<'_>, out: &mut Vec<AssistantEvent>) {
        let index = match self.find_open(place, kind) {
            Some(index) => index,
            // It has ended, or never began.
            None if self.find(place).is_some() => return,
            None => self.start(place, kind, out),
        };
        let told = self.blocks.get(index).map_or(0, |block| block.told);
        let rest = event.content.as_str().and_then(|content| content.get(told..));
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            self.tell(index, rest, out);
        }
        let end = End {
            signature: event.content_signature.as_str().map(str::to_owned),
            redacted: event.redacted.0,
            ..End::default()
        };
        self.close(index, end, out);
    }

    fn end_call(&mut self, place: u64, call: RawCall<'_>, out: &mut Vec<AssistantEvent>) {
        let index = match self.find_open(place, Kind::Call) {
            Some(index) => index,
            None if self.find(place).is_some() => return,
            None => self.start_as(place, Kind::Call, call.id.as_str(), None, out),
        };
        let Some(block) = self.blocks.get(index) else {
            return;
        };
        let late_id = call.id.as_str().filter(|_| !block.has_id);
        let untold = call.arguments.0.filter(|_| block.told == 0);
        if let Some(arguments) = untold {
            self.tell(index, &Value::Object(arguments).to_string(), out);
        }
        let end = End {
            signature: call.thought_signature.as_str().map(str::to_owned),
            id: late_id.filter(|id| self.ids.claim(id)).map(str::to_owned),
            name: call.name.as_str().map(str::to_owned),
            redacted: false,
        };
        self.close(index, end, out);
    }

    fn close(&mut self, index: usize, end: End, out: &mut Vec<AssistantEvent>) {
        let Some(block) = self.blocks.get_mut(index).filter(|block| block.open) else {
            return;
        };
        block.open = false;
        let End { signature, redacted, id, name } = end;
        out.push(match block.kind {
            Kind::Text => AssistantEvent::TextEnd { index, signature },
            Kind::Thinking => AssistantEvent::ThinkingEnd { index, signature, redacted },
            Kind::Call => AssistantEvent::ToolCallEnd { index, id, name, thought_signature: signature },
        });
    }

    fn tell_facts(&self, event: &Event<'_>, out: &mut Vec<AssistantEvent>) {
        let usage = event.usage.as_ref();
        let text = |text: &lax::Text<'_>| text.as_str().map(str::to_owned);
        out.push(AssistantEvent::info(Info {
            usage: usage.and_then(|usage| event::usage(usage, &self.model)),
            response_id: text(&event.response_id),
            provider_thinking_level: text(&event.provider_thinking_level),
            extra: event.rewrite.0.as_ref().map(diagnostics).unwrap_or_default(),
            ..Info::default()
        }));
    }
}

impl Decoder for EventDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let (Frame::Sse { data, .. } | Frame::Body(data)) = frame;
        let data = data.trim();
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        self.json(data, out)
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.done = true;
        for index in 0..self.blocks.len() {
            self.close(index, End::default(), out);
        }
        let has_calls = self.blocks.iter().any(|block| block.kind == Kind::Call);
        let reason = match self.finish.take() {
            Some(StopReason::Stop) if has_calls => StopReason::ToolUse,
            Some(reason) => reason,
            None => {
                let provider = &self.model.provider;
                let text = format!("{provider} stream ended without a terminal event");
                return Err(fault::cut_short(&text));
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
        "length" => Ok(StopReason::Length),
        "toolUse" => Ok(StopReason::ToolUse),
        other => {
            let text = format!("Provider stopped with: {other}");
            Err(StreamError::new(ErrorKind::Provider, text))
        }
    }
}

/// Our own abort closes the connection, so an abort that is told here is another's, and an error to us.
fn error_of(event: &Event<'_>) -> StreamError {
    let aborted = event.reason.as_str() == Some("aborted");
    let text = event.error_message.as_str().unwrap_or(if aborted {
        "The server aborted the answer"
    } else {
        "The server sent an error without text"
    });
    fault::provider_error(&Value::from(text))
}

/// What the gateway changed in the request, as the message keeps it.
fn diagnostics(rewrite: &serde_json::Map<String, Value>) -> Extra {
    let entry = json!({"type": "pi_messages_rewrite", "timestamp": now_ms(), "details": rewrite});
    Extra::from_iter([("diagnostics".to_owned(), Value::from(vec![entry]))])
}
