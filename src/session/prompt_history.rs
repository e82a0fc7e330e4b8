//! The prompts that were typed in the terminal, in all sessions: one file of the agent folder, a line of JSON
//! each, the newest last.
//!
//! Several processes append. A line is a single write at the end of the file. A file that has become too long
//! is replaced by its last lines; the lock is held meanwhile, and who waited for it opens the new file.
//! Readers need no lock: they read from the end, as far as they need, what was there when they began.

use super::export::{Redactor, may_hold_secret};
use super::file::is_at;
use crate::base::file::{make_private_folder, open, replace};
use crate::base::json;
use crate::llm::message::now_ms;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Maximum number of prompts that stay when the file is shortened.
const PROMPTS_MAX: usize = 10_000;

/// The file is shortened when it has so many prompts more.
const PROMPTS_MORE: usize = 1000;

/// Size above which the file is shortened, and the size that stays, in bytes.
const BYTES_MAX: u64 = 16 << 20;
const BYTES_KEPT: usize = 12 << 20;

/// Longer prompts, in bytes, are left out.
const PROMPT_MAX: usize = 32 << 10;

/// Bytes that are read at once.
const CHUNK: u64 = 64 << 10;

/// A line of this length, in bytes, is none of this program's.
const LINE_MAX: usize = 1 << 20;

/// Attempts to take the lock, and the time between them. Without the lock a line is appended all the same.
const ATTEMPTS: usize = 40;
const BETWEEN: Duration = Duration::from_millis(5);

#[derive(Serialize, Deserialize)]
struct Row<'a> {
    /// In Unix milliseconds.
    #[serde(default)]
    timestamp: u64,
    #[serde(borrow)]
    cwd: Cow<'a, str>,
    #[serde(borrow)]
    prompt: Cow<'a, str>,
}

/// Returns the path of the file in the agent folder.
pub fn place(agent: &Path) -> PathBuf {
    agent.join("prompt-history.jsonl")
}

/// Appends the prompts of a process.
pub struct Writer {
    path: PathBuf,
    /// Lines in the file, once they were counted.
    lines: Option<usize>,
    redactor: Option<Redactor>,
}

impl Writer {
    pub fn new(path: PathBuf) -> Self {
        Self { path, lines: None, redactor: None }
    }

    /// Appends a prompt that was typed in `cwd`. Text in the form of a key is left out of it, and a long prompt
    /// is not kept at all.
    pub fn add(&mut self, cwd: &str, prompt: &str) -> io::Result<()> {
        if prompt.len() > PROMPT_MAX {
            return Ok(());
        }
        let prompt = self.without_secrets(prompt)?;
        let row = Row { timestamp: now_ms(), cwd: cwd.into(), prompt: prompt.into() };
        let mut line = serde_json::to_vec(&row)?;
        line.push(b'\n');
        if let Some(folder) = self.path.parent() {
            make_private_folder(folder)?;
        }
        let (mut file, is_locked) = self.locked()?;
        let size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_at(&mut last, size - 1)?;
        }
        // A write that was cut by a crash is fenced off.
        if last != *b"\n" {
            line.insert(0, b'\n');
        }
        if let Err(error) = file.write_all(&line) {
            if is_locked {
                let _ = file.set_len(size);
            }
            return Err(error);
        }
        let lines = match self.lines {
            Some(lines) => lines + 1,
            None => count_lines(&file, size + line.len() as u64)?,
        };
        self.lines = Some(lines);
        if is_locked && (lines > PROMPTS_MAX + PROMPTS_MORE || size > BYTES_MAX) {
            self.lines = Some(shorten(&self.path)?);
        }
        Ok(())
    }

    fn without_secrets(&mut self, prompt: &str) -> io::Result<String> {
        // The expressions take a while to make, and hardly any prompt needs them.
        if !may_hold_secret(prompt) {
            return Ok(prompt.to_owned());
        }
        let redactor = match self.redactor.take() {
            Some(redactor) => redactor,
            None => Redactor::new([]).map_err(io::Error::other)?,
        };
        Ok(self.redactor.insert(redactor).hide(prompt).into_owned())
    }

    /// Opens the file; true if it is locked, too.
    fn locked(&self) -> io::Result<(File, bool)> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = options.open(&self.path)?;
        for _ in 0..ATTEMPTS {
            match file.try_lock() {
                Ok(()) if is_at(&file, &self.path) => return Ok((file, true)),
                // Another process has replaced the file.
                Ok(()) => file = options.open(&self.path)?,
                // The system has no lock with a timeout.
                Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN),
                Err(TryLockError::Error(_)) => break,
            }
        }
        Ok((file, false))
    }
}

fn count_lines(file: &File, size: u64) -> io::Result<usize> {
    let mut lines = 0;
    let mut chunk = vec![0; CHUNK as usize];
    let mut at = 0;
    while at < size {
        let read = file.read_at(&mut chunk, at)?;
        if read == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', chunk.get(..read).unwrap_or_default()).count();
        at += read as u64;
    }
    Ok(lines)
}

/// Replaces the file by its last lines, and returns their number. The caller holds the lock.
fn shorten(path: &Path) -> io::Result<usize> {
    let bytes = crate::base::file::read(path, BYTES_MAX * 4)?;
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).collect();
    let mut first = ends.len().saturating_sub(PROMPTS_MAX);
    let start_of =
        |line: usize| line.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| end + 1);
    while first < ends.len() && bytes.len() - start_of(first) > BYTES_KEPT {
        first += 1;
    }
    replace(path, bytes.get(start_of(first)..).unwrap_or_default())?;
    Ok(ends.len() - first)
}

/// Earlier prompts, the newest first, each with whether it was typed in the given folder. The file is opened for
/// the first one.
pub struct Earlier {
    cwd: String,
    source: Source,
    /// Bytes that were read, without the prompts that were returned.
    rest: Vec<u8>,
    left: usize,
}

enum Source {
    Path(PathBuf),
    /// An open file, and the offset up to which it was not read.
    File(File, u64),
}

impl Earlier {
    pub fn new(path: PathBuf, cwd: &Path) -> Self {
        let cwd = cwd.to_string_lossy().into_owned();
        Self { cwd, source: Source::Path(path), rest: Vec::new(), left: PROMPTS_MAX + PROMPTS_MORE }
    }

    /// Returns the line before the last one; `None` at the beginning of the file.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Source::Path(path) = &self.source {
            let file = open(path)?;
            let size = file.metadata()?.len();
            self.source = Source::File(file, size);
        }
        let Source::File(file, at) = &mut self.source else { return Ok(None) };
        loop {
            if let Some(end) = memchr::memrchr(b'\n', &self.rest) {
                let line = self.rest.split_off(end + 1);
                self.rest.truncate(end);
                if !line.is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            if *at == 0 || self.rest.len() > LINE_MAX {
                *at = 0;
                return Ok(Some(std::mem::take(&mut self.rest)).filter(|line| !line.is_empty()));
            }
            let start = at.saturating_sub(CHUNK);
            let mut chunk = vec![0; (*at - start) as usize];
            file.read_exact_at(&mut chunk, start)?;
            chunk.append(&mut self.rest);
            self.rest = chunk;
            *at = start;
        }
    }
}

impl Iterator for Earlier {
    type Item = (bool, String);

    fn next(&mut self) -> Option<(bool, String)> {
        loop {
            self.left = self.left.checked_sub(1)?;
            // Without a history there is nothing to go back to, whatever the reason.
            let line = self.line().ok().flatten()?;
            if let Ok(row) = json::parse::<Row<'_>>(&line) {
                return Some((row.cwd == self.cwd, row.prompt.into_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::PermissionsExt;

    fn earlier(path: &Path) -> Vec<(bool, String)> {
        Earlier::new(path.to_owned(), Path::new("/here")).collect()
    }

    fn texts(path: &Path) -> Vec<String> {
        earlier(path).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn prompts_are_read_from_the_end() {
        let dir = TempDir::create();
        let path = place(dir.path());
        assert_eq!(earlier(&path), []);
        let mut writer = Writer::new(path.clone());
        // Longer than a chunk together, with line breaks and quotes inside.
        let long = format!("\"{}\n日本", "x".repeat(20_000));
        for (cwd, text) in [("/here", "one"), ("/there", &*long), ("/here", &*long), ("/there", &*long)] {
            writer.add(cwd, text).unwrap();
        }
        writer.add("/here", &"y".repeat(PROMPT_MAX + 1)).unwrap();
        let expected = [(false, &*long), (true, &*long), (false, &*long), (true, "one")];
        assert_eq!(earlier(&path), expected.map(|(is_here, text)| (is_here, text.to_owned())));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn damaged_lines_are_passed_over_and_a_torn_one_is_fenced() {
        let dir = TempDir::create();
        let path = dir.write(
            "prompt-history.jsonl",
            "\n{\"cwd\": 1}\n\njunk\n{\"cwd\":\"/here\",\"prompt\":\"a\"}\n{\"cw",
        );
        Writer::new(path.clone()).add("/here", "b").unwrap();
        assert_eq!(texts(&path), ["b", "a"]);
        let junk = dir.write("junk", "z".repeat(3 << 20));
        assert_eq!(earlier(&junk), []);
        assert_eq!(earlier(&dir.fifo("fifo")), []);
    }

    #[test]
    fn a_long_file_is_shortened() {
        let dir = TempDir::create();
        let path = place(dir.path());
        let mut rows: String = (0..PROMPTS_MAX + PROMPTS_MORE)
            .map(|number| format!("{{\"cwd\":\"/here\",\"prompt\":\"{number}\"}}\n"))
            .collect();
        rows.push_str("torn");
        std::fs::write(&path, rows).unwrap();
        let mut writer = Writer::new(path.clone());
        writer.add("/here", "new").unwrap();
        let texts = texts(&path);
        assert_eq!((texts.len(), &*texts[0], &*texts[1]), (PROMPTS_MAX - 1, "new", "10999"));
        writer.add("/here", "newer").unwrap();
        assert_eq!(earlier(&path)[0].1, "newer");
        let others: Vec<String> =
            dir.names().into_iter().filter(|name| name != "prompt-history.jsonl").collect();
        assert_eq!(others, [""; 0]);
    }

    #[test]
    fn keys_are_left_out() {
        let dir = TempDir::create();
        let path = place(dir.path());
        let key = format!("sk-ant-{}", "a1".repeat(20));
        for text in [format!("use {key} now"), "postgres://me:pass-word@host/db".to_owned()] {
            Writer::new(path.clone()).add("/here", &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap();
        assert!(!stored.contains(&key) && !stored.contains("pass-word"), "{stored}");
        assert!(texts(&path)[1].starts_with("use [redacted]"), "{stored}");
    }

    #[test]
    fn processes_do_not_lose_what_others_add() {
        let dir = TempDir::create();
        let path = place(dir.path());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = path.clone();
                scope.spawn(move || {
                    let mut own = Writer::new(path);
                    (0..50).for_each(|number| own.add("/here", &format!("{writer} {number}")).unwrap());
                });
            }
        });
        let mut texts = texts(&path);
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 200);
    }
}
