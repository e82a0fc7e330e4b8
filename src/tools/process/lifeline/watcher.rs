//! The process that outlives pi briefly.

use super::super::family::{self, Orphans};
use super::super::group::Number;
use super::terminal::Terminal;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// Listens until pi is gone, then kills its remaining commands.
pub fn run(process_mark: &str) {
    let mut terminal = Terminal::of_stderr();
    detach(terminal.is_some());
    let mut running = Running::default();
    for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
        if !terminal.as_mut().is_some_and(|terminal| terminal.note(&line)) {
            running.note(&line);
        }
    }
    let mut left: Vec<Orphans> = running
        .0
        .into_iter()
        .map(|(id, number)| Orphans::new(family::marker_of(process_mark, id), number))
        .collect();
    let is_lent = terminal.as_ref().is_some_and(Terminal::is_lent);
    if is_lent {
        // An editor saves what it can when it is hung up.
        Orphans::hang_up(&mut left);
    } else if let Some(terminal) = &terminal {
        // First of all: who waits for pi's end goes on with the terminal.
        terminal.restore();
    }
    // All before waiting for any.
    for orphans in &mut left {
        orphans.strike();
    }
    if let Some(terminal) = terminal.filter(|_| is_lent) {
        terminal.restore();
    }
    for mut orphans in left {
        orphans.kill();
    }
}

/// The commands that have not ended, with the numbers of their groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Running(pub BTreeMap<u64, Number>);

impl Running {
    /// Handles a line from pi; an invalid one is ignored.
    pub fn note(&mut self, line: &[u8]) {
        let Some((sign, rest)) = std::str::from_utf8(line).ok().and_then(|line| line.split_at_checked(1))
        else {
            return;
        };
        let (id, group) = rest.split_once(' ').unwrap_or((rest, ""));
        let Ok(id) = id.parse() else {
            return;
        };
        match (sign, group.parse()) {
            ("+", Ok(group)) => {
                self.0.insert(id, Number::new(group));
            }
            // Not yet known by a number, but by its mark.
            ("+", Err(_)) if group.is_empty() => {
                self.0.insert(id, Number::UNKNOWN);
            }
            ("~", Err(_)) => {
                if let Some(number) = self.0.get_mut(&id) {
                    number.is_reaped = true;
                }
            }
            ("-", Err(_)) => {
                self.0.remove(&id);
            }
            _ => {}
        }
    }
}

/// Detaches this process from signals and resources that could end or block it early.
///
/// The foreground group of a terminal is visible only inside the terminal's session.
fn detach(has_terminal: bool) {
    // SAFETY: no memory is involved in any of these calls. Descriptors from 3 on belong to nobody in
    // this process, which has only begun.
    unsafe {
        if has_terminal {
            libc::setpgid(0, 0);
        } else {
            libc::setsid();
        }
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGTSTP,
            libc::SIGTTIN,
            libc::SIGTTOU,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_NAME, c"pi-lifeline".as_ptr());
            libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
        }
        #[cfg(not(target_os = "linux"))]
        for fd in 3..libc::getdtablesize().min(1024) {
            libc::close(fd);
        }
    }
}
