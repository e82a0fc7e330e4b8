//! The table of sign-ins, one row for each provider.
//!
//! A row is data for the flows (`browser`, `device`) and for the token endpoint (`client`). A provider with
//! steps of its own has a separate file with the functions named in its row.

use super::browser::Browser;
use super::client::{Client, Encoding, as_it_is};
use super::device::{DEVICE, Device};
use super::entry::failed;
use super::method::{Engine, Method, Renewal, Way, no_base_url};
use super::token::Lifetime;
use super::wire::{Wire, web_address};
use super::{anthropic, chatgpt, codex, copilot, llama, meta, openrouter};
use crate::llm::event::StreamError;
use crate::llm::http::is_loopback;
use serde_json::Value;

/// Default values for rows.
const METHOD: Method = Method {
    provider: "",
    label: "",
    question: "",
    ways: &[],
    renewal: Renewal::Own(|_, _| Err(failed("it cannot be renewed"))),
    base_url: no_base_url,
    bearer: false,
    needs_device: false,
    otherwise: "",
};

/// Default values for clients.
const CLIENT: Client = Client {
    id: "",
    scope: "",
    host: |_| Err(failed("there is no sign-in server")),
    path: "",
    encoding: Encoding::Form,
    exchange: "",
    refresh: "",
    lifetime: Lifetime { margin_seconds: 0, default_seconds: None },
    complete: as_it_is,
    retries: 0,
};

pub(super) const ANTHROPIC_PAGE: &str = "https://claude.ai/oauth/authorize";

pub(super) static ANTHROPIC: Client = Client {
    id: "9d1c250a-e61b-44d9-88ed-5944d1962f5e",
    scope: "org:create_api_key user:profile user:inference user:sessions:claude_code \
            user:mcp_servers user:file_upload",
    host: |_| Ok("https://platform.claude.com".to_owned()),
    path: "/v1/oauth/token",
    encoding: Encoding::Json,
    exchange: "Anthropic token exchange",
    refresh: "Anthropic token refresh",
    lifetime: Lifetime { margin_seconds: 300, default_seconds: None },
    ..CLIENT
};

pub(super) static CODEX: Client = Client {
    id: "app_EMoamEEZ73f0CkXaXp7hrann",
    scope: "openid profile email offline_access",
    host: |_| Ok(codex::HOST.to_owned()),
    path: "/oauth/token",
    exchange: "OpenAI Codex token exchange",
    refresh: "OpenAI Codex token refresh",
    complete: codex::with_account,
    ..CLIENT
};

pub(super) static CHATGPT: Client = Client {
    // Registers a client, whose id comes back.
    id: "dynamic_agent_client",
    scope: "openid profile email offline_access resource.invoke chatgpt.tokens.use.direct",
    host: |_| Ok(codex::HOST.to_owned()),
    path: "/api/accounts/oauth/token",
    exchange: "OpenAI token exchange",
    refresh: "OpenAI token refresh",
    lifetime: Lifetime { margin_seconds: 180, default_seconds: None },
    complete: chatgpt::with_scopes,
    ..CLIENT
};

static KIMI: Client = Client {
    id: "17e5f671-d194-4dfb-9706-5516cb48c098",
    host: kimi_host,
    path: "/api/oauth/token",
    refresh: "Kimi Code token refresh",
    // The server often fails with passing errors.
    retries: 3,
    ..CLIENT
};

static RADIUS: Client = Client {
    id: "pi-gateway",
    scope: "gateway offline_access",
    host: |wire| Ok(wire.gateway.unwrap_or("https://radius.pi.dev").to_owned()),
    path: "/v1/oauth/token",
    exchange: "Radius token request",
    refresh: "Radius token request",
    lifetime: Lifetime { margin_seconds: 60, default_seconds: None },
    complete: |answer, mut token| {
        token.extra.extend(answer.text("scope").map(|scope| ("scope", Value::from(scope))));
        Ok(token)
    },
    ..CLIENT
};

static XAI: Client = Client {
    id: "b1a00492-073a-47ea-816f-4c329264a828",
    host: |_| Ok("https://auth.x.ai".to_owned()),
    path: "/oauth2/token",
    refresh: "xAI token refresh",
    lifetime: Lifetime { margin_seconds: 300, default_seconds: Some(3600) },
    ..CLIENT
};

pub(super) static METHODS: &[Method] = &[
    Method {
        provider: "anthropic",
        label: "Claude Pro or Max",
        question: "Sign in to Anthropic",
        ways: &[
            Way {
                id: "browser",
                flow: Engine::Browser(
                    &ANTHROPIC,
                    Browser {
                        page: |_| Ok(ANTHROPIC_PAGE.to_owned()),
                        query: &[("code", "true")],
                        port: 53692,
                        any_port: true,
                        host: "localhost",
                        path: "/callback",
                        name: "Anthropic",
                        state_is_verifier: true,
                        progress: Some("Asking Anthropic for the token..."),
                    },
                ),
            },
            Way { id: "copy_code", flow: Engine::Own(anthropic::with_code) },
        ],
        renewal: Renewal::Client(&ANTHROPIC),
        otherwise: "An API key works too: set ANTHROPIC_API_KEY, or pi auth login anthropic --stdin",
        ..METHOD
    },
    Method {
        provider: "openai",
        label: "ChatGPT, for OpenAI's API",
        ways: &[Way { id: "browser", flow: Engine::Own(chatgpt::login) }],
        renewal: Renewal::Own(chatgpt::renew),
        needs_device: true,
        otherwise: "An API key works too: set OPENAI_API_KEY, or pi auth login openai --stdin",
        ..METHOD
    },
    Method {
        provider: "openai-codex",
        label: "ChatGPT Plus or Pro",
        question: "Sign in to OpenAI Codex",
        ways: &[
            Way {
                id: "browser",
                flow: Engine::Browser(
                    &CODEX,
                    Browser {
                        page: |_| Ok("https://auth.openai.com/oauth/authorize".to_owned()),
                        query: &[
                            ("id_token_add_organizations", "true"),
                            ("codex_cli_simplified_flow", "true"),
                            ("originator", "pi"),
                        ],
                        port: 1455,
                        any_port: false,
                        host: "localhost",
                        path: "/auth/callback",
                        name: "OpenAI",
                        state_is_verifier: false,
                        progress: None,
                    },
                ),
            },
            Way { id: "device_code", flow: Engine::Own(codex::with_code) },
        ],
        renewal: Renewal::Client(&CODEX),
        otherwise: "The provider openai works with an API key: set OPENAI_API_KEY",
        ..METHOD
    },
    Method {
        provider: copilot::PROVIDER,
        label: "GitHub Copilot",
        ways: &[Way { id: "device-code", flow: Engine::Own(copilot::login) }],
        renewal: Renewal::Own(copilot::renew),
        base_url: copilot::base_url,
        otherwise: "GitHub may allow Copilot to the editors it knows only, and pi does not claim to be one; \
                    providers with an API key work: pi docs providers",
        ..METHOD
    },
    Method {
        provider: "kimi-coding",
        label: "a Kimi Code subscription",
        ways: &[Way {
            id: "device-code",
            flow: Engine::Device(
                &KIMI,
                Device {
                    client_id: KIMI.id,
                    path: "/api/oauth/device_authorization",
                    token_path: KIMI.path,
                    what: "Kimi Code device authorization",
                    token_what: "Kimi Code device token",
                    pages: &["verification_uri_complete"],
                    ..DEVICE
                },
            ),
        }],
        renewal: Renewal::Client(&KIMI),
        bearer: true,
        otherwise: "An API key works too: set KIMI_API_KEY",
        ..METHOD
    },
    Method {
        provider: "meta",
        label: "a Meta subscription",
        ways: &[Way { id: "device-code", flow: Engine::Own(meta::login) }],
        renewal: Renewal::Own(meta::renew),
        otherwise: "An API key works too: set META_API_KEY",
        ..METHOD
    },
    Method {
        provider: "llama.cpp",
        label: "the address of a server",
        ways: &[Way { id: "address", flow: Engine::Own(llama::login) }],
        ..METHOD
    },
    Method {
        provider: "openrouter",
        label: "an OpenRouter account",
        ways: &[Way { id: "browser", flow: Engine::Own(openrouter::login) }],
        renewal: Renewal::Own(openrouter::renew),
        otherwise: "An API key works too: set OPENROUTER_API_KEY",
        ..METHOD
    },
    Method {
        provider: super::RADIUS,
        label: "a Radius gateway",
        question: "Sign in to the gateway",
        ways: &[
            Way {
                id: "browser",
                flow: Engine::Browser(
                    &RADIUS,
                    Browser {
                        page: radius_page,
                        query: &[("handoff", "url")],
                        port: 1456,
                        any_port: false,
                        host: "127.0.0.1",
                        path: "/oauth/callback",
                        name: "The gateway",
                        state_is_verifier: false,
                        progress: None,
                    },
                ),
            },
            Way {
                id: "device-code",
                flow: Engine::Device(
                    &RADIUS,
                    Device {
                        client_id: RADIUS.id,
                        path: "/v1/oauth/device",
                        fields: &[("scope", RADIUS.scope)],
                        token_path: RADIUS.path,
                        what: "Radius device authorization",
                        token_what: RADIUS.exchange,
                        pages: &["verification_uri"],
                        needs_lifetime: true,
                        wait_first: false,
                        ..DEVICE
                    },
                ),
            },
        ],
        renewal: Renewal::Client(&RADIUS),
        otherwise: "An API key works too: see pi docs providers",
        ..METHOD
    },
    Method {
        provider: "xai",
        label: "SuperGrok or X Premium",
        ways: &[Way {
            id: "device-code",
            flow: Engine::Device(
                &XAI,
                Device {
                    client_id: XAI.id,
                    path: "/oauth2/device/code",
                    fields: &[
                        ("scope", "openid profile email offline_access grok-cli:access api:access"),
                        ("referrer", "pi"),
                    ],
                    token_path: XAI.path,
                    what: "xAI device authorization",
                    token_what: "xAI device token",
                    secure_page: true,
                    needs_lifetime: true,
                    ..DEVICE
                },
            ),
        }],
        renewal: Renewal::Client(&XAI),
        otherwise: "An API key works too: set XAI_API_KEY",
        ..METHOD
    },
];

/// Kimi's sign-in server. Environment variables can replace it, as in the reference, but plain HTTP is
/// accepted for loopback only.
fn kimi_host(wire: &Wire<'_>) -> Result<String, StreamError> {
    let env = wire.env;
    let name = ["KIMI_CODE_OAUTH_HOST", "KIMI_OAUTH_HOST"].into_iter().find(|name| env.has(name));
    let Some((name, host)) = name.and_then(|name| Some((name, env.get(name)?))) else {
        return Ok("https://auth.kimi.com".to_owned());
    };
    let uri: Option<ureq::http::Uri> = web_address(&host).and_then(|host| host.parse().ok());
    let is_safe =
        uri.is_some_and(|uri| uri.scheme_str() == Some("https") || uri.host().is_some_and(is_loopback));
    match is_safe {
        true => Ok(host.trim_end_matches('/').to_owned()),
        false => Err(failed(format!("{name} is no https address"))),
    }
}

/// The authorization page of a Radius gateway, from its OAuth configuration.
fn radius_page(wire: &Wire<'_>) -> Result<String, StreamError> {
    let what = "Radius OAuth configuration";
    let url = format!("{}/v1/oauth", (RADIUS.host)(wire)?);
    let answer = wire.get(&url).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let page = answer.text("authorizationEndpoint").and_then(web_address);
    let page = page.ok_or_else(|| answer.lacks(what, "authorizationEndpoint"))?;
    Ok(page.split(['?', '#']).next().unwrap_or_default().to_owned())
}
