//! The row of a session in a list, from one pass over its file. Rows have the reference's fields.
//!
//! Lines are parsed only as far as a row needs. If a known file has only grown, reading continues at its old
//! end.

use super::entry::{self, Header};
use super::index::{Kind, line_kind};
use crate::base::time;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Stands in for the first message of a session without messages.
const NO_MESSAGES: &str = "(no messages)";
/// Maximum length of the first message, in bytes.
const FIRST_MESSAGE_MAX: usize = 4096;

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    pub path: PathBuf,
    pub id: String,
    /// The working folder; empty if the file does not name it.
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// When the session was created, in ISO 8601; `None` if the header has no valid time.
    pub created: Option<String>,
    /// Time of the last user or assistant message, in ISO 8601.
    pub modified: String,
    /// Number of messages of every role.
    pub message_count: u64,
    /// The first user message, cut to 4 kB.
    pub first_message: String,
}

impl Info {
    /// Orders by the time of the last message. A year past 9999 makes its text longer.
    pub fn by_activity(&self, other: &Self) -> std::cmp::Ordering {
        let (one, two) = (&self.modified, &other.modified);
        one.len().cmp(&two.len()).then_with(|| one.cmp(two))
    }
}

/// A session in a list, with the state that is needed to continue reading its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub info: Info,
    pub stamp: Stamp,
    /// Offset after the last newline-terminated line; 0 if the last line has no newline.
    end: u64,
    /// The header's line, to recognize the file.
    header: String,
    /// Time of the last message in Unix milliseconds.
    last_activity: Option<u64>,
}

/// Size, modification time and inode of a file. The file counts as unchanged while they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub size: u64,
    pub modified_ns: u64,
    pub inode: u64,
}

impl Stamp {
    pub fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = path.metadata()?;
        if !file.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let since = file.modified().ok();
        let since = since.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            size: file.len(),
            modified_ns: since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
            inode: file.ino(),
        })
    }
}

impl Row {
    /// Reads a session file; `None` if it is not a session. `known` is the row of an earlier read.
    pub fn read(path: &Path, stamp: Stamp, known: Option<Self>) -> Option<Self> {
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).ok()?);
        if let Some(row) = known
            && row.stamp.inode == stamp.inode
            && row.stamp.size < stamp.size
            && let Some(row) = row.go_on(&mut file, stamp)
        {
            return Some(row);
        }
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut line = Vec::new();
        let mut end = 0;
        let header = loop {
            line.clear();
            let read = (&mut file).take(HEADER_MAX).read_until(b'\n', &mut line);
            match read.ok()? {
                0 => return None,
                read => end += read as u64,
            }
            let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if let Ok(header) = entry::read::<Header>(text) {
                break header;
            }
            // Blank and damaged lines may precede the header, other JSON values not.
            if entry::read::<serde::de::IgnoredAny>(text).is_ok() {
                return None;
            }
        };
        let created = time::parse_iso(&header.timestamp).map(time::iso);
        let mut row = Self {
            info: Info {
                path: path.to_owned(),
                id: header.id,
                cwd: header.cwd,
                name: None,
                parent_session_path: header.parent_session,
                created,
                modified: String::new(),
                message_count: 0,
                first_message: String::new(),
            },
            stamp,
            end,
            header: String::from_utf8_lossy(&line).into_owned(),
            last_activity: None,
        };
        row.rest(&mut file)?;
        Some(row)
    }

    /// Reads lines that were added since; `None` if the file has been replaced.
    fn go_on(mut self, file: &mut BufReader<File>, stamp: Stamp) -> Option<Self> {
        let mut start = vec![0; self.header.len()];
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_exact(&mut start).ok()?;
        let mut last = [0];
        file.seek(SeekFrom::Start(self.end.checked_sub(1)?)).ok()?;
        file.read_exact(&mut last).ok()?;
        if start != self.header.as_bytes() || last != *b"\n" {
            return None;
        }
        self.stamp = stamp;
        self.rest(file)?;
        Some(self)
    }

    fn rest(&mut self, file: &mut BufReader<File>) -> Option<()> {
        let mut line = Vec::new();
        if self.info.first_message == NO_MESSAGES {
            self.info.first_message.clear();
        }
        loop {
            line.clear();
            let read = file.read_until(b'\n', &mut line).ok()?;
            if read == 0 {
                break;
            }
            self.line(&line);
            // A last line without a newline counts, too. If it grows, its content changes, so the whole file
            // is then read again.
            self.end = match line.last() {
                Some(b'\n') => self.end + read as u64,
                _ => 0,
            };
        }
        self.finish();
        Some(())
    }

    fn finish(&mut self) {
        let info = &mut self.info;
        let activity = self.last_activity.filter(|ms| *ms > 0).map(time::iso);
        info.modified = activity
            .or_else(|| info.created.clone())
            .unwrap_or_else(|| time::iso(self.stamp.modified_ns / 1_000_000));
        if info.first_message.is_empty() {
            info.first_message = NO_MESSAGES.to_owned();
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        match line_kind(line) {
            Some(Kind::SessionInfo) => {
                let entry: Option<Value> = entry::read(line).ok();
                let name = entry.as_ref().and_then(|entry| entry["name"].as_str());
                let name = name.map(str::trim).filter(|name| !name.is_empty());
                self.info.name = name.map(str::to_owned);
            }
            Some(kind @ (Kind::User | Kind::Assistant)) => {
                let wanted = kind == Kind::User && self.info.first_message.is_empty();
                let Some(said) = Spoken::read(line, wanted) else {
                    return;
                };
                self.info.message_count += 1;
                self.last_activity = self.last_activity.max(said.time);
                if wanted && let Some(text) = said.text {
                    self.info.first_message = shortened(text);
                }
            }
            Some(kind) if kind.is_message() => self.info.message_count += 1,
            _ => {}
        }
    }
}

/// Maximum length of a line that is searched for a header, in bytes.
const HEADER_MAX: u64 = 1 << 20;

/// Text and time of a user or assistant message.
pub(super) struct Spoken {
    pub text: Option<String>,
    time: Option<u64>,
}

impl Spoken {
    /// Parses the line of a message; `None` if it is unreadable. The text is read only if `with_text` is set.
    pub fn read(line: &[u8], with_text: bool) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow, default)]
            timestamp: Option<&'a RawValue>,
            #[serde(borrow)]
            message: Message<'a>,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow, default)]
            content: Option<&'a RawValue>,
            #[serde(borrow, default)]
            timestamp: Option<&'a RawValue>,
        }
        let repaired;
        let parsed: Line<'_> = match serde_json::from_slice(line) {
            Ok(parsed) => parsed,
            Err(_) => {
                repaired = serde_json::to_vec(&entry::read::<Value>(line).ok()?).ok()?;
                serde_json::from_slice(&repaired).ok()?
            }
        };
        let time = parsed.message.timestamp.and_then(|time| {
            let ms: f64 = time.get().parse().ok()?;
            // A time before 1970 counts as no time.
            Some(ms.max(0.0) as u64)
        });
        let time = time.or_else(|| {
            let time: String = serde_json::from_str(parsed.timestamp?.get()).ok()?;
            time::parse_iso(&time)
        });
        let Some(content) = parsed.message.content else {
            return Some(Self { text: None, time: None });
        };
        let text = with_text.then(|| text_of(content.get())).flatten();
        Some(Self { text, time })
    }
}

/// Returns the text of a message's content; `None` if there is none.
fn text_of(content: &str) -> Option<String> {
    let text = match entry::read::<Value>(content.as_bytes()).ok()? {
        Value::String(text) => text,
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
            texts.join(" ")
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn shortened(mut text: String) -> String {
    if text.len() > FIRST_MESSAGE_MAX {
        text.truncate(boundary_before(&text, FIRST_MESSAGE_MAX));
        text.shrink_to_fit();
    }
    text
}

/// Returns the last character boundary at or before `at`.
pub(super) fn boundary_before(text: &str, at: usize) -> usize {
    let mut places = (0..=at.min(text.len())).rev();
    places.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Calls `each` with the text of every user and assistant message, until it returns false.
pub fn each_text(path: &Path, mut each: impl FnMut(&str) -> bool) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_ascii();
        if matches!(line_kind(line), Some(Kind::User | Kind::Assistant))
            && let Some(text) = Spoken::read(line, true).and_then(|said| said.text)
            && !each(&text)
        {
            return Ok(());
        }
    }
}

/// Returns the text of all user and assistant messages, separated by spaces.
pub fn all_messages_text(path: &Path) -> io::Result<String> {
    let mut all = String::new();
    each_text(path, |text| {
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(text);
        true
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests;
