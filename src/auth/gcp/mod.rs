//! Access tokens for Google Cloud, from application default credentials.
//!
//! Sources in the order of Google's own programs: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, the
//! file that `gcloud auth application-default login` writes, the metadata server of the machine. A token is
//! cached for all requests and renewed shortly before it expires. The search runs only before a request to a
//! model on Vertex AI without an API key.
//!
//! Federated and impersonated identities are not supported; the error says what to do instead.

mod service_account;
#[cfg(test)]
mod tests;

use super::expiring::Expiring;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http;
use crate::llm::http::{Reply, Request, Secrets};
use crate::llm::message::now_ms;
use crate::llm::secret::Secret;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Method;

/// Name of the protocol that uses Google Cloud credentials.
pub const API: &str = "google-vertex";

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const LIMIT: Duration = Duration::from_secs(15);

const METADATA: &str = "169.254.169.254";
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
/// Time limit of a request to the metadata server, which answers only on Google's machines.
const METADATA_LIMIT: Duration = Duration::from_secs(3);

const SIGN_IN: &str = "Run: gcloud auth application-default login";

#[derive(Clone)]
pub struct Token {
    pub access: Secret,
    /// The project to bill, if it differs from the project of the credential.
    pub quota_project: Option<String>,
}

/// Google Cloud credentials of a process, with a cached token.
#[derive(Default)]
pub struct Gcp {
    kept: Expiring<Token>,
}

impl Gcp {
    pub fn token(&self, env: &Env, cancel: &CancelToken) -> Result<Token, StreamError> {
        let file = credentials_file(env).filter(|file| file.named || file.path.exists());
        let key = match &file {
            Some(file) => file.path.display().to_string(),
            None => metadata_root(env),
        };
        let mut token = self.kept.get(&key, cancel, || match &file {
            Some(file) => from_file(&file.path, cancel),
            None => from_metadata(env, cancel),
        })?;
        if let Some(project) = env.get("GOOGLE_CLOUD_QUOTA_PROJECT") {
            token.quota_project = Some(project);
        }
        Ok(token)
    }
}

pub struct CredentialsFile {
    pub path: PathBuf,
    /// True if the user named the file; otherwise it may be missing.
    named: bool,
}

/// The path of the file with application default credentials; `None` if the home folder is unknown.
pub fn credentials_file(env: &Env) -> Option<CredentialsFile> {
    const NAME: &str = "application_default_credentials.json";
    if let Some(path) = env.get("GOOGLE_APPLICATION_CREDENTIALS") {
        let path = PathBuf::from(path);
        return Some(CredentialsFile { path, named: true });
    }
    let folder = match env.get("CLOUDSDK_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(&env.get("HOME")?).join(".config/gcloud"),
    };
    Some(CredentialsFile { path: folder.join(NAME), named: false })
}

/// True if the metadata server should be asked: the environment names it, or the machine is Google's.
pub fn has_metadata(env: &Env) -> bool {
    let detection = env.get("METADATA_SERVER_DETECTION").map(|how| how.to_lowercase());
    match detection.as_deref() {
        Some("none") => false,
        Some("assume-present") => true,
        _ => {
            let names = ["GCE_METADATA_HOST", "GCE_METADATA_IP", "K_SERVICE", "CLOUD_RUN_JOB"];
            let vendor = std::fs::read_to_string("/sys/class/dmi/id/bios_vendor");
            names.iter().any(|name| env.has(name)) || vendor.is_ok_and(|vendor| vendor.trim() == "Google")
        }
    }
}

fn from_file(path: &Path, cancel: &CancelToken) -> Result<(Token, Option<u64>), StreamError> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| refused(format!("Cannot read Google's credentials {name}: {error}. {SIGN_IN}")))?;
    // The parser's message is omitted, since it may quote a secret.
    let said: Value = serde_json::from_str(&text)
        .map_err(|_| refused(format!("Google's credentials {name} are not valid JSON. {SIGN_IN}")))?;
    let text = |field: &str| {
        let value = said[field].as_str().filter(|value| !value.is_empty());
        value.ok_or_else(|| refused(format!("Google's credentials {name} have no \"{field}\"")))
    };
    let url = said["token_uri"].as_str().unwrap_or(TOKEN_URL);
    let secure = url.starts_with("https://")
        || url
            .parse()
            .ok()
            .and_then(|uri| http::Target::new(&uri))
            .is_some_and(|target| http::is_loopback(&target.host));
    if !secure {
        return Err(refused(format!(
            "Google's credentials {name} name a \"token_uri\" without HTTPS: {url}"
        )));
    }
    let (fields, secrets) = match text("type")? {
        "authorized_user" => {
            let (id, secret) = (text("client_id")?, text("client_secret")?);
            let refresh = text("refresh_token")?;
            let fields = vec![
                ("client_id", id.to_owned()),
                ("client_secret", secret.to_owned()),
                ("refresh_token", refresh.to_owned()),
                ("grant_type", "refresh_token".to_owned()),
            ];
            (fields, vec![secret, refresh])
        }
        "service_account" => {
            let key = text("private_key")?;
            let claims = service_account::Claims {
                email: text("client_email")?,
                scope: SCOPE,
                audience: url,
                now_ms: now_ms(),
            };
            let id = said["private_key_id"].as_str();
            let assertion = service_account::assertion(&claims, key, id)
                .map_err(|why| refused(format!("The \"private_key\" in {name} {why}")))?;
            let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned();
            (vec![("grant_type", grant), ("assertion", assertion)], Vec::new())
        }
        other => {
            return Err(refused(format!(
                "Google's credentials {name} are of the type \"{other}\", which is not known here: it reads \
                 \"authorized_user\" (gcloud auth application-default login) and \"service_account\"; or set \
                 GOOGLE_CLOUD_API_KEY"
            )));
        }
    };
    let reply = exchange(url, &fields, &secrets, cancel)?;
    let quota_project = said["quota_project_id"].as_str().map(str::to_owned);
    token(&reply, &format!("Google's credentials {name}"), quota_project)
}

fn exchange(
    url: &str,
    fields: &[(&str, String)],
    secrets: &[&str],
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let mut hidden = Secrets::default();
    secrets.iter().for_each(|secret| hidden.add(secret));
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| format!("{name}={}", crate::wire::sigv4::percent(value, "")));
    let body = fields.collect::<Vec<_>>().join("&");
    let kind = "application/x-www-form-urlencoded";
    let request = Request {
        headers: vec![("content-type".to_owned(), kind.to_owned())],
        body: body.as_bytes(),
        timeout: Some(LIMIT),
        secrets: hidden,
        private: true,
        ..Request::new(url)
    };
    http::ask(&request, cancel)
}

fn metadata_root(env: &Env) -> String {
    let host = env.get("GCE_METADATA_IP").or_else(|| env.get("GCE_METADATA_HOST"));
    let host = host.unwrap_or_else(|| METADATA.to_owned());
    let host = host.trim_end_matches('/');
    match host.contains("://") {
        true => host.to_owned(),
        false => format!("http://{host}"),
    }
}

fn from_metadata(env: &Env, cancel: &CancelToken) -> Result<(Token, Option<u64>), StreamError> {
    if !has_metadata(env) {
        return Err(refused(format!(
            "There are no Google application default credentials. {SIGN_IN}, or set \
             GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_CLOUD_API_KEY"
        )));
    }
    let url = format!("{}{METADATA_PATH}", metadata_root(env));
    let request = Request {
        method: Method::GET,
        headers: vec![("metadata-flavor".to_owned(), "Google".to_owned())],
        timeout: Some(METADATA_LIMIT),
        direct: true,
        private: true,
        ..Request::new(&url)
    };
    let reply = http::ask(&request, cancel)?;
    if reply.header("metadata-flavor") != Some("Google") {
        return Err(refused(format!("{url} is not Google's metadata server")));
    }
    token(&reply, "Google's metadata server", None)
}

fn token(
    reply: &Reply,
    whose: &str,
    quota_project: Option<String>,
) -> Result<(Token, Option<u64>), StreamError> {
    let said = reply.json().unwrap_or_default();
    if let Some(access) = said["access_token"].as_str().filter(|_| reply.is_ok()) {
        let seconds = said["expires_in"].as_u64().unwrap_or(0);
        let expires = now_ms().saturating_add(seconds.saturating_mul(1000));
        let access = Secret::new(access);
        let token = Token { access, quota_project };
        return Ok((token, Some(expires)));
    }
    let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty());
    let why = match (text("error"), text("error_description")) {
        (Some(error), Some(why)) => format!("{why} ({error})"),
        (Some(why), None) => why.to_owned(),
        _ => format!("status {}", reply.status),
    };
    let kind = match reply.status {
        429 | 500.. => ErrorKind::Provider,
        _ => ErrorKind::Auth,
    };
    Err(StreamError {
        status: Some(reply.status),
        ..StreamError::new(kind, format!("{whose} gave no access token: {why}. {SIGN_IN}"))
    })
}

fn refused(message: impl Into<String>) -> StreamError {
    StreamError::new(ErrorKind::Auth, message)
}
