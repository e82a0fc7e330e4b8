//! Changes several files of a folder, or none.
//!
//! New contents are staged on the file system of the folder before anything is changed, so that a full disk is
//! noticed in time. A journal says then what is about to happen. What is there is renamed aside, and what is new takes
//! the free place: a file that somebody saves meanwhile is never overwritten, and is noticed. Whoever finds a journal
//! without a process that holds it puts back what was there. The changes are made once the journal is gone.

use super::tree::copy_one;
use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::file;
use crate::base::json;
use crate::runtime::helpers::{names, shown};
use crate::tools::sandbox::Sandbox;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};

const JOURNAL: &str = "journal";
/// Holds the path of the staged files.
const STAGE: &str = "stage";
/// Begin of the name of a folder for staged files.
const STAGE_NAME: &str = ".pi-apply-";
/// Maximum size of a journal in bytes.
const JOURNAL_MAX: u64 = 64 << 20;

/// The new state of a file or link.
pub enum New {
    /// What is at this path.
    Copy(PathBuf),
    /// A file with this content.
    Content(Vec<u8>),
    Gone,
}

/// A change of the path below the folder.
pub struct Step {
    pub path: PathBuf,
    pub new: New,
    /// True for a file that its owner may run. A file that is replaced keeps the rest of its mode, and its owner.
    pub runs: bool,
    /// What was at the path when the step was decided on.
    pub seen: Option<Stamp>,
}

/// Tells a file in one state from other files and other states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Changes when the file is renamed or linked, too.
    changed: (i64, i64),
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        match path.symlink_metadata() {
            Ok(about) => Ok(Some(about.into())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn is_content_of(self, other: Option<Self>) -> bool {
        other.is_some_and(|other| Self { changed: self.changed, ..other } == self)
    }
}

impl From<Metadata> for Stamp {
    fn from(about: Metadata) -> Self {
        Self {
            inode: about.ino(),
            size: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Journal {
    root: OsString,
    stage: OsString,
    /// Folders that are made for the steps, outer ones first.
    folders: Vec<OsString>,
    steps: Vec<Planned>,
}

#[derive(Serialize, Deserialize)]
struct Planned {
    path: OsString,
    seen: Option<Stamp>,
    /// The staged file; `None` if nothing takes the place.
    made: Option<Stamp>,
}

fn say(what: &str, path: &Path, error: &io::Error) -> String {
    format!("{} cannot be {what}: {error}", shown(&path.to_string_lossy()))
}

impl Journal {
    fn staged(&self, step: usize, kind: &str) -> PathBuf {
        Path::new(&self.stage).join(format!("{step}.{kind}"))
    }

    fn target(&self, step: &Planned) -> PathBuf {
        Path::new(&self.root).join(&step.path)
    }

    /// Stages all new files.
    fn stage(&mut self, steps: &[Step], cancel: &CancelToken) -> Result<(), String> {
        let stage = PathBuf::from(&self.stage);
        file::make_private_folder(&stage).map_err(|error| say("made", &stage, &error))?;
        for (at, step) in steps.iter().enumerate() {
            let fault = |error| say("changed", &step.path, &error);
            let planned = stage_one(self, at, step, cancel).map_err(fault)?;
            self.steps.push(planned);
        }
        Ok(())
    }

    /// Renames everything into its place.
    fn carry_out(&self) -> Result<(), String> {
        for folder in self.folders.iter().map(Path::new) {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(say("made", folder, &error));
                }
                _ => {}
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            let (target, old) = (self.target(step), self.staged(at, "old"));
            let fault = |error| say("changed", &target, &error);
            let meanwhile = || format!("{} was changed meanwhile", shown(&target.to_string_lossy()));
            failpoint::hit("apply-file").map_err(fault)?;
            if Stamp::of(&target).map_err(fault)? != step.seen {
                return Err(meanwhile());
            }
            if let Some(seen) = step.seen {
                fs::rename(&target, &old).map_err(fault)?;
                if !seen.is_content_of(Stamp::of(&old).map_err(fault)?) {
                    return Err(meanwhile());
                }
            }
            failpoint::hit("apply-rename").map_err(fault)?;
            if step.made.is_some() {
                place(&self.staged(at, "new"), &target).map_err(fault)?;
            }
        }
        // A program that had a file open may have written to it after it was renamed.
        for (at, step) in self.steps.iter().enumerate() {
            let old = || Stamp::of(&self.staged(at, "old")).ok().flatten();
            if step.seen.is_some_and(|seen| !seen.is_content_of(old())) {
                let target = self.target(step);
                return Err(format!("{} was changed meanwhile", shown(&target.to_string_lossy())));
            }
        }
        Ok(())
    }

    /// Puts back what was there. Returns paths that somebody else has changed meanwhile: they stay. What is back
    /// already is left alone.
    fn undo(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        for (at, step) in self.steps.iter().enumerate().rev() {
            let (target, old) = (self.target(step), self.staged(at, "old"));
            let there = Stamp::of(&target).ok().flatten();
            let is_ours = step.made.is_some_and(|made| made.is_content_of(there));
            let is_aside = old.symlink_metadata().is_ok();
            let done = match (is_aside, there) {
                (true, None) => fs::rename(&old, &target),
                (true, Some(_)) if is_ours => fs::rename(&old, &target),
                (true, Some(_)) => Err(io::ErrorKind::AlreadyExists.into()),
                (false, _) if is_ours => fs::remove_file(&target),
                (false, _) => Ok(()),
            };
            if done.is_err() {
                left.push(target);
            }
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder); // what somebody has put in there keeps it
        }
        left
    }

    fn undone(&self) -> Result<(), String> {
        let left = self.undo();
        if left.is_empty() {
            return Ok(());
        }
        let paths: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
        let (names, stage) = (names(&paths), Path::new(&self.stage).display());
        Err(format!("{names} changed meanwhile; what was there is in {stage}"))
    }
}

/// Gives a staged file its name, unless there is something of that name.
fn place(new: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(new, target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system has such links.
        Err(_) if Stamp::of(target)?.is_none() => fs::rename(new, target),
        Err(error) => Err(error),
    }
}

/// Where files are changed, and how.
pub struct Place<'a> {
    pub root: &'a Path,
    /// Keeps the journal.
    pub folder: &'a Path,
    /// Staged files lie in the first of these that is on the file system of `root`, otherwise in `root`.
    pub stages: &'a [PathBuf],
    /// What keeps the changes below its folders, whatever links somebody makes meanwhile.
    pub sandbox: Option<&'a Sandbox>,
}

impl Place<'_> {
    fn confined<T: Send>(&self, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        match self.sandbox {
            Some(sandbox) => sandbox.run(|| Ok(work())).map_err(|error| error.to_string())?,
            None => work(),
        }
    }

    /// Changes files, all or none.
    pub fn apply(&self, steps: &[Step], cancel: &CancelToken) -> Result<(), String> {
        let Self { root, folder, stages, .. } = *self;
        let device = |path: &Path| path.metadata().map(|about| about.dev()).ok();
        let place = stages.iter().find(|stage| device(stage) == device(root)).map_or(root, |stage| stage);
        let mut name = OsString::from(STAGE_NAME);
        name.push(folder.file_name().unwrap_or_default());
        let stage = place.join(name);
        let mut journal = Journal {
            root: root.into(),
            stage: stage.clone().into(),
            folders: Vec::new(),
            steps: Vec::new(),
        };
        let path = folder.join(JOURNAL);
        // A kill leaves no staged file that nobody knows of.
        let noted = fs::write(folder.join(STAGE), stage.as_os_str().as_bytes());
        let done = noted.map_err(|error| say("written", &folder.join(STAGE), &error)).and_then(|()| {
            self.confined(|| journal.stage(steps, cancel))?;
            write_journal(&journal, folder).map_err(|error| say("written", &path, &error))?;
            if cancel.is_cancelled() {
                return Err("it was cancelled".into());
            }
            self.confined(|| journal.carry_out())?;
            // The changes are made once the journal is gone.
            let ended = failpoint::hit("apply-commit").and_then(|()| fs::remove_file(&path));
            ended.map_err(|error| say("removed", &path, &error))
        });
        let done = done.map_err(|why| {
            let undone = self.confined(|| journal.undone()).and_then(|()| match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(say("removed", &path, &error)),
                _ => Ok(()),
            });
            undone.err().map_or(why.clone(), |left| format!("{why}; {left}"))
        });
        let _ = failpoint::hit("apply-end");
        if !is_open(folder) {
            clear_stage(folder);
        }
        done
    }
}

fn write_journal(journal: &Journal, folder: &Path) -> io::Result<()> {
    failpoint::hit("apply-journal")?;
    let mut temp = file::Temp::create(folder, 0o600)?;
    temp.file.write_all(&serde_json::to_vec(journal)?)?;
    temp.file.sync_all()?;
    temp.rename(&folder.join(JOURNAL))
}

fn stage_one(journal: &mut Journal, at: usize, step: &Step, cancel: &CancelToken) -> io::Result<Planned> {
    failpoint::hit("apply-stage")?;
    check_folders(journal, &step.path)?;
    let new = journal.staged(at, "new");
    let planned = |made| Planned { path: step.path.clone().into(), seen: step.seen, made };
    match &step.new {
        New::Gone => return Ok(planned(None)),
        New::Content(bytes) => file::create_private(&new)?.write_all(bytes)?,
        New::Copy(source) => drop(copy_one(source, &new, cancel)?),
    }
    let about = new.symlink_metadata()?;
    if about.is_file() {
        let target = Path::new(&journal.root).join(&step.path);
        let there = target.symlink_metadata().ok().filter(Metadata::is_file);
        if let Some(there) = &there {
            keep_owner(&new, &about, there)?;
        }
        let mode = there.map_or(about.mode() & 0o777, |there| there.mode() & 0o7777);
        // Who may read a file that can be run may run it.
        let mode = match (step.runs, mode & 0o100 != 0) {
            (true, false) => mode | 0o100 | ((mode & 0o044) >> 2),
            (false, true) => mode & !0o6111,
            _ => mode,
        };
        fs::set_permissions(&new, Permissions::from_mode(mode))?;
    }
    Ok(planned(Some(new.symlink_metadata()?.into())))
}

fn keep_owner(new: &Path, about: &Metadata, there: &Metadata) -> io::Result<()> {
    let owner = (about.uid() != there.uid()).then_some(there.uid());
    let group = (about.gid() != there.gid()).then_some(there.gid());
    if owner.is_none() && group.is_none() {
        return Ok(());
    }
    chown(new, owner, group).map_err(|_| io::Error::other("it belongs to another user or group"))
}

/// Notes the folders that a path needs. No link is followed.
fn check_folders(journal: &mut Journal, path: &Path) -> io::Result<()> {
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(io::Error::other("it is not below the folder"));
    }
    let mut folder = PathBuf::from(&journal.root);
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match folder.symlink_metadata() {
            Ok(there) if there.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{} is not a folder", folder.display()))),
            Err(_) if journal.folders.iter().any(|known| *known == *folder.as_os_str()) => {}
            Err(_) => journal.folders.push(folder.clone().into()),
        }
    }
    Ok(())
}

/// True if a change of files was begun and has not ended.
pub fn is_open(folder: &Path) -> bool {
    folder.join(JOURNAL).exists()
}

/// Puts back what an interrupted change of files has done. `Ok(false)` if there was none; an error names what could
/// not be put back.
pub fn recover(folder: &Path) -> Result<bool, String> {
    let path = folder.join(JOURNAL);
    let bytes = match file::read(&path, JOURNAL_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            clear_stage(folder);
            return Ok(false);
        }
        Err(error) => return Err(say("read", &path, &error)),
    };
    let journal: Journal =
        json::parse(&bytes).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    journal.undone()?;
    fs::remove_file(&path).map_err(|error| say("removed", &path, &error))?;
    clear_stage(folder);
    Ok(true)
}

/// Removes staged files, also those that were put aside.
pub fn clear_stage(folder: &Path) {
    let Ok(stage) = fs::read(folder.join(STAGE)) else {
        return;
    };
    let stage = PathBuf::from(OsString::from_vec(stage));
    let name = stage.file_name().map(OsStr::as_bytes).unwrap_or_default();
    if name.starts_with(STAGE_NAME.as_bytes()) && (fs::remove_dir_all(&stage).is_ok() || !stage.exists()) {
        let _ = fs::remove_file(folder.join(STAGE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::symlink;

    fn steps(dir: &TempDir) -> Vec<Step> {
        let step = |path: &str, new| Step {
            path: path.into(),
            new,
            runs: false,
            seen: Stamp::of(&dir.path().join("w").join(path)).unwrap(),
        };
        vec![
            step("a", New::Content(b"new a".to_vec())),
            step("d/e/b", New::Content(b"new b".to_vec())),
            step("old/c", New::Gone),
        ]
    }

    fn folder() -> TempDir {
        let dir = TempDir::create();
        dir.write("w/a", "old a");
        dir.write("w/old/c", "old c");
        fs::create_dir(dir.path().join("copy")).unwrap();
        dir
    }

    fn state(dir: &TempDir) -> Vec<String> {
        let read = |name: &str| fs::read_to_string(dir.path().join("w").join(name)).unwrap_or_default();
        let mut state: Vec<String> = ["a", "d/e/b", "old/c"].iter().map(|name| read(name)).collect();
        let names = fs::read_dir(dir.path().join("w")).unwrap().flatten();
        state.extend(names.map(|entry| entry.file_name().into_string().unwrap()));
        state[3..].sort();
        state
    }

    fn run(dir: &TempDir, steps: &[Step]) -> Result<(), String> {
        let (root, folder) = (dir.path().join("w"), dir.path().join("copy"));
        let stages = std::slice::from_ref(&folder);
        let place = Place { root: &root, folder: &folder, stages, sandbox: None };
        place.apply(steps, &CancelToken::new())
    }

    fn is_clean(dir: &TempDir) -> bool {
        fs::read_dir(dir.path().join("copy")).unwrap().next().is_none()
    }

    #[test]
    fn files_are_changed_made_and_removed() {
        let dir = folder();
        let root = dir.path().join("w");
        fs::set_permissions(root.join("a"), Permissions::from_mode(0o600)).unwrap();
        run(&dir, &steps(&dir)).unwrap();
        assert_eq!(state(&dir), ["new a", "new b", "", "a", "d", "old"]);
        assert_eq!(root.join("a").metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(root.join("a").metadata().unwrap().nlink(), 1);
        assert!(is_clean(&dir));
        assert_eq!(recover(&dir.path().join("copy")), Ok(false));
    }

    #[test]
    fn a_failure_changes_nothing() {
        let dir = folder();
        symlink("/tmp", dir.path().join("w/d")).unwrap();
        assert!(run(&dir, &steps(&dir)).unwrap_err().contains("is not a folder"));
        assert_eq!(state(&dir), ["old a", "", "old c", "a", "d", "old"]);
        assert!(is_clean(&dir));
        for point in ["apply-stage:2", "apply-journal:1", "apply-file:3", "apply-rename:1", "apply-commit:1"]
        {
            let dir = folder();
            failpoint::with(&format!("{point}:err"), || run(&dir, &steps(&dir)).unwrap_err());
            assert_eq!(state(&dir), ["old a", "", "old c", "a", "old"], "{point}");
            assert!(is_clean(&dir), "{point}");
        }
    }

    #[test]
    fn what_somebody_saves_meanwhile_is_not_overwritten() {
        for (path, save) in [("w/a", "their a"), ("w/d/e/b", "their b"), ("w/old/c", "their c")] {
            let dir = folder();
            let steps = steps(&dir);
            dir.write(path, save);
            assert!(run(&dir, &steps).unwrap_err().contains("changed meanwhile"), "{path}");
            let state = state(&dir);
            let texts: Vec<&str> = state[..3].iter().map(String::as_str).collect();
            let expected = ["w/a", "w/d/e/b", "w/old/c"].map(|name| if name == path { save } else { "" });
            let old = ["old a", "", "old c"];
            let expected = expected.iter().zip(old).map(|(new, old)| if new.is_empty() { old } else { new });
            assert_eq!(texts, expected.collect::<Vec<_>>());
            assert!(is_clean(&dir), "{path}");
        }
    }

    #[test]
    fn a_recovery_can_be_repeated() {
        let dir = folder();
        let copy = dir.path().join("copy");
        // As a kill right before the end would leave it.
        let mut journal = Journal {
            root: dir.path().join("w").into(),
            stage: copy.join(".pi-apply-copy").into(),
            folders: Vec::new(),
            steps: Vec::new(),
        };
        fs::write(copy.join(STAGE), journal.stage.as_bytes()).unwrap();
        journal.stage(&steps(&dir), &CancelToken::new()).unwrap();
        write_journal(&journal, &copy).unwrap();
        journal.carry_out().unwrap();
        dir.write("w/a", "their own a");
        for _ in 0..2 {
            let told = recover(&copy).unwrap_err();
            assert!(told.contains("w/a changed meanwhile") && !told.contains("w/d"), "{told}");
            assert_eq!(state(&dir), ["their own a", "", "old c", "a", "old"]);
        }
        fs::remove_file(dir.path().join("w/a")).unwrap();
        assert_eq!(recover(&copy), Ok(true));
        assert_eq!(state(&dir), ["old a", "", "old c", "a", "old"]);
        assert!(is_clean(&dir));
    }
}
