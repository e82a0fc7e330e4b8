//! The terminal's original state, and restoring it on every exit.
//!
//! The active modes are one atomic number: panic hook and exit handler must be able to read them whatever is
//! locked.

use super::modes::Modes;
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::Duration;
use termion::raw::{IntoRawMode, RawTerminal};

/// Flag above the bits of [`Modes`]: raw mode.
const RAW: u32 = 1 << 31;
/// Flag: some mode has been on, so the terminal supports sequences.
const KNOWS: u32 = 1 << 30;

/// Ends a frame that was broken off, and shows the cursor in the terminal's own colours.
const PLAIN: &str = "\x1b[?2026l\x1b[0m\x1b[?25h";

/// Time limit for writing to a blocked terminal.
const WRITE: Duration = Duration::from_secs(5);

/// How to restore the terminal after this process was killed.
pub struct Lost<'a> {
    pub before: &'a libc::termios,
    /// Sequences that switch off the active modes.
    pub off: &'a str,
    /// True while another program uses the terminal.
    pub is_lent: bool,
}

/// Called on each change; `None` when the terminal is restored.
pub type Keeper = fn(BorrowedFd<'_>, Option<&Lost<'_>>);

/// Resets modes that another program may have left on.
const LENT_OFF: &str = "\x1b[?1l\x1b>\x1b[0 q";

pub(super) struct Tty {
    input: File,
    output: RawTerminal<File>,
    before: libc::termios,
    /// Bits of [`Modes`] and [`RAW`].
    on: AtomicU32,
    keeper: Mutex<Option<Keeper>>,
    /// Text that restores the title.
    farewell: Mutex<String>,
    pub(super) notes: Notes,
    wake: PipeWriter,
}

/// Reasons for waking the thread.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) resized: Arc<AtomicBool>,
    pub(super) suspend: Arc<AtomicBool>,
    pub(super) resumed: Arc<AtomicBool>,
    /// The signal that requests the end, or 0.
    pub(super) end: Arc<AtomicUsize>,
}

static TTYS: Mutex<Vec<Weak<Tty>>> = Mutex::new(Vec::new());

impl Tty {
    pub(super) fn new(input: File, output: File, wake: PipeWriter) -> io::Result<Arc<Self>> {
        for file in [&input, &output] {
            if !termion::is_tty(file) {
                return Err(io::Error::other("not a terminal"));
            }
        }
        let before = modes_of(&output)?;
        let output = output.into_raw_mode()?;
        let on = AtomicU32::new(RAW);
        let (keeper, farewell, notes) = Default::default();
        Ok(Arc::new(Self { input, output, before, on, keeper, farewell, notes, wake }))
    }

    /// Makes a signal wake the thread.
    pub(super) fn note_signal(&self, signal: i32) -> io::Result<[SigId; 2]> {
        let notes = &self.notes;
        let flag = match signal {
            SIGWINCH => Some(&notes.resized),
            SIGTSTP => Some(&notes.suspend),
            SIGCONT => Some(&notes.resumed),
            _ => None,
        };
        let noted = match flag {
            Some(flag) => signal_hook::flag::register(signal, flag.clone())?,
            None => {
                let number = usize::try_from(signal).unwrap_or(0);
                signal_hook::flag::register_usize(signal, notes.end.clone(), number)?
            }
        };
        // After the note: who is woken must find it.
        let wake = self.wake.try_clone()?;
        Ok([noted, signal_hook::low_level::pipe::register(signal, wake)?])
    }

    pub(super) fn wake(&self) {
        // A pipe that is full wakes as well.
        let _ = (&self.wake).write(b"w");
    }

    pub(super) fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.input).read(buffer)
    }

    /// Bytes received within a time, if any.
    pub(super) fn read_within(&self, time: Duration) -> Option<Vec<u8>> {
        if !super::input::is_ready(self.input(), libc::POLLIN, time) {
            return None;
        }
        let mut buffer = vec![0; 4096];
        let count = self.read(&mut buffer).ok().filter(|&count| count > 0)?;
        buffer.truncate(count);
        Some(buffer)
    }

    pub(super) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut output: &File = self.output.deref();
        while !bytes.is_empty() {
            match output.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another program has made the terminal non-blocking for all.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !super::input::is_ready(output.as_fd(), libc::POLLOUT, WRITE) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Columns and rows; zeros if unknown.
    pub(super) fn size(&self) -> (u16, u16) {
        let output: &File = self.output.deref();
        termion::terminal_size_fd(output).unwrap_or_default()
    }

    pub(super) fn is_ours(&self) -> bool {
        self.on.load(Ordering::SeqCst) & RAW != 0
    }

    pub(super) fn enter(&self, modes: Modes) -> io::Result<()> {
        // Noted first: better switched off without need than left on.
        let knows = if modes == Modes::NONE { 0 } else { KNOWS };
        self.on.fetch_or(modes.bits() | knows, Ordering::SeqCst);
        self.tell();
        self.write(modes.on().as_bytes())
    }

    pub(super) fn leave(&self, modes: Modes) -> io::Result<()> {
        let on = self.on.fetch_and(!modes.bits(), Ordering::SeqCst);
        let modes = Modes::of_bits(on & modes.bits());
        let written = self.write(modes.off().as_bytes());
        self.tell();
        written
    }

    pub(super) fn take(&self) -> io::Result<()> {
        self.on.fetch_or(RAW, Ordering::SeqCst);
        self.output.activate_raw_mode()
    }

    /// Restores the terminal; a second call does nothing.
    pub(super) fn give_back(&self) -> bool {
        let on = self.on.swap(0, Ordering::SeqCst);
        if on & RAW == 0 {
            return false;
        }
        if on & KNOWS != 0 {
            let off = Modes::of_bits(on).off();
            let _ = self.write(format!("{off}{PLAIN}").as_bytes());
        }
        let _ = self.output.suspend_raw_mode();
        self.tell();
        true
    }

    /// Registers `keeper`, which is told how to restore the terminal.
    pub(super) fn keep(&self, keeper: Keeper) {
        let mut place = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            *place = Some(keeper);
            drop(place);
            self.tell();
        }
    }

    pub(super) fn set_farewell(&self, text: &str) {
        let mut farewell = self.farewell.lock().unwrap_or_else(PoisonError::into_inner);
        if *farewell != text {
            text.clone_into(&mut farewell);
            drop(farewell);
            self.tell();
        }
    }

    /// Marks the terminal as used by another program.
    pub(super) fn hand_over(&self, knows_sequences: bool) {
        let off = match knows_sequences {
            true => format!("{}{LENT_OFF}{PLAIN}{}", Modes::ALL.off(), self.farewell()),
            false => String::new(),
        };
        self.say(Some(&off), true);
    }

    fn farewell(&self) -> String {
        // A panic may have come while it was changed.
        self.farewell.try_lock().map(|text| text.clone()).unwrap_or_default()
    }

    fn tell(&self) {
        let on = self.on.load(Ordering::SeqCst);
        let off = match on & KNOWS {
            0 => String::new(),
            _ => format!("{}{PLAIN}{}", Modes::of_bits(on).off(), self.farewell()),
        };
        self.say((on & RAW != 0).then_some(&off), false);
    }

    fn say(&self, off: Option<&str>, is_lent: bool) {
        let keeper = self.keeper.try_lock().ok().and_then(|keeper| *keeper);
        if let Some(keeper) = keeper {
            let output: &File = self.output.deref();
            let lost = off.map(|off| Lost { before: &self.before, off, is_lent });
            keeper(output.as_fd(), lost.as_ref());
        }
    }
}

fn modes_of(terminal: &File) -> io::Result<libc::termios> {
    // SAFETY: all zeros are a valid value; the call fills it in, and it outlives the call.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        match libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) {
            0 => Ok(modes),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Restores all terminals. Safe to call anywhere, whatever is locked.
fn give_all_back(is_panic: bool) {
    let Ok(ttys) = TTYS.try_lock() else { return };
    for tty in ttys.iter().filter_map(Weak::upgrade) {
        if tty.give_back() && is_panic {
            // The message begins on a row of its own; who goes on after it draws anew.
            let _ = tty.write(b"\n");
            tty.notes.resumed.store(true, Ordering::SeqCst);
            tty.wake();
        }
    }
}

extern "C" fn at_exit() {
    give_all_back(false);
}

/// Restores the terminal when a thread panics and when the process exits.
pub(super) fn guard(tty: &Arc<Tty>) {
    let mut ttys = TTYS.lock().unwrap_or_else(PoisonError::into_inner);
    ttys.retain(|tty| tty.strong_count() > 0);
    ttys.push(Arc::downgrade(tty));
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let next = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_all_back(true);
            next(panic);
        }));
        // SAFETY: the function is `extern "C"`, lives as long as the process and does not unwind.
        unsafe {
            libc::atexit(at_exit);
        }
    });
}
