//! Kills the commands if pi is killed: an uncatchable signal ends pi, but not its children.
//!
//! With the first command, or with a terminal that is put into raw mode, comes a second process of this
//! program, the watcher, at the other end of a pipe that only pi can write to. It is told of each command's
//! start and end, and of the terminal's original state. When the pipe closes, for whatever reason, it kills
//! the remaining commands, restores the terminal, and exits. After an orderly end nothing is left to do.
//!
//! No command waits for the watcher: the pipe exists immediately, and the watcher is started in parallel. If
//! it cannot be started, is killed, or does not read, pi works without it.
//!
//! The watcher is this program, executed again: a fork would hold a copy of pi's memory. So there is one only
//! if [`enable`] was called, by a `main` that begins with [`watch_if_asked`].

mod terminal;
mod watcher;

pub use terminal::Lost;

use super::family;
use crate::base::thread::Thread;
use crate::base::{null, poll};
use std::fmt::Display;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Process name of the watcher.
const NAME: &str = "pi-lifeline";

/// Time that the end of pi waits for the watcher.
const END_MAX: Duration = Duration::from_millis(200);

static LIFELINE: Mutex<Lifeline> = Mutex::new(Lifeline::Disabled);

enum Lifeline {
    Disabled,
    /// No command or terminal needed the watcher yet.
    Ready,
    Open {
        wire: PipeWriter,
        /// `None` while the watcher is being started.
        watcher: Option<Watcher>,
    },
    /// Pi is ending, or the watcher has ended.
    Over,
}

struct Watcher {
    process: Child,
    /// Closed when the watcher ends.
    alive: PipeReader,
}

fn lifeline() -> MutexGuard<'static, Lifeline> {
    LIFELINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs as the watcher, if started as one. Must be called before anything else.
pub fn watch_if_asked() -> bool {
    let mut words = std::env::args_os();
    let is_asked = words.next().is_some_and(|name| name == NAME);
    if let (true, Some(mark), None) = (is_asked, words.next(), words.next()) {
        watcher::run(&mark.to_string_lossy());
    }
    is_asked
}

/// Lets the first command start a watcher.
pub fn enable() {
    let mut lifeline = lifeline();
    if matches!(*lifeline, Lifeline::Disabled) {
        *lifeline = Lifeline::Ready;
    }
}

/// The parts needed to start a watcher.
#[must_use]
pub struct Start {
    wire: PipeReader,
    terminal: Option<OwnedFd>,
}

/// Tells the watcher that a command is about to start. The first command gets the parts to start the watcher.
pub fn begins(id: u64) -> Option<Start> {
    let mut lifeline = lifeline();
    let start = lifeline.open(None);
    lifeline.say(format_args!("+{id}\n"));
    start
}

/// Sets how the terminal on `tty` is restored if pi is killed; `None` if it is already restored.
///
/// A watcher that was started without a terminal restores none.
pub fn hold_terminal(tty: BorrowedFd<'_>, lost: Option<&Lost<'_>>) {
    let mut lifeline = lifeline();
    let start = lost.and_then(|_| lifeline.open(tty.try_clone_to_owned().ok()));
    match lost {
        Some(lost) => lifeline.say(lost),
        None => lifeline.say("=\n"),
    }
    drop(lifeline);
    if let Some(start) = start {
        // Nobody waits for it. Without the thread the pipe ends, and with it the lifeline.
        let _ = Thread::named("pi-lifeline").start(move || start.launch());
    }
}

/// Tells the watcher the process group of a started command.
pub fn began(id: u64, group: libc::pid_t) {
    lifeline().say(format_args!("+{id} {group}\n"));
}

/// Tells the watcher that the group's number is about to be released while survivors are left.
pub fn outlived(id: u64) {
    lifeline().say(format_args!("~{id}\n"));
}

/// Tells the watcher that no process of the command is left, or that they should be kept.
pub fn ended(id: u64) {
    lifeline().say(format_args!("-{id}\n"));
}

/// A foreground program that is killed if pi is killed. Identified only by a mark, which must be in its
/// environment.
pub struct Guarded(u64);

impl Guarded {
    pub fn new() -> Self {
        let id = super::next_id();
        if let Some(start) = begins(id) {
            start.launch();
        }
        Self(id)
    }

    /// Name and value of the environment variable that marks the program.
    pub fn mark(&self) -> (&'static str, String) {
        (family::MARKER, family::marker(self.0))
    }
}

impl Default for Guarded {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        ended(self.0);
    }
}

/// Ends the watcher. Waits for it, with a limit.
pub fn end() {
    let over = {
        let mut lifeline = lifeline();
        // A terminal that is still in raw mode is restored by the exit itself.
        lifeline.say("=\n");
        std::mem::replace(&mut *lifeline, Lifeline::Over)
    };
    let Lifeline::Open { wire, watcher } = over else {
        return;
    };
    drop(wire);
    if let Some(mut watcher) = watcher {
        let until = Instant::now() + END_MAX;
        if let Ok([true]) = poll::poll([watcher.alive.as_raw_fd()], Some(until)) {
            let _ = watcher.process.wait();
        }
    }
}

fn open(terminal: Option<OwnedFd>) -> io::Result<(PipeWriter, Start)> {
    let (reader, wire) = io::pipe()?;
    poll::never_block(&wire)?;
    Ok((wire, Start { wire: reader, terminal }))
}

impl Lifeline {
    /// Creates the pipe, if missing, and returns the parts to start the watcher.
    fn open(&mut self, terminal: Option<OwnedFd>) -> Option<Start> {
        if !matches!(self, Self::Ready) {
            return None;
        }
        match open(terminal) {
            Ok((wire, start)) => {
                *self = Self::Open { wire, watcher: None };
                Some(start)
            }
            Err(_) => {
                *self = Self::Over;
                None
            }
        }
    }

    /// Writes a line in one call, which a pipe accepts completely or not at all.
    fn say(&mut self, line: impl Display) {
        let Self::Open { wire, watcher } = self else {
            return;
        };
        if wire.write_all(line.to_string().as_bytes()).is_ok() {
            return;
        }
        // It has ended, or has been stopped for so long that the pipe is full. With words missing it
        // could kill a stranger.
        if let Some(watcher) = watcher {
            let _ = watcher.process.kill();
            let _ = watcher.process.wait();
        }
        *self = Self::Over;
    }
}

impl Start {
    /// Starts the watcher. On failure the pipe is closed, and the lifeline ends.
    pub fn launch(self) {
        let Ok(mut watcher) = self.spawn() else {
            return;
        };
        let mut lifeline = lifeline();
        if let Lifeline::Open { watcher: place, .. } = &mut *lifeline {
            *place = Some(watcher);
        } else {
            drop(lifeline);
            // It has nobody to listen to. If words are missing, it must not act on the others.
            let _ = watcher.process.kill();
            let _ = watcher.process.wait();
        }
    }

    fn spawn(self) -> io::Result<Watcher> {
        let (alive, end) = io::pipe()?;
        let process = Command::new(program()?)
            .arg0(NAME)
            .arg(family::process_mark())
            .current_dir("/")
            .stdin(self.wire)
            .stdout(end)
            .stderr(self.terminal.map_or_else(null::output, |terminal| Ok(terminal.into()))?)
            .spawn()?;
        Ok(Watcher { process, alive })
    }
}

/// Path of this program, even if its file was replaced.
pub fn program() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe()
}

#[cfg(test)]
mod tests;
