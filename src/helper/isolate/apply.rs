//! Changes several files of a folder, or none.
//!
//! New contents are staged on the file system of the folder before anything is changed, so that a full disk is
//! noticed in time. A journal says then what is about to happen; files are renamed into their places, the earlier ones
//! aside. Whoever finds a journal without a process that holds it puts back what was there.

use crate::base::failpoint;
use crate::base::file;
use serde::{Deserialize, Serialize};
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

const JOURNAL: &str = "journal";
/// Maximum size of a journal in bytes.
const JOURNAL_MAX: u64 = 64 << 20;

/// The new state of a file or link.
pub enum New {
    /// As this one.
    Copy(PathBuf),
    /// A file with this content; its mode stays.
    Content(Vec<u8>),
    Gone,
}

/// A change of the path below the folder.
pub struct Step {
    pub path: PathBuf,
    pub new: New,
}

#[derive(Serialize, Deserialize)]
struct Journal {
    root: PathBuf,
    stage: PathBuf,
    /// Folders that are made for the steps, outer ones first.
    folders: Vec<PathBuf>,
    steps: Vec<Planned>,
}

#[derive(Serialize, Deserialize)]
struct Planned {
    path: PathBuf,
    /// Tells the staged file from others; `None` if nothing takes the place.
    stamp: Option<(u64, u64, i64, i64)>,
}

fn stamp(about: &Metadata) -> (u64, u64, i64, i64) {
    (about.ino(), about.size(), about.mtime(), about.mtime_nsec())
}

impl Journal {
    fn new_file(&self, step: usize) -> PathBuf {
        self.stage.join(format!("{step}.new"))
    }

    fn old_file(&self, step: usize) -> PathBuf {
        self.stage.join(format!("{step}.old"))
    }

    /// Renames everything into its place.
    fn carry_out(&self) -> io::Result<()> {
        for folder in &self.folders {
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            failpoint::hit("apply-file")?;
            let target = self.root.join(&step.path);
            if step.stamp.is_none() {
                fs::rename(&target, self.old_file(at))?;
                continue;
            }
            match fs::hard_link(&target, self.old_file(at)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            failpoint::hit("apply-rename")?;
            fs::rename(self.new_file(at), &target)?;
        }
        Ok(())
    }

    /// Puts back what was there. Returns paths that somebody else has changed meanwhile: they stay.
    fn undo(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        for (at, step) in self.steps.iter().enumerate().rev() {
            let target = self.root.join(&step.path);
            let (new, old) = (self.new_file(at), self.old_file(at));
            let there = target.symlink_metadata().ok().map(|about| stamp(&about));
            let is_made = step.stamp.is_some() && new.symlink_metadata().is_err();
            let done = match old.symlink_metadata() {
                // A link to the file that is still in its place.
                Ok(_) if step.stamp.is_some() && !is_made => Ok(()),
                Ok(_) if there == step.stamp => fs::rename(&old, &target),
                Err(_) if is_made && there == step.stamp => fs::remove_file(&target),
                Err(_) if !is_made || there.is_none() => Ok(()),
                _ => Err(io::ErrorKind::AlreadyExists.into()),
            };
            if done.is_err() {
                left.push(target);
            }
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder); // what somebody has put in there keeps it
        }
        if left.is_empty() {
            let _ = fs::remove_dir_all(&self.stage);
        }
        left
    }
}

/// Changes files of `root`, all or none. `folder` keeps the journal; staged files lie in the first of `stages` that
/// is on the file system of `root`.
pub fn apply(root: &Path, folder: &Path, stages: &[PathBuf], steps: Vec<Step>) -> Result<(), String> {
    let device = |path: &Path| path.metadata().map(|about| about.dev()).ok();
    let place = stages.iter().find(|stage| device(stage) == device(root)).map_or(root, |stage| stage);
    let mut name = std::ffi::OsString::from(".pi-apply-");
    name.push(folder.file_name().unwrap_or_default());
    let mut journal =
        Journal { root: root.to_owned(), stage: place.join(name), folders: Vec::new(), steps: Vec::new() };
    let staged = file::make_private_folder(&journal.stage).and_then(|()| stage(&mut journal, &steps));
    let written = staged.and_then(|()| {
        failpoint::hit("apply-journal")?;
        let mut temp = file::Temp::create(folder, 0o600)?;
        temp.file.write_all(&serde_json::to_vec(&journal)?)?;
        temp.file.sync_all()?;
        temp.rename(&folder.join(JOURNAL))
    });
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&journal.stage);
        return Err(error.to_string());
    }
    if let Err(error) = journal.carry_out() {
        let left = journal.undo();
        if left.is_empty() {
            let _ = fs::remove_file(folder.join(JOURNAL));
        }
        return Err(error.to_string());
    }
    let _ = failpoint::hit("apply-end");
    // From here on the changes are made.
    let _ = fs::remove_file(folder.join(JOURNAL));
    let _ = fs::remove_dir_all(&journal.stage);
    for step in steps.iter().filter(|step| matches!(step.new, New::Gone)) {
        let parents = step.path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        // Only folders that are empty now.
        let _ = parents.map(|parent| fs::remove_dir(root.join(parent))).take_while(Result::is_ok).count();
    }
    Ok(())
}

fn stage(journal: &mut Journal, steps: &[Step]) -> io::Result<()> {
    for (at, step) in steps.iter().enumerate() {
        failpoint::hit("apply-stage")?;
        let (target, new) = (journal.root.join(&step.path), journal.new_file(at));
        check_folders(journal, &step.path)?;
        let there = target.symlink_metadata().ok();
        let mode = there.as_ref().filter(|there| there.is_file()).map(|there| there.mode());
        match &step.new {
            New::Gone => {}
            New::Content(bytes) => {
                let mut file = file::create_private(&new)?;
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(mode.unwrap_or(0o644) & 0o7777))?;
            }
            New::Copy(source) if source.symlink_metadata()?.is_symlink() => {
                symlink(fs::read_link(source)?, &new)?;
            }
            New::Copy(source) => {
                fs::copy(source, &new)?;
                if let Some(mode) = mode {
                    // The file keeps its mode, but for the right to run it.
                    let execute = source.metadata()?.mode() & 0o111;
                    let execute = if execute == 0 { 0 } else { 0o100 | ((mode & 0o444) >> 2) };
                    fs::set_permissions(&new, Permissions::from_mode((mode & 0o7666) | execute))?;
                }
            }
        }
        let stamp = match &step.new {
            New::Gone => None,
            _ => Some(stamp(&new.symlink_metadata()?)),
        };
        journal.steps.push(Planned { path: step.path.clone(), stamp });
    }
    Ok(())
}

/// Notes the folders that a path needs. No link is followed.
fn check_folders(journal: &mut Journal, path: &Path) -> io::Result<()> {
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("{} is not below the folder", path.display())));
    }
    let mut folder = journal.root.clone();
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match folder.symlink_metadata() {
            Ok(there) if there.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{} is not a folder", folder.display()))),
            Err(_) if journal.folders.contains(&folder) => {}
            Err(_) => journal.folders.push(folder.clone()),
        }
    }
    Ok(())
}

/// Puts back what an interrupted change of files has done. `Ok(false)` if there was none; an error names what could
/// not be put back.
pub fn recover(folder: &Path) -> Result<bool, String> {
    let path = folder.join(JOURNAL);
    let Ok(bytes) = file::read(&path, JOURNAL_MAX) else {
        return Ok(false);
    };
    let journal: Journal = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let left = journal.undo();
    if !left.is_empty() {
        let names: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
        let stage = journal.stage.display();
        return Err(format!("{} changed meanwhile; what was there is in {stage}", names.join(", ")));
    }
    fs::remove_file(&path).map_err(|error| format!("{} cannot be removed: {error}", path.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn steps() -> Vec<Step> {
        let step = |path: &str, new| Step { path: path.into(), new };
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

    fn run(dir: &TempDir) -> Result<(), String> {
        let copy = dir.path().join("copy");
        apply(&dir.path().join("w"), &copy, std::slice::from_ref(&copy), steps())
    }

    #[test]
    fn files_are_changed_made_and_removed() {
        let dir = folder();
        let root = dir.path().join("w");
        fs::set_permissions(root.join("a"), Permissions::from_mode(0o600)).unwrap();
        run(&dir).unwrap();
        assert_eq!(state(&dir), ["new a", "new b", "", "a", "d"]);
        assert_eq!(root.join("a").metadata().unwrap().mode() & 0o777, 0o600);
        assert!(fs::read_dir(dir.path().join("copy")).unwrap().next().is_none());
        assert_eq!(recover(&dir.path().join("copy")), Ok(false));
    }

    #[test]
    fn a_failure_changes_nothing() {
        let dir = folder();
        // A folder is in the way of the last step.
        fs::remove_file(dir.path().join("w/old/c")).unwrap();
        run(&dir).unwrap_err();
        assert_eq!(state(&dir), ["old a", "", "", "a", "old"]);
        let dir = folder();
        symlink("/tmp", dir.path().join("w/d")).unwrap();
        assert!(run(&dir).unwrap_err().contains("is not a folder"));
        assert_eq!(state(&dir), ["old a", "", "old c", "a", "d", "old"]);
        assert!(fs::read_dir(dir.path().join("copy")).unwrap().next().is_none());
    }
}
