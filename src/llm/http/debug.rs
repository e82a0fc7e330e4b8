//! `PI_DEBUG_HTTP=FILE`: requests and answers, headers and bodies, appended to a file as they go over
//! the wire. Secrets are not in it.

use super::secrets::{HIDDEN, Secrets, hide_query, is_secret_header};
use super::{Request, failure};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use ureq::http::Uri;

/// The variable that names the file.
pub(super) const FILE: &str = "PI_DEBUG_HTTP";

pub(super) struct Log {
    file: Arc<File>,
    exchanges: AtomicU64,
}

/// One request and its answer.
pub(super) struct Exchange {
    file: Arc<File>,
    number: u64,
    begun: Instant,
    secrets: Secrets,
    /// No body is shown.
    private: bool,
    /// The end of the body so far, which may be the beginning of a secret.
    held: Vec<u8>,
}

impl Log {
    pub(super) fn open(path: &str) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = options.open(path);
        Ok(Self {
            file: Arc::new(file.map_err(|error| format!("{FILE}: cannot open {path}: {error}"))?),
            exchanges: AtomicU64::new(1),
        })
    }

    pub(super) fn begin(&self, request: &Request<'_>, uri: &Uri, secrets: &Secrets) -> Exchange {
        let exchange = Exchange {
            file: self.file.clone(),
            number: self.exchanges.fetch_add(1, Ordering::Relaxed),
            begun: Instant::now(),
            secrets: secrets.clone(),
            private: request.private,
            held: Vec::new(),
        };
        let query = uri.query().map(|query| format!("?{}", hide_query(query)));
        let (url, query) = (failure::shown(uri), query.unwrap_or_default());
        let title = format!("request: {} {url}{query}", request.method);
        let body = match request.private {
            true => HIDDEN.into(),
            false => String::from_utf8_lossy(request.body),
        };
        exchange.write(&title, &request.headers, &body);
        exchange
    }
}

impl Exchange {
    pub(super) fn answered(&self, status: u16, headers: &[(String, String)]) {
        self.write(&format!("answer: {status}"), headers, "");
    }

    pub(super) fn failed(&self, problem: &str) {
        self.write(&format!("failed: {problem}"), &[], "");
    }

    /// Takes a piece of the answer's body; an empty one at its end.
    pub(super) fn body(&mut self, piece: &[u8]) {
        if self.private {
            return;
        }
        self.held.extend_from_slice(piece);
        let mut whole = self.held.len();
        if !piece.is_empty()
            && let Err(error) = std::str::from_utf8(&self.held)
            && error.error_len().is_none()
        {
            whole = error.valid_up_to(); // the last character is not complete
        }
        let text = String::from_utf8_lossy(&self.held[..whole]);
        let text = self.secrets.hide(&text);
        let keep = match piece.is_empty() {
            true => 0,
            false => self.secrets.longest().saturating_sub(1),
        };
        let mut cut = text.len().saturating_sub(keep);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        self.append(&text[..cut]);
        self.held = [text[cut..].as_bytes(), &self.held[whole..]].concat();
    }

    fn write(&self, title: &str, headers: &[(String, String)], body: &str) {
        let milliseconds = self.begun.elapsed().as_millis();
        let mut text = format!("\n--- {} {title} ({milliseconds} ms)\n", self.number);
        for (name, value) in headers {
            let value = match is_secret_header(name) {
                true => HIDDEN,
                false => value,
            };
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
        text.push_str(body);
        self.append(&self.secrets.hide(&text));
    }

    /// A full disk must not end the conversation.
    fn append(&self, text: &str) {
        let _ = (&*self.file).write_all(text.as_bytes());
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.body(&[]);
    }
}
