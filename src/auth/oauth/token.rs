//! The token that a sign-in or a renewal yields.

use super::entry::Entry;
use super::wire::Answer;
use crate::llm::event::StreamError;
use crate::llm::message::now_ms;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Token {
    pub access: String,
    pub refresh: String,
    /// When the access token expires, in Unix milliseconds.
    pub expires: u64,
    /// Provider-specific fields of the entry. `Null` removes a field.
    pub extra: Vec<(&'static str, Value)>,
}

/// The expiry of a token that never expires: the largest integer that is safe in JavaScript.
pub(super) const NEVER: u64 = (1 << 53) - 1;

/// How the expiry of a token is computed.
#[derive(Clone, Copy, Default)]
pub(super) struct Lifetime {
    /// Subtracted from the lifetime, so that no token expires during a request.
    pub margin_seconds: u64,
    /// Lifetime if the server names none; `None` makes that an error.
    pub default_seconds: Option<u64>,
}

impl Token {
    /// Reads the answer of a token endpoint. Without a new refresh token, `old_refresh` is kept.
    pub fn read(
        answer: &Answer,
        what: &str,
        old_refresh: Option<&str>,
        lifetime: Lifetime,
    ) -> Result<Self, StreamError> {
        if !answer.is_ok() {
            return Err(answer.refused(what));
        }
        let lacks = |name| answer.lacks(what, name);
        let access = answer.text("access_token").ok_or_else(|| lacks("access_token"))?;
        let refresh = answer.text("refresh_token").or(old_refresh);
        let refresh = refresh.ok_or_else(|| lacks("refresh_token"))?;
        let seconds = match (answer.fields.get("expires_in"), lifetime.default_seconds) {
            (None, Some(seconds)) => seconds,
            _ => {
                let seconds = answer.positive("expires_in");
                whole(seconds.ok_or_else(|| lacks("expires_in"))?)
            }
        };
        Ok(Self {
            access: access.to_owned(),
            refresh: refresh.to_owned(),
            expires: expiry(seconds, lifetime.margin_seconds),
            extra: Vec::new(),
        })
    }

    pub fn into_entry(self) -> Entry {
        let mut entry = Entry::new();
        entry.insert("type".into(), "oauth".into());
        self.write_to(&mut entry);
        entry
    }

    /// Writes the token to `entry`. Other fields and the order are kept.
    pub fn write_to(self, entry: &mut Entry) {
        entry.insert("access".into(), self.access.into());
        entry.insert("refresh".into(), self.refresh.into());
        entry.insert("expires".into(), self.expires.into());
        for (name, value) in self.extra {
            match value {
                Value::Null => drop(entry.shift_remove(name)),
                value => drop(entry.insert(name.into(), value)),
            }
        }
    }
}

/// When a token with this lifetime expires, in Unix milliseconds.
pub(super) fn expiry(seconds: u64, margin_seconds: u64) -> u64 {
    let end = now_ms().saturating_add(seconds.saturating_mul(1000));
    end.saturating_sub(margin_seconds.saturating_mul(1000)).min(NEVER)
}

/// Truncates to whole seconds; saturates at the limits of `u64`.
pub(super) fn whole(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // a cast of a float saturates
    let whole = seconds as u64;
    whole
}
