//! URLs and deployment names of Azure OpenAI.

use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::limits::setting;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;

const DEFAULT_API_VERSION: &str = "v1";

/// Suffixes of Azure's own host names.
const HOSTS: [&str; 3] = [".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"];

/// The URL of a Responses request.
pub fn url(model: &Model, options: &StreamOptions) -> Result<String, StreamError> {
    let version = configured(options, "AZURE_OPENAI_API_VERSION");
    responses_url(&base(model, options)?, version.as_deref())
}

/// The URL of a chat completions request, which needs no API version.
pub fn chat_url(model: &Model, options: &StreamOptions) -> Result<String, StreamError> {
    let Address { place, path, query } = Address::parse(&base(model, options)?)?;
    let path = path.strip_suffix("/chat/completions").unwrap_or(&path);
    let mark = if query.is_empty() { "" } else { "?" };
    Ok(format!("{place}{path}/chat/completions{mark}{query}"))
}

fn configured(options: &StreamOptions, name: &str) -> Option<String> {
    let value = setting(options, name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn base(model: &Model, options: &StreamOptions) -> Result<String, StreamError> {
    let base = configured(options, "AZURE_OPENAI_BASE_URL")
        .or_else(|| {
            let resource = configured(options, "AZURE_OPENAI_RESOURCE_NAME")?;
            Some(format!("https://{resource}.openai.azure.com"))
        })
        .or_else(|| {
            let own = model.base_url.trim();
            (!own.is_empty()).then(|| own.to_owned())
        });
    base.ok_or_else(|| {
        let message = "Azure OpenAI needs an address: set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or give the model a base URL";
        StreamError::new(ErrorKind::Auth, message)
    })
}

/// The name under which the model is deployed: from the pairs `model=deployment` in the environment,
/// otherwise the model's id.
pub fn deployment(model: &Model, options: &StreamOptions) -> String {
    let pairs = setting(options, "AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
    let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(id, name)| (id.trim(), name.trim()));
    let mut named = pairs.filter(|(id, name)| *id == model.id && !name.is_empty());
    named.next_back().map_or_else(|| model.id.clone(), |(_, name)| name.to_owned())
}

/// A base URL of Azure, split into parts.
struct Address {
    /// Scheme and host.
    place: String,
    /// Without a trailing slash.
    path: String,
    query: String,
}

impl Address {
    /// Parses a base URL as Azure's pages show it: the host alone, or the full URL of a request.
    fn parse(base: &str) -> Result<Self, StreamError> {
        let invalid = || {
            let shown = base.split('?').next().unwrap_or_default();
            let message = format!("Invalid Azure OpenAI base URL: {shown}");
            StreamError::new(ErrorKind::Request, message)
        };
        let base = base.trim();
        let (scheme, rest) = base.split_once("://").ok_or_else(invalid)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, mut query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match place.find('/') {
            Some(slash) => place.split_at(slash),
            None => (place, ""),
        };
        let known_scheme = ["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
        if !known_scheme || authority.is_empty() || base.contains(char::is_whitespace) {
            return Err(invalid());
        }
        let mut path = path.trim_end_matches('/');
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default();
        let host = host.to_ascii_lowercase();
        let at_azure = HOSTS.iter().any(|end| host.ends_with(end));
        if at_azure && matches!(path, "" | "/openai" | "/openai/v1/responses") {
            (path, query) = ("/openai/v1", "");
        }
        let path = path.strip_suffix("/responses").unwrap_or(path);
        Ok(Self { place: format!("{scheme}://{authority}"), path: path.to_owned(), query: query.to_owned() })
    }
}

fn responses_url(base: &str, version: Option<&str>) -> Result<String, StreamError> {
    let Address { place, path, query } = Address::parse(base)?;
    let fields = query.split('&').filter(|field| !field.is_empty());
    let (own_version, others): (Vec<&str>, Vec<&str>) =
        fields.partition(|field| field.starts_with("api-version="));
    let version = match (version, own_version.first()) {
        (Some(version), _) => format!("api-version={version}"),
        (None, Some(own)) => (*own).to_owned(),
        (None, None) => format!("api-version={DEFAULT_API_VERSION}"),
    };
    let query = others.into_iter().chain([version.as_str()]);
    let query = query.collect::<Vec<_>>().join("&");
    Ok(format!("{place}{path}/responses?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, version: Option<&str>, expected: &str) {
        assert_eq!(responses_url(base, version).unwrap(), expected, "{base}");
    }

    #[test]
    fn what_azure_s_pages_show_becomes_the_address_of_the_request() {
        for host in [
            "https://r.openai.azure.com",
            "https://r.cognitiveservices.azure.com",
            "https://R.services.AI.azure.com",
        ] {
            let full = format!("{host}/openai/v1/responses?api-version=v1");
            for path in [
                "",
                "/",
                "/openai",
                "/openai/",
                "/openai/v1",
                "/openai/v1/",
                "/openai/v1/responses",
                "/openai/v1/responses?api-version=2025-01-01",
                "?x=1",
            ] {
                check(&format!("{host}{path}"), None, &full);
            }
        }
    }

    #[test]
    fn other_hosts_and_paths_are_left_as_they_are() {
        #[rustfmt::skip]
        let cases = [
            ("http://127.0.0.1:9/", None, "http://127.0.0.1:9/responses?api-version=v1"),
            ("https://proxy.example/azure/v1", Some("preview"), "https://proxy.example/azure/v1/responses?api-version=preview"),
            ("https://proxy.example/a?tenant=7", None, "https://proxy.example/a/responses?tenant=7&api-version=v1"),
            ("https://openai.azure.com.evil.example", None, "https://openai.azure.com.evil.example/responses?api-version=v1"),
            ("https://r.openai.azure.com/openai/responses?api-version=2025-04-01-preview", None,
                "https://r.openai.azure.com/openai/responses?api-version=2025-04-01-preview"),
            ("https://r.openai.azure.com/openai/responses?api-version=2025-04-01-preview", Some("v2"),
                "https://r.openai.azure.com/openai/responses?api-version=v2"),
            (" https://r.openai.azure.com/custom# ", None, "https://r.openai.azure.com/custom/responses?api-version=v1"),
        ];
        for (base, version, expected) in cases {
            check(base, version, expected);
        }
        for base in ["", "r.openai.azure.com", "ftp://x", "https://", "https://a b"] {
            let error = responses_url(base, None).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Request, "{base}");
        }
    }

    #[test]
    fn settings_of_the_credential_say_where_and_under_which_name() {
        let options = |pairs: &[(&str, &str)]| StreamOptions {
            env: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..StreamOptions::default()
        };
        let model = Model { id: "gpt-5".into(), base_url: "http://own".into(), ..Model::default() };
        #[rustfmt::skip]
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[], "http://own/responses?api-version=v1"),
            (&[("AZURE_OPENAI_RESOURCE_NAME", "res"), ("AZURE_OPENAI_API_VERSION", "preview")],
                "https://res.openai.azure.com/openai/v1/responses?api-version=preview"),
            (&[("AZURE_OPENAI_RESOURCE_NAME", "res"), ("AZURE_OPENAI_BASE_URL", "http://b/")],
                "http://b/responses?api-version=v1"),
            (&[("AZURE_OPENAI_BASE_URL", "  ")], "http://own/responses?api-version=v1"),
        ];
        for (env, expected) in cases {
            assert_eq!(url(&model, &options(env)).unwrap(), expected, "{env:?}");
        }
        for (base, expected) in [
            ("https://r.services.ai.azure.com", "https://r.services.ai.azure.com/openai/v1/chat/completions"),
            ("http://b/x/?t=7", "http://b/x/chat/completions?t=7"),
        ] {
            assert_eq!(chat_url(&model, &options(&[("AZURE_OPENAI_BASE_URL", base)])).unwrap(), expected);
        }
        let nowhere = url(&Model::default(), &options(&[])).unwrap_err();
        assert_eq!(nowhere.kind, ErrorKind::Auth);

        let map = "a=b, gpt-5 = mine ,=x,gpt-5=";
        let name = |map| deployment(&model, &options(&[("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", map)]));
        assert_eq!(name(map), "mine");
        assert_eq!(name("gpt-5-mini=x"), "gpt-5");
    }
}
