//! `/undo [n]`: takes back what tools did to files, after it was shown and agreed to.

use super::app::App;
use super::card::Weight;
use super::dialog::Question;
use super::look::{Look, indented};
use super::work;
use crate::runtime::Fatal;
use crate::runtime::undo::{self, Action, Journal, Plan, Undone};
use crate::tui::diff_view;
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::path::PathBuf;

/// Rows of one file's change that are shown.
const DIFF_ROWS: usize = 60;

/// What would happen to a file, and how that looks.
struct Planned {
    plan: Plan,
    diff: Option<String>,
}

/// `/undo`: the last change, or the last `n`.
pub fn run(app: &mut App, arguments: &str) {
    let count = match arguments {
        "" => 1,
        "all" => usize::MAX,
        number => match number.parse() {
            Ok(count @ 1..) => count,
            _ => return app.say(Weight::Error, "Usage: /undo [number of changes, or all]"),
        },
    };
    if !app.control.is_idle() {
        // It would not know what has become of its files.
        return app.say(Weight::Warning, "Wait for the end of the run before /undo");
    }
    let Some(session) = app.control.snapshot().session_file else {
        return app
            .say(Weight::Warning, "This session is not stored, and so are no earlier contents of files");
    };
    let home = app.control.log().header().cwd.clone();
    let store = app.store.clone();
    let feed = app.feed.clone();
    app.begin_thread("undo", move || {
        let journal = Journal::new(&session);
        let steps = match journal.steps() {
            Ok(steps) => steps,
            Err(error) => {
                let text = format!("Could not read what can be undone: {error}");
                return work::say(&feed, Weight::Error, text);
            }
        };
        let first = steps.len().saturating_sub(count);
        let plans = undo::plan(&journal, steps.get(first..).unwrap_or_default());
        let doubts = undo::doubts(&session, &home, &store, &plans);
        let planned: Vec<Planned> =
            plans.into_iter().map(|plan| Planned { diff: undo::preview(&journal, &plan), plan }).collect();
        feed.task(move |app| ask(app, session, planned, &doubts));
    });
}

fn ask(app: &mut App, session: PathBuf, planned: Vec<Planned>, doubts: &[String]) {
    let is_open = |planned: &Planned| matches!(planned.plan.action, Action::Restore | Action::Remove);
    if planned.is_empty() {
        return app.say(Weight::Info, "There is nothing to undo");
    }
    let look = app.stage.look();
    let lines = planned.iter().flat_map(|planned| file(planned, &look));
    let lines: Vec<Line> = lines.collect();
    app.print(lines);
    if !planned.iter().any(is_open) {
        return app.say(Weight::Info, "There is nothing to undo");
    }
    let conflicts = planned.iter().filter(|planned| planned.plan.conflict.is_some()).count();
    let text = match conflicts {
        0 => "The changes above are made.".to_owned(),
        _ => "Files marked above were changed by somebody else since; that would be lost.".to_owned(),
    };
    let mut text = text;
    for doubt in doubts {
        text.push_str(&format!("\n{doubt}"));
    }
    let answers: &[&str] = match conflicts {
        0 => &["Undo", "Cancel"],
        _ => &["Undo only what nobody else has changed", "Undo all, and lose what others changed", "Cancel"],
    };
    let answered = move |app: &mut App, answer: Option<usize>| {
        let forces = match (answer, conflicts) {
            (Some(0), _) => false,
            (Some(1), 1..) => true,
            _ => return app.say(Weight::Info, "Nothing was undone"),
        };
        let plans = planned.into_iter().map(|planned| planned.plan).collect();
        carry_out(app, session, plans, forces);
    };
    app.open(Question::new("Undo changes of files?", &text, answers, answered));
}

/// On the session's thread: no run can begin meanwhile.
fn carry_out(app: &mut App, session: PathBuf, plans: Vec<Plan>, forces: bool) {
    app.run(move |conversation, feed| {
        let backend = conversation.workspace().backend.clone();
        let done = undo::carry_out(&Journal::new(&session), plans, forces, backend.sandbox());
        let told = conversation.note_undone(&done);
        feed.task(move |app| {
            let look = app.stage.look();
            let lines = done.iter().flat_map(|done| result(done, &look));
            let lines: Vec<Line> = std::iter::once(Line::new()).chain(lines).collect();
            app.print(lines);
            if let Err(Fatal(reason)) = told {
                app.say(Weight::Warning, &format!("The model is not told: {reason}"));
            }
        });
    });
}

/// What would happen to a file.
fn file(planned: &Planned, look: &Look<'_>) -> Vec<Line> {
    let plan = &planned.plan;
    let what = match &plan.action {
        Action::Restore => "restore",
        Action::Remove => "remove",
        Action::Nothing => "as it was",
        Action::Impossible(_) => "cannot be undone",
    };
    let mut title = Line::of(what, look.style(Role::ToolTitle).with(Attributes::BOLD));
    title.push(&format!(" {}", look.path(&plan.path)), look.style(Role::Accent));
    let problem = match &plan.action {
        Action::Impossible(why) => Some(why),
        _ => plan.conflict.as_ref(),
    };
    if let Some(problem) = problem {
        title.push(&format!(": {problem}"), look.style(Role::Warning));
    }
    let width = look.width.saturating_sub(2).max(1);
    let mut lines = wrap(&title, width);
    if let Some(diff) = &planned.diff {
        let shown = diff_view::lines(diff, look.theme, width);
        let more = shown.len().saturating_sub(DIFF_ROWS);
        lines.extend(shown.into_iter().take(DIFF_ROWS));
        if more > 0 {
            let text = format!("... ({more} more lines)");
            lines.push(Line::of(&text, look.style(Role::Muted)));
        }
    }
    std::iter::once(Line::new()).chain(indented(lines)).collect()
}

/// What came of it.
fn result(done: &Undone, look: &Look<'_>) -> Vec<Line> {
    let path = look.path(&done.plan.path);
    let (text, role) = match (&done.error, &done.plan.action) {
        (Some(error), _) => (format!("Not undone {path}: {error}"), Role::Error),
        (None, Action::Restore) => (format!("Restored {path}"), Role::Success),
        (None, Action::Remove) => (format!("Removed {path}"), Role::Success),
        (None, _) => (format!("As it was {path}"), Role::Dim),
    };
    let width = look.width.saturating_sub(2).max(1);
    indented(wrap(&Line::of(&text, look.style(role)), width))
}
