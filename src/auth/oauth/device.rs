//! The device flow (RFC 8628): asking again and again until the user has typed the code.

use super::wire::Wire;
use crate::auth::oauth::method::{cancelled, failed};
use crate::llm::event::{ErrorKind, StreamError};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_secs(1);
/// Added to the interval each time the server says `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// Assumed lifetime of a code whose server names none, in seconds.
pub(super) const LIFETIME_SECONDS: f64 = 15.0 * 60.0;

/// What a poll found.
pub(super) enum Poll<T> {
    Done(T),
    Pending,
    /// In seconds, where the server says.
    SlowDown(Option<f64>),
}

pub(super) struct Pace {
    pub interval_seconds: Option<f64>,
    pub expires_in_seconds: f64,
    pub wait_first: bool,
}

/// Polls until it is done, fails or the code has expired. A poll that got no answer, or one of a server
/// in trouble, is made again.
pub(super) fn poll<T>(
    wire: &Wire<'_>,
    pace: &Pace,
    mut ask: impl FnMut() -> Result<Poll<T>, StreamError>,
) -> Result<T, StreamError> {
    let end = wire.clock.now() + seconds(pace.expires_in_seconds);
    let mut interval = pace.interval_seconds.map_or(INTERVAL, seconds).max(SHORTEST);
    let mut slowed = false;
    let mut wait_now = pace.wait_first;
    loop {
        let left = end.saturating_sub(wire.clock.now());
        if wait_now && wire.clock.wait(interval.min(left), wire.cancel) || wire.cancel.is_cancelled() {
            return Err(cancelled());
        }
        wait_now = true;
        if wire.clock.now() >= end {
            let hint = match slowed {
                true => " The server asked to slow down: a wrong clock of a virtual machine does that.",
                false => "",
            };
            return Err(failed(format!("the code has expired; start again.{hint}")));
        }
        match ask() {
            Ok(Poll::Done(value)) => return Ok(value),
            Ok(Poll::Pending) => {}
            Ok(Poll::SlowDown(asked)) => {
                slowed = true;
                let asked = asked.filter(|asked| asked.is_finite() && *asked > 0.0);
                interval = asked.map_or(interval + SLOWER, seconds).max(SHORTEST);
            }
            Err(error) if is_passing(&error) => interval += SLOWER,
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &StreamError) -> bool {
    matches!(error.kind, ErrorKind::Transport | ErrorKind::Timeout | ErrorKind::Provider)
}

/// At most a day: a server may say anything.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0))
}

/// What most servers answer to a poll that did not succeed.
pub(super) fn read_error<T>(answer: &super::wire::Answer, what: &str) -> Result<Poll<T>, StreamError> {
    match answer.error() {
        Some("authorization_pending") => Ok(Poll::Pending),
        Some("slow_down") => Ok(Poll::SlowDown(answer.positive("interval"))),
        Some("access_denied" | "authorization_denied") => Err(failed("the sign-in was denied")),
        Some("expired_token") => Err(failed("the code has expired; start again")),
        _ => Err(answer.refused(what)),
    }
}
