//! Runs a script: a JavaScript engine of this machine, in a child that has no rights but the pipe to pi.
//!
//! Three walls stand between a script and the machine. The script's context has the language and what `engine.mjs`
//! hands it; the engine is started without rights to files, programs and, where it knows them, the network; and the
//! sandbox of tools denies writing and the network, where this kernel can enforce it. A child runs one script, and is
//! killed at its end.

use crate::base::cancel::CancelToken;
use crate::base::lenient;
use crate::base::thread::Thread;
use crate::jsonrpc::line::{Frame, Frames};
use crate::tools::process::peer::{self, Peer, PeerProcess, Program};
use crate::tools::sandbox::{Mode, Policy, Sandbox};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The program that the engine runs, which runs the script.
const BOOT: &str = include_str!("engine.mjs");
/// Memory of a script, in megabytes.
pub const MEMORY_MB: usize = 256;
/// Longest message of a script, in bytes: all output that it may have, escaped.
const MESSAGE_MAX: usize = 40 << 20;
/// Messages that wait to be taken.
const WAITING: usize = 64;
/// Time for the engine to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of stderr that are kept.
const WORDS_MAX: u64 = 4000;

/// A JavaScript engine of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    Node(PathBuf),
    Deno(PathBuf),
}

impl Engine {
    /// The engine of this machine: node, or else deno. Looked for once.
    pub fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Engine>> = OnceLock::new();
        let find = crate::base::executable::find;
        FOUND.get_or_init(|| find("node").map(Self::Node).or_else(|| find("deno").map(Self::Deno))).as_ref()
    }

    /// The command line of the engine, which takes its rights away.
    fn program(&self) -> Result<Program, String> {
        let heap = format!("--max-old-space-size={MEMORY_MB}");
        let (path, words) = match self {
            Self::Node(path) => {
                static RIGHTS: OnceLock<Result<&str, String>> = OnceLock::new();
                let rights = RIGHTS.get_or_init(|| without_rights(path)).clone()?;
                let words = [rights, "--no-warnings", &heap, "--input-type=module", "-e", BOOT];
                (path, words.map(OsString::from).to_vec())
            }
            Self::Deno(path) => {
                let boot = BASE64_STANDARD.encode(BOOT);
                let boot = format!("data:application/javascript;base64,{boot}");
                let heap = format!("--v8-flags={heap}");
                let words = ["run", "--no-prompt", "--no-config", "--no-remote", "--quiet", &heap, &boot];
                (path, words.map(OsString::from).to_vec())
            }
        };
        Ok(Program { path: path.clone(), args: words, cwd: "/".into(), env: BTreeMap::new() })
    }

    /// Starts the engine. What it says is received, until it ends.
    pub fn start(&self) -> Result<Child, String> {
        let program = self.program()?;
        begin(&program).map_err(|error| format!("{}: {error}", program.path.display()))
    }
}

fn begin(program: &Program) -> io::Result<Child> {
    let policy = Policy {
        mode: Mode::ReadOnly,
        cwd: "/".into(),
        writable: Vec::new(),
        network: false,
        terminal: false,
    };
    // Without it the walls of the engine stand alone.
    let sandbox = Sandbox::new(policy).ok();
    let Peer { stdin, stdout, stderr, process } = peer::start_in(program, sandbox.as_ref())?;
    let (messages, received) = bounded(WAITING);
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = Thread::named(name).stack(peer::STACK).start(work);
        thread.map(drop).inspect_err(|_| process.kill())
    };
    let (words, said) = bounded(1);
    spawn("js-stderr", Box::new(move || drop(words.send(last_words(stderr)))))?;
    spawn("js-read", Box::new(move || read(stdout, &messages)))?;
    Ok(Child { stdin, received, said, process })
}

/// A running engine. Killed when dropped.
pub struct Child {
    pub stdin: PipeWriter,
    /// What the script says; disconnected at its end. An error is a message that is too long.
    pub received: Receiver<Result<Value, String>>,
    said: Receiver<String>,
    process: PeerProcess,
}

impl Child {
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Why an engine ended that has not said how its script did.
    pub fn why(&self) -> String {
        self.process.kill();
        let words = self.said.recv().unwrap_or_default();
        if words.contains("heap out of memory") || words.contains("OutOfMemory") {
            return format!("out of memory: a script may use {MEMORY_MB} MB");
        }
        match words.trim() {
            "" => "the engine has ended".to_owned(),
            words => format!("the engine has ended: {words}"),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill();
    }
}

/// The option of this node that takes rights away: its name has changed.
fn without_rights(path: &Path) -> Result<&'static str, String> {
    let args = vec!["--version".into()];
    let program = Program { path: path.to_owned(), args, cwd: "/".into(), env: BTreeMap::new() };
    let ran = peer::run(&program, Some(VERSION_LIMIT), 1000, &CancelToken::new());
    let said = ran.map_err(|error| error.to_string())?.stdout;
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    option_of(&said)
        .ok_or_else(|| format!("node 20 or later is needed to run scripts; {} is {said}", path.display()))
}

fn option_of(version: &str) -> Option<&'static str> {
    let mut numbers = version.strip_prefix('v')?.split('.').map_while(|number| number.parse::<u32>().ok());
    match (numbers.next()?, numbers.next()?) {
        (..20, _) => None,
        (20 | 21, _) | (22, ..13) | (23, ..5) => Some("--experimental-permission"),
        _ => Some("--permission"),
    }
}

/// Sends a message to a script.
pub fn send(mut stdin: impl Write, message: &Value) -> io::Result<()> {
    let mut line = message.to_string();
    line.push('\n');
    stdin.write_all(line.as_bytes())
}

fn read(stdout: PipeReader, messages: &Sender<Result<Value, String>>) {
    let mut frames = Frames::new(BufReader::with_capacity(64 << 10, stdout), MESSAGE_MAX);
    loop {
        let message = match frames.next_frame() {
            Ok(Some(Frame::Line(line))) => match lenient::read(line) {
                Ok(message) => Ok(message),
                // Half a message is the last thing that an engine says which dies.
                Err(_) => return,
            },
            Ok(Some(Frame::TooLong(_))) => Err("a single value of the script is too long".to_owned()),
            Ok(None) | Err(_) => return,
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

/// The beginning of what an engine says on stderr, where it names its reason.
fn last_words(mut stderr: PipeReader) -> String {
    let mut words = Vec::new();
    let _ = stderr.by_ref().take(WORDS_MAX).read_to_end(&mut words);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&words).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_taken_away_by_the_name_that_node_knows() {
        for (version, expected) in [
            ("v18.20.1", None),
            ("v20.20.2", Some("--experimental-permission")),
            ("v22.12.0", Some("--experimental-permission")),
            ("v22.13.0", Some("--permission")),
            ("v23.4.0", Some("--experimental-permission")),
            ("v24.1.0", Some("--permission")),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(option_of(version), expected, "{version}");
        }
    }
}
