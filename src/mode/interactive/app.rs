//! The state of the screen, and what commands, dialogs and events do to it.
//!
//! One thread owns it. It never waits for the session: what takes time is a [`Job`] for the session's thread, or
//! a thread of its own that puts a task into the [`Feed`] when it is done.

use super::activity::Activity;
use super::card::{self, Weight};
use super::complete::Completion;
use super::conversation::{Conversation, Item};
use super::dialog::{Dialog, Step};
use super::feed::{Feed, News};
use super::files::Files;
use super::footer::Footer;
use super::scroll::Scroll;
use super::stage::{Stage, is_dumb};
use super::title::Title;
use super::transcript::Transcript;
use super::work::{self, Job};
use crate::mode::interactive::keymap::AppAction;
use crate::runtime::control::{Begin, Control, Streaming, user_message};
use crate::runtime::{AgentMessage, Block, CancelToken, Dirs, Store, preview_edit};
use crate::tui::editor::Editor;
use crate::tui::key::Key;
use crate::tui::line::Line;
use crate::tui::terminal::Modes;
use crate::tui::theme::Role;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::time::Instant;

/// Prompts of a conversation that can be called back.
const PROMPTS: usize = 100;

/// Rows that are printed of a conversation when the fullscreen mode is left.
const EXIT_ROWS: usize = 2000;

/// Asks the terminal for the size of a cell.
const ASK_CELL: &str = "\x1b[16t";

/// Done while another program has the terminal.
pub type Lend = Box<dyn FnOnce(&mut App)>;

pub struct App {
    pub control: Control,
    pub jobs: Sender<Job>,
    pub feed: Arc<Feed>,
    pub dirs: Dirs,
    /// Where sessions are stored.
    pub store: Store,
    /// Cancelled when the program is to end.
    pub cancel: CancelToken,
    pub stage: Stage,
    pub editor: Editor,
    pub completion: Completion,
    pub files: Files,
    pub transcript: Transcript,
    /// All of it, also what has scrolled away.
    pub conversation: Conversation,
    /// The window on it, in fullscreen mode.
    pub scroll: Scroll,
    pub footer: Footer,
    pub activity: Activity,
    pub title: Title,
    /// What waits to be said to the model: steering, follow-up.
    pub queues: (Vec<String>, Vec<String>),
    /// Prompts that came during a compaction; they are sent behind it.
    pub held: Vec<(String, Streaming)>,
    dialogs: Vec<Box<dyn Dialog>>,
    /// Held by every thread that does something for the app.
    threads: (Sender<()>, Receiver<()>),
    pub last_clear: Option<Instant>,
    pub last_escape: Option<Instant>,
    /// The program is to end.
    pub is_over: bool,
    /// The window is the one that is typed into.
    pub is_focused: bool,
    /// The terminal is to be given to this program for a while.
    pub lends: Option<Lend>,
    /// Suspend the program.
    pub suspends: bool,
    /// The user knows that a subscription may cost extra.
    pub told_extra_usage: bool,
    /// Everything on screen is to be drawn again.
    pub redraws: bool,
    /// Sequences for the terminal that are no part of a frame.
    pub sequences: String,
}

pub struct Parts {
    pub control: Control,
    pub jobs: Sender<Job>,
    pub feed: Arc<Feed>,
    pub dirs: Dirs,
    pub store: Store,
    pub cancel: CancelToken,
    pub stage: Stage,
}

impl App {
    pub fn new(parts: Parts) -> Self {
        // How large a cell is matters to images only.
        let sequences = parts.stage.pictures().map_or("", |_| ASK_CELL).to_owned();
        let footer = Footer::new(&parts.control, &parts.stage, &parts.feed);
        Self {
            control: parts.control,
            jobs: parts.jobs,
            feed: parts.feed,
            dirs: parts.dirs,
            store: parts.store,
            cancel: parts.cancel,
            stage: parts.stage,
            editor: Editor::new(),
            completion: Completion::default(),
            files: Files::default(),
            transcript: Transcript::default(),
            conversation: Conversation::default(),
            scroll: Scroll::default(),
            footer,
            activity: Activity::default(),
            title: Title::default(),
            queues: (Vec::new(), Vec::new()),
            held: Vec::new(),
            dialogs: Vec::new(),
            threads: bounded(0),
            last_clear: None,
            last_escape: None,
            is_over: false,
            is_focused: true,
            lends: None,
            suspends: false,
            redraws: false,
            told_extra_usage: false,
            sequences,
        }
    }

    /// Says something in the conversation's place.
    pub fn say(&mut self, weight: Weight, text: &str) {
        self.conversation.follow(&self.control);
        self.conversation.push(Item::Said(weight, text.into()));
        self.transcript.say(weight, text, &self.stage.look());
    }

    pub fn print(&mut self, lines: Vec<Line>) {
        self.conversation.follow(&self.control);
        self.conversation.push(Item::Printed(lines.as_slice().into()));
        self.transcript.add(lines);
    }

    /// Has the session's thread do something.
    pub fn run(
        &mut self,
        job: impl FnOnce(&mut crate::runtime::session::Session, &Arc<Feed>) + Send + 'static,
    ) {
        if self.jobs.try_send(Box::new(job)).is_err() {
            self.say(Weight::Error, "The session has too much to do; try again");
        }
    }

    /// Does something on a thread of its own. The end of the program waits for it, if not for ever.
    pub fn begin_thread(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        let alive = self.threads.0.clone();
        let work = move || {
            work();
            drop(alive);
        };
        if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(work) {
            self.say(Weight::Error, &format!("Cannot start a thread: {error}"));
        }
    }

    /// Disconnected when the app is gone and the last of its threads has ended.
    pub fn threads(&self) -> Receiver<()> {
        self.threads.1.clone()
    }

    /// Does something that takes a while on a thread of its own, and then something here.
    pub fn aside<T: Send + 'static>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut Self, T) + Send + 'static,
    ) {
        let feed = self.feed.clone();
        self.begin_thread(name, move || {
            let done = work();
            feed.task(move |app| then(app, done));
        });
    }

    pub fn open(&mut self, dialog: impl Dialog + 'static) {
        self.completion.close();
        self.dialogs.push(Box::new(dialog));
    }

    pub fn has_dialog(&self) -> bool {
        !self.dialogs.is_empty()
    }

    /// The uppermost dialog that is one of these.
    pub fn dialog<T: 'static>(&mut self) -> Option<&mut T> {
        let mut dialogs = self.dialogs.iter_mut().rev();
        dialogs.find_map(|dialog| dialog.as_any().downcast_mut())
    }

    /// Does something with the uppermost dialog that is one of these.
    pub fn with_dialog<T: 'static>(&mut self, act: impl FnOnce(&mut T, &mut Self)) {
        let mut dialogs = self.dialogs.iter_mut();
        let Some(at) = dialogs.rposition(|dialog| dialog.as_any().is::<T>()) else {
            return;
        };
        let mut dialog = self.dialogs.remove(at);
        if let Some(found) = dialog.as_any().downcast_mut() {
            act(found, self);
        }
        self.dialogs.insert(at.min(self.dialogs.len()), dialog);
    }

    /// The dialog on top and what everything is drawn with.
    pub fn dialog_and_stage(&mut self) -> (Option<&mut Box<dyn Dialog>>, &Stage) {
        (self.dialogs.last_mut(), &self.stage)
    }

    /// Gives a key to the dialog on top.
    pub fn dialog_key(&mut self, key: &Key) {
        let Some(mut dialog) = self.dialogs.pop() else {
            return;
        };
        let below = self.dialogs.len();
        if dialog.key(key, self) == Step::Stay {
            // What it opened is on top of it.
            self.dialogs.insert(below.min(self.dialogs.len()), dialog);
        }
    }

    pub fn dialog_paste(&mut self, text: &str) {
        if let Some(mut dialog) = self.dialogs.pop() {
            let below = self.dialogs.len();
            dialog.paste(text, self);
            self.dialogs.insert(below.min(self.dialogs.len()), dialog);
        }
    }

    /// Takes away the dialogs of a kind that are meant.
    pub fn close_dialogs<T: 'static>(&mut self, is_meant: impl Fn(&T) -> bool) {
        self.dialogs.retain_mut(|dialog| {
            let dialog = dialog.as_any().downcast_mut();
            !dialog.is_some_and(|dialog: &mut T| is_meant(dialog))
        });
    }

    /// All of the terminal's other screen is drawn, for a dialog or in fullscreen mode.
    pub fn is_full(&self) -> bool {
        !is_dumb() && (self.stage.is_fullscreen || self.dialogs.last().is_some_and(|dialog| dialog.is_full()))
    }

    /// What is switched on there.
    pub fn other_modes(&self) -> Modes {
        match self.stage.is_fullscreen {
            true => Modes::ALTERNATE | Modes::MOUSE,
            false => Modes::ALTERNATE,
        }
    }

    /// The whole of that screen.
    pub fn whole(&mut self, now: Instant) -> Vec<Line> {
        match self.dialogs.pop_if(|dialog| dialog.is_full()) {
            Some(mut dialog) => {
                let lines = dialog.screen(self, now);
                self.dialogs.push(dialog);
                lines
            }
            None => self.fullscreen(now),
        }
    }

    /// The conversation is on the usual screen from now on, with its end printed there if that is wished.
    pub fn leave_fullscreen(&mut self, is_over: bool) {
        if !std::mem::take(&mut self.stage.is_fullscreen) {
            return;
        }
        self.transcript.drop_stored();
        let ground = self.control.ground();
        let output = ground.settings.get("fullscreenExitOutput");
        if !is_over || output.and_then(serde_json::Value::as_str) != Some("resume-hint") {
            self.conversation.follow(&self.control);
            self.print_end(0, EXIT_ROWS, !is_over);
        }
    }

    /// Prints the end of the conversation from an item on, and how to see what is above it.
    fn print_end(&mut self, from: usize, rows: usize, goes_on: bool) {
        let look = self.stage.look();
        let (lines, above) = self.conversation.end(from, rows, &self.control, &look);
        if above > 0 {
            let key = look.key(AppAction::TOOLS_EXPAND).filter(|_| goes_on);
            let how = key.map_or_else(String::new, |key| format!(" ({key} shows them)"));
            let text = format!("↑ {above} earlier messages{how}");
            self.transcript.add(card::notice(Weight::Info, &text, &look));
        }
        self.transcript.add(lines);
    }

    /// Takes all dialogs away.
    pub fn dismiss(&mut self) {
        while let Some(mut dialog) = self.dialogs.pop() {
            dialog.dismiss(self);
        }
    }

    /// Sends what was typed: a prompt, or a message for the run under way.
    pub fn prompt(&mut self, text: String, streaming: Streaming) {
        self.ask(text, Vec::new(), streaming);
    }

    pub fn ask(&mut self, text: String, images: Vec<Block>, streaming: Streaming) {
        let (expanded, problem) = self.control.expand(text.clone());
        if let Some(problem) = problem {
            self.say(Weight::Warning, &problem.to_string());
        }
        let message = user_message(expanded, images);
        let feed = self.feed.clone();
        let begun = self.control.begin(Some(streaming), || message.clone(), &mut |event| feed.event(event));
        match begun {
            Ok(Begin::Run(ticket)) => {
                if self.jobs.try_send(work::ask(ticket, message, text)).is_err() {
                    self.say(Weight::Error, "The session has too much to do; try again");
                }
            }
            Ok(Begin::Queued) => {}
            // A compaction is under way.
            Err(_) => self.held.push((text, streaming)),
        }
    }

    /// Something could not be asked; what was typed for it is in the editor again.
    pub fn refuse(&mut self, reason: &str, typed: Option<&str>) {
        self.say(Weight::Error, &format!("Error: {reason}"));
        if let Some(typed) = typed.filter(|_| self.editor.is_empty()) {
            self.editor.set_text(typed);
        }
    }

    /// Takes everything back that waits, and puts it into the editor.
    pub fn take_back(&mut self) -> usize {
        let feed = self.feed.clone();
        let (steering, follow_up) = self.control.clear_queue(&mut |event| feed.event(event));
        self.queues = (Vec::new(), Vec::new());
        let held = std::mem::take(&mut self.held).into_iter().map(|(text, _)| text);
        let mut texts: Vec<String> = steering.into_iter().chain(follow_up).chain(held).collect();
        let count = texts.len();
        if count > 0 {
            let typed = self.editor.expanded();
            texts.extend(Some(typed).filter(|text| !text.trim().is_empty()));
            self.editor.set_text(&texts.join("\n\n"));
        }
        count
    }

    /// Takes in what happened.
    pub fn take(&mut self, mut news: News, now: Instant) {
        let look = self.stage.look();
        self.transcript.take(&mut news, &look, now);
        self.activity.take(&news, now);
        match news {
            News::Task(task) => task(self),
            // There is no border to say it in.
            News::RunStarted if is_dumb() => self.say(Weight::Info, "Working"),
            News::Queues { steering, follow_up } => self.queues = (steering, follow_up),
            News::BlockEnded { .. } => self.preview_edit(),
            News::MessageEnded(AgentMessage::Assistant(answer)) => {
                self.footer.spend(&answer.usage);
                // Elsewhere it is the network's speed as much as the model's.
                self.footer.speed = match answer.provider == "local" {
                    true => self.activity.speed(answer.usage.output, now),
                    false => None,
                };
                self.refresh();
            }
            News::Renamed | News::ThinkingChanged => self.refresh(),
            News::Settled => {
                self.refresh();
                self.send_held();
            }
            News::ShellPrinted(text) => {
                if let Some(shell) = self.transcript.shell() {
                    shell.print(&text);
                }
            }
            News::RetriesFailed { attempts, error } => {
                let text = format!("Retry failed after {attempts} attempts: {error}");
                self.say(Weight::Error, &text);
            }
            News::LimitReached(reason) => {
                self.say(Weight::Warning, &format!("The run was ended: {reason}"));
            }
            News::CompactionEnded { summary, aborted, error, .. } => {
                if let Some((summary, tokens)) = summary {
                    let look = self.stage.look();
                    let lines = card::compaction(&summary, tokens, &look);
                    self.transcript.add(lines);
                } else if aborted {
                    self.say(Weight::Warning, "Compaction cancelled");
                } else if let Some(error) = error {
                    self.say(Weight::Error, &error);
                }
                self.refresh();
                self.send_held();
            }
            _ => {}
        }
    }

    /// Finds out what an edit would change, as soon as its arguments are whole.
    fn preview_edit(&self) {
        let Some((id, arguments)) = self.transcript.edit_to_preview(&self.stage.describer) else {
            return;
        };
        let (ground, feed) = (self.control.ground(), self.feed.clone());
        let look = move || {
            if let Some(diff) = preview_edit(&ground.workspace, &arguments) {
                feed.task(move |app| {
                    if let Some(call) = app.transcript.open_call(&id) {
                        call.preview = Some(diff);
                    }
                });
            }
        };
        // Without the thread the texts of the edit are shown, no diff.
        let _ = std::thread::Builder::new().name("preview".into()).spawn(look);
    }

    /// Another conversation was put in place.
    pub fn begin_conversation(&mut self) {
        self.footer.begin(&self.control, &self.feed);
        self.stage.cwd = self.control.snapshot().cwd;
        self.transcript.clear();
        let rule = self.stage.look().rule(self.stage.look().style(Role::BorderMuted));
        self.print(vec![Line::new(), rule]);
        self.show_conversation();
    }

    /// Reads settings, keys and theme again.
    pub fn read_settings(&mut self) {
        let ground = self.control.ground();
        let before = self.stage.wants_fullscreen;
        self.stage.describer = self.control.describer();
        for problem in self.stage.read(&ground) {
            self.say(Weight::Warning, &format!("Warning: {problem}"));
        }
        match (before, self.stage.wants_fullscreen) {
            (false, true) => self.stage.is_fullscreen = true,
            (true, false) => self.leave_fullscreen(false),
            _ => {}
        }
        self.redraws = true;
    }

    /// Asks the terminal what it shows behind text, where the theme depends on it.
    pub fn ask_for_backdrop(&mut self) {
        if self.stage.themes.follows() && !super::stage::is_dumb() {
            self.sequences.push_str("\x1b]11;?\x07\x1b[?996n");
        }
    }

    /// Takes the theme's file up again, if it has changed.
    pub fn look_at_theme(&mut self, now: Instant) {
        match self.stage.themes.changed(now) {
            Some(Ok(theme)) => self.stage.theme = theme,
            Some(Err(problem)) => self.say(Weight::Warning, &format!("Warning: {problem}")),
            None => {}
        }
    }

    /// Writes a setting of the user.
    pub fn set(&mut self, path: &str, value: serde_json::Value) {
        if let Err(reason) = self.control.remember(path, value) {
            self.say(Weight::Warning, &format!("Warning: {reason}"));
        }
    }

    /// Looks at the session again for what the footer shows.
    pub fn refresh(&mut self) {
        self.footer.refresh(&self.control);
    }

    /// Sends what came while it could not be sent.
    pub fn send_held(&mut self) {
        for (text, streaming) in std::mem::take(&mut self.held) {
            self.prompt(text, streaming);
        }
    }

    /// The conversation is another one now: shows its end.
    pub fn show_conversation(&mut self) {
        self.queues = (Vec::new(), Vec::new());
        let messages = self.control.messages();
        let first = self.conversation.begin(&self.control);
        let rows = self.stage.size.rows.saturating_mul(3).max(60);
        self.print_end(first, rows, true);
        let prompts = messages.iter().rev();
        let prompts = prompts.filter(|message| matches!(message, AgentMessage::User(_)));
        let prompts: Vec<String> = prompts.take(PROMPTS).map(AgentMessage::text).collect();
        prompts.iter().rev().for_each(|prompt| self.editor.remember(prompt));
        self.refresh();
    }
}
