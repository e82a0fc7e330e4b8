//! Access to Amazon Web Services: whose keys a request is signed with, in which region, at what address.
//!
//! Keys are looked for as AWS's own programs do it: variables, the profile of the shared files (keys, a
//! role of another profile, an SSO sign-in, a program), a web identity, the container's service, the
//! instance's. Only a request to a model that is behind AWS asks; nothing here runs before.
//!
//! Keys that expire are kept for all requests and renewed shortly before. Files are read again for each
//! request, so keys in them can be changed while a session runs.

mod chain;
mod env;
mod ini;
mod metadata;
mod profile;
mod region;
mod sso;
mod sts;
#[cfg(test)]
mod tests;

use super::expiring::Expiring;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::StreamError;
use crate::llm::message::now_ms;
use crate::llm::model::Model;
use crate::llm::options::{Access, Keys};
use env::{env_keys, refused};
use profile::Profiles;

/// The protocol that needs it.
pub const API: &str = "bedrock-converse-stream";

/// The keys that expire, kept for all requests of a process.
#[derive(Default)]
pub struct Aws {
    kept: Expiring<Keys>,
}

/// What the caller knows.
pub struct Asked<'a> {
    pub model: &'a Model,
    /// The credential's settings and the process environment.
    pub env: &'a Env,
    /// The credential itself names a profile: it comes before keys in the environment.
    pub own_profile: bool,
    /// True if an API key is sent, so that no signature is needed.
    pub has_key: bool,
}

impl Aws {
    pub fn access(&self, asked: &Asked<'_>, cancel: &CancelToken) -> Result<Access, StreamError> {
        let env = asked.env;
        let skip = env.get("AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1");
        let from_env = env_keys(env).filter(|_| !asked.own_profile);
        let named = env.get("AWS_PROFILE");
        let settled = skip || asked.has_key || from_env.is_some();
        let profiles = match settled && named.is_none() {
            true => Profiles::default(),
            false => Profiles::load(env)?,
        };
        let name = named.clone().unwrap_or_else(|| "default".to_owned());
        let region = region::region(asked.model, env, profiles.get(&name));
        let endpoint = region::endpoint(asked.model, env, &profiles, &name, &region);
        let keys = if skip {
            Some(Keys::new("dummy-access-key", "dummy-secret-key", None))
        } else if asked.has_key {
            None
        } else if from_env.is_some() {
            from_env
        } else {
            let chain = chain::Chain { env, profiles: &profiles, region: &region, cancel };
            Some(self.chained(&chain, &name, named.is_some())?)
        };
        Ok(Access { keys, region, endpoint })
    }

    fn chained(&self, chain: &chain::Chain<'_>, profile: &str, named: bool) -> Result<Keys, StreamError> {
        if let Some(keys) = chain.fixed(profile) {
            return Ok(keys);
        }
        self.kept.get(&chain.key(profile), chain.cancel, || {
            let keys = chain.find(profile, named)?;
            let expires = keys.expires_ms;
            if expires.is_some_and(|expires| expires <= now_ms()) {
                return Err(refused("The AWS credentials that were found have expired already"));
            }
            Ok((keys, expires))
        })
    }
}

/// True if the shared files are there, which may have a profile without a name.
pub fn has_files(env: &Env) -> bool {
    profile::paths(env).iter().flatten().any(|path| path.exists())
}
