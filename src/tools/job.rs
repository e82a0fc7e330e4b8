//! Commands that run in the background.
//!
//! A job is a shell command with a pipe for its input, whose output goes to a file of bounded size. It is killed
//! with all it started when [`Jobs`] is dropped and when pi ends, however that ends.
//!
//! Each job has a thread, which sleeps until there is output or an end.

use super::backend::{Backend, Child, End, Progress, ShellCommand};
use crate::agent::CancelToken;
use crate::base::file::create_private;
use crate::base::poll::WaitlessPipe;
use crate::base::thread::Thread;
use crate::llm::secret::Hider;
use crate::tools::backend::Input;
use crate::tools::plain;
use regex::Regex;
use std::fs::{self, File};
use std::io::{self, PipeWriter, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of a file with output, in bytes. A job has at most two: the present one and the one before.
const FILE_MAX: u64 = 8 << 20;
/// Output that is kept in memory, in bytes.
const RECENT_MAX: usize = 256 << 10;
const RUNNING_MAX: usize = 32;
const KNOWN_MAX: usize = 100;
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two attempts to reach a port, whose opening nothing announces.
const PORT_PAUSE: Duration = Duration::from_millis(100);

/// The jobs of a session.
#[derive(Default)]
pub struct Jobs {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    started: usize,
    jobs: Vec<Arc<Job>>,
}

/// A command in the background.
pub struct Job {
    pub id: String,
    pub command: String,
    /// The file with the output.
    pub log: PathBuf,
    begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
    input: Mutex<Option<(WaitlessPipe, PipeWriter)>>,
    terminate: Arc<dyn Fn() + Send + Sync>,
    kill: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The end of the output.
    recent: Vec<u8>,
    /// Bytes of output before `recent`.
    dropped: u64,
    end: Option<(End, Duration)>,
    /// Calls that wait for the job, or have stopped it: they tell of its end.
    followers: usize,
    /// Why output is missing in the file.
    fault: Option<String>,
}

/// What a wait is for, besides the end.
pub enum Until {
    End,
    Line(Regex),
    Port(u16),
}

/// What a wait came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited {
    Ended,
    Line(String),
    Answers,
    TimedOut,
    Cancelled,
}

/// What starts a job needs.
pub struct Start<'a> {
    pub backend: &'a dyn Backend,
    pub command: ShellCommand,
    /// The command as it is shown.
    pub shown: &'a str,
    /// Folder of the output.
    pub folder: &'a Path,
    /// The beginning of the job's id.
    pub prefix: char,
    pub hider: Hider,
    /// Called on the job's thread after its end, unless somebody waits for it or has stopped it.
    pub on_end: Box<dyn FnOnce(&Job) + Send>,
}

impl Jobs {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All jobs, oldest first.
    pub fn all(&self) -> Vec<Arc<Job>> {
        self.known().jobs.clone()
    }

    pub fn find(&self, id: &str) -> Result<Arc<Job>, String> {
        let jobs = self.all();
        let found = jobs.iter().find(|job| job.id == id).cloned();
        found.ok_or_else(|| {
            let known: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
            match known.as_slice() {
                [] => format!("There is no job {id:?}, and no other"),
                known => format!("There is no job {id:?}. Known: {}", known.join(", ")),
            }
        })
    }

    /// Starts a command. The error text is complete.
    pub fn start(&self, start: Start<'_>) -> Result<Arc<Job>, String> {
        let Start { backend, mut command, shown, folder, prefix, hider, on_end } = start;
        let mut known = self.known();
        if known.jobs.iter().filter(|job| job.is_running()).count() >= RUNNING_MAX {
            return Err(format!("{RUNNING_MAX} jobs are running already. Stop one before."));
        }
        let fail = |error: io::Error| format!("The job could not be started: {error}");
        // Numbers of an earlier process may be in the folder.
        let mut number = known.started;
        let (log, file) = loop {
            number += 1;
            let log = folder.join(format!("job-{prefix}{number}.log"));
            match create_private(&log) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => break (log, made.map_err(fail)?),
            }
        };
        let (reader, writer) = io::pipe().map_err(fail)?;
        let waitless = WaitlessPipe::of(&writer).ok_or("The job could not be started: no pipe can be had")?;
        command.input = Some(Input::new(reader));
        let child = backend.spawn(&command).map_err(|error| {
            let _ = fs::remove_file(&log);
            error.to_string()
        })?;
        let job = Arc::new(Job {
            id: format!("{prefix}{number}"),
            command: shown.to_owned(),
            log,
            begun: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
            input: Mutex::new(Some((waitless, writer))),
            terminate: child.terminator(),
            kill: child.killer(),
        });
        drop(command);
        let followed = job.clone();
        let follow = move || followed.follow(child, file, hider, on_end);
        // Without the thread the child is dropped, and so killed.
        Thread::named("job").start(follow).map_err(fail)?;
        known.started = number;
        known.jobs.push(job.clone());
        if known.jobs.len() > KNOWN_MAX
            && let Some(oldest) = known.jobs.iter().position(|job| !job.is_running())
        {
            known.jobs.remove(oldest);
        }
        Ok(job)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in self.all() {
            job.state().followers += 1;
            (job.kill)();
        }
    }
}

impl Job {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_running(&self) -> bool {
        self.state().end.is_none()
    }

    /// The exit code of a job that has ended with one.
    pub fn exit_code(&self) -> Option<i32> {
        self.state().end.as_ref().and_then(|(end, _)| end.exit_code)
    }

    /// What the job does, in a few words.
    pub fn status(&self) -> String {
        let seconds = |time: Duration| format!("{} s", time.as_secs());
        match &self.state().end {
            None => format!("{} is running since {}", self.id, seconds(self.begun.elapsed())),
            Some((End { exit_code: Some(code), .. }, took)) => {
                format!("{} ended with exit code {code} after {}", self.id, seconds(*took))
            }
            Some((_, took)) => format!("{} was ended after {}", self.id, seconds(*took)),
        }
    }

    /// The last lines of the output, as plain text.
    pub fn tail(&self, lines: usize) -> String {
        let state = self.state();
        let text = plain::text(&state.recent);
        let text = text.trim_end_matches('\n');
        let skipped = text.lines().count().saturating_sub(lines);
        let mut tail: Vec<&str> = text.lines().skip(skipped).collect();
        if tail.is_empty() {
            tail.push("(no output)");
        }
        let mut tail = tail.join("\n");
        if let Some(fault) = &state.fault {
            tail.push_str(&format!("\n[{} is not complete: {fault}]", self.log.display()));
        }
        tail
    }

    /// Writes to the command's input; an empty text closes it.
    pub fn send(&self, text: &str) -> Result<(), String> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if text.is_empty() {
            *input = None;
            return Ok(());
        }
        let (pipe, _) = input.as_mut().ok_or_else(|| format!("The input of {} is closed", self.id))?;
        match pipe.write(text.as_bytes()) {
            true => Ok(()),
            false => Err(format!(
                "{} does not read its input, or {} bytes at once are too many for it",
                self.id,
                text.len()
            )),
        }
    }

    /// Asks all processes of the job to end, and kills those that do not.
    pub fn stop(self: &Arc<Self>, cancel: &CancelToken) {
        self.state().followers += 1;
        (self.terminate)();
        if self.wait(&Until::End, GRACE, cancel) != Waited::Ended {
            (self.kill)();
            self.wait(&Until::End, GRACE, cancel);
        }
    }

    /// Waits for the end, or for what is wanted before.
    pub fn wait(self: &Arc<Self>, until: &Until, time: Duration, cancel: &CancelToken) -> Waited {
        let deadline = Instant::now() + time;
        self.state().followers += 1;
        let waited = match until {
            Until::Port(port) => self.wait_for_port(*port, deadline, cancel),
            Until::End => self.wait_for_line(None, deadline, cancel),
            Until::Line(pattern) => self.wait_for_line(Some(pattern), deadline, cancel),
        };
        if waited != Waited::Ended {
            self.state().followers -= 1;
        }
        waited
    }

    fn wait_for_port(&self, port: u16, deadline: Instant, cancel: &CancelToken) -> Waited {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        loop {
            if TcpStream::connect_timeout(&address, PORT_PAUSE).is_ok() {
                return Waited::Answers;
            }
            if !self.is_running() {
                return Waited::Ended;
            }
            if Instant::now() >= deadline {
                return Waited::TimedOut;
            }
            if cancel.wait_timeout(PORT_PAUSE) {
                return Waited::Cancelled;
            }
        }
    }

    fn wait_for_line(
        self: &Arc<Self>,
        pattern: Option<&Regex>,
        deadline: Instant,
        cancel: &CancelToken,
    ) -> Waited {
        let this = self.clone();
        let _woken = cancel.on_cancel(move || this.wake());
        let mut searched = 0;
        let mut state = self.state();
        loop {
            if let Some(pattern) = pattern {
                let from = usize::try_from(searched.max(state.dropped) - state.dropped).unwrap_or(0);
                let new = state.recent.get(from..).unwrap_or_default();
                let text = plain::text(new);
                if let Some(line) = text.lines().find(|line| pattern.is_match(line)) {
                    return Waited::Line(line.to_owned());
                }
                // A line that is not complete is searched again.
                let whole = memchr::memrchr(b'\n', new).map_or(0, |at| at + 1);
                searched = state.dropped + (from + whole) as u64;
            }
            if state.end.is_some() {
                return Waited::Ended;
            }
            if cancel.is_cancelled() {
                return Waited::Cancelled;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::TimedOut;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads the output until the end.
    fn follow(
        self: &Arc<Self>,
        mut child: Box<dyn Child>,
        file: File,
        mut hider: Hider,
        on_end: Box<dyn FnOnce(&Job) + Send>,
    ) {
        let mut log = Log { file, bytes: 0, path: self.log.clone(), has_failed: false };
        let mut buffer = vec![0; 64 << 10];
        let end = loop {
            match child.next(&mut buffer, None) {
                Ok(Progress::Output(count)) => {
                    let hidden = hider.push(buffer.get(..count).unwrap_or_default());
                    self.take(&hidden, &mut log);
                }
                Ok(Progress::Waited) => {}
                Ok(Progress::Ended(end)) => break end,
                Err(_) => break End::default(),
            }
        };
        let rest = hider.end();
        self.take(&rest, &mut log);
        *self.input.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let is_followed = {
            let mut state = self.state();
            state.end = Some((end, self.begun.elapsed()));
            self.changed.notify_all();
            state.followers > 0
        };
        if !is_followed {
            on_end(self);
        }
    }

    fn take(&self, bytes: &[u8], log: &mut Log) {
        if bytes.is_empty() {
            return;
        }
        let fault = log.write(bytes).err().map(|error| error.to_string());
        let mut state = self.state();
        state.fault = state.fault.take().or(fault);
        state.recent.extend_from_slice(bytes);
        // In large steps, so that each byte is moved a bounded number of times.
        if state.recent.len() > 2 * RECENT_MAX {
            let more = state.recent.len() - RECENT_MAX;
            state.recent.drain(..more);
            state.dropped += more as u64;
        }
        self.changed.notify_all();
    }

    /// Wakes all that wait.
    fn wake(&self) {
        let _state = self.state();
        self.changed.notify_all();
    }
}

/// The beginning of a command, for lists.
pub fn first_line(command: &str) -> String {
    const MOST: usize = 100;
    let line = command.lines().next().unwrap_or_default();
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// The file with the output. A full one becomes `NAME.1`, in place of the one before.
struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
    has_failed: bool,
}

impl Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let write = |log: &mut Self| {
            if log.bytes + bytes.len() as u64 > FILE_MAX {
                fs::rename(&log.path, log.path.with_extension("log.1"))?;
                log.file = create_private(&log.path)?;
                log.bytes = 0;
            }
            log.file.write_all(bytes)?;
            log.bytes += bytes.len() as u64;
            Ok(())
        };
        write(self).inspect_err(|_| self.has_failed = true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::secret::Vault;
    use crate::tools::local::Local;
    use crate::tools::testing::TempDir;
    use crate::tools::testing::leak::LeakGuard;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    struct Desk {
        dir: TempDir,
        jobs: Jobs,
        ended: mpsc::Receiver<String>,
        end: mpsc::Sender<String>,
    }

    impl Desk {
        fn new() -> Self {
            let (end, ended) = mpsc::channel();
            Self { dir: TempDir::create(), jobs: Jobs::default(), ended, end }
        }

        fn start(&self, text: &str) -> Arc<Job> {
            let end = self.end.clone();
            let command = ShellCommand {
                call: String::new(),
                shell: None,
                text: text.into(),
                cwd: self.dir.path().to_owned(),
                env: std::env::vars_os().collect(),
                keep_background: false,
                input: None,
            };
            let start = Start {
                prefix: 'j',
                backend: &Local,
                command,
                shown: text,
                folder: self.dir.path(),
                hider: Vault::default().hider(),
                on_end: Box::new(move |job| drop(end.send(job.id.clone()))),
            };
            self.jobs.start(start).unwrap()
        }
    }

    #[test]
    fn a_job_is_talked_with_waited_for_and_told_of() {
        let _guard = LeakGuard::new();
        let desk = Desk::new();
        let cancel = CancelToken::new();
        let job = desk.start("echo ready; while read line; do echo \"got $line\"; done; exit 7");
        let line = |pattern: &str| job.wait(&Until::Line(Regex::new(pattern).unwrap()), LONG, &cancel);
        assert_eq!(line("^rea"), Waited::Line("ready".into()));
        job.send("one\ntwo\n").unwrap();
        assert_eq!(line("got t"), Waited::Line("got two".into()));
        assert!(job.send(&"x".repeat(1 << 20)).unwrap_err().contains("does not read"));
        assert_eq!(job.wait(&Until::End, Duration::ZERO, &cancel), Waited::TimedOut);
        assert!(job.status().starts_with("j1 is running"));
        // Nobody waits when it ends.
        job.send("").unwrap();
        assert_eq!(desk.ended.recv_timeout(LONG).unwrap(), "j1");
        assert_eq!((job.exit_code(), job.tail(2).as_str()), (Some(7), "got one\ngot two"));
        assert_eq!(line("never"), Waited::Ended);
        assert!(job.send("more").unwrap_err().contains("closed"));
        assert_eq!(desk.dir.read("job-j1.log"), b"ready\ngot one\ngot two\n");
        // What nobody needs to be told.
        let quiet = desk.start("exit 3");
        assert_eq!(quiet.wait(&Until::End, LONG, &cancel), Waited::Ended);
        assert_eq!(quiet.id, "j2");
        let unknown = desk.jobs.find("j9").err().unwrap();
        assert_eq!(unknown, "There is no job \"j9\". Known: j1, j2");
    }

    #[test]
    fn a_job_is_stopped_with_all_it_started_and_a_wait_is_cancelled() {
        let _guard = LeakGuard::new();
        let desk = Desk::new();
        let cancel = CancelToken::new();
        let job = desk.start("trap '' TERM; sleep 1000 & echo up; while :; do sleep 1000; done");
        assert!(matches!(job.wait(&Until::Line(Regex::new("up").unwrap()), LONG, &cancel), Waited::Line(_)));
        let waiting = CancelToken::new();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| job.wait(&Until::End, LONG, &waiting));
            waiting.cancel();
            assert_eq!(waits.join().unwrap(), Waited::Cancelled);
        });
        job.stop(&cancel);
        assert!(!job.is_running());
        assert!(desk.ended.try_recv().is_err(), "who stops it knows");
        let left = desk.start("sleep 1000");
        drop(desk.jobs);
        assert_eq!(left.wait(&Until::End, LONG, &cancel), Waited::Ended);
    }

    #[test]
    fn a_port_is_waited_for() {
        let _guard = LeakGuard::new();
        let desk = Desk::new();
        let cancel = CancelToken::new();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let job = desk.start("sleep 1000");
        assert_eq!(job.wait(&Until::Port(port), LONG, &cancel), Waited::Answers);
        drop(listener);
        assert_eq!(job.wait(&Until::Port(port), Duration::ZERO, &cancel), Waited::TimedOut);
        job.stop(&cancel);
        assert_eq!(job.wait(&Until::Port(port), LONG, &cancel), Waited::Ended);
    }

    #[test]
    fn the_output_is_bounded() {
        let _guard = LeakGuard::new();
        let desk = Desk::new();
        let job = desk.start("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end");
        assert_eq!(job.wait(&Until::End, LONG, &CancelToken::new()), Waited::Ended);
        assert_eq!(job.tail(1), "end");
        let size = |name: &str| std::fs::metadata(desk.dir.path().join(name)).unwrap().len();
        assert!(size("job-j1.log") <= FILE_MAX && size("job-j1.log.1") <= FILE_MAX);
        assert_eq!(desk.dir.names(), ["job-j1.log", "job-j1.log.1"]);
    }
}
