//! The backend for local files.
//!
//! Only regular files are opened: opening a device or a pipe could block for ever, or have effects. Replacing
//! a file is in [`replace`].

mod replace;

use super::backend::{Backend, Child, DirEntry, Kind, ShellCommand, Source, Stat};
use super::process;
use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The machine that pi runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

/// Writes a file like [`Local::write`], but never through a link at `path`.
pub fn write_here(path: &Path, content: &[u8]) -> io::Result<()> {
    replace::replace_here(path, &|file: &mut File| io::Write::write_all(file, content))
}

impl Backend for Local {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        // Looked at before it is opened, since opening a device can have an effect; and after, since
        // another program may have put something else there.
        only_regular(fs::metadata(path)?.file_type())?;
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        only_regular(file.metadata()?.file_type())?;
        Ok(Box::new(file))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let meta = fs::metadata(path)?;
        Ok(Stat { kind: kind(meta.file_type()), len: meta.len(), modified: meta.modified().ok() })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        fs::read_dir(path)?.map(|entry| Ok(listed(&entry?))).collect()
    }

    fn each_entry(&self, path: &Path, visit: &mut dyn FnMut(DirEntry) -> ControlFlow<()>) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            if visit(listed(&entry?)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn open_listed(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        let file =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
        Ok(Box::new(file))
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        replace::replace(path, &|file: &mut File| io::Write::write_all(file, content))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let target = replace::follow_links(path)?;
        let mut missing = Vec::new();
        let mut parent = target.as_path();
        loop {
            match fs::canonicalize(parent) {
                Ok(mut real) => {
                    real.extend(missing.iter().rev());
                    return Ok(real);
                }
                Err(error) => match (parent.parent(), parent.file_name()) {
                    (Some(above), Some(name)) if is_missing(&error) => {
                        missing.push(name);
                        parent = above;
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        Ok(Box::new(process::spawn(command, None)?))
    }
}

fn listed(entry: &fs::DirEntry) -> DirEntry {
    DirEntry { name: entry.file_name(), kind: entry.file_type().map_or(Kind::Other, kind) }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn only_regular(file_type: FileType) -> io::Result<()> {
    match kind(file_type) {
        Kind::File => Ok(()),
        Kind::Dir => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Kind::Symlink | Kind::Other => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device, pipe or socket, not a regular file",
        )),
    }
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_file() {
        Kind::File
    } else if file_type.is_dir() {
        Kind::Dir
    } else if file_type.is_symlink() {
        Kind::Symlink
    } else {
        Kind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = TempDir::create();
        let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
        symlink("/dev/zero", dir.path().join("zeros")).unwrap();
        for path in ["socket", "zeros"] {
            let error = Local.open(&dir.path().join(path)).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
        let error = Local.open(dir.path()).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EISDIR));
        dir.write("file", "text");
        let mut text = String::new();
        let mut file = Local.open(&dir.path().join("file")).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }

    #[test]
    fn the_canonical_path_is_the_same_before_and_after_a_file_is_made() {
        let dir = TempDir::create();
        let real = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        symlink("sub", dir.path().join("link")).unwrap();
        symlink("sub/new", dir.path().join("dangling")).unwrap();
        let canonical = |name: &str| Local.canonical(&dir.path().join(name)).unwrap();
        for _ in 0..2 {
            assert_eq!(canonical("link/new"), real.join("sub/new"));
            assert_eq!(canonical("dangling"), real.join("sub/new"));
            assert_eq!(canonical("link/no/such"), real.join("sub/no/such"));
            dir.write("sub/new", "");
        }
        symlink("round", dir.path().join("round")).unwrap();
        let error = Local.canonical(&dir.path().join("round")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
    }
}
