//! The process group of one shell, which is also its session.
//!
//! A signal to a group needs care: once the leader is reaped and the last member gone, the system may
//! give the number to a stranger. Reaping and signalling exclude each other here, and after the reaping
//! a group counts only while no process has its number: the system keeps the number of a group that has
//! members.

use std::io::{PipeWriter, Write};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Group {
    leader: libc::pid_t,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    reaped: bool,
    exit_code: Option<i32>,
    killed: bool,
    /// Wakes the thread in `next`; closed when nobody waits any more.
    wake: Option<PipeWriter>,
}

impl Group {
    /// `leader` is a child that has not been waited for.
    pub fn new(leader: u32, wake: PipeWriter) -> Self {
        Self {
            leader: libc::pid_t::try_from(leader).unwrap_or(libc::pid_t::MAX),
            state: Mutex::new(State {
                reaped: false,
                exit_code: None,
                killed: false,
                wake: Some(wake),
            }),
        }
    }

    /// Waits for the leader's end, and reaps it.
    pub fn wait(&self, mut leader: Child) {
        await_end(self.leader);
        let mut state = self.state();
        state.exit_code = leader.wait().ok().and_then(code);
        state.reaped = true;
        state.wake();
    }

    pub fn signal(&self, signal: libc::c_int) {
        self.send(&self.state(), signal);
    }

    /// Kills the group, and has the thread in `next` see to those that left it.
    pub fn kill(&self) {
        let mut state = self.state();
        // In one step with the signal: who learns of the leader's end is to know its reason.
        state.killed = true;
        self.send(&state, libc::SIGKILL);
        state.wake();
    }

    fn send(&self, state: &State, signal: libc::c_int) {
        if let Some(group) = self.number(state) {
            send(-group, signal);
        }
    }

    /// The number of the group and session, while it cannot be another's.
    pub fn id(&self) -> Option<libc::pid_t> {
        self.number(&self.state())
    }

    fn number(&self, state: &State) -> Option<libc::pid_t> {
        (!state.reaped || !exists(self.leader)).then_some(self.leader)
    }

    pub fn has_ended(&self) -> bool {
        self.state().reaped
    }

    pub fn is_killed(&self) -> bool {
        self.state().killed
    }

    /// Nobody waits any more. The leader's exit code, if it has ended.
    pub fn close(&self) -> Option<i32> {
        let mut state = self.state();
        state.wake = None;
        state.exit_code
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(wake) = &mut self.wake {
            // One byte at the leader's end and one for each kill: the pipe has room.
            let _ = wake.write(b"!");
        }
    }
}

/// Waits until `pid` has ended, and leaves it to be reaped.
fn await_end(pid: libc::pid_t) {
    let Ok(id) = libc::id_t::try_from(pid) else {
        return;
    };
    loop {
        // SAFETY: all zeroes is a valid `siginfo_t`.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: `info` is valid for the write, and `pid` is a child of this process.
        let result = unsafe { libc::waitid(libc::P_PID, id, &mut info, options) };
        let interrupted =
            || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
        if result == 0 || !interrupted() {
            return;
        }
    }
}

fn code(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
}

/// Sends a signal to a process, or to a group by its negative number. True if it was not refused: a
/// process that is gone takes any signal.
pub fn send(pid: libc::pid_t, signal: libc::c_int) -> bool {
    // 0 and -1 mean whole sets of other processes, and 1 is never ours.
    if (-1..=1).contains(&pid) {
        return false;
    }
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(pid, signal) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

fn exists(pid: libc::pid_t) -> bool {
    // SAFETY: no memory is involved, and signal 0 has no effect.
    let result = unsafe { libc::kill(pid, 0) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}
