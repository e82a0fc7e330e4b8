//! Requests thinking by a level, or by a number of tokens.

use super::family;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::limits;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use serde::Serialize;

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// Leaves the number of tokens to the model.
const DYNAMIC: i64 = -1;

/// Budgets in tokens for `minimal`, `low`, `medium` and `high`. Models reject a budget outside their range.
const BUDGETS: &[(&str, [u64; 4])] = &[
    ("2.5-pro", [128, 2048, 8192, 32768]),
    ("2.5-flash-lite", [512, 2048, 8192, 24576]),
    ("2.5-flash", [128, 2048, 8192, 24576]),
];

/// Models whose thinking cannot be switched off.
const ALWAYS_THINKS: &str = "2.5-pro";

/// The configuration for the requested level; `None` for a model without thinking. `max_tokens` limits
/// thinking and answer together.
pub fn config(
    model: &Model,
    options: &StreamOptions,
    max_tokens: Option<u64>,
) -> Result<Option<ThinkingConfig>, StreamError> {
    if !model.reasoning {
        return Ok(None);
    }
    let Some(level) = limits::thinking_level(model, options) else {
        return off(model).map(Some);
    };
    let level = standard_level(model, level)?;
    let mut config = ThinkingConfig { include_thoughts: Some(true), ..ThinkingConfig::default() };
    if family::thinks_by_level(&model.id) {
        config.thinking_level = Some(word(level));
    } else {
        config.thinking_budget = Some(budget(model, options, level, max_tokens));
    }
    Ok(Some(config))
}

/// Switches thinking off, or to the minimum, which is not shown.
fn off(model: &Model) -> Result<ThinkingConfig, StreamError> {
    let mut config = ThinkingConfig::default();
    if !family::thinks_by_level(&model.id) {
        let least = if model.id.contains(ALWAYS_THINKS) {
            budgets(model).map_or(DYNAMIC, |budgets| tokens(budgets[0]))
        } else {
            0
        };
        config.thinking_budget = Some(least);
        return Ok(config);
    }
    match model.clamp_thinking(ThinkingLevel::Off) {
        ThinkingLevel::Off => config.thinking_budget = Some(0),
        least => config.thinking_level = Some(word(standard_level(model, least)?)),
    }
    Ok(config)
}

/// Maps `level` through the model's table to one of Google's four thinking levels.
fn standard_level(model: &Model, level: ThinkingLevel) -> Result<ThinkingLevel, StreamError> {
    let word = model.thinking_word(level).unwrap_or(level.name()).to_ascii_lowercase();
    let known = ThinkingLevel::Minimal..=ThinkingLevel::High;
    let standard = ThinkingLevel::parse(&word).filter(|level| known.contains(level));
    standard.ok_or_else(|| {
        let message = format!(
            "Unsupported Google thinking level mapping for {}/{}: {} -> {word}",
            model.provider,
            model.id,
            level.name()
        );
        StreamError::new(ErrorKind::Request, message)
    })
}

fn word(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => "MINIMAL",
        ThinkingLevel::Low => "LOW",
        ThinkingLevel::Medium => "MEDIUM",
        _ => "HIGH",
    }
}

fn budgets(model: &Model) -> Option<&'static [u64; 4]> {
    let found = BUDGETS.iter().find(|(name, _)| model.id.contains(name));
    found.map(|(_, budgets)| budgets)
}

/// The thinking budget: the caller's for the level, otherwise the model's; leaves room for an answer.
fn budget(model: &Model, options: &StreamOptions, level: ThinkingLevel, max_tokens: Option<u64>) -> i64 {
    let own = options.thinking_budgets.iter().rev();
    let own = own.into_iter().find(|(known, _)| *known == level);
    let budgets = budgets(model);
    let wanted = own.map(|(_, tokens)| *tokens).or_else(|| {
        let [minimal, low, medium, high] = budgets?;
        Some(*match level {
            ThinkingLevel::Off | ThinkingLevel::Minimal => minimal,
            ThinkingLevel::Low => low,
            ThinkingLevel::Medium => medium,
            _ => high,
        })
    });
    let Some(wanted) = wanted else {
        return DYNAMIC;
    };
    let room = max_tokens.map_or(wanted, |max| limits::with_room_for_answer(wanted, max));
    let least = budgets.map_or(0, |budgets| budgets[0]).min(wanted);
    tokens(room.max(least))
}

fn tokens(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
