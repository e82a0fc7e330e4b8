//! Folders for tool outputs that are too long for the conversation.

use crate::base::file;
use crate::session::beside;
use crate::tools::OutputDir;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A folder beside the session's file and named after it. The folder is kept with the session.
pub struct Beside(Mutex<PathBuf>);

impl Beside {
    pub fn new(session_file: &Path) -> Self {
        Self(Mutex::new(beside::outputs(session_file)))
    }

    fn folder(&self) -> PathBuf {
        let folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folder.clone()
    }
}

impl OutputDir for Beside {
    fn path(&self) -> io::Result<PathBuf> {
        let folder = self.folder();
        beside::refuse_link(&folder)?;
        file::make_private_folder(&folder)?;
        Ok(folder)
    }

    fn if_there(&self) -> Option<PathBuf> {
        Some(self.folder()).filter(|folder| folder.symlink_metadata().is_ok_and(|there| there.is_dir()))
    }

    fn follow(&self, session_file: &Path) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = beside::outputs(session_file);
    }
}

/// A temporary folder for a conversation that is not stored; removed on drop.
#[derive(Default)]
pub struct Passing(Mutex<Option<file::Passing>>);

impl OutputDir for Passing {
    fn path(&self) -> io::Result<PathBuf> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*made {
            return Ok(folder.path().to_owned());
        }
        let folder = file::Passing::folder("outputs")?;
        Ok(made.insert(folder).path().to_owned())
    }

    fn if_there(&self) -> Option<PathBuf> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref().map(|folder| folder.path().to_owned())
    }
}
