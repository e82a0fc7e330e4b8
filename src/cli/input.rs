//! Reads input besides the prompt: piped text and `@file` arguments.

use crate::agent::tool::ToolError;
use crate::base::cancel::CancelToken;
use crate::llm::message::Block;
use crate::llm::model::Model;
use crate::mode::report;
use crate::tools::image::{self, Kind, Limits};
use crate::tools::text::{self, Content, Encoding};
use crate::tools::{Workspace, path};
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum size of the input on stdin, in bytes.
const INPUT_MAX: u64 = 100 << 20;

/// Maximum wait for a silent pipe if there is another prompt.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Time after which the user is told that pi waits for stdin.
const NOTE_AFTER: Duration = Duration::from_secs(2);

/// The first prompt of a run, with piped text, files and images.
#[derive(Debug, Default, PartialEq)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Block>,
}

/// Reads the text on stdin and trims it; `None` at a terminal or if there is none.
///
/// Without another prompt, a silent pipe is waited for, since its text is the prompt. With one, the wait is
/// limited: programs may start pi with a stdin that they neither use nor close.
pub fn piped(has_prompt: bool) -> Result<Option<String>, String> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    if has_prompt && !is_ready(&stdin, SILENCE_MAX) {
        let seconds = SILENCE_MAX.as_secs();
        report::note(format_args!(
            "Nothing came on stdin for {seconds} s: going on without it. Start pi with </dev/null where there is no input, or let pi wait by giving no message"
        ));
        return Ok(None);
    }
    if !has_prompt && !is_ready(&stdin, NOTE_AFTER) {
        report::note("Reading from stdin; end it with Ctrl-D, or start pi with </dev/null");
    }
    let mut bytes = Vec::new();
    match stdin.lock().take(INPUT_MAX + 1).read_to_end(&mut bytes) {
        // A closed or write-only stdin counts as empty.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => return Ok(None),
        Err(error) => return Err(format!("Cannot read stdin: {error}")),
        Ok(_) if bytes.len() as u64 > INPUT_MAX => {
            return Err("stdin holds more than 100 MB".into());
        }
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// True if there is something to read, or the end of the input, within `limit`.
fn is_ready(source: &impl AsRawFd, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let left = i32::try_from(left).unwrap_or(i32::MAX);
        let mut wait = libc::pollfd { fd: source.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd, and the count says one.
        match unsafe { libc::poll(&raw mut wait, 1, left) } {
            0 => return false,
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // Errors are reported by the read that follows.
            _ => return true,
        }
    }
}

/// The context in which files are attached to a prompt.
pub struct Attach<'a> {
    /// The folder that relative paths begin in.
    pub from: &'a Path,
    pub workspace: &'a Workspace,
    pub model: &'a Model,
    pub cancel: &'a CancelToken,
}

/// Joins stdin, files and the first message into a prompt, in this order, each on lines of its own.
pub fn assemble(
    piped: Option<String>,
    files: &[OsString],
    message: Option<String>,
    attach: &Attach<'_>,
) -> Result<Prompt, String> {
    let mut prompt = Prompt::default();
    if let Some(piped) = piped {
        prompt.text = piped;
        if !files.is_empty() || message.is_some() {
            prompt.text.push('\n');
        }
    }
    for file in files {
        attach.add(&mut prompt, file)?;
    }
    prompt.text.push_str(message.as_deref().unwrap_or_default());
    Ok(prompt)
}

impl Attach<'_> {
    fn find(&self, file: &OsStr) -> Result<PathBuf, ToolError> {
        let given = match file.to_str().filter(|file| file.starts_with('~')) {
            Some(_) => PathBuf::from(file),
            None => self.from.join(file),
        };
        match given.to_str() {
            Some(text) => path::resolve_existing(self.workspace, text),
            // A name that is not UTF-8 is used unchanged.
            None => Ok(path::normalize(&given)),
        }
    }

    fn add(&self, prompt: &mut Prompt, file: &OsStr) -> Result<(), String> {
        let path = self.find(file).map_err(|error| error.to_string())?;
        let shown = path.display();
        let fault = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => format!("File not found: {shown}"),
            _ => format!("Could not read file {shown}: {error}"),
        };
        if path.metadata().map_err(fault)?.is_dir() {
            return Err(format!("{shown} is a folder; name a file, or let the agent look into it"));
        }
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(&path).and_then(|file| file.take(INPUT_MAX + 1).read_to_end(&mut bytes));
        if read.map_err(fault)? as u64 > INPUT_MAX {
            return Err(format!("{shown} holds more than 100 MB"));
        }
        let Some(kind) = Kind::sniff(&bytes) else {
            let Some(text) = text_of(&bytes) else {
                return Err(format!(
                    "{shown} holds no text and no image; pi can look into it with its tools"
                ));
            };
            if !text.is_empty() {
                prompt.text.push_str(&format!("<file name=\"{shown}\">\n{text}\n</file>\n"));
            }
            return Ok(());
        };
        let limits = Limits::of(self.model, self.workspace.options.resize_images);
        let about = match image::prepare(&bytes, kind, &limits, self.workspace.backend.sandbox(), self.cancel)
        {
            Ok(prepared) => {
                prompt.images.push(Block::image(prepared.data, prepared.mime_type));
                prepared.hints.join("\n")
            }
            Err(note) => note,
        };
        prompt.text.push_str(&format!("<file name=\"{shown}\">{about}</file>\n"));
        Ok(())
    }
}

/// Decodes a file as text in its detected encoding; `None` if the file is binary.
fn text_of(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..text::SNIFF_BYTES).unwrap_or(bytes);
    match text::sniff(head) {
        Content::Binary => None,
        Content::Text(Encoding::Utf8, mark) => Some(String::from_utf8_lossy(&bytes[mark..]).into_owned()),
        Content::Text(encoding, mark) => encoding.decode(&bytes[mark..]).map(std::borrow::Cow::into_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_pipe_is_ready_when_it_speaks_or_ends() {
        let moment = Duration::from_millis(1);
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!is_ready(&reader, moment));
        writer.write_all(b"x").unwrap();
        assert!(is_ready(&reader, moment));
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(is_ready(&reader, moment));
        assert!(is_ready(&std::fs::File::open("/dev/null").unwrap(), moment));
    }
}
