//! A local HTTP server that receives the redirect at the end of a browser flow.
//!
//! Browsers open connections that they never use, request icons, and reload pages; other programs may connect
//! too. Each connection therefore has its own thread and a short time limit; an unexpected request gets an
//! error page and has no effect; only the expected path with the expected state ends the wait. Dropping the
//! server closes all connections at once.

use super::entry::failed;
use super::form::{self, Returned};
use crate::base::thread::Thread;
use crate::llm::event::StreamError;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for reading a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest head of a request, in bytes.
const HEAD_LIMIT: usize = 32 << 10;
/// Maximum number of connections served at a time.
const CONNECTIONS: usize = 16;

/// The server, which runs until dropped.
pub(super) struct Callback {
    pub port: u16,
    /// Receives the parameters of the redirect, or the error of the sign-in, once.
    pub received: Receiver<Result<Returned, StreamError>>,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// The expected request.
pub(super) struct Expected {
    pub path: String,
    /// `None` if the provider returns no state; the path is then random.
    pub state: Option<String>,
    /// Name of the provider, for messages.
    pub name: &'static str,
}

struct Shared {
    expected: Expected,
    sender: Sender<Result<Returned, StreamError>>,
    open: Mutex<Open>,
    wake: SocketAddr,
}

#[derive(Default)]
struct Open {
    ending: bool,
    sockets: Vec<(usize, TcpStream)>,
}

impl Callback {
    /// Listens on `port` (0 for any free port) of `host`, by default of loopback. Another `host` serves a
    /// browser on another machine.
    pub fn start(host: Option<&str>, port: u16, expected: Expected) -> io::Result<Self> {
        let address = match host.unwrap_or("127.0.0.1") {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            host => host.parse().map_err(|_| {
                let text = "PI_OAUTH_CALLBACK_HOST is not an IP address";
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?,
        };
        let listener = TcpListener::bind((address, port))?;
        let bound = listener.local_addr()?;
        let (sender, received) = bounded(1);
        let shared = Arc::new(Shared {
            expected,
            sender,
            open: Mutex::default(),
            wake: match address {
                IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, bound.port()).into(),
                IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, bound.port()).into(),
                _ => bound,
            },
        });
        let acceptor = {
            let shared = shared.clone();
            Thread::named("sign-in callback").start(move || shared.accept(&listener))?
        };
        Ok(Self { port: bound.port(), received, shared, acceptor: Some(acceptor) })
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all threads: closes their sockets, and wakes the acceptor with a connection.
    fn close(&self) {
        let sockets = {
            let mut open = self.lock();
            open.ending = true;
            std::mem::take(&mut open.sockets)
        };
        for (_, socket) in sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect_timeout(&self.wake, PATIENCE);
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        for number in 0.. {
            let accepted = listener.accept();
            threads.retain(|thread| !thread.is_finished());
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    let text = format!("cannot wait for the browser: {error}");
                    let _ = self.sender.try_send(Err(failed(text)));
                    break;
                }
            };
            if !self.enter(number, &stream, threads.len()) {
                if self.lock().ending {
                    break;
                }
                continue;
            }
            let shared = self.clone();
            let serve = move || {
                shared.serve(stream);
                shared.lock().sockets.retain(|(other, _)| *other != number);
            };
            match Thread::named("sign-in request").start(serve) {
                Ok(thread) => threads.push(thread),
                Err(_) => self.lock().sockets.retain(|(other, _)| *other != number),
            }
        }
        for thread in threads {
            let _ = thread.join();
        }
    }

    /// Registers a connection. False if it must not be served.
    fn enter(&self, number: usize, stream: &TcpStream, running: usize) -> bool {
        let mut open = self.lock();
        if open.ending || running >= CONNECTIONS {
            return false;
        }
        let Ok(handle) = stream.try_clone() else {
            return false;
        };
        open.sockets.push((number, handle));
        true
    }

    fn serve(&self, mut stream: TcpStream) {
        let timeouts = stream.set_read_timeout(Some(PATIENCE));
        if timeouts.and_then(|()| stream.set_write_timeout(Some(PATIENCE))).is_err() {
            return;
        }
        let Some(target) = read_target(&mut stream) else {
            return;
        };
        let (status, text, outcome) = self.judge(target.as_deref());
        // The page is sent first: the receiver of the outcome closes the connection.
        let _ = stream.write_all(page(status, &text).as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        if let Some(outcome) = outcome {
            let _ = self.sender.try_send(outcome);
        }
    }

    /// The status and page for a GET of `target`, and the outcome if it ends the wait. `None` stands for
    /// another method.
    fn judge(&self, target: Option<&str>) -> (&'static str, String, Option<Result<Returned, StreamError>>) {
        const BAD: &str = "400 Bad Request";
        let name = self.expected.name;
        let Some(target) = target else {
            return ("405 Method Not Allowed", "Only GET is answered here.".into(), None);
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.expected.path {
            return ("404 Not Found", "There is nothing here.".into(), None);
        }
        if self.expected.state.is_some() && form::value(query, "state") != self.expected.state {
            let text =
                "This is not the sign-in that pi waits for (another state). Start again from its link.";
            return (BAD, text.into(), None);
        }
        let filled = |name| form::value(query, name).filter(|value| !value.is_empty());
        if let Some(error) = filled("error") {
            let about = filled("error_description").unwrap_or(error);
            let about = crate::llm::http::one_line(&about, 200);
            let text = format!("{name} did not allow the sign-in: {about}");
            return (BAD, text.clone(), Some(Err(failed(text))));
        }
        match form::returned(query) {
            Some(code) => {
                let text = format!("{name} has answered. Go back to pi; this page can be closed.");
                ("200 OK", text, Some(Ok(code)))
            }
            None => (BAD, "The code is missing.".into(), None),
        }
    }
}

/// Reads a request and returns the target of a GET; `Some(None)` for other methods, `None` if no complete
/// head arrives.
fn read_target(stream: &mut TcpStream) -> Option<Option<String>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).rev().take(buffer.len() + 4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        head.extend_from_slice(buffer.get(..count)?);
        if head.len() > HEAD_LIMIT {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    Some((method == "GET").then(|| target.to_owned()))
}

fn page(status: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>pi: sign-in</title>\
         <body style=\"font: 1.2em sans-serif; margin: 3em\"><p>{text}</p></body></html>"
    );
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
