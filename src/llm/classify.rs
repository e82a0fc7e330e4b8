//! Classifies errors, and decides whether a retry can help.
//!
//! Providers describe the same error with different texts, so the texts are data: each pattern matches the
//! words of a provider, ignoring case. The status or the connection error decides first, with three
//! exceptions. Texts about a full context or an exhausted quota count with any status. With a 4xx status,
//! texts about temporary errors count too, since gateways wrap the errors of other servers; but texts that
//! may be field names of an invalid request do not. A status number in a text is ignored.

use super::event::{ErrorKind, StreamError};
use regex::RegexSet;
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The conversation exceeds the model's context window.
    Overflow,
    /// The account's quota or budget is used up.
    Quota,
    /// Too many requests in a period.
    RateLimit,
    /// A temporary error of the provider.
    Overloaded,
    /// The connection failed, or the answer was cut off.
    Transport,
    Auth,
    /// The request is invalid; a retry cannot help.
    Request,
    Aborted,
    Other,
}

impl Class {
    /// True if the request may succeed when sent again unchanged.
    pub fn is_passing(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Transport)
    }
}

/// Texts about an exceeded context window.
const OVERFLOW: &[&str] = &[
    r"prompt (is )?too long",
    r"request_too_large",
    r"input is too long for requested model",
    r"exceeds the context window",
    r"exceeds (the )?(model'?s )?maximum context length( of [\d,]+ tokens?|\s*\([\d,]+\))",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"reduce the length of the messages",
    r"maximum context length is \d+ tokens",
    r"exceeds (the )?maximum allowed input length of [\d,]+ tokens?",
    r"input \(\d+ tokens\) is longer than the model'?s context length \(\d+ tokens\)",
    r"exceeds the limit of \d+",
    r"exceeds the available context size",
    r"greater than the context length",
    r"context window exceeds limit",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context length",
    r"prompt has [\d,]+ tokens?, but the configured context size is [\d,]+ tokens?",
    r"model_context_window_exceeded",
    r"exceeded (max )?context length",
    r"range of input length should be",
    r"context[_ ]length[_ ]exceeded",
    r"too many tokens",
    r"token limit exceeded",
];

/// Texts that mention tokens or length, but mean a rate limit.
const NO_OVERFLOW: &[&str] =
    &[r"^(throttling error|service unavailable):", r"rate.?limit", r"too many requests"];

const QUOTA: &[&str] = &[
    r"GoUsageLimitError",
    r"FreeUsageLimitError",
    r"monthly usage limit reached",
    r"available balance",
    r"insufficient_quota",
    r"out of budget",
    r"quota exceeded",
    r"billing",
];

const RATE_LIMIT: &[&str] = &[r"rate.?limit", r"too many requests", r"retry delay", r"ResourceExhausted"];

const OVERLOADED: &[&str] = &[
    r"overloaded",
    r"currently experiencing high demand",
    r"service.?unavailable",
    r"server.?error",
    r"internal.?error",
    r"provider.?returned.?error",
    r"(finish_reason|stopped with): error\b",
    r"exceeded request buffer limit while retrying upstream",
    r"you can retry your request",
    r"try your request again",
    r"please retry your request",
];

const TRANSPORT: &[&str] = &[
    r"network.?error",
    r"connection.?(error|refused|lost|reset|closed|aborted)",
    r"getaddrinfo",
    r"name resolution",
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNRESET|ECONNREFUSED|ECONNABORTED|ETIMEDOUT)\b",
    r"server disconnected",
    r"other side closed",
    r"fetch failed",
    r"upstream.?connect",
    r"reset before headers",
    r"socket hang up",
    r"socket connection was closed",
    r"timed? out",
    r"http2 request did not get a response",
];

/// Texts about a failed connection that may also be field names in an error with a 4xx status.
const LOOSE_TRANSPORT: &[&str] = &[r"timeout", r"terminated", r"ended (without|before)"];

/// Texts about an invalid request, from the model server itself.
const REQUEST: &[&str] = &[r"invalid_request_error"];

const LISTS: [&[&str]; 8] =
    [OVERFLOW, NO_OVERFLOW, QUOTA, RATE_LIMIT, OVERLOADED, TRANSPORT, LOOSE_TRANSPORT, REQUEST];

/// [`LISTS`], compiled.
static PHRASES: LazyLock<[RegexSet; 8]> = LazyLock::new(|| {
    LISTS.map(|list| {
        let patterns = list.iter().map(|phrase| format!("(?i){phrase}"));
        RegexSet::new(patterns).unwrap_or_else(|_| RegexSet::empty())
    })
});

/// True if an error of `provider` says that the conversation exceeds the context window.
pub fn is_overflow(provider: &str, error: &StreamError) -> bool {
    // Cerebras sends a status without a text.
    let is_mute = |text: &str| {
        ["400 status code (no body)", "413 status code (no body)"].iter().any(|said| text.starts_with(said))
    };
    classify(error) == Class::Overflow || (provider == "cerebras" && is_mute(&error.message))
}

pub fn classify(error: &StreamError) -> Class {
    let [overflow, no_overflow, quota, rate_limit, overloaded, transport, loose_transport, request] =
        &*PHRASES;
    let says = |phrases: &RegexSet| phrases.is_match(&error.message);
    let passing = || {
        let classes =
            [(rate_limit, Class::RateLimit), (overloaded, Class::Overloaded), (transport, Class::Transport)];
        classes.into_iter().find(|(phrases, _)| says(phrases)).map(|(_, class)| class)
    };
    match (error.kind, error.status) {
        (ErrorKind::Aborted, _) => return Class::Aborted,
        // Some gateways use status 403 for a rate limit.
        (ErrorKind::Auth, Some(403)) if !says(quota) => return passing().unwrap_or(Class::Auth),
        (ErrorKind::Auth, _) => return Class::Auth,
        _ => {}
    }
    if says(overflow) && !says(no_overflow) {
        return Class::Overflow;
    }
    if says(quota) {
        return Class::Quota;
    }
    match (error.status, error.kind) {
        (Some(429), _) => Class::RateLimit,
        (Some(408 | 409 | 500..=599), _) => Class::Overloaded,
        (_, ErrorKind::Transport | ErrorKind::Timeout) => Class::Transport,
        (Some(401), _) | (_, ErrorKind::Request) => Class::Request,
        (Some(400..=499), _) if says(request) => Class::Request,
        (Some(400..=499), _) => passing().unwrap_or(Class::Request),
        _ => passing().unwrap_or(if says(loose_transport) { Class::Transport } else { Class::Other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: Option<u16>, kind: ErrorKind, message: &str, expected: Class) {
        let error = StreamError { status, ..StreamError::new(kind, message) };
        assert_eq!(classify(&error), expected, "{message}");
    }

    #[test]
    fn every_phrase_is_a_pattern() {
        for (set, list) in PHRASES.iter().zip(LISTS) {
            assert_eq!(set.len(), list.len());
        }
    }

    #[test]
    fn a_full_window_is_known_by_its_words() {
        let provider = ErrorKind::Provider;
        for text in [
            "prompt is too long: 213462 tokens > 200000 maximum",
            "Your input exceeds the context window of this model.",
            "Requested token count exceeds the model's maximum context length of 131072 tokens",
            "Input length (265330) exceeds model's maximum context length (262144).",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Please reduce the length of the messages or completion",
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
            "the request exceeds the available context size, try increasing it",
            "tokens to keep from the initial prompt is greater than the context length",
            "prompt token count of 130000 exceeds the limit of 128000",
            "invalid params, context window exceeds limit",
            "Your request exceeded model token limit: 262144 (requested: 300000)",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "prompt too long; exceeded max context length by 10 tokens",
            "request_too_large: Request exceeds the maximum size",
            "Input is too long for requested model.",
            "Input length 9000 exceeds the maximum allowed input length of 8,192 tokens.",
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            "Prompt has 9,000 tokens, but the configured context size is 8,192 tokens",
            "Provider finish_reason: model_context_window_exceeded",
            "Range of input length should be [1, 129024]",
            "context_length_exceeded",
            "token limit exceeded",
        ] {
            check(Some(400), provider, text, Class::Overflow);
        }
        check(Some(429), provider, "Rate limit reached: too many tokens per minute", Class::RateLimit);
        check(None, provider, "Throttling error: Too many tokens, please wait", Class::Other);
    }

    #[test]
    fn an_error_without_a_word_is_a_full_window_at_one_provider() {
        let rows = [
            ("cerebras", "400 status code (no body)", true),
            ("cerebras", "413 status code (no body) [request r1]", true),
            ("cerebras", "403 status code (no body)", false),
            ("cerebras", "400 no such model", false),
            ("groq", "400 status code (no body)", false),
            ("groq", "400 Please reduce the length of the messages", true),
        ];
        for (provider, text, expected) in rows {
            let error = StreamError::new(ErrorKind::Provider, text);
            assert_eq!(is_overflow(provider, &error), expected, "{provider}: {text}");
        }
    }

    #[test]
    fn quota_is_never_asked_again() {
        for text in [
            "GoUsageLimitError: weekly limit",
            "FreeUsageLimitError",
            "Enable the use of your available balance to go on",
            "insufficient_quota",
            "Organization is out of budget",
            "Quota exceeded for this project",
            "Your billing address is missing",
            "You exceeded your current quota (insufficient_quota), check your plan and billing details",
            "Monthly usage limit reached",
        ] {
            check(Some(429), ErrorKind::Provider, text, Class::Quota);
        }
        assert!(!Class::Quota.is_passing() && !Class::Overflow.is_passing() && !Class::Auth.is_passing());
    }

    #[test]
    fn trouble_that_passes() {
        let rows = [
            (Some(429), ErrorKind::Provider, "slow down", Class::RateLimit),
            (Some(503), ErrorKind::Provider, "", Class::Overloaded),
            (Some(529), ErrorKind::Provider, "overloaded_error", Class::Overloaded),
            (None, ErrorKind::Provider, "Overloaded", Class::Overloaded),
            (None, ErrorKind::Provider, "Provider returned error", Class::Overloaded),
            (None, ErrorKind::Provider, "Model is currently experiencing high demand", Class::Overloaded),
            (None, ErrorKind::Provider, "An error occurred. You can retry your request", Class::Overloaded),
            (None, ErrorKind::Provider, "ResourceExhausted: worker is full", Class::RateLimit),
            (None, ErrorKind::Provider, "upstream connect error, reset before headers", Class::Transport),
            (None, ErrorKind::Transport, "connection reset", Class::Transport),
            (None, ErrorKind::Timeout, "no event for 300 s", Class::Transport),
            (None, ErrorKind::Protocol, "Stream ended without finish_reason", Class::Transport),
            (None, ErrorKind::Provider, "Provider finish_reason: error", Class::Overloaded),
            (None, ErrorKind::Provider, "Provider finish_reason: error [request r1]", Class::Overloaded),
            (None, ErrorKind::Provider, "Provider stopped with: error", Class::Overloaded),
            (None, ErrorKind::Provider, "getaddrinfo EAI_AGAIN api.example.com", Class::Transport),
            (None, ErrorKind::Provider, "request failed: ENOTFOUND", Class::Transport),
            (None, ErrorKind::Provider, "EAI_AGAIN", Class::Transport),
            (None, ErrorKind::Provider, "Temporary failure in name resolution", Class::Transport),
            (None, ErrorKind::Provider, "read ECONNRESET", Class::Transport),
            (None, ErrorKind::Provider, "Server disconnected without sending a response.", Class::Transport),
        ];
        for (status, kind, text, class) in rows {
            check(status, kind, text, class);
            assert!(class.is_passing(), "{text}");
        }
    }

    #[test]
    fn a_gateway_passes_on_passing_trouble_with_any_status_but_that_of_a_bad_key() {
        let rows = [
            ("Provider returned error", Class::Overloaded),
            ("Overloaded", Class::Overloaded),
            ("Internal server error", Class::Overloaded),
            ("Too many requests, slow down", Class::RateLimit),
            ("API rate limit exceeded for user", Class::RateLimit),
            ("upstream connect error or disconnect/reset before headers", Class::Transport),
            ("Request timed out", Class::Transport),
            ("getaddrinfo ENOTFOUND upstream", Class::Transport),
        ];
        for (text, class) in rows {
            for status in [400, 402, 403, 404, 413, 422] {
                let kind = if status == 403 { ErrorKind::Auth } else { ErrorKind::Provider };
                check(Some(status), kind, &format!("{status} {text}"), class);
            }
            check(Some(401), ErrorKind::Auth, text, Class::Auth);
            check(Some(401), ErrorKind::Provider, text, Class::Request);
            check(None, ErrorKind::Auth, text, Class::Auth);
        }
    }

    #[test]
    fn a_complaint_about_the_request_holds_words_by_chance() {
        let rows = [
            "400 messages.1: tools may not answer with a server error (invalid_request_error)",
            "invalid_request_error: metadata: rate limit is no field",
            "400 Unknown parameter: 'timeout'.",
            "400 the template is not terminated",
            "Provider finish_reason: error_of_mine",
        ];
        for text in rows {
            check(Some(400), ErrorKind::Provider, text, Class::Request);
        }
        check(Some(403), ErrorKind::Auth, "403 no access to this model", Class::Auth);
        check(Some(403), ErrorKind::Auth, "403 insufficient_quota: rate limit", Class::Auth);
        check(None, ErrorKind::Provider, "Provider finish_reason: error_of_mine", Class::Other);
        check(None, ErrorKind::Request, "no rate limit given", Class::Request);
    }

    #[test]
    fn a_number_in_a_text_says_nothing() {
        check(Some(400), ErrorKind::Provider, "max_tokens must be at most 500", Class::Request);
        check(None, ErrorKind::Provider, "unknown parameter at byte 429", Class::Other);
        check(Some(401), ErrorKind::Auth, "401 server error", Class::Auth);
    }
}
