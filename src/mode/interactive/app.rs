//! What the interactive mode is made of, and what every command of it needs: to say something, to have the
//! session's thread do something, to begin a thread.
//!
//! One thread owns it. It never waits for the session: what takes time is a [`Job`] for the session's thread, or
//! a thread of its own that puts an [`Effect`] into the [`Feed`] when it is done.

use super::card::Weight;
use super::composer::Composer;
use super::config::{UiConfig, is_dumb};
use super::dialog::{Dialog, Dialogs};
use super::effect::Effect;
use super::feed::Feed;
use super::status::Status;
use super::view::View;
use super::work::{self, Job};
use crate::runtime::control::{Begin, Control, Streaming, user_message};
use crate::runtime::session::Session;
use crate::runtime::{AgentMessage, Block, CancelToken, Dirs, Store};
use crate::tui::line::Line;
use crate::tui::theme::Role;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;

/// Prompts of a conversation that can be called back.
const PROMPTS: usize = 100;

/// Rows that are printed of a conversation when the fullscreen mode is left.
const EXIT_ROWS: usize = 2000;

/// Asks the terminal for the size of a cell.
const ASK_CELL: &str = "\x1b[16t";

pub struct App {
    pub control: Control,
    pub dirs: Dirs,
    /// Where sessions are stored.
    pub store: Store,
    pub threads: Threads,
    pub config: UiConfig,
    pub view: View,
    pub composer: Composer,
    pub dialogs: Dialogs,
    pub status: Status,
    pub requests: Requests,
}

/// What works for the screen, and how it is reached.
pub struct Threads {
    pub jobs: Sender<Job>,
    pub feed: Arc<Feed>,
    /// Cancelled when the program is to end.
    pub cancel: CancelToken,
    /// Held by every thread that does something for the app.
    alive: (Sender<()>, Receiver<()>),
}

impl Threads {
    pub fn new(jobs: Sender<Job>, feed: Arc<Feed>, cancel: CancelToken) -> Self {
        Self { jobs, feed, cancel, alive: bounded(0) }
    }
}

/// What the loop is asked to do with the terminal.
#[derive(Default)]
pub struct Requests {
    /// The program is to end.
    pub ends: bool,
    pub suspends: bool,
    /// This command edits the prompt, with the terminal to itself.
    pub editor: Option<String>,
    /// Everything on screen is to be drawn again.
    pub redraws: bool,
    /// Sequences that are no part of a frame.
    pub sequences: String,
}

impl App {
    pub fn new(control: Control, dirs: Dirs, store: Store, threads: Threads, config: UiConfig) -> Self {
        // How large a cell is matters to images only.
        let sequences = config.pictures().map_or("", |_| ASK_CELL).to_owned();
        Self {
            view: View::new(control.clone()),
            composer: Composer::default(),
            dialogs: Dialogs::default(),
            status: Status::new(&control, &config, &threads.feed),
            requests: Requests { sequences, ..Requests::default() },
            control,
            dirs,
            store,
            threads,
            config,
        }
    }

    /// Says something in the conversation's place.
    pub fn say(&mut self, weight: Weight, text: &str) {
        self.view.say(weight, text, &self.config.look());
    }

    pub fn info(&mut self, text: &str) {
        self.say(Weight::Info, text);
    }

    pub fn warn(&mut self, text: &str) {
        self.say(Weight::Warning, text);
    }

    pub fn error(&mut self, text: &str) {
        self.say(Weight::Error, text);
    }

    pub fn print(&mut self, lines: Vec<Line>) {
        self.view.print(lines);
    }

    /// Has the session's thread do something.
    pub fn run(&mut self, job: impl FnOnce(&mut Session, &Arc<Feed>) + Send + 'static) {
        if self.threads.jobs.try_send(Box::new(job)).is_err() {
            self.error("The session has too much to do; try again");
        }
    }

    /// Has a thread of its own do something. The end of the program waits for it, if not for ever.
    pub fn begin_thread(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        let alive = self.threads.alive.0.clone();
        let work = move || {
            work();
            drop(alive);
        };
        if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(work) {
            self.error(&format!("Cannot start a thread: {error}"));
        }
    }

    /// Has a thread of its own find out what is to be done.
    pub fn find_out(&mut self, name: &str, work: impl FnOnce() -> Effect + Send + 'static) {
        let feed = self.threads.feed.clone();
        self.begin_thread(name, move || feed.effect(work()));
    }

    /// Disconnected when the app is gone and the last of its threads has ended.
    pub fn ended(&self) -> Receiver<()> {
        self.threads.alive.1.clone()
    }

    pub fn open(&mut self, dialog: impl Dialog + 'static) {
        self.composer.close_completion();
        self.dialogs.open(dialog);
    }

    /// Sends what was typed: a prompt, or a message for the run under way.
    pub fn prompt(&mut self, text: String, images: Vec<Block>, streaming: Streaming) {
        let (expanded, problem) = self.control.expand(text.clone());
        if let Some(problem) = problem {
            self.warn(&problem.to_string());
        }
        let message = user_message(expanded, images);
        let feed = self.threads.feed.clone();
        let begun = self.control.begin(Some(streaming), || message.clone(), &mut |event| feed.event(event));
        match begun {
            Ok(Begin::Run(ticket)) => {
                if self.threads.jobs.try_send(work::ask(ticket, message, text)).is_err() {
                    self.error("The session has too much to do; try again");
                }
            }
            Ok(Begin::Queued) => {}
            // A compaction is under way.
            Err(_) => self.composer.held.push((text, streaming)),
        }
    }

    /// Sends prompts that were held back during a compaction.
    pub fn send_held(&mut self) {
        for (text, streaming) in std::mem::take(&mut self.composer.held) {
            self.prompt(text, Vec::new(), streaming);
        }
    }

    /// Takes queued messages and held prompts back into the editor. Gives their number.
    pub fn take_back(&mut self) -> usize {
        let feed = self.threads.feed.clone();
        let (steering, follow_up) = self.control.queue().clear(&mut |event| feed.event(event));
        self.composer.take_back(steering.into_iter().chain(follow_up))
    }

    /// Looks at the session again for what the footer shows.
    pub fn refresh(&mut self) {
        self.status.footer.refresh(&self.control);
    }

    /// Writes a setting of the user.
    pub fn set(&mut self, path: &str, value: serde_json::Value) {
        let written = self.control.preferences().remember(path, value);
        self.warn_of(written);
    }

    pub fn warn_of(&mut self, written: Result<(), String>) {
        if let Err(reason) = written {
            self.warn(&format!("Warning: {reason}"));
        }
    }

    /// Reads settings, keys and theme again.
    pub fn read_settings(&mut self) {
        let config = self.control.config();
        let before = self.config.options.wants_fullscreen;
        self.config.describer = self.control.tools().describer();
        for problem in self.config.read(&config.settings, &config.themes) {
            self.warn(&format!("Warning: {problem}"));
        }
        match (before, self.config.options.wants_fullscreen) {
            (false, true) => self.config.is_fullscreen = true,
            (true, false) => self.leave_fullscreen(false),
            _ => {}
        }
        self.requests.redraws = true;
    }

    /// Asks the terminal what it shows behind text, where the theme depends on it.
    pub fn ask_for_backdrop(&mut self) {
        if self.config.themes.follows() && !is_dumb() {
            self.requests.sequences.push_str("\x1b]11;?\x07\x1b[?996n");
        }
    }

    /// Goes from fullscreen mode to the usual screen, and prints the end of the conversation there if settings ask for it.
    pub fn leave_fullscreen(&mut self, is_over: bool) {
        if !std::mem::take(&mut self.config.is_fullscreen) {
            return;
        }
        self.view.drop_stored();
        let config = self.control.config();
        let output = config.settings.get("fullscreenExitOutput");
        if !is_over || output.and_then(serde_json::Value::as_str) != Some("resume-hint") {
            self.view.print_end(None, EXIT_ROWS, !is_over, &self.config.look());
        }
    }

    /// Another conversation was put in place.
    pub fn begin_conversation(&mut self) {
        self.status.footer.begin(&self.control, &self.threads.feed);
        self.config.places.cwd = self.control.snapshot().cwd;
        self.view.clear();
        let rule = self.config.look().rule(self.config.look().style(Role::BorderMuted));
        self.print(vec![Line::new(), rule]);
        self.show_conversation();
    }

    /// Shows the end of a conversation that has just been put in place.
    pub fn show_conversation(&mut self) {
        self.composer.queues = (Vec::new(), Vec::new());
        let messages = self.control.messages();
        let first = self.view.begin();
        let rows = self.config.size.rows.saturating_mul(3).max(60);
        self.view.print_end(Some(first), rows, true, &self.config.look());
        let prompts = messages.iter().rev();
        let prompts = prompts.filter(|message| matches!(message, AgentMessage::User(_)));
        let prompts: Vec<String> = prompts.take(PROMPTS).map(AgentMessage::text).collect();
        prompts.iter().rev().for_each(|prompt| self.composer.editor.remember(prompt));
        self.refresh();
    }
}

#[cfg(test)]
impl App {
    pub fn has_dialog(&self) -> bool {
        !self.dialogs.is_empty()
    }
}
