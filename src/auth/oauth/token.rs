//! What a sign-in or a renewal gives.

use super::entry::Entry;
use super::wire::Answer;
use crate::llm::event::StreamError;
use crate::llm::message::now_ms;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Token {
    pub access: String,
    pub refresh: String,
    /// Unix milliseconds.
    pub expires: u64,
    /// What the provider adds. `Null` takes a field away.
    pub extra: Vec<(&'static str, Value)>,
}

/// The largest whole number that JavaScript can tell from its neighbours.
pub(super) const NEVER: u64 = (1 << 53) - 1;

/// How the time of a token is read.
#[derive(Clone, Copy, Default)]
pub(super) struct Lifetime {
    /// Taken off, so that no token ends while a request is on its way.
    pub margin_seconds: u64,
    /// Where the server does not say.
    pub default_seconds: Option<u64>,
}

impl Token {
    /// Reads the answer of a token endpoint. A server that gives no new refresh token means the old one
    /// to stay.
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

    /// Other fields of the entry stay, and so does the order.
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

/// When a token of this age ends, in Unix milliseconds.
pub(super) fn expiry(seconds: u64, margin_seconds: u64) -> u64 {
    let end = now_ms().saturating_add(seconds.saturating_mul(1000));
    end.saturating_sub(margin_seconds.saturating_mul(1000)).min(NEVER)
}

/// Seconds of a server, whatever it said.
pub(super) fn whole(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // a cast of a float saturates
    let whole = seconds as u64;
    whole
}
