//! Builds a request for chat completions.

use super::compat::{Compat, SessionHeaders};
use super::decoder::Reading;
use super::thinking::Thinking;
use super::{Profile, messages, tools};
use crate::llm::body::{Body, CacheControl};
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::http::fault;
use crate::llm::limits::{self, CacheKey};
use crate::llm::message::{Message, StopReason};
use crate::llm::model::Model;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint::Headers;
use crate::wire::transcript::Transcript;
use crate::wire::{azure, endpoint};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A provider with the user's own URLs and deployment names.
const AZURE: &str = "azure";

#[derive(Serialize)]
struct StreamSettings {
    include_usage: bool,
}

pub static OPENAI: Profile = Profile {
    request,
    reading,
    // The reference's client library treats an abort as the end of the answer.
    closes_when_aborted: true,
};

fn reading(model: &Model) -> Reading {
    let compat = Compat::of(model);
    Reading {
        stop_reason,
        no_reason: compat.supports_finish_reason.then_some("Stream ended without finish_reason"),
        id_form: str::to_owned,
        in_order: false,
        is_strict: false,
        counts_thinking: true,
        grammar_tools: compat.supports_grammar_tools,
        think_tags: compat.think_tags,
        text_tool_calls: compat.text_tool_calls,
        cumulative_arguments: compat.cumulative_arguments,
    }
}

fn stop_reason(reason: &str) -> Result<StopReason, StreamError> {
    match reason {
        "stop" | "end" => Ok(StopReason::Stop),
        "length" => Ok(StopReason::Length),
        "tool_calls" | "function_call" => Ok(StopReason::ToolUse),
        other => Err(fault::stopped(format!("Provider finish_reason: {other}"))),
    }
}

fn request<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &'a StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    let compat = Arc::new(Compat::of(model));
    Ok(HttpRequest {
        url: match model.provider.as_str() {
            AZURE => azure::chat_url(model, options)?,
            _ => endpoint::url(model, options, "/chat/completions")?,
        },
        headers: headers(model, context, options, &compat)?,
        body: body(model, context, options, &compat)?,
    })
}

fn headers(
    model: &Model,
    context: &Context,
    options: &StreamOptions,
    compat: &Compat<'_>,
) -> Result<Vec<(String, String)>, StreamError> {
    let mut headers = Headers::json("application/json");
    headers.set_bearer(options);
    headers.merge_model(model.headers.as_ref());
    if model.provider == "github-copilot" {
        endpoint::copilot_headers(&mut headers, context);
    }
    if let (Some(format), Some(session)) = (compat.session_headers, limits::cache_session(options)) {
        let names: &[&str] = match format {
            SessionHeaders::Single => &["x-session-id"],
            SessionHeaders::Full => &["session_id", "x-client-request-id", "x-session-affinity"],
            SessionHeaders::WithoutSession => &["x-client-request-id", "x-session-affinity"],
        };
        for name in names {
            headers.set(name, session);
        }
    }
    headers.finish(model, options, &["authorization", "cf-aig-authorization"])
}

fn body<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
    compat: &Arc<Compat<'a>>,
) -> Result<Body<'a>, StreamError> {
    let transcript = Arc::new(Transcript::new(context, compat.system_in_place));
    let declared = match compat.tools_in_place {
        true => transcript.with_additions(),
        false => transcript.current(),
    };
    let mut tools = tools::convert(&declared.tools, compat)?;
    let retention = limits::cache_retention(options);
    let long = retention == CacheRetention::Long && compat.supports_long_cache;
    let mark = compat.cache_markers && retention != CacheRetention::None;
    let mark = mark.then(|| CacheControl::new(long));
    if let Some(mark) = mark {
        tools::mark_last(&mut tools, mark);
    }

    let mut body = Body::default();
    match model.provider.as_str() {
        AZURE => body.set("model", &azure::deployment(model, options)),
        _ => body.set("model", &model.id),
    }
    let (said, takes, told) = (transcript.clone(), compat.clone(), declared.told);
    body.list("messages", move |items| messages::convert(model, &said, &takes, told, mark, items));
    body.set("stream", &true);
    let names_session = match compat.cache_key {
        CacheKey::Auto => long || model.base_url.contains("api.openai.com"),
        CacheKey::Always => true,
        CacheKey::Never => false,
    };
    if names_session {
        body.set_some("prompt_cache_key", limits::cache_key(options).as_ref());
    }
    if long {
        body.set("prompt_cache_retention", "24h");
    }
    if compat.supports_usage_in_streaming {
        let settings = StreamSettings { include_usage: true };
        body.set("stream_options", &settings);
    }
    if compat.prompt_progress {
        body.set("return_progress", &true);
    }
    if compat.supports_store {
        body.set("store", &false);
    }
    let max_tokens = limits::output_tokens(model, context, options);
    body.set_some(compat.max_tokens_field, max_tokens.as_ref());
    body.set_some("temperature", options.temperature.as_ref());
    if !tools.is_empty() {
        body.set("tools", &tools);
        if compat.zai_tool_stream {
            body.set("tool_stream", &true);
        }
    } else if compat.tools_with_history && has_tool_history(&transcript) {
        // Proxies for Anthropic's models require the field if the conversation contains calls.
        body.set("tools", &tools);
    }
    body.set_some("tool_choice", options.tool_choice.map(ToolChoice::name));
    body.set_some("priority", compat.vllm_priority);
    Thinking::new(model, compat, options, max_tokens).write(&mut body);
    body.set_some("provider", compat.openrouter_routing);
    if let Some(routing) = compat.vercel_routing.and_then(gateway_options) {
        body.set("providerOptions", &routing);
    }
    // Last, so that the user's parameters override all others.
    body.merge(limits::sampling_params(model, options));
    Ok(body)
}

fn has_tool_history(transcript: &Transcript<'_>) -> bool {
    transcript.messages.iter().any(|message| match message {
        Message::ToolResult(_) => true,
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        _ => false,
    })
}

fn gateway_options(routing: &Map<String, Value>) -> Option<Value> {
    let known = ["only", "order"].into_iter();
    let chosen = known.filter_map(|name| Some((name.to_owned(), routing.get(name)?.clone())));
    let chosen: Map<String, Value> = chosen.collect();
    (!chosen.is_empty()).then(|| crate::base::json::json!({ "gateway": chosen }))
}
