//! Maps keys to actions.
//!
//! Components look up actions, never keys: [`Keymap::action`] finds the action of a key in a scope, a list in
//! which the first match wins. Keys that the user has assigned override the defaults of the scope. Names and
//! defaults are those of the reference's `keybindings.json`.
//!
//! This module has the actions of editor and lists. An application adds its own as [`Application`].

mod schema;
mod table;

pub use schema::schema;
pub(crate) use table::actions;
pub use table::{OLD_IDS, ROWS};

use super::key::{Action as Event, Code, Key, Modifiers};
use crate::base::order::Order;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

/// An action, by its name in `keybindings.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action(&'static str);

impl Action {
    pub const fn named(id: &'static str) -> Self {
        Self(id)
    }

    /// The name in `keybindings.json`.
    pub fn id(self) -> &'static str {
        self.0
    }
}

/// An action in the table, for `keybindings.json`, `/hotkeys` and the manual.
#[derive(Debug)]
pub struct Row {
    /// Heading of a group of actions.
    pub group: &'static str,
    pub id: &'static str,
    pub keys: &'static [&'static str],
    /// Other defaults under WSL.
    pub wsl: Option<&'static [&'static str]>,
    pub about: &'static str,
}

/// Actions that an application adds to those of editor and lists.
#[derive(Debug)]
pub struct Application {
    pub rows: &'static [Row],
    /// Old names of actions, each with the current name.
    pub old_ids: &'static [(&'static str, &'static str)],
    /// Actions looked up after [`EDITOR`]. A key that the user has assigned to one of them loses its default
    /// in the editor.
    pub beside_editor: &'static [Action],
    /// Closes the open dialog, like [`Action::SELECT_CANCEL`].
    pub interrupt: Option<Action>,
    /// Scopes that are active together: no key should have two meanings in one group.
    pub together: &'static [&'static [&'static [Action]]],
}

impl Application {
    /// No application: only the keys of editor and lists.
    pub const NONE: &'static Self = &Self {
        rows: &[],
        old_ids: &[],
        beside_editor: &[],
        interrupt: None,
        together: &[&[EDITOR], &[SELECT]],
    };
}

/// Actions in the editor, looked up before the application's.
pub const EDITOR: &[Action] = &[
    Action::COPY,
    Action::UNDO,
    Action::REDO,
    Action::TAB,
    Action::DELETE_TO_LINE_END,
    Action::DELETE_TO_LINE_START,
    Action::DELETE_WORD_BACKWARD,
    Action::DELETE_WORD_FORWARD,
    Action::DELETE_CHAR_BACKWARD,
    Action::DELETE_CHAR_FORWARD,
    Action::YANK,
    Action::YANK_POP,
    Action::HISTORY_PREVIOUS,
    Action::HISTORY_NEXT,
    Action::HISTORY_PREFIX_PREVIOUS,
    Action::HISTORY_PREFIX_NEXT,
    Action::HISTORY_SEARCH,
    Action::CURSOR_LINE_START,
    Action::CURSOR_LINE_END,
    Action::CURSOR_WORD_LEFT,
    Action::CURSOR_WORD_RIGHT,
    Action::NEW_LINE,
    Action::SUBMIT,
    Action::CURSOR_UP,
    Action::CURSOR_DOWN,
    Action::CURSOR_RIGHT,
    Action::CURSOR_LEFT,
    Action::PAGE_UP,
    Action::PAGE_DOWN,
    Action::JUMP_FORWARD,
    Action::JUMP_BACKWARD,
];

/// Actions in lists, and in the popup of completions.
pub const SELECT: &[Action] = &[
    Action::SELECT_UP,
    Action::SELECT_DOWN,
    Action::SELECT_PAGE_UP,
    Action::SELECT_PAGE_DOWN,
    Action::SELECT_CONFIRM,
    Action::SELECT_CANCEL,
];

/// Platforms with other defaults, since their terminals reserve some keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    #[default]
    Unix,
    /// Linux under Windows.
    Wsl,
}

impl Platform {
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        match is_set("WSL_DISTRO_NAME") || is_set("WSL_INTEROP") {
            true => Self::Wsl,
            false => Self::Unix,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Keymap {
    /// Bindings in the order of the tables.
    bindings: Vec<Binding>,
    by_action: HashMap<Action, usize>,
    application: &'static Application,
}

#[derive(Clone, Debug)]
struct Binding {
    row: &'static Row,
    keys: Vec<Key>,
    is_users: bool,
}

impl Default for Keymap {
    fn default() -> Self {
        Self::new(Platform::Unix, Application::NONE)
    }
}

impl Keymap {
    pub fn new(platform: Platform, application: &'static Application) -> Self {
        let binding = |row: &'static Row| {
            let keys = match (platform, row.wsl) {
                (Platform::Wsl, Some(keys)) => keys,
                _ => row.keys,
            };
            let keys = keys.iter().filter_map(|key| Key::parse(key).map(normal)).collect();
            Binding { row, keys, is_users: false }
        };
        let bindings: Vec<Binding> = ROWS.iter().chain(application.rows).map(binding).collect();
        let numbered = bindings.iter().enumerate();
        let by_action = numbered.map(|(at, binding)| (Action(binding.row.id), at)).collect();
        Self { bindings, by_action, application }
    }

    /// Loads the defaults with the overrides of `keybindings.json`; also returns a line for each error in it.
    pub fn load(file: &Value, platform: Platform, application: &'static Application) -> (Self, Vec<String>) {
        let mut keymap = Self::new(platform, application);
        let mut problems = Vec::new();
        let Some(entries) = file.as_object() else {
            problems.push("must hold an object: actions with their keys".to_owned());
            return (keymap, problems);
        };
        for (name, value) in entries.iter().filter(|(name, _)| *name != "$schema") {
            let mut old_ids = OLD_IDS.iter().chain(application.old_ids);
            let id = old_ids.find(|(old, _)| old == name).map_or(&**name, |&(_, id)| id);
            if id != name && entries.contains_key(id) {
                continue;
            }
            let Some(binding) = keymap.bindings.iter_mut().find(|binding| binding.row.id == id) else {
                problems.push(format!("{name}: no such action"));
                continue;
            };
            let texts: Option<Vec<&str>> = match value {
                Value::String(key) => Some(vec![key]),
                Value::Array(keys) => keys.iter().map(Value::as_str).collect(),
                _ => None,
            };
            let Some(texts) = texts else {
                problems.push(format!("{name}: must be a key or a list of keys"));
                continue;
            };
            let mut keys = Vec::new();
            for text in &texts {
                match Key::parse(text).map(normal) {
                    Some(key) if keys.contains(&key) => {}
                    Some(key) => keys.push(key),
                    None => problems.push(format!("{name}: {text:?} is no key")),
                }
            }
            // A list with nothing but mistakes must not take an action's keys away.
            if !keys.is_empty() || texts.is_empty() {
                (binding.keys, binding.is_users) = (keys, true);
            }
        }
        problems.extend(keymap.conflicts());
        (keymap, problems)
    }

    /// Keys that the user has assigned to two actions of scopes that are active together.
    fn conflicts(&self) -> Vec<String> {
        let mut found = Vec::new();
        for scopes in self.application.together {
            let actions: Vec<Action> = scopes.iter().copied().flatten().copied().collect();
            for (index, &first) in actions.iter().enumerate() {
                for &second in actions.iter().skip(index + 1) {
                    for key in self.user_keys(first) {
                        if self.user_keys(second).contains(key) {
                            found.push(format!("{key}: both {} and {}", first.id(), second.id()));
                        }
                    }
                }
            }
        }
        found.order();
        found.dedup();
        found
    }

    fn binding(&self, action: Action) -> Option<&Binding> {
        self.bindings.get(*self.by_action.get(&action)?)
    }

    fn user_keys(&self, action: Action) -> &[Key] {
        match self.binding(action) {
            Some(binding) if binding.is_users => &binding.keys,
            _ => &[],
        }
    }

    /// All actions by their ids, and their keys.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &[Key])> {
        self.bindings.iter().map(|binding| (binding.row.id, binding.keys.as_slice()))
    }

    pub fn keys(&self, action: Action) -> &[Key] {
        self.binding(action).map_or(&[], |binding| &binding.keys)
    }

    /// True if the key, pressed or repeated, is bound to the action.
    pub fn is(&self, key: &Key, action: Action) -> bool {
        let keys = self.keys(action);
        key.action != Event::Release && meanings(key).any(|key| keys.contains(&key))
    }

    /// True if the key closes what is open: a list, a search.
    pub fn leaves(&self, key: &Key) -> bool {
        let interrupt = self.application.interrupt;
        self.is(key, Action::SELECT_CANCEL) || interrupt.is_some_and(|action| self.is(key, action))
    }

    /// The action of the key in a scope.
    pub fn action(&self, key: &Key, scope: &[Action]) -> Option<Action> {
        if key.action == Event::Release {
            return None;
        }
        let any = |key| scope.iter().find(|action| self.keys(**action).contains(&key)).copied();
        self.user_action(key, scope).or_else(|| meanings(key).find_map(any))
    }

    /// The action that the user has assigned to the key in a scope.
    fn user_action(&self, key: &Key, scope: &[Action]) -> Option<Action> {
        let users = |key| scope.iter().find(|action| self.user_keys(**action).contains(&key)).copied();
        meanings(key).find_map(users)
    }

    /// The action of the key in the prompt editor. A key that the user has assigned to an action of the
    /// application loses its default in the editor.
    pub fn prompt_action(&self, key: &Key) -> Option<Action> {
        let beside = self.application.beside_editor;
        let is_left = self.user_action(key, EDITOR).is_none() && self.user_action(key, beside).is_some();
        if is_left { None } else { self.action(key, EDITOR) }
    }

    /// The first key of an action for display, such as `Ctrl+O`; `None` if unbound.
    pub fn shown(&self, action: Action) -> Option<String> {
        self.keys(action).first().map(shown)
    }

    /// The bound actions in their order: group, keys for display, what the action does.
    pub fn hotkeys(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        let bound = self.bindings.iter().filter(|binding| !binding.keys.is_empty());
        bound.map(|binding| {
            let keys: Vec<String> = binding.keys.iter().map(shown).collect();
            (binding.row.group, keys.join(" / "), binding.row.about)
        })
    }

    /// All actions with their names in `keybindings.json`.
    pub fn reference(&self) -> String {
        self.tables("| action | keys | what it does |\n|---|---|---|\n", |row, keys| {
            Some(format!("| `{}` | {keys} | {} |\n", row.id, row.about))
        })
    }

    /// A table for each group, with the rows for which `line` returns text.
    fn tables(&self, head: &str, line: impl Fn(&Row, &str) -> Option<String>) -> String {
        let mut text = String::new();
        let mut group = None;
        for binding in &self.bindings {
            let row = binding.row;
            let keys: Vec<String> = binding
                .keys
                .iter()
                .map(|key| match shown(key).replace('|', "\\|") {
                    key if key.contains('`') => format!("`` {key} ``"),
                    key => format!("`{key}`"),
                })
                .collect();
            let Some(line) = line(row, &keys.join(" / ")) else {
                continue;
            };
            if group.replace(row.group) != Some(row.group) {
                let gap = if text.is_empty() { "" } else { "\n" };
                let _ = write!(text, "{gap}**{}**\n\n{head}", row.group);
            }
            text.push_str(&line);
        }
        text
    }
}

/// The keys that a binding for `key` may name, the likelier first.
fn meanings(key: &Key) -> impl Iterator<Item = Key> {
    [Some(*key), key.twin()].into_iter().flatten().map(normal)
}

/// Normalises a key: terminals send `L` or Shift with `l`; the result is the second form. A repeated key
/// counts as pressed.
fn normal(key: Key) -> Key {
    let code = match key.code {
        Code::Char(letter) if letter.is_uppercase() => {
            let mut lower = letter.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(lower), None) => Some(lower),
                _ => None,
            }
        }
        _ => None,
    };
    match code {
        Some(lower) => Key::new(Code::Char(lower), key.modifiers | Modifiers::SHIFT),
        None => Key::new(key.code, key.modifiers),
    }
}

/// A key in the form for display.
pub fn shown(key: &Key) -> String {
    let text = key.to_string();
    let mut shown = String::with_capacity(text.len());
    let mut begins = true;
    for letter in text.chars() {
        match begins {
            true => shown.extend(letter.to_uppercase()),
            false => shown.push(letter),
        }
        begins = letter == '+';
    }
    for (plain, nice) in [("Pageup", "PageUp"), ("Pagedown", "PageDown")] {
        shown = shown.replace(plain, nice);
    }
    shown
}
