//! A file in a folder that is opened without following links.
//!
//! The recorded path of a change contains no links. If a folder on the path has become a link since, the undo
//! is refused. The folder stays open, so that replacing it by another one has no effect.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

#[cfg(target_os = "linux")]
const FOLDER: libc::c_int = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FOLDER: libc::c_int = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;

pub struct Place {
    folder: OwnedFd,
    path: PathBuf,
    name: OsString,
}

impl Place {
    /// Opens the folder of `path`. Missing folders are created if `makes` is set; otherwise the result is
    /// `None`.
    pub fn find(path: &Path, makes: bool) -> Result<Option<Self>, String> {
        let mut parts = path.components();
        let is_absolute = parts.next() == Some(Component::RootDir);
        let names: Option<Vec<&OsStr>> = parts
            .map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let Some((name, folders)) = names.as_deref().filter(|_| is_absolute).and_then(<[_]>::split_last)
        else {
            return Err("its path in the journal is not an absolute one".into());
        };
        let mut at = PathBuf::from("/");
        let mut folder = open(libc::AT_FDCWD, OsStr::new("/")).map_err(|error| error.to_string())?;
        for part in folders {
            at.push(part);
            let mut next = open(folder.as_raw_fd(), part);
            if makes && next.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                make(&folder, part).map_err(|error| format!("cannot make {}: {error}", at.display()))?;
                next = open(folder.as_raw_fd(), part);
            }
            folder = match next {
                Ok(next) => next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => {
                    return Err(match error.raw_os_error() {
                        Some(libc::ENOTDIR | libc::ELOOP) => {
                            format!("{} is not the folder that it was", at.display())
                        }
                        _ => format!("cannot open {}: {error}", at.display()),
                    });
                }
            };
        }
        Ok(Some(Self { folder, path: path.to_owned(), name: (*name).to_owned() }))
    }

    /// Returns a path to the file through the open folder. It is valid in this process, while `self` lives.
    pub fn file(&self) -> PathBuf {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        // Without /proc only the path is left; its folders were checked just now.
        match cfg!(target_os = "linux") && folder.exists() {
            true => folder.join(&self.name),
            false => self.path.clone(),
        }
    }
}

fn open(folder: libc::c_int, name: &OsStr) -> io::Result<OwnedFd> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: the name is a C string that lives until the call returns.
    let fd = unsafe { libc::openat(folder, name.as_ptr(), FOLDER) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call opened the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn make(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let name = CString::new(name.as_bytes())?;
    // SAFETY: the name is a C string that lives until the call returns.
    match unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o777) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            error => Err(error),
        },
    }
}
