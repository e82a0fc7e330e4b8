//! Who pi is to an authorization server, and what it asks there: a registration, tokens.

use super::super::entry::{failed, text};
use super::super::wire::Answer;
use super::metadata::{Discovery, Found};
use super::state::State;
use crate::base::json::json;
use crate::llm::event::StreamError;
use crate::llm::http::address::Address;
use crate::llm::message::now_ms;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

/// The documents that describe pi as a client.
const DOCUMENTS: &str = "https://pi.dev/oauth";
/// The path that the documents list for loopback redirects.
pub const CALLBACK_PATH: &str = "/callback";
/// Bytes of the hash that makes a redirect path of one resource.
const ID_BYTES: usize = 9;

/// A client as an authorization server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    pub secret: Option<String>,
    /// `token_endpoint_auth_method` of its registration.
    pub method: Option<String>,
}

impl Client {
    /// The client of a registration that is kept.
    pub fn stored(state: &State) -> Option<(Self, Vec<String>)> {
        let about = state.get("clientInformation")?.as_object()?;
        let uris = about.get("redirect_uris").and_then(Value::as_array);
        let uris = uris.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        Some((Self::of(about)?, uris))
    }

    fn of(about: &Map<String, Value>) -> Option<Self> {
        let field = |name: &str| text(about, name).map(str::to_owned);
        Some(Self {
            id: field("client_id")?,
            secret: field("client_secret"),
            method: field("token_endpoint_auth_method"),
        })
    }

    /// How the client proves itself at the token endpoint.
    fn proof(&self, found: &Found) -> &'static str {
        const BASIC: &str = "client_secret_basic";
        const POST: &str = "client_secret_post";
        const NONE: &str = "none";
        let named = found.list("token_endpoint_auth_methods_supported").filter(|list| !list.is_empty());
        let allows = |method: &str| named.is_some_and(|list| list.contains(&json!(method)));
        let hinted = [BASIC, POST, NONE].into_iter().find(|known| self.method.as_deref() == Some(*known));
        if let Some(hinted) = hinted.filter(|hinted| named.is_none() || allows(hinted)) {
            return hinted;
        }
        match (&self.secret, named) {
            (None, _) => NONE,
            (Some(_), None) => BASIC,
            (Some(_), Some(_)) if allows(BASIC) => BASIC,
            (Some(_), Some(_)) if allows(POST) => POST,
            (Some(_), Some(_)) if allows(NONE) => NONE,
            (Some(_), Some(_)) => POST,
        }
    }

    /// Asks the token endpoint.
    pub fn ask(
        &self,
        discovery: &Discovery<'_>,
        found: &Found,
        fields: &[(&str, &str)],
    ) -> Result<Answer, StreamError> {
        let endpoint = found.endpoint("token_endpoint", "/token").unwrap_or_default();
        discovery.permit(&endpoint)?;
        let mut fields = fields.to_vec();
        fields.extend(found.resource_id().map(|resource| ("resource", resource)));
        let proof = self.proof(found);
        let secret = self.secret.as_deref().unwrap_or_default();
        if proof == "client_secret_basic" {
            let pair = BASE64_STANDARD.encode(format!("{}:{secret}", self.id));
            let ask = discovery.wire.post_form(&endpoint, &fields);
            return ask.header("authorization", &format!("Basic {pair}")).send();
        }
        fields.push(("client_id", &self.id));
        if proof == "client_secret_post" {
            fields.push(("client_secret", secret));
        }
        discovery.wire.post_form(&endpoint, &fields).send()
    }
}

/// The document that describes pi, and the redirect path that it lists; none if the authorization server takes no
/// documents of clients without a secret.
pub fn document(url: &Address, found: &Found) -> Option<(Client, String)> {
    let takes = found.says("client_id_metadata_document_supported")
        && found
            .list("token_endpoint_auth_methods_supported")
            .is_some_and(|list| list.contains(&json!("none")));
    if !takes {
        return None;
    }
    let client = |id: String| Client { id, ..Client::default() };
    if found.says("authorization_response_iss_parameter_supported") {
        return Some((client(format!("{DOCUMENTS}/client.json")), CALLBACK_PATH.to_owned()));
    }
    // Without an issuer in the answer, the path tells which resource it is for.
    let hash = digest(&SHA256, url.href().as_bytes());
    let id = BASE64_URL_SAFE_NO_PAD.encode(hash.as_ref().get(..ID_BYTES).unwrap_or_default());
    Some((client(format!("{DOCUMENTS}/{id}/client.json")), format!("{CALLBACK_PATH}/{id}")))
}

/// Registers pi (RFC 7591). Gives the client, and what is kept of it.
pub fn register(
    discovery: &Discovery<'_>,
    found: &Found,
    name: &str,
    redirect_uri: &str,
    scope: Option<&str>,
) -> Result<(Client, Value), StreamError> {
    let endpoint = found.endpoint("registration_endpoint", "/register").ok_or_else(|| {
        failed(
            "the authorization server registers no clients: register one there, and set \"oauth\": {\"clientId\"} of \
             the server",
        )
    })?;
    discovery.permit(&endpoint)?;
    let mut about = json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    if let Some(scope) = scope {
        about["scope"] = scope.into();
    }
    let what = "Registration of the client";
    let answer = discovery.wire.post_json(&endpoint, &about).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let client = Client::of(&answer.fields).ok_or_else(|| answer.lacks(what, "client_id"))?;
    let mut kept = answer.fields;
    kept.entry("redirect_uris").or_insert_with(|| json!([redirect_uri]));
    Ok((client, kept.into()))
}

/// Takes up the tokens of an answer. `scope` and `refresh` stand in for fields that it leaves out.
pub fn keep_tokens(
    state: &mut State,
    answer: &Answer,
    scope: Option<&str>,
    refresh: Option<&str>,
) -> Result<(), StreamError> {
    let what = "The token endpoint";
    let mut tokens = Map::new();
    for name in ["access_token", "token_type"] {
        let value = answer.text(name).ok_or_else(|| answer.lacks(what, name))?;
        tokens.insert(name.into(), value.into());
    }
    // Some servers write the number as a text.
    let seconds = answer.positive("expires_in").or_else(|| answer.text("expires_in")?.parse().ok());
    state.shift_remove("tokensExpireAt");
    if let Some(seconds) = seconds.filter(|seconds: &f64| seconds.is_finite()) {
        tokens.insert("expires_in".into(), super::super::token::whole(seconds).into());
        let expires = super::super::token::expiry(super::super::token::whole(seconds), 0);
        state.insert("tokensExpireAt".into(), expires.max(now_ms()).into());
    }
    let or = |name: &str, other: Option<&str>| answer.text(name).or(other).map(str::to_owned);
    for (name, value) in [
        ("scope", or("scope", scope)),
        ("refresh_token", or("refresh_token", refresh)),
        ("id_token", or("id_token", None)),
    ] {
        if let Some(value) = value {
            tokens.insert(name.into(), value.into());
        }
    }
    state.insert("tokens".into(), tokens.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::http::address::address;

    fn found(metadata: Value) -> Found {
        Found { metadata: metadata.as_object().cloned(), ..Found::default() }
    }

    #[test]
    fn a_client_proves_itself_as_the_server_wants() {
        let methods = |list: &[&str]| found(json!({"token_endpoint_auth_methods_supported": list}));
        let client = |secret: bool, method: Option<&str>| Client {
            id: "c".into(),
            secret: secret.then(|| "s".into()),
            method: method.map(str::to_owned),
        };
        for (secret, method, supported, expected) in [
            (false, None, &[][..], "none"),
            (true, None, &[], "client_secret_basic"),
            (true, None, &["client_secret_post", "none"], "client_secret_post"),
            (true, None, &["private_key_jwt"], "client_secret_post"),
            (
                true,
                Some("client_secret_post"),
                &["client_secret_basic", "client_secret_post"],
                "client_secret_post",
            ),
            (true, Some("client_secret_post"), &["client_secret_basic"], "client_secret_basic"),
            (true, Some("other"), &["none"], "none"),
        ] {
            assert_eq!(
                client(secret, method).proof(&methods(supported)),
                expected,
                "{method:?} {supported:?}"
            );
        }
    }

    #[test]
    fn a_document_is_named_where_the_server_takes_it() {
        let url = address("https://a.example/mcp").unwrap();
        let takes = json!({"client_id_metadata_document_supported": true,
            "token_endpoint_auth_methods_supported": ["none"]});
        let (client, path) = document(&url, &found(takes.clone())).unwrap();
        let id = path.strip_prefix("/callback/").unwrap();
        assert_eq!((id.len(), client.id), (12, format!("https://pi.dev/oauth/{id}/client.json")));
        let mut with_issuer = takes;
        with_issuer["authorization_response_iss_parameter_supported"] = true.into();
        let (client, path) = document(&url, &found(with_issuer)).unwrap();
        assert_eq!((client.id.as_str(), path.as_str()), ("https://pi.dev/oauth/client.json", "/callback"));
        assert_eq!(document(&url, &found(json!({"client_id_metadata_document_supported": true}))), None);
    }
}
