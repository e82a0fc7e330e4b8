//! The output file of an export.
//!
//! The file is written under a temporary name beside its destination and renamed when complete, so nobody
//! reads half a page and a failure leaves the old file. A new file has mode 0600, an existing one keeps its
//! mode. A pipe or device is written directly.

use crate::base::file::{self, Temp};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub struct Target {
    out: BufWriter<File>,
    /// The temporary file and its final path; `None` if the output is written directly.
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

    /// Renames the file to its final name.
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
