//! Compatibility switches: guessed from the provider and the URL, then overridden by the model's `compat`.

use crate::llm::limits::CacheKey;
use crate::llm::model::Model;
use crate::wire::endpoint::is_private_host;
use serde_json::{Map, Value};

/// The switches of `compat` that this protocol reads.
#[derive(Debug)]
pub struct Compat<'a> {
    pub supports_store: bool,
    pub supports_developer_role: bool,
    pub supports_reasoning_effort: bool,
    pub supports_usage_in_streaming: bool,
    pub supports_finish_reason: bool,
    pub supports_strict_mode: bool,
    pub supports_grammar_tools: bool,
    pub supports_long_cache: bool,
    /// True if system messages are accepted inside the conversation.
    pub system_in_place: bool,
    /// True if system messages inside the conversation can add tools.
    pub tools_in_place: bool,
    pub max_tokens_field: &'a str,
    /// True if the field `tools` is required, even if empty, when the conversation contains calls.
    pub tools_with_history: bool,
    pub tool_result_name: bool,
    pub assistant_after_tool_result: bool,
    /// True if messages with calls but no text must have the content "" instead of null.
    pub text_beside_calls: bool,
    pub cache_key: CacheKey,
    pub thinking_as_text: bool,
    pub empty_reasoning_content: bool,
    pub thinking_format: ThinkingFormat,
    pub chat_template_kwargs: Option<&'a Map<String, Value>>,
    pub chat_template_args: Option<&'a Map<String, Value>>,
    pub thinking_budget_field: Option<&'a str>,
    pub openrouter_routing: Option<&'a Value>,
    pub vercel_routing: Option<&'a Map<String, Value>>,
    pub zai_tool_stream: bool,
    /// True to request progress reports on the prompt, as llama.cpp supports. Not in the reference.
    pub prompt_progress: bool,
    pub vllm_priority: Option<&'a Value>,
    /// True to mark what to cache, as in Anthropic's protocol.
    pub cache_markers: bool,
    pub session_headers: Option<SessionHeaders>,
    /// True if `<think>` inside the content is thinking. Not in the reference; guessed only for local
    /// servers, since a model may write about the tag.
    pub think_tags: bool,
    /// True if a known tool's call written as text is a call. Not in the reference; guessed only for local
    /// servers.
    pub text_tool_calls: bool,
    /// True if each piece of arguments repeats all earlier ones. Not in the reference; never guessed.
    pub cumulative_arguments: bool,
}

/// The format of fields that request thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingFormat {
    OpenAi,
    OpenRouter,
    DeepSeek,
    Together,
    Baseten,
    Zai,
    Qwen,
    QwenChatTemplate,
    ChatTemplate,
    StringThinking,
    AntLing,
}

/// The headers by which a session's requests reach one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionHeaders {
    /// `session_id`, `x-client-request-id` and `x-session-affinity`.
    Full,
    /// `x-client-request-id` and `x-session-affinity`.
    WithoutSession,
    /// Only `x-session-id`.
    Single,
}

/// The vendors that a model's provider or base URL indicates.
struct Vendor {
    zai: bool,
    together: bool,
    moonshot: bool,
    openrouter: bool,
    workers_ai: bool,
    ai_gateway: bool,
    nvidia: bool,
    ant_ling: bool,
    cerebras: bool,
    deepseek: bool,
    xai: bool,
    chutes: bool,
    opencode: bool,
}

impl Vendor {
    fn of(model: &Model) -> Self {
        let is = |providers: &[&str], addresses: &[&str]| {
            let mut addresses = addresses.iter();
            providers.contains(&model.provider.as_str())
                || addresses.any(|part| model.base_url.contains(part))
        };
        Self {
            zai: is(&["zai", "zai-coding-cn"], &["api.z.ai", "open.bigmodel.cn"]),
            together: is(&["together"], &["api.together.ai", "api.together.xyz"]),
            moonshot: is(&["moonshotai", "moonshotai-cn"], &["api.moonshot."]),
            openrouter: is(&["openrouter"], &["openrouter.ai"]),
            workers_ai: is(&["cloudflare-workers-ai"], &["api.cloudflare.com"]),
            ai_gateway: is(&["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]),
            nvidia: is(&["nvidia"], &["integrate.api.nvidia.com"]),
            ant_ling: is(&["ant-ling"], &["api.ant-ling.com"]),
            cerebras: is(&["cerebras"], &["cerebras.ai"]),
            deepseek: is(&["deepseek"], &[]) || model.base_url.to_lowercase().contains("deepseek.com"),
            xai: is(&["xai"], &["api.x.ai"]),
            chutes: is(&[], &["chutes.ai"]),
            opencode: is(&["opencode"], &["opencode.ai"]),
        }
    }

    fn is_non_standard(&self) -> bool {
        self.nvidia
            || self.cerebras
            || self.xai
            || self.together
            || self.chutes
            || self.deepseek
            || self.zai
            || self.moonshot
            || self.opencode
            || self.workers_ai
            || self.ai_gateway
            || self.ant_ling
    }

    fn takes_max_tokens(&self) -> bool {
        self.chutes
            || self.deepseek
            || self.moonshot
            || self.ai_gateway
            || self.together
            || self.nvidia
            || self.ant_ling
            || self.zai
    }

    fn lacks_reasoning_effort(&self) -> bool {
        self.xai
            || self.zai
            || self.moonshot
            || self.together
            || self.ai_gateway
            || self.nvidia
            || self.ant_ling
    }

    fn lacks_long_cache(&self) -> bool {
        self.together || self.workers_ai || self.ai_gateway || self.nvidia || self.ant_ling
    }

    fn thinking_format(&self) -> ThinkingFormat {
        if self.deepseek {
            ThinkingFormat::DeepSeek
        } else if self.zai {
            ThinkingFormat::Zai
        } else if self.together {
            ThinkingFormat::Together
        } else if self.ant_ling {
            ThinkingFormat::AntLing
        } else if self.openrouter {
            ThinkingFormat::OpenRouter
        } else {
            ThinkingFormat::OpenAi
        }
    }
}

impl<'a> Compat<'a> {
    pub fn of(model: &'a Model) -> Self {
        let vendor = Vendor::of(model);
        let set = |name: &str| model.compat.as_ref()?.get(name);
        let flag = |name: &str, guess: bool| set(name).and_then(Value::as_bool).unwrap_or(guess);
        let text = |name: &str| set(name).and_then(Value::as_str);
        let object = |name: &str| set(name).and_then(Value::as_object);

        let standard = !vendor.is_non_standard();
        let anthropic_model = model.id.starts_with("anthropic/");
        let openrouter_developer = vendor.openrouter && (anthropic_model || model.id.starts_with("openai/"));
        let nearby = is_private_host(&model.base_url);
        let budget_alias = flag("supportsThinkingTokenBudget", false);
        Self {
            supports_store: flag("supportsStore", standard),
            supports_developer_role: flag(
                "supportsDeveloperRole",
                openrouter_developer || (standard && !vendor.openrouter),
            ),
            supports_reasoning_effort: flag("supportsReasoningEffort", !vendor.lacks_reasoning_effort()),
            supports_usage_in_streaming: flag("supportsUsageInStreaming", true),
            supports_finish_reason: flag("supportsFinishReason", true),
            supports_strict_mode: flag("supportsStrictMode", false),
            supports_grammar_tools: flag("supportsOpenAIGrammarTools", false),
            supports_long_cache: flag("supportsLongCacheRetention", !vendor.lacks_long_cache()),
            system_in_place: flag("supportsMidConvoSystemMessages", false),
            tools_in_place: flag("supportsMidConvoSystemMessages", false)
                && flag("supportsMidConvoToolAdditions", false),
            max_tokens_field: match text("maxTokensField") {
                Some("max_tokens") => "max_tokens",
                None if vendor.takes_max_tokens() => "max_tokens",
                _ => "max_completion_tokens",
            },
            tools_with_history: flag("requiresToolsWithToolHistory", false),
            tool_result_name: flag("requiresToolResultName", false),
            assistant_after_tool_result: flag("requiresAssistantAfterToolResult", false),
            text_beside_calls: flag("requiresNonNullAssistantContent", false),
            cache_key: CacheKey::of(model),
            thinking_as_text: flag("requiresThinkingAsText", false),
            empty_reasoning_content: flag("requiresReasoningContentOnAssistantMessages", vendor.deepseek),
            thinking_format: text("thinkingFormat")
                .map_or_else(|| vendor.thinking_format(), ThinkingFormat::parse),
            chat_template_kwargs: object("chatTemplateKwargs"),
            chat_template_args: object("chatTemplateArgs"),
            thinking_budget_field: text("thinkingTokenBudgetField")
                .or(budget_alias.then_some("thinking_token_budget")),
            openrouter_routing: set("openRouterRouting").filter(|value| !value.is_null()),
            vercel_routing: object("vercelGatewayRouting"),
            zai_tool_stream: flag("zaiToolStream", false),
            prompt_progress: flag("promptProgress", false),
            vllm_priority: set("vllmPriority").filter(|value| value.is_number()),
            cache_markers: match text("cacheControlFormat") {
                Some(format) => format == "anthropic",
                None => model.provider == "openrouter" && anthropic_model,
            },
            session_headers: flag("sendSessionAffinityHeaders", vendor.openrouter).then(|| {
                match text("sessionAffinityFormat") {
                    Some("openrouter") => SessionHeaders::Single,
                    Some("openai-nosession") => SessionHeaders::WithoutSession,
                    None if vendor.openrouter => SessionHeaders::Single,
                    _ => SessionHeaders::Full,
                }
            }),
            think_tags: flag("thinkTags", nearby),
            text_tool_calls: flag("textToolCalls", nearby),
            cumulative_arguments: flag("cumulativeToolArguments", false),
        }
    }
}

impl ThinkingFormat {
    /// Parses the name of a format; an unknown name means OpenAI's format.
    fn parse(name: &str) -> Self {
        match name {
            "openrouter" => Self::OpenRouter,
            "deepseek" => Self::DeepSeek,
            "together" => Self::Together,
            "baseten" => Self::Baseten,
            "zai" => Self::Zai,
            "qwen" => Self::Qwen,
            "qwen-chat-template" => Self::QwenChatTemplate,
            "chat-template" => Self::ChatTemplate,
            "string-thinking" => Self::StringThinking,
            "ant-ling" => Self::AntLing,
            _ => Self::OpenAi,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn model(provider: &str, base_url: &str, id: &str) -> Model {
        Model { id: id.into(), provider: provider.into(), base_url: base_url.into(), ..Model::default() }
    }

    #[test]
    fn switches_are_guessed_from_provider_and_address() {
        use ThinkingFormat as T;
        // store, developer role, max_tokens, reasoning effort, long cache
        #[rustfmt::skip]
        let cases = [
            ("x", "https://example.com/v1", "", [true, true, false, true, true], T::OpenAi),
            ("openai", "https://api.openai.com/v1", "", [true, true, false, true, true], T::OpenAi),
            ("nvidia", "", "", [false, false, true, false, false], T::OpenAi),
            ("x", "https://integrate.api.nvidia.com/v1", "", [false, false, true, false, false], T::OpenAi),
            ("cerebras", "", "", [false, false, false, true, true], T::OpenAi),
            ("xai", "", "", [false, false, false, false, true], T::OpenAi),
            ("together", "", "", [false, false, true, false, false], T::Together),
            ("x", "https://llm.chutes.ai/v1", "", [false, false, true, true, true], T::OpenAi),
            ("x", "https://API.DeepSeek.com", "", [false, false, true, true, true], T::DeepSeek),
            ("zai", "", "", [false, false, true, false, true], T::Zai),
            ("moonshotai-cn", "", "", [false, false, true, false, true], T::OpenAi),
            ("opencode", "", "", [false, false, false, true, true], T::OpenAi),
            ("cloudflare-workers-ai", "", "", [false, false, false, true, false], T::OpenAi),
            ("cloudflare-ai-gateway", "", "", [false, false, true, false, false], T::OpenAi),
            ("ant-ling", "", "", [false, false, true, false, false], T::AntLing),
            ("openrouter", "", "openai/gpt", [true, true, false, true, true], T::OpenRouter),
            ("openrouter", "", "qwen/q", [true, false, false, true, true], T::OpenRouter),
        ];
        for (provider, base_url, id, switches, format) in cases {
            let model = model(provider, base_url, id);
            let compat = Compat::of(&model);
            let found = [
                compat.supports_store,
                compat.supports_developer_role,
                compat.max_tokens_field == "max_tokens",
                compat.supports_reasoning_effort,
                compat.supports_long_cache,
            ];
            assert_eq!(found, switches, "{provider} {base_url} {id}");
            assert_eq!(compat.thinking_format, format, "{provider} {base_url}");
        }
    }

    #[test]
    fn habits_of_local_models_are_only_guessed_for_servers_nearby() {
        let local = model("local", "http://127.0.0.1:8080/v1", "m");
        let far = model("groq", "https://api.groq.com/openai/v1", "m");
        assert!(Compat::of(&local).think_tags && Compat::of(&local).text_tool_calls);
        assert!(!Compat::of(&far).think_tags && !Compat::of(&far).text_tool_calls);
        assert!(!Compat::of(&local).cumulative_arguments);
    }

    #[test]
    fn the_model_s_own_switches_win_and_null_leaves_the_guess() {
        let mut model = model("deepseek", "", "m");
        let compat = json!({"supportsStore": true, "maxTokensField": "max_completion_tokens",
            "thinkingFormat": "qwen", "supportsReasoningEffort": null, "supportsThinkingTokenBudget": true,
            "sendSessionAffinityHeaders": true, "cacheControlFormat": "anthropic", "vllmPriority": 3});
        model.compat = compat.as_object().cloned();
        let compat = Compat::of(&model);
        assert!(compat.supports_store && compat.supports_reasoning_effort && compat.cache_markers);
        assert_eq!(compat.max_tokens_field, "max_completion_tokens");
        assert_eq!(compat.thinking_format, ThinkingFormat::Qwen);
        assert_eq!(compat.thinking_budget_field, Some("thinking_token_budget"));
        assert_eq!(compat.session_headers, Some(SessionHeaders::Full));
        assert!(compat.vllm_priority.is_some());
    }
}
