//! The folders in which copies lie: made, found again after a kill, and removed.

use super::apply;
use crate::base::file;
use crate::base::order::Order;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The folder of all copies.
fn copies(agent_dir: &Path) -> PathBuf {
    agent_dir.join("copies")
}

/// Waits until no process makes a folder, and has others wait. A folder that is being made has no lock yet.
fn turn(copies: &Path) -> io::Result<File> {
    let turn = File::open(copies)?;
    // Where the file system has no locks, a copy that is complete is never taken for forgotten.
    let _ = turn.lock();
    Ok(turn)
}

/// Makes the folder for a copy of `root`. Its process holds the lock while the copy is in use.
pub fn make(agent_dir: &Path, root: &Path, name: &str) -> Result<(PathBuf, File), String> {
    let copies = copies(agent_dir);
    let make = || {
        file::make_private_folder(&copies)?;
        let copies = copies.canonicalize()?;
        let _turn = turn(&copies)?;
        let mut number = 1;
        let folder = loop {
            let folder = copies.join(format!("{}-{name}-{number}", plain_name(root)));
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                made => break made.map(|()| folder)?,
            }
        };
        let lock = file::create_private(&folder.join("lock"))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // For those who find the copy later.
        file::create_private(&folder.join("root"))?.write_all(root.as_os_str().as_bytes())?;
        Ok((folder, lock))
    };
    make().map_err(|error: io::Error| format!("A folder in {} cannot be made: {error}", copies.display()))
}

/// The folder's name as a part of other names.
fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(OsStr::new("root")).to_string_lossy();
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' })
        .take(40)
        .collect()
}

/// Copies that no process uses.
pub fn forgotten(agent_dir: &Path) -> Vec<PathBuf> {
    let copies = copies(agent_dir);
    let Ok(_turn) = turn(&copies) else {
        return Vec::new();
    };
    let folders = copies.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = folders.filter(|folder| lock(folder).is_ok()).collect();
    found.order();
    found
}

/// Takes the lock of a copy, or fails if a process uses the copy. There is none in the rest of a copy that was begun
/// or removed.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    match File::options().write(true).open(folder.join("lock")) {
        Ok(lock) => lock.try_lock().map(|()| Some(lock)).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder that a copy was made of.
pub fn root_of(folder: &Path) -> Option<PathBuf> {
    fs::read(folder.join("root")).ok().map(|name| OsString::from_vec(name).into())
}

/// Puts back what changes of files that a kill has interrupted have done. Returns what is to be told.
pub fn recover(agent_dir: &Path) -> Vec<String> {
    let recover = |folder: &PathBuf| {
        let _lock = lock(folder).ok()?;
        let what = "Taking over the changes of a helper was interrupted";
        match apply::recover(folder) {
            Ok(false) => None,
            Ok(true) => Some(format!(
                "{what}. Your files are as before; its changes are in {}/tree",
                folder.display()
            )),
            Err(problem) => Some(format!(
                "{what}: {problem}; its changes are in {}/tree. `pi sessions prune` removes both",
                folder.display()
            )),
        }
    };
    forgotten(agent_dir).iter().filter_map(recover).collect()
}

/// Removes a copy that no process uses, after putting back what an interrupted change of files has done. What cannot
/// be put back, since somebody has changed it meanwhile, stays as it is.
pub fn discard(folder: &Path) -> Result<(), String> {
    let _turn = folder.parent().map(turn).transpose();
    let _lock = lock(folder).map_err(|error| format!("{} is in use: {error}", folder.display()))?;
    let _ = apply::recover(folder);
    remove(folder).map_err(|error| format!("{} cannot be removed: {error}", folder.display()))
}

/// Removes a copy. Branches that keep changes stay.
pub fn remove(folder: &Path) -> io::Result<()> {
    apply::clear_stage(folder);
    // A helper may have taken itself the right to remove what it has made.
    fs::remove_dir_all(folder).or_else(|_| {
        for entry in walkdir::WalkDir::new(folder).into_iter() {
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_dir() {
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
                let _ = fs::set_permissions(entry.path(), mode);
            }
        }
        fs::remove_dir_all(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn a_copy_in_use_is_neither_found_nor_removed() {
        let dir = TempDir::create();
        let (folder, lock) = make(dir.path(), Path::new("/x/pro ject"), "a").unwrap();
        assert!(folder.ends_with("copies/pro_ject-a-1"));
        assert!(forgotten(dir.path()).is_empty());
        assert!(discard(&folder).unwrap_err().contains("is in use"));
        drop(lock);
        assert_eq!(forgotten(dir.path()), std::slice::from_ref(&folder));
        assert_eq!(root_of(&folder).unwrap(), Path::new("/x/pro ject"));
        // What was staged when pi was killed goes, too, and so does a folder that lets nobody in.
        let stage = dir.path().join(".pi-apply-x");
        fs::create_dir_all(&stage).unwrap();
        fs::write(folder.join("stage"), stage.as_os_str().as_bytes()).unwrap();
        let closed = folder.join("tree/closed");
        fs::create_dir_all(closed.join("in")).unwrap();
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
        discard(&folder).unwrap();
        assert!(!stage.exists() && !folder.exists());
        // The rest of one that was begun or removed.
        fs::create_dir(&folder).unwrap();
        assert_eq!(forgotten(dir.path()), [folder]);
    }
}
