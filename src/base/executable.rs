//! Finds the programs that pi starts by name.
//!
//! Relative folders in `PATH`, including the empty one, are skipped: they are folders of the project that pi
//! works in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The shell for commands of the user's configuration. Never searched in `PATH`.
pub const SHELL: &str = "/bin/sh";

/// Folders that are searched if `PATH` names no absolute folder.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// `PATH` without its relative folders, for a shell that searches it.
pub fn path() -> OsString {
    absolute(&std::env::var_os("PATH").unwrap_or_default())
}

/// Path of the program `name`.
pub fn find(name: &str) -> Option<PathBuf> {
    find_in(name, &path())
}

fn absolute(path: &OsStr) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    // None of the folders holds a separator, since they were split at it.
    let path = std::env::join_paths(folders).unwrap_or_default();
    // To a shell, an empty one is the current folder.
    if path.is_empty() { USUAL.into() } else { path }
}

/// True for a file that can be run as a program.
pub fn is_one(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Path of the program `name` in the absolute folders of `path`.
pub fn find_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| is_one(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_left_out() {
        for (path, expected) in [
            ("/usr/bin:.:/bin", "/usr/bin:/bin"),
            (":/bin:", "/bin"),
            ("bin:../bin:./x", USUAL),
            ("", USUAL),
            ("/bin", "/bin"),
        ] {
            assert_eq!(absolute(OsStr::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn programs_are_found_in_absolute_folders_only() {
        assert_eq!(find_in("sh", OsStr::new("bin:.::../bin")), None);
        assert!(find_in("sh", OsStr::new("relative:/bin:/usr/bin")).is_some());
        assert_eq!(find_in("no-such-program-anywhere", OsStr::new("/bin")), None);
    }
}
