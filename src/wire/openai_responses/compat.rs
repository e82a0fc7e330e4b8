//! Compatibility switches for servers that differ from OpenAI, and capabilities of models.

use crate::llm::model::Model;
use crate::wire::openai_responses::variant::Variant;
use serde_json::Value;

/// The switches of `compat` that this protocol reads.
#[derive(Debug)]
pub struct Compat {
    /// The role of the prompt and of other system messages.
    pub instruction_role: &'static str,
    /// True if system messages are accepted inside the conversation.
    pub system_in_place: bool,
    /// True if the effort is sent inside the conversation, so that changing it keeps the prompt cache valid.
    pub effort_in_place: bool,
    /// How tools are declared inside the conversation, if supported.
    pub tools_in_place: Option<ToolsInPlace>,
    pub supports_strict_mode: bool,
    pub supports_grammar_tools: bool,
    pub supports_long_cache: bool,
    /// True if caching is requested with `prompt_cache_options`.
    pub explicit_cache: bool,
    pub supports_max_output_tokens: bool,
    /// The headers by which a session's requests reach one cache.
    pub session_headers: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolsInPlace {
    /// All tools in a separate item; later items add or replace tools.
    Item,
    /// As the result of a tool search by the model.
    Search,
}

impl Compat {
    pub fn of(variant: Variant, model: &Model) -> Self {
        let set = |name: &str| model.compat.as_ref()?.get(name);
        let flag = |name: &str, default: bool| set(name).and_then(Value::as_bool).unwrap_or(default);
        let openrouter = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
        let format = set("sessionAffinityFormat").and_then(Value::as_str);
        Self {
            instruction_role: if model.reasoning && flag("supportsDeveloperRole", true) {
                "developer"
            } else {
                "system"
            },
            system_in_place: flag("supportsMidConvoSystemMessages", false),
            effort_in_place: variant == Variant::OpenAi && flag("supportsMidConvoEffort", false),
            tools_in_place: if flag("supportsMidConvoSystemMessages", false)
                && flag("supportsAdditionalTools", false)
            {
                Some(ToolsInPlace::Item)
            } else {
                flag("supportsToolSearch", false).then_some(ToolsInPlace::Search)
            },
            supports_strict_mode: flag("supportsStrictMode", variant != Variant::OpenAi),
            supports_grammar_tools: flag("supportsOpenAIGrammarTools", false),
            supports_long_cache: flag("supportsLongCacheRetention", true),
            explicit_cache: flag("supportsExplicitPromptCacheMode", false),
            supports_max_output_tokens: flag("supportsMaxOutputTokens", true) && variant != Variant::Codex,
            session_headers: match (variant, format) {
                (Variant::Azure, _) => &[],
                (Variant::Codex, _) => &["session-id", "x-client-request-id"],
                (_, Some("openrouter")) => &["x-session-id"],
                (_, Some("openai-nosession")) => &["x-client-request-id"],
                (_, None) if openrouter => &["x-session-id"],
                _ => &["session-id", "x-client-request-id"],
            },
        }
    }
}
