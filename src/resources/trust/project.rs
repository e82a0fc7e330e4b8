//! What a project would run, and the possible decisions on its trust.

use super::name_of;
use crate::base::file;
use crate::base::hex::hex;
use crate::resources::settings::{self, Content};
use crate::resources::text;
use ring::digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Files and folders in `.pi/` for which a project needs trust.
const SURFACES: [&str; 9] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "agents",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// Settings that name programs to run.
const RUNNING_KEYS: [&str; 7] =
    ["shellPath", "shellCommandPrefix", "npmCommand", "externalEditor", "extensions", "packages", "hooks"];

/// Maximum number of a project's files that are hashed. If there are more, the name of the next file is
/// hashed in place of the rest.
const FILES_MAX: usize = 2000;

/// Maximum bytes of a file with MCP servers.
const SERVERS_MAX: u64 = 4 << 20;

/// A project, identified by its real path.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
    home: Option<PathBuf>,
}

/// Settings and programs of a project at one moment. The user decides on a snapshot, and exactly its content
/// is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Content of the project's settings file.
    pub settings: Content,
    /// SHA-256 of everything that the project would run, by name.
    pub(super) running: BTreeMap<String, String>,
    /// Settings that name programs, with their values.
    programs: Vec<(&'static str, Value)>,
}

impl Snapshot {
    /// Returns a snapshot without settings and programs.
    pub fn nothing() -> Self {
        Self { settings: Ok(None), running: BTreeMap::new(), programs: Vec::new() }
    }

    /// Returns a paragraph that lists what the project would run; empty if it would run nothing.
    pub fn describe(&self) -> String {
        match self.runs() {
            lines if lines.is_empty() => String::new(),
            lines => format!("\n\nIt runs:\n{}", lines.join("\n")),
        }
    }

    /// Returns a line for each thing that the project would run.
    pub(super) fn runs(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .programs
            .iter()
            .map(|(key, value)| format!("{key}: {}", shortened(&value.to_string())))
            .collect();
        let files = self.running.len() - self.programs.len();
        if files > 0 {
            lines.push(format!(".pi/extensions: {files} files"));
        }
        lines
    }

    /// True if the project runs nothing that is new or changed since the snapshot `known`.
    pub fn runs_no_more_than(&self, known: &Self) -> bool {
        self.running.iter().all(|(name, hash)| known.running.get(name) == Some(hash))
    }
}

/// Shortens a long text to its beginning, its end and its length.
fn shortened(text: &str) -> String {
    const HEAD: usize = 80;
    const TAIL: usize = 60;
    let length = text.chars().count();
    if length <= HEAD + TAIL {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(length - TAIL).collect();
    format!("{head} … {tail} ({length} characters)")
}

/// A possible decision on a project's trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub label: String,
    pub is_trusted: bool,
    /// Decisions to store, by folder; `None` removes one.
    pub decisions: Vec<(PathBuf, Option<bool>)>,
}

impl Project {
    pub fn new(cwd: &Path, home: Option<&Path>) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { root: real(cwd), home: home.map(real) }
    }

    /// Returns the real path of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns files and folders that need trust; empty if there is nothing to decide.
    pub fn surfaces(&self) -> Vec<PathBuf> {
        let config = self.root.join(".pi");
        let mut found: Vec<PathBuf> =
            SURFACES.iter().map(|name| config.join(name)).filter(|path| path.exists()).collect();
        let own = self.home.as_ref().map(|home| home.join(".agents/skills"));
        let skills = self.root.ancestors().map(|folder| folder.join(".agents/skills"));
        found.extend(skills.filter(|path| Some(path) != own.as_ref() && path.exists()));
        found
    }

    /// Returns the possible decisions. Decisions that are not stored are included only if `with_session` is
    /// set.
    pub fn answers(&self, with_session: bool) -> Vec<Answer> {
        let answer =
            |label: &str, is_trusted, decisions| Answer { label: label.to_owned(), is_trusted, decisions };
        let here = |is_trusted| vec![(self.root.clone(), Some(is_trusted))];
        let mut answers = vec![answer("Trust", true, here(true))];
        if let Some(parent) = self.root.parent() {
            let label = format!("Trust parent folder ({})", parent.display());
            let decisions = vec![(parent.to_owned(), Some(true)), (self.root.clone(), None)];
            answers.push(answer(&label, true, decisions));
        }
        if with_session {
            answers.push(answer("Trust (this session only)", true, Vec::new()));
        }
        answers.push(answer("Do not trust", false, here(false)));
        if with_session {
            answers.push(answer("Do not trust (this session only)", false, Vec::new()));
        }
        answers
    }

    /// Takes a snapshot of the project's present state.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot { settings: settings::read_project(&self.root), ..Snapshot::nothing() };
        if let Ok(Some(bytes)) = &snapshot.settings
            && let Ok(Value::Object(mut settings)) = serde_json::from_str(&text(bytes))
        {
            for key in RUNNING_KEYS {
                if let Some(value) = settings.remove(key).filter(|value| !value.is_null()) {
                    snapshot
                        .running
                        .insert(format!(".pi/settings.json#{key}"), hash(value.to_string().as_bytes()));
                    snapshot.programs.push((key, value));
                }
            }
        }
        self.add_servers(&mut snapshot);
        self.add_extensions(&mut snapshot.running);
        snapshot
    }

    /// Adds the MCP servers that the project defines.
    fn add_servers(&self, snapshot: &mut Snapshot) {
        let bytes = file::read(&self.root.join(".pi/mcp.json"), SERVERS_MAX).unwrap_or_default();
        let content: Value = serde_json::from_str(&text(&bytes)).unwrap_or_default();
        for (name, server) in content.get("mcpServers").and_then(Value::as_object).into_iter().flatten() {
            // Without these it only changes a server of the user.
            if ["command", "url", "type"].iter().any(|key| server.get(key).is_some()) {
                let server = json!({name: server});
                snapshot.running.insert(format!(".pi/mcp.json#{name}"), hash(server.to_string().as_bytes()));
                snapshot.programs.push(("mcpServers", server));
            }
        }
    }

    fn add_extensions(&self, hashes: &mut BTreeMap<String, String>) {
        // Links are not followed: a linked folder could contain itself.
        let walk = WalkDir::new(self.root.join(".pi/extensions")).sort_by_file_name().into_iter().flatten();
        for entry in walk.filter(|entry| !entry.file_type().is_dir()) {
            let name = name_of(entry.path().strip_prefix(&self.root).unwrap_or(entry.path()));
            if hashes.len() >= FILES_MAX {
                hashes.insert("more".into(), hash(name.as_bytes()));
                return;
            }
            hashes.insert(name, hash_file(entry.path()).unwrap_or_default());
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hash_file(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut file = file::open(path)?;
    let mut context = digest::Context::new(&digest::SHA256);
    let mut part = [0; 16 << 10];
    loop {
        let read = file.read(&mut part)?;
        match part.get(..read) {
            Some(bytes) if read > 0 => context.update(bytes),
            _ => return Ok(hex(context.finish().as_ref())),
        }
    }
}
