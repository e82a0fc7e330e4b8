//! Tests on a pty, of which the test is the terminal's side.

use super::*;
use crate::tui::key::{Code, Key, Modifiers};
use crate::tui::terminal::inputs::escape_timeout;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serialises the tests, since signals go to the whole process.
static ONE: Mutex<()> = Mutex::new(());

const SOON: Duration = Duration::from_secs(5);

struct Pty {
    master: File,
    slave: File,
    _one: MutexGuard<'static, ()>,
}

impl Pty {
    fn new() -> Self {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut master, mut slave) = (-1, -1);
        // SAFETY: both numbers are written to; nothing else is asked for.
        let done = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        assert_eq!(done, 0);
        // SAFETY: the call has opened both for us alone.
        let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        Self { master, slave, _one: one }
    }

    fn terminal(&self, modes: Modes) -> Terminal {
        let side = || OwnedFd::from(self.slave.try_clone().unwrap());
        Terminal::on(side(), side(), modes).unwrap()
    }

    fn termios(&self) -> Vec<u64> {
        // SAFETY: all zeros are a valid value, which the call fills in.
        let now = unsafe {
            let mut now: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.slave.as_raw_fd(), &raw mut now), 0);
            now
        };
        [now.c_iflag, now.c_oflag, now.c_cflag, now.c_lflag].map(u64::from).to_vec()
    }

    /// Reads the output up to and including `end`.
    fn seen(&mut self, end: &str) -> String {
        let mut seen = Vec::new();
        while !seen.ends_with(end.as_bytes()) {
            let ready = input::is_ready(self.master.as_fd(), libc::POLLIN, SOON);
            let text = String::from_utf8_lossy(&seen).into_owned();
            assert!(ready, "no {end:?} after {text:?}");
            let mut byte = [0];
            self.master.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
        String::from_utf8(seen).unwrap()
    }

    /// Replies to the query for terminal attributes; returns the output up to it.
    fn answer(&self, answer: &'static [u8]) -> std::thread::JoinHandle<String> {
        let mut master = self.master.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\x1b[c") {
                let mut byte = [0];
                master.read_exact(&mut byte).unwrap();
                asked.push(byte[0]);
            }
            master.write_all(answer).unwrap();
            String::from_utf8(asked).unwrap()
        })
    }

    fn has_more(&self) -> bool {
        input::is_ready(self.master.as_fd(), libc::POLLIN, Duration::ZERO)
    }
}

fn next(terminal: &Terminal) -> Event {
    terminal.events().recv_timeout(SOON).unwrap()
}

#[test]
fn the_terminal_is_afterwards_what_it_was() {
    let mut pty = Pty::new();
    let before = pty.termios();
    let mut terminal = pty.terminal(Modes::usual(false));
    assert_ne!(pty.termios(), before);
    pty.seen(&Modes::usual(false).on());
    terminal.write("hello\r\n").unwrap();
    pty.seen("hello\r\n");
    drop(terminal);
    assert_eq!(pty.termios(), before);
    let off = Modes::usual(false).off();
    assert_eq!(pty.seen("\x1b[?25h"), format!("{off}\x1b[?2026l\x1b[0m\x1b[?25h"));
    assert!(!pty.has_more());
}

#[test]
fn what_is_typed_arrives() {
    let mut pty = Pty::new();
    let terminal = pty.terminal(Modes::NONE);
    pty.master.write_all(b"a\x03\x1b[A").unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < 5 {
        let Event::Bytes(chunk) = next(&terminal) else { panic!() };
        bytes.extend(chunk);
    }
    assert_eq!(bytes, b"a\x03\x1b[A");
}

#[test]
fn a_terminal_that_is_closed_is_the_end() {
    let mut pty = Pty::new();
    let terminal = pty.terminal(Modes::usual(false));
    pty.seen(&Modes::usual(false).on());
    let slave = pty.slave.try_clone().unwrap();
    let Pty { master, _one, .. } = pty;
    drop(master);
    assert_eq!(next(&terminal), Event::End);
    // Nothing comes after it, and nothing is waited for.
    drop(terminal);
    drop(slave);
}

#[test]
fn signals_are_events() {
    let pty = Pty::new();
    let terminal = pty.terminal(Modes::NONE);
    for (signal, expected) in
        [(SIGWINCH, Event::Resized), (SIGCONT, Event::Resumed), (SIGTSTP, Event::Suspend)]
    {
        signal_hook::low_level::raise(signal).unwrap();
        assert_eq!(next(&terminal), expected);
    }
    // As the handler of SIGTERM does; the signal itself would reach all tests.
    terminal.tty.notes.end.store(15, Ordering::SeqCst);
    terminal.tty.wake();
    assert_eq!(next(&terminal), Event::Signal(15));
}

#[test]
fn the_size_is_the_terminals() {
    let pty = Pty::new();
    let terminal = pty.terminal(Modes::NONE);
    let size = libc::winsize { ws_row: 7, ws_col: 33, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the value is valid for the time of the call.
    unsafe {
        libc::ioctl(pty.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size);
    }
    assert_eq!(terminal.size(), Size { columns: 33, rows: 7 });
}

#[test]
fn xterms_keys_are_asked_for_where_kittys_are_not_known() {
    let mut pty = Pty::new();
    let mut terminal = pty.terminal(Modes::usual(false));
    pty.seen(&Modes::usual(false).on());
    terminal.answer(&Reply::Keyboard(7)).unwrap();
    terminal.answer(&Reply::Attributes).unwrap();
    terminal.write(".").unwrap();
    assert_eq!(pty.seen("."), ".");
    terminal.answer(&Reply::Keyboard(0)).unwrap();
    terminal.answer(&Reply::Attributes).unwrap();
    terminal.write(".").unwrap();
    assert_eq!(pty.seen("."), "\x1b[>4;2m.");
    let answering = pty.answer(b"\x1b[?62c");
    drop(terminal);
    let seen = answering.join().unwrap();
    assert!(seen.contains("\x1b[>4;0m"));
}

#[test]
fn another_program_may_have_it_meanwhile() {
    let mut pty = Pty::new();
    let before = pty.termios();
    let mut terminal = pty.terminal(Modes::PASTE);
    let raw = pty.termios();
    terminal.pause();
    assert_eq!(pty.termios(), before);
    assert_eq!(pty.seen("\x1b[?25h"), "\x1b[?2004h\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h");
    terminal.resume().unwrap();
    assert_eq!(pty.termios(), raw);
    pty.master.write_all(b"x").unwrap();
    assert_eq!(next(&terminal), Event::Bytes(b"x".to_vec()));
    terminal.take().unwrap();
    terminal.write(".").unwrap();
    assert_eq!(pty.seen("."), "\x1b[?2004h\x1b[?2004l\x1b[?2004h.");
}

#[test]
fn modes_come_and_go_one_by_one() {
    let mut pty = Pty::new();
    let mut terminal = pty.terminal(Modes::NONE);
    for on in [true, true, false, false] {
        terminal.switch(Modes::SCHEME, on).unwrap();
        terminal.write(".").unwrap();
    }
    assert_eq!(pty.seen("l.."), "\x1b[?2031h..\x1b[?2031l..");
    terminal.switch(Modes::FOCUS, true).unwrap();
    drop(terminal);
    assert!(pty.seen("\x1b[?25h").ends_with("\x1b[?1004l\x1b[?2026l\x1b[0m\x1b[?25h"));
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let mut pty = Pty::new();
    let before = pty.termios();
    let mut terminal = pty.terminal(Modes::PASTE);
    restore::guard(&terminal.tty);
    let raw = pty.termios();
    let worker = std::thread::spawn(|| panic!("on purpose, for a test"));
    assert!(worker.join().is_err());
    assert_eq!(pty.termios(), before);
    assert!(pty.seen("\r\n").ends_with("\x1b[?2004l\x1b[?2026l\x1b[0m\x1b[?25h\r\n"));
    // The loop, if it goes on, takes it again.
    assert_eq!(next(&terminal), Event::Resumed);
    terminal.take().unwrap();
    assert_eq!(pty.termios(), raw);
}

#[test]
fn late_answers_do_not_reach_the_shell() {
    let mut pty = Pty::new();
    let mut terminal = pty.terminal(Modes::NONE);
    terminal.answer(&Reply::Attributes).unwrap();
    // Key releases, then the answer: nothing comes after that.
    let answering = pty.answer(b"\x1b[97;1:3u\x1b[?62;22c");
    drop(terminal);
    answering.join().unwrap();
    let reader = pty.terminal(Modes::NONE);
    pty.master.write_all(b"!").unwrap();
    assert_eq!(next(&reader), Event::Bytes(b"!".to_vec()));
}

#[test]
fn a_reader_that_takes_nothing_does_not_hold_up_the_end() {
    let mut pty = Pty::new();
    let terminal = pty.terminal(Modes::NONE);
    for _ in 0..EVENTS_MAX + 10 {
        pty.master.write_all(b"x").unwrap();
    }
    drop(terminal);
}

#[test]
fn what_is_no_terminal_is_refused() {
    let (reader, writer) = io::pipe().unwrap();
    assert!(Terminal::on(reader.into(), writer.into(), Modes::NONE).is_err());
}

#[test]
fn an_escape_is_waited_on_as_long_as_the_line_needs() {
    for (set, expected) in [
        (&[][..], 10.0),
        (&[("SSH_TTY", "/dev/pts/1")], 100.0),
        (&[("SSH_CONNECTION", "1 2")], 100.0),
        (&[("SSH_CLIENT", "1 2")], 100.0),
        (&[("SSH_TTY", "")], 10.0),
        (&[("SSH_TTY", "x"), ("PI_TUI_ESC_TIMEOUT", "25")], 25.0),
        (&[("PI_TUI_ESC_TIMEOUT", "2.5")], 2.5),
        (&[("PI_TUI_ESC_TIMEOUT", "0")], 10.0),
        (&[("PI_TUI_ESC_TIMEOUT", "-1")], 10.0),
        (&[("PI_TUI_ESC_TIMEOUT", "soon")], 10.0),
        (&[("PI_TUI_ESC_TIMEOUT", "1e300")], 10_000.0),
    ] {
        let found = escape_timeout(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        assert_eq!(found, Duration::from_secs_f64(expected / 1000.0), "{set:?}");
    }
}

#[test]
fn a_lone_escape_is_a_key_after_its_time() {
    let mut inputs = Inputs::new(|_| None);
    let now = Instant::now();
    assert_eq!(inputs.push(b"\x1b", now), []);
    assert_eq!(inputs.deadline(), Some(now + Duration::from_millis(10)));
    assert_eq!(inputs.expire(), [Input::Key(Key::plain(Code::Escape))]);
    assert_eq!(inputs.deadline(), None);
    inputs.push(b"\x1b", now);
    let alt_b = Key::new(Code::Char('b'), Modifiers::ALT);
    assert_eq!(inputs.push(b"b", now), [Input::Key(alt_b)]);
    assert_eq!(inputs.deadline(), None);
}

#[test]
fn only_a_windows_terminal_on_the_spot_sends_0x08_for_ctrl_backspace() {
    for (set, modifiers) in [
        (&[][..], Modifiers::NONE),
        (&["WT_SESSION"], Modifiers::CTRL),
        (&["WT_SESSION", "SSH_CONNECTION"], Modifiers::NONE),
        (&["WT_SESSION", "SSH_CLIENT"], Modifiers::NONE),
        (&["WT_SESSION", "SSH_TTY"], Modifiers::NONE),
    ] {
        let mut inputs = Inputs::new(|name| set.contains(&name).then(|| "x".to_owned()));
        let found = inputs.push(b"\x08", Instant::now());
        let [Input::Key(key)] = found[..] else { panic!("{found:?}") };
        assert_eq!((key.code, key.modifiers), (Code::Backspace, modifiers), "{set:?}");
    }
}

#[test]
fn a_paste_without_marks_is_one_all_the_same() {
    let now = Instant::now();
    let fresh = || Inputs::new(|_| None);
    for (bytes, paste) in [
        ("one\rtwo", Some("one\ntwo")),
        ("one\ntwo\n", Some("one\ntwo\n")),
        ("\ta\rb\r", Some("\ta\nb\n")),
        ("hello\r", None),
        ("\r", None),
        ("hello", None),
        ("a\rb\x1b[A", None),
        ("a\rb\x03", None),
    ] {
        let found = fresh().push(bytes.as_bytes(), now);
        match paste {
            Some(text) => assert_eq!(found, [Input::Paste(text.to_owned())], "{bytes:?}"),
            None => assert!(found.iter().all(|input| matches!(input, Input::Key(_))), "{bytes:?}"),
        }
    }
    let mut inputs = fresh();
    inputs.push(b"a\rb", now);
    let soon = now + Duration::from_millis(1);
    assert_eq!(inputs.push(b"c\r", soon), [Input::Paste("c\n".to_owned())]);
    let later = now + Duration::from_secs(1);
    assert_eq!(inputs.push(b"c\r", later).len(), 2);
    let mut inputs = fresh();
    inputs.push(b"\x1b[?7u", now);
    assert_eq!(inputs.push(b"a\rb", now).len(), 3);
}
