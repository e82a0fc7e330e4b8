//! What lies beside a session file and belongs to it: kept outputs, what `undo` needs, and a mark that the
//! user was told of its draft.
//!
//! The folders are named after the file. They come into being when they are needed, and go with it.

use crate::base::file;
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
    if refuse_link(&to).is_err() || file::make_private_folder(&to).is_err() {
        return;
    }
    for file in files.flatten() {
        // Outputs are files. What else lies there, such as a pipe or a link, is not the session's.
        if !file.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let name = to.join(file.file_name());
        if std::fs::hard_link(file.path(), &name).is_err() {
            let _ = copy(&file.path(), &name);
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let mut from = file::open_real(from)?;
    let mut to = file::create_private(to)?;
    io::copy(&mut from, &mut to)
}

/// Removes what belongs to the session file, which is removed by the caller.
pub(super) fn remove(session_file: &Path) -> io::Result<()> {
    let folders = [outputs(session_file), undo(session_file)].map(std::fs::remove_dir_all);
    let told = std::fs::remove_file(told(session_file));
    let removed = folders.into_iter().chain([told]);
    let failed = removed.filter_map(Result::err).find(|error| error.kind() != io::ErrorKind::NotFound);
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    #[test]
    fn what_is_no_file_is_not_shared() {
        let scratch = TempDir::create();
        let one = scratch.write("one.outputs/1", "text");
        let fifo = scratch.fifo("one.outputs/pipe");
        std::os::unix::fs::symlink("/etc/passwd", one.with_file_name("link")).unwrap();
        let at = |name: &str| one.parent().unwrap().with_file_name(name);
        share_outputs(&at("one.jsonl"), &at("two.jsonl"));
        let shared = at("two.outputs").read_dir().unwrap().flatten();
        assert_eq!(shared.map(|entry| entry.file_name()).collect::<Vec<_>>(), ["1"]);
        // As where a disk has no second names.
        copy(&one, &at("copy")).unwrap();
        assert_eq!(std::fs::read(at("copy")).unwrap(), b"text");
        assert!(copy(&fifo, &at("none")).is_err() && copy(&one.with_file_name("link"), &at("none")).is_err());
    }
}
