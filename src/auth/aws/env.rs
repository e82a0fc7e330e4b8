//! Keys that are variables, and the error where there are none.

use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::options::Keys;

/// Keys that are variables.
pub(super) fn env_keys(env: &Env) -> Option<Keys> {
    let id = env.get("AWS_ACCESS_KEY_ID")?;
    let secret = env.get("AWS_SECRET_ACCESS_KEY")?;
    let token = env.get("AWS_SESSION_TOKEN");
    Some(Keys::new(&id, &secret, token.as_deref()))
}

/// A credential that is not there or cannot be used.
pub(super) fn refused(message: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Auth, message)
}
