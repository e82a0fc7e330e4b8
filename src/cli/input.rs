//! What the user hands over beside the prompt: piped text and `@file` arguments.

use crate::runtime::{Block, Image, prepare_image};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

/// More than this is no prompt.
const STDIN_MAX: u64 = 100 << 20;

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
    match stdin.lock().take(STDIN_MAX + 1).read_to_end(&mut bytes) {
        // A closed or write-only stdin is no text.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => return Ok(None),
        Err(error) => return Err(format!("Cannot read stdin: {error}")),
        Ok(_) if bytes.len() as u64 > STDIN_MAX => return Err("stdin holds more than 100 MB".into()),
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Puts stdin, files and the first message together, in this order, each on lines of its own.
pub fn assemble(
    piped: Option<String>,
    files: &[OsString],
    message: Option<String>,
    cwd: &Path,
    home: Option<&Path>,
) -> Result<Prompt, String> {
    let mut prompt = Prompt::default();
    if let Some(piped) = piped {
        prompt.text = piped;
        if !files.is_empty() || message.is_some() {
            prompt.text.push('\n');
        }
    }
    for file in files {
        attach(&mut prompt, Path::new(file), cwd, home)?;
    }
    prompt.text.push_str(message.as_deref().unwrap_or_default());
    Ok(prompt)
}

fn attach(prompt: &mut Prompt, file: &Path, cwd: &Path, home: Option<&Path>) -> Result<(), String> {
    let path = crate::runtime::resolve_path(file, cwd, home);
    let shown = path.display();
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("File not found: {shown}"),
        _ => format!("Could not read file {shown}: {error}"),
    };
    let kind = path.metadata().map_err(fault)?;
    if kind.is_dir() {
        return Err(format!("{shown} is a folder; name a file, or let the agent look into it"));
    }
    let bytes = std::fs::read(&path).map_err(fault)?;
    if bytes.is_empty() {
        return Ok(());
    }
    match prepare_image(&bytes) {
        Image::None => {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            prompt.text.push_str(&format!("<file name=\"{shown}\">\n{text}\n</file>\n"));
        }
        Image::Ready { block, hints } => {
            prompt.images.push(block);
            prompt.text.push_str(&format!("<file name=\"{shown}\">{}</file>\n", hints.join("\n")));
        }
        Image::Refused(reason) => prompt.text.push_str(&format!("<file name=\"{shown}\">{reason}</file>\n")),
    }
    Ok(())
}
