//! Jobs that outlive pi: each session that keeps jobs has them run by a process of their own, the keeper.
//!
//! ```text
//! pi ──a line of JSON a connection──> keeper ──> jobs
//! ```
//! A keeper listens on a socket in the folder of the kept jobs of a working folder, and ends when it has neither a
//! running job nor a connected pi. A request is the argument object of the tool `job`; besides, `start` takes a
//! `command` and has the id of the new job as its text, and `attach` holds its connection open for as long as that pi
//! lives. The answer is one line, `{"text", "jobs"}` or `{"error"}`.
//!
//! Not here: the keeper (`mode::jobs`), and how it is started (`runtime::job::kept`).

use super::job::first_line;
use crate::base::cancel::CancelToken;
use crate::base::hex::hex;
use crate::base::json::{self, json};
use ring::digest;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The beginning of the ids of kept jobs.
pub const PREFIX: char = 'k';
/// The extension of a file that says how a job ended while no pi was there.
pub const ENDED: &str = "ended";
/// The extension of a keeper's socket.
pub const SOCKET: &str = "sock";
/// Maximum bytes of a request or an answer.
pub const LINE_MAX: u64 = 4 << 20;

/// The folder of the kept jobs of a working folder.
pub fn folder(agent_dir: &Path, cwd: &Path) -> PathBuf {
    // A shell may have come to the folder by another path.
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let hash = hex(digest::digest(&digest::SHA256, cwd.as_os_str().as_bytes()).as_ref());
    agent_dir.join("jobs").join(hash.get(..16).unwrap_or_default())
}

/// The kept jobs that a session knows of.
#[derive(Default)]
pub struct Kept {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// New jobs are kept.
    is_on: bool,
    keepers: Vec<Arc<Keeper>>,
}

/// A process that runs kept jobs.
pub struct Keeper {
    socket: PathBuf,
    /// Keeps the process alive while it has no job.
    _attached: UnixStream,
    /// The process, if this one has started it.
    process: Mutex<Option<Child>>,
    /// Calls that wait for a job, or have stopped it, by its id: they tell of its end.
    followers: Mutex<BTreeMap<String, usize>>,
}

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_on(&self) -> bool {
        self.state().is_on
    }

    /// Finds the keepers of earlier sessions of the folder. Returns what became of their jobs, a text each.
    pub fn attach(&self, folder: &Path) -> Vec<String> {
        let mut told = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.extension().and_then(|name| name.to_str()) {
                Some(SOCKET) => match Keeper::attach(&path, None) {
                    Ok(keeper) => self.state().keepers.push(Arc::new(keeper)),
                    // Its process was killed.
                    Err(_) => drop(fs::remove_file(&path)),
                },
                Some(ENDED) => {
                    told.extend(fs::read_to_string(&path));
                    let _ = fs::remove_file(&path);
                }
                _ => {}
            }
        }
        let running = self.running();
        if !running.is_empty() {
            told.push(format!("Jobs of an earlier pi go on here: {}", running.join(", ")));
        }
        told
    }

    /// The running jobs, with their commands.
    pub fn running(&self) -> Vec<String> {
        let about = |job: &Value| {
            let text = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
            format!("{} ({})", text("id"), first_line(&text("command")))
        };
        self.all().iter().filter(|job| job["running"] == true).map(about).collect()
    }

    /// All kept jobs, in the form for other programs.
    pub fn all(&self) -> Vec<Value> {
        let keepers = self.state().keepers.clone();
        keepers.iter().flat_map(|keeper| keeper.jobs()).collect()
    }

    /// The states of all jobs, a line each.
    pub fn list(&self) -> Vec<String> {
        let keepers = self.state().keepers.clone();
        let ask = |keeper: &Arc<Keeper>| keeper.ask(&json!({"op": "list"}), &CancelToken::new()).ok();
        let answers = keepers.iter().filter_map(ask);
        let rows = answers.filter(|answer| answer["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty()));
        rows.filter_map(|answer| answer["text"].as_str().map(str::to_owned)).collect()
    }

    /// Does what `arguments` ask of one job.
    pub fn act(
        &self,
        id: &str,
        arguments: &Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<String, String> {
        let keepers = self.state().keepers.clone();
        let has = |keeper: &&Arc<Keeper>| keeper.jobs().iter().any(|job| job["id"] == id);
        let keeper = keepers.iter().find(has).ok_or_else(|| format!("There is no job {id:?}"))?;
        keeper.act(id, arguments, cancel)
    }

    /// Keeps new jobs, or does not.
    pub fn switch(&self, is_on: bool) {
        self.state().is_on = is_on;
    }

    /// Lets the keepers go: those without a job end.
    pub fn detach(&self) {
        self.state().keepers.clear();
    }

    /// The keeper of this process, which is started with its first job.
    pub fn own(&self, start: impl FnOnce() -> io::Result<Keeper>) -> io::Result<Arc<Keeper>> {
        let mut state = self.state();
        if let Some(own) = state.keepers.iter().find(|keeper| keeper.is_running()) {
            return Ok(own.clone());
        }
        let keeper = Arc::new(start()?);
        state.keepers.push(keeper.clone());
        Ok(keeper)
    }
}

impl Keeper {
    pub fn attach(socket: &Path, process: Option<Child>) -> io::Result<Self> {
        let mut attached = UnixStream::connect(socket)?;
        attached.write_all(b"{\"op\":\"attach\"}\n")?;
        Ok(Self {
            socket: socket.to_owned(),
            _attached: attached,
            process: Mutex::new(process),
            followers: Mutex::default(),
        })
    }

    /// True if this process has started the keeper, and it runs.
    fn is_running(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    pub fn jobs(&self) -> Vec<Value> {
        let answer = self.ask(&json!({"op": "list"}), &CancelToken::new());
        answer.ok().and_then(|answer| answer["jobs"].as_array().cloned()).unwrap_or_default()
    }

    /// Sends a request, and waits for the answer.
    pub fn ask(&self, request: &Value, cancel: &CancelToken) -> Result<Value, String> {
        let ask = || -> io::Result<Value> {
            let mut stream = UnixStream::connect(&self.socket)?;
            let closing = stream.try_clone()?;
            let _closed = cancel.on_cancel(move || drop(closing.shutdown(Shutdown::Both)));
            stream.write_all(format!("{request}\n").as_bytes())?;
            let mut line = Vec::new();
            BufReader::new(stream.take(LINE_MAX)).read_until(b'\n', &mut line)?;
            Ok(json::parse(&line)?)
        };
        let answer = match ask() {
            Ok(answer) => answer,
            Err(_) if cancel.is_cancelled() => return Err("Operation aborted".into()),
            Err(error) => return Err(format!("The keeper of the job does not answer: {error}")),
        };
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }

    fn followers(&self, id: &str) -> usize {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.get(id).copied().unwrap_or_default()
    }

    fn act(&self, id: &str, arguments: &Map<String, Value>, cancel: &CancelToken) -> Result<String, String> {
        let follows = matches!(arguments.get("op").and_then(Value::as_str), Some("wait" | "stop"));
        let count = |change: fn(usize) -> usize| {
            let mut followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
            let of_job = followers.entry(id.to_owned()).or_default();
            *of_job = change(*of_job);
        };
        if follows {
            count(|number| number + 1);
        }
        let answer = self.ask(&Value::Object(arguments.clone()), cancel);
        if follows && answer.as_ref().is_ok_and(|answer| is_running(answer, id)) {
            count(|number| number - 1);
        }
        answer.map(|answer| answer["text"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits for the end of a job. Returns what to tell of it, unless another call tells it.
    pub fn await_end(&self, id: &str, cancel: &CancelToken) -> Option<String> {
        let wait = json!({"op": "wait", "job": id, "timeout": 1e9, "lines": 10});
        let answer = self.ask(&wait, cancel).ok()?;
        let command = answer["jobs"].as_array()?.iter().find(|job| job["id"] == id)?["command"].as_str()?;
        let text = answer["text"].as_str()?;
        let (status, tail) = text.split_once('\n').unwrap_or((text, ""));
        let is_over = !is_running(&answer, id) && self.followers(id) == 0;
        is_over.then(|| format!("The job {status}: {}\n{tail}", first_line(command)))
    }
}

fn is_running(answer: &Value, id: &str) -> bool {
    let jobs = answer["jobs"].as_array();
    jobs.into_iter().flatten().any(|job| job["id"] == id && job["running"] == true)
}
