//! Finds answers whose prompt was billed again although the provider had it in its cache.
//!
//! A request extends the one before it, so as many tokens as that one had should be read from the cache. Nothing is
//! found after a compaction or on another branch, where the prompt is new, and for providers that report no caching.

use super::AgentMessage;
use crate::llm::message::{AssistantMessage, Usage};
use std::time::Duration;

/// Smaller misses come from the granularity of caches, in tokens.
const NOISE: u64 = 1024;
/// Misses are worth a line from so many tokens, or from so many dollars.
const WORTH_TOKENS: u64 = 20_000;
const WORTH_DOLLARS: f64 = 0.1;
/// A cache may be gone after so long.
pub const LIFETIME: Duration = Duration::from_secs(300);

/// The latest request of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latest(Option<Request>);

#[derive(Clone, Debug, PartialEq)]
struct Request {
    tokens: u64,
    provider: String,
    model: String,
    at_ms: u64,
    /// True if the provider has reported a use of its cache.
    is_cached: bool,
}

/// Tokens that were billed again.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    pub tokens: u64,
    /// What they cost more than from the cache, in dollars.
    pub cost: f64,
    /// Time since the request before.
    pub idle: Duration,
    pub model_changed: bool,
}

impl Miss {
    pub fn is_worth_a_line(&self) -> bool {
        self.tokens >= WORTH_TOKENS || self.cost >= WORTH_DOLLARS
    }
}

impl Latest {
    /// The latest request before the time `end_ms`.
    pub fn of(messages: &[AgentMessage], end_ms: u64) -> Self {
        let mut latest = Self::default();
        for message in messages {
            match message {
                AgentMessage::CompactionSummary(_) | AgentMessage::BranchSummary(_) => {
                    latest = Self::default()
                }
                AgentMessage::Assistant(answer) if answer.timestamp < end_ms => {
                    latest.answer(answer, 0.0);
                }
                _ => {}
            }
        }
        latest
    }

    /// Takes up an answer, and returns what was billed again for it. `price`: dollars for a million tokens that are
    /// read from the cache, where the answer does not tell.
    pub fn answer(&mut self, answer: &AssistantMessage, price: f64) -> Option<Miss> {
        let usage = &answer.usage;
        let tokens = prompt(usage);
        if tokens == 0 {
            return None;
        }
        let uses_cache = usage.cache_read + usage.cache_write > 0;
        let is_cached = uses_cache || self.0.as_ref().is_some_and(|before| before.is_cached);
        let request = Request {
            tokens,
            provider: answer.provider.clone(),
            model: answer.model.clone(),
            at_ms: answer.timestamp,
            is_cached,
        };
        let before = self.0.replace(request).filter(|_| is_cached)?;
        let missed = before.tokens.min(tokens).saturating_sub(usage.cache_read);
        (missed > NOISE).then(|| Miss {
            tokens: missed,
            cost: extra_cost(usage, missed, price),
            idle: Duration::from_millis(answer.timestamp.saturating_sub(before.at_ms)),
            model_changed: before.provider != answer.provider || before.model != answer.model,
        })
    }

    /// Takes up a request at `now_ms` that kept the cache warm.
    pub fn warm(&mut self, usage: &Usage, now_ms: u64) {
        if let Some(latest) = &mut self.0 {
            latest.tokens = prompt(usage).max(1);
            latest.at_ms = now_ms;
            latest.is_cached = true;
        }
    }

    /// Forgets the request: the conversation was replaced by a summary.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

fn prompt(usage: &Usage) -> u64 {
    usage.input + usage.cache_read + usage.cache_write
}

#[allow(clippy::cast_precision_loss)] // tokens are far below 2^52
fn extra_cost(usage: &Usage, missed: u64, price: f64) -> f64 {
    let paid = usage.input + usage.cache_write;
    let paid = match paid {
        0 => 0.0,
        tokens => (usage.cost.input + usage.cost.cache_write) / tokens as f64,
    };
    let read = match usage.cache_read {
        0 => price / 1e6,
        tokens => usage.cost.cache_read / tokens as f64,
    };
    missed as f64 * (paid - read).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::UsageCost;
    use std::sync::Arc;

    /// An answer to a prompt of so many tokens: new, read from the cache, written to it.
    fn answer(model: &str, at_s: u64, [input, cache_read, cache_write]: [u64; 3]) -> AssistantMessage {
        let cost = UsageCost {
            input: input as f64 / 1e5,
            cache_read: cache_read as f64 / 1e6,
            ..UsageCost::default()
        };
        let usage = Usage { input, cache_read, cache_write, cost, ..Usage::default() };
        AssistantMessage { model: model.into(), timestamp: at_s * 1000, usage, ..AssistantMessage::default() }
    }

    #[test]
    fn what_was_in_the_request_before_and_not_in_the_cache_is_missed() {
        let first = answer("a", 0, [100, 0, 30_000]);
        for (next, missed) in [
            (answer("a", 10, [200, 30_100, 0]), None),
            (answer("a", 10, [1_200, 29_100, 0]), None),
            (answer("a", 10, [30_300, 0, 0]), Some((30_100, 10, false))),
            (answer("b", 400, [10_300, 20_000, 0]), Some((10_100, 400, true))),
            // A shorter prompt than before.
            (answer("a", 10, [5_000, 0, 0]), Some((5_000, 10, false))),
            (answer("a", 10, [0, 0, 0]), None),
        ] {
            let mut latest = Latest::default();
            assert_eq!(latest.answer(&first, 1.0), None);
            let miss = latest.answer(&next, 1.0);
            let facts = |miss: &Miss| (miss.tokens, miss.idle.as_secs(), miss.model_changed);
            assert_eq!(miss.as_ref().map(facts), missed, "{:?}", next.usage);
            if let Some(miss) = miss {
                // 10 dollars for a million tokens, and 1 from the cache.
                assert!((miss.cost - miss.tokens as f64 * 9e-6).abs() < 1e-9, "{miss:?}");
                assert_eq!(miss.is_worth_a_line(), miss.tokens > 11_111 || miss.tokens == 30_100);
            }
        }
    }

    #[test]
    fn a_provider_without_a_cache_misses_nothing() {
        let mut latest = Latest::default();
        for at in 0..3 {
            assert_eq!(latest.answer(&answer("a", at, [50_000, 0, 0]), 1.0), None);
        }
    }

    #[test]
    fn a_warm_cache_and_a_summary_count() {
        let mut latest = Latest::default();
        latest.answer(&answer("a", 0, [0, 0, 30_000]), 1.0);
        latest.warm(&answer("a", 0, [0, 30_000, 0]).usage, 290_000);
        let miss = latest.answer(&answer("a", 300, [40_000, 0, 0]), 1.0).unwrap();
        assert_eq!((miss.tokens, miss.idle), (30_000, Duration::from_secs(10)));
        latest.forget();
        assert_eq!(latest.answer(&answer("a", 301, [40_000, 0, 0]), 1.0), None);
    }

    #[test]
    fn a_conversation_that_goes_on_knows_its_latest_request() {
        let answers = [answer("a", 1, [0, 0, 30_000]), answer("a", 2, [500, 30_000, 0])];
        let messages: Vec<_> = answers.map(|answer| AgentMessage::Assistant(Arc::new(answer))).into();
        let mut latest = Latest::of(&messages, 3_000);
        assert_eq!(latest.answer(&answer("a", 3, [31_000, 0, 0]), 1.0).unwrap().tokens, 30_500);
        let mut latest = Latest::of(&messages, 1_000);
        assert_eq!(latest.answer(&answer("a", 3, [31_000, 0, 0]), 1.0), None);
    }
}
