//! The router of llama.cpp (`llama serve` without a model): one server with several models, which it loads, ends
//! and downloads when asked.
//!
//! | request | |
//! |---|---|
//! | `GET /v1/models` | the models, each with `status.value` |
//! | `POST /models/load`, `/models/unload` `{"model"}` | begins; the list says when it is done |
//! | `POST /models` `{"model"}` | begins a download from Hugging Face, by the server |
//!
//! Source: README of `tools/server` in llama.cpp, "Using multiple models".

use super::address;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::visible::shown;
use crate::llm::http::{self, Reply};
use crate::llm::model::shown_url;
use crate::llm::secret::Secret;
use serde_json::Value;
use std::time::Duration;

/// Time limit of one request.
const REQUEST_MAX: Duration = Duration::from_secs(15);
/// Time between two looks at the list while the server works: no answer tells its end.
const LOOK: Duration = Duration::from_millis(250);
/// A download that no list has shown after so many looks has ended before the first.
const LOOKS_MIN: usize = 2;
/// Looks before a model that is not seen to load counts as given up: five seconds.
const LOADING_LOOKS_MIN: usize = 20;
/// Looks before a model that is not seen to go counts as kept: half a minute.
const UNLOADING_LOOKS_MAX: usize = 120;
/// Looks in a row that may fail: a server that is busy with a model may answer late or not at all.
const FAILED_LOOKS_MAX: u32 = 8;

pub struct Router {
    root: String,
    key: Option<Secret>,
}

/// A model of the router.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub id: String,
    pub state: State,
    /// Context window in tokens.
    pub window: Option<u64>,
    /// Bytes of a download: done, and in all.
    pub progress: Option<(u64, u64)>,
    /// Why it could not be loaded.
    pub failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In memory, or asleep until the next request.
    Loaded,
    Unloaded,
    Downloading,
    /// Something else, in the server's word, such as `loading`.
    Other(String),
}

impl Router {
    /// `url` may have or lack a scheme, `/v1` and a trailing slash.
    pub fn new(url: &str, key: Option<Secret>) -> Self {
        Self { root: address::root(url), key }
    }

    pub fn url(&self) -> String {
        shown_url(&self.root).into_owned()
    }

    /// URL without a path: `http://127.0.0.1:9931`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// True if a model server answers, with several models or with one.
    pub fn check(&self, cancel: &CancelToken) -> Result<(), String> {
        let list = self.ask("/v1/models", None, cancel)?;
        list.get("data")
            .is_some_and(Value::is_array)
            .then_some(())
            .ok_or_else(|| format!("{} is no model server", self.url()))
    }

    /// The models, those in memory first.
    pub fn list(&self, cancel: &CancelToken) -> Result<Vec<Listed>, String> {
        let list = self.ask("/v1/models", None, cancel)?;
        let entries = list.get("data").and_then(Value::as_array);
        let models: Option<Vec<Listed>> = entries.and_then(|entries| entries.iter().map(listed).collect());
        let mut models = models
            .ok_or_else(|| format!("{} is no router of llama.cpp: start it without a model", self.url()))?;
        models.sort_by(|a, b| (a.state != State::Loaded, &a.id).cmp(&(b.state != State::Loaded, &b.id)));
        Ok(models)
    }

    /// Begins to load a model, without waiting.
    pub fn begin_load(&self, id: &str, cancel: &CancelToken) -> Result<(), String> {
        self.ask("/models/load", Some(id), cancel).map(drop)
    }

    /// Loads a model, and waits for it.
    pub fn load(&self, id: &str, cancel: &CancelToken) -> Result<(), String> {
        self.begin_load(id, cancel)?;
        let (mut looks, mut was_loading) = (0, false);
        self.until(cancel, |models| {
            looks += 1;
            match models.iter().find(|model| model.id == id) {
                Some(Listed { state: State::Loaded, .. }) => Some(Ok(())),
                Some(Listed { failure: Some(why), .. }) => Some(Err(format!("{id} was not loaded: {why}"))),
                Some(Listed { state: State::Unloaded, .. }) | None
                    if was_loading || looks >= LOADING_LOOKS_MIN =>
                {
                    Some(Err(format!("{id} was not loaded: the server has given it up")))
                }
                Some(Listed { state: State::Unloaded, .. }) | None => None,
                Some(_) => {
                    was_loading = true;
                    None
                }
            }
        })
    }

    /// Unloads a model, and waits until it is gone.
    pub fn unload(&self, id: &str, cancel: &CancelToken) -> Result<(), String> {
        self.ask("/models/unload", Some(id), cancel)?;
        let mut looks = 0;
        self.until(cancel, |models| {
            looks += 1;
            let is_gone = |model: &Listed| model.id != id || model.state == State::Unloaded;
            match models.iter().all(is_gone) {
                true => Some(Ok(())),
                false => (looks == UNLOADING_LOOKS_MAX).then(|| Err(format!("{id} was not unloaded"))),
            }
        })
    }

    /// Ends a load or a download, without waiting.
    pub fn stop(&self, id: &str) -> Result<(), String> {
        self.ask("/models/unload", Some(id), &CancelToken::new()).map(drop)
    }

    /// Has the server download `owner/repository[:quantization]`, and waits for it. `tell` gets the bytes: done, and in
    /// all.
    pub fn download(&self, id: &str, tell: &dyn Fn(u64, u64), cancel: &CancelToken) -> Result<(), String> {
        self.ask("/models", Some(id), cancel)?;
        let (mut looks, mut was_seen) = (0, false);
        self.until(cancel, |models| {
            looks += 1;
            let model = models.iter().find(|model| model.id == id);
            match model {
                Some(Listed { failure: Some(why), .. }) => {
                    Some(Err(format!("{id} was not downloaded: {why}")))
                }
                Some(Listed { state: State::Downloading, progress, .. }) => {
                    was_seen = true;
                    if let Some((done, all)) = *progress {
                        tell(done, all);
                    }
                    None
                }
                Some(_) if was_seen || looks >= LOOKS_MIN => Some(Ok(())),
                None if was_seen => Some(Err(format!("{id} was not downloaded"))),
                _ => None,
            }
        })
    }

    /// Looks at the list until `look` has a result.
    fn until(
        &self,
        cancel: &CancelToken,
        mut look: impl FnMut(&[Listed]) -> Option<Result<(), String>>,
    ) -> Result<(), String> {
        let mut failed = 0;
        loop {
            match self.list(cancel) {
                Ok(models) => {
                    failed = 0;
                    if let Some(result) = look(&models) {
                        return result;
                    }
                }
                Err(problem) if failed == FAILED_LOOKS_MAX => return Err(problem),
                Err(_) => failed += 1,
            }
            if cancel.wait_timeout(LOOK) {
                return Err("cancelled".to_owned());
            }
        }
    }

    fn ask(&self, path: &str, model: Option<&str>, cancel: &CancelToken) -> Result<Value, String> {
        let url = format!("{}{path}", self.root);
        let bearer = self.key.as_ref().map(|key| format!("Bearer {}", key.expose()));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        let reply = match model {
            None => http::get(&url, &headers, REQUEST_MAX, cancel),
            Some(model) => {
                let body = json!({ "model": model }).to_string();
                http::post(&url, &headers, body.as_bytes(), REQUEST_MAX, cancel)
            }
        };
        let reply = reply.map_err(|error| error.message)?;
        if !reply.is_ok() {
            return Err(refusal(&reply));
        }
        reply.json().ok_or_else(|| format!("{} did not answer in JSON", self.url()))
    }
}

fn refusal(reply: &Reply) -> String {
    let text = http::body_text(&reply.text());
    text.unwrap_or_else(|| format!("The server answered {}", reply.status))
}

/// Reads an entry of the list; `None` if it is not one of a router.
fn listed(entry: &Value) -> Option<Listed> {
    let id = entry.get("id")?.as_str().filter(|id| !id.chars().any(char::is_control))?;
    let status = entry.get("status")?;
    let state = match status.get("value")?.as_str()? {
        "loaded" | "sleeping" => State::Loaded,
        "unloaded" => State::Unloaded,
        "downloading" => State::Downloading,
        other => State::Other(shown(other).into_owned()),
    };
    let code = status.get("exit_code").and_then(Value::as_i64);
    let failed = status.get("failed") == Some(&Value::Bool(true));
    let failure = code.map_or_else(|| "it failed".to_owned(), |code| format!("it ended with code {code}"));
    Some(Listed {
        id: id.to_owned(),
        state,
        window: entry.get("meta").and_then(|meta| meta.get("n_ctx")).and_then(Value::as_u64),
        progress: status.get("progress").and_then(progress),
        failure: failed.then_some(failure),
    })
}

/// The sum of the files of a download, each with `done` and `total`.
fn progress(files: &Value) -> Option<(u64, u64)> {
    let number = |file: &Value, name: &str| file.get(name).and_then(Value::as_u64);
    let files = files.as_object()?.values();
    let sizes = files.filter_map(|file| Some((number(file, "done")?, number(file, "total")?)));
    let (done, all) =
        sizes.fold((0_u64, 0_u64), |(done, all), (a, b)| (done.saturating_add(a), all.saturating_add(b)));
    (all > 0).then_some((done, all))
}
