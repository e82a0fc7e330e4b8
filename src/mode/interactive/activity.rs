//! What the session is doing, for the label in the editor's border.

use super::feed::News;
use super::footer::tokens as grouped_tokens;
use crate::runtime::AgentMessage;
use crate::runtime::event::Reason;
use crate::runtime::ui::Indicator;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Activity {
    run: Option<Instant>,
    compaction: Option<(Reason, Instant)>,
    retry: Option<Retry>,
    /// Prompt tokens that the model has processed, and their total.
    reading: Option<(u64, u64)>,
    answer: Answer,
    /// Usage of the answers of the run.
    spent: Spent,
    /// Why an answer of the run was asked for again.
    failure: String,
    /// What an extension says in place of "Working".
    pub working: Option<String>,
    /// What an extension shows in place of the moving mark.
    pub indicator: Option<Indicator>,
    /// An extension does not want a run shown.
    pub is_hidden: bool,
    /// Name and start of other work that the user began.
    pub other: Option<(&'static str, Instant)>,
}

/// The answer being received.
#[derive(Default)]
struct Answer {
    first: Option<Instant>,
    /// Bytes of its text, thinking and calls so far.
    bytes: usize,
}

/// Tokens and cost of the answers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Tokens sent, from a cache or not.
    pub input: u64,
    pub output: u64,
    /// US dollars.
    pub cost: f64,
}

/// Bytes that are counted as a token until the provider has counted.
const BYTES_PER_TOKEN: usize = 4;

/// Label for the editor's border.
#[derive(Debug, PartialEq, Eq)]
pub struct Label {
    /// What is being done.
    pub text: String,
    /// For how long.
    pub running: Duration,
    /// True if that time is shown.
    pub shows_time: bool,
    /// More about it, which is cut where there is no room.
    pub about: String,
    /// What the key that interrupts does.
    pub escape: &'static str,
    /// What is shown in place of the moving mark.
    pub indicator: Option<Indicator>,
}

struct Retry {
    attempt: u64,
    max_attempts: u64,
    since: Instant,
    until: Instant,
    error: String,
}

/// The beginning of an error, as short as it says what is wrong.
pub fn brief(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    // Behind it stands the provider's name of the error.
    line.rsplit_once(" (").filter(|_| line.ends_with(')')).map_or(line, |(error, _)| error).to_owned()
}

impl Activity {
    pub fn take(&mut self, news: &News, now: Instant) {
        match news {
            News::RunStarted => {
                self.run.get_or_insert(now);
                self.retry = None;
            }
            News::Settled => {
                *self = Self {
                    working: self.working.take(),
                    indicator: self.indicator.take(),
                    is_hidden: self.is_hidden,
                    ..Self::default()
                }
            }
            News::PromptProgress(processed, total) => self.reading = Some((*processed, *total)),
            News::MessageStarted(_) => self.answer = Answer::default(),
            News::MessageEnded(AgentMessage::Assistant(answer)) => {
                let usage = &answer.usage;
                let sent = [usage.input, usage.cache_read, usage.cache_write];
                self.spent.input = sent.into_iter().fold(self.spent.input, u64::saturating_add);
                self.spent.output = self.spent.output.saturating_add(usage.output);
                self.spent.cost += usage.cost.total;
                self.answer.bytes = 0;
            }
            News::Piece { text, .. } => {
                self.reading = None;
                self.answer.bytes += text.len();
                self.answer.first.get_or_insert(now);
            }
            News::CompactionStarted(reason) => self.compaction = Some((*reason, now)),
            News::CompactionEnded { .. } => self.compaction = None,
            News::RetryStarted { attempt, max_attempts, delay, error } => {
                self.retry = Some(Retry {
                    attempt: *attempt,
                    max_attempts: *max_attempts,
                    since: now,
                    until: now + *delay,
                    error: brief(error),
                });
                self.failure = brief(error);
            }
            News::RetryEnded | News::RetrySucceeded { .. } | News::RetriesFailed { .. } => self.retry = None,
            _ => {}
        }
    }

    /// Running time and usage of the run, which is about to end.
    pub fn ended(&self, now: Instant) -> Option<(Duration, Spent)> {
        let since = self.run?;
        Some((now.saturating_duration_since(since), self.spent))
    }

    /// Why the last retry was needed.
    pub fn failure(&self) -> &str {
        &self.failure
    }

    /// Label for the editor's border.
    pub fn label(&self, now: Instant) -> Option<Label> {
        let since = |then: Instant| now.saturating_duration_since(then);
        let simple = |text: &str, then: Instant, escape| Label {
            text: text.to_owned(),
            running: since(then),
            shows_time: true,
            about: String::new(),
            escape,
            indicator: None,
        };
        if let Some(retry) = &self.retry {
            let left = retry.until.saturating_duration_since(now).as_secs_f64().ceil();
            let (attempt, max) = (retry.attempt, retry.max_attempts);
            let text = match left > 0.0 {
                true => format!("Retrying ({attempt}/{max}) in {left:.0}s"),
                false => format!("Retrying ({attempt}/{max})"),
            };
            let running = since(retry.since);
            let about = retry.error.clone();
            return Some(Label { text, running, shows_time: false, about, escape: "stops", indicator: None });
        }
        if let Some((reason, then)) = self.compaction {
            let label = match reason {
                Reason::Manual => "Compacting context",
                Reason::Threshold => "Auto-compacting",
                Reason::Overflow => "Context overflow, auto-compacting",
            };
            return Some(simple(label, then, "to cancel"));
        }
        if let Some((label, then)) = &self.other {
            return Some(simple(label, *then, "to cancel"));
        }
        let label = match self.reading.filter(|(_, total)| *total > 0) {
            Some((processed, total)) => {
                format!("Reading the prompt, {}%", processed.saturating_mul(100) / total)
            }
            None => self.working.clone().unwrap_or_else(|| "Working".to_owned()),
        };
        let tokens = self.spent.output + (self.answer.bytes / BYTES_PER_TOKEN) as u64;
        let about = if tokens > 0 { format!("{} tokens", grouped_tokens(tokens)) } else { String::new() };
        let indicator = self.indicator.clone();
        let run = self.run.filter(|_| !self.is_hidden);
        run.map(|then| Label { about, indicator, ..simple(&label, then, "to interrupt") })
    }

    /// Tokens per second of an answer with `tokens` tokens that ends at `now`.
    pub fn speed(&self, tokens: u64, now: Instant) -> Option<f64> {
        let took = now.saturating_duration_since(self.answer.first?).as_secs_f64();
        // One token, or none measurably later, says nothing.
        (tokens > 1 && took > 0.0).then(|| tokens as f64 / took)
    }

    pub fn is_busy(&self) -> bool {
        self.run.is_some() || self.compaction.is_some() || self.retry.is_some() || self.other.is_some()
    }
}
