//! Restores a terminal in raw mode after pi was killed.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use crate::base::poll;

/// State for restoring a terminal if pi is killed.
#[derive(Clone, Copy)]
pub struct Lost<'a> {
    /// Terminal attributes before pi changed them.
    pub before: &'a libc::termios,
    /// Sequences that switch off the active modes. Without line breaks.
    pub off: &'a str,
    /// True while another program uses the terminal.
    pub is_lent: bool,
}

/// Writes the line for the watcher: a sign, four sets of flags, the control characters, the text.
impl fmt::Display for Lost<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, off, is_lent } = self;
        let sign = if *is_lent { '&' } else { '=' };
        let flags = [before.c_iflag, before.c_oflag, before.c_cflag, before.c_lflag];
        write!(out, "{sign}")?;
        flags.iter().try_for_each(|flags| write!(out, "{flags} "))?;
        before.c_cc.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        writeln!(out, " {off}")
    }
}

/// Time limit for writing to a blocked terminal.
const WRITE: Duration = Duration::from_secs(1);

/// The watcher's terminal.
pub struct Terminal {
    fd: RawFd,
    /// Pi's process group.
    group: libc::pid_t,
    lost: Option<Noted>,
}

#[derive(Debug, PartialEq, Eq)]
struct Noted {
    is_lent: bool,
    flags: [libc::tcflag_t; 4],
    characters: Vec<u8>,
    off: String,
}

impl Terminal {
    /// The terminal on stderr. Must be called while this process is still in pi's group.
    pub fn of_stderr() -> Option<Self> {
        let fd = io::stderr().as_raw_fd();
        // SAFETY: neither call involves memory.
        let (is_terminal, group) = unsafe { (libc::isatty(fd) == 1, libc::getpgrp()) };
        is_terminal.then_some(Self { fd, group, lost: None })
    }

    /// Handles a line from pi. False if it is not about the terminal.
    pub fn note(&mut self, line: &[u8]) -> bool {
        let is_lent = match line.first() {
            Some(b'=') => false,
            Some(b'&') => true,
            _ => return false,
        };
        let text = line.get(1..).and_then(|rest| std::str::from_utf8(rest).ok()).unwrap_or_default();
        self.lost = parse(is_lent, text);
        true
    }

    pub fn is_lent(&self) -> bool {
        self.lost.as_ref().is_some_and(|lost| lost.is_lent)
    }

    /// Restores the terminal, unless pi has done so.
    pub fn restore(&self) {
        let Some(lost) = &self.lost else {
            return;
        };
        let end = match (lost.is_lent, lost.off.is_empty()) {
            (true, _) => "",
            // It knows no sequences.
            (false, true) => "\r\n",
            // What was drawn below the cursor is of no use any more.
            (false, false) => "\r\n\x1b[J",
        };
        self.write(format!("{}{end}", lost.off).as_bytes());
        // A shell that has gone on already has set its own modes.
        // SAFETY: no memory is involved.
        let foreground = unsafe { libc::tcgetpgrp(self.fd) };
        if foreground < 0 || foreground == self.group {
            self.set(lost);
        }
    }

    fn set(&self, lost: &Noted) {
        // SAFETY: all zeros are a valid value, which the first call fills in; it outlives both calls.
        unsafe {
            let mut modes: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(self.fd, &raw mut modes) != 0 {
                return;
            }
            [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag] = lost.flags;
            for (place, byte) in modes.c_cc.iter_mut().zip(&lost.characters) {
                *place = *byte;
            }
            libc::tcsetattr(self.fd, libc::TCSANOW, &raw const modes);
        }
    }

    /// Writes until a blocked terminal reaches the time limit.
    fn write(&self, mut bytes: &[u8]) {
        let until = Instant::now() + WRITE;
        while !bytes.is_empty() && Instant::now() < until {
            let mut polled = [libc::pollfd { fd: self.fd, events: libc::POLLOUT, revents: 0 }];
            if poll::poll_all(&mut polled, Some(until)).is_err() {
                return;
            }
            if polled.iter().all(|fd| fd.revents == 0) {
                continue;
            }
            // SAFETY: the slice is valid for reading its length.
            let count = unsafe { libc::write(self.fd, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(count) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(_) => return,
            }
        }
    }
}

fn parse(is_lent: bool, text: &str) -> Option<Noted> {
    let mut parts = text.splitn(6, ' ');
    let mut flags = [0; 4];
    for place in &mut flags {
        *place = parts.next()?.parse().ok()?;
    }
    let characters = parts.next()?.as_bytes().chunks(2);
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let characters = characters.map(byte).collect::<Option<_>>()?;
    Some(Noted { is_lent, flags, characters, off: parts.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_noted() {
        // SAFETY: all zeros are a valid value.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        (before.c_iflag, before.c_lflag) = (5, 77);
        before.c_cc[1] = 0x1c;
        let mut terminal = Terminal { fd: -1, group: 0, lost: None };
        for is_lent in [false, true] {
            let line = Lost { before: &before, off: "\x1b[?25h a b", is_lent }.to_string();
            assert!(terminal.note(line.strip_suffix('\n').unwrap().as_bytes()));
            let noted = terminal.lost.as_ref().unwrap();
            assert_eq!((noted.is_lent, noted.flags, &*noted.off), (is_lent, [5, 0, 0, 77], "\x1b[?25h a b"));
            assert_eq!(noted.characters, before.c_cc);
        }
        assert!(!terminal.note(b"+1 70") && terminal.is_lent());
        for line in ["=", "=x", "=1 2 3 4", "=1 2 3 4 0x off", "&1 2 3 -4 00 off"] {
            assert!(terminal.note(line.as_bytes()), "{line}");
            assert_eq!(terminal.lost, None, "{line}");
        }
    }
}
