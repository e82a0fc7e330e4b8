//! A loss of power at any moment: what was synced is there, what was not costs itself alone.
//!
//! What a log does to its folder is recorded between the points of [`failpoint`]. From the record follow the disks
//! that a power loss can leave behind: of the names in a folder the state at its last sync or any later one, of a
//! file's bytes what was synced, and of each later write all, nothing or a half, with zeros where the length got
//! to the disk before the bytes. Each disk is opened as the next start would open it.

use super::tests::texts;
use super::*;
use crate::base::failpoint;
use crate::base::testing::TempDir;
use crate::session::store::Store;
use crate::session::testing::{answer, user};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

const CWD: &str = "/work";

/// The texts of all messages, in the order in which scenes write them.
const ALL: [&str; 7] =
    ["old", "one asked", "one answered", "two asked", "two answered", "three asked", "three answered"];

/// States of the last writes that are not tried one by one, but by a sample of this size.
const SAMPLE: usize = 81;

/// The names in the session folder and the file that each leads to.
type Names = BTreeMap<String, u64>;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The session folder and this many folders above it were made.
    Made(usize),
    Names(Names),
    Write {
        file: u64,
        bytes: Vec<u8>,
    },
    /// The bytes of all files.
    Sync,
    /// The names in the session folder, or in the folder this many levels above it.
    SyncFolder(usize),
    /// The scene was told that these texts are on the disk.
    Safe(Vec<String>),
}

/// Records what is done to a folder.
struct Recorder {
    folder: PathBuf,
    folders: usize,
    names: Names,
    files: BTreeMap<u64, Vec<u8>>,
    steps: Vec<Step>,
    level: usize,
}

impl Recorder {
    fn new(folder: PathBuf) -> Self {
        let mut recorder = Self {
            folder,
            folders: 0,
            names: Names::new(),
            files: BTreeMap::new(),
            steps: Vec::new(),
            level: 0,
        };
        recorder.look();
        // What is there before the scene has been on the disk for long.
        recorder.steps.extend((0..=recorder.folders).map(Step::SyncFolder));
        recorder.steps.push(Step::Sync);
        recorder
    }

    /// The point `name` is about to be passed.
    fn passed(&mut self, name: &str) {
        self.look();
        self.level = match name {
            "session.folder" => {
                self.steps.push(Step::SyncFolder(self.level));
                self.level + 1
            }
            "session.sync" => {
                self.steps.push(Step::Sync);
                0
            }
            _ => 0,
        };
    }

    /// Records what has changed since the last look.
    fn look(&mut self) {
        let missing = self.folder.ancestors().take_while(|folder| !folder.exists()).count();
        if missing > 0 {
            self.folders = missing;
            return;
        }
        let made = std::mem::take(&mut self.folders);
        if made > 0 {
            self.steps.push(Step::Made(made));
        }
        let mut names = Names::new();
        for entry in fs::read_dir(&self.folder).unwrap().flatten() {
            let file = entry.metadata().unwrap().ino();
            names.insert(entry.file_name().into_string().unwrap(), file);
            let bytes = fs::read(entry.path()).unwrap();
            let old = self.files.entry(file).or_default();
            let new = bytes.strip_prefix(&old[..]).expect("a session file only grows").to_vec();
            if !new.is_empty() {
                self.steps.push(Step::Write { file, bytes: new });
            }
            *old = bytes;
        }
        if names != self.names {
            self.steps.push(Step::Names(names.clone()));
            self.names = names;
        }
    }
}

/// What a power loss can leave of a disk, after some of the steps.
#[derive(Default)]
struct Disk {
    /// Number of new folders whose names may not be on the disk: all may go, with what is in them.
    unsure_folders: usize,
    /// The names at the last sync, and after each later change.
    names: Vec<Names>,
    synced: BTreeMap<u64, Vec<u8>>,
    unsynced: BTreeMap<u64, Vec<Vec<u8>>>,
    safe: Vec<String>,
}

impl Disk {
    fn take(&mut self, step: &Step) {
        match step {
            Step::Made(folders) => self.unsure_folders = *folders,
            Step::Names(names) => self.names.push(names.clone()),
            Step::Write { file, bytes } => {
                self.unsynced.entry(*file).or_default().push(bytes.clone());
            }
            Step::Sync => {
                for (file, writes) in std::mem::take(&mut self.unsynced) {
                    self.synced.entry(file).or_default().extend(writes.concat());
                }
            }
            Step::SyncFolder(0) => drop(self.names.drain(..self.names.len().saturating_sub(1))),
            // The topmost of the new folders is named in the first that was there before.
            Step::SyncFolder(level) if *level == self.unsure_folders => self.unsure_folders = 0,
            Step::SyncFolder(_) => {}
            Step::Safe(texts) => self.safe.clone_from(texts),
        }
    }

    /// Every folder that can be found after a power loss: the bytes of each name.
    fn folders(&self) -> Vec<BTreeMap<String, Vec<u8>>> {
        let none = (self.unsure_folders > 0).then(BTreeMap::new);
        let mut all: Vec<_> = none.into_iter().collect();
        for names in &self.names {
            let files: HashSet<u64> = names.values().copied().collect();
            let mut folders = vec![BTreeMap::new()];
            for file in files {
                let contents = self.contents(file);
                let with = |folder: &BTreeMap<u64, Vec<u8>>| {
                    let with = |bytes: &Vec<u8>| {
                        let mut folder = folder.clone();
                        folder.insert(file, bytes.clone());
                        folder
                    };
                    contents.iter().map(with).collect::<Vec<_>>()
                };
                folders = folders.iter().flat_map(with).collect();
            }
            let named = |folder: BTreeMap<u64, Vec<u8>>| {
                names.iter().map(|(name, file)| (name.clone(), folder[file].clone())).collect()
            };
            all.extend(folders.into_iter().map(named));
        }
        all
    }

    /// What can be found in a file.
    fn contents(&self, file: u64) -> HashSet<Vec<u8>> {
        let synced = self.synced.get(&file).cloned().unwrap_or_default();
        let writes = self.unsynced.get(&file).map_or(&[][..], Vec::as_slice);
        let count = 3usize.pow(u32::try_from(writes.len()).unwrap());
        let mut found = HashSet::from([synced.clone()]);
        for number in 0..count.min(SAMPLE) {
            // Spread over all where there are too many.
            let mut fates = number * (count / count.min(SAMPLE));
            let mut bytes = synced.clone();
            for write in writes {
                let kept = [write.len(), 0, write.len() / 2][fates % 3];
                fates /= 3;
                let start = bytes.len();
                bytes.extend_from_slice(&write[..kept]);
                found.insert(bytes.clone());
                bytes.resize(start + write.len(), 0);
                found.insert(bytes.clone());
            }
        }
        found
    }
}

/// Opens the disk as the next start would, and goes on there.
fn check(folder: &BTreeMap<String, Vec<u8>>, safe: &[String]) {
    let scratch = TempDir::create();
    let store = Store::new(scratch.path(), None, SyncMode::Turn);
    let cwd = Path::new(CWD);
    let at = store.folder(cwd);
    for (name, bytes) in folder {
        scratch.write(at.join(name).to_str().unwrap(), bytes);
    }
    let found = store.list(cwd).into_iter().chain(store.drafts(cwd)).map(|stored| stored.path);
    let assert_written = |texts: &[String]| {
        let mut rest = ALL.iter();
        assert!(texts.iter().all(|text| rest.any(|there| there == text)), "{texts:?} was not written");
    };
    let Some(path) = found.into_iter().next() else {
        assert!(safe.is_empty(), "{safe:?} is nowhere in {folder:?}");
        // Asked for by its name, it is an error, a new session, or a copy that has not got its name.
        for name in folder.keys() {
            match Log::open(&at.join(name), cwd, SyncMode::Turn) {
                Ok(mut log) => assert_written(&texts(&mut log)),
                Err(error) => assert!(matches!(error, SessionError::NotASession { .. }), "{error}"),
            }
        }
        return;
    };
    let mut log = store.open(&path, cwd).unwrap();
    let is_lost = |line: &&[u8]| !line.is_empty() && serde_json::from_slice::<Value>(line).is_err();
    let bytes = fs::read(&path).unwrap();
    let lost = bytes.split(|&byte| byte == b'\n').filter(is_lost).count();
    assert_eq!(lost > 0, !log.take_notices().is_empty(), "{lost} lines of {path:?} are lost");
    let before = texts(&mut log);
    let mut rest = before.iter();
    assert!(safe.iter().all(|text| rest.any(|there| there == text)), "{safe:?} is not in {before:?}");
    assert_written(&before);

    log.append_message(&user("after")).unwrap();
    log.append_message(&answer("well")).unwrap();
    let path = log.path().unwrap().to_owned();
    log.finish().unwrap();
    let mut log = store.open(&path, cwd).unwrap();
    let after = texts(&mut log);
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..], ["after", "well"]);
}

/// Runs `scene`, and checks what a power loss at any moment would leave. The scene passes the log to its second
/// argument whenever all of it was promised to be on the disk.
fn every_loss(old: Option<&str>, scene: impl FnOnce(&Store, &mut dyn FnMut(&mut Log))) {
    let scratch = TempDir::create();
    let store = Store::new(&scratch.path().join("agent"), None, SyncMode::Turn);
    let at = store.folder(Path::new(CWD));
    if let Some(old) = old {
        scratch.write(at.join("old.jsonl").to_str().unwrap(), old);
    }
    let recorder = Rc::new(RefCell::new(Recorder::new(at)));
    let mut safe = |log: &mut Log| {
        let mut recorder = recorder.borrow_mut();
        recorder.look();
        recorder.steps.push(Step::Safe(texts(log)));
    };
    let watch = recorder.clone();
    failpoint::watched(move |name| watch.borrow_mut().passed(name), || scene(&store, &mut safe));
    recorder.borrow_mut().look();

    let (mut disk, mut seen) = (Disk { names: vec![Names::new()], ..Disk::default() }, HashSet::new());
    for step in &recorder.borrow().steps {
        disk.take(step);
        for folder in disk.folders() {
            if seen.insert((disk.safe.len(), folder.clone())) {
                check(&folder, &disk.safe);
            }
        }
    }
    assert!(seen.len() > 20, "{} states", seen.len());
}

/// Two turns of a conversation. `said` is called after each message, `ended` after each turn.
fn two_turns(log: &mut Log, said: &mut dyn FnMut(&mut Log), ended: &mut dyn FnMut(&mut Log)) {
    log.append_model_change("faux", "echo").unwrap();
    for turn in ["one", "two"] {
        log.append_message(&user(&format!("{turn} asked"))).unwrap();
        said(log);
        log.append_message(&answer(&format!("{turn} answered"))).unwrap();
        said(log);
        log.append_session_info(turn).unwrap();
        log.turn_ended();
        ended(log);
    }
}

#[test]
fn turns_that_have_ended_outlive_a_power_loss() {
    every_loss(None, |store, safe| {
        let mut log = store.create(Path::new(CWD), None).unwrap();
        two_turns(&mut log, &mut |_| (), safe);
        log.append_message(&user("three asked")).unwrap();
    });
}

#[test]
fn with_a_sync_after_each_entry_every_message_outlives_a_power_loss() {
    every_loss(None, |store, safe| {
        let at = store.folder(Path::new(CWD));
        let mut log = Log::create(&at, Path::new(CWD), None, SyncMode::Always).unwrap();
        two_turns(&mut log, safe, &mut |_| ());
    });
}

#[test]
fn a_session_in_use_outlives_a_power_loss() {
    let old = [
        r#"{"type":"session","version":3,"id":"old","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/work"}"#,
        r#"{"type":"message","id":"u1","parentId":null,"timestamp":"t","message":{"role":"user","content":"old","timestamp":1}}"#,
        "",
    ];
    every_loss(Some(&old.join("\n")), |store, safe| {
        let path = store.folder(Path::new(CWD)).join("old.jsonl");
        let mut log = store.open(&path, Path::new(CWD)).unwrap();
        safe(&mut log);
        two_turns(&mut log, &mut |_| (), safe);
    });
}

#[test]
fn an_older_file_and_its_new_form_outlive_a_power_loss() {
    let old = [
        r#"{"type":"session","id":"old","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/work"}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"old","timestamp":1}}"#,
        "",
    ];
    every_loss(Some(&old.join("\n")), |store, safe| {
        let path = store.folder(Path::new(CWD)).join("old.jsonl");
        let mut log = store.open(&path, Path::new(CWD)).unwrap();
        safe(&mut log);
        two_turns(&mut log, &mut |_| (), safe);
    });
}

#[test]
fn a_fork_outlives_a_power_loss_with_its_first_turn() {
    every_loss(None, |store, safe| {
        let scratch = TempDir::create();
        let other = Store::new(scratch.path(), None, SyncMode::Never);
        let mut source = other.create(Path::new("/other"), None).unwrap();
        two_turns(&mut source, &mut |_| (), &mut |_| ());
        let source = source.path().unwrap().to_owned();
        let mut log = store.fork_from(&source, Path::new(CWD), None).unwrap();
        log.append_message(&user("three asked")).unwrap();
        log.append_message(&answer("three answered")).unwrap();
        log.turn_ended();
        safe(&mut log);
    });
}
