//! Hides known secrets in text for models, files and the screen.
//!
//! A [`Vault`] holds the keys, tokens and passwords known to the program, each with a name: its variable, or
//! its place in auth.json or models.json. Text for a model, a file or the screen shows `‹secret:NAME›` in
//! place of a secret. In a tool call the placeholder is replaced by the secret just before the tool runs.
//!
//! Only exact copies are recognized, not encoded, reversed or shortened ones. Values of fewer than
//! [`LEN_MIN`] bytes are not hidden, since that would garble text. The lines of a multi-line secret are
//! hidden separately, so that the number of lines does not change.

mod hider;
mod message;
mod set;
mod value;

pub use hider::{EventHider, Hider};
pub use set::Set;
pub use value::each_text;

use crate::base::order;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Minimum length of a secret, in bytes.
pub const LEN_MIN: usize = 12;
/// Maximum length of a secret, in bytes.
const LEN_MAX: usize = 64 << 10;

const OPEN: &str = "‹secret:";
const CLOSE: char = '›';
/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 128;

/// A key or token. `Debug` does not show the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for sending it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}

/// The known secrets. Clones share them.
#[derive(Clone, Default)]
pub struct Vault(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// True if conversations show secrets.
    is_off: AtomicBool,
    /// True if at least one secret is known.
    has_any: AtomicBool,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    known: Vec<Known>,
    /// Built from `known` when first needed.
    set: Option<Arc<Set>>,
}

#[derive(Clone)]
struct Known {
    name: String,
    value: String,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.read(|state| state.known.iter().map(|known| known.name.clone()).collect::<Vec<_>>());
        f.debug_tuple("Vault").field(&names).finish()
    }
}

impl Vault {
    /// Adds a secret. A known value keeps its name; a different value under a known name gets a number.
    /// Values that are too short or too long are ignored.
    pub fn learn(&self, name: &str, value: &str) {
        let name: String = name.chars().map(|c| if is_of_name(c) { c } else { '_' }).take(NAME_MAX).collect();
        let value = value.trim();
        if !value.contains('\n') {
            return self.learn_line(&name, value);
        }
        for (index, line) in value.lines().map(str::trim).enumerate() {
            // The first and last lines of all PEM files are alike.
            if !line.starts_with("-----") {
                self.learn_line(&format!("{name}.{}", index + 1), line);
            }
        }
    }

    fn learn_line(&self, name: &str, value: &str) {
        if !(LEN_MIN..=LEN_MAX).contains(&value.len()) || value.contains(OPEN) {
            return;
        }
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        state.add(name, value);
        // Quotes and backslashes are escaped in JSON.
        let json = Value::from(value).to_string();
        if json.len() != value.len() + 2 {
            state.add(&format!("{name}.json"), &json[1..json.len() - 1]);
        }
        self.0.has_any.store(true, Ordering::Release);
    }

    /// Adds a value that may not be a secret, such as a host name in a header: only if it has letters and
    /// digits, and is not a URL, a path or several words.
    pub fn learn_if_random(&self, name: &str, value: &str) {
        let has = |kind: fn(&char) -> bool| value.chars().any(|c| kind(&c));
        let is_place = value.contains("://") || value.starts_with('/');
        if has(char::is_ascii_digit)
            && has(char::is_ascii_alphabetic)
            && !is_place
            && !has(|c| c.is_whitespace())
        {
            self.learn(name, value);
        }
    }

    /// Adds the secrets of `other`.
    pub fn learn_from(&self, other: &Self) {
        let known = other.read(|state| state.known.clone());
        for Known { name, value } in known {
            self.learn_line(&name, &value);
        }
    }

    /// Sets whether conversations hide secrets, as they do by default. Logs and errors always hide secrets,
    /// and placeholders in tool calls are always replaced.
    pub fn switch(&self, on: bool) {
        self.0.is_off.store(!on, Ordering::Release);
    }

    /// The secrets to hide in conversations; `None` if there is nothing to hide.
    pub fn set(&self) -> Option<Arc<Set>> {
        if self.0.is_off.load(Ordering::Acquire) { None } else { self.all() }
    }

    /// The secrets to hide in logs and errors; `None` if none is known.
    pub fn all(&self) -> Option<Arc<Set>> {
        if !self.0.has_any.load(Ordering::Acquire) {
            return None;
        }
        if let Some(set) = self.read(|state| state.set.clone()) {
            return Some(set);
        }
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.set.is_none() {
            state.set = Set::new(state.pairs()).map(Arc::new);
        }
        state.set.clone()
    }

    /// Each secret with its placeholder.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.read(|state| state.pairs().collect())
    }

    /// Hides secrets in `text`, if conversations hide them.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.set().map_or(Cow::Borrowed(text), |set| set.hide(text))
    }

    /// Hides secrets in every string of `value`, if conversations hide them.
    pub fn hide_value(&self, value: &mut Value) {
        if let Some(set) = self.set() {
            set.hide_value(value);
        }
    }

    /// A hider for text that arrives in pieces.
    pub fn hider(&self) -> Hider {
        Hider::new(self.set())
    }

    /// Replaces placeholders in tool arguments by secrets; `None` if there are no placeholders. An error is
    /// the name of an unknown secret.
    pub fn reveal(&self, arguments: &Map<String, Value>) -> Result<Option<Map<String, Value>>, String> {
        if !arguments.values().any(holds_placeholder) {
            return Ok(None);
        }
        let mut revealed = Value::Object(arguments.clone());
        let mut missing = None;
        self.read(|state| {
            each_text(&mut revealed, &mut |text| {
                let found = state.reveal(text);
                found.unwrap_or_else(|name| {
                    missing.get_or_insert(name);
                    None
                })
            });
        });
        match (missing, revealed) {
            (None, Value::Object(revealed)) => Ok(Some(revealed)),
            (name, _) => Err(name.unwrap_or_default()),
        }
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.0.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn add(&mut self, name: &str, value: &str) {
        // Hiding a text twice must not change it further.
        let in_placeholder = |name: &str| placeholder(name).contains(value);
        let is_known = |known: &Known| known.value == value || in_placeholder(&known.name);
        if in_placeholder(name) || self.known.iter().any(is_known) {
            return;
        }
        let taken = order::set(self.known.iter().map(|known| known.name.as_str()));
        let numbered = (2..).map(|number| format!("{name}.{number}"));
        let name =
            std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name.as_str()));
        self.known.push(Known { name: name.unwrap_or_default(), value: value.to_owned() });
        self.set = None;
    }

    fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.known.iter().map(|known| (known.value.clone(), placeholder(&known.name)))
    }

    /// Replaces placeholders in `text` by secrets; `None` if there are none.
    fn reveal(&self, text: &str) -> Result<Option<String>, String> {
        let mut revealed = String::new();
        let mut rest = text;
        let mut found = false;
        while let Some(at) = rest.find(OPEN) {
            let after = &rest[at + OPEN.len()..];
            let Some(name) = name_of(after) else {
                revealed.push_str(&rest[..at + OPEN.len()]);
                rest = after;
                continue;
            };
            let known = self.known.iter().find(|known| known.name == name).ok_or(name)?;
            revealed.push_str(&rest[..at]);
            revealed.push_str(&known.value);
            rest = &after[name.len() + CLOSE.len_utf8()..];
            found = true;
        }
        revealed.push_str(rest);
        Ok(found.then_some(revealed))
    }
}

/// The placeholder of the secret `name`.
pub fn placeholder(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// The name at the start of `text`, after the opening of a placeholder.
fn name_of(text: &str) -> Option<&str> {
    let (name, _) = text.split_once(CLOSE)?;
    (!name.is_empty() && name.len() <= 2 * NAME_MAX && name.chars().all(is_of_name)).then_some(name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./@:".contains(c)
}

fn holds_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(OPEN),
        Value::Array(items) => items.iter().any(holds_placeholder),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains(OPEN) || holds_placeholder(value))
        }
        _ => false,
    }
}

/// True if a header, field or variable with this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "auth", "token", "pass", "secret", "cookie"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
