//! What lies beside a session file and belongs to it: kept outputs, what `undo` needs, and a mark that the
//! user was told of its draft.
//!
//! The folders are named after the file. They come into being when they are needed, and go with it.

use super::file::create_folder;
use std::io;
use std::path::{Path, PathBuf};

/// An error where a folder beside a session file leads elsewhere: who made the file may have meant that.
pub fn refuse_link(folder: &Path) -> io::Result<()> {
    match folder.symlink_metadata() {
        Ok(there) if there.is_symlink() => {
            Err(io::Error::other(format!("{} is a symbolic link", folder.display())))
        }
        _ => Ok(()),
    }
}

/// The folder of whole tool outputs.
pub fn outputs(session_file: &Path) -> PathBuf {
    session_file.with_extension("outputs")
}

/// The folder of file contents from before the tools changed them.
pub fn undo(session_file: &Path) -> PathBuf {
    session_file.with_extension("undo")
}

/// A file that says that the user was told of the session's draft.
pub fn told(session_file: &Path) -> PathBuf {
    session_file.with_extension("told")
}

/// Gives the session at `to` the outputs of the one at `from`, as further names of the same files where
/// the disk can do that: a fork finds what it speaks of even when its parent is gone. What fails is left
/// out, since a conversation can go on without.
pub(super) fn share_outputs(from: &Path, to: &Path) {
    let (from, to) = (outputs(from), outputs(to));
    let Ok(files) = refuse_link(&from).and_then(|()| from.read_dir()) else {
        return;
    };
    if refuse_link(&to).is_err() || create_folder(&to).is_err() {
        return;
    }
    let is_file = |file: &std::fs::DirEntry| file.file_type().is_ok_and(|kind| kind.is_file());
    for file in files.flatten().filter(is_file) {
        let name = to.join(file.file_name());
        if std::fs::hard_link(file.path(), &name).is_err() {
            let _ = std::fs::copy(file.path(), &name);
        }
    }
}

/// Removes what belongs to the session file, which is removed by the caller.
pub(super) fn remove(session_file: &Path) -> io::Result<()> {
    let folders = [outputs(session_file), undo(session_file)].map(std::fs::remove_dir_all);
    let told = std::fs::remove_file(told(session_file));
    let removed = folders.into_iter().chain([told]);
    let failed = removed.filter_map(Result::err).find(|error| error.kind() != io::ErrorKind::NotFound);
    failed.map_or(Ok(()), Err)
}
