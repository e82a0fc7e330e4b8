//! Files and folders beside a session file: kept tool outputs, the undo journal, a mark that the user was told
//! of a draft, and text that was not sent.
//!
//! Each is named after the session file, created on first use, and removed with the session.

use crate::base::file;
use std::io;
use std::path::{Path, PathBuf};

/// Returns an error if a folder beside a session file is a symbolic link, which could redirect writes.
pub fn refuse_link(folder: &Path) -> io::Result<()> {
    match folder.symlink_metadata() {
        Ok(there) if there.is_symlink() => {
            Err(io::Error::other(format!("{} is a symbolic link", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Returns the folder of kept tool outputs.
pub fn outputs(session_file: &Path) -> PathBuf {
    session_file.with_extension("outputs")
}

/// Returns the folder of the undo journal and earlier file contents.
pub fn undo(session_file: &Path) -> PathBuf {
    session_file.with_extension("undo")
}

/// Returns the file that marks that the user was told of the session's draft.
pub fn told(session_file: &Path) -> PathBuf {
    session_file.with_extension("told")
}

/// Returns the file of text that was typed and not sent.
pub fn unsent(session_file: &Path) -> PathBuf {
    session_file.with_extension("unsent")
}

/// Hard-links or copies the kept outputs of the session `from` to the session `to`, so that a fork keeps its
/// outputs after its parent is removed. Errors are ignored, since a conversation can continue without
/// outputs.
pub(super) fn share_outputs(from: &Path, to: &Path) {
    let (from, to) = (outputs(from), outputs(to));
    let Ok(files) = refuse_link(&from).and_then(|()| from.read_dir()) else {
        return;
    };
    if refuse_link(&to).is_err() || file::make_private_folder(&to).is_err() {
        return;
    }
    for file in files.flatten() {
        // Outputs are regular files. A pipe or a link was put there by someone else.
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

/// Removes everything beside a session file, but text that was not sent. The caller removes the file itself.
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
