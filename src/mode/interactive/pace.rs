//! When to draw: at once for a key, at the screen's pace for what streams, and slower on a slow line.

use std::time::{Duration, Instant};

/// A screen shows no more pictures than this.
const FRAME: Duration = Duration::from_millis(16);

/// However slow the line is, so often something is seen.
const SLOWEST: Duration = Duration::from_millis(500);

/// Share of the time that drawing may take: one part in so many.
const SHARE: u32 = 3;

#[derive(Debug)]
pub struct Pace {
    /// Something is to be drawn.
    is_wanted: bool,
    /// Not before.
    next: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            is_wanted: true,
            next: Instant::now(),
        }
    }
}

impl Pace {
    pub fn soon(&mut self) {
        self.is_wanted = true;
    }

    pub fn at_once(&mut self) {
        self.is_wanted = true;
        self.next = Instant::now();
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.is_wanted && self.next <= now
    }

    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        self.is_wanted
            .then(|| self.next.saturating_duration_since(now))
    }

    /// A frame was written: a line that took long over it gets fewer.
    pub fn painted(&mut self, from: Instant, to: Instant) {
        let took = to.saturating_duration_since(from);
        self.is_wanted = false;
        self.next = from + (took * SHARE).clamp(FRAME, SLOWEST);
    }
}
