//! What the session is doing, as the editor's border says it.

use super::feed::News;
use crate::runtime::event::Reason;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Activity {
    run: Option<Instant>,
    compaction: Option<(Reason, Instant)>,
    retry: Option<Retry>,
    /// Something else that was begun by the user, with its name.
    pub other: Option<(String, Instant)>,
}

struct Retry {
    attempt: u64,
    max_attempts: u64,
    until: Instant,
    error: String,
}

impl Activity {
    pub fn take(&mut self, news: &News, now: Instant) {
        match news {
            News::RunStarted => {
                self.run.get_or_insert(now);
                self.retry = None;
            }
            News::Settled => *self = Self::default(),
            News::CompactionStarted(reason) => self.compaction = Some((*reason, now)),
            News::CompactionEnded { .. } => self.compaction = None,
            News::RetryStarted {
                attempt,
                max_attempts,
                delay,
                error,
            } => {
                self.retry = Some(Retry {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    until: now + *delay,
                    error: error.clone(),
                });
            }
            News::RetryEnded { .. } => self.retry = None,
            _ => {}
        }
    }

    /// What to say of it, and for how long it has been so.
    pub fn label(&self, now: Instant) -> Option<(String, Duration)> {
        let since = |then: Instant| now.saturating_duration_since(then);
        if let Some(retry) = &self.retry {
            let left = retry
                .until
                .saturating_duration_since(now)
                .as_secs_f64()
                .ceil();
            let (attempt, max) = (retry.attempt, retry.max_attempts);
            let label = match left > 0.0 {
                true => format!("Retrying ({attempt}/{max}) in {left:.0}s: {}", retry.error),
                false => format!("Retrying ({attempt}/{max}): {}", retry.error),
            };
            return Some((label, Duration::ZERO));
        }
        if let Some((reason, then)) = self.compaction {
            let label = match reason {
                Reason::Manual => "Compacting context",
                Reason::Threshold => "Auto-compacting",
                Reason::Overflow => "Context overflow, auto-compacting",
            };
            return Some((label.to_owned(), since(then)));
        }
        if let Some((label, then)) = &self.other {
            return Some((label.clone(), since(*then)));
        }
        self.run.map(|then| ("Working".to_owned(), since(then)))
    }

    pub fn is_busy(&self) -> bool {
        self.run.is_some()
            || self.compaction.is_some()
            || self.retry.is_some()
            || self.other.is_some()
    }
}
