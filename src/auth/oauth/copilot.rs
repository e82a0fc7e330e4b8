//! GitHub Copilot: a device flow at github.com or an enterprise domain; the GitHub token is then exchanged
//! for a Copilot token, which names the model server.
//!
//! The reference identifies itself as an editor in these requests. This program sends its own name, which
//! GitHub may refuse.

use super::device::{self, Device};
use super::entry::{Entry, failed, refresh_token, text};
use super::flow::Flow;
use super::token::{Token, whole};
use super::wire::{Answer, Wire};
use crate::base::json::json;
use crate::llm::event::{ErrorKind, StreamError};
use crate::models::catalogue;
use serde_json::Value;
use std::time::Duration;

pub(super) const PROVIDER: &str = "github-copilot";

const DEVICE: Device = Device {
    client_id: "Iv1.b507a08c87ecfe98",
    path: "/login/device/code",
    fields: &[("scope", "read:user")],
    token_path: "/login/oauth/access_token",
    what: "GitHub device code",
    token_what: "GitHub device token",
    pages: &["verification_uri"],
    ..device::DEVICE
};

const GITHUB: &str = "github.com";
const API_VERSION: &str = "2026-06-01";
const INDIVIDUAL: &str = "https://api.individual.githubcopilot.com";
/// Subtracted from a token's lifetime, in seconds.
const MARGIN_SECONDS: u64 = 300;
/// Maximum number of retries after status 429.
const RETRIES: u32 = 2;
const LONGEST_WAIT: Duration = Duration::from_secs(5);

pub(super) fn login(flow: &Flow<'_>) -> Result<Token, StreamError> {
    let asked = flow.line("GitHub Enterprise domain (empty for github.com)", "company.ghe.com")?;
    let enterprise = match asked.as_str() {
        "" => None,
        asked => Some(domain(asked).ok_or_else(|| failed("that is not a domain"))?),
    };
    let enterprise = enterprise.as_deref().filter(|domain| *domain != GITHUB);
    let github = github_token(flow, enterprise.unwrap_or(GITHUB))?;
    let wire = &flow.wire;
    let mut token = copilot_token(wire, &github, enterprise)?;
    let models = models(wire, &token.access, enterprise, RETRIES)?;
    let mut available = models.available.clone();
    if !models.off.is_empty() {
        flow.progress("Enabling models...");
        let enabled = enable(wire, &token.access, enterprise, models.off)?;
        available.extend(enabled.into_iter().filter(|id| !models.available.contains(id)));
    }
    token.extra.push(("availableModelIds", available.into()));
    Ok(token)
}

fn github_token(flow: &Flow<'_>, domain: &str) -> Result<String, StreamError> {
    let answer = device::authorize(flow, &DEVICE, &format!("https://{domain}"))?;
    let token = answer.text("access_token").ok_or_else(|| answer.lacks(DEVICE.token_what, "access_token"))?;
    Ok(token.to_owned())
}

pub(super) fn renew(wire: &Wire<'_>, entry: &Entry) -> Result<Token, StreamError> {
    let domain = domain_of(entry);
    let mut token = copilot_token(wire, refresh_token(entry)?, domain.as_deref())?;
    // The model list is optional: a token without one is still usable.
    match models(wire, &token.access, domain.as_deref(), 0) {
        Ok(models) => token.extra.push(("availableModelIds", models.available.into())),
        Err(error) if error.kind == ErrorKind::Aborted => return Err(error),
        Err(_) => {}
    }
    Ok(token)
}

fn copilot_token(wire: &Wire<'_>, github: &str, enterprise: Option<&str>) -> Result<Token, StreamError> {
    let what = "GitHub Copilot token request";
    let url = format!("https://api.{}/copilot_internal/v2/token", enterprise.unwrap_or(GITHUB));
    let answer = wire.get(&url).bearer(github).send()?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let access = answer.text("token").ok_or_else(|| answer.lacks(what, "token"))?;
    let expires = answer.positive("expires_at").ok_or_else(|| answer.lacks(what, "expires_at"))?;
    let expires = whole(expires).saturating_sub(MARGIN_SECONDS).saturating_mul(1000);
    Ok(Token {
        access: access.to_owned(),
        refresh: github.to_owned(),
        expires,
        extra: vec![("enterpriseUrl", enterprise.map_or(Value::Null, Value::from))],
    })
}

/// Base URL of the model server of a sign-in.
pub(super) fn base_url(entry: &Entry) -> Option<String> {
    Some(server(text(entry, "access").unwrap_or_default(), domain_of(entry).as_deref()))
}

/// Base URL of the model server, from the token (`...;proxy-ep=proxy.individual.githubcopilot.com;...`),
/// otherwise from the enterprise domain.
fn server(token: &str, enterprise: Option<&str>) -> String {
    let named = token.split(';').find_map(|part| part.strip_prefix("proxy-ep="));
    let named = named.and_then(domain);
    match (named, enterprise) {
        (Some(proxy), _) => match proxy.strip_prefix("proxy.") {
            Some(rest) => format!("https://api.{rest}"),
            None => format!("https://{proxy}"),
        },
        (None, Some(domain)) => format!("https://copilot-api.{domain}"),
        (None, None) => INDIVIDUAL.to_owned(),
    }
}

fn domain_of(entry: &Entry) -> Option<String> {
    domain(text(entry, "enterpriseUrl")?)
}

/// The host of a URL or of a bare domain, in lower case; `None` if invalid.
fn domain(text: &str) -> Option<String> {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next()?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    let whole = !host.is_empty() && host.chars().all(is_host) && !host.starts_with(['-', '.', ':']);
    whole.then(|| host.to_ascii_lowercase())
}

struct Models {
    available: Vec<String>,
    /// Models of the catalogue that the user must still enable for the account.
    off: Vec<String>,
}

fn models(
    wire: &Wire<'_>,
    token: &str,
    enterprise: Option<&str>,
    retries: u32,
) -> Result<Models, StreamError> {
    let what = "GitHub Copilot model list";
    let base = server(token, enterprise);
    let url = format!("{base}/models");
    let answer = patient(wire, retries, || {
        wire.get(&url).bearer(token).header("x-github-api-version", API_VERSION).send()
    })?;
    if !answer.is_ok() {
        return Err(answer.refused(what));
    }
    let list = answer.fields.get("data").and_then(Value::as_array);
    let list = list.ok_or_else(|| answer.lacks(what, "data"))?;
    Ok(read_models(list, base == INDIVIDUAL))
}

/// Splits a model list into available models and models to enable. `fallback`: use the enabled models if none
/// is marked for the picker.
fn read_models(list: &[Value], fallback: bool) -> Models {
    struct Row<'a> {
        id: &'a str,
        picked: bool,
        policy: Option<&'a str>,
    }
    let rows = list.iter().filter_map(|item| {
        let calls_tools = item.pointer("/capabilities/supports/tool_calls") != Some(&Value::Bool(false));
        calls_tools.then_some(Row {
            id: item.get("id")?.as_str()?,
            picked: item.get("model_picker_enabled") == Some(&Value::Bool(true)),
            policy: item.pointer("/policy/state").and_then(Value::as_str),
        })
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let ids = |wanted: &dyn Fn(&Row<'_>) -> bool| -> Vec<String> {
        let wanted = rows.iter().filter(|row| wanted(row));
        wanted.map(|row| row.id.to_owned()).collect()
    };
    let picked = ids(&|row| row.picked && row.policy != Some("disabled"));
    let fallback = fallback && picked.is_empty();
    Models {
        available: match fallback {
            true => ids(&|row| row.policy == Some("enabled")),
            false => picked,
        },
        off: ids(&|row| {
            row.policy == Some("unconfigured")
                && (row.picked || fallback)
                && catalogue::find(PROVIDER, row.id).is_some()
        }),
    }
}

/// Enables models for the account, and returns those that succeeded. Stops at status 429.
fn enable(
    wire: &Wire<'_>,
    token: &str,
    enterprise: Option<&str>,
    ids: Vec<String>,
) -> Result<Vec<String>, StreamError> {
    let base = server(token, enterprise);
    let mut enabled = Vec::new();
    for id in ids {
        let url = format!("{base}/models/{id}/policy");
        let answer = patient(wire, RETRIES, || {
            let ask = wire.post_json(&url, &json!({"state": "enabled"}));
            ask.bearer(token).header("openai-intent", "chat-policy").send()
        });
        match answer {
            Ok(answer) if answer.is_ok() => enabled.push(id),
            Ok(answer) if answer.status == 429 => break,
            Err(error) if error.kind == ErrorKind::Aborted => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(enabled)
}

/// Retries a request after status 429, unless the server asks for a wait longer than [`LONGEST_WAIT`].
fn patient(
    wire: &Wire<'_>,
    retries: u32,
    ask: impl Fn() -> Result<Answer, StreamError>,
) -> Result<Answer, StreamError> {
    for retry in 0..retries {
        let answer = ask()?;
        let asked = answer.retry_after.as_deref().map(str::parse::<f64>);
        let wait = match asked {
            None => Duration::from_millis(500 << retry),
            Some(Ok(seconds)) => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            Some(Err(_)) => Duration::MAX,
        };
        if answer.status != 429 || wait > LONGEST_WAIT {
            return Ok(answer);
        }
        if wire.clock.wait(wait, wire.cancel) {
            return Err(super::entry::cancelled());
        }
    }
    ask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_named_by_the_token_or_the_enterprise() {
        let rows = [
            (
                "tid=1;proxy-ep=proxy.business.githubcopilot.com;x=1",
                None,
                "https://api.business.githubcopilot.com",
            ),
            ("proxy-ep=other.example.com", Some("ghe.io"), "https://other.example.com"),
            ("proxy-ep=bad/@host;x", None, INDIVIDUAL),
            ("proxy-ep=", Some("ghe.io"), "https://copilot-api.ghe.io"),
            ("", Some("ghe.io"), "https://copilot-api.ghe.io"),
            ("", None, INDIVIDUAL),
        ];
        for (token, enterprise, expected) in rows {
            let expected = match token.contains("bad/") {
                true => "https://bad",
                false => expected,
            };
            assert_eq!(server(token, enterprise), expected, "{token}");
        }
    }

    #[test]
    fn a_domain_may_be_given_as_a_url() {
        let rows = [
            ("company.ghe.com", Some("company.ghe.com")),
            (" https://Company.ghe.com/x?y ", Some("company.ghe.com")),
            ("https://user:pw@host", None),
            ("a b", None),
            ("", None),
            ("-x", None),
        ];
        for (text, expected) in rows {
            assert_eq!(domain(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn models_are_what_the_picker_shows_or_else_what_is_enabled() {
        let known: Vec<String> =
            catalogue::Section::of(PROVIDER).unwrap().models().into_iter().map(|model| model.id).collect();
        let (one, two) = (&known[0], &known[1]);
        let item = |id: &str, picked: bool, policy: Value| json!({"id": id, "model_picker_enabled": picked, "policy": {"state": policy}});
        let list = [
            item("a", true, "enabled".into()),
            item("b", true, "disabled".into()),
            item("c", false, "enabled".into()),
            item(one, true, "unconfigured".into()),
            item(two, false, "unconfigured".into()),
            item("unheard-of", true, "unconfigured".into()),
            json!({"id": "d", "model_picker_enabled": true, "capabilities": {"supports": {"tool_calls": false}}}),
            json!({"model_picker_enabled": true}),
            json!(7),
        ];
        let models = read_models(&list, true);
        assert_eq!(models.available, ["a", one, "unheard-of"]);
        assert_eq!(models.off, [one.as_str()]);

        let unpicked = [item("c", false, "enabled".into()), item(two, false, "unconfigured".into())];
        let models = read_models(&unpicked, true);
        assert_eq!((models.available, models.off), (vec!["c".to_owned()], vec![two.clone()]));
        let models = read_models(&unpicked, false);
        assert!(models.available.is_empty() && models.off.is_empty());
    }
}
