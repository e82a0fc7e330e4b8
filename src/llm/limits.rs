//! Limits of a request: output tokens, thinking budget, cache retention; and its sampling parameters.

use crate::base::env::Env;
use crate::llm::context::Context;
use crate::llm::estimate;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, StreamOptions};
use serde_json::Value;

/// Tokens of the context window that are reserved for errors of the estimate.
const SAFETY_TOKENS: u64 = 4096;

/// Part of the input that is reserved as well, in percent: the tokenizers of routers count differently.
const SAFETY_PERCENT: u64 = 15;

/// The percentage is reserved only while this many tokens remain for the answer.
const OUTPUT_WITH_PART: u64 = 32_768;

/// Tokens reserved for the answer if thinking counts towards the limit.
pub const MIN_ANSWER_TOKENS: u64 = 1024;

/// The output limit of a request: the requested one, otherwise the model's, but at most what remains of the
/// context window. `None` if the model has no limit.
pub fn output_tokens(model: &Model, context: &Context, options: &StreamOptions) -> Option<u64> {
    let wanted = options.max_tokens.unwrap_or(model.max_tokens);
    (wanted > 0).then(|| clamp_to_window(model, context, wanted))
}

/// Limits `wanted` to the rest of the context window; at least 1. If little remains, at most half of it is
/// reserved: answers of one token would never end a turn.
pub fn clamp_to_window(model: &Model, context: &Context, wanted: u64) -> u64 {
    if model.context_window == 0 {
        return wanted.max(1);
    }
    let used = estimate::context_tokens(&context.messages);
    let left = model.context_window.saturating_sub(used);
    let part = used.saturating_mul(SAFETY_PERCENT).div_ceil(100);
    let mut room = left.saturating_sub(part.max(SAFETY_TOKENS));
    if room < OUTPUT_WITH_PART {
        let margin = SAFETY_TOKENS.min(left.div_ceil(2));
        room = left.saturating_sub(margin).min(OUTPUT_WITH_PART);
    }
    wanted.min(room.max(1))
}

/// The thinking level to request; `None` for no thinking.
pub fn thinking_level(model: &Model, options: &StreamOptions) -> Option<ThinkingLevel> {
    if options.thinking == ThinkingLevel::Off {
        return None;
    }
    let level = model.clamp_thinking(options.thinking);
    (level != ThinkingLevel::Off).then_some(level)
}

/// Thinking tokens for a level, before any limit.
pub fn thinking_budget(level: ThinkingLevel, options: &StreamOptions) -> u64 {
    let level = level.min(ThinkingLevel::High);
    let budgets = &options.thinking_budgets;
    let own = budgets.iter().rev().find(|(known, _)| *known == level);
    own.map_or_else(
        || match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => 1024,
            ThinkingLevel::Low => 2048,
            ThinkingLevel::Medium => 8192,
            _ => 16384,
        },
        |(_, tokens)| *tokens,
    )
}

/// Limits `budget`, so that an answer fits beside it under `ceiling`.
pub fn with_room_for_answer(budget: u64, ceiling: u64) -> u64 {
    budget.min(ceiling.saturating_sub(MIN_ANSWER_TOKENS))
}

/// How long the provider should keep the prompt in its cache: as in `options`; `PI_CACHE_RETENTION=long`
/// turns short into long.
pub fn cache_retention(options: &StreamOptions) -> CacheRetention {
    let long = || setting(options, "PI_CACHE_RETENTION").as_deref() == Some("long");
    match options.cache {
        CacheRetention::Short if long() => CacheRetention::Long,
        retention => retention,
    }
}

/// The session id, if the provider may use it to find its prompt cache.
pub fn cache_session(options: &StreamOptions) -> Option<&str> {
    let session = options.session_id.as_deref()?;
    (cache_retention(options) != CacheRetention::None && !session.is_empty()).then_some(session)
}

/// Maximum length of a `prompt_cache_key`, in characters.
const CACHE_KEY_LIMIT: usize = 64;

/// The session id as `prompt_cache_key`, for OpenAI and compatible servers.
pub fn cache_key(options: &StreamOptions) -> Option<String> {
    let session = cache_session(options)?;
    Some(session.chars().take(CACHE_KEY_LIMIT).collect())
}

/// When `prompt_cache_key` is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKey {
    /// Sent to OpenAI, and to other servers with long cache retention.
    Auto,
    Always,
    Never,
}

impl CacheKey {
    /// Reads `compat.promptCacheKeyMode` of `model`.
    pub fn of(model: &Model) -> Self {
        match model.compat.as_ref().and_then(|compat| compat.get("promptCacheKeyMode")?.as_str()) {
            Some("enabled") => Self::Always,
            Some("disabled") => Self::Never,
            _ => Self::Auto,
        }
    }
}

/// The model's sampling parameters, then those of its thinking level, then the caller's; later ones override
/// earlier ones.
pub fn sampling_params<'a>(
    model: &'a Model,
    options: &'a StreamOptions,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let own = model.sampling_params.iter().flatten();
    let level = thinking_level(model, options).unwrap_or(ThinkingLevel::Off);
    let levels = model.sampling_params_by_thinking_level.as_ref();
    let of_level = levels.and_then(|levels| levels.get(level.name())?.as_object());
    own.chain(of_level.into_iter().flatten()).chain(&options.sampling_params)
}

/// A variable of the credential's settings, otherwise of the process environment.
pub fn setting(options: &StreamOptions, name: &str) -> Option<String> {
    Env::process().with(&options.env).get(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::{Content, Message, UserMessage};
    use std::sync::Arc;

    #[test]
    fn the_output_limit_leaves_the_conversation_its_room() {
        let cases = [
            // window, model's limit, asked, characters of conversation, expected
            (100_000, 8_000, None, 4_000, Some(8_000)),
            (10_000, 8_000, None, 4_000, Some(4_761)),
            (10_000, 8_000, Some(500), 4_000, Some(500)),
            (9_192, 8_000, None, 4_000, Some(4_024)),
            (200_000, 128_000, None, 400_000, Some(68_571)),
            (200_000, 128_000, None, 560_000, Some(32_768)),
            (200_000, 128_000, None, 600_000, Some(24_475)),
            (5_000, 8_000, None, 4_000, Some(1_928)),
            (1_000, 8_000, None, 4_000, Some(1)),
            (0, 8_000, None, 4_000, Some(8_000)),
            (0, 0, None, 4_000, None),
            (10_000, 0, Some(0), 4_000, None),
        ];
        for (context_window, max_tokens, asked, chars, expected) in cases {
            let model = Model { context_window, max_tokens, ..Model::default() };
            let user = UserMessage::new(Content::Text("x".repeat(chars)));
            let context = Context { messages: vec![Message::User(Arc::new(user))] };
            let options = StreamOptions { max_tokens: asked, ..StreamOptions::default() };
            let tokens = output_tokens(&model, &context, &options);
            assert_eq!(tokens, expected, "window {context_window}, asked {asked:?}");
        }
    }

    #[test]
    fn budgets_follow_the_level_and_leave_room_for_an_answer() {
        let options =
            StreamOptions { thinking_budgets: vec![(ThinkingLevel::Low, 3000)], ..StreamOptions::default() };
        let budget = |level| thinking_budget(level, &options);
        assert_eq!(budget(ThinkingLevel::Minimal), 1024);
        assert_eq!(budget(ThinkingLevel::Low), 3000);
        assert_eq!(budget(ThinkingLevel::Max), 16384);
        assert_eq!(with_room_for_answer(8192, 4096), 3072);
        assert_eq!(with_room_for_answer(8192, 500), 0);
    }

    #[test]
    fn the_credential_s_settings_come_before_the_environment() {
        let mut options = StreamOptions {
            env: vec![("PI_CACHE_RETENTION".into(), "long".into())],
            ..StreamOptions::default()
        };
        assert_eq!(cache_retention(&options), CacheRetention::Long);
        options.cache = CacheRetention::None;
        assert_eq!(cache_retention(&options), CacheRetention::None);
    }
}
