//! A folder for one test, removed with it, and messages to fill sessions with.

use crate::agent::message::AgentMessage;
use crate::llm::message::{AssistantMessage, Block, Content, StopReason, UserMessage};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("pi-session-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The paths of all files below, sorted, relative.
    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else if entry.file_type().unwrap().is_file() {
                    let path = path.strip_prefix(&self.0).unwrap();
                    files.push(path.to_str().unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn user(text: &str) -> AgentMessage {
    UserMessage { content: Content::Text(text.into()), timestamp: 1, ..UserMessage::default() }.into()
}

pub fn answer(text: &str) -> AgentMessage {
    AssistantMessage {
        content: vec![Block::text(text)],
        api: "faux".into(),
        provider: "faux".into(),
        model: "echo".into(),
        stop_reason: StopReason::Stop,
        timestamp: 2,
        ..AssistantMessage::default()
    }
    .into()
}
