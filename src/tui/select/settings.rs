//! Settings with their values and help.

use super::TextInput;
use super::list::{Roll, mark};
use crate::tui::fuzzy;
use crate::tui::key::{Code, Key};
use crate::tui::keymap::{self, Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::looks::Looks;
use crate::tui::width;
use crate::tui::wrap::wrap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    pub id: String,
    pub label: String,
    pub value: String,
    /// What it can be; empty: a list or a question of its own is opened for it.
    pub values: Vec<String>,
    pub help: String,
    /// The heading that it stands under; nothing for none.
    pub group: &'static str,
    /// Behind the value, less conspicuous.
    pub note: String,
    /// What is searched besides the label.
    pub search: String,
}

/// What a key did to the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Ignored,
    Moved,
    /// The setting with this index has another value.
    Value(usize),
    /// The setting with this index needs more than one key.
    Open(usize),
    Closed,
}

#[derive(Debug)]
pub struct Settings {
    settings: Vec<Setting>,
    shown: Vec<usize>,
    roll: Roll,
    search: TextInput,
}

impl Settings {
    pub fn new(settings: Vec<Setting>, rows: usize) -> Self {
        Self {
            shown: (0..settings.len()).collect(),
            settings,
            roll: Roll { at: 0, rows: rows.max(1) },
            search: TextInput::new("Type to search: "),
        }
    }

    pub fn get(&self, index: usize) -> Option<&Setting> {
        self.settings.get(index)
    }

    pub fn set_value(&mut self, index: usize, value: &str) {
        if let Some(setting) = self.settings.get_mut(index) {
            value.clone_into(&mut setting.value);
        }
    }

    pub fn set_note(&mut self, index: usize, note: &str) {
        if let Some(setting) = self.settings.get_mut(index) {
            note.clone_into(&mut setting.note);
        }
    }

    pub fn set_rows(&mut self, rows: usize) {
        self.roll.rows = rows.max(1);
    }

    pub fn query(&self) -> String {
        self.search.text()
    }

    /// The chosen one, unless nothing fits the search.
    pub fn selected(&self) -> Option<usize> {
        self.shown.get(self.roll.at).copied()
    }

    pub fn handle(&mut self, key: &Key, keymap: &Keymap) -> Changed {
        let action = keymap.action(key, keymap::SELECT);
        let is_space = key.typed() == Some(' ') && self.search.text().is_empty();
        match action {
            Some(Action::SELECT_CANCEL) => return Changed::Closed,
            Some(Action::SELECT_CONFIRM) => return self.change(1),
            Some(action) if self.roll.act(action, self.shown.len()) => return Changed::Moved,
            _ if is_space => return self.change(1),
            _ if self.search.text().is_empty() => match *key {
                key if key == Key::plain(Code::Right) => return self.change(1),
                key if key == Key::plain(Code::Left) => return self.change(-1),
                _ => {}
            },
            _ => {}
        }
        if !self.search.edit(key, keymap) {
            return Changed::Ignored;
        }
        self.narrow();
        Changed::Moved
    }

    /// Pasted text is searched for.
    pub fn paste(&mut self, text: &str) {
        self.search.paste(text);
        self.narrow();
    }

    fn narrow(&mut self) {
        let text = |setting: &Setting| format!("{} {}", setting.label, setting.search);
        let texts: Vec<String> = self.settings.iter().map(text).collect();
        self.shown = fuzzy::filter(&self.search.text(), texts.iter().map(String::as_str));
        self.roll.at = 0;
    }

    fn change(&mut self, step: isize) -> Changed {
        let Some(index) = self.selected() else {
            return Changed::Ignored;
        };
        let Some(setting) = self.settings.get_mut(index) else {
            return Changed::Ignored;
        };
        let count = setting.values.len();
        if count == 0 {
            return Changed::Open(index);
        }
        let now = setting.values.iter().position(|value| *value == setting.value);
        let next = match (now, step) {
            (None, _) => 0,
            (Some(now), 1..) => (now + 1) % count,
            (Some(now), _) => now.checked_sub(1).unwrap_or(count - 1),
        };
        if let Some(value) = setting.values.get(next) {
            setting.value.clone_from(value);
        }
        Changed::Value(index)
    }

    pub fn render(&mut self, width: usize, looks: &Looks) -> Vec<Line> {
        let mut lines = vec![self.search.render(width, looks)];
        if self.shown.is_empty() {
            lines.push(Line::of("  Nothing found", looks.muted).cut(width));
            return lines;
        }
        let all = self.settings.iter().map(|setting| width::width(&setting.label));
        let column = all.max().unwrap_or(0).min(width / 2);
        let window = self.roll.window(self.shown.len());
        let rows = self.shown.get(window.clone()).unwrap_or_default();
        let mut group = "";
        for (at, setting) in window.clone().zip(rows) {
            let Some(setting) = self.settings.get(*setting) else {
                continue;
            };
            if setting.group != group && self.search.text().is_empty() {
                group = setting.group;
                lines.push(Line::of(group, looks.muted).cut(width));
            }
            let is_selected = at == self.roll.at;
            let style = if is_selected { looks.selected } else { looks.text };
            let mut line = Line::of(mark(is_selected, looks), style);
            let begin = line.width();
            line.append(&Line::of(&setting.label, style).cut(column));
            line.pad_to(begin + column + 2, style);
            line.push(&setting.value, if is_selected { style } else { looks.accent });
            if !setting.note.is_empty() {
                line.push(&format!("  {}", setting.note), looks.muted);
            }
            lines.push(line.cut(width));
        }
        if window.len() < self.shown.len() {
            let counter = format!("  ({}/{})", self.roll.at + 1, self.shown.len());
            lines.push(Line::of(&counter, looks.muted).cut(width));
        }
        if let Some(setting) = self.selected().and_then(|index| self.settings.get(index)) {
            lines.push(Line::new());
            let help = Line::of(&setting.help, looks.muted);
            lines.extend(wrap(&help, width).iter().map(|line| line.cut(width)));
        }
        lines
    }
}
