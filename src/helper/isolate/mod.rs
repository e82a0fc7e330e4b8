//! Helpers that work in a copy of the folder, and what becomes of their changes.
//!
//! ```text
//! create ──> the helper works in FOLDER/tree ──> finish: compare ──> merge ──> apply, all or nothing
//!                                                                     └─ does not fit: kept, named
//! ```
//! A copy is a folder below `copies/` of the agent folder, with a lock that its process holds. In a git repository it
//! is a work tree, otherwise a plain copy. Both begin with what the parent's files are, committed or not.

mod apply;
mod git;
mod plain;

use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::file;
use crate::runtime::helpers::Changes;
use crate::tools::merge::merge;
use apply::{New, Step};
use git::Repository;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What is at a path: its kind, mode and content, as a text that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Id {
    is_file: bool,
    text: String,
}

struct Changed {
    path: PathBuf,
    /// `None` where there was nothing.
    base: Option<Id>,
    /// `None` where nothing is left.
    end: Option<Id>,
}

type Ids = HashMap<PathBuf, Option<Id>>;

enum Kind {
    Git(Repository),
    Plain,
}

/// A copy of a folder.
pub struct Copy {
    /// Holds the copy and what belongs to it.
    folder: PathBuf,
    /// The folder that was copied.
    root: PathBuf,
    /// The working folder below `root`.
    below: PathBuf,
    kind: Kind,
    /// Locked while the copy is in use.
    _lock: File,
}

/// The folder of all copies.
pub fn copies(agent_dir: &Path) -> PathBuf {
    agent_dir.join("copies")
}

impl Copy {
    /// Makes a copy of the repository that `cwd` lies in, otherwise of `cwd`. Returns notes for the report.
    pub fn create(
        agent_dir: &Path,
        cwd: &Path,
        name: &str,
        bytes_max: u64,
        cancel: &CancelToken,
    ) -> Result<(Self, Vec<String>), String> {
        let cwd = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
        let repository = Repository::root(&cwd, cancel);
        let root = repository.clone().unwrap_or_else(|| cwd.clone());
        if agent_dir.canonicalize().is_ok_and(|agent_dir| agent_dir.starts_with(&root)) {
            return Err(format!("{} holds the agent folder, too", root.display()));
        }
        let (folder, lock) = make_folder(agent_dir, &root, name).map_err(|error| error.to_string())?;
        let tree = folder.join("tree");
        let made = failpoint::hit("copy-begin").map_err(|error| error.to_string()).and_then(|()| {
            let (kind, notes) = match repository {
                Some(root) => {
                    let (repository, notes) = Repository::copy(&root, &folder, &tree, cancel)?;
                    (Kind::Git(repository), notes)
                }
                None => (Kind::Plain, plain::copy(&root, &folder.join("base"), &tree, bytes_max, cancel)?),
            };
            failpoint::hit("copy-end").map_err(|error| error.to_string())?;
            Ok((kind, notes))
        });
        let below = cwd.strip_prefix(&root).map(ToOwned::to_owned).unwrap_or_default();
        match made {
            Ok((kind, notes)) => {
                let copy = Self { folder, root, below, kind, _lock: lock };
                fs::create_dir_all(copy.cwd()).map_err(|error| error.to_string())?;
                Ok((copy, notes))
            }
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// The working folder of the helper.
    pub fn cwd(&self) -> PathBuf {
        self.tree().join(&self.below)
    }

    /// Takes the changes over into the folder, if they fit and `may_apply` agrees; otherwise they are kept and named.
    /// The diff is written to `patch`.
    pub fn finish(
        self,
        name: &str,
        patch: Option<&Path>,
        may_apply: &dyn Fn(&Path) -> Result<(), String>,
        cancel: &CancelToken,
    ) -> Option<Changes> {
        let tree = self.tree();
        let found = match &self.kind {
            Kind::Git(repository) => {
                repository.changes(&self.folder, &tree, cancel).map(|(changed, end)| (changed, Some(end)))
            }
            Kind::Plain => plain::changes(&self.folder.join("base"), &tree, cancel)
                .map(|changed| (changed, None))
                .map_err(|error| error.to_string()),
        };
        let (changed, end) = match found {
            Ok(found) => found,
            Err(why) => {
                return Some(Changes { problem: Some(why), place: Some(tree), ..Changes::default() });
            }
        };
        if changed.is_empty() {
            remove(&self.folder);
            return None;
        }
        let files = changed.iter().map(|changed| changed.path.display().to_string()).collect();
        let mut changes = Changes { files, ..Changes::default() };
        let diff = match (&self.kind, &end) {
            (Kind::Git(repository), Some(end)) => repository.patch(end, cancel).unwrap_or_default(),
            _ => plain::patch(&changed, &self.folder.join("base"), &tree),
        };
        let write = |path: &Path| file::create_private(path)?.write_all(&diff);
        let written = failpoint::hit("patch").map(|()| patch);
        changes.patch = written.ok().flatten().filter(|path| write(path).is_ok()).map(ToOwned::to_owned);

        match self.take_over(&changed, may_apply, cancel) {
            Ok(()) => {
                changes.is_applied = true;
                remove(&self.folder);
            }
            Err(why) => {
                changes.problem = Some(why);
                match (&self.kind, &end) {
                    (Kind::Git(repository), Some(end)) => {
                        match repository.branch(name, end, &CancelToken::new()) {
                            Ok(branch) => {
                                changes.branch = Some(branch);
                                remove(&self.folder);
                            }
                            Err(_) => changes.place = Some(tree),
                        }
                    }
                    _ => changes.place = Some(tree),
                }
            }
        }
        Some(changes)
    }

    fn take_over(
        &self,
        changed: &[Changed],
        may_apply: &dyn Fn(&Path) -> Result<(), String>,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        let mut steps = Vec::new();
        let mut conflicts = Vec::new();
        let present = match &self.kind {
            Kind::Git(repository) => repository.present(cancel)?,
            Kind::Plain => Ids::new(),
        };
        for changed in changed {
            may_apply(&self.root.join(&changed.path))?;
            match self.step(changed, &present, cancel)? {
                Some(New::Gone) => steps.push(Step { path: changed.path.clone(), new: New::Gone }),
                Some(new) => steps.push(Step { path: changed.path.clone(), new }),
                None => conflicts.push(changed.path.display().to_string()),
            }
        }
        if !conflicts.is_empty() {
            return Err(format!("changed in the folder, too: {}", conflicts.join(", ")));
        }
        // What is there already needs no step.
        steps.retain(|step| !matches!(&step.new, New::Copy(path) if path.as_os_str().is_empty()));
        let stages: Vec<PathBuf> = match &self.kind {
            Kind::Git(repository) => {
                [Some(self.folder.clone()), repository.store(cancel)].into_iter().flatten().collect()
            }
            Kind::Plain => vec![self.folder.clone()],
        };
        apply::apply(&self.root, &self.folder, &stages, steps)
    }

    /// What a change does to the folder as it is now; `None` if it does not fit.
    fn step(&self, changed: &Changed, present: &Ids, cancel: &CancelToken) -> Result<Option<New>, String> {
        let Changed { path, base, end } = changed;
        let target = self.root.join(path);
        let fault = |error: std::io::Error| format!("{}: {error}", target.display());
        let there = target.symlink_metadata().is_ok();
        let now = match &self.kind {
            // A file that git ignores in the parent is not in the state of its files.
            Kind::Git(_) if base.is_none() && there && !present.contains_key(path) => return Ok(None),
            Kind::Git(_) => present.get(path).unwrap_or(base).clone(),
            Kind::Plain => plain::id(&target).map_err(fault)?,
        };
        if now == *end {
            return Ok(Some(New::Copy(PathBuf::new())));
        }
        let is_repository = |id: &Option<Id>| id.as_ref().is_some_and(|id| id.text.starts_with("160000"));
        if is_repository(base) || is_repository(end) || now.is_some() != there {
            return Ok(None);
        }
        let source = self.tree().join(path);
        if now == *base {
            return Ok(Some(if end.is_some() { New::Copy(source) } else { New::Gone }));
        }
        // Both have changed it.
        let (Some(base), Some(_), Some(_)) = (
            base.as_ref().filter(|id| id.is_file),
            end.as_ref().filter(|id| id.is_file),
            now.as_ref().filter(|id| id.is_file),
        ) else {
            return Ok(None);
        };
        let before = match &self.kind {
            Kind::Git(repository) => repository.base_content(base, cancel)?,
            Kind::Plain => fs::read(self.folder.join("base").join(path)).map_err(fault)?,
        };
        let (theirs, ours) = (fs::read(&source).map_err(fault)?, fs::read(&target).map_err(fault)?);
        let texts = [&before, &ours, &theirs].map(|bytes| std::str::from_utf8(bytes).ok());
        let [Some(before), Some(ours), Some(theirs)] = texts else {
            return Ok(None);
        };
        Ok(merge(before, ours, theirs).map(|text| New::Content(text.into_bytes())))
    }
}

fn make_folder(agent_dir: &Path, root: &Path, name: &str) -> std::io::Result<(PathBuf, File)> {
    let copies = copies(agent_dir);
    file::make_private_folder(&copies)?;
    let mut number = 1;
    let folder = loop {
        let folder = copies.join(format!("{}-{name}-{number}", plain::plain_name(root)));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            made => break made.map(|()| folder)?,
        }
    };
    let lock = file::create_private(&folder.join("lock"))?;
    lock.try_lock().map_err(std::io::Error::other)?;
    // For those who find the copy later.
    file::create_private(&folder.join("root"))?.write_all(root.as_os_str().as_bytes())?;
    Ok((folder, lock))
}

/// Copies that no process uses.
pub fn forgotten(agent_dir: &Path) -> Vec<PathBuf> {
    let folders = copies(agent_dir).read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    // Without a lock it is the rest of a copy that was begun or removed.
    let is_free = |folder: &PathBuf| !folder.join("lock").exists() || lock(folder).is_some();
    let mut found: Vec<PathBuf> = folders.filter(is_free).collect();
    found.sort();
    found
}

/// Takes the lock of a copy that no process uses.
fn lock(folder: &Path) -> Option<File> {
    let lock = File::options().write(true).open(folder.join("lock")).ok()?;
    lock.try_lock().is_ok().then_some(lock)
}

/// The folder that a copy was made of.
pub fn root_of(folder: &Path) -> Option<PathBuf> {
    fs::read(folder.join("root")).ok().map(|name| OsString::from_vec(name).into())
}

/// Puts back what changes of files that a kill has interrupted have done. Returns what is to be told.
pub fn recover(agent_dir: &Path) -> Vec<String> {
    let recover = |folder: &PathBuf| {
        let _lock = lock(folder)?;
        let what = "Taking over the changes of a helper was interrupted";
        match apply::recover(folder) {
            Ok(false) => None,
            Ok(true) => Some(format!(
                "{what}. Your files are as before; its changes are in {}/tree",
                folder.display()
            )),
            Err(problem) => Some(format!("{what}: {problem}")),
        }
    };
    forgotten(agent_dir).iter().filter_map(recover).collect()
}

/// Removes a copy that no process uses, after putting back what an interrupted change of files has done.
pub fn discard(folder: &Path) -> Result<(), String> {
    let _lock = lock(folder);
    apply::recover(folder)?;
    remove(folder);
    match folder.exists() {
        true => Err(format!("{} cannot be removed", folder.display())),
        false => Ok(()),
    }
}

/// Removes a copy. Branches that keep changes stay.
pub fn remove(folder: &Path) {
    let tree = folder.join("tree");
    if tree.join(".git").exists() {
        Repository::remove(&tree, &CancelToken::new());
    }
    let _ = fs::remove_dir_all(folder);
}
