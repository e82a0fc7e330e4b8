//! Goes to another entry of the session, or forks a session at one.

use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::command::clipboard;
use crate::mode::interactive::dialog::compose::Compose;
use crate::mode::interactive::dialog::fork;
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::dialog::tree::{Filter, Tree};
use crate::mode::interactive::effect::{Effect, Summary, Update};
use crate::mode::interactive::work;
use crate::runtime::Fatal;
use crate::runtime::compaction::NotCompacted;
use crate::runtime::outline::ForkPoint;
use crate::runtime::tree::{Move, Moved};
use serde_json::Value;

/// Entries that are read immediately; a longer session is read on another thread.
const ENTRIES_AT_ONCE: usize = 500;

/// Entries that are searched for prompts immediately.
const FORKS_AT_ONCE: usize = 2_000;

/// `/tree`.
pub fn tree(app: &mut App, _: &str) {
    open(app, None);
}

/// Opens the tree with the entry `begin` selected, or the current one.
pub fn open(app: &mut App, begin: Option<String>) {
    let count = app.control.tree().entry_count();
    if count == 0 {
        return app.note("No entries in session");
    }
    let config = app.control.config();
    let filter = config.settings.get("treeFilterMode").and_then(Value::as_str).and_then(Filter::parse);
    let mut tree = Tree::new(filter.unwrap_or_default(), begin);
    let home = app.config.places.home.clone();
    if count <= ENTRIES_AT_ONCE {
        tree.take(app.control.tree().outline(&home));
        return app.open(tree);
    }
    app.open(tree);
    let control = app.control.clone();
    app.find_out("tree", move || Effect::Update(Update::Outline(Some(control.tree().outline(&home)))));
}

pub fn copy_entry(app: &mut App, id: &str) {
    match app.control.tree().entry_text(id) {
        Some(text) => clipboard::copy(app, text, "Copied selected message to clipboard"),
        None => app.error("Selected entry has no text to copy"),
    }
}

/// Goes to the chosen entry, after asking whether to summarise the abandoned branch.
pub fn go_to(app: &mut App, id: String) {
    if app.control.log().leaf() == Some(&id) {
        return app.note("Already at this point");
    }
    match app.control.config().settings.branch_summary_skip_prompt() {
        true => navigate(app, id, None),
        false => ask_summary(app, id),
    }
}

pub fn ask_summary(app: &mut App, id: String) {
    let answers = ["No summary", "Summarize", "Summarize with custom prompt"];
    let then = move |answer| {
        vec![match answer {
            Some(0) => Effect::Navigate { id, summary: None },
            Some(1) => Effect::Navigate { id, summary: Some(Summary { instructions: None }) },
            Some(_) => Effect::AskInstructions(id),
            None => Effect::OpenTree(Some(id)),
        }]
    };
    app.open(question("Summarize branch?", "", &answers, then));
}

pub fn ask_instructions(app: &mut App, id: String) {
    let then = move |text: Option<String>| match text {
        Some(text) => {
            let instructions = Some(text).filter(|text| !text.trim().is_empty());
            Effect::Navigate { id, summary: Some(Summary { instructions }) }
        }
        None => Effect::AskSummary(id),
    };
    app.open(Compose::new("Custom summarization instructions", then));
}

/// Goes to an entry on the session's thread; with `summary` the abandoned branch is summarised.
pub fn navigate(app: &mut App, id: String, summary: Option<Summary>) {
    // What was chosen goes before what runs.
    if app.status.activity.is_busy() || !app.control.is_idle() {
        app.take_back();
        app.control.abort();
    }
    let Ok(ticket) = app.control.begin_compaction() else {
        return app.error(
            "Wait for the current compaction or tree navigation to finish before navigating the session tree.",
        );
    };
    app.run(move |session, feed| {
        if summary.is_some() {
            feed.effect(Effect::Busy(Some("Summarizing branch")));
        }
        let how = Move {
            summarize: summary.is_some(),
            instructions: summary.as_ref().and_then(|summary| summary.instructions.as_deref()),
            ..Move::default()
        };
        let moved = session.navigate(&id, how, &mut work::listener(feed), &ticket.cancel);
        drop(ticket);
        feed.effect(Effect::Navigated { id, moved: Box::new(moved) });
    });
}

pub fn arrive(app: &mut App, id: String, moved: Result<Moved, NotCompacted>) {
    app.status.activity.other = None;
    match moved {
        Ok(moved) if moved.aborted => {
            app.note("Branch summarization cancelled");
            open(app, Some(id));
        }
        Ok(moved) if moved.cancelled => app.note("Navigation cancelled"),
        Ok(moved) => {
            app.begin_conversation();
            if let Some(text) = moved.editor_text
                && app.composer.editor.is_empty()
            {
                app.composer.editor.set_text(&text);
            }
            app.note("Navigated to selected point");
        }
        Err(error) => app.error(&error.to_string()),
    }
    app.send_held();
}

/// `/fork`: starts a new session that ends before one of the prompts.
pub fn fork(app: &mut App, _: &str) {
    let control = app.control.clone();
    if control.tree().entry_count() <= FORKS_AT_ONCE {
        return list_forks(app, &control.tree().fork_points());
    }
    app.find_out("fork", move || Effect::ListForks(control.tree().fork_points()));
}

pub fn list_forks(app: &mut App, points: &[ForkPoint]) {
    match points.is_empty() {
        true => app.note("No messages to fork from"),
        false => app.open(fork::fork(points)),
    }
}

/// Opens a fork that ends before a prompt, with the prompt in the editor.
pub fn fork_at(app: &mut App, id: String) {
    app.control.abort();
    app.run(move |session, feed| match session.fork_before(&id) {
        Ok(Some(text)) => feed.effect(Effect::Forked(text)),
        Ok(None) => feed.say(Weight::Info, "An extension kept this session open".to_owned()),
        Err(Fatal(reason)) => feed.say(Weight::Error, reason),
    });
}

pub fn forked(app: &mut App, text: &str) {
    app.begin_conversation();
    app.composer.editor.set_text(text);
    app.note("Forked to new session");
}
