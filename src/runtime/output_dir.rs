//! Where whole tool outputs are kept.

use crate::base::file::make_private_folder;
use crate::session::beside;
use crate::tools::OutputDir;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A folder beside the session's file, named after it; it stays as long as the session does.
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
        make_private_folder(&folder)?;
        Ok(folder)
    }

    fn if_there(&self) -> Option<PathBuf> {
        Some(self.folder()).filter(|folder| folder.symlink_metadata().is_ok_and(|there| there.is_dir()))
    }

    fn follow(&self, session_file: &Path) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = beside::outputs(session_file);
    }
}

/// A folder for a conversation that is not stored; removed with it.
#[derive(Default)]
pub struct Passing(Mutex<Option<PathBuf>>);

impl OutputDir for Passing {
    fn path(&self) -> io::Result<PathBuf> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &*made {
            return Ok(path.clone());
        }
        let temp = std::env::temp_dir();
        for attempt in 0..100 {
            let path = temp.join(format!("pi-outputs-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(made.insert(path).clone()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a folder of outputs"))
    }

    fn if_there(&self) -> Option<PathBuf> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.clone()
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        let made = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = made.take() {
            // What cannot be removed now stays in the temporary folder, which is what that is for.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
