//! Decodes an answer of chat completions.
//!
//! By default all text of an answer is one block and all thinking another, even if they alternate; each tool
//! call is a block. The protocol does not mark ends of blocks: all blocks end with the answer, in the order
//! in which they began. With [`Reading::in_order`] each run of text or thinking is a block.

use super::calls::Calls;
use super::chunk::{Chunk, Content, Delta};
use super::inline::{Inline, Piece, Tools};
use super::reasoning;
use crate::llm::context::Context;
use crate::llm::event::{Info, StreamError};
use crate::llm::http::fault;
use crate::llm::message::StopReason;
use crate::llm::model::Model;
use crate::wire::answer::{Answer, AnswerDecoder, Kind, Reader};
use crate::wire::ids::Ids;
use crate::wire::{grammar, parse};
use serde_json::Value;

/// How a profile's answers are decoded.
pub struct Reading {
    /// Converts a `finish_reason`.
    pub stop_reason: fn(&str) -> Result<StopReason, StreamError>,
    /// Error text for an answer that ends without a reason; `None` if the server sends no reasons.
    pub no_reason: Option<&'static str>,
    /// Converts a generated call id to a form that the server accepts.
    pub id_form: fn(&str) -> String,
    /// True if each run of text or thinking is a block.
    pub in_order: bool,
    /// True if an invalid chunk is an error; otherwise it is ignored.
    pub is_strict: bool,
    /// True if usage reports the number of thinking tokens, even as zero.
    pub counts_thinking: bool,
    pub grammar_tools: bool,
    pub think_tags: bool,
    pub text_tool_calls: bool,
    pub cumulative_arguments: bool,
}

pub struct ChunkReader {
    provider: String,
    reading: Reading,
    blocks: Blocks,
    /// Finds thinking and tool calls in plain text, if enabled.
    inline: Option<Inline>,
}

struct Blocks {
    in_order: bool,
    /// Index of the current text block, and of the current thinking block.
    text: Option<usize>,
    thinking: Option<usize>,
    /// The field in which thinking arrived.
    reasoning_field: Option<&'static str>,
    details: reasoning::Details,
    calls: Calls,
    /// All text so far, while it may turn out to be thinking.
    unsure: Option<String>,
}

impl ChunkReader {
    pub fn decoder(reading: Reading, model: &Model, context: &Context) -> AnswerDecoder<Self> {
        let grammar = grammar::owned_properties(context, reading.grammar_tools);
        let offered = if reading.text_tool_calls {
            let tools = context.head().tools.into_iter();
            tools.map(|tool| (tool.name, tool.parameters)).collect()
        } else {
            Tools::new()
        };
        let answer = Answer::with_ids(model, Ids::with_form(context, reading.id_form));
        let reader = Self {
            provider: model.provider.clone(),
            blocks: Blocks {
                in_order: reading.in_order,
                text: None,
                thinking: None,
                reasoning_field: None,
                details: reasoning::Details::default(),
                calls: Calls::new(grammar, reading.cumulative_arguments),
                unsure: reading.think_tags.then(String::new),
            },
            inline: (reading.think_tags || !offered.is_empty())
                .then(|| Inline::new(reading.think_tags, offered)),
            reading,
        };
        AnswerDecoder::new(reader, answer)
    }

    fn chunk(&mut self, chunk: Chunk<'_>, whole: bool, answer: &mut Answer) -> Result<(), StreamError> {
        if let Some(error) = chunk.error.filter(|error| !fault::is_nothing(error)) {
            return Err(fault::provider_error(&error));
        }
        answer.identify(&chunk.id, &chunk.model);
        let choice = chunk.choices.0.and_then(|choice| choice.0).unwrap_or_default();
        if let Some(usage) = chunk.usage.0.as_ref().or(choice.usage.0.as_ref()) {
            let bill = usage.bill();
            let mut usage = usage.to_usage();
            usage.reasoning = usage.reasoning.filter(|tokens| *tokens > 0 || self.reading.counts_thinking);
            answer.billed_usage(usage, Some(bill));
        }
        if let Some(progress) = &chunk.prompt_progress.0 {
            answer.info(Info {
                prompt_progress: progress.processed.0.zip(progress.total.0),
                ..Info::default()
            });
        }
        if let Some(reason) = choice.finish_reason.as_str() {
            answer.stop(reason, (self.reading.stop_reason)(reason));
        }
        let whole = whole || chunk.object.as_str() == Some("chat.completion");
        let delta = match choice.delta.0 {
            None if whole => choice.message.0.map(|message| *message),
            delta => delta,
        };
        if let Some(delta) = delta {
            self.delta(delta, answer);
        }
        if answer.is_finished() {
            self.blocks.calls.settle(answer);
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, answer: &mut Answer) {
        // Thinking comes first, since proxies send the whole answer in one piece. Only the first field with
        // text is used: some servers send one text in two fields.
        let fields = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("reasoning_text", &delta.reasoning_text),
        ];
        let said = fields.into_iter().find_map(|(name, text)| Some((name, text.as_str()?)));
        if let Some((name, text)) = said {
            let field = reasoning::field(&self.provider, name);
            self.blocks.think(text, field, answer);
        }
        for detail in delta.reasoning_details.0 {
            if self.blocks.details.push(detail) {
                self.blocks.thinking(answer);
            }
        }
        match delta.content {
            Content::None => {}
            Content::Text(text) => self.text(&text, answer),
            Content::Parts(parts) => {
                for part in parts {
                    self.blocks.think(&part.thinking_text(), None, answer);
                    self.text(part.text.or_empty(), answer);
                }
            }
        }
        for call in delta.tool_calls.0.iter().filter_map(|call| call.0.as_ref()) {
            self.blocks.end_runs(None, answer);
            self.blocks.calls.take(call, answer);
        }
    }

    fn text(&mut self, text: &str, answer: &mut Answer) {
        let blocks = &mut self.blocks;
        match &mut self.inline {
            Some(inline) => inline.feed(text, &mut |piece| blocks.piece(piece, answer)),
            None => blocks.say(text, answer),
        }
    }
}

impl Reader for ChunkReader {
    fn event(&mut self, event: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let data = data.trim();
        if data.starts_with("[DONE]") {
            answer.done();
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        if event == "error" {
            return Err(error_of(data, "answer"));
        }
        let not_understood = || fault::not_understood("stream", data);
        if let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(data)
            && !(self.reading.is_strict && chunk.choices.0.is_none())
        {
            return self.chunk(chunk, false, answer);
        }
        let value = parse::value(data).map_err(|_| not_understood())?;
        if !value.is_object() {
            return if self.reading.is_strict { Err(not_understood()) } else { Ok(()) };
        }
        let mended = value.to_string();
        let chunk: Chunk<'_> = serde_json::from_str(&mended).map_err(|_| not_understood())?;
        let says_nothing = chunk.choices.0.is_none() && chunk.usage.0.is_none();
        if self.reading.is_strict && says_nothing && is_error(&value) {
            return Err(error_of(data, "stream"));
        }
        self.chunk(chunk, false, answer)
    }

    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError> {
        let not_understood = |_| fault::not_understood("answer", body);
        let mended = parse::value(body).map_err(not_understood)?.to_string();
        let chunk: Chunk<'_> = serde_json::from_str(&mended).map_err(not_understood)?;
        if chunk.error.is_none() && chunk.choices.0.is_none() {
            return Err(error_of(body, "answer"));
        }
        self.chunk(chunk, true, answer)?;
        // The answer is complete, even without a stop reason.
        if !answer.is_finished() {
            answer.finish(Ok(StopReason::Stop));
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError> {
        let blocks = &mut self.blocks;
        if let Some(inline) = &mut self.inline {
            inline.end(&mut |piece| blocks.piece(piece, answer));
        }
        blocks.end(answer);
        if self.reading.no_reason.is_none() && !answer.is_finished() {
            answer.finish(Ok(StopReason::Stop));
        }
        answer.reason(self.reading.no_reason.unwrap_or_default())
    }
}

impl Blocks {
    fn say(&mut self, text: &str, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        self.end_runs(self.text, answer);
        let index = *self.text.get_or_insert_with(|| answer.begin(Kind::Text, None));
        answer.tell(index, text);
    }

    fn think(&mut self, text: &str, field: Option<&'static str>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        self.end_runs(self.thinking, answer);
        let index = self.thinking(answer);
        self.reasoning_field = self.reasoning_field.or(field);
        answer.tell(index, text);
    }

    /// The index of the thinking block, which is begun if there is none.
    fn thinking(&mut self, answer: &mut Answer) -> usize {
        *self.thinking.get_or_insert_with(|| answer.begin(Kind::Thinking, None))
    }

    /// Ends the current runs except `keep`, if blocks are in order.
    fn end_runs(&mut self, keep: Option<usize>, answer: &mut Answer) {
        if !self.in_order {
            return;
        }
        for run in [&mut self.text, &mut self.thinking] {
            if let Some(index) = run.take_if(|index| Some(*index) != keep) {
                answer.end(index);
            }
        }
    }

    /// Adds content found in plain text.
    fn piece(&mut self, piece: Piece<'_>, answer: &mut Answer) {
        match piece {
            Piece::Text(text) => {
                if let Some(unsure) = &mut self.unsure {
                    unsure.push_str(text);
                }
                self.say(text, answer);
            }
            Piece::Thinking(text) => {
                self.unsure = None;
                self.think(text, None, answer);
            }
            Piece::WasThinking => self.rethink(answer),
            Piece::Call { name, arguments } => {
                self.unsure = None;
                let arguments = serde_json::to_string(&arguments).unwrap_or_default();
                self.calls.take_whole(&name, arguments, answer);
            }
        }
    }

    /// Turns all text so far into thinking: ends the text block and begins a thinking block at its index.
    fn rethink(&mut self, answer: &mut Answer) {
        let Some(said) = self.unsure.take() else {
            return;
        };
        if self.thinking.is_some() {
            return;
        }
        if let Some(index) = self.text.take() {
            answer.restart(index, Kind::Thinking);
            answer.tell(index, &said);
            self.thinking = Some(index);
        }
    }

    fn end(&mut self, answer: &mut Answer) {
        self.end_runs(None, answer);
        self.calls.start_nameless(answer);
        if let Some(index) = self.thinking {
            let field = self.reasoning_field.map(str::to_owned);
            answer.set_signature(index, self.details.signature().or(field));
        }
        for index in 0..answer.len() {
            match answer.kind(index) {
                Some(Kind::Call) => self.calls.end(index, answer),
                _ => answer.end(index),
            }
        }
    }
}

/// True if JSON is or contains an error.
fn is_error(value: &Value) -> bool {
    value.get("error").is_some_and(|error| !fault::is_nothing(error)) || value.get("message").is_some()
}

/// The provider's error in `data`, or a decoding error that names the source `what`.
fn error_of(data: &str, what: &str) -> StreamError {
    match parse::value(data) {
        Ok(value) if is_error(&value) => {
            let inside = value.get("error").filter(|error| !fault::is_nothing(error));
            fault::provider_error(inside.unwrap_or(&value))
        }
        _ => fault::not_understood(what, data),
    }
}
