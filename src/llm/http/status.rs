//! Converts an answer with an error status to an error with text, retry delay, and request id.

use super::failure::{Target, one_line};
use super::header;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::fault;
use crate::llm::message::now_ms;
use serde_json::Value;

/// Maximum length of a server's text, in characters.
const TEXT_LIMIT: usize = 4000;

/// The error for an answer with an error status. `body` may be cut off.
pub(crate) fn status_error(
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
    target: &Target,
) -> StreamError {
    let text = String::from_utf8_lossy(body);
    let said = body_text(&text);
    let mut message = match said {
        Some(said) => format!("{status} {said}"),
        None => format!("{status} status code (no body)"),
    };
    match status {
        404 => {
            message.push_str(&format!(" (asked: {}; check the base URL and the model's name)", target.url))
        }
        401 => message.push_str(" (the key was refused; see: pi docs providers)"),
        407 => message.push_str(" (from the proxy; check its user name and password)"),
        _ => {}
    }
    let kind = match status {
        401 | 403 => ErrorKind::Auth,
        _ => body_kind(&text),
    };
    StreamError {
        status: Some(status),
        retry_after_ms: retry_after_ms(headers, now_ms()).or_else(|| body_retry_ms(&text)),
        request_id: request_id(headers),
        ..StreamError::new(kind, message)
    }
}

/// The id that the server gave the request.
pub(crate) fn request_id(headers: &[(String, String)]) -> Option<String> {
    let names = ["request-id", "x-request-id", "x-amzn-requestid", "x-ms-request-id", "cf-ray"];
    let id = names.iter().find_map(|name| header(headers, name))?;
    Some(one_line(id, 200))
}

/// The error text in a body: JSON in one of the usual formats, the title of an HTML page, or plain text.
pub(crate) fn body_text(body: &str) -> Option<String> {
    let body = body.trim();
    // A gateway that has begun a stream sends its first event with the error status.
    let mut data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let json = data.next().unwrap_or(body);
    if let Ok(json) = serde_json::from_str::<Value>(json)
        && let Some(text) = json_text(&json)
    {
        return Some(one_line(&text, TEXT_LIMIT));
    }
    if body.starts_with('<') {
        return Some(html_text(body));
    }
    let text = one_line(body, TEXT_LIMIT);
    (!text.is_empty()).then_some(text)
}

fn json_text(json: &Value) -> Option<String> {
    match json {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(json_text),
        Value::Object(members) => {
            let inside = ["error", "errors", "message", "detail", "msg", "error_description"];
            let text = inside.iter().find_map(|name| members.get(*name).and_then(json_text))?;
            // Identifiers that programs use (`insufficient_quota`, `overloaded_error`), and the text that an
            // aggregator received from the provider behind it.
            let raw = members.get("metadata").and_then(|metadata| metadata.get("raw"));
            let word = ["code", "type", "status"].iter().find_map(|name| members.get(*name)?.as_str());
            let said = text.to_ascii_lowercase();
            let word = word.filter(|word| *word != "error" && !said.contains(&word.to_ascii_lowercase()));
            Some(match (word, raw.and_then(Value::as_str)) {
                (_, Some(raw)) => format!("{text}: {raw}"),
                (Some(word), None) => format!("{text} ({word})"),
                (None, None) => text,
            })
        }
        _ => None,
    }
}

/// A one-line description of an HTML page.
pub(crate) fn html_text(page: &str) -> String {
    let lower = page.to_ascii_lowercase(); // of the same length
    let title = ["title", "h1"].iter().find_map(|tag| {
        let open = lower.find(&format!("<{tag}"))?;
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</")?;
        let title = one_line(page.get(start..end)?, 200);
        (!title.is_empty()).then_some(title)
    });
    match title {
        Some(title) => format!("{title} (an HTML page)"),
        None => "an HTML page without a title".to_owned(),
    }
}

/// The wait that the server requests, in milliseconds: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
fn retry_after_ms(headers: &[(String, String)], now_ms: u64) -> Option<u64> {
    let millis = |text: &str, unit: f64| {
        let number: f64 = text.trim().parse().ok()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
        (number.is_finite() && number >= 0.0).then_some((number * unit) as u64)
    };
    if let Some(wait) = header(headers, "retry-after-ms").and_then(|text| millis(text, 1.0)) {
        return Some(wait);
    }
    let text = header(headers, "retry-after")?;
    millis(text, 1000.0).or_else(|| Some(http_date_ms(text)?.saturating_sub(now_ms)))
}

/// The wait that the body of an error requests, in milliseconds.
fn body_retry_ms(body: &str) -> Option<u64> {
    fault::retry_delay_ms(&body_error(body)?)
}

fn body_kind(body: &str) -> ErrorKind {
    body_error(body).map_or(ErrorKind::Provider, |error| fault::kind(&error))
}

/// The error object of a body, which may be a list of one error.
pub(crate) fn body_error(body: &str) -> Option<Value> {
    let mut json: Value = serde_json::from_str(body).ok()?;
    let first = if json.is_array() { json.get_mut(0)? } else { &mut json };
    first.get_mut("error").map(Value::take)
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` to Unix milliseconds.
pub(crate) fn http_date_ms(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut parts = text.split_whitespace().skip(1);
    let day: u64 = parts.next()?.parse().ok()?;
    let month = MONTHS.find(parts.next().filter(|name| name.len() == 3)?)? as u64 / 3 + 1;
    let year: u64 = parts.next()?.parse().ok()?;
    let time: Vec<u64> = parts.next()?.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = time[..] else {
        return None;
    };
    let sane = (1970..10_000).contains(&year) && (1..32).contains(&day);
    if !sane || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(utc_ms(year, month, day) + ((hour * 60 + minute) * 60 + second) * 1000)
}

/// The start of a day after 1970, in Unix milliseconds.
pub(crate) fn utc_ms(year: u64, month: u64, day: u64) -> u64 {
    // Days in the Gregorian calendar, with years that begin in March.
    let (y, m) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 719_469;
    days * 24 * 60 * 60 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_to_wait() {
        let now = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
        let rows = [
            ("retry-after", "3", Some(3000)),
            ("retry-after", " 0.25 ", Some(250)),
            ("retry-after", "1e300", Some(u64::MAX)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT", Some(3000)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT", Some(0)),
            ("retry-after", "Mon, 07 Nov 1994 08:49:37 GMT", Some(86_400_000)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after", "", None),
            ("retry-after", "Sun, 06 Foo 1994 08:49:40 GMT", None),
            ("retry-after", "Sun, 06 Nov 99999999999999 08:49:40 GMT", None),
            ("retry-after", "Sun, 06 Nov 1994 25:49:40 GMT", None),
            ("retry-after-ms", "1500", Some(1500)),
            ("retry-after-ms", "x", None),
            ("date", "3", None),
        ];
        for (name, value, expected) in rows {
            let headers = [(name.to_owned(), value.to_owned())];
            assert_eq!(retry_after_ms(&headers, now), expected, "{name}: {value}");
        }
        let both = [("retry-after", "9"), ("Retry-After-Ms", "5")];
        let both = both.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(retry_after_ms(&both, now), Some(5));
    }

    #[test]
    fn google_says_how_long_to_wait_inside_the_error() {
        let error = r#"{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"37s"}]}}"#;
        for body in [error.to_owned(), format!("[{error}]")] {
            assert_eq!(body_retry_ms(&body), Some(37_000));
            let text = body_text(&body);
            assert_eq!(text.as_deref(), Some("Slow down. (RESOURCE_EXHAUSTED)"));
        }
        assert_eq!(body_retry_ms("<html>"), None);
    }

    #[test]
    fn the_event_of_a_stream_is_read_as_its_error() {
        let error = r#"{"error": {"message": "context too long", "type": "None", "code": "500"}}"#;
        for body in [format!("data: {error}\n\n"), format!("event: error\ndata:{error}\n\ndata: [DONE]\n\n")]
        {
            assert_eq!(body_text(&body).as_deref(), Some("context too long (500)"));
        }
        assert_eq!(body_text("data: gone\n\n").as_deref(), Some("data: gone"));
    }

    #[test]
    fn dates() {
        let rows = [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600_000),
            ("Thu, 31 Dec 2026 23:59:59 GMT", 1_798_761_599_000),
            ("Fri, 01 Mar 2100 00:00:00 GMT", 4_107_542_400_000),
        ];
        for (text, expected) in rows {
            assert_eq!(http_date_ms(text), Some(expected), "{text}");
        }
    }
}
