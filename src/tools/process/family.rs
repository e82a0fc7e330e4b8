//! Who belongs to a command: the shell's session, and on Linux also what has left it.
//!
//! A process leaves by `setsid` and loses its parent by a double fork, but it keeps its environment:
//! each command's has a variable of its own, which `/proc/PID/environ` shows. Children of those found
//! that way belong too, should they have dropped the variable. What escapes is a process that has done
//! all of this: left the session, lost its parent, and wiped or overwritten its environment. Elsewhere
//! the session's group is all there is.
//!
//! Nothing is remembered between two looks, so no number is ever a stale one.

use super::group::{Group, send};
use crate::tools::backend::Survivor;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The environment variable that marks all that pi starts: `PID-TIME.COMMAND`.
pub const MARKER: &str = "PI_SPAWN_ID";

/// A killed process is gone when the system gets round to it, which takes a while on a busy machine.
const KILL_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks at first; doubled each time.
const KILL_PAUSE: Duration = Duration::from_millis(1);

/// The value of [`MARKER`] for one command, unlike that of any other command of any pi.
pub fn marker(id: u64) -> String {
    static PROCESS: OnceLock<String> = OnceLock::new();
    let process = PROCESS.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.as_nanos());
        format!("{}-{nanos:x}", std::process::id())
    });
    format!("{process}.{id}")
}

/// All processes of one command.
#[derive(Clone, Debug)]
pub struct Family {
    id: u64,
    group: Arc<Group>,
}

impl Family {
    pub fn new(id: u64, group: Arc<Group>) -> Self {
        Self { id, group }
    }

    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Those that live now.
    pub fn members(&self) -> Vec<Survivor> {
        look::members(self.id, &self.group)
    }

    /// Asks all to end. A stopped process goes on first, to hear of it.
    pub fn terminate(&self) {
        let members = self.members();
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            self.group.signal(signal);
            for member in &members {
                if !look::is_in(member.pid, &self.group) {
                    send(member.pid, signal);
                }
            }
        }
    }

    /// Kills all, and returns when they are gone or do not go.
    pub fn kill(&self) {
        let until = Instant::now() + KILL_TIME_MAX;
        let mut pause = KILL_PAUSE;
        while self.strike() && Instant::now() + pause < until {
            thread::sleep(pause);
            pause *= 2;
        }
    }

    /// Kills those that are there, without waiting. True if there were some.
    pub fn strike(&self) -> bool {
        // Looked up first: a parent that is gone leads to nobody any more.
        let members = self.members();
        self.group.signal(libc::SIGKILL);
        let mut struck = false;
        for member in members {
            // Another user's process (`sudo`) refuses.
            struck |= send(member.pid, libc::SIGKILL);
        }
        struck
    }
}

#[cfg(target_os = "linux")]
mod look {
    use super::{Group, MARKER, Survivor, marker};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    /// How long an `execve` may take before its process counts as a stranger's: looks, and the pause
    /// between them.
    const EXEC_LOOKS_MAX: u32 = 500;
    const EXEC_PAUSE: Duration = Duration::from_millis(1);

    pub fn members(id: u64, group: &Group) -> Vec<Survivor> {
        let mark = format!("{MARKER}={}\0", marker(id));
        let session = group.id();
        let own = std::process::id().cast_signed();
        let mut open: Vec<i32> = numbers(Path::new("/proc"))
            .filter(|&pid| pid != own)
            .filter(|&pid| session.is_some_and(|id| session_of(pid) == id) || is_marked(pid, &mark))
            .collect();
        let mut all: BTreeSet<i32> = open.iter().copied().collect();
        while let Some(pid) = open.pop() {
            open.extend(children(pid).into_iter().filter(|&child| all.insert(child)));
        }
        all.into_iter().filter_map(living).collect()
    }

    pub fn is_in(pid: i32, group: &Group) -> bool {
        // SAFETY: no memory is involved.
        group.id() == Some(unsafe { libc::getpgid(pid) })
    }

    fn session_of(pid: i32) -> i32 {
        // SAFETY: no memory is involved.
        unsafe { libc::getsid(pid) }
    }

    fn is_marked(pid: i32, mark: &str) -> bool {
        for _ in 0..EXEC_LOOKS_MAX {
            // Another user's is not readable, and not ours.
            let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else {
                return false;
            };
            if !environ.is_empty() {
                return memchr::memmem::find(&environ, mark.as_bytes()).is_some();
            }
            if !is_starting(pid) {
                return false;
            }
            thread::sleep(EXEC_PAUSE);
        }
        false
    }

    /// Whether a process may be in the middle of `execve`, where its environment is already the new one
    /// but cannot be seen yet: it is at work, has memory, and no place for variables.
    fn is_starting(pid: i32) -> bool {
        const EXITING: u32 = 0x4;
        const KERNEL_THREAD: u32 = 0x20_0000;
        let Some((_, facts)) = stat(pid) else {
            return false;
        };
        // Numbered as in proc(5), where the state is the third.
        let facts: Vec<&str> = facts.split(' ').collect();
        let fact = |number: usize| facts.get(number - 3).copied().unwrap_or_default();
        let [state, flags, env_start, env_end] = [3, 9, 50, 51].map(fact);
        let flags: u32 = flags.parse().unwrap_or(0);
        matches!(state, "R" | "D") && flags & (EXITING | KERNEL_THREAD) == 0 && env_start == env_end
    }

    /// Empty where the kernel does not list children.
    fn children(pid: i32) -> Vec<i32> {
        let tasks = format!("/proc/{pid}/task");
        let lists = numbers(Path::new(&tasks))
            .map(|task| fs::read_to_string(format!("{tasks}/{task}/children")).unwrap_or_default());
        lists
            .flat_map(|list| {
                list.split_ascii_whitespace()
                    .map(str::parse)
                    .collect::<Vec<_>>()
            })
            .filter_map(Result::ok)
            .collect()
    }

    /// The process with its name, unless it has ended and only waits to be reaped.
    fn living(pid: i32) -> Option<Survivor> {
        let (name, facts) = stat(pid)?;
        let ended = facts.starts_with(['Z', 'X']);
        (!ended).then_some(Survivor { pid, name })
    }

    /// A process's name as plain text, and what the system says after it, beginning with the state.
    fn stat(pid: i32) -> Option<(String, String)> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // `PID (NAME) STATE …`, where the name may hold anything.
        let (start, facts) = stat.rsplit_once(") ")?;
        let (_, name) = start.split_once(" (")?;
        let name = crate::tools::plain::text(name.as_bytes()).replace(['\n', '\t'], " ");
        Some((name, facts.to_owned()))
    }

    fn numbers(folder: &Path) -> impl Iterator<Item = i32> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }
}

#[cfg(not(target_os = "linux"))]
mod look {
    use super::{Group, Survivor};

    pub fn members(_: u64, group: &Group) -> Vec<Survivor> {
        let alive = |id: &libc::pid_t| {
            // SAFETY: no memory is involved, and signal 0 has no effect.
            unsafe { libc::kill(-*id, 0) == 0 }
        };
        group
            .id()
            .filter(alive)
            .map(|id| Survivor {
                pid: id,
                name: "process group".into(),
            })
            .into_iter()
            .collect()
    }

    /// The group stands for all.
    pub fn is_in(_: i32, _: &Group) -> bool {
        true
    }
}
