//! A scripted model server on loopback.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a scripted server does with a request line like `GET /props`, and its body.
type Script = dyn Fn(&str, &str) -> Answer + Send + Sync;

pub enum Answer {
    Json(Value),
    /// Status, content type, body.
    Raw(u16, &'static str, String),
    /// The beginning of an answer, and then silence until the client goes away.
    Stall(&'static str),
}

/// A server on a free port, gone with the value.
pub struct Server {
    pub root: String,
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub fn start(script: impl Fn(&str, &str) -> Answer + Send + Sync + 'static) -> Self {
        let script: Arc<Script> = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let thread = std::thread::spawn(move || {
            std::thread::scope(|scope| {
                for stream in listener.incoming().map_while(Result::ok) {
                    let (script, log) = (script.clone(), log.clone());
                    let mut first = [0];
                    if stream.peek(&mut first).is_ok() && first == [b'!'] {
                        break;
                    }
                    scope.spawn(move || serve(stream, &*script, &log));
                }
            });
        });
        Self { root: format!("http://{address}"), address, seen, thread: Some(thread) }
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let _ = stream.write_all(b"!");
        }
        let _ = self.thread.take().unwrap().join();
    }
}

fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() || line.is_empty() {
        return;
    }
    let request = line.rsplit_once(' ').map_or("", |(request, _)| request).to_owned();
    let (mut len, mut key) = (0, String::new());
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).is_err() || header.trim().is_empty() {
            break;
        }
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            len = value.trim().parse().unwrap();
        }
        if let Some(value) = lower.strip_prefix("authorization:") {
            key = format!(" [{}]", value.trim());
        }
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).unwrap();
    log.lock().unwrap().push(format!("{request}{key}"));
    let (status, kind, text) = match script(&request, &String::from_utf8_lossy(&body)) {
        Answer::Json(value) => (200, "application/json", value.to_string()),
        Answer::Raw(status, kind, text) => (status, kind, text),
        Answer::Stall(begin) => {
            let _ = stream.write_all(begin.as_bytes());
            // The client's end is the only thing that ends this.
            let _ = stream.read_to_end(&mut Vec::new());
            return;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(text.as_bytes());
}

pub fn not_found() -> Answer {
    Answer::Raw(404, "application/json", json!({"error": {"message": "not found"}}).to_string())
}
