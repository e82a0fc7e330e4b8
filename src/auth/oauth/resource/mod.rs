//! Signs in to a protected resource, as MCP servers over HTTP are (OAuth 2.1): nothing is known of it but its address.
//!
//! The resource names its authorization server (RFC 9728), which names its endpoints (RFC 8414). pi is a client there
//! by configuration, by its document, or by registration. The browser flow is that of all sign-ins, with PKCE and a
//! check of the issuer (RFC 9207). Tokens are kept in `mcp-auth.json` and renewed once for all processes.

mod challenge;
mod client;
mod metadata;
mod state;

use super::browser::{self, Return};
use super::entry::failed;
use super::flow::Flow;
use super::form;
use super::interaction::Interaction;
use super::pkce::{self, Pkce};
use super::wire::{Hosts, RealClock, Setting, Wire};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::event::StreamError;
use crate::llm::http::address::{Address, address};
use crate::llm::message::now_ms;
use crate::llm::secret::{Secret, Vault};
use crate::models::config_value::{self, Keep};
use challenge::Challenge;
use client::{CALLBACK_PATH, Client};
use metadata::{Discovery, Found};
use serde_json::Value;
use state::{State, States};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time limit of all requests of a renewal together.
const RENEWAL_LIMIT: Duration = Duration::from_secs(15);
/// A token that expires within this time is renewed before it is used, in milliseconds.
const MARGIN_MS: u64 = 30_000;

/// How pi makes itself known to an authorization server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// By its document where the server takes one, else by registration.
    #[default]
    Auto,
    Document,
    Register,
}

/// What the user says of a sign-in, where discovery is not enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub client_id: Option<String>,
    /// May hold `${NAME}`, or be a `!command`.
    pub client_secret: Option<String>,
    pub callback_port: Option<u16>,
    pub callback_url: Option<String>,
    pub scope: Option<String>,
    pub client_name: Option<String>,
    pub registration: Registration,
    pub metadata_url: Option<String>,
}

/// Where and for whom a resource is signed in to.
pub struct Place {
    /// The file of all tokens.
    pub file: PathBuf,
    /// The name in the file, beside the address.
    pub name: String,
    pub env: Env,
    pub vault: Vault,
    /// Proxy of the settings, used if the environment names none.
    pub http_proxy: Option<String>,
}

/// A protected resource, and what is kept of it.
pub struct Resource {
    settings: Settings,
    address: Address,
    states: States,
    place: Place,
    clock: RealClock,
}

/// How the user comes back from the browser, and as which client pi sends him there.
enum Plan {
    Known(Client),
    /// Registered before, for these redirect addresses.
    Stored(Client, Vec<String>),
    Register,
}

impl Resource {
    /// None if `url` is no http or https address.
    pub fn new(url: &str, settings: Settings, place: Place) -> Option<Self> {
        let address = address(url)?;
        let states = States::new(place.file.clone(), &place.name, address.href());
        Some(Self { settings, address, states, place, clock: RealClock::new() })
    }

    /// The token to send, renewed if it is about to expire. None without a sign-in.
    pub fn token(&self, cancel: &CancelToken) -> Option<Secret> {
        let mut state = self.states.load().ok()?;
        let expires = state.get("tokensExpireAt").and_then(Value::as_f64);
        #[allow(clippy::cast_precision_loss)] // milliseconds are far below 2^52
        let is_old = expires.is_some_and(|expires| expires <= (now_ms() + MARGIN_MS) as f64);
        if is_old && token(&state, "refresh_token").is_some() {
            // The server judges a token that could not be renewed.
            let _ = self.renew_unless_new(token(&state, "access_token"), &Challenge::default(), cancel);
            state = self.states.load().ok()?;
        }
        let access = token(&state, "access_token")?;
        self.place.vault.learn(&self.place.name, access);
        Some(Secret::new(access))
    }

    /// Renews `refused`, which the server has refused with this challenge, unless that was done meanwhile. True if
    /// there is another token now; false if the user must sign in.
    pub fn refused(
        &self,
        refused: Option<&Secret>,
        challenge: Option<&str>,
        cancel: &CancelToken,
    ) -> Result<bool, StreamError> {
        let challenge = Challenge::parse(challenge);
        if challenge.wants_more() {
            return Ok(false);
        }
        self.renew_unless_new(refused.map(Secret::expose), &challenge, cancel)
    }

    fn renew_unless_new(
        &self,
        old: Option<&str>,
        challenge: &Challenge,
        cancel: &CancelToken,
    ) -> Result<bool, StreamError> {
        if token(&self.states.load()?, "refresh_token").is_none() && old.is_none() {
            return Ok(false);
        }
        let _lock = self.states.lock_renewal(cancel)?;
        let state = self.states.load()?;
        if token(&state, "access_token") != old {
            return Ok(token(&state, "access_token").is_some());
        }
        // The server may have replaced the token already: an abort would lose the new one.
        self.renew(&state, challenge, &CancelToken::new())
    }

    /// Asks for a new token. False if the user must sign in.
    fn renew(&self, state: &State, challenge: &Challenge, cancel: &CancelToken) -> Result<bool, StreamError> {
        let Some(refresh) = token(state, "refresh_token") else { return Ok(false) };
        let setting = self.setting();
        let wire = Wire::new(&setting, cancel, Some(Instant::now() + RENEWAL_LIMIT));
        let discovery = self.discovery(&wire);
        let known =
            state.get("discovery").filter(|_| discovery.configured.is_none()).and_then(Found::from_json);
        let found = match known {
            Some(found) => found,
            None => discovery.run(challenge)?,
        };
        let stored = Client::stored(state).map(|(client, _)| client);
        let document = || {
            let (client, _) = client::document(&self.address, &found)?;
            self.offers_document().then_some(client)
        };
        let configured = self.configured(cancel)?;
        let Some(client) = configured.clone().or_else(|| stored.clone()).or_else(document) else {
            return Ok(false);
        };
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let answer = client.ask(&discovery, &found, &fields)?;
        if answer.is_ok() && answer.error().is_none() {
            let mut fresh = State::new();
            client::keep_tokens(&mut fresh, &answer, token(state, "scope"), Some(refresh))?;
            self.keep(fresh, cancel)?;
            return Ok(true);
        }
        let gone: &[&str] = match answer.error() {
            Some("invalid_grant") => &["tokens", "tokensExpireAt"],
            Some("invalid_client" | "unauthorized_client") if configured.is_none() && stored.is_some() => {
                &["clientInformation", "tokens", "tokensExpireAt", "discovery"]
            }
            Some("invalid_client" | "unauthorized_client") => &[],
            _ => return Err(answer.refused("Renewal of the token")),
        };
        self.states.change(|state| gone.iter().for_each(|name| drop(state.shift_remove(*name))), cancel)?;
        Ok(false)
    }

    /// Signs in: by renewing the token if that is enough, else in the browser. `challenge` is what the server said
    /// last, `scope` what the user wants beside what was granted before.
    pub fn sign_in(
        &self,
        challenge: Option<&str>,
        scope: Option<&str>,
        interaction: &dyn Interaction,
        cancel: &CancelToken,
    ) -> Result<(), StreamError> {
        let challenge = Challenge::parse(challenge);
        let wants_more = challenge.wants_more() || scope.is_some();
        if !wants_more {
            let _lock = self.states.lock_renewal(cancel)?;
            // What hinders a renewal does not hinder a new sign-in.
            if self.renew(&self.states.load()?, &challenge, cancel).unwrap_or(false) {
                return Ok(());
            }
        }
        let setting = self.setting();
        let flow = Flow { wire: Wire::new(&setting, cancel, None), interaction };
        let discovery = self.discovery(&flow.wire);
        let found = discovery.run(&challenge)?;
        if !found.allows("code_challenge_methods_supported", "S256") {
            return Err(failed("the authorization server does not take PKCE with S256"));
        }
        let state = self.states.load()?;
        let granted = token(&state, "scope").filter(|_| wants_more && is_of(&state, &found));
        let asked = challenge.scopes();
        let scope = merged(&[self.settings.scope.as_deref(), granted, asked.as_deref(), scope]);
        let scope = scope.or_else(|| found.scopes());
        let (plan, path) = self.plan(&state, &found, cancel)?;
        let (pkce, secret_state) = (Pkce::new()?, pkce::random()?);
        let page = found.endpoint("authorization_endpoint", "/authorize").unwrap_or_default();
        discovery.permit(&page)?;
        // What would be refused later is refused before the user goes to the browser.
        discovery.permit(&found.endpoint("token_endpoint", "/token").unwrap_or_default())?;
        let (mut client, mut registered) = (Client::default(), None);
        let code = browser::code(&flow, self.way_back(&plan, path, &secret_state), |redirect_uri| {
            client = match &plan {
                Plan::Known(client) => client.clone(),
                Plan::Stored(client, uris) if uris.iter().any(|uri| uri == redirect_uri) => client.clone(),
                Plan::Stored(..) | Plan::Register => {
                    let name = self.settings.client_name.as_deref().unwrap_or("pi");
                    let (client, kept) =
                        client::register(&discovery, &found, name, redirect_uri, scope.as_deref())?;
                    registered = Some(kept);
                    client
                }
            };
            Ok(page_url(&page, &client, redirect_uri, &pkce, &secret_state, scope.as_deref(), &found))
        })?;
        let wants_issuer = found.says("authorization_response_iss_parameter_supported");
        if (wants_issuer || code.issuer.is_some()) && code.issuer.as_deref() != found.issuer() {
            return Err(failed(format!(
                "the answer is of another issuer ({}) than the authorization server ({})",
                code.issuer.as_deref().unwrap_or("none"),
                found.issuer().unwrap_or("none")
            )));
        }
        let answer = client.ask(
            &discovery,
            &found,
            &[
                ("grant_type", "authorization_code"),
                ("code", &code.code),
                ("code_verifier", &pkce.verifier),
                ("redirect_uri", &code.redirect_uri),
            ],
        )?;
        if !answer.is_ok() || answer.error().is_some() {
            if matches!(answer.error(), Some("invalid_client" | "unauthorized_client")) {
                // The next sign-in registers anew.
                self.states.change(|state| drop(state.shift_remove("clientInformation")), cancel)?;
            }
            return Err(answer.refused("The token endpoint"));
        }
        let mut fresh = State::new();
        client::keep_tokens(&mut fresh, &answer, scope.as_deref(), None)?;
        let mut kept = found.to_json();
        if let Some(url) = &challenge.resource_metadata {
            kept["resourceMetadataUrl"] = url.as_str().into();
        }
        if self.settings.metadata_url.is_none() {
            fresh.insert("discovery".into(), kept);
        }
        match (registered, &plan) {
            (Some(kept), _) => drop(fresh.insert("clientInformation".into(), kept)),
            (None, Plan::Known(_)) => drop(fresh.insert("clientInformation".into(), Value::Null)),
            (None, _) => {}
        }
        self.keep(fresh, cancel)
    }

    /// Forgets the tokens. False if there were none.
    pub fn sign_out(&self, cancel: &CancelToken) -> Result<bool, StreamError> {
        self.states.remove(cancel)
    }

    /// Keeps new tokens. A field that is null goes.
    fn keep(&self, fresh: State, cancel: &CancelToken) -> Result<(), StreamError> {
        let change = |state: &mut State| {
            // The reference's marks of a sign-in under way are of no use any more.
            for name in ["tokensExpireAt", "oauthState", "codeVerifier"] {
                state.shift_remove(name);
            }
            for (name, value) in fresh {
                match value {
                    Value::Null => drop(state.shift_remove(&name)),
                    value => drop(state.insert(name, value)),
                }
            }
        };
        self.states.change(change, cancel).map(drop)
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            hosts: &Hosts::Real,
            clock: &self.clock,
            env: &self.place.env,
            gateway: None,
            device: None,
            http_proxy: self.place.http_proxy.as_deref(),
        }
    }

    fn discovery<'a>(&'a self, wire: &'a Wire<'a>) -> Discovery<'a> {
        Discovery { wire, url: &self.address, configured: self.settings.metadata_url.as_deref() }
    }

    /// The client of the settings.
    fn configured(&self, cancel: &CancelToken) -> Result<Option<Client>, StreamError> {
        let Some(id) = self.settings.client_id.clone() else { return Ok(None) };
        let resolve = |secret: &String| {
            let place = format!("\"clientSecret\" of {}", self.place.name);
            let secret = config_value::resolve(secret, &place, Keep::Process, &self.place.env, cancel);
            let secret = secret.map_err(failed)?.expose().to_owned();
            self.place.vault.learn(&format!("{}.secret", self.place.name), &secret);
            Ok::<_, StreamError>(secret)
        };
        let secret = self.settings.client_secret.as_ref().map(resolve).transpose()?;
        Ok(Some(Client { id, secret, method: None }))
    }

    /// True if the settings leave room for the document that describes pi.
    fn offers_document(&self) -> bool {
        match self.settings.registration {
            Registration::Document => true,
            Registration::Register => false,
            Registration::Auto => {
                let callback = self.callback();
                let is_listed = callback.host != "[::1]" && callback.path == CALLBACK_PATH;
                self.settings.client_id.is_none() && self.settings.client_name.is_none() && is_listed
            }
        }
    }

    /// The redirect address of the settings.
    fn callback(&self) -> Address {
        let configured = self.settings.callback_url.as_deref().and_then(address);
        let mut callback = configured.unwrap_or_else(|| Address {
            is_https: false,
            host: "127.0.0.1".into(),
            port: None,
            path: CALLBACK_PATH.into(),
            query: None,
        });
        callback.port = callback.port.or(self.settings.callback_port);
        callback
    }

    /// The client, and the path of the redirect address.
    fn plan(
        &self,
        state: &State,
        found: &Found,
        cancel: &CancelToken,
    ) -> Result<(Plan, String), StreamError> {
        let path = self.callback().path;
        if let Some(client) = self.configured(cancel)? {
            return Ok((Plan::Known(client), path));
        }
        let wants_document = self.settings.registration == Registration::Document;
        if let Some((client, uris)) = Client::stored(state).filter(|_| !wants_document && is_of(state, found))
        {
            return Ok((Plan::Stored(client, uris), path));
        }
        if self.offers_document()
            && let Some((client, path)) = client::document(&self.address, found)
        {
            return Ok((Plan::Known(client), path));
        }
        match wants_document {
            true => Err(failed(
                "the authorization server takes no documents of clients without a secret: leave \
                 \"clientRegistration\": \"cimd\" out",
            )),
            false => Ok((Plan::Register, path)),
        }
    }

    fn way_back(&self, plan: &Plan, path: String, state: &str) -> Return {
        let callback = self.callback();
        let registered = match plan {
            Plan::Stored(_, uris) => uris.first().and_then(|uri| address(uri)?.port),
            _ => None,
        };
        Return {
            port: callback.port.or(registered).unwrap_or(0),
            any_port: callback.port.is_none(),
            host: match callback.host.as_str() {
                "localhost" => "localhost",
                "[::1]" => "[::1]",
                _ => "127.0.0.1",
            },
            path,
            state: Some(state.to_owned()),
            name: "The server",
        }
    }
}

/// True unless what is stored comes from another authorization server, which must not learn it.
fn is_of(state: &State, found: &Found) -> bool {
    let known = state.get("discovery").and_then(Found::from_json);
    known.is_none_or(|known| known.server.trim_end_matches('/') == found.server.trim_end_matches('/'))
}

/// The scopes that a server's challenge asks for.
pub fn asked_scope(challenge: &str) -> Option<String> {
    Challenge::parse(Some(challenge)).scopes()
}

/// A field of the tokens.
fn token<'a>(state: &'a State, name: &str) -> Option<&'a str> {
    state.get("tokens")?.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The address of the page on which the user agrees.
fn page_url(
    page: &str,
    client: &Client,
    redirect_uri: &str,
    pkce: &Pkce,
    state: &str,
    scope: Option<&str>,
    found: &Found,
) -> String {
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("code_challenge", &pkce.challenge),
        ("code_challenge_method", "S256"),
        ("redirect_uri", redirect_uri),
        ("state", state),
    ];
    query.extend(scope.map(|scope| ("scope", scope)));
    if scope.is_some_and(|scope| scope.split_whitespace().any(|scope| scope == "offline_access")) {
        query.push(("prompt", "consent"));
    }
    query.extend(found.resource_id().map(|resource| ("resource", resource)));
    let separator = if page.contains('?') { '&' } else { '?' };
    format!("{page}{separator}{}", form::encode(&query))
}

/// All scopes, each once.
fn merged(parts: &[Option<&str>]) -> Option<String> {
    let mut all: Vec<&str> = Vec::new();
    for scope in parts.iter().flatten().flat_map(|part| part.split_whitespace()) {
        if !all.contains(&scope) {
            all.push(scope);
        }
    }
    (!all.is_empty()).then(|| all.join(" "))
}
