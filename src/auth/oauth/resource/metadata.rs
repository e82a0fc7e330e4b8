//! Finds the authorization server of a protected resource (RFC 9728), and its endpoints (RFC 8414).
//!
//! A server names both, and may lie: addresses must be safe, a server elsewhere may not send pi to this machine, the
//! metadata must name the issuer that was asked for, and a resource must contain the address that is signed in to.

use super::super::entry::{failed, text};
use super::super::wire::{Answer, Wire};
use super::challenge::Challenge;
use crate::base::json::json;
use crate::llm::event::StreamError;
use crate::llm::http::address::{Address, address};
use serde_json::{Map, Value};

/// The version of the Model Context Protocol that discovery asks in.
const PROTOCOL: &str = "2025-11-25";

/// Where tokens for a resource come from.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The authorization server.
    pub server: String,
    /// Its metadata (RFC 8414); none if it has none.
    pub metadata: Option<Map<String, Value>>,
    /// The metadata of the resource (RFC 9728); none if it has none.
    pub resource: Option<Map<String, Value>>,
}

/// Who asks: a sign-in to the resource at `url`.
pub struct Discovery<'a> {
    pub wire: &'a Wire<'a>,
    pub url: &'a Address,
    /// The metadata document that the user configured.
    pub configured: Option<&'a str>,
}

impl Discovery<'_> {
    /// Asks the resource, then its authorization server.
    pub fn run(&self, challenge: &Challenge) -> Result<Found, StreamError> {
        let resource = self.resource(challenge.resource_metadata.as_deref())?;
        if let Some(resource) = &resource {
            self.check_resource(resource)?;
        }
        if let Some(url) = self.configured {
            let answer = self.get(url)?;
            if !answer.is_ok() {
                return Err(answer.refused(&format!("{url} (authServerMetadataUrl)")));
            }
            let metadata = checked(answer.fields, url)?;
            let server = text(&metadata, "issuer").unwrap_or_default().to_owned();
            return Ok(Found { server, metadata: Some(metadata), resource });
        }
        let named =
            resource.as_ref().and_then(|resource| resource.get("authorization_servers")?.get(0)?.as_str());
        let server = named.map_or_else(|| format!("{}/", self.url.origin()), str::to_owned);
        let metadata = self.server(&server)?;
        Ok(Found { server, metadata, resource })
    }

    /// The metadata of the resource; none without a document that can be understood.
    fn resource(&self, named: Option<&str>) -> Result<Option<Map<String, Value>>, StreamError> {
        let root = format!("{}/.well-known/oauth-protected-resource", self.url.origin());
        let path = self.url.path.trim_end_matches('/');
        let usual = format!("{root}{path}");
        let mut answer = self.get(named.unwrap_or(&usual))?;
        if named.is_none() && !path.is_empty() && is_miss(&answer) {
            answer = self.get(&root)?;
        }
        let is_valid = answer.is_ok() && text(&answer.fields, "resource").is_some();
        Ok(is_valid.then_some(answer.fields))
    }

    /// A resource must be on the server that is signed in to, and contain its path.
    fn check_resource(&self, resource: &Map<String, Value>) -> Result<(), StreamError> {
        let named = text(resource, "resource").unwrap_or_default();
        let folder = |path: &str| format!("{}/", path.trim_end_matches('/'));
        let fits = address(named).is_some_and(|named| {
            named.origin() == self.url.origin() && folder(&self.url.path).starts_with(&folder(&named.path))
        });
        match fits {
            true => Ok(()),
            false => Err(failed(format!(
                "the server says that it is {named}, which is not {}: a token for it is not asked for",
                self.url.href()
            ))),
        }
    }

    /// The metadata of an authorization server, which must name itself.
    fn server(&self, server: &str) -> Result<Option<Map<String, Value>>, StreamError> {
        let Some(place) = address(server) else {
            return Err(failed(format!(
                "the server names an authorization server that is no address: {server}"
            )));
        };
        let (origin, path) = (place.origin(), place.path.trim_end_matches('/'));
        let mut urls = vec![
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
        ];
        if !path.is_empty() {
            urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
        }
        for url in urls {
            let answer = self.get(&url)?;
            if is_miss(&answer) {
                continue;
            }
            if !answer.is_ok() {
                return Err(answer.refused(&url));
            }
            let metadata = checked(answer.fields, &url)?;
            let issuer = text(&metadata, "issuer").unwrap_or_default();
            if issuer.trim_end_matches('/') != server.trim_end_matches('/') {
                return Err(failed(format!(
                    "the metadata of the authorization server {server} is of another issuer, {issuer}"
                )));
            }
            return Ok(Some(metadata));
        }
        Ok(None)
    }

    fn get(&self, url: &str) -> Result<Answer, StreamError> {
        self.permit(url)?;
        self.wire.get(url).header("mcp-protocol-version", PROTOCOL).send()
    }

    /// Checks an address that a server named.
    pub fn permit(&self, url: &str) -> Result<(), StreamError> {
        let Some(place) = address(url) else {
            return Err(failed(format!("the server names an address that is none: {url}")));
        };
        if !place.is_safe() {
            return Err(failed(format!("{url} is not https: nothing secret is sent there")));
        }
        let is_own = self.configured.and_then(address).is_some_and(|configured| configured.is_loopback());
        if place.is_loopback() && !self.url.is_loopback() && !is_own {
            return Err(failed(format!(
                "the server names an address of this machine, {url}: it is not asked"
            )));
        }
        Ok(())
    }
}

/// True if another document may be there.
fn is_miss(answer: &Answer) -> bool {
    matches!(answer.status, 400..500 | 502)
}

/// Metadata with all that a sign-in needs.
fn checked(metadata: Map<String, Value>, url: &str) -> Result<Map<String, Value>, StreamError> {
    let lacks = |name: &str| failed(format!("the metadata at {url} has no valid \"{name}\""));
    for name in ["issuer", "authorization_endpoint", "token_endpoint"] {
        text(&metadata, name).and_then(address).ok_or_else(|| lacks(name))?;
    }
    let types = metadata.get("response_types_supported").and_then(Value::as_array);
    match types.ok_or_else(|| lacks("response_types_supported"))?.contains(&json!("code")) {
        true => Ok(metadata),
        false => Err(failed("the authorization server gives out no authorization codes")),
    }
}

impl Found {
    /// An endpoint; without metadata its usual path.
    pub fn endpoint(&self, name: &str, usual: &str) -> Option<String> {
        match &self.metadata {
            Some(metadata) => text(metadata, name).map(str::to_owned),
            None => Some(format!("{}{usual}", address(&self.server)?.origin())),
        }
    }

    /// True if the metadata has a list `name` with `item`, or is silent about it.
    pub fn allows(&self, name: &str, item: &str) -> bool {
        self.list(name).is_none_or(|list| list.contains(&json!(item)))
    }

    pub fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.metadata.as_ref()?.get(name)?.as_array()
    }

    pub fn says(&self, name: &str) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.get(name) == Some(&Value::Bool(true)))
    }

    pub fn issuer(&self) -> Option<&str> {
        text(self.metadata.as_ref()?, "issuer")
    }

    /// The resource that tokens are asked for (RFC 8707).
    pub fn resource_id(&self) -> Option<&str> {
        text(self.resource.as_ref()?, "resource")
    }

    /// All scopes of the resource.
    pub fn scopes(&self) -> Option<String> {
        let scopes = self.resource.as_ref()?.get("scopes_supported")?.as_array()?;
        let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }

    /// The object that the reference keeps.
    pub fn to_json(&self) -> Value {
        let mut state = json!({"authorizationServerUrl": self.server});
        if let Some(metadata) = &self.metadata {
            state["authorizationServerMetadata"] = metadata.clone().into();
        }
        if let Some(resource) = &self.resource {
            state["resourceMetadata"] = resource.clone().into();
        }
        state
    }

    pub fn from_json(state: &Value) -> Option<Self> {
        let object = |name: &str| state.get(name)?.as_object().cloned();
        Some(Self {
            server: state.get("authorizationServerUrl")?.as_str()?.to_owned(),
            metadata: object("authorizationServerMetadata"),
            resource: object("resourceMetadata"),
        })
    }
}
