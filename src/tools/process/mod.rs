//! Child processes: a shell, all that it starts, and how all of that ends.
//!
//! A shell gets a session of its own, so it has no terminal and signals reach it as a group. Its end is
//! noticed by a thread that waits for it, never by the end of its output: a background process may hold
//! the pipe for ever. `next` sleeps in `poll(2)` on two pipes, the output and one that the waiting
//! thread and a killer write to.
//!
//! What lives on after its shell is a survivor. It lives until pi ends: every way out calls
//! [`shut_down`], which kills what is left; where pi itself is killed, [`lifeline`] does. Who belongs to a command is found in [`family`]; what
//! survivors print is read and dropped in [`drain`].
//!
//! Not here: time limits, output, texts (`super::bash`).

pub mod core_file;
pub mod descriptor;
mod drain;
mod family;
mod group;
pub mod lifeline;

pub use family::MARKER;

use super::backend::{Child, End, Progress, ShellCommand, Survivor};
use super::sandbox::{Confinement, Sandbox};
use crate::base::{executable, null, poll};
use family::Family;
use group::Group;
use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// After the shell's end, output is read until the pipe has been silent for so long.
const SILENCE: Duration = Duration::from_millis(100);
/// Longest time that output is read after the shell's end, however much survivors print.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long a killed process may take to go away before the call ends without it.
const KILL_MAX: Duration = Duration::from_secs(2);

/// All commands that have processes left.
static COMMANDS: Mutex<Commands> =
    Mutex::new(Commands { closed: false, next_id: 1, running: BTreeMap::new() });

struct Commands {
    closed: bool,
    next_id: u64,
    running: BTreeMap<u64, Entry>,
}

struct Entry {
    family: Family,
    /// The shell has ended: these are survivors.
    ended: bool,
    keep: bool,
}

impl Commands {
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

/// A number that no other command has.
fn next_id() -> u64 {
    commands().take_id()
}

fn commands() -> MutexGuard<'static, Commands> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills everything that was started and still runs, survivors included unless they are to be kept.
/// For any thread, at any time; returns when they are gone or cannot be killed.
pub fn kill_all() {
    let families = families(|entry| !(entry.ended && entry.keep));
    // All before waiting for any: this may be the last thing that pi gets to do.
    for (_, family) in &families {
        family.strike();
    }
    for (id, family) in families {
        if family.kill() {
            forget_if_ended(id);
        }
    }
}

/// [`kill_all`], and nothing can be started any more: for every way out of pi.
pub fn shut_down() {
    commands().closed = true;
    kill_all();
    lifeline::end();
}

/// The processes that outlived their shell and still run.
pub fn survivors() -> Vec<Survivor> {
    let mut all = Vec::new();
    for (id, family) in families(|entry| entry.ended) {
        let members = family.members();
        if members.is_empty() {
            forget_if_ended(id);
        }
        all.extend(members);
    }
    all
}

fn families(wanted: impl Fn(&Entry) -> bool) -> Vec<(u64, Family)> {
    let commands = commands();
    let entries = commands.running.iter();
    entries.filter(|(_, entry)| wanted(entry)).map(|(&id, entry)| (id, entry.family.clone())).collect()
}

/// A command whose shell still runs is forgotten by the one who waits for it.
fn forget_if_ended(id: u64) {
    let mut commands = commands();
    if commands.running.get(&id).is_some_and(|entry| entry.ended) {
        commands.running.remove(&id);
        lifeline::ended(id);
    }
}

/// A shell on this machine.
#[derive(Debug)]
pub struct LocalChild {
    id: u64,
    family: Family,
    /// `None` when all writers have closed it.
    output: Option<PipeReader>,
    wake: PipeReader,
    phase: Phase,
    /// When the shell's end was noticed.
    ended_at: Option<Instant>,
    /// Bytes that were in the pipe at the shell's end, and are not yet read.
    backlog_bytes: usize,
    last_output_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Asked to end. What is left is killed at `kill_at`.
    Ending {
        kill_at: Instant,
        looked: bool,
    },
    /// Killed. Whatever happens, `next` ends at `give_up_at`.
    Killed {
        give_up_at: Instant,
    },
    Over,
}

/// Starts a shell, confined by `sandbox` if there is one.
pub fn spawn(command: &ShellCommand, sandbox: Option<&Sandbox>) -> io::Result<LocalChild> {
    let shell = find_shell(command.shell.as_deref())?;
    start(command, &shell, sandbox).map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::E2BIG) => ". Put long text into a file and let the command read it",
            _ => "",
        };
        io::Error::new(error.kind(), format!("Cannot start {}: {error}{hint}", shell.display()))
    })
}

fn start(command: &ShellCommand, shell: &Path, sandbox: Option<&Sandbox>) -> io::Result<LocalChild> {
    let id = {
        let mut commands = commands();
        if commands.closed {
            return Err(io::Error::other("pi is ending"));
        }
        commands.take_id()
    };
    let (output, writer) = io::pipe()?;
    poll::widen(&output);
    let (wake, wake_writer) = io::pipe()?;
    // The thread comes first: once the shell runs, nothing can fail any more.
    let (hand_over, handed_over) = mpsc::sync_channel::<(Arc<Group>, Option<lifeline::Start>)>(1);
    thread::Builder::new().name("pi-wait".into()).stack_size(128 << 10).spawn(move || {
        if let Ok((group, start)) = handed_over.recv() {
            if let Some(start) = start {
                start.launch();
            }
            group.await_end();
        }
    })?;

    let (mut process, confinement) = match sandbox {
        None => {
            let mut process = Command::new(shell);
            process.current_dir(&command.cwd);
            (process, Confinement::default())
        }
        Some(sandbox) => sandbox.command(shell, &command.cwd)?,
    };
    process
        .arg("-c")
        .arg(script(&command.text))
        .env_clear()
        .envs(&command.env)
        .env(MARKER, family::marker(id))
        .stdin(null::input()?)
        .stdout(writer.try_clone()?)
        .stderr(writer);
    set_apart(&mut process);
    let start = lifeline::begins(id);
    let child = process.spawn().inspect_err(|_| lifeline::ended(id))?;
    // Our ends for writing go, else the output would never be over.
    drop((process, confinement));

    let group = Arc::new(Group::new(child, wake_writer));
    lifeline::began(id, group.number().id);
    let family = Family::new(id, group.clone());
    let closed = {
        let mut commands = commands();
        let entry = Entry { family: family.clone(), ended: false, keep: command.keep_background };
        commands.running.insert(id, entry);
        commands.closed
    };
    if closed {
        // pi began to end meanwhile, perhaps too late for `kill_all` to see this one.
        group.kill();
    }
    let _ = hand_over.send((group, start));
    Ok(LocalChild {
        id,
        family,
        output: Some(output),
        wake,
        phase: Phase::Running,
        ended_at: None,
        backlog_bytes: 0,
        last_output_at: Instant::now(),
    })
}

/// Has `process` begin a session of its own, and so a group: it has no terminal, no descriptors but its input
/// and output, and may leave core files as far as pi itself was allowed to.
pub fn set_apart(process: &mut Command) {
    // SAFETY: all calls are async-signal-safe, and the closure only reads memory.
    unsafe {
        process.pre_exec(|| {
            // Where the system has no such call, those that pi was started with are kept back already.
            let _ = descriptor::keep_from_programs();
            match libc::setsid() {
                -1 => Err(io::Error::last_os_error()),
                _ => core_file::allow(),
            }
        });
    }
}

/// A shell would take a command that begins with a dash for one of its options.
fn script(text: &str) -> String {
    match text.as_bytes().first() {
        Some(b'-' | b'+') => format!(" {text}"),
        _ => text.to_owned(),
    }
}

fn find_shell(chosen: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(path) = chosen {
        return if path.exists() {
            Ok(path.to_owned())
        } else {
            let message = format!("Custom shell path not found: {}", path.display());
            Err(io::Error::new(io::ErrorKind::NotFound, message))
        };
    }
    let usual = Path::new("/bin/bash");
    if usual.exists() {
        return Ok(usual.to_owned());
    }
    Ok(executable::find("bash").unwrap_or_else(|| executable::SHELL.into()))
}

impl Child for LocalChild {
    fn next(&mut self, buffer: &mut [u8], until: Option<Instant>) -> io::Result<Progress> {
        loop {
            self.kill_if_due(Instant::now());
            let output = self.output.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            let wake_at = until.into_iter().chain(self.due()).min();
            let [woken, readable] = poll::poll([self.wake.as_raw_fd(), output], wake_at)?;
            if woken {
                self.wake_up()?;
            }
            let now = Instant::now();
            if readable && !self.has_read_enough(now) {
                match self.read(buffer)? {
                    Some(count) => return Ok(Progress::Output(count)),
                    None => continue,
                }
            }
            if self.is_over(now) {
                return Ok(Progress::Ended(self.end()));
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(Progress::Waited);
            }
        }
    }

    fn terminate(&mut self, grace: Duration) -> bool {
        if self.phase != Phase::Running || self.family.group().has_ended() {
            return false;
        }
        self.family.terminate();
        self.phase = Phase::Ending { kill_at: Instant::now() + grace, looked: false };
        true
    }

    fn killer(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.family.killer()
    }
}

impl LocalChild {
    fn kill_if_due(&mut self, now: Instant) {
        if let Phase::Ending { kill_at, .. } = self.phase
            && kill_at <= now
        {
            self.kill_family(now);
        }
    }

    /// True if the rest of the output is left unread: the process that prints it lives on, and could print for ever.
    fn has_read_enough(&self, now: Instant) -> bool {
        match self.phase {
            // What was in the pipe at the shell's end is read in any case.
            Phase::Running => {
                let until = self.ended_at.map(|at| at + DRAIN_MAX);
                self.backlog_bytes == 0 && until.is_some_and(|until| until <= now)
            }
            Phase::Ending { .. } => false,
            Phase::Killed { give_up_at } => give_up_at <= now,
            Phase::Over => true,
        }
    }

    /// True if nothing more is to come, when there is nothing to read.
    fn is_over(&mut self, now: Instant) -> bool {
        let settled = self.settles_at().is_some_and(|at| at <= now);
        match &mut self.phase {
            Phase::Running => settled,
            // The shell has ended, but what it started may need its grace. That is looked up once: a
            // process that goes without holding the pipe is not noticed otherwise.
            Phase::Ending { looked, .. } => {
                settled && !std::mem::replace(looked, true) && self.family.members().is_empty()
            }
            Phase::Killed { give_up_at } => settled || *give_up_at <= now,
            Phase::Over => true,
        }
    }

    /// Time at which the command counts as ended: shell ended and output closed or silent.
    fn settles_at(&self) -> Option<Instant> {
        let ended_at = self.ended_at?;
        if self.output.is_none() {
            return Some(ended_at);
        }
        let silent_at = self.last_output_at.max(ended_at) + SILENCE;
        Some(silent_at.min(ended_at + DRAIN_MAX))
    }

    /// Time of the next check of `is_over` that no event triggers.
    fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Ending { kill_at, looked: true } => Some(kill_at),
            Phase::Ending { kill_at: at, .. } | Phase::Killed { give_up_at: at } => {
                Some(self.settles_at().map_or(at, |settles_at| settles_at.min(at)))
            }
            Phase::Running | Phase::Over => self.settles_at(),
        }
    }

    fn wake_up(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16];
        poll::retry(|| self.wake.read(&mut bytes))?;
        let now = Instant::now();
        if self.family.group().has_ended() && self.ended_at.is_none() {
            self.ended_at = Some(now);
            self.backlog_bytes = self.output.as_ref().map_or(0, poll::readable_bytes);
        }
        if self.family.group().is_killed() && !matches!(self.phase, Phase::Killed { .. }) {
            self.kill_family(now);
        }
        Ok(())
    }

    /// Kills all processes of the command, also those that left a group that has ended.
    fn kill_family(&mut self, now: Instant) {
        self.family.kill();
        self.phase = Phase::Killed { give_up_at: now + KILL_MAX };
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(output) = &mut self.output else {
            return Ok(None);
        };
        let count = poll::retry(|| output.read(buffer))?;
        if count == 0 {
            self.output = None;
            if let Phase::Ending { looked, .. } = &mut self.phase {
                // What held the pipe may have been the last one.
                *looked = false;
            }
            return Ok(None);
        }
        self.last_output_at = Instant::now();
        self.backlog_bytes = self.backlog_bytes.saturating_sub(count);
        Ok(Some(count))
    }

    fn end(&mut self) -> End {
        if matches!(self.phase, Phase::Ending { .. } | Phase::Killed { .. }) {
            // Once more: a process may have been started while the others were killed.
            self.family.kill();
        }
        self.phase = Phase::Over;
        let survivors = self.family.members();
        self.tell_lifeline(survivors.is_empty());
        let exit_code = self.family.group().close();
        if survivors.is_empty() {
            commands().running.remove(&self.id);
        } else if let Some(entry) = commands().running.get_mut(&self.id) {
            entry.ended = true;
        }
        if let Some(output) = self.output.take() {
            drain::adopt(output);
        }
        End { exit_code, survivors }
    }
}

impl LocalChild {
    /// Before the leader is reaped: afterwards its number may become another's.
    fn tell_lifeline(&self, is_all_over: bool) {
        let is_kept = || {
            let commands = commands();
            let entry = commands.running.get(&self.id);
            entry.is_some_and(|entry| entry.keep)
        };
        if is_all_over || is_kept() {
            lifeline::ended(self.id);
        } else {
            lifeline::outlived(self.id);
        }
    }
}

impl Drop for LocalChild {
    fn drop(&mut self) {
        if self.phase != Phase::Over {
            self.kill_family(Instant::now());
            self.end();
        }
    }
}

#[cfg(test)]
mod tests;
