//! All settings, with what they are for and where their values come from: `/settings`.
//!
//! What is changed is written to the user's settings at once, and counts at once where it can. A value of the
//! project goes over the user's; it is shown, and stays.

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::{Dialog, Step, model_levels, scope, theme};
use crate::mode::interactive::app::App;
use crate::mode::interactive::look::Look;
use crate::runtime::QueueMode;
use crate::runtime::settings::form::Form;
use crate::runtime::settings::table::{self, GROUPS, Key as Row, Preset};
use crate::runtime::settings::{Origin, Settings, without_password};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Changed, Entered, Setting, Settings as List, TextInput};
use crate::tui::theme::Role;
use serde_json::Value;
use std::any::Any;

const ROWS: usize = 10;

/// What is asked for most comes first, under names of its own.
const USUAL: &[(&str, &str)] = &[
    ("compaction.enabled", "Auto-compact"),
    ("terminal.showImages", "Show images"),
    ("terminal.imageWidthCells", "Image width"),
    ("images.autoResize", "Auto-resize images"),
    ("images.blockImages", "Block images"),
    ("enableSkillCommands", "Skill commands"),
    ("editorPaddingX", "Editor padding"),
    ("outputPad", "Output padding"),
    ("autocompleteMaxVisible", "Autocomplete max items"),
    ("terminal.showTerminalProgress", "Terminal progress"),
    ("steeringMode", "Steering mode"),
    ("followUpMode", "Follow-up mode"),
    ("httpIdleTimeoutMs", "HTTP idle timeout"),
    ("hideThinkingBlock", "Hide thinking"),
    ("quietStartup", "Quiet startup"),
    ("enableInstallTelemetry", "Install telemetry"),
    ("defaultProjectTrust", "Default project trust"),
    ("doubleEscapeAction", "Double-escape action"),
    ("treeFilterMode", "Tree filter mode"),
    ("warnings.anthropicExtraUsage", "Anthropic extra usage"),
    ("modelThinkingLevels", "Default thinking level per model"),
    ("tuiMode", "TUI mode"),
    ("fullscreenExitOutput", "Fullscreen exit output"),
    ("fullscreenScrollbar", "Fullscreen scrollbar"),
    ("theme", "Theme"),
];

/// Values that are offered where any number would do.
const OFFERED: &[(&str, &[&str])] = &[
    ("terminal.imageWidthCells", &["60", "80", "120"]),
    ("autocompleteMaxVisible", &["3", "5", "7", "10", "15", "20"]),
];

pub fn run(app: &mut App, _: &str) {
    let dialog = Dialogue::new(app);
    app.open(dialog);
}

/// When a change of a setting counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Now,
    AfterReload,
    /// For sessions that begin then.
    AtStart,
}

impl Counts {
    fn of(path: &str) -> Self {
        let group = path.split('.').next().unwrap_or_default();
        match (group, path) {
            (_, "bash.keepBackground")
            | (
                "defaultProvider" | "defaultModel" | "defaultTools" | "sessionDir" | "session" | "sandbox"
                | "quietStartup" | "packages" | "extensions" | "npmCommand",
                _,
            ) => Self::AtStart,
            (_, "images.autoResize")
            | (
                "shellPath" | "shellCommandPrefix" | "bash" | "limits" | "skills" | "prompts" | "themes"
                | "enabledModels",
                _,
            ) => Self::AfterReload,
            _ => Self::Now,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Now => "",
            Self::AfterReload => "takes effect after /reload",
            Self::AtStart => "takes effect after restart",
        }
    }
}

pub struct Dialogue {
    rows: Vec<&'static Row>,
    list: List,
    /// The row that is typed into.
    editing: Option<(usize, TextInput)>,
    /// What came of the last change.
    told: String,
}

impl Dialogue {
    pub fn new(app: &App) -> Self {
        let usual = USUAL.iter().filter_map(|(path, _)| table::find(path));
        let others = table::keys().filter(|row| !is_usual(row.path));
        let rows: Vec<&'static Row> = usual.chain(others).collect();
        let ground = app.control.ground();
        let settings = rows.iter().map(|row| Setting {
            id: row.path.to_owned(),
            label: label(row.path),
            value: own(&ground.settings, row),
            values: values(row),
            help: row.help.to_owned(),
            group: group(row.path),
            note: note(&ground.settings, row),
            search: row.path.to_owned(),
        });
        Self { list: List::new(settings.collect(), ROWS), rows, editing: None, told: String::new() }
    }

    /// Takes up how a row stands now.
    pub fn refresh(&mut self, app: &App) {
        let ground = app.control.ground();
        for (index, row) in self.rows.iter().enumerate() {
            self.list.set_value(index, &own(&ground.settings, row));
            self.list.set_note(index, &note(&ground.settings, row));
        }
    }

    /// Writes a value, or takes it away; and has it count.
    fn change(&mut self, row: &Row, value: Option<Value>, app: &mut App) {
        self.told = match write(app, row.path, value) {
            Ok(()) => Counts::of(row.path).text().to_owned(),
            Err(reason) => reason,
        };
        self.refresh(app);
    }

    fn open(&mut self, index: usize, app: &mut App) {
        let Some(row) = self.rows.get(index) else {
            return;
        };
        match row.path {
            "theme" => theme::run(app),
            "modelThinkingLevels" => model_levels::run(app),
            "enabledModels" => scope::run(app, ""),
            path => {
                let ground = app.control.ground();
                let mut input = TextInput::new(&format!("{}: ", label(path)));
                let text = match ground.settings.of_user(path) {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => String::new(),
                };
                input.set_text(&text);
                self.told.clear();
                self.editing = Some((index, input));
            }
        }
    }

    /// A key for the value that is typed.
    fn edit(&mut self, key: &Key, app: &mut App) {
        let Some((index, input)) = &mut self.editing else {
            return;
        };
        match input.handle(key, &app.stage.keymap) {
            Entered::Cancelled => self.editing = None,
            Entered::Ignored | Entered::Handled => {}
            Entered::Text(text) => {
                let Some(row) = self.rows.get(*index).copied() else {
                    return;
                };
                let is_text = matches!(row.form, Form::Text);
                let text = if is_text { text.as_str() } else { text.trim() };
                let value = match text.is_empty() {
                    true => None,
                    false => match row.form.read(text) {
                        Some(value) => Some(value),
                        None => {
                            self.told = format!("must be {}", row.form.describe());
                            return;
                        }
                    },
                };
                self.editing = None;
                self.change(row, value, app);
            }
        }
    }
}

fn is_usual(path: &str) -> bool {
    USUAL.iter().any(|(usual, _)| *usual == path)
}

fn group(path: &str) -> &'static str {
    let has = |group: &&table::Group| group.keys.iter().any(|row| row.path == path);
    match is_usual(path) {
        true => "",
        false => GROUPS.iter().find(has).map_or("", |group| group.title),
    }
}

/// `limits.sessionCost` as `Limits: session cost`.
fn label(path: &str) -> String {
    if let Some((_, label)) = USUAL.iter().find(|(usual, _)| *usual == path) {
        return (*label).to_owned();
    }
    let mut label = String::new();
    for letter in path.chars() {
        match letter {
            '.' => label.push_str(": "),
            letter if letter.is_ascii_uppercase() => {
                label.push(' ');
                label.push(letter.to_ascii_lowercase());
            }
            letter if label.is_empty() => label.push(letter.to_ascii_uppercase()),
            letter => label.push(letter),
        }
    }
    label
}

/// What the user's file says, or what holds without it.
fn own(settings: &Settings, row: &Row) -> String {
    match (settings.of_user(row.path), row.preset) {
        (Some(value), _) => shown(value),
        (None, Preset::Told("")) => "not set".to_owned(),
        (None, Preset::Told(words)) => words.replace('`', ""),
        (None, preset) => shown(&preset.value().unwrap_or_default()),
    }
}

fn shown(value: &Value) -> String {
    match without_password(value) {
        Value::String(text) if text.trim().is_empty() => format!("{text:?}"),
        Value::String(text) => text,
        value => value.to_string(),
    }
}

fn note(settings: &Settings, row: &Row) -> String {
    match settings.origin(row.path) {
        Origin::Project => {
            let value = settings.get(row.path).map(shown);
            format!("project: {}", value.unwrap_or_default())
        }
        Origin::Default | Origin::User => String::new(),
    }
}

/// What a key can step through.
fn values(row: &Row) -> Vec<String> {
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if let Some((_, offered)) = OFFERED.iter().find(|(path, _)| *path == row.path) {
        return texts(offered);
    }
    match row.form {
        Form::Flag => texts(&["true", "false"]),
        Form::OneOf(words) => texts(words),
        Form::FlagOr(words) => texts(&[words, &["true", "false"]].concat()),
        Form::Range(least, most) => (least..=most).map(|count| count.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Writes a setting and has it count, as far as it can without a start.
pub fn write(app: &mut App, path: &str, value: Option<Value>) -> Result<(), String> {
    app.control.change_settings(&[(path, value)])?;
    let ground = app.control.ground();
    let settings = &ground.settings;
    match path {
        // These are switches of the session too.
        "steeringMode" => {
            let mode = QueueMode::parse(settings.steering_mode()).unwrap_or_default();
            app.control.use_steering_mode(mode);
        }
        "followUpMode" => {
            let mode = QueueMode::parse(settings.follow_up_mode()).unwrap_or_default();
            app.control.use_follow_up_mode(mode);
        }
        "compaction.enabled" => app.control.use_auto_compaction(settings.compaction().enabled),
        "retry.enabled" => app.control.use_auto_retry(settings.retry().enabled),
        _ => {}
    }
    app.read_settings();
    if path == "theme" {
        app.ask_for_backdrop();
    }
    app.refresh();
    Ok(())
}

impl Dialog for Dialogue {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title("Settings", look)];
        self.list.set_rows(list_rows(rows, &mut body, 11, ROWS));
        body.extend(self.list.render(inside(look), &look.looks()));
        if let Some((_, input)) = &mut self.editing {
            body.push(input.render(inside(look), &look.looks()));
        } else if let Some(row) = self.list.selected().and_then(|index| self.rows.get(index)) {
            let path = format!("{} in settings.json", row.path);
            body.push(Line::of(&path, look.style(Role::Dim)).cut(inside(look)));
        }
        if !self.told.is_empty() {
            body.extend(text(&self.told, Role::Warning, look));
        }
        let leave = if self.editing.is_some() { "keep" } else { "leave" };
        let mut hints = keys(&[(Action::SELECT_CONFIRM, "change"), (Action::SELECT_CANCEL, leave)], look);
        if self.editing.is_none() {
            hints.push(", delete for the default", look.style(Role::Muted));
        }
        body.push(hints);
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        if self.editing.is_some() {
            self.edit(key, app);
            return Step::Stay;
        }
        let selected = self.list.selected();
        if *key == Key::plain(Code::Delete) && self.list.query().is_empty() {
            if let Some(row) = selected.and_then(|index| self.rows.get(index)) {
                self.change(row, None, app);
            }
            return Step::Stay;
        }
        match self.list.handle(key, &app.stage.keymap) {
            Changed::Closed => return Step::Close,
            Changed::Open(index) => self.open(index, app),
            Changed::Value(index) => {
                let row = self.rows.get(index).copied();
                let word = self.list.get(index).map(|setting| setting.value.clone());
                if let (Some(row), Some(word)) = (row, word)
                    && let Some(value) = row.form.read(&word)
                {
                    self.change(row, Some(value), app);
                }
            }
            Changed::Moved => self.told.clear(),
            Changed::Ignored => {}
        }
        Step::Stay
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        match &mut self.editing {
            Some((_, input)) => input.paste(text),
            None => self.list.paste(text),
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::stage::is_dumb;
    use crate::mode::interactive::testing::Bench;
    use serde_json::json;

    #[test]
    fn every_setting_has_a_row_and_a_name_of_its_own() {
        let bench = Bench::new();
        let dialog = Dialogue::new(&bench.app);
        assert_eq!(dialog.rows.len(), table::keys().count());
        let mut labels: Vec<String> = dialog.rows.iter().map(|row| label(row.path)).collect();
        assert!(labels.contains(&"Limits: session cost".to_owned()));
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), dialog.rows.len());
        for row in &dialog.rows {
            for value in values(row) {
                assert!(row.form.read(&value).is_some(), "{} {value}", row.path);
            }
        }
    }

    #[test]
    fn a_switch_is_turned_and_counts_at_once() {
        let mut bench = Bench::new();
        bench.send("/settings");
        let screen = bench.screen(80);
        assert!(screen.contains("→ Auto-compact"), "{screen}");
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"compaction": {"enabled": false}}));
        assert!(!bench.app.control.snapshot().switches.auto_compaction);
        bench.press("enter delete");
        assert_eq!(bench.settings(), json!({"compaction": {}}));
        assert!(bench.app.control.snapshot().switches.auto_compaction);
        for (search, keys, path, expected) in [
            ("hide thinking", "enter", "hideThinkingBlock", json!(true)),
            ("steering mode", "enter", "steeringMode", json!("all")),
            ("editor padding", "enter enter", "editorPaddingX", json!(2)),
            ("true color", "enter", "terminal", json!({"trueColor": true})),
            ("tui mode", "enter", "tuiMode", json!("fullscreen")),
        ] {
            bench.type_text(search);
            bench.press(keys);
            assert_eq!(bench.settings()[path], expected, "{}", bench.screen(80));
            bench.press("ctrl+u");
        }
        assert!(bench.app.stage.hides_thinking);
        assert_eq!(bench.app.stage.padding, 2);
        assert_eq!(bench.app.stage.is_fullscreen, !is_dumb());
        assert_eq!(bench.app.control.snapshot().steering_mode.name(), "all");
        bench.press("escape");
        assert!(!bench.app.has_dialog());
    }

    #[test]
    fn a_text_is_typed_and_a_wrong_one_is_refused() {
        let mut bench = Bench::new();
        bench.send("/settings");
        bench.type_text("limits: turns");
        bench.press("enter");
        bench.type_text("many");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("must be a whole number"), "{screen}");
        bench.press("ctrl+u");
        bench.type_text("7");
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"limits": {"turns": 7}}));
        let screen = bench.screen(80);
        assert!(screen.contains("takes effect after /reload"), "{screen}");
        assert!(screen.contains("limits.turns in settings.json"), "{screen}");
        bench.press("ctrl+u");
        bench.type_text("default model");
        bench.press("enter");
        bench.type_text("m9");
        bench.press("escape");
        assert!(bench.app.has_dialog());
        assert_eq!(bench.settings(), json!({"limits": {"turns": 7}}));
        for columns in [1, 10, 40] {
            bench.screen(columns);
        }
    }

    #[test]
    fn what_the_project_says_is_shown() {
        let bench = Bench::with(&[("settings.json", r#"{"steeringMode": "all"}"#)]);
        let mut settings = bench.app.control.ground().settings.clone();
        let project = bench.dir.path().join("project");
        bench.dir.write("project/.pi/settings.json", r#"{"steeringMode": "one-at-a-time"}"#);
        settings.add_project(&project);
        let row = table::find("steeringMode").unwrap();
        assert_eq!(own(&settings, row), "all");
        assert_eq!(note(&settings, row), "project: one-at-a-time");
    }
}
