//! A token that cancels all work on one task.
//!
//! Waiting code selects on [`CancelToken::receiver`]; code that cannot select (a blocking socket read, a
//! child process) registers a callback with [`CancelToken::on_cancel`] that interrupts the wait. Both happen
//! before `cancel` returns, so an abort needs no polling.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Cheap to clone; all clones are the same token.
#[derive(Clone)]
pub struct CancelToken(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    receiver: Receiver<()>,
}

struct State {
    /// Dropped on cancel: every receiver wakes with "disconnected".
    sender: Option<Sender<()>>,
    next_id: u64,
    hooks: BTreeMap<u64, Box<dyn FnOnce() + Send>>,
}

impl CancelToken {
    pub fn new() -> Self {
        let (sender, receiver) = bounded(0);
        let state = State { sender: Some(sender), next_id: 0, hooks: BTreeMap::new() };
        Self(Arc::new(Inner { state: Mutex::new(state), receiver }))
    }

    /// A token that is cancelled together with its parent, and can be cancelled alone.
    pub fn child(&self) -> Self {
        let child = Self::new();
        let weak: Weak<Inner> = Arc::downgrade(&child.0);
        // The hook stays registered until the parent ends; it holds only a weak reference.
        let guard = self.on_cancel(move || {
            if let Some(inner) = weak.upgrade() {
                CancelToken(inner).cancel();
            }
        });
        child.on_cancel(move || drop(guard)).forget();
        child
    }

    /// True if both are handles of one token.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Cancels: runs every registered callback once, then wakes all receivers. Later calls do nothing.
    pub fn cancel(&self) {
        let (sender, hooks) = {
            let mut state = self.0.lock();
            (state.sender.take(), std::mem::take(&mut state.hooks))
        };
        for hook in hooks.into_values() {
            hook();
        }
        drop(sender);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.lock().sender.is_none()
    }

    /// Never yields a value; disconnects when the token is cancelled. For `select!`.
    pub fn receiver(&self) -> &Receiver<()> {
        &self.0.receiver
    }

    /// Waits for cancellation or `timeout`. True if cancelled.
    pub fn wait_timeout(&self, timeout: std::time::Duration) -> bool {
        use crossbeam_channel::RecvTimeoutError::Disconnected;
        matches!(self.0.receiver.recv_timeout(timeout), Err(Disconnected))
    }

    /// Runs `hook` on the cancelling thread when the token is cancelled, or immediately if it already is.
    /// Dropping the guard removes the hook.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) -> CancelGuard {
        let mut state = self.0.lock();
        if state.sender.is_none() {
            drop(state);
            hook();
            return CancelGuard(None);
        }
        let id = state.next_id;
        state.next_id += 1;
        state.hooks.insert(id, Box::new(hook));
        CancelGuard(Some((Arc::downgrade(&self.0), id)))
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a callback when dropped.
#[must_use = "dropping the guard takes the callback back"]
pub struct CancelGuard(Option<(Weak<Inner>, u64)>);

impl CancelGuard {
    /// Keeps the callback registered for the token's whole life.
    pub fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some((inner, id)) = self.0.take()
            && let Some(inner) = inner.upgrade()
        {
            let hook = inner.lock().hooks.remove(&id);
            drop(hook);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_cancel_reaches_children_but_not_parents() {
        let parent = CancelToken::new();
        let (one, two) = (parent.child(), parent.child());
        one.cancel();
        assert!(!parent.is_cancelled() && !two.is_cancelled());
        parent.cancel();
        assert!(two.is_cancelled());
        assert!(two.receiver().recv().is_err());
    }

    #[test]
    fn a_hook_runs_once_and_not_after_its_guard_is_dropped() {
        let count = Arc::new(AtomicUsize::new(0));
        let token = CancelToken::new();
        let bump = |n: &Arc<AtomicUsize>| {
            let n = n.clone();
            move || {
                n.fetch_add(1, Ordering::SeqCst);
            }
        };
        let kept = token.on_cancel(bump(&count));
        drop(token.on_cancel(bump(&count)));
        token.cancel();
        token.cancel();
        drop(kept);
        let _late = token.on_cancel(bump(&count));
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_dropped_child_leaves_no_hook_behind() {
        let parent = CancelToken::new();
        for _ in 0..10 {
            drop(parent.child());
        }
        assert_eq!(parent.0.lock().hooks.len(), 0);
    }
}
