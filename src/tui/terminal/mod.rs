//! The real terminal: raw mode, what is switched on in it, what comes from it.
//!
//! Whatever is switched on is switched off again on every way out: when [`Terminal`] is dropped, when a thread
//! panics, when the process exits from anywhere, when it is suspended. For SIGKILL there is a [`Keeper`]: it is
//! told from the first frame on what another process has to do to the terminal.
//!
//! One thread waits for bytes, signals and the end, and sends them as [`Event`]s over a bounded channel; nothing
//! is asked for in turns. SIGTERM and its like are events too, so that the loop ends in order; who makes the
//! process end when the loop hangs is `mode::signal`.
//!
//! Not here: what the bytes mean ([`Inputs`] has the decoder and the time of a lone Escape) and what is drawn
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

/// Chunks that were read and not yet taken.
const EVENTS_MAX: usize = 64;

/// How long late answers and key releases are waited for before the terminal is given back.
const DRAIN: Duration = Duration::from_secs(1);
/// A terminal that has nothing to say for so long has said everything.
const IDLE: Duration = Duration::from_millis(50);

/// What happened at the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Bytes(Vec<u8>),
    Resized,
    /// Someone asks the process to stop for a while: [`Terminal::suspend`] does it.
    Suspend,
    /// The process goes on after a stop, or a panic has given the terminal back:
    /// [`Terminal::take`] it again and draw everything.
    Resumed,
    /// A signal that asks for the end.
    Signal(i32),
    /// The terminal is gone. Nothing comes after it.
    End,
}

pub struct Terminal {
    tty: Arc<Tty>,
    /// What is to be on while the terminal is ours.
    modes: Modes,
    /// It has answered a question that all terminals answer.
    answers: bool,
    speaks_kitty: bool,
    events: (Sender<Event>, Receiver<Event>),
    wake: Arc<PipeReader>,
    thread: Option<(JoinHandle<()>, Sender<()>)>,
    signals: Vec<SigId>,
    keeper: Option<Keeper>,
}

impl Terminal {
    /// Takes the terminal on stdin and stdout.
    pub fn open(modes: Modes, keeper: Keeper) -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let mut terminal = Self::on(input, output, modes)?;
        terminal.keeper = Some(keeper);
        restore::guard(&terminal.tty);
        Ok(terminal)
    }

    /// Takes the terminal that `input` and `output` are. Who panics or exits must drop it.
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

    /// The size, or what the environment says, or the usual one.
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

    /// What gives the terminal its title back and the like, should this process be killed.
    pub fn set_farewell(&self, text: &str) {
        self.tty.set_farewell(text);
    }

    /// Switches something on or off, besides what is on.
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

    /// Goes to another screen or back; `modes` has what is on there besides. The keyboard's flags of Kitty
    /// are asked for anew: each screen has its own.
    pub fn switch_screen(&mut self, modes: Modes, on: bool) -> io::Result<()> {
        let keyboard = match self.modes.has(Modes::KEYBOARD) {
            true => Modes::KEYBOARD,
            false => Modes::NONE,
        };
        self.switch(keyboard, false)?;
        self.switch(modes, on)?;
        self.switch(keyboard, true)
    }

    /// Takes an answer of the terminal to what it was asked when it was taken: without Kitty's keyboard
    /// protocol, xterm's is used.
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

    /// Gives the terminal back, as it was, until [`Self::resume`]: for a program that uses it meanwhile.
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

    /// As [`Self::pause`], for a program that changes the terminal's modes.
    pub fn hand_over(&mut self) {
        self.pause();
        self.tty.hand_over(self.modes != Modes::NONE);
    }

    /// Takes the terminal again.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.thread.is_some() {
            return self.take();
        }
        self.take()?;
        let wake = self.wake.clone();
        let (stop, stopped) = bounded(0);
        let (tty, events) = (self.tty.clone(), self.events.0.clone());
        let thread = std::thread::Builder::new()
            .name("terminal".into())
            .spawn(move || input::run(&tty, &wake, &events, &stopped))?;
        self.thread = Some((thread, stop));
        Ok(())
    }

    /// Sets again all that is to be on, whatever became of it.
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

    /// Stops the process, as Ctrl+Z does elsewhere, until the shell lets it go on. To be called from
    /// the main thread.
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
