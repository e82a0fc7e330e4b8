//! Runs a script: a JavaScript engine of this machine, in a child that has no rights but the pipe to pi.
//!
//! Three walls stand between a script and the machine. The script's context has the language and what `engine.mjs`
//! hands it; the engine is started without rights to files, programs and, where it knows them, the network; and the
//! sandbox of tools denies writing and the network, where this kernel can enforce it. A child runs one script, and is
//! killed at its end.

use crate::base::lenient;
use crate::jsonrpc::line::{Frame, Frames};
use crate::tools::process::peer::{self, Peer, PeerProcess, Program};
use crate::tools::sandbox::{Mode, Policy, Sandbox};
use crossbeam_channel::{Receiver, Sender, bounded};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;

/// The program that the engine runs, which runs the script.
const BOOT: &str = include_str!("engine.mjs");
/// Memory of a script, in megabytes.
pub const MEMORY_MB: usize = 256;
/// Longest message of a script, in bytes: all output that it may have, escaped.
const MESSAGE_MAX: usize = 40 << 20;
/// Messages that wait to be taken.
const WAITING: usize = 64;
/// Bytes of stderr that are kept.
const WORDS_MAX: u64 = 4000;

/// A JavaScript engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    path: PathBuf,
    args: Vec<OsString>,
}

impl Engine {
    /// The engine of this machine: node, or else deno. Looked for once.
    pub fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Engine>> = OnceLock::new();
        let node = || {
            let path = crate::base::executable::find("node")?;
            let heap = format!("--max-old-space-size={MEMORY_MB}");
            let words =
                ["--experimental-permission", "--no-warnings", &heap, "--input-type=module", "-e", BOOT];
            Some(Self { path, args: words.iter().map(OsString::from).collect() })
        };
        let deno = || {
            use base64::Engine as _;
            let path = crate::base::executable::find("deno")?;
            let heap = format!("--v8-flags=--max-old-space-size={MEMORY_MB}");
            let boot = base64::prelude::BASE64_STANDARD.encode(BOOT);
            let boot = format!("data:application/javascript;base64,{boot}");
            let words = ["run", "--no-prompt", "--no-config", "--no-remote", "--quiet", &heap, &boot];
            Some(Self { path, args: words.iter().map(OsString::from).collect() })
        };
        FOUND.get_or_init(|| node().or_else(deno)).as_ref()
    }

    /// Starts the engine. What it says is received, until it ends.
    pub fn start(&self) -> io::Result<Child> {
        let program = Program {
            path: self.path.clone(),
            args: self.args.clone(),
            cwd: "/".into(),
            env: BTreeMap::new(),
        };
        let policy = Policy {
            mode: Mode::ReadOnly,
            cwd: "/".into(),
            writable: Vec::new(),
            network: false,
            terminal: false,
        };
        // Without it the walls of the engine stand alone.
        let sandbox = Sandbox::new(policy).ok();
        let Peer { stdin, stdout, stderr, process } = peer::start_in(&program, sandbox.as_ref())?;
        let (messages, received) = bounded(WAITING);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.into()).stack_size(peer::STACK).spawn(work);
            thread.map(drop).inspect_err(|_| process.kill())
        };
        let (words, said) = bounded(1);
        spawn("js-stderr", Box::new(move || drop(words.send(last_words(stderr)))))?;
        spawn("js-read", Box::new(move || read(stdout, &messages)))?;
        Ok(Child { stdin, received, said, process })
    }
}

/// A running engine. Killed when dropped.
pub struct Child {
    pub stdin: PipeWriter,
    /// What the script says; disconnected at its end. An error is a message that is too long, or none.
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
        if words.contains("bad option") {
            return "node is too old to run scripts without rights: version 20 is needed".to_owned();
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
            Ok(Some(Frame::Line(line))) => {
                lenient::read(line).map_err(|error| format!("the engine speaks nonsense: {error}"))
            }
            Ok(Some(Frame::TooLong)) => Err("a single value of the script is too long".to_owned()),
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
