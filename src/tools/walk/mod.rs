//! Walks a tree with several threads, and hands over what is found in path order.
//!
//! The tree is cut into tasks: a folder to list, or a batch of files to look into. Links are never
//! followed, ignored folders are not entered, and `.git` is entered only by a walk that starts in it.
//! Kernel file systems are entered only by a walk that starts in one: reading a file of theirs may
//! wait for ever.
//!
//! Path order is that of names, folder by folder: `a/b` comes before `a.b`.

mod schedule;
#[cfg(test)]
mod tests;

use super::Workspace;
use super::backend::{Backend, DirEntry, Kind};
use super::ignore::{Marks, Scope, path_bytes};
use super::listing::Listing;
use crate::agent::CancelToken;

use schedule::{Part, Schedule, Sink};
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A search that takes longer gives what it has.
pub const SEARCH_TIME: Duration = Duration::from_secs(60);

const MAX_THREADS: usize = 8;

pub struct Walk<'a> {
    backend: &'a dyn Backend,
    /// Absolute and free of links.
    root: PathBuf,
    /// None for a walk in a `.git`, where nothing is ignored.
    scope: Option<Scope>,
    cancel: &'a CancelToken,
    deadline: Instant,
    /// The walk ends when so much is found.
    limit: usize,
}

/// What is looked for.
pub trait Search: Sync {
    /// What one thread keeps for itself.
    type Worker;
    type Found: Send;
    /// Entries that a thread looks at in one task.
    const BATCH: usize;

    fn worker(&self) -> Self::Worker;
    /// Whether a folder that is not ignored is entered.
    fn enters(&self, worker: &mut Self::Worker, folder: &Entry<'_>) -> bool;
    /// Whether an entry is looked at, told from its path and kind.
    fn wants(&self, worker: &mut Self::Worker, entry: &Entry<'_>) -> bool;
    /// Looks at an entry. More than `limit` finds are not needed, nor any when `stop` says so.
    fn look(
        &self,
        worker: &mut Self::Worker,
        entry: &Entry<'_>,
        limit: usize,
        stop: &Stop,
        backend: &dyn Backend,
    ) -> io::Result<Option<Self::Found>>;
    /// What counts towards the limit.
    fn count(found: &Self::Found) -> usize;
    /// Memory held, in bytes.
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

    /// From the root of the walk, without a leading slash.
    pub fn relative(&self) -> &[u8] {
        self.full.get(self.relative_at..).unwrap_or_default()
    }

    pub fn name(&self) -> &[u8] {
        self.full.get(self.name_at..).unwrap_or_default()
    }
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files and folders that could not be read.
    pub unreadable: usize,
    pub timed_out: bool,
}

impl Summary {
    /// Says in a result what was not searched.
    pub fn note(&self, listing: &mut Listing, time: Duration) {
        if self.unreadable > 0 {
            let paths = if self.unreadable == 1 {
                "path"
            } else {
                "paths"
            };
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

/// Tells long work when nobody needs it any more.
pub struct Stop {
    stopped: Arc<AtomicBool>,
    late: AtomicBool,
    deadline: Instant,
}

impl Stop {
    /// Does work that stops on a cancel and at a deadline.
    pub fn during<R>(cancel: &CancelToken, deadline: Instant, work: impl FnOnce(&Self) -> R) -> R {
        let stop = Self {
            stopped: Arc::new(AtomicBool::new(false)),
            late: AtomicBool::new(false),
            deadline,
        };
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

    /// For work without a walk.
    pub fn summary(&self) -> Summary {
        Summary {
            timed_out: self.late.load(Relaxed),
            ..Summary::default()
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}

impl<'a> Walk<'a> {
    /// A walk below a folder, with the ignore rules that hold there. It ends at the deadline with what
    /// it has.
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
        Self {
            backend,
            root,
            scope,
            cancel,
            deadline: Instant::now() + time,
            limit,
        }
    }
    /// Calls `commit` with what is found, in path order. An error is one of listing the root.
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
            let root = Task {
                path: Vec::new(),
                work: Work::Folder(self.scope.clone()),
            };
            let run = Run {
                walk: self,
                search,
                stop,
                committed: &committed,
                schedule: Schedule::new(root, sink),
            };
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            std::thread::scope(|scope| {
                for _ in 1..threads.min(MAX_THREADS) {
                    let named = std::thread::Builder::new().name("search".to_owned());
                    // Fewer threads than wished for do the same work.
                    if named.spawn_scoped(scope, || run.work()).is_err() {
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

/// One walk, shared by its threads.
struct Run<'a, S: Search> {
    walk: &'a Walk<'a>,
    search: &'a S,
    stop: &'a Stop,
    /// Finds handed over. They come before all that is still looked at.
    committed: &'a AtomicUsize,
    schedule: Schedule<'a, Task, Outcome<S::Found>>,
}

enum Outcome<F> {
    Found(F),
    Unreadable,
    NoRoot(io::Error),
}

struct Task {
    /// From the root: of the folder, or of the first of the files.
    path: Vec<u8>,
    work: Work,
}

enum Work {
    /// With the rules of the folder above.
    Folder(Option<Scope>),
    Files(Vec<Item>),
}

struct Item {
    name: OsString,
    kind: Kind,
    wanted: bool,
    entered: bool,
}

/// What becomes of the entries of a folder, in order.
enum Step {
    Look(Item),
    Task(u64),
}

/// A thread's own things.
struct Own<W> {
    worker: W,
    /// An absolute path; its start, up to the root, is fixed.
    path: Vec<u8>,
    root_len: usize,
}

impl<W> Own<W> {
    /// Sets the path to a folder below the root.
    fn set_folder(&mut self, relative: &[u8]) {
        self.path.truncate(self.root_len);
        if !relative.is_empty() {
            self.path.push(b'/');
            self.path.extend_from_slice(relative);
        }
    }

    /// Calls `f` with an entry of the folder that the path is set to.
    fn with_entry<R>(
        &mut self,
        name: &OsStr,
        kind: Kind,
        f: impl FnOnce(&mut W, &Entry<'_>) -> R,
    ) -> R {
        let folder_len = self.path.len();
        self.path.push(b'/');
        self.path.extend_from_slice(name.as_bytes());
        let entry = Entry {
            full: &self.path,
            relative_at: self.root_len + 1,
            name_at: folder_len + 1,
            kind,
        };
        let result = f(&mut self.worker, &entry);
        self.path.truncate(folder_len);
        result
    }
}

impl<S: Search> Run<'_, S> {
    fn work(&self) {
        let root = path_bytes(&self.walk.root);
        let mut own = Own {
            worker: self.search.worker(),
            path: root.to_vec(),
            root_len: root.len(),
        };
        let stop = || self.stop.reached();
        self.schedule.work(stop, |task| match task.work {
            Work::Folder(scope) => self.folder(&mut own, &task.path, scope),
            Work::Files(items) => {
                let folder = memchr::memrchr(b'/', &task.path).unwrap_or(0);
                own.set_folder(&task.path[..folder]);
                let mut parts = Vec::new();
                self.look(&mut own, items.into_iter().map(Step::Look), &mut parts);
                parts
            }
        });
    }

    fn folder(
        &self,
        own: &mut Own<S::Worker>,
        path: &[u8],
        scope: Option<Scope>,
    ) -> Vec<Part<Outcome<S::Found>>> {
        own.set_folder(path);
        let mut parts = Vec::new();
        let (entries, marks, result) = self.list(&own.path);
        match result {
            Err(error) if path.is_empty() => {
                return vec![Part::Found(Outcome::NoRoot(error))];
            }
            // It is gone by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => parts.push(Part::Found(Outcome::Unreadable)),
            Ok(()) => {}
        }
        let scope = scope.map(|scope| scope.enter(self.walk.backend, &own.path, marks));
        let items = self.judge(own, entries, scope.as_ref());
        let steps = self.plan(path, items, scope);
        self.look(own, steps, &mut parts);
        parts
    }

    fn list(&self, path: &[u8]) -> (Vec<DirEntry>, Marks, io::Result<()>) {
        let mut entries = Vec::new();
        let mut marks = Marks::default();
        let folder = match path {
            [] => Path::new("/"),
            path => Path::new(OsStr::from_bytes(path)),
        };
        let result = self.walk.backend.each_entry(folder, &mut |entry| {
            match entry.name.as_bytes() {
                b".git" => {
                    marks.git = true;
                    // Without rules, the walk lies in a `.git` itself.
                    if self.walk.scope.is_some() {
                        return ControlFlow::Continue(());
                    }
                }
                b".gitignore" => marks.gitignore = entry.kind == Kind::File,
                b".ignore" => marks.ignore = true,
                b"dev" | b"proc" | b"sys" if path.is_empty() => {
                    return ControlFlow::Continue(());
                }
                _ => {}
            }
            entries.push(entry);
            match entries.len() % 1024 == 0 && self.stop.reached() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        (entries, marks, result)
    }

    /// Leaves out what is ignored or of no interest, and sorts the rest.
    fn judge(
        &self,
        own: &mut Own<S::Worker>,
        entries: Vec<DirEntry>,
        scope: Option<&Scope>,
    ) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for DirEntry { name, kind } in entries {
            let (wanted, entered) = own.with_entry(&name, kind, |worker, entry| {
                let is_dir = kind == Kind::Dir;
                if scope.is_some_and(|scope| scope.ignores(entry.full, entry.name_at, is_dir)) {
                    return (false, false);
                }
                let entered = is_dir && self.search.enters(worker, entry);
                (self.search.wants(worker, entry), entered)
            });
            if wanted || entered {
                items.push(Item {
                    name,
                    kind,
                    wanted,
                    entered,
                });
            }
        }
        items.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        items
    }

    /// Makes tasks of the folders, and of the entries that are too many for this task.
    fn plan(&self, folder: &[u8], items: Vec<Item>, scope: Option<Scope>) -> Vec<Step> {
        let below = |name: &OsStr| {
            let mut path = folder.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            path
        };
        let mut steps = Vec::new();
        let mut tasks = Vec::new();
        let mut looks = 0;
        let mut batch: Vec<Item> = Vec::new();
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let entered = item.entered.then(|| below(&item.name));
            if item.wanted {
                looks += 1;
                if looks <= S::BATCH {
                    steps.push(Step::Look(item));
                } else {
                    batch.push(item);
                }
            }
            if !batch.is_empty()
                && (entered.is_some() || batch.len() == S::BATCH || items.peek().is_none())
            {
                let files = std::mem::take(&mut batch);
                let path = below(files.first().map_or(OsStr::new(""), |item| &item.name));
                let work = Work::Files(files);
                let id = self.schedule.reserve();
                tasks.push((id, Task { path, work }));
                steps.push(Step::Task(id));
            }
            if let Some(path) = entered {
                let work = Work::Folder(scope.clone());
                let id = self.schedule.reserve();
                tasks.push((id, Task { path, work }));
                steps.push(Step::Task(id));
            }
        }
        if !tasks.is_empty() {
            self.schedule.add(tasks);
        }
        steps
    }

    fn look(
        &self,
        own: &mut Own<S::Worker>,
        steps: impl IntoIterator<Item = Step>,
        parts: &mut Vec<Part<Outcome<S::Found>>>,
    ) {
        let mut count = 0;
        for step in steps {
            let item = match step {
                Step::Look(item) => item,
                Step::Task(id) => {
                    parts.push(Part::Task(id));
                    continue;
                }
            };
            let limit = self
                .walk
                .limit
                .saturating_sub(self.committed.load(Relaxed) + count);
            // With these and what is handed over already, there is enough.
            if limit == 0 || self.stop.reached() {
                return;
            }
            let result = own.with_entry(&item.name, item.kind, |worker, entry| {
                self.search
                    .look(worker, entry, limit, self.stop, self.walk.backend)
            });
            match result {
                Ok(None) => {}
                Ok(Some(found)) => {
                    count += S::count(&found);
                    parts.push(Part::Found(Outcome::Found(found)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => parts.push(Part::Found(Outcome::Unreadable)),
            }
        }
    }
}

impl Ord for Task {
    /// The order of the walk: the files of a folder come before those of its longer-named brothers.
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.path.as_slice(), other.path.as_slice());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let rank = |path: &[u8]| {
            path.get(same)
                .map(|byte| if *byte == b'/' { 0 } else { *byte })
        };
        rank(a).cmp(&rank(b))
    }
}

impl PartialOrd for Task {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Task {}
