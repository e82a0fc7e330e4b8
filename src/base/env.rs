//! Environment variables for lookups.
//!
//! An empty variable counts as unset, as does one that is not UTF-8. Passing the environment as a value keeps
//! lookups testable and lets a credential's own settings take precedence.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone)]
pub struct Env {
    /// Variables that take precedence.
    first: BTreeMap<String, String>,
    rest: Arc<Lookup>,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Env {
    /// The variables of this process, read at each lookup.
    pub fn process() -> Self {
        Self { first: BTreeMap::new(), rest: Arc::new(|name| std::env::var(name).ok()) }
    }

    /// Only these variables.
    pub fn of<const N: usize>(pairs: [(&str, &str); N]) -> Self {
        let first = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { first: BTreeMap::from(first), rest: Arc::new(|_| None) }
    }

    /// A copy in which `settings` come before the environment.
    pub fn with(&self, settings: &[(String, String)]) -> Self {
        let mut first = self.first.clone();
        let set = settings.iter().filter(|(_, value)| !value.is_empty());
        first.extend(set.cloned());
        Self { first, rest: self.rest.clone() }
    }

    /// A copy in which `name` is unset.
    pub fn without(&self, name: &str) -> Self {
        let mut first = self.first.clone();
        first.insert(name.to_owned(), String::new());
        Self { first, rest: self.rest.clone() }
    }

    pub fn get(&self, name: &str) -> Option<String> {
        let value = match self.first.get(name) {
            Some(value) => Some(value.clone()),
            None => (self.rest)(name),
        };
        value.filter(|value| !value.is_empty())
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// Prints only names: values may be keys.
impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.first.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_counts_as_unset_and_a_setting_goes_first() {
        let env = Env::of([("A", "1"), ("B", "")]);
        assert_eq!(env.get("A").as_deref(), Some("1"));
        assert!(!env.has("B") && !env.has("C"));
        let over = env.with(&[("A".into(), "2".into()), ("B".into(), String::new())]);
        assert_eq!(over.get("A").as_deref(), Some("2"));
        let over = env.with(&[("A".into(), String::new())]);
        assert_eq!(over.get("A").as_deref(), Some("1"));
        assert!(!env.without("A").has("A"));
    }
}
