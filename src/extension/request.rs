//! Requests of pi to a program: which are open, and whether an extension answers them.

use crate::jsonrpc::message::Failure;
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Requests in a row without an answer after which an extension is not waited for.
const HUNG_AFTER: usize = 2;
/// Requests whose late answers would show that an extension is back.
const LATE_MAX: usize = 1000;

pub type Answer = Result<Value, Failure>;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failed {
    Cancelled,
    Late(Duration),
    /// The extension did not answer the last requests, so that this one is not waited for.
    Hung {
        /// It is the last of those requests that was waited for.
        is_news: bool,
    },
    /// The program has ended; how.
    Over(String),
    /// The program answered with an error.
    Refused(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("aborted"),
            Self::Late(limit) => write!(f, "no answer within {limit:?}"),
            Self::Hung { is_news: false } => f.write_str("does not answer"),
            Self::Hung { is_news: true } => write!(
                f,
                "did not answer {HUNG_AFTER} times in a row: it is not waited for any more until it answers \
                 something. /reload starts it anew"
            ),
            Self::Over(how) => f.write_str(how),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

/// A request that is not answered yet.
pub struct Open {
    pub id: u64,
    pub answer: Receiver<Answer>,
}

/// How many requests in a row an extension has not answered in time.
#[derive(Default)]
pub struct Pulse(AtomicUsize);

impl Pulse {
    pub fn is_hung(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= HUNG_AFTER
    }

    /// The extension has answered.
    pub fn beat(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The extension has not answered within `limit`.
    pub fn miss(&self, limit: Duration) -> Failed {
        match self.0.fetch_add(1, Ordering::Relaxed) + 1 {
            HUNG_AFTER => Failed::Hung { is_news: true },
            _ => Failed::Late(limit),
        }
    }
}

#[derive(Default)]
pub struct Requests {
    last: u64,
    open: HashMap<u64, Sender<Answer>>,
    /// Requests that nobody waits for. An answer shows that the extension is back.
    late: BTreeMap<u64, Arc<Pulse>>,
}

impl Requests {
    /// The id and the answer of a request that is about to be sent.
    pub fn open(&mut self) -> Open {
        let (asker, answer) = bounded(1);
        self.last += 1;
        self.open.insert(self.last, asker);
        Open { id: self.last, answer }
    }

    /// Nobody waits for the answer.
    pub fn close(&mut self, id: u64) {
        self.open.remove(&id);
    }

    /// Nobody waits for the answer, which shows that the extension is back.
    pub fn expect_late(&mut self, id: u64, pulse: &Arc<Pulse>) {
        self.close(id);
        self.late.insert(id, pulse.clone());
        if self.late.len() > LATE_MAX {
            self.late.pop_first();
        }
    }

    /// Takes an answer. False if there was no such request.
    pub fn answer(&mut self, id: &Value, outcome: Answer) -> bool {
        let Some(id) = id.as_u64().filter(|id| (1..=self.last).contains(id)) else { return false };
        if let Some(asker) = self.open.remove(&id) {
            // There is room for the one answer.
            let _ = asker.try_send(outcome);
        }
        self.late.remove(&id).iter().for_each(|pulse| pulse.beat());
        true
    }

    /// Answers all requests that somebody waits for.
    pub fn answer_all(&mut self, outcome: &Answer) {
        self.open.drain().for_each(|(_, asker)| drop(asker.try_send(outcome.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn any_late_answer_shows_that_an_extension_is_back() {
        let (mut requests, pulse) = (Requests::default(), Arc::new(Pulse::default()));
        let limit = Duration::from_secs(30);
        let ids: Vec<u64> = (0..3).map(|_| requests.open().id).collect();
        for (&id, failed) in ids.iter().zip([Failed::Late(limit), Failed::Hung { is_news: true }]) {
            assert!(!pulse.is_hung());
            requests.expect_late(id, &pulse);
            assert_eq!(pulse.miss(limit), failed);
        }
        assert!(pulse.is_hung());
        for id in [json!(3), json!(7), json!("1"), json!(0)] {
            assert_eq!(requests.answer(&id, Ok(Value::Null)), id == 3, "{id}");
            assert!(pulse.is_hung());
        }
        assert!(requests.answer(&json!(1), Ok(Value::Null)));
        assert!(!pulse.is_hung());
    }
}
