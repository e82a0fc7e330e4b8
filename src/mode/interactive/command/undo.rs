//! `/undo [n]`: undoes file changes of tools, after showing them and asking.

use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::effect::{Effect, UndoPlan};
use crate::mode::interactive::look::{Look, indented};
use crate::runtime::Fatal;
use crate::runtime::undo::{self, Action, Journal, Plan, Undone};
use crate::tui::diff_view;
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::path::PathBuf;

/// Diff rows shown for a file.
const DIFF_ROWS: usize = 60;

/// `/undo`: undoes the last change, or the last `n`.
pub fn run(app: &mut App, arguments: &str) {
    let count = match arguments {
        "" => 1,
        "all" => usize::MAX,
        number => match number.parse() {
            Ok(count @ 1..) => count,
            _ => return app.error("Usage: /undo [number of changes, or all]"),
        },
    };
    if !app.control.is_idle() {
        // It would not know what has become of its files.
        return app.warn("Wait for the end of the run before /undo");
    }
    let Some(session) = app.control.snapshot().session_file else {
        return app
            .say(Weight::Warning, "This session is not stored, and so are no earlier contents of files");
    };
    let home = app.control.log().header().cwd.clone();
    let store = app.store.clone();
    app.find_out("undo", move || {
        let journal = Journal::new(&session);
        let steps = match journal.steps() {
            Ok(steps) => steps,
            Err(error) => {
                return Effect::Say(Weight::Error, format!("Could not read what can be undone: {error}"));
            }
        };
        let first = steps.len().saturating_sub(count);
        let plans = undo::plan(&journal, steps.get(first..).unwrap_or_default());
        let doubts = undo::doubts(&session, &home, &store, &plans);
        let plans = plans.into_iter().map(|plan| {
            let diff = undo::preview(&journal, &plan);
            (plan, diff)
        });
        let plans = plans.collect();
        Effect::PlanUndo(Box::new(UndoPlan { session, plans, doubts }))
    });
}

/// Shows the planned undo, and asks.
pub fn ask(app: &mut App, planned: UndoPlan) {
    let UndoPlan { session, plans, doubts } = planned;
    let is_open = |(plan, _): &(Plan, _)| matches!(plan.action, Action::Restore | Action::Remove);
    if plans.is_empty() {
        return app.note("There is nothing to undo");
    }
    let look = app.config.look();
    let lines: Vec<Line> = plans.iter().flat_map(|(plan, diff)| file(plan, diff.as_deref(), &look)).collect();
    app.print(lines);
    if !plans.iter().any(is_open) {
        return app.note("There is nothing to undo");
    }
    let conflicts = plans.iter().filter(|(plan, _)| plan.conflict.is_some()).count();
    let mut text = match conflicts {
        0 => "The changes above are made.".to_owned(),
        _ => "Files marked above were changed by somebody else since; that would be lost.".to_owned(),
    };
    for doubt in doubts {
        text.push_str(&format!("\n{doubt}"));
    }
    let answers: &[&str] = match conflicts {
        0 => &["Undo", "Cancel"],
        _ => &["Undo only what nobody else has changed", "Undo all, and lose what others changed", "Cancel"],
    };
    let then = move |answer| {
        let forces = match (answer, conflicts) {
            (Some(0), _) => false,
            (Some(1), 1..) => true,
            _ => return vec![Effect::Note("Nothing was undone".to_owned())],
        };
        let plans = plans.into_iter().map(|(plan, _)| plan).collect();
        vec![Effect::Undo { session, plans, forces }]
    };
    app.open(question("Undo changes of files?", &text, answers, then));
}

/// Undoes on the session's thread, so that no run can begin meanwhile.
pub fn carry_out(app: &mut App, session: PathBuf, plans: Vec<Plan>, forces: bool) {
    app.run(move |conversation, feed| {
        let backend = conversation.workspace().backend.clone();
        let done = undo::carry_out(&Journal::new(&session), plans, forces, backend.sandbox());
        let problem = conversation.note_undone(&done).err().map(|Fatal(reason)| reason);
        feed.effect(Effect::Undone { done, problem });
    });
}

/// Shows what was undone.
pub fn undone(app: &mut App, done: &[Undone], problem: Option<&str>) {
    let look = app.config.look();
    let lines = done.iter().flat_map(|done| result(done, &look));
    let lines: Vec<Line> = std::iter::once(Line::new()).chain(lines).collect();
    app.print(lines);
    if let Some(reason) = problem {
        app.warn(&format!("The model is not told: {reason}"));
    }
}

/// The planned change of a file.
fn file(plan: &Plan, diff: Option<&str>, look: &Look<'_>) -> Vec<Line> {
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
    if let Some(diff) = diff {
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

/// The result for a file.
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
