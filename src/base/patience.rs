//! Time limits. Short ones that a loaded machine can miss are multiplied by `PI_PATIENCE=20` in debug builds.
//!
//! The tests through the built binary set it, so that what they show does not depend on the machine's load.

use std::time::{Duration, Instant};

/// The time limit `usual`. Release builds never change it.
#[cfg(not(debug_assertions))]
#[inline]
pub fn patience(usual: Duration) -> Duration {
    usual
}

/// The time limit `usual`, multiplied by what a test requests.
#[cfg(debug_assertions)]
pub fn patience(usual: Duration) -> Duration {
    let factor = std::env::var("PI_PATIENCE").ok().and_then(|factor| factor.parse().ok());
    usual.saturating_mul(factor.unwrap_or(1))
}

/// Seconds until `end`, rounded up.
pub fn seconds_until(end: Instant) -> u64 {
    let left = end.saturating_duration_since(Instant::now());
    left.as_secs() + u64::from(left.subsec_nanos() > 0)
}
