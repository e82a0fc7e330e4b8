//! What happens in a session, as `session/update` notifications.
//!
//! A call is announced as soon as the model names its tool, filled in when it starts, and always ended:
//! one that never ran, because the answer broke off, is told as failed.

use super::call;
use crate::runtime::event::Event;
use crate::runtime::{AgentEvent, AgentMessage, AssistantEvent, Block, ToolOutput, Workspace};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Follows one prompt.
pub struct Updates {
    workspace: Arc<Workspace>,
    /// Calls that were announced and have not ended, with what changes by them.
    open: HashMap<String, Vec<Value>>,
}

impl Updates {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, open: HashMap::new() }
    }

    /// Tells what follows from `event`.
    pub fn event(&mut self, event: &Event<'_>, tell: &mut dyn FnMut(Value)) {
        match event {
            Event::Agent(event) => self.agent_event(event, tell),
            Event::SessionInfoChanged { name } => {
                tell(json!({"sessionUpdate": "session_info_update", "title": name}));
            }
            Event::LimitReached { reason } => tell(chunk("agent_message_chunk", reason)),
            _ => {}
        }
    }

    fn agent_event(&mut self, event: &AgentEvent<'_>, tell: &mut dyn FnMut(Value)) {
        match event {
            AgentEvent::MessageUpdate { event, .. } => match event {
                AssistantEvent::TextDelta { delta, .. } => {
                    tell(chunk("agent_message_chunk", delta));
                }
                AssistantEvent::ThinkingDelta { delta, .. } => {
                    tell(chunk("agent_thought_chunk", delta));
                }
                AssistantEvent::ToolCallStart { id, name, .. } if !id.is_empty() => {
                    self.open.insert(id.clone(), Vec::new());
                    tell(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": name,
                        "kind": call::kind(name), "status": "pending"}));
                }
                _ => {}
            },
            AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } if answer.is_failed() => {
                self.settle(tell)
            }
            AgentEvent::ToolStart { id, name, arguments } => self.start(id, name, arguments, tell),
            AgentEvent::ToolUpdate { id, output, .. } => {
                tell(json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
                    "content": call::content(&output.content)}));
            }
            AgentEvent::ToolEnd { id, output, is_error, .. } => {
                let diffs = self.open.remove(*id).unwrap_or_default();
                tell(ended(id, output, diffs, *is_error));
            }
            _ => {}
        }
    }

    fn start(&mut self, id: &str, name: &str, arguments: &Map<String, Value>, tell: &mut dyn FnMut(Value)) {
        // Calls start after this was told, so the file still is as it was.
        let before = call::text_before(&self.workspace, name, arguments);
        let diffs = call::diffs(&self.workspace, name, arguments, before.as_deref());
        let is_new = !self.open.contains_key(id);
        let mut update = call(&self.workspace, id, name, arguments, &diffs);
        update["status"] = "in_progress".into();
        if !is_new {
            update["sessionUpdate"] = "tool_call_update".into();
        }
        self.open.insert(id.to_owned(), diffs);
        tell(update);
    }

    /// Ends the calls that will not end by themselves.
    pub fn settle(&mut self, tell: &mut dyn FnMut(Value)) {
        for (id, _) in self.open.drain() {
            tell(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed"}));
        }
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// A call that is not known yet, with all that can be said about it.
fn call(
    workspace: &Workspace,
    id: &str,
    name: &str,
    arguments: &Map<String, Value>,
    diffs: &[Value],
) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": call::title(name, arguments),
        "kind": call::kind(name),
        "locations": call::locations(workspace, arguments),
        "rawInput": arguments,
        "content": diffs,
    })
}

/// What changed is shown as it is; the words about it are for the model.
fn ended(id: &str, output: &ToolOutput, diffs: Vec<Value>, is_error: bool) -> Value {
    let content = if diffs.is_empty() || is_error { call::content(&output.content) } else { diffs };
    let status = if is_error { "failed" } else { "completed" };
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
        "status": status, "content": content});
    if let Some(details) = &output.details {
        update["rawOutput"] = details.clone();
    }
    update
}

/// Tells a stored message anew.
pub fn replay(workspace: &Workspace, message: &AgentMessage, tell: &mut dyn FnMut(Value)) {
    match message {
        AgentMessage::User(user) => {
            for block in user.content.to_blocks().iter().filter_map(call::block) {
                tell(json!({"sessionUpdate": "user_message_chunk", "content": block}));
            }
        }
        AgentMessage::Assistant(answer) => {
            for block in &answer.content {
                match block {
                    Block::Text(text) => tell(chunk("agent_message_chunk", &text.text)),
                    Block::Thinking(thinking) if !thinking.thinking.is_empty() => {
                        tell(chunk("agent_thought_chunk", &thinking.thinking));
                    }
                    // Those of a failed answer never ran, and have no result.
                    Block::ToolCall(asked) if !answer.is_failed() => {
                        let diffs = call::diffs(workspace, &asked.name, &asked.arguments, None);
                        let (id, arguments) = (&asked.id, &asked.arguments);
                        let mut update = call(workspace, id, &asked.name, arguments, &diffs);
                        update["status"] = "pending".into();
                        tell(update);
                    }
                    _ => {}
                }
            }
        }
        AgentMessage::ToolResult(result) => {
            let status = if result.is_error { "failed" } else { "completed" };
            let mut update = json!({"sessionUpdate": "tool_call_update",
                "toolCallId": result.tool_call_id, "status": status});
            // The content of a change is its diff, which was told with the call.
            if result.is_error || !matches!(call::kind(&result.tool_name), "edit") {
                update["content"] = call::content(&result.content).into();
            }
            tell(update);
        }
        _ => {}
    }
}
