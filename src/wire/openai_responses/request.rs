//! Builds a request to the Responses API.

use super::compat::{Compat, ToolsInPlace};
use super::{codex, items, tools};
use crate::base::json::json;
use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::limits::{self, CacheKey};
use crate::llm::model::Model;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint::Headers;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::transcript::{Declared, Transcript};
use crate::wire::{azure, endpoint};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// OpenAI's minimum for the output limit, in tokens.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The instructions of a request without a prompt, since Codex requires instructions.
const NO_PROMPT: &str = "Help the user with what they ask.";

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

/// The effort field of a request that sends the effort inside the conversation. The cache depends on the
/// field, so it never changes.
const EFFORT_BESIDE: &str = "medium";

/// True for the token of a ChatGPT sign-in: it lacks the prefix of OpenAI's keys.
fn is_subscription(model: &Model, options: &StreamOptions) -> bool {
    let key = options.api_key.as_ref();
    model.provider == "openai"
        && model.base_url == "https://api.openai.com/v1"
        && key.is_some_and(|key| !key.expose().starts_with("sk-"))
}

/// The effort to send inside the conversation; `None` if the model does not support that.
pub fn effort_in_place<'a>(variant: Variant, model: &'a Model, options: &StreamOptions) -> Option<&'a str> {
    let in_place = Compat::of(variant, model).effort_in_place && !is_subscription(model, options);
    let level = limits::thinking_level(model, options).filter(|_| in_place)?;
    Some(model.thinking_word(level).unwrap_or(level.name()))
}

pub fn request<'a>(
    variant: Variant,
    model: &'a Model,
    context: &'a Context,
    options: &'a StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    let request = Arc::new(Request { variant, model, context, options, compat: Compat::of(variant, model) });
    let url = request.url()?;
    Ok(HttpRequest { headers: request.headers(&url)?, body: Request::body(&request)?, url })
}

struct Request<'a> {
    variant: Variant,
    model: &'a Model,
    context: &'a Context,
    options: &'a StreamOptions,
    compat: Compat,
}

impl<'a> Request<'a> {
    fn url(&self) -> Result<String, StreamError> {
        match self.variant {
            Variant::OpenAi => endpoint::url(self.model, self.options, "/responses"),
            Variant::Azure => azure::url(self.model, self.options),
            Variant::Codex => Ok(codex::url(&self.model.base_url)),
        }
    }

    fn headers(&self, url: &str) -> Result<Vec<(String, String)>, StreamError> {
        let Self { model, options, .. } = self;
        let key = options.api_key.as_ref().map(|key| key.expose());
        let mut headers = Headers::json("application/json");
        match (self.variant, key) {
            (_, None) => {}
            (Variant::Azure, Some(key)) => headers.set("api-key", key),
            (_, Some(key)) => headers.set("authorization", format!("Bearer {key}")),
        }
        headers.merge_model(model.headers.as_ref());
        if model.provider == "github-copilot" {
            endpoint::copilot_headers(&mut headers, self.context);
        }
        if self.variant == Variant::Codex {
            headers.set("accept", "text/event-stream");
            headers.set("openai-beta", "responses=experimental");
            headers.set("originator", "pi");
            if let Some(token) = key {
                headers.set("chatgpt-account-id", codex::account_id(token)?);
            }
        }
        let session = match self.variant {
            Variant::Codex => limits::cache_key(options),
            _ => limits::cache_session(options).map(str::to_owned),
        };
        if let Some(session) = session {
            for name in self.compat.session_headers {
                headers.set(name, session.as_str());
            }
        }
        endpoint::gateway_headers(&mut headers, model, options);
        headers.merge_options(options);
        let proofs = ["authorization", "api-key", "cf-aig-authorization"];
        headers.require_auth_at(url, model, &proofs)?;
        Ok(headers.into_vec())
    }

    fn body(self: &Arc<Self>) -> Result<Body<'a>, StreamError> {
        let Self { variant, model, context, options, compat } = &**self;
        let transcript = Arc::new(Transcript::new(context, compat.system_in_place));
        let declared = match compat.tools_in_place {
            Some(ToolsInPlace::Item) => Declared { tools: Vec::new(), told: 0 },
            Some(ToolsInPlace::Search) => transcript.with_additions(),
            None => transcript.current(),
        };
        let tools = tools::convert(&declared.tools, *variant, compat, false)?;
        let effort = effort_in_place(*variant, model, options);
        let is_codex = *variant == Variant::Codex;

        let mut body = Body::default();
        match variant {
            Variant::Azure => body.set("model", &azure::deployment(model, options)),
            _ => body.set("model", &model.id),
        }
        if is_codex {
            let prompt = transcript.prompt.as_str();
            let prompt = if prompt.is_empty() { NO_PROMPT } else { prompt };
            body.set("instructions", prompt);
        }
        let (request, said, told) = (self.clone(), transcript.clone(), declared.told);
        body.list("input", move |items| {
            let Request { variant, model, compat, .. } = &*request;
            items::convert(*variant, model, &said, compat, told, effort, items)
        });
        body.set("stream", &true);
        body.set("store", &false);
        self.write_cache(&mut body);
        let subscribed = is_subscription(model, options);
        if compat.supports_max_output_tokens && !subscribed {
            let limit = limits::output_tokens(model, context, options);
            let limit = limit.map(|limit| limit.max(MIN_OUTPUT_TOKENS));
            body.set_some("max_output_tokens", limit.as_ref());
        }
        if !subscribed {
            body.set_some("temperature", options.temperature.as_ref());
        }
        if !tools.is_empty() {
            body.set("tools", &tools);
        }
        let choice = options.tool_choice;
        let choice = choice.or(is_codex.then_some(ToolChoice::Auto));
        body.set_some("tool_choice", choice.map(ToolChoice::name));
        if is_codex {
            body.set("parallel_tool_calls", &true);
            body.set("text", &json!({"verbosity": "low"}));
        }
        self.write_thinking(&mut body);
        // Last, so that the user's parameters override all others.
        body.merge(limits::sampling_params(model, options));
        Ok(body)
    }

    fn write_cache(&self, body: &mut Body) {
        let names_session = self.variant == Variant::Codex || CacheKey::of(self.model) != CacheKey::Never;
        let key = names_session.then(|| limits::cache_key(self.options)).flatten();
        body.set_some("prompt_cache_key", key.as_ref());
        if self.variant != Variant::OpenAi || is_subscription(self.model, self.options) {
            return;
        }
        let retention = limits::cache_retention(self.options);
        let long = retention == CacheRetention::Long && self.compat.supports_long_cache;
        if !self.compat.explicit_cache {
            body.set_some("prompt_cache_retention", long.then_some("24h"));
        } else if retention == CacheRetention::None {
            body.set("prompt_cache_options", &json!({"mode": "explicit"}));
        } else if long {
            body.set("prompt_cache_options", &json!({"ttl": "30m"}));
        }
    }

    fn write_thinking(&self, body: &mut Body) {
        let Self { model, options, .. } = self;
        let level = limits::thinking_level(model, options).filter(|_| model.reasoning);
        if let Some(level) = level {
            let word = model.thinking_word(level).unwrap_or(level.name());
            let in_place = effort_in_place(self.variant, model, options).is_some();
            let reasoning =
                Reasoning { effort: if in_place { EFFORT_BESIDE } else { word }, summary: Some("auto") };
            body.set("reasoning", &reasoning);
        } else if let Some(effort) = self.effort_off() {
            let reasoning = Reasoning { effort, summary: None };
            body.set("reasoning", &reasoning);
        }
        // Encrypted thinking, without which the next request could not continue from this answer.
        let thinks_unasked = model.reasoning && model.provider == "xai";
        if level.is_some() || thinks_unasked || self.variant == Variant::Codex {
            body.set("include", &["reasoning.encrypted_content"]);
        }
    }

    /// The effort that switches thinking off; `None` if none must be sent.
    fn effort_off(&self) -> Option<&str> {
        let model = self.model;
        if !model.reasoning || model.provider == "github-copilot" {
            return None;
        }
        let map = model.thinking_level_map.as_ref();
        match map.and_then(|map| map.get("off")) {
            None => Some("none"),
            Some(Value::String(word)) => Some(word),
            Some(_) => None,
        }
    }
}
