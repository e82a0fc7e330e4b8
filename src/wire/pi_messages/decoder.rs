//! Decodes the events of a pi gateway.
//!
//! The events are nearly those of a decoder. Repairs: blocks are numbered from zero without gaps, begin
//! before their first piece, and end once; content that arrives only at a block's end is reported before the
//! end.

use super::event::{self, Event, RawCall};
use crate::llm::event::{Info, StreamError};
use crate::llm::http::fault;
use crate::llm::message::StopReason;
use crate::wire::answer::{Answer, Kind, Reader, diagnostics};
use crate::wire::parse;
use serde_json::Value;
use std::collections::HashSet;

#[derive(Default)]
pub struct EventReader {
    /// Calls that began with an id from the gateway.
    with_id: HashSet<usize>,
}

impl EventReader {
    /// Begins a call, and ends the open block at this place.
    fn start_call(&mut self, place: u64, id: Option<&str>, name: &str, answer: &mut Answer) -> usize {
        end_at(place, answer);
        let index = answer.begin_call(place, id.unwrap_or_default(), name);
        if id.is_some() {
            self.with_id.insert(index);
        }
        index
    }

    fn end_call(&mut self, place: u64, call: RawCall<'_>, answer: &mut Answer) {
        let index = match answer.open_of(place, Kind::Call) {
            Some(index) => index,
            None if answer.knows(place) => return,
            None => self.start_call(place, call.id.as_str(), "", answer),
        };
        if let Some(arguments) = call.arguments.0.filter(|_| answer.told(index) == 0) {
            answer.tell(index, &Value::Object(arguments).to_string());
        }
        let late_id = call.id.to_owned().filter(|id| !self.with_id.contains(&index) && answer.claim_id(id));
        answer.set_signature(index, call.thought_signature.to_owned());
        answer.end_call(index, late_id, call.name.to_owned());
    }
}

impl Reader for EventReader {
    fn event(&mut self, _: &str, json: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let json = json.trim();
        if json.is_empty() || json == "[DONE]" {
            return Ok(());
        }
        if !json.starts_with('{') {
            return Err(fault::not_understood("stream", json));
        }
        let mut mended = String::new();
        let event: Event<'_> = parse::event(json, &mut mended)?;
        let place = event.content_index.or_zero();
        match event.r#type.as_str() {
            Some("text_start") => {
                start(place, Kind::Text, answer);
            }
            Some("thinking_start") => {
                start(place, Kind::Thinking, answer);
            }
            Some("toolcall_start") => {
                self.start_call(place, event.id.as_str(), event.tool_name.or_empty(), answer);
            }
            Some("text_delta") => delta(place, Kind::Text, &event.delta, answer),
            Some("thinking_delta") => delta(place, Kind::Thinking, &event.delta, answer),
            Some("toolcall_delta") => delta(place, Kind::Call, &event.delta, answer),
            Some("text_end") => end_said(place, Kind::Text, &event, answer),
            Some("thinking_end") => end_said(place, Kind::Thinking, &event, answer),
            Some("toolcall_end") => self.end_call(place, event.tool_call.0.unwrap_or_default(), answer),
            Some("done") => {
                tell_facts(&event, answer);
                answer.finish(Ok(stop_reason(event.reason.or_empty())?));
                answer.done();
            }
            Some("error") => {
                tell_facts(&event, answer);
                return Err(error_of(&event));
            }
            kind => match event.error.filter(|error| !fault::is_nothing(error)) {
                Some(error) => return Err(fault::provider_error(&error)),
                // A start event, or an event type of a later version.
                None if kind.is_some() => {}
                None => return Err(fault::not_understood("stream", json)),
            },
        }
        Ok(())
    }

    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError> {
        self.event("", body, answer)
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        answer.end_all();
        let missing = format!("{} stream ended without a terminal event", answer.model.provider);
        answer.reason(&missing)
    }
}

/// Begins a text or thinking block, and ends the open block at this place.
fn start(place: u64, kind: Kind, answer: &mut Answer) -> usize {
    end_at(place, answer);
    answer.begin(kind, place)
}

fn end_at(place: u64, answer: &mut Answer) {
    if let Some(open) = answer.open_at(place) {
        answer.end(open);
    }
}

/// Adds a piece to the block at this place. An open block of another kind is ended first.
fn delta(place: u64, kind: Kind, delta: &parse::Text<'_>, answer: &mut Answer) {
    let Some(delta) = delta.as_str() else {
        return;
    };
    let index = match (answer.open_of(place, kind), kind) {
        (Some(index), _) => index,
        (None, Kind::Call) => {
            end_at(place, answer);
            answer.begin_call(place, "", "")
        }
        (None, _) => start(place, kind, answer),
    };
    answer.tell(index, delta);
}

fn end_said(place: u64, kind: Kind, event: &Event<'_>, answer: &mut Answer) {
    let index = match answer.open_of(place, kind) {
        Some(index) => index,
        // The block has ended already.
        None if answer.knows(place) => return,
        None => start(place, kind, answer),
    };
    let told = answer.told(index);
    answer.tell(index, event.content.or_empty().get(told..).unwrap_or_default());
    answer.set_signature(index, event.content_signature.to_owned());
    if event.redacted.0 {
        answer.redact(index);
    }
    answer.end(index);
}

fn tell_facts(event: &Event<'_>, answer: &mut Answer) {
    let usage = event.usage.as_ref();
    let rewrite = event.rewrite.0.clone();
    answer.info(Info {
        usage: usage.and_then(|usage| event::usage(usage, &answer.model)),
        response_id: event.response_id.to_owned(),
        provider_thinking_level: event.provider_thinking_level.to_owned(),
        extra: rewrite.map(|rewrite| diagnostics("pi_messages_rewrite", rewrite)).unwrap_or_default(),
        ..Info::default()
    });
}

fn stop_reason(reason: &str) -> Result<StopReason, StreamError> {
    match reason {
        "stop" => Ok(StopReason::Stop),
        "length" => Ok(StopReason::Length),
        "toolUse" => Ok(StopReason::ToolUse),
        other => Err(fault::stopped(format!("Provider stopped with: {other}"))),
    }
}

/// The error for an error event. An abort by the user closes the connection, so an abort event is another
/// party's and counts as an error.
fn error_of(event: &Event<'_>) -> StreamError {
    let aborted = event.reason.as_str() == Some("aborted");
    let text = event.error_message.as_str().unwrap_or(if aborted {
        "The server aborted the answer"
    } else {
        "The server sent an error without text"
    });
    fault::provider_error(&Value::from(text))
}
