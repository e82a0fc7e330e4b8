//! When to draw: immediately for a key, at a steady rate for streamed text, and slower on a slow line.
//!
//! The speed of the line is measured in two ways: the duration of a write, and the terminal's reply to a
//! query sent after a frame. Streamed news is not handled before the reply to the last frame, so at most one
//! such frame is in transit, and the effect of a key never waits for more.

use std::time::{Duration, Instant};

/// Shortest time between frames of what streams. People do not see more of it at 60 frames a second, which
/// take twice the time; a key is drawn at once.
const FRAME: Duration = Duration::from_millis(33);

/// Longest time between frames, however slow the line is.
const SLOWEST: Duration = Duration::from_millis(500);

/// Divisor for the share of time that drawing may take.
const SHARE: u32 = 3;

/// A frame that takes longer to arrive indicates a slow line or a distant terminal.
const SLOW: Duration = Duration::from_millis(300);

/// Longest wait for a reply of the terminal.
const ANSWER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Pace {
    /// True if something needs drawing.
    is_wanted: bool,
    /// True if a key requested the next frame.
    is_urgent: bool,
    /// Earliest time of the next frame.
    next: Instant,
    /// Set while the last frame may be in transit.
    on_its_way: Option<Instant>,
    /// Time at which the last frame was sent.
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

    /// Records the duration of a write: a slow line gets fewer frames.
    pub fn painted(&mut self, from: Instant, to: Instant) {
        let took = to.saturating_duration_since(from);
        (self.is_wanted, self.is_urgent) = (false, false);
        self.next = from + (took * SHARE).clamp(FRAME, SLOWEST);
    }

    /// Time until the next frame of news, which is taken in then, all at once.
    pub fn free_in(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Time that news has to wait for the last frame to arrive; `None` if it need not.
    pub fn held_for(&self, now: Instant) -> Option<Duration> {
        let until = self.on_its_way.filter(|until| *until > now)?;
        Some(until.saturating_duration_since(now))
    }

    /// Records that a query was sent after the frame.
    pub fn asked(&mut self, now: Instant) {
        self.on_its_way = Some(now + ANSWER);
        self.sent = now;
    }

    /// Records that everything written has arrived at the terminal.
    pub fn arrived(&mut self, now: Instant) {
        if self.on_its_way.take().is_some() {
            self.is_slow = now.saturating_duration_since(self.sent) > SLOW;
        }
    }

    /// True if frames take long to arrive.
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
        assert_eq!((pace.free_in(now), pace.free_in(now + FRAME)), (FRAME, Duration::ZERO));
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
