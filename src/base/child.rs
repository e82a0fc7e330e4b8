//! Runs a program to its end, within limits of time and output, and returns its output.
//!
//! The program leads a process group of its own, which is killed when a limit is reached or the work is
//! cancelled. One thread serves all pipes; a second one waits for the program's end and ends with it, so that
//! nothing is left behind even where a grandchild keeps a pipe open.
//!
//! Not here: the commands of the bash tool (`tools::process`), which are watched while they run.

use super::cancel::CancelToken;
use super::{null, poll};
use crate::base::thread::Thread;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for reading output after the program's end; its children may hold the pipe for ever.
const REST: Duration = Duration::from_secs(1);

const ENDED: u8 = b'e';
const CANCELLED: u8 = b'c';

/// Input and limits of a program.
pub struct Job<'a> {
    pub input: &'a [u8],
    pub read: Wanted,
    pub until: Until,
    pub limit: Duration,
    /// Maximum bytes of each output.
    pub output_max: usize,
    pub cancel: &'a CancelToken,
}

/// The outputs to capture. The others go to the null device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    Output,
    OutputAndErrors,
}

/// When a program counts as ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When its output is closed. Its group is then killed, whether or not the program has exited.
    OutputEnd,
    /// When it has exited and its output is closed. The rest of its group is then killed.
    GroupEnd,
    /// When the program has exited. Its children keep running, such as those that serve a clipboard.
    Exit,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    /// Killed at the time limit.
    Late,
    /// Killed at the output limit.
    TooMuch,
    Cancelled,
}

/// Result of a program.
pub struct Ran {
    pub end: End,
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
}

/// Runs `command` in a process group of its own. An error means that it could not be started.
pub fn run(mut command: Command, job: &Job<'_>) -> io::Result<Ran> {
    let deadline = Instant::now() + job.limit;
    let (stdin, input) = match job.input {
        [] => (null::input()?, None),
        bytes => {
            let (theirs, ours) = io::pipe()?;
            poll::never_block(&ours)?;
            (theirs.into(), Some((ours, bytes)))
        }
    };
    let (stdout, output) = outlet(job.read != Wanted::Nothing)?;
    let (stderr, errors) = outlet(job.read == Wanted::OutputAndErrors)?;
    let (wake, waker) = io::pipe()?;
    let cancel_waker = waker.try_clone()?;
    let mut child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?;
    // Its ends of the pipes go, else they would never be closed.
    drop(command);
    let id = child.id();
    let mut pipes = Pipes { wake, input, outputs: [output, errors], bytes: Default::default() };
    let _hook = job.cancel.on_cancel(move || drop((&cancel_waker).write(&[CANCELLED])));
    let end = thread::scope(|scope| {
        let watch = move || {
            await_end(id);
            let _ = (&waker).write(&[ENDED]);
        };
        let watcher = Thread::named("pi-child").start_in(scope, watch);
        let end = watcher.and_then(|_| pipes.serve(job, deadline));
        if job.until != Until::Exit || !matches!(end, Ok(End::Done)) {
            kill_group(id);
        }
        end
    });
    let status = child.wait()?;
    let [output, errors] = pipes.bytes;
    Ok(Ran { end: end?, status, output, errors })
}

fn outlet(is_wanted: bool) -> io::Result<(Stdio, Option<PipeReader>)> {
    if !is_wanted {
        return Ok((null::output()?, None));
    }
    let (ours, theirs) = io::pipe()?;
    Ok((theirs.into(), Some(ours)))
}

struct Pipes<'a> {
    /// Readable on the program's end and on cancellation.
    wake: PipeReader,
    /// The rest of the input; `None` once all is written or nobody reads it.
    input: Option<(PipeWriter, &'a [u8])>,
    /// The outputs, each until it is closed.
    outputs: [Option<PipeReader>; 2],
    bytes: [Vec<u8>; 2],
}

impl Pipes<'_> {
    /// Writes input and reads output until the program has ended.
    fn serve(&mut self, job: &Job<'_>, deadline: Instant) -> io::Result<End> {
        let (mut has_ended, mut wait_until) = (false, deadline);
        loop {
            let is_closed = self.outputs.iter().all(Option::is_none);
            if is_closed && (has_ended || job.until == Until::OutputEnd) {
                return Ok(End::Done);
            }
            if Instant::now() >= wait_until {
                let is_done = has_ended && job.until == Until::Exit;
                return Ok(if is_done { End::Done } else { End::Late });
            }
            let [wake, output, errors, input] = self.wait(wait_until)?;
            if input {
                self.feed();
            }
            for (at, _) in [output, errors].into_iter().enumerate().filter(|(_, ready)| *ready) {
                if !self.read(at, job.output_max)? {
                    return Ok(End::TooMuch);
                }
            }
            if wake {
                let mut told = [0; 2];
                let count = poll::retry(|| self.wake.read(&mut told))?;
                if told[..count].contains(&CANCELLED) {
                    return Ok(End::Cancelled);
                }
                has_ended |= count > 0;
                if job.until == Until::Exit {
                    wait_until = Instant::now() + REST;
                }
            }
        }
    }

    /// Waits for pipes; flags the ready ones: wake, output, errors, input.
    fn wait(&self, until: Instant) -> io::Result<[bool; 4]> {
        let read = |pipe: Option<&PipeReader>| libc::pollfd {
            fd: pipe.map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN,
            revents: 0,
        };
        let input = self.input.as_ref().map_or(-1, |(pipe, _)| pipe.as_raw_fd());
        let mut polled = [
            read(Some(&self.wake)),
            read(self.outputs[0].as_ref()),
            read(self.outputs[1].as_ref()),
            libc::pollfd { fd: input, events: libc::POLLOUT, revents: 0 },
        ];
        poll::poll_all(&mut polled, Some(until))?;
        Ok(polled.map(|pipe| pipe.revents != 0))
    }

    fn feed(&mut self) {
        let Some((pipe, bytes)) = &mut self.input else {
            return;
        };
        match pipe.write(bytes) {
            Ok(count) if count < bytes.len() => *bytes = &bytes[count..],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // All is written, or the program needs no more of it.
            _ => self.input = None,
        }
    }

    /// Reads an output's available bytes; false if they exceed the limit.
    fn read(&mut self, at: usize, output_max: usize) -> io::Result<bool> {
        let (Some(pipe), bytes) = (&mut self.outputs[at], &mut self.bytes[at]) else {
            return Ok(true);
        };
        let mut chunk = [0; 16 << 10];
        let count = poll::retry(|| pipe.read(&mut chunk))?;
        if count == 0 {
            self.outputs[at] = None;
        }
        bytes.extend_from_slice(&chunk[..count]);
        Ok(bytes.len() <= output_max)
    }
}

/// Kills the group of a child that is not reaped yet.
fn kill_group(id: u32) {
    if let Ok(group) = libc::pid_t::try_from(id) {
        // SAFETY: kill takes no pointers. The child that leads the group is not reaped, so the group is ours.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// Waits until a child has ended, without reaping it.
pub fn await_end(id: libc::id_t) {
    loop {
        // SAFETY: all zeroes is a valid `siginfo_t`.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` lives across the call, which only writes it.
        let rc = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
        if rc == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, input: &[u8], until: Until, limit: Duration, cancel: &CancelToken) -> Ran {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0);
        let read = Wanted::OutputAndErrors;
        run(command, &Job { input, read, until, limit, output_max: 1 << 20, cancel }).unwrap()
    }

    #[track_caller]
    fn check(script: &str, until: Until, end: End, output: &str) {
        let limit = if end == End::Late { Duration::from_millis(50) } else { LONG };
        let ran = shell(script, b"input", until, limit, &CancelToken::new());
        assert_eq!((ran.end, &*String::from_utf8_lossy(&ran.output)), (end, output), "{script}");
    }

    #[test]
    fn a_program_is_over_when_its_job_says() {
        for until in [Until::OutputEnd, Until::GroupEnd, Until::Exit] {
            check("cat", until, End::Done, "input");
            check("echo x; sleep 1000", until, End::Late, "x\n");
        }
        check("echo x; exec >&- 2>&-; sleep 1000", Until::OutputEnd, End::Done, "x\n");
        check("echo x; exec >&- 2>&-; sleep 1000", Until::GroupEnd, End::Late, "x\n");
        check("echo x; sleep 1000 &", Until::GroupEnd, End::Late, "x\n");
        // Its group goes on and holds the pipe: nobody waits for that.
        check("echo x; sleep 2 &", Until::Exit, End::Done, "x\n");
    }

    #[test]
    fn much_goes_in_and_comes_out_at_once() {
        let input = vec![b'x'; 1 << 20];
        let ran = shell("cat; echo bad >&2; exit 3", &input, Until::GroupEnd, LONG, &CancelToken::new());
        assert!(ran.output == input && ran.errors == b"bad\n");
        assert_eq!((ran.end, ran.status.code()), (End::Done, Some(3)));
        // One that reads nothing is not waited for.
        let ran = shell("true", &input, Until::GroupEnd, LONG, &CancelToken::new());
        assert!(ran.status.success());
    }

    #[test]
    fn a_program_that_writes_too_much_or_is_cancelled_is_killed() {
        let ran = shell("trap '' PIPE; yes", b"", Until::GroupEnd, LONG, &CancelToken::new());
        assert_eq!(ran.end, End::TooMuch);
        let cancel = CancelToken::new();
        thread::scope(|scope| {
            scope.spawn(|| cancel.cancel());
            let ran = shell("trap '' TERM; sleep 1000", b"", Until::Exit, LONG, &cancel);
            assert_eq!((ran.end, ran.status.code()), (End::Cancelled, None));
        });
    }
}
