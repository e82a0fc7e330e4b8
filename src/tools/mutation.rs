//! Serialises changes of a file.
//!
//! `write` and `edit` hold the lock of a file from before they read it until their last write has ended, so
//! that two calls of one batch both land. The key is the real path: two names of one file exclude each other,
//! different files do not. Waiting calls get the lock in order of request, and an abort ends the wait, never
//! the work of the holder.

use crate::agent::CancelToken;
use crossbeam_channel::{Sender, bounded, select};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The files being changed, each with its waiting calls.
type Queues = HashMap<PathBuf, VecDeque<Sender<()>>>;

/// For the whole process, since several sessions may work in one folder.
static QUEUES: LazyLock<Mutex<Queues>> = LazyLock::new(Mutex::default);

/// The lock on one file, released on drop.
#[must_use]
pub struct FileLock(PathBuf);

/// Waits for the lock on the file at `path`, which has no links. `None` if cancelled.
pub fn lock(path: &Path, cancel: &CancelToken) -> Option<FileLock> {
    if cancel.is_cancelled() {
        return None;
    }
    let turn = {
        let mut queues = queues();
        let Some(queue) = queues.get_mut(path) else {
            queues.insert(path.to_owned(), VecDeque::new());
            return Some(FileLock(path.to_owned()));
        };
        let (give, turn) = bounded(1);
        queue.push_back(give);
        turn
    };
    select! {
        recv(turn) -> _ => Some(FileLock(path.to_owned())),
        recv(cancel.receiver()) -> _ => {
            let queues = queues();
            let given = turn.try_recv().is_ok();
            drop(turn);
            drop(queues);
            if given {
                // The turn came at the same moment: it is passed on.
                drop(FileLock(path.to_owned()));
            }
            None
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut queues = queues();
        let next = queues.get_mut(&self.0).and_then(|queue| {
            // Those who stopped waiting have dropped their end.
            std::iter::from_fn(|| queue.pop_front()).find(|waiting| waiting.send(()).is_ok())
        });
        if next.is_none() {
            queues.remove(&self.0);
        }
    }
}

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(path: &Path) -> Option<usize> {
        queues().get(path).map(VecDeque::len)
    }

    /// Waits until `count` threads are queued.
    fn until_waiting(path: &Path, count: usize) {
        while waiting(path) != Some(count) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn turns_come_in_the_order_of_asking() {
        let path = Path::new("/test/in-order");
        let order = Mutex::new(Vec::new());
        let first = lock(path, &CancelToken::new());
        std::thread::scope(|scope| {
            for number in 0..5 {
                let order = &order;
                scope.spawn(move || {
                    let _lock = lock(path, &CancelToken::new()).unwrap();
                    order.lock().unwrap().push(number);
                });
                until_waiting(path, number + 1);
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(waiting(path), None);
    }

    #[test]
    fn other_files_do_not_wait() {
        let cancel = CancelToken::new();
        let _one = lock(Path::new("/test/one"), &cancel);
        assert!(lock(Path::new("/test/two"), &cancel).is_some());
    }

    #[test]
    fn an_abort_ends_the_waiting_and_leaves_the_queue_whole() {
        let path = Path::new("/test/aborted");
        let cancel = CancelToken::new();
        let first = lock(path, &cancel);
        std::thread::scope(|scope| {
            let gone = scope.spawn(|| lock(path, &cancel).is_none());
            until_waiting(path, 1);
            let next = scope.spawn(|| lock(path, &CancelToken::new()).is_some());
            until_waiting(path, 2);
            cancel.cancel();
            assert!(gone.join().unwrap());
            drop(first);
            assert!(next.join().unwrap());
        });
        assert_eq!(waiting(path), None);
        assert!(lock(path, &cancel).is_none(), "cancelled before asking");
        assert_eq!(waiting(path), None);
    }

    #[test]
    fn a_turn_that_nobody_takes_is_passed_on() {
        // The cancel and the turn race; whoever wins, the file is free in the end.
        for round in 0..200 {
            let path = PathBuf::from(format!("/test/race-{round}"));
            let cancel = CancelToken::new();
            let first = lock(&path, &cancel);
            std::thread::scope(|scope| {
                scope.spawn(|| drop(lock(&path, &cancel)));
                until_waiting(&path, 1);
                scope.spawn(|| cancel.cancel());
                drop(first);
            });
            assert_eq!(waiting(&path), None);
        }
    }
}
