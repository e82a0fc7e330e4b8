//! What can go wrong with a server.

use crate::jsonrpc::message::Failure;
use crate::llm::http::one_line;
use std::fmt;
use std::time::Duration;

/// Most characters of a server's own words in an error.
const WORDS_CHARS: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The server's answer is an error.
    Refused(Failure),
    /// The connection is gone; why.
    Closed(String),
    /// No answer and no progress for this long.
    Timeout(Duration),
    Aborted,
    /// An answer over HTTP with an error status, and what it says.
    Status {
        status: u16,
        text: String,
    },
    /// Nothing was reached over HTTP.
    Unreachable(String),
    /// The server has forgotten the session, and so has not done what it was asked.
    SessionGone,
    /// The server wants a sign-in. Holds its challenge, if it sent one.
    SignIn(Option<String>),
    /// The sign-in does not reach as far as this request, which was not carried out. Holds the server's challenge.
    Scope(String),
    Failed(String),
}

impl Fault {
    /// True if connecting may work a moment later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502..),
            Self::Unreachable(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(failure) => {
                let text = one_line(&failure.message, WORDS_CHARS);
                write!(f, "{text} (error {})", failure.code)
            }
            Self::Timeout(limit) => write!(f, "no answer for {} s", limit.as_secs_f64()),
            Self::Aborted => f.write_str("aborted"),
            Self::Status { status, text } if text.is_empty() => write!(f, "HTTP status {status}"),
            Self::Status { status, text } => write!(f, "HTTP status {status}: {text}"),
            Self::SessionGone => f.write_str("the server has forgotten the session"),
            Self::Scope(_) => f.write_str("the server wants more scopes"),
            Self::SignIn(_) => f.write_str("the server wants a sign-in"),
            Self::Closed(text) | Self::Unreachable(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}
