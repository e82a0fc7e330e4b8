//! What the program knows to be secret, and how it is kept out of everything else.
//!
//! A [`Vault`] holds the keys, tokens and passwords that the program has met, each under a name: the
//! variable it came from, or its place in auth.json or models.json. Text that goes to a model, a file or
//! a screen shows `‹secret:NAME›` instead of a value; text that a model gives to a tool gets the value
//! back just before the tool runs.
//!
//! Values are compared as they are: a value in base64, reversed, or cut by who printed it is not
//! recognized. Values of fewer than [`LEN_MIN`] bytes are no secrets, since hiding them would garble text.
//! A value of several lines is known by its lines, so that line numbers stay what they are.

mod hider;
mod message;
mod set;
mod value;

pub use hider::{EventHider, Hider};
pub use set::Set;
pub use value::each_text;

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of the shortest value that a vault takes.
pub const LEN_MIN: usize = 12;
/// Bytes of the longest.
const LEN_MAX: usize = 64 << 10;

const OPEN: &str = "‹secret:";
const CLOSE: char = '›';
/// Bytes of the longest name.
const NAME_MAX: usize = 128;

/// A key or token. Its value is in no output: `Debug` shows dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("•••")
    }
}

/// The secrets that are known. Clones share them.
#[derive(Clone, Default)]
pub struct Vault(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Conversations show values as they are.
    is_off: AtomicBool,
    /// At least one value is known.
    has_any: AtomicBool,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    known: Vec<Known>,
    /// Made from `known` when it is first needed.
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
    /// Takes a value in. One that is known already keeps its name; another value under a known name gets
    /// a number. What is too short, or too long, to be a key is left out.
    pub fn learn(&self, name: &str, value: &str) {
        let name: String = name.chars().map(|c| if is_of_name(c) { c } else { '_' }).take(NAME_MAX).collect();
        let value = value.trim();
        if !value.contains('\n') {
            return self.learn_line(&name, value);
        }
        for (index, line) in value.lines().map(str::trim).enumerate() {
            // The first and last line of a PEM file are the same in all of them.
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
        // Quotes and backslashes look different in JSON.
        let json = Value::from(value).to_string();
        if json.len() != value.len() + 2 {
            state.add(&format!("{name}.json"), &json[1..json.len() - 1]);
        }
        self.0.has_any.store(true, Ordering::Release);
    }

    /// [`learn`](Self::learn) for values that may be no secrets, such as the name of a host in a header:
    /// only what has letters and digits, and is neither an address, a path nor several words.
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

    /// Takes over what `other` knows.
    pub fn learn_from(&self, other: &Self) {
        let known = other.read(|state| state.known.clone());
        for Known { name, value } in known {
            self.learn_line(&name, &value);
        }
    }

    /// Sets if conversations hide secrets, as they do by default. Placeholders are put back, and logs
    /// and errors hide secrets, in any case.
    pub fn switch(&self, on: bool) {
        self.0.is_off.store(!on, Ordering::Release);
    }

    /// What conversations hide; `None` when there is nothing to hide.
    pub fn set(&self) -> Option<Arc<Set>> {
        if self.0.is_off.load(Ordering::Acquire) { None } else { self.all() }
    }

    /// What logs and errors hide.
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

    /// Each value with what is shown for it.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.read(|state| state.pairs().collect())
    }

    /// `text` as a conversation shows it.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.set().map_or(Cow::Borrowed(text), |set| set.hide(text))
    }

    /// Hides in every string of `value`.
    pub fn hide_value(&self, value: &mut Value) {
        if let Some(set) = self.set() {
            set.hide_value(value);
        }
    }

    /// For text that comes in pieces.
    pub fn hider(&self) -> Hider {
        Hider::new(self.set())
    }

    /// The arguments with values in the place of placeholders; `None` where there is no placeholder. The
    /// error is a name that is not known here.
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
        // What is hidden twice must not grow.
        let in_placeholder = |name: &str| placeholder(name).contains(value);
        let is_known = |known: &Known| known.value == value || in_placeholder(&known.name);
        if in_placeholder(name) || self.known.iter().any(is_known) {
            return;
        }
        let taken: BTreeSet<&str> = self.known.iter().map(|known| known.name.as_str()).collect();
        let numbered = (2..).map(|number| format!("{name}.{number}"));
        let name =
            std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name.as_str()));
        self.known.push(Known { name: name.unwrap_or_default(), value: value.to_owned() });
        self.set = None;
    }

    fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.known.iter().map(|known| (known.value.clone(), placeholder(&known.name)))
    }

    /// `text` with values for placeholders; `None` where there are none.
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

/// What is shown for the secret `name`.
pub fn placeholder(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// The name that `text` begins with, where a placeholder has been opened.
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

/// Names of headers, fields and variables whose values are secrets.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "auth", "token", "pass", "secret", "cookie"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests;
