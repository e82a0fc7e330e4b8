//! Hides secrets in logs and errors about a request.

use crate::llm::secret::{self, Hider, Set, Vault};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// Replaces a secret that has no name.
pub(super) const HIDDEN: &str = "•••";
/// Minimum length of a secret, in bytes. Shorter values (`none`, `ollama`) are no secrets, and hiding them
/// would garble messages.
const MIN_LEN: usize = 8;

/// The secrets of the vault, and those of one request.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    vault: Vault,
    own: Vec<String>,
    /// Further headers whose values are hidden.
    masked: Vec<String>,
    /// Built when first needed.
    set: OnceLock<Option<Arc<Set>>>,
}

impl Secrets {
    pub(crate) fn new(vault: &Vault) -> Self {
        Self { vault: vault.clone(), ..Self::default() }
    }

    pub(crate) fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= MIN_LEN && !self.own.iter().any(|known| known == value) {
            self.own.push(value.to_owned());
            self.set = OnceLock::new();
        }
    }

    /// Adds the values of secret headers, with and without a scheme such as `Bearer`.
    pub(crate) fn add_headers(&mut self, headers: &[(String, String)]) {
        for (_, value) in headers.iter().filter(|(name, _)| secret::is_secret_name(name)) {
            self.add(value);
            if let Some((_, rest)) = value.trim().split_once(' ') {
                self.add(rest);
            }
        }
    }

    /// Hides the value of a header.
    pub(crate) fn mask_header(&mut self, name: &str) {
        self.masked.push(name.to_owned());
    }

    pub(super) fn hides_header(&self, name: &str) -> bool {
        secret::is_secret_name(name) || self.masked.iter().any(|masked| masked.eq_ignore_ascii_case(name))
    }

    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.set().map_or(Cow::Borrowed(text), |set| set.hide(text))
    }

    /// Hides secrets in every string of `value`.
    pub(crate) fn hide_value(&self, value: &mut Value) {
        if let Some(set) = self.set() {
            set.hide_value(value);
        }
    }

    /// A hider for text that arrives in pieces.
    pub(super) fn hider(&self) -> Hider {
        Hider::new(self.set().cloned())
    }

    fn set(&self) -> Option<&Arc<Set>> {
        let make = || match self.own.is_empty() {
            true => self.vault.all(),
            false => {
                let own = self.own.iter().map(|value| (value.clone(), HIDDEN.to_owned()));
                Set::new(self.vault.pairs().into_iter().chain(own)).map(Arc::new)
            }
        };
        self.set.get_or_init(make).as_ref()
    }
}

/// Hides query parameters that carry a key or a signature.
pub(super) fn hide_query(query: &str) -> String {
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, _)) if is_secret_parameter(name) => format!("{name}={HIDDEN}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("&")
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "sig", "credential", "code", "password"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_wherever_they_are() {
        let mut secrets = Secrets::default();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        secrets.add_headers(&[
            header("Authorization", "Bearer sk-long-enough"),
            header("x-api-key", "another-key"),
            header("accept", "application/json"),
        ]);
        secrets.add("short");
        secrets.add("sk-long-enough-and-longer");
        let rows = [
            ("no key", "no key"),
            ("Incorrect key: sk-long-enough.", "Incorrect key: •••."),
            ("Bearer sk-long-enough", "•••"),
            ("sk-long-enough-and-longer", "•••"),
            ("another-keyanother-key", "••••••"),
            ("short application/json", "short application/json"),
        ];
        for (text, expected) in rows {
            assert_eq!(secrets.hide(text), expected);
        }
    }

    #[test]
    fn what_is_known_is_shown_by_its_name() {
        let vault = Vault::default();
        vault.learn("A_KEY", "sk-0123456789");
        vault.switch(false); // conversations alone
        let mut secrets = Secrets::new(&vault);
        assert_eq!(secrets.hide("sk-0123456789 or sk-own"), "‹secret:A_KEY› or sk-own");
        secrets.add("sk-0123456789");
        secrets.add("sk-own-key");
        assert_eq!(secrets.hide("sk-0123456789 or sk-own-key"), "‹secret:A_KEY› or •••");
    }

    #[test]
    fn headers_that_are_configured_or_say_so_are_masked() {
        let mut secrets = Secrets::default();
        secrets.mask_header("x-team");
        for name in ["X-Team", "authorization", "x-api-key", "Set-Cookie", "x-pass", "x-goog-auth"] {
            assert!(secrets.hides_header(name), "{name}");
        }
        for name in ["accept", "content-type", "retry-after"] {
            assert!(!secrets.hides_header(name), "{name}");
        }
    }

    #[test]
    fn keys_in_queries_are_hidden() {
        let query = "alt=sse&key=abc&api-version=1&X-Amz-Signature=x&empty&access_token=";
        let shown = "alt=sse&key=•••&api-version=1&X-Amz-Signature=•••&empty&access_token=•••";
        assert_eq!(hide_query(query), shown);
    }
}
