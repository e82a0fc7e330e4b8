//! Going to another entry of the session, and beginning a new session at one.

use super::app::App;
use super::card::Weight;
use super::dialog::{Question, compose, fork, tree};
use super::work;
use crate::runtime::Fatal;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::tree::{Move, Moved};
use std::time::Instant;

/// Prompts that are read at once; more are read on another thread.
const AT_ONCE: usize = 2_000;

/// An entry was chosen: asks what becomes of the branch that is left.
pub fn begin(app: &mut App, id: String) {
    if app.control.log().leaf() == Some(&id) {
        return app.say(Weight::Info, "Already at this point");
    }
    match app.control.config().settings.branch_summary_skip_prompt() {
        true => go(app, id, None),
        false => ask(app, id),
    }
}

/// How a branch is summed up.
struct Summary {
    instructions: Option<String>,
}

fn ask(app: &mut App, id: String) {
    let answers = ["No summary", "Summarize", "Summarize with custom prompt"];
    let answered = move |app: &mut App, answer: Option<usize>| match answer {
        Some(0) => go(app, id, None),
        Some(1) => go(app, id, Some(Summary { instructions: None })),
        Some(_) => ask_for_instructions(app, id),
        None => tree::open(app, Some(id)),
    };
    app.open(Question::new("Summarize branch?", "", &answers, answered));
}

fn ask_for_instructions(app: &mut App, id: String) {
    let written = move |app: &mut App, text: Option<String>| match text {
        Some(text) => {
            let instructions = Some(text).filter(|text| !text.trim().is_empty());
            go(app, id, Some(Summary { instructions }));
        }
        None => ask(app, id),
    };
    app.open(compose::Compose::new("Custom summarization instructions", written));
}

fn go(app: &mut App, id: String, summary: Option<Summary>) {
    // What was chosen goes before what runs.
    if app.activity.is_busy() || !app.control.is_idle() {
        app.take_back();
        app.control.abort();
    }
    let ticket = match app.control.begin_compaction() {
        Ok(ticket) => ticket,
        Err(_) => {
            return app.say(
                Weight::Error,
                "Wait for the current compaction or tree navigation to finish before navigating the session tree.",
            );
        }
    };
    app.run(move |session, feed| {
        if summary.is_some() {
            feed.task(|app| {
                app.activity.other = Some(("Summarizing branch".to_owned(), Instant::now()));
            });
        }
        let how = Move {
            summarize: summary.is_some(),
            instructions: summary.as_ref().and_then(|summary| summary.instructions.as_deref()),
            ..Move::default()
        };
        let moved = session.navigate(&id, how, &mut work::listener(feed), &ticket.cancel);
        drop(ticket);
        feed.task(move |app| {
            app.activity.other = None;
            arrive(app, id, moved);
            app.send_held();
        });
    });
}

fn arrive(app: &mut App, id: String, moved: Result<Moved, NotCompacted>) {
    match moved {
        Ok(moved) if moved.aborted => {
            app.say(Weight::Info, "Branch summarization cancelled");
            tree::open(app, Some(id));
        }
        Ok(moved) if moved.cancelled => app.say(Weight::Info, "Navigation cancelled"),
        Ok(moved) => {
            app.begin_conversation();
            if let Some(text) = moved.editor_text
                && app.editor.is_empty()
            {
                app.editor.set_text(&text);
            }
            app.say(Weight::Info, "Navigated to selected point");
        }
        Err(error) => app.say(Weight::Error, &error.to_string()),
    }
}

/// `/tree`.
pub fn tree(app: &mut App, _: &str) {
    tree::open(app, None);
}

/// `/fork`: a new session that ends before one of the prompts.
pub fn fork(app: &mut App, _: &str) {
    if app.control.entry_count() <= AT_ONCE {
        let points = app.control.fork_points();
        return fork::open(app, points);
    }
    let (control, feed) = (app.control.clone(), app.feed.clone());
    app.begin_thread("fork", move || {
        let points = control.fork_points();
        feed.task(move |app| fork::open(app, points));
    });
}

/// Goes on in a fork that ends before this prompt, which is in the editor then.
pub fn fork_at(app: &mut App, id: String) {
    app.control.abort();
    app.run(move |session, feed| match session.fork_before(&id) {
        Ok(text) => feed.task(move |app| {
            app.begin_conversation();
            app.editor.set_text(&text);
            app.say(Weight::Info, "Forked to new session");
        }),
        Err(Fatal(reason)) => work::say(feed, Weight::Error, reason),
    });
}
