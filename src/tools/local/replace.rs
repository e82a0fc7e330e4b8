//! Replaces a file so that a reader finds the whole old content or the whole new one.
//!
//! The new content goes into a temporary file in the same folder, which then takes the name: after a
//! full disk or a kill the old content is still there. On Linux the temporary file has no name until it
//! is complete, so that even a kill leaves nothing behind. The mode and the group stay, and a symbolic
//! link is followed.
//!
//! Some files would lose something by that: those with several names, those of another owner, those in a
//! folder that takes no new files, and mount points. They are written in place, after their content has
//! been saved beside them (or in the folder for temporary files).
//!
//! Nothing is synced: the promise is about kills and full disks, not about power.

use crate::base::file::{Temp, create_named};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Limit of links, equal to Linux's.
const MAX_LINKS: usize = 40;

/// Writes the new content into an empty file, or over the old content.
type Fill<'a> = &'a dyn Fn(&mut File) -> io::Result<()>;

pub fn replace(path: &Path, fill: Fill<'_>) -> io::Result<()> {
    replace_here(&follow_links(path)?, fill)
}

/// Replaces the file at `target`, which must not be a link.
pub fn replace_here(target: &Path, fill: Fill<'_>) -> io::Result<()> {
    let old = match fs::symlink_metadata(target) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match swap(target, None, fill)? {
                Swap::Done => Ok(()),
                Swap::Refused(error) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    super::only_regular(old.file_type())?;
    check_writable(target)?;
    if old.nlink() > 1 {
        return in_place(target, fill);
    }
    match swap(target, Some(&old), fill)? {
        Swap::Done => Ok(()),
        Swap::Refused(_) => in_place(target, fill),
    }
}

/// The path at the end of a chain of symbolic links, whether or not it exists.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() => {
                let link = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("/")).join(link);
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Fails if the owner made the file read-only, which a rename would bypass.
fn check_writable(target: &Path) -> io::Result<()> {
    let opened =
        OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(target);
    match opened {
        // A running program cannot be written to, but it can be replaced.
        Err(error) if error.kind() != io::ErrorKind::ExecutableFileBusy => Err(error),
        _ => Ok(()),
    }
}

enum Swap {
    Done,
    /// The file is unchanged, and only writing in place is possible.
    Refused(io::Error),
}

/// Replaces `target` by a new file. An `Err` means that the content could not be written.
fn swap(target: &Path, old: Option<&Metadata>, fill: Fill<'_>) -> io::Result<Swap> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    // Nobody but the owner may look into the new content before it has the mode of the old.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let mut temp = match Temp::create(folder, mode) {
        Ok(temp) => temp,
        Err(error) => return Ok(Swap::Refused(error)),
    };
    if let Some(old) = old {
        let new = temp.file.metadata()?;
        let same_group = new.gid() == old.gid() || fchown(&temp.file, None, Some(old.gid())).is_ok();
        if new.uid() != old.uid() || !same_group {
            let error = io::Error::from(io::ErrorKind::PermissionDenied);
            return Ok(Swap::Refused(error));
        }
    }
    fill(&mut temp.file)?;
    if let Some(old) = old {
        let mode = Permissions::from_mode(old.mode() & 0o7777);
        temp.file.set_permissions(mode)?;
    }
    match temp.rename(target) {
        Ok(()) => Ok(Swap::Done),
        Err(error) => Ok(Swap::Refused(error)),
    }
}

/// Overwrites the content. If that fails the old content is restored.
fn in_place(target: &Path, fill: Fill<'_>) -> io::Result<()> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(target)?;
    super::only_regular(file.metadata()?.file_type())?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    let (mut saved, saved_path) = save(&mut file, folder)?;
    file.rewind()?;
    let written = fill(&mut file).and_then(|()| end_here(&mut file));
    let Err(error) = written else {
        return fs::remove_file(&saved_path);
    };
    // The old blocks were never given back, so this needs no room.
    let restored = saved
        .rewind()
        .and_then(|()| file.rewind())
        .and_then(|()| io::copy(&mut saved, &mut file))
        .and_then(|_| end_here(&mut file));
    match restored {
        Ok(()) => {
            let _ = fs::remove_file(&saved_path);
            Err(error)
        }
        Err(_) => Err(io::Error::new(
            error.kind(),
            format!("{error}; the previous content is in {}", saved_path.display()),
        )),
    }
}

/// A copy of `file` beside it, or in the folder for temporary files.
fn save(file: &mut File, folder: &Path) -> io::Result<(File, PathBuf)> {
    let mut copy_into = |folder: &Path| {
        let (mut saved, path) = create_named(folder, "saved", 0o600)?;
        match file.rewind().and_then(|()| io::copy(file, &mut saved)) {
            Ok(_) => Ok((saved, path)),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    };
    copy_into(folder).or_else(|_| copy_into(&std::env::temp_dir()))
}

/// Truncates the file at the current position.
fn end_here(file: &mut File) -> io::Result<()> {
    let end = file.stream_position()?;
    file.set_len(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn full_disk(file: &mut File) -> io::Result<()> {
        file.write_all(b"half of the new content, longer than the old")?;
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    }

    /// Replaces `name` with a full disk and with a normal one, and checks that nothing else changes in the
    /// folder.
    #[track_caller]
    fn check(dir: &TempDir, name: &str) {
        let path = dir.path().join(name);
        let old = fs::read(&path).ok();
        let mode = |path: &Path| fs::metadata(path).ok().map(|meta| meta.mode());
        let old_mode = mode(&path);
        let names = dir.names();
        let error = replace(&path, &full_disk).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(fs::read(&path).ok(), old, "after a full disk");
        assert_eq!(dir.names(), names, "after a full disk");
        replace(&path, &|file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        if old.is_some() {
            assert_eq!(mode(&path), old_mode);
            assert_eq!(dir.names(), names);
        }
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = TempDir::create();
        check(&dir, "new");
        dir.write("plain", "old content");
        check(&dir, "plain");
        for mode in [0o600, 0o640, 0o755, 0o4711] {
            dir.write("moded", "old content");
            let path = dir.path().join("moded");
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            check(&dir, "moded");
        }
    }

    #[test]
    fn links_stay_links() {
        let dir = TempDir::create();
        dir.write("target", "old content");
        symlink("target", dir.path().join("soft")).unwrap();
        symlink("soft", dir.path().join("softer")).unwrap();
        check(&dir, "softer");
        assert!(fs::symlink_metadata(dir.path().join("soft")).unwrap().is_symlink());
        symlink("later", dir.path().join("dangling")).unwrap();
        check(&dir, "dangling");
        assert!(fs::symlink_metadata(dir.path().join("dangling")).unwrap().is_symlink());
        dir.write("one", "old content");
        fs::hard_link(dir.path().join("one"), dir.path().join("two")).unwrap();
        check(&dir, "one");
        assert_eq!(fs::read(dir.path().join("two")).unwrap(), b"new");
    }

    #[test]
    fn a_folder_or_a_device_is_not_replaced() {
        let dir = TempDir::create();
        let write = |path: &Path| replace(path, &|file| file.write_all(b"x")).unwrap_err();
        assert_eq!(write(dir.path()).raw_os_error(), Some(libc::EISDIR));
        assert_eq!(write(Path::new("/dev/null")).kind(), io::ErrorKind::InvalidInput);
        symlink("a", dir.path().join("b")).unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        assert_eq!(write(&dir.path().join("a")).raw_os_error(), Some(libc::ELOOP));
        let missing = dir.path().join("no/such/folder");
        assert_eq!(write(&missing).kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_kill_while_writing_would_leave_nothing() {
        let dir = TempDir::create();
        let path = dir.write("file", "old content");
        replace(&path, &|file| {
            file.write_all(b"new")?;
            assert_eq!(dir.names(), ["file"]);
            assert_eq!(dir.read("file"), b"old content");
            Ok(())
        })
        .unwrap();
        assert_eq!(dir.read("file"), b"new");
    }
}
