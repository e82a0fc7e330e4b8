//! AWS in a build without the `clouds` feature: no credentials are found, and no request is signed.

use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::feature;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::model::Model;
use crate::llm::options::Access;

pub const API: &str = "bedrock-converse-stream";

#[derive(Default)]
pub struct Aws;

pub struct Asked<'a> {
    pub model: &'a Model,
    pub env: &'a Env,
    pub own_profile: bool,
    pub has_key: bool,
}

impl Aws {
    pub fn access(&self, _: &Asked<'_>, _: &CancelToken) -> Result<Access, StreamError> {
        Err(StreamError::new(ErrorKind::Auth, feature::absent("clouds")))
    }
}

pub fn has_files(_: &Env) -> bool {
    false
}
