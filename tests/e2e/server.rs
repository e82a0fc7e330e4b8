//! A provider that plays a script: one reply for each request, in order.
//!
//! It speaks HTTP/1.1 over loopback with nothing but std, so that what is tested is the real client. A
//! reply is a list of steps; a gate holds it until the test opens it, which is how a test sees "before
//! the reply is complete" without sleeping.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a test waits for something before it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub enum Step {
    Bytes(Vec<u8>),
    /// Goes on when the gate's sender is used or dropped.
    Wait(Receiver<()>),
    /// Ends the connection with a reset.
    Reset,
    /// Says nothing until the client has gone.
    Stall,
}

#[derive(Debug, Default)]
pub struct Reply {
    steps: Vec<Step>,
    /// The stream's end is still to be added.
    open: Option<&'static str>,
    /// Tokens that the end reports for the prompt; 0 for the usual 100.
    prompt_tokens: u64,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub head: String,
    pub path: String,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The messages of an OpenAI-style request.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text of the last message.
    pub fn last_text(&self) -> String {
        let content = &self.messages().last().expect("a message")["content"];
        match content.as_str() {
            Some(text) => text.to_owned(),
            None => {
                content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
            }
        }
    }
}

/// A gate: the sender opens what waits on the receiver.
pub fn gate() -> (Sender<()>, Receiver<()>) {
    channel()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let event = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {event}\n\n")
}

impl Reply {
    /// Raw bytes, the HTTP head included.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { steps: vec![Step::Bytes(bytes.into())], ..Self::default() }
    }

    /// A stream of which nothing has been said yet; it ends with the connection.
    pub fn stream() -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Self { open: Some("stop"), ..Self::raw(head) }
    }

    pub fn text(text: &str) -> Self {
        Self::stream().then_text(text)
    }

    pub fn tool(id: &str, name: &str, arguments: &Value) -> Self {
        Self::stream().then_tool(0, id, name, arguments)
    }

    /// A complete answer with a status and a body.
    pub fn status(status: u16, kind: &str, body: &str) -> Self {
        let length = body.len();
        Self::raw(format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    pub fn error(status: u16, message: &str) -> Self {
        Self::status(status, "application/json", &json!({"error": {"message": message}}).to_string())
    }

    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub fn then_bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.then(Step::Bytes(bytes.into()))
    }

    pub fn then_text(self, text: &str) -> Self {
        self.then_bytes(chunk(&json!({"content": text}), None))
    }

    pub fn then_thinking(self, text: &str) -> Self {
        self.then_bytes(chunk(&json!({"reasoning_content": text}), None))
    }

    pub fn then_tool(self, index: usize, id: &str, name: &str, arguments: &Value) -> Self {
        let call = json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}});
        Self { open: Some("tool_calls"), ..self.then_bytes(chunk(&json!({"tool_calls": [call]}), None)) }
    }

    pub fn then_wait(self, gate: Receiver<()>) -> Self {
        self.then(Step::Wait(gate))
    }

    /// Reports so many tokens for the prompt.
    pub fn with_prompt_tokens(mut self, tokens: u64) -> Self {
        self.prompt_tokens = tokens;
        self
    }

    /// Ends with this reason instead of the natural one.
    pub fn finish(mut self, reason: &'static str) -> Self {
        self.open = Some(reason);
        self
    }

    /// Ends as it is, without the marks of a complete answer.
    pub fn cut(mut self) -> Self {
        self.open = None;
        self
    }

    fn into_steps(mut self) -> Vec<Step> {
        if let Some(reason) = self.open {
            let prompt = match self.prompt_tokens {
                0 => 100,
                tokens => tokens,
            };
            let usage = json!({"id": "c1", "choices": [],
                "usage": {"prompt_tokens": prompt, "completion_tokens": 7, "total_tokens": prompt + 7}});
            let end = format!("{}data: {usage}\n\ndata: [DONE]\n\n", chunk(&json!({}), Some(reason)));
            self.steps.push(Step::Bytes(end.into_bytes()));
        }
        self.steps
    }
}

pub struct Server {
    port: u16,
    shared: Arc<Shared>,
}

type Script = Box<dyn Iterator<Item = Reply> + Send>;

struct Shared {
    replies: Mutex<Script>,
    /// Whether requests are kept for the test to look at.
    remembers: bool,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    stop: AtomicBool,
    connections: AtomicUsize,
    lists_models: AtomicBool,
    /// Requests that it says it answers at once; 0 if it does not say.
    slots: AtomicUsize,
}

impl Server {
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::play(Box::new(replies.into_iter()), true)
    }

    /// Never runs out of replies, and keeps no request.
    pub fn endless(reply: impl FnMut(usize) -> Reply + Send + 'static) -> Self {
        Self::play(Box::new((0..).map(reply)), false)
    }

    fn play(script: Script, remembers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind a loopback port");
        let port = listener.local_addr().expect("address").port();
        let shared = Arc::new(Shared {
            replies: Mutex::new(script),
            remembers,
            requests: Mutex::default(),
            arrived: Condvar::new(),
            stop: false.into(),
            connections: 0.into(),
            lists_models: false.into(),
            slots: 0.into(),
        });
        let server = shared.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if server.stop.load(SeqCst) {
                    return;
                }
                server.connections.fetch_add(1, SeqCst);
                let server = server.clone();
                thread::spawn(move || server.serve(connection));
            }
        });
        Self { port, shared }
    }

    /// From now on it says which models it has, as servers on the same machine do.
    pub fn list_models(&self) {
        self.shared.lists_models.store(true, SeqCst);
    }

    /// From now on it says that it is llama.cpp, and how many requests it answers at once.
    pub fn have_slots(&self, count: usize) {
        self.shared.slots.store(count, SeqCst);
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Base URL of the OpenAI-style API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until `count` requests have come.
    pub fn wait_for(&self, count: usize) -> Vec<Request> {
        let requests = self.shared.requests.lock().unwrap();
        let (requests, late) =
            self.shared.arrived.wait_timeout_while(requests, PATIENCE, |all| all.len() < count).unwrap();
        assert!(!late.timed_out(), "only {} of {count} requests came", requests.len());
        requests.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn serve(&self, connection: TcpStream) {
        let Ok(reading) = connection.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(reading);
        while let Some(request) = read_request(&mut reader) {
            let path = request.path.clone();
            // Other questions than to a model: what models there are, beside the script.
            let is_post = request.head.starts_with("POST");
            let is_scripted =
                is_post || path.starts_with("/api/models/providers/") || path.ends_with("/models/user");
            if is_scripted && self.remembers {
                self.requests.lock().unwrap().push(request);
                self.arrived.notify_all();
            }
            let lists = !is_post && path.ends_with("/v1/models");
            let slots = self.slots.load(SeqCst);
            let reply = if !is_post && slots > 0 && path.starts_with("/props") {
                let props = json!({"default_generation_settings": {"n_ctx": 16384}, "total_slots": slots});
                Some(Reply::status(200, "application/json", &props.to_string()))
            } else if lists && self.lists_models.load(SeqCst) {
                let models = json!({"object": "list", "data": [{"id": "tiny", "max_model_len": 16384}]});
                Some(Reply::status(200, "application/json", &models.to_string()))
            } else if is_scripted {
                self.replies.lock().unwrap().next()
            } else {
                None
            };
            let reply = reply.unwrap_or_else(|| Reply::error(418, "the script is used up"));
            if !play(&connection, reply) {
                break;
            }
        }
        drop(connection.shutdown(Shutdown::Both));
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut request = Request { path: head.split(' ').nth(1)?.to_owned(), head, body: Value::Null };
    let length: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(request)
}

/// False when the connection is over.
fn play(mut connection: &TcpStream, reply: Reply) -> bool {
    for step in reply.into_steps() {
        let sent = match step {
            Step::Bytes(bytes) => connection.write_all(&bytes).and_then(|()| connection.flush()).is_ok(),
            Step::Wait(gate) => {
                let _ = gate.recv_timeout(PATIENCE);
                true
            }
            Step::Reset => {
                reset(connection);
                false
            }
            Step::Stall => {
                let _ = connection.read(&mut [0]);
                false
            }
        };
        if !sent {
            return false;
        }
    }
    false
}

/// Closes with RST: a lingering time of zero throws unsent data away.
fn reset(connection: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open, and the pointer and size are those of `linger`.
    unsafe {
        libc::setsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}
