//! Changes of `mcp.json`: one entry at a time. All else in the file stays, and so does its indentation.

use super::{Exposure, parse};
use crate::base::file;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};
use std::path::Path;

/// Writes an entry, and makes the file if it is missing. True if an entry of this name was replaced.
pub fn add(path: &Path, name: &str, entry: Map<String, Value>) -> Result<bool, String> {
    change(path, |servers| Ok(servers.insert(name.to_owned(), Value::Object(entry)).is_some()))
}

/// Removes an entry. False if there is none of this name.
pub fn remove(path: &Path, name: &str) -> Result<bool, String> {
    match path.exists() {
        true => change(path, |servers| Ok(servers.shift_remove(name).is_some())),
        false => Ok(false),
    }
}

/// What a user changes of a server while it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patch {
    pub enabled: Option<bool>,
    pub exposure: Option<Exposure>,
}

/// Changes the entry of a server, or one that only changes a server of the user: made if missing, with `is_override`.
pub fn patch(path: &Path, name: &str, patch: Patch, is_override: bool) -> Result<(), String> {
    change(path, |servers| {
        if is_override && !servers.contains_key(name) {
            servers.insert(name.to_owned(), Value::Object(Map::new()));
        }
        let entry = servers.get_mut(name).and_then(Value::as_object_mut);
        let entry = entry.ok_or_else(|| format!("{} has no server \"{name}\"", path.display()))?;
        // A default is written where it changes what the user's file says.
        let only_changes = !["command", "url", "type"].iter().any(|key| entry.contains_key(*key));
        let mut set = |key: &str, value: Value, is_default: bool| match is_default && !only_changes {
            true => drop(entry.shift_remove(key)),
            false => drop(entry.insert(key.to_owned(), value)),
        };
        if let Some(enabled) = patch.enabled {
            set("enabled", enabled.into(), enabled);
        }
        if let Some(exposure) = patch.exposure {
            set("exposure", exposure.name().into(), exposure == Exposure::default());
        }
        Ok(true)
    })
    .map(drop)
}

/// Passes the servers of the file to `edit`, and writes the file if the result is true or a server was added.
fn change(
    path: &Path,
    edit: impl FnOnce(&mut Map<String, Value>) -> Result<bool, String>,
) -> Result<bool, String> {
    let mut result = false;
    file::update(path, |old| {
        let mut content = match &old {
            Some(bytes) => parse(path, bytes)?,
            None => Map::new(),
        };
        let before = content.clone();
        let servers = content.entry("mcpServers").or_insert_with(|| Value::Object(Map::new()));
        let servers = servers.as_object_mut().ok_or_else(|| format!("{}: no object", path.display()))?;
        result = edit(servers)?;
        let is_changed = content != before;
        let indent = indentation(&old.unwrap_or_default());
        if is_changed { text(&content, &indent).map(Some) } else { Ok(None) }
    })?;
    Ok(result)
}

/// The white space before the first line that is indented, else two spaces.
fn indentation(text: &[u8]) -> Vec<u8> {
    let blanks = |line: &&[u8]| line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let line = lines.find(|line| blanks(line) > 0);
    line.and_then(|line| line.get(..blanks(&line))).unwrap_or(b"  ").to_vec()
}

fn text(content: &Map<String, Value>, indent: &[u8]) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut writer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent));
    content.serialize(&mut writer).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| error.to_string())
}
