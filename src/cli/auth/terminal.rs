//! Signs in on the terminal: texts go to stderr, answers come from stdin.
//!
//! A typed key is shown as stars. The terminal's modes are restored on every exit: after the key, an error or
//! a panic, and when a signal ends the program. A cancel ends every wait for input at once.

use crate::auth::oauth::{Answer, Event, Interaction, Prompt};
use crate::base::cancel::{CancelGuard, CancelToken};
use crate::mode::report;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Maximum length of a line, in bytes.
const LINE_LIMIT: usize = 64 << 10;

pub struct Console {
    is_terminal: bool,
    method: Option<String>,
    domain: Option<String>,
    input: Mutex<Input>,
}

/// Stdin, with bytes that were read beyond a line.
#[derive(Default)]
struct Input {
    rest: Vec<u8>,
}

/// The result of a wait for input.
enum Got {
    Bytes(Vec<u8>),
    End,
    Cancelled,
}

impl Console {
    pub fn new(method: Option<&str>, domain: Option<&str>) -> Self {
        Self {
            is_terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
            method: method.map(str::to_owned),
            domain: domain.map(str::to_owned),
            input: Mutex::default(),
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    fn input(&self) -> MutexGuard<'_, Input> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a key, shown as stars; `None` if cancelled.
    pub fn secret(&self, message: &str, cancel: &CancelToken) -> io::Result<Option<String>> {
        let mut input = self.input();
        let wake = Wake::new(cancel)?;
        let _masked = Masked::begin()?;
        prompt(message);
        let typed = masked_line(&mut input, &wake);
        let _ = writeln!(io::stderr());
        typed
    }

    fn line(&self, message: &str, cancel: &CancelToken) -> Answer {
        let mut input = self.input();
        let Ok(wake) = Wake::new(cancel) else {
            return Answer::Nobody;
        };
        if self.is_terminal {
            prompt(message);
        }
        let answer = read_line(&mut input, &wake);
        if self.is_terminal && !matches!(answer, Ok(Some(_))) {
            let _ = writeln!(io::stderr());
        }
        match answer {
            Ok(Some(line)) => Answer::Text(line),
            // Ctrl-D is a refusal; the end of a stdin that is no terminal is no answer.
            Ok(None) if self.is_terminal => Answer::Cancelled,
            Ok(None) | Err(_) => Answer::Nobody,
        }
    }
}

impl Interaction for Console {
    fn tell(&self, event: &Event) {
        match event {
            Event::Url { url, instructions } => {
                report::note(format_args!("\nOpen this address:\n\n  {url}\n\n{instructions}"))
            }
            Event::DeviceCode { user_code, url, expires_in_seconds } => report::note(format_args!(
                "\nOpen this address:\n\n  {url}\n\nand enter the code: {user_code}\n\n{}",
                Event::waiting(*expires_in_seconds)
            )),
            Event::Progress(text) => report::note(text),
        }
    }

    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer {
        match prompt {
            Prompt::Text { .. } if self.domain.is_some() => {
                Answer::Text(self.domain.clone().unwrap_or_default())
            }
            Prompt::Text { message, placeholder } => match self.is_terminal {
                true => self.line(&format!("{message} [{placeholder}]"), cancel),
                false => Answer::Nobody,
            },
            Prompt::Secret { message } => match self.is_terminal {
                true => match self.secret(message, cancel) {
                    Ok(Some(text)) => Answer::Text(text),
                    Ok(None) | Err(_) => Answer::Cancelled,
                },
                false => Answer::Nobody,
            },
            Prompt::Code { message, .. } => self.line(message, cancel),
            Prompt::Select { message, options } => {
                let wanted = self.method.as_deref();
                // A code to paste serves who has no browser here as well as one to type.
                let is_wanted = |id: &str, wanted: &str| {
                    id.starts_with(wanted) || (wanted == "device" && id == "copy_code")
                };
                let by_flag =
                    options.iter().find(|option| wanted.is_some_and(|wanted| is_wanted(&option.id, wanted)));
                if let Some(option) = by_flag {
                    return Answer::Text(option.id.clone());
                }
                if !self.is_terminal {
                    return Answer::Nobody;
                }
                report::note(format_args!("{message}:"));
                for (number, option) in (1..).zip(options) {
                    report::note(format_args!("  {number}. {}", option.label));
                }
                loop {
                    match self.line("Number [1]", cancel) {
                        Answer::Text(line) => {
                            let number = match line.trim() {
                                "" => Some(1),
                                line => line.parse::<usize>().ok(),
                            };
                            let chosen = number.and_then(|number| options.get(number.checked_sub(1)?));
                            if let Some(option) = chosen {
                                return Answer::Text(option.id.clone());
                            }
                        }
                        other => return other,
                    }
                }
            }
        }
    }
}

fn prompt(message: &str) {
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{message}: ");
    let _ = stderr.flush();
}

/// Waits for input until a token is cancelled.
struct Wake {
    stdin: File,
    end: UnixStream,
    _guard: CancelGuard,
}

impl Wake {
    fn new(cancel: &CancelToken) -> io::Result<Self> {
        let (end, mut other) = UnixStream::pair()?;
        let guard = cancel.on_cancel(move || {
            let _ = other.write_all(b"!");
        });
        Ok(Self { stdin: File::from(io::stdin().as_fd().try_clone_to_owned()?), end, _guard: guard })
    }

    fn read(&self) -> io::Result<Got> {
        let mut fds = [self.stdin.as_raw_fd(), self.end.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        loop {
            // SAFETY: the array is valid for two entries and lives through the call.
            let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
            if ready < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            let [stdin, end] = &fds;
            if end.revents != 0 {
                return Ok(Got::Cancelled);
            }
            if stdin.revents != 0 {
                let mut bytes = vec![0; 4096];
                let count = match (&self.stdin).read(&mut bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    count => count?,
                };
                bytes.truncate(count);
                return Ok(match count {
                    0 => Got::End,
                    _ => Got::Bytes(bytes),
                });
            }
        }
    }
}

/// Reads a line, without its end; `None` at the end of the input or if cancelled.
fn read_line(input: &mut Input, wake: &Wake) -> io::Result<Option<String>> {
    loop {
        if let Some(end) = input.rest.iter().position(|byte| *byte == b'\n') {
            let after = input.rest.split_off(end + 1);
            let line = std::mem::replace(&mut input.rest, after);
            return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
        }
        if input.rest.len() > LINE_LIMIT {
            return Err(io::Error::other("the line is too long"));
        }
        match wake.read()? {
            Got::Bytes(bytes) => input.rest.extend(bytes),
            Got::End if input.rest.is_empty() => return Ok(None),
            Got::End => input.rest.push(b'\n'),
            Got::Cancelled => return Ok(None),
        }
    }
}

/// A line of input that is shown as stars.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    shown: usize,
}

impl Line {
    /// Handles a typed byte. True if the line is complete; `None` at Ctrl-D on an empty line.
    fn press(&mut self, byte: u8) -> Option<bool> {
        match byte {
            b'\r' | b'\n' => return Some(true),
            0x04 if self.text.is_empty() => return None,
            0x7f | 0x08 => {
                // A character of several bytes is removed as a whole.
                while self.text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            0x15 => self.text.clear(),
            0..=0x1f => {}
            _ if self.text.len() < LINE_LIMIT => self.text.push(byte),
            _ => {}
        }
        Some(false)
    }

    /// Returns the bytes that update the stars on the screen.
    fn stars(&mut self) -> String {
        let letters = self.text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let stars = match letters >= self.shown {
            true => "*".repeat(letters - self.shown),
            false => "\u{8} \u{8}".repeat(self.shown - letters),
        };
        self.shown = letters;
        stars
    }
}

fn masked_line(input: &mut Input, wake: &Wake) -> io::Result<Option<String>> {
    let mut line = Line::default();
    loop {
        let bytes = match std::mem::take(&mut input.rest) {
            rest if !rest.is_empty() => rest,
            _ => match wake.read()? {
                Got::Bytes(bytes) => bytes,
                Got::End | Got::Cancelled => return Ok(None),
            },
        };
        let mut bytes = bytes.into_iter();
        while let Some(byte) = bytes.next() {
            if byte == 0x1b {
                break; // an arrow or another key that sends a sequence
            }
            match line.press(byte) {
                None => return Ok(None),
                Some(false) => {}
                Some(true) => {
                    input.rest = bytes.collect();
                    return Ok(Some(String::from_utf8_lossy(&line.text).into_owned()));
                }
            }
        }
        let mut stderr = io::stderr();
        let _ = stderr.write_all(line.stars().as_bytes());
        let _ = stderr.flush();
    }
}

/// The terminal's original modes, to be restored once.
static BEFORE: Mutex<Option<(RawFd, libc::termios)>> = Mutex::new(None);

/// Turns off echo and line editing of the terminal while the value lives.
struct Masked;

impl Masked {
    fn begin() -> io::Result<Self> {
        static AT_EXIT: Once = Once::new();
        let fd = io::stdin().as_raw_fd();
        // SAFETY: all zeros are a valid value, which the call below fills.
        let mut modes: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: stdin is open for the whole run, and `modes` is large enough.
        if unsafe { libc::tcgetattr(fd, &raw mut modes) } != 0 {
            return Err(io::Error::last_os_error());
        }
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((fd, modes));
        // A second signal ends the process without unwinding.
        // SAFETY: the function is safe to call at any time and does not unwind.
        AT_EXIT.call_once(|| unsafe {
            libc::atexit(restore_at_exit);
        });
        modes.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON);
        // A stopped program would leave the terminal without echo.
        if let Some(suspend) = modes.c_cc.get_mut(libc::VSUSP) {
            *suspend = libc::_POSIX_VDISABLE;
        }
        let masked = Self;
        set(fd, &modes)?;
        Ok(masked)
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        restore();
    }
}

extern "C" fn restore_at_exit() {
    restore();
}

fn restore() {
    // A locked mutex means that the modes are being restored.
    if let Ok(mut before) = BEFORE.try_lock()
        && let Some((fd, modes)) = before.take()
    {
        let _ = set(fd, &modes);
    }
}

fn set(fd: RawFd, modes: &libc::termios) -> io::Result<()> {
    // SAFETY: the modes were filled by tcgetattr, and the descriptor is open.
    match unsafe { libc::tcsetattr(fd, libc::TCSADRAIN, modes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the stars after typing.
    #[track_caller]
    fn check(typed: &str, text: Option<&str>, stars: usize) {
        let mut line = Line::default();
        let mut given_up = false;
        for byte in typed.bytes() {
            match line.press(byte) {
                None => given_up = true,
                Some(true) => break,
                Some(false) => {}
            }
        }
        let got = (!given_up).then(|| String::from_utf8_lossy(&line.text).into_owned());
        assert_eq!(got.as_deref(), text, "{typed:?}");
        assert_eq!(line.stars(), "*".repeat(stars), "{typed:?}");
    }

    #[test]
    fn a_line_is_edited_as_on_any_terminal() {
        check("abc\rd", Some("abc"), 3);
        check("ab\u{7f}c\n", Some("ac"), 2);
        check("\u{8}x", Some("x"), 1);
        check("aé\u{7f}\n", Some("a"), 1);
        check("é", Some("é"), 1);
        check("abc\u{15}x\n", Some("x"), 1);
        check("a\u{1}\u{4}b", Some("ab"), 2);
        check("\u{4}", None, 0);
    }

    #[test]
    fn stars_follow_the_letters() {
        let mut line = Line::default();
        line.press(b'a');
        line.press(b'b');
        assert_eq!(line.stars(), "**");
        line.press(0x7f);
        assert_eq!(line.stars(), "\u{8} \u{8}");
        assert_eq!(line.stars(), "");
    }
}
