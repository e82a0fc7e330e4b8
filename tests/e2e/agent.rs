//! The built binary in a world of its own: an empty home, an empty folder, a scripted provider.
//!
//! What the test leaves behind is checked when it ends: no process that carries its mark, no file in
//! its temporary folder.

use super::overdue;
use super::server::{PATIENCE, Server};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
#[cfg(feature = "extensions")]
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The mark that every process of a test carries in its environment.
const MARK: &str = "PI_TEST_WORLD";

/// Factor for short time limits of the program, which a loaded machine would miss.
const PI_PATIENCE: &str = "20";

/// Folders of one test, removed with it.
pub struct World {
    root: PathBuf,
    mark: String,
}

impl World {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let root = std::env::temp_dir().join(format!("pi-test-{mark}"));
        for folder in ["home/.pi/agent", "work", "tmp"] {
            fs::create_dir_all(root.join(folder)).expect("make the folders of a test");
        }
        // The canonical path is what the program prints.
        // Failures are final here; tests of retries ask for them.
        fs::write(root.join("home/.pi/agent/settings.json"), r#"{"retry": {"enabled": false}}"#)
            .expect("write the settings of a test");
        let root = root.canonicalize().expect("a canonical folder");
        overdue::watch(&mark);
        take_signals_as_usual();
        Self { root, mark }
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn agent_dir(&self) -> PathBuf {
        self.root.join("home/.pi/agent")
    }

    /// The folder that the agent works in.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("make a folder");
        fs::write(&path, content).expect("write a file");
        path
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work().join(path)).expect("read a file")
    }

    pub fn write_config(&self, name: &str, content: &str) {
        fs::write(self.agent_dir().join(name), content).expect("write a configuration file");
    }

    /// Makes the provider `mock` with the model `m1`, behind `server`.
    pub fn use_server(&self, server: &Server) {
        let config = serde_json::json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "test-key",
            "api": "openai-completions", "models": [{"id": "m1", "input": ["text", "image"]}]}}});
        self.write_config("models.json", &config.to_string());
    }

    /// All session files, drafts too.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files_below(&self.agent_dir().join("sessions"), &mut found);
        found.sort();
        found
    }

    /// The lines of the only session file.
    pub fn session(&self) -> Vec<Value> {
        let files: Vec<PathBuf> = self
            .session_files()
            .into_iter()
            .filter(|path| path.extension() == Some(OsStr::new("jsonl")))
            .collect();
        assert_eq!(files.len(), 1, "one session file, not {files:?}");
        lines(&fs::read_to_string(&files[0]).expect("read the session"))
    }

    /// Processes that carry this test's mark.
    pub fn processes(&self) -> Vec<u32> {
        processes_with(&self.mark)
    }

    /// Waits until the process that outlives a killed pi is there.
    #[track_caller]
    pub fn wait_until_watched(&self) {
        let is_watcher = |pid: &u32| {
            let of = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            // The first has the name of the thread that starts it until it is a program of its own, and takes that
            // name again when it is out of reach of what ends the others.
            of("cmdline").starts_with(b"pi-lifeline\0") && of("comm") == b"pi-lifeline\n"
        };
        wait_until("pi is watched", || self.processes().iter().any(is_watcher));
    }

    /// Those that do not go by themselves, as the last ones of a pi that was killed do.
    pub fn processes_left(&self) -> Vec<u32> {
        let start = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() || start.elapsed() > PATIENCE {
                return left;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The program, ready to be given arguments.
    pub fn pi(&self) -> Pi<'_> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pi"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.tmp())
            .env(MARK, &self.mark)
            .env("PI_PATIENCE", PI_PATIENCE)
            .current_dir(self.work());
        Pi { world: self, command, stdin: None }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let left = self.processes_left();
        for pid in &left {
            drop(Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
        let mut files = Vec::new();
        files_below(&self.tmp(), &mut files);
        let keep = thread::panicking() && std::env::var_os("PI_TEST_KEEP").is_some();
        if !keep {
            drop(fs::remove_dir_all(&self.root));
        }
        overdue::has_ended(&self.mark);
        if !thread::panicking() {
            assert_eq!(left, [0u32; 0], "processes were left behind");
            assert_eq!(files, [] as [PathBuf; 0], "temporary files were left behind");
        }
    }
}

/// Processes that carry the mark of a test.
pub fn processes_with(mark: &str) -> Vec<u32> {
    let mark = format!("{MARK}={mark}");
    let is_ours = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let alive = fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'));
        alive && environ.split(|&b| b == 0).any(|entry| entry == mark.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

/// Both ends of a new terminal, ours first.
pub fn terminal() -> io::Result<(File, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the first two are places for the new descriptors, the others may be null.
    let status = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, none, none.cast(), none.cast()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just opened, and nobody else has them.
    let (ours, theirs) = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    // Other tests start programs at the same time: those must not keep our end open.
    for end in [ours.as_raw_fd(), theirs.as_raw_fd()] {
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok((ours, theirs))
}

/// Programs that are started from now on get the signals that who runs the tests may ignore, as `nohup` and the `&` of
/// scripts do.
fn take_signals_as_usual() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default is no function of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    });
}

/// Writes a program, and the folder that it is in. Another process writes: a descriptor of this one could be in a
/// child of another test when the program is started, which then is busy.
pub fn write_program(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let mut child = install.args(["-D", "-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped()).spawn();
    let child = child.as_mut().expect("run install");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("write a program");
    assert!(child.wait().expect("wait for install").success());
}

/// Lets a program go on that reads from a pipe.
#[cfg(feature = "extensions")]
#[track_caller]
pub fn let_go(pipe: &Path) {
    // Opened like this a pipe without a reader is an error, not a wait.
    let mut open = File::options();
    open.write(true).custom_flags(libc::O_NONBLOCK);
    wait_until("the pipe is read from", || {
        open.open(pipe).is_ok_and(|mut pipe| pipe.write_all(b"go\n").is_ok())
    });
}

/// Waits until something holds that nothing announces.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not so: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The JSON values of a text of lines.
#[track_caller]
pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}

/// A run that is being prepared.
pub struct Pi<'w> {
    world: &'w World,
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl<'w> Pi<'w> {
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Arguments as a shell would split them; no quoting.
    pub fn words(self, words: &str) -> Self {
        self.args(words.split_whitespace())
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts with a terminal of its own as stdin and stderr; stdout stays a pipe.
    pub fn spawn_on_terminal(mut self) -> Running<'w> {
        let (ours, theirs) = terminal().expect("open a terminal");
        let stdin = theirs.try_clone().expect("a second handle of the terminal");
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(theirs);
        // SAFETY: both calls are safe between fork and exec.
        unsafe {
            self.command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let mut child = self.command.spawn().expect("start pi");
        let (stdout, stderr) = (Arc::new(Stream::default()), Arc::new(Stream::default()));
        let screen = ours.try_clone().expect("a second handle of the terminal");
        let threads = vec![
            stdout.clone().follow(child.stdout.take().expect("a pipe from stdout")),
            stderr.clone().follow(screen),
        ];
        // The command holds the other end of the terminal, which would never close.
        drop(self.command);
        Running { _world: self.world, child, terminal: Some(ours), stdout, stderr, threads }
    }

    pub fn spawn(mut self) -> Running<'w> {
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("start pi");
        let input = self.stdin.map(|text| {
            let mut pipe = child.stdin.take().expect("a pipe to stdin");
            thread::spawn(move || drop(pipe.write_all(&text)))
        });
        let stdout = Arc::new(Stream::default());
        let stderr = Arc::new(Stream::default());
        let threads = vec![
            stdout.clone().follow(child.stdout.take().expect("a pipe from stdout")),
            stderr.clone().follow(child.stderr.take().expect("a pipe from stderr")),
        ];
        Running {
            _world: self.world,
            child,
            terminal: None,
            stdout,
            stderr,
            threads: threads.into_iter().chain(input).collect(),
        }
    }

    pub fn run(self) -> Outcome {
        self.spawn().wait()
    }
}

/// What a stream has said so far.
#[derive(Default)]
struct Stream {
    text: Mutex<Vec<u8>>,
    more: Condvar,
}

impl Stream {
    fn follow(self: Arc<Self>, source: impl Read + Send + 'static) -> JoinHandle<()> {
        thread::spawn(move || {
            let mut source = BufReader::new(source);
            loop {
                let read = match source.fill_buf() {
                    Ok([]) | Err(_) => return,
                    Ok(bytes) => {
                        self.text.lock().unwrap().extend_from_slice(bytes);
                        bytes.len()
                    }
                };
                source.consume(read);
                self.more.notify_all();
            }
        })
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, part: &str) {
        let text = self.text.lock().unwrap();
        let holds = |text: &mut Vec<u8>| !String::from_utf8_lossy(text).contains(part);
        let (text, late) = self.more.wait_timeout_while(text, PATIENCE, holds).unwrap();
        assert!(!late.timed_out(), "{part:?} did not come in:\n{}", String::from_utf8_lossy(&text));
    }
}

/// A run under way; killed when the test gives up on it.
pub struct Running<'w> {
    _world: &'w World,
    child: Child,
    /// Our end of its terminal.
    terminal: Option<File>,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    threads: Vec<JoinHandle<()>>,
}

impl Running<'_> {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until stdout holds `part`.
    #[track_caller]
    pub fn wait_for(&self, part: &str) {
        self.stdout.wait_for(part);
    }

    /// Waits until stderr, or the terminal, shows `part`.
    #[track_caller]
    pub fn wait_until_shown(&self, part: &str) {
        self.stderr.wait_for(part);
    }

    /// What stderr, or the terminal, has shown so far.
    #[cfg(feature = "mcp")]
    pub fn shown(&self) -> String {
        self.stderr.so_far()
    }

    /// Types on the terminal.
    pub fn type_keys(&self, keys: &str) {
        let mut terminal = self.terminal.as_ref().expect("a terminal");
        terminal.write_all(keys.as_bytes()).expect("type");
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.expect("run kill").success());
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> Outcome {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait for pi") {
                break status;
            }
            if start.elapsed() > PATIENCE * 2 {
                drop(self.child.kill());
                panic!(
                    "pi does not end.\nstdout: {}\nstderr: {}",
                    self.stdout.so_far(),
                    self.stderr.so_far()
                );
            }
            thread::sleep(Duration::from_millis(2));
        };
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
        Outcome { status, stdout: self.stdout.so_far(), stderr: self.stderr.so_far() }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The exit code; 128 and the signal's number where a signal ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    #[track_caller]
    pub fn success(self) -> Self {
        assert!(self.status.success(), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn fails_with(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{self:#?}");
        self
    }

    #[track_caller]
    pub fn stdout_is(self, expected: &str) -> Self {
        assert_eq!(self.stdout, expected, "stderr: {}", self.stderr);
        self
    }

    #[track_caller]
    pub fn stdout_has(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "{part:?} is not in {}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn stderr_has(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "{part:?} is not in stderr: {}", self.stderr);
        self
    }

    /// The JSON values on stdout.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        lines(&self.stdout)
    }

    /// The `type` of each event, runs of `message_update` told once.
    #[track_caller]
    pub fn event_types(&self) -> Vec<String> {
        let mut types: Vec<String> =
            self.events().iter().map(|event| event["type"].as_str().unwrap_or("?").to_owned()).collect();
        types.dedup_by(|a, b| a == b && a == "message_update");
        types
    }
}
