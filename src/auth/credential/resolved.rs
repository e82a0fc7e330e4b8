//! What the search for a key finds, and what a request gets.

use crate::llm::options::Access;
use crate::llm::secret::Secret;
use std::fmt;
use std::sync::Arc;

/// The credentials, headers and endpoint of a request.
#[derive(Clone)]
pub struct Resolved {
    /// `None` if the server needs no key, or if a header or a signature authenticates the request.
    pub key: Option<Secret>,
    pub source: Source,
    /// Variables in the credential, which override the process environment.
    pub env: Vec<(String, String)>,
    /// Names in lower case, each once. `None` as a value removes a header that the protocol would send.
    pub headers: Vec<(String, Option<String>)>,
    /// Overrides the model's base URL; `None` leaves the URL unchanged.
    pub base_url: Option<String>,
    /// Keys, region and endpoint of a request to AWS.
    pub aws: Option<Arc<Access>>,
}

impl Resolved {
    /// The secret of the request: the key, or the bearer token in a header.
    pub fn secret(&self) -> Option<Secret> {
        let bearer = || {
            let mut headers = self.headers.iter().filter_map(|(_, value)| value.as_deref());
            headers.find_map(|value| value.strip_prefix("Bearer ")).map(Secret::new)
        };
        self.key.clone().or_else(bearer)
    }
}

/// The source of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag,
    AuthFile,
    /// The access token of a sign-in, in auth.json.
    SignIn,
    ModelsFile,
    Variable(&'static str),
    /// Something other than a key of the provider, such as AWS credentials; the value describes it.
    Ambient(&'static str),
}

impl Source {
    /// The name shown in place of a hidden key from this source.
    pub(super) fn place(&self, provider: &str) -> String {
        match self {
            Self::Flag => "api-key".to_owned(),
            Self::AuthFile | Self::SignIn | Self::Ambient(_) => format!("auth.{provider}"),
            Self::ModelsFile => format!("models.{provider}.apiKey"),
            Self::Variable(name) => (*name).to_owned(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--api-key"),
            Self::AuthFile => f.write_str("auth.json"),
            Self::SignIn => f.write_str("auth.json (signed in)"),
            Self::ModelsFile => f.write_str("models.json"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Ambient(what) => f.write_str(what),
        }
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Resolved")
            .field("key", &self.key)
            .field("source", &self.source)
            .field("env", &env)
            .field("headers", &headers)
            .field("base_url", &self.base_url)
            .field("aws", &self.aws)
            .finish()
    }
}

/// The result of a search for a key.
pub(super) struct Found {
    pub key: Option<Secret>,
    pub source: Source,
    /// True if the key is sent as `Authorization: Bearer`.
    pub bearer: bool,
    /// The server that the sign-in names.
    pub base_url: Option<String>,
}

impl Found {
    pub fn key(key: Secret, source: Source) -> Self {
        Self { key: Some(key), source, bearer: false, base_url: None }
    }
}
