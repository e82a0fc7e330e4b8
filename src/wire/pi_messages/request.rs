//! Builds a request to a pi gateway: the model, the conversation, and options.

use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::message::{
    AssistantMessage, Block, Extra, Message, SystemMessage, ToolResultMessage, UserMessage,
};
use crate::llm::model::Model;
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint;
use crate::wire::endpoint::Headers;
use serde::Serialize;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "camelCase")]
enum WireMessage<'a> {
    System(&'a SystemMessage),
    User(&'a UserMessage),
    Assistant(&'a AssistantMessage),
    ToolResult(WireResult<'a>),
}

/// A tool result without its details, which no model sees.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResult<'a> {
    tool_call_id: &'a str,
    tool_name: &'a str,
    content: &'a [Block],
    is_error: bool,
    timestamp: u64,
    #[serde(flatten)]
    extra: &'a Extra,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'static str>,
    /// `None` leaves the choice to the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_retention: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

pub fn request<'a>(
    model: &Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    Ok(HttpRequest {
        url: endpoint::url(model, options, "/messages")?,
        headers: headers(model, options)?,
        body: body(model, context, options),
    })
}

fn headers(model: &Model, options: &StreamOptions) -> Result<Vec<(String, String)>, StreamError> {
    let mut headers = Headers::json("text/event-stream");
    headers.set_bearer(options);
    headers.merge_model(model.headers.as_ref());
    headers.merge_options(options);
    headers.require_auth(model, &["authorization"])?;
    Ok(headers.into_vec())
}

fn body<'a>(model: &Model, context: &'a Context, options: &StreamOptions) -> Body<'a> {
    let wanted = WireOptions {
        temperature: options.temperature,
        max_tokens: options.max_tokens,
        reasoning: limits::thinking_level(model, options).map(|level| level.name()),
        cache_retention: match limits::cache_retention(options) {
            CacheRetention::None => Some("none"),
            CacheRetention::Short => None,
            CacheRetention::Long => Some("long"),
        },
        session_id: options.session_id.as_deref(),
        tool_choice: options.tool_choice.map(ToolChoice::name),
    };
    let mut body = Body::default();
    body.set("model", &model.id);
    body.list_inside("context", [r#"{"messages":["#, "]}"], |items| {
        items.extend(context.messages.iter().map(WireMessage::of));
        Ok(())
    });
    body.set("options", &wanted);
    body
}

impl<'a> WireMessage<'a> {
    fn of(message: &'a Message) -> Self {
        match message {
            Message::System(message) => Self::System(message),
            Message::User(message) => Self::User(message),
            Message::Assistant(message) => Self::Assistant(message),
            Message::ToolResult(result) => Self::ToolResult(WireResult::of(result)),
        }
    }
}

impl<'a> WireResult<'a> {
    fn of(result: &'a ToolResultMessage) -> Self {
        Self {
            tool_call_id: &result.tool_call_id,
            tool_name: &result.tool_name,
            content: &result.content,
            is_error: result.is_error,
            timestamp: result.timestamp,
            extra: &result.extra,
        }
    }
}
