//! Requests to one server, all within one deadline.

use crate::base::cancel::CancelToken;
use crate::llm::http;
use crate::llm::secret::Secret;
use serde_json::Value;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Maximum number of parallel requests to a server.
const PARALLEL: usize = 8;

pub(super) struct Probe {
    root: String,
    bearer: Option<String>,
    deadline: Instant,
    cancel: CancelToken,
    /// Status and body of the server's error response to the model list request.
    refusal: OnceLock<(u16, String)>,
}

impl Probe {
    pub fn new(root: &str, key: Option<Secret>, deadline: Instant, cancel: &CancelToken) -> Self {
        let bearer = key.map(|key| format!("Bearer {}", key.expose()));
        Self { root: root.to_owned(), bearer, deadline, cancel: cancel.clone(), refusal: OnceLock::new() }
    }

    /// Status and body of the first error response.
    pub fn refusal(&self) -> Option<&(u16, String)> {
        self.refusal.get()
    }

    /// The JSON body of a response; `None` for an error, after the deadline, or for other content.
    pub fn get(&self, path: &str) -> Option<Value> {
        self.ask(path, None)
    }

    /// Posts each body and returns the responses in order. Requests are sent in order as well.
    pub fn post_all(&self, path: &str, bodies: &[String]) -> Vec<Option<Value>> {
        let mut answers = vec![None; bodies.len()];
        std::thread::scope(|scope| {
            let work = |first: usize| {
                let part = bodies.iter().enumerate().skip(first).step_by(PARALLEL);
                part.map(|(at, body)| (at, self.ask(path, Some(body)))).collect::<Vec<_>>()
            };
            let starts = 0..PARALLEL.min(bodies.len());
            let threads: Vec<_> = starts.map(|first| scope.spawn(move || work(first))).collect();
            for thread in threads {
                for (at, answer) in thread.join().unwrap_or_default() {
                    answers[at] = answer;
                }
            }
        });
        answers
    }

    fn ask(&self, path: &str, body: Option<&str>) -> Option<Value> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return None;
        }
        let url = format!("{}{path}", self.root);
        let bearer = self.bearer.as_deref();
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", *bearer)).collect();
        let reply = match body {
            None => http::get(&url, &headers, left, &self.cancel),
            Some(body) => http::post(&url, &headers, body.as_bytes(), left, &self.cancel),
        };
        let reply = reply.ok()?;
        if !reply.is_ok() {
            let text = http::body_text(&String::from_utf8_lossy(&reply.body)).unwrap_or_default();
            let _ = self.refusal.set((reply.status, text));
            return None;
        }
        reply.json()
    }
}

/// Percent-encodes a value for a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
