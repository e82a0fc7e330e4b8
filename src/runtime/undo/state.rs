//! What is at a path: compared by content, mode and target.

use super::watch::Thing;
use crate::base::hex::hex;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The state of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Missing,
    File {
        sha256: String,
        mode: Option<u32>,
    },
    Link {
        target: PathBuf,
    },
    Folder {
        mode: u32,
    },
    /// Anything else; the text describes what is there.
    Other(String),
}

impl State {
    pub fn of(path: &Path) -> Self {
        let there = match fs::symlink_metadata(path) {
            Err(error) if is_missing(&error) => return Self::Missing,
            Err(error) => return Self::Other(format!("something that cannot be read ({error})")),
            Ok(there) => there,
        };
        if there.is_symlink() {
            return match fs::read_link(path) {
                Ok(target) => Self::Link { target },
                Err(error) => Self::Other(format!("a link that cannot be read ({error})")),
            };
        }
        if there.is_dir() {
            return Self::Folder { mode: there.permissions().mode() & 0o7777 };
        }
        if !there.is_file() {
            return Self::Other("no file".into());
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        match options.open(path).and_then(hash_of) {
            Ok(sha256) => Self::File { sha256, mode: Some(there.permissions().mode() & 0o7777) },
            Err(error) => Self::Other(format!("a file that cannot be read ({error})")),
        }
    }

    /// Returns the SHA-256 of a file's content; `None` if there is no regular file.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::File { sha256, .. } => Some(sha256),
            _ => None,
        }
    }
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl From<Option<Thing>> for State {
    fn from(thing: Option<Thing>) -> Self {
        match thing {
            None => Self::Missing,
            Some(Thing::File { hash, mode, .. }) => {
                Self::File { sha256: hash.map_or_else(String::new, |hash| hex(&hash)), mode: Some(mode) }
            }
            Some(Thing::Link(target)) => Self::Link { target: PathBuf::from(OsString::from_vec(target)) },
            Some(Thing::Folder { mode }) => Self::Folder { mode },
        }
    }
}

fn hash_of(mut file: File) -> io::Result<String> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            read => context.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
