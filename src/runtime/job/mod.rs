//! Background jobs of a session: the `job` tool, and `background` of the `bash` tool, which is declared while `job`
//! is active.

pub mod kept;

use super::addition::{Addition, OWN, Owner};
use super::control::{Control, WeakControl};
use crate::agent::call::{Arguments, Body, CallInfo};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::tools::bash;
use crate::tools::job::{Job, Start, Until, Waited, first_line};
use crate::tools::kept_job;
use regex::Regex;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const NAME: &str = "job";

const DESCRIPTION: &str = "Look after commands that bash has started with background: list, tail (the last lines), wait \
    (for the end, a line that matches a pattern, or a port that answers), send (text to stdin; empty closes it), stop.";

const LINES: usize = 50;
const LINES_MAX: u64 = 1000;
const WAIT_SECONDS: f64 = 60.0;
/// Time in which a new job that fails at once is noticed.
const FIRST_LOOK: Duration = Duration::from_millis(200);

/// Adds the tool to a session. It is not active before it is chosen.
pub fn offer(control: &Control) {
    let tool = JobTool { info: info(), control: control.downgrade() };
    let addition = Addition { tools: vec![Arc::new(tool)], ..Addition::default() };
    // A tool of the program itself is never refused.
    control.set_addition(Owner { rank: OWN, name: NAME.into() }, addition);
    let control_of_bash = control.downgrade();
    control.set_adapt(Arc::new(move |tools| with_background(&control_of_bash, tools)));
}

/// True if the model has the tool.
pub fn is_active(control: &Control) -> bool {
    control.tools().all().iter().any(|(tool, is_active)| *is_active && tool.info().spec.name == NAME)
}

fn info() -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: NAME.into(),
            description: DESCRIPTION.into(),
            parameters: json!({
                "type": "object",
                "required": ["op"],
                "properties": {
                    "op": {"type": "string", "enum": ["list", "tail", "wait", "send", "stop"]},
                    "job": {"type": "string", "description": "Its id"},
                    "pattern": {"type": "string", "description": "Regular expression"},
                    "port": {"type": "integer"},
                    "timeout": {"type": "number", "description": "Seconds; 60 by default"},
                    "text": {"type": "string"},
                    "lines": {"type": "integer"},
                },
            }),
            ..ToolSpec::default()
        },
        label: NAME.into(),
        snippet: Some("Look after commands in the background".into()),
        starts_inactive: true,
        ..ToolInfo::default()
    }
}

struct JobTool {
    info: ToolInfo,
    control: WeakControl,
}

impl Tool for JobTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let about = format!(" {} {}", text("op"), text("job")).trim_end().to_owned();
        CallInfo {
            title: Some(format!("Job:{about}").into()),
            notes: vec![about],
            body: Body::Arguments,
            rows: 10,
            ..CallInfo::default()
        }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let control = self.control.upgrade().ok_or_else(ToolError::aborted)?;
        let text = act(&control, call.arguments, call.cancel)?;
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        Ok(ToolOutput::text(text).with_details(json!({"jobs": to_json(&control)})))
    }
}

/// Returns `tools`, of which `bash` runs commands in the background if `job` is there, too.
fn with_background(control: &WeakControl, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
    let mut tools = tools.to_vec();
    if tools.iter().any(|tool| tool.info().spec.description == DESCRIPTION)
        && let Some(tool) = tools.iter_mut().find(|tool| tool.info().spec.name == "bash")
        // An extension's tool of the name is not known to run commands.
        && tool.info().serves.commands
    {
        let mut info = tool.info().clone();
        info.spec.description.push_str(" background starts it as a job and returns at once.");
        info.spec.parameters["properties"]["background"] = json!({"type": "boolean"});
        *tool = Arc::new(Bash { info, tool: tool.clone(), control: control.clone() });
    }
    tools
}

/// The `bash` tool with background jobs.
struct Bash {
    info: ToolInfo,
    tool: Arc<dyn Tool>,
    control: WeakControl,
}

impl Tool for Bash {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.tool.prepare(arguments)
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        self.tool.describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        if call.arguments.get("background") != Some(&Value::Bool(true)) {
            return self.tool.run(call);
        }
        let control = self.control.upgrade().ok_or_else(ToolError::aborted)?;
        let command = call.arguments.get("command").and_then(Value::as_str).unwrap_or_default();
        if control.kept_jobs().is_on() {
            let job = kept::start(&control, command)?;
            return Ok(ToolOutput::text(started(&job)).with_details(json!({ "job": job })));
        }
        let job = start(&control, command)?;
        job.wait(&Until::End, FIRST_LOOK, call.cancel);
        let text = match job.is_running() {
            true => started(&one_to_json(&job)),
            false => format!("{}\n{}", job.status(), job.tail(LINES)),
        };
        Ok(ToolOutput::text(text).with_details(json!({"job": one_to_json(&job)})))
    }
}

/// Starts a command in the background.
fn start(control: &Control, command: &str) -> Result<Arc<Job>, String> {
    let config = control.config();
    let workspace = &config.workspace;
    let folder = workspace.outputs.path();
    let folder = folder.map_err(|error| format!("There is no place for the output of a job: {error}"))?;
    let wakes = config.settings.flag("jobs.wake");
    let weak = control.downgrade();
    let on_end = move |job: &Job| {
        if let Some(control) = weak.upgrade().filter(|_| wakes) {
            let text = format!("The job {}: {}\n{}", job.status(), first_line(&job.command), job.tail(10));
            control.wake(NAME, text);
        }
    };
    start_in(control, command, &folder, 'j', Box::new(on_end))
}

/// Starts a command as a kept job of this process. `on_end` gets the job's id, and a sentence on its end.
pub fn start_kept(
    control: &Control,
    command: &str,
    folder: &Path,
    on_end: impl FnOnce(&str, &str) + Send + 'static,
) -> Result<Arc<Job>, String> {
    let on_end = move |job: &Job| on_end(&job.id, &job.status());
    start_in(control, command, folder, kept_job::PREFIX, Box::new(on_end))
}

fn start_in(
    control: &Control,
    command: &str,
    folder: &Path,
    prefix: char,
    on_end: Box<dyn FnOnce(&Job) + Send>,
) -> Result<Arc<Job>, String> {
    let workspace = &control.config().workspace;
    control.jobs().start(Start {
        backend: &*workspace.backend,
        command: bash::shell_command(workspace, command, true).map_err(|error| error.message)?,
        shown: command,
        folder,
        prefix,
        hider: workspace.vault.hider(),
        on_end,
    })
}

/// The answer to a call that has started a job.
fn started(job: &Value) -> String {
    let text = |name: &str| job[name].as_str().unwrap_or_default();
    format!("Started as job {}. Its output is in {}", text("id"), text("log"))
}

/// Does what `arguments` ask: `op` and its fields, as the model and clients send them. Clients can `start`, too.
pub fn act(
    control: &Control,
    arguments: &Map<String, Value>,
    cancel: &CancelToken,
) -> Result<String, String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let op = text("op").unwrap_or_default();
    match op {
        "list" => {
            let jobs = control.jobs().all();
            let row = |job: &Arc<Job>| format!("{}: {}", job.status(), first_line(&job.command));
            let rows: Vec<String> =
                control.kept_jobs().list().into_iter().chain(jobs.iter().map(row)).collect();
            return Ok(if rows.is_empty() { "There are no jobs".to_owned() } else { rows.join("\n") });
        }
        "start" => {
            let command = text("command").ok_or("command is needed")?;
            let job = match control.kept_jobs().is_on() {
                true => kept::start(control, command)?,
                false => one_to_json(&*start(control, command)?),
            };
            return Ok(started(&job));
        }
        "tail" | "wait" | "send" | "stop" => {}
        _ => return Err(format!("There is no op {op:?}; there are list, tail, wait, send and stop")),
    }
    let id = text("job").ok_or("job is needed: the id of one, such as j1")?;
    let is_elsewhere = id.starts_with(kept_job::PREFIX) && control.jobs().find(id).is_err();
    if is_elsewhere {
        return control.kept_jobs().act(id, arguments, cancel);
    }
    let job = control.jobs().find(id)?;
    let lines = arguments.get("lines").and_then(Value::as_u64).unwrap_or(LINES as u64).clamp(1, LINES_MAX);
    let tail = |first: String| format!("{first}\n{}", job.tail(usize::try_from(lines).unwrap_or(LINES)));
    Ok(match op {
        "send" => {
            let text = text("text").ok_or("text is needed; an empty one closes the input")?;
            let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            job.send(&format!("{text}{newline}"))?;
            format!("Sent to {}", job.id)
        }
        "stop" => {
            job.stop(cancel);
            tail(job.status())
        }
        "wait" => {
            let until = match (text("pattern"), arguments.get("port").and_then(Value::as_u64)) {
                (Some(pattern), _) => {
                    let pattern = Regex::new(pattern);
                    Until::Line(pattern.map_err(|error| format!("The pattern cannot be used: {error}"))?)
                }
                (None, Some(port)) => {
                    Until::Port(u16::try_from(port).map_err(|_| format!("There is no port {port}"))?)
                }
                (None, None) => Until::End,
            };
            let seconds = arguments.get("timeout").and_then(Value::as_f64).unwrap_or(WAIT_SECONDS);
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(3600));
            match job.wait(&until, time, cancel) {
                Waited::Line(line) => format!("{} printed: {line}", job.id),
                Waited::Answers => "The port answers".to_owned(),
                Waited::Ended => tail(job.status()),
                Waited::TimedOut | Waited::Cancelled => tail(format!("Not yet. {}", job.status())),
            }
        }
        _ => tail(job.status()),
    })
}

/// The jobs of a session for other programs, oldest first.
pub fn to_json(control: &Control) -> Vec<Value> {
    let own = control.jobs().all();
    control.kept_jobs().all().into_iter().chain(own.iter().map(|job| one_to_json(job))).collect()
}

fn one_to_json(job: &Job) -> Value {
    json!({"id": job.id, "command": job.command, "running": job.is_running(), "exitCode": job.exit_code(),
        "log": job.log})
}
