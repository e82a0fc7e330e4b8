//! Models newer than the catalogue, fetched by `pi update --models`.
//!
//! Fetched models are stored in `models-store.json`, in the reference's format: for each provider `models`,
//! `checkedAt`, `lastModified` (Unix milliseconds) and `etag`. An entry older than the program's catalogue is
//! ignored. A fetched list can only add and change models of built-in providers. A model with an unknown host
//! or protocol is left out, and fetched headers are dropped, so that the user's key is never sent to a new
//! host.
//!
//! Not here: writing what was fetched (the command line does it).

use crate::base::cancel::CancelToken;
use crate::base::file;
use crate::base::json::{self, json};
use crate::base::order;
use crate::llm::http;
use crate::llm::message::now_ms;
use crate::llm::model::Model;
use crate::models::catalogue;
use crate::models::catalogue::Section;
use crate::models::{personal, replace_or_push};
use crate::wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

pub const FILE_NAME: &str = "models-store.json";

/// Time limit of one attempt.
const PATIENCE: Duration = Duration::from_secs(4);
const ATTEMPTS: u32 = 3;
/// Largest size of the file, in bytes.
const FILE_LIMIT: u64 = 64 << 20;

/// The fetched models, parsed one provider at a time.
#[derive(Default)]
pub struct Store {
    providers: BTreeMap<String, Shelved>,
}

struct Shelved {
    text: Box<RawValue>,
    models: OnceLock<List>,
}

#[derive(Default)]
struct List {
    models: Vec<Model>,
    /// True for the list of a key, which replaces the catalogue.
    is_personal: bool,
}

/// A provider's entry in the file.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    models: Vec<Value>,
    last_modified: Option<f64>,
}

impl Store {
    /// Reads the file in `agent_dir`, if it exists, and returns a warning if it is invalid.
    pub fn load(agent_dir: &Path) -> (Self, Option<String>) {
        let path = agent_dir.join(FILE_NAME);
        let read = || -> Result<Option<String>, String> {
            match std::fs::metadata(&path) {
                Ok(file) if file.len() > FILE_LIMIT => return Err("it is too large".into()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            Ok(Some(text))
        };
        let parsed = read().and_then(|text| Self::parse(text.as_deref().unwrap_or("{}")));
        match parsed {
            Ok(store) => (store, None),
            Err(problem) => {
                let text = format!(
                    "Fetched model catalogs are not used: {problem}. Fetch them again with \"pi update --models\", or remove the file.\n\nFile: {}",
                    path.display()
                );
                (Self::default(), Some(text))
            }
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let entries: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let shelve = |text| Shelved { text, models: OnceLock::new() };
        let providers = entries.into_iter().map(|(name, text)| (name, shelve(text)));
        Ok(Self { providers: order::map(providers) })
    }

    /// The fetched models of a provider, if newer than the catalogue; otherwise empty.
    pub fn of(&self, provider: &str) -> &[Model] {
        self.list(provider).map_or(&[], |list| &list.models)
    }

    /// True if no other model of the provider may be used.
    pub fn replaces(&self, provider: &str) -> bool {
        provider == personal::PROVIDER && self.list(provider).is_some_and(|list| list.is_personal)
    }

    fn list(&self, provider: &str) -> Option<&List> {
        let shelved = self.providers.get(provider)?;
        Some(shelved.models.get_or_init(|| {
            let entry: Entry = serde_json::from_str(shelved.text.get()).unwrap_or_default();
            List::of(provider, entry)
        }))
    }
}

impl List {
    fn of(provider: &str, entry: Entry) -> Self {
        #[allow(clippy::cast_precision_loss)] // milliseconds are far below 2^52
        let made = catalogue::made_at_ms() as f64;
        let is_personal = provider == personal::PROVIDER && entry.last_modified.is_none();
        if !is_personal && entry.last_modified.is_none_or(|modified| modified <= made) {
            return Self::default();
        }
        let models = usable(provider, entry.models).0;
        Self { is_personal: is_personal && !models.is_empty(), models }
    }
}

/// The models of the catalogue, with those of an entry that is newer.
pub fn with_fetched(provider: &str, entry: &Value) -> Vec<Model> {
    let mut models = Section::of(provider).map_or_else(Vec::new, |section| section.models());
    let entry: Entry = serde_json::from_value(entry.clone()).unwrap_or_default();
    for model in List::of(provider, entry).models {
        replace_or_push(&mut models, model);
    }
    models
}

/// The entry of the list of a key.
pub fn personal_entry(models: &[Model]) -> Value {
    json!({"models": models, "checkedAt": now_ms()})
}

/// The entries of a file, by provider; none if it is invalid.
pub fn entries(bytes: &[u8]) -> Map<String, Value> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    json::parse(bytes).unwrap_or_default()
}

/// Removes the list of the provider's key from the file in `agent_dir`, since there is another key now, or none. A list
/// that cannot be removed stays, as it does when the key changes in the environment.
pub fn forget_personal(agent_dir: &Path) {
    let _ = file::update(&agent_dir.join(FILE_NAME), |old| {
        let mut all = old.as_deref().map(entries).unwrap_or_default();
        let is_personal = |entry: &Value| entry.get("lastModified").is_none();
        if !all.get(personal::PROVIDER).is_some_and(is_personal) {
            return Ok(None);
        }
        all.shift_remove(personal::PROVIDER);
        serde_json::to_string_pretty(&all).map(Some).map_err(|error| error.to_string())
    });
}

/// The models that may be used, and the number of rejected ones.
fn usable(provider: &str, models: Vec<Value>) -> (Vec<Model>, usize) {
    let all = models.len();
    let Some(section) = Section::of(provider) else {
        return (Vec::new(), all);
    };
    let known = section.models();
    let places: HashSet<&str> = known.iter().map(|model| place(&model.base_url)).collect();
    let protocols: HashSet<&str> = wire::names().collect();
    let mut seen = HashSet::new();
    let models = models.into_iter().filter_map(|mut value| {
        let id = value["id"].as_str()?.to_owned();
        let fields = value.as_object_mut()?;
        fields.insert("provider".into(), provider.into());
        // Built-in models keep their headers; fetched headers are dropped.
        let own = known.iter().find(|model| model.id == id);
        fields.remove("headers");
        let mut model: Model = serde_json::from_value(value).ok()?;
        model.headers = own.and_then(|model| model.headers.clone());
        let fits = !model.id.is_empty()
            && model.context_window > 0
            && model.max_tokens > 0
            && protocols.contains(&*model.api)
            && places.contains(place(&model.base_url));
        if model.name.is_empty() {
            model.name.clone_from(&model.id);
        }
        (fits && seen.insert(id)).then_some(model)
    });
    let models: Vec<Model> = models.collect();
    let left_out = all - models.len();
    (models, left_out)
}

/// Scheme, host and port of a URL.
fn place(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#']));
    url.get(..end.map_or(url.len(), |end| host + end)).unwrap_or(url)
}

/// A provider's new entry for the file.
#[derive(Debug, PartialEq)]
pub struct Fetched {
    pub entry: Value,
    /// Number of rejected models.
    pub left_out: usize,
}

/// Why no models were fetched.
pub struct Failed {
    /// The old entry with the time of this check, if the server answered.
    pub entry: Option<Value>,
    pub message: String,
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self { entry: None, message }
    }
}

/// Fetches the models of `provider` from the server at `base_url`. `stored` is the provider's present entry.
pub fn fetch(
    base_url: &str,
    provider: &str,
    stored: Option<&Value>,
    cancel: &CancelToken,
) -> Result<Fetched, Failed> {
    let url = format!("{}/api/models/providers/{provider}", base_url.trim_end_matches('/'));
    let has_models = |entry: &&Value| entry["models"].as_array().is_some_and(|m| !m.is_empty());
    let etag = stored.filter(has_models).and_then(|entry| entry["etag"].as_str());
    let mut headers = vec![("accept", "application/json")];
    headers.extend(etag.map(|etag| ("if-none-match", etag)));
    let mut attempt = 1;
    let reply = loop {
        let reply = http::get(&url, &headers, PATIENCE, cancel);
        let passing = match &reply {
            Ok(reply) => matches!(reply.status, 408 | 425 | 429 | 500 | 502 | 503 | 504),
            Err(_) => !cancel.is_cancelled(),
        };
        if !passing || attempt == ATTEMPTS {
            break reply.map_err(|error| error.message)?;
        }
        attempt += 1;
    };
    let mut entry = stored.and_then(Value::as_object).cloned().unwrap_or_default();
    entry.insert("checkedAt".into(), now_ms().into());
    let unchanged = |entry| Ok(Fetched { entry: Value::Object(entry), left_out: 0 });
    match reply.status {
        304 if stored.is_some() => unchanged(entry),
        404 | 501 => {
            entry.entry("models").or_insert(json!([]));
            entry.insert("lastModified".into(), 0.into());
            entry.remove("etag");
            unchanged(entry)
        }
        200..=299 => {
            let (models, left_out) = models_of(provider, &reply.body)?;
            let modified = reply.header("last-modified").and_then(http::http_date_ms);
            let mut entry = Map::new();
            entry.insert("models".into(), models.into());
            entry.insert("checkedAt".into(), now_ms().into());
            entry.insert("lastModified".into(), modified.unwrap_or(0).into());
            if let Some(etag) = reply.header("etag") {
                entry.insert("etag".into(), etag.into());
            }
            Ok(Fetched { entry: Value::Object(entry), left_out })
        }
        status => {
            entry.entry("models").or_insert(json!([]));
            Err(Failed {
                entry: Some(Value::Object(entry)),
                message: format!("Model catalog request failed for {provider}: {status}"),
            })
        }
    }
}

/// Reads a model list: an array, an object with the array `models`, or an object of models.
fn models_of(provider: &str, body: &[u8]) -> Result<(Vec<Value>, usize), String> {
    let invalid = || format!("Invalid model catalog for provider \"{provider}\"");
    let models = match json::parse(body).map_err(|_| invalid())? {
        Value::Array(models) => models,
        Value::Object(mut object) => match object.get_mut("models") {
            Some(Value::Array(models)) => std::mem::take(models),
            _ => object.into_iter().map(|(_, model)| model).collect(),
        },
        _ => return Err(invalid()),
    };
    let (models, left_out) = usable(provider, models);
    let models = models.iter().filter_map(|model| serde_json::to_value(model).ok());
    Ok((models.collect(), left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, fields: Value) -> Value {
        let mut model = json!({"id": id, "name": id, "api": "openai-completions", "provider": "other",
            "baseUrl": "https://api.z.ai/api/v9", "reasoning": true, "input": ["text"],
            "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 1000, "maxTokens": 100, "later": 1});
        crate::wire::testing::merge(&mut model, fields);
        model
    }

    #[test]
    fn a_fetched_model_is_its_provider_s_and_nobody_else_s() {
        let rows = [
            (json!({}), true),
            (json!({"baseUrl": "https://api.z.ai"}), true),
            (json!({"baseUrl": "https://api.z.ai.evil.test/api"}), false),
            (json!({"baseUrl": "https://api.z.ai@evil.test/api"}), false),
            (json!({"baseUrl": "https://evil.test/https://api.z.ai/"}), false),
            (json!({"baseUrl": "https://api.z.ai\\@evil.test/"}), false),
            (json!({"baseUrl": "http://api.z.ai/api"}), false),
            (json!({"baseUrl": "https://api.z.ai:444/api"}), false),
            (json!({"baseUrl": ""}), false),
            (json!({"api": "telepathy"}), false),
            (json!({"contextWindow": 0}), false),
            (json!({"maxTokens": "many"}), false),
            (json!({"id": ""}), false),
            (json!({"id": 3}), false),
        ];
        for (fields, expected) in rows {
            let (models, left_out) = usable("zai", vec![model("new", fields.clone())]);
            assert_eq!(models.len(), usize::from(expected), "{fields}");
            assert_eq!(left_out, usize::from(!expected), "{fields}");
            assert!(models.iter().all(|model| model.provider == "zai" && model.extra["later"] == 1));
        }
        let twice = vec![model("a", json!({})), model("a", json!({}))];
        assert_eq!(usable("zai", twice).1, 1);
        assert_eq!(usable("mine", vec![model("a", json!({}))]).1, 1);
        let claims = json!({"headers": {"authorization": "x"}});
        assert_eq!(usable("zai", vec![model("a", claims)]).0[0].headers, None);
    }

    #[test]
    fn only_what_is_newer_than_the_program_is_used() {
        let file = |modified: Value| {
            let entry = json!({"zai": {"models": [model("new", json!({}))], "checkedAt": 1, "lastModified": modified}});
            Store::parse(&entry.to_string()).unwrap().of("zai").len()
        };
        let made = catalogue::made_at_ms();
        assert_eq!(file(json!(made + 1)), 1);
        for old in [json!(made), json!(0), json!(null), json!("x")] {
            assert_eq!(file(old.clone()), 0, "{old}");
        }
        for broken in ["", "[]", "{", "null"] {
            assert!(Store::parse(broken).is_err(), "{broken}");
        }
        let odd = Store::parse(r#"{"zai": 3, "x": {"models": 1}}"#).unwrap();
        assert!(odd.of("zai").is_empty() && odd.of("x").is_empty() && odd.of("y").is_empty());
    }

    #[test]
    fn every_form_of_a_catalogue_is_read() {
        let one = model("new", json!({}));
        for body in [json!([one]), json!({"models": [one]}), json!({"new": one})] {
            let (models, left_out) = models_of("zai", body.to_string().as_bytes()).unwrap();
            assert_eq!((models.len(), left_out), (1, 0), "{body}");
        }
        for body in ["3", "\"x\"", "<html>", ""] {
            let why = models_of("zai", body.as_bytes()).unwrap_err();
            assert_eq!(why, "Invalid model catalog for provider \"zai\"");
        }
    }
}
