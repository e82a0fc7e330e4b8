//! The process that outlives pi for a moment.

use super::super::family::{self, Orphans};
use super::super::group::Number;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// Listens until pi is gone, and kills what it leaves.
pub fn run(process_mark: &str) {
    detach();
    let mut running = Running::default();
    for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
        running.note(&line);
    }
    let mut left: Vec<Orphans> = running
        .0
        .into_iter()
        .map(|(id, number)| Orphans::new(family::marker_of(process_mark, id), number))
        .collect();
    // All before waiting for any.
    for orphans in &mut left {
        orphans.strike();
    }
    for mut orphans in left {
        orphans.kill();
    }
}

/// The commands that have not ended, with the numbers of their groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Running(pub BTreeMap<u64, Number>);

impl Running {
    /// Takes a line of pi's; one that is none is left out.
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

/// Away from what could end this process before its time, or be held up by it.
fn detach() {
    // SAFETY: no memory is involved in any of these calls. Descriptors from 3 on belong to nobody in
    // this process, which has only begun.
    unsafe {
        libc::setsid();
        for signal in [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGTSTP,
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
