//! A server that is a program: one message a line on its stdin and stdout.
//!
//! The program ends with pi. It gets pi's environment without the keys of model providers, and the variables of its
//! entry. What it writes to stderr goes to the log; the end of it is kept for errors.

use super::fault::Fault;
use super::log::Log;
use super::peer::{MESSAGE_MAX, Peer, Transport};
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crate::jsonrpc::line::{Frame, Frames};
use crate::jsonrpc::message::Start;
use crate::runtime::service;
use crate::tools::process::peer::{self as process, PeerProcess, Program};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufReader, PipeReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Messages that may wait for a server that does not read.
const OUTBOX: usize = 64;
/// Bytes of stderr that are kept for errors.
const WORDS_MAX: usize = 2000;
/// Longest line of stderr in the log, in bytes.
const ERROR_LINE_MAX: usize = 16 << 10;
/// Time for a server to end by itself when its stdin is closed.
const GRACE: Duration = Duration::from_millis(500);
/// Time for the rest of stderr when all processes have ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub struct Stdio {
    /// None once closed.
    outbox: Mutex<Option<Sender<Vec<u8>>>>,
    process: Arc<PeerProcess>,
    words: Arc<Mutex<Vec<u8>>>,
    /// Disconnected once the server's output is over.
    read: Receiver<()>,
}

/// The environment of a server: pi's, but for the keys of providers, and `env`.
pub fn environment(env: &[(String, String)]) -> BTreeMap<OsString, OsString> {
    let mut all = service::environment();
    all.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
    all
}

/// `program` with a limit of the data of each of its processes. Address space would not do: engines such as V8 reserve
/// far more than they use.
pub fn limited(program: Program, megabytes: u64) -> Program {
    let limit = format!("ulimit -d {} && exec \"$0\" \"$@\"", megabytes << 10);
    let words = ["-c".into(), limit.into(), program.path.into_os_string()];
    let args = words.into_iter().chain(program.args).collect();
    Program { path: "/bin/sh".into(), args, ..program }
}

/// Starts `program` as the server `name`, and lets `peer` receive what it says.
pub fn start(program: &Program, name: &str, peer: &Peer, log: &Arc<Log>) -> Result<Stdio, Fault> {
    let failed = |error: std::io::Error| {
        Fault::Failed(format!(
            "Cannot start {} in {}: {error}",
            program.path.display(),
            program.cwd.display()
        ))
    };
    let process::Peer { mut stdin, stdout, stderr, process } = process::start(program).map_err(failed)?;
    let process = Arc::new(process);
    let words: Arc<Mutex<Vec<u8>>> = Arc::default();
    let (outbox, messages) = bounded::<Vec<u8>>(OUTBOX);
    let (alive, read) = bounded::<()>(0);
    let (silent, words_over) = bounded::<()>(0);
    let write = move || {
        for mut message in messages {
            message.push(b'\n');
            if stdin.write_all(&message).is_err() {
                return;
            }
        }
    };
    let errors = {
        let (words, log, name) = (words.clone(), log.clone(), name.to_owned());
        move || {
            let _silent = silent;
            read_errors(stderr, &words, &log, &name);
        }
    };
    let receive = {
        let (peer, process, words) = (peer.clone(), process.clone(), words.clone());
        move || {
            let _alive = alive;
            read_messages(stdout, &peer);
            let code = end(&process);
            // What it wrote last says why it ended.
            let _ = words_over.recv_timeout(LAST_WORDS);
            peer.closed(Fault::Closed(end_text(code, &lock(&words))));
        }
    };
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = Thread::named(name).stack(256 << 10).start(work);
        thread.map(drop).map_err(|error| {
            process.kill();
            failed(error)
        })
    };
    spawn("mcp-write", Box::new(write))?;
    spawn("mcp-stderr", Box::new(errors))?;
    spawn("mcp-read", Box::new(receive))?;
    Ok(Stdio { outbox: Mutex::new(Some(outbox)), process, words, read })
}

fn read_messages(stdout: PipeReader, peer: &Peer) {
    let mut frames = Frames::new(BufReader::with_capacity(64 << 10, stdout), MESSAGE_MAX);
    loop {
        match frames.next_frame() {
            Ok(Some(Frame::Line(line))) => peer.receive(line),
            Ok(Some(Frame::TooLong(start))) => {
                let fault = Fault::Failed("the server sent a message of more than 16 MB".into());
                match Start::read(start) {
                    Some(Start { has_method: true, .. }) => {}
                    Some(Start { id: Some(id), .. }) => peer.answer(&id, Err(fault)),
                    // It may be any answer.
                    Some(Start { id: None, .. }) | None => peer.fail_all(&fault),
                }
            }
            Ok(None) | Err(_) => return,
        }
    }
}

/// Ends a server whose output is over. Gives its exit code.
fn end(process: &PeerProcess) -> Option<i32> {
    process.ended().recv_timeout(GRACE).unwrap_or_else(|_| {
        process.kill();
        process.ended().recv_timeout(GRACE).unwrap_or_default()
    })
}

fn end_text(code: Option<i32>, words: &[u8]) -> String {
    let end = match code {
        Some(code) => format!("the server ended with exit code {code}"),
        None => "the server ended".to_owned(),
    };
    match String::from_utf8_lossy(words).trim_end() {
        "" => end,
        words => format!("{end}:\n{words}"),
    }
}

/// Logs stderr line by line, and keeps its end.
fn read_errors(stderr: PipeReader, words: &Mutex<Vec<u8>>, log: &Log, name: &str) {
    let mut frames = Frames::new(BufReader::new(Tee { pipe: stderr, words }), ERROR_LINE_MAX);
    loop {
        match frames.next_frame() {
            Ok(Some(Frame::Line(line))) => log.stderr(name, line),
            Ok(Some(Frame::TooLong(_))) => log.stderr(name, b"(a line that is too long for this file)"),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Keeps the end of what is read.
struct Tee<'a> {
    pipe: PipeReader,
    words: &'a Mutex<Vec<u8>>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.pipe.read(buffer)?;
        let mut words = lock(self.words);
        words.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let surplus = words.len().saturating_sub(WORDS_MAX);
        words.drain(..surplus);
        Ok(count)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport for Stdio {
    fn send(&self, _: &Peer, message: Vec<u8>, _: Option<u64>, _: &CancelToken) -> Result<(), Fault> {
        let outbox = lock(&self.outbox).clone();
        let outbox = outbox.ok_or_else(|| Fault::Closed("the connection was closed".into()))?;
        outbox.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => Fault::Failed("the server does not read what it is sent".into()),
            TrySendError::Disconnected(_) => Fault::Closed("the server has closed its stdin".into()),
        })
    }

    /// Closes stdin, then ends and kills what is left.
    fn close(&self, until: Instant) {
        lock(&self.outbox).take();
        if self.read.recv_deadline(until.min(Instant::now() + GRACE)) == Err(DISCONNECTED) {
            return;
        }
        self.process.terminate();
        if self.read.recv_deadline(until) != Err(DISCONNECTED) {
            // Its pipes close with it, and so do the threads that read them.
            self.process.kill();
        }
    }

    fn last_words(&self) -> Option<String> {
        let words = lock(&self.words);
        let text = String::from_utf8_lossy(&words).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

const DISCONNECTED: crossbeam_channel::RecvTimeoutError = crossbeam_channel::RecvTimeoutError::Disconnected;

impl Drop for Stdio {
    fn drop(&mut self) {
        lock(&self.outbox).take();
        self.process.kill();
    }
}
