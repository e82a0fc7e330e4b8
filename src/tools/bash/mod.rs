//! The `bash` tool, and commands of the user.
//!
//! A command runs in a shell without a terminal and with empty stdin (see [`super::process`]). It ends with
//! its shell; at its time limit, by TERM and two seconds later KILL; or on abort, by KILL. The model sees the
//! end of the output as plain text, and the processes that are still running.
//!
//! The environment is pi's own, including keys of providers. Added are the session's variables, and variables
//! that keep programs from waiting for a terminal, which a command can override. Known secrets are hidden in
//! the output and in its file.
//!
//! Unlike the reference: escape sequences and the earlier states of a redrawn line are taken out of the
//! model's text (the file keeps all bytes), TERM precedes KILL at the time limit, and processes left in
//! the background are named.

use super::argument;
use super::backend::{Child, Progress, ShellCommand, Survivor};
use super::output::{Finished, Output};
use super::sandbox::Sandbox;
use super::truncate::{Limits, Truncation};
use crate::agent::CancelToken;
use crate::agent::call::{Argument, Arguments, Body, CallInfo, Kind};
use crate::agent::tool::{Invocation, Serves, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::order;
use crate::llm::message::{Extra, ToolSpec};
use crate::llm::secret::Hider;
use crate::tools::workspace::{Options, Workspace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between TERM and KILL at the time limit.
const GRACE: Duration = Duration::from_secs(2);
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of the output in the result as data.
const STRUCTURED_MAX: u64 = 1 << 20;
const BUFFER_BYTES: usize = 256 << 10;
/// The longest timer of the reference, 2^31 - 1 milliseconds.
const TIMEOUT_SECONDS_MAX: f64 = 2_147_483.647;

/// Variables that tell a command its session; those of an outer pi are removed.
const SESSION_VARIABLES: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// Variables that identify pi to programs.
const OWN_VARIABLES: [(&str, &str); 2] = [("AI_AGENT", "pi"), ("PI_CODING_AGENT", "true")];

/// Variables that disable prompts and pagers.
const QUIET_VARIABLES: [(&str, &str); 3] =
    [("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// Variables that make programs fail immediately instead of opening a window or an editor.
const NOBODY_VARIABLES: [(&str, &str); 7] = [
    ("EDITOR", NO_EDITOR),
    ("VISUAL", NO_EDITOR),
    ("GIT_EDITOR", NO_EDITOR),
    ("GIT_SEQUENCE_EDITOR", NO_EDITOR),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GCM_INTERACTIVE", "never"),
];

/// Editor command for programs that run their editor by a shell, as nearly all do. In a program that splits
/// words itself the command fails as well.
const NO_EDITOR: &str = "sh -c 'echo \"No editor can be used here. Give the text as an argument or in a file \
    (git commit -m or -F), or keep the proposed one with GIT_EDITOR=true.\" >&2; exit 1' editor";

/// The tool that models call.
pub fn tool(workspace: Arc<Workspace>) -> Arc<dyn Tool> {
    let description = "Run a bash command in the working folder and get what it prints, stdout and \
        stderr together. The last 2000 lines or 50KB are shown; the full output of a longer one is in a \
        file that the result names. There is no terminal and nothing on stdin.";
    let parameters = json!({
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command"},
            "timeout": {"type": "number", "description": "Seconds until it is ended; none by default"},
        },
        "required": ["command"],
    });
    Arc::new(Bash {
        info: ToolInfo {
            spec: ToolSpec {
                name: "bash".into(),
                description: description.into(),
                parameters,
                constrained_sampling: Some(argument::strict_if_possible()),
                extra: Extra::new(),
            },
            label: "bash".into(),
            result: Some(json!({
                "type": "object",
                "required": ["output", "truncated", "exit_code", "wall_time_seconds"],
                "properties": {
                    "output": {"type": "string", "description": "stdout and stderr together, up to 1 MB"},
                    "truncated": {"type": "boolean"},
                    "full_output_path": {"type": "string", "description": "If truncated"},
                    "exit_code": {"type": "number"},
                    "wall_time_seconds": {"type": "number"},
                },
            })),
            snippet: Some("Run shell commands (tests, git, builds, searches)".into()),
            rules: workspace.rules(["PI_* environment variables tell commands about this session and model"]),
            serves: Serves { commands: true, ..Serves::default() },
            ..ToolInfo::default()
        },
        workspace,
    })
}

pub fn describe(arguments: &Arguments) -> CallInfo<'_> {
    let command = Argument::of(arguments, "command");
    let timeout = arguments.get("timeout").filter(|seconds| seconds.is_number());
    CallInfo {
        kind: Kind::Execute,
        title: command.text().map(Into::into),
        body: Body::Command { command, timeout },
        rows: 5,
        ..CallInfo::of(arguments)
    }
}

struct Bash {
    info: ToolInfo,
    workspace: Arc<Workspace>,
}

impl Tool for Bash {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let request = Request {
            call: call.id,
            command: argument::text(call, "command")?,
            timeout_seconds: call
                .arguments
                .get("timeout")
                .and_then(Value::as_f64)
                .or(self.workspace.options.bash_timeout_seconds),
            session_variables: true,
            on_output: None,
        };
        (call.update)(ToolOutput::default());
        let update = |tail: &Truncation, path: Option<&Path>| {
            let details = details(tail, path).unwrap_or_else(|| json!({}));
            (call.update)(ToolOutput::text(&tail.content).with_details(details));
        };
        let execution = execute(&self.workspace, &request, &update, call.cancel)?;
        execution.into_result(self.workspace.backend.sandbox())
    }
}

/// A command to run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Id of the tool call; empty for a command of the user.
    pub call: &'a str,
    pub command: &'a str,
    pub timeout_seconds: Option<f64>,
    /// True for variables about the session. A user's own command has none.
    pub session_variables: bool,
    /// Receives every byte of output as it arrives, blocking the command meanwhile.
    pub on_output: Option<OnOutput<'a>>,
}

pub type OnOutput<'a> = &'a dyn Fn(&[u8]);

/// The result of a command.
#[derive(Debug)]
pub struct Execution {
    output: Finished,
    ending: Ending,
    exit_code: Option<i32>,
    time: Duration,
    pub survivors: Vec<Survivor>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Exited,
    TimedOut { seconds: f64 },
    Cancelled,
}

/// Runs a command. On new output, at most every 100 ms, `update` receives the end of the output so far and
/// the file with all of it. An `Err` is the reason why the command could not run.
pub fn execute(
    workspace: &Workspace,
    request: &Request<'_>,
    update: &dyn Fn(&Truncation, Option<&Path>),
    cancel: &CancelToken,
) -> Result<Execution, ToolError> {
    let options = &workspace.options;
    let timeout = request.timeout_seconds.map(timeout).transpose()?;
    let dir = workspace.outputs.clone();
    let mut run = Run {
        hider: workspace.vault.hider(),
        output: Output::new(Limits::DEFAULT, dir, options.output_cap_bytes),
        update,
        on_output: request.on_output,
        next_update_at: Instant::now(),
        is_new: false,
        time_is_up_at: None,
        timed_out: false,
        begun: Instant::now(),
    };
    if cancel.is_cancelled() {
        return Ok(run.finish(Ending::Cancelled, None, Vec::new()));
    }
    let _changes = workspace.look("bash", request.call, cancel);
    let mut child = spawn(workspace, request)?;
    let killer = child.killer();
    let guard = cancel.on_cancel(move || killer());
    run.time_is_up_at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let end = run.follow(&mut *child);
    drop(guard);

    let end = end.map_err(|error| format!("Cannot follow the command: {error}"))?;
    let ending = match request.timeout_seconds {
        _ if cancel.is_cancelled() => Ending::Cancelled,
        Some(seconds) if run.timed_out => Ending::TimedOut { seconds },
        _ => Ending::Exited,
    };
    Ok(run.finish(ending, end.exit_code, end.survivors))
}

/// State of a running command.
struct Run<'a> {
    /// Hides secrets before any other use of the output.
    hider: Hider,
    output: Output,
    update: &'a dyn Fn(&Truncation, Option<&Path>),
    on_output: Option<OnOutput<'a>>,
    next_update_at: Instant,
    /// True if output has arrived since the last update.
    is_new: bool,
    time_is_up_at: Option<Instant>,
    timed_out: bool,
    begun: Instant,
}

impl Run<'_> {
    fn follow(&mut self, child: &mut dyn Child) -> io::Result<super::backend::End> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let until = self.time_is_up_at.into_iter().chain(self.update_due()).min();
            match child.next(&mut buffer, until)? {
                Progress::Output(count) => {
                    let hidden = self.hider.push(buffer.get(..count).unwrap_or_default());
                    self.take(&hidden);
                }
                Progress::Waited => {}
                Progress::Ended(end) => {
                    let rest = self.hider.end();
                    self.take(&rest);
                    self.tell();
                    return Ok(end);
                }
            }
            let now = Instant::now();
            if self.update_due().is_some_and(|due| due <= now) {
                self.tell();
                self.next_update_at = now + UPDATE_INTERVAL;
            }
            if self.time_is_up_at.is_some_and(|at| at <= now) {
                self.time_is_up_at = None;
                self.timed_out = child.terminate(GRACE);
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.output.push(bytes);
        if let Some(on_output) = self.on_output {
            on_output(bytes);
        }
        self.is_new = true;
    }

    fn update_due(&self) -> Option<Instant> {
        self.is_new.then_some(self.next_update_at)
    }

    fn tell(&mut self) {
        if std::mem::take(&mut self.is_new) {
            (self.update)(&self.output.tail(), self.output.path());
        }
    }

    fn finish(self, ending: Ending, exit_code: Option<i32>, survivors: Vec<Survivor>) -> Execution {
        let time = self.begun.elapsed();
        Execution { output: self.output.finish(), ending, exit_code, time, survivors }
    }
}

impl Execution {
    /// The end of the output, as plain text.
    pub fn output(&self) -> &str {
        &self.output.truncation.content
    }

    /// `None` if the command was cancelled, or its exit code is unknown.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code.filter(|_| !self.is_cancelled())
    }

    pub fn is_cancelled(&self) -> bool {
        self.ending == Ending::Cancelled
    }

    pub fn is_truncated(&self) -> bool {
        self.output.truncation.truncated
    }

    /// The file with the complete output, if `output` is truncated.
    pub fn full_output_path(&self) -> Option<&Path> {
        self.output.full.as_ref()?.path.as_deref()
    }

    /// The result for the model.
    fn into_result(self, sandbox: Option<&Sandbox>) -> Result<ToolOutput, ToolError> {
        let status = match (self.ending, self.exit_code) {
            (Ending::Cancelled, _) => Some("Command aborted".to_owned()),
            (Ending::TimedOut { seconds }, _) => Some(format!("Command timed out after {seconds} seconds")),
            (Ending::Exited, Some(0)) => None,
            (Ending::Exited, Some(code)) => Some(format!("Command exited with code {code}")),
            (Ending::Exited, None) => Some("Command terminated without an exit code".to_owned()),
        };
        let mut text = self.output().to_owned();
        if text.is_empty() && self.ending == Ending::Exited {
            text.push_str("(no output)");
        }
        let notes = [self.output.notice(), note_of(&self.survivors)];
        for part in notes.into_iter().flatten() {
            append(&mut text, &part);
        }
        let details = details(&self.output.truncation, self.full_output_path());
        let structured = self.structured();
        match status {
            None => Ok(ToolOutput { details, structured, ..ToolOutput::text(text) }),
            Some(status) => {
                append(&mut text, &status);
                if let Some(note) = sandbox.and_then(|sandbox| sandbox.explain(self.output())) {
                    append(&mut text, &note);
                }
                Err(ToolError { message: text, details, structured: structured.map(Box::new) })
            }
        }
    }

    /// The result as data; none for a command that did not come to an end of its own.
    fn structured(&self) -> Option<Value> {
        let exit_code = self.exit_code.filter(|_| self.ending == Ending::Exited)?;
        let (output, truncated) = self.output.structured(STRUCTURED_MAX);
        let mut data = json!({"output": output, "truncated": truncated});
        if let Some(path) = self.full_output_path().filter(|_| truncated) {
            data["full_output_path"] = path.to_string_lossy().into();
        }
        data["exit_code"] = exit_code.into();
        let tenths = u64::try_from((self.time.as_millis() + 50) / 100).unwrap_or(u64::MAX);
        data["wall_time_seconds"] = match tenths % 10 {
            0 => json!(tenths / 10),
            _ => json!(Duration::from_millis(tenths * 100).as_secs_f64()),
        };
        Some(data)
    }
}

/// Adds a paragraph.
fn append(text: &mut String, part: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(part);
}

fn note_of(survivors: &[Survivor]) -> Option<String> {
    const NAMED_MAX: usize = 10;
    let mut names: Vec<String> = survivors
        .iter()
        .take(NAMED_MAX)
        .map(|survivor| format!("{} ({})", survivor.pid, survivor.name))
        .collect();
    if survivors.len() > NAMED_MAX {
        names.push(format!("{} more", survivors.len() - NAMED_MAX));
    }
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("[Still running in the background: {names}]"))
}

fn details(truncation: &Truncation, full_output: Option<&Path>) -> Option<Value> {
    if !truncation.truncated {
        return None;
    }
    let mut details = json!({"truncation": truncation});
    if let Some(path) = full_output {
        details["fullOutputPath"] = path.to_string_lossy().into();
    }
    Some(details)
}

fn timeout(seconds: f64) -> Result<Duration, ToolError> {
    if !seconds.is_finite() || seconds <= 0.0 {
        let message = "Invalid timeout: must be a finite number of seconds";
        return Err(ToolError::new(message));
    }
    if seconds > TIMEOUT_SECONDS_MAX {
        let message = format!("Invalid timeout: maximum is {TIMEOUT_SECONDS_MAX} seconds");
        return Err(ToolError::new(message));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn spawn(workspace: &Workspace, request: &Request<'_>) -> Result<Box<dyn Child>, ToolError> {
    let mut command = shell_command(workspace, request.command, request.session_variables)?;
    command.call = request.call.to_owned();
    let child = workspace.backend.spawn(&command);
    child.map_err(|error| ToolError::new(error.to_string()))
}

/// What a shell is started with to run `command`.
pub fn shell_command(
    workspace: &Workspace,
    command: &str,
    session_variables: bool,
) -> Result<ShellCommand, ToolError> {
    let options = &workspace.options;
    let command = ShellCommand {
        shell: shell(options, workspace.home.as_deref()),
        text: match &options.shell_command_prefix {
            Some(prefix) => format!("{prefix}\n{command}"),
            None => command.to_owned(),
        },
        call: String::new(),
        cwd: workspace.cwd.clone(),
        env: environment(workspace, session_variables),
        keep_background: options.bash_keep_background,
        input: None,
    };
    let cwd = &command.cwd;
    if workspace.backend.stat(cwd).is_err() {
        let message = format!("Working directory does not exist: {}", cwd.display());
        return Err(ToolError::new(message + "\nCannot execute bash commands."));
    }
    Ok(command)
}

fn shell(options: &Options, home: Option<&Path>) -> Option<PathBuf> {
    let path = options.shell_path.as_deref()?;
    Some(match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => path.into(),
    })
}

fn environment(workspace: &Workspace, session_variables: bool) -> BTreeMap<OsString, OsString> {
    let mut env = order::map(std::env::vars_os());
    for (name, value) in OWN_VARIABLES {
        env.insert(name.into(), value.into());
    }
    for (name, value) in QUIET_VARIABLES {
        // What the user has set counts for the user's own commands.
        if session_variables || !env.contains_key(OsStr::new(name)) {
            env.insert(name.into(), value.into());
        }
    }
    if session_variables {
        for (name, value) in NOBODY_VARIABLES {
            env.insert(name.into(), value.into());
        }
        for name in SESSION_VARIABLES {
            env.remove(&OsString::from(name));
        }
        let session = workspace.env.lock();
        for (name, value) in session.unwrap_or_else(|error| error.into_inner()).iter() {
            env.insert(name.into(), value.into());
        }
    }
    env
}

#[cfg(test)]
mod tests;
