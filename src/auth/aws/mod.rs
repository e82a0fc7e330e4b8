//! Access to Amazon Web Services: the keys, region and endpoint of a request.
//!
//! Keys are searched for in the order of AWS's own programs: environment variables, the profile in the shared
//! files (keys, a role of another profile, an SSO sign-in, a program), a web identity, the container service,
//! the EC2 service. The search runs only before a request to a model on AWS.
//!
//! Temporary keys are cached for all requests and renewed shortly before they expire. The shared files are
//! read again for each request, so that a user can change them during a session.

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

/// Name of the protocol that needs AWS credentials.
pub const API: &str = "bedrock-converse-stream";

/// AWS credentials of a process, with a cache of temporary keys.
#[derive(Default)]
pub struct Aws {
    kept: Expiring<Keys>,
}

/// The input of a search for AWS credentials.
pub struct Asked<'a> {
    pub model: &'a Model,
    /// The credential's settings and the process environment.
    pub env: &'a Env,
    /// True if the credential in auth.json sets `AWS_PROFILE`, which then precedes keys in the environment.
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

/// True if one of AWS's shared files exists; it may define a default profile.
pub fn has_files(env: &Env) -> bool {
    profile::paths(env).iter().flatten().any(|path| path.exists())
}
