//! A program that runs extensions, and the messages to and from it.
//!
//! ```text
//! callers ──> queue ──> writer ──> stdin │ program │ stdout ──> reader ──answers──> callers
//!                          └──────────────── answers <─ calls ───┴──> threads for long calls
//! ```
//! Quick calls of the program are answered on the reader's thread and so in their order; calls that wait for somebody
//! get a thread each. Every queue is bounded: a program that does not read is waited for until the limit of the
//! message, one that floods is read no faster than it is answered. A fault ends the connection and nothing else.

use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::jsonrpc::line::{Frame, Frames, LINE_MAX};
use crate::jsonrpc::message::{self, Failure, Message};
use crate::tools::process::peer::{self, Peer, PeerProcess, Program, STACK};
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Messages that wait to be written.
const QUEUE_MAX: usize = 256;
/// Calls of the program that wait for somebody at once.
const CALLS_MAX: usize = 64;
/// Lines that are no message, and answers to nothing.
const BAD_MAX: usize = 100;
/// Bytes of stderr that are kept.
const STDERR_MAX: usize = 64 << 10;
/// Time for a program whose stdout is closed to say how it ended.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// Time for the rest of stderr when the program has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Time for a message that nobody waits for to be taken.
const WRITE_MAX: Duration = Duration::from_secs(30);

/// How a program ends that pi has ended.
pub const RETIRED: &str = "was shut down";

/// Error code: the call failed.
pub const CALL_FAILED: i64 = -32000;
/// Error code: the call was cancelled.
pub const CANCELLED: i64 = -32800;

/// Answers the calls of a program.
pub trait Serve: Send + Sync {
    /// True if the call may wait for somebody, so that it needs a thread of its own.
    fn waits(&self, method: &str, params: &Value) -> bool;

    /// True if the limit of a handler does not run while the program waits for this call.
    fn stops_clock(&self, method: &str) -> bool;

    /// Answers a call; `id` is that of its request, none for a notification.
    fn call(&self, id: Option<&Value>, method: &str, params: Value, cancel: &CancelToken) -> Answer;

    /// The connection is over.
    fn ended(&self, connection: &Connection);
}

pub type Answer = Result<Value, Failure>;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failed {
    Cancelled,
    Late(Duration),
    /// The program has ended; how.
    Over(String),
    /// The program answered with an error.
    Refused(String),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cancelled => f.write_str("aborted"),
            Self::Late(limit) => write!(f, "no answer within {limit:?}"),
            Self::Over(how) => f.write_str(how),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

pub struct Connection {
    queue: Sender<Vec<u8>>,
    requests: Mutex<Requests>,
    /// Cancelled when the connection is over.
    over: CancelToken,
    end: Mutex<Option<String>>,
    stderr: Mutex<VecDeque<u8>>,
    /// Cancelled when stderr has been read to its end.
    heard: CancelToken,
    process: PeerProcess,
    /// Calls of the program under way, by their ids.
    calls: Mutex<HashMap<String, CancelToken>>,
    clock: Mutex<Clock>,
    bad: AtomicUsize,
}

#[derive(Default)]
struct Requests {
    last: u64,
    open: HashMap<u64, Sender<Answer>>,
}

/// When the program last waited for us.
struct Clock {
    waiting: usize,
    since: Instant,
}

/// A request that is not answered yet.
pub struct Open {
    pub id: u64,
    pub answer: Receiver<Answer>,
}

impl Connection {
    /// Starts a program. `serve` answers its calls.
    pub fn start(program: &Program, serve: Arc<dyn Serve>) -> io::Result<Arc<Self>> {
        let Peer { stdin, stdout, stderr, process } = peer::start(program)?;
        let (queue, waiting) = bounded(QUEUE_MAX);
        let connection = Arc::new(Self {
            queue,
            requests: Mutex::default(),
            over: CancelToken::new(),
            end: Mutex::default(),
            stderr: Mutex::default(),
            heard: CancelToken::new(),
            process,
            calls: Mutex::default(),
            clock: Mutex::new(Clock { waiting: 0, since: Instant::now() }),
            bad: AtomicUsize::new(0),
        });
        let spawn = |name: &str, run: Box<dyn FnOnce(Arc<Self>) + Send>| {
            let connection = connection.clone();
            Thread::named(name).stack(STACK).start(move || run(connection)).map(drop)
        };
        spawn("ext-write", Box::new(move |connection| connection.write(stdin, &waiting)))
            .and_then(|()| spawn("ext-stderr", Box::new(move |connection| connection.keep_stderr(stderr))))
            .and_then(|()| spawn("ext-read", Box::new(move |connection| connection.read(stdout, &serve))))
            .inspect_err(|_| connection.process.kill())?;
        Ok(connection)
    }

    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Cancelled when the connection is over.
    pub fn over(&self) -> &CancelToken {
        &self.over
    }

    /// How the connection ended, with the end of what the program said on stderr.
    pub fn end_text(&self) -> String {
        let end = lock(&self.end).clone().unwrap_or_else(|| "has ended".to_owned());
        let stderr: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let stderr = String::from_utf8_lossy(&stderr);
        let tail: Vec<&str> = stderr.trim().lines().rev().take(5).collect();
        match tail.is_empty() {
            true => end,
            false => format!("{end}: {}", tail.into_iter().rev().collect::<Vec<_>>().join("\n")),
        }
    }

    pub fn memory_bytes(&self) -> Option<u64> {
        self.process.memory_bytes()
    }

    /// Ends the connection. Only the first reason counts. The processes are killed.
    pub fn end(&self, why: &str) {
        lock(&self.end).get_or_insert_with(|| why.to_owned());
        self.over.cancel();
        for call in lock(&self.calls).values() {
            call.cancel();
        }
        self.process.kill();
    }

    /// Asks the program to end, and ends it after `until`.
    pub fn shut_down(&self, until: Instant) {
        if !self.is_over() {
            let never = CancelToken::new();
            let _ = self.ask(
                "shutdown",
                json!({}),
                Some(until.saturating_duration_since(Instant::now())),
                &never,
            );
        }
        self.end(RETIRED);
    }

    /// Sends a request and waits for its result. The limit counts only time in which the program does not wait for
    /// us.
    pub fn ask(
        &self,
        method: &str,
        params: impl Serialize,
        limit: Option<Duration>,
        cancel: &CancelToken,
    ) -> Result<Value, Failed> {
        let open = self.begin(method, params, limit, cancel)?;
        let mut until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let late = until.map_or_else(never, at);
            select! {
                recv(open.answer) -> answer => return self.answered(answer.ok()),
                recv(cancel.receiver()) -> _ => {
                    self.give_up(&open);
                    return Err(Failed::Cancelled);
                }
                recv(late) -> _ => match self.extended(limit.unwrap_or_default()) {
                    Some(more) => until = Some(more),
                    None => {
                        self.give_up(&open);
                        return Err(Failed::Late(limit.unwrap_or_default()));
                    }
                },
                recv(self.over.receiver()) -> _ => {
                    // An answer that came before the end counts.
                    return match open.answer.try_recv() {
                        Ok(answer) => self.answered(Some(answer)),
                        Err(_) => Err(Failed::Over(self.end_text())),
                    };
                }
            }
        }
    }

    /// Sends a request. Its answer must be received, or be given up.
    pub fn begin(
        &self,
        method: &str,
        params: impl Serialize,
        limit: Option<Duration>,
        cancel: &CancelToken,
    ) -> Result<Open, Failed> {
        let (sender, answer) = bounded(1);
        let id = {
            let mut requests = lock(&self.requests);
            requests.last += 1;
            let id = requests.last;
            requests.open.insert(id, sender);
            id
        };
        let open = Open { id, answer };
        let sent = self.send(&message::request(id, method, params), limit.unwrap_or(WRITE_MAX), cancel);
        if let Err(failed) = sent {
            lock(&self.requests).open.remove(&id);
            return Err(failed);
        }
        Ok(open)
    }

    /// Sends a notification. A program that does not take it in time is ended.
    pub fn notify(&self, method: &str, params: impl Serialize, cancel: &CancelToken) {
        if let Err(Failed::Late(limit)) = self.send(&message::notification(method, params), WRITE_MAX, cancel)
        {
            self.end(&format!("did not read its stdin for {limit:?}"));
        }
    }

    /// Sends a notification if the program takes it at once.
    pub fn offer(&self, method: &str, params: impl Serialize) {
        let _ = self.queue.try_send(line(&message::notification(method, params)));
    }

    /// Tells the program that nobody waits for the result of a request.
    pub fn give_up(&self, open: &Open) {
        lock(&self.requests).open.remove(&open.id);
        let bytes = line(&message::notification("$/cancelRequest", json!({"id": open.id})));
        let _ = self.queue.try_send(bytes);
    }

    pub fn answered(&self, answer: Option<Answer>) -> Result<Value, Failed> {
        match answer {
            Some(Ok(result)) => Ok(result),
            Some(Err(failure)) if failure.code == CANCELLED => Err(Failed::Cancelled),
            Some(Err(failure)) => Err(Failed::Refused(failure.message)),
            None => Err(Failed::Over(self.end_text())),
        }
    }

    /// When a limit that has passed ends, if the program has waited for us meanwhile.
    fn extended(&self, limit: Duration) -> Option<Instant> {
        let clock = lock(&self.clock);
        let now = Instant::now();
        match clock.waiting {
            0 => (clock.since + limit > now).then(|| clock.since + limit),
            _ => Some(now + limit.max(Duration::from_millis(100))),
        }
    }

    fn send(&self, value: &impl Serialize, limit: Duration, cancel: &CancelToken) -> Result<(), Failed> {
        if self.is_over() {
            return Err(Failed::Over(self.end_text()));
        }
        let bytes = line(value);
        let bytes = match self.queue.try_send(bytes) {
            Ok(()) => return Ok(()),
            Err(error) => error.into_inner(),
        };
        let late = Instant::now().checked_add(limit).map_or_else(never, at);
        select! {
            send(self.queue, bytes) -> sent => sent.map_err(|_| Failed::Over(self.end_text())),
            recv(self.over.receiver()) -> _ => Err(Failed::Over(self.end_text())),
            recv(cancel.receiver()) -> _ => Err(Failed::Cancelled),
            recv(late) -> _ => Err(Failed::Late(limit)),
        }
    }

    fn write(&self, mut stdin: PipeWriter, waiting: &Receiver<Vec<u8>>) {
        loop {
            let bytes = select! {
                recv(waiting) -> bytes => bytes,
                recv(self.over.receiver()) -> _ => return,
            };
            let Ok(bytes) = bytes else { return };
            if stdin.write_all(&bytes).is_err() {
                // The reader sees the end, and says more about it.
                let over = self.over.wait_timeout(EXIT_WAIT);
                if !over {
                    self.end("closed its stdin");
                }
                return;
            }
        }
    }

    fn keep_stderr(&self, mut stderr: PipeReader) {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut part) {
            let mut kept = lock(&self.stderr);
            kept.extend(&part[..count]);
            let excess = kept.len().saturating_sub(STDERR_MAX);
            kept.drain(..excess);
        }
        self.heard.cancel();
    }

    fn read(self: Arc<Self>, stdout: PipeReader, serve: &Arc<dyn Serve>) {
        let mut frames = Frames::new(BufReader::with_capacity(64 << 10, stdout), LINE_MAX);
        let slots = bounded::<()>(CALLS_MAX);
        loop {
            let parsed = match frames.next_frame() {
                Ok(Some(Frame::Line(line))) => message::parse(line).map_err(|bad| *bad),
                Ok(Some(Frame::TooLong)) => Err(message::Bad {
                    id: Value::Null,
                    failure: Failure::new(message::INVALID_REQUEST, "the line is longer than 64 MB"),
                }),
                Ok(None) | Err(_) => break,
            };
            if self.is_over() {
                break;
            }
            match parsed {
                Ok(Message::Response { id, outcome }) => self.respond(&id, outcome),
                Ok(Message::Notification { method, params }) if method == "$/cancelRequest" => {
                    if let Some(call) = lock(&self.calls).get(&params["id"].to_string()) {
                        call.cancel();
                    }
                }
                Ok(Message::Notification { method, params }) => {
                    self.serve(serve, None, method, params, &slots)
                }
                Ok(Message::Request { id, method, params }) => {
                    self.serve(serve, Some(id), method, params, &slots);
                }
                Err(message::Bad { id, failure }) => {
                    self.reply(&message::failure(&id, &failure));
                    self.count_bad();
                }
            }
        }
        if !self.is_over() {
            let code = self.process.ended().recv_timeout(EXIT_WAIT).ok().flatten();
            // What it said last belongs to how it ended; others may hold the pipe.
            if code.is_some() {
                self.heard.wait_timeout(LAST_WORDS);
            }
            self.end(&match code {
                Some(0) => "has ended".to_owned(),
                Some(code) if code > 128 => format!("was ended by signal {}", code - 128),
                Some(code) => format!("has ended with exit code {code}"),
                None => "closed its stdout".to_owned(),
            });
        }
        serve.ended(&self);
    }

    fn respond(&self, id: &Value, outcome: Answer) {
        let number = id.as_u64();
        let (asker, is_known) = {
            let mut requests = lock(&self.requests);
            let is_known = number.is_some_and(|number| (1..=requests.last).contains(&number));
            (number.and_then(|number| requests.open.remove(&number)), is_known)
        };
        match asker {
            // There is room for the one answer.
            Some(asker) => drop(asker.try_send(outcome)),
            // Perhaps one that was given up: not worth a word.
            None if is_known => {}
            None => self.count_bad(),
        }
    }

    fn count_bad(&self) {
        if self.bad.fetch_add(1, Ordering::Relaxed) + 1 >= BAD_MAX {
            self.end(&format!("sent {BAD_MAX} lines that are no messages"));
        }
    }

    fn reply(&self, value: &impl Serialize) {
        // A program that reads no answers is read no further, until it is ended.
        let _ = self.send(value, Duration::MAX, &self.over);
    }

    fn serve(
        self: &Arc<Self>,
        serve: &Arc<dyn Serve>,
        id: Option<Value>,
        method: String,
        params: Value,
        slots: &(Sender<()>, Receiver<()>),
    ) {
        let cancel = CancelToken::new();
        if !serve.waits(&method, &params) {
            let answer = serve.call(id.as_ref(), &method, params, &cancel);
            return self.answer(id, answer);
        }
        select! {
            send(slots.0, ()) -> _ => {}
            recv(self.over.receiver()) -> _ => return,
        }
        let key = id.as_ref().map(Value::to_string);
        if let Some(key) = &key {
            lock(&self.calls).insert(key.clone(), cancel.clone());
        }
        let (connection, serve, free) = (self.clone(), serve.clone(), slots.1.clone());
        let run = move || {
            let stops = serve.stops_clock(&method);
            if stops {
                lock(&connection.clock).waiting += 1;
            }
            let answer = serve.call(id.as_ref(), &method, params, &cancel);
            if let Some(key) = &key {
                lock(&connection.calls).remove(key);
            }
            if stops {
                let mut clock = lock(&connection.clock);
                clock.waiting -= 1;
                clock.since = Instant::now();
            }
            connection.answer(id, answer);
            let _ = free.try_recv();
        };
        let spawned = Thread::named("ext-call").stack(2 * STACK).start(run);
        if let Err(error) = spawned {
            self.end(&format!("cannot be answered: no thread can be started: {error}"));
        }
    }

    fn answer(&self, id: Option<Value>, answer: Answer) {
        let Some(id) = id else { return };
        match answer {
            Ok(result) => self.reply(&message::result(&id, result)),
            Err(failure) => self.reply(&message::failure(&id, &failure)),
        }
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
