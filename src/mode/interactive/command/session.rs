//! Commands about the session as a whole: statistics, export, import, sharing.

use super::{clipboard, editor};
use crate::base::file::Passing;
use crate::base::json::json;
use crate::base::order::Order;
use crate::base::packed::{Packed, packed};
use crate::mode::interactive::app::{App, Edited};
use crate::mode::interactive::card::{Weight, grouped};
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::effect::{Effect, Opened};
use crate::mode::interactive::footer::tokens;
use crate::mode::interactive::look::{Look, indented};
use crate::mode::interactive::program::{self, Job};
use crate::runtime::cache_warming::Status;
use crate::runtime::stats::Stats;
use crate::runtime::todo::List;
use crate::runtime::{CancelToken, Fatal, executable};
use crate::tui::line::{Line, link};
use crate::tui::markdown_view;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit of an upload.
const SHARE_LIMIT: Duration = Duration::from_secs(120);

const CHANGELOG: Packed = packed!("CHANGELOG.md");

/// `/copy`: copies the last answer.
pub fn copy(app: &mut App, _: &str) {
    match app.control.last_assistant_text() {
        Some(text) => clipboard::copy(app, text, "Copied last agent message to clipboard"),
        None => app.error("No agent messages to copy yet."),
    }
}

/// `/todo`: shows the list of what is left to do.
pub fn todo(app: &mut App, arguments: &str) {
    if arguments == "edit" {
        return editor::ask_for(app, Edited::Todo);
    }
    let control = app.control.clone();
    app.find_out("todo", move || Effect::Say(Weight::Info, List::of_session(&control).to_string()));
}

/// `/context`: shows what fills the model's window.
pub fn context(app: &mut App, _: &str) {
    let control = app.control.clone();
    app.find_out("context", move || Effect::ShowContext(Box::new(control.filling())));
}

/// `/session`: shows information about the session.
pub fn info(app: &mut App, _: &str) {
    // The log of a long session is long to read.
    let control = app.control.clone();
    app.find_out("session info", move || {
        let name = control.snapshot().session_name;
        Effect::ShowStats { stats: Box::new(control.stats()), name, warming: control.cache_warming() }
    });
}

pub fn show_stats(app: &mut App, stats: &Stats, name: Option<&str>, warming: &Status) {
    let lines = info_lines(stats, name, warming, &app.config.look());
    app.print(lines);
}

fn info_lines(stats: &Stats, name: Option<&str>, warming: &Status, look: &Look<'_>) -> Vec<Line> {
    let dim = look.style(Role::Dim);
    let plain = look.style(Role::Text);
    let mut rows: Vec<Line> = Vec::new();
    let title = |text: &str| Line::of(text, plain.with(Attributes::BOLD));
    let row = |name: &str, value: &str| {
        let mut line = Line::of(&format!("{name}: "), dim);
        line.push(value, plain);
        line
    };
    let file = stats.session_file.as_deref().unwrap_or("In-memory");
    rows.push(title("Session Info"));
    rows.push(Line::new());
    rows.extend(name.map(|name| row("Name", name)));
    rows.push(row("File", file));
    rows.push(row("ID", &stats.session_id));
    rows.push(Line::new());
    rows.push(title("Messages"));
    rows.push(row("Total", &grouped(stats.total_messages)));
    rows.push(row("User", &grouped(stats.user_messages)));
    rows.push(row("Assistant", &grouped(stats.assistant_messages)));
    let (calls, results) = (grouped(stats.tool_calls), grouped(stats.tool_results));
    rows.push(row("Tools", &format!("{calls} calls, {results} results")));
    rows.push(Line::new());
    rows.push(title("Tokens"));
    let used = &stats.tokens;
    let stored = used.cache_read.saturating_add(used.cache_write);
    let prompt = used.input.saturating_add(stored);
    rows.push(row("Input", &grouped(prompt)));
    if stored > 0 {
        let rate = used.cache_read as f64 * 100.0 / prompt as f64;
        let cached = format!("{} ({rate:.1}%)", grouped(used.cache_read));
        rows.push(row("  Cached", &cached));
        let written = match used.cache_write {
            0 => String::new(),
            written => format!(" ({} written to cache)", grouped(written)),
        };
        let uncached = grouped(used.input.saturating_add(used.cache_write));
        rows.push(row("  Uncached", &format!("{uncached}{written}")));
    }
    rows.push(row("Output", &grouped(used.output)));
    rows.push(row("Total", &grouped(used.total)));
    rows.push(Line::new());
    rows.push(title("Cache Warming"));
    rows.push(row("Mode", &warming.mode));
    rows.push(row("Status", &warming.text));
    if let Some(estimate) = &warming.estimate {
        rows.push(row("Cache miss penalty", &format!("${:.3}", estimate.miss_cost)));
        rows.push(row("Refresh cost", &format!("${:.3}", estimate.warm_cost)));
    }
    if stats.cost > 0.0 {
        rows.push(Line::new());
        rows.push(title("Cost"));
        rows.push(row("Total", &format!("${:.3}", stats.cost)));
        let mut parts: Vec<_> = stats.by_model.iter().collect();
        parts.order_by(|a, b| b.cost.total_cmp(&a.cost));
        if parts.len() > 1 {
            rows.extend(parts.iter().map(|part| {
                let spent = format!("${:.3} ({} tokens)", part.cost, tokens(part.tokens));
                row(&format!("  {}", part.name), &spent)
            }));
        }
    }
    let width = look.width.saturating_sub(2).max(1);
    let rows = rows.iter().flat_map(|line| wrap(line, width));
    std::iter::once(Line::new()).chain(indented(rows)).collect()
}

/// `/export [path]`.
pub fn export(app: &mut App, arguments: &str) {
    let path = path_argument(app, arguments);
    let control = app.control.clone();
    app.find_out("export", move || match control.export(path.as_deref()) {
        Ok(path) => Effect::Say(Weight::Info, format!("Session exported to: {}", path.display())),
        Err(error) => Effect::Say(Weight::Error, format!("Failed to export session: {error}")),
    });
}

/// The first word, which may be in quotes; a leading `~` is the user's home.
fn path_argument(app: &App, arguments: &str) -> Option<PathBuf> {
    let word = first_word(arguments)?;
    Some(app.dirs.resolve(word, &app.config.places.cwd))
}

fn first_word(arguments: &str) -> Option<&str> {
    let arguments = arguments.trim_start();
    let word = match arguments.chars().next()? {
        quote @ ('"' | '\'') => arguments.get(1..)?.split_once(quote)?.0,
        _ => arguments.split_whitespace().next()?,
    };
    (!word.is_empty()).then_some(word)
}

/// `/import <path>`.
pub fn import(app: &mut App, arguments: &str) {
    let (Some(word), Some(path)) = (first_word(arguments), path_argument(app, arguments)) else {
        return app.error("Usage: /import <path.jsonl>");
    };
    let (word, text) = (word.to_owned(), format!("Replace current session with {word}?"));
    let then = move |answer| match answer {
        Some(0) => vec![Effect::Import { path, word }],
        _ => vec![Effect::Note("Import cancelled".to_owned())],
    };
    app.open(question("Import session", &text, &["Yes", "No"], then));
}

/// Copies a session file into the session folder, and opens the copy.
pub fn import_from(app: &mut App, path: PathBuf, word: String) {
    app.control.abort();
    app.run(move |session, feed| match session.import(&path) {
        Ok((imported, copy)) => {
            let done = format!("Session imported from: {word}");
            let copy = copy.map(Arc::new);
            feed.effect(Effect::Open(Opened { copy, ..Opened::new(imported, &done) }));
        }
        Err(Fatal(reason)) => feed.say(Weight::Error, format!("Failed to import session: {reason}")),
    });
}

/// `/share`: uploads the page as a gist that only people with its address can see.
pub fn share(app: &mut App, _: &str) {
    if executable::find("gh").is_none() {
        return app.error("GitHub CLI (gh) is not installed. Install it from https://cli.github.com/, then run 'gh auth login'.");
    }
    let (control, cancel) = (app.control.clone(), app.threads.cancel.clone());
    app.status.activity.other = Some(("Creating gist", Instant::now()));
    app.find_out("share", move || {
        Effect::Shared(upload(&cancel, |page| {
            control.export(Some(page)).map(drop).map_err(|error| format!("Failed to export session: {error}"))
        }))
    });
}

/// Shows the address of the shared page, or why sharing failed.
pub fn shared(app: &mut App, address: Result<String, String>) {
    app.status.activity.other = None;
    match address {
        Ok(address) => {
            let lines = address_lines(&address, &app.config.look());
            app.print(lines);
        }
        Err(reason) => app.error(&reason),
    }
}

/// Uploads the page; returns the gist's address.
fn upload(
    cancel: &CancelToken,
    export: impl FnOnce(&std::path::Path) -> Result<(), String>,
) -> Result<String, String> {
    let gh = |arguments: &[&str]| {
        let job = Job { arguments, input: Vec::new(), is_read: true, limit: SHARE_LIMIT, cancel };
        program::run("gh", job).map_err(|error| format!("Cannot run gh: {error}"))
    };
    if !gh(&["auth", "status"])?.is_success {
        return Err("GitHub CLI is not logged in. Run 'gh auth login' first.".to_owned());
    }
    let folder =
        Passing::folder("share").map_err(|error| format!("Cannot make a folder for the page: {error}"))?;
    let page = folder.path().join("session.html");
    export(&page)?;
    let ran = gh(&["gist", "create", "--public=false", &page.to_string_lossy()])?;
    if !ran.is_success {
        let why = match ran.errors.as_str() {
            "" => "Unknown error",
            errors => errors,
        };
        return Err(format!("Failed to create gist: {why}"));
    }
    let output = String::from_utf8_lossy(&ran.output);
    let address = output.lines().map(str::trim).rfind(|line| !line.is_empty());
    address.map(str::to_owned).ok_or_else(|| "Failed to parse gist ID from gh output".to_owned())
}

fn address_lines(address: &str, look: &Look<'_>) -> Vec<Line> {
    let dim = look.style(Role::Dim);
    let mut line = Line::of("Gist: ", dim);
    line.push_link(address, dim, link(address).as_ref());
    let width = look.width.saturating_sub(2).max(1);
    let mut lines = vec![Line::new()];
    lines.extend(indented(wrap(&line, width)));
    if let Some(viewer) = std::env::var("PI_SHARE_VIEWER_URL").ok().filter(|viewer| !viewer.is_empty()) {
        let id = address.rsplit('/').next().unwrap_or_default();
        let address = format!("{viewer}#{id}");
        let mut line = Line::of("Share URL: ", dim);
        line.push_link(&address, dim, link(&address).as_ref());
        lines.extend(indented(wrap(&line, width)));
    }
    lines
}

/// `/changelog`: shows what is new in this program, as extensions have it shown.
pub fn changelog(app: &mut App, _: &str) {
    let text = CHANGELOG.text();
    let Some(renderer) = app.control.renderer("markdown", "changelog") else {
        return print_changelog(app, &text);
    };
    let width = app.config.look().width.saturating_sub(2).max(1);
    let cancel = app.control.root().clone();
    app.find_out("changelog", move || {
        let context = json!({"messageType": "changelog", "isStreaming": false, "availableWidth": width});
        let part = json!({"kind": "markdown", "text": &text, "context": context});
        let changed = renderer.draw(part, &cancel).map(|lines| lines.concat());
        Effect::ShowChangelog(changed.unwrap_or(text))
    });
}

pub fn print_changelog(app: &mut App, text: &str) {
    let look = app.config.look();
    let width = look.width.saturating_sub(2).max(1);
    let rule = look.rule(look.style(Role::Border));
    let title = look.style(Role::Accent).with(Attributes::BOLD);
    let mut lines = vec![Line::new(), rule.clone()];
    lines.extend(indented([Line::of("What's New", title), Line::new()]));
    let markdown = look.markdown(width, look.style(Role::Text));
    lines.extend(indented(markdown_view::lines(text.trim_start_matches("# Changelog"), &markdown)));
    lines.push(rule);
    app.print(lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_be_in_quotes() {
        for (arguments, expected) in [
            ("a.html", Some("a.html")),
            ("  a b", Some("a")),
            ("\"a b.md\" c", Some("a b.md")),
            ("'a \"b'", Some("a \"b")),
            ("\"a", None),
            ("\"\"", None),
            ("", None),
        ] {
            assert_eq!(first_word(arguments), expected, "{arguments:?}");
        }
    }
}
