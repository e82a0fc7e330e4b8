//! Temporary files that are written beside their destination and renamed when complete.
//!
//! On Linux such a file has no name until then, so that even a kill leaves nothing behind.

use super::{create_private, only_regular};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that is removed on drop, unless it was renamed.
pub struct Temp {
    pub file: File,
    folder: PathBuf,
    /// `None` while the file has no name.
    path: Option<PathBuf>,
}

impl Temp {
    /// Creates the file in `folder`; on Linux without a name.
    pub fn create(folder: &Path, mode: u32) -> io::Result<Self> {
        let (file, path) = match Self::create_unnamed(folder, mode) {
            Some(file) => (file, None),
            None => {
                let (file, path) = create_named(folder, "tmp", mode)?;
                (file, Some(path))
            }
        };
        let folder = folder.to_owned();
        Ok(Self { file, folder, path })
    }

    /// Creates a file without a name; `None` if the system does not support that.
    #[cfg(target_os = "linux")]
    fn create_unnamed(folder: &Path, mode: u32) -> Option<File> {
        // Naming it later goes through /proc.
        if !Path::new("/proc/self/fd").exists() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE);
        options.open(folder).ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn create_unnamed(_folder: &Path, _mode: u32) -> Option<File> {
        None
    }

    /// Creates the file under a name that one writer uses at a time. A file left by a crash is removed first.
    pub fn named(path: PathBuf) -> io::Result<Self> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = create_private(&path)?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self { file, folder, path: Some(path) })
    }

    /// Creates a file that will replace `place`: with the mode of the existing file, otherwise for its owner
    /// only.
    pub fn beside(place: &Path) -> io::Result<Self> {
        let old = match fs::metadata(place) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let temp = Self::create(place.parent().unwrap_or(Path::new("/")), 0o600)?;
        if let Some(old) = old {
            only_regular(&old)?;
            temp.keep_owner(place);
            temp.file.set_permissions(Permissions::from_mode(old.permissions().mode() & 0o777))?;
        }
        Ok(temp)
    }

    /// Gives the file to the owner of the file at `place`, if that is allowed: root must not take away what it
    /// changes for a user.
    pub fn keep_owner(&self, place: &Path) {
        if let Ok(old) = fs::metadata(place) {
            let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
        }
    }

    /// Renames the file to `target`, replacing an existing file.
    pub fn rename(mut self, target: &Path) -> io::Result<()> {
        if self.path.is_none() {
            self.name()?;
        }
        if let Some(path) = &self.path {
            fs::rename(path, target)?;
            self.path = None;
        }
        Ok(())
    }

    /// Names an unnamed file; if the file system cannot, copies it.
    fn name(&mut self) -> io::Result<()> {
        if let Ok(path) = name_file(&self.file, &self.folder) {
            self.path = Some(path);
            return Ok(());
        }
        let (mut copy, path) = create_named(&self.folder, "tmp", 0o600)?;
        self.path = Some(path);
        let ours = self.file.metadata()?;
        let _ = fchown(&copy, Some(ours.uid()), Some(ours.gid()));
        copy.set_permissions(ours.permissions())?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy)?;
        self.file = copy;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Names an unnamed file in `folder`.
#[cfg(target_os = "linux")]
fn name_file(file: &File, folder: &Path) -> io::Result<PathBuf> {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    with_new_name(folder, ".pi-", ".tmp", |path| {
        let to = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: both paths are C strings that live until the call returns.
        let status = unsafe {
            libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
    .map(|((), path)| path)
}

#[cfg(not(target_os = "linux"))]
fn name_file(_file: &File, _folder: &Path) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Creates a file under a new name in `folder`.
pub fn create_named(folder: &Path, kind: &str, mode: u32) -> io::Result<(File, PathBuf)> {
    with_new_name(folder, ".pi-", &format!(".{kind}"), |path| {
        OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
    })
}

/// Tries names in `folder` until `make` succeeds with an unused one.
pub(super) fn with_new_name<T>(
    folder: &Path,
    prefix: &str,
    suffix: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    for _ in 0..100 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{prefix}{process}-{number}{suffix}"));
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::io::Write;

    #[test]
    fn a_temporary_file_goes_when_it_is_not_used() {
        let dir = TempDir::create();
        let (file, path) = create_named(dir.path(), "tmp", 0o666).unwrap();
        let folder = dir.path().to_owned();
        drop(Temp { file, folder, path: Some(path) });
        drop(Temp::create(dir.path(), 0o666).unwrap());
        assert!(dir.names().is_empty());
    }

    #[test]
    fn a_named_temporary_file_takes_the_place_too() {
        let dir = TempDir::create();
        let (mut file, path) = create_named(dir.path(), "tmp", 0o666).unwrap();
        file.write_all(b"new").unwrap();
        let folder = dir.path().to_owned();
        let temp = Temp { file, folder, path: Some(path) };
        temp.rename(&dir.path().join("file")).unwrap();
        assert_eq!(dir.names(), ["file"]);
    }

    #[test]
    fn what_a_crash_left_under_the_name_is_removed() {
        let dir = TempDir::create();
        let left = dir.write("new", "left and longer");
        let mut temp = Temp::named(left).unwrap();
        temp.file.write_all(b"whole").unwrap();
        temp.rename(&dir.path().join("file")).unwrap();
        assert_eq!((dir.names(), dir.read("file")), (vec!["file".to_owned()], b"whole".to_vec()));
    }

    #[test]
    fn only_a_regular_file_is_replaced() {
        let dir = TempDir::create();
        for path in [dir.fifo("fifo"), dir.path().to_owned(), "/dev/null".into()] {
            assert_eq!(Temp::beside(&path).err().unwrap().to_string(), "not a regular file");
        }
        assert_eq!(dir.names(), ["fifo"]);
    }
}
