//! Plays one answer as a stream of events.

use crate::llm::event::{AssistantEvent, Info, StreamError};
use crate::llm::message::{Message, StopReason, Usage, now_ms};
use crate::llm::options::CacheRetention;
use crate::llm::protocol::{Call, Gone};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An answer to play.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub pieces: Vec<Piece>,
    /// Replaces the estimate.
    pub usage: Option<Usage>,
    /// By default `toolUse` if there are calls, otherwise `stop`.
    pub stop: Option<StopReason>,
    /// Error that ends the answer after its pieces.
    pub error: Option<StreamError>,
    pub pace: Pace,
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
    /// `arguments` is streamed as it is, and need not be valid JSON.
    ToolCall {
        id: Option<String>,
        name: String,
        arguments: String,
    },
}

/// The speed of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub delay: Duration,
    pub chunk_delay: Duration,
    /// In characters.
    pub chunk_size: usize,
    pub tokens_per_second: Option<f64>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { delay: Duration::ZERO, chunk_delay: Duration::ZERO, chunk_size: 12, tokens_per_second: None }
    }
}

impl Answer {
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces, usage: None, stop: None, error: None, pace: Pace::default() }
    }

    pub fn failed(error: StreamError) -> Self {
        Self { error: Some(error), ..Self::new(Vec::new()) }
    }

    fn stop(&self) -> StopReason {
        let calls = |piece: &Piece| matches!(piece, Piece::ToolCall { .. });
        self.stop.unwrap_or(match self.pieces.iter().any(calls) {
            true => StopReason::ToolUse,
            false => StopReason::Stop,
        })
    }

    fn chars(&self) -> usize {
        let chars = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Thinking(text) => text.chars().count(),
            Piece::ToolCall { name, arguments, .. } => name.chars().count() + arguments.chars().count(),
        });
        chars.sum()
    }
}

/// Why playing ended early.
pub(super) enum End {
    Gone,
    Cancelled,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

type Emit<'a> = dyn FnMut(AssistantEvent) -> Result<(), Gone> + 'a;

/// Emits the events of `answer`, including the last one.
pub(super) fn play(answer: &Answer, call: &Call<'_>, emit: &mut Emit<'_>) -> Result<(), Gone> {
    match play_pieces(answer, call, emit) {
        Err(End::Gone) => Err(Gone),
        Err(End::Cancelled) => emit(AssistantEvent::Error(StreamError::aborted())),
        Ok(()) => emit(match &answer.error {
            Some(error) => AssistantEvent::Error(error.clone()),
            None => AssistantEvent::Done { reason: answer.stop() },
        }),
    }
}

fn play_pieces(answer: &Answer, call: &Call<'_>, emit: &mut Emit<'_>) -> Result<(), End> {
    wait(call, answer.pace.delay)?;
    if answer.pieces.is_empty() && answer.error.is_some() {
        return Ok(());
    }
    emit(AssistantEvent::Start)?;
    let mut clock = Clock { pace: answer.pace, start: Instant::now(), tokens: 0.0 };
    for (index, piece) in answer.pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                emit(AssistantEvent::TextStart { index })?;
                clock.chunks(text, call, |delta| emit(AssistantEvent::TextDelta { index, delta }))?;
                let signature = None;
                emit(AssistantEvent::TextEnd { index, signature })?;
            }
            Piece::Thinking(text) => {
                emit(AssistantEvent::ThinkingStart { index })?;
                clock.chunks(text, call, |delta| emit(AssistantEvent::ThinkingDelta { index, delta }))?;
                emit(AssistantEvent::ThinkingEnd { index, signature: None, redacted: false })?;
            }
            Piece::ToolCall { id, name, arguments } => {
                emit(AssistantEvent::ToolCallStart {
                    index,
                    id: id.clone().unwrap_or_else(next_call_id),
                    name: name.clone(),
                })?;
                clock
                    .chunks(arguments, call, |delta| emit(AssistantEvent::ToolCallDelta { index, delta }))?;
                emit(AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature: None })?;
            }
        }
    }
    let usage = answer.usage.clone().unwrap_or_else(|| estimate(answer, call));
    emit(AssistantEvent::info(Info { usage: Some(usage), ..Info::default() }))?;
    Ok(())
}

/// Waits for `time` or until cancelled.
fn wait(call: &Call<'_>, time: Duration) -> Result<(), End> {
    let cancelled = match time.is_zero() {
        true => call.cancel.is_cancelled(),
        false => call.cancel.wait_timeout(time),
    };
    if cancelled { Err(End::Cancelled) } else { Ok(()) }
}

/// Times the chunks of one answer.
struct Clock {
    pace: Pace,
    start: Instant,
    tokens: f64,
}

impl Clock {
    fn chunks(
        &mut self,
        text: &str,
        call: &Call<'_>,
        mut each: impl FnMut(String) -> Result<(), Gone>,
    ) -> Result<(), End> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.pace.chunk_size.max(1));
            let (chunk, left) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
            wait(call, self.pause(chunk))?;
            each(chunk.to_owned())?;
            rest = left;
        }
        Ok(())
    }

    /// The wait before `chunk`. The rate applies to the whole answer, so that the delay of one chunk does not
    /// add up.
    fn pause(&mut self, chunk: &str) -> Duration {
        #[allow(clippy::cast_precision_loss)] // a chunk's characters
        let tokens = chunk.chars().count() as f64 / CHARS_PER_TOKEN as f64;
        self.tokens += tokens;
        let rated = self.pace.tokens_per_second.and_then(|rate| {
            let due = Duration::try_from_secs_f64(self.tokens / rate).ok()?;
            Some(due.saturating_sub(self.start.elapsed()))
        });
        rated.unwrap_or_default().max(self.pace.chunk_delay)
    }
}

const CHARS_PER_TOKEN: usize = 4;

fn tokens(chars: usize) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN) as u64
}

/// A call id that is unique in the conversation, also across runs.
fn next_call_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("faux_{:x}_{count}", now_ms())
}

fn estimate(answer: &Answer, call: &Call<'_>) -> Usage {
    let request = serialize(&call.context.messages);
    let chars = request.chars().count();
    let cached = match &call.options.session_id {
        Some(session) if call.options.cache != CacheRetention::None => cached(session, request),
        _ => 0,
    };
    let cache_read = tokens(cached).min(tokens(chars));
    let input = tokens(chars) - cache_read;
    let output = tokens(answer.chars());
    let mut usage =
        Usage { input, output, cache_read, total_tokens: input + output + cache_read, ..Usage::default() };
    call.model.price(&mut usage);
    usage
}

/// The request as text. Appending messages does not change earlier text.
fn serialize(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        text.push_str(&serde_json::to_string(message).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// Maximum number of conversations whose last request is remembered; the oldest is dropped first.
const CACHED_SESSIONS: usize = 8;

/// Length of the common prefix of `request` and the session's previous request, in characters. Remembers
/// `request`.
fn cached(session: &str, request: String) -> usize {
    static LAST: Mutex<VecDeque<(String, String)>> = Mutex::new(VecDeque::new());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let at = last.iter().position(|(known, _)| known == session);
    let before = at.and_then(|at| last.remove(at));
    let common = before.map_or(0, |(_, before)| {
        let pairs = before.chars().zip(request.chars());
        pairs.take_while(|(a, b)| a == b).count()
    });
    if last.len() >= CACHED_SESSIONS {
        last.pop_front();
    }
    last.push_back((session.to_owned(), request));
    common
}
