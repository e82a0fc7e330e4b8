//! Reads `models.json` of the agent folder: the user's own providers and models, and changes to built-in
//! ones.
//!
//! An invalid file is ignored as a whole, an invalid provider alone; both cause a warning. Keys and header
//! values are kept as written: `$NAME` and `!command` are resolved for each request (`auth::credential`).
//!
//! Not here: how an entry changes the models of its provider (`overlay`).

use super::{jsonc, overlay, schema};
use crate::llm::model::provider_id;
use crate::models::catalogue;
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use std::io::ErrorKind;
use std::path::Path;

/// One provider of `models.json`. Has no `Debug`, so that keys and headers are never printed.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    /// Display name.
    pub name: Option<String>,
    pub base_url: Option<String>,
    /// As written: `$NAME`, `!command` or the key itself.
    pub api_key: Option<String>,
    pub api: Option<String>,
    /// `radius` for a Radius gateway.
    pub oauth: Option<String>,
    /// Values as written, not resolved.
    pub headers: Map<String, Value>,
    pub compat: Option<Map<String, Value>>,
    /// True to send the key as `Authorization: Bearer` with every protocol.
    pub auth_header: Option<bool>,
    pub models: Vec<Map<String, Value>>,
    pub model_overrides: Map<String, Value>,
}

impl ProviderConfig {
    /// The address of a Radius gateway, without the path `/v1` of its models; `None` for other providers.
    pub fn gateway(&self) -> Option<String> {
        let url = self.base_url.as_deref().filter(|_| self.oauth.is_some())?;
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix("/v1").unwrap_or(url);
        let has_scheme = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        Some(match has_scheme {
            true => url.trim_end_matches('/').to_owned(),
            false => format!("https://{}", url.trim_end_matches('/')),
        })
    }
}

/// The providers of a `models.json`, in the file's order.
#[derive(Default)]
pub struct ModelsFile {
    pub providers: Vec<(String, ProviderConfig)>,
}

impl ModelsFile {
    /// Reads the file, and returns warnings about invalid parts. A missing file counts as empty.
    pub fn load(path: &Path) -> (Self, Vec<String>) {
        let failed = |what: String| (Self::default(), vec![format!("{what}\n\nFile: {}", path.display())]);
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Default::default(),
            Err(error) => return failed(format!("Failed to load models.json: {error}")),
        };
        match Self::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(read) => read,
            Err(problem) => failed(problem),
        }
    }

    /// Parses the file and returns warnings about invalid providers. An error concerns the whole file.
    fn parse(text: &str) -> Result<(Self, Vec<String>), String> {
        let text = jsonc::strip(text.strip_prefix('\u{feff}').unwrap_or(text));
        let mut document: Value =
            serde_json::from_str(&text).map_err(|error| format!("Failed to parse models.json: {error}"))?;
        let problems = schema::check(&document);
        if !problems.is_empty() {
            let list = problems.join("\n  - ");
            return Err(format!("Invalid models.json schema:\n  - {list}"));
        }
        whole_numbers(&mut document);
        let mut file = Self::default();
        let mut warnings = Vec::new();
        let providers = document.get_mut("providers").and_then(Value::as_object_mut);
        let providers = providers.map(std::mem::take).unwrap_or_default();
        for (id, value) in &providers {
            // An entry under the present id wins over one under the former id.
            let present = provider_id(id);
            if present != id && providers.contains_key(present) {
                continue;
            }
            let (id, value) = (present.to_owned(), value.clone());
            let read = serde_json::from_value(value).map_err(|error| error.to_string());
            match read.and_then(|config| verify(&id, &config).map(|()| config)) {
                Ok(config) => file.providers.push((id, config)),
                Err(problem) => warnings.push(format!("Provider \"{id}\": {problem}")),
            }
        }
        Ok((file, warnings))
    }

    pub fn provider(&self, id: &str) -> Option<&ProviderConfig> {
        let found = self.providers.iter().find(|(name, _)| name == id);
        found.map(|(_, config)| config)
    }
}

/// Reads a provider that another program registers: an entry as in `models.json`, with the fields of programs
/// left out.
pub fn lent(provider: &str, entry: &Value) -> Result<ProviderConfig, String> {
    let mut entry = entry.clone();
    whole_numbers(&mut entry);
    let signs_in = entry["oauth"].is_object();
    if let Some(fields) = entry.as_object_mut() {
        let name = fields.remove("displayName");
        fields.remove("name");
        fields.extend(name.map(|name| ("name".to_owned(), name)));
        ["oauth", "streams"].iter().for_each(|name| drop(fields.remove(*name)));
        fields.retain(|_, value| !value.is_null());
    }
    let config: ProviderConfig = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    if signs_in && overlay::says_nothing(&config) {
        return Ok(config);
    }
    verify(provider, &config).map(|()| config)
}

/// Checks that `config` can be applied to the provider's models, with one model as an example.
fn verify(provider: &str, config: &ProviderConfig) -> Result<(), String> {
    let built_in = catalogue::first(provider);
    let model = built_in.clone().unwrap_or_default();
    overlay::compose(provider, built_in.into_iter().collect(), config)?;
    for (id, change) in &config.model_overrides {
        overlay::apply_override(&model, change)
            .map_err(|error| format!("modelOverrides of {id}: {error}"))?;
    }
    Ok(())
}

/// Converts numbers such as `1e6` and `2.0` to integers, since JavaScript does not distinguish them.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(0.5);
            if float.fract() == 0.0 && float.abs() < 9e15 {
                #[allow(clippy::cast_possible_truncation)] // whole and small
                let whole = float as i64;
                *number = Number::from(whole);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, providers: &[&str], warnings: &[&str]) -> ModelsFile {
        let (file, said) = ModelsFile::parse(text).unwrap();
        let names: Vec<&str> = file.providers.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(names, providers, "{text}");
        assert_eq!(said, warnings, "{text}");
        file
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        assert_eq!(ModelsFile::parse(text).err().as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn comments_trailing_commas_and_a_mark_are_allowed() {
        let file = check(
            "\u{feff}{ // mine\n\"providers\": {\"p\": {\"baseUrl\": \"http://x//y\", /* , */ \"authHeader\": true,}, },}",
            &["p"],
            &[],
        );
        let p = file.provider("p").unwrap();
        assert_eq!(p.base_url.as_deref(), Some("http://x//y"));
        assert_eq!(p.auth_header, Some(true));
        assert!(file.provider("q").is_none());
    }

    #[test]
    fn what_is_written_is_kept_as_it_is() {
        let file = check(
            r#"{"providers": {"p": {"apiKey": "$KEY", "headers": {"X-A": "!echo a"}, "later": {"a": 1}, "name": "P"}}}"#,
            &["p"],
            &[],
        );
        let p = file.provider("p").unwrap();
        assert_eq!(p.api_key.as_deref(), Some("$KEY"));
        assert_eq!(p.headers["X-A"], "!echo a");
        assert_eq!(p.name.as_deref(), Some("P"));
    }

    #[test]
    fn a_broken_file_is_not_used() {
        check_error(
            "{\"providers\":\n {\"x\": tru }}",
            "Failed to parse models.json: expected ident at line 2 column 11",
        );
        check_error(
            "{ // é\n  /* , */ \"providers\": {},,\n}",
            "Failed to parse models.json: key must be a string at line 2 column 27",
        );
        check_error("", "Failed to parse models.json: EOF while parsing a value at line 1 column 0");
        check_error(
            r#"{"providers": {"x": {"baseUrl": 1, "models": [{}]}, "y": {"baseUrl": "http://y"}}}"#,
            "Invalid models.json schema:\n  - providers.x.baseUrl: must be a string that is not empty\n  - providers.x.models.0.id: must have required properties id",
        );
    }

    #[test]
    fn a_provider_that_makes_no_sense_is_left_out() {
        let nothing = |id: &str| {
            format!(
                "Provider \"{id}\": says nothing: give it \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\" or \"models\""
            )
        };
        check(
            r#"{"providers": {"groq": {}, "x": {"name": "X"}, "y": {"models": [{"id": "m"}]},
                "z": {"api": "a", "models": [{"id": "m"}]}, "w": {"oauth": "radius"},
                "v": {"api": "a", "baseUrl": "b", "models": [{"id": "m", "contextWindow": 0}]},
                "u": {"api": "a", "baseUrl": "b", "models": [{"id": "m", "maxTokens": -1}]},
                "t": {"modelOverrides": {"m": {"inputLimits": {"images": {"resize": {"maxWidth": 1e12}}}}}},
                "ok": {"apiKey": "k"}, "openai": {"models": [{"id": "m"}]},
                "azure-openai-responses": {"models": [{"id": "m"}]}}}"#,
            &["ok", "openai"],
            &[
                &nothing("groq"),
                &nothing("x"),
                "Provider \"y\": model m: no \"api\", neither on the model nor on the provider",
                "Provider \"z\": model m: no \"baseUrl\", neither on the model nor on the provider",
                "Provider \"w\": \"oauth\" needs a \"baseUrl\"",
                "Provider \"v\": model m: contextWindow must be above 0",
                "Provider \"u\": model m: maxTokens must be above 0",
                "Provider \"t\": modelOverrides of m: invalid value: integer `1000000000000`, expected u32",
                "Provider \"azure\": model m: no \"baseUrl\", neither on the model nor on the provider",
            ],
        );
    }

    #[test]
    fn a_missing_file_is_an_empty_one_and_a_folder_is_an_error() {
        let folder = std::env::temp_dir();
        let (file, warnings) = ModelsFile::load(&folder.join("no-such-folder-of-pi/models.json"));
        assert!(file.providers.is_empty() && warnings.is_empty());
        let (file, warnings) = ModelsFile::load(&folder);
        assert!(file.providers.is_empty());
        assert!(warnings[0].starts_with("Failed to load models.json: "), "{warnings:?}");
        assert!(warnings[0].ends_with(&format!("\n\nFile: {}", folder.display())), "{warnings:?}");
    }
}
