//! The built binary on a terminal of its own, whose screen is a terminal emulator.
//!
//! The emulator's side answers what a terminal answers (its attributes, a dark background), and keeps every
//! byte that came, so that tests can look at what was written besides what is seen.

use crate::agent::{Pi, World, terminal};
use crate::server::PATIENCE;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::num::NonZero;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub const ENTER: &str = "\r";
pub const ESCAPE: &str = "\x1b";
pub const CTRL_C: &str = "\x03";

/// Rows that scrolled away and are kept.
const SCROLLBACK: usize = 100_000;

pub struct Screen {
    child: Child,
    ours: File,
    seen: Arc<Seen>,
    reader: Option<JoinHandle<()>>,
    /// Keeps the terminal and its modes when pi has ended.
    theirs: Option<OwnedFd>,
    /// As the terminal was before pi came.
    modes: libc::termios,
    stop: Option<PipeWriter>,
}

/// Pi with the scripted model, ready for the first prompt.
pub fn started(world: &World, words: &str) -> Screen {
    let screen = Screen::start(world.pi().words("--model mock/m1").words(words));
    screen.wait_for("m1");
    screen
}

struct Seen {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    parser: vt100::Parser,
    raw: Vec<u8>,
    is_over: bool,
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a size")
}

impl State {
    fn rows(&self) -> Vec<String> {
        let columns = self.parser.screen().size().1.get();
        self.parser.screen().rows(0, columns).collect()
    }

    fn text(&self) -> String {
        self.rows().join("\n")
    }
}

impl Screen {
    /// Starts pi on a terminal of 80 columns and 24 rows.
    pub fn start(pi: Pi<'_>) -> Self {
        Self::of_kind(pi, "xterm-256color")
    }

    /// On a terminal that calls itself so.
    pub fn of_kind(mut pi: Pi<'_>, kind: &str) -> Self {
        let (columns, rows) = (80, 24);
        let (ours, theirs) = terminal().expect("open a terminal");
        set_size(&ours, columns, rows);
        let modes = modes(&ours);
        let second = |file: &OwnedFd| file.try_clone().expect("a second handle");
        let command = pi.command();
        command.env("TERM", kind).stdin(second(&theirs)).stdout(second(&theirs)).stderr(second(&theirs));
        // SAFETY: both calls are safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("start pi");
        // It holds the other end of the terminal, which would never close.
        drop(pi);
        let seen = Arc::new(Seen {
            state: Mutex::new(State {
                parser: vt100::Parser::new(cells(rows), cells(columns), SCROLLBACK),
                raw: Vec::new(),
                is_over: false,
            }),
            more: Condvar::new(),
        });
        let (stopped, stop) = std::io::pipe().expect("a pipe");
        let reader = {
            let (seen, ours) = (seen.clone(), ours.try_clone().expect("a second handle"));
            thread::spawn(move || seen.follow(ours, &stopped))
        };
        Self { child, ours, seen, reader: Some(reader), theirs: Some(theirs), modes, stop: Some(stop) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.expect("run kill").success());
    }

    /// The window is closed.
    pub fn hang_up(mut self) {
        // Ends by itself now, as whoever started it sees.
        let child = std::mem::replace(&mut self.child, Command::new("true").spawn().expect("true"));
        thread::spawn(move || {
            let mut child = child;
            drop(child.wait());
        });
        drop(self.theirs.take());
        drop(self.stop.take());
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
    }

    pub fn type_keys(&self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    pub fn type_bytes(&self, bytes: &[u8]) {
        (&self.ours).write_all(bytes).expect("type");
    }

    /// Types a line and sends it.
    pub fn send(&self, line: &str) {
        self.type_keys(line);
        self.wait_for(line);
        self.type_keys("\r");
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let mut state = self.seen.state.lock().unwrap();
        state.parser.screen_mut().set_size(cells(rows), cells(columns));
        drop(state);
        set_size(&self.ours, columns, rows);
    }

    /// Waits until the screen is as `is_so` wants it, which may also look at files; gives the rows.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut state = self.seen.state.lock().unwrap();
        while !is_so(&state.text()) && !state.is_over && start.elapsed() < PATIENCE {
            // No bytes come of what changes in files.
            state = self.seen.more.wait_timeout(state, Duration::from_millis(50)).unwrap().0;
        }
        let text = state.text();
        assert!(is_so(&text), "{what}; on screen is:\n{text}");
        text
    }

    /// Waits until the screen shows `part`.
    #[track_caller]
    pub fn wait_for(&self, part: &str) -> String {
        self.wait_until(&format!("{part:?} is not shown"), |text| text.contains(part))
    }

    /// Waits until the screen shows `part` no more.
    #[track_caller]
    pub fn wait_until_gone(&self, part: &str) -> String {
        self.wait_until(&format!("{part:?} is still shown"), |text| !text.contains(part))
    }

    pub fn text(&self) -> String {
        self.seen.state.lock().unwrap().text()
    }

    /// Everything that was ever printed and is still to be found: the scrollback, then the screen.
    pub fn everything(&self) -> Vec<String> {
        let mut state = self.seen.state.lock().unwrap();
        let screen = state.parser.screen_mut();
        let (rows, columns) = screen.size();
        screen.set_scrollback(usize::MAX);
        let mut back = screen.scrollback();
        let mut all = Vec::new();
        while back > 0 {
            screen.set_scrollback(back);
            let count = back.min(usize::from(rows.get()));
            all.extend(screen.rows(0, columns.get()).take(count));
            back -= count;
        }
        screen.set_scrollback(0);
        all.extend(screen.rows(0, columns.get()));
        all
    }

    /// Every byte that was written.
    pub fn raw(&self) -> Vec<u8> {
        self.seen.state.lock().unwrap().raw.clone()
    }

    /// Waits for the end; gives how it ended and all that was written.
    #[track_caller]
    pub fn wait(mut self) -> (ExitStatus, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait for pi") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE * 2, "pi does not end:\n{}", self.text());
            thread::sleep(std::time::Duration::from_millis(2));
        };
        let after = modes(&self.ours);
        let same = |of: fn(&libc::termios) -> libc::tcflag_t| of(&after) == of(&self.modes);
        assert!(
            same(|modes| modes.c_lflag) && same(|modes| modes.c_iflag) && same(|modes| modes.c_oflag),
            "the terminal's modes are not as they were"
        );
        drop(self.theirs.take());
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
        let raw = String::from_utf8_lossy(&self.raw()).into_owned();
        (status, raw)
    }

    /// Kills pi, and waits until the terminal is as it was before; gives all that was written.
    #[track_caller]
    pub fn kill(mut self) -> String {
        self.signal("KILL");
        drop(self.child.wait());
        let start = Instant::now();
        while let Some(what) = self.left_on() {
            assert!(start.elapsed() < PATIENCE, "{what} is left on:\n{}", self.text());
            thread::sleep(std::time::Duration::from_millis(2));
        }
        String::from_utf8_lossy(&self.raw()).into_owned()
    }

    /// Something that is not as it was before pi came.
    fn left_on(&self) -> Option<&'static str> {
        let after = modes(&self.ours);
        let flags =
            |modes: &libc::termios| (modes.c_lflag, modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_cc);
        let state = self.seen.state.lock().unwrap();
        let screen = state.parser.screen();
        let raw = String::from_utf8_lossy(&state.raw);
        let is_last = |on: &str, off: &str| raw.rfind(on) > raw.rfind(off);
        let all = [
            (flags(&after) != flags(&self.modes), "raw mode"),
            (screen.alternate_screen(), "the alternate screen"),
            (screen.bracketed_paste(), "bracketed paste"),
            (screen.hide_cursor(), "a hidden cursor"),
            (screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None, "the mouse"),
            (is_last("\x1b[>7u", "\x1b[<u"), "the keyboard protocol"),
            (is_last("\x1b[?1004h", "\x1b[?1004l"), "focus reporting"),
            (is_last("\x1b]0;π", "\x1b]0;\x07"), "the title"),
        ];
        all.into_iter().find(|(is_on, _)| *is_on).map(|(_, what)| what)
    }

    /// Leaves with `/quit`, and waits for the end.
    #[track_caller]
    pub fn quit(self) -> String {
        self.type_keys("/quit\r");
        let (status, raw) = self.wait();
        assert!(status.success(), "{status}:\n{raw}");
        raw
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

impl Seen {
    fn follow(&self, mut ours: File, stopped: &PipeReader) {
        let mut buffer = vec![0; 64 << 10];
        let mut answered = 0;
        // The end of the other side is an error on Linux.
        while is_readable(&ours, stopped)
            && let Ok(count @ 1..) = ours.read(&mut buffer)
        {
            let mut state = self.state.lock().unwrap();
            let bytes = buffer.get(..count).unwrap_or_default();
            state.parser.process(bytes);
            state.raw.extend_from_slice(bytes);
            let new = state.raw.get(answered..).unwrap_or_default();
            let mut answers = String::new();
            for (asked, answer) in
                [("\x1b[c", "\x1b[?62;22c"), ("\x1b]11;?", "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\")]
            {
                if new.windows(asked.len()).any(|part| part == asked.as_bytes()) {
                    answers.push_str(answer);
                }
            }
            // A question that was cut in two is found with the rest of it.
            answered = state.raw.len().saturating_sub(if answers.is_empty() { 8 } else { 0 });
            drop(state);
            if !answers.is_empty() {
                drop((&ours).write_all(answers.as_bytes()));
            }
            self.more.notify_all();
        }
        self.state.lock().unwrap().is_over = true;
        self.more.notify_all();
    }
}

/// Waits until there is something to read, or it is time to stop.
fn is_readable(ours: &File, stopped: &PipeReader) -> bool {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut wanted = [poll(ours.as_raw_fd()), poll(stopped.as_raw_fd())];
    // SAFETY: both descriptors are open, and the array outlives the call.
    unsafe { libc::poll(wanted.as_mut_ptr(), 2, -1) };
    wanted[1].revents == 0
}

fn modes(terminal: &File) -> libc::termios {
    // SAFETY: all zeros are a valid value; the call writes it, and it outlives the call.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        modes
    }
}

fn set_size(terminal: &File, columns: u16, rows: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptor is a terminal's, the size is a valid value that outlives the call.
    let status = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ as _, &raw const size) };
    assert_eq!(status, 0, "set the size of a terminal");
}
