//! Removes secrets from an export: known values, and text in the form of a key.
//!
//! The forms are documented by issuers and long enough to rule out ordinary words. Image data and opaque
//! provider data (signatures) are not changed: no key can be read from them.

use crate::llm::secret::{Set, each_text};
use regex::{Captures, Regex};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

const HIDDEN: &str = "[redacted]";

/// Minimum length of a known secret, in bytes. Shorter values, such as `none`, are not secrets.
const LEN_MIN: usize = 8;

/// Regular expressions of secrets. Groups named `keep…` and `after` are kept.
const SHAPES: &[&str] = &[
    // Anthropic, OpenAI, OpenRouter, DeepSeek and others
    r"\bsk-[A-Za-z0-9_-]{20,}",
    // Google: API key, access token, client secret
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bGOCSPX-[A-Za-z0-9_-]{20,}",
    // AWS: access key id; the secret beside it has no shape but its name
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"(?P<keep>(?i:aws_secret_access_key|secretaccesskey)\W{1,5})[A-Za-z0-9/+=]{40}",
    // GitHub, GitLab
    r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    // Hugging Face, Groq, xAI, NVIDIA, Cerebras, Perplexity, Replicate
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bgsk_[A-Za-z0-9]{20,}",
    r"\bxai-[A-Za-z0-9]{20,}",
    r"\bnvapi-[A-Za-z0-9_-]{20,}",
    r"\bcsk-[A-Za-z0-9]{20,}",
    r"\bpplx-[A-Za-z0-9]{20,}",
    r"\br8_[A-Za-z0-9]{30,}",
    // Slack, Stripe, npm, PyPI, SendGrid, Telegram
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bpypi-[A-Za-z0-9_-]{40,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
    // JSON web tokens
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    // Private keys, cut off ones too
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    // Headers and addresses with a password
    r"(?P<keep2>(?i:authorization|x-api-key|api-key)\W{1,4}(?i:(?:bearer|basic|token)\s+)?)[A-Za-z0-9+/=_.~-]{16,}",
    // A password goes on to the last @; digits before a slash are a port.
    r#"(?P<keep3>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)(?:\d+|\d*[^\s\d/"'<>`@][^\s"'<>`]*)(?P<after>@)"#,
];

/// The shortest text in one of [`SHAPES`] that is no address or name: a token of Slack, in bytes.
const TOKEN_MIN: usize = 15;

/// False if `text` certainly holds nothing in the form of a key. Cheap, unlike making a redactor.
pub fn may_hold_secret(text: &str) -> bool {
    let is_of_token = |letter: char| letter.is_ascii_alphanumeric() || "+/=_.~:-".contains(letter);
    text.split(|letter| !is_of_token(letter)).any(|word| word.len() >= TOKEN_MIN)
        || text.contains("://")
        || text.contains("-----BEGIN")
}

pub struct Redactor {
    known: Option<Set>,
    shapes: Regex,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Makes a redactor. `known` values are removed whatever their form.
    pub fn new<'a>(known: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let known = known.into_iter().map(str::trim).filter(|value| value.len() >= LEN_MIN);
        let known = Set::new(known.map(|value| (value.to_owned(), HIDDEN.to_owned())));
        let shapes = regex::RegexBuilder::new(&SHAPES.join("|")).size_limit(64 << 20).build();
        let shapes = shapes.map_err(|error| format!("Cannot look for secrets: {error}"))?;
        Ok(Self { known, shapes })
    }

    /// Returns `text` without secrets.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.known.as_ref().map_or(Cow::Borrowed(text), |known| known.hide(text));
        match self.without_shapes(&text) {
            Cow::Owned(hidden) => Cow::Owned(hidden),
            Cow::Borrowed(_) => text,
        }
    }

    fn without_shapes<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.shapes.replace_all(text, |found: &Captures<'_>| {
            let group = |name| found.name(name).map_or("", |found| found.as_str());
            let keep: String = ["keep", "keep2", "keep3"].map(group).concat();
            format!("{keep}{HIDDEN}{}", group("after"))
        })
    }

    /// Removes secrets from every string in `value`, including field names.
    pub fn clean(&self, value: &mut Value) {
        each_text(value, &mut |text| match self.hide(text) {
            Cow::Owned(hidden) => Some(hidden),
            Cow::Borrowed(_) => None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn keys_are_hidden_by_shape_and_by_value() {
        let redactor = Redactor::new(["my.own+key", "my.own+key-and-more", "short"]).unwrap();
        let a = "a".repeat(40);
        let rows = [
            ("nothing here, sk-short, AKIA, key: value".to_owned(), None),
            (format!("x=sk-ant-api03-{a}!"), Some("x=[redacted]!".to_owned())),
            (format!("\nsk-or-v1-{a}\n"), Some("\n[redacted]\n".to_owned())),
            (format!("ghp_{a} hf_{a}"), Some("[redacted] [redacted]".to_owned())),
            ("AKIAABCDEFGHIJKLMNOP".to_owned(), Some("[redacted]".to_owned())),
            ("xAKIAABCDEFGHIJKLMNOP".to_owned(), None),
            (format!("aws_secret_access_key = {a}"), Some("aws_secret_access_key = [redacted]".to_owned())),
            (format!("Authorization: Bearer {a}"), Some("Authorization: Bearer [redacted]".to_owned())),
            ("postgres://me:hunter2@host/db".to_owned(), Some("postgres://me:[redacted]@host/db".to_owned())),
            ("https://host:8080/a@b".to_owned(), None),
            ("db://me:8080@host".to_owned(), Some("db://me:[redacted]@host".to_owned())),
            ("'db://me:a@b/c@host/d'".to_owned(), Some("'db://me:[redacted]@host/d'".to_owned())),
            ("db://me:80a/c@host".to_owned(), Some("db://me:[redacted]@host".to_owned())),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----\nb".to_owned(),
                Some("[redacted]\nb".to_owned()),
            ),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nb".to_owned(),
                Some("a\n[redacted]\nb".to_owned()),
            ),
            ("-----BEGIN PRIVATE KEY-----\ncut".to_owned(), Some("[redacted]".to_owned())),
            (format!("eyJ{a}.eyJ{a}.{a}"), Some("[redacted]".to_owned())),
            (
                "my.own+key my.own+key-and-more myxown+key short".to_owned(),
                Some("[redacted] [redacted] myxown+key short".to_owned()),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(redactor.hide(&text), expected.as_deref().unwrap_or(&text));
            assert!(expected.is_none() || may_hold_secret(&text), "{text}");
        }
        assert!(!may_hold_secret("Fix the test, then commit: it fails."));
    }

    #[test]
    fn strings_anywhere_are_hidden_and_opaque_data_stays() {
        let redactor = Redactor::new(["the-secret"]).unwrap();
        let mut value = json!({"a": ["the-secret", 1, {"the-secret": null}], "thinkingSignature": "the-secret",
            "i": {"type": "image", "data": "the-secret", "mimeType": "the-secret"}, "data": "the-secret"});
        redactor.clean(&mut value);
        let expected = json!({"a": ["[redacted]", 1, {"[redacted]": null}], "thinkingSignature": "the-secret",
            "i": {"type": "image", "data": "the-secret", "mimeType": "[redacted]"}, "data": "[redacted]"});
        assert_eq!(value, expected);
    }
}
