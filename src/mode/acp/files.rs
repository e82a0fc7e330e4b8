//! Accesses files of the session's folder through the editor, if it supports that: tools read unsaved text,
//! and their changes appear in the editor.
//!
//! The editor handles only text in its open folder. So other content, very long files, files outside of the
//! folder, and tools that walk many files (`grep`, `find`, `ls`) use the disk, as do folders, links and
//! commands. A refused read falls back to the disk; a refused write is the call's error. With a sandbox the
//! editor is not asked to write: it runs outside, and a link may have changed by the time it writes.

use super::peer::Peer;
use super::terminal::{Drawn, Terminal};
use crate::base::json::json;
use crate::jsonrpc::message::METHOD_NOT_FOUND;
use crate::runtime::CancelToken;
use crate::runtime::backend::{Backend, Child, DirEntry, Kind, ShellCommand, Source, Stat};
use crate::runtime::control::{Control, WeakControl};
use crate::runtime::sandbox::Sandbox;
use serde_json::Value;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Maximum size of a file that is requested from the editor; longer ones are read from disk.
const TEXT_MAX: u64 = 10 << 20;
/// Time limit for a response of the editor.
const LIMIT: Duration = Duration::from_secs(30);

/// The editor's files for the tools of a session.
pub struct Files {
    peer: Peer,
    /// The session's id and handle, once it is open.
    session: OnceLock<(String, WeakControl)>,
    /// The session's folders, by their real paths.
    folders: Mutex<Vec<PathBuf>>,
    /// Calls that the editor draws.
    pub drawn: Drawn,
}

impl Files {
    pub fn new(peer: Peer) -> Self {
        Self { peer, session: OnceLock::new(), folders: Mutex::default(), drawn: Drawn::default() }
    }

    /// Sets the session.
    pub fn serve(&self, id: String, control: &Control) {
        let _ = self.session.set((id, control.downgrade()));
    }

    /// Sets the folders of the session, by their real paths.
    pub fn set_folders(&self, folders: Vec<PathBuf>) {
        *self.folders() = folders;
    }

    fn folders(&self) -> MutexGuard<'_, Vec<PathBuf>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A backend that uses the editor first and `below` as a fallback.
    pub fn over(self: Arc<Self>, below: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(EditorBackend { files: self, below })
    }

    /// Cancels waits for the editor: whatever has begun the run, its end is the editor's wish.
    fn cancel(&self) -> CancelToken {
        let control = self.session.get().and_then(|(_, control)| control.upgrade());
        control.map(|control| control.run_token()).unwrap_or_default()
    }

    /// Sends a request to the editor. `None` if the method is not supported.
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

/// A backend with the editor's files in front of another backend.
struct EditorBackend {
    files: Arc<Files>,
    below: Arc<dyn Backend>,
}

impl EditorBackend {
    /// The session's id, if `path` is in one of its folders.
    fn session(&self, path: &Path) -> Option<&str> {
        let (id, _) = self.files.session.get()?;
        let real = self.below.canonical(path).ok()?;
        self.files.folders().iter().any(|folder| real.starts_with(folder)).then_some(id)
    }

    /// True if the editor should write files.
    fn writes(&self) -> bool {
        self.files.peer.capabilities().writes && self.below.sandbox().is_none()
    }

    /// The editor's text of a file with the bytes `on_disk`; `None` if the editor does not provide it.
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

    /// Asks the editor to write a file. False if it does not.
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

    /// Runs the command of a tool call in a terminal of the editor, if it has some: not in a sandbox, which the editor
    /// is outside of, and not what needs an input.
    fn spawn(&self, command: &ShellCommand) -> io::Result<Box<dyn Child>> {
        let Files { peer, session, drawn, .. } = &*self.files;
        if let Some((id, _)) = session.get()
            && peer.capabilities().terminals
            && self.below.sandbox().is_none()
            && command.input.is_none()
            && drawn.is_announced(&command.call)
            && let Some(terminal) = Terminal::start(peer, id, command, &self.files.cancel())?
        {
            drawn.add(&command.call);
            let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": command.call,
                "content": [terminal.content()]});
            peer.update(id, &update);
            return Ok(Box::new(terminal));
        }
        self.below.spawn(command)
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.below.sandbox()
    }
}
