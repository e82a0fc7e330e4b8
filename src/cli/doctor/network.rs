//! Checks of model servers, proxies and certificates.

use super::{Finding, Place};
use crate::base::cancel::CancelToken;
use crate::base::env::Env;
use crate::llm::http;
use crate::models::local;
use std::time::Duration;

/// Time limit for asking all servers of this machine together.
const LOCAL_LIMIT: Duration = Duration::from_millis(500);
/// Time limit for asking one provider.
const ONLINE_LIMIT: Duration = Duration::from_secs(10);

/// Checks the model servers of this machine. Servers elsewhere that variables name are asked only with
/// `online`.
pub fn servers(place: &Place, online: bool) -> Vec<Finding> {
    let services = &place.inputs.services;
    let mut env = services.credentials.env().clone();
    let mut findings = Vec::new();
    for name in ["PI_LOCAL_URL", "LLAMA_BASE_URL"] {
        if let Some(url) = env.get(name)
            && !online
            && !local::is_loopback(&url)
        {
            findings.push(Finding::ok(
                "servers",
                format_args!("{name} names a server on another machine, which only --online asks"),
            ));
            env = env.without(name);
        }
    }
    let found = local::discover(&env, LOCAL_LIMIT, &services.local_servers.allowed());
    let mut names: Vec<String> = found.offers.iter().map(|offer| offer.server.to_string()).collect();
    names.dedup();
    for name in &names {
        let models = found.offers.iter().filter(|offer| offer.server.to_string() == *name);
        let models: Vec<&str> = models.map(|offer| offer.model.id.as_str()).collect();
        findings.push(Finding::ok("servers", format_args!("{name}: {}", models.join(", "))));
    }
    findings.extend(found.refusals.iter().map(|text| Finding::warning("servers", text, "see pi docs local")));
    findings.extend(found.strangers.iter().map(|stranger| {
        let advice = "to use it all the same: --model local; see pi docs local";
        Finding::warning("servers", format_args!("not used: {stranger}"), advice)
    }));
    if findings.is_empty() {
        findings.push(Finding::ok("servers", "no model server of this machine answers"));
    }
    findings
}

/// Checks the proxies of requests over https and http.
pub fn proxies(place: Option<&Place>) -> Vec<Finding> {
    let env = environment(place);
    let mut findings: Vec<Finding> = Vec::new();
    for scheme in ["https", "http"] {
        // A name that no NO_PROXY list contains, but the one of `*`.
        match http::proxy_of(&format!("{scheme}://provider.invalid"), &env) {
            Ok(Some(proxy)) => {
                findings.push(Finding::ok("proxies", format_args!("{proxy} for {scheme}")));
            }
            Ok(None) => {}
            Err(error) => findings.push(Finding::bad(
                "proxies",
                error.message,
                "correct the variable or the setting httpProxy; see pi docs network",
            )),
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("proxies", "none"));
    }
    findings
}

/// The environment, with the proxy of the settings if the environment has none.
fn environment(place: Option<&Place>) -> Env {
    let settings = place.map(|place| place.inputs.services.with_proxy(Vec::new()));
    Env::process().with(&settings.unwrap_or_default())
}

/// Checks the certificates that servers are trusted by.
pub fn certificates() -> Vec<Finding> {
    let trusted = http::certificates(Env::process());
    let mut findings: Vec<Finding> = trusted
        .problems
        .iter()
        .map(|problem| {
            Finding::bad(
                "certificates",
                problem,
                "correct the variable, or the file that it names; see pi docs network",
            )
        })
        .collect();
    let bundle = trusted.bundle.map_or_else(
        || "no bundle of the system".to_owned(),
        |bundle| format!("those of {}", bundle.display()),
    );
    findings
        .insert(0, Finding::ok("certificates", format_args!("{} roots: built in, {bundle}", trusted.count)));
    findings
}

/// Asks the servers of all providers that there is a key for. No key is sent.
pub fn providers(place: &Place) -> Vec<Finding> {
    let services = &place.inputs.services;
    let env = services.with_proxy(Vec::new());
    let mut urls: Vec<(String, String)> = Vec::new();
    for provider in services.registry.providers() {
        if services.is_faux(provider) || !services.usable(provider) {
            continue;
        }
        let model = services.registry.models_of(provider).into_iter().next();
        if let Some(model) = model.filter(|model| model.base_url.starts_with("http")) {
            urls.push((provider.to_owned(), model.base_url.clone()));
        }
    }
    let ask = |(provider, url): &(String, String)| {
        let request = http::Request {
            method: http::Method::GET,
            timeout: Some(ONLINE_LIMIT),
            env: &env,
            ..http::Request::new(url)
        };
        match http::ask(&request, &CancelToken::new()) {
            Ok(reply) => Finding::ok("online", format_args!("{provider} answers (HTTP {})", reply.status)),
            Err(error) => Finding::bad(
                "online",
                format_args!("{provider} does not answer: {}", error.message),
                "check the connection, proxy and certificates; see pi docs network",
            ),
        }
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = urls.iter().map(|url| scope.spawn(move || ask(url))).collect();
        asked.into_iter().filter_map(|asked| asked.join().ok()).collect()
    })
}
