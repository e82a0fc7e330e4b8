//! Decides whether and when a failed request is retried.

use crate::llm::classify::classify;
use crate::llm::event::StreamError;
use crate::resources::settings::Retry;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the delay before retry number `attempt` (from 1), or `None` if there is no such retry.
pub fn delay(policy: &Retry, attempt: u64, failure: &StreamError) -> Option<Duration> {
    if !policy.enabled || attempt > policy.max_retries || !classify(failure).is_passing() {
        return None;
    }
    let doubled = 2u64.saturating_pow(u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    let own = policy.base_delay_ms.saturating_mul(doubled).min(policy.max_agent_delay_ms);
    match failure.retry_after_ms {
        // No retry after a long delay: the error tells the user how long it would be.
        Some(asked) if (1..asked).contains(&policy.provider_max_retry_delay_ms) => None,
        asked => Some(Duration::from_millis(own.max(asked.unwrap_or(0)))),
    }
}

/// Lengthens `delay` by up to a tenth, so that many processes do not retry at one moment.
pub fn with_jitter(delay: Duration) -> Duration {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    delay + delay / 10 * (nanos % 1000) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::event::ErrorKind;

    fn policy() -> Retry {
        crate::resources::settings::Settings::default().retry()
    }

    fn failure(status: u16, retry_after_ms: Option<u64>) -> StreamError {
        StreamError { status: Some(status), retry_after_ms, ..StreamError::new(ErrorKind::Provider, "no") }
    }

    #[test]
    fn delays_double_up_to_the_limit() {
        let ms = |attempt| delay(&policy(), attempt, &failure(503, None)).map(|delay| delay.as_millis());
        assert_eq!([1, 2, 3, 4].map(ms), [Some(2000), Some(4000), Some(8000), None]);
        let patient = Retry { max_retries: 100, ..policy() };
        assert_eq!(delay(&patient, 90, &failure(503, None)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn what_the_server_asks_for_is_honoured_within_reason() {
        let ms = |asked| delay(&policy(), 1, &failure(429, Some(asked))).map(|delay| delay.as_millis());
        assert_eq!(ms(500), Some(2000));
        assert_eq!(ms(5000), Some(5000));
        assert_eq!(ms(60_000), Some(60_000));
        assert_eq!(ms(60_001), None);
        let any = Retry { provider_max_retry_delay_ms: 0, ..policy() };
        let asked = delay(&any, 1, &failure(429, Some(600_000)));
        assert_eq!(asked, Some(Duration::from_secs(600)));
    }

    #[test]
    fn what_stays_wrong_is_not_tried_again() {
        assert_eq!(delay(&policy(), 1, &failure(400, None)), None);
        assert_eq!(delay(&Retry { enabled: false, ..policy() }, 1, &failure(503, None)), None);
    }
}
