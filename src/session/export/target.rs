//! The file that an export goes to.
//!
//! It is written beside its place and renamed when it is whole: nobody reads half a page, and a failure
//! leaves what was there. A new file is for its owner alone (0600), one that exists keeps its mode. What is
//! not a plain file (a pipe, a device) is written to as it is.

use crate::base::file::{self, Temp};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub struct Target {
    out: BufWriter<File>,
    /// The file that is written and the name it is to get; none when it is written in place.
    draft: Option<(Temp, PathBuf)>,
}

impl Target {
    pub fn create(path: &Path) -> io::Result<Self> {
        let place = file::place_of(path)?;
        let there = place.metadata().ok();
        if let Some(there) = there.filter(|there| !there.is_file()) {
            if there.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let file = OpenOptions::new().write(true).open(&place)?;
            return Ok(Self::new(file, None));
        }
        let temp = Temp::beside(&place)?;
        Ok(Self::new(temp.file.try_clone()?, Some((temp, place))))
    }

    fn new(file: File, draft: Option<(Temp, PathBuf)>) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, file), draft }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        match self.draft {
            Some((draft, place)) => draft.rename(&place),
            None => Ok(()),
        }
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
