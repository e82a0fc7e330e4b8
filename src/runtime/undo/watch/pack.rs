//! The contents of watched files: each once, compressed, one after another in one file.
//!
//! One file, since many small ones cost a disk far more than their bytes. It only grows; where most of it is not
//! needed any more, a process that is alone with it begins it anew. Several processes append under a lock,
//! and each knows the contents that it appended or found in the index.

use super::item::Hash;
use crate::base::failpoint;
use crate::base::file;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const NAME: &str = "contents";

pub struct Pack {
    file: File,
    known: HashMap<Hash, Held>,
}

/// Offset and length of a compressed content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub at: u64,
    pub bytes: u32,
}

impl Pack {
    /// Opens the file in `folder`, with the contents that are `known`.
    pub fn open(folder: &Path, known: HashMap<Hash, Held>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(folder.join(NAME))?;
        let length = file.metadata()?.len();
        let mut known = known;
        known.retain(|_, held| held.at.saturating_add(held.bytes.into()) <= length);
        Ok(Self { file, known })
    }

    pub fn known(&self) -> &HashMap<Hash, Held> {
        &self.known
    }

    pub fn has(&self, hash: &Hash) -> bool {
        self.known.contains_key(hash)
    }

    /// Keeps a content. On an error nothing is kept.
    pub fn put(&mut self, hash: &Hash, content: &[u8]) -> io::Result<()> {
        if self.has(hash) {
            return Ok(());
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content)?;
        let packed = encoder.finish()?;
        let bytes = u32::try_from(packed.len()).map_err(io::Error::other)?;
        // Some file systems have no locks. What two processes mix there is found out by its hash.
        let _ = self.file.lock();
        let at = self.append(&packed);
        let _ = self.file.unlock();
        self.known.insert(*hash, Held { at: at?, bytes });
        Ok(())
    }

    fn append(&mut self, packed: &[u8]) -> io::Result<u64> {
        let at = self.file.seek(SeekFrom::End(0))?;
        let write = |file: &mut File| {
            let (first, rest) = packed.split_at(failpoint::cut("undo.pack", packed.len()));
            file.write_all(first)?;
            failpoint::hit("undo.pack")?;
            file.write_all(rest)
        };
        write(&mut self.file).map(|()| at).inspect_err(|_| drop(self.file.set_len(at)))
    }

    /// Returns a content, whose hash the caller checks.
    pub fn get(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let held = self.known.get(hash).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut packed = vec![0; held.bytes as usize];
        self.file.read_exact_at(&mut packed, held.at)?;
        let mut content = Vec::new();
        DeflateDecoder::new(packed.as_slice()).take(super::scan::FILE_MAX + 1).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// Removes the kept contents if most of them are not needed any more. Called while no other process uses them.
pub fn clean(folder: &Path) {
    const SPARE: u64 = 16 << 20;
    let path = folder.join(NAME);
    let size = path.symlink_metadata().map_or(0, |about| about.len());
    if size <= SPARE {
        return;
    }
    let needed: u64 = super::index::load(folder).map_or(0, |(_, held)| {
        let bytes = held.values().map(|held| u64::from(held.bytes));
        bytes.sum()
    });
    if size > 2 * needed + SPARE {
        let _ = std::fs::remove_file(path);
    }
}

/// Reads the file `name` of the store.
pub fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    const INDEX_MAX: u64 = 1 << 30;
    file::read(&folder.join(name), INDEX_MAX)
}
