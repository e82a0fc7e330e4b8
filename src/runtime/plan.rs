//! Plan mode: the model looks around and makes a plan, and changes nothing before the user has accepted it.
//!
//! While it is on, only tools that change nothing are offered and run, and the `plan` tool, which keeps the plan in
//! a file of the agent folder and asks the user. The conversation records each change of the mode, so that a
//! resumed one goes on in it.

use super::addition::{Addition, OWN, Owner};
use super::control::{Control, Planning, WeakControl, user_message};
use super::task::{Ask, Streaming, Task};
use super::ui::{Change, Dialog, Ui};
use crate::agent::call::{Argument, Arguments, Body, CallInfo};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::file;
use crate::base::json::json;
use crate::llm::message::{ToolSpec, now_ms};
use crate::session::Log;
use crate::session::entry;
use crate::session::index::Kind;
use crossbeam_channel::bounded;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

pub const NAME: &str = "plan";

/// Type of the entries that record the mode.
const ENTRY: &str = "plan-mode";

/// Tools that the mode offers beside the active ones.
const LOOKING: [&str; 4] = ["read", "grep", "find", "ls"];

const ABOUT: &str = "Plan mode is on. Look around, think and ask, but change nothing: tools that change something are \
    not available. When you know what is to be done, call plan with the whole plan in Markdown: the goal, the steps \
    with the files that they touch, and how the result is checked. The user accepts it, changes it or refuses it.";

const GO: &str = "Carry out this plan now.";

const ACCEPT: &str = "Accept";
const ACCEPT_FRESH: &str = "Accept, in a fresh session";
const EDIT: &str = "Edit";
const REFUSE: &str = "Refuse, and say why";

#[derive(Serialize, Deserialize)]
struct Recorded {
    active: bool,
    #[serde(flatten)]
    planning: Planning,
}

/// Adds the tool to a session, and goes on in plan mode where the conversation is in it.
pub fn offer(control: &Control) {
    let tool = PlanTool { info: info(), control: control.downgrade() };
    let addition = Addition { tools: vec![Arc::new(tool)], ..Addition::default() };
    // A tool of the program itself is never refused.
    control.set_addition(owner(), addition);
    control.restore_planning();
}

fn owner() -> Owner {
    Owner { rank: OWN, name: NAME.into() }
}

/// The owner of the section of the system prompt.
fn section() -> Owner {
    Owner { rank: OWN, name: "plan mode".into() }
}

impl Control {
    pub fn is_planning(&self) -> bool {
        self.planning().is_some()
    }

    /// Turns plan mode on, from the next request on. `accepts`: plans are accepted without a question.
    pub fn begin_planning(&self, accepts: bool) -> Result<(), String> {
        if self.is_planning() {
            return Ok(());
        }
        let all = self.tools().all();
        let is_there = |name: &str| all.iter().any(|(tool, _)| tool.info().spec.name == name);
        if !is_there(NAME) {
            return Err("Plan mode needs the tool plan, which --tools or --exclude-tools leaves out".into());
        }
        let name_of = |tool: &Arc<dyn Tool>| tool.info().spec.name.clone();
        let active = all.iter().filter(|(_, is_active)| *is_active).map(|(tool, _)| tool);
        let tools: Vec<String> = active.clone().map(name_of).filter(|name| name != NAME).collect();
        let mut planned: Vec<String> = active.filter(|tool| tool.info().reads_only).map(name_of).collect();
        let missing = LOOKING.into_iter().chain([NAME]).filter(|name| is_there(name)).map(str::to_owned);
        planned.extend(missing.filter(|name| !tools.contains(name)).collect::<Vec<_>>());
        self.enter_planning(Planning { tools, accepts }, &planned)
    }

    fn enter_planning(&self, planning: Planning, tools: &[String]) -> Result<(), String> {
        self.record_planning(&Recorded { active: true, planning: planning.clone() })?;
        *self.planning() = Some(planning);
        self.take_up_planning(true);
        self.tools().set_active(tools);
        Ok(())
    }

    /// Turns plan mode off: the tools that were active before are so again.
    pub fn end_planning(&self) -> Result<(), String> {
        let Some(planning) = self.planning().clone() else {
            return Ok(());
        };
        self.record_planning(&Recorded { active: false, planning: Planning::default() })?;
        *self.planning() = None;
        self.take_up_planning(false);
        self.tools().set_active(&planning.tools);
        Ok(())
    }

    /// Takes up the mode that the conversation has recorded.
    pub(super) fn restore_planning(&self) {
        let recorded = recorded(&self.log()).filter(|recorded| recorded.active);
        let planning = recorded.map(|recorded| recorded.planning);
        let is_on = planning.is_some();
        if std::mem::replace(&mut *self.planning(), planning).is_some() || is_on {
            self.take_up_planning(is_on);
        }
    }

    /// Tells the model and the user of the mode.
    fn take_up_planning(&self, is_on: bool) {
        if is_on {
            let sections = vec![("plan_mode".to_owned(), ABOUT.to_owned())];
            self.set_addition(section(), Addition { sections, ..Addition::default() });
        } else {
            self.remove_addition(&section());
        }
        self.show_planning();
    }

    /// Shows the mode where the user sees it.
    pub(super) fn show_planning(&self) {
        if let Some(ui) = self.ui() {
            let text = self.is_planning().then(|| "plan mode".to_owned());
            ui.show(Change::Status { key: NAME.into(), text });
        }
    }

    fn record_planning(&self, recorded: &Recorded) -> Result<(), String> {
        let data = serde_json::to_value(recorded).map_err(|error| error.to_string())?;
        self.append_custom(ENTRY.into(), Some(data)).map(drop)
    }

    /// Why a call of a tool does not run in plan mode; `None` if it does.
    pub(super) fn refusal_while_planning(&self, tool: &ToolInfo) -> Option<String> {
        let is_refused = !tool.reads_only && self.is_planning();
        is_refused.then(|| {
            format!(
                "Plan mode is on: {} could change something. Give the plan with {NAME} first.",
                tool.spec.name
            )
        })
    }
}

/// The last record of the mode on the branch.
fn recorded(log: &Log) -> Option<Recorded> {
    let leaf = log.leaf().and_then(|leaf| log.index().find(leaf));
    let path = log.index().path(leaf);
    let custom =
        path.iter().rev().filter(|at| log.index().get(**at).is_some_and(|slot| slot.kind == Kind::Custom));
    let data = custom.filter_map(|at| match log.entry_at(*at)?.body {
        entry::Body::Custom(custom) if custom.custom_type == ENTRY => custom.data,
        _ => None,
    });
    data.map(|data| serde_json::from_value(data).ok()).next().flatten()
}

fn info() -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: NAME.into(),
            description:
                "Give the user the plan for what is to be done; he accepts it, changes it or refuses it."
                    .into(),
            parameters: json!({
                "type": "object",
                "required": ["text"],
                "properties": {"text": {"type": "string", "minLength": 1, "description": "The whole plan in Markdown"}},
            }),
            ..ToolSpec::default()
        },
        label: NAME.into(),
        sequential: true,
        // The file of the plan is pi's own.
        reads_only: true,
        starts_inactive: true,
        ..ToolInfo::default()
    }
}

struct PlanTool {
    info: ToolInfo,
    control: WeakControl,
}

impl Tool for PlanTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        CallInfo {
            title: Some("Plan".into()),
            body: Body::Content(Argument::of(arguments, "text")),
            rows: 100,
            ..CallInfo::default()
        }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let control = self.control.upgrade().ok_or_else(ToolError::aborted)?;
        let planning = control.planning().clone();
        let planning = planning.ok_or_else(|| ToolError::new("Plan mode is off: go on without a plan."))?;
        let text = Argument::of(call.arguments, "text").text().unwrap_or_default().to_owned();
        let path = path_of(&control);
        let keep = |text: &str| {
            let folder = path.parent().map_or(Ok(()), file::make_private_folder);
            folder.and_then(|()| file::replace(&path, text.as_bytes())).map_err(|error| {
                ToolError::new(format!("The plan could not be written to {}: {error}", path.display()))
            })
        };
        keep(&text)?;
        let details = |decision: &str| json!({"decision": decision, "file": path});
        let told = |decision: &str, text: String| Ok(ToolOutput::text(text).with_details(details(decision)));
        let accept = || control.end_planning().map_err(ToolError::new);
        if planning.accepts {
            accept()?;
            return told("accepted", format!("Accepted. {GO}"));
        }
        let ui = control.ui().filter(|ui| ui.is_attended());
        let Some(ui) = ui else {
            let shown = path.display();
            return told(
                "waiting",
                format!(
                    "Kept in {shown}. Nobody is here to accept it: say in a few words what it plans, and stop."
                ),
            );
        };
        loop {
            match choose(&*ui, &path, call).as_deref() {
                Some(ACCEPT) => {
                    accept()?;
                    return told("accepted", format!("Accepted. {GO}"));
                }
                Some(ACCEPT_FRESH) => {
                    go_on_afresh(&control, &text).map_err(ToolError::new)?;
                    let output = ToolOutput::text("Accepted. It is carried out in a fresh session.");
                    return Ok(ToolOutput { terminate: true, ..output.with_details(details("accepted")) });
                }
                Some(EDIT) => {
                    let dialog = Dialog::Editor { title: "The plan", prefill: Some(&text) };
                    if let Some(edited) = ui.ask(&dialog, None, call.cancel).filter(|edited| *edited != text)
                    {
                        keep(&edited)?;
                        accept()?;
                        return told("edited", format!("The user has changed the plan:\n\n{edited}\n\n{GO}"));
                    }
                }
                Some(REFUSE) => {
                    let dialog = Dialog::Input { title: "What should be different?", placeholder: None };
                    if let Some(words) = ui.ask(&dialog, None, call.cancel) {
                        let words = if words.trim().is_empty() { "without words".to_owned() } else { words };
                        return told("refused", format!("Refused: {words}\nMake a better plan."));
                    }
                }
                _ if call.cancel.is_cancelled() => return Err(ToolError::aborted()),
                _ => {
                    let output = ToolOutput::text("The user has not decided yet. Wait for his word.");
                    return Ok(ToolOutput { terminate: true, ..output.with_details(details("open")) });
                }
            }
            if call.cancel.is_cancelled() {
                return Err(ToolError::aborted());
            }
        }
    }
}

fn choose(ui: &dyn Ui, path: &std::path::Path, call: &Invocation<'_>) -> Option<String> {
    let title = format!("Accept the plan? It is kept in {}", path.display());
    let options = [ACCEPT, ACCEPT_FRESH, EDIT, REFUSE].map(str::to_owned);
    ui.ask(&Dialog::Select { title: &title, options: &options }, None, call.cancel)
}

/// The file of a session's plan.
fn path_of(control: &Control) -> PathBuf {
    let (id, config) = (control.log().header().id.clone(), control.config());
    let date = crate::base::time::iso(now_ms());
    let name = format!("{}-{id}.md", date.get(..10).unwrap_or_default());
    config.agent_dir.join("plans").join(name)
}

/// Hands the plan to a new session, which begins when the run has ended.
fn go_on_afresh(control: &Control, text: &str) -> Result<(), String> {
    let parent = control.snapshot().session_file.map(|path| path.to_string_lossy().into_owned());
    control.end_planning()?;
    // Nobody reads what came of it: the new session is told by its events.
    let (reply, _) = bounded(1);
    control.hand_over(Task::Ask(Ask::New { parent, entries: Vec::new() }, reply))?;
    let prompt = user_message(format!("{GO}\n\n{text}"), Vec::new());
    control.hand_over(Task::Prompt(prompt, Streaming::FollowUp))
}
