//! Places for helpers: how many of them ask models at the same time.

use crate::base::cancel::CancelToken;
use crate::runtime::Model;
use crate::runtime::service::Services;
use crate::runtime::settings::{Origin, Settings};
use crossbeam_channel::{Receiver, Sender, bounded, select};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The places of a session, and those of servers on this machine that answer fewer requests at once.
pub struct Places {
    session: Arc<Slots>,
    /// Number of places of the session; `None` if the user chose it, which then holds for every server.
    preset: Option<usize>,
    /// By base URL.
    servers: Mutex<HashMap<String, Arc<Slots>>>,
}

impl Places {
    pub fn new(settings: &Settings) -> Self {
        let count = settings.count("helpers.concurrency").clamp(1, 64);
        let count = usize::try_from(count).unwrap_or(1);
        let is_preset = settings.origin("helpers.concurrency") == Origin::Default;
        Self {
            session: Arc::new(Slots::new(count)),
            preset: is_preset.then_some(count),
            servers: Mutex::default(),
        }
    }

    /// Returns the places of which a helper with `model` takes one. Asks the server once that is known to answer.
    pub fn of(&self, model: &Arc<Model>, services: &Services, cancel: &CancelToken) -> Arc<Slots> {
        let Some(preset) = self.preset.filter(|_| services.is_on_this_machine(model)) else {
            return self.session.clone();
        };
        let servers = || self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = servers().get(&model.base_url) {
            return slots.clone();
        }
        let Some(count) = services.slots(model, cancel) else {
            return self.session.clone();
        };
        let slots = if count < preset { Arc::new(Slots::new(count)) } else { self.session.clone() };
        servers().entry(model.base_url.clone()).or_insert(slots).clone()
    }
}

/// Places for helpers that work at once.
pub struct Slots {
    free: Receiver<()>,
    back: Sender<()>,
}

impl Slots {
    pub fn new(count: usize) -> Self {
        let (back, free) = bounded(count);
        // There is room for all of them.
        for _ in 0..count {
            let _ = back.try_send(());
        }
        Self { free, back }
    }

    /// Waits for a place. `None` if cancelled.
    pub fn take(&self, cancel: &CancelToken) -> Option<Slot<'_>> {
        self.wait(cancel).then(|| Slot { slots: self, lent: Mutex::new(0) })
    }

    fn wait(&self, cancel: &CancelToken) -> bool {
        !cancel.is_cancelled()
            && select! {
                recv(self.free) -> free => free.is_ok(),
                recv(cancel.receiver()) -> _ => false,
            }
    }
}

/// The place of a helper, given back when it ends.
pub struct Slot<'a> {
    slots: &'a Slots,
    /// Calls during which the place is lent to the helper's own helpers.
    lent: Mutex<usize>,
}

impl Slot<'_> {
    /// Lends the place while `work` runs, for the helpers that it waits for.
    pub fn lend<T>(&self, cancel: &CancelToken, work: impl FnOnce() -> T) -> T {
        let lent = || self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut lent = lent();
            if *lent == 0 {
                let _ = self.slots.back.try_send(());
            }
            *lent += 1;
        }
        let result = work();
        let mut lent = lent();
        // Without the place nothing is to be given back later.
        if *lent > 1 || self.slots.wait(cancel) {
            *lent -= 1;
        }
        result
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if *self.lent.lock().unwrap_or_else(PoisonError::into_inner) == 0 {
            let _ = self.slots.back.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_lent_once_and_given_back_once() {
        let (slots, cancel) = (Slots::new(1), CancelToken::new());
        let slot = slots.take(&cancel).unwrap();
        assert_eq!(slots.free.len(), 0);
        slot.lend(&cancel, || {
            assert_eq!(slots.free.len(), 1);
            slot.lend(&cancel, || drop(slots.take(&cancel)));
            assert_eq!(slots.free.len(), 1);
        });
        assert_eq!(slots.free.len(), 0);
        drop(slot);
        assert_eq!(slots.free.len(), 1);
        let slot = slots.take(&cancel).unwrap();
        // While the place is lent, somebody takes it for good, and the work is cancelled.
        slot.lend(&cancel, || {
            slots.free.recv().unwrap();
            cancel.cancel();
        });
        drop(slot);
        assert_eq!(slots.free.len(), 0);
        assert!(slots.take(&cancel).is_none());
    }
}
