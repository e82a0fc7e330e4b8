//! What the user hands over beside the prompt: piped text and `@file` arguments.

use crate::llm::cancel::CancelToken;
use crate::llm::message::Block;
use crate::llm::model::Model;
use crate::tools::image::{self, Kind, Limits};
use crate::tools::text::{self, Content, Encoding};
use crate::tools::{Workspace, path};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Bytes; more than this is no prompt.
const INPUT_MAX: u64 = 100 << 20;

/// The first prompt, put together.
#[derive(Debug, Default, PartialEq)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Block>,
}

/// The text on stdin, trimmed; `None` at a terminal or when there is none.
///
/// A pipe that says nothing makes the program wait, since its text belongs to the prompt. `note` is
/// called when that takes two seconds, so that nobody wonders.
pub fn piped(note: impl FnOnce()) -> Result<Option<String>, String> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut wait = libc::pollfd { fd: stdin.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, and the count says one.
    if unsafe { libc::poll(&raw mut wait, 1, 2000) } == 0 {
        note();
    }
    let mut bytes = Vec::new();
    match stdin.lock().take(INPUT_MAX + 1).read_to_end(&mut bytes) {
        // A closed or write-only stdin is no text.
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

/// What attaching a file depends on.
pub struct Attach<'a> {
    /// Relative paths begin here.
    pub from: &'a Path,
    pub workspace: &'a Workspace,
    pub model: &'a Model,
    pub cancel: &'a CancelToken,
}

/// Puts stdin, files and the first message together, in this order, each on lines of its own.
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
        attach.add(&mut prompt, &file.to_string_lossy())?;
    }
    prompt.text.push_str(message.as_deref().unwrap_or_default());
    Ok(prompt)
}

impl Attach<'_> {
    fn add(&self, prompt: &mut Prompt, file: &str) -> Result<(), String> {
        let given = match file.strip_prefix('~') {
            Some(_) => file.to_owned(),
            None => self.from.join(file).to_string_lossy().into_owned(),
        };
        let path = path::resolve_existing(self.workspace, &given).map_err(|error| error.to_string())?;
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

/// The text of a file in whatever encoding it has; `None` for one that holds something else.
fn text_of(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..text::SNIFF_BYTES).unwrap_or(bytes);
    match text::sniff(head) {
        Content::Binary => None,
        Content::Text(Encoding::Utf8, mark) => Some(String::from_utf8_lossy(&bytes[mark..]).into_owned()),
        Content::Text(encoding, mark) => encoding.decode(&bytes[mark..]).map(std::borrow::Cow::into_owned),
    }
}
