//! Recognizes answers that show that the context window was full.

use crate::llm::classify::is_overflow;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{AssistantMessage, StopReason};
use crate::llm::model::Model;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    Overflow,
    CutShort,
}

impl Pressure {
    pub fn second_failure(self) -> &'static str {
        match self {
            Self::Overflow => {
                "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model."
            }
            Self::CutShort => "Truncated response recovery failed after one compact-and-retry attempt.",
        }
    }
}

/// Returns how `answer` shows that the context window of `model` was full, or `None`. `is_fresh` is true if
/// the answer's token usage describes the conversation in its present form.
pub fn pressure(answer: &AssistantMessage, model: &Model, is_fresh: bool) -> Option<Pressure> {
    if answer.provider != model.provider || answer.model != model.id {
        return None;
    }
    let window = model.context_window;
    let input = answer.usage.input.saturating_add(answer.usage.cache_read);
    let is_overflow = match answer.stop_reason {
        StopReason::Error => {
            let said = answer.error_message.as_deref().unwrap_or_default();
            is_overflow(&answer.provider, &StreamError::new(ErrorKind::Provider, said))
        }
        StopReason::Stop => is_fresh && window > 0 && input > window,
        StopReason::Length => {
            let is_full = input.saturating_mul(100) >= window.saturating_mul(99);
            is_fresh && window > 0 && answer.usage.output == 0 && is_full
        }
        _ => false,
    };
    let is_cut_short = answer.stop_reason == StopReason::Length && answer.usage.output < model.max_tokens;
    if is_overflow { Some(Pressure::Overflow) } else { is_cut_short.then_some(Pressure::CutShort) }
}
