//! Keys from local credential services: of a container (ECS, EKS) or of a machine (EC2).
//!
//! Requests bypass any proxy and time out after a second, since outside AWS nobody answers. EC2 is asked with
//! version 2 of its protocol only, which a page in a browser cannot be tricked into using.

use crate::auth::aws::env::refused;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::time;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Reply, Request, Target};
use crate::llm::options::Keys;
use serde_json::Value;
use std::time::Duration;
use ureq::http::Method;

const LIMIT: Duration = Duration::from_secs(1);

const CONTAINER: &str = "http://169.254.170.2";
/// Hosts that may be asked without TLS, besides localhost.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];
const INSTANCE: &str = "http://169.254.169.254";
const INSTANCE_V6: &str = "http://[fd00:ec2::254]";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// Keys of the container's role; `None` if the environment names no container service.
pub fn container(env: &Env, cancel: &CancelToken) -> Result<Option<Keys>, StreamError> {
    let relative = env.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    let full = env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    let Some(url) = relative.map(|path| format!("{CONTAINER}{path}")).or(full) else {
        return Ok(None);
    };
    check_host(&url)?;
    let token = match env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(file) => Some(std::fs::read_to_string(&file).map_err(|error| {
            refused(format!("Cannot read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE {file}: {error}"))
        })?),
        None => env.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let mut headers = Vec::new();
    if let Some(token) = token {
        let token = token.trim_end_matches(['\r', '\n']);
        if token.chars().any(char::is_control) {
            return Err(refused("The container's authorization token holds a line break"));
        }
        headers.push(("authorization".to_owned(), token.to_owned()));
    }
    let reply = ask(Method::GET, &url, headers, cancel)?;
    keys(&reply, "The container's credential service", &url).map(Some)
}

/// Accepts HTTPS to any host, and plain HTTP only to local hosts.
fn check_host(url: &str) -> Result<(), StreamError> {
    let target = url.parse().ok().and_then(|uri| Target::new(&uri));
    let target = target.ok_or_else(|| refused(format!("{url} is not the URL of a credential service")))?;
    let host = target.host.to_ascii_lowercase();
    let this_machine = host == "localhost"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|host| host.is_loopback())
        || host == "[::1]";
    if target.secure || this_machine || CONTAINER_HOSTS.contains(&host.as_str()) {
        return Ok(());
    }
    Err(refused(format!(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI {url} is not accepted: it must be HTTPS, or this machine, \
         169.254.170.2, 169.254.170.23 or [fd00:ec2::23]"
    )))
}

pub fn instance(env: &Env, cancel: &CancelToken) -> Result<Keys, StreamError> {
    let disabled = env.get("AWS_EC2_METADATA_DISABLED");
    if disabled.is_some_and(|value| !value.eq_ignore_ascii_case("false")) {
        return Err(nowhere());
    }
    let v6 = env
        .get("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")
        .is_some_and(|mode| mode.eq_ignore_ascii_case("ipv6"));
    let usual = if v6 { INSTANCE_V6 } else { INSTANCE };
    let root = env.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| usual.to_owned());
    let root = root.trim_end_matches('/');

    let life = ("x-aws-ec2-metadata-token-ttl-seconds", "21600");
    let life = vec![(life.0.to_owned(), life.1.to_owned())];
    let token = ask(Method::PUT, &format!("{root}/latest/api/token"), life, cancel);
    let token = match token {
        Ok(reply) if reply.is_ok() => reply.text().trim().to_owned(),
        Err(error) if error.kind == ErrorKind::Aborted => return Err(error),
        _ => return Err(nowhere()),
    };
    let headers = || vec![("x-aws-ec2-metadata-token".to_owned(), token.clone())];
    let roles = format!("{root}{ROLES}");
    let reply = ask(Method::GET, &roles, headers(), cancel)?;
    let text = reply.text();
    let role = text.lines().next().unwrap_or_default().trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
    if !reply.is_ok() || role.is_empty() || !role.chars().all(legal) {
        return Err(refused(format!("This machine has no role at AWS ({roles})")));
    }
    let url = format!("{roles}{role}");
    let reply = ask(Method::GET, &url, headers(), cancel)?;
    keys(&reply, "The instance's metadata service", &url)
}

fn ask(
    method: Method,
    url: &str,
    headers: Vec<(String, String)>,
    cancel: &CancelToken,
) -> Result<Reply, StreamError> {
    let request =
        Request { method, headers, timeout: Some(LIMIT), direct: true, private: true, ..Request::new(url) };
    http::ask(&request, cancel)
}

fn keys(reply: &Reply, who: &str, url: &str) -> Result<Keys, StreamError> {
    let said = reply.json().unwrap_or_default();
    if !reply.is_ok() {
        let why = said["Message"].as_str().or_else(|| said["message"].as_str());
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        let message = format!("{who} ({url}) answered with status {}{why}", reply.status);
        return Err(refused(message));
    }
    let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty());
    let token = text("Token");
    match (text("AccessKeyId"), text("SecretAccessKey"), &said["Expiration"]) {
        (Some(id), Some(secret), Value::String(date)) if token.is_some() => {
            Ok(Keys::new(id, secret, token).until(time::parse_iso(date)))
        }
        _ => Err(StreamError::new(
            ErrorKind::Protocol,
            format!("{who} ({url}) did not answer with credentials"),
        )),
    }
}

fn nowhere() -> StreamError {
    refused(
        "No AWS credentials were found. Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
         AWS_BEARER_TOKEN_BEDROCK. See: pi docs providers",
    )
}
