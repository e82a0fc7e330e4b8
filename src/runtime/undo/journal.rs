//! The journal of file changes beside a session, with the earlier contents of the files.
//!
//! `journal` has a JSON line for each change and each undo; without the ending `.jsonl` it is not taken for a
//! session. `00000001.before` holds the content before change 1. Only the owner can read these files. A line
//! that cannot be parsed is skipped.

use crate::base::failpoint;
use crate::base::file;
use crate::base::hex::hex;
use crate::base::time;
use crate::llm::message::now_ms;
use crate::session::beside;
use crate::tools::{Change, Changes};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a file whose content is kept, in bytes.
const FILE_MAX: u64 = 16 << 20;
/// Maximum size of a journal, in bytes.
const JOURNAL_MAX: u64 = 256 << 20;
/// Maximum size of all kept contents of a session, in bytes.
const TOTAL_MAX: u64 = 128 << 20;

/// A change of one file by a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub number: u64,
    /// When the change was made, in ISO 8601.
    pub time: String,
    pub tool: String,
    pub call: String,
    /// The file's absolute path, with all links resolved.
    pub path: PathBuf,
    pub before: State,
    /// SHA-256 of the new content, in hexadecimal.
    pub after: String,
    /// Why the earlier content was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// Folders that were created for the file, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

/// The state of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Missing,
    File {
        sha256: String,
        mode: Option<u32>,
    },
    /// Neither missing nor a regular file; the text describes what is there.
    Other(String),
}

impl State {
    pub const LINK: &str = "a symbolic link";

    pub fn of(path: &Path) -> Self {
        let there = match fs::symlink_metadata(path) {
            Err(error) if is_missing(&error) => return Self::Missing,
            Err(error) => return Self::Other(format!("something that cannot be read ({error})")),
            Ok(there) => there,
        };
        if there.is_symlink() {
            return Self::Other(Self::LINK.into());
        }
        if !there.is_file() {
            return Self::Other("no file".into());
        }
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        match options.open(path).and_then(hash_of) {
            Ok(sha256) => Self::File { sha256, mode: Some(there.permissions().mode() & 0o7777) },
            Err(error) => Self::Other(format!("a file that cannot be read ({error})")),
        }
    }

    /// Returns the SHA-256 of a file's content; `None` if there is no regular file.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::File { sha256, .. } => Some(sha256),
            _ => None,
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Line {
    Change(Step),
    /// The announced change was not made.
    Withdrawn {
        number: u64,
    },
    Undone {
        numbers: Vec<u64>,
    },
}

/// The journal of one session.
pub struct Journal {
    folder: Mutex<PathBuf>,
    state: Mutex<Option<Written>>,
}

/// Sizes and numbers of the contents in the journal's folder.
struct Written {
    next: u64,
    bytes: u64,
    /// Number and size in bytes of each kept content, oldest first.
    kept: std::collections::VecDeque<(u64, u64)>,
}

impl Journal {
    pub fn new(session_file: &Path) -> Self {
        Self { folder: Mutex::new(beside::undo(session_file)), state: Mutex::new(None) }
    }

    fn folder(&self) -> io::Result<PathBuf> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        beside::refuse_link(&folder).map(|()| folder)
    }

    /// Returns the changes that can be undone, oldest first.
    pub fn steps(&self) -> io::Result<Vec<Step>> {
        let mut steps = Vec::new();
        let mut gone = HashSet::new();
        for line in self.lines()? {
            match line {
                Line::Change(step) => steps.push(step),
                Line::Withdrawn { number } => gone.extend([number]),
                Line::Undone { numbers } => gone.extend(numbers),
            }
        }
        steps.retain(|step: &Step| !gone.contains(&step.number));
        Ok(steps)
    }

    fn lines(&self) -> io::Result<Vec<Line>> {
        let bytes = match read(&self.folder()?.join("journal"), JOURNAL_MAX) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            read => read?,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Returns the content of a file before the change `step`, or why it is not available.
    pub fn content(&self, step: &Step) -> Result<Vec<u8>, String> {
        if let Some(why) = &step.not_kept {
            return Err(format!("its earlier content was not kept: {why}"));
        }
        let content = self
            .folder()
            .and_then(|folder| read(&content_path(&folder, step.number), FILE_MAX))
            .map_err(|error| format!("its earlier content is not kept any more ({error})"))?;
        match step.before.content() {
            Some(expected) if expected == hash(&content) => Ok(content),
            _ => Err("its kept content is damaged".into()),
        }
    }

    pub(super) fn mark_undone(&self, numbers: &[u64]) -> io::Result<()> {
        self.append(&Line::Undone { numbers: numbers.to_vec() })
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let mut options = OpenOptions::new();
        let path = self.folder()?.join("journal");
        options.append(true).create(true).mode(0o600).read(true).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(path)?;
        // A new line begins after one that was cut off.
        if !ends_in_newline(&file)? {
            bytes.insert(0, b'\n');
        }
        write(&mut file, &bytes)
    }

    fn keep(&self, change: &Change<'_>) -> io::Result<u64> {
        let folder = self.folder()?;
        file::make_private_folder(&folder)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match &mut *state {
            Some(state) => state,
            none => none.insert(self.load(&folder)?),
        };
        let number = state.next;
        let mut not_kept = None;
        let before = match before(change)? {
            None => State::Missing,
            Some(Content::TooLarge) => {
                not_kept = Some(format!("the file is larger than {} MB", FILE_MAX >> 20));
                // The hash is not needed: the earlier content cannot be restored.
                State::File { sha256: String::new(), mode: None }
            }
            Some(Content::Whole(content)) => {
                state.make_room(&folder, content.len() as u64);
                let path = content_path(&folder, number);
                let written = write_new(&path, &content);
                match written {
                    Ok(()) => {
                        state.bytes += content.len() as u64;
                        state.kept.push_back((number, content.len() as u64));
                    }
                    Err(error) => {
                        let _ = fs::remove_file(&path);
                        not_kept = Some(error.to_string());
                    }
                }
                let mode = fs::metadata(change.path).ok();
                State::File {
                    sha256: hash(&content),
                    mode: mode.map(|there| there.permissions().mode() & 0o7777),
                }
            }
        };
        let step = Step {
            number,
            time: time::iso(now_ms()),
            tool: change.tool.to_owned(),
            call: change.call.to_owned(),
            path: change.path.to_owned(),
            before,
            after: hash(change.content),
            not_kept,
            folders: missing_folders(change.path),
        };
        self.append(&Line::Change(step)).inspect_err(|_| {
            let _ = fs::remove_file(content_path(&folder, number));
        })?;
        state.next += 1;
        Ok(number)
    }

    fn load(&self, folder: &Path) -> io::Result<Written> {
        let numbers = self.lines()?.into_iter().map(|line| match line {
            Line::Change(step) => step.number,
            Line::Withdrawn { .. } | Line::Undone { .. } => 0,
        });
        let last = numbers.max().unwrap_or(0);
        let mut kept: Vec<(u64, u64)> = fs::read_dir(folder)?
            .flatten()
            .filter_map(|file| {
                let name = file.file_name();
                let number = name.to_str()?.strip_suffix(".before")?.parse().ok()?;
                Some((number, file.metadata().ok()?.len()))
            })
            .collect();
        kept.sort_unstable();
        let last = kept.last().map_or(last, |(number, _)| last.max(*number));
        Ok(Written { next: last + 1, bytes: kept.iter().map(|(_, bytes)| bytes).sum(), kept: kept.into() })
    }
}

impl Written {
    /// Removes the oldest contents until `bytes` more fit into the limit.
    fn make_room(&mut self, folder: &Path, bytes: u64) {
        while self.bytes + bytes > TOTAL_MAX
            && let Some((number, size)) = self.kept.pop_front()
        {
            let _ = fs::remove_file(content_path(folder, number));
            self.bytes = self.bytes.saturating_sub(size);
        }
    }
}

impl Changes for Journal {
    fn before(&self, change: &Change<'_>) -> Option<u64> {
        // A change that cannot be recorded is still made, but cannot be undone.
        self.keep(change).ok()
    }

    fn withdraw(&self, number: u64) {
        let _ = self.append(&Line::Withdrawn { number });
        if let Ok(folder) = self.folder() {
            let _ = fs::remove_file(content_path(&folder, number));
        }
    }

    fn follow(&self, session_file: &Path) {
        let new = beside::undo(session_file);
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if *folder != new {
            *folder = new;
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

enum Content {
    Whole(Vec<u8>),
    TooLarge,
}

/// Reads the file's current content; `None` if there is no file.
fn before(change: &Change<'_>) -> io::Result<Option<Content>> {
    let source = match change.backend.open(change.path) {
        Err(error) if is_missing(&error) => return Ok(None),
        opened => opened?,
    };
    let mut content = Vec::new();
    source.take(FILE_MAX + 1).read_to_end(&mut content)?;
    Ok(Some(if content.len() as u64 > FILE_MAX { Content::TooLarge } else { Content::Whole(content) }))
}

/// Returns the missing folders above `path`, the innermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1);
    let missing = folders.take_while(|folder| folder.symlink_metadata().is_err());
    missing.map(Path::to_owned).collect()
}

fn content_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.before"))
}

/// Reads a regular file without following a link. A file larger than `bytes_max` is an error.
fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    file::read_open(file::open_real(path)?, bytes_max)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    write(&mut file::create_private(path)?, content)
}

fn write(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    failpoint::hit("undo.write")?;
    let (first, rest) = bytes.split_at(failpoint::cut("undo.torn", bytes.len()));
    file.write_all(first)?;
    failpoint::hit("undo.torn")?;
    file.write_all(rest)
}

fn ends_in_newline(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if let Some(at) = size.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    Ok(last == *b"\n")
}

/// Returns the SHA-256 in hexadecimal.
pub(super) fn hash(content: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, content).as_ref())
}

fn hash_of(mut file: File) -> io::Result<String> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            read => context.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}
