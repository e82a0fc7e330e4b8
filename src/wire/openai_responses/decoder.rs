//! Decodes an answer of the Responses API.
//!
//! The answer is complete after the event that says how it ended, which contains the finished response.
//! [`Blocks`] assembles the items; this module handles the answer as a whole.

use super::blocks::{Blocks, Place};
use super::compat::Compat;
use super::request::effort_in_place;
use super::{codex, usage};
use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::limits;
use crate::llm::message::{StopReason, now_ms};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::wire::answer::{Answer, Kind, Reader};
use crate::wire::grammar;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::parse::{self, Count, Text};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An event of any type. Only deltas are frequent: items and responses are parsed when needed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    output_index: Count,
    #[serde(borrow)]
    item_id: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
    #[serde(borrow)]
    input: Text<'a>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

pub struct EventReader {
    variant: Variant,
    /// The requested service tier.
    tier: Option<String>,
    blocks: Blocks,
    /// The effort sent inside the conversation, reported with the answer's id.
    effort: Option<String>,
    /// The values that were reported.
    response_id: Option<String>,
    response_model: Option<String>,
}

impl EventReader {
    pub fn new(variant: Variant, model: &Model, context: &Context, options: &StreamOptions) -> Self {
        let compat = Compat::of(variant, model);
        let grammar = grammar::owned_properties(context, compat.supports_grammar_tools);
        let params = limits::sampling_params(model, options);
        let tier = params.filter(|(name, _)| *name == "service_tier").last();
        Self {
            variant,
            tier: tier.and_then(|(_, tier)| Some(tier.as_str()?.to_owned())),
            blocks: Blocks::new(grammar),
            effort: effort_in_place(variant, model, options).map(str::to_owned),
            response_id: None,
            response_model: None,
        }
    }

    fn read(
        &mut self,
        name: &str,
        event: &Event<'_>,
        data: &str,
        answer: &mut Answer,
    ) -> Result<(), StreamError> {
        // Some servers omit the type in the data, which is also the event's name.
        let kind = event.kind.as_str().unwrap_or(name);
        let place = Place { output: event.output_index.0, item: event.item_id.or_empty() };
        let piece = event.delta.or_empty();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.blocks.piece(Kind::Text, place, piece, answer);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.blocks.piece(Kind::Thinking, place, piece, answer);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.blocks.piece(Kind::Call, place, piece, answer);
            }
            "response.reasoning_summary_part.done" | "response.content_part.done" => {
                self.blocks.end_paragraph(place, answer);
            }
            "response.function_call_arguments.done" => {
                self.blocks.complete(place, event.arguments.or_empty(), answer);
            }
            "response.custom_tool_call_input.done" => {
                self.blocks.complete(place, event.input.or_empty(), answer);
            }
            "response.output_item.added" => {
                let item = value(event.item);
                self.blocks.begin(place.of(&item), &item, answer);
            }
            "response.output_item.done" => {
                let item = value(event.item);
                self.blocks.end(place.of(&item), &item, answer);
            }
            "response.created" => self.identify(&value(event.response), answer),
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let status = kind.strip_prefix("response.").unwrap_or_default();
                self.finish(status, &value(event.response), answer);
            }
            _ => {
                let error = event.error.map(|_| value(event.error));
                if kind == "error" || error.as_ref().is_some_and(|error| !fault::is_nothing(error)) {
                    let whole = || parse::value(data).unwrap_or_default();
                    return Err(self.error_of(&error.unwrap_or_else(whole)));
                }
            }
        }
        Ok(())
    }

    fn identify(&mut self, response: &Value, answer: &mut Answer) {
        let new = |name: &str, told: &Option<String>| {
            let text = response[name].as_str().filter(|text| !text.is_empty());
            let text = text.filter(|text| told.as_deref() != Some(text));
            text.map(str::to_owned)
        };
        let response_id = new("id", &self.response_id);
        let response_model = new("model", &self.response_model);
        let response_model = response_model.filter(|model| *model != answer.model.id);
        if response_id.is_none() && response_model.is_none() && self.effort.is_none() {
            return;
        }
        self.response_id = response_id.clone().or(self.response_id.take());
        self.response_model = response_model.clone().or(self.response_model.take());
        answer.info(Info { response_id, response_model, ..Info::default() });
    }

    /// Ends the answer. `event` is the part of the event's name that says how it ended.
    fn finish(&mut self, event: &str, response: &Value, answer: &mut Answer) {
        answer.done();
        self.identify(response, answer);
        let told_whole = answer.is_empty();
        let items = response["output"].as_array().into_iter().flatten();
        for (number, item) in (0..).zip(items) {
            let place = Place { output: Some(number), item: "" };
            match told_whole {
                true => self.blocks.end(place.of(item), item, answer),
                false => self.blocks.finished(place.of(item), item, answer),
            }
        }
        let unfinished = self.blocks.has_open_call(answer);
        self.blocks.end_all(answer);

        const KNOWN: [&str; 6] = ["completed", "incomplete", "failed", "cancelled", "in_progress", "queued"];
        let status = response["status"].as_str();
        let raw = status.unwrap_or(event);
        let known = status.filter(|status| KNOWN.contains(status));
        let reason = response["incomplete_details"]["reason"].as_str();
        answer.info(Info {
            usage: usage::of(response, self.variant, &answer.model, self.tier.as_deref()),
            raw_stop_reason: Some(match reason {
                Some(reason) => format!("{raw}.{reason}"),
                None => raw.to_owned(),
            }),
            end_turn: response["end_turn"].as_bool(),
            ..Info::default()
        });
        answer.finish(match (known.unwrap_or(event), reason) {
            _ if event == "failed" => Err(self.failure(response, reason)),
            ("incomplete", Some("max_output_tokens") | None) => Ok(StopReason::Length),
            ("incomplete", Some(reason)) => Err(fault::stopped(format!("Response incomplete: {reason}"))),
            ("failed" | "cancelled", _) => Err(self.failure(response, reason)),
            _ if unfinished => Err(StreamError::new(
                ErrorKind::Protocol,
                "OpenAI Responses stream completed with an unfinished tool call",
            )),
            _ => Ok(StopReason::Stop),
        });
    }

    fn failure(&self, response: &Value, reason: Option<&str>) -> StreamError {
        if !fault::is_nothing(&response["error"]) {
            return self.error_of(&response["error"]);
        }
        let message = match (reason, response["status"].as_str()) {
            (Some(reason), _) => format!("incomplete: {reason}"),
            (None, Some("cancelled")) => "The server cancelled the response".to_owned(),
            (None, _) => "The response failed, and the server did not say why".to_owned(),
        };
        fault::stopped(message)
    }

    fn error_of(&self, error: &Value) -> StreamError {
        let mut found = fault::provider_error(error);
        let word = |name: &str| error[name].as_str();
        let code = word("code").or_else(|| word("type").filter(|kind| *kind != "error"));
        if let Some(code) = code.filter(|code| !found.message.contains(code)) {
            found.message = format!("{code}: {}", found.message);
        }
        if self.variant == Variant::Codex
            && let Some(limit) = codex::usage_limit(error, false, now_ms())
        {
            found.message = limit.message;
            found.retry_after_ms = limit.wait_ms;
        }
        found
    }
}

impl Reader for EventReader {
    fn event(&mut self, name: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let data = data.trim();
        if data.starts_with("[DONE]") {
            answer.done();
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        if let Ok(event) = serde_json::from_str::<Event<'_>>(data) {
            return self.read(name, &event, data, answer);
        }
        let value = parse::value(data).map_err(|_| fault::not_understood("stream", data))?;
        if !value.is_object() {
            return Ok(());
        }
        // Raw values borrow from text.
        let data = value.to_string();
        let event = serde_json::from_str::<Event<'_>>(&data);
        let event = event.map_err(|_| fault::not_understood("stream", &data))?;
        self.read(name, &event, &data, answer)
    }

    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let response = parse::value(body).map_err(|_| fault::not_understood("answer", body))?;
        if response["output"].is_array() || response["status"].is_string() {
            self.finish("completed", &response, answer);
            return Ok(());
        }
        match &response["error"] {
            error if !fault::is_nothing(error) => Err(self.error_of(error)),
            _ if response["message"].is_string() => Err(self.error_of(&response)),
            _ => Err(fault::not_understood("answer", body)),
        }
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        answer.reason("The stream ended before a terminal response event")
    }
}

impl<'a> Place<'a> {
    /// This position with the item's own id.
    fn of(self, item: &'a Value) -> Self {
        let own = item["id"].as_str().filter(|id| !id.is_empty());
        Self { item: own.unwrap_or(self.item), ..self }
    }
}

/// Parses a value; `null` if it is missing or invalid.
fn value(raw: Option<&RawValue>) -> Value {
    let value = raw.map(|raw| parse::value(raw.get()));
    value.and_then(Result::ok).unwrap_or_default()
}
