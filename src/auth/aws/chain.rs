//! Searches the sources of AWS keys in order.
//!
//! A profile may name its source of keys. Without such a profile the other sources are tried in AWS's order.
//! A configured source that fails ends the search, so that a request is never signed with the keys of another
//! identity.

use super::profile::{Profile, Profiles};
use super::{metadata, sso, sts};
use crate::auth::aws::env::{env_keys, refused};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::time;
use crate::llm::event::StreamError;
use crate::llm::message::now_ms;
use crate::llm::options::Keys;
use crate::models::config_value;
use serde_json::Value;
use std::time::Duration;

/// Time limit of a `credential_process`, which may open a browser or wait for a key store.
const PROCESS_LIMIT: Duration = Duration::from_secs(60);

pub struct Chain<'a> {
    pub env: &'a Env,
    pub profiles: &'a Profiles,
    pub region: &'a str,
    pub cancel: &'a CancelToken,
}

impl Chain<'_> {
    /// Keys written in the profile itself. Reading such keys is cheap, so they are not cached.
    pub fn fixed(&self, name: &str) -> Option<Keys> {
        let profile = self.profiles.get(name)?;
        match is_role(profile) {
            true => None,
            false => static_keys(profile),
        }
    }

    /// The cache key of a search: every setting that affects its result. Contains no secrets.
    pub fn key(&self, profile: &str) -> String {
        let names = [
            "AWS_ROLE_ARN",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        ];
        let values = names.map(|name| self.env.get(name).unwrap_or_default());
        let files = &self.profiles.files;
        format!("{profile}\n{files}\n{}", values.join("\n"))
    }

    /// Searches all sources. `named`: true if the user chose the profile, which must then exist.
    pub fn find(&self, profile: &str, named: bool) -> Result<Keys, StreamError> {
        if named && self.profiles.get(profile).is_none() {
            let files = &self.profiles.files;
            return Err(refused(format!(
                "The AWS profile \"{profile}\" is not in {files}. Correct AWS_PROFILE, or add it: aws configure --profile {profile}"
            )));
        }
        if let Some(keys) = self.of_profile(profile, &mut Vec::new())? {
            return Ok(keys);
        }
        if let Some(file) = self.env.get("AWS_WEB_IDENTITY_TOKEN_FILE")
            && let Some(role) = self.env.get("AWS_ROLE_ARN")
        {
            let session = self.env.get("AWS_ROLE_SESSION_NAME");
            return self.web_identity(&file, &role, session.as_deref());
        }
        if let Some(keys) = metadata::container(self.env, self.cancel)? {
            return Ok(keys);
        }
        metadata::instance(self.env, self.cancel)
    }

    /// Keys of the profile `name`; `None` if the profile configures no keys. `seen`: the profiles whose
    /// `source_profile` settings led to `name`, to detect a cycle.
    fn of_profile(&self, name: &str, seen: &mut Vec<String>) -> Result<Option<Keys>, StreamError> {
        let Some(profile) = self.profiles.get(name) else {
            return match seen.is_empty() {
                true => Ok(None),
                false => Err(refused(format!(
                    "The AWS profile \"{name}\", which is the source_profile of another one, is not in {}",
                    self.profiles.files
                ))),
            };
        };
        // A profile may be its own source_profile: its own keys are then used.
        if !seen.is_empty()
            && let Some(keys) = static_keys(profile)
        {
            return Ok(Some(keys));
        }
        if let Some(source) = profile.get("source_profile")
            && let Some(role) = profile.get("role_arn")
        {
            if seen.iter().any(|seen| seen == source) {
                let way = seen.join(", ");
                return Err(refused(format!("The AWS profiles {way} are the source_profile of each other")));
            }
            seen.push(source.to_owned());
            let keys = self.of_profile(source, seen)?;
            let keys =
                keys.ok_or_else(|| refused(format!("The AWS profile \"{source}\" has no credentials")))?;
            return self.role(name, profile, role, &keys).map(Some);
        }
        if let Some(source) = profile.get("credential_source") {
            let keys = self.named_source(name, source)?;
            return match profile.get("role_arn") {
                Some(role) => self.role(name, profile, role, &keys).map(Some),
                None => Ok(Some(keys)),
            };
        }
        if let Some(keys) = static_keys(profile) {
            return Ok(Some(keys));
        }
        if let Some(file) = profile.get("web_identity_token_file")
            && let Some(role) = profile.get("role_arn")
        {
            let session = profile.get("role_session_name");
            return self.web_identity(file, role, session).map(Some);
        }
        if let Some(command) = profile.get("credential_process") {
            return self.process(name, command).map(Some);
        }
        if sso::is_configured(profile) {
            return sso::keys(name, profile, self.profiles, self.env, self.cancel).map(Some);
        }
        if profile.get("login_session").is_some() {
            return Err(refused(format!(
                "The AWS profile \"{name}\" is signed in with \"aws login\", which only AWS's own programs can read. \
                 Give a profile credential_process = aws configure export-credentials --profile {name} --format process"
            )));
        }
        Ok(None)
    }

    fn named_source(&self, name: &str, source: &str) -> Result<Keys, StreamError> {
        match source {
            "Environment" => env_keys(self.env).ok_or_else(|| {
                refused(format!(
                    "The AWS profile \"{name}\" takes its credentials from AWS_ACCESS_KEY_ID and \
                     AWS_SECRET_ACCESS_KEY, which are not set"
                ))
            }),
            "Ec2InstanceMetadata" => metadata::instance(self.env, self.cancel),
            "EcsContainer" => metadata::container(self.env, self.cancel)?.ok_or_else(|| {
                refused(format!(
                    "The AWS profile \"{name}\" takes its credentials from the container, and \
                     AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set"
                ))
            }),
            other => Err(refused(format!(
                "Unsupported credential source in profile {name}. Got {other}, expected EcsContainer or \
                 Ec2InstanceMetadata or Environment."
            ))),
        }
    }

    fn role(&self, name: &str, profile: &Profile, role: &str, keys: &Keys) -> Result<Keys, StreamError> {
        if profile.get("mfa_serial").is_some() {
            return Err(refused(format!(
                "The AWS profile \"{name}\" requires multi-factor authentication, and there is nobody to ask \
                 for the code. Give a profile credential_process = aws configure export-credentials --profile {name} --format process"
            )));
        }
        let wanted = sts::Role {
            arn: role,
            session: profile.get("role_session_name"),
            external_id: profile.get("external_id"),
            seconds: profile.get("duration_seconds"),
        };
        let region = profile.get("region").unwrap_or(self.region);
        sts::assume(&wanted, keys, region, self.env, self.cancel)
    }

    fn web_identity(&self, file: &str, role: &str, session: Option<&str>) -> Result<Keys, StreamError> {
        let token = std::fs::read_to_string(file)
            .map_err(|error| refused(format!("Cannot read the AWS web identity token {file}: {error}")))?;
        let wanted = sts::Role { arn: role, session, external_id: None, seconds: None };
        sts::assume_with_token(&wanted, token.trim(), self.region, self.env, self.cancel)
    }

    /// Runs a `credential_process` and parses its output. Errors never quote the output, which may be the
    /// secret.
    fn process(&self, name: &str, command: &str) -> Result<Keys, StreamError> {
        let failed = |why: &str| refused(format!("The credential_process of AWS profile \"{name}\" {why}"));
        let output = config_value::output(command, PROCESS_LIMIT, self.cancel).map_err(|why| failed(&why))?;
        let said: Value =
            serde_json::from_str(output.expose().trim()).map_err(|_| failed("returned invalid JSON"))?;
        if said["Version"] != 1 {
            return Err(failed("did not return Version 1"));
        }
        let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty());
        let (Some(id), Some(secret)) = (text("AccessKeyId"), text("SecretAccessKey")) else {
            return Err(failed("returned invalid credentials"));
        };
        let expires = match text("Expiration") {
            None => None,
            Some(date) => {
                let at = time::parse_iso(date);
                Some(at.ok_or_else(|| failed("returned an Expiration that is no date"))?)
            }
        };
        if expires.is_some_and(|expires| expires <= now_ms()) {
            return Err(failed("returned expired credentials"));
        }
        Ok(Keys::new(id, secret, text("SessionToken")).until(expires))
    }
}

fn is_role(profile: &Profile) -> bool {
    let has = |name| profile.get(name).is_some();
    (has("role_arn") && has("source_profile")) || has("credential_source")
}

fn static_keys(profile: &Profile) -> Option<Keys> {
    let id = profile.get("aws_access_key_id")?;
    let secret = profile.get("aws_secret_access_key")?;
    Some(Keys::new(id, secret, profile.get("aws_session_token")))
}
