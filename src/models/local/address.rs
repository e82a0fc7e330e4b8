//! Addresses of local model servers, and parsing of addresses that users write.

use super::Kind;
use crate::base::env::Env;
use crate::llm::secret::Secret;

pub(super) const OLLAMA: &str = "http://127.0.0.1:11434";
/// `llama serve`, and `llama-server`.
pub const LLAMA_DEFAULT: &str = "http://127.0.0.1:9931";
pub(super) const LLAMA_CPP: [&str; 2] = [LLAMA_DEFAULT, "http://127.0.0.1:8080"];
/// The variables for the address of a llama.cpp server, and for its key.
pub const LLAMA_URL: &str = "LLAMA_BASE_URL";
pub const LLAMA_KEY: &str = "LLAMA_API_KEY";
pub(super) const LM_STUDIO: &str = "http://127.0.0.1:1234";
pub(super) const VLLM: &str = "http://127.0.0.1:8000";
pub(super) const SGLANG: &str = "http://127.0.0.1:30000";

/// An address where a server may listen.
#[derive(Clone)]
pub(super) struct Target {
    /// The kind of server that usually listens there.
    pub kind: Kind,
    pub root: String,
    pub key: Option<Secret>,
    /// If the user configured this server: the names of the variables for its address and for its key.
    pub named: Option<(&'static str, &'static str)>,
}

/// The addresses to probe, in order of preference.
pub(super) fn targets(env: &Env) -> Vec<Target> {
    let key = |name: &str| env.get(name).map(Secret::new);
    let mut targets = Vec::new();
    let mut add = |kind, root: String, key, named| {
        if !targets.iter().any(|known: &Target| known.root == root) {
            targets.push(Target { kind, root, key, named });
        }
    };
    // If the user names a server, no other is probed.
    if let Some(url) = env.get("PI_LOCAL_URL") {
        add(Kind::Other, root(&url), key("PI_LOCAL_API_KEY"), Some(("PI_LOCAL_URL", "PI_LOCAL_API_KEY")));
        return targets;
    }
    let named = env.get(LLAMA_URL);
    if let Some(url) = &named {
        add(Kind::LlamaCpp, root(url), key(LLAMA_KEY), Some((LLAMA_URL, LLAMA_KEY)));
    }
    let ollama = env.get("OLLAMA_HOST").map_or(OLLAMA.to_owned(), |host| ollama_root(&host));
    if is_loopback(&ollama) {
        add(Kind::Ollama, ollama, None, None);
    }
    // If LLAMA_BASE_URL is set, the key is only for that server.
    let llama_key = key(LLAMA_KEY).filter(|_| named.is_none());
    for root in LLAMA_CPP {
        add(Kind::LlamaCpp, root.to_owned(), llama_key.clone(), None);
    }
    add(Kind::LmStudio, LM_STUDIO.to_owned(), None, None);
    add(Kind::Vllm, VLLM.to_owned(), None, None);
    add(Kind::Sglang, SGLANG.to_owned(), None, None);
    targets
}

/// True if the user named a server.
pub fn is_configured(env: &Env) -> bool {
    env.has("PI_LOCAL_URL") || env.has(LLAMA_URL)
}

/// The variable whose key may be sent to the server at `base_url`. A key for one server is never sent to
/// another on this machine.
pub fn key_variable(base_url: &str, env: &Env) -> Option<&'static str> {
    let server = root(base_url);
    let is = |name: &str| env.get(name).is_some_and(|url| root(&url) == server);
    let name = if is("PI_LOCAL_URL") {
        "PI_LOCAL_API_KEY"
    } else if is(LLAMA_URL) || (LLAMA_CPP.contains(&server.as_str()) && !env.has(LLAMA_URL)) {
        LLAMA_KEY
    } else {
        return None;
    };
    env.has(name).then_some(name)
}

/// The base URL of requests to a server. `url` may have or lack a scheme, `/v1` and a trailing slash.
pub fn api_url(url: &str) -> String {
    format!("{}/v1", root(url))
}

/// True if `url` is on this machine.
pub fn is_loopback(url: &str) -> bool {
    let host = authority(url).1;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let named = host.eq_ignore_ascii_case("localhost");
    named || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Host and port of a server URL.
pub(super) fn place(root: &str) -> (&str, u16) {
    let (scheme, authority, _) = authority(root);
    let usual = if scheme == "https" { 443 } else { 80 };
    // The colons of an IPv6 address are inside its brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(usual)),
        _ => (authority, usual),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Scheme, host with port, and path. A user name and password are omitted, since addresses are shown.
fn authority(url: &str) -> (&str, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (scheme, host, path)
}

pub(super) fn root(url: &str) -> String {
    let (scheme, host, path) = authority(url.trim());
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path).trim_end_matches('/');
    format!("{scheme}://{}{path}", reachable(host))
}

/// Applies Ollama's rules for `OLLAMA_HOST`: the port is 11434 unless a scheme is given.
pub(super) fn ollama_root(host: &str) -> String {
    let host = host.trim().trim_matches(['"', '\'']);
    let root = root(host);
    let (_, authority, _) = authority(&root);
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    if has_port || host.contains("://") {
        return root;
    }
    root.replacen(authority, &format!("{}:11434", authority.trim_end_matches(':')), 1)
}

/// Converts an address to listen on to one to connect to.
fn reachable(host: &str) -> String {
    for any in ["0.0.0.0", "[::]"] {
        if let Some(port) = host.strip_prefix(any)
            && (port.is_empty() || port.starts_with(':'))
        {
            return format!("127.0.0.1{port}");
        }
    }
    match host.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None if host.is_empty() => "127.0.0.1".to_owned(),
        None => host.to_owned(),
    }
}
