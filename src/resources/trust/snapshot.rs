//! What a project would run and tell the model at one moment, and what of it is new.

use super::cover::{self, Cover};
use super::{Project, name_of};
use crate::base::file;
use crate::base::hex::hex;
use crate::base::json::json;
use crate::base::order;
use crate::resources::settings::{self, Content};
use crate::resources::{text, text_file};
use ring::digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Settings that name programs to run.
const RUNNING_KEYS: [&str; 8] = [
    "shellPath",
    "shellCommandPrefix",
    "npmCommand",
    "externalEditor",
    "statusLine",
    "extensions",
    "packages",
    "hooks",
];

/// Maximum bytes of a file with MCP servers.
const SERVERS_MAX: u64 = 4 << 20;

/// Files with more bytes are known by size and times instead of their content.
const HASHED_MAX: u64 = 8 << 20;

/// Age from which the times of a file tell a later change: clocks of file systems tick in steps.
const SETTLED: Duration = Duration::from_secs(2);

/// Names shown in a list of changes.
const SHOWN: usize = 8;

/// The content of a file or a value, by name: a hash, and behind a space a stamp of the file if it has one.
pub(super) type Prints = BTreeMap<String, String>;

/// Settings, programs and texts of a project at one moment. The user decides on a snapshot, and its content is used.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Content of the project's settings file.
    pub settings: Content,
    /// Content of the project's `mcp.json`.
    pub servers: Content,
    /// What the project would run or tell the model.
    pub(super) prints: Prints,
    /// What the user trusted last, if known.
    pub(super) before: Option<Prints>,
    /// Settings that name programs, with their values.
    programs: Vec<(&'static str, Value)>,
    /// Folders and files of programs, with the number of files.
    groups: BTreeMap<String, usize>,
    /// Files that may run.
    running: BTreeSet<String>,
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let hashes = |snapshot: &Self| -> Vec<(String, String)> {
            snapshot.prints.iter().map(|(name, print)| (name.clone(), hash_of(print).to_owned())).collect()
        };
        (&self.settings, &self.servers, hashes(self)) == (&other.settings, &other.servers, hashes(other))
    }
}

impl Snapshot {
    /// Returns a snapshot without settings and programs.
    pub fn nothing() -> Self {
        Self {
            settings: Ok(None),
            servers: Ok(None),
            prints: Prints::new(),
            before: None,
            programs: Vec::new(),
            groups: BTreeMap::new(),
            running: BTreeSet::new(),
        }
    }

    /// Looks at a project. A file whose stamp is the one in `before` is not read.
    pub(super) fn take(project: &Project, before: Option<Prints>) -> Self {
        let servers = match file::read(&project.root().join(".pi/mcp.json"), SERVERS_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(text_file::failed(error)),
        };
        Self::with(project, settings::read_project(project.root()), servers, before)
    }

    /// Looks at the files that belong to these settings and servers.
    fn with(project: &Project, settings: Content, servers: Content, before: Option<Prints>) -> Self {
        let mut snapshot = Self { settings, servers, before, ..Self::nothing() };
        snapshot.add_settings();
        snapshot.add_servers();
        let commands: Vec<&Value> = snapshot.programs.iter().map(|(_, value)| value).collect();
        let Cover { files, groups, next } = cover::cover(project, &snapshot.settings, &commands);
        snapshot.groups = groups;
        let now = SystemTime::now();
        for (path, runs) in files {
            let name = name_of(path.strip_prefix(project.root()).unwrap_or(&path));
            let known = snapshot.before.as_ref().and_then(|before| before.get(&name));
            let print = print_of(&path, known.map(String::as_str), now).unwrap_or_default();
            if runs {
                snapshot.running.insert(name.clone());
            }
            snapshot.prints.insert(name, print);
        }
        if let Some(next) = next {
            // No name of a file in the project begins so.
            snapshot.prints.insert("/further files".into(), hash(name_of(&next).as_bytes()));
        }
        snapshot
    }

    fn add_settings(&mut self) {
        let Ok(Some(bytes)) = &self.settings else { return };
        let Ok(Value::Object(mut settings)) = serde_json::from_str(&text(bytes)) else { return };
        for key in RUNNING_KEYS {
            let value = settings.remove(key).filter(|value| !value.is_null());
            // A text of the status line without this sign runs nothing.
            let is_program = |value: &Value| key != "statusLine" || value.as_str().is_some_and(runs);
            if let Some(value) = value.filter(is_program) {
                self.prints.insert(format!(".pi/settings.json#{key}"), hash(value.to_string().as_bytes()));
                self.programs.push((key, value));
            }
        }
    }

    /// Adds the MCP servers that the project defines.
    fn add_servers(&mut self) {
        let Ok(Some(bytes)) = &self.servers else { return };
        let content: Value = serde_json::from_str(&text(bytes)).unwrap_or_default();
        for (name, server) in content.get("mcpServers").and_then(Value::as_object).into_iter().flatten() {
            let server = json!({name: server});
            self.prints.insert(format!(".pi/mcp.json#{name}"), hash(server.to_string().as_bytes()));
            // Without these it only changes a server of the user.
            if ["command", "url", "type"].iter().any(|key| server[name].get(key).is_some()) {
                self.programs.push(("mcpServers", server));
            }
        }
    }

    /// A hash of all that the user agrees to.
    pub fn state(&self) -> String {
        let of_file = |content: &Content| content.as_ref().ok().and_then(|bytes| bytes.as_deref().map(hash));
        let prints = order::map(self.prints.iter().map(|(name, print)| (name.as_str(), hash_of(print))));
        hash(json!([of_file(&self.settings), of_file(&self.servers), prints]).to_string().as_bytes())
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
        let programs = self.programs.iter();
        let programs = programs.map(|(key, value)| format!("{key}: {}", shortened(&value.to_string())));
        programs.chain(self.groups.iter().map(|(name, count)| format!("{name}: {count} files"))).collect()
    }

    /// Names what is new or changed since the user trusted the project; `None` if nothing is known of that.
    pub fn changes(&self) -> Option<Vec<String>> {
        self.before.as_ref().map(|before| changes(before, &self.prints))
    }

    /// Names what is new or changed since the snapshot `known`.
    pub fn changes_since(&self, known: &Self) -> Vec<String> {
        changes(&known.prints, &self.prints)
    }

    /// True if a file that was read has a stamp by which it need not be read again.
    pub(super) fn has_new_stamps(&self) -> bool {
        let is_new = |(name, print): (&String, &String)| {
            print.contains(' ') && self.before.as_ref().and_then(|before| before.get(name)) != Some(print)
        };
        self.prints.iter().any(is_new)
    }
}

/// What the user agreed to in a project.
#[derive(Clone, Debug)]
pub struct Consent {
    pub(super) project: Project,
    pub snapshot: Snapshot,
    pub(super) extent: Extent,
}

/// What a consent is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The project brought nothing to agree to.
    Nothing,
    Snapshot,
    /// Whatever the project may bring.
    All,
}

/// What another pi in the project may trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    Nothing,
    /// A project whose [`Snapshot::state`] is this.
    State(String),
    All,
}

impl Consent {
    pub fn new(project: Project, snapshot: Snapshot) -> Self {
        Self { project, snapshot, extent: Extent::Snapshot }
    }

    /// Consent to a project that brings nothing.
    pub fn to_nothing(project: Project) -> Self {
        Self { project, snapshot: Snapshot::nothing(), extent: Extent::Nothing }
    }

    /// Consent to a project whatever it may bring later.
    pub fn to_all(project: Project, snapshot: Snapshot) -> Self {
        Self { project, snapshot, extent: Extent::All }
    }

    /// What another pi may trust that is started in `folder`, the project's or that of a copy of it. The error names what
    /// has changed since the user agreed.
    pub fn pass_on(&self, folder: &Path, notes: &mut Vec<String>) -> Result<Passed, String> {
        match self.extent {
            Extent::Nothing => return Ok(Passed::Nothing),
            Extent::All => return Ok(Passed::All),
            Extent::Snapshot => {}
        }
        let known = &self.snapshot;
        let project = Project::new(folder, self.project.home());
        let now = Snapshot::take(&project, Some(known.prints.clone()));
        if now == *known {
            return Ok(Passed::State(now.state()));
        }
        if project.root() != self.project.root() {
            let why = "The copy has not all of the project's settings and programs (git may ignore them)";
            if known.programs.iter().any(|(key, _)| *key == "hooks") {
                return Err(format!("{why}, and the helper would work without the project's hooks"));
            }
            notes.push(format!("{why}: it works without them"));
            return Ok(Passed::Nothing);
        }
        let mut names = now.changes_since(known);
        let files = [
            (".pi/settings.json", now.settings != known.settings),
            (".pi/mcp.json", now.servers != known.servers),
        ];
        names.extend(files.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()));
        let gone = known.prints.keys().filter(|name| !now.prints.contains_key(*name));
        names.extend(gone.map(|name| format!("{name} (gone)")));
        Err(format!(
            "the project has changed since it was trusted: {}. /reload looks at it again",
            list(&names)
        ))
    }

    /// Looks once more at what may run of the project. The error names what has changed.
    pub fn check(&self) -> Result<(), String> {
        if self.extent == Extent::All {
            return Ok(());
        }
        let known = &self.snapshot;
        let mut now = Snapshot::with(
            &self.project,
            known.settings.clone(),
            known.servers.clone(),
            Some(known.prints.clone()),
        );
        now.prints.retain(|name, _| now.running.contains(name));
        match changes(&known.prints, &now.prints) {
            changes if changes.is_empty() => Ok(()),
            changes => Err(format!("the project has changed since it was trusted: {}", list(&changes))),
        }
    }
}

/// Names what is new or changed in `now`.
fn changes(known: &Prints, now: &Prints) -> Vec<String> {
    let change = |(name, print): (&String, &String)| match known.get(name) {
        None => Some(format!("{name} (new)")),
        Some(known) => (hash_of(known) != hash_of(print)).then(|| name.clone()),
    };
    now.iter().filter_map(change).collect()
}

/// Joins names, at most a screenful.
pub fn list(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(SHOWN).cloned().collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

/// True for a text of the status line that is a command.
fn runs(status_line: &str) -> bool {
    status_line.trim_start().starts_with('!')
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

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hash_of(print: &str) -> &str {
    print.split(' ').next().unwrap_or_default()
}

/// The hash and the stamp of a file. `known` is what was found earlier: its hash counts if its stamp does.
pub(super) fn print_of(path: &Path, known: Option<&str>, now: SystemTime) -> io::Result<String> {
    let about = fs::metadata(path)?;
    if let Some(stamp) = stamp(&about, now)
        && let Some(known) = known.filter(|known| known.split_once(' ').is_some_and(|(_, old)| old == stamp))
    {
        return Ok(known.to_owned());
    }
    let file = file::open(path)?;
    let about = file.metadata()?;
    let mut left = HASHED_MAX + 1;
    let mut context = digest::Context::new(&digest::SHA256);
    let mut part = [0; 16 << 10];
    loop {
        let read = (&file).take(left).read(&mut part)?;
        left -= read as u64;
        match part.get(..read) {
            // A file may have more than its size says.
            _ if left == 0 => return Ok(hash(times(&about).as_bytes())),
            Some(bytes) if read > 0 => context.update(bytes),
            _ => break,
        }
    }
    let hash = hex(context.finish().as_ref());
    Ok(match stamp(&about, now) {
        Some(stamp) => format!("{hash} {stamp}"),
        None => hash,
    })
}

/// Tells versions of a file apart. None while a change that follows might leave the same stamp.
fn stamp(about: &Metadata, now: SystemTime) -> Option<String> {
    let seconds = u64::try_from(about.ctime()).ok()?;
    let settled = UNIX_EPOCH.checked_add(Duration::from_secs(seconds + 1))?.checked_add(SETTLED)?;
    (about.is_file() && settled <= now).then(|| times(about))
}

/// Where a file lies on the disk, its size, and its times of change. A program cannot set the last one.
fn times(about: &Metadata) -> String {
    let mtime = (about.mtime(), about.mtime_nsec());
    let ctime = (about.ctime(), about.ctime_nsec());
    let (dev, ino, size) = (about.dev(), about.ino(), about.len());
    format!("{dev}.{ino}.{size}.{}.{}.{}.{}", mtime.0, mtime.1, ctime.0, ctime.1)
}
