//! The slash commands: one table of names, descriptions and functions.

pub mod agents;
pub mod aside;
pub mod clipboard;
pub mod editor;
pub mod jobs;
pub mod login;
pub mod models;
pub mod permissions;
pub mod resume;
pub mod session;
pub mod settings;
pub mod shell;
pub mod thinking;
pub mod tree;
pub mod trust;
pub mod undo;

use crate::base::distance::{Compare, between, letters};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::{self, Weight};
use crate::mode::interactive::config;
use crate::mode::interactive::dialog;
use crate::mode::interactive::effect::{Effect, ThemeFor};
use crate::mode::interactive::feed::Feed;
use crate::mode::interactive::work;
use crate::runtime::Fatal;
use crate::runtime::control::{Control, Streaming};
use crate::tui::select::Item;
use serde_json::Value;

/// A built-in slash command.
pub struct Command {
    pub name: &'static str,
    /// Hint about the command's argument.
    pub hint: Option<&'static str>,
    pub about: &'static str,
    run: fn(&mut App, &str),
}

const fn row(
    name: &'static str,
    hint: Option<&'static str>,
    about: &'static str,
    run: fn(&mut App, &str),
) -> Command {
    Command { name, hint, about, run }
}

pub const COMMANDS: &[Command] = &[
    row("new", None, "Start a new session", new),
    row("name", Some("[name]"), "Name this session, or say its name", name),
    row("compact", Some("[instructions]"), "Replace the conversation so far by a summary", compact),
    row("clone", None, "Go on in a copy of this session", clone),
    row("resume", None, "Go on with another session", resume::list),
    row("tree", None, "Go to another entry of this session", tree::tree),
    row("fork", None, "Begin anew at an earlier prompt, in a new session", tree::fork),
    row("undo", Some("[n|all]"), "Take back what was done to files since the last prompt", undo::run),
    row("rewind", None, "Go back to an earlier prompt: conversation, files or both", undo::rewind),
    row(
        "jobs",
        Some("[id]"),
        "Commands in the background: list, look at, run, stop, send text to",
        jobs::run,
    ),
    row("agents", None, "Helpers of this session: look at, write to, stop, go on with", agents::run),
    row("plan", Some("[off|prompt]"), "Plan mode: look around and propose, change nothing", aside::plan),
    row("btw", Some("<question>"), "Ask beside the conversation, which never sees it", aside::btw),
    row("handoff", Some("<goal>"), "Begin a new session with what matters for a goal", aside::handoff),
    row(
        "todo",
        Some("[edit]"),
        "What is left to do, as the model keeps it; edit opens it in $EDITOR",
        session::todo,
    ),
    row("session", None, "What this session came to", session::info),
    row("context", None, "What fills the model's window", session::context),
    row(
        "export",
        Some("[path]"),
        "Write the session as a page, as Markdown or as JSON lines",
        session::export,
    ),
    row("import", Some("<path>"), "Go on with a session from a file", session::import),
    row("share", None, "Put the session's page on GitHub as a secret gist", session::share),
    row("copy", None, "Copy the last answer", session::copy),
    row("changelog", None, "What is new in pi", session::changelog),
    row("reload", None, "Read settings, keys, themes, skills and prompts again", reload),
    row("model", Some("[model]"), "Choose the model", models::run),
    row("thinking", Some("[level]"), "Choose how much the model thinks", thinking::run),
    row("scoped-models", None, "Choose the models that keys change between", models::scope),
    row("theme", None, "Choose the colours", |app, _| settings::choose_theme(app, ThemeFor::All)),
    row("settings", None, "Look at settings and change them", settings::run),
    row("llama", None, "Load, unload and download models of a llama.cpp router", models::llama),
    row("login", Some("[provider]"), "Sign in, or store an API key", login::run),
    row("logout", None, "Remove a stored sign-in or key", login::leave),
    row("tools", None, "Choose the tools of this session", models::tools),
    row(
        "permissions",
        None,
        "Choose which tool calls are asked about, and the rules for them",
        permissions::run,
    ),
    row("trust", None, "Decide whether this project is trusted", trust::run),
    row("help", None, "List the commands", help),
    row("hotkeys", None, "Show what keys do", hotkeys),
    row("init", None, "Have the model write the project's AGENTS.md", init),
    row("review", None, "Have the model review the changes that are not committed", review),
    row("diff", None, "Show the changes that are not committed", diff),
    row("quit", None, "Leave pi", |app, _| app.requests.ends = true),
];

/// Other names of commands, as users of other programs know them.
pub const ALIASES: &[(&str, &str)] =
    &[("clear", "new"), ("exit", "quit"), ("cost", "session"), ("status", "session")];

/// Commands that the reference does not have. A command of an extension takes the place of one of these, and of an
/// alias, so that extensions of the reference have the names that they count on.
const GIVE_WAY: &[&str] = &[
    "agents",
    "btw",
    "context",
    "diff",
    "handoff",
    "help",
    "init",
    "jobs",
    "permissions",
    "plan",
    "review",
    "rewind",
    "theme",
    "todo",
    "tools",
    "undo",
];

const INIT: &str = "Look at this project: its build files, its layout, its tests and its conventions. Then write a \
    short AGENTS.md in its root that tells a coding agent what it needs: how to build, test and check, where things \
    are, and rules that cannot be seen from one file. Keep what an existing AGENTS.md says and is still right.";
const REVIEW: &str = "Review the changes in this repository that are not committed (staged, unstaged and new files). \
    Report bugs, missing tests and unclear parts, the worst first, each with its file and line and what to do about \
    it. Change no file.";

/// Runs a slash command; false if `line` names no built-in command.
pub fn run(app: &mut App, line: &str) -> bool {
    let Some(call) = line.strip_prefix('/') else {
        return false;
    };
    let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name);
    if (own != name || GIVE_WAY.contains(&name)) && app.control.added_command(line).is_some() {
        return false;
    }
    let name = own;
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => {
            (command.run)(app, arguments.trim());
            true
        }
        None => false,
    }
}

/// A line that names a command which does not exist: its name, and the most similar one.
pub fn unknown(control: &Control, line: &str) -> Option<(String, Option<String>)> {
    let name = line.strip_prefix('/')?.split_whitespace().next()?;
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_:".contains(letter));
    let known: Vec<String> = control
        .commands()
        .iter()
        .filter_map(|value| value.get("name")?.as_str().map(str::to_owned))
        .chain(COMMANDS.iter().map(|command| command.name.to_owned()))
        .collect();
    if !is_name || known.iter().any(|other| other == name) {
        return None;
    }
    let near = known.into_iter().map(|other| {
        let distance = between(&letters(name), &letters(&other), Compare::Whole);
        (distance, other)
    });
    let near = near.min().filter(|(distance, _)| *distance <= 2);
    Some((name.to_owned(), near.map(|(_, other)| other)))
}

/// All slash commands: name, hint, description.
pub fn all(control: &Control) -> Vec<(String, Option<String>, String)> {
    let own = COMMANDS.iter().map(|command| {
        let hint = command.hint.map(str::to_owned);
        (command.name.to_owned(), hint, command.about.to_owned())
    });
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let others = control.commands().into_iter();
    let others = others.map(|value| (text(&value, "name"), None, text(&value, "description")));
    let offers_skills = config::flag(&control.config().settings, "enableSkillCommands").unwrap_or(true);
    let others = others.filter(|(name, ..)| {
        COMMANDS.iter().all(|command| command.name != name) && (offers_skills || !name.starts_with("skill:"))
    });
    own.chain(others).collect()
}

/// Completions for a command's argument.
pub fn arguments(control: &Control, command: &str, text: &str) -> Vec<Item> {
    match command {
        "login" => login::arguments(control, text),
        "model" => models::arguments(control, text),
        "thinking" => thinking::arguments(control, text),
        _ => Vec::new(),
    }
}

fn help(app: &mut App, _: &str) {
    let mut text = String::from("| Command | Does |\n|---|---|\n");
    for (name, hint, about) in all(&app.control) {
        let hint = hint.map_or_else(String::new, |hint| format!(" {hint}"));
        let row = format!("| `/{name}{}` | {} |\n", hint.replace('|', "\\|"), about.replace('|', "\\|"));
        text.push_str(&row.replace('\n', " "));
        text.push('\n');
    }
    text.push_str("\n`!command` runs a command, `!!command` without telling the model, `@` names a file. ");
    text.push_str("`/hotkeys` lists the keys, `pi docs` has the manual.");
    let lines = card::text(&text, &app.config.look());
    app.print(lines);
}

fn init(app: &mut App, _: &str) {
    app.prompt(INIT.to_owned(), Vec::new(), Streaming::FollowUp);
}

fn review(app: &mut App, arguments: &str) {
    let about =
        if arguments.is_empty() { String::new() } else { format!(" Look at this first: {arguments}") };
    app.prompt(format!("{REVIEW}{about}"), Vec::new(), Streaming::FollowUp);
}

fn diff(app: &mut App, arguments: &str) {
    shell::run(app, format!("!git --no-pager diff --no-color HEAD {arguments}").trim_end());
}

fn new(app: &mut App, _: &str) {
    app.control.abort();
    app.run(|session, feed| {
        let started = session.start_new(None);
        replaced(feed, started, "✓ New session started");
    });
}

fn clone(app: &mut App, _: &str) {
    app.run(|session, feed| {
        let cloned = session.fork_here();
        replaced(feed, cloned, "Cloned to new session");
    });
}

/// Reports that the session's thread has opened another conversation.
pub fn replaced(feed: &Feed, done: Result<bool, Fatal>, text: &'static str) {
    match done {
        Ok(false) => feed.say(Weight::Info, "An extension kept this session open".to_owned()),
        Ok(true) => feed.effect(Effect::Begin(text.to_owned())),
        Err(Fatal(reason)) => feed.say(Weight::Error, reason),
    }
}

fn name(app: &mut App, arguments: &str) {
    if arguments.is_empty() {
        let now = app.control.snapshot();
        return match now.session_name {
            Some(name) => app.note(&format!("Session name: {name}")),
            None => app.note("This session has no name. Usage: /name <name>"),
        };
    }
    let feed = app.threads.feed.clone();
    match app.control.set_name(arguments, &mut |event| feed.event(event)) {
        Ok(()) => {
            let name = app.control.snapshot().session_name.unwrap_or_default();
            if name != arguments {
                let text = format!("Session name was normalized from {arguments:?} to {name:?}");
                app.warn(&text);
            }
            app.note(&format!("Session name set: {name}"));
        }
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

fn compact(app: &mut App, arguments: &str) {
    let instructions = Some(arguments.to_owned()).filter(|text| !text.is_empty());
    match app.control.begin_compaction() {
        Ok(ticket) => app.run(move |session, feed| {
            // Its end is told by an event.
            let _ = session.compact(instructions.as_deref(), &mut work::listener(feed), &ticket.cancel);
            drop(ticket);
        }),
        Err(reason) => app.error(&reason),
    }
}

fn reload(app: &mut App, _: &str) {
    if !app.control.is_idle() {
        return app.warn("Wait for the end of the run before /reload");
    }
    let was_trusted = app.control.config().settings.has_project();
    app.run(move |session, feed| match session.reload() {
        Ok(()) => feed.effect(Effect::Reloaded { was_trusted }),
        Err(Fatal(reason)) => feed.say(Weight::Error, reason),
    });
}

/// Applies settings and keys that were read again.
pub fn reloaded(app: &mut App, was_trusted: bool) {
    app.config.drawings.clear();
    app.read_settings();
    app.note("Reloaded settings, keys, themes, skills, prompts and context files");
    if was_trusted && !app.control.config().settings.has_project() {
        trust::run(app, "");
    }
}

fn hotkeys(app: &mut App, _: &str) {
    app.open(dialog::hotkeys::hotkeys(&app.config.keymap));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_the_reference_lacks_gives_way_to_extensions() {
        let reference = "changelog clone compact copy export fork hotkeys import llama login logout model name new quit \
            reload resume scoped-models session settings share thinking tree trust";
        let is_own = |name: &&str| !reference.split_whitespace().any(|known| known == *name);
        let mut own: Vec<&str> = COMMANDS.iter().map(|command| command.name).filter(is_own).collect();
        own.sort_unstable();
        assert_eq!(own, GIVE_WAY);
    }
}
