//! Which model servers of other users of this machine the user agreed to: `local-servers.json` of the agent
//! folder holds an answer for each that was asked about.

use crate::base::file;
use crate::models::local::{Allowed, Stranger};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The answers of the user. The file is read when servers are looked for, and not before.
#[derive(Clone, Debug)]
pub struct LocalServers {
    file: PathBuf,
    /// Holds in this run, whatever the file says.
    here: Option<Allowed>,
}

impl LocalServers {
    pub fn new(agent: &Path) -> Self {
        Self { file: agent.join("local-servers.json"), here: None }
    }

    /// The servers that may be used.
    pub fn allowed(&self) -> Allowed {
        self.here.clone().unwrap_or_else(|| {
            let agreed = self.answers().into_iter().filter(|(_, answer)| *answer == true);
            Allowed::Only(agreed.map(|(key, _)| key).collect())
        })
    }

    /// Allows all servers in this run: the user named one.
    pub fn allow_all(&mut self) {
        self.here = Some(Allowed::All);
    }

    /// True if the user was asked about `stranger` before.
    pub fn knows(&self, stranger: &Stranger) -> bool {
        self.answers().contains_key(&stranger.key())
    }

    /// Keeps an answer. It holds in this run even where it cannot be stored, which the error says.
    pub fn answer(&mut self, stranger: &Stranger, is_allowed: bool) -> Result<(), String> {
        if is_allowed {
            let mut allowed = self.allowed();
            allowed.add(stranger);
            self.here = Some(allowed);
        }
        file::update(&self.file, |old| {
            let mut answers = parse(&old.unwrap_or_default());
            answers.insert(stranger.key(), is_allowed.into());
            let text = serde_json::to_string_pretty(&answers).map_err(|error| error.to_string())?;
            Ok(Some(text + "\n"))
        })
    }

    fn answers(&self) -> Map<String, Value> {
        std::fs::read(&self.file).map(|bytes| parse(&bytes)).unwrap_or_default()
    }
}

/// The answers in a file. A damaged file has none: then the user is asked again.
fn parse(bytes: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(bytes).unwrap_or_default()
}
