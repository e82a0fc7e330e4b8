//! Stores decisions on trust in `trust.json` and `trust-surfaces.json` of the agent folder.

use super::name_of;
use super::project::{Answer, Project};
use super::snapshot::{Prints, Snapshot};
use crate::base::file;
use crate::base::order;
use crate::resources::text;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name under which a file that was damaged stands for all projects that it does not name.
const OTHERS: &str = "*";

/// A stored decision on a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The project's folder, or a folder above it.
    pub path: PathBuf,
    pub is_trusted: bool,
}

/// The files of stored decisions.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) path: PathBuf,
    pub(super) surfaces: PathBuf,
}

impl Store {
    pub fn new(agent: &Path) -> Self {
        Self { path: agent.join("trust.json"), surfaces: agent.join("trust-surfaces.json") }
    }

    /// Returns the decision on the project or the nearest folder above it. An error says why the file cannot
    /// be used.
    pub fn find(&self, project: &Project) -> Result<Option<Entry>, String> {
        let data = self.parse(read(&self.path)?)?;
        let entry = project.root().ancestors().find_map(|folder| {
            let is_trusted = data.get(&name_of(folder))?.as_bool()?;
            let path = folder.to_owned();
            Some(Entry { path, is_trusted })
        });
        Ok(entry)
    }

    /// Stores the user's answer about the trust of `project`, unless it is for one session only.
    pub fn answer(&self, project: &Project, answer: &Answer, snapshot: &Snapshot) -> Result<(), String> {
        if answer.decisions.is_empty() {
            return Ok(());
        }
        self.set(&answer.decisions)?;
        if answer.is_trusted {
            self.remember(project, snapshot)?;
        }
        Ok(())
    }

    pub(super) fn set(&self, decisions: &[(PathBuf, Option<bool>)]) -> Result<(), String> {
        file::update(&self.path, |old| {
            let mut data = self.parse(old)?;
            for (path, decision) in decisions {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let path = name_of(&path);
                match decision {
                    Some(is_trusted) => drop(data.insert(path, (*is_trusted).into())),
                    None => drop(data.shift_remove(&path)),
                }
            }
            pretty(data).map(Some)
        })
    }

    /// Looks at `project`, and notes in the snapshot what the user trusted last.
    pub fn snapshot(&self, project: &Project) -> Result<Snapshot, String> {
        let known = objects(read(&self.surfaces)?);
        let before = known.get(&name_of(project.root())).or_else(|| known.get(OTHERS));
        let before = before.and_then(Value::as_object).map(|known| {
            let print = |(name, print): (&String, &Value)| Some((name.clone(), print.as_str()?.to_owned()));
            order::map(known.iter().filter_map(print))
        });
        Ok(Snapshot::take(project, before))
    }

    /// Names what a trusted project brings more or otherwise than when it was trusted. The first call for a project
    /// stores what it brings; the error says why that cannot be done.
    pub fn changes(&self, project: &Project, snapshot: &Snapshot) -> Result<Vec<String>, String> {
        let changes = snapshot.changes();
        // Stamps are renewed, so that files that were only touched are not read at each start.
        if changes.is_none() || (changes.as_ref().is_some_and(Vec::is_empty) && snapshot.has_new_stamps()) {
            // What is gone may come back unchanged.
            let mut all = snapshot.before.clone().unwrap_or_default();
            all.extend(snapshot.prints.clone());
            let written = self.write(project, all);
            // Only a project that is not known yet needs the file.
            if changes.is_none() {
                written?;
            }
        }
        Ok(changes.unwrap_or_default())
    }

    /// Stores what the project brings at present.
    pub fn remember(&self, project: &Project, snapshot: &Snapshot) -> Result<(), String> {
        self.write(project, snapshot.prints.clone())
    }

    fn write(&self, project: &Project, prints: Prints) -> Result<(), String> {
        let root = name_of(project.root());
        file::update(&self.surfaces, |old| {
            let mut known = objects(old);
            let prints = prints.into_iter().map(|(name, print)| (name, Value::from(print)));
            known.insert(root, prints.collect::<Map<_, _>>().into());
            pretty(known).map(Some)
        })
    }

    fn parse(&self, bytes: Option<Vec<u8>>) -> Result<Map<String, Value>, String> {
        let Some(bytes) = bytes else {
            return Ok(Map::new());
        };
        let path = self.path.display();
        let data: Value = serde_json::from_str(&text(&bytes))
            .map_err(|error| format!("Failed to read trust store {path}: {error}"))?;
        let Value::Object(data) = data else {
            return Err(format!("Invalid trust store {path}: expected an object"));
        };
        match data.iter().find(|(_, value)| !value.is_boolean() && !value.is_null()) {
            Some((key, _)) => Err(format!(
                "Invalid trust store {path}: value for {} must be true, false, or null",
                Value::from(key.as_str())
            )),
            None => Ok(data),
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("Failed to read trust store {}: {error}", path.display())),
    }
}

/// Parses the object in a file. In a damaged file each project is known with nothing, so that the user is asked.
fn objects(bytes: Option<Vec<u8>>) -> Map<String, Value> {
    let Some(bytes) = bytes else { return Map::new() };
    match serde_json::from_str(&text(&bytes)) {
        Ok(Value::Object(known)) => known,
        _ => Map::from_iter([(OTHERS.to_owned(), Map::new().into())]),
    }
}

fn pretty(mut data: Map<String, Value>) -> Result<String, String> {
    data.sort_keys();
    let text = serde_json::to_string_pretty(&data).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}
