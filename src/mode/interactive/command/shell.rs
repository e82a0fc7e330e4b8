//! Commands of the user: `!command`, and `!!command`, which is hidden from the model.

use crate::base::thread::Thread;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Shell;
use crate::mode::interactive::effect::Effect;
use crate::runtime::Fatal;
use crate::runtime::event::Event;
use crate::runtime::shell::ShellResult;
use std::time::Instant;

/// Runs the command after the first `!`.
pub fn run(app: &mut App, command: &str) {
    let (command, is_hidden) = match command.strip_prefix('!') {
        Some(command) => (command.trim(), true),
        None => (command.trim(), false),
    };
    if command.is_empty() {
        return;
    }
    if app.view.shell().is_some() {
        let text = format!("!{}{command}", if is_hidden { "!" } else { "" });
        app.composer.editor.set_text(&text);
        return app.warn("A bash command is already running. Press Esc to cancel it first.");
    }
    let shell = match app.control.begin_shell() {
        Ok(shell) => shell,
        Err(reason) => return app.error(&reason),
    };
    app.view.begin_shell(Shell::new(command, is_hidden, Instant::now()));
    let (feed, command) = (app.threads.feed.clone(), command.to_owned());
    let run = move || {
        let printed = &mut |delta: &str| feed.event(&Event::BashUpdate { id: None, delta });
        let done = shell.run(&command, is_hidden.then_some(true), printed);
        let done = done.map(|(result, _)| result).map_err(|Fatal(reason)| reason);
        feed.effect(Effect::ShellEnded(done));
    };
    if let Err(error) = Thread::named("shell").start(run) {
        app.error(&format!("Cannot start a thread: {error}"));
    }
}

/// Shows that the command has ended, or could not run.
pub fn ended(app: &mut App, done: Result<ShellResult, String>) {
    let now = Instant::now();
    match (done, app.view.shell()) {
        (Ok(result), Some(shell)) => shell.end(&result, now),
        (Err(reason), Some(shell)) => shell.fail(&reason, now),
        (_, None) => {}
    }
    // During a run it is kept out of the log.
    if app.control.is_idle() {
        app.view.store_shells();
    }
}
