//! Values that no log and no error may show.

use std::borrow::Cow;

/// What a hidden value looks like.
pub(super) const HIDDEN: &str = "•••";
/// Shorter values (`none`, `ollama`) are no secrets, and hiding them would garble what is shown.
const MIN_LEN: usize = 8;

#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= MIN_LEN && !self.0.iter().any(|known| known == value) {
            self.0.push(value.to_owned());
            // A value inside another one must not break it up before it is found.
            self.0.sort_by_key(|value| std::cmp::Reverse(value.len()));
        }
    }

    /// Adds the values of secret headers, whole and without a scheme such as `Bearer`.
    pub(crate) fn add_headers(&mut self, headers: &[(String, String)]) {
        for (_, value) in headers.iter().filter(|(name, _)| is_secret_header(name)) {
            self.add(value);
            if let Some((_, rest)) = value.trim().split_once(' ') {
                self.add(rest);
            }
        }
    }

    pub(crate) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for secret in &self.0 {
            if shown.contains(secret) {
                shown = Cow::Owned(shown.replace(secret, HIDDEN));
            }
        }
        shown
    }

    /// The length of the longest value, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }
}

/// Headers whose value is never shown.
pub(super) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "api-key", "apikey", "token", "secret", "cookie"].iter().any(|part| name.contains(part))
}

/// A query without the values of parameters that carry a key or a signature.
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
    fn keys_in_queries_are_hidden() {
        let query = "alt=sse&key=abc&api-version=1&X-Amz-Signature=x&empty&access_token=";
        let shown = "alt=sse&key=•••&api-version=1&X-Amz-Signature=•••&empty&access_token=•••";
        assert_eq!(hide_query(query), shown);
    }
}
