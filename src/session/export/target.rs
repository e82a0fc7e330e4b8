//! The file that an export goes to.
//!
//! It is written beside its place and renamed when it is whole: nobody reads half a page, and a failure
//! leaves what was there. A new file is for its owner alone (0600), one that exists keeps its mode. What is
//! not a plain file (a pipe, a device) is written to as it is.

use crate::session::id;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub struct Target {
    out: BufWriter<File>,
    /// The file that is written and the name it is to get; none when it is written in place.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Target {
    pub fn create(path: &Path) -> io::Result<Self> {
        // A link stays a link.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let there = place.metadata().ok();
        if let Some(there) = there.as_ref().filter(|there| !there.is_file()) {
            if there.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self::new(file, None));
        }
        let mut name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}.tmp", id::session_id()));
        let draft = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let target = Self::new(file, Some((draft, place)));
        if let Some(there) = there {
            target.out.get_ref().set_permissions(there.permissions())?;
        }
        Ok(target)
    }

    fn new(file: File, rename: Option<(PathBuf, PathBuf)>) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, file), rename }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some((draft, place)) = &self.rename else {
            return Ok(());
        };
        std::fs::rename(draft, place)?;
        self.rename = None;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.rename {
            let _ = std::fs::remove_file(draft);
        }
    }
}
