//! Temporary files and folders, accessible to their owner only, removed on drop.

use super::create_private;
use super::temp::with_new_name;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A path that is removed on drop. If that fails it stays in the temporary folder.
pub struct Passing {
    path: PathBuf,
    is_folder: bool,
}

impl Passing {
    /// Creates a file whose name contains `what` and ends with `.` and `extension`.
    pub fn file(what: &str, extension: &str) -> io::Result<(Self, File)> {
        let (prefix, suffix) = (format!("pi-{what}-"), format!(".{extension}"));
        let (file, path) = with_new_name(&std::env::temp_dir(), &prefix, &suffix, create_private)?;
        Ok((Self { path, is_folder: false }, file))
    }

    /// Creates a folder whose name contains `what`.
    pub fn folder(what: &str) -> io::Result<Self> {
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        let ((), path) = with_new_name(&std::env::temp_dir(), &format!("pi-{what}-"), "", make)?;
        Ok(Self { path, is_folder: true })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // Somebody may have put another file in its place; it goes all the same.
        let _ = match self.is_folder {
            true => fs::remove_dir_all(&self.path),
            false => fs::remove_file(&self.path),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_passes_is_its_owner_s_alone_and_goes() {
        let (file, other) = (Passing::file("test", "md").unwrap().0, Passing::file("test", "md").unwrap().0);
        let folder = Passing::folder("test").unwrap();
        fs::write(folder.path().join("inside"), "").unwrap();
        let paths = [&file, &other, &folder].map(|made| made.path().to_owned());
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(paths.each_ref().map(mode), [0o600, 0o600, 0o700]);
        assert_eq!(paths[0].extension().unwrap(), "md");
        drop((file, other, folder));
        assert!(paths.iter().all(|path| path.symlink_metadata().is_err()));
    }
}
