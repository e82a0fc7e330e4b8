//! Answers commands: at once, or by handing them to the session's thread.

use super::command::{Command, Incoming, Navigate, Page, Said};
use super::dialog::Dialog;
use super::host_tool::HostTools;
use super::reply::Reply;
use super::work::{Job, tell};
use super::{CAPABILITIES, PROTOCOL_VERSION};
use crate::mode::REFERENCE_VERSION;
use crate::mode::output::Output;
use crate::mode::report;
use crate::runtime::control::{Begin, Control, Streaming, user_message};
use crate::runtime::event::Event;
use crate::runtime::{AgentMessage, Fatal};
use crossbeam_channel::{Sender, TrySendError};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::thread;

pub struct Dispatcher {
    pub control: Control,
    pub output: Arc<Output>,
    pub dialog: Arc<Dialog>,
    pub host_tools: Arc<HostTools>,
    pub jobs: Sender<Job>,
    /// Held by every shell and export; the receiver knows when the last one has gone.
    pub alive: Sender<()>,
}

impl Dispatcher {
    pub fn handle(&self, incoming: Incoming) {
        let Incoming { id, name, command } = incoming;
        let reply = Reply::new(self.output.clone(), id, name);
        match command {
            Ok(command) => self.command(command, reply),
            Err(reason) => reply.fail(reason),
        }
    }

    /// Answers a line that is no command.
    pub fn refuse(&self, reason: &str) {
        let reason = format!("Failed to parse command: {reason}");
        self.tell_error(&reason);
        Reply::new(self.output.clone(), None, Some("parse".into())).fail(reason);
    }

    /// Clients of the older form read errors as events.
    fn tell_error(&self, reason: &str) {
        if self.output.is_cumulative() {
            let _ = self.output.line(&json!({"type": "error", "error": reason}));
        }
    }

    fn tell(&self, event: &Event<'_>) {
        // A reader that has gone ends the program by the output's token.
        let _ = self.output.event_of_command(event);
    }

    fn command(&self, command: Command, reply: Reply) {
        let control = &self.control;
        let mut tell = |event: &Event<'_>| self.tell(event);
        match command {
            Command::Prompt(said, streaming) => self.prompt(said, streaming, reply),
            Command::Steer(said) => {
                control.steer(message(self.expand(said)), &mut tell);
                reply.done();
            }
            Command::FollowUp(said) => {
                control.follow_up(message(self.expand(said)), &mut tell);
                reply.done();
            }
            Command::Abort => {
                control.abort();
                control.when_idle(|| reply.done());
            }
            Command::Interrupt => {
                control.abort();
                control.when_idle(|| reply.interrupted());
            }
            Command::AbortAndPrompt(said) => {
                let said = self.expand(said);
                control.abort();
                self.hand_over(Job::AfterAbort { said, reply });
            }
            Command::ClearQueue => {
                let (steering, follow_up) = control.clear_queue(&mut tell);
                reply.data(json!({"steering": steering, "followUp": follow_up}));
            }
            Command::NewSession { parent } => {
                control.abort();
                self.hand_over(Job::NewSession { parent, reply });
            }
            Command::SwitchSession { path } => {
                control.abort();
                self.hand_over(Job::SwitchSession { path, reply });
            }
            Command::Fork { entry } => {
                control.abort();
                self.hand_over(Job::Fork { entry, reply });
            }
            Command::Clone => {
                control.abort();
                self.hand_over(Job::Clone { reply });
            }
            Command::GetState => reply.data(self.state()),
            Command::GetMessages { page } => messages(&control.messages(), page, reply),
            Command::GetEntries { since } => match control.entries(since.as_deref()) {
                Some((entries, leaf)) => reply.data(json!({"entries": entries, "leafId": leaf})),
                None => reply.fail(format_args!("Entry not found: {}", since.unwrap_or_default())),
            },
            Command::SetModel { provider, id } => {
                let set = control.set_model(&provider, &id, &mut tell);
                match set {
                    Ok(Some(model)) => reply.data(model.shown()),
                    Ok(None) => reply.fail(format_args!("Model not found: {provider}/{id}")),
                    Err(reason) => reply.fail(reason),
                }
            }
            Command::CycleModel => answer(control.cycle_model(true, &mut tell), reply, |cycled| {
                cycled.map(|cycled| {
                    json!({"model": cycled.model.shown(), "thinkingLevel": cycled.thinking, "isScoped": cycled.is_scoped})
                })
            }),
            Command::GetAvailableModels => {
                let models = control.available_models();
                let models: Vec<_> = models.iter().map(|model| model.shown()).collect();
                reply.data(json!({"models": models}));
            }
            Command::SetThinkingLevel(level) => match control.set_thinking(level, &mut tell) {
                Ok(_) => reply.done(),
                Err(reason) => reply.fail(reason),
            },
            Command::CycleThinkingLevel => {
                answer(control.cycle_thinking(&mut tell), reply, |level| {
                    level.map(|level| json!({"level": level}))
                });
            }
            Command::GetAvailableThinkingLevels => {
                reply.data(json!({"levels": control.thinking_levels()}));
            }
            Command::SetSteeringMode(mode) => set(control.set_steering_mode(mode), reply),
            Command::SetFollowUpMode(mode) => set(control.set_follow_up_mode(mode), reply),
            Command::SetAutoCompaction(on) => set(control.set_auto_compaction(on), reply),
            Command::SetAutoRetry(on) => set(control.set_auto_retry(on), reply),
            Command::SetInterruptMode(mode) => {
                control.set_interrupt_mode(mode);
                reply.done();
            }
            Command::AbortRetry => {
                control.abort_retry();
                reply.done();
            }
            Command::Bash { command, exclude } => self.shell(command, exclude, reply),
            Command::AbortBash => {
                control.abort_shells();
                reply.done();
            }
            Command::GetSessionStats => reply.data(control.stats()),
            Command::GetForkMessages => {
                let points = control.fork_points().into_iter();
                let messages: Vec<Value> =
                    points.map(|point| json!({"entryId": point.entry_id, "text": point.text})).collect();
                reply.data(json!({"messages": messages}));
            }
            Command::GetLastAssistantText => {
                reply.data(json!({"text": control.last_assistant_text()}));
            }
            Command::SetSessionName(name) => match name.trim() {
                "" => reply.fail("Session name cannot be empty"),
                name => match control.set_name(name, &mut tell) {
                    Ok(()) => reply.done(),
                    Err(reason) => reply.fail(reason),
                },
            },
            Command::GetTools => reply.data(json!({"tools": tools(control)})),
            Command::SetActiveTools(names) => {
                reply.data(json!({"toolNames": control.set_active_tools(&names)}));
            }
            Command::RegisterTools(tools) => {
                let tools = tools.into_iter().map(|tool| self.host_tools.tool(tool));
                match control.register_tools(tools.collect()) {
                    Ok(names) => reply.data(json!({"toolNames": names})),
                    Err(reason) => reply.fail(reason),
                }
            }
            Command::UnregisterTools(names) => {
                reply.data(json!({"toolNames": control.unregister_tools(&names)}));
            }
            Command::ToolUpdate(update) => {
                if let Some(id) = reply.id() {
                    self.host_tools.update(id, update);
                }
            }
            Command::ToolResponse(result) => {
                if let Some(id) = reply.id() {
                    self.host_tools.respond(id, result);
                }
            }
            Command::Ping => reply.done(),
            Command::SetCumulativeEvents(on) => {
                self.output.set_cumulative(on);
                reply.done();
            }
            Command::Answer(answer) => {
                if let Some(id) = reply.id() {
                    self.dialog.answer(id, answer);
                }
            }
            Command::GetCommands => reply.data(json!({"commands": control.commands()})),
            Command::Compact { instructions } => self.compact(instructions, reply),
            Command::ExportHtml { path } => self.export(path, reply),
            Command::GetTree => match tree(control) {
                Ok(tree) => reply.data(tree),
                Err(reason) => reply.fail(reason),
            },
            Command::NavigateTree(wanted) => self.navigate(wanted, reply),
            Command::Reload => self.hand_over(Job::Reload { reply }),
        }
    }

    fn prompt(&self, said: Said, streaming: Option<Streaming>, reply: Reply) {
        let said = self.expand(said);
        let mut tell = |event: &Event<'_>| self.tell(event);
        let queued = || message(said.clone());
        let begun = self.control.begin(streaming, queued, &mut tell);
        match begun {
            Ok(Begin::Run(ticket)) => self.hand_over(Job::Prompt { ticket, said, reply }),
            Ok(Begin::Queued) => reply.done(),
            Err(reason) => reply.fail(reason),
        }
    }

    fn expand(&self, said: Said) -> Said {
        let (text, diagnostic) = self.control.expand(said.text);
        diagnostic.iter().for_each(report::warning);
        Said { text, ..said }
    }

    fn compact(&self, instructions: Option<String>, reply: Reply) {
        self.control.abort();
        match self.control.begin_compaction() {
            Ok(ticket) => self.hand_over(Job::Compact { ticket, instructions, reply }),
            Err(reason) => reply.fail(reason),
        }
    }

    fn navigate(&self, wanted: Navigate, reply: Reply) {
        let now = self.control.snapshot();
        if now.is_streaming {
            return reply.fail("Wait for the current response to finish before navigating the session tree.");
        }
        match self.control.begin_compaction() {
            Ok(ticket) => self.hand_over(Job::Navigate {
                ticket,
                wanted,
                reply,
            }),
            Err(_) => reply.fail(
                "Wait for the current compaction or tree navigation to finish before navigating the session tree.",
            ),
        }
    }

    /// Gives a job to the session's thread, which may have others before it.
    fn hand_over(&self, job: Job) {
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                job.into_reply().fail("Too many commands wait for the session");
            }
        }
    }

    fn shell(&self, command: String, exclude: Option<bool>, reply: Reply) {
        let shell = match self.control.begin_shell() {
            Ok(shell) => shell,
            Err(reason) => return reply.fail(reason),
        };
        let (output, alive) = (self.output.clone(), self.alive.clone());
        let spare = reply.again();
        let run = move || {
            let ran = shell.run(&command, exclude, &mut |delta| {
                let id = reply.id();
                tell(&output, &Event::BashUpdate { id, delta });
            });
            match ran {
                Ok((result, message)) => {
                    if output.is_cumulative() {
                        let _ = output.line(&json!({"type": "bash_end", "message": message}));
                    }
                    reply.data(result);
                }
                Err(reason) => reply.fail(reason),
            }
            drop(alive);
        };
        let started = thread::Builder::new().name("shell".into()).spawn(run);
        if let Err(error) = started {
            spare.fail(format_args!("Cannot start a thread: {error}"));
        }
    }

    fn export(&self, path: Option<String>, reply: Reply) {
        let (control, alive) = (self.control.clone(), self.alive.clone());
        let spare = reply.again();
        let run = move || {
            match control.export(path.as_deref().map(Path::new)) {
                Ok(path) => reply.data(json!({"path": path.to_string_lossy()})),
                Err(reason) => reply.fail(reason),
            }
            drop(alive);
        };
        let started = thread::Builder::new().name("export".into()).spawn(run);
        if let Err(error) = started {
            spare.fail(format_args!("Cannot start a thread: {error}"));
        }
    }

    fn state(&self) -> Value {
        let now = self.control.snapshot();
        let mut state = json!({
            "model": now.model.shown(),
            "thinkingLevel": now.thinking,
            "isStreaming": now.is_streaming,
            "isCompacting": now.is_compacting,
            "steeringMode": now.steering_mode.name(),
            "followUpMode": now.follow_up_mode.name(),
        });
        if let Value::Object(fields) = &mut state {
            if let Some(path) = &now.session_file {
                fields.insert("sessionFile".into(), path.to_string_lossy().into());
            }
            fields.insert("sessionId".into(), now.session_id.into());
            if let Some(name) = now.session_name {
                fields.insert("sessionName".into(), name.into());
            }
            let rest = json!({
                "autoCompactionEnabled": now.switches.auto_compaction,
                "messageCount": now.message_count,
                "pendingMessageCount": now.pending_message_count,
                "interruptMode": now.switches.interrupt.name(),
                "autoRetryEnabled": now.switches.auto_retry,
                "activeTools": now.active_tools,
                "cwd": now.cwd.to_string_lossy(),
                "protocolVersion": PROTOCOL_VERSION,
                "capabilities": CAPABILITIES,
                "version": env!("CARGO_PKG_VERSION"),
                "referenceVersion": REFERENCE_VERSION,
            });
            if let Value::Object(rest) = rest {
                fields.extend(rest);
            }
        }
        state
    }
}

impl Job {
    fn into_reply(self) -> Reply {
        match self {
            Self::Prompt { reply, .. }
            | Self::AfterAbort { reply, .. }
            | Self::NewSession { reply, .. }
            | Self::SwitchSession { reply, .. }
            | Self::Fork { reply, .. }
            | Self::Clone { reply }
            | Self::Reload { reply }
            | Self::Navigate { reply, .. }
            | Self::Compact { reply, .. } => reply,
        }
    }
}

fn answer<T>(result: Result<T, Fatal>, reply: Reply, data: impl Fn(T) -> Option<Value>) {
    match result {
        // Where there is nothing to go to, the data is null.
        Ok(value) => reply.data(data(value).unwrap_or(Value::Null)),
        Err(reason) => reply.fail(reason),
    }
}

/// What is set holds for this program in any case.
fn set(remembered: Result<(), String>, reply: Reply) {
    if let Err(reason) = remembered {
        report::warning(reason);
    }
    reply.done();
}

fn message(said: Said) -> AgentMessage {
    user_message(said.text, said.images)
}

fn messages(all: &[AgentMessage], page: Option<Page>, reply: Reply) {
    let Some(Page { offset, limit }) = page else {
        return reply.data(json!({"messages": all}));
    };
    let end = offset.saturating_add(limit).min(all.len());
    let part = all.get(offset..end).unwrap_or_default();
    let next = (end < all.len()).then_some(end);
    reply.data(json!({"messages": part, "total": all.len(), "nextOffset": next}));
}

/// The tree as it is written, not parsed again.
fn tree(control: &Control) -> Result<impl Serialize + use<>, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tree {
        tree: Box<RawValue>,
        leaf_id: Option<String>,
    }
    let (tree, leaf_id) = control.tree_json();
    let tree = RawValue::from_string(tree)?;
    Ok(Tree { tree, leaf_id })
}

fn tools(control: &Control) -> Vec<Value> {
    let describe = |(tool, active): (Arc<dyn crate::runtime::Tool>, bool)| {
        let info = tool.info();
        json!({
            "name": info.spec.name,
            "label": info.label,
            "description": info.spec.description,
            "parameters": info.spec.parameters,
            "active": active,
            "readOnly": info.reads_only,
        })
    };
    control.tools().into_iter().map(describe).collect()
}
