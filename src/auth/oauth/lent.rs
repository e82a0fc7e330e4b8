//! Sign-ins of other programs, beside those of the table.

use super::entry::Entry;
use super::interaction::Interaction;
use super::method::Method;
use super::wire::Setting;
use crate::base::cancel::CancelToken;
use crate::llm::event::StreamError;
use crate::llm::secret::Secret;
use std::sync::Arc;

/// A sign-in that another program performs.
pub trait LentSignIn: Send + Sync {
    /// The account or subscription, as shown to the user.
    fn label(&self) -> &str;

    /// Signs in, and returns the entry for auth.json. Waits for the user.
    fn login(&self, interaction: &dyn Interaction, cancel: &CancelToken) -> Result<Entry, StreamError>;

    /// Returns the entry with a new token.
    fn renew(&self, entry: &Entry) -> Result<Entry, StreamError>;

    /// The key that requests send, made of the entry.
    fn key(&self, entry: &Entry, cancel: &CancelToken) -> Result<Secret, StreamError>;

    /// Called after the entry in auth.json has changed or was removed.
    fn changed(&self);
}

/// How to sign in to a provider.
#[derive(Clone)]
pub enum SignIn {
    Own(&'static Method),
    Lent(Arc<dyn LentSignIn>),
}

impl SignIn {
    /// The account or subscription, as shown to the user.
    pub fn label(&self) -> &str {
        match self {
            Self::Own(method) => method.label,
            Self::Lent(lent) => lent.label(),
        }
    }

    /// True if the sign-in requires the UUID of this installation.
    pub fn needs_device(&self) -> bool {
        matches!(self, Self::Own(method) if method.needs_device)
    }

    /// Signs in, and returns the entry for auth.json.
    pub(crate) fn login(
        &self,
        setting: &Setting<'_>,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<Entry, StreamError> {
        match self {
            Self::Own(method) => method.login(setting, interaction, cancel),
            Self::Lent(lent) => lent.login(interaction, cancel),
        }
    }

    /// Requests a new token, and writes it to `entry`.
    pub(crate) fn renew(
        &self,
        setting: &Setting<'_>,
        entry: &mut Entry,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        match self {
            Self::Own(method) => method.renew(setting, entry, cancel),
            Self::Lent(lent) => {
                let env = entry.get("env").cloned();
                *entry = lent.renew(entry)?;
                entry.extend(env.map(|env| ("env".to_owned(), env)));
                Ok(())
            }
        }
    }

    pub(crate) fn changed(&self) {
        if let Self::Lent(lent) = self {
            lent.changed();
        }
    }
}
