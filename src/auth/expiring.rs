//! A cached value that is fetched when first needed, and again shortly before it expires.
//!
//! Callers wait while another caller fetches, and each wait can be cancelled. If fetching fails, the cached
//! value is used until it expires, so that a short outage of the service goes unnoticed.

use crate::base::cancel::CancelToken;
use crate::llm::event::StreamError;
use crate::llm::message::now_ms;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value that expires within this time is fetched again.
const EARLY_MS: u64 = 5 * 60 * 1000;
/// A value that expires within this time is not used, even if fetching fails: it may expire before the server
/// reads it.
const LAST_MS: u64 = 10 * 1000;

pub struct Expiring<T> {
    kept: Mutex<Option<Kept<T>>>,
    /// A channel with one token; the caller that holds the token fetches.
    turn: (Sender<()>, Receiver<()>),
}

struct Kept<T> {
    /// Identifies what the value was fetched for.
    key: String,
    value: T,
    expires_ms: Option<u64>,
}

/// Returns the token when dropped.
struct Turn<'a>(&'a Sender<()>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_send(()); // there is room for it: it was taken out
    }
}

impl<T: Clone> Expiring<T> {
    pub fn new() -> Self {
        let turn = bounded(1);
        let _ = turn.0.try_send(());
        Self { kept: Mutex::new(None), turn }
    }

    /// The value for `key`. `fetch` returns the value and its expiry in Unix milliseconds; `None` means
    /// never. Only the value for the last key is cached.
    pub fn get(
        &self,
        key: &str,
        cancel: &CancelToken,
        fetch: impl FnOnce() -> Result<(T, Option<u64>), StreamError>,
    ) -> Result<T, StreamError> {
        if let Some(value) = self.good_for(key, EARLY_MS) {
            return Ok(value);
        }
        let _turn = select! {
            recv(self.turn.1) -> _ => Turn(&self.turn.0),
            recv(cancel.receiver()) -> _ => return Err(StreamError::aborted()),
        };
        if let Some(value) = self.good_for(key, EARLY_MS) {
            return Ok(value);
        }
        let fetched = fetch();
        if cancel.is_cancelled() {
            return Err(StreamError::aborted());
        }
        match fetched {
            Ok((value, expires_ms)) => {
                *self.lock() = Some(Kept { key: key.to_owned(), value: value.clone(), expires_ms });
                Ok(value)
            }
            Err(error) => self.good_for(key, LAST_MS).ok_or(error),
        }
    }

    fn good_for(&self, key: &str, ms: u64) -> Option<T> {
        let kept = self.lock();
        let kept = kept.as_ref().filter(|kept| kept.key == key)?;
        let good = kept.expires_ms.is_none_or(|expires| expires > now_ms().saturating_add(ms));
        good.then(|| kept.value.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept<T>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Default for Expiring<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::event::ErrorKind;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn failed() -> StreamError {
        StreamError::new(ErrorKind::Transport, "away")
    }

    #[test]
    fn what_is_kept_is_used_until_shortly_before_it_expires() {
        let rows = [
            // good for (ms), fetched twice
            (Some(EARLY_MS + 60_000), false),
            (Some(EARLY_MS - 1000), true),
            (Some(0), true),
            (None, false),
        ];
        let cancel = CancelToken::new();
        for (life, again) in rows {
            let expiring = Expiring::new();
            let fetches = AtomicUsize::new(0);
            let fetch = || Ok((fetches.fetch_add(1, SeqCst), life.map(|ms| now_ms() + ms)));
            assert_eq!(expiring.get("k", &cancel, fetch), Ok(0));
            assert_eq!(expiring.get("k", &cancel, fetch), Ok(usize::from(again)), "{life:?}");
            let count = fetches.load(SeqCst);
            assert_eq!(expiring.get("other", &cancel, fetch), Ok(count), "{life:?}");
        }
    }

    #[test]
    fn a_failed_fetch_leaves_what_is_still_good() {
        let cancel = CancelToken::new();
        let expiring = Expiring::new();
        let soon = Some(now_ms() + EARLY_MS / 2);
        assert_eq!(expiring.get("k", &cancel, || Ok((1, soon))), Ok(1));
        assert_eq!(expiring.get("k", &cancel, || Err(failed())), Ok(1));
        assert_eq!(expiring.get("other", &cancel, || Err(failed())), Err(failed()));
        assert_eq!(expiring.get("k", &cancel, || Ok((2, Some(0)))), Ok(2));
        assert_eq!(expiring.get("k", &cancel, || Err(failed())), Err(failed()));
    }

    #[test]
    fn many_at_once_fetch_once_and_one_that_waits_can_be_cancelled() {
        let (expiring, fetches) = (Expiring::new(), AtomicUsize::new(0));
        let (held, gate) = bounded::<()>(0);
        let fetch = || {
            fetches.fetch_add(1, SeqCst);
            let _ = gate.recv();
            Ok((7, None))
        };
        std::thread::scope(|scope| {
            let ask = || expiring.get("k", &CancelToken::new(), fetch);
            let all = (0..8).map(|_| scope.spawn(ask));
            let all: Vec<_> = all.collect();
            while fetches.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let cancelled = CancelToken::new();
            cancelled.cancel();
            let got = expiring.get("k", &cancelled, || Ok((8, None)));
            assert_eq!(got, Err(StreamError::aborted()));
            drop(held);
            for one in all {
                assert_eq!(one.join().unwrap(), Ok(7));
            }
        });
        assert_eq!(fetches.load(SeqCst), 1);
    }
}
