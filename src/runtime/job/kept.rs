//! The kept jobs of a session: what runs them is started with the first, and those that go on are told at the end.

use super::NAME;
use crate::base::file;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use crate::runtime::hook::Hooks;
use crate::tools::kept_job::{Keeper, Kept, folder};
use crate::tools::process::{lifeline, set_apart};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Starts a command that outlives the session. Returns the new job in the form for other programs.
pub fn start(control: &Control, command: &str) -> Result<Value, String> {
    let kept = control.kept_jobs();
    let keeper = kept.own(|| launch(&control.config()));
    let keeper = keeper.map_err(|error| format!("The keeper of jobs did not start: {error}"))?;
    let asked = json!({"op": "start", "command": command});
    let answer = keeper.ask(&asked, control.root())?;
    let id = answer["text"].as_str().unwrap_or_default().to_owned();
    let mut jobs = answer["jobs"].as_array().into_iter().flatten();
    let job = jobs.find(|job| job["id"] == *id).cloned().unwrap_or_default();
    if control.config().settings.flag("jobs.wake") {
        let (weak, cancel) = (control.downgrade(), control.root().child());
        let follow = move || {
            let Some(text) = keeper.await_end(&id, &cancel) else { return };
            if let Some(control) = weak.upgrade() {
                control.wake(NAME, text);
            }
        };
        // Without a thread only the message is missing.
        let _ = Thread::named("kept-job").start(follow);
    }
    Ok(job)
}

/// Starts a keeper with the confinement of the session.
fn launch(config: &Config) -> io::Result<Keeper> {
    let confinement = config.confinement(&config.workspace.cwd, &mut Vec::new()).map_err(io::Error::other)?;
    let mut command = Command::new(lifeline::program()?);
    command.arg0("pi").args(["--mode", "jobs", "--no-session", "--no-extensions", "--no-mcp", "--no-skills"]);
    command.args(["--no-context-files", "--no-prompt-templates"]).args(confinement);
    command.current_dir(&config.workspace.cwd);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    set_apart(&mut command);
    let mut process = command.spawn()?;
    let mut socket = String::new();
    if let Some(stdout) = process.stdout.take() {
        BufReader::new(stdout.take(4096)).read_line(&mut socket)?;
    }
    if socket.is_empty() {
        let mut why = String::new();
        if let Some(stderr) = process.stderr.take() {
            stderr.take(4096).read_to_string(&mut why)?;
        }
        process.wait()?;
        return Err(io::Error::other(why.trim().to_owned()));
    }
    Keeper::attach(Path::new(socket.trim_end()), Some(process))
}

/// Lets the session know the kept jobs of its folder, and keeps new ones if `keeps`. `tell` shows the user a text.
pub fn offer(control: &Control, keeps: bool, tell: impl Fn(String) + Send + Sync + 'static) {
    let config = control.config();
    let kept = control.kept_jobs();
    kept.switch(keeps);
    kept.attach(&folder(&config.agent_dir, &config.workspace.cwd)).into_iter().for_each(&tell);
    control.add_hooks(Arc::new(AtEnd { kept: kept.clone(), tell: Box::new(tell) }));
}

/// Says at the end of a session which jobs go on.
struct AtEnd {
    kept: Arc<Kept>,
    tell: Box<dyn Fn(String) + Send + Sync>,
}

impl Hooks for AtEnd {
    fn close(&self) {
        let running = self.kept.running();
        self.kept.detach();
        if !running.is_empty() {
            let running = running.join(", ");
            (self.tell)(format!(
                "Jobs go on: {running}. To see and stop them, here: pi jobs, or the next pi"
            ));
        }
    }
}

/// Makes the folder of kept jobs.
pub fn make_folder(config: &Config) -> io::Result<PathBuf> {
    let folder = folder(&config.agent_dir, &config.workspace.cwd);
    file::make_private_folder(&folder)?;
    Ok(folder)
}
