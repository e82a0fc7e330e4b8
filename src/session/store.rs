//! The folders of sessions, and finding a session in them.
//!
//! By default each project folder has a session folder, such as `sessions/--home-me-project--` in the agent
//! folder. A session folder that the user chooses holds sessions of all projects, told apart by their
//! headers.

use super::entry::{self, Header};
use super::info::Info;
use super::log::fork;
use super::{catalog, file, id};
use crate::base::order::Order;
use crate::session::error::SessionError;
use crate::session::log::{Log, SyncMode};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Drafts older than this are not offered.
const DRAFT_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[derive(Clone, Debug)]
pub struct Store {
    /// Contains a session folder for each project.
    sessions: PathBuf,
    /// A session folder that the user chose instead.
    named: Option<PathBuf>,
    /// The index of the session list: see [`catalog`].
    index: PathBuf,
    sync: SyncMode,
}

/// A stored session: path, header and modification time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub path: PathBuf,
    pub header: Header,
    pub modified: SystemTime,
}

/// The session that a user's word refers to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The word is a path, which may not exist.
    Path(PathBuf),
    /// A session of the current project.
    Here(Stored),
    /// A session of another project. It should be forked, and opened only after asking.
    Elsewhere(Stored),
}

impl Store {
    /// Makes a store. `named` is a session folder that the user chose.
    pub fn new(agent_folder: &Path, named: Option<PathBuf>, sync: SyncMode) -> Self {
        Self {
            sessions: agent_folder.join("sessions"),
            index: agent_folder.join("cache/sessions.jsonl"),
            named,
            sync,
        }
    }

    /// Returns the session folder that the user chose.
    pub fn named(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// Returns the session folder for `cwd`.
    pub fn folder(&self, cwd: &Path) -> PathBuf {
        match &self.named {
            Some(folder) => folder.clone(),
            None => self.sessions.join(folder_name(cwd)),
        }
    }

    /// True if `path` is in a session folder of this store. A chosen folder below the current folder does not
    /// count: it may have come with the project.
    pub fn holds(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else {
            return false;
        };
        let here = std::env::current_dir().ok();
        let named = self.named.as_ref().and_then(|folder| folder.canonicalize().ok());
        let named = named.filter(|folder| here.is_some_and(|here| !folder.starts_with(here)));
        let sessions = self.sessions.canonicalize().ok();
        sessions.into_iter().chain(named).any(|folder| path.starts_with(folder))
    }

    /// Makes a session of `cwd`, with the given id or a new one.
    pub fn create(&self, cwd: &Path, id: Option<&str>) -> Result<Log, SessionError> {
        Log::create(&self.folder(cwd), cwd, id, self.sync)
    }

    /// Makes a session of `cwd` whose header names `parent` as its origin.
    pub fn create_child(
        &self,
        cwd: &Path,
        id: Option<&str>,
        parent: Option<String>,
    ) -> Result<Log, SessionError> {
        Log::create_child(&self.folder(cwd), cwd, id, parent, self.sync)
    }

    pub fn open(&self, path: &Path, cwd: &Path) -> Result<Log, SessionError> {
        Log::open(path, cwd, self.sync)
    }

    /// Makes a session of `cwd` with all entries of the session at `source`, which may be in use.
    pub fn fork_from(&self, source: &Path, cwd: &Path, id: Option<&str>) -> Result<Log, SessionError> {
        if let Some(id) = id
            && self.list(cwd).iter().any(|stored| stored.header.id == id)
        {
            return Err(SessionError::IdTaken { id: id.to_owned() });
        }
        let mut log = match Log::open_to_read(&fork::source_of(source)) {
            Ok(log) => log,
            Err(SessionError::NotASession { path }) => {
                return Err(SessionError::EmptySource { path });
            }
            Err(SessionError::Io { source, path, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Err(SessionError::EmptySource { path });
            }
            Err(error) => return Err(error),
        };
        let mut copy = log.copy_into(&self.folder(cwd), cwd, id, self.sync)?;
        copy.add_notices(log.take_notices());
        Ok(copy)
    }

    /// Opens the session of `cwd` with exactly this id; `None` if there is none.
    pub fn open_id(&self, cwd: &Path, id: &str) -> Result<Option<Log>, SessionError> {
        if !id::is_valid(id) {
            return Err(SessionError::InvalidId { id: id.to_owned() });
        }
        let stored = self.list(cwd).into_iter().find(|stored| stored.header.id == id);
        stored.map(|stored| self.open(&stored.path, cwd)).transpose()
    }

    /// Finds a session by a path (with a slash, or ending in `.jsonl`), an id, or the beginning of an id.
    /// Sessions of `cwd` come first. The caller has expanded `~`.
    pub fn find(&self, cwd: &Path, wanted: &str) -> Result<Found, SessionError> {
        if wanted.contains(['/', '\\']) || wanted.ends_with(".jsonl") {
            return Ok(Found::Path(cwd.join(wanted)));
        }
        if let Some(stored) = choose(self.list(cwd), wanted)? {
            return Ok(Found::Here(stored));
        }
        match choose(self.list_all(), wanted)? {
            Some(stored) => Ok(Found::Elsewhere(stored)),
            None => Err(SessionError::NotFound { wanted: wanted.to_owned() }),
        }
    }

    /// Returns the session folder for `cwd`, and the error, if it exists and cannot be read.
    pub fn unreadable(&self, cwd: &Path) -> Option<(PathBuf, io::Error)> {
        let folder = self.folder(cwd);
        let error = folder.read_dir().err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
        Some((folder, error))
    }

    /// Returns the sessions of `cwd`, most recently written first.
    pub fn list(&self, cwd: &Path) -> Vec<Stored> {
        let mut sessions = list_folder(&self.folder(cwd));
        sessions.retain(|stored| self.is_of(&stored.header.cwd, cwd));
        sort(&mut sessions);
        sessions
    }

    /// Returns the sessions of all projects, most recently written first.
    pub fn list_all(&self) -> Vec<Stored> {
        let mut sessions = match &self.named {
            Some(folder) => list_folder(folder),
            None => self.folders().iter().flat_map(|at| list_folder(at)).collect(),
        };
        sort(&mut sessions);
        sessions
    }

    /// Returns rows for the sessions of `cwd`, most recently active first.
    pub fn infos(&self, cwd: &Path) -> Vec<Info> {
        self.infos_in_parts(Some(cwd), &mut |_| true)
    }

    /// Returns rows for the sessions of all projects, most recently active first.
    pub fn infos_all(&self) -> Vec<Info> {
        self.infos_in_parts(None, &mut |_| true)
    }

    /// Returns rows for the sessions of `cwd`, or of all projects. `tell` receives rows while files are read:
    /// see [`catalog::list_in_parts`].
    pub fn infos_in_parts(&self, cwd: Option<&Path>, tell: &mut dyn FnMut(Vec<Info>) -> bool) -> Vec<Info> {
        let folders = match cwd {
            Some(cwd) => vec![self.folder(cwd)],
            None => self.folders(),
        };
        let is_of_it = |info: &Info| cwd.is_none_or(|cwd| self.is_of(&info.cwd, cwd));
        let files: Vec<PathBuf> = folders.iter().flat_map(|at| session_files(at)).collect();
        let mut tell = |mut infos: Vec<Info>| {
            infos.retain(is_of_it);
            tell(infos)
        };
        let mut infos = catalog::list_in_parts(&self.index, &files, &mut tell);
        infos.retain(is_of_it);
        infos
    }

    /// Returns the row for one session.
    pub fn info(&self, path: &Path) -> Option<Info> {
        catalog::list(&self.index, &[path.to_owned()]).pop()
    }

    /// True if a session with the working folder `home`, stored in the folder for `cwd`, belongs to `cwd`. A
    /// chosen folder has sessions of several projects, and the folder names of two projects may be equal:
    /// `/a/b` and `/a-b`. A session that would have another folder name was put here by hand, and belongs to
    /// `cwd`.
    fn is_of(&self, home: &str, cwd: &Path) -> bool {
        let is_foreign = || home.is_empty() || folder_name(Path::new(home)) != folder_name(cwd);
        same_folder(Path::new(home), cwd) || (self.named.is_none() && is_foreign())
    }

    /// Returns all folders with sessions.
    pub fn folders(&self) -> Vec<PathBuf> {
        match &self.named {
            Some(folder) => vec![folder.clone()],
            None => read_dir(&self.sessions).filter(|path| path.is_dir()).collect(),
        }
    }

    /// Returns drafts of `cwd` whose process is gone: a prompt was stored, but no answer. Each can be opened
    /// by its path. Drafts older than 30 days are omitted.
    pub fn drafts(&self, cwd: &Path) -> Vec<Stored> {
        let mut drafts: Vec<Stored> = read_dir(&self.folder(cwd))
            .filter(|path| path.to_string_lossy().ends_with(".jsonl.draft"))
            // The process was killed between linking the final name and removing the draft's name.
            .filter(|path| !path.with_extension("").exists() && !file::is_held(path))
            .filter_map(|path| stored(&path))
            .filter(|stored| same_folder(Path::new(&stored.header.cwd), cwd))
            .filter(|stored| !stored.modified.elapsed().is_ok_and(|age| age > DRAFT_AGE_MAX))
            .collect();
        sort(&mut drafts);
        drafts
    }
}

/// Returns the name of a project's session folder, such as `--home-me-project--`.
pub fn folder_name(cwd: &Path) -> String {
    let cwd = cwd.to_string_lossy();
    let path = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    format!("--{}--", path.replace(['/', '\\', ':'], "-"))
}

fn choose(sessions: Vec<Stored>, wanted: &str) -> Result<Option<Stored>, SessionError> {
    if let Some(exact) = sessions.iter().find(|stored| stored.header.id == wanted) {
        return Ok(Some(exact.clone()));
    }
    let begins = |stored: &Stored| !wanted.is_empty() && stored.header.id.starts_with(wanted);
    let mut found: Vec<Stored> = sessions.into_iter().filter(begins).collect();
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(SessionError::Ambiguous {
            wanted: wanted.to_owned(),
            found: found.into_iter().map(|stored| stored.path).collect(),
        }),
    }
}

fn sort(sessions: &mut [Stored]) {
    sessions.order_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
}

fn list_folder(folder: &Path) -> Vec<Stored> {
    let files = session_files(folder);
    files.iter().filter_map(|path| stored(path)).collect()
}

fn session_files(folder: &Path) -> Vec<PathBuf> {
    let is_session = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    read_dir(folder).filter(is_session).collect()
}

/// Returns the paths in a folder; none if it cannot be read.
pub(super) fn read_dir(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Reads a file's header; `None` if it is not a session.
fn stored(path: &Path) -> Option<Stored> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(Stored {
        header: read_header(path)?,
        path: path.to_owned(),
        modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    })
}

/// Returns the working folder of the session at `path`; `None` if its header names none.
pub fn home(path: &Path) -> Option<PathBuf> {
    let header = read_header(path)?;
    (!header.cwd.is_empty()).then(|| PathBuf::from(header.cwd))
}

/// Reads the header from the first megabyte of a file.
pub(super) fn read_header(path: &Path) -> Option<Header> {
    const LONGEST: u64 = 1 << 20;
    let mut file = BufReader::with_capacity(4096, File::open(path).ok()?.take(LONGEST));
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
        if let Ok(header) = entry::read::<Header>(text) {
            return Some(header);
        }
        // Blank and damaged lines may precede the header, other JSON values not.
        if entry::read::<serde::de::IgnoredAny>(text).is_ok() {
            return None;
        }
    }
}

/// True if both paths are equal, or lead to one folder on disk.
pub(super) fn same_folder(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::message::AgentMessage;
    use crate::base::testing::TempDir;
    use crate::session::testing::{answer, user};

    const CWD: &str = "/home/me/pro:ject";

    fn write(store: &Store, cwd: &str, id: &str, age: u64) -> PathBuf {
        let mut log = store.create(Path::new(cwd), Some(id)).unwrap();
        log.append_message(&user(id)).unwrap();
        log.append_message(&answer("x")).unwrap();
        let path = log.path().unwrap().to_owned();
        let file = File::options().append(true).open(&path).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age);
        file.set_modified(time).unwrap();
        path
    }

    fn ids(sessions: &[Stored]) -> Vec<&str> {
        sessions.iter().map(|stored| stored.header.id.as_str()).collect()
    }

    fn first_text(mut log: Log) -> AgentMessage {
        log.context().messages.swap_remove(0).message
    }

    #[test]
    fn each_project_has_its_folder() {
        let rows = [
            ("/", "----"),
            ("/a/b", "--a-b--"),
            (CWD, "--home-me-pro-ject--"),
            ("C:\\x", "--C--x--"),
            ("/ä /b", "--ä -b--"),
        ];
        for (cwd, name) in rows {
            assert_eq!(folder_name(Path::new(cwd)), name);
        }
        let scratch = TempDir::create();
        let store = Store::new(scratch.path(), None, SyncMode::Never);
        write(&store, CWD, "one", 0);
        let files = scratch.files();
        let name = files[0].strip_prefix("sessions/--home-me-pro-ject--/").unwrap();
        assert_eq!(name.len(), "2024-12-03T14-00-00-000Z_one.jsonl".len());
        assert!(name.ends_with("Z_one.jsonl"), "{name}");
    }

    #[test]
    fn sessions_are_found_by_path_id_and_beginning() {
        let scratch = TempDir::create();
        for named in [None, Some(scratch.path().join("named"))] {
            let store = Store::new(scratch.path(), named, SyncMode::Never);
            let cwd = Path::new(CWD);
            write(&store, CWD, "abc1", 2);
            write(&store, CWD, "abc", 1);
            write(&store, "/other", "abd", 0);
            write(&store, "/other", "xyz", 3);
            std::fs::write(store.folder(cwd).join("junk.jsonl"), "junk").unwrap();
            std::fs::create_dir_all(store.folder(cwd).join("folder.jsonl")).unwrap();
            assert_eq!(ids(&store.list(cwd)), ["abc", "abc1"]);
            assert_eq!(ids(&store.list_all()), ["abd", "abc", "abc1", "xyz"]);

            let find = |wanted: &str| match store.find(cwd, wanted) {
                Ok(Found::Path(path)) => path.display().to_string(),
                Ok(Found::Here(stored)) => format!("here {}", stored.header.id),
                Ok(Found::Elsewhere(stored)) => format!("elsewhere {}", stored.header.id),
                Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            };
            assert_eq!(find("abc"), "here abc");
            assert_eq!(find("abc1"), "here abc1");
            assert_eq!(find("abd"), "elsewhere abd");
            assert_eq!(find("x"), "elsewhere xyz");
            assert_eq!(find("ab"), "Several sessions match 'ab'; give more of the id:");
            assert_eq!(find("nope"), "No session found matching 'nope'");
            assert_eq!(find(""), "No session found matching ''");
            assert_eq!(find("a/b"), format!("{CWD}/a/b"));
            assert_eq!(find("b.jsonl"), format!("{CWD}/b.jsonl"));
            assert_eq!(find("/b.jsonl"), "/b.jsonl");

            assert!(store.open_id(cwd, "abc1").unwrap().is_some());
            assert!(store.open_id(cwd, "ab").unwrap().is_none());
            assert!(store.open_id(cwd, "abd").unwrap().is_none());
            assert!(store.open_id(cwd, "../x").is_err());
        }
    }

    #[test]
    fn a_project_whose_folder_has_the_same_name_is_another_one() {
        let scratch = TempDir::create();
        let store = Store::new(scratch.path(), None, SyncMode::Never);
        assert_eq!(store.folder(Path::new("/a/b")), store.folder(Path::new("/a-b")));
        write(&store, "/a/b", "theirs", 1);
        write(&store, "/a-b", "ours", 5);
        let ids = |cwd: &str| {
            let listed = store.list(Path::new(cwd)).into_iter().map(|stored| stored.header.id);
            let told = store.infos(Path::new(cwd)).into_iter().map(|info| info.id);
            (listed.collect::<Vec<_>>(), told.collect::<Vec<_>>())
        };
        let only = |id: &str| (vec![id.to_owned()], vec![id.to_owned()]);
        assert_eq!(ids("/a-b"), only("ours"));
        assert_eq!(ids("/a/b"), only("theirs"));
        // Put there by hand, after the project moved.
        let moved = write(&store, "/before", "moved", 0);
        std::fs::rename(&moved, store.folder(Path::new("/a-b")).join("moved.jsonl")).unwrap();
        assert_eq!(ids("/a-b").0, ["moved", "ours"]);
    }

    #[test]
    fn drafts_of_dead_processes_are_offered() {
        let scratch = TempDir::create();
        let store = Store::new(scratch.path(), None, SyncMode::Never);
        let cwd = Path::new(CWD);
        let mut log = store.create(cwd, Some("draft")).unwrap();
        log.append_message(&user("typed")).unwrap();
        assert_eq!(store.drafts(cwd), []);
        assert_eq!(store.list(cwd), []);
        drop(log);
        let drafts = store.drafts(cwd);
        assert_eq!(ids(&drafts), ["draft"]);
        assert_eq!(store.drafts(Path::new("/other")), []);
        let days = |days: u64| {
            let file = File::options().append(true).open(&drafts[0].path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
            store.drafts(cwd).len()
        };
        assert_eq!((days(31), days(29)), (0, 1));

        let mut log = store.open(&drafts[0].path, cwd).unwrap();
        log.append_message(&answer("answered")).unwrap();
        assert_eq!(store.drafts(cwd), []);
        assert_eq!(ids(&store.list(cwd)), ["draft"]);
        assert_eq!(first_text(log), user("typed"));
    }

    #[test]
    fn headers_are_found_behind_what_is_not_one() {
        let scratch = TempDir::create();
        let header = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#;
        let long = format!(r#"{{"type":"session","id":"x","cwd":"{}"}}"#, "x".repeat(100_000));
        let endless = format!(r#"{{"type":"session","id":"x","cwd":"{}"}}"#, "x".repeat(2 << 20));
        let rows = [
            (header.to_owned(), true),
            (format!("{header}\n{{}}\n"), true),
            (format!("\n \nbroken\n\u{feff}{header}"), true),
            (format!("\u{feff}{header}\r\n"), true),
            (long, true),
            (endless, false),
            (format!("{{}}\n{header}"), false),
            (String::new(), false),
        ];
        for (text, found) in rows {
            let path = scratch.write("x.jsonl", &text);
            assert_eq!(read_header(&path).is_some(), found, "{text:.80}");
        }
    }
}
