//! Errors inside a stream or a body.

use crate::llm::event::{ErrorKind, StreamError};
use serde_json::Value;

/// Maximum length of an error text, in characters.
const TEXT_LIMIT: usize = 4000;

/// The start of a text from a server, for an error message.
pub fn excerpt(text: &str) -> String {
    const CHARS: usize = 200;
    let text = text.trim();
    let mut excerpt: String = text.chars().take(CHARS).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

/// The error for data that violates the protocol. `what` names the data.
pub fn not_understood(what: &str, data: &str) -> StreamError {
    let data = excerpt(data);
    let message = format!("Could not understand the server's {what}: {data}");
    StreamError::new(ErrorKind::Protocol, message)
}

/// The error for a stream that ended before the answer was complete.
pub fn cut_short(message: &str) -> StreamError {
    StreamError::new(ErrorKind::Transport, message)
}

/// The error for an answer that the provider ended early, although the request is valid.
pub fn stopped(message: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Provider, message)
}

/// Converts an error object of a server: its text, its status if it names one, and the nested error that a
/// gateway passes on.
pub fn provider_error(error: &Value) -> StreamError {
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let mut message = text(&error["message"])
        .or_else(|| text(error))
        .unwrap_or_else(|| "The server sent an error without text".to_owned());
    if let Some(raw) = text(&error["metadata"]["raw"])
        && !message.contains(&raw)
    {
        message.push('\n');
        message.push_str(&raw);
    }
    let status = status(&error["code"]).or_else(|| status(&error["status"]));
    let words = ["type", "code"].into_iter();
    let mut words = words.filter_map(|name| error[name].as_str());
    StreamError {
        status: status.or_else(|| words.find_map(status_of_type)),
        retry_after_ms: retry_delay_ms(error),
        ..StreamError::new(kind(error), shorten(message))
    }
}

/// The kind of an error, by the `type` of the server's error object.
pub fn kind(error: &Value) -> ErrorKind {
    match error["type"].as_str() {
        Some("invalid_request_error") => ErrorKind::Request,
        _ => ErrorKind::Provider,
    }
}

/// True for an empty error field, which some servers send with every event.
pub fn is_nothing(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

/// The retry delay in Google's format: an error detail with a duration such as `37s` or `1.5s`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
pub fn retry_delay_ms(error: &Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?.iter();
    let mut delays = details.filter_map(|detail| detail.get("retryDelay")?.as_str());
    let seconds: f64 = delays.next()?.strip_suffix('s')?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}

fn status(code: &Value) -> Option<u16> {
    let number = match code {
        Value::String(text) => text.parse().ok()?,
        code => code.as_u64()?,
    };
    let number = u16::try_from(number).ok()?;
    (400..600).contains(&number).then_some(number)
}

/// The HTTP status that corresponds to an error type.
fn status_of_type(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" | "invalid_prompt" | "context_length_exceeded" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "api_error" | "server_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TEXT_LIMIT) {
        let rest = text[end..].chars().count();
        text.truncate(end);
        text.push_str(&format!("... [truncated {rest} chars]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn errors_keep_text_and_status() {
        let cases = [
            (json!({"message":"m","code":429}), "m", Some(429)),
            (json!({"message":"m","code":"502"}), "m", Some(502)),
            (json!({"message":"m","code":"invalid_api_key"}), "m", None),
            (json!({"message":{"a":1},"code":7}), "{\"a\":1}", None),
            (json!({"type":"overloaded_error","message":"busy"}), "busy", Some(529)),
            (json!({"type":"x","code":"rate_limit_exceeded","message":"m"}), "m", Some(429)),
            (json!("boom"), "boom", None),
            (json!({"a":1}), "{\"a\":1}", None),
            (json!({"message":"m","metadata":{"raw":"why"}}), "m\nwhy", None),
            (json!({"message":"m: why","metadata":{"raw":"why"}}), "m: why", None),
        ];
        for (error, message, status) in cases {
            let found = provider_error(&error);
            assert_eq!((found.message.as_str(), found.status), (message, status));
        }
        let error = json!({"type": "invalid_request_error", "message": "timeout: no such field"});
        assert_eq!(provider_error(&error).kind, ErrorKind::Request);
        let delays = [
            ("37s", Some(37_000)),
            ("1.5s", Some(1500)),
            ("-1s", None),
            ("NaNs", None),
            ("s", None),
            ("5", None),
        ];
        for (delay, expected) in delays {
            let details = json!([{"reason": "x"}, {"retryDelay": delay}]);
            let found = provider_error(&json!({"message": "m", "details": details}));
            assert_eq!(found.retry_after_ms, expected, "{delay}");
        }
        let long = provider_error(&json!({"message": "é".repeat(5000)}));
        assert!(long.message.ends_with("é... [truncated 1000 chars]"));
    }
}
