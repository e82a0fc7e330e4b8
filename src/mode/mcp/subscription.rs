//! Resources whose changes a client is told.

use super::peer::Peer;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::base::watch::Watch;
use crate::runtime::CancelToken;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Resources of a client whose changes are told.
const COUNT_MAX: usize = 256;
/// Pause between news: an answer changes a session many times.
const PAUSE: Duration = Duration::from_millis(250);

/// The resources by their numbers in a [`Watch`].
type Uris = Arc<Mutex<HashMap<i32, String>>>;

#[derive(Default)]
pub struct Subscriptions(Mutex<State>);

#[derive(Default)]
struct State {
    /// The resources that the client asked for, also those whose file is not found yet.
    wanted: BTreeSet<String>,
    /// None until the first subscription, which starts a thread.
    watching: Option<Watching>,
}

struct Watching {
    watch: Arc<Watch>,
    uris: Uris,
    thread: JoinHandle<()>,
}

impl Subscriptions {
    /// Notes that the client wants to be told of `uri`, in the order of its requests. [`Subscriptions::add`] follows
    /// once the file is found.
    pub fn want(&self, uri: &str) -> Result<(), String> {
        let wanted = &mut lock(&self.0).wanted;
        if wanted.len() >= COUNT_MAX && !wanted.contains(uri) {
            return Err(format!("More than {COUNT_MAX} subscriptions"));
        }
        wanted.insert(uri.to_owned());
        Ok(())
    }

    /// Tells `peer` the changes of the resource `uri`, whose content is that of a file, until `cancel` is cancelled.
    /// Does nothing for one that is not wanted any more.
    pub fn add(&self, uri: &str, path: &Path, peer: &Peer, cancel: &CancelToken) -> Result<(), String> {
        let mut state = lock(&self.0);
        if !state.wanted.contains(uri) {
            return Ok(());
        }
        let failed = |error: io::Error| format!("Cannot watch {}: {error}", path.display());
        let watching = match &mut state.watching {
            Some(watching) => watching,
            none => none.insert(start(peer, cancel).map_err(failed)?),
        };
        let mut uris = lock(&watching.uris);
        uris.insert(watching.watch.add(path).map_err(failed)?, uri.to_owned());
        Ok(())
    }

    pub fn remove(&self, uri: &str) {
        let mut state = lock(&self.0);
        state.wanted.remove(uri);
        if let Some(watching) = &state.watching {
            lock(&watching.uris).retain(|number, known| {
                let stays = known != uri;
                if !stays {
                    watching.watch.remove(*number);
                }
                stays
            });
        }
    }

    /// Waits for the end of the thread, whose token must be cancelled.
    pub fn finish(&self) {
        let watching = lock(&self.0).watching.take();
        if let Some(watching) = watching {
            let _ = watching.thread.join();
        }
    }
}

fn start(peer: &Peer, cancel: &CancelToken) -> io::Result<Watching> {
    let watch = Arc::new(Watch::new()?);
    let uris = Uris::default();
    let (end, sender) = io::pipe()?;
    // A pipe without a sender wakes whoever waits for it.
    let guard = cancel.on_cancel(move || drop(sender));
    let work = {
        let (watch, uris, peer, cancel) = (watch.clone(), uris.clone(), peer.clone(), cancel.clone());
        move || {
            let _guard = guard;
            while let Ok(Some(numbers)) = watch.wait(end.as_raw_fd()) {
                tell(&peer, &uris, &numbers);
                if cancel.wait_timeout(PAUSE) {
                    return;
                }
            }
        }
    };
    Ok(Watching { thread: Thread::named("subscriptions").stack(256 << 10).start(work)?, watch, uris })
}

fn tell(peer: &Peer, uris: &Uris, numbers: &BTreeSet<i32>) {
    // Held while it is told: what a client unsubscribes from is not told afterwards.
    let uris = lock(uris);
    for uri in numbers.iter().filter_map(|number| uris.get(number)) {
        peer.notify("notifications/resources/updated", &json!({"uri": uri}));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
