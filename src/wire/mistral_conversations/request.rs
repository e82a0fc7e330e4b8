//! A request for a completion.

use super::messages;
use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::message::ToolSpec;
use crate::llm::model::Model;
use crate::llm::options::{StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint;
use crate::wire::endpoint::Headers;
use crate::wire::schema;
use crate::wire::transcript::Transcript;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// The longest `prompt_cache_key`, in characters.
const CACHE_KEY_LIMIT: usize = 64;

/// Sent where the model's map has no word for a level: there is one effort.
const EFFORT: &str = "high";

/// Models that think by effort. The others are switched to a mode.
const THINKS_BY_EFFORT: [&str; 3] = ["mistral-small-2603", "mistral-small-latest", "zai-glm-5-2"];
const THINKS_BY_EFFORT_FAMILY: &str = "mistral-medium-";

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    strict: bool,
}

pub fn request(
    model: &Model,
    context: &Context,
    options: &StreamOptions,
) -> Result<HttpRequest, StreamError> {
    Ok(HttpRequest {
        url: endpoint::url(model, options, "/v1/chat/completions")?,
        headers: headers(model, options)?,
        body: body(model, context, options)?.into_bytes(),
    })
}

fn headers(model: &Model, options: &StreamOptions) -> Result<Vec<(String, String)>, StreamError> {
    let mut headers = Headers::default();
    headers.set("content-type", "application/json");
    headers.set("accept", "text/event-stream");
    if let Some(key) = &options.api_key {
        headers.set("authorization", format!("Bearer {}", key.expose()));
    }
    if let Some(session) = limits::cache_session(options) {
        headers.set("x-affinity", session);
    }
    headers.merge_model(model.headers.as_ref());
    endpoint::gateway_headers(&mut headers, model, options);
    headers.merge_options(options);
    headers.require_auth(model, &["authorization"])?;
    Ok(headers.into_vec())
}

fn body(model: &Model, context: &Context, options: &StreamOptions) -> Result<Body, StreamError> {
    let in_place = model.compat.as_ref().and_then(|compat| compat.get("supportsMidConvoSystemMessages"));
    let transcript = Transcript::new(context, in_place == Some(&Value::Bool(true)));
    let tools = tools(&transcript.current_tools)?;

    let mut body = Body::default();
    body.set("model", &model.id);
    body.set("messages", &messages::convert(model, context, &transcript));
    body.set("stream", &true);
    if !tools.is_empty() {
        body.set("tools", &tools);
    }
    body.set_some("temperature", options.temperature.as_ref());
    let max_tokens = limits::output_tokens(model, context, options);
    body.set_some("max_tokens", max_tokens.as_ref());
    body.set_some("tool_choice", options.tool_choice.map(tool_choice));
    if let Some(level) = limits::thinking_level(model, options) {
        if thinks_by_effort(&model.id) {
            let effort = model.thinking_word(level).unwrap_or(EFFORT);
            body.set("reasoning_effort", effort);
        } else {
            body.set("prompt_mode", "reasoning");
        }
    }
    let key = limits::cache_session(options);
    let key = key.map(|key| key.chars().take(CACHE_KEY_LIMIT).collect::<String>());
    body.set_some("prompt_cache_key", key.as_ref());
    // Last: what the user names outright wins.
    for (name, value) in limits::sampling_params(model, options) {
        body.set(name, value);
    }
    Ok(body)
}

fn tools(tools: &[ToolSpec]) -> Result<Vec<WireTool<'_>>, StreamError> {
    let tools = tools.iter().map(|tool| {
        let strict = schema::strict_parameters(tool, true)?;
        Ok(WireTool {
            r#type: "function",
            function: Function {
                name: &tool.name,
                description: &tool.description,
                strict: strict.is_some(),
                parameters: strict.map_or_else(|| schema::parameters(tool), Cow::Owned),
            },
        })
    });
    tools.collect()
}

fn tool_choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::None => "none",
        ToolChoice::Required => "required",
    }
}

fn thinks_by_effort(id: &str) -> bool {
    THINKS_BY_EFFORT.contains(&id) || id.starts_with(THINKS_BY_EFFORT_FAMILY)
}
