//! Reads auth.json when it is first needed, and again after a change. `store` writes the file.

use crate::base::env::Env;
use crate::llm::model::former_provider_id;
use crate::llm::secret::{Vault, is_secret_name};
use crate::models::config_value;
use serde_json::{Map, Value};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

pub(super) struct AuthFile {
    pub path: PathBuf,
    env: Env,
    /// Receives the secrets of the file on each read.
    vault: Vault,
    read: Mutex<Option<(Stamp, Entries)>>,
}

/// Credentials by provider, or the error of reading auth.json.
pub(super) type Entries = Result<Arc<Map<String, Value>>, String>;
/// Time of change, size and inode of auth.json, to detect changes; `None` if the file does not exist.
type Stamp = Option<(SystemTime, u64, u64)>;

impl AuthFile {
    pub fn new(path: PathBuf, env: Env, vault: Vault) -> Self {
        Self { path, env, vault, read: Mutex::new(None) }
    }

    /// A message for the user if auth.json is invalid or readable by other users.
    pub fn warning(&self) -> Option<String> {
        if let Err(error) = self.entries() {
            return Some(error);
        }
        let mode = std::fs::metadata(&self.path).ok()?.permissions().mode();
        let file = self.path.display();
        (mode & 0o077 != 0).then(|| format!("{file} can be read by other users; run: chmod 600 {file}"))
    }

    pub fn entries(&self) -> Entries {
        let stamp = std::fs::metadata(&self.path)
            .ok()
            .map(|facts| (facts.modified().unwrap_or(SystemTime::UNIX_EPOCH), facts.len(), facts.ino()));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((known, entries)) if *known == stamp => entries.clone(),
            _ => {
                let entries = read_entries(&self.path);
                entries.iter().for_each(|entries| self.learn(entries));
                *read = Some((stamp, entries.clone()));
                entries
            }
        }
    }

    fn learn(&self, entries: &Map<String, Value>) {
        for (provider, entry) in entries {
            let settings = settings_of(Some(entry));
            let env = self.env.with(&settings);
            let name = format!("auth.{provider}");
            let fields = entry.as_object().into_iter().flatten();
            for (field, text) in fields.filter_map(|(field, value)| Some((field.as_str(), value.as_str()?))) {
                match field {
                    "key" => config_value::learn(text, &name, &env, &self.vault),
                    "access" => self.vault.learn(&name, text),
                    "refresh" => self.vault.learn(&format!("{name}.refresh"), text),
                    field if is_secret_name(field) => self.vault.learn(&format!("{name}.{field}"), text),
                    _ => {}
                }
            }
            for (variable, value) in settings.iter().filter(|(variable, _)| is_secret_name(variable)) {
                self.vault.learn(&format!("{name}.{variable}"), value);
            }
        }
    }
}

pub(super) fn read_entries(file: &Path) -> Entries {
    let name = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
        Err(error) => return Err(format!("Cannot read {name}: {error}")),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Ok(Arc::default());
    }
    // The parser's message is omitted, since it may quote a secret.
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("{name} is not valid JSON at line {line}, column {column}. Repair it or remove it; it is left as it is.")
    })?;
    match value {
        Value::Object(entries) => Ok(Arc::new(entries)),
        _ => Err(format!("{name} is not a JSON object of providers. Repair it or remove it.")),
    }
}

/// The entry of a provider, under its present or former id.
pub(super) fn entry_of<'a>(entries: &'a Map<String, Value>, provider: &str) -> Option<&'a Value> {
    let former = || entries.get(former_provider_id(provider)?);
    entries.get(provider).or_else(former)
}

/// The variables in the `env` object of an entry.
pub(super) fn settings_of(entry: Option<&Value>) -> Vec<(String, String)> {
    let env = entry.and_then(|entry| entry.get("env")).and_then(Value::as_object);
    env.into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}
