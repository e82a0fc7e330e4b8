//! `/undo [n]` and `/rewind`: undo changes of files by tools and commands, after showing them and asking.

use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::command::tree;
use crate::mode::interactive::dialog::fork;
use crate::mode::interactive::dialog::question::question;
use crate::mode::interactive::effect::{Effect, UndoPlan};
use crate::mode::interactive::look::{Look, indented};
use crate::runtime::Fatal;
use crate::runtime::outline::ForkPoint;
use crate::runtime::undo::{self, Action, Journal, Plan, Undone, Wanted};
use crate::tui::diff_view;
use crate::tui::line::Line;
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use std::path::PathBuf;

/// Diff rows shown for a file.
const DIFF_ROWS: usize = 60;

/// `/undo`: undoes what changed since the last prompt, or the last `n` changes.
pub fn run(app: &mut App, arguments: &str) {
    let wanted = match arguments {
        "" => Wanted::LastPrompt,
        "all" => Wanted::Steps(usize::MAX),
        number => match number.parse() {
            Ok(count @ 1..) => Wanted::Steps(count),
            _ => return app.error("Usage: /undo [number of changes, or all]"),
        },
    };
    plan(app, wanted, None);
}

/// `/rewind`: lists the prompts to go back to.
pub fn rewind(app: &mut App, _: &str) {
    let control = app.control.clone();
    app.find_out("rewind", move || Effect::ListRewinds(control.tree().fork_points()));
}

pub fn list_prompts(app: &mut App, points: &[ForkPoint]) {
    match points.is_empty() {
        true => app.note("No prompts to go back to"),
        false => app.open(fork::rewind(points)),
    }
}

pub fn ask_rewind(app: &mut App, id: String) {
    let text = "What comes after the prompt stays in the session's tree.";
    let answers = ["Conversation and files", "Conversation", "Files"];
    let then = move |answer| match answer {
        Some(answer) => vec![Effect::Rewind { id, files: answer != 1, conversation: answer != 2 }],
        None => vec![Effect::Call("/rewind")],
    };
    app.open(question("What goes back to before this prompt?", text, &answers, then));
}

pub fn rewind_to(app: &mut App, id: String, files: bool, conversation: bool) {
    match files {
        true => plan(app, Wanted::Since(id.clone()), conversation.then_some(id)),
        false => tree::navigate(app, id, None),
    }
}

/// Finds out what an undo would do. The conversation then goes to the entry `goes_to`.
fn plan(app: &mut App, wanted: Wanted, goes_to: Option<String>) {
    if !app.control.is_idle() {
        // It would not know what has become of its files.
        return app.warn("Wait for the end of the run before files are taken back");
    }
    let Some(session) = app.control.snapshot().session_file else {
        return app
            .say(Weight::Warning, "This session is not stored, and so are no earlier contents of files");
    };
    let control = app.control.clone();
    let store = app.store.clone();
    app.find_out("undo", move || {
        let journal = Journal::new(&session);
        let (home, chosen) = {
            let log = control.log();
            (log.header().cwd.clone(), undo::choose(&journal, Some(&log), &wanted))
        };
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(reason) => return Effect::Say(Weight::Error, reason),
        };
        let doubts = undo::doubts(&session, &home, &store, &chosen.plans);
        let plans = chosen.plans.into_iter().map(|plan| {
            let diff = undo::preview(&journal, &plan);
            (plan, diff)
        });
        let plans = plans.collect();
        Effect::PlanUndo(Box::new(UndoPlan { session, plans, doubts, unseen: chosen.unseen, goes_to }))
    });
}

/// Shows the planned undo, and asks.
pub fn ask(app: &mut App, planned: UndoPlan) {
    let UndoPlan { session, plans, doubts, unseen, goes_to } = planned;
    let is_open = |(plan, _): &(Plan, _)| matches!(plan.action, Action::Restore | Action::Remove);
    unseen.iter().for_each(|text| app.warn(text));
    let look = app.config.look();
    let lines: Vec<Line> = plans.iter().flat_map(|(plan, diff)| file(plan, diff.as_deref(), &look)).collect();
    app.print(lines);
    if !plans.iter().any(is_open) {
        app.note("There is nothing to undo");
        if let Some(id) = goes_to {
            tree::navigate(app, id, None);
        }
        return;
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
        vec![Effect::Undo { session, plans, forces, goes_to }]
    };
    app.open(question("Undo changes of files?", &text, answers, then));
}

/// Undoes on the session's thread, so that no run can begin meanwhile.
pub fn carry_out(app: &mut App, session: PathBuf, plans: Vec<Plan>, forces: bool, goes_to: Option<String>) {
    app.run(move |conversation, feed| {
        let backend = conversation.workspace().backend.clone();
        let done = undo::carry_out(&Journal::new(&session), plans, forces, backend.sandbox());
        // A conversation that goes back as well never saw the changes.
        let noted = match goes_to {
            Some(_) => Ok(()),
            None => conversation.note_undone(&done),
        };
        let problem = noted.err().map(|Fatal(reason)| reason);
        feed.effect(Effect::Undone { done, problem, goes_to });
    });
}

/// Shows what was undone.
pub fn undone(app: &mut App, done: &[Undone], problem: Option<&str>, goes_to: Option<String>) {
    let look = app.config.look();
    let lines = done.iter().flat_map(|done| result(done, &look));
    let lines: Vec<Line> = std::iter::once(Line::new()).chain(lines).collect();
    app.print(lines);
    if let Some(reason) = problem {
        app.warn(&format!("The model is not told: {reason}"));
    }
    if let Some(id) = goes_to {
        tree::navigate(app, id, None);
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
    if let Some(problem) = plan.problem() {
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
