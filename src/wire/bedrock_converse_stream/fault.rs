//! Bedrock's errors, with the texts that the reference uses.

use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http;
use crate::llm::http::fault;
use crate::wire::answer::diagnostics;
use serde_json::{Map, Value};

const RETENTION_DOCS: &str = "https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html";

/// Exceptions by name: the text for the user, and a status that decides on a retry. Without a status the
/// error text decides.
const EXCEPTIONS: &[(&str, &str, Option<u16>)] = &[
    ("InternalServerException", "Internal server error", Some(500)),
    ("ModelStreamErrorException", "Model stream error", None),
    ("ModelTimeoutException", "ModelTimeoutException", Some(408)),
    ("ServiceUnavailableException", "Service unavailable", Some(503)),
    ("ThrottlingException", "Throttling error", Some(429)),
    ("ValidationException", "Validation error", Some(400)),
];

/// The error for an exception inside a stream, by its name on the wire (`throttlingException`).
pub fn in_stream(name: &str, data: &str) -> StreamError {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let mut chars = name.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    let name: String = first.into_iter().chain(chars).collect();
    let text = text_of(&value).unwrap_or(data.trim());
    error(&name, text, None)
}

/// The error for a message with an error code instead of a type.
pub fn unmodeled(data: &str) -> StreamError {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let code = value["code"].as_str().unwrap_or("Unknown");
    error(code, text_of(&value).unwrap_or_default(), None)
}

/// Rewrites the error for an answer with an error status. A body that is not JSON with a message is not from
/// Bedrock, so its error is kept.
pub fn explain(error: &mut StreamError, headers: &[(String, String)], body: &str) {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let Some(text) = text_of(&value) else { return };
    let kind = http::header(headers, "x-amzn-errortype")
        .or_else(|| value["__type"].as_str())
        .or_else(|| value["code"].as_str());
    // `com.amazon#ValidationException:http://…`
    let kind = kind.map(|kind| kind.split([':', ',']).next().unwrap_or(kind));
    let kind = kind.map(|kind| kind.rsplit('#').next().unwrap_or(kind));
    let said = self::error(kind.unwrap_or("Unknown"), text, error.status);
    error.message = said.message;
    if error.status == Some(404) {
        error.message.push_str(" (check the model's id and the region)");
    }
}

/// Adds status, exception and request id to the message, as the reference does.
pub fn diagnose(error: &mut StreamError, answered: bool) {
    let mut details = Map::new();
    if let Some(status) = error.status.filter(|_| !answered) {
        details.insert("status".into(), status.into());
    }
    let prefix = error.message.split(": ").next().unwrap_or_default();
    let known = EXCEPTIONS.iter().find(|(_, known, _)| *known == prefix);
    let name = known.map_or(prefix, |(name, ..)| *name);
    if name.ends_with("Exception") && !name.contains(' ') {
        details.insert("errorCode".into(), name.into());
    }
    if let Some(id) = &error.request_id {
        details.insert("requestId".into(), id.as_str().into());
    }
    if !details.is_empty() {
        let extra = diagnostics("bedrock_response_failure", details);
        error.extra.get_or_insert_default().extend(extra);
    }
}

fn error(name: &str, text: &str, status: Option<u16>) -> StreamError {
    let known = EXCEPTIONS.iter().find(|(known, ..)| *known == name);
    let (prefix, usual_status) = known.map_or((name, None), |(_, prefix, status)| (*prefix, *status));
    let mut error = fault::provider_error(&Value::from(format!("{prefix}: {text}")));
    if text.to_lowercase().contains("data retention mode") {
        let hint = format!(" See {RETENTION_DOCS} for supported data retention modes.");
        error.message.push_str(&hint);
    }
    error.kind = ErrorKind::Provider;
    error.status = status.or(usual_status);
    error
}

fn text_of(value: &Value) -> Option<&str> {
    let text = ["message", "Message"].iter();
    text.filter_map(|name| value.get(name)?.as_str()).next()
}
