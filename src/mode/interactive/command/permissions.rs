//! The mode of approval and the rules about tool calls: `/permissions`, and the key that changes the mode.

use crate::mode::interactive::app::App;
use crate::mode::interactive::dialog::permissions;
use crate::mode::interactive::effect::Update;
use crate::runtime::permission::{Effect, Entry, Mode, Scope};

pub fn run(app: &mut App, _: &str) {
    let policy = app.control.permissions().policy();
    let dialog = permissions::permissions(policy, app.control.config().consent.is_some(), &app.config);
    app.open(dialog);
}

/// Changes to the next mode.
pub fn cycle(app: &mut App) {
    let mode = app.control.permissions().policy().mode.next();
    use_mode(app, mode, false);
}

pub fn use_mode(app: &mut App, mode: Mode, saves: bool) {
    let about = mode.about();
    let done = match saves {
        true => app.control.permissions().save_mode(mode),
        false => {
            app.control.permissions().set_mode(mode);
            Ok(())
        }
    };
    let begin = if saves { "By default pi" } else { "Now pi" };
    finish(app, done, &format!("{begin} {about}"));
}

pub fn add(app: &mut App, effect: Effect, scope: Scope, rule: &str) {
    let done = app.control.permissions().add(effect, scope, rule);
    finish(app, done, &format!("Rule added for {}: {} {rule}", scope.name(), effect.name()));
}

pub fn remove(app: &mut App, entry: &Entry) {
    let done = app.control.permissions().remove(entry);
    finish(app, done, &format!("Rule removed: {} {}", entry.effect.name(), entry.rule.text()));
}

/// Says what was done, and shows what holds now.
fn finish(app: &mut App, done: Result<(), String>, text: &str) {
    match done {
        Ok(()) => app.note(text),
        Err(reason) => app.error(&format!("Error: {reason}")),
    }
    let policy = app.control.permissions().policy();
    app.dialogs.update(Update::Policy(policy), &app.config);
    app.refresh();
}
