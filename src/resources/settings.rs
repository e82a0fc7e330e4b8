//! `settings.json` of the agent folder.
//!
//! The file is strict JSON. What cannot be used is reported and left out, a whole file that cannot be
//! read as well as one value of the wrong type; unknown keys are kept. Older forms of a setting are
//! understood.

use super::{Diagnostic, text};
use crate::llm::model::ThinkingLevel;
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    path: PathBuf,
    values: Map<String, Value>,
    /// The file cannot be read: it is not to be written either.
    broken: bool,
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

/// The form of a value.
enum Form {
    Flag,
    /// A whole number from 0.
    Count,
    /// Seconds, more than 0.
    Seconds,
    /// Milliseconds as a number or in a string; `disabled` is 0.
    Timeout,
    Text,
    Texts,
    OneOf(&'static [&'static str]),
    /// A level for each name.
    Levels,
    /// A whole number for each of these names.
    Counts(&'static [&'static str]),
}

const LEVELS: &[&str] = &["off", "minimal", "low", "medium", "high", "xhigh", "max"];
const QUEUE_MODES: &[&str] = &["all", "one-at-a-time"];

const KNOWN: &[(&str, Form)] = &[
    ("defaultProvider", Form::Text),
    ("defaultModel", Form::Text),
    ("defaultThinkingLevel", Form::OneOf(LEVELS)),
    ("modelThinkingLevels", Form::Levels),
    (
        "thinkingBudgets",
        Form::Counts(&["minimal", "low", "medium", "high"]),
    ),
    ("enabledModels", Form::Texts),
    ("defaultTools", Form::Texts),
    ("sessionDir", Form::Text),
    ("shellPath", Form::Text),
    ("shellCommandPrefix", Form::Text),
    ("steeringMode", Form::OneOf(QUEUE_MODES)),
    ("followUpMode", Form::OneOf(QUEUE_MODES)),
    ("httpProxy", Form::Text),
    ("httpIdleTimeoutMs", Form::Timeout),
    ("images.autoResize", Form::Flag),
    ("images.blockImages", Form::Flag),
    ("bash.timeoutSeconds", Form::Seconds),
    ("bash.keepBackground", Form::Flag),
    ("bash.outputCapBytes", Form::Count),
    ("retry.enabled", Form::Flag),
    ("retry.maxRetries", Form::Count),
    ("retry.baseDelayMs", Form::Count),
    ("retry.maxAgentDelayMs", Form::Count),
    ("retry.provider.timeoutMs", Form::Timeout),
    ("retry.provider.maxRetries", Form::Count),
    ("retry.provider.maxRetryDelayMs", Form::Count),
    ("session.sync", Form::OneOf(&["always", "turn", "never"])),
];

impl Settings {
    /// Reads `settings.json` in the agent folder. A missing or empty one sets nothing.
    pub fn load(agent: &Path) -> (Self, Vec<Diagnostic>) {
        let path = agent.join("settings.json");
        let found = match fs::read(&path) {
            Ok(bytes) => parse(&text(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
            Err(error) => Err(format!("could not be read: {error}")),
        };
        let diagnostic = |message| Diagnostic {
            path: path.clone(),
            message,
        };
        let (mut values, broken, mut diagnostics) = match found {
            Ok(values) => (values, false, Vec::new()),
            Err(message) => {
                let message = format!("{message}; the defaults are used");
                (Map::new(), true, vec![diagnostic(message)])
            }
        };
        migrate(&mut values);
        diagnostics.extend(drop_wrong_types(&mut values).into_iter().map(diagnostic));
        (
            Self {
                path,
                values,
                broken,
            },
            diagnostics,
        )
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file is damaged and must stay as it is.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The value at `path`, a name or several with dots between.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.values.get(names.next()?)?;
        names
            .try_fold(first, |value, name| value.get(name))
            .filter(|value| !value.is_null())
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str().filter(|text| !text.is_empty())
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let texts = self.get(path)?.as_array()?.iter();
        Some(texts.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn flag(&self, path: &str, default: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(default)
    }

    fn count(&self, path: &str) -> Option<u64> {
        whole(self.get(path)?)
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
        let budget =
            |(name, tokens): (&String, &Value)| Some((ThinkingLevel::parse(name)?, whole(tokens)?));
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

    pub fn session_dir(&self) -> Option<&str> {
        self.text("sessionDir")
    }

    /// `always`, `turn` or `never`.
    pub fn session_sync(&self) -> &str {
        self.text("session.sync").unwrap_or("turn")
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
        self.text("steeringMode").unwrap_or("one-at-a-time")
    }

    /// `all` or `one-at-a-time`.
    pub fn follow_up_mode(&self) -> &str {
        self.text("followUpMode").unwrap_or("one-at-a-time")
    }

    /// For providers, where the environment names no proxy.
    pub fn http_proxy(&self) -> Option<&str> {
        self.text("httpProxy")
            .map(str::trim)
            .filter(|proxy| !proxy.is_empty())
    }

    /// How long a server may say nothing; `None` for ever.
    pub fn http_idle_timeout(&self) -> Option<Duration> {
        let set = self.get("httpIdleTimeoutMs").and_then(timeout_ms);
        let ms = set.unwrap_or(300_000);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    pub fn resize_images(&self) -> bool {
        self.flag("images.autoResize", true)
    }

    /// No image is sent to a model.
    pub fn block_images(&self) -> bool {
        self.flag("images.blockImages", false)
    }

    /// For commands whose call sets none.
    pub fn bash_timeout_seconds(&self) -> Option<f64> {
        self.get("bash.timeoutSeconds")?.as_f64()
    }

    /// Processes that outlive their call live on when pi ends.
    pub fn bash_keep_background(&self) -> bool {
        self.flag("bash.keepBackground", false)
    }

    /// Bytes kept of one command's output.
    pub fn bash_output_cap_bytes(&self) -> u64 {
        self.count("bash.outputCapBytes").unwrap_or(1 << 30)
    }

    pub fn retry(&self) -> Retry {
        let count = |path, default| self.count(path).unwrap_or(default);
        Retry {
            enabled: self.flag("retry.enabled", true),
            max_retries: count("retry.maxRetries", 3),
            base_delay_ms: count("retry.baseDelayMs", 2000),
            max_agent_delay_ms: count("retry.maxAgentDelayMs", 60_000),
            provider_max_retries: count("retry.provider.maxRetries", 0),
            provider_max_retry_delay_ms: count("retry.provider.maxRetryDelayMs", 60_000),
            provider_timeout_ms: self.get("retry.provider.timeoutMs").and_then(timeout_ms),
        }
    }
}

fn parse(text: &str) -> Result<Map<String, Value>, String> {
    if text.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err("is not a JSON object".into()),
        Err(error) => {
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            Err(format!(
                "line {}, column {}: {what}",
                error.line(),
                error.column()
            ))
        }
    }
}

/// Brings older forms to the present ones.
fn migrate(values: &mut Map<String, Value>) {
    if !values.contains_key("steeringMode")
        && let Some(mode) = values.remove("queueMode")
    {
        values.insert("steeringMode".into(), mode);
    }
    if !values.contains_key("transport")
        && let Some(websockets) = values.get("websockets").and_then(Value::as_bool)
    {
        values.remove("websockets");
        let transport = if websockets { "websocket" } else { "sse" };
        values.insert("transport".into(), transport.into());
    }
    if let Some(Value::Object(skills)) = values.get_mut("skills") {
        let commands = skills.remove("enableSkillCommands");
        let folders = skills.remove("customDirectories");
        match folders.filter(|folders| folders.as_array().is_some_and(|list| !list.is_empty())) {
            Some(folders) => values.insert("skills".into(), folders),
            None => values.remove("skills"),
        };
        if let Some(commands) = commands {
            values.entry("enableSkillCommands").or_insert(commands);
        }
    }
    if let Some(Value::Object(retry)) = values.get_mut("retry")
        && let Some(delay) = retry.remove("maxDelayMs").filter(Value::is_number)
        && let Value::Object(provider) = retry.entry("provider").or_insert(json!({}))
    {
        let known = provider.entry("maxRetryDelayMs").or_insert(Value::Null);
        if known.is_null() {
            *known = delay;
        }
    }
}

/// Takes out what is of the wrong type, and says so.
fn drop_wrong_types(values: &mut Map<String, Value>) -> Vec<String> {
    let mut said = Vec::new();
    for (path, form) in KNOWN {
        let mut names: Vec<&str> = path.split('.').collect();
        let last = names.pop().unwrap_or_default();
        let mut folder = Some(&mut *values);
        for name in names {
            folder = match folder.and_then(|folder| folder.get_mut(name)) {
                Some(Value::Object(inner)) => Some(inner),
                _ => None,
            };
        }
        let Some(folder) = folder else { continue };
        let wrong = folder
            .get(last)
            .filter(|value| !value.is_null() && !form.fits(value));
        if wrong.is_some() {
            folder.shift_remove(last);
            said.push(format!("{path} must be {}; it is ignored", form.describe()));
        }
    }
    for name in ["images", "bash", "retry", "session"] {
        if values
            .get(name)
            .is_some_and(|value| !value.is_object() && !value.is_null())
        {
            values.shift_remove(name);
            said.push(format!("{name} must be an object; it is ignored"));
        }
    }
    said
}

impl Form {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Flag => value.is_boolean(),
            Self::Count => whole(value).is_some(),
            Self::Seconds => value.as_f64().is_some_and(|seconds| seconds > 0.0),
            Self::Timeout => timeout_ms(value).is_some(),
            Self::Text => value.is_string(),
            Self::Texts => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Levels => value.as_object().is_some_and(|levels| {
                levels
                    .values()
                    .all(|level| level.as_str().is_some_and(|level| LEVELS.contains(&level)))
            }),
            Self::Counts(names) => value.as_object().is_some_and(|counts| {
                let known = counts
                    .iter()
                    .filter(|(name, _)| names.contains(&name.as_str()));
                known.into_iter().all(|(_, count)| whole(count).is_some())
            }),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Count => "a whole number, 0 or more".into(),
            Self::Seconds => "a number of seconds, more than 0".into(),
            Self::Timeout => "a number of milliseconds, 0 for none".into(),
            Self::Text => "a text".into(),
            Self::Texts => "a list of texts".into(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Levels => format!("an object of levels, each one of {}", LEVELS.join(", ")),
            Self::Counts(names) => format!("an object of whole numbers for {}", names.join(", ")),
        }
    }
}

/// A number without a fraction, as JavaScript sees it: `5.0` is 5.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // in range, and whole
fn whole(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let number = value.as_f64()?;
    ((0.0..=LARGEST).contains(&number) && number.fract() == 0.0).then_some(number as u64)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
fn timeout_ms(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) if text.trim().eq_ignore_ascii_case("disabled") => 0.0,
        Value::String(text) => text.trim().parse().ok()?,
        value => value.as_f64()?,
    };
    (number.is_finite() && number >= 0.0).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;

    fn load(text: &str) -> (Settings, Vec<String>) {
        let scratch = Scratch::new();
        let path = scratch.file("settings.json", text);
        let (settings, diagnostics) = Settings::load(scratch.path());
        assert!(diagnostics.iter().all(|diagnostic| diagnostic.path == path));
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        (
            settings,
            diagnostics
                .into_iter()
                .map(|diagnostic| diagnostic.message)
                .collect(),
        )
    }

    #[test]
    fn without_a_file_the_defaults_hold() {
        let scratch = Scratch::new();
        let (settings, diagnostics) = Settings::load(scratch.path());
        assert_eq!(diagnostics, []);
        for settings in [
            settings,
            load("").0,
            load("{}").0,
            load("\u{feff}{\"shellPath\":null}").0,
        ] {
            assert!(!settings.is_broken());
            assert_eq!(settings.default_model(), None);
            assert_eq!(settings.shell_path(), None);
            assert_eq!(settings.default_tools(), None);
            assert_eq!(settings.steering_mode(), "one-at-a-time");
            assert_eq!(settings.session_sync(), "turn");
            assert_eq!(settings.http_idle_timeout(), Some(Duration::from_secs(300)));
            assert!(settings.resize_images() && !settings.block_images());
            assert_eq!(settings.bash_output_cap_bytes(), 1 << 30);
            assert_eq!(settings.bash_timeout_seconds(), None);
            let retry = settings.retry();
            assert_eq!(
                (
                    retry.max_retries,
                    retry.base_delay_ms,
                    retry.max_agent_delay_ms
                ),
                (3, 2000, 60_000)
            );
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_with_the_place() {
        let rows = [
            (
                "{\n  \"a\": 1,\n}",
                "line 3, column 1: trailing comma; the defaults are used",
            ),
            (
                "{\n  // no\n}",
                "line 2, column 3: key must be a string; the defaults are used",
            ),
            ("[]", "is not a JSON object; the defaults are used"),
            (
                "{\"shellPath\":\"x\"",
                "line 1, column 16: EOF while parsing an object; the defaults are used",
            ),
        ];
        for (text, message) in rows {
            let (settings, diagnostics) = load(text);
            assert_eq!(diagnostics, [message]);
            assert!(settings.is_broken());
            assert_eq!(settings.shell_path(), None);
        }
    }

    #[test]
    fn every_value_is_read() {
        let (settings, diagnostics) = load(
            r#"{"defaultProvider":"p","defaultModel":"m","defaultThinkingLevel":"high","modelThinkingLevels":{"p/m":"low"},
            "thinkingBudgets":{"low":1000,"later":"x"},"enabledModels":["a*"],"defaultTools":[],"sessionDir":"~/s",
            "shellPath":"/bin/sh","shellCommandPrefix":"set -e","steeringMode":"all","followUpMode":"all",
            "httpIdleTimeoutMs":0,"images":{"autoResize":false,"blockImages":true},
            "bash":{"timeoutSeconds":0.5,"keepBackground":true,"outputCapBytes":5.0},
            "retry":{"enabled":false,"maxRetries":1,"baseDelayMs":2,"maxAgentDelayMs":3,
            "provider":{"timeoutMs":4,"maxRetries":5,"maxRetryDelayMs":6}},
            "session":{"sync":"always"},"httpProxy":" http://p ","theme":"dark"}"#,
        );
        assert_eq!(diagnostics, [""; 0]);
        assert_eq!(
            (settings.default_provider(), settings.default_model()),
            (Some("p"), Some("m"))
        );
        assert_eq!(settings.default_thinking_level(), Some(ThinkingLevel::High));
        assert_eq!(
            settings.model_thinking_level("p", "m"),
            Some(ThinkingLevel::Low)
        );
        assert_eq!(settings.model_thinking_level("p", "n"), None);
        assert_eq!(settings.thinking_budgets(), [(ThinkingLevel::Low, 1000)]);
        assert_eq!(settings.enabled_models(), Some(vec!["a*".to_owned()]));
        assert_eq!(settings.default_tools(), Some(Vec::new()));
        assert_eq!(settings.session_dir(), Some("~/s"));
        assert_eq!(settings.shell_path(), Some("/bin/sh"));
        assert_eq!(settings.shell_command_prefix(), Some("set -e"));
        assert_eq!(
            (settings.steering_mode(), settings.follow_up_mode()),
            ("all", "all")
        );
        assert_eq!(settings.http_idle_timeout(), None);
        assert!(!settings.resize_images() && settings.block_images());
        assert_eq!(settings.bash_timeout_seconds(), Some(0.5));
        assert!(settings.bash_keep_background());
        assert_eq!(settings.bash_output_cap_bytes(), 5);
        assert_eq!(settings.session_sync(), "always");
        assert_eq!(settings.http_proxy(), Some("http://p"));
        assert_eq!(settings.get("theme"), Some(&json!("dark")));
        assert_eq!(
            settings.retry(),
            Retry {
                enabled: false,
                max_retries: 1,
                base_delay_ms: 2,
                max_agent_delay_ms: 3,
                provider_timeout_ms: Some(4),
                provider_max_retries: 5,
                provider_max_retry_delay_ms: 6,
            }
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_and_left_out() {
        for (path, form) in KNOWN {
            let wrong: &[Value] = match form {
                Form::Flag => &[json!(1), json!("true")],
                Form::Count => &[json!(-1), json!(1.5), json!("1"), json!(1e300)],
                Form::Seconds => &[json!(0), json!("1")],
                Form::Timeout => &[
                    json!(-1),
                    json!(""),
                    json!("soon"),
                    json!("inf"),
                    json!(true),
                ],
                Form::Text => &[json!(1), json!([])],
                Form::Texts => &[json!("a"), json!([1])],
                Form::OneOf(_) => &[json!("All"), json!(1)],
                Form::Levels => &[json!([]), json!({"a":"huge"})],
                Form::Counts(_) => &[json!(1), json!({"low":-1})],
            };
            for value in wrong {
                let text = path
                    .rsplit('.')
                    .fold(value.clone(), |value, name| json!({name: value}));
                let (settings, diagnostics) = load(&text.to_string());
                assert_eq!(diagnostics.len(), 1, "{text}");
                assert!(
                    diagnostics[0].starts_with(&format!("{path} must be ")),
                    "{diagnostics:?}"
                );
                assert_eq!(settings.get(path), None);
                assert!(!settings.is_broken());
            }
        }
        assert_eq!(
            load(r#"{"retry":true}"#).1,
            ["retry must be an object; it is ignored"]
        );
    }

    #[test]
    fn older_forms_are_understood() {
        let check = |old: Value, new: Value| {
            let Value::Object(mut values) = old else {
                panic!()
            };
            migrate(&mut values);
            assert_eq!(Value::Object(values), new);
        };
        check(json!({"queueMode":"all"}), json!({"steeringMode":"all"}));
        check(
            json!({"queueMode":"all","steeringMode":"x"}),
            json!({"queueMode":"all","steeringMode":"x"}),
        );
        check(json!({"websockets":true}), json!({"transport":"websocket"}));
        check(json!({"websockets":false}), json!({"transport":"sse"}));
        check(
            json!({"websockets":true,"transport":"auto"}),
            json!({"websockets":true,"transport":"auto"}),
        );
        check(
            json!({"skills":{"enableSkillCommands":false,"customDirectories":["a"]}}),
            json!({"skills":["a"],"enableSkillCommands":false}),
        );
        check(json!({"skills":{"customDirectories":[]}}), json!({}));
        check(json!({"skills":["a"]}), json!({"skills":["a"]}));
        check(
            json!({"retry":{"maxDelayMs":5}}),
            json!({"retry":{"provider":{"maxRetryDelayMs":5}}}),
        );
        check(
            json!({"retry":{"maxDelayMs":5,"provider":{"maxRetryDelayMs":6}}}),
            json!({"retry":{"provider":{"maxRetryDelayMs":6}}}),
        );
    }
}
