//! Keys from an SSO sign-in: the token that `aws sso login` caches is exchanged for the keys of a role. A
//! token about to expire is renewed if the cache holds a refresh token.

use super::profile::{Profile, Profiles, home};
use super::region;
use crate::auth::aws::env::refused;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::file::Temp;
use crate::base::json::json;
use crate::base::time;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Reply, Request};
use crate::llm::message::now_ms;
use crate::llm::options::Keys;
use crate::wire::sigv4::percent;
use ring::digest;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Method;

const LIMIT: Duration = Duration::from_secs(15);
/// A token that expires within this time is renewed.
const EARLY_MS: u64 = 5 * 60 * 1000;

const SETTINGS: [&str; 5] = ["sso_start_url", "sso_account_id", "sso_session", "sso_region", "sso_role_name"];

pub fn is_configured(profile: &Profile) -> bool {
    SETTINGS.iter().any(|name| profile.get(name).is_some())
}

pub fn keys(
    name: &str,
    profile: &Profile,
    profiles: &Profiles,
    env: &Env,
    cancel: &CancelToken,
) -> Result<Keys, StreamError> {
    let session = profile.get("sso_session");
    let section = match session {
        None => profile,
        Some(session) => profiles.sso_session(session).ok_or_else(|| {
            let files = &profiles.files;
            refused(format!("The AWS sso-session \"{session}\" of profile \"{name}\" is not in {files}"))
        })?,
    };
    let needed = |from: &Profile, setting: &str| {
        let value = from.get(setting).map(str::to_owned);
        value.ok_or_else(|| refused(format!("The AWS profile \"{name}\" needs {setting}")))
    };
    let sign_in = SignIn {
        profile: name,
        region: needed(section, "sso_region")?,
        file: cache_file(env, session.unwrap_or(&needed(section, "sso_start_url")?))?,
        env,
        cancel,
    };
    let token = sign_in.token(session.is_some())?;
    let account = needed(profile, "sso_account_id")?;
    let role = needed(profile, "sso_role_name")?;
    let portal = region::service(env, "SSO", "portal.sso", &sign_in.region);
    let url = format!(
        "{portal}/federation/credentials?role_name={}&account_id={}",
        percent(&role, ""),
        percent(&account, "")
    );
    let request = Request {
        method: Method::GET,
        headers: vec![("x-amz-sso_bearer_token".to_owned(), token)],
        timeout: Some(LIMIT),
        private: true,
        ..Request::new(&url)
    };
    let reply = http::ask(&request, cancel)?;
    if !reply.is_ok() {
        return Err(sign_in.failed(&reply, &format!("role {role} of account {account}")));
    }
    let said = reply.json().unwrap_or_default();
    let said = &said["roleCredentials"];
    let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty());
    match (text("accessKeyId"), text("secretAccessKey"), text("sessionToken")) {
        (Some(id), Some(secret), Some(token)) => {
            Ok(Keys::new(id, secret, Some(token)).until(said["expiration"].as_u64()))
        }
        _ => Err(StreamError::new(ErrorKind::Protocol, "SSO returns an invalid temporary credential.")),
    }
}

/// The cache file that `aws sso login` writes for `name`, which is a session or a start URL.
fn cache_file(env: &Env, name: &str) -> Result<PathBuf, StreamError> {
    let home = home(env).ok_or_else(|| refused("HOME is not set: AWS's SSO cache cannot be found"))?;
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
    let mut file = String::with_capacity(45);
    for byte in hash.as_ref() {
        let _ = write!(file, "{byte:02x}"); // to a string: cannot fail
    }
    file.push_str(".json");
    Ok(home.join(".aws/sso/cache").join(file))
}

struct SignIn<'a> {
    profile: &'a str,
    region: String,
    file: PathBuf,
    env: &'a Env,
    cancel: &'a CancelToken,
}

impl SignIn<'_> {
    /// The cached access token, renewed if it is about to expire and `renewable` is true.
    fn token(&self, renewable: bool) -> Result<String, StreamError> {
        let again = self.again();
        let text = std::fs::read_to_string(&self.file);
        let text = text.map_err(|_| {
            refused(format!("The AWS profile \"{}\" is not signed in. {again}", self.profile))
        })?;
        let cached: Value = serde_json::from_str(&text).unwrap_or_default();
        let (Some(token), Some(expires)) = (cached["accessToken"].as_str(), expiry(&cached)) else {
            let file = self.file.display();
            return Err(refused(format!("{file} holds no SSO token. {again}")));
        };
        let now = now_ms();
        if expires > now.saturating_add(EARLY_MS) {
            return Ok(token.to_owned());
        }
        let renewed = match renewable {
            true => self.renew(&cached),
            false => Ok(None),
        };
        match renewed {
            Ok(Some(token)) => Ok(token),
            Err(error) if error.kind == ErrorKind::Aborted => Err(error),
            _ if expires > now => Ok(token.to_owned()),
            Err(error) if error.kind == ErrorKind::Transport => Err(error),
            _ => Err(refused(format!(
                "The SSO session of AWS profile \"{}\" has expired. {again}",
                self.profile
            ))),
        }
    }

    /// Requests a new token and writes it to the cache; `None` if the cache holds no refresh token.
    fn renew(&self, cached: &Value) -> Result<Option<String>, StreamError> {
        let text = |name: &str| cached[name].as_str();
        let (Some(id), Some(secret), Some(refresh)) =
            (text("clientId"), text("clientSecret"), text("refreshToken"))
        else {
            return Ok(None);
        };
        let oidc = region::service(self.env, "SSO_OIDC", "oidc", &self.region);
        let body = json!({
            "clientId": id, "clientSecret": secret, "refreshToken": refresh, "grantType": "refresh_token",
        });
        let url = format!("{oidc}/token");
        let body = body.to_string();
        let request = Request {
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.as_bytes(),
            timeout: Some(LIMIT),
            private: true,
            ..Request::new(&url)
        };
        let reply = http::ask(&request, self.cancel)?;
        let said = reply.json().filter(|_| reply.is_ok()).unwrap_or_default();
        let (Some(token), Some(seconds)) = (said["accessToken"].as_str(), said["expiresIn"].as_u64()) else {
            return Ok(None);
        };
        let mut next = cached.clone();
        next["accessToken"] = token.into();
        let expires = now_ms().saturating_add(seconds.saturating_mul(1000));
        next["expiresAt"] = time::iso(expires).into();
        if let Some(refresh) = said["refreshToken"].as_str() {
            next["refreshToken"] = refresh.into();
        }
        // The token is usable even if it cannot be cached.
        let _ = replace(&self.file, &next);
        Ok(Some(token.to_owned()))
    }

    fn again(&self) -> String {
        format!("To refresh this SSO session run: aws sso login --profile {}", self.profile)
    }

    fn failed(&self, reply: &Reply, what: &str) -> StreamError {
        let said = reply.json().unwrap_or_default();
        let said = said["message"].as_str().unwrap_or("no reason given");
        let kind = match reply.status {
            429 | 500.. => ErrorKind::Provider,
            _ => ErrorKind::Auth,
        };
        let again = self.again();
        StreamError {
            status: Some(reply.status),
            ..StreamError::new(kind, format!("AWS SSO did not give {what}: {said}. {again}"))
        }
    }
}

/// When the token expires, in Unix milliseconds. Older programs write `UTC` instead of `Z`.
fn expiry(cached: &Value) -> Option<u64> {
    let date = cached["expiresAt"].as_str()?;
    match date.strip_suffix("UTC") {
        Some(date) => time::parse_iso(&format!("{date}Z")),
        None => time::parse_iso(date),
    }
}

/// Replaces a file atomically; only its owner can read it.
fn replace(path: &Path, value: &Value) -> std::io::Result<()> {
    let mut temp = Temp::create(path.parent().unwrap_or(Path::new("/")), 0o600)?;
    temp.file.write_all(&serde_json::to_vec_pretty(value)?)?;
    temp.file.sync_all()?;
    temp.rename(path)
}
