//! Files of the session's folder through the editor, where it offers that: what is typed there and not
//! yet saved is what tools read, and what they write appears there.
//!
//! The editor speaks of text only, and knows the folder it has open. So bytes that are no plain text,
//! very long files, those outside of the folder, and what walks over many files (`grep`, `find`, `ls`)
//! stay with the disk, as do folders, links and commands. A refusal to read falls back to the disk; a
//! refusal to write is the call's error. With a sandbox the editor is not asked to write: it is outside, and
//! a path may lead elsewhere by the time it gets there.

use super::peer::Peer;
use crate::jsonrpc::message::METHOD_NOT_FOUND;
use crate::runtime::CancelToken;
use crate::runtime::backend::{Backend, Child, DirEntry, Kind, ShellCommand, Source, Stat};
use crate::runtime::sandbox::Sandbox;
use serde_json::{Value, json};
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Bytes that a file may have to be asked for; longer ones come from the disk.
const TEXT_MAX: u64 = 10 << 20;
/// How long the editor may take for an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// The editor as a session's tools use it.
pub struct Files {
    peer: Peer,
    /// The session's folder and id, once it is open.
    session: OnceLock<(PathBuf, String)>,
    /// Cancels the prompt that is being answered.
    cancel: Mutex<CancelToken>,
}

impl Files {
    pub fn new(peer: Peer) -> Self {
        Self { peer, session: OnceLock::new(), cancel: Mutex::default() }
    }

    /// Names the session whose files are meant.
    pub fn serve(&self, cwd: PathBuf, id: String) {
        let _ = self.session.set((cwd, id));
    }

    /// Sets what ends a wait for the editor, from now on.
    pub fn begin(&self, cancel: CancelToken) {
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = cancel;
    }

    /// A backend that asks the editor first and `below` otherwise.
    pub fn over(self: Arc<Self>, below: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(EditorBackend { files: self, below })
    }

    fn cancel(&self) -> CancelToken {
        let cancel = self.cancel.lock();
        cancel.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request to the editor. `None` when it does not know the method.
    fn ask(&self, method: &str, fields: &Value) -> io::Result<Option<Value>> {
        let cancel = self.cancel();
        match self.peer.ask(method, fields, &cancel, Some(LIMIT)) {
            Some(Ok(answer)) => Ok(Some(answer)),
            Some(Err(failure)) if failure.code == METHOD_NOT_FOUND => Ok(None),
            Some(Err(failure)) => {
                Err(io::Error::other(format!("the editor refused it: {}", failure.message)))
            }
            None if cancel.is_cancelled() => Err(io::Error::other("Operation aborted")),
            None => Err(io::Error::other(format!("the editor did not answer within {LIMIT:?}"))),
        }
    }
}

/// The files of the editor before those of another backend.
struct EditorBackend {
    files: Arc<Files>,
    below: Arc<dyn Backend>,
}

impl EditorBackend {
    /// The session's id, for a path in its folder.
    fn session(&self, path: &Path) -> Option<&str> {
        let (cwd, id) = self.files.session.get()?;
        let real = self.below.canonical(path).ok()?;
        real.starts_with(cwd).then_some(id)
    }

    /// True if the editor is asked to write.
    fn writes(&self) -> bool {
        self.files.peer.capabilities().writes && self.below.sandbox().is_none()
    }

    /// The editor's text of a file that has the bytes `on_disk`; none when the editor does not give it.
    fn text(&self, path: &Path, on_disk: &[u8]) -> io::Result<Option<String>> {
        let plain = std::str::from_utf8(on_disk).is_ok_and(|text| !text.starts_with('\u{feff}'))
            && !on_disk.contains(&0);
        // An editor may tell lines in a form of its own: only its own writing brings the file's back.
        let comes_back = self.writes() || !on_disk.contains(&b'\r');
        if !self.files.peer.capabilities().reads || !plain || !comes_back {
            return Ok(None);
        }
        let Some(session) = self.session(path) else {
            return Ok(None);
        };
        let fields = json!({"sessionId": session, "path": path.to_string_lossy()});
        let answer = match self.files.ask("fs/read_text_file", &fields) {
            Err(error) if self.files.cancel().is_cancelled() => return Err(error),
            answer => answer.ok().flatten(),
        };
        Ok(answer.and_then(|answer| Some(answer.get("content")?.as_str()?.to_owned())))
    }

    /// Lets the editor write a file. False when it does not.
    fn write_there(&self, path: &Path, content: &[u8]) -> io::Result<bool> {
        let Ok(text) = std::str::from_utf8(content) else {
            return Ok(false);
        };
        let is_file = match self.below.stat(path) {
            Ok(stat) => stat.kind == Kind::File,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !self.writes() || !is_file {
            return Ok(false);
        }
        let Some(session) = self.session(path) else {
            return Ok(false);
        };
        let fields = json!({"sessionId": session, "path": path.to_string_lossy(), "content": text});
        let answer = self.files.ask("fs/write_text_file", &fields)?;
        Ok(answer.is_some())
    }
}

impl Backend for EditorBackend {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        let mut source = self.below.open(path)?;
        if !self.files.peer.capabilities().reads {
            return Ok(source);
        }
        let mut on_disk = Vec::new();
        source.by_ref().take(TEXT_MAX + 1).read_to_end(&mut on_disk)?;
        if on_disk.len() as u64 <= TEXT_MAX
            && let Some(text) = self.text(path, &on_disk)?
        {
            return Ok(Box::new(Cursor::new(text.into_bytes())));
        }
        source.rewind()?;
        Ok(source)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match self.write_there(path, content)? {
            true => Ok(()),
            false => self.below.write(path, content),
        }
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.below.stat(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.below.list(path)
    }

    fn each_entry(&self, path: &Path, visit: &mut dyn FnMut(DirEntry) -> ControlFlow<()>) -> io::Result<()> {
        self.below.each_entry(path, visit)
    }

    fn open_listed(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        self.below.open_listed(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.below.create_dir_all(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.canonical(path)
    }

    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        self.below.spawn(command)
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.below.sandbox()
    }
}
