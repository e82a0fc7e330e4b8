//! The user's own footer, by the setting `statusLine`: a template with placeholders, or a command that prints a
//! line.
//!
//! A command gets the state as JSON on its stdin. It runs on a thread, after a change of the state and at most
//! once in [`BETWEEN`], never while the state stays. While it fails, the built-in footer is shown.

use super::app::App;
use super::effect::Effect;
use super::look::Look;
use super::program;
use crate::base::json::json;
use crate::tui::line::Line;
use crate::tui::sgr;
use crate::tui::theme::Role;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Shortest time between two starts of the command.
const BETWEEN: Duration = Duration::from_secs(1);

/// Time limit of the command.
const LIMIT: Duration = Duration::from_secs(1);

/// Begins a setting that is a command.
const COMMAND: char = '!';

#[derive(Default)]
pub struct StatusLine {
    setting: Option<String>,
    /// What the command has printed.
    printed: Option<String>,
    /// The state that the command was told.
    told: Option<Value>,
    /// True if the state may have changed since.
    is_stale: bool,
    is_running: bool,
    began: Option<Instant>,
    /// True once a failure was shown.
    has_failed: bool,
}

impl StatusLine {
    fn command(&self) -> Option<&str> {
        self.setting.as_deref()?.strip_prefix(COMMAND)
    }

    pub fn changed(&mut self) {
        self.is_stale = true;
    }

    /// Time until the command should run; `None` if it need not.
    pub fn due_in(&self, now: Instant) -> Option<Duration> {
        self.command().filter(|_| self.is_stale && !self.is_running)?;
        let due = self.began.map_or(now, |began| began + BETWEEN);
        Some(due.saturating_duration_since(now))
    }

    /// Takes the result of the command. Returns a failure that was not shown before.
    pub fn take(&mut self, result: Result<String, String>) -> Option<String> {
        self.is_running = false;
        match result {
            Ok(line) => {
                self.printed = Some(line);
                None
            }
            Err(problem) => {
                self.printed = None;
                let is_new = !std::mem::replace(&mut self.has_failed, true);
                is_new.then(|| {
                    format!("The command of the setting statusLine {problem}; the usual footer is shown")
                })
            }
        }
    }

    /// The line in place of the built-in footer; `None` if that is to be shown. `fields` are the placeholders of
    /// a template with their values.
    pub fn line(&self, fields: &[(&str, String)], look: &Look<'_>) -> Option<Line> {
        let setting = self.setting.as_deref()?;
        let filled =
            if setting.starts_with(COMMAND) { self.printed.clone()? } else { fill(setting, fields).0 };
        let first = filled.lines().next().unwrap_or_default();
        Some(sgr::line(first, look.style(Role::Dim)).cut(look.short()))
    }
}

/// Replaces the placeholders of a template. Returns also those that have no value; they stay as they are.
fn fill(template: &str, fields: &[(&str, String)]) -> (String, Vec<String>) {
    let (mut filled, mut unknown) = (String::new(), Vec::new());
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        let field = behind.split_once('}').and_then(|(name, behind)| {
            let value = fields.iter().find(|(field, _)| *field == name);
            if value.is_none() {
                unknown.push(name.to_owned());
            }
            Some((&value?.1, behind))
        });
        rest = match field {
            Some((value, behind)) => {
                filled.push_str(value);
                behind
            }
            None => {
                filled.push('{');
                behind
            }
        };
    }
    filled.push_str(rest);
    (filled, unknown)
}

impl App {
    /// Applies the setting.
    pub fn set_status_line(&mut self) {
        let setting = self.control.config().settings.text("statusLine").map(str::to_owned);
        let setting = setting.filter(|setting| !setting.trim().is_empty());
        if setting == self.status.line.setting {
            return;
        }
        let fields = self.status.footer.fields(&self.config.look());
        if let Some(template) = setting.as_deref().filter(|setting| !setting.starts_with(COMMAND))
            && let Some(name) = fill(template, &fields).1.first()
        {
            let known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
            let known = known.join("}, {");
            self.warn(&format!("Warning: setting statusLine: there is no {{{name}}}; there are {{{known}}}"));
        }
        self.status.line = StatusLine { setting, is_stale: true, ..StatusLine::default() };
    }

    /// Runs the command of the setting if the state has changed and it is time.
    pub fn update_status_line(&mut self, now: Instant) {
        if self.status.line.due_in(now) != Some(Duration::ZERO) {
            return;
        }
        self.status.line.is_stale = false;
        let state = self.state();
        if self.status.line.told.as_ref() == Some(&state) {
            return;
        }
        let Some(command) = self.status.line.command().map(str::to_owned) else { return };
        let (input, cancel) = (format!("{state}\n"), self.threads.cancel.clone());
        let line = &mut self.status.line;
        (line.told, line.is_running, line.began) = (Some(state), true, Some(now));
        self.find_out("status-line", move || {
            Effect::StatusLine(program::first_line(&command, input.into_bytes(), LIMIT, &cancel))
        });
    }

    /// The state that a command is told.
    fn state(&self) -> Value {
        let mut state = self.status.footer.state();
        let log = self.control.log();
        state["session"] = json!({
            "id": log.header().id,
            "name": self.status.footer.name,
            "file": log.path(),
        });
        state["busy"] = self.status.activity.is_busy().into();
        state["columns"] = self.config.size.columns.into();
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn a_template_is_filled_in() {
        let fields = [("model", "m1".to_owned()), ("branch", String::new())];
        for (template, expected, unknown) in [
            ("{model} on {branch}.", "m1 on .", &[][..]),
            ("no field", "no field", &[]),
            ("{nothing} {model}", "{nothing} m1", &["nothing"]),
            ("{ {model} }", "{ m1 }", &[" {model"]),
            ("{model", "{model", &[]),
            ("}{", "}{", &[]),
        ] {
            let (filled, missing) = fill(template, &fields);
            assert_eq!(
                (&*filled, &*missing),
                (expected, &*unknown.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            );
        }
    }

    #[test]
    fn a_command_runs_after_changes_and_not_too_often() {
        let mut bench = Bench::with(&[("settings.json", r#"{"statusLine": "!cat"}"#)]);
        let app = &mut bench.app;
        app.set_status_line();
        let now = Instant::now();
        assert_eq!(app.status.line.due_in(now), Some(Duration::ZERO));
        app.update_status_line(now);
        app.status.line.changed();
        assert_eq!(app.status.line.due_in(now), None, "it runs");
        assert_eq!(app.status.line.take(Ok("line".into())), None);
        assert_eq!(app.status.line.due_in(now), Some(BETWEEN));
        let line = app.status.line.line(&[], &app.config.look()).unwrap();
        assert_eq!(line.text(), "line");
        // Nothing has changed in the end.
        app.update_status_line(now + BETWEEN);
        assert!(!app.status.line.is_running && !app.status.line.is_stale);
        assert!(app.status.line.take(Err("failed".into())).unwrap().contains("failed"));
        assert_eq!(app.status.line.take(Err("failed".into())), None);
        assert!(app.status.line.line(&[], &app.config.look()).is_none());
    }
}
