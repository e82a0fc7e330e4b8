//! Builds the events of an answer from the blocks that a wire protocol reads.
//!
//! A protocol's [`Reader`] decodes frames and reports their content to an [`Answer`]. The answer numbers its
//! blocks from zero without gaps, and enforces the rules of a stream: a block begins once, receives no piece
//! after its end, and no two calls share an id.
//!
//! Not here: the frame formats (in each protocol) and broken JSON (`wire::parse`).

use super::billed::Bill;
use super::ids::{Ids, NO_NAME};
use super::parse::Text;
use crate::base::json::json;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, Info, StreamError};
use crate::llm::http::fault;
use crate::llm::message::{Extra, StopReason, Usage, now_ms};
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Frame};
use crate::llm::stream::CALLS_MAX;
use serde_json::Value;

/// Shown for thinking that the provider encrypts.
const REDACTED: &str = "[Reasoning redacted]";

/// Decodes the frames of one protocol.
pub trait Reader: Send {
    /// Decodes one event of a stream.
    fn event(&mut self, name: &str, data: &str, answer: &mut Answer) -> Result<(), StreamError>;

    /// Decodes a complete answer from a server that does not stream.
    fn body(&mut self, body: &str, answer: &mut Answer) -> Result<(), StreamError>;

    /// Ends the open blocks after the last frame. Returns the stop reason, or an error if the answer is
    /// incomplete.
    fn end(&mut self, answer: &mut Answer) -> Result<StopReason, StreamError>;
}

/// Implements [`Decoder`] for a [`Reader`].
pub struct AnswerDecoder<R> {
    reader: R,
    answer: Answer,
}

impl<R: Reader> AnswerDecoder<R> {
    pub fn new(reader: R, answer: Answer) -> Self {
        Self { reader, answer }
    }

    /// Runs `read`, and writes its events directly to `out`.
    fn into<T>(
        &mut self,
        out: &mut Vec<AssistantEvent>,
        read: impl FnOnce(&mut R, &mut Answer) -> Result<T, StreamError>,
    ) -> Result<T, StreamError> {
        std::mem::swap(&mut self.answer.events, out);
        let result = read(&mut self.reader, &mut self.answer);
        std::mem::swap(&mut self.answer.events, out);
        result
    }
}

impl<R: Reader> Decoder for AnswerDecoder<R> {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if self.answer.is_done {
            return Ok(());
        }
        self.into(out, |reader, answer| match frame {
            Frame::Sse { event, data } => reader.event(event, data, answer),
            Frame::Body(body) => {
                reader.body(body, answer)?;
                answer.done();
                Ok(())
            }
        })
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        self.into(out, |reader, answer| {
            let reason = reader.end(answer);
            answer.done();
            answer.events.push(AssistantEvent::Done { reason: reason? });
            Ok(())
        })
    }

    fn is_done(&self) -> bool {
        self.answer.is_done
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Thinking,
    Call,
}

/// An answer as far as it was read.
pub struct Answer {
    /// The model that answers, which also determines the prices.
    pub model: Model,
    ids: Ids,
    blocks: Vec<Block>,
    /// The number of calls that have begun.
    calls: usize,
    has_response_id: bool,
    has_response_model: bool,
    finish: Option<Result<StopReason, StreamError>>,
    is_done: bool,
    events: Vec<AssistantEvent>,
}

struct Block {
    kind: Kind,
    /// The server's number for the block.
    number: Option<u64>,
    is_open: bool,
    /// Total bytes of the pieces so far.
    told: usize,
    signature: Option<String>,
    redacted: bool,
    /// Arguments of a call, used if no piece arrives.
    default: Option<String>,
}

impl Block {
    fn new(kind: Kind, number: Option<u64>) -> Self {
        Self { kind, number, is_open: true, told: 0, signature: None, redacted: false, default: None }
    }
}

impl Answer {
    pub fn new(model: &Model, context: &Context) -> Self {
        Self::with_ids(model, Ids::new(context))
    }

    pub fn with_ids(model: &Model, ids: Ids) -> Self {
        Self {
            model: model.clone(),
            ids,
            blocks: Vec::new(),
            calls: 0,
            has_response_id: false,
            has_response_model: false,
            finish: None,
            is_done: false,
            events: Vec::new(),
        }
    }

    /// The number of blocks, which is also the index of the next block.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn has_calls(&self) -> bool {
        self.calls > 0
    }

    pub fn kind(&self, index: usize) -> Option<Kind> {
        self.blocks.get(index).map(|block| block.kind)
    }

    pub fn is_open(&self, index: usize) -> bool {
        self.blocks.get(index).is_some_and(|block| block.is_open)
    }

    /// Total bytes of the block's pieces so far.
    pub fn told(&self, index: usize) -> usize {
        self.blocks.get(index).map_or(0, |block| block.told)
    }

    /// True if a block with the server's `number` has begun.
    pub fn knows(&self, number: u64) -> bool {
        self.blocks.iter().any(|block| block.number == Some(number))
    }

    /// The open block with the server's `number`.
    pub fn open_at(&self, number: u64) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.is_open && block.number == Some(number))
    }

    /// The open block with the server's `number`, if it is of this kind.
    pub fn open_of(&self, number: u64, kind: Kind) -> Option<usize> {
        self.open_at(number).filter(|index| self.kind(*index) == Some(kind))
    }

    /// The open block with the server's `number`; begins a text or thinking block if there is none. `None` if
    /// the open block is of another kind, and for a missing call, which cannot begin without a name.
    pub fn open_or_begin(&mut self, number: u64, kind: Kind) -> Option<usize> {
        match self.open_at(number) {
            Some(index) => Some(index).filter(|index| self.kind(*index) == Some(kind)),
            None if kind == Kind::Call => None,
            None => Some(self.begin(kind, number)),
        }
    }

    /// Begins a text or thinking block, and returns its index. `number` is the server's number, if any.
    pub fn begin(&mut self, kind: Kind, number: impl Into<Option<u64>>) -> usize {
        let index = self.add(kind, number.into());
        self.events.push(start_of(kind, index));
        index
    }

    /// True if the answer has more calls than one may have. It will be refused, so that further calls are
    /// not kept: a frame of any size needs little memory and time.
    pub fn has_too_many_calls(&self) -> bool {
        self.calls > CALLS_MAX
    }

    /// Begins a call with `id`, or with a generated id if `id` is empty or taken. Returns the block's index;
    /// for a call too many, one that no block has.
    pub fn begin_call(&mut self, number: impl Into<Option<u64>>, id: &str, name: &str) -> usize {
        match self.has_too_many_calls() {
            true => usize::MAX,
            false => {
                let id = self.ids.take(id, self.len());
                self.begin_call_as(number, id, name)
            }
        }
    }

    /// Begins a call with exactly `id`. Returns the block's index; for a call too many, one that no block has.
    pub fn begin_call_as(&mut self, number: impl Into<Option<u64>>, id: String, name: &str) -> usize {
        if self.has_too_many_calls() {
            return usize::MAX;
        }
        self.calls += 1;
        let index = self.add(Kind::Call, number.into());
        let name = if name.is_empty() { NO_NAME } else { name }.to_owned();
        self.events.push(AssistantEvent::ToolCallStart { index, id, name });
        index
    }

    fn add(&mut self, kind: Kind, number: Option<u64>) -> usize {
        self.blocks.push(Block::new(kind, number));
        self.blocks.len() - 1
    }

    /// The id for the next call: `given`, or a generated id if `given` is empty or taken.
    pub fn take_id(&mut self, given: &str) -> String {
        self.ids.take(given, self.len())
    }

    /// Reserves exactly `given` for a call; false if it is empty or taken.
    pub fn claim_id(&mut self, given: &str) -> bool {
        self.ids.claim(given)
    }

    /// Adds a piece to an open block. An empty piece causes no event.
    pub fn tell(&mut self, index: usize, piece: &str) {
        let Some(block) = self.blocks.get_mut(index).filter(|block| block.is_open && !piece.is_empty())
        else {
            return;
        };
        block.told += piece.len();
        let delta = piece.to_owned();
        self.events.push(match block.kind {
            Kind::Text => AssistantEvent::TextDelta { index, delta },
            Kind::Thinking => AssistantEvent::ThinkingDelta { index, delta },
            Kind::Call => AssistantEvent::ToolCallDelta { index, delta },
        });
    }

    /// Sets the complete arguments of a call, which are used if the server sends no pieces.
    pub fn set_default(&mut self, index: usize, arguments: Option<String>) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.default = arguments;
        }
    }

    /// Appends a piece to the block's signature.
    pub fn sign(&mut self, index: usize, piece: &str) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature.get_or_insert_default().push_str(piece);
        }
    }

    /// Sets the block's signature. The signature of a call is that of the preceding thinking.
    pub fn set_signature(&mut self, index: usize, signature: Option<String>) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.signature = signature;
        }
    }

    /// Marks a thinking block as encrypted.
    pub fn redact(&mut self, index: usize) {
        if let Some(block) = self.blocks.get_mut(index) {
            block.redacted = true;
        }
    }

    /// Marks a thinking block as encrypted, and adds a text that says so.
    pub fn tell_redacted(&mut self, index: usize) {
        if self.blocks.get(index).is_some_and(|block| !block.redacted) {
            self.tell(index, REDACTED);
            self.redact(index);
        }
    }

    /// Ends a block if it is open.
    pub fn end(&mut self, index: usize) {
        self.end_call(index, None, None);
    }

    /// Ends a block if it is open. `id` and `name` replace those from the start of a call.
    pub fn end_call(&mut self, index: usize, id: Option<String>, name: Option<String>) {
        let Some(block) = self.blocks.get_mut(index).filter(|block| block.is_open) else {
            return;
        };
        block.is_open = false;
        if let Some(delta) = block.default.take().filter(|_| block.told == 0) {
            self.events.push(AssistantEvent::ToolCallDelta { index, delta });
        }
        let signature = block.signature.take();
        self.events.push(match block.kind {
            Kind::Text => AssistantEvent::TextEnd { index, signature },
            Kind::Thinking => AssistantEvent::ThinkingEnd { index, signature, redacted: block.redacted },
            Kind::Call => AssistantEvent::ToolCallEnd { index, id, name, thought_signature: signature },
        });
    }

    /// Ends all open blocks in order.
    pub fn end_all(&mut self) {
        for index in 0..self.blocks.len() {
            self.end(index);
        }
    }

    /// Ends a block, and begins a block of another kind at its index.
    pub fn restart(&mut self, index: usize, kind: Kind) {
        self.end(index);
        if let Some(block) = self.blocks.get_mut(index) {
            *block = Block::new(kind, block.number);
            self.events.push(start_of(kind, index));
        }
    }

    pub fn info(&mut self, info: Info) {
        self.events.push(AssistantEvent::info(info));
    }

    /// Reports the usage of the answer so far, with its cost.
    pub fn usage(&mut self, usage: Usage) {
        self.billed_usage(usage, None);
    }

    /// Reports the usage of the answer so far. A bill overrides the computed cost.
    pub fn billed_usage(&mut self, mut usage: Usage, bill: Option<Bill<'_>>) {
        self.model.price(&mut usage);
        if let Some(total) = bill.and_then(|bill| bill.total(&self.model)) {
            (usage.cost.total, usage.cost.total_from_provider) = (total, Some(true));
        }
        self.info(Info { usage: Some(usage), ..Info::default() });
    }

    /// Reports the answer's id, and its model if that differs from the requested one; each once.
    pub fn identify(&mut self, id: &Text<'_>, model: &Text<'_>) {
        let response_id = id.as_str().filter(|_| !self.has_response_id).map(str::to_owned);
        let other = |model: &&str| !self.has_response_model && *model != self.model.id;
        let response_model = model.as_str().filter(other).map(str::to_owned);
        self.has_response_id |= response_id.is_some();
        self.has_response_model |= response_model.is_some();
        if response_id.is_some() || response_model.is_some() {
            self.info(Info { response_id, response_model, ..Info::default() });
        }
    }

    /// Sets why the answer ends, and reports the server's own name for the reason, `raw`.
    pub fn stop(&mut self, raw: &str, reason: Result<StopReason, StreamError>) {
        self.finish(reason);
        self.info(Info { raw_stop_reason: Some(raw.to_owned()), ..Info::default() });
    }

    /// Sets why the answer ends.
    pub fn finish(&mut self, reason: Result<StopReason, StreamError>) {
        self.finish = Some(reason);
    }

    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The stop reason; an error with the text `missing` if the server gave none. An answer with calls ends
    /// with [`StopReason::ToolUse`] instead of `Stop`.
    pub fn reason(&mut self, missing: &str) -> Result<StopReason, StreamError> {
        match self.finish.take() {
            Some(Ok(StopReason::Stop)) if self.has_calls() => Ok(StopReason::ToolUse),
            Some(reason) => reason,
            None => Err(fault::cut_short(missing)),
        }
    }

    /// Marks the end of the answer: further bytes are not waited for.
    pub fn done(&mut self) {
        self.is_done = true;
    }

    pub fn is_done(&self) -> bool {
        self.is_done
    }
}

/// A diagnostic entry, in the format in which messages store it.
pub fn diagnostics(kind: &str, details: impl Into<Value>) -> Extra {
    let entry = json!({"type": kind, "timestamp": now_ms(), "details": details.into()});
    Extra::from_iter([("diagnostics".to_owned(), Value::from(vec![entry]))])
}

/// The start event of a text or thinking block.
fn start_of(kind: Kind, index: usize) -> AssistantEvent {
    match kind {
        Kind::Text => AssistantEvent::TextStart { index },
        Kind::Thinking | Kind::Call => AssistantEvent::ThinkingStart { index },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::event::Fold;
    use crate::llm::message::{AssistantMessage, Block as Content};

    fn answer() -> Answer {
        Answer::new(&Model { id: "m".into(), ..Model::default() }, &Context::default())
    }

    #[test]
    fn a_block_takes_nothing_after_its_end_and_ends_once() {
        let mut answer = answer();
        let text = answer.begin(Kind::Text, 7);
        answer.tell(text, "a");
        answer.tell(text, "");
        answer.end(text);
        answer.tell(text, "b");
        answer.end(text);
        answer.end_all();
        let index = text;
        assert_eq!(
            answer.events,
            [
                AssistantEvent::TextStart { index },
                AssistantEvent::TextDelta { index, delta: "a".into() },
                AssistantEvent::TextEnd { index, signature: None },
            ]
        );
        assert!(answer.knows(7) && answer.open_at(7).is_none() && answer.told(text) == 1);
    }

    #[test]
    fn only_text_and_thinking_begin_unannounced() {
        let mut answer = answer();
        assert_eq!(answer.open_or_begin(1, Kind::Call), None);
        assert_eq!(answer.open_or_begin(1, Kind::Thinking), Some(0));
        assert_eq!(answer.open_or_begin(1, Kind::Text), None);
        assert_eq!(answer.begin_call(2, "", ""), 1);
        assert_eq!(answer.open_or_begin(2, Kind::Call), Some(1));
    }

    #[test]
    fn what_begins_again_keeps_its_place() {
        let mut answer = answer();
        let index = answer.begin(Kind::Text, None);
        answer.tell(index, "hm");
        answer.restart(index, Kind::Thinking);
        answer.tell(index, "hm");
        answer.tell_redacted(index);
        answer.tell_redacted(index);
        answer.sign(index, "s");
        answer.end_all();
        let mut fold = Fold::new(AssistantMessage::default());
        answer.events.iter().for_each(|event| fold.apply(event));
        let message = fold.into_message();
        let [Content::Thinking(thinking)] = message.content.as_slice() else {
            panic!("{message:?}");
        };
        assert_eq!(thinking.thinking, format!("hm{REDACTED}"));
        assert_eq!((thinking.thinking_signature.as_deref(), thinking.redacted), (Some("s"), Some(true)));
    }

    #[test]
    fn calls_too_many_are_not_kept() {
        let size = |count: usize| {
            let mut answer = answer();
            for number in 0..count as u64 {
                let call = answer.begin_call(number, "", "ls");
                answer.tell(call, "{}");
                answer.end(call);
            }
            (answer.len(), answer.events.len())
        };
        let kept = CALLS_MAX + 1;
        assert_eq!(size(CALLS_MAX), (CALLS_MAX, 3 * CALLS_MAX));
        assert_eq!(size(kept), (kept, 3 * kept));
        assert_eq!(size(10 * CALLS_MAX), (kept, 3 * kept));
    }

    #[test]
    fn an_answer_without_a_reason_lacks_its_end_and_calls_are_a_reason() {
        let mut answer = answer();
        assert_eq!(answer.reason("cut").unwrap_err().message, "cut");
        answer.stop("stop", Ok(StopReason::Stop));
        assert_eq!(answer.reason(""), Ok(StopReason::Stop));
        answer.begin_call(None, "a", "ls");
        answer.finish(Ok(StopReason::Stop));
        assert_eq!(answer.reason(""), Ok(StopReason::ToolUse));
        answer.finish(Err(fault::stopped("no")));
        assert_eq!(answer.reason("").unwrap_err().message, "no");
    }

    #[test]
    fn id_and_model_are_told_once() {
        let mut answer = answer();
        let text = |text: &'static str| Text(Some(text.into()));
        answer.identify(&Text(None), &text("m"));
        answer.identify(&text("1"), &text("m"));
        answer.identify(&text("2"), &text("other"));
        answer.identify(&text("3"), &text("third"));
        let told: Vec<_> = answer
            .events
            .iter()
            .map(|event| match event {
                AssistantEvent::Info(info) => (info.response_id.as_deref(), info.response_model.as_deref()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told, [(Some("1"), None), (None, Some("other"))]);
    }
}
