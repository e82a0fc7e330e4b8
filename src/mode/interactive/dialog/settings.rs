//! The list of `/settings`: all settings, with descriptions and the origin of their values.
//!
//! A change is written to the user's settings and applied immediately if possible. A value of the project
//! overrides the user's; it is shown and not changed.

use super::frame::{inside, keys, text, title};
use super::list::{ListDialog, Rows};
use super::model_levels;
use super::setting_value::{self, with_unit};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, ThemeFor, Update};
use crate::mode::interactive::look::Look;
use crate::runtime::settings::form::Form;
use crate::runtime::settings::table::{self, GROUPS, Key as Row};
use crate::runtime::settings::{Origin, Settings, without_password};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::{Action, SELECT};
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, TextInput};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use serde_json::Value;

/// Frequently used settings, listed first with names of their own.
const USUAL: &[(&str, &str)] = &[
    ("compaction.enabled", "Auto-compact"),
    ("terminal.showImages", "Show images"),
    ("terminal.imageWidthCells", "Image width"),
    ("images.autoResize", "Auto-resize images"),
    ("images.blockImages", "Block images"),
    ("enableSkillCommands", "Skill commands"),
    ("editorMode", "Editor keys"),
    ("editorPaddingX", "Editor padding"),
    ("outputPad", "Output padding"),
    ("markdown.mermaid", "Mermaid diagrams"),
    ("autocompleteMaxVisible", "Autocomplete max items"),
    ("terminal.showTerminalProgress", "Terminal progress"),
    ("steeringMode", "Steering mode"),
    ("followUpMode", "Follow-up mode"),
    ("httpIdleTimeoutMs", "HTTP idle timeout"),
    ("hideThinkingBlock", "Hide thinking"),
    ("quietStartup", "Quiet startup"),
    ("enableInstallTelemetry", "Name pi to OpenRouter, NVIDIA"),
    ("defaultProjectTrust", "Default project trust"),
    ("doubleEscapeAction", "Double-escape action"),
    ("treeFilterMode", "Tree filter mode"),
    ("warnings.anthropicExtraUsage", "Anthropic extra usage"),
    ("modelThinkingLevels", "Default thinking level per model"),
    ("tuiMode", "TUI mode"),
    ("fullscreenExitOutput", "Fullscreen exit output"),
    ("fullscreenScrollbar", "Fullscreen scrollbar"),
    ("fullscreenWheelScrollLines", "Fullscreen wheel lines"),
    ("fullscreenCopyOnSelect", "Fullscreen copy on select"),
    ("theme", "Theme"),
];

/// Values offered for settings that accept any number.
const OFFERED: &[(&str, &[&str])] = &[
    ("terminal.imageWidthCells", &["60", "80", "120"]),
    ("autocompleteMaxVisible", &["3", "5", "7", "10", "15", "20"]),
    ("fullscreenWheelScrollLines", &["auto", "1", "2", "3", "5", "10"]),
];

/// When a changed setting takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Now,
    AfterReload,
    /// In sessions that are started later.
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

pub struct SettingRows {
    rows: Vec<&'static Row>,
    settings: Box<Settings>,
    /// Name of the theme in use.
    theme: String,
    /// The row being edited.
    editing: Option<(&'static Row, TextInput)>,
    /// Path of the row that was changed last.
    changed: &'static str,
    /// Result of the last change.
    result: String,
}

pub fn settings(settings: Settings, config: &UiConfig) -> ListDialog<SettingRows> {
    let usual = USUAL.iter().filter_map(|(path, _)| table::find(path));
    let others = table::keys().filter(|row| !is_usual(row.path));
    let rows = SettingRows {
        rows: usual.chain(others).collect(),
        settings: Box::new(settings),
        theme: config.theme.name.clone(),
        editing: None,
        changed: "",
        result: String::new(),
    };
    let mut list = List::new(Vec::new()).searchable();
    rows.fill(&mut list);
    ListDialog::new(list, rows)
}

impl SettingRows {
    fn fill(&self, list: &mut List) {
        let items = self.rows.iter().map(|row| {
            let label = label(row.path);
            Item::new(row.path, &label)
                .setting(&setting_value::shown(&self.settings, row, &self.theme))
                .about(&note(&self.settings, row))
                .group(group(row.path))
                .search(format!("{label} {}", row.path))
        });
        list.set_items(items.collect());
    }

    fn selected(&self, list: &List) -> Option<&'static Row> {
        list.selected_index().and_then(|index| self.rows.get(index).copied())
    }

    /// Selects the next value of a setting, or asks for one.
    fn step(&mut self, row: &'static Row, is_forward: bool) -> Vec<Effect> {
        let values = values(row);
        let Some(last) = values.len().checked_sub(1) else {
            return self.open(row);
        };
        let current = own(&self.settings, row);
        let next = match (values.iter().position(|value| *value == current), is_forward) {
            (None, _) => 0,
            (Some(at), true) => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            (Some(at), false) => at.checked_sub(1).unwrap_or(last),
        };
        let value = values.get(next).and_then(|word| row.form.read(word));
        value.map(|value| self.change(row, Some(value))).unwrap_or_default()
    }

    /// Requests another value, or the default.
    fn change(&mut self, row: &'static Row, value: Option<Value>) -> Vec<Effect> {
        self.changed = row.path;
        vec![Effect::WriteSetting { path: row.path, value }]
    }

    fn open(&mut self, row: &'static Row) -> Vec<Effect> {
        match row.path {
            "theme" => vec![Effect::ChooseTheme(ThemeFor::All)],
            model_levels::PATH => vec![Effect::ListModelLevels],
            "enabledModels" => vec![Effect::Call("/scoped-models")],
            path => {
                let mut input = TextInput::new(&format!("{}: ", label(path)));
                let text = match self.settings.of_user(path) {
                    Some(Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => String::new(),
                };
                input.set_text(&text);
                self.result.clear();
                self.editing = Some((row, input));
                Vec::new()
            }
        }
    }

    /// Handles a key while a value is edited.
    fn edit(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let Some((row, input)) = &mut self.editing else {
            return Vec::new();
        };
        match input.handle(key, &config.keymap) {
            Entered::Cancelled => self.editing = None,
            Entered::Ignored | Entered::Handled => {}
            Entered::Text(text) => {
                let row = *row;
                let is_text = matches!(row.form, Form::Text);
                let text = if is_text { text.as_str() } else { text.trim() };
                let value = match text.is_empty() {
                    true => None,
                    false => match row.form.read(text) {
                        Some(value) => Some(value),
                        None => {
                            self.result = format!("must be {}", row.form.describe());
                            return Vec::new();
                        }
                    },
                };
                self.editing = None;
                return self.change(row, value);
            }
        }
        Vec::new()
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

/// A path such as `limits.sessionCost` as `Limits: session cost`.
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

/// Value in the user's settings, or the default, as it is typed.
fn own(settings: &Settings, row: &Row) -> String {
    let value = settings.of_user(row.path).cloned().or_else(|| row.preset.value());
    match value.map(|value| without_password(&value)) {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

fn note(settings: &Settings, row: &Row) -> String {
    match settings.origin(row.path) {
        Origin::Project => {
            let value = settings.get(row.path).map(|value| with_unit(row.path, value));
            format!("project: {}", value.unwrap_or_default())
        }
        Origin::Default | Origin::User => String::new(),
    }
}

/// Values that keys cycle through.
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

impl Rows for SettingRows {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        vec![title("Settings", look)]
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let row = selected.and_then(|item| table::find(&item.value));
        let help = row.map(|row| Line::of(row.help, look.style(Role::Muted)));
        let mut lines: Vec<Line> = help.iter().flat_map(|help| wrap(help, inside(look))).collect();
        if let Some((_, input)) = &mut self.editing {
            lines.push(input.render(inside(look), &look.looks()));
        } else if let Some(row) = row {
            let path = format!("{} in settings.json", row.path);
            lines.push(Line::of(&path, look.style(Role::Dim)).cut(inside(look)));
        }
        if !self.result.is_empty() {
            lines.extend(text(&self.result, Role::Warning, look));
        }
        lines
    }

    fn other_rows(&self, _: usize) -> usize {
        // Headings take rows, too.
        11
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        match self.editing {
            Some(_) => &[(Action::SELECT_CONFIRM, "change"), (Action::SELECT_CANCEL, "keep")],
            None => &[(Action::SELECT_CONFIRM, "change"), (Action::SELECT_CANCEL, "leave")],
        }
    }

    fn hint_lines(&self, look: &Look<'_>) -> Vec<Line> {
        let mut hints = keys(self.hints(), look);
        if self.editing.is_none() {
            hints.push(", delete for the default", look.style(Role::Muted));
        }
        wrap(&hints, inside(look))
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.selected(list).map(|row| self.step(row, true)).unwrap_or_default()
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        if self.editing.is_some() {
            return Some(self.edit(key, config));
        }
        if !list.query().is_empty() || config.keymap.action(key, SELECT).is_some() {
            return None;
        }
        let row = self.selected(list)?;
        match *key {
            key if key == Key::plain(Code::Delete) => Some(self.change(row, None)),
            key if key == Key::plain(Code::Right) || key.typed() == Some(' ') => Some(self.step(row, true)),
            key if key == Key::plain(Code::Left) => Some(self.step(row, false)),
            _ => None,
        }
    }

    fn moved(&mut self, _: &List) -> Vec<Effect> {
        self.result.clear();
        Vec::new()
    }

    fn paste(&mut self, text: &str) -> bool {
        if let Some((_, input)) = &mut self.editing {
            input.paste(text);
        }
        self.editing.is_some()
    }

    fn update(&mut self, update: &mut Update, list: &mut List, config: &UiConfig) {
        if let Update::Settings { settings, result } = update {
            self.settings.clone_from(settings);
            self.theme.clone_from(&config.theme.name);
            self.fill(list);
            match result {
                Some(Ok(())) => Counts::of(self.changed).text().clone_into(&mut self.result),
                Some(Err(reason)) => reason.clone_into(&mut self.result),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;
    use crate::runtime::TempDir;

    #[test]
    fn every_setting_has_a_row_and_a_name_of_its_own() {
        let mut rows = Vec::new();
        Shown::new(|config| {
            let dialog = settings(Settings::default(), config);
            rows.clone_from(&dialog.rows.rows);
            dialog
        });
        assert_eq!(rows.len(), table::keys().count());
        let mut labels: Vec<String> = rows.iter().map(|row| label(row.path)).collect();
        assert!(labels.contains(&"Limits: session cost".to_owned()));
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), rows.len());
        for row in &rows {
            for value in values(row) {
                assert!(row.form.read(&value).is_some(), "{} {value}", row.path);
            }
        }
    }

    #[test]
    fn a_change_is_asked_for_and_its_result_is_shown() {
        let mut shown = Shown::new(|config| settings(Settings::default(), config));
        shown.type_text("limits: turns");
        assert!(shown.press("enter").is_empty());
        shown.type_text("many");
        assert!(shown.press("enter").is_empty());
        assert!(shown.text(80).contains("must be a whole number"));
        shown.press("ctrl+u 7");
        let effects = shown.press("enter");
        let [Effect::WriteSetting { path: "limits.turns", value: Some(value) }] = &effects[..] else {
            panic!("{}", shown.text(80));
        };
        assert_eq!(value, 7);
        let now = Box::new(Settings::default());
        shown.update(Update::Settings { settings: now, result: Some(Ok(())) });
        assert!(shown.text(80).contains("takes effect after /reload"));
        assert!(matches!(shown.press("escape")[..], [Effect::Close]));
    }

    #[test]
    fn what_the_project_says_is_shown() {
        let dir = TempDir::create();
        dir.write("settings.json", r#"{"steeringMode": "all"}"#);
        let (mut settings, _) = Settings::load(dir.path());
        let project = dir.path().join("project");
        dir.write("project/.pi/settings.json", r#"{"steeringMode": "one-at-a-time"}"#);
        settings.add_project(&project);
        let row = table::find("steeringMode").unwrap();
        assert_eq!(own(&settings, row), "all");
        assert_eq!(note(&settings, row), "project: one-at-a-time");
    }
}
