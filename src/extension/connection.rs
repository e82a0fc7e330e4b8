//! A program that runs extensions, and the messages to and from it.
//!
//! ```text
//! callers ──> queue ──> writer ──> stdin │ program │ stdout ──> reader ──answers──> callers
//!                          └──────────────── answers <─ calls ───┴──> threads for long calls
//! ```
//! Quick calls of the program are answered on the reader's thread and so in their order; calls that wait for somebody
//! get a thread each. Every queue is bounded: a program that does not read is waited for until the limit of the
//! message, and is ended when too many of its answers wait. A fault ends the connection and nothing else.

use super::calls::{Calls, Turn};
use super::request::{Answer, Failed, Open, Pulse, Requests};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::jsonrpc::line::{Frame, Frames, LINE_MAX};
use crate::jsonrpc::message::{self, Failure, Message, Start};
use crate::jsonrpc::outbox::{Outbox, Refused};
use crate::tools::process::peer::{self, Peer, PeerProcess, Program, STACK};
use crossbeam_channel::{at, never, select};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, BufReader, PipeReader, PipeWriter, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of messages that wait to be written.
const OUTBOX_MAX: usize = 16 << 20;
/// Time in which a program whose answers fill that is to read something.
const READ_MAX: Duration = Duration::from_secs(5);
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

pub struct Connection {
    outbox: Outbox,
    requests: Mutex<Requests>,
    /// Cancelled when the connection is over.
    over: CancelToken,
    /// Cancelled when the user has been told of the end.
    told: CancelToken,
    end: Mutex<Option<String>>,
    stderr: Mutex<VecDeque<u8>>,
    /// Cancelled when stderr has been read to its end.
    heard: CancelToken,
    process: PeerProcess,
    /// Calls of the program that wait for somebody.
    calls: Mutex<Calls>,
    clock: Mutex<Clock>,
    bad: AtomicUsize,
}

/// When the program last waited for us.
struct Clock {
    waiting: usize,
    since: Instant,
}

impl Connection {
    /// Starts a program. `serve` answers its calls.
    pub fn start(program: &Program, serve: Arc<dyn Serve>) -> io::Result<Arc<Self>> {
        let Peer { stdin, stdout, stderr, process } = peer::start(program)?;
        let over = CancelToken::new();
        let connection = Arc::new(Self {
            outbox: Outbox::new(OUTBOX_MAX, over.clone()),
            requests: Mutex::default(),
            over,
            told: CancelToken::new(),
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
        spawn("ext-write", Box::new(move |connection| connection.write(stdin)))
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
        let waiting = lock(&self.calls).end();
        drop(waiting);
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
        self.wait(&open, limit, cancel).inspect_err(|failed| {
            if matches!(failed, Failed::Cancelled | Failed::Late(_)) {
                self.give_up(&open);
            }
        })
    }

    /// Asks an extension as [`Self::ask`] does. One that did not answer the last times is not waited for, until it
    /// answers any of those requests.
    pub fn ask_handler(
        &self,
        pulse: &Arc<Pulse>,
        method: &str,
        params: impl Serialize,
        limit: Duration,
        cancel: &CancelToken,
    ) -> Result<Value, Failed> {
        let open = lock(&self.requests).open();
        let request = message::request(open.id, method, params);
        let expect_late = || lock(&self.requests).expect_late(open.id, pulse);
        if pulse.is_hung() {
            self.outbox.offer(line(&request));
            expect_late();
            return Err(Failed::Hung { is_news: false });
        }
        let answer = self.send(&request, limit, cancel).and_then(|()| self.wait(&open, Some(limit), cancel));
        match answer {
            Err(Failed::Late(limit)) => {
                self.give_up(&open);
                expect_late();
                return Err(pulse.miss(limit));
            }
            Err(Failed::Cancelled) => self.give_up(&open),
            _ => pulse.beat(),
        }
        answer
    }

    fn wait(&self, open: &Open, limit: Option<Duration>, cancel: &CancelToken) -> Result<Value, Failed> {
        let mut until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let late = until.map_or_else(never, at);
            select! {
                recv(open.answer) -> answer => return self.answered(answer.ok()),
                recv(cancel.receiver()) -> _ => return Err(Failed::Cancelled),
                recv(late) -> _ => match self.extended(limit.unwrap_or_default()) {
                    Some(more) => until = Some(more),
                    None => return Err(Failed::Late(limit.unwrap_or_default())),
                },
                recv(self.over.receiver()) -> _ => {
                    return self.at_end(open);
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
        let open = lock(&self.requests).open();
        let request = message::request(open.id, method, params);
        self.send(&request, limit.unwrap_or(WRITE_MAX), cancel)
            .inspect_err(|_| lock(&self.requests).close(open.id))?;
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
        self.outbox.offer(line(&message::notification(method, params)));
    }

    /// Tells the program that nobody waits for the result of a request.
    pub fn give_up(&self, open: &Open) {
        lock(&self.requests).close(open.id);
        self.offer("$/cancelRequest", json!({"id": open.id}));
    }

    pub fn answered(&self, answer: Option<Answer>) -> Result<Value, Failed> {
        match answer {
            Some(Ok(result)) => Ok(result),
            Some(Err(failure)) if failure.code == CANCELLED => Err(Failed::Cancelled),
            Some(Err(failure)) => Err(Failed::Refused(failure.message)),
            None => Err(Failed::Over(self.end_text())),
        }
    }

    /// What has become of a request when the connection is over. An answer that came before counts. The user is told of
    /// the end first: pi may end with what the caller does.
    pub fn at_end(&self, open: &Open) -> Result<Value, Failed> {
        match open.answer.try_recv() {
            Ok(answer) => self.answered(Some(answer)),
            Err(_) => {
                self.told.wait_timeout(EXIT_WAIT);
                Err(Failed::Over(self.end_text()))
            }
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
        self.outbox.push(line(value), limit, cancel).map_err(|refused| match refused {
            Refused::Late => Failed::Late(limit),
            Refused::Cancelled => Failed::Cancelled,
            Refused::Over => Failed::Over(self.end_text()),
        })
    }

    fn write(&self, stdin: PipeWriter) {
        // The reader sees the end, and says more about it.
        if self.outbox.write_to(stdin).is_err() && !self.over.wait_timeout(EXIT_WAIT) {
            self.end("closed its stdin");
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
        loop {
            let (parsed, size) = match frames.next_frame() {
                Ok(Some(Frame::Line(line))) => (message::parse(line), line.len()),
                Ok(Some(Frame::TooLong(start))) => (self.too_long(Start::read(start)), 0),
                Ok(None) | Err(_) => break,
            };
            if self.is_over() {
                break;
            }
            match parsed {
                Ok(Message::Response { id, outcome }) => {
                    if !lock(&self.requests).answer(&id, outcome) {
                        self.count_bad();
                    }
                }
                Ok(Message::Notification { method, params }) if method == "$/cancelRequest" => {
                    let call = lock(&self.calls).find(&params["id"]);
                    call.iter().for_each(CancelToken::cancel);
                }
                Ok(Message::Notification { method, params }) => {
                    self.serve(serve, None, method, params, size);
                }
                Ok(Message::Request { id, method, params }) => {
                    self.serve(serve, Some(id), method, params, size);
                }
                Err(bad) => {
                    let message::Bad { id, failure } = *bad;
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
        self.told.cancel();
    }

    fn count_bad(&self) {
        if self.bad.fetch_add(1, Ordering::Relaxed) + 1 >= BAD_MAX {
            self.end(&format!("sent {BAD_MAX} lines that are no messages"));
        }
    }

    /// What a line over the limit comes to. One that may be any answer fails every request.
    fn too_long(&self, start: Option<Start>) -> Result<Message, Box<message::Bad>> {
        let failure = |what| {
            Failure::new(message::INVALID_REQUEST, format!("{what} is longer than {} MB", LINE_MAX >> 20))
        };
        match start {
            Some(Start { id, has_method: true }) => {
                Err(Box::new(message::Bad { id: id.unwrap_or_default(), failure: failure("the message") }))
            }
            Some(Start { id: Some(id), .. }) => {
                Ok(Message::Response { id, outcome: Err(failure("the answer of the extension")) })
            }
            start => {
                if start.is_some() {
                    lock(&self.requests).answer_all(&Err(failure("the answer of the extension")));
                }
                Err(Box::new(message::Bad { id: Value::Null, failure: failure("the line") }))
            }
        }
    }

    fn reply(&self, value: &impl Serialize) {
        if self.outbox.answer(line(value), READ_MAX) == Err(Refused::Late) {
            self.end(&format!("does not read its stdin: answers of {} MB wait there", OUTBOX_MAX >> 20));
        }
    }

    /// Answers a call that has `size` bytes.
    fn serve(
        self: &Arc<Self>,
        serve: &Arc<dyn Serve>,
        id: Option<Value>,
        method: String,
        params: Value,
        size: usize,
    ) {
        let cancel = CancelToken::new();
        if !serve.waits(&method, &params) {
            let answer = serve.call(id.as_ref(), &method, params, &cancel);
            return self.answer(id, answer);
        }
        let stops = serve.stops_clock(&method);
        if stops {
            lock(&self.clock).waiting += 1;
        }
        let (connection, serve, asked, token) = (self.clone(), serve.clone(), id.clone(), cancel.clone());
        let run = move || {
            let answer = serve.call(asked.as_ref(), &method, params, &token);
            if let Some(id) = &asked {
                lock(&connection.calls).forget(id);
            }
            if stops {
                let mut clock = lock(&connection.clock);
                clock.waiting -= 1;
                clock.since = Instant::now();
            }
            connection.answer(asked, answer);
        };
        let turn = lock(&self.calls).add(id.as_ref(), &cancel, size, Box::new(run));
        let spawned = match turn {
            Turn::Now(first) => {
                let connection = self.clone();
                let work = move || {
                    let mut next = Some(first);
                    while let Some(run) = next {
                        run();
                        next = lock(&connection.calls).next();
                    }
                };
                Thread::named("ext-call").stack(2 * STACK).start(work).map(drop)
            }
            Turn::Later => Ok(()),
            Turn::Refused => {
                if stops {
                    lock(&self.clock).waiting -= 1;
                }
                return self.answer(id, Err(Failure::new(CALL_FAILED, "too many calls wait to be answered")));
            }
        };
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
