//! Files: read with a limit, created for their owner only, replaced atomically.
//!
//! Only regular files are opened for reading: a FIFO would block for ever, and a device may do something when
//! it is opened. Reading has a limit, since a file may be larger than memory.
//!
//! Not here: how tools write the files of a project (`tools::local::replace`), which may have several names, an
//! owner of their own and no room for a second file.

mod lock;
mod passing;
mod temp;
mod update;

pub use lock::{FolderLock, is_older};
pub use passing::{Passing, remove_all as remove_passing};
pub use temp::{Temp, create_named};
pub use update::update;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a regular file for reading, following links.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, 0)
}

/// Opens a regular file by its real path; fails if a link has replaced it.
pub fn open_real(path: &Path) -> io::Result<File> {
    open_with(path, libc::O_NOFOLLOW)
}

fn open_with(path: &Path, flags: i32) -> io::Result<File> {
    // Looked at before it is opened, since opening a device can have an effect; and after, since another
    // program may have put something else there.
    only_regular(&fs::metadata(path)?)?;
    let flags = flags | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    only_regular(&file.metadata()?)?;
    Ok(file)
}

fn only_regular(about: &fs::Metadata) -> io::Result<()> {
    match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// The content of a regular file of at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, bytes_max)
}

/// The content of an open file of at most `bytes_max` bytes.
pub fn read_open(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {bytes_max} bytes"))),
        false => Ok(bytes),
    }
}

/// The first bytes of the file at `path`, at most `bytes_max`.
pub fn read_start(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a new file that only its owner can access.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates `folder` and missing parents, accessible to their owner only; existing ones are unchanged.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The real path of the file at `path`: a link stays, and its target is changed.
pub fn place_of(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        place => place,
    }
}

/// Replaces the file at `path` atomically, and syncs it. A new file is accessible to its owner only; an
/// existing one keeps its mode.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let place = place_of(path)?;
    let mut temp = Temp::beside(&place)?;
    temp.file.write_all(content)?;
    temp.file.sync_all()?;
    temp.rename(&place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn only_regular_files_of_a_believable_size_are_read() {
        let folder = TempDir::create();
        let path = folder.write("file", "four");
        assert_eq!(read(&path, 4).unwrap(), b"four");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link, 4).unwrap(), b"four");
        assert!(open_real(&link).is_err() && open_real(&path).is_ok());
        for path in [&folder.fifo("fifo"), folder.path(), Path::new("/dev/zero")] {
            let error = read(path, 4).unwrap_err();
            assert_eq!(error.to_string(), "not a regular file", "{}", path.display());
        }
    }
}
