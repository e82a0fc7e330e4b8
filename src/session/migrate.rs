//! Migrates session files of versions 1 and 2 to version 3.
//!
//! Version 1 is a plain list: its entries get ids and parents, and a compaction, which names its first kept
//! entry by position, gets its id. Version 2 uses `hookMessage` for messages of extensions. Unreadable lines
//! are copied.

use super::entry::{self, VERSION};
use super::id;
use serde_json::{Map, Value};
use std::collections::HashSet;

type Fields = Map<String, Value>;

/// Converts the contents of a file to version 3.
pub fn migrate(bytes: &[u8], version: u64) -> Vec<u8> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut lines: Vec<(&[u8], Option<Fields>)> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .map(|line| (line, entry::read(line).ok()))
        .collect();
    if version < 2 {
        link(lines.iter_mut().filter_map(|(_, entry)| entry.as_mut()).collect());
    }
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    for (line, entry) in &mut lines {
        match entry {
            Some(entry) => {
                rename(entry);
                out.extend_from_slice(&serde_json::to_vec(entry).unwrap_or_default());
            }
            None => out.extend_from_slice(line),
        }
        out.push(b'\n');
    }
    out
}

/// Adds ids and parents to the entries of a list, as their first fields, which a scan expects.
fn link(mut entries: Vec<&mut Fields>) {
    let mut taken = HashSet::new();
    let ids: Vec<Option<String>> = entries
        .iter()
        .map(|entry| {
            let id = || id::entry_id(|id| taken.contains(id));
            let id = (entry.get("type")? != "session").then(id)?;
            taken.insert(id.clone());
            Some(id)
        })
        .collect();
    let mut parent = Value::Null;
    for (entry, id) in entries.iter_mut().zip(&ids) {
        let Some(id) = id else { continue };
        let mut linked = Map::new();
        for key in ["type", "id", "parentId", "timestamp"] {
            linked.insert(key.to_owned(), entry.get(key).cloned().unwrap_or(Value::Null));
        }
        linked.insert("id".to_owned(), id.clone().into());
        linked.insert("parentId".to_owned(), std::mem::replace(&mut parent, id.clone().into()));
        for (key, value) in std::mem::take(*entry) {
            linked.entry(key).or_insert(value);
        }
        if let Some(index) = linked.remove("firstKeptEntryIndex").and_then(|index| index.as_u64())
            && let Some(Some(kept)) = usize::try_from(index).ok().and_then(|index| ids.get(index))
        {
            linked.insert("firstKeptEntryId".to_owned(), kept.clone().into());
        }
        **entry = linked;
    }
}

fn rename(entry: &mut Fields) {
    match entry.get("type").and_then(Value::as_str) {
        Some("session") => {
            entry.insert("version".to_owned(), VERSION.into());
        }
        Some("message") => {
            if let Some(role) = entry.get_mut("message").and_then(|message| message.get_mut("role"))
                && role == "hookMessage"
            {
                *role = "custom".into();
            }
        }
        _ => {}
    }
}
