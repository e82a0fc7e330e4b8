//! Requests to the peer that wait for a response, by number.

use crate::runtime::CancelToken;
use crossbeam_channel::{Sender, after, bounded, never, select};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub struct Pending<A> {
    open: Mutex<HashMap<u64, Sender<A>>>,
    last: AtomicU64,
}

impl<A> Pending<A> {
    pub fn new() -> Self {
        Self { open: Mutex::default(), last: AtomicU64::new(0) }
    }

    /// A unique number, for a request whose response nobody waits for.
    pub fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a request with a unique number and waits at most `limit` for the response. `None` if cancelled
    /// or timed out.
    pub fn ask(&self, cancel: &CancelToken, limit: Option<Duration>, send: impl FnOnce(u64)) -> Option<A> {
        let late = limit.map_or_else(never, after);
        let number = self.number();
        let (sender, answer) = bounded(1);
        self.open().insert(number, sender);
        send(number);
        let answer = select! {
            recv(answer) -> answer => answer.ok(),
            recv(cancel.receiver()) -> _ => None,
            recv(late) -> _ => None,
        };
        self.open().remove(&number);
        answer
    }

    /// Passes a response to the request that waits for it. A response without a request is dropped.
    pub fn answer(&self, number: u64, answer: A) {
        if let Some(asker) = self.open().remove(&number) {
            // There is room for the one answer; an asker that has gone needs none.
            let _ = asker.try_send(answer);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Sender<A>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_request_once() {
        let pending = Pending::new();
        let cancel = CancelToken::new();
        let mut numbers = Vec::new();
        for answer in ["one", "two"] {
            let got = pending.ask(&cancel, None, |number| {
                numbers.push(number);
                pending.answer(number + 1, "another's");
                pending.answer(number, answer);
                pending.answer(number, "again");
            });
            assert_eq!(got, Some(answer));
        }
        assert_eq!(numbers, [1, 2]);
    }

    #[test]
    fn a_wait_ends_with_its_token_and_its_limit() {
        let pending = Pending::<()>::new();
        let cancel = CancelToken::new();
        assert_eq!(pending.ask(&cancel, Some(Duration::ZERO), |_| {}), None);
        cancel.cancel();
        assert_eq!(pending.ask(&cancel, None, |_| {}), None);
        assert!(pending.open().is_empty());
    }
}
