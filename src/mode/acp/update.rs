//! Sends the events of a session as `session/update` notifications: live, or for stored messages (`replay`).
//!
//! A call is announced as soon as the model names its tool, completed when it starts, and always ended: a
//! call that never ran, because the answer broke off, is reported as failed.
//!
//! Each answer has a message id of its own, and so has each attempt at one. For clients that rely on the text
//! alone, a broken attempt ends with an empty line before the next one.

use super::call::{self, Change};
use super::peer::{ClientCapabilities, Peer};
use super::terminal::Drawn;
use crate::base::json::json;
use crate::runtime::event::{Event, Reason};
use crate::runtime::todo::{self, List, Status};
use crate::runtime::{AgentEvent, AgentMessage, AssistantEvent, Block, Describer, Workspace, unique_id};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Sends updates of one session to the editor.
pub struct Updates {
    peer: Peer,
    session: String,
    workspace: Arc<Workspace>,
    describer: Describer,
    /// Calls whose output the editor draws itself.
    drawn: Drawn,
    /// Announced calls that have not ended, and whether their change is shown as a diff.
    open: HashMap<String, bool>,
    /// Message id of the current answer's text.
    said: String,
    /// Message id of the current answer's thinking.
    thought: String,
    /// True once the current answer has text.
    has_said: bool,
    /// Message id of a failed answer's text, until another answer has text.
    broken: Option<String>,
    compaction: String,
}

impl Updates {
    pub fn new(
        peer: Peer,
        session: String,
        workspace: Arc<Workspace>,
        describer: Describer,
        drawn: Drawn,
    ) -> Self {
        Self {
            peer,
            session,
            workspace,
            describer,
            drawn,
            open: HashMap::new(),
            said: unique_id(),
            thought: unique_id(),
            has_said: false,
            broken: None,
            compaction: String::new(),
        }
    }

    pub fn send(&self, update: Value) {
        self.peer.update(&self.session, &update);
    }

    fn notify(&self, severity: &str, title: &str, more: Option<&str>) {
        self.send(notice(self.peer.capabilities(), severity, title, more));
    }

    /// Sends the updates for `event`.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Agent(event) => self.agent_event(event),
            Event::SessionInfoChanged { name } => {
                self.send(json!({"sessionUpdate": "session_info_update", "title": name}));
            }
            Event::LimitReached { reason } => {
                self.send(chunk("agent_message_chunk", &unique_id(), text_block(reason)));
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                let title =
                    format!("The answer failed. {}", next_attempt(*attempt, *max_attempts, *delay_ms));
                self.notify(WARNING, &title, Some(*error_message));
            }
            Event::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
                let title =
                    format!("The summary failed. {}", next_attempt(*attempt, *max_attempts, *delay_ms));
                self.notify(WARNING, &title, Some(*error_message));
            }
            Event::Failed { reason } => self.notify("error", reason, None),
            Event::CompactionStart { reason } => self.compaction_starts(*reason),
            Event::CompactionEnd { result, aborted, error_message, .. } => {
                let summary = result.map(|result| result.summary.as_str());
                self.compaction_ends(summary, *aborted, *error_message);
            }
            _ => {}
        }
    }

    fn compaction_starts(&mut self, reason: Reason) {
        if self.peer.capabilities().compactions {
            self.compaction = unique_id();
            self.send(json!({"sessionUpdate": "compaction_update", "compactionId": self.compaction,
                "status": "in_progress"}));
            return;
        }
        let why = match reason {
            Reason::Manual => None,
            Reason::Threshold => Some("The conversation has nearly filled the model's context."),
            Reason::Overflow => Some("The conversation is too long for the model's context."),
        };
        self.notify(INFO, "The conversation is being compacted.", why);
    }

    fn compaction_ends(&self, summary: Option<&str>, aborted: bool, error: Option<&str>) {
        if !self.peer.capabilities().compactions {
            if summary.is_none() && !aborted {
                self.notify(WARNING, "The conversation could not be compacted.", error);
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
        self.send(update);
    }

    fn agent_event(&mut self, event: &AgentEvent<'_>) {
        match event {
            AgentEvent::MessageStart { message: AgentMessage::Assistant(_) } => self.begin_answer(),
            AgentEvent::MessageUpdate { event, .. } => match event {
                AssistantEvent::TextDelta { delta, .. } => self.say(delta),
                AssistantEvent::ThinkingDelta { delta, .. } => self.think(delta),
                AssistantEvent::ToolCallStart { id, name, .. } if !id.is_empty() => {
                    self.open.insert(id.clone(), false);
                    self.drawn.announce(id);
                    let kind = call::kind(&self.describer.describe(name, &Map::new()));
                    self.send(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name,
                        "name": name, "kind": kind, "status": "pending"}));
                }
                _ => {}
            },
            AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } if answer.is_failed() => {
                if self.has_said {
                    self.broken = Some(self.said.clone());
                }
                self.end_open_calls();
            }
            AgentEvent::ToolStart { id, name, arguments, .. } => self.start_call(id, name, arguments),
            // An update without content may come after the editor has drawn its terminal, and would replace it.
            AgentEvent::ToolUpdate { id, output, .. } if output.content.is_empty() || self.drawn.has(id) => {}
            AgentEvent::ToolUpdate { id, output, .. } => {
                self.send(json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
                    "content": call::progress(&output.content)}));
            }
            AgentEvent::ToolEnd { id, name, output, is_error, .. } => {
                self.end_call(id, &output.content, output.details.as_ref(), *is_error);
                if let Some(list) = output.details.as_ref().filter(|_| *name == todo::NAME).and_then(List::of)
                {
                    self.send(json!({"sessionUpdate": "plan", "entries": entries(&list)}));
                }
            }
            _ => {}
        }
    }

    pub fn begin_answer(&mut self) {
        (self.said, self.thought, self.has_said) = (unique_id(), unique_id(), false);
    }

    /// Sends a piece of the answer's text.
    pub fn say(&mut self, text: &str) {
        if let Some(broken) = self.broken.take() {
            self.send(chunk("agent_message_chunk", &broken, text_block("\n\n")));
        }
        self.has_said = true;
        self.send(chunk("agent_message_chunk", &self.said, text_block(text)));
    }

    /// Sends a piece of the answer's thinking.
    pub fn think(&self, text: &str) {
        self.send(chunk("agent_thought_chunk", &self.thought, text_block(text)));
    }

    /// Reports the start of a call, before its file is changed.
    fn start_call(&mut self, id: &str, name: &str, arguments: &Map<String, Value>) {
        let info = self.describer.describe(name, arguments);
        let change = call::coming_change(&self.workspace, &info, arguments);
        self.call(id, name, arguments, &change, "in_progress");
    }

    /// Reports a call of a stored answer.
    pub fn stored_call(&mut self, id: &str, name: &str, arguments: &Map<String, Value>) {
        let info = self.describer.describe(name, arguments);
        let change = call::stored_change(&self.workspace, &info);
        self.call(id, name, arguments, &change, "pending");
    }

    fn call(&mut self, id: &str, name: &str, arguments: &Map<String, Value>, change: &Change, status: &str) {
        let is_announced = self.open.insert(id.to_owned(), !change.diffs.is_empty()).is_some();
        self.drawn.announce(id);
        let info = self.describer.describe(name, arguments);
        self.send(json!({
            "sessionUpdate": if is_announced { "tool_call_update" } else { "tool_call" },
            "toolCallId": id,
            "title": call::title(name, &info),
            "name": name,
            "kind": call::kind(&info),
            "locations": call::locations(&self.workspace, &info, change),
            "rawInput": arguments,
            "content": change.diffs,
            "status": status,
        }));
    }

    /// Reports the end of a call. If a diff shows the change, the result's text is left out, since it is for
    /// the model.
    pub fn end_call(&mut self, id: &str, content: &[Block], details: Option<&Value>, is_error: bool) {
        let is_shown = self.open.remove(id).unwrap_or_default();
        let status = if is_error { "failed" } else { "completed" };
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status});
        if !self.drawn.end(id) && (is_error || !is_shown) {
            update["content"] = call::content(content).into();
        }
        if let Some(details) = details {
            update["rawOutput"] = call::raw_output(details);
        }
        self.send(update);
    }

    /// Reports unfinished calls as failed.
    pub fn end_open_calls(&mut self) {
        for (id, _) in std::mem::take(&mut self.open) {
            self.send(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}));
        }
    }
}

/// Severities of a notice.
pub const INFO: &str = "info";
pub const WARNING: &str = "warning";

/// A message to the user outside the conversation: a notice if the editor supports it, otherwise a thought.
pub fn notice(client: ClientCapabilities, severity: &str, title: &str, more: Option<&str>) -> Value {
    if client.notices {
        let mut notice = json!({"sessionUpdate": "notice", "severity": severity, "title": title});
        if let Some(more) = more {
            notice["description"] = more.into();
        }
        return notice;
    }
    let text = more.map_or_else(|| title.to_owned(), |more| format!("{title}\n{more}"));
    chunk("agent_thought_chunk", &unique_id(), text_block(&format!("{text}\n\n")))
}

/// The items of a list that were not dropped, as entries of a plan.
fn entries(list: &List) -> Vec<Value> {
    let items = list.0.iter().filter(|item| item.status != Status::Dropped);
    items.map(|item| json!({"content": item.text, "priority": "medium", "status": item.status})).collect()
}

fn next_attempt(attempt: u64, max_attempts: u64, delay_ms: u64) -> String {
    format!("Attempt {attempt} of {max_attempts} follows in {:.1} s.", delay_ms as f64 / 1000.0)
}

/// A piece of a message; all pieces of a message have its id.
pub fn chunk(kind: &str, message: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "messageId": message, "content": content})
}

pub fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
