//! The log of `PI_DEBUG_HTTP=FILE`: headers and bodies of requests and answers are appended to the file,
//! without secrets.

use super::secrets::{HIDDEN, Secrets, hide_query};
use super::{Request, failure};
use crate::llm::secret::Hider;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use ureq::http::Uri;

/// The environment variable that names the log file.
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
    /// True if bodies are not logged.
    private: bool,
    /// Hides secrets in the body of the answer.
    hider: Hider,
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
            hider: secrets.hider(),
        };
        let query = uri.query().map(|query| format!("?{}", hide_query(query)));
        let (url, query) = (failure::shown(uri), query.unwrap_or_default());
        let title = format!("request: {} {url}{query}", request.method);
        let body = match request.private {
            true => HIDDEN.into(),
            false => match request.long {
                None => String::from_utf8_lossy(request.body),
                Some(long) => long.text().into(),
            },
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

    /// Logs a piece of the answer's body.
    pub(super) fn body(&mut self, piece: &[u8]) {
        if self.private {
            return;
        }
        let shown = self.hider.push(piece);
        self.append(&shown);
    }

    fn write(&self, title: &str, headers: &[(String, String)], body: &str) {
        let milliseconds = self.begun.elapsed().as_millis();
        let mut text = format!("\n--- {} {title} ({milliseconds} ms)\n", self.number);
        for (name, value) in headers {
            let value = match self.secrets.hides_header(name) {
                true => HIDDEN,
                false => value,
            };
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
        text.push_str(body);
        self.append(self.secrets.hide(&text).as_bytes());
    }

    /// Ignores write errors: a full disk must not end the conversation.
    fn append(&self, text: &[u8]) {
        let _ = (&*self.file).write_all(text);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let rest = self.hider.end();
        self.append(&rest);
    }
}
