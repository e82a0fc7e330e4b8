//! Compatibility switches for servers that differ from Anthropic, and capabilities of models.

use crate::llm::limits;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use serde_json::{Map, Value};

/// The switches of `compat` that this protocol reads.
#[derive(Debug)]
pub struct Compat<'a> {
    /// True if tools accept `eager_input_streaming`; otherwise a beta header requests eager streaming.
    pub eager_input_streaming: bool,
    pub supports_long_cache: bool,
    /// The header by which a session's requests reach one cache.
    pub session_header: Option<&'static str>,
    pub cache_control_on_tools: bool,
    pub supports_temperature: bool,
    /// True to send thinking without a signature back as thinking, not as text.
    pub allow_empty_signature: bool,
    pub supports_strict_tools: bool,
    pub system_in_place: bool,
    /// True if tools can be added and removed inside the conversation.
    pub tools_in_place: bool,
    /// True if the model limits its thinking itself by an effort, without a token budget.
    pub adaptive_thinking: bool,
    /// True if the effort is sent inside the conversation, so that changing it keeps the prompt cache valid.
    pub effort_in_place: bool,
    /// True if the server keeps the conversation between requests.
    pub threads: bool,
    /// Models that may answer instead if the requested model refuses.
    pub fallbacks: Vec<&'a Map<String, Value>>,
}

impl<'a> Compat<'a> {
    pub fn of(model: &'a Model) -> Self {
        let openrouter = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
        let set = |name: &str| model.compat.as_ref()?.get(name);
        let flag = |name: &str, default: bool| set(name).and_then(Value::as_bool).unwrap_or(default);
        let format = set("sessionAffinityFormat").and_then(Value::as_str);
        let system_in_place = flag("supportsMidConvoSystemMessages", false);
        let fallbacks = set("allowedFallbackModels").and_then(Value::as_array);
        Self {
            eager_input_streaming: flag("supportsEagerToolInputStreaming", true),
            supports_long_cache: flag("supportsLongCacheRetention", true),
            session_header: flag("sendSessionAffinityHeaders", openrouter).then_some(match format {
                Some("openrouter") => "x-session-id",
                None if openrouter => "x-session-id",
                _ => "x-session-affinity",
            }),
            cache_control_on_tools: flag("supportsCacheControlOnTools", true),
            supports_temperature: flag("supportsTemperature", true),
            allow_empty_signature: flag("allowEmptySignature", false),
            supports_strict_tools: flag("supportsStrictTools", false),
            system_in_place,
            tools_in_place: system_in_place && flag("supportsMidConvoToolChanges", false),
            adaptive_thinking: flag("forceAdaptiveThinking", false),
            effort_in_place: flag("supportsMidConvoEffort", false),
            // A gateway that drops what it does not know would make half a conversation of a request.
            threads: flag(
                "supportsMessageThreads",
                model.provider == "anthropic" && model.base_url.contains("api.anthropic.com"),
            ),
            fallbacks: fallbacks.into_iter().flatten().filter_map(Value::as_object).collect(),
        }
    }

    /// True if thinking is switched off for the model. The effort cannot be sent inside the conversation
    /// then.
    pub fn is_disabled(model: &Model, options: &StreamOptions) -> bool {
        model.reasoning && limits::thinking_level(model, options).is_none() && Self::can_be_off(model)
    }

    pub fn can_be_off(model: &Model) -> bool {
        let off = model.thinking_level_map.as_ref().and_then(|map| map.get("off"));
        !matches!(off, Some(Value::Null))
    }

    /// The effort to send inside the conversation; `None` if it is sent elsewhere or not at all.
    pub fn effort_in_place(&self, model: &'a Model, options: &StreamOptions) -> Option<&'a str> {
        let in_place = self.effort_in_place && !Self::is_disabled(model, options);
        in_place.then(|| self.effort(model, options).unwrap_or("high"))
    }

    /// The effort to request; `None` for a model that takes no effort.
    pub fn effort(&self, model: &'a Model, options: &StreamOptions) -> Option<&'a str> {
        let level = limits::thinking_level(model, options)?;
        if !self.adaptive_thinking {
            return None;
        }
        Some(model.thinking_word(level).unwrap_or(match level {
            ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            _ => "high",
        }))
    }
}
