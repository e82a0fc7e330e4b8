//! Trust in projects: whether what lies under `.pi/` and `.agents/` may be used at all.
//!
//! A project that brings none of this needs no trust. `trust.json` in the agent folder holds what the user
//! decided, by the real path of the project or of a folder above it. What a trusted project may run is
//! remembered beside it, in `trust-surfaces.json`: when that grows or changes, the decision is asked for
//! again.
//!
//! Not here: asking (`cli`), and `AGENTS.md` and its like, which are text and run nothing.

use super::settings::{self, Content};
use super::text;
use crate::base::file;
use crate::base::hex::hex;
use ring::digest;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

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

/// What a project has at one moment: what is decided on is this, and this is what is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Content of the project's settings file.
    pub settings: Content,
    /// A hash for everything that the project would run.
    running: BTreeMap<String, String>,
    /// The settings that name programs, with their values.
    programs: Vec<(&'static str, Value)>,
}

impl Look {
    /// The look at a project that brings nothing.
    pub fn nothing() -> Self {
        Self { settings: Ok(None), running: BTreeMap::new(), programs: Vec::new() }
    }

    /// What the project would run, to be put below a question; empty where that is nothing.
    pub fn told(&self) -> String {
        match self.runs() {
            lines if lines.is_empty() => String::new(),
            lines => format!("\n\nIt runs:\n{}", lines.join("\n")),
        }
    }

    /// What the project would run, a line each.
    fn runs(&self) -> Vec<String> {
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

    /// True if nothing is run that was not known, or other than it was.
    pub fn runs_no_more_than(&self, known: &Self) -> bool {
        self.running.iter().all(|(name, hash)| known.running.get(name) == Some(hash))
    }
}

/// The beginning and the end of a long text, and how long it is.
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

    /// What the project has now.
    pub fn look(&self) -> Look {
        let mut look = Look { settings: settings::read_project(&self.root), ..Look::nothing() };
        if let Ok(Some(bytes)) = &look.settings
            && let Ok(Value::Object(mut settings)) = serde_json::from_str(&text(bytes))
        {
            for key in RUNNING_KEYS {
                if let Some(value) = settings.remove(key).filter(|value| !value.is_null()) {
                    look.running
                        .insert(format!(".pi/settings.json#{key}"), hash(value.to_string().as_bytes()));
                    look.programs.push((key, value));
                }
            }
        }
        self.add_extensions(&mut look.running);
        look
    }

    fn add_extensions(&self, hashes: &mut BTreeMap<String, String>) {
        // A folder that is linked to could hold itself.
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

/// The name of a path in a JSON file: itself, or all its bytes where it is not UTF-8. No two paths have one
/// name.
fn name_of(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", hex(path.as_os_str().as_bytes())),
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
            let is_trusted = data.get(&name_of(folder))?.as_bool()?;
            let path = folder.to_owned();
            Some(Entry { path, is_trusted })
        });
        Ok(entry)
    }

    /// Stores what was decided on seeing `look`.
    pub fn answer(&self, project: &Project, answer: &Answer, look: &Look) -> Result<(), String> {
        if answer.decisions.is_empty() {
            return Ok(());
        }
        self.set(&answer.decisions)?;
        if answer.is_trusted {
            self.remember(project, look)?;
        }
        Ok(())
    }

    fn set(&self, decisions: &[(PathBuf, Option<bool>)]) -> Result<(), String> {
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

    /// True if the project would run something that it did not when it was trusted. One that is seen for
    /// the first time counts as known from now on.
    pub fn has_changed(&self, project: &Project, look: &Look) -> Result<bool, String> {
        let known = objects(read(&self.surfaces)?);
        let Some(known) = known.get(&name_of(&project.root)).and_then(Value::as_object) else {
            // Where nothing can be written, the project stays new.
            let _ = self.remember(project, look);
            return Ok(false);
        };
        let is_known =
            |(name, hash): (&String, &String)| known.get(name).and_then(Value::as_str) == Some(hash);
        Ok(!look.running.iter().all(is_known))
    }

    /// Takes what the project would run as decided on.
    pub fn remember(&self, project: &Project, look: &Look) -> Result<(), String> {
        let root = name_of(&project.root);
        let now = look.running.clone();
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
    use super::*;
    use crate::base::testing::TempDir;
    use std::os::unix::fs::PermissionsExt;

    fn project(scratch: &TempDir) -> Project {
        let cwd = scratch.path().join("home/w/p");
        fs::create_dir_all(&cwd).unwrap();
        Project::new(&cwd, Some(&scratch.path().join("home")))
    }

    fn store(scratch: &TempDir) -> Store {
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
            let scratch = TempDir::create();
            scratch.write(&format!("home/w/p/.pi/{name}"), "");
            assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
        }
        for name in ["home/w/p/.agents/skills/a", "home/w/.agents/skills/a"] {
            let scratch = TempDir::create();
            scratch.write(name, "");
            assert_eq!(project(&scratch).surfaces().len(), 1, "{name}");
        }
        for name in
            ["home/w/p/.pi/other", "home/w/.pi/settings.json", "home/.agents/skills/a", "home/w/p/AGENTS.md"]
        {
            let scratch = TempDir::create();
            scratch.write(name, "");
            assert_eq!(project(&scratch).surfaces(), [""; 0].map(PathBuf::from), "{name}");
        }
    }

    #[test]
    fn the_nearest_decision_counts() {
        let scratch = TempDir::create();
        let (project, store) = (project(&scratch), store(&scratch));
        let found = || store.find(&project).unwrap().map(|entry| entry.is_trusted);
        assert_eq!(found(), None);
        let p = project.root().to_owned();
        let w = p.parent().unwrap().to_owned();
        let answers = project.answers(true);
        let store_answer = |number: usize| store.answer(&project, &answers[number], &project.look()).unwrap();
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
        let scratch = TempDir::create();
        let (project, store) = (project(&scratch), store(&scratch));
        for (text, error) in [
            ("{", "Failed to read trust store"),
            ("[]", "expected an object"),
            ("{\"/a\":1}", "value for \"/a\" must be true, false, or null"),
        ] {
            scratch.write("agent/trust.json", text);
            assert!(store.find(&project).unwrap_err().contains(error), "{text}");
            assert!(store.set(&[(project.root().to_owned(), Some(true))]).unwrap_err().contains(error));
            assert_eq!(fs::read_to_string(&store.path).unwrap(), text);
        }
        scratch.write("agent/trust.json", format!("\u{feff}{{\"{}\":null}}", project.root().display()));
        assert_eq!(store.find(&project), Ok(None));
    }

    #[test]
    fn what_a_project_runs_is_remembered() {
        let scratch = TempDir::create();
        let (project, store) = (project(&scratch), store(&scratch));
        scratch.write("home/w/p/.pi/settings.json", r#"{"theme":"a","shellPath":"/bin/sh"}"#);
        let changed = || store.has_changed(&project, &project.look()).unwrap();
        assert!(!changed(), "seen for the first time");
        scratch.write("home/w/p/.pi/settings.json", r#"{"theme":"b","shellPath":"/bin/sh"}"#);
        scratch.write("home/w/p/.pi/skills/a/SKILL.md", "text");
        assert!(!changed(), "nothing that runs");
        scratch.write("home/w/p/.pi/settings.json", r#"{"shellPath":"/tmp/evil"}"#);
        assert!(changed());
        store.remember(&project, &project.look()).unwrap();
        assert!(!changed());
        scratch.write("home/w/p/.pi/extensions/deep/x.js", "1");
        assert!(changed());
        store.remember(&project, &project.look()).unwrap();
        scratch.write("home/w/p/.pi/extensions/deep/x.js", "2");
        assert!(changed());
        fs::remove_dir_all(project.root().join(".pi")).unwrap();
        assert!(!changed(), "what is gone runs nothing");
    }

    #[test]
    fn a_project_that_ran_nothing_is_known_too() {
        let scratch = TempDir::create();
        let (project, store) = (project(&scratch), store(&scratch));
        assert!(!store.has_changed(&project, &project.look()).unwrap());
        scratch.write("home/w/p/.pi/extensions/x.js", "1");
        assert!(store.has_changed(&project, &project.look()).unwrap());
    }
    #[test]
    fn folders_whose_names_are_no_text_have_a_decision_each() {
        use std::ffi::OsStr;
        let scratch = TempDir::create();
        let store = store(&scratch);
        let project = |name: &[u8]| {
            let folder = scratch.path().join(OsStr::from_bytes(name));
            // Not every file system takes such a name.
            fs::create_dir(&folder).ok().map(|()| Project::new(&folder, None))
        };
        let (Some(one), Some(other)) = (project(b"a\xff"), project(b"a\xfe")) else {
            return;
        };
        let real = project("a\u{fffd}".as_bytes()).unwrap();
        store.answer(&one, &one.answers(false)[0], &one.look()).unwrap();
        let found = |project| store.find(project).unwrap().map(|entry| entry.is_trusted);
        assert_eq!([found(&one), found(&other), found(&real)], [Some(true), None, None]);
    }

    #[test]
    fn what_would_run_is_told_with_values_and_no_end_is_hidden() {
        let scratch = TempDir::create();
        let project = project(&scratch);
        assert_eq!(project.look(), Look::nothing());
        let long = format!("echo{}touch evil", "\n".repeat(500));
        let settings =
            serde_json::json!({"theme": "x", "shellPath": "/bin/zsh\u{1b}[8m", "shellCommandPrefix": long});
        scratch.write("home/w/p/.pi/settings.json", settings.to_string());
        scratch.write("home/w/p/.pi/extensions/x.js", "1");
        scratch.fifo("home/w/p/.pi/extensions/pipe");
        let runs = project.look().runs();
        assert_eq!(runs[0], "shellPath: \"/bin/zsh\\u001b[8m\"");
        assert!(runs[1].starts_with("shellCommandPrefix: \"echo\\n"), "{}", runs[1]);
        assert!(runs[1].ends_with("touch evil\" (1016 characters)"), "{}", runs[1]);
        assert_eq!(runs[2], ".pi/extensions: 2 files");
    }

    #[test]
    fn a_settings_file_that_is_a_pipe_is_an_error_and_no_wait() {
        let scratch = TempDir::create();
        let project = project(&scratch);
        fs::create_dir_all(project.root().join(".pi")).unwrap();
        scratch.fifo("home/w/p/.pi/settings.json");
        assert_eq!(project.look().settings, Err("could not be read: not a regular file".into()));
    }
}
