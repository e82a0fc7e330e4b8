//! The index of a session file: place, kind and parent of each entry, without its content.
//!
//! A line of this program or the reference begins with type, id, parent and time, and a message also with its
//! role. These are read from the line's first bytes; the rest is only searched for a sign that two lines were
//! joined. Any other line is parsed as JSON.
//!
//! A damaged line does not affect the entries around it. If its beginning is readable, it stays in the tree.
//! An entry whose parent is missing is attached to the last readable entry before the damage, or, if no line
//! is damaged, to the entry before it.

use super::entry::{self, Header, VERSION};
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// The kind of an entry, as far as the model's context depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    System,
    User,
    Assistant,
    ToolResult,
    OtherMessage,
    ModelChange,
    ThinkingLevelChange,
    Usage,
    Compaction,
    ContextEdit,
    BranchSummary,
    Custom,
    CustomMessage,
    Label,
    SessionInfo,
    Unknown,
    /// Only the beginning of the line is readable.
    Damaged,
}

impl Kind {
    pub fn new(kind: &str, role: Option<&str>) -> Self {
        match (kind, role) {
            ("message", Some("system")) => Self::System,
            ("message", Some("user")) => Self::User,
            ("message", Some("assistant")) => Self::Assistant,
            ("message", Some("toolResult")) => Self::ToolResult,
            ("message", _) => Self::OtherMessage,
            ("model_change", _) => Self::ModelChange,
            ("thinking_level_change", _) => Self::ThinkingLevelChange,
            ("usage", _) => Self::Usage,
            ("compaction", _) => Self::Compaction,
            ("context_edit", _) => Self::ContextEdit,
            ("branch_summary", _) => Self::BranchSummary,
            ("custom", _) => Self::Custom,
            ("custom_message", _) => Self::CustomMessage,
            ("label", _) => Self::Label,
            ("session_info", _) => Self::SessionInfo,
            _ => Self::Unknown,
        }
    }

    pub fn is_message(self) -> bool {
        matches!(self, Self::System | Self::User | Self::Assistant | Self::ToolResult | Self::OtherMessage)
    }
}

/// Place, kind and parent of an entry.
#[derive(Clone, Debug)]
pub struct Slot {
    pub id: Arc<str>,
    /// Position of the parent in [`Index::slots`].
    pub parent: Option<u32>,
    pub kind: Kind,
    /// Offset of the line in the file, in bytes.
    pub start: u64,
    /// Length of the line in bytes, without its newline.
    pub len: u64,
}

/// The entries of a session in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Index {
    pub slots: Vec<Slot>,
    by_id: HashMap<Arc<str>, u32>,
}

impl Index {
    pub fn find(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub fn get(&self, position: u32) -> Option<&Slot> {
        self.slots.get(position as usize)
    }

    pub fn push(&mut self, slot: Slot) -> u32 {
        let position = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.by_id.insert(slot.id.clone(), position);
        self.slots.push(slot);
        position
    }

    /// Returns the last readable entry.
    pub fn last_sound(&self) -> Option<u32> {
        let position = self.slots.iter().rposition(|slot| slot.kind != Kind::Damaged)?;
        u32::try_from(position).ok()
    }

    /// Returns the positions from the root to `leaf`. A cycle of parents ends the path.
    pub fn path(&self, leaf: Option<u32>) -> Vec<u32> {
        let mut seen = vec![false; self.slots.len()];
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(position) = next {
            let index = position as usize;
            let (Some(slot), Some(seen)) = (self.slots.get(index), seen.get_mut(index)) else {
                break;
            };
            if std::mem::replace(seen, true) {
                break;
            }
            path.push(position);
            next = slot.parent;
        }
        path.reverse();
        path
    }
}

/// The contents of a session file.
#[derive(Debug, Default)]
pub struct Scan {
    pub header: Option<Header>,
    /// True if the header was unreadable and had to be reconstructed.
    pub header_lost: bool,
    pub index: Index,
    /// Numbers of unreadable lines, from 1.
    pub damaged: Vec<usize>,
    /// Size of the file in bytes.
    pub size: u64,
    /// True if the file is not empty and does not end in a newline.
    pub torn: bool,
    /// True if the file contains more than whitespace.
    pub has_content: bool,
    /// Offset of the line after the header; 0 if the header is lost.
    pub header_end: u64,
}

/// Scans a file from its start. If the header is lost, `name` (the file's name) provides the id.
pub fn scan(mut file: impl Read, name: &str) -> io::Result<Scan> {
    const CHUNK: usize = 1 << 20;
    const HEADER_MAX: usize = 16 << 20;
    let mut scanner = Scanner::new(name);
    let mut buffer = Vec::new();
    loop {
        let kept = buffer.len();
        let read = (&mut file).take(CHUNK as u64).read_to_end(&mut buffer)?;
        if read == 0 {
            break;
        }
        let mut line_start = 0;
        for at in memchr::memchr_iter(b'\n', buffer.get(kept..).unwrap_or_default()) {
            let end = kept + at;
            scanner.line(buffer.get(line_start..end).unwrap_or_default());
            scanner.size += 1;
            line_start = end + 1;
        }
        buffer.drain(..line_start);
        if scanner.scan.header.is_none() && buffer.len() > HEADER_MAX {
            scanner.foreign = true;
        }
        if scanner.foreign {
            break;
        }
    }
    let torn = !buffer.is_empty();
    scanner.line(&buffer);
    Ok(scanner.finish(torn))
}

struct Scanner<'a> {
    name: &'a str,
    scan: Scan,
    line: usize,
    size: u64,
    parent_key: Finder<'static>,
    entry_start: Finder<'static>,
    orphans: Vec<Orphan>,
    last_sound: Option<u32>,
    /// The last readable entry before the latest damage.
    before_damage: Option<u32>,
    /// True if the first readable line is not a session header.
    foreign: bool,
}

/// An entry whose parent has not been read before it.
struct Orphan {
    position: u32,
    parent: Arc<str>,
    /// Position of the parent to use if the real parent does not follow either.
    stand_in: Option<u32>,
}

impl<'a> Scanner<'a> {
    fn new(name: &'a str) -> Self {
        Self {
            name,
            scan: Scan::default(),
            line: 0,
            size: 0,
            parent_key: Finder::new(b"\"parentId\":"),
            entry_start: Finder::new(b"{\"type\":\""),
            orphans: Vec::new(),
            last_sound: None,
            before_damage: None,
            foreign: false,
        }
    }

    /// Reads a line, without its newline.
    fn line(&mut self, bytes: &[u8]) {
        self.line += 1;
        let start = self.size;
        self.size += bytes.len() as u64;
        let mut line = bytes;
        if self.line == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let start = start + (bytes.len() - line.len()) as u64;
        let line = line.trim_ascii_end();
        if line.trim_ascii().is_empty() || self.foreign {
            return;
        }
        self.scan.has_content = true;
        if self.scan.header.is_none() {
            return self.first_line(line, start);
        }
        self.entry(line, start);
    }

    /// Reads a line before the header is known.
    fn first_line(&mut self, line: &[u8], start: u64) {
        if let Ok(header) = entry::read::<Header>(line) {
            self.scan.header = Some(header);
            self.scan.header_end = self.size + 1;
            return;
        }
        let is_entry = self.fast_head(line).is_some_and(|head| head.kind != Kind::Unknown);
        if is_entry && !self.scan.damaged.is_empty() {
            // An entry after a damaged line: the damaged line was the header.
            let id = self.name.rsplit('_').next().unwrap_or_default();
            self.scan.header = Some(Header::new(id.to_owned(), String::new(), String::new()));
            self.scan.header_lost = true;
            self.entry(line, start);
        } else if !is_entry && (is_like_header(line) || !is_json(line)) {
            self.scan.damaged.push(self.line);
        } else {
            self.foreign = true;
        }
    }

    fn entry(&mut self, line: &[u8], start: u64) {
        if let Some(head) = self.fast_head(line) {
            return self.push(&head, start, line.len());
        }
        match serde_json::from_slice::<Line>(line) {
            Ok(line_head) => match line_head.head() {
                Some(head) => self.push(&head, start, line.len()),
                // A second header, from two files that were joined.
                None if line_head.kind == "session" => {}
                // Files of version 1 have no ids; they are scanned again after migration.
                None if self.is_first_version() => {}
                None => self.damage(),
            },
            Err(_) => self.salvage(line, start),
        }
    }

    fn is_first_version(&self) -> bool {
        self.scan.header.as_ref().is_some_and(|header| header.version < 2)
    }

    /// Recovers entries from a damaged line: one at its beginning, perhaps incomplete, and one that was
    /// appended to it.
    fn salvage(&mut self, line: &[u8], start: u64) {
        const ATTEMPTS: usize = 64;
        self.damage();
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<Line>();
        let first = values.next().and_then(Result::ok);
        let mut at = 1;
        if let Some(head) = first.as_ref().and_then(Line::head) {
            at = values.byte_offset();
            self.push(&head, start, at);
        } else if let Some((head, _)) = Head::parse(line)
            && self.scan.index.find(head.id).is_none()
        {
            let torn = Head { kind: Kind::Damaged, ..head };
            self.push(&torn, start, line.len());
        }
        let later = line.get(at..).unwrap_or_default();
        let finder = self.entry_start.clone();
        for found in finder.find_iter(later).take(ATTEMPTS) {
            let rest = later.get(found..).unwrap_or_default();
            if Head::parse(rest).is_some()
                && let Ok(whole) = serde_json::from_slice::<Line>(rest)
                && let Some(head) = whole.head()
            {
                return self.push(&head, start + (at + found) as u64, rest.len());
            }
        }
    }

    fn damage(&mut self) {
        self.scan.damaged.push(self.line);
        self.before_damage = self.last_sound;
    }

    /// Reads the beginning of a line that appears to be complete.
    fn fast_head<'b>(&self, line: &'b [u8]) -> Option<Head<'b>> {
        let (head, rest) = Head::parse(line)?;
        (rest.ends_with(b"}") && self.parent_key.find(rest).is_none()).then_some(head)
    }

    fn push(&mut self, head: &Head<'_>, start: u64, len: usize) {
        if let Some(header) = self.scan.header.as_mut().filter(|header| header.version < 2) {
            // An entry with an id is of version 2 or later, even if the header names no version.
            header.version = VERSION;
        }
        let index = &mut self.scan.index;
        let parent = head.parent.and_then(|parent| index.find(parent));
        if let Some(known) = index.find(head.id).and_then(|known| index.get(known))
            && known.kind == head.kind
            && known.parent == parent
        {
            // A repeated line: its first write seemed to have failed.
            self.scan.damaged.push(self.line);
            return;
        }
        let previous = self.last_sound;
        let id: Arc<str> = head.id.into();
        let position = index.push(Slot { id, parent, kind: head.kind, start, len: len as u64 });
        if head.kind != Kind::Damaged {
            self.last_sound = Some(position);
        }
        if let (None, Some(missing)) = (parent, head.parent) {
            self.orphans.push(Orphan {
                position,
                parent: missing.into(),
                stand_in: self.before_damage.or(previous),
            });
        }
    }

    fn finish(mut self, torn: bool) -> Scan {
        let index = &mut self.scan.index;
        for orphan in self.orphans {
            let found = index.find(&orphan.parent).filter(|found| *found > orphan.position);
            if let Some(slot) = index.slots.get_mut(orphan.position as usize) {
                slot.parent = found.or(orphan.stand_in);
            }
        }
        self.scan.size = self.size;
        self.scan.torn = torn;
        if self.foreign {
            self.scan.header = None;
        }
        self.scan
    }
}

fn is_json(line: &[u8]) -> bool {
    entry::read::<serde::de::IgnoredAny>(line).is_ok()
}

/// True if most fields of a header are present.
fn is_like_header(line: &[u8]) -> bool {
    let keys: [&[u8]; 5] = [b"\"session\"", b"\"version\":", b"\"id\":", b"\"timestamp\":", b"\"cwd\":"];
    let found = keys.iter().filter(|key| memmem::find(line, key).is_some());
    found.count() >= 4
}

/// The first fields of a line.
struct Head<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    kind: Kind,
}

impl<'a> Head<'a> {
    /// Parses the first fields in their usual order, and returns the rest of the line.
    fn parse(line: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (kind, rest) = string(line.strip_prefix(b"{\"type\":\"")?)?;
        let (id, rest) = string(rest.strip_prefix(b",\"id\":\"")?)?;
        let rest = rest.strip_prefix(b",\"parentId\":")?;
        let (parent, rest) = match rest.strip_prefix(b"null") {
            Some(rest) => (None, rest),
            None => {
                let (parent, rest) = string(rest.strip_prefix(b"\"")?)?;
                (Some(parent), rest)
            }
        };
        let (_, rest) = string(rest.strip_prefix(b",\"timestamp\":\"")?)?;
        let role = match rest.strip_prefix(b",\"message\":{\"role\":\"") {
            Some(rest) => Some(string(rest)?.0),
            None if kind == "message" => return None,
            None => None,
        };
        let kind = Kind::new(kind, role);
        (!id.is_empty()).then_some((Self { id, parent, kind }, rest))
    }
}

/// Returns the parent's id and the kind of an entry.
pub(super) fn parent_and_kind(line: &[u8]) -> Option<(Option<String>, Kind)> {
    let own = |head: Head<'_>| (head.parent.map(str::to_owned), head.kind);
    if let Some((head, _)) = Head::parse(line) {
        return Some(own(head));
    }
    serde_json::from_slice::<Line>(line).ok()?.head().map(own)
}

/// Returns the kind of an entry whose line appears complete. Entries of version 1, which have no ids, are
/// accepted, too.
pub(super) fn line_kind(line: &[u8]) -> Option<Kind> {
    if let Some((head, rest)) = Head::parse(line)
        && rest.ends_with(b"}")
    {
        return Some(head.kind);
    }
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let role = line.message.as_ref().and_then(|message| message.role.as_deref());
    Some(Kind::new(&line.kind, role))
}

/// Parses a short string without escapes, up to its closing quote. Returns the string and the rest.
fn string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    const LONGEST: usize = 256;
    let window = bytes.get(..LONGEST.min(bytes.len()))?;
    let end = memchr::memchr(b'"', window)?;
    let text = std::str::from_utf8(window.get(..end)?).ok()?;
    let plain = text.bytes().all(|b| b >= b' ' && b != b'\\');
    plain.then_some((text, bytes.get(end + 1..)?))
}

/// The fields of a line in any order.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    /// A missing field is an unknown parent; `null` is no parent.
    #[serde(default = "untold", borrow, rename = "parentId")]
    parent: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    message: Option<Role<'a>>,
}

fn untold<'a>() -> Option<Cow<'a, str>> {
    Some(Cow::Borrowed(""))
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(default, borrow)]
    role: Option<Cow<'a, str>>,
}

impl Line<'_> {
    fn head(&self) -> Option<Head<'_>> {
        let role = self.message.as_ref().and_then(|message| message.role.as_deref());
        Some(Head {
            id: self.id.as_deref().filter(|id| !id.is_empty())?,
            parent: self.parent.as_deref(),
            kind: Kind::new(&self.kind, role),
        })
    }
}
