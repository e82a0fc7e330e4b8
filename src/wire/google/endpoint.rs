//! The URL of a request, and its authentication.
//!
//! The Gemini API takes a key. Vertex AI takes a key at one global host, or an access token at the host of a
//! location with the project in the path. The token is passed in as an `authorization` header.

use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::limits::setting;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::wire::endpoint;
use crate::wire::endpoint::Headers;
use crate::wire::google::variant::Google;

const METHOD: &str = ":streamGenerateContent?alt=sse";
const KEY_HEADER: &str = "x-goog-api-key";

const VERTEX_VERSION: &str = "v1";
/// The location that serves all regions.
const GLOBAL: &str = "global";
/// Multi-region locations, which have host names of their own.
const CONTINENTS: [&str; 2] = ["us", "eu"];

/// Placeholder key that means "use application default credentials".
const CREDENTIALS_MARKER: &str = "gcp-vertex-credentials";

pub fn url(api: Google, model: &Model, options: &StreamOptions) -> Result<String, StreamError> {
    check_id(model)?;
    match api {
        Google::GenerativeAi => {
            let name = match model.id.as_str() {
                id if id.starts_with("models/") || id.starts_with("tunedModels/") => id.to_owned(),
                id => format!("models/{id}"),
            };
            endpoint::url(model, options, &format!("/{name}{METHOD}"))
        }
        Google::Vertex => vertex_url(model, options),
    }
}

pub fn headers(
    api: Google,
    model: &Model,
    options: &StreamOptions,
) -> Result<Vec<(String, String)>, StreamError> {
    let mut headers = Headers::json("text/event-stream");
    if let Some(key) = key(api, options) {
        headers.set(KEY_HEADER, key);
    }
    headers.merge_model(model.headers.as_ref());
    headers.finish(model, options, &[KEY_HEADER, "authorization"])
}

/// The API key; `None` if there is none, or if it is a placeholder for an access token.
fn key(api: Google, options: &StreamOptions) -> Option<&str> {
    let key = options.api_key.as_ref()?.expose().trim();
    let usable = !key.is_empty() && (api == Google::GenerativeAi || !is_placeholder(key));
    usable.then_some(key)
}

/// True if the key is a placeholder for application default credentials.
pub fn is_placeholder(key: &str) -> bool {
    let key = key.trim();
    let inner = key.strip_prefix('<').and_then(|key| key.strip_suffix('>'));
    key == CREDENTIALS_MARKER || inner.is_some_and(|inner| !inner.is_empty() && !inner.contains('>'))
}

fn vertex_url(model: &Model, options: &StreamOptions) -> Result<String, StreamError> {
    let base = model.base_url.trim().trim_end_matches('/');
    // The catalogue's base URL is a template for the rules below.
    let own_base = !base.is_empty() && !base.contains("{location}");
    let resource = resource(&model.id);
    if own_base {
        let version = if has_version(base) { String::new() } else { format!("/{VERTEX_VERSION}") };
        return endpoint::url(model, options, &format!("{version}/{resource}{METHOD}"));
    }
    if key(Google::Vertex, options).is_some() {
        let host = "aiplatform.googleapis.com";
        return Ok(format!("https://{host}/{VERTEX_VERSION}/{resource}{METHOD}"));
    }
    let project = setting(options, "GOOGLE_CLOUD_PROJECT")
        .or_else(|| setting(options, "GCLOUD_PROJECT"))
        .ok_or_else(|| {
            refused(
                ErrorKind::Auth,
                "Vertex AI requires a project ID: set GOOGLE_CLOUD_PROJECT or GCLOUD_PROJECT",
            )
        })?;
    let location = setting(options, "GOOGLE_CLOUD_LOCATION").ok_or_else(|| {
        refused(
            ErrorKind::Auth,
            "Vertex AI requires a location: set GOOGLE_CLOUD_LOCATION, for example to \"global\"",
        )
    })?;
    check_setting("GOOGLE_CLOUD_PROJECT", &project, ":.")?;
    check_setting("GOOGLE_CLOUD_LOCATION", &location, "")?;
    let host = match location.as_str() {
        GLOBAL => "aiplatform.googleapis.com".to_owned(),
        place if CONTINENTS.contains(&place) => format!("aiplatform.{place}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    let place = if resource.starts_with("projects/") {
        String::new()
    } else {
        format!("projects/{project}/locations/{location}/")
    };
    Ok(format!("https://{host}/{VERTEX_VERSION}/{place}{resource}{METHOD}"))
}

/// The full resource name of a model; the default publisher is Google.
fn resource(id: &str) -> String {
    let full = ["publishers/", "projects/", "models/"];
    if full.iter().any(|start| id.starts_with(start)) {
        return id.to_owned();
    }
    match id.split_once('/') {
        Some((publisher, model)) => format!("publishers/{publisher}/models/{model}"),
        None => format!("publishers/google/models/{id}"),
    }
}

/// True if the path contains a version: `v1`, `v1beta`, `v1beta1`.
fn has_version(base: &str) -> bool {
    let path = base.split_once("://").map_or(base, |(_, rest)| rest);
    path.split('/').skip(1).any(|part| {
        let Some(number) = part.strip_prefix('v') else {
            return false;
        };
        let (major, minor) = number.split_once("beta").unwrap_or((number, ""));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        !major.is_empty() && digits(major) && digits(minor)
    })
}

/// Checks the id, which becomes a part of the URL unchanged.
fn check_id(model: &Model) -> Result<(), StreamError> {
    let id = &model.id;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~/:@".contains(c);
    if id.is_empty() || id.contains("..") || !id.chars().all(legal) {
        let message = format!("\"{id}\" is not the name of a model of Google's");
        return Err(refused(ErrorKind::Request, &message));
    }
    Ok(())
}

fn check_setting(name: &str, value: &str, more: &str) -> Result<(), StreamError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || more.contains(c);
    if value.chars().all(legal) {
        return Ok(());
    }
    let message = format!("{name} is set to \"{value}\", which is no such name of Google Cloud's");
    Err(refused(ErrorKind::Request, &message))
}

fn refused(kind: ErrorKind, message: &str) -> StreamError {
    StreamError::new(kind, message)
}
