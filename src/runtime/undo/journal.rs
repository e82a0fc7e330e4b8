//! The journal of file changes beside a session, with the earlier contents of the files.
//!
//! `journal` has a JSON line for each change and each undo, and for begin and end of each command; without the ending `.jsonl` it is not taken for a
//! session. `00000001.before` holds the content before change 1. Only the owner can read these files. A line
//! that cannot be parsed is skipped.

use super::state::{State, is_missing};
use super::watch::{Changed, Thing, Watch};
use crate::base::cancel::CancelToken;
use crate::base::failpoint;
use crate::base::file;
use crate::base::hex::hex;
use crate::base::json;
use crate::base::order::Order;
use crate::base::time;
use crate::llm::message::now_ms;
use crate::session::beside;
use crate::tools::{Change, Changes};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// SHA-256 of the new content, in hexadecimal; empty if there is none.
    pub after: String,
    /// What a command left at the path. `None` for the tools that write files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<State>,
    /// Why the earlier content was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// Folders that were created for the file, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
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
    /// A command begins. What it changes follows, and then its end.
    Command {
        number: u64,
        time: String,
        tool: String,
        call: String,
    },
    Ended {
        number: u64,
        /// Why it is not known what the command changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unseen: Option<String>,
    },
}

/// A command whose changes are not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Unseen {
    pub number: u64,
    /// When it began, in ISO 8601.
    pub time: String,
    pub tool: String,
    pub why: String,
}

/// The journal of one session.
pub struct Journal {
    folder: Mutex<PathBuf>,
    state: Mutex<Option<Written>>,
    watch: Option<Arc<Watch>>,
    /// New contents of files that tools wrote while commands ran, by the hash.
    meanwhile: Mutex<HashMap<PathBuf, String>>,
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
        Self::watching(session_file, None)
    }

    /// A journal that records what commands change in the watched folder, too.
    pub fn watching(session_file: &Path, watch: Option<Arc<Watch>>) -> Self {
        let folder = Mutex::new(beside::undo(session_file));
        Self { folder, state: Mutex::new(None), watch, meanwhile: Mutex::default() }
    }

    /// True if the session's file is there.
    fn has_session(&self) -> bool {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).with_extension("jsonl").exists()
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
                Line::Command { .. } | Line::Ended { .. } => {}
            }
        }
        steps.retain(|step: &Step| !gone.contains(&step.number));
        Ok(steps)
    }

    /// Returns the commands whose changes are not known, oldest first.
    pub fn unseen(&self) -> io::Result<Vec<Unseen>> {
        let mut all: Vec<Unseen> = Vec::new();
        for line in self.lines()? {
            match line {
                Line::Command { number, time, tool, .. } => {
                    let why = "pi ended while it ran".to_owned();
                    all.push(Unseen { number, time, tool, why });
                }
                Line::Ended { number, unseen } => {
                    let begun = all.iter().rposition(|command| command.number == number);
                    match (begun, unseen) {
                        (Some(at), Some(why)) => all[at].why = why,
                        (Some(at), None) => drop(all.remove(at)),
                        (None, _) => {}
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }

    fn lines(&self) -> io::Result<Vec<Line>> {
        let bytes = match read(&self.folder()?.join("journal"), JOURNAL_MAX) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            read => read?,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| json::parse(line).ok()).collect())
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
        self.append_all(std::slice::from_ref(line))
    }

    fn append_all(&self, lines: &[Line]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
        }
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

    /// Runs `work` with the folder and what is in it; the folder is created if missing.
    fn with<T>(&self, work: impl FnOnce(&Path, &mut Written) -> io::Result<T>) -> io::Result<T> {
        let folder = self.folder()?;
        file::make_private_folder(&folder)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            Some(state) => work(&folder, state),
            none => {
                let state = self.load(&folder)?;
                work(&folder, none.insert(state))
            }
        }
    }

    fn keep(&self, change: &Change<'_>) -> io::Result<u64> {
        self.with(|folder, state| self.keep_in(change, folder, state))
    }

    fn keep_in(&self, change: &Change<'_>, folder: &Path, state: &mut Written) -> io::Result<u64> {
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
                not_kept = state.keep(folder, number, &content).err();
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
            left: None,
            not_kept,
            folders: missing_folders(change.path),
        };
        self.append(&Line::Change(step)).inspect_err(|_| {
            let _ = fs::remove_file(content_path(folder, number));
        })?;
        state.next += 1;
        if self.watch.is_some() {
            let mut meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner);
            meanwhile.insert(change.path.to_owned(), hash(change.content));
        }
        Ok(number)
    }

    /// Records the beginning of a command, whose changes are known from then on if there is no reason against.
    fn begin_command(&self, tool: &str, call: &str, unseen: Option<String>) -> io::Result<u64> {
        self.with(|_, state| {
            let number = state.next;
            let (tool, call) = (tool.to_owned(), call.to_owned());
            let mut lines = vec![Line::Command { number, time: time::iso(now_ms()), tool, call }];
            if unseen.is_some() {
                lines.push(Line::Ended { number, unseen });
            }
            self.append_all(&lines)?;
            state.next += 1;
            Ok(number)
        })
    }

    /// Records what a command has changed.
    fn end_command(
        &self,
        (tool, call, number): (&str, &str, u64),
        changed: Vec<Changed>,
        content: &dyn Fn(&[u8; 32]) -> io::Result<Vec<u8>>,
        root: &Path,
    ) -> io::Result<()> {
        if number == 0 && changed.is_empty() {
            return Ok(());
        }
        let meanwhile = std::mem::take(&mut *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner));
        let time = time::iso(now_ms());
        self.with(|folder, state| {
            let mut lines = Vec::new();
            for Changed { path, before, after } in changed {
                let path = root.join(path);
                let after_hash = match &after {
                    Some(Thing::File { hash: Some(hash), .. }) => hex(hash),
                    _ => String::new(),
                };
                // The tool that wrote it has recorded it.
                if meanwhile.get(&path).is_some_and(|written| *written == after_hash) {
                    continue;
                }
                let number = state.next;
                state.next += 1;
                let not_kept = match &before {
                    Some(Thing::File { hash: Some(hash), .. }) => match content(hash) {
                        Ok(content) => state.keep(folder, number, &content).err(),
                        Err(error) => Some(error.to_string()),
                    },
                    Some(Thing::File { .. }) => Some("the file was too large, or not readable".to_owned()),
                    _ => None,
                };
                lines.push(Line::Change(Step {
                    number,
                    time: time.clone(),
                    tool: tool.to_owned(),
                    call: call.to_owned(),
                    path,
                    before: State::from(before),
                    after: after_hash,
                    left: Some(State::from(after)),
                    not_kept,
                    folders: Vec::new(),
                }));
            }
            lines.push(Line::Ended { number, unseen: None });
            failpoint::hit("undo.steps")?;
            self.append_all(&lines)
        })
    }

    fn load(&self, folder: &Path) -> io::Result<Written> {
        let numbers = self.lines()?.into_iter().map(|line| match line {
            Line::Change(step) => step.number,
            Line::Command { number, .. } => number,
            Line::Withdrawn { .. } | Line::Undone { .. } | Line::Ended { .. } => 0,
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
        kept.order();
        let last = kept.last().map_or(last, |(number, _)| last.max(*number));
        Ok(Written { next: last + 1, bytes: kept.iter().map(|(_, bytes)| bytes).sum(), kept: kept.into() })
    }
}

impl Written {
    /// Keeps the content before the change `number`. The error says why it was not kept.
    fn keep(&mut self, folder: &Path, number: u64, content: &[u8]) -> Result<(), String> {
        let bytes = content.len() as u64;
        self.make_room(folder, bytes);
        let path = content_path(folder, number);
        write_new(&path, content).map_err(|error| {
            let _ = fs::remove_file(&path);
            error.to_string()
        })?;
        self.bytes += bytes;
        self.kept.push_back((number, bytes));
        Ok(())
    }

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

    fn prepare(&self) {
        if let Some(watch) = &self.watch {
            watch.prepare();
        }
    }

    fn begin(&self, tool: &str, call: &str, cancel: &CancelToken) -> Option<u64> {
        let begun = self.watch.as_ref()?.begin(cancel);
        let is_seen = begun.is_ok();
        // A command of the user, in a session that may never be stored, leaves no trace without a change.
        if call.is_empty() && !self.has_session() {
            return is_seen.then_some(0);
        }
        let number = self.begin_command(tool, call, begun.err());
        // A command that cannot be recorded is run all the same. Its end is tried again.
        is_seen.then(|| number.unwrap_or(0))
    }

    fn end(&self, tool: &str, call: &str, number: u64) {
        let Some(watch) = &self.watch else { return };
        let keep = |changed: Vec<Changed>, content: &dyn Fn(&[u8; 32]) -> io::Result<Vec<u8>>| {
            let kept = self.end_command((tool, call, number), changed, content, watch.root());
            kept.map_err(|error| format!("it could not be recorded: {error}"))
        };
        if let Err(why) = watch.end(keep).and_then(|kept| kept) {
            let _ = self.append(&Line::Ended { number, unseen: Some(why) });
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
