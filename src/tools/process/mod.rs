//! Child processes: a shell, its descendants, and their end.
//!
//! A shell gets a session of its own, so it has no terminal and signals reach it as a group. Its end is
//! noticed by a thread that waits for it, never by the end of its output: a background process may hold the
//! pipe for ever. `next` sleeps in `poll(2)` on two pipes, the output and a wake pipe of the waiting thread
//! and the killer.
//!
//! A process that outlives its shell is a survivor. It is killed when pi ends: every exit calls
//! [`shut_down`]; if pi is killed, [`lifeline`] does it. [`family`] finds the processes of a command;
//! [`drain`] discards the output of survivors.
//!
//! Not here: time limits, output, texts (`super::bash`).

pub mod core_file;
pub mod descriptor;
mod drain;
mod family;
mod group;
pub mod lifeline;
pub mod peer;

pub use family::MARKER;

use super::backend::{Child, End, Progress, ShellCommand, Survivor};
use super::sandbox::{Confinement, Sandbox};
use crate::base::thread::Thread;
use crate::base::{executable, null, poll};
use family::{Before, Family};
use group::Group;
use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Silence of the pipe after the shell's end that ends reading.
const SILENCE: Duration = Duration::from_millis(100);
/// Maximum time of reading after the shell's end, however much survivors print.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Time limit for killed processes to disappear before the call ends without them.
const KILL_MAX: Duration = Duration::from_secs(2);

/// All commands with living processes.
static COMMANDS: Mutex<Commands> =
    Mutex::new(Commands { closed: false, next_id: 1, running: BTreeMap::new() });

struct Commands {
    closed: bool,
    next_id: u64,
    running: BTreeMap<u64, Entry>,
}

struct Entry {
    family: Family,
    /// True once the shell has ended: the processes are survivors.
    ended: bool,
    keep: bool,
}

impl Commands {
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

/// A unique number for a command.
fn next_id() -> u64 {
    commands().take_id()
}

fn commands() -> MutexGuard<'static, Commands> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all started processes, including survivors unless they should be kept. Callable from any thread at
/// any time; returns when they are gone or cannot be killed.
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

/// Like [`kill_all`], and prevents further starts: for every exit of pi.
pub fn shut_down() {
    commands().closed = true;
    kill_all();
    lifeline::end();
}

/// The running processes that outlived their shell.
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

/// Removes a command whose shell has ended; otherwise its waiting thread removes it.
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
    /// `None` once all writers have closed it.
    output: Option<PipeReader>,
    wake: PipeReader,
    phase: Phase,
    /// When the shell's end was noticed.
    ended_at: Option<Instant>,
    /// Bytes that were in the pipe at the shell's end and are not read yet.
    backlog_bytes: usize,
    last_output_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Terminating. Remaining processes are killed at `kill_at`.
    Ending {
        kill_at: Instant,
        looked: bool,
    },
    /// Killed. `next` ends at `give_up_at` in any case.
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
    let id = admit()?;
    let (output, writer) = io::pipe()?;
    poll::widen(&output);
    let (mut process, _confinement) = match sandbox {
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
        .stdin(match &command.input {
            Some(input) => input.for_child()?,
            None => null::input()?,
        })
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let (family, wake) = launch(id, process, command.keep_background, |_| {})?;
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

/// The number of a command that may be started.
fn admit() -> io::Result<u64> {
    let mut commands = commands();
    match commands.closed {
        true => Err(io::Error::other("pi is ending")),
        false => Ok(commands.take_id()),
    }
}

/// Starts `process` as the command `id`, in a session of its own. The pipe is readable at the leader's end and when
/// the command is killed. `keep`: processes that outlive the leader keep running when pi ends. `at_end` runs on the
/// waiting thread when the leader has ended.
fn launch(
    id: u64,
    mut process: Command,
    keep: bool,
    at_end: impl FnOnce(&Family) + Send + 'static,
) -> io::Result<(Family, PipeReader)> {
    let (wake, wake_writer) = io::pipe()?;
    // The thread comes first: once the program runs, nothing can fail any more.
    let (hand_over, handed_over) = mpsc::sync_channel::<(Family, Option<lifeline::Start>)>(1);
    Thread::named("pi-wait").stack(256 << 10).start(move || {
        if let Ok((family, start)) = handed_over.recv() {
            if let Some(start) = start {
                start.launch();
            }
            family.group().await_end();
            at_end(&family);
        }
    })?;
    process.env(MARKER, family::marker(id));
    set_apart(&mut process);
    let start = lifeline::begins(id);
    let before = Before::now();
    let child = process.spawn().inspect_err(|_| lifeline::ended(id))?;
    // Our copies of the program's ends of its pipes go, else its output would never be over.
    drop(process);

    let group = Arc::new(Group::new(child, wake_writer));
    lifeline::began(id, group.number().id);
    let family = Family::new(id, group.clone(), before);
    let closed = {
        let mut commands = commands();
        commands.running.insert(id, Entry { family: family.clone(), ended: false, keep });
        commands.closed
    };
    if closed {
        // pi began to end meanwhile, perhaps too late for `kill_all` to see this one.
        group.kill();
    }
    let _ = hand_over.send((family.clone(), start));
    Ok((family, wake))
}

/// Makes `process` begin a session of its own: without a terminal, without descriptors except input and
/// output, and with core files as far as pi was allowed to write them.
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

/// Guards a command with a leading dash, which a shell would parse as an option.
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

    fn terminator(&self) -> Arc<dyn Fn() + Send + Sync> {
        let family = self.family.clone();
        Arc::new(move || family.terminate())
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

    /// True if the rest of the output is ignored, since its process lives on and could print for ever.
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

    /// True if no more output or processes are expected, when nothing is readable.
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
    /// Tells the watcher before the leader is reaped, since its number may then be reused.
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
