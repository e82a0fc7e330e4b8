//! Retries a request before any part of the answer has arrived (setting `retry.provider.maxRetries`).
//!
//! These retries are not shown, and are off unless the user sets them: by default the session retries a
//! failed answer and shows it.

use crate::llm::classify::classify;
use crate::llm::event::StreamError;
use crate::llm::options::Resend;
use std::time::Duration;

/// The wait before the second attempt in milliseconds; doubled for each further attempt up to `LONGEST_MS`.
const FIRST_MS: u64 = 500;
const LONGEST_MS: u64 = 8000;

/// The decision after a failure.
#[derive(Debug, PartialEq)]
pub enum Next {
    Wait(Duration),
    Fail(StreamError),
}

impl Resend {
    /// Decides after attempt number `attempt` (from 0). `advice` is the server's `x-should-retry` header.
    pub fn after(self, attempt: u64, mut error: StreamError, advice: Option<&str>) -> Next {
        let is_passing = match advice {
            Some("true") => true,
            Some("false") => false,
            _ => classify(&error).is_passing(),
        };
        if attempt >= self.count || !is_passing {
            return Next::Fail(error);
        }
        match error.retry_after_ms {
            Some(asked) if (1..asked).contains(&self.delay_ms_max) => {
                let (asked, limit) = (asked.div_ceil(1000), self.delay_ms_max.div_ceil(1000));
                error.message =
                    format!("Server requested {asked}s retry delay (max: {limit}s). {}", error.message);
                Next::Fail(error)
            }
            Some(asked) => Next::Wait(Duration::from_millis(asked)),
            None => {
                let doubled = 2u64.saturating_pow(u32::try_from(attempt).unwrap_or(u32::MAX));
                let own = FIRST_MS.saturating_mul(doubled).min(LONGEST_MS);
                Next::Wait(Duration::from_millis(own))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::event::ErrorKind;

    #[test]
    fn passing_failures_are_waited_for_as_long_as_is_allowed() {
        // The attempt, status, wait asked for, advice; then milliseconds or the error's beginning.
        let rows = [
            (0, 503, None, None, Ok(500)),
            (1, 503, None, None, Ok(1000)),
            (9, 503, None, None, Ok(8000)),
            (0, 429, Some(3), None, Ok(3)),
            (0, 408, None, None, Ok(500)),
            (0, 400, None, None, Err("no")),
            (0, 400, None, Some("true"), Ok(500)),
            (0, 503, None, Some("false"), Err("no")),
            (10, 503, None, None, Err("no")),
            (0, 429, Some(60_000), None, Ok(60_000)),
            (0, 429, Some(60_001), None, Err("Server requested 61s retry delay (max: 60s). no")),
        ];
        for (attempt, status, retry_after_ms, advice, expected) in rows {
            let error = StreamError {
                status: Some(status),
                retry_after_ms,
                ..StreamError::new(ErrorKind::Provider, "no")
            };
            let resend = Resend { count: 10, delay_ms_max: 60_000 };
            let got = match resend.after(attempt, error, advice) {
                Next::Wait(time) => Ok(time.as_millis()),
                Next::Fail(error) => Err(error.message),
            };
            let expected = expected.map_err(str::to_owned);
            assert_eq!(got, expected, "{attempt} {status} {advice:?}");
        }
    }

    #[test]
    fn nothing_is_sent_again_unless_that_is_asked_for() {
        let error = StreamError { status: Some(503), ..StreamError::new(ErrorKind::Provider, "busy") };
        let next = Resend::default().after(0, error.clone(), Some("true"));
        assert_eq!(next, Next::Fail(error));
    }
}
