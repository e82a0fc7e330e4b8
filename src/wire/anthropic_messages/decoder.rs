//! An answer of Anthropic's messages, from its events to ours.
//!
//! The server says where each block begins and ends; blocks are numbered by it, and here again without
//! those that are not shown. The answer is whole when `message_stop` was seen.

use super::compat::Compat;
use super::event::{ContentBlock, Delta, Event, Message, RawUsage, StopDetails};
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::lax;
use crate::llm::message::{Extra, StopReason, Usage, now_ms};
use crate::llm::model::{Cost, Model};
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, Frame};
use crate::wire::ids::Ids;
use serde::Deserialize;
use serde_json::{Value, json};

const REDACTED: &str = "[Reasoning redacted]";
const NO_NAME: &str = "unknown";

pub struct MessageDecoder {
    model: Model,
    /// Prices of models that may answer in this one's stead.
    fallback_costs: Vec<(String, Cost)>,
    /// Told with the first event.
    effort: Option<String>,
    ids: Ids,
    has_calls: bool,
    /// How many blocks there are.
    blocks: usize,
    open: Vec<Open>,
    usage: Usage,
    transformations: Vec<Value>,
    finish: Option<Result<StopReason, String>>,
    started: bool,
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
        redacted: bool,
    },
    Call {
        /// Arguments that came whole with the beginning; used if none follow.
        input: Option<String>,
    },
}

impl MessageDecoder {
    pub fn new(model: &Model, context: &Context, options: &StreamOptions) -> Self {
        let compat = Compat::of(model);
        let effort = compat.effort(model, options).unwrap_or("high");
        let fallback_costs = compat.fallbacks.iter().filter_map(|fallback| {
            let same = fallback.get("provider")?.as_str()? == model.provider;
            let cost = serde_json::from_value(fallback.get("cost")?.clone()).ok()?;
            let name = fallback.get("model")?.as_str()?.to_owned();
            same.then_some((name, cost))
        });
        Self {
            fallback_costs: fallback_costs.collect(),
            effort: compat.effort_in_place.then(|| effort.to_owned()),
            ids: Ids::new(context),
            has_calls: false,
            blocks: 0,
            open: Vec::new(),
            usage: Usage::default(),
            transformations: Vec::new(),
            finish: None,
            started: false,
            done: false,
            model: model.clone(),
        }
    }

    fn sse(&mut self, name: &str, data: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        const KNOWN: [&str; 7] = [
            "content_block_delta",
            "content_block_start",
            "content_block_stop",
            "message_start",
            "message_delta",
            "message_stop",
            "error",
        ];
        // Some servers leave the event's name out; its data has it too.
        if data.trim().is_empty() || !(name.is_empty() || KNOWN.contains(&name)) {
            return Ok(());
        }
        if name != "error"
            && let Ok(event) = serde_json::from_str::<Event<'_>>(data)
        {
            return self.event(&event, data, out);
        }
        let value = lax::value(data).map_err(|_| fault::not_understood("stream", data))?;
        if name == "error" {
            return Err(error_of(&value));
        }
        let event = Event::deserialize(&value);
        let event = event.map_err(|_| fault::not_understood("stream", data))?;
        self.event(&event, data, out)
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        data: &str,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        let number = event.index.or_zero();
        match event.r#type.as_str().unwrap_or_default() {
            "content_block_delta" => {
                if let Some(delta) = &event.delta.0 {
                    self.block_delta(number, delta, out);
                }
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block.0 {
                    self.block_start(number, block, out)?;
                }
            }
            "content_block_stop" => self.block_stop(number, out),
            "message_start" => {
                self.started = true;
                if let Some(message) = &event.message.0 {
                    self.message_start(message, out);
                }
            }
            "message_delta" => {
                self.transform(&event.input_transformations.0);
                if let Some(delta) = &event.delta.0
                    && let Some(reason) = delta.stop_reason.as_str()
                {
                    self.take_finish(reason, delta.stop_details.0.as_ref(), out);
                }
                if let Some(usage) = &event.usage.0 {
                    self.update_usage(usage);
                }
                self.tell_usage(out);
            }
            "message_stop" => self.done = true,
            "error" => return Err(error_of(&lax::value(data).unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    fn body(&mut self, body: &str, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let not_understood = |_| fault::not_understood("answer", body);
        let value = lax::value(body).map_err(not_understood)?;
        if value["type"] != "message" {
            return Err(error_of(&value));
        }
        let message = Message::deserialize(&value).map_err(not_understood)?;
        self.started = true;
        self.message_start(&message, out);
        let blocks = message.content.0.iter().filter_map(|block| block.0.as_ref());
        for (number, block) in (0..).zip(blocks) {
            self.block_start(number, block, out)?;
            self.block_stop(number, out);
        }
        let reason = message.stop_reason.as_str().unwrap_or("end_turn");
        self.take_finish(reason, message.stop_details.0.as_ref(), out);
        self.done = true;
        Ok(())
    }

    fn message_start(&mut self, message: &Message<'_>, out: &mut Vec<AssistantEvent>) {
        self.transform(&message.input_transformations.0);
        let answered_by = message.model.as_str().filter(|name| *name != self.model.id);
        if let Some(name) = answered_by {
            let mut costs = self.fallback_costs.iter();
            if let Some((_, cost)) = costs.find(|(known, _)| known == name) {
                self.model.cost = cost.clone();
            }
        }
        out.push(AssistantEvent::info(Info {
            response_id: message.id.as_str().map(str::to_owned),
            response_model: answered_by.map(str::to_owned),
            provider_thinking_level: self.effort.take(),
            ..Info::default()
        }));
        let none = RawUsage::default();
        let usage = message.usage.0.as_ref().unwrap_or(&none);
        self.update_usage(usage);
        let kept_long = usage.cache_creation.0.as_ref();
        let kept_long = kept_long.map_or(0, |kept| kept.ephemeral_1h_input_tokens.or_zero());
        self.usage.cache_write_1h = Some(kept_long);
        self.tell_usage(out);
    }

    /// What is not said again stays: proxies leave figures out of the last event.
    fn update_usage(&mut self, raw: &RawUsage) {
        let usage = &mut self.usage;
        let set = |to: &mut u64, count: lax::Count| *to = count.0.unwrap_or(*to);
        set(&mut usage.input, raw.input_tokens);
        set(&mut usage.output, raw.output_tokens);
        set(&mut usage.cache_read, raw.cache_read_input_tokens);
        set(&mut usage.cache_write, raw.cache_creation_input_tokens);
        let details = raw.output_tokens_details.0.as_ref();
        let thinking = details.and_then(|details| details.thinking_tokens.0);
        usage.reasoning = thinking.or(usage.reasoning);
    }

    fn tell_usage(&mut self, out: &mut Vec<AssistantEvent>) {
        let usage = &mut self.usage;
        let parts = [usage.output, usage.cache_read, usage.cache_write];
        usage.total_tokens = parts.into_iter().fold(usage.input, u64::saturating_add);
        self.model.price(usage);
        out.push(AssistantEvent::info(Info { usage: Some(usage.clone()), ..Info::default() }));
    }

    fn transform(&mut self, transformations: &[Value]) {
        if !transformations.is_empty() {
            self.transformations = transformations.to_vec();
        }
    }

    fn take_finish(&mut self, reason: &str, details: Option<&StopDetails>, out: &mut Vec<AssistantEvent>) {
        self.finish = Some(match reason {
            "end_turn" | "stop_sequence" | "pause_turn" => Ok(StopReason::Stop),
            "max_tokens" => Ok(StopReason::Length),
            "tool_use" => Ok(StopReason::ToolUse),
            "refusal" => {
                let explanation = details.and_then(|details| details.explanation.as_ref()?.as_str());
                let explanation = explanation.filter(|text| !text.is_empty());
                Err(explanation.unwrap_or("The model refused to complete the request").to_owned())
            }
            "sensitive" => Err("Provider stopped with: sensitive".to_owned()),
            other => Err(format!("Unhandled stop reason: {other}")),
        });
        out.push(AssistantEvent::info(Info { raw_stop_reason: Some(reason.to_owned()), ..Info::default() }));
    }

    fn block_start(
        &mut self,
        number: u64,
        block: &ContentBlock<'_>,
        out: &mut Vec<AssistantEvent>,
    ) -> Result<(), StreamError> {
        self.block_stop(number, out); // which began without this
        let index = self.blocks;
        let text = |text: &lax::Text<'_>| text.as_str().unwrap_or_default().to_owned();
        let kind = match block.r#type.as_str().unwrap_or_default() {
            "text" => {
                out.push(AssistantEvent::TextStart { index });
                let delta = text(&block.text);
                push_text(AssistantEvent::TextDelta { index, delta }, out);
                Kind::Text
            }
            "thinking" => {
                out.push(AssistantEvent::ThinkingStart { index });
                let delta = text(&block.thinking);
                push_text(AssistantEvent::ThinkingDelta { index, delta }, out);
                Kind::Thinking { signature: text(&block.signature), redacted: false }
            }
            "redacted_thinking" => {
                out.push(AssistantEvent::ThinkingStart { index });
                let delta = REDACTED.to_owned();
                out.push(AssistantEvent::ThinkingDelta { index, delta });
                Kind::Thinking { signature: text(&block.data), redacted: true }
            }
            "tool_use" => {
                self.has_calls = true;
                let id = block.id.as_str().unwrap_or_default();
                let id = self.ids.take(id, index);
                let name = block.name.as_str().unwrap_or(NO_NAME).to_owned();
                out.push(AssistantEvent::ToolCallStart { index, id, name });
                let input = block.input.0.as_ref().filter(|input| !input.is_empty());
                Kind::Call { input: input.and_then(|input| serde_json::to_string(input).ok()) }
            }
            "fallback" if index > 0 => {
                let message = "Anthropic performed an unsupported mid-output model fallback";
                return Err(StreamError::new(ErrorKind::Provider, message));
            }
            _ => return Ok(()),
        };
        self.blocks += 1;
        self.open.push(Open { number, index, kind });
        Ok(())
    }

    fn block_delta(&mut self, number: u64, delta: &Delta<'_>, out: &mut Vec<AssistantEvent>) {
        let known = self.open.iter().position(|block| block.number == number);
        let Some(at) = known.or_else(|| self.begin_unannounced(number, delta, out)) else {
            return;
        };
        let Some(block) = self.open.get_mut(at) else {
            return;
        };
        let index = block.index;
        let text = |text: &lax::Text<'_>| text.as_str().unwrap_or_default().to_owned();
        match (delta.r#type.as_str().unwrap_or_default(), &mut block.kind) {
            ("text_delta", Kind::Text) => {
                let delta = text(&delta.text);
                push_text(AssistantEvent::TextDelta { index, delta }, out);
            }
            ("thinking_delta", Kind::Thinking { .. }) => {
                let delta = text(&delta.thinking);
                push_text(AssistantEvent::ThinkingDelta { index, delta }, out);
            }
            ("signature_delta", Kind::Thinking { signature, .. }) => {
                signature.push_str(delta.signature.as_str().unwrap_or_default());
            }
            ("input_json_delta", Kind::Call { input }) => {
                let delta = text(&delta.partial_json);
                if !delta.is_empty() {
                    *input = None;
                }
                push_text(AssistantEvent::ToolCallDelta { index, delta }, out);
            }
            _ => {}
        }
    }

    /// Some servers send the pieces of a text without its beginning.
    fn begin_unannounced(
        &mut self,
        number: u64,
        delta: &Delta<'_>,
        out: &mut Vec<AssistantEvent>,
    ) -> Option<usize> {
        let index = self.blocks;
        let (start, kind) = match delta.r#type.as_str()? {
            "text_delta" => (AssistantEvent::TextStart { index }, Kind::Text),
            "thinking_delta" => (
                AssistantEvent::ThinkingStart { index },
                Kind::Thinking { signature: String::new(), redacted: false },
            ),
            _ => return None,
        };
        out.push(start);
        self.blocks += 1;
        self.open.push(Open { number, index, kind });
        Some(self.open.len() - 1)
    }

    fn block_stop(&mut self, number: u64, out: &mut Vec<AssistantEvent>) {
        let found = self.open.iter().position(|block| block.number == number);
        if let Some(at) = found {
            self.open.remove(at).end(out);
        }
    }
}

impl Decoder for MessageDecoder {
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
        if self.started && !self.done {
            return Err(fault::cut_short("Anthropic stream ended before message_stop"));
        }
        self.done = true;
        for block in self.open.drain(..) {
            block.end(out);
        }
        let reason = match self.finish.take() {
            None => {
                let message = "Anthropic stream ended without a stop reason";
                return Err(fault::cut_short(message));
            }
            Some(Err(message)) => return Err(StreamError::new(ErrorKind::Provider, message)),
            Some(Ok(StopReason::Stop)) if self.has_calls => StopReason::ToolUse,
            Some(Ok(reason)) => reason,
        };
        if !self.transformations.is_empty() {
            out.push(AssistantEvent::info(Info {
                extra: diagnostics(&self.transformations),
                ..Info::default()
            }));
        }
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
        let event = match self.kind {
            Kind::Text => AssistantEvent::TextEnd { index, signature: None },
            Kind::Thinking { signature, redacted } => {
                AssistantEvent::ThinkingEnd { index, signature: Some(signature), redacted }
            }
            Kind::Call { input } => {
                if let Some(delta) = input {
                    out.push(AssistantEvent::ToolCallDelta { index, delta });
                }
                AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature: None }
            }
        };
        out.push(event);
    }
}

/// A delta without text says nothing.
fn push_text(event: AssistantEvent, out: &mut Vec<AssistantEvent>) {
    let empty = match &event {
        AssistantEvent::TextDelta { delta, .. }
        | AssistantEvent::ThinkingDelta { delta, .. }
        | AssistantEvent::ToolCallDelta { delta, .. } => delta.is_empty(),
        _ => false,
    };
    if !empty {
        out.push(event);
    }
}

/// What the server changed in the request before the model saw it, as the message keeps it.
fn diagnostics(transformations: &[Value]) -> Extra {
    let known = transformations.iter().map(|transformation| {
        let fields = ["type", "path", "reason"].into_iter();
        let fields = fields.filter_map(|name| {
            let value = transformation.get(name).filter(|value| !value.is_null())?;
            Some((name.to_owned(), value.clone()))
        });
        fields.collect::<Extra>()
    });
    let entry = json!({
        "type": "anthropic_input_transformations",
        "timestamp": now_ms(),
        "details": {"transformations": known.collect::<Vec<_>>()},
    });
    Extra::from_iter([("diagnostics".to_owned(), Value::from(vec![entry]))])
}

/// The type stands before the text: who decides on a retry reads both.
fn error_of(value: &Value) -> StreamError {
    let error = value.get("error").filter(|error| !error.is_null());
    let error = error.unwrap_or(value);
    let mut found = fault::provider_error(error);
    if let Some(kind) = error["type"].as_str()
        && error["message"].is_string()
        && !found.message.contains(kind)
    {
        found.message = format!("{kind}: {}", found.message);
    }
    found
}
