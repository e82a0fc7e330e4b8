//! The real terminal: raw mode, other modes, and input.
//!
//! Whatever is switched on is switched off again on every way out: when [`Terminal`] is dropped, when a
//! thread panics, when the process exits from anywhere, when it is suspended. For SIGKILL there is a
//! [`Keeper`], which knows from the first frame on how another process can restore the terminal.
//!
//! One thread waits for bytes, signals and the end, and sends them as [`Event`]s over a bounded channel,
//! without polling. Signals such as SIGTERM are events too, so that the loop ends in order; `mode::signal`
//! ends the process if the loop hangs.
//!
//! Not here: the meaning of bytes ([`Inputs`] has the decoder and the Escape timeout), and drawing
//! (`screen`).

mod input;
mod inputs;
mod modes;
mod restore;

pub use inputs::{ASK_POSITION, Inputs};
pub use modes::Modes;
pub use restore::{Keeper, Lost};

use super::decode::Decoder;
use super::key::{Input, Reply};
use super::screen::Size;
use crate::base::thread::Thread;
use crossbeam_channel::{Receiver, Sender, bounded};
use restore::Tty;
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum events waiting to be handled.
const EVENTS_MAX: usize = 64;

/// Time limit for late replies and key releases before the terminal is restored.
const DRAIN: Duration = Duration::from_secs(1);
/// Silence after which the terminal's input counts as finished.
const IDLE: Duration = Duration::from_millis(50);

/// An event of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Bytes(Vec<u8>),
    Resized,
    /// The process should be suspended: call [`Terminal::suspend`].
    Suspend,
    /// The process continues after a stop, or a panic has restored the terminal: call [`Terminal::take`] and
    /// redraw everything.
    Resumed,
    /// A signal that requests the end.
    Signal(i32),
    /// The terminal is gone. No events follow.
    End,
}

pub struct Terminal {
    tty: Arc<Tty>,
    /// Modes to keep on while pi uses the terminal.
    modes: Modes,
    /// True if the terminal has replied to a query that all terminals support.
    answers: bool,
    speaks_kitty: bool,
    events: (Sender<Event>, Receiver<Event>),
    wake: Arc<PipeReader>,
    thread: Option<(JoinHandle<()>, Sender<()>)>,
    signals: Vec<SigId>,
    keeper: Option<Keeper>,
}

impl Terminal {
    /// Opens the terminal on stdin and stdout.
    pub fn open(modes: Modes, keeper: Keeper) -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let mut terminal = Self::on(input, output, modes)?;
        terminal.keeper = Some(keeper);
        restore::guard(&terminal.tty);
        Ok(terminal)
    }

    /// Opens the terminal on `input` and `output`. Restored on drop, panic and exit.
    fn on(input: OwnedFd, output: OwnedFd, modes: Modes) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let tty = Tty::new(File::from(input), File::from(output), writer)?;
        let mut terminal = Self {
            tty,
            modes,
            answers: false,
            speaks_kitty: false,
            events: bounded(EVENTS_MAX),
            wake: Arc::new(reader),
            thread: None,
            signals: Vec::new(),
            keeper: None,
        };
        for signal in [SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
            // `nohup`, and shells without job control, ask not to be disturbed by some.
            if !input::is_ignored(signal) {
                terminal.signals.extend(terminal.tty.note_signal(signal)?);
            }
        }
        terminal.resume()?;
        Ok(terminal)
    }

    pub fn events(&self) -> &Receiver<Event> {
        &self.events.1
    }

    /// The size, otherwise the environment's, otherwise 80 by 24.
    pub fn size(&self) -> Size {
        let (columns, rows) = self.tty.size();
        let or = |cells: u16, name, usual| match cells {
            0 => std::env::var(name)
                .ok()
                .and_then(|text| text.parse().ok())
                .filter(|&cells| cells > 0)
                .unwrap_or(usual),
            _ => usize::from(cells),
        };
        Size { columns: or(columns, "COLUMNS", 80), rows: or(rows, "LINES", 24) }
    }

    pub fn write(&mut self, text: &str) -> io::Result<()> {
        let written = self.tty.write(text.as_bytes());
        // Not before the first frame, which is not to wait for it.
        if let Some(keeper) = self.keeper.take() {
            self.tty.keep(keeper);
        }
        written
    }

    /// Sets the text that restores the title, used if this process is killed.
    pub fn set_farewell(&self, text: &str) {
        self.tty.set_farewell(text);
    }

    /// Switches modes on or off, besides the active ones.
    pub fn switch(&mut self, modes: Modes, on: bool) -> io::Result<()> {
        let before = self.modes;
        self.modes = if on { before | modes } else { before.without(modes) };
        if self.thread.is_none() {
            return Ok(());
        }
        match on {
            true => self.tty.enter(modes.without(before)),
            false => self.tty.leave(before.without(self.modes)),
        }
    }

    /// Switches to the alternate screen or back; `modes` are additionally on there. Kitty's keyboard flags
    /// are queried again, since each screen has its own.
    pub fn switch_screen(&mut self, modes: Modes, on: bool) -> io::Result<()> {
        let keyboard = match self.modes.has(Modes::KEYBOARD) {
            true => Modes::KEYBOARD,
            false => Modes::NONE,
        };
        self.switch(keyboard, false)?;
        self.switch(modes, on)?;
        self.switch(keyboard, true)
    }

    /// Handles a reply to the queries sent on opening: without Kitty's keyboard protocol, xterm's is used.
    pub fn answer(&mut self, reply: &Reply) -> io::Result<()> {
        match reply {
            Reply::Keyboard(flags) => {
                self.speaks_kitty = *flags != 0;
                self.switch(Modes::OTHER_KEYS, !self.speaks_kitty)
            }
            Reply::Attributes => {
                self.answers = true;
                match self.modes.has(Modes::KEYBOARD) && !self.speaks_kitty {
                    true => self.switch(Modes::OTHER_KEYS, true),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Restores the terminal until [`Self::resume`], for another program.
    pub fn pause(&mut self) {
        if let Some((thread, stop)) = self.thread.take() {
            drop(stop);
            self.tty.wake();
            let _ = thread.join();
        }
        if self.tty.is_ours() {
            let _ = self.tty.leave(self.modes);
            self.drain();
            self.tty.give_back();
        }
    }

    /// Like [`Self::pause`], for a program that changes the terminal's modes.
    pub fn hand_over(&mut self) {
        self.pause();
        self.tty.hand_over(self.modes != Modes::NONE);
    }

    /// Sets up the terminal again.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.thread.is_some() {
            return self.take();
        }
        self.take()?;
        let wake = self.wake.clone();
        let (stop, stopped) = bounded(0);
        let (tty, events) = (self.tty.clone(), self.events.0.clone());
        let thread = Thread::named("terminal").start(move || input::run(&tty, &wake, &events, &stopped))?;
        self.thread = Some((thread, stop));
        Ok(())
    }

    /// Sets all active modes again, whatever their state.
    pub fn take(&mut self) -> io::Result<()> {
        if self.tty.is_ours() {
            // What is pushed twice would have to be popped twice.
            self.tty.leave(self.modes)?;
        }
        self.speaks_kitty = false;
        self.modes = self.modes.without(Modes::OTHER_KEYS);
        self.tty.take()?;
        self.tty.enter(self.modes)
    }

    /// Suspends the process, like Ctrl+Z, until the shell continues it. Must be called from the main thread.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.pause();
        input::stop();
        self.tty.notes.resumed.store(false, Ordering::SeqCst);
        self.resume()
    }

    /// Discards pending replies of the terminal, which the shell would read as typed input.
    fn drain(&self) {
        // What comes before the answer to this was sent before everything was off.
        if self.answers && self.tty.write(b"\x1b[c").is_err() {
            return;
        }
        let limit = Instant::now() + DRAIN;
        let (mut decoder, mut inputs) = (Decoder::default(), Vec::new());
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let wait = if self.answers { left } else { left.min(IDLE) };
            let Some(bytes) = self.tty.read_within(wait) else {
                return;
            };
            decoder.push(&bytes, &mut inputs);
            if inputs.drain(..).any(|input| input == Input::Reply(Reply::Attributes)) {
                return;
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
        self.pause();
    }
}

#[cfg(test)]
mod tests;
