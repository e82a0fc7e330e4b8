//! MCP over HTTP: the streamable HTTP transport, on loopback or a Unix socket.
//!
//! ```text
//! listener ──> a thread each connection ──> session ──> server ──calls──> streams ──> response
//! ```
//! A client that is slow, rude or gone costs its connection: requests have limits of size and time, responses a limit
//! for each write, and connections and sessions are counted. A response is plain JSON, or a stream of events if
//! something precedes the answer or the answer takes long. A call goes on when its client has gone, as the protocol
//! asks; a client that comes back gets what it missed. A GET is answered by a stream of what belongs to no request.
//!
//! Web pages reach loopback, too: `Host` and `Origin` must be of this machine, and a token is asked for.

mod guard;
mod session;
mod socket;
pub mod stream;

use super::serve::{SharedHost, VERSIONS};
use crate::base::json::json;
use crate::base::poll;
use crate::base::thread::Thread;
use crate::jsonrpc::message::{self, INTERNAL_ERROR, INVALID_REQUEST, Message};
use crate::mode::report;
use crate::runtime::CancelToken;
use guard::Guard;
use serde_json::Value;
use session::{Session, Sessions};
use socket::{Connection, Fault, Request, Socket};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use stream::{Next, Reader};

/// The path of the endpoint.
const PATH: &str = "/mcp";
const SESSION: &str = "mcp-session-id";
/// The first revision whose clients know an event without a message.
const WITH_BEGINNING: &str = "2025-11-25";
/// Connections at a time.
const CONNECTIONS_MAX: usize = 64;
/// Time for an answer before a response becomes a stream, and between signs of life there.
const STREAM_AFTER: Duration = Duration::from_secs(1);
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Time without further connections where no more descriptors are to be had.
const EXHAUSTED: Duration = Duration::from_millis(200);
const STACK: usize = 512 << 10;

/// Serves clients until `cancel` is cancelled.
pub fn serve(host: SharedHost, can_run: bool, address: &str, cancel: &CancelToken) -> Result<(), String> {
    let listener = Listener::bind(address).map_err(|why| format!("Cannot listen at {address}: {why}"))?;
    let guard = Guard::new(matches!(listener, Listener::Unix(..)))?;
    report::note(format_args!("Listening at {}", listener.name()));
    if let Some(header) = guard.header() {
        report::note(format_args!("Clients send the header {header}"));
    }
    let server = HttpServer {
        guard,
        sessions: Sessions::new(host, can_run, cancel.clone()),
        connections: Mutex::default(),
    };
    let served = server.accept(&listener, cancel);
    server.sessions.close_all();
    served.map_err(|error| format!("Cannot accept connections: {error}"))
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    fn bind(address: &str) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        let listener = match address.strip_prefix("unix:") {
            Some(path) => Self::Unix(bind_path(Path::new(path))?, path.into()),
            None => {
                let numeric = match address.strip_prefix("localhost:") {
                    Some(port) => format!("127.0.0.1:{port}"),
                    None => address.to_owned(),
                };
                let place: SocketAddr = numeric
                    .parse()
                    .map_err(|_| "it must be unix:PATH, or an address with a port such as 127.0.0.1:8600")?;
                if !place.ip().is_loopback() {
                    return Err("only addresses of this machine are served, such as 127.0.0.1; for others \
                                put a server with TLS before it"
                        .into());
                }
                Self::Tcp(TcpListener::bind(place).map_err(text)?)
            }
        };
        match &listener {
            Self::Tcp(listener) => listener.set_nonblocking(true).map_err(text)?,
            Self::Unix(listener, _) => listener.set_nonblocking(true).map_err(text)?,
        }
        Ok(listener)
    }

    fn name(&self) -> String {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => format!("http://{address}{PATH}"),
                Err(_) => PATH.to_owned(),
            },
            Self::Unix(_, path) => format!("unix:{} ({PATH})", path.display()),
        }
    }

    fn fd(&self) -> i32 {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Unix(listener, _) => listener.as_raw_fd(),
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Socket::Tcp(stream)),
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Socket::Unix(stream)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes a socket that only this user can connect to. One that a program has left behind is replaced.
fn bind_path(path: &Path) -> Result<UnixListener, String> {
    let text = |error: io::Error| error.to_string();
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        if UnixStream::connect(path).is_ok() {
            return Err("another program listens there".into());
        }
        std::fs::remove_file(path).map_err(text)?;
    }
    // Nobody else can reach the socket before its mode is set: it is made in a folder of its own.
    let folder = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::create_dir(&folder).map_err(text)?;
    let made = (|| {
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700))?;
        let inner = folder.join("s");
        let listener = UnixListener::bind(&inner)?;
        std::fs::set_permissions(&inner, PermissionsExt::from_mode(0o600))?;
        std::fs::rename(&inner, path).inspect_err(|_| drop(std::fs::remove_file(&inner)))?;
        Ok(listener)
    })();
    let _ = std::fs::remove_dir(&folder);
    made.map_err(text)
}

struct HttpServer {
    guard: Guard,
    sessions: Sessions,
    /// The sockets of connections, to end them.
    connections: Mutex<HashMap<u64, Socket>>,
}

impl HttpServer {
    fn accept(&self, listener: &Listener, cancel: &CancelToken) -> io::Result<()> {
        let (cancelled, sender) = io::pipe()?;
        // A pipe without a sender wakes whoever polls it.
        let _guard = cancel.on_cancel(move || drop(sender));
        thread::scope(|scope| {
            let mut served = Ok(());
            for number in 0.. {
                match poll::poll([cancelled.as_raw_fd(), listener.fd()], None) {
                    Ok([true, _]) => break,
                    Ok(_) => {}
                    Err(error) => {
                        served = Err(error);
                        break;
                    }
                }
                let Ok(socket) = listener.accept() else {
                    // A client that has gone again, or too many open files.
                    cancel.wait_timeout(EXHAUSTED);
                    continue;
                };
                let copy = socket.prepare().and_then(|()| socket.try_clone());
                let mut connection = Connection::new(socket);
                let is_free = self.connections().len() < CONNECTIONS_MAX;
                let (Ok(copy), true) = (copy, is_free) else {
                    connection.respond(503, &[("Retry-After", "1")], b"Too many connections\n", false);
                    continue;
                };
                self.connections().insert(number, copy);
                let work = move || {
                    self.follow(&mut connection);
                    self.connections().remove(&number);
                };
                if Thread::named("http").stack(STACK).start_in(scope, work).is_err() {
                    self.connections().remove(&number);
                }
            }
            // Whoever waits for a client or a call ends.
            cancel.cancel();
            self.sessions.cancel_all();
            self.connections().values().for_each(Socket::shut);
            served
        })
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Socket>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers the requests of a connection, until it ends.
    fn follow(&self, connection: &mut Connection<Socket>) {
        loop {
            let request = match connection.next() {
                Ok(request) => request,
                Err(Fault::Gone) => break,
                Err(Fault::Refused(status, why)) => {
                    refuse(connection, status, &[], why, false);
                    break;
                }
            };
            if !self.answer(connection, request) {
                break;
            }
        }
        connection.socket.shut();
    }

    /// Answers a request. True if the connection can take another one.
    fn answer(&self, connection: &mut Connection<Socket>, request: Request) -> bool {
        let keeps = request.keeps;
        if let Err((status, why)) = self.guard.check(&request) {
            let headers: &[_] = if status == 401 { &[("WWW-Authenticate", "Bearer")] } else { &[] };
            return refuse(connection, status, headers, why, keeps);
        }
        if request.path != PATH {
            return refuse(connection, 404, &[], "The endpoint is /mcp", keeps);
        }
        if request.header("mcp-protocol-version").is_some_and(|version| !VERSIONS.contains(&version)) {
            return refuse(connection, 400, &[], "This MCP-Protocol-Version is not spoken", keeps);
        }
        match request.method.as_str() {
            "POST" => self.post(connection, &request),
            "DELETE" => match request.header(SESSION).map(|id| self.sessions.end(id)) {
                Some(true) => connection.respond(204, &[], b"", keeps) && keeps,
                Some(false) => refuse(connection, 404, &[], "There is no such session", keeps),
                None => refuse(connection, 400, &[], "Mcp-Session-Id is missing", keeps),
            },
            "GET" => self.get(connection, &request),
            _ => refuse(connection, 405, &[("Allow", "GET, POST, DELETE")], "Use GET, POST or DELETE", keeps),
        }
    }

    /// Sends what belongs to no request, or the rest of a stream that was broken off.
    fn get(&self, connection: &mut Connection<Socket>, request: &Request) -> bool {
        let keeps = request.keeps;
        if !takes(request, "text/event-stream") {
            return refuse(connection, 406, &[], "The client must accept text/event-stream", keeps);
        }
        let session = match request.header(SESSION).map(|id| self.sessions.find(id)) {
            Some(Some(session)) => session,
            Some(None) => return refuse(connection, 404, &[], "There is no such session", keeps),
            None => return refuse(connection, 400, &[], "Mcp-Session-Id is missing", keeps),
        };
        let reader = match request.header("last-event-id") {
            Some(last) => session.streams.resume(last),
            None => session.streams.news(),
        };
        match reader {
            Some(mut reader) => {
                if connection.begin_events() {
                    let next = reader.next(ALIVE_EVERY);
                    send(connection, reader, next);
                }
                false
            }
            None => refuse(connection, 400, &[], "There is no stream with this event", keeps),
        }
    }

    fn post(&self, connection: &mut Connection<Socket>, request: &Request) -> bool {
        let keeps = request.keeps;
        if !takes(request, "application/json") || !takes(request, "text/event-stream") {
            let why = "The client must accept application/json and text/event-stream";
            return refuse(connection, 406, &[], why, keeps);
        }
        if !request.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            return refuse(connection, 415, &[], "The Content-Type must be application/json", keeps);
        }
        let message = match message::parse(&request.body) {
            Ok(message) => message,
            Err(bad) => {
                let body = serde_json::to_vec(&message::failure(&bad.id, &bad.failure)).unwrap_or_default();
                return connection.respond(400, &[("Content-Type", "application/json")], &body, keeps)
                    && keeps;
            }
        };
        let is_greeting = matches!(&message, Message::Request { method, .. } if method == "initialize");
        let session = match (request.header(SESSION), is_greeting) {
            (Some(id), false) => match self.sessions.find(id) {
                Some(session) => session,
                None => return refuse(connection, 404, &[], "There is no such session", keeps),
            },
            (None, true) => match self.sessions.begin() {
                Ok(session) => session,
                Err(why) => return refuse(connection, 503, &[("Retry-After", "1")], &why, keeps),
            },
            (None, false) => return refuse(connection, 400, &[], "Mcp-Session-Id is missing", keeps),
            (Some(_), true) => return refuse(connection, 400, &[], "The session has begun", keeps),
        };
        let (id, params) = match &message {
            Message::Request { id, params, .. } => (id.clone(), params),
            other => {
                // What is cancelled is not answered any more.
                if let Message::Notification { method, params } = other
                    && method == "notifications/cancelled"
                {
                    session.streams.close(&params["requestId"]);
                }
                session.server.handle(message);
                return connection.respond(202, &[], b"", keeps) && keeps;
            }
        };
        let Some(reader) = session.streams.open(&id, params) else {
            return refuse(connection, 400, &[], "A request with this id is under way", keeps);
        };
        session.server.handle(message);
        let begins = request.header("mcp-protocol-version").is_some_and(|version| version >= WITH_BEGINNING);
        reply(connection, &session, reader, begins, keeps)
    }
}

/// True if the client takes content of this kind.
fn takes(request: &Request, kind: &str) -> bool {
    request.header("accept").is_none_or(|all| all.contains(kind) || all.contains("*/*"))
}

/// Writes the answer to a request, and what precedes it. `begins` if the client knows an event without a message, to
/// resume from. True if the connection can take another request.
fn reply(
    connection: &mut Connection<Socket>,
    session: &Session,
    mut reader: Reader<'_>,
    begins: bool,
    keeps: bool,
) -> bool {
    let beginning = reader.beginning();
    let first = reader.next(STREAM_AFTER);
    if let Next::Message { text, is_last: true, .. } = &first {
        let headers = [("Content-Type", "application/json"), ("Mcp-Session-Id", session.id.as_str())];
        let is_taken = connection.respond(200, &headers, text.as_bytes(), keeps);
        reader.finish();
        return is_taken && keeps;
    }
    if connection.begin_events() && (!begins || connection.event(&beginning, "")) {
        send(connection, reader, first);
    }
    false
}

/// Writes a stream, from `next` on, until its end or that of the client.
fn send(connection: &mut Connection<Socket>, mut reader: Reader<'_>, mut next: Next) {
    loop {
        let is_taken = match &next {
            Next::Message { id, text, is_last } => connection.event(id, text) && !is_last,
            Next::Quiet => connection.comment(),
            Next::Over => false,
        };
        if !is_taken {
            return;
        }
        next = reader.next(ALIVE_EVERY);
    }
}

/// Writes an error, also as a message of the protocol.
fn refuse(
    connection: &mut Connection<Socket>,
    status: u16,
    headers: &[(&str, &str)],
    why: &str,
    keeps: bool,
) -> bool {
    let code = if status < 500 { INVALID_REQUEST } else { INTERNAL_ERROR };
    let body = json!({"jsonrpc": "2.0", "id": Value::Null, "error": {"code": code, "message": why}});
    let headers = [headers, &[("Content-Type", "application/json")]].concat();
    connection.respond(status, &headers, body.to_string().as_bytes(), keeps) && keeps
}
