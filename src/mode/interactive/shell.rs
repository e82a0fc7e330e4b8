//! Commands of the user: `!command`, and `!!command`, of which the model is not told.

use super::app::App;
use super::card::{Shell, Weight};
use crate::runtime::Fatal;
use crate::runtime::event::Event;
use std::time::Instant;

/// Runs what stands behind the first `!`.
pub fn run(app: &mut App, command: &str) {
    let (command, is_hidden) = match command.strip_prefix('!') {
        Some(command) => (command.trim(), true),
        None => (command.trim(), false),
    };
    if command.is_empty() {
        return;
    }
    if app.transcript.shell().is_some() {
        let text = format!("!{}{command}", if is_hidden { "!" } else { "" });
        app.editor.set_text(&text);
        return app.say(Weight::Warning, "A bash command is already running. Press Esc to cancel it first.");
    }
    let shell = match app.control.begin_shell() {
        Ok(shell) => shell,
        Err(reason) => return app.say(Weight::Error, &reason),
    };
    app.transcript.begin_shell(Shell::new(command, is_hidden, Instant::now()));
    let (feed, command) = (app.feed.clone(), command.to_owned());
    let run = move || {
        let printed = &mut |delta: &str| feed.event(&Event::BashUpdate { id: None, delta });
        let done = shell.run(&command, is_hidden.then_some(true), printed);
        feed.task(move |app| {
            let now = Instant::now();
            match (done, app.transcript.shell()) {
                (Ok((result, _)), Some(shell)) => shell.end(&result, now),
                (Err(Fatal(reason)), Some(shell)) => shell.fail(&reason, now),
                (_, None) => {}
            }
            // During a run it is kept out of the log.
            if app.control.is_idle() {
                app.transcript.store_shells();
            }
        });
    };
    if let Err(error) = std::thread::Builder::new().name("shell".into()).spawn(run) {
        app.say(Weight::Error, &format!("Cannot start a thread: {error}"));
    }
}
