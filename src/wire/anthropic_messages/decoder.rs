//! Decodes an answer in Anthropic's messages format.
//!
//! The server marks the start and end of each block and numbers the blocks, some of which are not shown. The
//! answer is complete after `message_stop`.

use super::compat::Compat;
use super::event::{ContentBlock, Delta, Event, Message, RawUsage, StopDetails};
use crate::llm::event::{Info, StreamError};
use crate::llm::http::fault;
use crate::llm::message::{Extra, StopReason, Usage};
use crate::llm::model::{Cost, Model};
use crate::llm::options::StreamOptions;
use crate::wire::answer::{Answer, Kind, Reader, diagnostics};
use crate::wire::parse;
use serde_json::{Map, Value};

pub struct MessageReader {
    /// Prices of models that may answer instead of the requested one.
    fallback_costs: Vec<(String, Cost)>,
    /// The requested effort, reported with the first event.
    effort: Option<String>,
    usage: Usage,
    transformations: Vec<Value>,
    started: bool,
}

impl MessageReader {
    pub fn new(model: &Model, options: &StreamOptions) -> Self {
        let compat = Compat::of(model);
        let effort = compat.effort_in_place(model, options);
        let fallback_costs = compat.fallbacks.iter().filter_map(|fallback| {
            let same = fallback.get("provider")?.as_str()? == model.provider;
            let cost = serde_json::from_value(fallback.get("cost")?.clone()).ok()?;
            let name = fallback.get("model")?.as_str()?.to_owned();
            same.then_some((name, cost))
        });
        Self {
            fallback_costs: fallback_costs.collect(),
            effort: effort.map(str::to_owned),
            usage: Usage::default(),
            transformations: Vec::new(),
            started: false,
        }
    }

    fn message_start(&mut self, message: &Message<'_>, answer: &mut Answer) {
        self.started = true;
        self.transform(&message.input_transformations.0);
        let answered_by = message.model.to_owned().filter(|name| *name != answer.model.id);
        if let Some(name) = &answered_by {
            let mut costs = self.fallback_costs.iter();
            if let Some((_, cost)) = costs.find(|(known, _)| known == name) {
                answer.model.cost = cost.clone();
            }
        }
        answer.info(Info {
            response_id: message.id.to_owned(),
            response_model: answered_by,
            provider_thinking_level: self.effort.take(),
            ..Info::default()
        });
        let none = RawUsage::default();
        let usage = message.usage.0.as_ref().unwrap_or(&none);
        self.update_usage(usage);
        self.usage.cache_write_1h.get_or_insert(0);
        self.tell_usage(Some(usage), answer);
    }

    fn message_delta(&mut self, event: &Event<'_>, answer: &mut Answer) {
        self.transform(&event.input_transformations.0);
        if let Some(delta) = &event.delta.0
            && let Some(reason) = delta.stop_reason.as_str()
        {
            answer.stop(reason, stop_reason(reason, delta.stop_details.0.as_ref()));
        }
        if let Some(usage) = &event.usage.0 {
            self.update_usage(usage);
        }
        self.tell_usage(event.usage.0.as_ref(), answer);
    }

    /// Updates the token counts. A missing count keeps its earlier value, since proxies omit some in the last
    /// event.
    fn update_usage(&mut self, raw: &RawUsage) {
        let usage = &mut self.usage;
        let set = |to: &mut u64, count: parse::Count| *to = count.0.unwrap_or(*to);
        set(&mut usage.input, raw.input_tokens);
        set(&mut usage.output, raw.output_tokens);
        set(&mut usage.cache_read, raw.cache_read_input_tokens);
        set(&mut usage.cache_write, raw.cache_creation_input_tokens);
        let details = raw.output_tokens_details.0.as_ref();
        let thinking = details.and_then(|details| details.thinking_tokens.0);
        usage.reasoning = thinking.or(usage.reasoning);
        let kept = raw.cache_creation.0.as_ref();
        let kept_long = kept.and_then(|kept| kept.ephemeral_1h_input_tokens.0);
        usage.cache_write_1h = kept_long.or(usage.cache_write_1h);
    }

    /// Reports the usage. `raw` is the server's usage object, which may contain the billed cost.
    fn tell_usage(&mut self, raw: Option<&RawUsage>, answer: &mut Answer) {
        let usage = &mut self.usage;
        let parts = [usage.output, usage.cache_read, usage.cache_write];
        usage.total_tokens = parts.into_iter().fold(usage.input, u64::saturating_add);
        answer.billed_usage(usage.clone(), raw.map(RawUsage::bill));
    }

    fn transform(&mut self, transformations: &[Value]) {
        if !transformations.is_empty() {
            self.transformations = transformations.to_vec();
        }
    }
}

impl Reader for MessageReader {
    fn event(&mut self, name: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError> {
        const KNOWN: [&str; 7] = [
            "content_block_delta",
            "content_block_start",
            "content_block_stop",
            "message_start",
            "message_delta",
            "message_stop",
            "error",
        ];
        // Some servers omit the event's name, which its data contains too.
        if data.trim().is_empty() || !(name.is_empty() || KNOWN.contains(&name)) {
            return Ok(());
        }
        if name == "error" {
            let value = parse::value(data).map_err(|_| fault::not_understood("stream", data))?;
            return Err(error_of(&value));
        }
        let mut mended = String::new();
        let event: Event<'_> = parse::event(data, &mut mended)?;
        let number = event.index.or_zero();
        match event.r#type.or_empty() {
            "content_block_delta" => {
                if let Some(delta) = &event.delta.0 {
                    block_delta(number, delta, answer);
                }
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block.0 {
                    block_start(number, block, answer)?;
                }
            }
            "content_block_stop" => block_stop(number, answer),
            "message_start" => {
                self.started = true;
                if let Some(message) = &event.message.0 {
                    self.message_start(message, answer);
                }
            }
            "message_delta" => self.message_delta(&event, answer),
            "message_stop" => answer.done(),
            "error" => return Err(error_of(&parse::value(data).unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let not_understood = |_| fault::not_understood("answer", body);
        let value = parse::value(body).map_err(not_understood)?;
        if value["type"] != "message" {
            return Err(error_of(&value));
        }
        let mended = value.to_string();
        let message: Message<'_> = serde_json::from_str(&mended).map_err(not_understood)?;
        self.message_start(&message, answer);
        let blocks = message.content.0.iter().filter_map(|block| block.0.as_ref());
        for (number, block) in (0..).zip(blocks) {
            block_start(number, block, answer)?;
            block_stop(number, answer);
        }
        let reason = message.stop_reason.as_str().unwrap_or("end_turn");
        answer.stop(reason, stop_reason(reason, message.stop_details.0.as_ref()));
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        if self.started && !answer.is_done() {
            return Err(fault::cut_short("Anthropic stream ended before message_stop"));
        }
        answer.end_all();
        let reason = answer.reason("Anthropic stream ended without a stop reason")?;
        if !self.transformations.is_empty() {
            let extra = changes(&self.transformations);
            answer.info(Info { extra, ..Info::default() });
        }
        Ok(reason)
    }
}

fn block_start(number: u64, block: &ContentBlock<'_>, answer: &mut Answer) -> Result<(), StreamError> {
    block_stop(number, answer); // which began without this
    match block.r#type.or_empty() {
        "text" => {
            let index = answer.begin(Kind::Text, number);
            answer.tell(index, block.text.or_empty());
        }
        "thinking" => {
            let index = answer.begin(Kind::Thinking, number);
            answer.tell(index, block.thinking.or_empty());
            answer.sign(index, block.signature.or_empty());
        }
        "redacted_thinking" => {
            let index = answer.begin(Kind::Thinking, number);
            answer.tell_redacted(index);
            answer.sign(index, block.data.or_empty());
        }
        "tool_use" => {
            let index = answer.begin_call(number, block.id.or_empty(), block.name.or_empty());
            let input = block.input.0.as_ref().filter(|input| !input.is_empty());
            answer.set_default(index, input.and_then(|input| serde_json::to_string(input).ok()));
        }
        "fallback" if !answer.is_empty() => {
            return Err(fault::stopped("Anthropic performed an unsupported mid-output model fallback"));
        }
        _ => {}
    }
    Ok(())
}

/// Adds a piece to a block. Some servers send pieces of text and thinking without a start event.
fn block_delta(number: u64, delta: &Delta<'_>, answer: &mut Answer) {
    match delta.r#type.or_empty() {
        "text_delta" => {
            if let Some(index) = answer.open_or_begin(number, Kind::Text) {
                answer.tell(index, delta.text.or_empty());
            }
        }
        "thinking_delta" => {
            if let Some(index) = answer.open_or_begin(number, Kind::Thinking) {
                answer.tell(index, delta.thinking.or_empty());
                answer.sign(index, "");
            }
        }
        "signature_delta" => {
            if let Some(index) = answer.open_of(number, Kind::Thinking) {
                answer.sign(index, delta.signature.or_empty());
            }
        }
        "input_json_delta" => {
            if let Some(index) = answer.open_of(number, Kind::Call) {
                answer.tell(index, delta.partial_json.or_empty());
            }
        }
        _ => {}
    }
}

fn block_stop(number: u64, answer: &mut Answer) {
    if let Some(index) = answer.open_at(number) {
        answer.end(index);
    }
}

fn stop_reason(reason: &str, details: Option<&StopDetails>) -> Result<StopReason, StreamError> {
    match reason {
        "end_turn" | "stop_sequence" | "pause_turn" => Ok(StopReason::Stop),
        "max_tokens" => Ok(StopReason::Length),
        "tool_use" => Ok(StopReason::ToolUse),
        "refusal" => {
            let explanation = details.and_then(|details| details.explanation.as_ref()?.as_str());
            let explanation = explanation.filter(|text| !text.is_empty());
            Err(fault::stopped(explanation.unwrap_or("The model refused to complete the request")))
        }
        "sensitive" => Err(fault::stopped("Provider stopped with: sensitive")),
        other => Err(fault::stopped(format!("Unhandled stop reason: {other}"))),
    }
}

/// The server's changes to the request, in the format in which messages store them.
fn changes(transformations: &[Value]) -> Extra {
    let known = transformations.iter().map(|transformation| {
        let fields = ["type", "path", "reason"].into_iter();
        let fields = fields.filter_map(|name| {
            let value = transformation.get(name).filter(|value| !value.is_null())?;
            Some((name.to_owned(), value.clone()))
        });
        Value::from(fields.collect::<Map<String, Value>>())
    });
    let known = Map::from_iter([("transformations".to_owned(), known.collect())]);
    diagnostics("anthropic_input_transformations", known)
}

/// The error type precedes the text, since both are needed to decide on a retry.
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
