//! The keeper of jobs: the process in which jobs run that outlive pi (`--keep-jobs`).
//!
//! ```text
//! accept ──a thread a connection──> job::act ──> jobs
//!            └────came, left, ended────> main, which ends the process when nothing is left to do
//! ```
//! The protocol is that of [`kept_job`](crate::runtime::kept_job). The first line on stdout is the path of the socket.

use super::exit::{self, EndsChildren};
use super::signal::Watch;
use crate::base::json::{self, json};
use crate::base::thread::Thread;
use crate::runtime::CancelToken;
use crate::runtime::control::Control;
use crate::runtime::job::{self, kept};
use crate::runtime::kept_job;
use crate::runtime::session::Session;
use crossbeam_channel::{Sender, after, bounded, select};
use serde_json::{Map, Value};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

/// Time for the pi that has started the keeper to come.
const FIRST: Duration = Duration::from_secs(10);
/// Age at which the output of a kept job is removed.
const OUTPUT_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const CONNECTIONS_MAX: usize = 64;

/// What the connections share.
struct Keeper {
    control: Control,
    folder: PathBuf,
    /// Connections that hold the process.
    attached: AtomicUsize,
    connections: AtomicUsize,
    /// Wakes the main thread, which looks whether there is something left to do.
    changed: Sender<()>,
    cancel: CancelToken,
}

/// Runs jobs until there are none, and no pi is attached. Returns the exit code.
pub fn run(session: Session, cancel: &CancelToken, watch: &Watch) -> Result<u8, String> {
    let _ends = EndsChildren { keep: false };
    let control = session.control().clone();
    let folder = kept::make_folder(&control.config()).map_err(|error| error.to_string())?;
    remove_old(&folder);
    let socket = folder.join(format!("{}.{}", std::process::id(), kept_job::SOCKET));
    let listener = UnixListener::bind(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    let told = writeln!(io::stdout(), "{}", socket.display());
    let (changed, look) = bounded(1);
    let keeper = Arc::new(Keeper {
        control,
        folder,
        attached: AtomicUsize::new(0),
        connections: AtomicUsize::new(0),
        changed,
        cancel: cancel.clone(),
    });
    let served = keeper.clone();
    // The thread ends with the process.
    let accepting = Thread::named("accept").start(move || accept(&served, &listener));
    if told.is_ok() && accepting.is_ok() {
        let mut first = after(FIRST);
        loop {
            select! {
                recv(look) -> _ => first = crossbeam_channel::never(),
                recv(first) -> _ => {}
                recv(cancel.receiver()) -> _ => break,
            }
            if !keeper.is_needed() {
                break;
            }
        }
    }
    let _ = fs::remove_file(&socket);
    cancel.cancel();
    let code = exit::code(Ok(()), session.close().map_err(|fatal| fatal.0));
    Ok(watch.exit_code().unwrap_or(code))
}

/// Removes the output of jobs that ended long ago.
fn remove_old(folder: &Path) {
    let is_old = |entry: &fs::DirEntry| {
        let changed = entry.metadata().and_then(|about| about.modified());
        let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
        let is_output = entry.file_name().to_string_lossy().starts_with("job-");
        is_output && age.is_some_and(|age| age > OUTPUT_AGE_MAX)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(is_old).for_each(|entry| drop(fs::remove_file(entry.path())));
}

fn accept(keeper: &Arc<Keeper>, listener: &UnixListener) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Descriptors may have run out for a moment.
            if keeper.cancel.wait_timeout(Duration::from_millis(100)) {
                return;
            }
            continue;
        };
        if keeper.connections.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            continue;
        }
        keeper.connections.fetch_add(1, Ordering::SeqCst);
        let serving = keeper.clone();
        let serve = move || {
            // A pi that has gone needs no answer.
            let _ = serving.serve(&stream);
            serving.connections.fetch_sub(1, Ordering::SeqCst);
            serving.look();
        };
        if Thread::named("connection").start(serve).is_err() {
            keeper.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Keeper {
    fn look(&self) {
        let _ = self.changed.try_send(()); // one that waits is enough
    }

    fn is_needed(&self) -> bool {
        self.attached.load(Ordering::SeqCst) > 0
            || self.control.jobs().all().iter().any(|job| job.is_running())
    }

    fn serve(self: &Arc<Self>, mut stream: &UnixStream) -> io::Result<()> {
        let mut line = Vec::new();
        BufReader::new(stream.take(kept_job::LINE_MAX)).read_until(b'\n', &mut line)?;
        let asked: Map<String, Value> = json::parse(&line)?;
        let op = asked.get("op").and_then(Value::as_str).unwrap_or_default();
        if op == "attach" {
            self.attached.fetch_add(1, Ordering::SeqCst);
            self.look();
            let _ = io::copy(&mut stream, &mut io::sink());
            self.attached.fetch_sub(1, Ordering::SeqCst);
            return Ok(());
        }
        let cancel = self.cancel.child();
        let done = thread::scope(|scope| {
            let gone = cancel.clone();
            let watch = move || {
                let _ = io::copy(&mut &*stream, &mut io::sink());
                gone.cancel();
            };
            // Without the thread, a wait goes on for as long as was asked.
            let _ = Thread::named("gone").start_in(scope, watch);
            let done = match op {
                "start" => self.start(&asked),
                _ => job::act(&self.control, &asked, &cancel),
            };
            let _ = stream.shutdown(Shutdown::Read);
            done
        });
        let answer = match done {
            Ok(text) => json!({"text": text, "jobs": job::to_json(&self.control)}),
            Err(error) => json!({"error": error}),
        };
        stream.write_all(format!("{answer}\n").as_bytes())
    }

    /// Returns the id of the new job.
    fn start(self: &Arc<Self>, asked: &Map<String, Value>) -> Result<String, String> {
        let command = asked.get("command").and_then(Value::as_str).unwrap_or_default();
        let keeper = self.clone();
        let on_end = move |id: &str, status: &str| {
            if keeper.attached.load(Ordering::SeqCst) == 0 {
                let path = keeper.folder.join(format!("job-{id}.{}", kept_job::ENDED));
                let log = keeper.folder.join(format!("job-{id}.log"));
                let text = format!("While no pi was here, the job {status}. Its output: {}", log.display());
                let _ = fs::write(path, text);
            }
            keeper.look();
        };
        let job = job::start_kept(&self.control, command, &self.folder, on_end)?;
        Ok(job.id.clone())
    }
}
