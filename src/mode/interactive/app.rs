//! The parts of the interactive mode, and what its commands need: showing notices, running jobs on the
//! session's thread, starting threads.
//!
//! One thread owns [`App`] and never waits for the session: slow work is a [`Job`] for the session's thread,
//! or a separate thread that puts an [`Effect`] into the [`Feed`] at its end.

use super::added::Added;
use super::card::Weight;
use super::composer::Composer;
use super::config::{UiConfig, is_dumb};
use super::dialog::{Dialog, Dialogs};
use super::drawings::Drawings;
use super::effect::Effect;
use super::feed::Feed;
use super::keeping::Keeping;
use super::status::Status;
use super::view::View;
use super::work::{self, Job};
use crate::base::thread::Thread;
use crate::runtime::control::{Begin, Control, Streaming, Taken, user_message};
use crate::runtime::hook::InputSource;
use crate::runtime::image::named;
use crate::runtime::session::Session;
use crate::runtime::{AgentMessage, Block, CancelToken, Dirs, Store};
use crate::tui::line::Line;
use crate::tui::theme::Role;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::time::Instant;

/// Prompts of a conversation that are kept in the editor's history.
const PROMPTS: usize = 100;

/// Rows of a conversation that are printed on leaving fullscreen mode.
const EXIT_ROWS: usize = 2000;

/// Queries the terminal for the size of a cell.
const ASK_CELL: &str = "\x1b[16t";

pub struct App {
    pub control: Control,
    pub dirs: Dirs,
    /// The stored sessions.
    pub store: Store,
    pub threads: Threads,
    pub config: UiConfig,
    pub view: View,
    pub composer: Composer,
    pub dialogs: Dialogs,
    pub keeping: Keeping,
    pub status: Status,
    /// What extensions show.
    pub added: Added,
    pub requests: Requests,
}

/// The threads that work for the screen, and the channels to them.
pub struct Threads {
    pub jobs: Sender<Job>,
    pub feed: Arc<Feed>,
    /// Cancelled to end the program.
    pub cancel: CancelToken,
    /// Channel that disconnects when the last worker thread has dropped its sender.
    alive: (Sender<()>, Receiver<()>),
}

impl Threads {
    pub fn new(jobs: Sender<Job>, feed: Arc<Feed>, cancel: CancelToken) -> Self {
        Self { jobs, feed, cancel, alive: bounded(0) }
    }
}

/// Terminal operations that are requested from the loop.
#[derive(Default)]
pub struct Requests {
    /// True to end the program.
    pub ends: bool,
    pub suspends: bool,
    /// Command of an editor, which gets the terminal to itself.
    pub editor: Option<String>,
    /// What it edits.
    pub edited: Edited,
    /// True to redraw the whole screen.
    pub redraws: bool,
    /// Escape sequences to write besides the frame.
    pub sequences: String,
    /// Prints the first lines, once the terminal's colours are known.
    pub begin: Option<FirstLines>,
}

type FirstLines = Box<dyn FnOnce(&mut App)>;

/// What is edited in the user's own editor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edited {
    #[default]
    Prompt,
    /// The list of what is to be done.
    Todo,
}

impl App {
    pub fn new(control: Control, dirs: Dirs, store: Store, threads: Threads, mut config: UiConfig) -> Self {
        let feed = threads.feed.clone();
        let redraw = move || feed.effect(Effect::Draw);
        config.drawings = Arc::new(Drawings::new(&control, &threads.cancel, redraw));
        let mut composer = Composer::default();
        composer.editor.set_vim(config.options.uses_vim);
        // How large a cell is matters to images only.
        let sequences = config.pictures().map_or("", |_| ASK_CELL).to_owned();
        Self {
            view: View::new(control.clone()),
            composer,
            dialogs: Dialogs::default(),
            keeping: Keeping::default(),
            status: Status::new(&control, &config, &threads.feed),
            added: Added::default(),
            requests: Requests { sequences, ..Requests::default() },
            control,
            dirs,
            store,
            threads,
            config,
        }
    }

    /// Shows a notice in the conversation.
    pub fn say(&mut self, weight: Weight, text: &str) {
        self.view.say(weight, text, &self.config.look());
    }

    pub fn info(&mut self, text: &str) {
        self.say(Weight::Info, text);
    }

    /// Shows a notice above the editor, until the next one or the next prompt.
    pub fn note(&mut self, text: &str) {
        match is_dumb() {
            true => self.info(text),
            false => text.lines().next().unwrap_or_default().clone_into(&mut self.status.note),
        }
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

    /// Runs `job` on the session's thread.
    pub fn run(&mut self, job: impl FnOnce(&mut Session, &Arc<Feed>) + Send + 'static) {
        if self.threads.jobs.try_send(Box::new(job)).is_err() {
            self.error("The session has too much to do; try again");
        }
    }

    /// Runs `work` on a thread. The end of the program waits for the thread, with a limit.
    pub fn begin_thread(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        let alive = self.threads.alive.0.clone();
        let work = move || {
            work();
            drop(alive);
        };
        if let Err(error) = Thread::named(name).start(work) {
            self.error(&format!("Cannot start a thread: {error}"));
        }
    }

    /// Runs `work` on a thread; its [`Effect`] is applied at the end.
    pub fn find_out(&mut self, name: &str, work: impl FnOnce() -> Effect + Send + 'static) {
        let feed = self.threads.feed.clone();
        self.begin_thread(name, move || feed.effect(work()));
    }

    /// Disconnects when the app is dropped and the last of its threads has ended.
    pub fn ended(&self) -> Receiver<()> {
        self.threads.alive.1.clone()
    }

    pub fn open(&mut self, dialog: impl Dialog + 'static) {
        self.composer.close_completion();
        self.dialogs.open(dialog);
    }

    /// Sends the typed text, with the images that it names: as a prompt, or as a message to the current run.
    pub fn prompt(&mut self, text: String, mut images: Vec<Block>, streaming: Streaming) {
        if !self.composer.held.is_empty() {
            // In their order.
            return self.composer.held.push((text, images, streaming));
        }
        let settling = self.control.settling();
        if !settling.is_empty() {
            self.note(&format!(
                "Waiting for extensions ({}). Escape goes on without them",
                settling.join(", ")
            ));
            self.composer.held.push((text, images, streaming));
            let (control, wait) = (self.control.clone(), self.control.begin_settling());
            return self.find_out("extensions", move || {
                control.settle_hooks(&wait);
                Effect::SendHeld
            });
        }
        let names_images = images.is_empty() && !named::names(&text).is_empty();
        let is_looked_at = self.control.is_looked_at(&text);
        if !is_looked_at && !names_images {
            return self.send(text, images, streaming);
        }
        let (control, feed) = (self.control.clone(), self.threads.feed.clone());
        let activity = &mut self.status.activity;
        let shows_wait = is_looked_at && !activity.is_busy() && control.added_command(&text).is_none();
        if shows_wait {
            activity.other = Some(("Waiting for extensions", Instant::now()));
        }
        self.begin_thread("input", move || {
            let cancel = control.root().child();
            if names_images {
                let (found, problems) = control.images_named(&text, &cancel);
                if !found.is_empty() {
                    let count = found.len();
                    let text = format!("{count} image{} attached", if count == 1 { "" } else { "s" });
                    feed.say(Weight::Info, text);
                }
                problems.into_iter().for_each(|problem| feed.say(Weight::Warning, problem));
                images = found;
            }
            if !is_looked_at {
                return feed.effect(Effect::Send { text, images, streaming });
            }
            let source = InputSource::Interactive;
            let typed = text.clone();
            let taken = control.take_input(text, images, source, Some(streaming), &cancel);
            if shows_wait {
                feed.effect(Effect::Busy(None));
            }
            match taken {
                Taken::Goes(text, images) => feed.effect(Effect::Send { text, images, streaming }),
                Taken::Handled => {}
                Taken::Aborted => feed.effect(Effect::GiveBack(typed)),
            }
        });
    }

    /// Sends a prompt that others have looked at.
    pub fn send(&mut self, text: String, images: Vec<Block>, streaming: Streaming) {
        self.status.note.clear();
        self.composer.can_go_on = false;
        let (expanded, problem) = self.control.expand(text.clone());
        if let Some(problem) = problem {
            self.warn(&problem.to_string());
        }
        let message = user_message(expanded, images.clone());
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
            Err(_) => self.composer.held.push((text, images, streaming)),
        }
    }

    /// Offers to continue if the last run of the conversation was cut off.
    pub fn offer_to_go_on(&mut self) {
        let cut_off = self.control.cut_off();
        self.composer.can_go_on = cut_off.is_some();
        if let Some(cut_off) = cut_off {
            self.warn(&format!("{cut_off}. Enter on the empty editor goes on with it."));
        }
    }

    /// Continues a run that was cut off.
    pub fn go_on(&mut self) {
        self.composer.can_go_on = false;
        // A prompt that came first is answered with all before it.
        if let Ok(Begin::Run(ticket)) =
            self.control.begin(None, || user_message(String::new(), Vec::new()), &mut |_| {})
            && self.threads.jobs.try_send(work::go_on(ticket)).is_err()
        {
            self.error("The session has too much to do; try again");
        }
    }

    /// Sends the prompts that were held back.
    pub fn send_held(&mut self) {
        for (text, images, streaming) in std::mem::take(&mut self.composer.held) {
            self.prompt(text, images, streaming);
        }
    }

    /// Moves queued messages and held prompts back into the editor. Returns their number.
    pub fn take_back(&mut self) -> usize {
        let feed = self.threads.feed.clone();
        let (steering, follow_up) = self.control.queue().clear(&mut |event| feed.event(event));
        self.composer.take_back(steering.into_iter().chain(follow_up))
    }

    /// Reads the session's state again for the footer.
    pub fn refresh(&mut self) {
        self.status.footer.refresh(&self.control);
        self.status.line.changed();
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
        self.set_status_line();
        self.composer.editor.set_vim(self.config.options.uses_vim);
        match (before, self.config.options.wants_fullscreen) {
            (false, true) => self.config.is_fullscreen = true,
            (true, false) => self.leave_fullscreen(false),
            _ => {}
        }
        self.requests.redraws = true;
    }

    /// Queries the terminal for its colours, if the theme depends on them.
    pub fn ask_for_backdrop(&mut self) {
        if !is_dumb() {
            self.requests.sequences.push_str(&self.config.themes.queries());
        }
    }

    /// Reports the program's status to the terminal, if that wants to know.
    pub fn start_reports(&mut self) {
        if !is_dumb() {
            let wish = std::env::var("PI_PROGRAM_STATUS").ok();
            self.requests.sequences.push_str(self.status.program.start(wish.as_deref()));
        }
    }

    /// Leaves fullscreen mode, and prints the end of the conversation on the normal screen if settings ask
    /// for it.
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

    /// Resets the screen for another conversation.
    pub fn begin_conversation(&mut self) {
        self.config.drawings.clear();
        self.status.footer.begin(&self.control, &self.threads.feed);
        self.config.places.cwd = self.control.snapshot().cwd;
        self.view.clear();
        let rule = self.config.look().rule(self.config.look().style(Role::BorderMuted));
        self.print(vec![Line::new(), rule]);
        self.show_conversation();
        self.offer_to_go_on();
        self.restore_unsent(false);
    }

    /// Shows the end of a conversation that was just opened.
    pub fn show_conversation(&mut self) {
        self.composer.queues = (Vec::new(), Vec::new());
        let messages = self.control.messages();
        let first = self.view.begin();
        let rows = self.config.size.rows.saturating_mul(3).max(60);
        self.view.print_end(Some(first), rows, true, &self.config.look());
        if self.control.has_hooks_to_come() {
            let (control, cancel) = (self.control.clone(), self.threads.cancel.clone());
            self.find_out("extensions", move || {
                control.await_hooks(&cancel);
                Effect::Draw
            });
        }
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
