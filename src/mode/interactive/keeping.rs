//! Keeps what is typed on disk: unsent text beside the session, and prompts in the history of all sessions.
//!
//! A thread writes, so that a slow disk delays no key. Unsent text is written at most once in [`PAUSE`] while
//! keys come, at once when it was sent or dropped, and at the end of the program, whatever ended it. The timer
//! runs only while something is to be written.

use super::app::App;
use super::card::Weight;
use super::composer::Composer;
use super::feed::Feed;
use super::keymap::AppAction;
use crate::runtime::prompt_history::{self, Earlier, Writer};
use crate::runtime::unsent::{self, Held, Keeper, Unsent};
use crate::runtime::{AgentMessage, ago};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time from a change until it is written.
const PAUSE: Duration = Duration::from_millis(500);

/// Time to wait for the thread at the end.
const END: Duration = Duration::from_secs(2);

/// Maximum number of tasks that wait for the thread.
const TASKS_MAX: usize = 64;

enum Task {
    /// Unsent text, and the file of the session that it belongs to.
    Keep(Option<PathBuf>, Unsent),
    TakeOver(Held),
    /// A prompt and the folder it was typed in.
    Remember(String, String),
}

#[derive(Default)]
pub struct Keeping {
    tasks: Option<Sender<Task>>,
    /// The state that was handed over last.
    kept: Mark,
    due: Option<Instant>,
}

/// Tells states of the composer apart: changes of the editor, and numbers of queued messages.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Mark(u64, [usize; 3]);

impl Mark {
    fn of(composer: &Composer) -> Self {
        let (steering, follow_up) = &composer.queues;
        Self(composer.editor.changes(), [steering.len(), follow_up.len(), composer.held.len()])
    }
}

impl App {
    /// Starts the thread, and gives the editor the prompts of earlier sessions.
    pub fn start_keeping(&mut self) {
        let (tasks, waiting) = bounded(TASKS_MAX);
        self.keeping.tasks = Some(tasks);
        let path = prompt_history::place(self.dirs.agent());
        if self.remembers() {
            let earlier = Earlier::new(path.clone(), &self.config.places.cwd);
            self.composer.editor.add_earlier(Box::new(earlier));
        }
        let feed = self.threads.feed.clone();
        self.begin_thread("keeping", move || keep(&waiting, path, &feed));
    }

    /// True if prompts are kept for later sessions.
    fn remembers(&self) -> bool {
        self.control.config().settings.flag("promptHistory") && self.control.log().path().is_some()
    }

    /// Adds a line to the history of prompts.
    pub fn remember(&mut self, text: &str) {
        self.composer.editor.remember(text);
        if self.remembers() {
            let text = self.control.config().services.vault().hide(text).into_owned();
            let cwd = self.config.places.cwd.to_string_lossy().into_owned();
            self.hand_over(Task::Remember(cwd, text));
        }
    }

    /// False if the thread has too much to do.
    fn hand_over(&self, task: Task) -> bool {
        self.keeping.tasks.as_ref().is_none_or(|tasks| tasks.try_send(task).is_ok())
    }

    /// Notes changes of the unsent text.
    pub fn note_unsent(&mut self, now: Instant) {
        if Mark::of(&self.composer) == self.keeping.kept {
            return;
        }
        let due = if self.composer.has_unsent() { now + PAUSE } else { now };
        self.keeping.due = Some(self.keeping.due.map_or(due, |at| at.min(due)));
    }

    pub fn keeps_in(&self, now: Instant) -> Option<Duration> {
        self.keeping.due.map(|due| due.saturating_duration_since(now))
    }

    /// Hands the unsent text over if it is due.
    pub fn keep_due(&mut self, now: Instant) {
        if self.keeping.due.is_none_or(|due| due > now) {
            return;
        }
        self.keeping.kept = Mark::of(&self.composer);
        let (path, unsent) = self.unsent();
        self.keeping.due = match self.hand_over(Task::Keep(path, unsent)) {
            true => None,
            false => Some(now + PAUSE),
        };
    }

    fn unsent(&self) -> (Option<PathBuf>, Unsent) {
        let path = self.control.log().path().map(PathBuf::from);
        let config = self.control.config();
        let hide = |text: &str| config.services.vault().hide(text).into_owned();
        let (steering, follow_up) = &self.composer.queues;
        let held = self.composer.held.iter().map(|(text, _)| text);
        let unsent = Unsent {
            cwd: self.config.places.cwd.to_string_lossy().into_owned(),
            steering: steering.iter().map(|text| hide(text)).collect(),
            follow_up: follow_up.iter().chain(held).map(|text| hide(text)).collect(),
            editor: hide(&self.composer.editor.expanded()),
            ..Unsent::default()
        };
        (path, unsent)
    }

    /// Hands the unsent text over at the end of the program, and ends the thread.
    pub fn end_keeping(&mut self) {
        let (path, unsent) = self.unsent();
        if let Some(tasks) = self.keeping.tasks.take() {
            let _ = tasks.send_timeout(Task::Keep(path, unsent), END);
        }
    }

    /// Puts text that was not sent into the editor: that of the session, or else, at the start, of this folder.
    pub fn restore_unsent(&mut self, is_start: bool) {
        if self.keeping.tasks.is_none() || !self.composer.editor.is_empty() {
            return;
        }
        let (path, is_new) = {
            let log = self.control.log();
            (log.path().map(PathBuf::from), !log.is_saved())
        };
        let own = path.as_deref().and_then(unsent::take_of_session);
        let other = || self.store.take_unsent(&self.config.places.cwd, is_new);
        let Some((held, unsent)) = own.or_else(|| other().filter(|_| is_start && path.is_some())) else {
            return;
        };
        self.hand_over(Task::TakeOver(held));
        let text = unsent.text();
        // Its process may have been killed just after the text was sent.
        let messages = self.control.messages();
        let last = messages.iter().rev().find(|message| matches!(message, AgentMessage::User(_)));
        if last.is_some_and(|last| last.text().trim() == text) {
            return;
        }
        self.composer.editor.set_text(&text);
        let key = self.config.keymap.shown(AppAction::CLEAR);
        let key = key.map_or_else(String::new, |key| format!(" · {key} drops it"));
        self.note(&format!("Not sent yet, typed {}{key}", ago(&unsent.timestamp)));
    }
}

/// Carries out tasks until no more can come.
fn keep(tasks: &Receiver<Task>, history: PathBuf, feed: &Arc<Feed>) {
    let mut keeper = Keeper::default();
    let mut writer = Writer::new(history.clone());
    let mut has_failed = [false; 2];
    let mut warn = |which: usize, what: &str, problem: &dyn Display| {
        if let Some(has_failed) = has_failed.get_mut(which)
            && !std::mem::replace(has_failed, true)
        {
            feed.say(Weight::Warning, format!("Warning: {what}: {problem}"));
        }
    };
    for task in tasks {
        match task {
            Task::TakeOver(held) => keeper.take_over(held),
            Task::Keep(path, unsent) => {
                if let Err(error) = keeper.keep(path.as_deref(), &unsent) {
                    warn(0, "What is typed here would not survive a crash", &error);
                }
            }
            Task::Remember(cwd, text) => {
                if let Err(error) = writer.add(&cwd, &text) {
                    let what = format!("Prompts are not kept for later sessions: {}", history.display());
                    warn(1, &what, &error);
                }
            }
        }
    }
}
