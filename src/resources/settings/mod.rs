//! The settings: `settings.json` of the agent folder, overridden by `.pi/settings.json` of a trusted project.
//!
//! The files are strict JSON. An unreadable file and a value of the wrong type are reported and ignored;
//! unknown keys are kept. Older forms of a setting are understood. [`table`] has a row for each setting.

mod compaction;
pub mod form;
mod layer;
mod migrate;
mod schema;
pub mod table;

pub use compaction::Compaction;
pub use layer::{Content, update, write};
pub use schema::schema;

use super::{Diagnostic, text_file};
use crate::base::file;
use crate::llm::model::{ThinkingLevel, former_provider_id};
use form::{timeout_ms, whole};
use layer::{Layer, look_up, merge};
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    user: Layer,
    project: Option<Layer>,
    /// The settings of the project merged over those of the user.
    values: Map<String, Value>,
}

/// The file that a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    User,
    Project,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// How failed requests are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub enabled: bool,
    pub max_retries: u64,
    pub base_delay_ms: u64,
    pub max_agent_delay_ms: u64,
    /// Maximum number of attempts inside one request.
    pub provider_max_retries: u64,
    /// Maximum delay that a server may ask for; 0 for no limit.
    pub provider_max_retry_delay_ms: u64,
}

impl Settings {
    /// Reads `settings.json` in the agent folder. A missing or empty file sets nothing.
    pub fn load(agent: &Path) -> (Self, Vec<Diagnostic>) {
        let (user, diagnostics) = Layer::read(user_path(agent));
        let values = user.values.clone();
        let settings = Self { user, project: None, values };
        (settings, diagnostics)
    }

    /// Merges the current settings of the project in `cwd` over the user's.
    pub fn add_project(&mut self, cwd: &Path) -> Vec<Diagnostic> {
        self.add_project_as(cwd, &read_project(cwd))
    }

    /// Merges `content`, which the user trusts as the settings of the project in `cwd`, over the user's
    /// settings.
    pub fn add_project_as(&mut self, cwd: &Path, content: &Content) -> Vec<Diagnostic> {
        let path = project_path(cwd);
        // In the home folder, or with a linked folder, both paths may lead to one file.
        let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok());
        if same(&path, &self.user.path).is_some_and(|(a, b)| a == b) {
            return Vec::new();
        }
        let (project, diagnostics) = Layer::of(path, content, true);
        self.values = over(&self.user, &project);
        self.project = Some(project);
        diagnostics
    }

    /// Reads the user's file again. The settings of the project stay as they were when the user trusted it.
    pub fn again(&self) -> Self {
        let (user, _) = Layer::read(self.user.path.clone());
        let project = self.project.clone();
        let values = project.as_ref().map_or_else(|| user.values.clone(), |project| over(&user, project));
        Self { user, project, values }
    }

    /// Returns the value in the user's file, ignoring the project.
    pub fn of_user(&self, path: &str) -> Option<&Value> {
        self.user.get(path)
    }

    /// Returns the values in the user's and in the project's file, as far as they are set.
    pub fn both(&self, path: &str) -> impl Iterator<Item = &Value> {
        self.user.get(path).into_iter().chain(self.project.as_ref().and_then(|layer| layer.get(path)))
    }

    /// True if the settings of a trusted project are merged in.
    pub fn has_project(&self) -> bool {
        self.project.is_some()
    }

    /// Removes the settings of the project.
    pub fn remove_project(&mut self) {
        self.project = None;
        self.values = self.user.values.clone();
    }

    /// Returns the path of the user's settings file.
    pub fn path(&self) -> &Path {
        &self.user.path
    }

    /// Returns the value at `path`, which is one name or several separated by dots.
    pub fn get(&self, path: &str) -> Option<&Value> {
        look_up(&self.values, path)
    }

    pub fn origin(&self, path: &str) -> Origin {
        let project = self.project.as_ref();
        if project.is_some_and(|layer| layer.get(path).is_some()) {
            Origin::Project
        } else if self.user.get(path).is_some() {
            Origin::User
        } else {
            Origin::Default
        }
    }

    /// Returns the texts of a resource list in the user's and in the project's file. Both lists apply.
    pub fn resources(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let (user, project) = self.lists(name);
        (texts(user), texts(project))
    }

    /// Returns the entries of a list in the user's and in the project's file.
    pub fn lists(&self, name: &str) -> (&[Value], &[Value]) {
        fn entries<'a>(layer: &'a Layer, name: &str) -> &'a [Value] {
            layer.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        }
        let project = self.project.as_ref();
        (entries(&self.user, name), project.map(|layer| entries(layer, name)).unwrap_or_default())
    }

    /// All values that are set: those of the project over those of the user.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    /// Returns a text; `None` if it is not set or empty.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.known(path)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns a list of texts; `None` if it is not set.
    pub fn texts(&self, path: &str) -> Option<Vec<String>> {
        let texts = self.known(path)?.as_array()?.iter();
        Some(texts.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Returns a number; `None` if it is not set.
    pub fn number(&self, path: &str) -> Option<f64> {
        self.known(path)?.as_f64()
    }

    /// Returns a whole number; `None` if it is not set.
    pub fn whole(&self, path: &str) -> Option<u64> {
        whole(self.known(path)?)
    }

    /// Returns a boolean setting, or its default in [`table`].
    pub fn flag(&self, path: &str) -> bool {
        self.effective(path).is_some_and(|value| value == true)
    }

    /// Returns a whole number, or its default in [`table`].
    pub fn count(&self, path: &str) -> u64 {
        self.effective(path).as_ref().and_then(whole).unwrap_or(0)
    }

    /// Returns a text, or its default in [`table`].
    pub fn word(&self, path: &str) -> &str {
        let preset = || match table::find(path)?.preset {
            table::Preset::Text(text) => Some(text),
            _ => None,
        };
        self.text(path).or_else(preset).unwrap_or_default()
    }

    fn effective(&self, path: &str) -> Option<Value> {
        let preset = || table::find(path)?.preset.value();
        self.known(path).cloned().or_else(preset)
    }

    /// Returns the value of a setting that must have a row in [`table`].
    fn known(&self, path: &str) -> Option<&Value> {
        debug_assert!(table::find(path).is_some(), "the table has no {path}");
        self.get(path)
    }

    pub fn default_provider(&self) -> Option<&str> {
        self.text("defaultProvider")
    }

    pub fn default_model(&self) -> Option<&str> {
        self.text("defaultModel")
    }

    pub fn default_thinking_level(&self) -> Option<ThinkingLevel> {
        ThinkingLevel::parse(self.text("defaultThinkingLevel")?)
    }

    /// Returns the thinking level that is set for one model.
    pub fn model_thinking_level(&self, provider: &str, model: &str) -> Option<ThinkingLevel> {
        let levels = self.get("modelThinkingLevels")?;
        let of = |provider: &str| levels.get(format!("{provider}/{model}"));
        let level = of(provider).or_else(|| of(former_provider_id(provider)?))?;
        ThinkingLevel::parse(level.as_str()?)
    }

    /// Returns the token budget of each thinking level that has one.
    pub fn thinking_budgets(&self) -> Vec<(ThinkingLevel, u64)> {
        let budgets = self.get("thinkingBudgets").and_then(Value::as_object);
        let budget = |(name, tokens): (&String, &Value)| Some((ThinkingLevel::parse(name)?, whole(tokens)?));
        budgets.into_iter().flatten().filter_map(budget).collect()
    }

    /// Returns patterns of the models that the user can cycle through; `None` for all models.
    pub fn enabled_models(&self) -> Option<Vec<String>> {
        self.texts("enabledModels")
    }

    /// Returns the trust in projects without a decision: `ask`, `always` or `never`.
    pub fn default_project_trust(&self) -> &str {
        self.word("defaultProjectTrust")
    }

    /// Returns the mode of the steering queue: `all` or `one-at-a-time`.
    pub fn steering_mode(&self) -> &str {
        self.word("steeringMode")
    }

    /// Returns the mode of the follow-up queue: `all` or `one-at-a-time`.
    pub fn follow_up_mode(&self) -> &str {
        self.word("followUpMode")
    }

    /// Returns the proxy for providers. Variables of the environment take precedence.
    pub fn http_proxy(&self) -> Option<&str> {
        self.text("httpProxy").map(str::trim).filter(|proxy| !proxy.is_empty())
    }

    /// Returns the maximum silence of a server; `None` for no limit.
    pub fn http_idle_timeout(&self) -> Option<Duration> {
        let ms = self.effective("httpIdleTimeoutMs").as_ref().and_then(timeout_ms)?;
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// Returns the maximum time until a server's first bytes; `None` for no limit.
    pub fn request_timeout(&self) -> Option<Duration> {
        match self.get("retry.provider.timeoutMs").and_then(timeout_ms) {
            Some(ms) => (ms > 0).then(|| Duration::from_millis(ms)),
            None => self.http_idle_timeout(),
        }
    }

    /// True if the settings contain a value for [`Self::request_timeout`].
    pub fn chooses_request_timeout(&self) -> bool {
        let keys = ["retry.provider.timeoutMs", "httpIdleTimeoutMs"];
        keys.iter().any(|key| self.get(key).and_then(timeout_ms).is_some())
    }

    pub fn retry(&self) -> Retry {
        Retry {
            enabled: self.flag("retry.enabled"),
            max_retries: self.count("retry.maxRetries"),
            base_delay_ms: self.count("retry.baseDelayMs"),
            max_agent_delay_ms: self.count("retry.maxAgentDelayMs"),
            provider_max_retries: self.count("retry.provider.maxRetries"),
            provider_max_retry_delay_ms: self.count("retry.provider.maxRetryDelayMs"),
        }
    }
}

/// True if an entry of `defaultTools` or `--tools` adds or removes a tool: `+name`, `-name`.
pub fn is_tool_change(entry: &str) -> bool {
    entry.starts_with(['+', '-'])
}

/// Merges the settings of a project over those of the user. If the project's `defaultTools` only adds and
/// removes tools, it is appended to the user's list.
fn over(user: &Layer, project: &Layer) -> Map<String, Value> {
    const TOOLS: &str = "defaultTools";
    let list = |layer: &Layer| layer.get(TOOLS).and_then(Value::as_array).cloned();
    let mut values = user.values.clone();
    merge(&mut values, &project.values);
    if let (Some(mut tools), Some(changes)) = (list(user), list(project))
        && changes.iter().all(|entry| entry.as_str().is_some_and(is_tool_change))
    {
        tools.extend(changes);
        values.insert(TOOLS.into(), tools.into());
    }
    values
}

/// Hides the password if `value` is a URL, for lists of settings.
pub fn without_password(value: &Value) -> Value {
    let url = value.as_str().and_then(|url| url.split_once("://"));
    match url.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://***@{host}").into(),
        None => value.clone(),
    }
}

/// Reads the settings file of the project in `cwd`. Links are followed. A pipe, or more than 1 MiB, is an
/// error.
pub fn read_project(cwd: &Path) -> Content {
    match file::read(&project_path(cwd), text_file::BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(text_file::failed(error)),
    }
}

/// Returns the path of the user's settings file.
pub fn user_path(agent: &Path) -> PathBuf {
    agent.join("settings.json")
}

/// Returns the path of the settings file of the project in `cwd`.
pub fn project_path(cwd: &Path) -> PathBuf {
    cwd.join(".pi/settings.json")
}

#[cfg(test)]
mod tests;
