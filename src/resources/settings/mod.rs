//! `settings.json` of the agent folder, and over it that of a project which is trusted.
//!
//! The files are strict JSON. What cannot be used is reported and left out, a whole file that cannot be
//! read as well as one value of the wrong type; unknown keys are kept. Older forms of a setting are
//! understood. What there is to set stands in [`table`].

mod compaction;
pub mod form;
mod layer;
mod migrate;
pub mod table;

pub use compaction::Compaction;
pub use layer::{Content, write};

use super::{Diagnostic, text_file};
use crate::base::file;
use crate::llm::model::ThinkingLevel;
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
    /// The project's over the user's.
    values: Map<String, Value>,
}

/// Where a value comes from.
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

/// How a failed answer is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub enabled: bool,
    pub max_retries: u64,
    pub base_delay_ms: u64,
    pub max_agent_delay_ms: u64,
    /// Inside one request.
    pub provider_max_retries: u64,
    /// The longest wait that a server may ask for; 0 for any.
    pub provider_max_retry_delay_ms: u64,
    pub provider_timeout_ms: Option<u64>,
}

impl Settings {
    /// Reads `settings.json` in the agent folder. A missing or empty one sets nothing.
    pub fn load(agent: &Path) -> (Self, Vec<Diagnostic>) {
        let (user, diagnostics) = Layer::read(user_path(agent));
        let values = user.values.clone();
        let settings = Self { user, project: None, values };
        (settings, diagnostics)
    }

    /// Puts the settings of the project in `cwd`, as its file is now, over the user's.
    pub fn add_project(&mut self, cwd: &Path) -> Vec<Diagnostic> {
        self.add_project_as(cwd, &read_project(cwd))
    }

    /// Puts the settings of the project in `cwd` over the user's. Only for one that is trusted: `content` is
    /// what the decision was about.
    pub fn add_project_as(&mut self, cwd: &Path, content: &Content) -> Vec<Diagnostic> {
        let path = project_path(cwd);
        // In the home folder, or with a linked folder, both may be one file.
        let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok());
        if same(&path, &self.user.path).is_some_and(|(a, b)| a == b) {
            return Vec::new();
        }
        let (project, diagnostics) = Layer::of(path, content, true);
        self.values = self.user.values.clone();
        merge(&mut self.values, &project.values);
        self.project = Some(project);
        diagnostics
    }

    /// With what the user's file says now. The project's settings stay what they were when the project was
    /// decided on.
    pub fn again(&self) -> Self {
        let (user, _) = Layer::read(self.user.path.clone());
        let project = self.project.clone();
        let mut values = user.values.clone();
        if let Some(project) = &project {
            merge(&mut values, &project.values);
        }
        Self { user, project, values }
    }

    /// What the user's file says, whatever a project puts over it.
    pub fn of_user(&self, path: &str) -> Option<&Value> {
        self.user.get(path)
    }

    /// The project's settings count: it is trusted.
    pub fn has_project(&self) -> bool {
        self.project.is_some()
    }

    /// Back to the user's settings alone.
    pub fn remove_project(&mut self) {
        self.project = None;
        self.values = self.user.values.clone();
    }

    /// The user's file.
    pub fn path(&self) -> &Path {
        &self.user.path
    }

    /// The value at `path`, a name or several with dots between.
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

    /// A list of resources as each file has it, the user's and the project's: both count.
    pub fn resources(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let entries = |layer: &Layer| {
            let list = layer.get(name).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let project = self.project.as_ref();
        (entries(&self.user), project.map(entries).unwrap_or_default())
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str().filter(|text| !text.is_empty())
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let texts = self.get(path)?.as_array()?.iter();
        Some(texts.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// The value, or the default that the table has.
    fn effective(&self, path: &str) -> Option<Value> {
        let preset = || table::find(path)?.preset.value();
        self.get(path).cloned().or_else(preset)
    }

    fn flag(&self, path: &str) -> bool {
        self.effective(path).is_some_and(|value| value == true)
    }

    fn count(&self, path: &str) -> u64 {
        self.effective(path).as_ref().and_then(whole).unwrap_or(0)
    }

    /// One of the words that the table has for it.
    fn word(&self, path: &str) -> &str {
        let preset = || match table::find(path)?.preset {
            table::Preset::Text(text) => Some(text),
            _ => None,
        };
        self.text(path).or_else(preset).unwrap_or_default()
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

    /// The level that was chosen for one model.
    pub fn model_thinking_level(&self, provider: &str, model: &str) -> Option<ThinkingLevel> {
        let levels = self.get("modelThinkingLevels")?;
        ThinkingLevel::parse(levels.get(format!("{provider}/{model}"))?.as_str()?)
    }

    /// Tokens for a level.
    pub fn thinking_budgets(&self) -> Vec<(ThinkingLevel, u64)> {
        let budgets = self.get("thinkingBudgets").and_then(Value::as_object);
        let budget = |(name, tokens): (&String, &Value)| Some((ThinkingLevel::parse(name)?, whole(tokens)?));
        budgets.into_iter().flatten().filter_map(budget).collect()
    }

    /// Patterns; `None` for all models.
    pub fn enabled_models(&self) -> Option<Vec<String>> {
        self.texts("enabledModels")
    }

    /// Built-in tools; `None` for the usual ones.
    pub fn default_tools(&self) -> Option<Vec<String>> {
        self.texts("defaultTools")
    }

    /// `ask`, `always` or `never`: trust in projects that nothing is known about.
    pub fn default_project_trust(&self) -> &str {
        self.word("defaultProjectTrust")
    }

    pub fn session_dir(&self) -> Option<&str> {
        self.text("sessionDir")
    }

    /// `always`, `turn` or `never`.
    pub fn session_sync(&self) -> &str {
        self.word("session.sync")
    }

    /// May begin with `~`.
    pub fn shell_path(&self) -> Option<&str> {
        self.text("shellPath")
    }

    pub fn shell_command_prefix(&self) -> Option<&str> {
        self.text("shellCommandPrefix")
    }

    /// `all` or `one-at-a-time`.
    pub fn steering_mode(&self) -> &str {
        self.word("steeringMode")
    }

    /// `all` or `one-at-a-time`.
    pub fn follow_up_mode(&self) -> &str {
        self.word("followUpMode")
    }

    /// For providers, where the environment names no proxy.
    pub fn http_proxy(&self) -> Option<&str> {
        self.text("httpProxy").map(str::trim).filter(|proxy| !proxy.is_empty())
    }

    /// How long a server may say nothing; `None` for ever.
    pub fn http_idle_timeout(&self) -> Option<Duration> {
        let ms = self.effective("httpIdleTimeoutMs").as_ref().and_then(timeout_ms)?;
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// How long a server may take to begin; `None` for ever.
    pub fn request_timeout(&self) -> Option<Duration> {
        match self.get("retry.provider.timeoutMs").and_then(timeout_ms) {
            Some(ms) => (ms > 0).then(|| Duration::from_millis(ms)),
            None => self.http_idle_timeout(),
        }
    }

    /// Whether the user has said how long a server may take to begin.
    pub fn chooses_request_timeout(&self) -> bool {
        let keys = ["retry.provider.timeoutMs", "httpIdleTimeoutMs"];
        keys.iter().any(|key| self.get(key).and_then(timeout_ms).is_some())
    }

    /// Whether routers that list their clients are told who asks.
    pub fn names_itself(&self) -> bool {
        self.flag("enableInstallTelemetry")
    }

    pub fn resize_images(&self) -> bool {
        self.flag("images.autoResize")
    }

    /// No image is sent to a model.
    pub fn block_images(&self) -> bool {
        self.flag("images.blockImages")
    }

    pub fn hide_secrets(&self) -> bool {
        self.flag("hideSecrets")
    }

    /// For commands whose call sets none.
    pub fn bash_timeout_seconds(&self) -> Option<f64> {
        self.get("bash.timeoutSeconds")?.as_f64()
    }

    /// Processes that outlive their call live on when pi ends.
    pub fn bash_keep_background(&self) -> bool {
        self.flag("bash.keepBackground")
    }

    /// Bytes kept of one command's output.
    pub fn bash_output_cap_bytes(&self) -> u64 {
        self.count("bash.outputCapBytes")
    }

    /// `off`, `workspace` or `read-only`.
    pub fn sandbox_mode(&self) -> &str {
        self.word("sandbox.mode")
    }

    pub fn sandbox_network(&self) -> bool {
        self.flag("sandbox.network")
    }

    /// Folders, which may begin with `~`.
    pub fn sandbox_writable(&self) -> Vec<String> {
        self.texts("sandbox.writable").unwrap_or_default()
    }

    /// One of the whole numbers among the limits.
    pub fn limit(&self, name: &str) -> Option<u64> {
        whole(self.get(&format!("limits.{name}"))?)
    }

    /// One of the other numbers among the limits: more than 0.
    pub fn limit_amount(&self, name: &str) -> Option<f64> {
        self.get(&format!("limits.{name}"))?.as_f64()
    }

    /// Runs that repeat themselves are ended.
    pub fn limit_loops(&self) -> bool {
        self.flag("limits.loops")
    }

    pub fn retry(&self) -> Retry {
        Retry {
            enabled: self.flag("retry.enabled"),
            max_retries: self.count("retry.maxRetries"),
            base_delay_ms: self.count("retry.baseDelayMs"),
            max_agent_delay_ms: self.count("retry.maxAgentDelayMs"),
            provider_max_retries: self.count("retry.provider.maxRetries"),
            provider_max_retry_delay_ms: self.count("retry.provider.maxRetryDelayMs"),
            provider_timeout_ms: self.get("retry.provider.timeoutMs").and_then(timeout_ms),
        }
    }
}

/// A URL may hold a password: a list is no place to show it.
pub fn without_password(value: &Value) -> Value {
    let url = value.as_str().and_then(|url| url.split_once("://"));
    match url.and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://***@{host}").into(),
        None => value.clone(),
    }
}

/// What the settings file of the project in `cwd` holds. It may lie elsewhere, but is no pipe and not huge.
pub fn read_project(cwd: &Path) -> Content {
    match file::read(&project_path(cwd), text_file::BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(text_file::failed(error)),
    }
}

/// The user's settings file.
pub fn user_path(agent: &Path) -> PathBuf {
    agent.join("settings.json")
}

/// The settings file of the project in `cwd`.
pub fn project_path(cwd: &Path) -> PathBuf {
    cwd.join(".pi/settings.json")
}

#[cfg(test)]
mod tests;
