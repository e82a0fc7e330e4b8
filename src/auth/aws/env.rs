//! AWS keys in environment variables, and the error for missing AWS credentials.

use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::options::Keys;

/// Keys from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; `None` unless the first
/// two are set.
pub(super) fn env_keys(env: &Env) -> Option<Keys> {
    let id = env.get("AWS_ACCESS_KEY_ID")?;
    let secret = env.get("AWS_SECRET_ACCESS_KEY")?;
    let token = env.get("AWS_SESSION_TOKEN");
    Some(Keys::new(&id, &secret, token.as_deref()))
}

/// An error about missing or unusable AWS credentials.
pub(super) fn refused(message: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Auth, message)
}
