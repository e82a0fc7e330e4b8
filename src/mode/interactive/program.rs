//! Small programs of the machine that do something for the terminal: clipboards, `gh`, `trash`.
//!
//! Each is run off the drawing thread, with a time limit.

use crate::runtime::{CancelToken, executable};
use crossbeam_channel::{after, bounded, select};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Bytes that are taken of what a program writes.
const OUTPUT_MAX: u64 = 64 << 20;
/// How long what a program wrote may take to arrive after its end; its children may hold the pipe for ever.
const REST: Duration = Duration::from_secs(1);

/// What a program is given and may take.
pub struct Job<'a> {
    pub arguments: &'a [&'a str],
    pub input: Vec<u8>,
    /// What it writes is wanted. One that goes on in the background, as those of clipboards do, must not get
    /// pipes that it would keep open.
    pub is_read: bool,
    pub limit: Duration,
    pub cancel: &'a CancelToken,
}

/// What came of it.
pub struct Ran {
    pub is_success: bool,
    pub output: Vec<u8>,
    pub errors: String,
}

/// Runs a program to its end; an error where it cannot be run or takes too long.
pub fn run(name: &str, job: Job<'_>) -> io::Result<Ran> {
    let program = executable::find(name).ok_or(io::ErrorKind::NotFound)?;
    let pipe = || match job.is_read {
        true => Stdio::piped(),
        false => Stdio::null(),
    };
    let mut child = Command::new(program)
        .args(job.arguments)
        .stdin(Stdio::piped())
        .stdout(pipe())
        .stderr(pipe())
        .process_group(0)
        .spawn()?;
    let output = read(child.stdout.take())?;
    let errors = read(child.stderr.take())?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = job.input;
        // One that needs no more of it closes the pipe. It ends when the program does.
        spawn(move || drop(stdin.write_all(&input)))?;
    }
    let is_over = wait(&mut child, job.limit, job.cancel)?;
    let status = child.wait()?;
    if !is_over {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let rest = |pipe: mpsc::Receiver<Vec<u8>>| pipe.recv_timeout(REST).unwrap_or_default();
    Ok(Ran {
        is_success: status.success(),
        output: rest(output),
        errors: String::from_utf8_lossy(&rest(errors)).trim().to_owned(),
    })
}

/// Waits for the end; kills what takes too long. Gives whether it ended by itself.
fn wait(child: &mut Child, limit: Duration, cancel: &CancelToken) -> io::Result<bool> {
    let id = child.id();
    let (done, ended) = bounded::<()>(0);
    spawn(move || {
        // SAFETY: an all-zero siginfo_t is valid, and the call only fills it. The child stays as it is:
        // it is taken away below, so that its number is nobody else's when it is killed.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            while libc::waitid(libc::P_PID, id, &mut info, libc::WEXITED | libc::WNOWAIT) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        drop(done);
    })?;
    select! {
        recv(ended) -> _ => return Ok(true),
        recv(cancel.receiver()) -> _ => {}
        recv(after(limit)) -> _ => {}
    }
    if let Ok(group) = libc::pid_t::try_from(id) {
        // SAFETY: sends a signal to the group of a child that has not been waited for.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    Ok(false)
}

fn read(pipe: Option<impl Read + Send + 'static>) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
            // Nobody may wait for it any more.
            let _ = sender.send(bytes);
        })?;
    }
    Ok(receiver)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name("program".into());
    builder.spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &str, is_read: bool, limit: Duration) -> io::Result<Ran> {
        run(
            "sh",
            Job {
                arguments: &["-c", script],
                input: input.into(),
                is_read,
                limit,
                cancel: &CancelToken::new(),
            },
        )
    }

    #[test]
    fn a_program_is_given_its_input_and_read() {
        let long = Duration::from_secs(30);
        let ran = shell("cat; echo bad >&2; exit 3", "text", true, long).unwrap();
        assert_eq!((ran.is_success, &*ran.output, &*ran.errors), (false, &b"text"[..], "bad"));
        assert!(shell("true", &"x".repeat(1 << 20), true, long).unwrap().is_success);
        let missing = run(
            "no-such-program-anywhere",
            Job {
                arguments: &[],
                input: Vec::new(),
                is_read: true,
                limit: long,
                cancel: &CancelToken::new(),
            },
        );
        assert!(missing.is_err());
    }

    #[test]
    fn one_that_takes_too_long_is_killed_and_one_that_stays_is_left() {
        let error = shell("sleep 600", "", true, Duration::from_millis(50)).err();
        assert_eq!(error.unwrap().kind(), io::ErrorKind::TimedOut);
        // As a clipboard does: the program ends, what serves the clipboard stays.
        let ran = shell("sleep 1 & exit 0", "", false, Duration::from_secs(30)).unwrap();
        assert!(ran.is_success);
    }
}
