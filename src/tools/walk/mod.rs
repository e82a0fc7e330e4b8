//! Walks a tree with several threads, and returns results in path order.
//!
//! The tree is split into tasks: a folder to list, or a batch of files to search. Links are never followed,
//! ignored folders are not entered, and `.git` is entered only by a walk that starts in it. Kernel file
//! systems are entered only by a walk that starts in one: reading a file of theirs may wait for ever.
//!
//! Path order is that of names, folder by folder: `a/b` comes before `a.b`.

mod run;
mod schedule;
#[cfg(test)]
mod tests;

use super::backend::{Backend, Kind};
use super::ignore::Scope;
use super::listing::Listing;
use crate::agent::CancelToken;
use crate::base::thread::Thread;
use crate::tools::workspace::Workspace;
use run::{Outcome, Run, Task, Work};
use schedule::{Schedule, Sink};
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time limit of a search, which then returns partial results.
pub const SEARCH_TIME: Duration = Duration::from_secs(60);

const MAX_THREADS: usize = 8;

pub struct Walk<'a> {
    backend: &'a dyn Backend,
    /// Absolute path, free of links.
    root: PathBuf,
    /// `None` for a walk in a `.git`, where nothing is ignored.
    scope: Option<Scope>,
    cancel: &'a CancelToken,
    deadline: Instant,
    /// The count of results at which the walk ends.
    limit: usize,
}

/// A search of the entries below a folder.
pub trait Search: Sync {
    /// The state of one thread.
    type Worker;
    type Found: Send;
    /// Entries that a thread searches in one task.
    const BATCH: usize;

    fn worker(&self) -> Self::Worker;
    /// True if a folder that is not ignored should be entered.
    fn enters(&self, worker: &mut Self::Worker, folder: &Entry<'_>) -> bool;
    /// True if an entry with this path and kind should be searched.
    fn wants(&self, worker: &mut Self::Worker, entry: &Entry<'_>) -> bool;
    /// Searches an entry. May return after `limit` results, and when `stop` is set.
    fn look(
        &self,
        worker: &mut Self::Worker,
        entry: &Entry<'_>,
        limit: usize,
        stop: &Stop,
    ) -> io::Result<Option<Self::Found>>;
    /// Number of results that count towards the limit.
    fn count(found: &Self::Found) -> usize;
    /// Memory of a result, in bytes.
    fn bytes(found: &Self::Found) -> usize;
}

/// A file, folder or link below the root.
pub struct Entry<'a> {
    full: &'a [u8],
    relative_at: usize,
    name_at: usize,
    pub kind: Kind,
}

impl Entry<'_> {
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.full))
    }

    /// Path relative to the root of the walk.
    pub fn relative(&self) -> &[u8] {
        self.full.get(self.relative_at..).unwrap_or_default()
    }

    pub fn name(&self) -> &[u8] {
        self.full.get(self.name_at..).unwrap_or_default()
    }
}

/// The outcome of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of files and folders that could not be read.
    pub unreadable: usize,
    pub timed_out: bool,
}

impl Summary {
    /// Adds a notice to a result about what was not searched.
    pub fn note(&self, listing: &mut Listing, time: Duration) {
        if self.unreadable > 0 {
            let paths = if self.unreadable == 1 { "path" } else { "paths" };
            let count = self.unreadable;
            listing.notice(format!("{count} unreadable {paths} skipped"));
            listing.detail("unreadable", count);
        }
        if self.timed_out {
            let seconds = time.as_secs();
            listing.notice(format!(
                "Stopped after {seconds} s, later paths were not searched. Use a narrower path or pattern"
            ));
            listing.detail("timedOut", true);
        }
    }
}

/// Tells long work to stop.
pub struct Stop {
    stopped: Arc<AtomicBool>,
    late: AtomicBool,
    deadline: Instant,
}

impl Stop {
    /// Runs work that stops on cancellation and at a deadline.
    pub fn during<R>(cancel: &CancelToken, deadline: Instant, work: impl FnOnce(&Self) -> R) -> R {
        let stop = Self { stopped: Arc::new(AtomicBool::new(false)), late: AtomicBool::new(false), deadline };
        let stopped = stop.stopped.clone();
        let _guard = cancel.on_cancel(move || stopped.store(true, Relaxed));
        work(&stop)
    }

    pub fn reached(&self) -> bool {
        if self.stopped.load(Relaxed) {
            return true;
        }
        let late = Instant::now() >= self.deadline;
        if late {
            self.late.store(true, Relaxed);
            self.stop();
        }
        late
    }

    /// The summary of work without a walk.
    pub fn summary(&self) -> Summary {
        Summary { timed_out: self.late.load(Relaxed), ..Summary::default() }
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}

impl<'a> Walk<'a> {
    /// A walk below a folder, with its ignore rules. At the deadline it ends with partial results.
    pub fn new(
        workspace: &'a Workspace,
        folder: &Path,
        cancel: &'a CancelToken,
        limit: usize,
        time: Duration,
    ) -> Self {
        let backend = workspace.backend.as_ref();
        let real = |path: &Path| backend.canonical(path).unwrap_or_else(|_| path.to_owned());
        let root = real(folder);
        let in_git = root.components().any(|part| part.as_os_str() == ".git");
        let scope = (!in_git).then(|| {
            let xdg_config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            Scope::load(
                backend,
                &root,
                &real(&workspace.cwd),
                workspace.home.as_deref(),
                xdg_config.as_deref(),
            )
        });
        Self { backend, root, scope, cancel, deadline: Instant::now() + time, limit }
    }

    /// Calls `commit` with results in path order. An error is that of listing the root.
    pub fn run<S: Search>(
        &self,
        search: &S,
        commit: &mut (dyn FnMut(S::Found) + Send),
    ) -> io::Result<Summary> {
        Stop::during(self.cancel, self.deadline, |stop| {
            let committed = AtomicUsize::new(0);
            let mut summary = Summary::default();
            let mut failed = None;
            let mut put = |outcome| {
                match outcome {
                    Outcome::Found(found) => {
                        let count = committed.load(Relaxed) + S::count(&found);
                        committed.store(count, Relaxed);
                        commit(found);
                        if count < self.limit {
                            return ControlFlow::Continue(());
                        }
                        stop.stop();
                    }
                    Outcome::Unreadable => {
                        summary.unreadable += 1;
                        return ControlFlow::Continue(());
                    }
                    Outcome::NoRoot(error) => failed = Some(error),
                }
                ControlFlow::Break(())
            };
            let sink = Sink {
                bytes: |outcome: &Outcome<S::Found>| match outcome {
                    Outcome::Found(found) => S::bytes(found),
                    _ => 0,
                },
                put: &mut put,
            };
            let root = Task { path: Vec::new(), work: Work::Folder(self.scope.clone()) };
            let run =
                Run { walk: self, search, stop, committed: &committed, schedule: Schedule::new(root, sink) };
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            std::thread::scope(|scope| {
                for _ in 1..threads.min(MAX_THREADS) {
                    let named = Thread::named("search");
                    // Fewer threads than wished for do the same work.
                    if named.start_in(scope, || run.work()).is_err() {
                        break;
                    }
                }
                run.work();
            });
            drop(run);
            summary.timed_out = stop.summary().timed_out;
            failed.map_or(Ok(summary), Err)
        })
    }
}
