//! ChatGPT subscriptions (Codex): account id, URL, and usage limits.
//!
//! The sign-in was designed for another program. Requests carry this program's own name; if the server
//! refuses them, the error says so.

use crate::base::json;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::now_ms;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

const BASE_URL: &str = "https://chatgpt.com/backend-api";
const CLAIM: &str = "https://api.openai.com/auth";

pub fn url(base_url: &str) -> String {
    let base = base_url.trim().trim_end_matches('/');
    let base = if base.is_empty() { BASE_URL } else { base };
    if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    }
}

/// The account id in a token (a JWT).
pub fn account_id(token: &str) -> Result<String, StreamError> {
    let claims = || {
        let mut parts = token.split('.');
        let (Some(_), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let claims = claims.trim_end_matches('=').replace('+', "-").replace('/', "_");
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims: Value = json::parse(&claims).ok()?;
        let account = claims[CLAIM]["chatgpt_account_id"].as_str()?;
        (!account.is_empty()).then(|| account.to_owned())
    };
    claims().ok_or_else(|| {
        let message = "The token for openai-codex names no ChatGPT account. Sign in again with `pi auth login openai-codex`";
        StreamError::new(ErrorKind::Auth, message)
    })
}

/// Adds advice to the error for an answer with an error status.
pub fn explain(error: &mut StreamError, body: &str) {
    let said: Value = serde_json::from_str(body).unwrap_or_default();
    let said = &said["error"];
    let limited = |name| {
        let word = said[name].as_str();
        word.is_some_and(|word| word.contains("rate_limit_exceeded"))
    };
    let rate_limited = error.status == Some(429) || limited("code") || limited("type");
    if let Some(limit) = usage_limit(said, rate_limited, now_ms()) {
        error.message = limit.message;
        error.retry_after_ms = limit.wait_ms.or(error.retry_after_ms);
    } else if matches!(error.status, Some(401 | 403)) {
        error.message.push_str(
            " (the sign-in may be for another program's use only: sign in again with `pi auth login openai-codex`, or use the provider openai with OPENAI_API_KEY)",
        );
    }
}

pub struct UsageLimit {
    pub message: String,
    pub wait_ms: Option<u64>,
}

/// The usage limit of the subscription that an error reports; `None` for other errors. `rate_limited`: true
/// if the server refused because of a limit.
pub fn usage_limit(error: &Value, rate_limited: bool, now_ms: u64) -> Option<UsageLimit> {
    if !error.is_object() {
        return None;
    }
    let word = |name: &str| error[name].as_str().filter(|word| !word.is_empty());
    let code = word("code").or_else(|| word("type")).unwrap_or_default();
    let code = code.to_ascii_lowercase();
    let plain = |plan: &&str| plan.len() < 32 && plan.chars().all(|c| c.is_ascii_alphanumeric());
    let plan = word("plan_type").filter(plain).map(str::to_lowercase);
    let plan = plan.map_or_else(String::new, |plan| format!(" ({plan} plan)"));
    if code.contains("usage_not_included") {
        return Some(UsageLimit {
            message: format!("Your ChatGPT subscription{plan} does not include this model's use"),
            wait_ms: None,
        });
    }
    if !rate_limited && !code.contains("usage_limit_reached") {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
    let resets_at_ms = error["resets_at"].as_f64().map(|at| (at * 1000.0) as u64);
    let wait_ms = resets_at_ms.map(|at| at.saturating_sub(now_ms));
    let mut message = format!("The usage limit of your ChatGPT subscription{plan} is reached.");
    if let Some(wait_ms) = wait_ms {
        let minutes = wait_ms.saturating_add(30_000) / 60_000;
        message.push_str(&format!(" Try again in about {minutes} min."));
    }
    Some(UsageLimit { message, wait_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn addresses_are_completed() {
        let full = "https://chatgpt.com/backend-api/codex/responses";
        for base in [
            "",
            " ",
            "https://chatgpt.com/backend-api",
            "https://chatgpt.com/backend-api//",
            "https://chatgpt.com/backend-api/codex",
            "https://chatgpt.com/backend-api/codex/responses/",
        ] {
            assert_eq!(url(base), full, "{base:?}");
        }
    }

    #[test]
    fn the_account_is_in_the_token() {
        let claims = json!({CLAIM: {"chatgpt_account_id": "acc-1"}, "name": "?>é"}).to_string();
        for claims in [URL_SAFE_NO_PAD.encode(&claims), STANDARD.encode(&claims)] {
            assert_eq!(account_id(&format!("h.{claims}.s")).unwrap(), "acc-1");
        }
        let empty = URL_SAFE_NO_PAD.encode(json!({CLAIM: {"chatgpt_account_id": ""}}).to_string());
        for token in ["", "a.b", "a.b.c", "a.b.c.d", "..", &format!("a.{empty}.c")] {
            let error = account_id(token).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Auth, "{token}");
            assert!(token.len() < 3 || !error.message.contains(token));
        }
    }

    #[test]
    fn limits_are_told_with_plan_and_time() {
        let now = 1_000_000;
        #[rustfmt::skip]
        let cases = [
            (json!({"type":"usage_limit_reached","plan_type":"Plus","resets_at":1720}), false,
                Some(("The usage limit of your ChatGPT subscription (plus plan) is reached. Try again in about 12 min.", Some(720_000)))),
            (json!({"code":"rate_limit_exceeded","message":"try again in 1s"}), false, None),
            (json!({"code":"rate_limit_exceeded","type":"x","message":"m"}), true,
                Some(("The usage limit of your ChatGPT subscription is reached.", None))),
            (json!({"message":"slow down","resets_at":1}), true,
                Some(("The usage limit of your ChatGPT subscription is reached. Try again in about 0 min.", Some(0)))),
            (json!({"code":"usage_not_included","plan_type":"free"}), false,
                Some(("Your ChatGPT subscription (free plan) does not include this model's use", None))),
            (json!({"code":"server_error","message":"m"}), false, None),
            (json!({"type":"usage_limit_reached","plan_type":"\u{1b}[2J"}), false,
                Some(("The usage limit of your ChatGPT subscription is reached.", None))),
            (json!(null), true, None),
            (json!("text"), true, None),
            (json!({"type":"usage_limit_reached","resets_at":1e300}), false,
                Some(("The usage limit of your ChatGPT subscription is reached. Try again in about 307445734561809 min.", Some(u64::MAX - now)))),
        ];
        for (error, rate_limited, expected) in cases {
            let found = usage_limit(&error, rate_limited, now);
            let found = found.as_ref().map(|found| (found.message.as_str(), found.wait_ms));
            assert_eq!(found, expected, "{error}");
        }
    }

    #[test]
    fn a_refused_sign_in_names_the_other_way() {
        let mut error = StreamError { status: Some(401), ..StreamError::new(ErrorKind::Auth, "401 no") };
        explain(&mut error, "<html>");
        assert!(error.message.starts_with("401 no") && error.message.contains("OPENAI_API_KEY"));
        let mut limited = StreamError { status: Some(429), ..StreamError::new(ErrorKind::Provider, "429 x") };
        let body = json!({"error": {"type": "usage_limit_reached", "resets_at": 4e9}}).to_string();
        explain(&mut limited, &body);
        assert!(limited.message.contains("subscription") && limited.retry_after_ms > Some(60_000));
    }
}
