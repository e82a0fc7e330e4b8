//! Commands of the user: `!command`, and `!!command`, of which the model is not told.

use super::app::App;
use super::card::{Call, State, Weight};
use crate::runtime::Fatal;
use crate::runtime::event::Event;
use serde_json::Value;
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
        return app.say(
            Weight::Warning,
            "A bash command is already running. Press Esc to cancel it first.",
        );
    }
    let shell = match app.control.begin_shell() {
        Ok(shell) => shell,
        Err(reason) => return app.say(Weight::Error, &reason),
    };
    let mut call = Call::new("", if is_hidden { "!!" } else { "!" });
    call.set_arguments(
        [("command".to_owned(), Value::from(command))]
            .into_iter()
            .collect(),
    );
    call.state = State::Running {
        since: Instant::now(),
    };
    app.transcript.begin_shell(call);
    let (feed, command) = (app.feed.clone(), command.to_owned());
    let run = move || {
        let printed = &mut |delta: &str| feed.event(&Event::BashUpdate { id: None, delta });
        let done = shell.run(&command, is_hidden.then_some(true), printed);
        feed.task(move |app| {
            let look_failed = |reason: &str| format!("Error: {reason}");
            let now = Instant::now();
            match done {
                Ok((result, _)) => {
                    if let Some(call) = app.transcript.shell() {
                        call.end_shell(&result, now);
                    }
                }
                Err(Fatal(reason)) => {
                    if let Some(call) = app.transcript.shell() {
                        call.end(true, now);
                    }
                    app.say(Weight::Error, &look_failed(&reason));
                }
            }
        });
    };
    if let Err(error) = std::thread::Builder::new().name("shell".into()).spawn(run) {
        app.say(Weight::Error, &format!("Cannot start a thread: {error}"));
    }
}
