//! Processes of a command: the shell's session, and on Linux also processes that have left it.
//!
//! The members are found in `look`, one implementation for Linux and one for other systems.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "other.rs")]
mod look;

use super::group::{Group, Number, send};
use crate::tools::backend::Survivor;
use look::{Known, Strangers};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The environment variable that marks every process started by pi: `PID-TIME.COMMAND`.
pub const MARKER: &str = "PI_SPAWN_ID";

/// Time limit for killed processes to disappear, which may be slow on a busy machine.
const KILL_TIME_MAX: Duration = Duration::from_secs(1);
/// Time for an editor to save its content after pi and the terminal are gone.
const HANG_UP_TIME_MAX: Duration = Duration::from_millis(300);
/// First pause between two checks; doubled each time.
const KILL_PAUSE: Duration = Duration::from_millis(1);

/// The value of [`MARKER`] for one command, unique among all processes of pi.
pub fn marker(id: u64) -> String {
    marker_of(process_mark(), id)
}

/// The value of [`MARKER`] for a command of the pi process with this `process_mark`.
pub fn marker_of(process_mark: &str, id: u64) -> String {
    format!("{process_mark}.{id}")
}

/// The common prefix of all markers of this process.
pub fn process_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.as_nanos());
        format!("{}-{nanos:x}", std::process::id())
    })
}

/// All processes of one command. Clones refer to one family.
#[derive(Clone, Debug)]
pub struct Family {
    id: u64,
    group: Arc<Group>,
    /// The processes found by the last check.
    known: Arc<Mutex<Known>>,
    strangers: Strangers,
}

/// What is known of the processes of the machine before a command starts.
pub struct Before(Strangers);

impl Before {
    pub fn now() -> Self {
        Self(look::strangers())
    }
}

impl Family {
    pub fn new(id: u64, group: Arc<Group>, before: Before) -> Self {
        Self { id, group, known: Arc::default(), strangers: before.0 }
    }

    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns a function that kills the group from any thread.
    pub fn killer(&self) -> Arc<dyn Fn() + Send + Sync> {
        let group = self.group.clone();
        Arc::new(move || group.kill())
    }

    /// The living processes.
    pub fn members(&self) -> Vec<Survivor> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        look::members(&marker(self.id), self.group.number(), &self.strangers, &mut known)
    }

    /// Sends TERM to all processes. Stopped processes are continued, so that they receive it.
    pub fn terminate(&self) {
        let members = self.members();
        let number = self.group.number();
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            self.group.signal(signal);
            for member in &members {
                if !look::is_in(member.pid, number) {
                    send(member.pid, signal);
                }
            }
        }
    }

    /// Kills all processes. True if none is left that can be killed, false at the time limit.
    pub fn kill(&self) -> bool {
        until_none(KILL_TIME_MAX, || self.strike())
    }

    /// Kills the living processes without waiting. Returns their number, without those of other users
    /// (`sudo`).
    pub fn strike(&self) -> usize {
        // Looked up first: a parent that is gone leads to nobody any more.
        let members = self.members();
        self.group.signal(libc::SIGKILL);
        kill_each(&members)
    }
}

/// The processes of a command whose pi is gone.
pub struct Orphans {
    marker: String,
    number: Number,
    known: Known,
}

impl Orphans {
    pub fn new(marker: String, number: Number) -> Self {
        Self { marker, number, known: Known::default() }
    }

    /// Kills all processes, like [`Family::kill`].
    pub fn kill(&mut self) -> bool {
        until_none(KILL_TIME_MAX, || self.strike())
    }

    /// Kills the living processes, like [`Family::strike`].
    pub fn strike(&mut self) -> usize {
        let members = self.members();
        self.number.signal(libc::SIGKILL);
        kill_each(&members)
    }

    /// Sends HUP to all, and gives them a moment to end.
    pub fn hang_up(all: &mut [Self]) {
        for orphans in &mut *all {
            for member in orphans.members() {
                for signal in [libc::SIGHUP, libc::SIGCONT] {
                    send(member.pid, signal);
                }
            }
        }
        until_none(HANG_UP_TIME_MAX, || all.iter_mut().map(|orphans| orphans.members().len()).sum());
    }

    fn members(&mut self) -> Vec<Survivor> {
        look::members(&self.marker, self.number, &Strangers::default(), &mut self.known)
    }
}

/// Calls `strike` repeatedly, with pauses. False if processes are left after `time_max`.
fn until_none(time_max: Duration, mut strike: impl FnMut() -> usize) -> bool {
    let until = Instant::now() + time_max;
    let mut pause = KILL_PAUSE;
    loop {
        if strike() == 0 {
            return true;
        }
        if Instant::now() + pause > until {
            return false;
        }
        thread::sleep(pause);
        pause *= 2;
    }
}

/// Kills processes; returns how many could be signalled.
fn kill_each(members: &[Survivor]) -> usize {
    let struck = members.iter().filter(|member| send(member.pid, libc::SIGKILL));
    struck.count()
}
