//! Knows what commands change in the working folder, so that it can be undone.
//!
//! The folder's files are known by content before the first command; later only files whose stat differs are
//! read again. A scan before a command takes up what others have changed, a scan after it finds what the command
//! has changed. Git is neither needed nor touched.
//!
//! The first scan runs on a thread of its own, which ends with it. A command that begins meanwhile waits a few
//! seconds for it, and is then not covered. Nothing runs between commands.

mod index;
mod item;
mod pack;
mod scan;

pub use item::{Changed, Thing};

use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::base::hex::hex;
use crate::base::thread::Thread;
use crossbeam_channel::{Receiver, bounded, select};
use ring::digest::{SHA256, digest};
use scan::{Limits, Tree};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that a command waits for the first scan.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which folders are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Folders that cost little.
    Small,
    /// Any folder whose contents take at most this many bytes.
    All(u64),
}

/// A watched folder.
pub struct Watch {
    root: PathBuf,
    /// Folder of the kept contents.
    store: PathBuf,
    home: Option<PathBuf>,
    limits: Limits,
    state: Mutex<State>,
    /// Tells the first scan to stop.
    is_dropped: Arc<AtomicBool>,
}

enum State {
    Idle,
    Scanning(Receiver<()>),
    Ready(Box<Ready>),
    /// The folder is not watched, for this reason.
    Off(String),
}

struct Ready {
    tree: Tree,
    /// Commands that run now.
    running: usize,
    /// When the first of them began, in nanoseconds since 1970.
    begun_ns: i64,
    _user: File,
}

impl Watch {
    /// A watch of `root`, with its contents below the agent folder. Reads nothing before the first call.
    pub fn new(root: &Path, agent: &Path, home: Option<&Path>, extent: Extent) -> Arc<Self> {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let agent = agent.canonicalize().unwrap_or_else(|_| agent.to_owned());
        let mut name = root.file_name().unwrap_or_default().to_os_string();
        let hash = hex(digest(&SHA256, root.as_os_str().as_bytes()).as_ref());
        name.push(format!("-{}", hash.get(..12).unwrap_or_default()));
        let state = match agent.starts_with(&root) {
            true => State::Off(format!("{} holds the agent folder, too", root.display())),
            false => State::Idle,
        };
        Arc::new(Self {
            store: agent.join("checkpoints").join(name),
            home: home.map(Path::to_owned),
            limits: Limits::of(extent),
            state: Mutex::new(state),
            is_dropped: Arc::default(),
            root,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the first scan unless it was started.
    pub fn prepare(self: &Arc<Self>) {
        let mut state = self.state();
        if !matches!(*state, State::Idle) {
            return;
        }
        let (done, scanned) = bounded::<()>(0);
        let watch = Arc::downgrade(self);
        let (root, store, home) = (self.root.clone(), self.store.clone(), self.home.clone());
        let (limits, is_dropped) = (self.limits, self.is_dropped.clone());
        let work = move || {
            let first = first_scan(&root, &store, home.as_deref(), limits, &is_dropped);
            if let Some(watch) = watch.upgrade() {
                *watch.state() = first.map_or_else(State::Off, |ready| State::Ready(Box::new(ready)));
            }
            drop(done);
        };
        *state = match Thread::named("watch").start(work) {
            Ok(_) => State::Scanning(scanned),
            Err(error) => State::Off(format!("no thread could be started: {error}")),
        };
    }

    /// Called before a command. An error says why what it changes will not be known.
    pub fn begin(self: &Arc<Self>, cancel: &CancelToken) -> Result<(), String> {
        self.prepare();
        let scanning = match &*self.state() {
            State::Scanning(scanned) => Some(scanned.clone()),
            _ => None,
        };
        if let Some(scanned) = scanning {
            select! {
                recv(scanned) -> _ => {}
                recv(cancel.receiver()) -> _ => {}
                default(PATIENCE) => {}
            }
        }
        let mut state = self.state();
        match &mut *state {
            State::Off(why) => Err(why.clone()),
            State::Ready(ready) => {
                if ready.running == 0 {
                    ready.begun_ns = item::now_ns();
                    if let Err(why) = ready.tree.refresh(None) {
                        *state = State::Off(why.clone());
                        return Err(why);
                    }
                }
                ready.running += 1;
                Ok(())
            }
            State::Idle | State::Scanning(_) => Err("the folder was still being read".into()),
        }
    }

    /// Called after a command. Passes what has changed since the last scan to `keep`, with a function that
    /// gives the earlier content of a file. An error says why that is not known.
    pub fn end<T>(
        &self,
        keep: impl FnOnce(Vec<Changed>, &dyn Fn(&[u8; 32]) -> io::Result<Vec<u8>>) -> T,
    ) -> Result<T, String> {
        let mut state = self.state();
        match &mut *state {
            State::Ready(ready) => {
                ready.running = ready.running.saturating_sub(1);
                match ready.tree.refresh(Some(ready.begun_ns)) {
                    Ok(changed) => Ok(keep(changed, &|hash| ready.tree.content(hash))),
                    Err(why) => {
                        *state = State::Off(why.clone());
                        Err(why)
                    }
                }
            }
            State::Off(why) => Err(why.clone()),
            State::Idle | State::Scanning(_) => Err("the folder was still being read".into()),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Reads the folder for the first time in this process.
fn first_scan(
    root: &Path,
    store: &Path,
    home: Option<&Path>,
    limits: Limits,
    is_dropped: &Arc<AtomicBool>,
) -> Result<Ready, String> {
    let say = |error: io::Error| format!("{} cannot be used: {error}", store.display());
    file::make_private_folder(store).map_err(say)?;
    let user = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(store.join("lock"))
        .map_err(say)?;
    if user.try_lock().is_ok() {
        pack::clean(store);
        user.unlock().map_err(say)?;
    }
    // Some file systems have no locks; nothing is cleaned there.
    let _ = user.lock_shared();
    let mut tree = Tree::open(root, store, home, limits, is_dropped.clone()).map_err(say)?;
    tree.refresh(None)?;
    tree.save();
    Ok(Ready { tree, running: 0, begun_ns: 0, _user: user })
}

#[cfg(test)]
mod tests;
