//! Helpers that work in a copy of the folder, and what becomes of their changes.
//!
//! ```text
//! create ──> the helper works in FOLDER/tree ──> finish: compare ──> merge ──> apply, all or nothing
//!                                                                     └─ does not fit: kept, named
//! ```
//! A copy is a folder below `copies/` of the agent folder, with a lock that its process holds. It begins with what the
//! parent's files are, committed or not. What they held then is recorded; at the end the files of the copy and those
//! of the parent are compared with that record, byte for byte. In a git repository the copy is a repository, too, so
//! that the helper can look at the history, and changes that do not fit can be kept on a branch.

mod apply;
mod folder;
mod git;
mod tree;

pub use folder::{discard, forgotten, recover, root_of};

use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::file;
use crate::base::order::Order;
use crate::base::thread::Thread;
use crate::runtime::helpers::{Changes, names};
use crate::tools::merge::merge;
use crate::tools::mutation;
use crate::tools::sandbox::Sandbox;
use apply::{New, Place, Stamp, Step};
use git::{Store, Tracked};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use tree::{Changed, Found, Id, Lister, Record};

enum Kind {
    Git(Store),
    /// The files are there a second time, in `base`.
    Plain,
}

/// What a copy is made of.
pub struct Source<'a> {
    pub agent_dir: &'a Path,
    /// The user's home folder.
    pub home: Option<&'a Path>,
    pub cwd: &'a Path,
    /// Maximum bytes of files that git does not know.
    pub bytes_max: u64,
}

/// A copy of a folder.
pub struct Copy {
    /// Holds the copy and what belongs to it.
    folder: PathBuf,
    /// The folder that was copied.
    root: PathBuf,
    /// The working folder below `root`.
    below: PathBuf,
    home: Option<PathBuf>,
    kind: Kind,
    /// What the files held at first.
    record: Record,
    /// Locked while the copy is in use.
    _lock: File,
}

/// What holds when changes are taken over.
pub struct Terms<'a> {
    /// Why nothing is taken over, if so.
    pub refusal: Option<&'a str>,
    pub may_write: &'a dyn Fn(&Path) -> Result<(), String>,
    pub sandbox: Option<&'a Sandbox>,
    /// The file for the diff.
    pub patch: Option<&'a Path>,
    /// Felt until the first file is changed.
    pub cancel: &'a CancelToken,
}

fn shown(paths: &[PathBuf]) -> String {
    names(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
}

impl Copy {
    /// Makes a copy of the repository that the working folder lies in, otherwise of that folder. Returns notes for the
    /// report.
    pub fn create(
        source: &Source<'_>,
        name: &str,
        cancel: &CancelToken,
    ) -> Result<(Self, Vec<String>), String> {
        let cwd = source.cwd;
        let cwd = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
        let repository = git::root(&cwd);
        let is_git = repository.is_some();
        let root = repository.unwrap_or_else(|| cwd.clone());
        if source.agent_dir.canonicalize().is_ok_and(|agent_dir| agent_dir.starts_with(&root)) {
            return Err(format!("{} holds the agent folder, too", root.display()));
        }
        let (folder, lock) = folder::make(source.agent_dir, &root, name)?;
        let below = cwd.strip_prefix(&root).map(ToOwned::to_owned).unwrap_or_default();
        let mut copy = Self {
            folder,
            root,
            below,
            home: source.home.map(ToOwned::to_owned),
            kind: Kind::Plain,
            record: Record::new(),
            _lock: lock,
        };
        let made = failpoint::hit("copy-begin").map_err(|error| error.to_string()).and_then(|()| {
            let notes = copy.fill(is_git, source.bytes_max, cancel)?;
            let made = failpoint::hit("copy-end").and_then(|()| fs::create_dir_all(copy.cwd()));
            made.map_err(|error| format!("{} cannot be made: {error}", copy.cwd().display()))?;
            Ok(notes)
        });
        match made {
            Ok(notes) => Ok((copy, notes)),
            // An abort does not wait until thousands of files are gone. What a process that ends leaves is a forgotten
            // copy, which `pi sessions prune` finds.
            Err(error) if cancel.is_cancelled() => {
                let remove = move || {
                    let copy = copy;
                    let _ = folder::remove(&copy.folder);
                };
                let _ = Thread::named("copy-removal").start(remove);
                Err(error)
            }
            Err(error) => {
                let _ = folder::remove(&copy.folder);
                Err(error)
            }
        }
    }

    fn fill(&mut self, is_git: bool, bytes_max: u64, cancel: &CancelToken) -> Result<Vec<String>, String> {
        let (root, tree) = (self.root.clone(), self.tree());
        let tracked = if is_git { git::tracked(&root, cancel)? } else { Tracked::default() };
        let listed = self.list(&root, is_git, cancel);
        let Found { mut files, mut repositories, .. } =
            listed.map_err(|error| format!("{} cannot be read: {error}", root.display()))?;
        // Ignore rules do not hold for what git knows.
        let is_file = |path: &&PathBuf| {
            let is_file = |about: fs::Metadata| about.is_file() || about.is_symlink();
            !files.contains(*path)
                && tree::is_direct(&root, path)
                && root.join(path).symlink_metadata().is_ok_and(is_file)
        };
        let more: Vec<PathBuf> = tracked.files.iter().filter(is_file).cloned().collect();
        files.extend(more);
        let mut left = bytes_max;
        let mut charge = |bytes: u64| {
            left = left.checked_sub(bytes).ok_or_else(|| {
                format!(
                    "{} holds more than {} MB of files that must be copied and that git does not know (setting \
                     helpers.copyBytes)",
                    root.display(),
                    bytes_max >> 20
                )
            })?;
            Ok(())
        };
        if is_git {
            // Git keeps what is new a second time.
            for path in files.difference(&tracked.files) {
                charge(root.join(path).symlink_metadata().map_or(0, |about| about.len()))?;
            }
        }
        tree::copy(&root, &tree, &files, cancel, |_, bytes| if is_git { Ok(()) } else { charge(bytes) })?;
        if !is_git {
            tree::copy(&tree, &self.base(), &files, cancel, |_, bytes| charge(bytes))?;
        }
        let record = tree::record(&tree, files, cancel);
        self.record = record.map_err(|error| format!("{} cannot be read: {error}", tree.display()))?;
        if is_git {
            let store = self.folder.join("git");
            self.kind = Kind::Git(Store::create(&root, &store, &tree, &self.record, &tracked, cancel)?);
        }
        repositories.extend(tracked.modules());
        repositories.order();
        repositories.dedup();
        let note = format!("Not in the copy, as repositories of their own: {}", shown(&repositories));
        Ok((!repositories.is_empty()).then_some(note).into_iter().collect())
    }

    fn list(&self, root: &Path, is_git: bool, cancel: &CancelToken) -> std::io::Result<Found> {
        Lister { root, is_git, home: self.home.as_deref(), known: &self.record, cancel }.list()
    }

    fn base(&self) -> PathBuf {
        self.folder.join("base")
    }

    /// The copy of [`Self::root`].
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The folder that was copied.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working folder of the helper.
    pub fn cwd(&self) -> PathBuf {
        self.tree().join(&self.below)
    }

    /// Leaves the copy as it is, with all that was done in it.
    pub fn leave(self, why: &str) -> Changes {
        Changes { problem: Some(why.to_owned()), place: Some(self.tree()), ..Changes::default() }
    }

    /// Takes the changes over into the folder, if they fit and the terms allow it; otherwise they are kept and named.
    /// Returns notes for the report, too.
    pub fn finish(self, name: &str, terms: &Terms<'_>) -> (Option<Changes>, Vec<String>) {
        let (tree, cancel) = (self.tree(), terms.cancel);
        let found = self.list(&tree, matches!(self.kind, Kind::Git(_)), cancel).and_then(|found| {
            let changed = tree::changes(&tree, &self.record, &found.files, cancel)?;
            Ok((found, changed))
        });
        let (found, changed) = match found {
            Ok(found) => found,
            Err(error) => return (Some(self.leave(&format!("{}: {error}", tree.display()))), Vec::new()),
        };
        let mut notes = Vec::new();
        if !found.ignored.is_empty() {
            notes.push(format!("Not taken over, as ignore rules exclude them: {}", shown(&found.ignored)));
        }
        let own = self.repositories(&found);
        if !own.is_empty() {
            notes.push(format!(
                "Not taken over, as repositories: {}. They are in {}",
                names(&own),
                tree.display()
            ));
        }
        let mut changes = None;
        let is_kept = if changed.is_empty() {
            false
        } else {
            let (made, is_kept) = self.settle(name, &changed, terms);
            changes = Some(made);
            is_kept
        };
        if !is_kept && own.is_empty() {
            let _ = folder::remove(&self.folder);
        }
        (changes, notes)
    }

    /// What the helper has made of repositories, whose history no file of the folder can hold.
    fn repositories(&self, found: &Found) -> Vec<String> {
        let mut own: Vec<String> = found.repositories.iter().map(|path| path.display().to_string()).collect();
        let has_own = match &self.kind {
            Kind::Git(store) => store.has_references(&self.tree()),
            Kind::Plain => self.tree().join(".git").exists(),
        };
        own.extend(has_own.then(|| match &self.kind {
            Kind::Git(_) => "branches, tags or a stash of the copy".to_owned(),
            Kind::Plain => ".git".to_owned(),
        }));
        own
    }

    /// Decides what becomes of changes. True if the copy is needed further on.
    fn settle(&self, name: &str, changed: &[Changed], terms: &Terms<'_>) -> (Changes, bool) {
        let (tree, cancel) = (self.tree(), terms.cancel);
        let files = changed.iter().map(|changed| changed.path.display().to_string()).collect();
        let mut changes = Changes { files, ..Changes::default() };
        let (end, diff) = match &self.kind {
            Kind::Git(store) => {
                let end = store.end(&tree, changed, cancel).ok();
                let diff = end.as_ref().and_then(|end| store.patch(end, cancel).ok());
                (end.map(|end| (store, end)), diff)
            }
            Kind::Plain => (None, Some(tree::patch(changed, &self.base(), &tree))),
        };
        let write = |path: &Path, diff: &[u8]| file::create_private(path)?.write_all(diff);
        if let (Ok(()), Some(path), Some(diff)) = (failpoint::hit("patch"), terms.patch, diff) {
            changes.patch = write(path, &diff).is_ok().then(|| path.to_owned());
        }

        let taken = terms.refusal.map_or(Ok(()), |why| Err(why.to_owned()));
        let Err(why) = taken.and_then(|()| self.take_over(changed, terms)) else {
            changes.is_applied = true;
            return (changes, false);
        };
        changes.problem = Some(why);
        // Who aborts does not wait for git, and what was not put back is still to be put back.
        if !cancel.is_cancelled()
            && !apply::is_open(&self.folder)
            && let Some((store, end)) = end
        {
            changes.branch = store.branch(&self.root, name, &end, terms.sandbox).ok();
        }
        let is_kept = changes.branch.is_none();
        changes.place = is_kept.then_some(tree);
        (changes, is_kept)
    }

    fn take_over(&self, changed: &[Changed], terms: &Terms<'_>) -> Result<(), String> {
        let cancel = terms.cancel;
        // Tools that change one of the files at the same time go before, or after.
        let lock = |changed: &Changed| mutation::lock(&self.root.join(&changed.path), cancel);
        let locks: Option<Vec<_>> = changed.iter().map(lock).collect();
        let _locks = locks.ok_or("it was cancelled")?;
        let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
        for changed in changed {
            (terms.may_write)(&self.root.join(&changed.path))?;
            match self.fit(changed, cancel)? {
                Fit::Done => {}
                Fit::Step(step) => steps.push(step),
                Fit::Conflict => conflicts.push(changed.path.display().to_string()),
            }
        }
        if !conflicts.is_empty() {
            return Err(format!("changed in the folder, too: {}", names(&conflicts)));
        }
        // A file must not appear where others look for their work, if that can be helped.
        let git = Some(self.root.join(".git"));
        let git = git.filter(|git| git.symlink_metadata().is_ok_and(|about| about.is_dir()));
        let own = terms.sandbox.is_none().then(|| self.folder.clone());
        let stages: Vec<PathBuf> = own.into_iter().chain(git).collect();
        let place = Place { root: &self.root, folder: &self.folder, stages: &stages, sandbox: terms.sandbox };
        place.apply(&steps, cancel)?;
        for path in changed.iter().filter(|changed| changed.end.is_none()).map(|changed| &changed.path) {
            let gone = |folder: &&Path| {
                !self.below.starts_with(folder) && self.tree().join(folder).symlink_metadata().is_err()
            };
            // Only folders that are empty now.
            for folder in path.ancestors().skip(1).take_while(gone) {
                if fs::remove_dir(self.root.join(folder)).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// What a change does to the folder as it is now.
    fn fit(&self, changed: &Changed, cancel: &CancelToken) -> Result<Fit, String> {
        let Changed { path, base, end } = changed;
        let (target, source) = (self.root.join(path), self.tree().join(path));
        let fault = |error: std::io::Error| format!("{} cannot be read: {error}", target.display());
        // What changes after this is noticed.
        let seen = Stamp::of(&target).map_err(fault)?;
        let now = tree::id(&target, cancel).map_err(fault)?;
        if now == *end {
            return Ok(Fit::Done);
        }
        let step = |new, runs| Ok(Fit::Step(Step { path: path.clone(), new, runs, seen }));
        let (Some(Id::File { hash: before, runs: ran }), Some(Id::File { hash: theirs, runs })) = (base, end)
        else {
            return match end {
                _ if now != *base => Ok(Fit::Conflict),
                Some(end) => step(New::Copy(source), matches!(end, Id::File { runs: true, .. })),
                None => step(New::Gone, false),
            };
        };
        let Some(Id::File { hash: ours, runs: runs_now }) = &now else {
            return Ok(Fit::Conflict);
        };
        // The right to run a file is as much of a change as a line.
        let runs = if runs == ran { *runs_now } else { *runs };
        if theirs == before || theirs == ours {
            return match runs == *runs_now {
                true => Ok(Fit::Done),
                false => step(New::Copy(target), runs),
            };
        }
        if ours == before {
            return step(New::Copy(source), runs);
        }
        let before = match &self.kind {
            Kind::Git(store) => store.content(path, cancel)?,
            Kind::Plain => fs::read(self.base().join(path)).map_err(fault)?,
        };
        let (theirs, ours) = (fs::read(&source).map_err(fault)?, fs::read(&target).map_err(fault)?);
        let texts = [&before, &ours, &theirs].map(|bytes| std::str::from_utf8(bytes).ok());
        let [Some(before), Some(ours), Some(theirs)] = texts else {
            return Ok(Fit::Conflict);
        };
        match merge(before, ours, theirs) {
            Some(text) => step(New::Content(text.into_bytes()), runs),
            None => Ok(Fit::Conflict),
        }
    }
}

/// How a change fits the folder.
enum Fit {
    /// It is there already.
    Done,
    Step(Step),
    Conflict,
}
