//! The interactive terminal: a conversation above, an editor below.
//!
//! ```text
//! terminal ──bytes──> decoder ──keys──> app ──jobs──> session's thread ──┐
//!     ^                                  ^ └─────> shells, sign-ins ─────┤
//!     └────────────── frames ────────────┴──────────── feed <────────────┘
//! ```
//! One thread waits for keys, news and time, all at once; it draws when all that is there has been taken
//! in. What streams is drawn at the screen's pace, what a key did at once. Nothing wakes it while nothing
//! happens.
//!
//! What is finished is printed and from then on the terminal's: its scrollback, search and selection work as
//! always. Only what may still change is drawn again, below it (`tui::screen`).

mod activity;
mod app;
mod card;
mod clipboard;
mod command;
mod complete;
mod dialog;
mod external;
mod feed;
mod files;
mod footer;
mod header;
mod keys;
mod look;
mod navigate;
mod pace;
mod paint;
mod program;
mod resume;
mod session_command;
mod shell;
mod stage;
#[cfg(test)]
pub mod testing;
mod title;
mod transcript;
mod work;

use super::print::{DONE, EndsChildren, FAILED};
use super::report;
use super::signal::Watch;
use crate::runtime::control::Streaming;
use crate::runtime::session::Session;
use crate::runtime::{Block, CancelToken, Dirs, Fatal};
use crate::tui::screen::Screen;
use crate::tui::terminal::{Event, Inputs, Modes, Terminal, escape_timeout};
use app::{App, Parts};
use card::Weight;
use crossbeam_channel::{after, bounded, never, select};
use dialog::approve::ByScreen;
use feed::Feed;
use pace::Pace;
use stage::{Places, Stage};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Jobs that wait for the session's thread.
const JOBS_MAX: usize = 64;

/// How it begins.
pub struct Options {
    pub dirs: Dirs,
    /// What is asked first, with images.
    pub first: Option<(String, Vec<Block>)>,
    /// What is asked then.
    pub prompts: Vec<String>,
    /// The header is shown though the settings say otherwise.
    pub verbose: bool,
}

/// Serves the terminal until the user leaves. Gives the exit code.
pub fn run(
    session: Session,
    options: Options,
    cancel: &CancelToken,
    watch: &Watch,
) -> Result<u8, String> {
    let _ends = EndsChildren {
        keep: session.workspace().options.bash_keep_background,
    };
    let start = |error: io::Error| format!("Cannot start a thread: {error}");
    let feed = Arc::new(Feed::new());
    let (jobs, waiting) = bounded(JOBS_MAX);
    let control = session.control().clone();
    let mut terminal = Terminal::open(Modes::usual(stage::is_dumb()))
        .map_err(|error| format!("Cannot use the terminal: {error}"))?;
    let diverted = {
        let feed = feed.clone();
        report::divert(move |text| work::say(&feed, Weight::Warning, text))
    };
    control.set_approver(Arc::new(ByScreen(feed.clone())));
    let worker = {
        let feed = feed.clone();
        thread::Builder::new()
            .name("session".into())
            .spawn(move || work::work(session, &waiting, &feed))
            .map_err(start)?
    };
    let places = Places {
        cwd: control.snapshot().cwd,
        home: options
            .dirs
            .home()
            .unwrap_or(std::path::Path::new("/"))
            .to_owned(),
        agent: options.dirs.agent().to_owned(),
    };
    let ground = control.ground();
    let (stage, problems) = Stage::new(places, &ground.settings, terminal.size());
    let mut app = App::new(Parts {
        control: control.clone(),
        jobs,
        feed,
        dirs: options.dirs,
        cancel: cancel.clone(),
        stage,
    });
    header::print(&mut app, options.verbose);
    for warning in &problems {
        app.say(Weight::Warning, &format!("Warning: {warning}"));
    }
    app.show_conversation();
    let rest = options.prompts.into_iter().map(|text| (text, Vec::new()));
    for (text, images) in options.first.into_iter().chain(rest) {
        app.ask(text, images, Streaming::FollowUp);
    }
    let served = serve(&mut app, &mut terminal, cancel);
    drop(terminal);
    drop(diverted);

    cancel.cancel();
    control.abort();
    control.abort_shells();
    let resume = {
        let log = control.log();
        let path = log.path().map(std::path::Path::to_owned);
        path.map(|path| (path, log.header().id.clone()))
    };
    drop(app);
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
        report::note(format_args!("To resume this session: pi --session {id}"));
    }
    Ok(watch.exit_code().unwrap_or(code))
}

/// Takes in what comes and draws, until it is over.
fn serve(app: &mut App, terminal: &mut Terminal, cancel: &CancelToken) -> io::Result<()> {
    let mut screen = Screen::new(terminal.size(), app.stage.abilities());
    let mut inputs = Inputs::new(escape_timeout(|name| std::env::var(name).ok()));
    let mut pace = Pace::default();
    let woken = app.feed.woken().clone();
    let events = terminal.events().clone();
    loop {
        let now = Instant::now();
        if app.is_over || cancel.is_cancelled() {
            app.dismiss();
            // What is final is printed, what is live goes.
            let above = app.transcript.settle(&app.stage.look(), now);
            let text = screen.draw(&above, &[]) + &app.title.end();
            terminal.write(&text)?;
            return Ok(());
        }
        if app.suspends {
            app.suspends = false;
            terminal.write(&screen.clear())?;
            terminal.suspend()?;
            app.redraws = true;
        }
        if pace.is_due(now) {
            paint(app, terminal, &mut screen, now)?;
            pace.painted(now, Instant::now());
        }
        let sleep = [
            pace.due_in(now),
            inputs
                .deadline()
                .map(|at| at.saturating_duration_since(now)),
            app.changes_in(now),
        ];
        let timer = sleep.into_iter().flatten().min().map_or_else(never, after);
        select! {
            recv(events) -> event => match event {
                Ok(Event::Bytes(bytes)) => {
                    let now = Instant::now();
                    for input in inputs.push(&bytes, now) {
                        take(app, terminal, input, now)?;
                    }
                    pace.at_once();
                }
                Ok(Event::Resized) => {
                    app.stage.size = terminal.size();
                    app.redraws = true;
                    pace.soon();
                }
                Ok(Event::Suspend) => app.suspends = true,
                Ok(Event::Resumed) => {
                    terminal.take()?;
                    app.stage.size = terminal.size();
                    app.redraws = true;
                    pace.at_once();
                }
                // Who watches for signals cancels the token.
                Ok(Event::Signal(_)) => {}
                Ok(Event::End) | Err(_) => return Ok(()),
            },
            recv(woken) -> _ => {
                let now = Instant::now();
                for news in app.feed.take() {
                    app.take(news, now);
                }
                pace.soon();
            },
            recv(timer) -> _ => {
                let now = Instant::now();
                if inputs.deadline().is_some_and(|at| at <= now) {
                    for input in inputs.expire() {
                        take(app, terminal, input, now)?;
                    }
                    pace.at_once();
                }
                pace.soon();
            },
            recv(cancel.receiver()) -> _ => {}
        }
    }
}

fn take(
    app: &mut App,
    terminal: &mut Terminal,
    input: crate::tui::key::Input,
    now: Instant,
) -> io::Result<()> {
    if let crate::tui::key::Input::Reply(reply) = &input {
        terminal.answer(reply)?;
    }
    app.input(input, now);
    if let Some(lend) = app.lends.take() {
        terminal.pause();
        lend(app);
        terminal.resume()?;
        app.redraws = true;
    }
    Ok(())
}

fn paint(
    app: &mut App,
    terminal: &mut Terminal,
    screen: &mut Screen,
    now: Instant,
) -> io::Result<()> {
    app.tell_terminal(now);
    let above = app.transcript.settle(&app.stage.look(), now);
    let live = app.live(now);
    let mut text = match std::mem::take(&mut app.redraws) {
        true => {
            screen.set_abilities(app.stage.abilities());
            let size = app.stage.size;
            let tail = app.transcript.tail(size.rows);
            screen.resize(size, &tail, &live)
        }
        false => screen.draw(&above, &live),
    };
    text.push_str(&std::mem::take(&mut app.sequences));
    if !text.is_empty() {
        terminal.write(&text)?;
    }
    Ok(())
}
