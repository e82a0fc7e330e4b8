//! Programs that live beside pi and are talked to over stdin and stdout: extensions, servers of tools.
//!
//! A peer leads a session of its own, and ends with all that it started: at its own end, when it is killed, and when
//! pi ends, however that happens.

use super::family::Family;
use super::{admit, commands, launch, lifeline};
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crate::base::{executable, memory};
use crate::tools::sandbox::{Confinement, Sandbox};
use crossbeam_channel::{Receiver, after, bounded, never, select};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Stack of the threads that serve a peer, in bytes.
pub const STACK: usize = 512 << 10;

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: BTreeMap<OsString, OsString>,
}

/// A started program, and our ends of its pipes.
pub struct Peer {
    pub stdin: PipeWriter,
    pub stdout: PipeReader,
    pub stderr: PipeReader,
    pub process: PeerProcess,
}

/// The processes of a peer. Dropping it leaves them alone.
pub struct PeerProcess {
    family: Family,
    ended: Receiver<Option<i32>>,
    /// Kept open for those who wake a reader: nobody reads.
    _wake: PipeReader,
}

impl PeerProcess {
    /// Asks all processes to end.
    pub fn terminate(&self) {
        self.family.terminate();
    }

    /// Kills all processes. Returns when they are gone or cannot be killed.
    pub fn kill(&self) {
        self.family.kill();
    }

    /// Receives the exit code, once, when the program has ended; 128 plus the number of a signal that ended it.
    pub fn ended(&self) -> &Receiver<Option<i32>> {
        &self.ended
    }

    /// Resident memory of all processes, in bytes, where the system tells.
    pub fn memory_bytes(&self) -> Option<u64> {
        let members = self.family.members();
        members.iter().map(|member| memory::resident_bytes(member.pid)).sum()
    }
}

/// The program that `name` means: a path, relative to `cwd`, or a name in the absolute folders of the `PATH` of `env`.
pub fn find(name: &str, cwd: &Path, env: &BTreeMap<OsString, OsString>) -> io::Result<PathBuf> {
    if name.contains('/') {
        return Ok(cwd.join(name));
    }
    let found = match env.get(&OsString::from("PATH")) {
        Some(path) => executable::find_in(name, path),
        None => executable::find(name),
    };
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no program of this name is in PATH"))
}

/// Starts a program.
pub fn start(program: &Program) -> io::Result<Peer> {
    start_in(program, None)
}

/// Starts a program, confined by `sandbox` if there is one.
pub fn start_in(program: &Program, sandbox: Option<&Sandbox>) -> io::Result<Peer> {
    let id = admit()?;
    let (stdin, ours_in) = io::pipe()?;
    let (ours_out, stdout) = io::pipe()?;
    let (ours_err, stderr) = io::pipe()?;
    let (mut process, _confinement) = match sandbox {
        None => {
            let mut process = Command::new(&program.path);
            process.current_dir(&program.cwd);
            (process, Confinement::default())
        }
        Some(sandbox) => sandbox.command(&program.path, &program.cwd)?,
    };
    process.args(&program.args).env_clear().envs(&program.env).stdin(stdin).stdout(stdout).stderr(stderr);
    let (tell, ended) = bounded(1);
    let (family, wake) = launch(id, process, false, move |family| {
        // What it started goes with it.
        family.kill();
        lifeline::ended(id);
        let code = family.group().close();
        commands().running.remove(&id);
        let _ = tell.send(code);
    })?;
    Ok(Peer {
        stdin: ours_in,
        stdout: ours_out,
        stderr: ours_err,
        process: PeerProcess { family, ended, _wake: wake },
    })
}

/// What came of a program that was run to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// None if a signal of ours ended it.
    pub code: Option<i32>,
    /// It was ended here: cancelled, late, or it printed too much.
    pub killed: bool,
    /// It printed more than was to be kept.
    pub truncated: bool,
}

/// Runs a program without input to its end. Its output may have `output_max` bytes, both streams together.
pub fn run(
    program: &Program,
    limit: Option<Duration>,
    output_max: usize,
    cancel: &CancelToken,
) -> io::Result<Ran> {
    run_with(program, &[], limit, output_max, cancel)
}

/// Runs a program with `input` on stdin to its end. Its output may have `output_max` bytes, both streams together.
pub fn run_with(
    program: &Program,
    input: &[u8],
    limit: Option<Duration>,
    output_max: usize,
    cancel: &CancelToken,
) -> io::Result<Ran> {
    let Peer { mut stdin, stdout, stderr, process } = start(program)?;
    let room = AtomicUsize::new(output_max);
    let full = CancelToken::new();
    let late = limit.map_or_else(never, after);
    thread::scope(|scope| {
        let collect = |mut pipe: PipeReader| {
            let (room, full) = (&room, &full);
            move || {
                let (mut bytes, mut part) = (Vec::new(), vec![0; 32 << 10]);
                while let Ok(count @ 1..) = pipe.read(&mut part) {
                    let before = room
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| {
                            Some(room.saturating_sub(count))
                        })
                        .unwrap_or_default();
                    bytes.extend_from_slice(part.get(..count.min(before)).unwrap_or_default());
                    if count > before {
                        full.cancel();
                    }
                }
                bytes
            }
        };
        let thread = || Thread::named("pi-exec").stack(STACK);
        let readers = thread()
            .start_in(scope, collect(stdout))
            .and_then(|out| Ok((out, thread().start_in(scope, collect(stderr))?)));
        let (out, err) = readers.inspect_err(|_| process.kill())?;
        if !input.is_empty() {
            // The program may end without reading: the pipe is then broken.
            let feed = move || drop(stdin.write_all(input));
            thread().start_in(scope, feed).inspect_err(|_| process.kill())?;
        } else {
            drop(stdin);
        }
        let mut ran = Ran::default();
        select! {
            recv(process.ended()) -> code => ran.code = code.ok().flatten(),
            recv(cancel.receiver()) -> _ => ran.killed = true,
            recv(full.receiver()) -> _ => (ran.killed, ran.truncated) = (true, true),
            recv(late) -> _ => ran.killed = true,
        }
        if ran.killed {
            process.kill();
            let _ = process.ended().recv_timeout(Duration::from_secs(1));
        }
        ran.stdout = out.join().unwrap_or_default();
        ran.stderr = err.join().unwrap_or_default();
        // What came after the last look.
        ran.truncated |= full.is_cancelled();
        Ok(ran)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sh(script: &str) -> Program {
        Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            env: [("PATH".into(), "/usr/bin:/bin".into()), ("GREETING".into(), "hello".into())].into(),
        }
    }

    fn text(mut pipe: PipeReader) -> String {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_program_reads_writes_and_ends_with_its_input() {
        let mut peer = start(&sh("read line; echo $GREETING $line; echo bad >&2; exit 3")).unwrap();
        writeln!(peer.stdin, "you").unwrap();
        assert_eq!((text(peer.stdout), text(peer.stderr)), ("hello you\n".into(), "bad\n".into()));
        assert_eq!(peer.process.ended().recv(), Ok(Some(3)));
    }

    #[test]
    fn what_ignores_its_end_is_killed_with_all_it_started() {
        let mut peer = start(&sh("trap '' TERM HUP; sleep 1000 & echo $!; sleep 1000")).unwrap();
        // Its first byte says that it ignores the signal.
        peer.stdout.read_exact(&mut [0; 1]).unwrap();
        peer.process.terminate();
        assert!(peer.process.ended().is_empty());
        peer.process.kill();
        // The pipe is at its end only once nobody holds it.
        text(peer.stdout);
        assert_eq!(peer.process.ended().recv(), Ok(Some(137)));
    }

    #[test]
    fn a_program_is_found_by_its_path_or_in_its_own_path() {
        let env = |path: &str| BTreeMap::from([("PATH".into(), path.into())]);
        let find = |name: &str, env: &BTreeMap<_, _>| find(name, Path::new("/work"), env).ok();
        assert_eq!(find("bin/x", &env("")), Some("/work/bin/x".into()));
        assert_eq!(find("sh", &env("relative:/bin")), Some("/bin/sh".into()));
        assert_eq!(find("sh", &env("/nowhere")), None);
        assert!(find("sh", &BTreeMap::new()).is_some());
    }
}
