//! Trust in projects: whether what lies under `.pi/` and `.agents/` may be used at all.
//!
//! A project that brings none of this needs no trust. `trust.json` in the agent folder holds what the user
//! decided, by the real path of the project or of a folder above it. What a trusted project may run is
//! remembered beside it, in `trust-surfaces.json`: when that grows or changes, the decision is asked for
//! again.
//!
//! Not here: asking (`cli`), and `AGENTS.md` and its like, which are text and run nothing.

use super::{file, text};
use crate::llm::hex::hex;
use ring::digest;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What makes a project need trust, in its `.pi/`.
const SURFACES: [&str; 7] =
    ["settings.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];

/// Settings that say what is run.
const RUNNING_KEYS: [&str; 6] =
    ["shellPath", "shellCommandPrefix", "npmCommand", "externalEditor", "extensions", "packages"];

/// Files that are hashed for one project; a hash of their names stands for the rest.
const FILES_MAX: usize = 2000;

/// A project, by its real path.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
    home: Option<PathBuf>,
}

/// What is stored about a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The project's folder, or one above it.
    pub path: PathBuf,
    pub is_trusted: bool,
}

/// One way to decide on a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub label: String,
    pub is_trusted: bool,
    /// What is stored, by folder; `None` takes a decision away.
    pub decisions: Vec<(PathBuf, Option<bool>)>,
}

impl Project {
    pub fn new(cwd: &Path, home: Option<&Path>) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self { root: real(cwd), home: home.map(real) }
    }

    /// The real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What would be used if the project was trusted. Nothing: there is nothing to decide.
    pub fn surfaces(&self) -> Vec<PathBuf> {
        let config = self.root.join(".pi");
        let mut found: Vec<PathBuf> =
            SURFACES.iter().map(|name| config.join(name)).filter(|path| path.exists()).collect();
        let own = self.home.as_ref().map(|home| home.join(".agents/skills"));
        let skills = self.root.ancestors().map(|folder| folder.join(".agents/skills"));
        found.extend(skills.filter(|path| Some(path) != own.as_ref() && path.exists()));
        found
    }

    /// The ways to decide; those for one session store nothing.
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

    /// A hash for everything that the project would run: extension files, and settings that name programs.
    fn running(&self) -> BTreeMap<String, String> {
        let config = self.root.join(".pi");
        let mut hashes = BTreeMap::new();
        if let Ok(bytes) = fs::read(config.join("settings.json"))
            && let Ok(Value::Object(settings)) = serde_json::from_str(&text(&bytes))
        {
            for key in RUNNING_KEYS {
                if let Some(value) = settings.get(key).filter(|value| !value.is_null()) {
                    hashes.insert(format!(".pi/settings.json#{key}"), hash(value.to_string().as_bytes()));
                }
            }
        }
        let mut folders = vec![config.join("extensions")];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            for path in paths {
                let name = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy().into_owned();
                if hashes.len() >= FILES_MAX {
                    hashes.insert("more".into(), hash(name.as_bytes()));
                    return hashes;
                }
                let is_link = fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
                match fs::metadata(&path) {
                    // A folder that is linked to could hold itself.
                    Ok(about) if about.is_dir() && !is_link => folders.push(path),
                    Ok(about) if about.is_file() => {
                        let content = hash_file(&path).unwrap_or_default();
                        hashes.insert(name, content);
                    }
                    _ => drop(hashes.insert(name, String::new())),
                }
            }
        }
        hashes
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hash_file(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut file = fs::File::open(path)?;
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

/// The decisions in the agent folder.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    surfaces: PathBuf,
}

impl Store {
    pub fn new(agent: &Path) -> Self {
        Self { path: agent.join("trust.json"), surfaces: agent.join("trust-surfaces.json") }
    }

    /// What was decided for the project or the nearest folder above it. An error: the file cannot be used.
    pub fn find(&self, project: &Project) -> Result<Option<Entry>, String> {
        let data = self.parse(read(&self.path)?)?;
        let entry = project.root.ancestors().find_map(|folder| {
            let is_trusted = data.get(&*folder.to_string_lossy())?.as_bool()?;
            let path = folder.to_owned();
            Some(Entry { path, is_trusted })
        });
        Ok(entry)
    }

    /// Stores what was decided.
    pub fn answer(&self, project: &Project, answer: &Answer) -> Result<(), String> {
        if answer.decisions.is_empty() {
            return Ok(());
        }
        self.set(&answer.decisions)?;
        if answer.is_trusted {
            self.remember(project)?;
        }
        Ok(())
    }

    fn set(&self, decisions: &[(PathBuf, Option<bool>)]) -> Result<(), String> {
        file::update(&self.path, |old| {
            let mut data = self.parse(old)?;
            for (path, decision) in decisions {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let path = path.to_string_lossy().into_owned();
                match decision {
                    Some(is_trusted) => drop(data.insert(path, (*is_trusted).into())),
                    None => drop(data.shift_remove(&path)),
                }
            }
            pretty(data).map(Some)
        })
    }

    /// Whether the project would run something that it did not when it was trusted. One that is seen for
    /// the first time counts as known from now on.
    pub fn has_changed(&self, project: &Project) -> Result<bool, String> {
        let now = project.running();
        let root = project.root.to_string_lossy().into_owned();
        let known = objects(read(&self.surfaces)?);
        let Some(known) = known.get(&root).and_then(Value::as_object) else {
            // Where nothing can be written, the project stays new.
            let _ = self.remember(project);
            return Ok(false);
        };
        let is_known =
            |(name, hash): (&String, &String)| known.get(name).and_then(Value::as_str) == Some(hash);
        Ok(!now.iter().all(is_known))
    }

    /// Takes what the project runs now as decided on.
    pub fn remember(&self, project: &Project) -> Result<(), String> {
        let root = project.root.to_string_lossy().into_owned();
        let now = project.running();
        file::update(&self.surfaces, |old| {
            let mut known = objects(old);
            known.insert(
                root,
                now.into_iter().map(|(name, hash)| (name, Value::from(hash))).collect::<Map<_, _>>().into(),
            );
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

/// What was remembered; nothing where that is damaged, which makes projects new again.
fn objects(bytes: Option<Vec<u8>>) -> Map<String, Value> {
    let parsed = bytes.and_then(|bytes| serde_json::from_str(&text(&bytes)).ok());
    match parsed {
        Some(Value::Object(known)) => known,
        _ => Map::new(),
    }
}

fn pretty(mut data: Map<String, Value>) -> Result<String, String> {
    data.sort_keys();
    let text = serde_json::to_string_pretty(&data).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::scratch::Scratch;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn project(scratch: &Scratch) -> Project {
        let cwd = scratch.path().join("home/w/p");
        fs::create_dir_all(&cwd).unwrap();
        Project::new(&cwd, Some(&scratch.path().join("home")))
    }

    fn store(scratch: &Scratch) -> Store {
        Store::new(&scratch.path().join("agent"))
    }

    #[test]
    fn only_what_is_used_needs_trust() {
        let needs = [
            "settings.json",
            "SYSTEM.md",
            "APPEND_SYSTEM.md",
            "skills/a",
            "prompts/a",
            "extensions/a",
            "themes/a",
        ];
        for name in needs {
            let scratch = Scratch::new();
            scratch.file(&format!("home/w/p/.pi/{name}"), "");
            assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
        }
        for name in ["home/w/p/.agents/skills/a", "home/w/.agents/skills/a"] {
            let scratch = Scratch::new();
            scratch.file(name, "");
            assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
        }
        for name in
            ["home/w/p/.pi/other", "home/w/.pi/settings.json", "home/.agents/skills/a", "home/w/p/AGENTS.md"]
        {
            let scratch = Scratch::new();
            scratch.file(name, "");
            assert_eq!(project(&scratch).surfaces(), [""; 0].map(PathBuf::from), "{name}");
        }
    }

    #[test]
    fn the_nearest_decision_counts() {
        let scratch = Scratch::new();
        let (project, store) = (project(&scratch), store(&scratch));
        let found = || store.find(&project).unwrap().map(|entry| entry.is_trusted);
        assert_eq!(found(), None);
        let p = project.root().to_owned();
        let w = p.parent().unwrap().to_owned();
        let answers = project.answers(true);
        let store_answer = |number: usize| store.answer(&project, &answers[number]).unwrap();
        // For the session only.
        store_answer(2);
        store_answer(4);
        assert_eq!(found(), None);
        assert!(!store.path.exists());
        store_answer(1);
        assert_eq!(found(), Some(true));
        store_answer(3);
        assert_eq!(found(), Some(false));
        store_answer(1);
        assert_eq!(found(), Some(true));
        let text = fs::read_to_string(&store.path).unwrap();
        assert_eq!(text, format!("{{\n  \"{}\": true\n}}\n", w.display()));
        for path in [&store.path, &store.surfaces] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(project.answers(false).len(), 3);
        // A link to the project is the project.
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&p, &link).unwrap();
        store.set(&[(link.clone(), Some(false))]).unwrap();
        assert_eq!(found(), Some(false));
        assert_eq!(Project::new(&link, None).root(), p);
    }

    #[test]
    fn a_damaged_store_is_an_error_and_stays() {
        let scratch = Scratch::new();
        let (project, store) = (project(&scratch), store(&scratch));
        for (text, error) in [
            ("{", "Failed to read trust store"),
            ("[]", "expected an object"),
            ("{\"/a\":1}", "value for \"/a\" must be true, false, or null"),
        ] {
            scratch.file("agent/trust.json", text);
            assert!(store.find(&project).unwrap_err().contains(error), "{text}");
            assert!(store.set(&[(project.root().to_owned(), Some(true))]).unwrap_err().contains(error));
            assert_eq!(fs::read_to_string(&store.path).unwrap(), text);
        }
        scratch.file("agent/trust.json", format!("\u{feff}{{\"{}\":null}}", project.root().display()));
        assert_eq!(store.find(&project), Ok(None));
    }

    #[test]
    fn what_a_project_runs_is_remembered() {
        let scratch = Scratch::new();
        let (project, store) = (project(&scratch), store(&scratch));
        scratch.file("home/w/p/.pi/settings.json", r#"{"theme":"a","shellPath":"/bin/sh"}"#);
        let changed = || store.has_changed(&project).unwrap();
        assert!(!changed(), "seen for the first time");
        scratch.file("home/w/p/.pi/settings.json", r#"{"theme":"b","shellPath":"/bin/sh"}"#);
        scratch.file("home/w/p/.pi/skills/a/SKILL.md", "text");
        assert!(!changed(), "nothing that runs");
        scratch.file("home/w/p/.pi/settings.json", r#"{"shellPath":"/tmp/evil"}"#);
        assert!(changed());
        store.remember(&project).unwrap();
        assert!(!changed());
        scratch.file("home/w/p/.pi/extensions/deep/x.js", "1");
        assert!(changed());
        store.remember(&project).unwrap();
        scratch.file("home/w/p/.pi/extensions/deep/x.js", "2");
        assert!(changed());
        fs::remove_dir_all(project.root().join(".pi")).unwrap();
        assert!(!changed(), "what is gone runs nothing");
    }

    #[test]
    fn a_project_that_ran_nothing_is_known_too() {
        let scratch = Scratch::new();
        let (project, store) = (project(&scratch), store(&scratch));
        assert!(!store.has_changed(&project).unwrap());
        scratch.file("home/w/p/.pi/extensions/x.js", "1");
        assert!(store.has_changed(&project).unwrap());
    }
}
