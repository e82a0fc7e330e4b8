//! The ends of turns and runs: handlers may append entries there, and ask for one more request.

use super::conductor::Conductor;
use super::control::Control;
use super::event::{Event, Listener};
use super::event_json;
use super::hook::{Flow, Hooked, is_yes};
use super::ui::Problem;
use crate::agent::event::AgentEvent;
use crate::agent::message::{self, AgentMessage};
use crate::agent::run::Fatal;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{AssistantMessage, Message, StopReason};
use crate::session::Conversation;
use crate::session::draft;
use crate::session::entry::Body;
use serde_json::Value;
use std::sync::Arc;

pub const TURN_END: &str = "turn_end";
pub const BEFORE_SETTLE: &str = "agent_before_settle";

/// The source of problems that no single handler causes.
const SOURCE: &str = "<boundary>";

/// The entries of the turn under way.
#[derive(Default)]
pub(super) struct Turn {
    /// Ids of the answer and of the results of its calls.
    answer: String,
    results: Vec<String>,
    /// How the last answer ended.
    outcome: &'static str,
}

impl Turn {
    /// Notes the entry of a message.
    pub fn follow(&mut self, message: &AgentMessage, entry: String) {
        match message {
            AgentMessage::Assistant(answer) => {
                let outcome = match answer.stop_reason {
                    StopReason::Aborted => "aborted",
                    StopReason::Error => "error",
                    _ => "completed",
                };
                *self = Self { answer: entry, results: Vec::new(), outcome };
            }
            AgentMessage::ToolResult(_) => self.results.push(entry),
            _ => {}
        }
    }
}

/// What handlers propose together.
#[derive(Default)]
struct Proposal {
    entries: Vec<Body>,
    goes_on: bool,
}

impl Hooked {
    /// Asks the handlers of a boundary. Each sees what the ones before propose. If the entries are wrong in the end,
    /// nothing is proposed.
    fn boundary(
        &self,
        name: &str,
        fields: impl FnOnce() -> Value,
        read: impl Fn(&Value) -> Result<Vec<Body>, String>,
        cancel: &CancelToken,
    ) -> Proposal {
        let mut entries = Ok(Vec::new());
        let fields = || {
            let mut fields = fields();
            fields["entries"] = json!([]);
            fields["continue"] = false.into();
            fields
        };
        let event = self.ask(name, fields, cancel, &mut |event, result| {
            let mut result = result.unwrap_or_default();
            if let Some(proposed) = result.get_mut("entries").filter(|proposed| !proposed.is_null()) {
                event["entries"] = proposed.take();
                entries = read(&event["entries"]);
            }
            if let Some(goes_on) = result.get("continue").filter(|goes_on| !goes_on.is_null()) {
                event["continue"] = is_yes(goes_on).into();
            }
            match &entries {
                Ok(_) => Flow::Next,
                Err(why) => Flow::Fault(format!("Its entries are not appended: {why}")),
            }
        });
        match (event, entries) {
            (Some(event), Ok(entries)) => Proposal { entries, goes_on: event["continue"] == true },
            _ => Proposal::default(),
        }
    }
}

impl Conductor<'_> {
    /// Asks handlers at the end of a turn. True if another request follows in any case.
    pub fn end_turn(
        &mut self,
        message: &Arc<AssistantMessage>,
        results: &[AgentMessage],
    ) -> Result<bool, Fatal> {
        let ended = Event::Agent(AgentEvent::TurnEnd { message, tool_results: results });
        let fields = || {
            let mut fields = event_json::to_value(&ended);
            fields["turnIndex"] = self.turns.into();
            fields["messageEntryId"] = self.turn.answer.as_str().into();
            fields["toolResultEntryIds"] = json!(self.turn.results);
            fields["outcome"] = self.turn.outcome.into();
            fields
        };
        let proposal = self.hooked.boundary(TURN_END, fields, |entries| self.read(entries), self.cancel);
        self.take_up(TURN_END, proposal)
    }

    /// Asks handlers before the run settles. True if it goes on with another request.
    pub fn before_settle(&mut self) -> Result<bool, Fatal> {
        if !self.hooked.wants(BEFORE_SETTLE) {
            return Ok(false);
        }
        let fields = || json!({"outcome": self.turn.outcome});
        let proposal = self.hooked.boundary(BEFORE_SETTLE, fields, |entries| self.read(entries), self.cancel);
        let goes_on = self.take_up(BEFORE_SETTLE, proposal)?;
        Ok(goes_on && !self.cancel.is_cancelled())
    }

    fn read(&self, entries: &Value) -> Result<Vec<Body>, String> {
        draft::read(&self.control.log(), entries)
    }

    /// Appends the entries of a proposal. True if it asks for a request that can be made.
    fn take_up(&mut self, boundary: &str, proposal: Proposal) -> Result<bool, Fatal> {
        for body in proposal.entries {
            let is_compaction = matches!(body, Body::Compaction(_));
            let entry = self.control.log().append_draft(body)?;
            if is_compaction {
                *self.compaction = super::compaction::State::default();
            }
            (self.listener)(&Event::EntryAppended { entry: &entry })?;
        }
        if boundary == BEFORE_SETTLE {
            self.control.write_after_turn(self.listener)?;
        }
        if !proposal.goes_on {
            return Ok(false);
        }
        let can_go_on = can_go_on(boundary, &message::to_llm(&self.control.messages()), self.control);
        if !can_go_on {
            self.control.report(&Problem {
                source: SOURCE.into(),
                event: boundary.into(),
                error: "The run does not go on: there is nothing that the model could answer".into(),
            });
        }
        Ok(can_go_on)
    }
}

/// True if a request after `messages` has something to answer.
fn can_go_on(boundary: &str, messages: &[Message], control: &Control) -> bool {
    let ends_in_answer = matches!(messages.last(), Some(Message::Assistant(_)));
    let is_spoken = messages.iter().any(|message| !matches!(message, Message::System(_)));
    (is_spoken && !ends_in_answer)
        || !control.state().after_turn.is_empty()
        || ((boundary == TURN_END || ends_in_answer) && control.has_queued())
}

impl Control {
    /// The model's context as it would be with these entries, for the handlers of a boundary.
    pub fn preview(&self, boundary: &str, entries: &Value) -> Result<Value, String> {
        let (entries, log) = {
            let log = self.log();
            (draft::read(&log, entries)?, log.sketch())
        };
        let mut log = log.map_err(|error| error.to_string())?;
        let context = log.context();
        let mut sketch = Conversation::new(log, context);
        for body in entries {
            sketch.append_draft(body).map_err(|error| error.to_string())?;
        }
        let projection = sketch.projection();
        let entries = projection.entries.iter().map(|projected| {
            let source = sketch.entry(&projected.entry);
            json!({"sourceEntry": source, "messages": projected.messages})
        });
        let messages = sketch.messages();
        let llm_messages = message::to_llm(&messages);
        let mut pending: Vec<AgentMessage> = {
            let queues = self.queues();
            let first = if queues.steering.is_empty() { &queues.follow_up } else { &queues.steering };
            first.peek().cloned().collect()
        };
        pending.extend(self.state().after_turn.iter().cloned());
        Ok(json!({
            "contextEntries": entries.collect::<Vec<_>>(),
            "contextMessages": *messages,
            "llmMessages": llm_messages,
            "pendingMessages": pending,
            "canContinue": can_go_on(boundary, &llm_messages, self),
        }))
    }

    /// Appends the messages that were to wait for the end of the turn.
    pub(super) fn write_after_turn(&self, listener: Listener<'_>) -> Result<(), Fatal> {
        let messages = std::mem::take(&mut self.state().after_turn);
        for message in &messages {
            self.log().append_message(message)?;
            listener(&Event::Agent(AgentEvent::MessageStart { message }))?;
            listener(&Event::Agent(AgentEvent::MessageEnd { message }))?;
        }
        Ok(())
    }
}
