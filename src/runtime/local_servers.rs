//! The user's consent to model servers that belong to other users of this machine, stored in
//! `local-servers.json` in the agent folder.

use crate::base::file;
use crate::base::json;
use crate::models::local::{Allowed, Stranger};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Servers of other users that may be used. The file is read each time that servers are looked for.
#[derive(Clone, Debug)]
pub struct LocalServers {
    file: PathBuf,
    /// Overrides the file while the program runs.
    here: Option<Allowed>,
}

impl LocalServers {
    pub fn new(agent: &Path) -> Self {
        Self { file: agent.join("local-servers.json"), here: None }
    }

    /// Returns the servers that may be used.
    pub fn allowed(&self) -> Allowed {
        self.here.clone().unwrap_or_else(|| {
            let agreed = self.answers().into_iter().filter(|(_, answer)| *answer == true);
            Allowed::Only(agreed.map(|(key, _)| key).collect())
        })
    }

    /// Allows all servers while the program runs, because the user named one.
    pub fn allow_all(&mut self) {
        self.here = Some(Allowed::All);
    }

    /// True if the file has an answer for `stranger`.
    pub fn knows(&self, stranger: &Stranger) -> bool {
        self.answers().contains_key(&stranger.key())
    }

    /// Stores an answer. If storing fails, a consent still holds while the program runs.
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

/// Parses the answers. A damaged file has no answers, so the user is asked again.
fn parse(bytes: &[u8]) -> Map<String, Value> {
    json::parse(bytes).unwrap_or_default()
}
