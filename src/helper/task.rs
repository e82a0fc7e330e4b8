//! The `task` tool.

use super::report;
use super::team::{Orders, Team};
use crate::agent::call::{Arguments, Body, CallInfo};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::message::{Block, ToolSpec, text_of};
use crate::resources::agent::Agents;
use crate::runtime::control::Control;
use crate::runtime::helpers::Report;
use serde_json::{Map, Value};
use std::sync::Arc;

pub const NAME: &str = "task";

/// The agent of a task that names none.
const DEFAULT_AGENT: &str = "general";

/// Maximum tasks of a call.
const TASKS_MAX: usize = 16;

/// One task of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub agent: String,
    pub text: String,
    pub name: Option<String>,
    pub schema: Option<Value>,
    /// True for work in a copy of the folder.
    pub is_isolated: bool,
}

impl Task {
    /// Reads the tasks of arguments that satisfy the schema.
    pub fn all(arguments: &Map<String, Value>) -> Vec<Self> {
        let tasks = arguments.get("tasks").and_then(Value::as_array);
        tasks.into_iter().flatten().map(Self::of).collect()
    }

    fn of(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            agent: text("agent").unwrap_or_else(|| DEFAULT_AGENT.into()),
            text: text("task").unwrap_or_default(),
            name: text("name"),
            is_isolated: value["isolated"] == true,
            schema: value.get("output_schema").filter(|schema| schema.is_object()).cloned(),
        }
    }
}

/// The description of the tool for a model that may use the agents that `is_allowed` admits.
pub fn spec(agents: &Agents, is_allowed: impl Fn(&str) -> bool) -> ToolSpec {
    let mut description = String::from(
        "Give tasks to helpers, agents that work beside each other with a context of their own and come back with a \
         result. They see nothing of this conversation: say all that they need. Agents:",
    );
    for agent in agents.used().filter(|agent| is_allowed(&agent.name)) {
        description.push_str(&format!("\n- {}: {}", agent.name, agent.description));
    }
    ToolSpec {
        name: NAME.into(),
        description,
        parameters: json!({
            "type": "object",
            "required": ["tasks"],
            "properties": {
                "tasks": {"type": "array", "minItems": 1, "maxItems": TASKS_MAX, "items": {
                    "type": "object",
                    "required": ["task"],
                    "properties": {
                        "agent": {"type": "string", "description": "general, if not given"},
                        "task": {"type": "string", "minLength": 1},
                        "name": {"type": "string", "description": "Short name of the helper"},
                        "output_schema": {"type": "object", "description": "JSON schema of the result"},
                        "isolated": {"type": "boolean", "description": "Work in a copy; changes are merged at the end"},
                    },
                }},
            },
        }),
        ..ToolSpec::default()
    }
}

pub struct TaskTool {
    info: ToolInfo,
    team: Arc<Team>,
}

impl TaskTool {
    pub fn new(control: &Control) -> Self {
        let mut spec = spec(&control.config().agents, |_| true);
        let about = "Return at once; the results come as a message";
        spec.parameters["properties"]["background"] = json!({"type": "boolean", "description": about});
        let info = ToolInfo {
            spec,
            label: NAME.into(),
            snippet: Some("Give tasks to helpers that work beside each other".into()),
            // Helpers are bound as the session is, and ask for each change.
            reads_only: true,
            starts_inactive: true,
            ..ToolInfo::default()
        };
        Self { info, team: Arc::new(Team::new(control)) }
    }
}

impl Tool for TaskTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn prepare(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        // Some models send a single task without the list.
        if !arguments.contains_key("tasks") && arguments.contains_key("task") {
            let background = arguments.remove_entry("background");
            let tasks = ("tasks".to_owned(), json!([arguments]));
            return Map::from_iter(std::iter::once(tasks).chain(background));
        }
        if let Some(task @ Value::Object(_)) = arguments.get_mut("tasks") {
            *task = json!([task.take()]);
        }
        arguments
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        let tasks = Task::all(arguments);
        let names: Vec<&str> =
            tasks.iter().map(|task| task.name.as_ref().unwrap_or(&task.agent).as_str()).collect();
        let title = match tasks.as_slice() {
            [] => None,
            [task] => {
                Some(format!("Task for {}: {}", task.agent, task.text.lines().next().unwrap_or_default()))
            }
            _ => Some(format!("Tasks for {}", names.join(", "))),
        };
        CallInfo {
            title: title.map(Into::into),
            notes: (!names.is_empty()).then(|| format!(" {}", names.join(", "))).into_iter().collect(),
            body: Body::Arguments,
            rows: 20,
            ..CallInfo::default()
        }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let tasks = Task::all(call.arguments);
        if call.arguments.get("background") == Some(&Value::Bool(true)) {
            return self.run_in_background(tasks, call.id.to_owned());
        }
        let config = self.team.control().ok_or_else(ToolError::aborted)?.config();
        let orders = Orders {
            depth: 1,
            is_allowed: &|_| true,
            update: &|reports| (call.update)(report::progress(reports)),
            cancel: call.cancel,
            cwd: &config.workspace.cwd,
            copies: &[],
            call: call.id,
        };
        let reports = self.team.run(&tasks, &orders).ok_or_else(ToolError::aborted)?;
        Ok(report::result(&reports))
    }
}

impl TaskTool {
    /// Starts helpers whose results arrive as a message.
    fn run_in_background(&self, tasks: Vec<Task>, call: String) -> Result<ToolOutput, ToolError> {
        let control = self.team.control().ok_or_else(ToolError::aborted)?;
        let background = control.helpers().begin();
        let members = self.team.muster(&tasks, &control, true, &background.cancel);
        let reports: Vec<Report> = members.iter().map(|member| member.report()).collect();
        let team = self.team.clone();
        let work = move || {
            let cancel = &background.cancel;
            let config = control.config();
            let orders = Orders {
                depth: 1,
                is_allowed: &|_| true,
                update: &|_| {},
                cancel,
                cwd: &config.workspace.cwd,
                copies: &[],
                call: &call,
            };
            let reports = team.run_members(&tasks, &members, &control, &orders);
            // A conversation that has ended is not told.
            if !cancel.is_cancelled() {
                control.wake(NAME, text_of(&report::result(&reports).content));
            }
        };
        let started = Thread::named("helpers").start(work);
        started.map_err(|error| ToolError::new(format!("Cannot start a thread: {error}")))?;
        let names: Vec<&str> = reports.iter().map(|report| report.name.as_str()).collect();
        let text = format!("Started {}. The result arrives as a message.", names.join(", "));
        Ok(ToolOutput { content: vec![Block::text(text)], ..report::progress(&reports) })
    }
}
