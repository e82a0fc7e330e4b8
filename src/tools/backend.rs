//! The tools' access to files and processes.
//!
//! All tools use this trait, so that an editor, a container or another machine can implement it. Limits,
//! queues and diffs are above it.

use super::sandbox::Sandbox;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Wraps a backend in another one, such as an editor's.
pub type Over = Box<dyn Fn(Arc<dyn Backend>) -> Arc<dyn Backend> + Send + Sync>;

pub trait Backend: Send + Sync {
    /// Opens a file for reading.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>>;
    /// Metadata of a path, following links.
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// The entries of a folder, unordered.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Visits the entries of a folder one by one, so that a walk can stop inside a large folder. Entries
    /// before an error are visited.
    fn each_entry(&self, path: &Path, visit: &mut dyn FnMut(DirEntry) -> ControlFlow<()>) -> io::Result<()> {
        let _ = self.list(path)?.into_iter().try_for_each(visit);
        Ok(())
    }
    /// Opens a path that was just listed as a regular file. Cheaper than [`Backend::open`], which checks the
    /// kind first; never blocks, even if the path is something else by now.
    fn open_listed(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        self.open(path)
    }
    /// Replaces a file's content atomically, or creates the file.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()>;
    /// Creates a folder and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The path with all links resolved; if it does not exist, with its nearest existing parent resolved.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Starts a command in a session of its own: no terminal, empty stdin if there is no input, stdout and stderr
    /// merged in order.
    /// The error text is complete.
    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>>;
    /// The sandbox that limits writing and the network, if there is one.
    fn sandbox(&self) -> Option<&Sandbox> {
        None
    }
}

pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: Kind,
    pub len: u64,
    pub modified: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    /// A device, pipe or socket: never opened by a tool, since that may block.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    pub name: OsString,
    /// Kind of the entry itself: links are not followed.
    pub kind: Kind,
}

/// A command for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// The configured shell; by default the backend searches for bash, then sh.
    pub shell: Option<PathBuf>,
    pub text: String,
    /// Id of the tool call that waits for the command; empty if none does.
    pub call: String,
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: BTreeMap<OsString, OsString>,
    /// True if processes that outlive the shell keep running when pi ends.
    pub keep_background: bool,
    /// What the shell reads; nothing by default.
    pub input: Option<Input>,
}

/// The reading end of a pipe. Clones are the same end.
#[derive(Clone, Debug)]
pub struct Input(Arc<PipeReader>);

impl Input {
    pub fn new(pipe: PipeReader) -> Self {
        Self(Arc::new(pipe))
    }

    /// The end for a child.
    pub fn for_child(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }
}

impl PartialEq for Input {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Input {}

/// A running shell with all its descendants. Killed if dropped before its end.
pub trait Child: Send {
    /// Waits for output, for the end, or until `until`. Never waits for a process that holds the output open
    /// after the shell has ended. Must not be called after the end.
    fn next(&mut self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<Progress>;

    /// Terminates all processes, and kills the remaining ones after `grace`. `next` reports the end. Returns
    /// false, without effect, if the shell has already ended.
    fn terminate(&mut self, grace: Duration) -> bool;

    /// Returns a function that kills all processes from any thread without waiting; `next` then ends soon. It
    /// has no effect after the end.
    fn killer(&self) -> Arc<dyn Fn() + Send + Sync>;

    /// Returns a function that asks all processes to end, from any thread without waiting.
    fn terminator(&self) -> Arc<dyn Fn() + Send + Sync>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of output in the buffer.
    Output(usize),
    /// The time limit was reached.
    Waited,
    Ended(End),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// 128 plus the signal's number for a shell that was ended by a signal. `None` if unknown.
    pub exit_code: Option<i32>,
    /// Processes of this command that are still running.
    pub survivors: Vec<Survivor>,
}

/// A process that outlived the shell that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    pub pid: i32,
    /// The program's name, if known.
    pub name: String,
}

/// The symbolic name of an error, such as `ENOENT`.
pub fn error_code(error: &io::Error) -> Option<&'static str> {
    known_error(error).map(|(_, code, _)| code)
}

/// Text for an error of a call on a path: `ENOENT: no such file or directory, open '/x'`.
pub fn error_text(error: &io::Error, call: &str, path: &Path) -> String {
    let path = path.display();
    match known_error(error) {
        Some((_, code, words)) => format!("{code}: {words}, {call} '{path}'"),
        None => format!("Cannot {call} '{path}': {error}"),
    }
}

/// Text for an error of [`Backend::write`].
pub fn write_error_text(error: &io::Error, path: &Path) -> String {
    match error_code(error) {
        Some("ENOSPC" | "EDQUOT" | "EFBIG" | "EIO") => {
            let text = error_text(error, "write", path);
            format!("{text}. The file is as it was before.")
        }
        _ => error_text(error, "open", path),
    }
}

type KnownError = (i32, &'static str, &'static str);

fn known_error(error: &io::Error) -> Option<KnownError> {
    use io::ErrorKind;
    // Backends that are not this machine have kinds only.
    let number = error.raw_os_error().or(match error.kind() {
        _ if error.get_ref().is_some() => None,
        ErrorKind::NotFound => Some(libc::ENOENT),
        ErrorKind::PermissionDenied => Some(libc::EACCES),
        ErrorKind::IsADirectory => Some(libc::EISDIR),
        ErrorKind::NotADirectory => Some(libc::ENOTDIR),
        ErrorKind::AlreadyExists => Some(libc::EEXIST),
        ErrorKind::StorageFull => Some(libc::ENOSPC),
        ErrorKind::ReadOnlyFilesystem => Some(libc::EROFS),
        _ => None,
    })?;
    KNOWN_ERRORS.iter().find(|known| known.0 == number).copied()
}

/// Texts of Node's errors, which the reference shows.
const KNOWN_ERRORS: &[KnownError] = &[
    (libc::ENOENT, "ENOENT", "no such file or directory"),
    (libc::EACCES, "EACCES", "permission denied"),
    (libc::EPERM, "EPERM", "operation not permitted"),
    (libc::EISDIR, "EISDIR", "illegal operation on a directory"),
    (libc::ENOTDIR, "ENOTDIR", "not a directory"),
    (libc::EEXIST, "EEXIST", "file already exists"),
    (libc::ENOSPC, "ENOSPC", "no space left on device"),
    (libc::EDQUOT, "EDQUOT", "disk quota exceeded"),
    (libc::EFBIG, "EFBIG", "file too large"),
    (libc::EROFS, "EROFS", "read-only file system"),
    (libc::ELOOP, "ELOOP", "too many symbolic links encountered"),
    (libc::ENAMETOOLONG, "ENAMETOOLONG", "name too long"),
    (libc::EMFILE, "EMFILE", "too many open files"),
    (libc::ENFILE, "ENFILE", "file table overflow"),
    (libc::EBUSY, "EBUSY", "resource busy or locked"),
    (libc::ETXTBSY, "ETXTBSY", "text file is busy"),
    (libc::EIO, "EIO", "i/o error"),
];
