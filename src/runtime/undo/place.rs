//! A file as seen from its folder, which is found without following a link.
//!
//! The path of a change had no links in it when the change was noted. One that has some now leads elsewhere, and is
//! refused. From then on the folder is the one that was opened, whatever takes its name.

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
    /// The place of `path`. None when a folder on the way is not there, unless `makes` has it made.
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

    /// A path of the file that leads through the opened folder. It is for this process, while `self` lives.
    pub fn file(&self) -> PathBuf {
        let folder = PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        // Without /proc nothing is left but the name; the folder was looked at just now.
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
    // SAFETY: the call has opened the descriptor for this alone.
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
