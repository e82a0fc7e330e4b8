//! The work of a walk's threads: list a folder, drop ignored entries, search the rest.

use super::schedule::{Part, Schedule};
use super::{Entry, Search, Stop, Walk};
use crate::tools::backend::{DirEntry, Kind};
use crate::tools::ignore::{Marks, Scope, path_bytes};
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One walk, shared by its threads.
pub(super) struct Run<'a, S: Search> {
    pub walk: &'a Walk<'a>,
    pub search: &'a S,
    pub stop: &'a Stop,
    /// Results already committed, which precede all pending ones.
    pub committed: &'a AtomicUsize,
    pub schedule: Schedule<'a, Task, Outcome<S::Found>>,
}

pub(super) enum Outcome<F> {
    Found(F),
    Unreadable,
    NoRoot(io::Error),
}

pub(super) struct Task {
    /// Path relative to the root: of the folder, or of the first of the files.
    pub path: Vec<u8>,
    pub work: Work,
}

pub(super) enum Work {
    /// A folder, with the ignore rules of its parent.
    Folder(Option<Scope>),
    Files(Vec<Item>),
}

pub(super) struct Item {
    name: OsString,
    kind: Kind,
    wanted: bool,
    entered: bool,
}

/// A step for one or several entries of a folder; steps are in the order of entries.
enum Step {
    Look(Item),
    Task(u64),
}

/// State of one thread.
struct Own<W> {
    worker: W,
    /// An absolute path; its prefix up to the root is fixed.
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

    /// Calls `f` with an entry of the current folder.
    fn with_entry<R>(&mut self, name: &OsStr, kind: Kind, f: impl FnOnce(&mut W, &Entry<'_>) -> R) -> R {
        let folder_len = self.path.len();
        self.path.push(b'/');
        self.path.extend_from_slice(name.as_bytes());
        let entry = Entry { full: &self.path, relative_at: self.root_len + 1, name_at: folder_len + 1, kind };
        let result = f(&mut self.worker, &entry);
        self.path.truncate(folder_len);
        result
    }
}

impl<S: Search> Run<'_, S> {
    /// Works until no task is left.
    pub fn work(&self) {
        let root = path_bytes(&self.walk.root);
        let mut own = Own { worker: self.search.worker(), path: root.to_vec(), root_len: root.len() };
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

    /// Drops entries that are ignored or not wanted, and sorts the rest.
    fn judge(&self, own: &mut Own<S::Worker>, entries: Vec<DirEntry>, scope: Option<&Scope>) -> Vec<Item> {
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
                items.push(Item { name, kind, wanted, entered });
            }
        }
        items.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        items
    }

    /// Creates tasks for folders, and for entries beyond this task's share.
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
            if !batch.is_empty() && (entered.is_some() || batch.len() == S::BATCH || items.peek().is_none()) {
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
            let limit = self.walk.limit.saturating_sub(self.committed.load(Relaxed) + count);
            // With these and what is handed over already, there is enough.
            if limit == 0 || self.stop.reached() {
                return;
            }
            let result = own.with_entry(&item.name, item.kind, |worker, entry| {
                self.search.look(worker, entry, limit, self.stop)
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
    /// Path order with `/` as the lowest character: files in the folder `a` come before `a.b`.
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.path.as_slice(), other.path.as_slice());
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let rank = |path: &[u8]| path.get(same).map(|byte| if *byte == b'/' { 0 } else { *byte });
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
