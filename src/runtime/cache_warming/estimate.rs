//! When it pays to keep a prompt cache warm.

use crate::llm::message::Usage;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::CacheRetention;

/// Milliseconds that a repetition is sent before the entry expires, at least.
const MARGIN_MS: u64 = 10_000;

/// Longest life of an entry that is counted with: longer than a request is kept.
const LIFETIME_SECONDS_MAX: f64 = 86_400.0;

/// US dollars that a repetition must be expected to save.
const SAVING_MIN: f64 = 0.05;

/// Probability that the user goes on before the entry expires.
const CONTINUES: f64 = 0.15;

pub const UNPRICED: &str = "cache economics unavailable";

/// What a repetition costs and is expected to save, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub warm_cost: f64,
    /// Additional price of the next request if the entry is lost.
    pub miss_cost: f64,
    /// Probability that the next request comes in time: 1 during a run.
    pub probability: f64,
    /// False if the model has no prices or the context no size.
    pub is_known: bool,
}

impl Estimate {
    pub fn of(model: &Model, prompt_tokens: u64, is_running: bool) -> Self {
        let price = |usage: Usage| {
            let mut usage = usage;
            model.price(&mut usage);
            usage.cost.total
        };
        let hit = price(Usage { cache_read: prompt_tokens, ..Usage::default() });
        let miss = match model.cost.cache_write > 0.0 {
            true => price(Usage { cache_write: prompt_tokens, ..Usage::default() }),
            false => price(Usage { input: prompt_tokens, ..Usage::default() }),
        };
        Self {
            warm_cost: price(Usage { cache_read: prompt_tokens, output: 1, ..Usage::default() }),
            miss_cost: (miss - hit).max(0.0),
            probability: if is_running { 1.0 } else { CONTINUES },
            is_known: prompt_tokens > 0 && (hit > 0.0 || miss > 0.0),
        }
    }

    fn saving(&self) -> f64 {
        self.probability * self.miss_cost - self.warm_cost
    }

    pub fn pays(&self) -> bool {
        self.saving() >= SAVING_MIN
    }

    /// The estimate as a clause of a status.
    pub fn text(&self) -> String {
        if !self.is_known {
            return UNPRICED.into();
        }
        let saving = self.saving();
        let sign = if saving < 0.0 { "-" } else { "" };
        let compared = if self.pays() { ">=" } else { "<" };
        let chance = self.probability * 100.0;
        format!("{chance:.0}% to go on, saves {sign}${:.3} {compared} ${SAVING_MIN:.2}", saving.abs())
    }
}

/// Milliseconds that the cache entry of a request to `model` lives; `None` if that is not known.
pub fn lifetime_ms(model: &Model, retention: CacheRetention) -> Option<u64> {
    let tier = match retention {
        CacheRetention::None => return None,
        CacheRetention::Short => "short",
        CacheRetention::Long => "long",
    };
    let seconds = model.prompt_cache.as_ref()?.get(tier)?.as_f64()?.min(LIFETIME_SECONDS_MAX);
    #[allow(clippy::cast_possible_truncation)] // saturates
    Some((seconds * 1000.0) as u64)
}

/// Milliseconds from a request to its repetition; `None` for an entry that lives too short.
pub fn delay_ms(lifetime_ms: u64) -> Option<u64> {
    (lifetime_ms > MARGIN_MS).then(|| (lifetime_ms / 10 * 9).min(lifetime_ms - MARGIN_MS).max(1))
}

/// False if a repetition for one token would miss the cache, or would not be limited. The thinking budget of models on
/// the Messages API and on Bedrock follows the output limit, and is part of what is cached. Codex takes no limit.
pub fn is_repeatable(model: &Model, thinking: ThinkingLevel) -> bool {
    let adapts = model.compat.as_ref().and_then(|compat| compat.get("forceAdaptiveThinking")?.as_bool());
    match model.api.as_str() {
        "anthropic-messages" | "bedrock-converse-stream" => {
            thinking == ThinkingLevel::Off || adapts == Some(true)
        }
        "openai-codex-responses" => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::llm::model::Cost;

    #[test]
    fn a_repetition_comes_before_the_end_of_the_entry() {
        for (lifetime, delay) in
            [(300_000, Some(270_000)), (3_600_000, Some(3_240_000)), (50_000, Some(40_000)), (10_000, None)]
        {
            assert_eq!(delay_ms(lifetime), delay, "{lifetime}");
        }
    }

    /// Checks what a repetition of a prompt of so many tokens is expected to save, in cents, and whether it is sent.
    #[track_caller]
    fn check(tokens: u64, is_running: bool, cents: f64, pays: bool) {
        let cost = Cost { input: 5.0, output: 25.0, cache_read: 0.5, cache_write: 6.25, ..Cost::default() };
        let model = Model { cost, ..Model::default() };
        let estimate = Estimate::of(&model, tokens, is_running);
        assert!((estimate.saving() * 100.0 - cents).abs() < 0.01, "{}", estimate.saving());
        assert_eq!(estimate.pays(), pays);
    }

    #[test]
    fn a_repetition_must_pay() {
        check(100_000, true, 52.4975, true);
        check(100_000, false, 3.6225, false);
        check(200_000, false, 7.2475, true);
        check(9_000, true, 4.7225, false);
        check(0, true, -0.0025, false);
        let free = Estimate::of(&Model::default(), 100_000, true);
        assert!(!free.is_known && !free.pays());
    }

    #[test]
    fn a_model_whose_budget_follows_the_limit_is_not_asked_again() {
        let budget = Model { api: "anthropic-messages".into(), ..Model::default() };
        let compat = json!({"forceAdaptiveThinking": true}).as_object().cloned();
        let adaptive = Model { compat, ..budget.clone() };
        let other = Model { api: "openai-responses".into(), ..Model::default() };
        assert!(!is_repeatable(&budget, ThinkingLevel::High));
        assert!(is_repeatable(&budget, ThinkingLevel::Off));
        assert!(is_repeatable(&adaptive, ThinkingLevel::High));
        assert!(is_repeatable(&other, ThinkingLevel::High));
    }
}
