//! The interactive terminal: a conversation above, an editor below.
//!
//! ```text
//! terminal ──bytes──> decoder ──keys──> app ──jobs──> session's thread ──┐
//!     ^                                  ^ └─────> shells, sign-ins ─────┤
//!     └────────────── frames ────────────┴──────────── feed <────────────┘
//! ```
//! One thread waits for keys, news and timeouts together, handles all that are pending, then draws. Streamed
//! text is drawn at the screen's rate, the effect of a key immediately. An idle program is never woken.
//!
//! Finished parts are printed and left to the terminal, whose scrollback, search and selection work as usual.
//! Only the unfinished part is redrawn, below them (`tui::screen`).

mod activity;
mod added;
mod app;
mod approver;
mod asked;
mod card;
mod client;
mod command;
mod complete;
mod composer;
mod config;
mod conversation;
mod dialog;
mod drawings;
mod effect;
mod event_loop;
mod feed;
mod files;
mod first_start;
mod footer;
mod header;
mod keeping;
mod keymap;
mod keys;
mod look;
mod news;
mod pace;
mod paint;
mod panel;
mod position;
mod program;
mod program_status;
pub mod question;
mod screen;
mod scroll;
mod search;
mod status;
mod status_line;
mod surface;
mod survey;
mod terminal;
#[cfg(test)]
pub mod testing;
mod themes;
mod title;
mod transcript;
mod view;
mod viewer;
mod work;

use super::exit::{DONE, EndsChildren, EndsInPanic, FAILED};
use super::report;
use super::signal::Watch;
use crate::base::thread::Thread;
use crate::runtime::control::Streaming;
use crate::runtime::session::Session;
use crate::runtime::{Block, CancelToken, Dirs, Fatal, Store};
use crate::tui::terminal::{Modes, Terminal};
use added::OnFeed;
use app::{App, Threads};
use approver::ByScreen;
use card::Weight;
use config::{Places, UiConfig};
use crossbeam_channel::bounded;
use event_loop::EventLoop;
use feed::Feed;
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use survey::survey;

/// Maximum of jobs queued for the session's thread.
const JOBS_MAX: usize = 64;

/// Time that other threads get at the end of the program.
const THREADS: Duration = Duration::from_secs(2);

/// `Ok` if this build includes the terminal; the error says that it does not.
pub fn is_there() -> Result<(), String> {
    Ok(())
}

/// The slash commands for the manual: name, argument hint, description.
pub fn commands() -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
    let rows = command::COMMANDS.iter();
    rows.map(|command| (command.name, command.hint, command.about))
}

/// The colours of a theme for the manual: name, and fallback.
pub fn theme_colors() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let roles = crate::tui::theme::Role::ALL.into_iter();
    roles.map(|role| (role.name(), role.fallback().map(|fallback| fallback.name())))
}

/// The JSON Schema of `keybindings.json`; `None` in a build without the terminal.
pub fn keybindings_schema() -> Option<Value> {
    Some(crate::tui::keymap::schema(&keymap::APPLICATION))
}

/// The JSON Schema of a theme; `None` in a build without the terminal.
pub fn theme_schema() -> Option<Value> {
    Some(crate::tui::theme::schema::schema())
}

/// Start options of the interactive mode.
pub struct Options {
    pub dirs: Dirs,
    pub store: Store,
    /// The first prompt, with images.
    pub first: Option<(String, Vec<Block>)>,
    /// Prompts that follow the first.
    pub prompts: Vec<String>,
    /// Initial text of the editor.
    pub draft: Option<String>,
    /// Overrides the setting of the fullscreen mode.
    pub fullscreen: Option<bool>,
    /// True to show the header whatever the settings say.
    pub verbose: bool,
}

/// Every action of the terminal with its keys, for the manual.
pub fn keys() -> String {
    keymap::defaults().reference()
}

/// Runs the interactive mode until the user leaves. Returns the exit code.
pub fn run(session: Session, options: Options, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let _ends = EndsChildren { keep: session.workspace().options.bash_keep_background };
    let start = |error: io::Error| format!("Cannot start a thread: {error}");
    let feed = Arc::new(Feed::new());
    let (jobs, waiting) = bounded(JOBS_MAX);
    let control = session.control().clone();
    let modes = match config::is_dumb() {
        true => Modes::usual(true),
        false => Modes::usual(false) | Modes::SCHEME,
    };
    let mut terminal = match Terminal::open(modes, terminal::keep) {
        Ok(terminal) => terminal,
        Err(error) => {
            // What there is of the session is worth more than a second error.
            let _ = session.close();
            return Err(format!("Cannot use the terminal: {error}"));
        }
    };
    let diverted = {
        let feed = feed.clone();
        report::divert(move |text| feed.say(Weight::Warning, text))
    };
    control.set_approver(Arc::new(ByScreen(feed.clone())));
    control.set_ui(Arc::new(OnFeed::new(feed.clone())));
    let worker = {
        let (feed, guard) = (feed.clone(), EndsInPanic(cancel.clone()));
        let work = move || {
            let _guard = guard;
            work::work(session, &waiting, &feed)
        };
        Thread::named("session").start(work).map_err(start)?
    };
    let places = Places {
        cwd: control.snapshot().cwd,
        home: options.dirs.home().unwrap_or(Path::new("/")).to_owned(),
        agent: options.dirs.agent().to_owned(),
    };
    let config = control.config();
    let (mut config, problems) = UiConfig::new(places, &config.settings, &config.themes, terminal.size());
    config.describer = control.tools().describer();
    let threads = Threads::new(jobs, feed, cancel.clone());
    let mut app = App::new(control.clone(), options.dirs, options.store, threads, config);
    app.ask_for_backdrop();
    app.start_reports();
    if let Some(wanted) = options.fullscreen {
        app.config.is_fullscreen = wanted && !config::is_dumb();
    }
    let starts_empty = options.first.is_none() && options.prompts.is_empty();
    let rest = options.prompts.into_iter().map(|text| (text, Vec::new()));
    let prompts = options.first.into_iter().chain(rest);
    let first_lines = move |app: &mut App| {
        header::print(app, options.verbose);
        for warning in &problems {
            app.warn(&format!("Warning: {warning}"));
        }
        first_start::print(app);
        app.set_status_line();
        app.show_conversation();
        if starts_empty {
            app.offer_to_go_on();
        }
        prompts.for_each(|(text, images)| app.prompt(text, images, Streaming::FollowUp));
    };
    // Only an earlier conversation is worth waiting for the colours of the terminal.
    match starts_empty && app.control.snapshot().message_count > 0 {
        true => app.requests.begin = Some(Box::new(first_lines)),
        false => first_lines(&mut app),
    }
    app.start_keeping();
    match &options.draft {
        Some(draft) => app.composer.editor.set_text(draft),
        None => app.restore_unsent(true),
    }
    app.note_unsent(Instant::now());
    let served = EventLoop::new(&mut app, &mut terminal, false).run(cancel);
    drop(terminal);
    drop(diverted);
    // Before messages are taken out of their queues.
    app.end_keeping();

    cancel.cancel();
    control.abort();
    control.abort_shells();
    let resume = {
        let log = control.log();
        let path = log.path().map(Path::to_owned);
        path.map(|path| (path, log.header().id.clone()))
    };
    let sessions = app.store.named().map(Path::to_owned);
    let threads = app.ended();
    drop(app);
    let _ = threads.recv_timeout(THREADS);
    let closed = match worker.join() {
        Ok(mut session) => {
            session.take_notices().iter().for_each(report::warning);
            session.close()
        }
        Err(_) => Err(Fatal("The session failed inside".into())),
    };
    let code = match (served, closed) {
        (Err(error), _) => {
            report::error(format_args!("Cannot use the terminal: {error}"));
            FAILED
        }
        (Ok(()), Err(Fatal(message))) => {
            report::error(message);
            FAILED
        }
        (Ok(()), Ok(())) => DONE,
    };
    if code == DONE
        && let Some((path, id)) = resume
        && path.exists()
    {
        let dir = sessions.map(|dir| format!(" --session-dir {}", shell_word(&dir)));
        report::note(format_args!("To resume this session: pi{} --session {id}", dir.unwrap_or_default()));
    }
    Ok(watch.exit_code().unwrap_or(code))
}

/// Quotes a path as one word of a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:@%".contains(letter);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
