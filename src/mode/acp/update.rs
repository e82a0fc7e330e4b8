//! What happens in a session, as `session/update` notifications.
//!
//! A call is announced as soon as the model names its tool, filled in when it starts, and always ended:
//! one that never ran, because the answer broke off, is told as failed.
//!
//! Each answer has a message id of its own, and so has each attempt at one. For clients that go by the text
//! alone a broken attempt ends in an empty line before the next one begins.

use super::call::{self, Change};
use super::peer::Able;
use super::replay::text_block;
use crate::runtime::call::CallInfo;
use crate::runtime::event::{Event, Reason};
use crate::runtime::{AgentEvent, AgentMessage, AssistantEvent, Describer, ToolOutput, Workspace, unique_id};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Follows one prompt.
pub struct Updates {
    workspace: Arc<Workspace>,
    describer: Describer,
    able: Able,
    /// Calls that were announced and have not ended, and whether a diff shows what they do.
    open: HashMap<String, bool>,
    /// Names of the answer under way: of what it says, and of what it thinks.
    said: String,
    thought: String,
    /// The answer under way has said something.
    has_said: bool,
    /// The answer before broke off in what it said under this name.
    broken: Option<String>,
    compaction: String,
}

impl Updates {
    pub fn new(workspace: Arc<Workspace>, describer: Describer, able: Able) -> Self {
        Self {
            workspace,
            describer,
            able,
            open: HashMap::new(),
            said: unique_id(),
            thought: unique_id(),
            has_said: false,
            broken: None,
            compaction: String::new(),
        }
    }

    /// Tells what follows from `event`.
    pub fn event(&mut self, event: &Event<'_>, tell: &mut dyn FnMut(Value)) {
        match event {
            Event::Agent(event) => self.agent_event(event, tell),
            Event::SessionInfoChanged { name } => {
                tell(json!({"sessionUpdate": "session_info_update", "title": name}));
            }
            Event::LimitReached { reason } => {
                tell(chunk("agent_message_chunk", &unique_id(), text_block(reason)));
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let title = format!("The answer failed. {}", again(*attempt, *max_attempts, *delay_ms));
                tell(remark(self.able, WARNING, &title, Some(*error_message)));
            }
            Event::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
                let title = format!("The summary failed. {}", again(*attempt, *max_attempts, *delay_ms));
                tell(remark(self.able, WARNING, &title, Some(*error_message)));
            }
            Event::CompactionStart { reason } => self.compaction_starts(*reason, tell),
            Event::CompactionEnd { result, aborted, error_message, .. } => {
                let summary = result.map(|result| result.summary.as_str());
                self.compaction_ends(summary, *aborted, *error_message, tell);
            }
            _ => {}
        }
    }

    fn compaction_starts(&mut self, reason: Reason, tell: &mut dyn FnMut(Value)) {
        if self.able.compactions {
            self.compaction = unique_id();
            tell(json!({"sessionUpdate": "compaction_update", "compactionId": self.compaction,
                "status": "in_progress"}));
            return;
        }
        let why = match reason {
            Reason::Manual => None,
            Reason::Threshold => Some("The conversation has nearly filled the model's context."),
            Reason::Overflow => Some("The conversation is too long for the model's context."),
        };
        tell(remark(self.able, INFO, "The conversation is being compacted.", why));
    }

    fn compaction_ends(
        &self,
        summary: Option<&str>,
        aborted: bool,
        error: Option<&str>,
        tell: &mut dyn FnMut(Value),
    ) {
        if !self.able.compactions {
            if summary.is_none() && !aborted {
                tell(remark(self.able, WARNING, "The conversation could not be compacted.", error));
            }
            return;
        }
        let mut update = json!({"sessionUpdate": "compaction_update", "compactionId": self.compaction});
        match summary {
            Some(summary) => {
                update["status"] = "completed".into();
                update["summary"] = json!([text_block(summary)]);
            }
            None if aborted => update["status"] = "cancelled".into(),
            None => {
                update["status"] = "failed".into();
                update["error"] = error.into();
            }
        }
        tell(update);
    }

    fn agent_event(&mut self, event: &AgentEvent<'_>, tell: &mut dyn FnMut(Value)) {
        match event {
            AgentEvent::MessageStart { message: AgentMessage::Assistant(_) } => {
                (self.said, self.thought, self.has_said) = (unique_id(), unique_id(), false);
            }
            AgentEvent::MessageUpdate { event, .. } => match event {
                AssistantEvent::TextDelta { delta, .. } => {
                    if let Some(broken) = self.broken.take() {
                        tell(chunk("agent_message_chunk", &broken, text_block("\n\n")));
                    }
                    self.has_said = true;
                    tell(chunk("agent_message_chunk", &self.said, text_block(delta)));
                }
                AssistantEvent::ThinkingDelta { delta, .. } => {
                    tell(chunk("agent_thought_chunk", &self.thought, text_block(delta)));
                }
                AssistantEvent::ToolCallStart { id, name, .. } if !id.is_empty() => {
                    self.open.insert(id.clone(), false);
                    let kind = call::kind(&self.describer.describe(name, &Map::new()));
                    tell(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name,
                        "kind": kind, "status": "pending"}));
                }
                _ => {}
            },
            AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } if answer.is_failed() => {
                if self.has_said {
                    self.broken = Some(self.said.clone());
                }
                self.settle(tell);
            }
            AgentEvent::ToolStart { id, name, arguments } => self.start(id, name, arguments, tell),
            AgentEvent::ToolUpdate { id, output, .. } => {
                tell(json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
                    "content": call::progress(&output.content)}));
            }
            AgentEvent::ToolEnd { id, output, is_error, .. } => {
                let is_shown = self.open.remove(*id).unwrap_or_default();
                tell(ended(id, output, is_shown, *is_error));
            }
            _ => {}
        }
    }

    fn start(&mut self, id: &str, name: &str, arguments: &Map<String, Value>, tell: &mut dyn FnMut(Value)) {
        // Calls start after this was told, so the file still is as it was.
        let info = self.describer.describe(name, arguments);
        let change = call::coming_change(&self.workspace, &info, arguments);
        let mut update = call(&self.workspace, id, name, arguments, &info, &change);
        update["status"] = "in_progress".into();
        if self.open.insert(id.to_owned(), !change.diffs.is_empty()).is_some() {
            update["sessionUpdate"] = "tool_call_update".into();
        }
        tell(update);
    }

    /// Ends the calls that will not end by themselves.
    pub fn settle(&mut self, tell: &mut dyn FnMut(Value)) {
        for (id, _) in self.open.drain() {
            tell(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}));
        }
    }
}

/// Severities of a remark.
pub const INFO: &str = "info";
pub const WARNING: &str = "warning";

/// Something for the user that is no part of the conversation: a notice where the editor shows such, else a
/// thought.
pub fn remark(able: Able, severity: &str, title: &str, more: Option<&str>) -> Value {
    if able.notices {
        let mut notice = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
        if let Some(more) = more {
            notice["description"] = more.into();
        }
        return notice;
    }
    let text = more.map_or_else(|| title.to_owned(), |more| format!("{title}\n{more}"));
    chunk("agent_thought_chunk", &unique_id(), text_block(&format!("{text}\n\n")))
}

fn again(attempt: u64, max_attempts: u64, delay_ms: u64) -> String {
    format!("Attempt {attempt} of {max_attempts} follows in {:.1} s.", delay_ms as f64 / 1000.0)
}

pub fn chunk(kind: &str, message: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": message, "content": content})
}

/// A call that is not known yet, with all that can be said about it.
pub fn call(
    workspace: &Workspace,
    id: &str,
    name: &str,
    arguments: &Map<String, Value>,
    info: &CallInfo<'_>,
    change: &Change,
) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": call::title(name, info),
        "kind": call::kind(info),
        "locations": call::locations(workspace, info, change),
        "rawInput": arguments,
        "content": change.diffs,
    })
}

/// The end of a call. A diff was shown when the call started; the words about the change are for the model.
fn ended(id: &str, output: &ToolOutput, is_shown: bool, is_error: bool) -> Value {
    let status = if is_error { "failed" } else { "completed" };
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status});
    if is_error || !is_shown {
        update["content"] = call::content(&output.content).into();
    }
    if let Some(details) = &output.details {
        update["rawOutput"] = call::raw_output(details);
    }
    update
}
