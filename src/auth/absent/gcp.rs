//! Google Cloud in a build without the `clouds` feature: no credentials are found.

use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::feature;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::secret::Secret;
use std::path::PathBuf;

pub const API: &str = "google-vertex";

pub struct Token {
    pub access: Secret,
    pub quota_project: Option<String>,
}

#[derive(Default)]
pub struct Gcp;

impl Gcp {
    pub fn token(&self, _: &Env, _: &CancelToken) -> Result<Token, StreamError> {
        Err(StreamError::new(ErrorKind::Auth, feature::absent("clouds")))
    }
}

pub struct CredentialsFile {
    pub path: PathBuf,
}

pub fn credentials_file(_: &Env) -> Option<CredentialsFile> {
    None
}

pub fn has_metadata(_: &Env) -> bool {
    false
}
