//! What servers offered when they were last connected to, so that they are started only when they are needed.
//!
//! `mcp-cache.json` of the agent folder. An entry is for one way to reach a server: it is of no use once that changes.
//! A cache that cannot be read or written costs a connection at the start.

use super::config::Entry;
use super::server::Offer;
use crate::base::file;
use crate::base::hex::hex;
use crate::base::json::{self, json};
use crate::llm::message::now_ms;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Age at which a server is asked again at the start.
const AGE_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1000;
const BYTES_MAX: u64 = 32 << 20;

pub struct Cache {
    path: PathBuf,
    entries: Map<String, Value>,
}

impl Cache {
    pub fn load(agent: &Path) -> Self {
        let path = agent.join("mcp-cache.json");
        let bytes = file::read(&path, BYTES_MAX).unwrap_or_default();
        Self { path, entries: json::parse(&bytes).unwrap_or_default() }
    }

    /// What the server offered, if it is known well enough.
    pub fn find(&self, entry: &Entry) -> Option<Offer> {
        let known = self.entries.get(&entry.name)?.as_object()?;
        let time = known.get("time").and_then(Value::as_u64)?;
        let is_fresh = now_ms().saturating_sub(time) < AGE_MAX_MS;
        (is_fresh && known.get("key")?.as_str()? == key(entry)).then(|| Offer::from_json(known))
    }

    /// Keeps what a server offers.
    pub fn store(agent: &Path, entry: &Entry, offer: &Offer) {
        let mut known = offer.to_json();
        known["key"] = key(entry).into();
        known["time"] = now_ms().into();
        let path = Self::load(agent).path;
        let _ = file::update(&path, |old| {
            let mut entries: Map<String, Value> = json::parse(&old.unwrap_or_default()).unwrap_or_default();
            entries.insert(entry.name.clone(), known);
            Ok(Some(Value::Object(entries).to_string()))
        });
    }
}

/// A hash of how the server is reached.
fn key(entry: &Entry) -> String {
    let fields = ["type", "command", "args", "env", "cwd", "url", "headers", "auth"];
    let parts: Vec<Option<&Value>> = fields.iter().map(|field| entry.fields.get(*field)).collect();
    hex(digest(&SHA256, json!(parts).to_string().as_bytes()).as_ref())
}
