//! A connection of a client: requests are read within limits of size and time, responses written.

use crate::base::patience::patience;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Largest head and body of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;
const BODY_MAX: usize = 8 << 20;
const HEADERS_MAX: usize = 64;
/// Time until the next request of a connection begins, and until it is there.
const IDLE_MAX: Duration = Duration::from_secs(60);
const REQUEST_MAX: Duration = Duration::from_secs(20);
/// Time without progress of a write.
const WRITE_MAX: Duration = Duration::from_secs(20);

pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    pub fn shut(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn set_read_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(limit)),
            Self::Unix(stream) => stream.set_read_timeout(Some(limit)),
        }
    }

    /// Makes the socket wait, with a limit for writes. Accepted ones may have the mode of the listener.
    pub fn prepare(&self) -> io::Result<()> {
        let limit = Some(patience(WRITE_MAX));
        match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(limit)
            }
            Self::Unix(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_write_timeout(limit)
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// True if the connection can take another request.
    pub keeps: bool,
}

impl Request {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Why a request cannot be read.
#[derive(Debug, PartialEq)]
pub enum Fault {
    /// The client has gone, or is too slow.
    Gone,
    Refused(u16, &'static str),
}

/// A connection, and what was read of it beyond the last request.
pub struct Connection<S> {
    pub socket: S,
    rest: Vec<u8>,
}

impl Connection<Socket> {
    /// Reads the next request.
    pub fn next(&mut self) -> Result<Request, Fault> {
        let mut until = Instant::now() + patience(IDLE_MAX);
        let mut begun = !self.rest.is_empty();
        self.read_with(|socket, buffer| {
            if begun {
                until = until.min(Instant::now() + patience(REQUEST_MAX));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            begun = true;
            socket.set_read_timeout(left)?;
            socket.read(buffer)
        })
    }
}

impl<S: Write> Connection<S> {
    pub fn new(socket: S) -> Self {
        Self { socket, rest: Vec::new() }
    }

    fn read_with(
        &mut self,
        mut read: impl FnMut(&mut S, &mut [u8]) -> io::Result<usize>,
    ) -> Result<Request, Fault> {
        let mut more = |socket: &mut S, rest: &mut Vec<u8>| {
            let mut buffer = [0; 16 << 10];
            match read(socket, &mut buffer) {
                Ok(count) if count > 0 => {
                    rest.extend_from_slice(&buffer[..count]);
                    Ok(())
                }
                _ => Err(Fault::Gone),
            }
        };
        let (mut request, size, expects) = loop {
            if let Some(found) = head(&self.rest)? {
                break found;
            }
            if self.rest.len() > HEAD_MAX {
                return Err(Fault::Refused(431, "The head of the request is too long"));
            }
            more(&mut self.socket, &mut self.rest)?;
        };
        let (begin, end) = size;
        if expects && self.rest.len() < end {
            self.socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|_| Fault::Gone)?;
        }
        while self.rest.len() < end {
            more(&mut self.socket, &mut self.rest)?;
        }
        let rest = self.rest.split_off(end);
        request.body = std::mem::replace(&mut self.rest, rest).split_off(begin);
        Ok(request)
    }

    /// Writes a whole response. True if it was taken.
    pub fn respond(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8], keeps: bool) -> bool {
        let length = body.len().to_string();
        let mut all = headers.to_vec();
        // 202 and 204 have no body.
        if status != 204 {
            all.push(("Content-Length", &length));
        }
        let mut response = head_of(status, &all, keeps);
        response.extend_from_slice(body);
        self.socket.write_all(&response).is_ok()
    }

    /// Begins a stream of events, which ends with the connection.
    pub fn begin_events(&mut self) -> bool {
        let headers = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")];
        self.socket.write_all(&head_of(200, &headers, false)).is_ok()
    }

    pub fn event(&mut self, id: &str, message: &str) -> bool {
        self.socket.write_all(format!("event: message\nid: {id}\ndata: {message}\n\n").as_bytes()).is_ok()
    }

    /// Writes what clients skip, to learn whether this one is still there.
    pub fn comment(&mut self) -> bool {
        self.socket.write_all(b":\n\n").is_ok()
    }
}

type Place = (usize, usize);

/// Reads the head of a request, with the place of its body, and true if the client waits to be told to go on. None if
/// it is not complete.
fn head(bytes: &[u8]) -> Result<Option<(Request, Place, bool)>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let begin = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(begin)) => begin,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Fault::Refused(400, "This is no HTTP request")),
    };
    let headers: Vec<(String, String)> = parsed
        .headers
        .iter()
        .map(|header| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
        })
        .collect();
    let target = parsed.path.unwrap_or_default();
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: target.split('?').next().unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
        keeps: parsed.version == Some(1),
    };
    request.keeps &= request.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close"));
    if request.header("transfer-encoding").is_some() {
        return Err(Fault::Refused(411, "The request needs a Content-Length"));
    }
    let mut lengths = request.headers.iter().filter(|(name, _)| name == "content-length");
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => 0,
        (Some((_, length)), None) => {
            length.parse().map_err(|_| Fault::Refused(400, "The Content-Length is no number"))?
        }
        // Two readers could disagree on where the next request begins.
        (Some(_), Some(_)) => {
            return Err(Fault::Refused(400, "The request has more than one Content-Length"));
        }
    };
    if length > BODY_MAX {
        return Err(Fault::Refused(413, "The request has more than 8 MB"));
    }
    let expects = request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
    Ok(Some((request, (begin, begin + length), expects)))
}

fn head_of(status: u16, headers: &[(&str, &str)], keeps: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str(if keeps { "\r\n" } else { "Connection: close\r\n\r\n" });
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all requests of `bytes`, which come in parts of `size`.
    fn read(bytes: &[u8], size: usize) -> (Vec<Request>, Fault, Vec<u8>) {
        let mut parts = bytes.chunks(size);
        let mut connection = Connection::new(Vec::new());
        let mut all = Vec::new();
        loop {
            let next = connection.read_with(|_, buffer| {
                let part = parts.next().unwrap_or_default();
                buffer[..part.len()].copy_from_slice(part);
                Ok(part.len())
            });
            match next {
                Ok(request) => all.push(request),
                Err(fault) => return (all, fault, connection.socket),
            }
        }
    }

    #[test]
    fn requests_are_read_wherever_they_are_cut() {
        let bytes = b"POST /mcp?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcDELETE /mcp HTTP/1.1\r\nX-Y:  z \r\nConnection: close\r\n\r\n";
        for size in [1, 2, 7, 1000] {
            let (all, end, _) = read(bytes, size);
            assert_eq!((all.len(), &end), (2, &Fault::Gone), "{size}");
            assert_eq!((&*all[0].path, &*all[0].body, all[0].keeps), ("/mcp", &b"abc"[..], true));
            assert_eq!((all[1].header("x-y"), all[1].keeps), (Some("z"), false));
        }
    }

    #[test]
    fn what_is_too_large_or_no_request_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(HEAD_MAX));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        for (text, expected) in [
            (&*long, 431),
            (&*many, 400),
            ("nonsense\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        ] {
            let (all, fault, _) = read(text.as_bytes(), 4096);
            let Fault::Refused(status, _) = fault else { panic!("{text}") };
            assert_eq!((all.len(), status), (0, expected), "{text}");
        }
        assert_eq!(read(b"GET / HT", 4096).1, Fault::Gone);
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_on() {
        let head = b"POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
        let bytes = [&head[..], b"x"].concat();
        let (all, _, written) = read(&bytes, head.len());
        assert_eq!((all.len(), &*written), (1, &b"HTTP/1.1 100 Continue\r\n\r\n"[..]));
    }
}
