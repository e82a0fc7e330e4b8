//! The process group of one shell, which is also its session.
//!
//! Signalling a group needs care: once its leader is reaped and its last member gone, the system may reuse
//! the number. So the leader is reaped only when the number is no longer needed, and a lock excludes reaping
//! while signalling.

use crate::base::child;
use std::io::{self, PipeWriter, Write};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of a group, its session and its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub id: libc::pid_t,
    /// True once the leader is reaped.
    pub is_reaped: bool,
}

impl Number {
    /// No group.
    pub const UNKNOWN: Self = Self { id: 0, is_reaped: true };

    pub fn new(id: libc::pid_t) -> Self {
        Self { id, is_reaped: false }
    }

    /// Sends a signal to the group, if the number still belongs to it.
    pub fn signal(self, signal: libc::c_int) {
        if !self.is_reaped || self.is_held_without_leader() {
            send(-self.id, signal);
        }
    }

    /// Without `/proc`, a reaped leader's group counts as alive while no process has its number, which the
    /// system reserves for a group with members.
    #[cfg(not(target_os = "linux"))]
    fn is_held_without_leader(self) -> bool {
        // SAFETY: no memory is involved, and signal 0 has no effect.
        let result = unsafe { libc::kill(self.id, 0) };
        result != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }

    #[cfg(target_os = "linux")]
    fn is_held_without_leader(self) -> bool {
        false
    }

    /// True if the group has, or may have, processes.
    #[cfg(not(target_os = "linux"))]
    pub fn is_alive(self) -> bool {
        // SAFETY: no memory is involved, and signal 0 has no effect.
        (!self.is_reaped || self.is_held_without_leader()) && unsafe { libc::kill(-self.id, 0) } == 0
    }
}

#[derive(Debug)]
pub struct Group {
    id: libc::pid_t,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once reaped.
    leader: Option<Child>,
    ended: bool,
    killed: bool,
    /// Wakes the thread in `next`. `None` if no thread waits any more.
    wake: Option<PipeWriter>,
}

impl Group {
    /// `leader` must have made itself a session leader.
    pub fn new(leader: Child, wake: PipeWriter) -> Self {
        Self {
            id: libc::pid_t::try_from(leader.id()).unwrap_or(libc::pid_t::MAX),
            state: Mutex::new(State { leader: Some(leader), ended: false, killed: false, wake: Some(wake) }),
        }
    }

    pub fn number(&self) -> Number {
        self.number_in(&self.state())
    }

    fn number_in(&self, state: &State) -> Number {
        Number { id: self.id, is_reaped: state.leader.is_none() }
    }

    /// Waits for the leader's end, then wakes the thread in `next`.
    pub fn await_end(&self) {
        if let Ok(id) = libc::id_t::try_from(self.id) {
            child::await_end(id);
        }
        let mut state = self.state();
        state.ended = true;
        if state.wake.is_some() {
            state.wake();
        } else {
            state.reap();
        }
    }

    pub fn signal(&self, signal: libc::c_int) {
        self.number_in(&self.state()).signal(signal);
    }

    /// Kills the group, and wakes the thread in `next` to kill processes that left it.
    pub fn kill(&self) {
        let mut state = self.state();
        // In one step with the signal: who learns of the leader's end is to know its reason.
        state.killed = true;
        self.number_in(&state).signal(libc::SIGKILL);
        state.wake();
    }

    pub fn has_ended(&self) -> bool {
        self.state().ended
    }

    pub fn is_killed(&self) -> bool {
        self.state().killed
    }

    /// Ends waiting: the leader is reaped, now or at its end. Returns its exit code, if it has ended.
    pub fn close(&self) -> Option<i32> {
        let mut state = self.state();
        state.wake = None;
        if state.ended { state.reap() } else { None }
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

    /// Reaps the leader, which has ended, without blocking.
    fn reap(&mut self) -> Option<i32> {
        self.leader.take()?.wait().ok().and_then(code)
    }
}

fn code(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// Sends a signal to a process, or to a group by its negative number. True unless refused: signalling a
/// process that is gone succeeds.
pub fn send(pid: libc::pid_t, signal: libc::c_int) -> bool {
    // 0 and -1 mean whole sets of other processes, and 1 is never ours.
    if (-1..=1).contains(&pid) {
        return false;
    }
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(pid, signal) };
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}
