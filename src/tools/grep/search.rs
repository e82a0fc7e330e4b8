//! Searches one file, in blocks, in bounded memory.
//!
//! A block holds whole lines and is searched as one text; line ends are located only around matches. A file
//! with a NUL byte in its first block is binary and skipped; one with a NUL later is searched up to the line
//! that holds it. Of a line longer than [`MAX_BLOCK`] every part is searched, and the start is shown.
//!
//! Context lines are repeated for every match near them, so that each match can be read alone.

use super::super::truncate::{self, MAX_BYTES, MAX_MATCH_CHARS};
use super::super::walk::Stop;
use super::utf16::Utf16;
use crate::llm::secret::Set;
use memchr::{memchr, memchr_iter, memrchr};
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;

const FIRST_BLOCK: usize = 64 * 1024;
const MAX_BLOCK: usize = 16 << 20;
/// Maximum length of a match that is found across the edge of a block in a longer line.
const OVERLAP: usize = 64 * 1024;
/// Memory kept between files.
const KEPT_BYTES: usize = 1 << 20;

/// Searches files one after another.
pub(super) struct Searcher {
    regex: Regex,
    /// Context lines on either side of a match.
    context: usize,
    buffer: Vec<u8>,
    secrets: Option<Arc<Set>>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Found {
    Matches(Vec<Match>),
    Binary,
}

/// A matching line with its context, as text; or a number of matches that are only counted, since the result
/// is full.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Match {
    pub count: usize,
    /// The lines; empty for matches that are only counted.
    pub text: String,
    pub lines: usize,
    pub bytes: usize,
    /// True if a line was too long to be shown completely.
    pub cut: bool,
}

impl Searcher {
    pub fn new(regex: Regex, context: usize, secrets: Option<Arc<Set>>) -> Self {
        Self { regex, context, buffer: Vec::new(), secrets }
    }

    /// Finds the first `limit` matching lines of a file, which is shown as `label`.
    pub fn search(
        &mut self,
        source: &mut dyn Read,
        label: &str,
        limit: usize,
        stop: &Stop,
    ) -> io::Result<Found> {
        let mut matches = Matches {
            regex: &self.regex,
            context: self.context,
            label,
            limit,
            count: 0,
            list: Vec::new(),
            stored_bytes: 0,
            line: 1,
            before: VecDeque::new(),
            open: VecDeque::new(),
            secrets: self.secrets.as_deref(),
        };
        let buffer = &mut self.buffer;
        buffer.resize(FIRST_BLOCK, 0);
        let mut len = fill(source, buffer, 0)?;
        let is_text = match &buffer[..len] {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                let start = Cursor::new(buffer[..len].to_vec());
                let mut text = Utf16::new(start.chain(source));
                len = fill(&mut text, buffer, 0)?;
                matches.search(&mut text, buffer, len, stop)?
            }
            [0xef, 0xbb, 0xbf, ..] => {
                buffer.copy_within(3..len, 0);
                len = fill(source, buffer, len - 3)?;
                matches.search(source, buffer, len, stop)?
            }
            _ => matches.search(source, buffer, len, stop)?,
        };
        let list = matches.list;
        if buffer.len() > KEPT_BYTES {
            *buffer = Vec::new();
        }
        Ok(match is_text {
            true => Found::Matches(list),
            false => Found::Binary,
        })
    }
}

/// Fills the buffer from `len` on. It stays partly empty only at the end of the file.
fn fill(source: &mut dyn Read, buffer: &mut [u8], mut len: usize) -> io::Result<usize> {
    while let Some(room @ [_, ..]) = buffer.get_mut(len..) {
        match source.read(room) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// The matches of a file so far.
struct Matches<'a> {
    regex: &'a Regex,
    context: usize,
    label: &'a str,
    limit: usize,
    count: usize,
    list: Vec<Match>,
    /// Total size of the texts in `list`.
    stored_bytes: usize,
    /// The number of the next line.
    line: u64,
    /// The last lines of earlier blocks, for context.
    before: VecDeque<Shown>,
    open: VecDeque<Open>,
    secrets: Option<&'a Set>,
}

/// A match that still needs context lines after it.
struct Open {
    place: usize,
    line: u64,
    left: usize,
}

/// A line in its displayed form.
#[derive(Clone)]
struct Shown {
    text: String,
    cut: bool,
}

impl Matches<'_> {
    /// Searches a file whose first block is in the buffer. False if it is binary.
    fn search(
        &mut self,
        source: &mut dyn Read,
        buffer: &mut Vec<u8>,
        mut len: usize,
        stop: &Stop,
    ) -> io::Result<bool> {
        // How much of the buffer is known to hold neither a NUL nor the end of a line.
        let mut known = 0;
        let mut first = true;
        loop {
            if let Some(nul) = memchr(0, &buffer[known..len]) {
                if first {
                    return Ok(false);
                }
                let end = memrchr(b'\n', &buffer[..known + nul]).map_or(0, |at| at + 1);
                self.block(&buffer[..end], true);
                return Ok(true);
            }
            first = false;
            let eof = len < buffer.len();
            if eof {
                self.block(&buffer[..len], true);
                return Ok(true);
            }
            match memrchr(b'\n', &buffer[known..len]) {
                Some(at) => {
                    let end = known + at + 1;
                    self.block(&buffer[..end], false);
                    if self.count >= self.limit && self.open.is_empty() {
                        return Ok(true);
                    }
                    buffer.copy_within(end..len, 0);
                    len -= end;
                    known = len;
                }
                None if len < MAX_BLOCK => {
                    known = len;
                    buffer.resize(len * 2, 0);
                }
                None => match self.long_line(source, buffer, stop)? {
                    Some(rest) => {
                        len = rest;
                        known = 0;
                    }
                    None => return Ok(true),
                },
            }
            if stop.reached() {
                return Ok(true);
            }
            len = fill(source, buffer, len)?;
        }
    }

    /// Searches a line that fills the buffer and continues. Afterwards the buffer starts with the next line;
    /// returns the length of that data, `None` at the end of the file.
    fn long_line(
        &mut self,
        source: &mut dyn Read,
        buffer: &mut [u8],
        stop: &Stop,
    ) -> io::Result<Option<usize>> {
        let shown = self.shown(buffer);
        let mut matches = self.regex.is_match(buffer);
        loop {
            buffer.copy_within(buffer.len() - OVERLAP.., 0);
            let len = fill(source, buffer, OVERLAP)?;
            let (eof, new) = (len < buffer.len(), &buffer[OVERLAP..len]);
            let newline = memchr(b'\n', new).map(|at| OVERLAP + at);
            if memchr(0, &buffer[OVERLAP..newline.unwrap_or(len)]).is_some() || stop.reached() {
                return Ok(None);
            }
            // The first byte only tells that the text does not start here.
            matches = matches || self.regex.is_match_at(&buffer[..newline.unwrap_or(len)], 1);
            if newline.is_none() && !eof {
                continue;
            }
            self.after(&shown);
            if matches && self.count < self.limit {
                self.add(&shown, &[]);
            }
            self.line += 1;
            self.remember(std::iter::once(shown));
            return Ok(newline.map(|at| {
                buffer.copy_within(at + 1..len, 0);
                len - at - 1
            }));
        }
    }

    /// Searches whole lines; the last block may lack its last line end.
    fn block(&mut self, block: &[u8], last: bool) {
        // Up to where lines are counted, and where they were given to open matches.
        let (mut counted, mut given) = (0, 0);
        let mut at = 0;
        while self.count < self.limit {
            let Some(hit) = self.regex.find_at(block, at) else {
                break;
            };
            // After the last line end there is no line.
            if hit.start() == block.len() && matches!(block.last(), None | Some(b'\n')) {
                break;
            }
            let start = memrchr(b'\n', &block[..hit.start()]).map_or(0, |at| at + 1);
            let end = memchr(b'\n', &block[hit.start()..]).map_or(block.len(), |at| hit.start() + at);
            self.line += memchr_iter(b'\n', &block[counted..start]).count() as u64;
            counted = start;
            self.lines_after(&block[given..start]);
            let line = self.shown(&block[start..end]);
            self.after(&line);
            self.add(&line, &block[..start]);
            at = end + 1;
            given = at.min(block.len());
            if at > block.len() {
                break;
            }
        }
        self.lines_after(&block[given..]);
        if !last {
            self.line += memchr_iter(b'\n', &block[counted..]).count() as u64;
            if self.context > 0 {
                let mut lines: Vec<Shown> =
                    lines_before(block).take(self.context).map(|line| self.shown(line)).collect();
                lines.reverse();
                self.remember(lines);
            }
        }
    }

    fn shown(&self, line: &[u8]) -> Shown {
        match self.secrets {
            Some(secrets) => shown(&secrets.hide_bytes(line)),
            None => shown(line),
        }
    }

    /// Keeps lines as context of later matches.
    fn remember(&mut self, lines: impl IntoIterator<Item = Shown>) {
        self.before.extend(lines);
        let more = self.before.len().saturating_sub(self.context);
        self.before.drain(..more);
    }

    /// Adds a match on the next line. `before` is the preceding text of its block.
    fn add(&mut self, line: &Shown, before: &[u8]) {
        self.count += 1;
        let mut new = Match { count: 1, ..Match::default() };
        if self.stored_bytes > MAX_BYTES {
            new.push(self.label, ':', self.line, line);
            match self.list.last_mut() {
                // The last one stays apart: it may be there only to tell that there are more.
                Some(rest) if rest.text.is_empty() && self.count < self.limit => {
                    rest.count += 1;
                    rest.lines += 1;
                    rest.bytes += 1 + new.bytes;
                }
                _ => {
                    new.text = String::new();
                    self.list.push(new);
                }
            }
            return;
        }
        if self.context > 0 {
            let mut lines: Vec<Shown> =
                lines_before(before).take(self.context).map(|line| self.shown(line)).collect();
            let missing = self.context - lines.len();
            lines.extend(self.before.iter().rev().take(missing).cloned());
            let first = self.line - lines.len() as u64;
            for (number, line) in (first..).zip(lines.iter().rev()) {
                new.push(self.label, '-', number, line);
            }
            self.open.push_back(Open { place: self.list.len(), line: self.line + 1, left: self.context });
        }
        new.push(self.label, ':', self.line, line);
        self.stored_bytes += new.text.len();
        self.list.push(new);
    }

    /// Adds lines to the matches that need more context.
    fn lines_after(&mut self, mut text: &[u8]) {
        while !text.is_empty() && !self.open.is_empty() {
            let end = memchr(b'\n', text).unwrap_or(text.len());
            let line = self.shown(&text[..end]);
            self.after(&line);
            text = text.get(end + 1..).unwrap_or_default();
        }
    }

    fn after(&mut self, line: &Shown) {
        for open in &mut self.open {
            if let Some(hit) = self.list.get_mut(open.place) {
                let had = hit.text.len();
                hit.push(self.label, '-', open.line, line);
                self.stored_bytes += hit.text.len() - had;
            }
            open.line += 1;
            open.left -= 1;
        }
        while self.open.front().is_some_and(|open| open.left == 0) {
            self.open.pop_front();
        }
    }
}

impl Match {
    fn push(&mut self, label: &str, mark: char, number: u64, line: &Shown) {
        if self.lines > 0 {
            self.text.push('\n');
        }
        let text = &line.text;
        self.text.push_str(&format!("{label}{mark}{number}{mark} {text}"));
        self.bytes = self.text.len();
        self.lines += 1;
        self.cut |= line.cut;
    }
}

/// The lines of a text that ends with a newline, the last first.
fn lines_before(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let line_end = rest.len().checked_sub(1)?;
        let start = memrchr(b'\n', &rest[..line_end]).map_or(0, |at| at + 1);
        let line = &rest[start..line_end];
        rest = &rest[..start];
        Some(line)
    })
}

/// A line without carriage returns, truncated. Decodes only the displayed part.
fn shown(line: &[u8]) -> Shown {
    let mut text = String::new();
    let mut units = 0;
    'line: for chunk in line.utf8_chunks() {
        let broken = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        for char in chunk.valid().chars().chain(broken) {
            if char != '\r' {
                text.push(char);
                units += char.len_utf16();
            }
            if units > MAX_MATCH_CHARS {
                break 'line;
            }
        }
    }
    let (line, cut) = truncate::line(&text, MAX_MATCH_CHARS);
    Shown { text: line.into_owned(), cut }
}
