//! A program that serves pi over pipes for longer than one call.
//!
//! Like a command it leads a session of its own, and it is killed with all it started when pi ends or is killed.

use super::family::Family;
use super::{admit, commands, launch, lifeline};
use crate::base::{executable, poll};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// A path, or a name that is looked up in the absolute folders of `PATH`.
    pub name: String,
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: BTreeMap<OsString, OsString>,
}

/// pi's ends of a program's pipes.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: PipeWriter,
    pub stdout: PipeReader,
    pub stderr: PipeReader,
}

/// A running program with all its descendants. Killed when dropped.
#[derive(Debug)]
pub struct Served {
    id: u64,
    family: Family,
    /// Readable at the end of the program and when it is killed.
    wake: PipeReader,
    is_over: bool,
}

/// Starts a program. The error text is complete.
pub fn serve(program: &Program) -> io::Result<(Served, Pipes)> {
    start(program).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("Cannot start {} in {}: {error}", program.name, program.cwd.display()),
        )
    })
}

fn start(program: &Program) -> io::Result<(Served, Pipes)> {
    let path = find(program)?;
    let id = admit()?;
    let (stdin, writer) = io::pipe()?;
    let (stdout, stdout_writer) = io::pipe()?;
    let (stderr, stderr_writer) = io::pipe()?;
    let mut process = Command::new(path);
    process
        .args(&program.args)
        .current_dir(&program.cwd)
        .env_clear()
        .envs(&program.env)
        .stdin(stdin)
        .stdout(stdout_writer)
        .stderr(stderr_writer);
    let (family, wake) = launch(id, process, false, |_| {})?;
    Ok((Served { id, family, wake, is_over: false }, Pipes { stdin: writer, stdout, stderr }))
}

/// The path of the program. A name is looked up in the `PATH` that the program gets.
fn find(program: &Program) -> io::Result<PathBuf> {
    if program.name.contains('/') {
        return Ok(program.cwd.join(Path::new(&program.name)));
    }
    let found = match program.env.get(&OsString::from("PATH")) {
        Some(path) => executable::find_in(&program.name, path),
        None => executable::find(&program.name),
    };
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no program of this name is in PATH"))
}

impl Served {
    /// Waits for the end of the program. False at `until`.
    pub fn wait(&mut self, until: Instant) -> bool {
        while !self.family.group().has_ended() {
            let woken = poll::poll([self.wake.as_raw_fd()], Some(until));
            if matches!(woken, Ok([true])) {
                let _ = poll::retry(|| self.wake.read(&mut [0; 16]));
            } else if woken.is_err() || until <= Instant::now() {
                return self.family.group().has_ended();
            }
        }
        true
    }

    /// Asks all processes to end.
    pub fn terminate(&self) {
        self.family.terminate();
    }

    /// Kills what is left. Gives the exit code of the program, 128 plus the signal's number if a signal ended it.
    pub fn end(&mut self) -> Option<i32> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        self.family.kill();
        lifeline::ended(self.id);
        commands().running.remove(&self.id);
        self.family.group().close()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    fn sh(script: &str) -> Program {
        Program {
            name: "sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            env: [("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())].into(),
        }
    }

    #[test]
    fn a_program_reads_writes_and_ends_with_its_input() {
        let (mut served, mut pipes) =
            serve(&sh("read line; echo $GREETING $line; echo bad >&2; exit 3")).unwrap();
        writeln!(pipes.stdin, "you").unwrap();
        let text = |pipe: &mut PipeReader| {
            let mut text = String::new();
            pipe.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(
            (text(&mut pipes.stdout), text(&mut pipes.stderr)),
            ("hello you\n".into(), "bad\n".into())
        );
        assert!(served.wait(Instant::now() + Duration::from_secs(60)));
        assert_eq!(served.end(), Some(3));
    }

    #[test]
    fn what_ignores_its_end_is_killed_with_all_it_started() {
        let (mut served, mut pipes) =
            serve(&sh("trap '' TERM HUP; sleep 1000 & echo $!; sleep 1000")).unwrap();
        // Its first line says that it ignores the signal.
        let mut first = [0; 1];
        pipes.stdout.read_exact(&mut first).unwrap();
        served.terminate();
        assert!(!served.wait(Instant::now()));
        drop(served);
        // The pipe is at its end only once nobody holds it.
        pipes.stdout.read_to_string(&mut String::new()).unwrap();
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let program =
            Program { name: "no-such-program-anywhere".into(), cwd: "/".into(), ..Program::default() };
        let error = serve(&program).unwrap_err().to_string();
        assert_eq!(error, "Cannot start no-such-program-anywhere in /: no program of this name is in PATH");
    }
}
