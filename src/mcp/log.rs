//! `mcp.log` of the agent folder: what servers log, and what they write to stderr.
//!
//! Several programs may write to it, so a message is one append. Past 5 MB the file moves to `mcp.log.1`. A log that
//! cannot be written is no reason to stop.

use super::result::boundary;
use crate::llm::secret::Vault;
use crate::runtime::{now_iso, plain_text};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const BYTES_MAX: u64 = 5 << 20;
/// Most bytes of one message.
const MESSAGE_MAX: usize = 64 << 10;

pub struct Log {
    path: PathBuf,
    vault: Vault,
    /// One writer at a time: moving the file is two steps.
    turn: Mutex<()>,
}

impl Log {
    /// `vault` knows what must not be written.
    pub fn new(agent: &Path, vault: Vault) -> Self {
        Self { path: agent.join("mcp.log"), vault, turn: Mutex::default() }
    }

    /// Writes the parameters of `notifications/message`.
    pub fn message(&self, server: &str, params: &Value) {
        let level = params.get("level").and_then(Value::as_str).unwrap_or("info");
        let logger = params.get("logger").and_then(Value::as_str).filter(|logger| !logger.is_empty());
        let logger = logger.map(|logger| format!(" {logger}:")).unwrap_or_default();
        let text = match params.get("data") {
            Some(Value::String(text)) => text.clone(),
            Some(data) => data.to_string(),
            None => params.to_string(),
        };
        self.write(server, &format!("{level}{logger} {text}"));
    }

    /// Writes a line of stderr.
    pub fn stderr(&self, server: &str, line: &[u8]) {
        self.write(server, &format!("stderr {}", String::from_utf8_lossy(line)));
    }

    fn write(&self, server: &str, text: &str) {
        let text = plain_text(text.as_bytes());
        let text = text.get(..boundary(&text, MESSAGE_MAX)).unwrap_or_default();
        let text = self.vault.hide(text).replace("\r\n", "\n").replace('\n', "\n    ");
        let line = format!("{} [{server}] {text}\n", now_iso());
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if fs::metadata(&self.path).is_ok_and(|about| about.len() > BYTES_MAX) {
            let _ = fs::rename(&self.path, self.path.with_extension("log.1"));
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

impl Log {
    #[cfg(test)]
    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::base::testing::TempDir;

    #[test]
    fn messages_are_lines_without_secrets_and_control_sequences() {
        let folder = TempDir::create();
        let vault = Vault::default();
        vault.learn("KEY", "sk-0123456789abcdef");
        let log = Log::new(folder.path(), vault);
        log.message("one", &json!({"level": "error", "logger": "db", "data": "a\nb"}));
        log.message("one", &json!({"data": {"x": 1}}));
        log.stderr("two", b"key sk-0123456789abcdef \x1b[31mred");
        let text = log.text();
        let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(lines[0], "[one] error db: a");
        assert_eq!(lines[1].trim(), "b");
        assert_eq!(lines[2], "[one] info {\"x\":1}");
        assert!(!text.contains("sk-0123") && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn a_large_log_moves_away() {
        let folder = TempDir::create();
        let path = folder.write("mcp.log", "x".repeat(usize::try_from(BYTES_MAX).unwrap() + 1));
        Log::new(folder.path(), Vault::default()).stderr("a", b"b");
        assert!(fs::metadata(&path).unwrap().len() < 100);
        assert!(folder.path().join("mcp.log.1").exists());
    }
}
