//! Builds a request to Anthropic's messages protocol.

use super::compat::Compat;
use super::messages::{self, OutputConfig};
use super::tools::{self, WireTool};
use crate::base::json::json;
use crate::llm::body::{Body, CacheControl};
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::model::Model;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint;
use crate::wire::endpoint::Headers;
use crate::wire::transcript::Transcript;
use serde::Serialize;
use std::sync::Arc;

const VERSION: &str = "2023-06-01";

/// Output limit if neither the caller nor the model sets one, in tokens.
const DEFAULT_MAX_TOKENS: u64 = 16384;

/// Smallest thinking budget, in tokens.
const MIN_BUDGET: u64 = 1024;

/// Set where the credential is an identity that Anthropic federates.
const FEDERATION: &str = "ANTHROPIC_FEDERATION_RULE_ID";

const OAUTH: &str = "oauth-2025-04-20";
const FINE_GRAINED_TOOL_STREAMING: &str = "fine-grained-tool-streaming-2025-05-14";
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
const SERVER_SIDE_FALLBACK: &str = "server-side-fallback-2026-07-01";
const OUTPUT_CONFIG_IN_PLACE: &str = "mid-conversation-output-config-2026-07-01";
const THINKING_BINDING: &str = "thinking-binding-controls-2026-08-01";
const THREADS: &str = "message-threads-2026-08-12";
const TOOL_CHANGES_IN_PLACE: &str = "inline-tools-2026-09-15";

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum WireThinking {
    Disabled,
    Enabled {
        budget_tokens: u64,
        display: &'static str,
    },
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
}

/// Asks the server to drop thinking that no longer matches the preceding messages, instead of rejecting it.
#[derive(Serialize)]
struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Serialize)]
struct WireToolChoice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Fallback<'a> {
    model: &'a str,
}

struct Request<'a> {
    model: &'a Model,
    context: &'a Context,
    options: &'a StreamOptions,
    compat: Compat<'a>,
    transcript: Transcript<'a>,
    /// True if tools are added and removed inside the conversation.
    tool_changes: bool,
}

pub fn request<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &'a StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    let compat = Compat::of(model);
    let transcript = Transcript::new(context, compat.system_in_place);
    // A list of tools that are all deferred would be rejected.
    let tool_changes = compat.tools_in_place && !transcript.initial_tools.is_empty();
    let request = Arc::new(Request { model, context, options, compat, transcript, tool_changes });
    Ok(HttpRequest {
        url: endpoint::url(model, options, "/v1/messages?beta=true")?,
        headers: request.headers()?,
        body: Request::body(&request)?,
    })
}

impl<'a> Request<'a> {
    fn headers(&self) -> Result<Vec<(String, String)>, StreamError> {
        let mut headers = Headers::json("application/json");
        headers.set("anthropic-version", VERSION);
        if let Some(key) = self.options.api_key.as_ref().map(|key| key.expose()) {
            if self.is_oauth() || self.model.provider == "github-copilot" {
                headers.set("authorization", format!("Bearer {key}"));
            } else {
                headers.set("x-api-key", key);
            }
        }
        let session = limits::cache_session(self.options);
        if let (Some(name), Some(session)) = (self.compat.session_header, session) {
            headers.set(name, session);
        }
        let betas = self.betas();
        if !betas.is_empty() {
            headers.set("anthropic-beta", betas.join(","));
        }
        headers.merge_model(self.model.headers.as_ref());
        if self.model.provider == "github-copilot" {
            endpoint::copilot_headers(&mut headers, self.context);
        }
        let proofs = ["x-api-key", "authorization", "cf-aig-authorization"];
        headers.finish(self.model, self.options, &proofs)
    }

    /// True if the key is the token of a subscription or of a federated identity.
    fn is_oauth(&self) -> bool {
        self.model.provider != "github-copilot"
            && match &self.options.api_key {
                Some(key) => key.expose().contains("sk-ant-oat"),
                None => self.options.env.iter().any(|(name, _)| name == FEDERATION),
            }
    }

    /// Beta features to request. A header of the model or the caller replaces this list.
    fn betas(&self) -> Vec<&'static str> {
        let compat = &self.compat;
        let has_tools = !self.transcript.current_tools.is_empty();
        let interleaved = self.thinks() && !compat.adaptive_thinking;
        let features = [
            (OAUTH, self.is_oauth()),
            (FINE_GRAINED_TOOL_STREAMING, has_tools && !compat.eager_input_streaming),
            (INTERLEAVED_THINKING, interleaved),
            (SERVER_SIDE_FALLBACK, !compat.fallbacks.is_empty()),
            (OUTPUT_CONFIG_IN_PLACE, compat.effort_in_place),
            (THINKING_BINDING, compat.effort_in_place),
            (TOOL_CHANGES_IN_PLACE, self.tool_changes),
            (THREADS, self.is_threaded()),
        ];
        let wanted = features.into_iter().filter(|(_, wanted)| *wanted);
        wanted.map(|(name, _)| name).collect()
    }

    /// True if the server is asked to keep the conversation. What of it is then sent is decided in
    /// `llm::stream`, which knows what came of earlier requests.
    fn is_threaded(&self) -> bool {
        self.compat.threads && limits::cache_session(self.options).is_some()
    }

    fn thinks(&self) -> bool {
        limits::thinking_level(self.model, self.options).is_some()
    }

    fn body(self: &Arc<Self>) -> Result<Body<'a>, StreamError> {
        let (model, compat) = (self.model, &self.compat);
        let retention = limits::cache_retention(self.options);
        let long = retention == CacheRetention::Long && compat.supports_long_cache;
        let mark = (retention != CacheRetention::None).then(|| CacheControl::new(long));
        let effort = compat.effort(model, self.options);
        let in_place = compat.effort_in_place(model, self.options);
        let (max_tokens, budget) = self.tokens();

        let mut body = Body::default();
        body.set("model", &model.id);
        let request = self.clone();
        body.list("messages", move |items| {
            let Request { model, transcript, compat, .. } = &*request;
            let changes = request.tool_changes;
            messages::convert(model, transcript, compat, changes, mark, in_place, items)
        });
        body.set("max_tokens", &max_tokens);
        body.set("stream", &true);
        if !self.transcript.prompt.is_empty() {
            let block = SystemBlock { r#type: "text", text: &self.transcript.prompt, cache_control: mark };
            body.set("system", &[block]);
        }
        if compat.supports_temperature && !compat.effort_in_place && !self.thinks() {
            body.set_some("temperature", self.options.temperature.as_ref());
        }
        let tools = self.tools(mark)?;
        if !tools.is_empty() {
            body.set("tools", &tools);
        }
        self.write_thinking(&mut body, effort, budget);
        body.set_some("tool_choice", self.options.tool_choice.map(tool_choice).as_ref());
        let fallbacks = compat.fallbacks.iter();
        let fallbacks = fallbacks.filter_map(|model| model.get("model")?.as_str());
        let fallbacks: Vec<_> = fallbacks.map(|model| Fallback { model }).collect();
        if !fallbacks.is_empty() {
            body.set("fallbacks", &fallbacks);
        }
        if self.is_threaded() && !self.options.is_repetition {
            body.set("thread", &json!({"type": "create"})); // the last field
        }
        Ok(body)
    }

    fn tools(&self, mark: Option<CacheControl>) -> Result<Vec<WireTool<'_>>, StreamError> {
        let transcript = &self.transcript;
        if !self.tool_changes {
            return tools::convert_all(&transcript.current_tools, &self.compat, mark);
        }
        // The list never changes: later changes are sent in messages.
        let mut list = tools::convert_all(&transcript.initial_tools, &self.compat, mark)?;
        list.push(tools::placeholder());
        Ok(list)
    }

    /// The output limit, and the thinking budget if the model takes one; both in tokens.
    fn tokens(&self) -> (u64, Option<u64>) {
        let (model, context, options) = (self.model, self.context, self.options);
        let base = limits::output_tokens(model, context, options)
            .unwrap_or_else(|| limits::clamp_to_window(model, context, DEFAULT_MAX_TOKENS));
        let level = limits::thinking_level(model, options);
        let Some(level) = level.filter(|_| !self.compat.adaptive_thinking) else {
            return (base, None);
        };
        let budget = limits::thinking_budget(level, options);
        let ceiling = if model.max_tokens > 0 { model.max_tokens } else { base };
        let max_tokens = base.saturating_add(budget).min(ceiling);
        let max_tokens = limits::clamp_to_window(model, context, max_tokens);
        let budget = limits::with_room_for_answer(budget, max_tokens).max(MIN_BUDGET);
        // The budget is part of the limit: a small limit leaves no room to think.
        (max_tokens, (max_tokens > MIN_BUDGET).then_some(budget))
    }

    fn write_thinking(&self, body: &mut Body, effort: Option<&str>, budget: Option<u64>) {
        const DISPLAY: &str = "summarized";
        if Compat::is_disabled(self.model, self.options) {
            body.set("thinking", &WireThinking::Disabled);
            return;
        }
        if self.compat.effort_in_place {
            let thinking = WireThinking::Adaptive {
                display: DISPLAY,
                block_binding: Some(BlockBinding { prefix_mismatch_behavior: "drop_block" }),
            };
            body.set("thinking", &thinking);
            // The cache depends on this value, so it never changes; the lowest is used, since accounts may be
            // limited to it.
            body.set("output_config", &OutputConfig { effort: "low" });
            return;
        }
        if !self.model.reasoning {
            return;
        }
        match (effort, budget) {
            (Some(effort), _) => {
                let thinking = WireThinking::Adaptive { display: DISPLAY, block_binding: None };
                body.set("thinking", &thinking);
                body.set("output_config", &OutputConfig { effort });
            }
            (None, Some(budget)) => {
                let thinking = WireThinking::Enabled { budget_tokens: budget, display: DISPLAY };
                body.set("thinking", &thinking);
            }
            // There is no room to think beside an answer.
            (None, None) if self.thinks() && Compat::can_be_off(self.model) => {
                body.set("thinking", &WireThinking::Disabled);
            }
            (None, None) => {}
        }
    }
}

fn tool_choice(choice: ToolChoice) -> WireToolChoice {
    WireToolChoice {
        r#type: match choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
            ToolChoice::Required => "any",
        },
    }
}
