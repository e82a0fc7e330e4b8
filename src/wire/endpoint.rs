//! The URL and headers of a request.

use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::limits::setting;
use crate::llm::message::{Block, Content, Message};
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use serde_json::{Map, Value};

/// Placeholders in a base URL that are replaced by the user's settings.
const PLACEHOLDERS: [&str; 2] = ["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"];

/// The model's base URL followed by `path`.
pub fn url(model: &Model, options: &StreamOptions, path: &str) -> Result<String, StreamError> {
    let mut base = model.base_url.trim().trim_end_matches('/').to_owned();
    for name in PLACEHOLDERS {
        let placeholder = format!("{{{name}}}");
        if !base.contains(&placeholder) {
            continue;
        }
        let value = setting(options, name).ok_or_else(|| {
            let message = format!("{name} is not set: provider {} needs it", model.provider);
            StreamError::new(ErrorKind::Auth, message)
        })?;
        base = base.replace(&placeholder, &value);
    }
    if base.is_empty() {
        let message = format!("Model {}/{} has no base URL", model.provider, model.id);
        return Err(StreamError::new(ErrorKind::Request, message));
    }
    Ok(base + path)
}

/// Headers with case-insensitive names; a later value replaces an earlier one.
#[derive(Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The headers of a request with a JSON body; `accept` is the type of the answer.
    pub fn json(accept: &str) -> Self {
        let mut headers = Self::default();
        headers.set("content-type", "application/json");
        headers.set("accept", accept);
        headers
    }

    /// Sets the key as a bearer token.
    pub fn set_bearer(&mut self, options: &StreamOptions) {
        if let Some(key) = &options.api_key {
            self.set("authorization", format!("Bearer {}", key.expose()));
        }
    }

    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let name = name.to_ascii_lowercase();
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Applies the model's headers; `null` removes a header.
    pub fn merge_model(&mut self, headers: Option<&Map<String, Value>>) {
        for (name, value) in headers.into_iter().flatten() {
            match value {
                Value::Null => self.remove(name),
                Value::String(value) => self.set(name, value),
                other => self.set(name, other.to_string()),
            }
        }
    }

    /// Applies the caller's headers; `None` removes a header.
    pub fn merge_options(&mut self, options: &StreamOptions) {
        for (name, value) in &options.headers {
            match value {
                Some(value) => self.set(name, value),
                None => self.remove(name),
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        let mut headers = self.0.iter();
        headers.any(|(known, value)| known.eq_ignore_ascii_case(name) && !value.trim().is_empty())
    }

    /// Fails if the model's host is on the internet and no header in `names` is set. A host on this machine
    /// or a private network may need no credential.
    pub fn require_auth(&self, model: &Model, names: &[&str]) -> Result<(), StreamError> {
        self.require_auth_at(&model.base_url, model, names)
    }

    /// Fails if `url` is on the internet and no header in `names` is set.
    pub fn require_auth_at(&self, url: &str, model: &Model, names: &[&str]) -> Result<(), StreamError> {
        if names.iter().any(|name| self.has(name)) || is_private_host(url) {
            return Ok(());
        }
        let message = format!("No API key for provider: {}", model.provider);
        Err(StreamError::new(ErrorKind::Auth, message))
    }

    /// Adds gateway headers and the caller's headers. Fails without a credential, as [`Self::require_auth`].
    pub fn finish(
        mut self,
        model: &Model,
        options: &StreamOptions,
        proofs: &[&str],
    ) -> Result<Vec<(String, String)>, StreamError> {
        gateway_headers(&mut self, model, options);
        self.merge_options(options);
        self.require_auth(model, proofs)?;
        Ok(self.into_vec())
    }

    pub fn into_vec(self) -> Vec<(String, String)> {
        self.0
    }
}

/// Headers for GitHub Copilot's billing: whether the user or the agent began the turn, and whether it
/// contains images.
pub fn copilot_headers(headers: &mut Headers, context: &Context) {
    let by_user = matches!(context.messages.last(), None | Some(Message::User(_)));
    headers.set("x-initiator", if by_user { "user" } else { "agent" });
    headers.set("openai-intent", "conversation-edits");
    let has_image = |blocks: &[Block]| blocks.iter().any(|b| matches!(b, Block::Image(_)));
    let images = context.messages.iter().any(|message| match message {
        Message::User(user) => {
            matches!(&user.content, Content::Blocks(blocks) if has_image(blocks))
        }
        Message::ToolResult(result) => has_image(&result.content),
        _ => false,
    });
    if images {
        headers.set("copilot-vision-request", "true");
    }
}

/// Headers for gateways, with any protocol: the client's name, and OpenCode's session id.
pub fn gateway_headers(headers: &mut Headers, model: &Model, options: &StreamOptions) {
    let known = matches!(model.provider.as_str(), "opencode" | "opencode-go")
        || host(&model.base_url) == "opencode.ai";
    let session = options.session_id.as_deref();
    if let Some(session) = session.filter(|session| known && !session.is_empty()) {
        headers.set("x-opencode-session", session);
        headers.set("x-opencode-client", "pi");
    }
    attribution_headers(headers, model, options);
}

/// Headers that identify this program to routers with statistics of clients; none with `PI_TELEMETRY=0`. URL
/// and category are omitted where they belong to another product.
fn attribution_headers(headers: &mut Headers, model: &Model, options: &StreamOptions) {
    let told = setting(options, "PI_TELEMETRY")
        .is_none_or(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes"));
    if !told {
        return;
    }
    let host = host(&model.base_url);
    if model.provider == "openrouter" || host == "openrouter.ai" {
        headers.set("x-openrouter-title", "pi");
        headers.set("x-openrouter-categories", "cli-agent");
    } else if model.provider == "nvidia" || host == "integrate.api.nvidia.com" {
        headers.set("x-billing-invoke-origin", "Pi");
    }
}

/// True for a host on this machine or in a private network: loopback and private addresses, `localhost`,
/// `.local` names, and names without a dot.
pub fn is_private_host(url: &str) -> bool {
    let host = host(url);
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        Ok(std::net::IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => {
            let local = host.ends_with(".localhost") || host.ends_with(".local");
            !host.is_empty() && (local || !host.contains('.'))
        }
    }
}

/// The host of a URL in lower case, without port and brackets.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => host.split(':').next(),
    };
    host.unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_hosts_are_told_from_public_ones() {
        let private = [
            "http://localhost:11434/v1",
            "http://LOCALHOST",
            "http://127.0.0.1:8080",
            "http://[::1]:8080/v1",
            "http://192.168.1.5:1234/v1",
            "http://10.0.0.1",
            "http://ollama:11434",
            "http://box.local/v1",
            "http://user:key@127.0.0.1:80/x",
        ];
        let public = [
            "",
            "https://api.openai.com/v1",
            "http://8.8.8.8",
            "https://localhost.example.com",
            "https://example.com/localhost",
            "https://127.0.0.1@example.com",
            "http://[2001:db8::1]/",
        ];
        for url in private {
            assert!(is_private_host(url), "{url}");
        }
        for url in public {
            assert!(!is_private_host(url), "{url}");
        }
    }

    #[test]
    fn opencode_is_told_the_conversation() {
        let cases = [
            ("opencode", "https://proxy.test/v1", "s1", true),
            ("mine", "https://OpenCode.ai/zen/v1", "s1", true),
            ("mine", "https://opencode.ai.test/v1", "s1", false),
            ("opencode-go", "https://opencode.ai/zen", "", false),
        ];
        for (provider, base_url, session, expected) in cases {
            let model = Model { provider: provider.into(), base_url: base_url.into(), ..Model::default() };
            let options = StreamOptions { session_id: Some(session.into()), ..StreamOptions::default() };
            let mut headers = Headers::default();
            gateway_headers(&mut headers, &model, &options);
            assert_eq!(headers.has("x-opencode-session"), expected, "{base_url}");
            assert_eq!(headers.has("x-opencode-client"), expected, "{base_url}");
        }
    }

    #[test]
    fn routers_are_told_who_asks_unless_they_may_not_be() {
        let told = |provider: &str, base_url: &str, telemetry: &str| {
            let model = Model { provider: provider.into(), base_url: base_url.into(), ..Model::default() };
            let options = StreamOptions {
                env: vec![("PI_TELEMETRY".into(), telemetry.into())],
                ..StreamOptions::default()
            };
            let mut headers = Headers::default();
            gateway_headers(&mut headers, &model, &options);
            headers.into_vec()
        };
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            let pairs = list.iter();
            pairs.map(|(n, v)| ((*n).into(), (*v).into())).collect()
        };
        let router = pairs(&[("x-openrouter-title", "pi"), ("x-openrouter-categories", "cli-agent")]);
        let nvidia = pairs(&[("x-billing-invoke-origin", "Pi")]);
        for yes in ["1", "TRUE", "yes"] {
            assert_eq!(told("openrouter", "http://127.0.0.1:1/v1", yes), router);
        }
        assert_eq!(told("mine", "https://openrouter.ai/api/v1", "1"), router);
        assert_eq!(told("mine", "https://integrate.api.nvidia.com/v1", "1"), nvidia);
        assert_eq!(told("mine", "https://openrouter.ai.test/v1", "1"), []);
        for no in ["0", "false", "off"] {
            assert_eq!(told("openrouter", "https://openrouter.ai/api/v1", no), []);
        }
    }

    #[test]
    fn placeholders_of_the_base_url_are_filled_in_or_named() {
        let model = Model {
            base_url: "https://x/{CLOUDFLARE_ACCOUNT_ID}/v1/".into(),
            provider: "cf".into(),
            ..Model::default()
        };
        let mut options = StreamOptions::default();
        options.env.push(("CLOUDFLARE_ACCOUNT_ID".into(), "a1".into()));
        let path = "/chat/completions";
        let full = "https://x/a1/v1/chat/completions";
        assert_eq!(url(&model, &options, path).unwrap(), full);
        let error = url(&Model::default(), &options, path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Request);
    }

    #[test]
    fn headers_are_merged_without_regard_to_case() {
        let mut headers = Headers::default();
        headers.set("Authorization", "Bearer a");
        let own = serde_json::from_str(r#"{"X-One":"1","x-two":"2"}"#).unwrap();
        headers.merge_model(Some(&own));
        let options = StreamOptions {
            headers: vec![("AUTHORIZATION".into(), None), ("x-ONE".into(), Some("3".into()))],
            ..StreamOptions::default()
        };
        headers.merge_options(&options);
        let expected = [("x-one", "3"), ("x-two", "2")];
        assert_eq!(headers.into_vec(), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }
}
