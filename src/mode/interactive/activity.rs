//! What the session is doing, for the label in the editor's border.

use super::feed::News;
use crate::runtime::event::Reason;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Activity {
    run: Option<Instant>,
    compaction: Option<(Reason, Instant)>,
    retry: Option<Retry>,
    /// Prompt tokens that the model has processed, and their total.
    reading: Option<(u64, u64)>,
    answer: Answer,
    /// What an extension says in place of "Working".
    pub working: Option<String>,
    /// Name and start of other work that the user began.
    pub other: Option<(&'static str, Instant)>,
}

/// The answer being received.
#[derive(Default)]
struct Answer {
    first: Option<Instant>,
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
            News::Settled => *self = Self { working: self.working.take(), ..Self::default() },
            News::PromptProgress(processed, total) => self.reading = Some((*processed, *total)),
            News::MessageStarted(_) => self.answer = Answer::default(),
            News::Piece { .. } => {
                self.reading = None;
                self.answer.first.get_or_insert(now);
            }
            News::CompactionStarted(reason) => self.compaction = Some((*reason, now)),
            News::CompactionEnded { .. } => self.compaction = None,
            News::RetryStarted { attempt, max_attempts, delay, error } => {
                self.retry = Some(Retry {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    until: now + *delay,
                    error: error.clone(),
                });
            }
            News::RetryEnded | News::RetriesFailed { .. } => self.retry = None,
            _ => {}
        }
    }

    /// Label for the editor's border, and for how long it has applied.
    pub fn label(&self, now: Instant) -> Option<(String, Duration)> {
        let since = |then: Instant| now.saturating_duration_since(then);
        if let Some(retry) = &self.retry {
            let left = retry.until.saturating_duration_since(now).as_secs_f64().ceil();
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
            return Some(((*label).to_owned(), since(*then)));
        }
        let label = match self.reading.filter(|(_, total)| *total > 0) {
            Some((processed, total)) => {
                format!("Reading the prompt, {}%", processed.saturating_mul(100) / total)
            }
            None => self.working.clone().unwrap_or_else(|| "Working".to_owned()),
        };
        self.run.map(|then| (label, since(then)))
    }

    /// Tokens per second of an answer with `tokens` tokens that ends at `now`.
    pub fn speed(&self, tokens: u64, now: Instant) -> Option<f64> {
        let took = now.saturating_duration_since(self.answer.first?).as_secs_f64();
        // One token, or none measurably later, says nothing.
        (tokens > 1 && took > 0.0).then(|| tokens as f64 / took)
    }

    /// True during a retry delay or a compaction: the label then names the key that cancels.
    pub fn names_escape(&self) -> bool {
        self.retry.is_some() || self.compaction.is_some()
    }

    pub fn is_busy(&self) -> bool {
        self.run.is_some() || self.compaction.is_some() || self.retry.is_some() || self.other.is_some()
    }
}
