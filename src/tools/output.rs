//! What a command printed: its end for the model, all of it in a file.
//!
//! Memory stays flat whatever the command prints: a rolling tail of plain text (see [`super::plain`])
//! of at most four times the byte limit, and counts. The raw bytes are held back until a limit is
//! passed; from then on they are in a file, from the first byte on and up to a cap. A file that cannot
//! be made or written is a remark in the result, never a failure of the command.

use super::artifact::{self, Artifact};
use super::plain::{self, Decoder, Sink};
use super::truncate::{self, Limits, Totals, Truncation, size};
use crate::tools::workspace::OutputDir;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Output {
    limits: Limits,
    decoder: Decoder,
    tail: Tail,
    whole: Whole,
}

impl Output {
    /// `cap_bytes` bounds the file in `dir`.
    pub fn new(limits: Limits, dir: Arc<dyn OutputDir>, cap_bytes: u64) -> Self {
        Self {
            limits,
            decoder: Decoder::default(),
            tail: Tail::new(limits.bytes.saturating_mul(2)),
            whole: Whole::new(dir, cap_bytes),
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.decoder.push(bytes, &mut self.tail);
        if !self.whole.is_held() || self.passes_a_limit(bytes.len()) {
            self.whole.write(bytes);
        } else {
            self.whole.hold(bytes);
        }
    }

    /// The last lines so far.
    pub fn tail(&self) -> Truncation {
        truncate::tail_of(self.tail.whole_lines(self.limits), self.tail.totals(), self.limits)
    }

    /// Ends the output. The file stays only if something was cut from the tail.
    pub fn finish(mut self) -> Finished {
        self.decoder.finish(&mut self.tail);
        if self.whole.is_held() && self.passes_a_limit(0) {
            self.whole.write(&[]);
        }
        let truncation = self.tail();
        let full = self.whole.close(truncation.truncated);
        Finished { last_line_bytes: self.tail.last_line_bytes(), truncation, full }
    }

    /// The file with the whole output, once there is one.
    pub fn path(&self) -> Option<&Path> {
        self.whole.path()
    }

    fn passes_a_limit(&self, more_bytes: usize) -> bool {
        let totals = self.tail.totals();
        let bytes = totals.bytes.max(self.whole.total + more_bytes as u64);
        totals.lines > self.limits.lines as u64 || bytes > self.limits.bytes as u64
    }
}

/// An output that is complete.
#[derive(Debug)]
pub struct Finished {
    pub truncation: Truncation,
    /// `None` when nothing was cut.
    pub full: Option<Full>,
    /// Bytes of the last line, of which the tail may show the end only.
    last_line_bytes: u64,
}

/// The whole output's file.
#[derive(Debug)]
pub struct Full {
    pub path: Option<PathBuf>,
    /// Bytes in the file, the first ones of `total_bytes`.
    pub kept_bytes: u64,
    pub total_bytes: u64,
    /// Why the file is not there or not complete.
    pub error: Option<String>,
}

impl Finished {
    /// The whole output as plain text, without its middle if that is more than `bytes_max`; true if so.
    pub fn structured(&self, bytes_max: u64) -> (String, bool) {
        let shown = || (self.truncation.content.clone(), self.truncation.truncated);
        let Some(Full { path: Some(path), kept_bytes, total_bytes, .. }) = &self.full else {
            return shown();
        };
        if kept_bytes < total_bytes {
            return shown();
        }
        match self.read_back(path, bytes_max) {
            Ok(read) => read,
            Err(_) => shown(),
        }
    }

    fn read_back(&self, path: &Path, bytes_max: u64) -> io::Result<(String, bool)> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        if size <= bytes_max {
            file.take(bytes_max).read_to_end(&mut bytes)?;
            return Ok((plain::text(&bytes), false));
        }
        let half = bytes_max / 2;
        Read::by_ref(&mut file).take(half).read_to_end(&mut bytes)?;
        // A character that is cut is not there.
        let head = plain::text(bytes.utf8_chunks().next().map_or(&[], |chunk| chunk.valid().as_bytes()));
        file.seek(SeekFrom::End(-i64::try_from(half).unwrap_or(0)))?;
        bytes.clear();
        file.take(half).read_to_end(&mut bytes)?;
        let start = bytes.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        let tail = plain::text(&bytes[start..]);
        let omitted = size - 2 * half;
        Ok((format!("{head}\n\n[... {omitted} bytes omitted ...]\n\n{tail}"), true))
    }

    /// Says which part is shown and where the rest is.
    pub fn notice(&self) -> Option<String> {
        let (cut, full) = (&self.truncation, self.full.as_ref()?);
        let last = cut.total_lines;
        let shown = if cut.last_line_partial {
            let (part, line) = (size(cut.output_bytes as u64), size(self.last_line_bytes));
            format!("last {part} of line {last} (line is {line})")
        } else {
            let first = (last + 1).saturating_sub(cut.output_lines as u64);
            let limit = match cut.truncated_by {
                Some(truncate::TruncatedBy::Bytes) => {
                    format!(" ({} limit)", size(cut.max_bytes as u64))
                }
                _ => String::new(),
            };
            format!("lines {first}-{last} of {last}{limit}")
        };
        Some(format!("[Showing {shown}. {full}]"))
    }
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kept, total) = (size(self.kept_bytes), size(self.total_bytes));
        match (&self.path, &self.error) {
            (Some(path), None) if self.kept_bytes == self.total_bytes => {
                write!(f, "Full output: {}", path.display())
            }
            (Some(path), None) => {
                write!(f, "First {kept} of {total}: {}", path.display())
            }
            (Some(path), Some(error)) => {
                write!(f, "Full output not saved: {error}. First {kept} of {total}: {}", path.display())
            }
            (None, error) => {
                let error = error.as_deref().unwrap_or("no file");
                write!(f, "Full output not saved: {error}")
            }
        }
    }
}

/// The end of a text, and the size of all of it.
struct Tail {
    text: String,
    /// Bytes to keep at least; twice as many at most.
    keep: usize,
    /// `text` begins inside a line.
    cut_in_line: bool,
    ended_lines: u64,
    /// Bytes of the ended lines, newlines included.
    ended_bytes: u64,
    /// Bytes of the line that has not ended.
    open_bytes: u64,
    /// Bytes of the last ended line, without its newline.
    last_ended_bytes: u64,
}

impl Tail {
    fn new(keep: usize) -> Self {
        Self {
            text: String::new(),
            keep,
            cut_in_line: false,
            ended_lines: 0,
            ended_bytes: 0,
            open_bytes: 0,
            last_ended_bytes: 0,
        }
    }

    fn totals(&self) -> Totals {
        Totals {
            lines: self.ended_lines + u64::from(self.open_bytes > 0),
            bytes: self.ended_bytes + self.open_bytes,
        }
    }

    fn last_line_bytes(&self) -> u64 {
        if self.open_bytes > 0 { self.open_bytes } else { self.last_ended_bytes }
    }

    /// The text, without the rest of a line at its start that could pass for a whole one. That takes
    /// a longer line after it which was taken back.
    fn whole_lines(&self, limits: Limits) -> &str {
        match self.text.split_once('\n') {
            Some((_, rest)) if self.cut_in_line && self.text.len() <= limits.bytes => rest,
            _ => &self.text,
        }
    }

    fn count(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let Some(last) = memchr::memrchr(b'\n', bytes) else {
            self.open_bytes += bytes.len() as u64;
            return;
        };
        self.last_ended_bytes = match memchr::memrchr(b'\n', &bytes[..last]) {
            Some(before) => (last - before - 1) as u64,
            None => self.open_bytes + last as u64,
        };
        self.ended_lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.ended_bytes += self.open_bytes + last as u64 + 1;
        self.open_bytes = (bytes.len() - last - 1) as u64;
    }

    /// Cuts `text` so that `keep` bytes or a little less are left.
    fn end_of<'a>(&mut self, text: &'a str) -> &'a str {
        let from = text.len().saturating_sub(self.keep);
        let start = (from..).find(|&at| text.is_char_boundary(at));
        let (before, end) = text.split_at(start.unwrap_or(0));
        self.cut_in_line = !before.ends_with('\n');
        end
    }
}

impl Sink for Tail {
    fn text(&mut self, text: &str) {
        self.count(text);
        if text.len() > self.keep {
            let end = self.end_of(text);
            self.text.clear();
            self.text.push_str(end);
        } else {
            self.text.push_str(text);
            if self.text.len() > self.keep.saturating_mul(2) {
                let whole = std::mem::take(&mut self.text);
                let end = self.end_of(&whole);
                self.text.push_str(end);
            }
        }
    }

    fn restart_line(&mut self) {
        if self.cut_in_line && !self.text.contains('\n') {
            // Lines before this one may be gone with its start: what was seen stays counted, so that
            // the text does not pass for a whole one.
            self.ended_bytes += self.open_bytes;
        }
        self.open_bytes = 0;
        self.text.restart_line();
        self.cut_in_line &= !self.text.is_empty();
    }

    fn back(&mut self) {
        let before = self.text.len();
        self.text.back();
        let gone = (before - self.text.len()) as u64;
        self.open_bytes = self.open_bytes.saturating_sub(gone);
    }
}

/// The raw bytes: in memory while they are few, then in a file.
struct Whole {
    dir: Arc<dyn OutputDir>,
    cap_bytes: u64,
    /// Bytes seen.
    total: u64,
    state: WholeState,
}

enum WholeState {
    Held(Vec<u8>),
    Open { file: File, path: PathBuf, kept: u64 },
    Failed { path: Option<PathBuf>, kept: u64, error: String },
}

impl Whole {
    fn new(dir: Arc<dyn OutputDir>, cap_bytes: u64) -> Self {
        Self { dir, cap_bytes, total: 0, state: WholeState::Held(Vec::new()) }
    }

    fn is_held(&self) -> bool {
        matches!(self.state, WholeState::Held(_))
    }

    fn hold(&mut self, bytes: &[u8]) {
        if let WholeState::Held(held) = &mut self.state {
            held.extend_from_slice(bytes);
            self.total += bytes.len() as u64;
        }
    }

    /// Writes to the file, which is made if need be.
    fn write(&mut self, bytes: &[u8]) {
        if let WholeState::Held(held) = &mut self.state {
            let held = std::mem::take(held);
            self.state = match artifact::create(&*self.dir, "bash") {
                Ok(Artifact { file, path, .. }) => WholeState::Open { file, path, kept: 0 },
                Err(error) => WholeState::Failed { path: None, kept: 0, error: error.to_string() },
            };
            self.append(&held);
        }
        self.append(bytes);
        self.total += bytes.len() as u64;
    }

    fn append(&mut self, bytes: &[u8]) {
        let WholeState::Open { file, path, kept } = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.cap_bytes - *kept).unwrap_or(usize::MAX);
        let mut rest = &bytes[..bytes.len().min(room)];
        while !rest.is_empty() {
            let written = match file.write(rest) {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                result => result,
            };
            match written {
                Ok(count) => {
                    *kept += count as u64;
                    rest = &rest[count..];
                }
                Err(error) => return self.state = failed(path, *kept, &error),
            }
        }
    }

    fn path(&self) -> Option<&Path> {
        match &self.state {
            WholeState::Held(_) => None,
            WholeState::Open { path, .. } => Some(path),
            WholeState::Failed { path, .. } => path.as_deref(),
        }
    }

    fn close(self, wanted: bool) -> Option<Full> {
        if !wanted {
            if let Some(path) = self.path() {
                let _ = std::fs::remove_file(path);
            }
            return None;
        }
        let (path, kept_bytes, error) = match self.state {
            WholeState::Held(_) => (None, 0, None),
            WholeState::Open { path, kept, .. } => (Some(path), kept, None),
            WholeState::Failed { path, kept, error } => (path, kept, Some(error)),
        };
        Some(Full { path, kept_bytes, total_bytes: self.total, error })
    }
}

/// The state after an error of writing. The file stays, unless it is empty.
fn failed(path: &Path, kept: u64, error: &io::Error) -> WholeState {
    if kept == 0 {
        let _ = std::fs::remove_file(path);
    }
    WholeState::Failed { path: (kept > 0).then(|| path.to_owned()), kept, error: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::TempDir;
    use std::fs::OpenOptions;
    use std::os::unix::fs::PermissionsExt;

    const SMALL: Limits = Limits { lines: 3, bytes: 20 };

    fn output(dir: &TempDir) -> Output {
        Output::new(SMALL, dir.workspace().outputs, 1000)
    }

    fn logs(dir: &TempDir) -> Vec<PathBuf> {
        let folder = dir.workspace().outputs.path().unwrap();
        let entries = folder.read_dir().unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Prints `pieces` and checks what is shown, and that the file holds exactly the raw bytes when
    /// something is not shown.
    #[track_caller]
    fn check(pieces: &[&[u8]], shown: &str, notice: Option<&str>) {
        let dir = TempDir::create();
        let mut output = output(&dir);
        for piece in pieces {
            output.push(piece);
            assert!(output.tail.text.len() <= 4 * SMALL.bytes);
        }
        let finished = output.finish();
        assert_eq!(finished.truncation.content, shown);
        match (notice, &finished.full) {
            (None, None) => assert!(logs(&dir).is_empty()),
            (Some(notice), Some(full)) => {
                let path = full.path.as_ref().unwrap();
                assert!(std::fs::read(path).unwrap() == pieces.concat());
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
                let expected = format!("[Showing {notice}. Full output: {}]", path.display());
                assert_eq!(finished.notice().unwrap(), expected);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_output_within_the_limits_is_shown_whole_and_leaves_no_file() {
        check(&[], "", None);
        check(&[b"a\n\n"], "a\n\n", None);
        check(&[b"1\n2\n3"], "1\n2\n3", None);
        check(&[b"12345678901234567890"], "12345678901234567890", None);
        // More raw bytes than the limit, but not after the clean-up.
        check(&[b"\x1b[31m1\x1b[0m \x1b[32m2\x1b[0m", b"\x1b[33m3\x1b[m"], "1 23", None);
        check(&[b"10%\r", b"20%\r30%\r", b"40%\r50%\r60%\r", b"100%\n"], "100%\n", None);
    }

    #[test]
    fn an_output_beyond_a_limit_is_cut_and_saved() {
        check(&[b"1\n2\n", b"3\n4\n"], "2\n3\n4", Some("lines 2-4 of 4"));
        check(&[b"1\n2\n3\n4"], "2\n3\n4", Some("lines 2-4 of 4"));
        check(&[b"123456789\n", b"123456789\n12"], "123456789\n12", Some("lines 2-3 of 3 (20B limit)"));
        check(&[b"a\n", &[b'x'; 30]], &"x".repeat(20), Some("last 20B of line 2 (line is 30B)"));
        check(&[&[b'x'; 30], b"yy\n"], &("x".repeat(18) + "yy"), Some("last 20B of line 1 (line is 32B)"));
        // Three bytes for each one that is not valid.
        check(&[&[0xff; 10]], &"\u{fffd}".repeat(6), Some("last 18B of line 1 (line is 30B)"));
        check(&[&[0; 500], b"1\n2\n3\n4\n"], "2\n3\n4", Some("lines 2-4 of 4"));
    }

    #[test]
    fn a_cut_tail_never_passes_for_a_whole_output() {
        let long = vec![b'x'; 200];
        // The long line takes the earlier ones out of memory, then is started again.
        check(&[b"1\n2\n", &long, b"\rdone\n"], "done", Some("lines 3-3 of 3"));
        check(
            &[b"1\n2\n", &long[..50], b"\n", &long[..35], b"\ry\n"],
            "y",
            Some("lines 4-4 of 4 (20B limit)"),
        );
    }

    #[test]
    fn the_tail_of_many_pieces_is_the_tail_of_the_whole() {
        let dir = TempDir::create();
        let text: String = (0..500).map(|n| format!("{}é\n", "l".repeat(n % 30))).collect();
        let totals = Totals { lines: 500, bytes: text.len() as u64 };
        for size in [1, 2, 3, 7, 50, 1000] {
            let mut output = output(&dir);
            for piece in text.as_bytes().chunks(size) {
                output.push(piece);
            }
            assert_eq!(output.finish().truncation, truncate::tail_of(&text, totals, SMALL));
        }
    }

    #[test]
    fn the_file_is_capped() {
        let dir = TempDir::create();
        let mut output = Output::new(SMALL, dir.workspace().outputs, 30);
        for _ in 0..10 {
            output.push(b"12345678\n");
        }
        let finished = output.finish();
        let full = finished.full.as_ref().unwrap();
        let path = full.path.as_ref().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"12345678\n12345678\n12345678\n123");
        let expected =
            format!("[Showing lines 9-10 of 10 (20B limit). First 30B of 90B: {}]", path.display());
        assert_eq!(finished.notice().unwrap(), expected);
    }

    #[test]
    fn a_file_that_cannot_be_made_or_written_is_only_a_remark() {
        struct Broken;
        impl OutputDir for Broken {
            fn path(&self) -> io::Result<PathBuf> {
                Err(io::Error::other("no room"))
            }

            fn if_there(&self) -> Option<PathBuf> {
                None
            }
        }
        let mut output = Output::new(SMALL, Arc::new(Broken), 1000);
        output.push(&[b'\n'; 50]);
        assert_eq!(output.path(), None);
        assert_eq!(
            output.finish().notice().unwrap(),
            "[Showing lines 48-50 of 50. Full output not saved: no room]"
        );

        let mut whole = Whole::new(Arc::new(Broken), 1000);
        whole.state = WholeState::Open {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            path: "/nowhere/x.log".into(),
            kept: 5,
        };
        whole.write(b"1234567890");
        let text = whole.close(true).unwrap().to_string();
        assert!(text.starts_with("Full output not saved: No space left on device"), "{text}");
        assert!(text.ends_with(". First 5B of 10B: /nowhere/x.log"), "{text}");
    }
}
