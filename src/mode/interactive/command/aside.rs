//! `/btw`, `/handoff` and `/plan`: what goes beside the conversation, or before it goes on.

use crate::mode::interactive::app::App;
use crate::mode::interactive::card::{self, Weight};
use crate::mode::interactive::effect::Effect;
use crate::runtime::Fatal;
use crate::runtime::control::Streaming;

/// `/btw QUESTION`: answers from the context of the conversation, which stays as it is.
pub fn btw(app: &mut App, question: &str) {
    if question.is_empty() {
        return app.error("Usage: /btw QUESTION");
    }
    app.info(&format!("By the way: {question}"));
    let (control, question) = (app.control.clone(), question.to_owned());
    begin(app, "Answering beside the conversation");
    app.find_out("btw", move || Effect::AnswerAside(control.ask_aside(&question, control.root())));
}

pub fn answered(app: &mut App, answer: Result<String, String>) {
    app.status.activity.other = None;
    match answer {
        Ok(text) => {
            let lines = card::text(&text, &app.config.look());
            app.print(lines);
        }
        Err(reason) => app.error(&reason),
    }
}

/// `/handoff GOAL`: begins a new session, with the message to begin it in the editor.
pub fn handoff(app: &mut App, goal: &str) {
    if goal.is_empty() {
        return app.error("Usage: /handoff GOAL");
    }
    if !app.control.is_idle() {
        return app.warn("Wait for the end of the run before /handoff");
    }
    let (control, goal) = (app.control.clone(), goal.to_owned());
    begin(app, "Writing down what matters");
    app.find_out("handoff", move || Effect::HandOff(control.write_handoff(&goal, control.root())));
}

pub fn hand_off(app: &mut App, message: Result<String, String>) {
    app.status.activity.other = None;
    let text = match message {
        Ok(text) => text,
        Err(reason) => return app.error(&reason),
    };
    let parent = app.control.snapshot().session_file.map(|path| path.to_string_lossy().into_owned());
    app.run(move |session, feed| match session.start_new(parent) {
        Ok(true) => feed.effect(Effect::HandedOff(text)),
        Ok(false) => feed.say(Weight::Info, "An extension kept this session open".to_owned()),
        Err(Fatal(reason)) => feed.say(Weight::Error, reason),
    });
}

pub fn handed_off(app: &mut App, text: &str) {
    app.begin_conversation();
    app.composer.editor.set_text(text);
    app.note("New session. Enter sends its first message");
}

/// `/plan [PROMPT]` and `/plan off`.
pub fn plan(app: &mut App, arguments: &str) {
    let is_on = app.control.is_planning();
    let done = match arguments {
        "off" => app.control.end_planning(),
        "" if is_on => app.control.end_planning(),
        _ => app.control.begin_planning(false),
    };
    match (done, arguments) {
        (Err(reason), _) => app.error(&reason),
        (Ok(()), "off" | "") => {
            let now = if app.control.is_planning() { "on: nothing is changed" } else { "off" };
            app.note(&format!("Plan mode is {now}"));
        }
        (Ok(()), prompt) => app.prompt(prompt.to_owned(), Vec::new(), Streaming::FollowUp),
    }
}

fn begin(app: &mut App, what: &'static str) {
    app.status.activity.other = Some((what, std::time::Instant::now()));
}
