//! Anthropic's workload identity federation: the identity token of the machine is exchanged for an access token.
//!
//! `ANTHROPIC_FEDERATION_RULE_ID`, `ANTHROPIC_ORGANIZATION_ID` and `ANTHROPIC_IDENTITY_TOKEN_FILE` must be set,
//! in the environment or in the `env` of auth.json's entry; `ANTHROPIC_SERVICE_ACCOUNT_ID` and
//! `ANTHROPIC_WORKSPACE_ID` may be. The file is read again for each exchange, since the
//! platform rotates the token.

use super::expiring::Expiring;
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::base::file;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::http::{self, Request, Secrets};
use crate::llm::message::now_ms;
use crate::llm::secret::Secret;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// Federation rule id. Its presence in the settings of a request marks a federated credential.
pub const RULE: &str = "ANTHROPIC_FEDERATION_RULE_ID";
const ORGANIZATION: &str = "ANTHROPIC_ORGANIZATION_ID";
const TOKEN_FILE: &str = "ANTHROPIC_IDENTITY_TOKEN_FILE";
const SERVICE_ACCOUNT: &str = "ANTHROPIC_SERVICE_ACCOUNT_ID";
const WORKSPACE: &str = "ANTHROPIC_WORKSPACE_ID";

/// Variables that must be set.
pub const REQUIRED: [&str; 3] = [RULE, ORGANIZATION, TOKEN_FILE];

const BETAS: &str = "oauth-2025-04-20,oidc-federation-2026-04-01";
const LIMIT: Duration = Duration::from_secs(15);

/// The longest identity token, in bytes, that the server takes.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// The access token, kept until it expires.
#[derive(Default)]
pub struct Federation {
    kept: Expiring<Secret>,
}

impl Federation {
    /// Headers for a request to `base_url`: the access token, and the workspace if one is set.
    pub fn headers(
        &self,
        base_url: &str,
        env: &Env,
        cancel: &CancelToken,
    ) -> Result<Vec<(String, Option<String>)>, StreamError> {
        let base_url = base_url.trim_end_matches('/');
        let value = |name: &str| env.get(name).unwrap_or_default();
        let workspace = env.get(WORKSPACE);
        let all = REQUIRED.into_iter().chain([SERVICE_ACCOUNT, WORKSPACE]).map(value);
        let key = std::iter::once(base_url.to_owned()).chain(all).collect::<Vec<_>>().join("\n");
        let token = self.kept.get(&key, cancel, || exchange(base_url, env, cancel))?;
        let bearer = format!("Bearer {}", token.expose());
        let workspace = workspace.map(|id| ("anthropic-workspace-id".to_owned(), Some(id)));
        Ok(std::iter::once(("authorization".to_owned(), Some(bearer))).chain(workspace).collect())
    }
}

/// True if all required variables are set.
pub fn is_configured(env: &Env) -> bool {
    REQUIRED.iter().all(|name| env.has(name))
}

fn exchange(base_url: &str, env: &Env, cancel: &CancelToken) -> Result<(Secret, Option<u64>), StreamError> {
    let url = format!("{base_url}/v1/oauth/token");
    let is_local = || {
        let target = url.parse().ok().and_then(|uri| http::Target::new(&uri));
        target.is_some_and(|target| http::is_loopback(&target.host))
    };
    if !url.starts_with("https://") && !is_local() {
        return Err(refused(format!(
            "An identity token is not sent to {base_url}, which is no https address"
        )));
    }
    let identity = identity(&env.get(TOKEN_FILE).unwrap_or_default())?;
    let fields = [
        ("grant_type", Some("urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned())),
        ("assertion", Some(identity.expose().to_owned())),
        ("federation_rule_id", env.get(RULE)),
        ("organization_id", env.get(ORGANIZATION)),
        ("service_account_id", env.get(SERVICE_ACCOUNT)),
        ("workspace_id", env.get(WORKSPACE)),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let body = Value::Object(Map::from_iter(fields)).to_string();
    let mut secrets = Secrets::default();
    secrets.add(identity.expose());
    let headers = [("content-type", "application/json"), ("anthropic-beta", BETAS)];
    let request = Request {
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: body.as_bytes(),
        timeout: Some(LIMIT),
        secrets,
        private: true,
        ..Request::new(&url)
    };
    let reply = http::ask(&request, cancel)?;
    let said = reply.json().unwrap_or_default();
    let token = said["access_token"].as_str().filter(|_| reply.is_ok());
    if let (Some(token), Some(seconds)) = (token, said["expires_in"].as_u64()) {
        let expires = now_ms().saturating_add(seconds.saturating_mul(1000));
        return Ok((Secret::new(token), Some(expires)));
    }
    let text = |name: &str| said[name].as_str().filter(|text| !text.is_empty());
    let why = match (text("error"), text("error_description")) {
        (Some(error), Some(why)) => format!("{why} ({error})"),
        (Some(error), None) => error.to_owned(),
        _ if reply.is_ok() => "its answer holds no token".to_owned(),
        _ => format!("status {}", reply.status),
    };
    let advice = match (reply.status, env.has(WORKSPACE)) {
        (401, true) => ". Check that the federation rule fits the identity token",
        (401, false) => {
            ". Check that the federation rule fits the identity token; a rule for several workspaces needs \
             ANTHROPIC_WORKSPACE_ID"
        }
        _ => "",
    };
    let kind = match reply.status {
        429 | 500.. => ErrorKind::Provider,
        _ => ErrorKind::Auth,
    };
    let message =
        format!("{base_url} gave no access token for the identity token in {TOKEN_FILE}: {why}{advice}");
    Err(StreamError { status: Some(reply.status), ..StreamError::new(kind, message) })
}

fn identity(path: &str) -> Result<Secret, StreamError> {
    let text = file::read(Path::new(path), TOKEN_BYTES_MAX)
        .map_err(|error| refused(format!("Cannot read the identity token {path} ({TOKEN_FILE}): {error}")))?;
    match String::from_utf8_lossy(&text).trim() {
        "" => Err(refused(format!("The identity token {path} ({TOKEN_FILE}) is empty"))),
        token => Ok(Secret::new(token)),
    }
}

fn refused(message: String) -> StreamError {
    StreamError::new(ErrorKind::Auth, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::base::testing::TempDir;
    use crate::llm::testing::{Received, Server};
    use std::sync::{Arc, Mutex};

    struct World {
        folder: TempDir,
        server: Server,
        seen: Arc<Mutex<Vec<Received>>>,
        federation: Federation,
    }

    impl World {
        fn new(status: &'static str, body: Value) -> Self {
            let seen: Arc<Mutex<Vec<Received>>> = Arc::default();
            let all = seen.clone();
            let server = Server::start(move |connection| {
                while let Some(request) = connection.request() {
                    all.lock().unwrap().push(request);
                    connection.answer(status, "", body.to_string());
                }
            });
            let world = Self { folder: TempDir::create(), server, seen, federation: Federation::default() };
            world.folder.write("token", "canary-jwt\n");
            world
        }

        fn ask(&self, more: &[(&str, &str)]) -> Result<Vec<(String, Option<String>)>, StreamError> {
            let path = self.folder.path().join("token").display().to_string();
            let own = [(RULE, "rule"), (ORGANIZATION, "org"), (TOKEN_FILE, path.as_str())];
            let all = own.iter().chain(more);
            let all: Vec<_> = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let env = Env::of([]).with(&all);
            assert!(is_configured(&env));
            self.federation.headers(&self.server.url("/"), &env, &CancelToken::new())
        }
    }

    #[test]
    fn an_identity_token_is_exchanged_once() {
        let world =
            World::new("200 OK", json!({"access_token": "at", "expires_in": 3600, "token_type": "Bearer"}));
        let bearer = ("authorization".to_owned(), Some("Bearer at".to_owned()));
        for _ in 0..2 {
            assert_eq!(world.ask(&[]).unwrap(), std::slice::from_ref(&bearer));
        }
        let workspace = ("anthropic-workspace-id".to_owned(), Some("ws".to_owned()));
        assert_eq!(world.ask(&[(WORKSPACE, "ws"), (SERVICE_ACCOUNT, "sa")]).unwrap(), [bearer, workspace]);
        let seen = world.seen.lock().unwrap();
        let bodies: Vec<Value> =
            seen.iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
        let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
        let first = json!({"grant_type": grant, "assertion": "canary-jwt", "federation_rule_id": "rule",
            "organization_id": "org"});
        let mut second = first.clone();
        second["service_account_id"] = json!("sa");
        second["workspace_id"] = json!("ws");
        assert_eq!(bodies, [first, second]);
        assert!(seen[0].line.starts_with("POST /v1/oauth/token "), "{}", seen[0].line);
        assert_eq!(seen[0].header("anthropic-beta"), Some(BETAS));
    }

    #[test]
    fn failures_say_what_is_wrong_and_hold_no_token() {
        let world =
            World::new("401 No", json!({"error": "invalid_grant", "error_description": "canary-jwt is bad"}));
        let check = |result: Result<_, StreamError>, parts: &[&str]| {
            let error = result.err().unwrap();
            assert_eq!(error.kind, ErrorKind::Auth);
            for part in parts {
                assert!(error.message.contains(part), "{part:?} is not in: {}", error.message);
            }
        };
        check(world.ask(&[]), &["invalid_grant", "ANTHROPIC_WORKSPACE_ID"]);
        world.folder.write("token", " \n");
        check(world.ask(&[]), &["is empty"]);
        world.folder.write("token", "x".repeat((16 << 10) + 1));
        check(world.ask(&[]), &["larger than 16384 bytes"]);
        check(world.ask(&[(TOKEN_FILE, "/nonexistent/token")]), &["/nonexistent/token", "Cannot read"]);
        let far = exchange("http://api.test", &Env::of([]), &CancelToken::new());
        check(far.map(|_| Vec::new()), &["no https address"]);
    }
}
