//! Times in the form that people read.

use crate::base::time::{iso, parse_iso};
use crate::llm::message::now_ms;

/// Returns the current time in ISO 8601, as session files store it.
pub fn now_iso() -> String {
    iso(now_ms())
}

/// Returns the age of an ISO 8601 time: `now`, `5m`, `3h`, `2d`, `1w`, `4mo`, `2y`.
pub fn age(time: &str) -> String {
    let then = parse_iso(time).unwrap_or(0);
    let minutes = now_ms().saturating_sub(then) / 60_000;
    let (hours, days) = (minutes / 60, minutes / 1440);
    match (minutes, hours, days) {
        (0, ..) => "now".into(),
        (1..60, ..) => format!("{minutes}m"),
        (_, 1..24, _) => format!("{hours}h"),
        (.., 0..7) => format!("{days}d"),
        (.., 7..30) => format!("{}w", days / 7),
        (.., 30..365) => format!("{}mo", days / 30),
        _ => format!("{}y", days / 365),
    }
}

/// Returns the age of an ISO 8601 time as an adverb: `just now`, `5m ago`.
pub fn ago(time: &str) -> String {
    match age(time).as_str() {
        "now" => "just now".into(),
        age => format!("{age} ago"),
    }
}

/// Formats an ISO 8601 time as local `HH:MM`, with the date before it on days other than today. `None` if it
/// cannot be parsed.
pub fn local_time(time: &str) -> Option<String> {
    let then = local(parse_iso(time)?)?;
    let now = local(now_ms())?;
    let clock = format!("{:02}:{:02}", then.tm_hour, then.tm_min);
    let (month, day) = (then.tm_mon + 1, then.tm_mday);
    Some(match (then.tm_year == now.tm_year, then.tm_yday == now.tm_yday) {
        (true, true) => clock,
        (true, false) => format!("{month}/{day} {clock}"),
        (false, _) => format!("{:02}/{month}/{day} {clock}", then.tm_year % 100),
    })
}

fn local(ms: u64) -> Option<libc::tm> {
    let seconds = libc::time_t::try_from(ms / 1000).ok()?;
    // SAFETY: both are valid for the call, which fills the second.
    unsafe {
        let mut parts: libc::tm = std::mem::zeroed();
        let filled = libc::localtime_r(&raw const seconds, &raw mut parts);
        (!filled.is_null()).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let rows = [
            (0, "now"),
            (5, "5m"),
            (90, "1h"),
            (1440, "1d"),
            (1440 * 8, "1w"),
            (1440 * 70, "2mo"),
            (1440 * 800, "2y"),
        ];
        for (minutes, expected) in rows {
            assert_eq!(age(&iso(now_ms() - minutes * 60_000)), expected);
        }
    }

    #[test]
    fn a_time_of_today_has_no_date() {
        let time = local_time(&now_iso()).unwrap();
        assert_eq!(time.len(), "14:05".len(), "{time}");
        let time = local_time("2001-02-03T12:00:00.000Z").unwrap();
        assert!(time.starts_with("01/2/"), "{time}");
        assert_eq!(local_time("never"), None);
    }
}
