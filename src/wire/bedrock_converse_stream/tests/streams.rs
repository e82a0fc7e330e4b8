//! What comes back.

use super::*;
use crate::llm::classify::{Class, classify};
use crate::llm::event::{ErrorKind, StreamError};
use crate::wire::testing::{Decoded, decode_and_torture};

#[track_caller]
fn check(frames: &[(&str, &str)], expected: &str) -> Decoded {
    let m = model(json!({}));
    let decoded = decode_and_torture(&|| decoder(&m), frames);
    assert_eq!(decoded.shown(), expected);
    decoded
}

const START: (&str, &str) = ("messageStart", r#"{"role":"assistant","p":"abcd"}"#);

fn stop(reason: &str) -> String {
    format!(r#"{{"stopReason":"{reason}"}}"#)
}

#[test]
#[rustfmt::skip]
fn an_answer_of_every_kind_of_block() {
    let decoded = check(&[
        START,
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"h"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"m"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s1"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"AAE="}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"Ag=="}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"text":"Hi"}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"text":" you"}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
        ("contentBlockStart", r#"{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"t1","name":"ls"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"path\":"}}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":3,"delta":{"toolUse":{"input":"\"a\"}"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":3}"#),
        ("messageStop", &stop("tool_use")),
        ("metadata", r#"{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":18,"cacheReadInputTokens":5,"cacheWriteInputTokens":6,"cacheDetails":[{"ttl":"5m","inputTokens":2},{"ttl":"1h","inputTokens":4}]},"metrics":{"latencyMs":1}}"#),
    ], r#"think "hm" s1; think "[Reasoning redacted]" AAEC; text "Hi you"; call t1 ls {"path":"a"}; tooluse"#);
    let usage = &decoded.message.usage;
    assert_eq!((usage.input, usage.output, usage.total_tokens), (3, 4, 18));
    assert_eq!((usage.cache_read, usage.cache_write, usage.cache_write_1h), (5, 6, Some(4)));
    let cost = usage.cost.total * 1e6;
    let expected = 3.0 + 4.0 * 2.0 + 5.0 * 0.5 + 2.0 * 1.5 + 4.0 * 2.0;
    assert!((cost - expected).abs() < 1e-9, "{cost}");
    assert_eq!(decoded.message.raw_stop_reason.as_deref(), Some("tool_use"));
}

#[test]
fn ends() {
    let text = ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#);
    let rows = [
        ("end_turn", r#"text "a"; stop"#),
        ("stop_sequence", r#"text "a"; stop"#),
        ("max_tokens", r#"text "a"; length"#),
        ("model_context_window_exceeded", r#"text "a"; length"#),
        ("guardrail_intervened", r#"text "a"; error Provider stopped with: guardrail_intervened"#),
    ];
    for (reason, expected) in rows {
        check(&[START, text, ("messageStop", &stop(reason))], expected);
    }
    let cut = r#"text "a"; error Bedrock stream ended without a stop reason"#;
    check(&[START, text], cut);
}

#[test]
fn exceptions_inside_a_stream() {
    let rows = [
        ("throttlingException", "Throttling error: m", Class::RateLimit),
        ("internalServerException", "Internal server error: m", Class::Overloaded),
        ("serviceUnavailableException", "Service unavailable: m", Class::Overloaded),
        ("modelStreamErrorException", "Model stream error: m", Class::Other),
        ("validationException", "Validation error: m", Class::Request),
        ("fooException", "FooException: m", Class::Other),
    ];
    for (name, message, class) in rows {
        let decoded = check(&[START, (name, r#"{"message":"m"}"#)], &format!("error {message}"));
        assert_eq!(classify(&decoded.error.unwrap()), class, "{name}");
    }
    let again = r#"{"message":"The system encountered an unexpected error. Try your request again."}"#;
    let decoded = check(
        &[("modelStreamErrorException", again)],
        "error Model stream error: The system encountered an unexpected error. Try your request again.",
    );
    assert!(classify(&decoded.error.unwrap()).is_passing());
    let long = r#"{"message":"Input is too long for requested model."}"#;
    let decoded = check(
        &[("validationException", long)],
        "error Validation error: Input is too long for requested model.",
    );
    assert_eq!(classify(&decoded.error.unwrap()), Class::Overflow);
    check(&[("error", r#"{"code":"InternalError","message":"boom"}"#)], "error InternalError: boom");
    let user = "error Unexpected assistant message start but got user message start instead";
    check(&[("messageStart", r#"{"role":"user"}"#)], user);
}

#[test]
fn error_statuses_in_the_words_of_the_reference() {
    let rows = [
        (
            400,
            "ValidationException:http://x",
            r#"{"message":"prompt is too long: 10 tokens"}"#,
            "Validation error: prompt is too long: 10 tokens",
            Class::Overflow,
        ),
        (
            429,
            "ThrottlingException",
            r#"{"message":"Too many tokens"}"#,
            "Throttling error: Too many tokens",
            Class::RateLimit,
        ),
        (429, "", r#"{"message":"Slow down"}"#, "Unknown: Slow down", Class::RateLimit),
        (
            403,
            "UnrecognizedClientException",
            r#"{"message":"The security token is invalid."}"#,
            "UnrecognizedClientException: The security token is invalid.",
            Class::Auth,
        ),
        (403, "", r#"{"Message":"nope"}"#, "Unknown: nope", Class::Auth),
        (
            400,
            "",
            r#"{"__type":"com.x#AccessDeniedException","message":"data retention mode x"}"#,
            "AccessDeniedException: data retention mode x See https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html for supported data retention modes.",
            Class::Request,
        ),
        (
            404,
            "ResourceNotFoundException",
            r#"{"message":"no such model"}"#,
            "ResourceNotFoundException: no such model (check the model's id and the region)",
            Class::Request,
        ),
        (502, "", "<html>", "as it was", Class::Overloaded),
        (
            503,
            "ServiceUnavailableException",
            r#"{"message":"busy"}"#,
            "Service unavailable: busy",
            Class::Overloaded,
        ),
    ];
    for (status, kind, body, message, class) in rows {
        let before = match status {
            401 | 403 => ErrorKind::Auth,
            _ => ErrorKind::Provider,
        };
        let mut error = StreamError { status: Some(status), ..StreamError::new(before, "as it was") };
        let headers = match kind {
            "" => vec![],
            kind => vec![("x-amzn-errortype".to_owned(), kind.to_owned())],
        };
        BedrockConverseStream.explain(&mut error, &headers, body);
        assert_eq!((&*error.message, classify(&error)), (message, class));
        assert_eq!((error.kind, error.status), (before, Some(status)));
    }
}

#[test]
fn what_the_message_keeps_of_a_failure() {
    let id = Some("rid-1");
    let cases = [
        (
            "Throttling error: m",
            Some(429),
            id,
            true,
            json!({"errorCode": "ThrottlingException", "requestId": "rid-1"}),
        ),
        (
            "Validation error: m",
            Some(400),
            id,
            false,
            json!({"status": 400, "errorCode": "ValidationException", "requestId": "rid-1"}),
        ),
        (
            "UnrecognizedClientException: m",
            Some(403),
            None,
            false,
            json!({"status": 403, "errorCode": "UnrecognizedClientException"}),
        ),
        ("Unknown: m", Some(429), None, false, json!({"status": 429})),
        ("Bedrock stream ended without a stop reason", None, id, true, json!({"requestId": "rid-1"})),
        ("connection lost", None, None, true, Value::Null),
    ];
    for (message, status, request_id, answered, expected) in cases {
        let mut error = StreamError {
            status,
            request_id: request_id.map(str::to_owned),
            ..StreamError::new(ErrorKind::Provider, message)
        };
        BedrockConverseStream.diagnose(&mut error, answered);
        let kept = error.extra.as_ref().and_then(|extra| extra.get("diagnostics"));
        let kept = kept.map(|kept| &kept[0]["details"]);
        assert_eq!(kept.cloned().unwrap_or_default(), expected, "{message}");
    }
}
