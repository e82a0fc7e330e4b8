//! Moves files of early versions of the TypeScript pi to their present places.
//!
//! Keys of `oauth.json` and of `apiKeys` in `settings.json` go to `auth.json`, sessions in the agent folder
//! itself to their project's folder, and `commands/` becomes `prompts/`. Nothing is overwritten. An old file
//! is removed only after the new one is on disk. What cannot be moved stays.
//!
//! Not here: old names of settings (`resources::settings`) and versions of session files (`session`).

use crate::base::file;
use crate::base::json;
use crate::mode::report;
use crate::resources::settings::Settings;
use crate::session::upkeep;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Moves all old files of the agent folder `agent`, whose settings are `settings`.
pub fn run(agent: &Path, settings: &Settings) {
    if let Err(error) = keys(agent, settings) {
        report::warning(format_args!("Keys of an earlier version were not taken over: {error}"));
    }
    for (from, to) in upkeep::bring_home(agent) {
        report::note(format_args!("Moved the session {} to {}", from.display(), to.display()));
    }
    let (old, new) = (agent.join("commands"), agent.join("prompts"));
    if old.is_dir() && new.symlink_metadata().is_err() {
        match fs::rename(&old, &new) {
            Ok(()) => report::note("Migrated Global commands/ → prompts/"),
            Err(error) => {
                report::warning(format_args!("Could not migrate Global commands/ to prompts/: {error}"))
            }
        }
    }
}

/// Writes `auth.json` from keys in other files, unless it exists.
fn keys(agent: &Path, settings: &Settings) -> Result<(), String> {
    let (auth, oauth) = (agent.join("auth.json"), agent.join("oauth.json"));
    if auth.symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut found = Map::new();
    let logins = read(&oauth).unwrap_or_default();
    let is_login = |login: &Value| login.is_object();
    for (provider, login) in logins.into_iter().filter(|(_, login)| is_login(login)) {
        let mut entry = Map::from_iter([("type".to_owned(), "oauth".into())]);
        entry.extend(login.as_object().cloned().unwrap_or_default());
        found.insert(provider, entry.into());
    }
    let has_logins = !found.is_empty();
    let stored = settings.of_user("apiKeys");
    for (provider, key) in stored.and_then(Value::as_object).into_iter().flatten() {
        if key.is_string() && !found.contains_key(provider) {
            let entry = crate::base::json::json!({"type": "api_key", "key": key});
            found.insert(provider.clone(), entry);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let providers = found.keys().cloned().collect::<Vec<_>>().join(", ");
    let text = pretty(&found.into())?;
    // If two processes migrate at once, the first one writes the file.
    file::update(&auth, |there| Ok(there.is_none().then_some(text)))?;
    if has_logins {
        let old = agent.join("oauth.json.migrated");
        fs::rename(&oauth, old).map_err(|error| format!("{}: {error}", oauth.display()))?;
    }
    if stored.is_some() {
        file::update(settings.path(), |bytes| {
            let mut settings = bytes.as_deref().and_then(parse).unwrap_or_default();
            let removed = settings.remove("apiKeys");
            removed.map(|_| pretty(&settings.into())).transpose()
        })?;
    }
    report::note(format_args!("Moved the keys of {providers} to auth.json"));
    Ok(())
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    parse(&fs::read(path).ok()?)
}

fn parse(bytes: &[u8]) -> Option<Map<String, Value>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    json::parse(bytes).ok()
}

fn pretty(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(|error| error.to_string())
}
