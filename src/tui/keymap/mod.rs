//! Which key does what.
//!
//! Components ask for actions, never for keys: [`Keymap::action`] finds the action of a key among those of a
//! scope, a list in which the first wins. A key that the user has given to an action wins over the
//! defaults of its scope. The names, and the defaults, are those of `keybindings.json`.

mod table;

pub use table::Action;

use super::key::{Action as Event, Code, Key, Modifiers};
use serde_json::Value;
use std::fmt::Write;
use table::{OLD_IDS, TABLE};

/// In the editor, before the application looks at a key.
pub const EDITOR: &[Action] = &[
    Action::Copy,
    Action::Undo,
    Action::Redo,
    Action::Tab,
    Action::DeleteToLineEnd,
    Action::DeleteToLineStart,
    Action::DeleteWordBackward,
    Action::DeleteWordForward,
    Action::DeleteCharBackward,
    Action::DeleteCharForward,
    Action::Yank,
    Action::YankPop,
    Action::HistoryPrevious,
    Action::HistoryNext,
    Action::HistoryPrefixPrevious,
    Action::HistoryPrefixNext,
    Action::HistorySearch,
    Action::CursorLineStart,
    Action::CursorLineEnd,
    Action::CursorWordLeft,
    Action::CursorWordRight,
    Action::NewLine,
    Action::Submit,
    Action::CursorUp,
    Action::CursorDown,
    Action::CursorRight,
    Action::CursorLeft,
    Action::PageUp,
    Action::PageDown,
    Action::JumpForward,
    Action::JumpBackward,
];

/// In the editor, for the application.
pub const MAIN: &[Action] = &[
    Action::Interrupt,
    Action::Clear,
    Action::Exit,
    Action::Suspend,
    Action::ExternalEditor,
    Action::PasteImage,
    Action::SessionNew,
    Action::SessionTree,
    Action::SessionFork,
    Action::SessionResume,
    Action::ModelSelect,
    Action::ModelCycleForward,
    Action::ModelCycleBackward,
    Action::ThinkingCycle,
    Action::ThinkingToggle,
    Action::ToolsExpand,
    Action::MessageCopy,
    Action::MessageFollowUp,
    Action::MessageDequeue,
];

/// In a list to choose from, and in the popup of completions.
pub const SELECT: &[Action] = &[
    Action::SelectUp,
    Action::SelectDown,
    Action::SelectPageUp,
    Action::SelectPageDown,
    Action::SelectConfirm,
    Action::SelectCancel,
];

/// In the list of sessions.
pub const SESSIONS: &[Action] = &[
    Action::SessionTogglePath,
    Action::SessionToggleSort,
    Action::SessionToggleNamedFilter,
    Action::SessionRename,
    Action::SessionDelete,
    Action::SessionDeleteNoninvasive,
];

/// In the list of models to switch between.
pub const MODELS: &[Action] = &[
    Action::ModelsSave,
    Action::ModelsEnableAll,
    Action::ModelsClearAll,
    Action::ModelsToggleProvider,
    Action::ModelsReorderUp,
    Action::ModelsReorderDown,
];

/// In the choice of a thinking level.
pub const THINKING: &[Action] = &[Action::ThinkingSave];

/// In the tree of a session.
pub const TREE: &[Action] = &[
    Action::MessageCopy,
    Action::TreeFoldOrUp,
    Action::TreeUnfoldOrDown,
    Action::TreeEditLabel,
    Action::TreeToggleLabelTimestamp,
    Action::TreeFilterDefault,
    Action::TreeFilterNoTools,
    Action::TreeFilterUserOnly,
    Action::TreeFilterLabeledOnly,
    Action::TreeFilterAll,
    Action::TreeFilterCycleForward,
    Action::TreeFilterCycleBackward,
];

/// In the viewer, and in the transcript of the fullscreen mode, before the editor.
pub const VIEWER: &[Action] = &[
    Action::ViewPageUp,
    Action::ViewPageDown,
    Action::ViewHalfPageUp,
    Action::ViewHalfPageDown,
    Action::ViewLineUp,
    Action::ViewLineDown,
    Action::ViewPreviousPrompt,
    Action::ViewNextPrompt,
    Action::ViewSearch,
    Action::ViewTop,
    Action::ViewBottom,
];

/// While the viewer is searched.
pub const VIEWER_SEARCH: &[Action] =
    &[Action::ViewSearchNext, Action::ViewSearchPrevious, Action::ViewSearchClose];

/// What is looked up together: in one of these no key should have two meanings.
const TOGETHER: &[&[&[Action]]] = &[
    &[EDITOR, MAIN],
    &[SELECT, SESSIONS],
    &[SELECT, MODELS],
    &[SELECT, THINKING],
    &[SELECT, TREE],
    &[VIEWER],
    &[VIEWER_SEARCH],
];

/// Where defaults differ, since the terminals there keep some keys for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    #[default]
    Unix,
    /// Linux inside of Windows.
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
    /// In the order of the table.
    bindings: Vec<Binding>,
}

#[derive(Clone, Debug)]
struct Binding {
    keys: Vec<Key>,
    is_users: bool,
}

impl Default for Keymap {
    fn default() -> Self {
        Self::new(Platform::Unix)
    }
}

impl Keymap {
    pub fn new(platform: Platform) -> Self {
        let defaults = |row: &table::Row| match (platform, row.wsl) {
            (Platform::Wsl, Some(keys)) => keys,
            _ => row.keys,
        };
        let binding = |row| Binding {
            keys: defaults(row).iter().filter_map(|key| Key::parse(key).map(normal)).collect(),
            is_users: false,
        };
        Self { bindings: TABLE.iter().map(binding).collect() }
    }

    /// The defaults with what `keybindings.json` says, and what in it is of no use, a line each.
    pub fn load(file: &Value, platform: Platform) -> (Self, Vec<String>) {
        let mut keymap = Self::new(platform);
        let mut problems = Vec::new();
        let Some(entries) = file.as_object() else {
            problems.push("must hold an object: actions with their keys".to_owned());
            return (keymap, problems);
        };
        for (name, value) in entries {
            let id = OLD_IDS.iter().find(|(old, _)| old == name).map_or(&**name, |&(_, id)| id);
            if id != name && entries.contains_key(id) {
                continue;
            }
            let row = TABLE.iter().position(|row| row.id == id);
            let Some(binding) = row.and_then(|row| keymap.bindings.get_mut(row)) else {
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
                *binding = Binding { keys, is_users: true };
            }
        }
        problems.extend(keymap.conflicts());
        (keymap, problems)
    }

    /// Keys that the user has given to two actions which are there at the same time.
    fn conflicts(&self) -> Vec<String> {
        let mut found = Vec::new();
        for scopes in TOGETHER {
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
        found.sort();
        found.dedup();
        found
    }

    fn binding(&self, action: Action) -> Option<&Binding> {
        self.bindings.get(action as usize)
    }

    fn user_keys(&self, action: Action) -> &[Key] {
        match self.binding(action) {
            Some(binding) if binding.is_users => &binding.keys,
            _ => &[],
        }
    }

    pub fn keys(&self, action: Action) -> &[Key] {
        self.binding(action).map_or(&[], |binding| &binding.keys)
    }

    /// Whether the key, pressed or held down, is one of the action's.
    pub fn is(&self, key: &Key, action: Action) -> bool {
        let keys = self.keys(action);
        key.action != Event::Release && meanings(key).any(|key| keys.contains(&key))
    }

    /// What the key means among these actions.
    pub fn action(&self, key: &Key, scope: &[Action]) -> Option<Action> {
        if key.action == Event::Release {
            return None;
        }
        let any = |key| scope.iter().find(|action| self.keys(**action).contains(&key)).copied();
        self.user_action(key, scope).or_else(|| meanings(key).find_map(any))
    }

    /// What the user has made the key mean among these actions.
    fn user_action(&self, key: &Key, scope: &[Action]) -> Option<Action> {
        let users = |key| scope.iter().find(|action| self.user_keys(**action).contains(&key)).copied();
        meanings(key).find_map(users)
    }

    /// What the key means in the editor of the prompt. A key that the user has given to an action of [`MAIN`] is
    /// no default of the editor.
    pub fn prompt_action(&self, key: &Key) -> Option<Action> {
        let is_left = self.user_action(key, EDITOR).is_none() && self.user_action(key, MAIN).is_some();
        if is_left { None } else { self.action(key, EDITOR) }
    }

    /// The first key of an action as people write it, or nothing: `Ctrl+O`.
    pub fn shown(&self, action: Action) -> Option<String> {
        self.keys(action).first().map(shown)
    }

    /// All keys of all actions that have one, as Markdown tables.
    pub fn hotkeys(&self) -> String {
        self.tables("| Key | Action |\n|---|---|\n", |row, keys| {
            (!keys.is_empty()).then(|| format!("| {keys} | {} |\n", row.about))
        })
    }

    /// All actions with the names they have in the file.
    pub fn reference(&self) -> String {
        self.tables("| action | keys | what it does |\n|---|---|---|\n", |row, keys| {
            Some(format!("| `{}` | {keys} | {} |\n", row.id, row.about))
        })
    }

    /// A table for each group, with those rows that there are.
    fn tables(&self, head: &str, line: impl Fn(&table::Row, &str) -> Option<String>) -> String {
        let mut text = String::new();
        let mut group = None;
        for (row, binding) in TABLE.iter().zip(&self.bindings) {
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
                let _ = write!(text, "{gap}**{}**\n\n{head}", row.group.title());
            }
            text.push_str(&line);
        }
        text
    }
}

impl Action {
    fn row(self) -> Option<&'static table::Row> {
        TABLE.get(self as usize)
    }

    /// Its name in `keybindings.json`.
    pub fn id(self) -> &'static str {
        self.row().map_or("", |row| row.id)
    }
}

/// What a key may be bound as, the likelier first.
fn meanings(key: &Key) -> impl Iterator<Item = Key> {
    [Some(*key), key.twin()].into_iter().flatten().map(normal)
}

/// Terminals send `L` or Shift with `l`; here it is the second. A key that is held down is pressed.
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

/// A key as people write it.
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

#[cfg(test)]
mod tests;
