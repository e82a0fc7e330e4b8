//! Finds the processes of a command in `/proc`.
//!
//! A process leaves its session by `setsid` and loses its parent by a double fork, but keeps its environment,
//! which has a variable unique to the command, visible in `/proc/PID/environ`. Children of members also
//! count, in case they dropped the variable. A process escapes only if it has left the session, lost its
//! parent, and wiped or overwritten its environment.
//!
//! Process and session ids are reused. A process is identified by id and start time; a session whose leader
//! is reaped counts only while it has a known member.

use super::super::group::Number;
use super::MARKER;
use crate::base::order::{self, Order};
use crate::base::poll;
use crate::tools::backend::Survivor;
use crate::tools::plain;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Members by process id, with their start times.
pub type Known = BTreeMap<i32, String>;

/// The processes that were there before a command started, sorted, each with its session. None of them is a
/// member. An id is reused together with that of its session only after both have gone; leaders of sessions, for
/// which that is one event, are always looked at.
pub type Strangers = Arc<Vec<(i32, i32)>>;

/// The processes found by the last search.
static SEEN: Mutex<Option<Strangers>> = Mutex::new(None);

/// The strangers of a command that starts now: those found by an earlier search.
pub fn strangers() -> Strangers {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// Checks before a process in `execve` counts as foreign, and the pause between them.
const EXEC_LOOKS_MAX: u32 = 500;
const EXEC_PAUSE: Duration = Duration::from_millis(1);
/// Checks of an environment that seems empty.
const EMPTY_LOOKS: u32 = 3;
/// Bytes of an environment that are read at once.
const ENVIRON_BYTES: usize = 64 << 10;

/// The living members; `known` are those of the last call, and is updated. `strangers` are not looked at: reading
/// the environment of every process of the machine costs more than most commands.
pub fn members(marker: &str, group: Number, strangers: &Strangers, known: &mut Known) -> Vec<Survivor> {
    let mark = format!("{MARKER}={marker}\0");
    let own = std::process::id().cast_signed();
    let mut open: Vec<i32> = Vec::new();
    let mut in_session: Vec<i32> = Vec::new();
    let mut is_ours = !group.is_reaped;
    let mut environ = vec![0; ENVIRON_BYTES];
    let mut seen = Vec::with_capacity(strangers.len() + 16);
    for pid in numbers(Path::new("/proc")).filter(|&pid| pid != own) {
        let session = session_of(pid);
        seen.push((pid, session));
        if pid != session && strangers.binary_search(&(pid, session)).is_ok() {
            continue;
        }
        let mut is_member = || is_known(pid, known) || is_marked(pid, &mark, &mut environ);
        if session == group.id {
            is_ours = is_ours || is_member();
            in_session.push(pid);
        } else if is_member() {
            open.push(pid);
        }
    }
    seen.order();
    *SEEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen));
    if is_ours {
        open.append(&mut in_session);
    }
    let mut all = order::set(open.iter().copied());
    while let Some(pid) = open.pop() {
        open.extend(children(pid).into_iter().filter(|&child| all.insert(child)));
    }
    known.clear();
    let mut living = Vec::new();
    for pid in all {
        if let Some(facts) = Facts::of(pid)
            && !facts.has_ended()
        {
            known.insert(pid, facts.start_time().to_owned());
            living.push(Survivor { pid, name: facts.name });
        }
    }
    living
}

pub fn is_in(pid: i32, group: Number) -> bool {
    // SAFETY: no memory is involved.
    group.id == unsafe { libc::getpgid(pid) }
}

fn session_of(pid: i32) -> i32 {
    // SAFETY: no memory is involved.
    unsafe { libc::getsid(pid) }
}

fn is_known(pid: i32, known: &Known) -> bool {
    let start_time = known.get(&pid);
    start_time.is_some_and(|time| Facts::of(pid).is_some_and(|facts| facts.start_time() == time))
}

/// True if the environment of the process holds `mark`. `buffer` is for its bytes.
fn is_marked(pid: i32, mark: &str, buffer: &mut Vec<u8>) -> bool {
    for look in 1..=EXEC_LOOKS_MAX {
        // Another user's is not readable, and not ours.
        let Ok(environ) = environ(pid, buffer) else {
            return false;
        };
        if !environ.is_empty() {
            return memchr::memmem::find(environ, mark.as_bytes()).is_some();
        }
        let Some(facts) = Facts::of(pid) else {
            return false;
        };
        if facts.may_be_starting() {
            thread::sleep(EXEC_PAUSE);
        } else if look == EMPTY_LOOKS || !facts.has_program() {
            return false;
        }
        // Else the old program's memory may have gone between opening and reading.
    }
    false
}

/// Reads the environment of a process into `buffer`: two reads as a rule, since every process of the machine is
/// looked at after each command.
fn environ(pid: i32, buffer: &mut Vec<u8>) -> io::Result<&[u8]> {
    let mut file = File::open(format!("/proc/{pid}/environ"))?;
    let mut filled = 0;
    loop {
        match poll::retry(|| file.read(&mut buffer[filled..]))? {
            0 => return Ok(&buffer[..filled]),
            count => filled += count,
        }
        if filled == buffer.len() {
            buffer.resize(2 * filled, 0);
        }
    }
}

/// Child processes; empty if the kernel does not list them.
fn children(pid: i32) -> Vec<i32> {
    let tasks = format!("/proc/{pid}/task");
    let mut children = Vec::new();
    for task in numbers(Path::new(&tasks)) {
        let list = fs::read_to_string(format!("{tasks}/{task}/children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    children
}

fn numbers(folder: &Path) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A line of `/proc/PID/stat`.
struct Facts {
    /// The name as text.
    name: String,
    /// The fields after the name; proc(5) numbers the first of them 3.
    rest: Vec<String>,
}

impl Facts {
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// Parses `PID (NAME) STATE …`; the name may contain any character.
    fn parse(stat: &str) -> Option<Self> {
        let (start, rest) = stat.rsplit_once(") ")?;
        let (_, name) = start.split_once(" (")?;
        Some(Self {
            name: plain::text(name.as_bytes()).replace(['\n', '\t'], " "),
            rest: rest.split_ascii_whitespace().map(str::to_owned).collect(),
        })
    }

    fn number(&self, number: usize) -> &str {
        let fact = number.checked_sub(3).and_then(|at| self.rest.get(at));
        fact.map_or("", String::as_str)
    }

    /// True for a zombie.
    fn has_ended(&self) -> bool {
        matches!(self.number(3), "Z" | "X")
    }

    /// Start time in clock ticks since boot.
    fn start_time(&self) -> &str {
        self.number(22)
    }

    /// True unless it is a kernel thread or a dying process.
    fn has_program(&self) -> bool {
        const EXITING: u32 = 0x4;
        const KERNEL_THREAD: u32 = 0x20_0000;
        let flags: u32 = self.number(9).parse().unwrap_or(0);
        flags & (EXITING | KERNEL_THREAD) == 0
    }

    /// True if the process may be inside `execve`, when the new environment is not visible yet: it is
    /// running, and has no memory for variables.
    fn may_be_starting(&self) -> bool {
        let at_work = matches!(self.number(3), "R" | "D");
        at_work && self.has_program() && self.number(50) == self.number(51)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let facts = Facts::parse("12 (a) (b\u{1b}[31m\nc) S 1 12 12 0 -1 4194560").unwrap();
        assert_eq!(facts.name, "a) (b c");
        assert_eq!(facts.number(3), "S");
        assert_eq!(facts.number(9), "4194560");
        assert_eq!(facts.number(50), "");
        assert!(facts.has_program() && !facts.has_ended() && !facts.may_be_starting());
        assert!(Facts::parse("12 (a").is_none());
        assert!(Facts::parse("").is_none());
    }

    #[test]
    fn who_was_there_before_is_no_member_and_who_came_later_is_looked_at() {
        let sleeper = |mark: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("300").env(MARKER, mark).spawn().unwrap()
        };
        let group = Number { id: i32::MAX, is_reaped: true };
        let find = |mark: &str, strangers: &Strangers| -> Vec<u32> {
            let found = members(mark, group, strangers, &mut Known::new());
            found.into_iter().map(|survivor| survivor.pid.cast_unsigned()).collect()
        };
        let mark = format!("test-{}", std::process::id());
        let mut early = sleeper(&mark);
        assert_eq!(find(&mark, &Strangers::default()), [early.id()]);
        let before = strangers();
        let mut late = sleeper(&mark);
        assert_eq!(find(&mark, &before), [late.id()]);
        for child in [&mut early, &mut late] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn facts_are_counted_as_the_kernel_does() {
        let facts = Facts::of(std::process::id().cast_signed()).unwrap();
        assert!(facts.has_program() && !facts.has_ended() && !facts.may_be_starting());
        assert!(facts.start_time().parse::<u64>().unwrap() > 0);
        let [start, end] = [50, 51].map(|number| facts.number(number).parse::<u64>().unwrap());
        assert!(start < end && end - start < 1 << 24);
    }
}
