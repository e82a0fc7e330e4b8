//! When to draw: at once for a key, at the screen's pace for what streams, and slower on a slow line.
//!
//! How slow the line is shows in two ways: a write that takes long, and the answer of the terminal to a question
//! behind a frame. What streams is not even looked at before the answer to its last frame has come, so at most one
//! frame of it is on its way, and what a key did is never behind more than that.

use std::time::{Duration, Instant};

/// A screen shows no more pictures than this.
const FRAME: Duration = Duration::from_millis(16);

/// However slow the line is, so often something is seen.
const SLOWEST: Duration = Duration::from_millis(500);

/// Share of the time that drawing may take: one part in so many.
const SHARE: u32 = 3;

/// A frame that takes longer to arrive goes over a slow line, or to a far place.
const SLOW: Duration = Duration::from_millis(300);

/// An answer that does not come is not waited for longer.
const ANSWER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Pace {
    /// Something is to be drawn.
    is_wanted: bool,
    /// A key asked for the next frame.
    is_urgent: bool,
    /// Earliest time of the next frame.
    next: Instant,
    /// The last frame may still be on its way.
    on_its_way: Option<Instant>,
    /// When the last frame was sent.
    sent: Instant,
    /// True if the last traced frame took long to arrive.
    is_slow: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            is_wanted: true,
            is_urgent: false,
            next: Instant::now(),
            on_its_way: None,
            sent: Instant::now(),
            is_slow: false,
        }
    }
}

impl Pace {
    pub fn soon(&mut self) {
        self.is_wanted = true;
    }

    pub fn at_once(&mut self) {
        (self.is_wanted, self.is_urgent) = (true, true);
    }

    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.is_wanted && self.at(now) <= now
    }

    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        let wait = self.at(now).saturating_duration_since(now);
        self.is_wanted.then_some(wait)
    }

    fn at(&self, now: Instant) -> Instant {
        match self.is_urgent {
            true => now,
            false => self.next.max(self.on_its_way.unwrap_or(self.next)),
        }
    }

    /// A frame was written: a line that took long over it gets fewer.
    pub fn painted(&mut self, from: Instant, to: Instant) {
        let took = to.saturating_duration_since(from);
        (self.is_wanted, self.is_urgent) = (false, false);
        self.next = from + (took * SHARE).clamp(FRAME, SLOWEST);
    }

    /// How long news has to wait for the last frame to arrive; none if it need not.
    pub fn held_for(&self, now: Instant) -> Option<Duration> {
        let until = self.on_its_way.filter(|until| *until > now)?;
        Some(until.saturating_duration_since(now))
    }

    /// Behind the frame the terminal was asked something.
    pub fn asked(&mut self, now: Instant) {
        self.on_its_way = Some(now + ANSWER);
        self.sent = now;
    }

    /// All that was written has come to the terminal.
    pub fn arrived(&mut self, now: Instant) {
        if self.on_its_way.take().is_some() {
            self.is_slow = now.saturating_duration_since(self.sent) > SLOW;
        }
    }

    /// The line takes long over a frame.
    pub fn is_slow(&self) -> bool {
        self.is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_streams_waits_for_the_frame_before_it_and_keys_do_not() {
        let now = Instant::now();
        let mut pace = Pace::default();
        assert!(pace.is_due(now + FRAME));
        pace.painted(now, now);
        assert_eq!(pace.due_in(now), None);
        pace.soon();
        assert_eq!(pace.due_in(now), Some(FRAME));
        pace.asked(now);
        assert!(!pace.is_due(now + FRAME));
        pace.at_once();
        assert!(pace.is_due(now));
        pace.painted(now, now);
        pace.soon();
        assert!(!pace.is_due(now + FRAME));
        pace.arrived(now);
        assert!(!pace.is_slow());
        assert!(pace.is_due(now + FRAME));
        pace.asked(now);
        assert_eq!(pace.held_for(now), Some(ANSWER));
        assert_eq!(pace.held_for(now + ANSWER), None);
        assert!(pace.is_due(now + ANSWER));
    }

    #[test]
    fn a_frame_that_arrives_late_shows_a_slow_line() {
        let now = Instant::now();
        let mut pace = Pace::default();
        pace.asked(now);
        pace.arrived(now + SLOW * 2);
        assert!(pace.is_slow());
        pace.asked(now);
        pace.arrived(now + SLOW / 2);
        assert!(!pace.is_slow());
    }

    #[test]
    fn a_line_that_takes_long_gets_fewer_frames() {
        let now = Instant::now();
        let mut pace = Pace::default();
        pace.painted(now, now + Duration::from_millis(100));
        pace.soon();
        assert_eq!(pace.due_in(now), Some(Duration::from_millis(300)));
        pace.painted(now, now + Duration::from_secs(10));
        pace.soon();
        assert_eq!(pace.due_in(now), Some(SLOWEST));
    }
}
