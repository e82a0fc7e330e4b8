//! A screen for tests: the real state over a session in memory, without a terminal.
//!
//! Jobs for the session's thread and posts of threads are handled when the test calls [`Bench::run_all`]. Of
//! the environment only keys of providers are visible.

use super::app::{App, Threads};
use super::config::{Places, UiConfig};
use super::event_loop::Client;
use super::feed::Feed;
use super::keys;
use super::screen::Frame;
use super::transcript::Printed;
use super::work::Job;
use crate::runtime::session::Session;
use crate::runtime::setup::Setup;
use crate::runtime::{CancelToken, Dirs, Store, TempDir};
use crate::session::SyncMode;
use crate::tui::key::{Input, Key};
use crate::tui::line::Line;
use crate::tui::screen::Size;
use crossbeam_channel::{Receiver, bounded};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The usable models; the second one supports thinking.
const MODELS: &str = r#"{"providers": {"mock": {"baseUrl": "http://127.0.0.1:9", "api": "openai-completions",
  "apiKey": "k", "models": [
    {"id": "m1", "name": "Mock One", "contextWindow": 128000, "maxTokens": 4096},
    {"id": "m2", "name": "Mock Two", "reasoning": true, "contextWindow": 200000, "maxTokens": 4096,
     "cost": {"input": 3, "output": 15, "cacheRead": 0, "cacheWrite": 0}},
    {"id": "m3", "name": "Mock Three", "contextWindow": 32000, "maxTokens": 4096}]}}}"#;

pub struct Bench {
    pub app: App,
    pub session: Session,
    /// The working folder, the home and the agent folder.
    pub dir: TempDir,
    waiting: Receiver<Job>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl Bench {
    pub fn new() -> Self {
        Self::default()
    }

    /// A bench with these files, by name, in the folder.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let dir = TempDir::create();
        dir.write("models.json", MODELS);
        for (name, text) in files {
            let path = dir.write(name, text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let cancel = CancelToken::new();
        let setup = Setup::new(dir.path(), dir.path(), "mock/m1").builtin(&["read", "bash"]);
        let (session, warnings) = setup.start(&cancel).unwrap();
        assert_eq!(warnings, [] as [String; 0]);
        let control = session.control().clone();
        let (jobs, waiting) = bounded(64);
        let size = Size { columns: 80, rows: 40 };
        let places =
            Places { cwd: dir.path().to_owned(), home: dir.path().to_owned(), agent: dir.path().to_owned() };
        let config = control.config();
        let (mut config, _) = UiConfig::new(places, &config.settings, &config.themes, size);
        config.is_plain = false;
        let threads = Threads::new(jobs, Arc::new(Feed::new()), cancel);
        let store = Store::new(dir.path(), None, SyncMode::Never);
        let app = App::new(control, Dirs::at(dir.path()), store, threads, config);
        Self { app, session, dir, waiting }
    }

    /// Runs the queued jobs, and handles posted news.
    pub fn run_all(&mut self) {
        loop {
            while let Ok(job) = self.waiting.try_recv() {
                job(&mut self.session, &self.app.threads.feed.clone());
            }
            let news = self.app.threads.feed.take();
            if news.is_empty() {
                return;
            }
            for news in news {
                self.app.take(news, Instant::now());
            }
        }
    }

    /// Waits for a thread to post news, and handles it.
    #[track_caller]
    pub fn wait(&mut self) {
        let woken = self.app.threads.feed.woken().clone();
        woken.recv_timeout(Duration::from_secs(5)).unwrap();
        self.run_all();
    }

    /// Presses keys, named as in `keybindings.json` with spaces between.
    #[track_caller]
    pub fn press(&mut self, keys: &str) {
        for name in keys.split_whitespace() {
            let key = Key::parse(name).unwrap_or_else(|| panic!("{name} is no key"));
            self.app.input(Input::Key(key), Instant::now());
        }
        self.run_all();
    }

    pub fn paste(&mut self, text: &str) {
        self.app.input(Input::Paste(text.to_owned()), Instant::now());
    }

    pub fn type_text(&mut self, text: &str) {
        for letter in text.chars() {
            let key = Key::plain(crate::tui::key::Code::Char(letter));
            self.app.input(Input::Key(key), Instant::now());
        }
        self.run_all();
    }

    /// Types a line, such as a command, and sends it.
    pub fn send(&mut self, line: &str) {
        keys::submit(&mut self.app, line.to_owned(), crate::runtime::control::Streaming::Steer);
        self.run_all();
    }

    /// The frame in `columns` columns; checks that no line is wider.
    #[track_caller]
    pub fn screen(&mut self, columns: usize) -> String {
        self.app.config.size.columns = columns;
        let rows = self.app.config.size.rows;
        let lines = self.app.live(Instant::now());
        for line in &lines {
            assert!(line.width() <= columns, "{:?}", line.text());
        }
        if self.app.has_dialog() {
            assert!(lines.len() <= rows, "{} rows", lines.len());
        }
        let texts: Vec<&str> = lines.iter().map(|line| line.text().trim_end()).collect();
        texts.join("\n")
    }

    /// Lines printed since the last call, and the notice above the editor.
    pub fn printed(&mut self) -> String {
        let printed = self.app.printed(Instant::now()).into_iter();
        let lines: Vec<Line> = printed
            .flat_map(|printed| match printed {
                Printed::Lines(lines) => lines,
                Printed::Image(raw) => raw.instead,
            })
            .collect();
        let mut texts: Vec<&str> = lines.iter().map(|line| line.text().trim()).collect();
        let note = std::mem::take(&mut self.app.status.note);
        texts.push(&note);
        texts.join("\n").trim().to_owned()
    }

    /// The user's settings in the file.
    pub fn settings(&self) -> Value {
        match std::fs::read_to_string(self.dir.path().join("settings.json")) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => Value::Object(serde_json::Map::new()),
        }
    }
}
