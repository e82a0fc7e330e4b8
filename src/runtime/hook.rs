//! Others who take part in a session: told what happens, and asked before something does.
//!
//! An event is a JSON object with its `type`, in the shape that `docs/extensions.md` describes. Handlers are asked one
//! after another, each with what the ones before have changed; what a result means for an event is decided here.

use super::event::Event;
use super::event_json;
use super::lent::RegisteredServer;
use crate::agent::message::AgentMessage;
use crate::agent::run::Refusal;
use crate::agent::tool::ToolOutput;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{Block, ToolCall, Usage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Takes the result of a handler, or why it has none, and may change the event for the handlers that follow.
pub type Fold<'a> = &'a mut dyn FnMut(&mut Value, Result<Value, String>) -> Flow;

/// What follows the result of a handler.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next handler is asked.
    Next,
    /// No further handler is asked.
    Stop,
    /// The result cannot be used, for this reason: it is reported, and the next handler is asked.
    Fault(String),
}

/// A group of handlers.
pub trait Hooks: Send + Sync {
    /// True if a handler takes events of this type.
    fn wants(&self, event: &str) -> bool {
        let _ = event;
        false
    }

    /// Asks every handler of the event's type. Failures are reported before `fold` learns of them.
    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        let _ = (event, cancel, fold);
    }

    /// Why an MCP server cannot be used as it is written; `None` if it can.
    fn server_fault(&self, server: &RegisteredServer) -> Option<String> {
        let _ = server;
        None
    }

    /// Names of handlers that `settle` would wait for.
    fn settling(&self) -> Vec<String> {
        Vec::new()
    }

    /// Called when the session is open, before the first event. May wait a moment for handlers that are being started,
    /// until `cancel` is cancelled.
    fn settle(&self, cancel: &CancelToken) {
        let _ = cancel;
    }

    /// Called when another session takes the place of one, before handlers are told of it. May wait until `cancel` is
    /// cancelled.
    fn renew(self: Arc<Self>, cancel: &CancelToken) {
        let _ = cancel;
    }

    /// True while handlers are being started that may add to the session.
    fn is_to_come(&self) -> bool {
        false
    }

    /// Waits until all handlers have been started, for a time that a person waits.
    fn await_all(&self, cancel: &CancelToken) {
        let _ = cancel;
    }

    /// Called on the session's thread before each prompt runs. May wait until `cancel` is cancelled.
    fn before_prompt(&self, cancel: &CancelToken) {
        let _ = cancel;
    }

    /// Called after the last event.
    fn close(&self) {}
}

/// The hooks of a session at one moment.
#[derive(Clone, Default)]
pub(crate) struct Hooked(pub Vec<Arc<dyn Hooks>>);

impl Hooked {
    pub fn wants(&self, event: &str) -> bool {
        self.0.iter().any(|hooks| hooks.wants(event))
    }

    /// Asks all handlers of `name`. Gives the event as they left it; none if nobody takes such events.
    pub fn ask(
        &self,
        name: &str,
        fields: impl FnOnce() -> Value,
        cancel: &CancelToken,
        fold: Fold<'_>,
    ) -> Option<Value> {
        if !self.wants(name) {
            return None;
        }
        let mut event = json!({"type": name});
        if let (Value::Object(event), Value::Object(fields)) = (&mut event, fields()) {
            event.extend(fields);
        }
        let mut is_over = false;
        for hooks in self.0.iter().filter(|hooks| hooks.wants(name)) {
            hooks.ask(&mut event, cancel, &mut |event, result| {
                let flow = fold(event, result);
                is_over |= flow == Flow::Stop;
                flow
            });
            if is_over {
                break;
            }
        }
        Some(event)
    }

    pub fn tell(&self, name: &str, fields: impl FnOnce() -> Value, cancel: &CancelToken) {
        self.ask(name, fields, cancel, &mut |_, _| Flow::Next);
    }

    /// Asks whether something may happen. False if a handler cancels it.
    pub fn permits(&self, name: &str, fields: impl FnOnce() -> Value, cancel: &CancelToken) -> bool {
        let mut is_cancelled = false;
        self.ask(name, fields, cancel, &mut |_, result| match result {
            Ok(result) if is_yes(&result["cancel"]) => {
                is_cancelled = true;
                Flow::Stop
            }
            _ => Flow::Next,
        });
        !is_cancelled
    }

    /// Tells an event of the session in its JSON form, with further fields.
    pub fn event(&self, event: &Event<'_>, more: impl FnOnce() -> Value, cancel: &CancelToken) {
        if self.0.is_empty() {
            return;
        }
        let Some(name) = event_json::name(event) else { return };
        self.tell(
            name,
            || {
                let mut fields = event_json::to_value(event);
                if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more()) {
                    fields.extend(more);
                }
                fields
            },
            cancel,
        );
    }

    /// The message as handlers of `message_end` have it. Its role stays.
    pub fn message_end(&self, message: AgentMessage, cancel: &CancelToken) -> AgentMessage {
        let fields = || json!({"message": message});
        let event = self.ask("message_end", fields, cancel, &mut |event, result| {
            if let Ok(Value::Object(mut result)) = result
                && let Some(changed) = result.remove("message")
                && changed["role"] == event["message"]["role"]
                && serde_json::from_value::<AgentMessage>(changed.clone())
                    .is_ok_and(|message| !matches!(message, AgentMessage::Unknown(_)))
            {
                event["message"] = changed;
            }
            Flow::Next
        });
        let changed = event.and_then(|mut event| read(event["message"].take()));
        changed.unwrap_or(message)
    }

    /// The messages of a request as handlers have them; none if nothing changed.
    pub fn context(&self, messages: &[AgentMessage], cancel: &CancelToken) -> Option<Vec<AgentMessage>> {
        let is_system = |message: &AgentMessage| matches!(message, AgentMessage::System(_));
        let spoken = || {
            let spoken: Vec<_> = messages.iter().filter(|message| !is_system(message)).collect();
            json!({"messages": spoken})
        };
        let changed = self.changed_messages("context", spoken, cancel).map(|mut changed| {
            changed.retain(|message| !is_system(message));
            restored(messages, changed)
        });
        let before = changed.as_deref().unwrap_or(messages);
        self.changed_messages("context_with_system", || json!({"messages": before}), cancel).or(changed)
    }

    fn changed_messages(
        &self,
        name: &str,
        fields: impl FnOnce() -> Value,
        cancel: &CancelToken,
    ) -> Option<Vec<AgentMessage>> {
        let mut is_changed = false;
        let event = self.ask(name, fields, cancel, &mut |event, result| {
            if let Ok(Value::Object(mut result)) = result
                && let Some(changed) = result.remove("messages").filter(Value::is_array)
            {
                let has_lost_head =
                    event["messages"][0]["role"] == "system" && changed[0]["role"] != "system";
                event["messages"] = changed;
                is_changed = true;
                if has_lost_head {
                    return Flow::Fault(
                        "The first system message is gone: the request has no prompt and no tools".into(),
                    );
                }
            }
            Flow::Next
        });
        event.filter(|_| is_changed).and_then(|mut event| read(event["messages"].take()))
    }

    /// Asks about a call that is about to run, made by the call `parent` if it is not the model's. Gives the arguments
    /// to run it with.
    pub fn tool_call(
        &self,
        call: &ToolCall,
        parent: Option<&str>,
        arguments: Map<String, Value>,
        cancel: &CancelToken,
    ) -> Result<Map<String, Value>, Refusal> {
        let mut refusal = None;
        let failed = |why: &dyn fmt::Display| Refusal {
            reason: format!("The call was not executed: a handler that decides on calls failed: {why}"),
            terminate: false,
        };
        let fields =
            || with_parent(json!({"toolCallId": call.id, "toolName": call.name, "input": arguments}), parent);
        let event = self.ask("tool_call", fields, cancel, &mut |event, result| match result {
            Ok(mut result) => {
                // An empty list is how some languages write an empty object.
                let is_empty = result.as_array().map_or(result.is_null(), Vec::is_empty);
                if !is_empty && !result.is_object() {
                    refusal = Some(failed(&format_args!("it answered {result}, which is no decision")));
                    return Flow::Stop;
                }
                if is_yes(&result["block"]) {
                    let reason = result["reason"].as_str().filter(|reason| !reason.is_empty());
                    let reason = reason.unwrap_or("Tool execution was blocked by an extension");
                    let terminate = result["terminate"] == true;
                    refusal = Some(Refusal { reason: reason.to_owned(), terminate });
                    return Flow::Stop;
                }
                match result.get_mut("input").map(Value::take) {
                    None | Some(Value::Null) => Flow::Next,
                    Some(input @ Value::Object(_)) => {
                        event["input"] = input;
                        Flow::Next
                    }
                    Some(other) => {
                        refusal = Some(failed(&format_args!("its \"input\" is {other}, not an object")));
                        Flow::Stop
                    }
                }
            }
            Err(why) => {
                refusal = Some(failed(&why));
                Flow::Stop
            }
        });
        match (refusal, event) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(mut event)) => Ok(match event["input"].take() {
                Value::Object(input) => input,
                _ => arguments,
            }),
            (None, None) => Ok(arguments),
        }
    }

    /// Lets handlers change the result of a call that has run with these arguments.
    pub fn tool_result(
        &self,
        call: &ToolCall,
        parent: Option<&str>,
        arguments: &Map<String, Value>,
        output: &mut ToolOutput,
        is_error: &mut bool,
        cancel: &CancelToken,
    ) {
        let fields = || {
            let mut fields = json!({"toolCallId": call.id, "toolName": call.name, "input": arguments,
                "content": output.content, "details": output.details, "isError": *is_error});
            if let Some(structured) = &output.structured {
                fields["structuredContent"] = structured.clone();
            }
            if let Some(usage) = &output.usage {
                fields["usage"] = json!(usage);
            }
            with_parent(fields, parent)
        };
        let event = self.ask("tool_result", fields, cancel, &mut |event, result| {
            if let (Value::Object(event), Ok(Value::Object(result))) = (event, result) {
                if result.contains_key("content") && !result.contains_key("structuredContent") {
                    event.remove("structuredContent");
                }
                let known = ["content", "details", "structuredContent", "isError", "usage"];
                event.extend(result.into_iter().filter(|(name, _)| known.contains(&&**name)));
            }
            Flow::Next
        });
        let Some(mut event) = event else { return };
        if let Some(content) = read::<Vec<Block>>(event["content"].take()) {
            output.content = content;
        }
        output.details = Some(event["details"].take()).filter(|details| !details.is_null());
        output.structured = Some(event["structuredContent"].take()).filter(|value| !value.is_null());
        output.usage = read::<Usage>(event["usage"].take()).or(output.usage.take());
        *is_error = event["isError"].as_bool().unwrap_or(*is_error);
    }
}

/// True for what JavaScript takes as true: what is there, and neither 0 nor empty.
pub(super) fn is_yes(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != 0 && value != ""
}

/// The fields of a call, with the id of the call that made it.
fn with_parent(mut fields: Value, parent: Option<&str>) -> Value {
    if let Some(parent) = parent {
        fields["parentToolCallId"] = parent.into();
    }
    fields
}

/// `changed` with the system messages of `messages` where they stood: before the message that followed them, if that
/// is still there, else at the end of those before.
fn restored(messages: &[AgentMessage], changed: Vec<AgentMessage>) -> Vec<AgentMessage> {
    let mut out = Vec::with_capacity(messages.len());
    let mut changed = changed.into_iter();
    let spoken = messages.iter().filter(|message| !matches!(message, AgentMessage::System(_))).count();
    // A shorter conversation has lost its oldest messages: those that stay are counted from the end.
    let mut skipped = spoken.saturating_sub(changed.len());
    for message in messages {
        match message {
            AgentMessage::System(_) => out.push(message.clone()),
            _ if skipped > 0 => skipped -= 1,
            _ => out.extend(changed.next()),
        }
    }
    out.extend(changed);
    out
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Where a prompt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    Interactive,
    Rpc,
    Extension,
}

impl InputSource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Rpc => "rpc",
            Self::Extension => "extension",
        }
    }
}

/// A message of a part that was added, from `customType`, `content`, `display` and `details`.
pub fn custom_message(mut fields: Value) -> Option<AgentMessage> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "customType")]
        _custom_type: String,
    }
    Named::deserialize(&fields).ok()?;
    fields["role"] = "custom".into();
    if fields["content"].is_null() {
        fields["content"] = json!([]);
    }
    fields["timestamp"] = crate::llm::message::now_ms().into();
    let message = read(fields)?;
    matches!(message, AgentMessage::Custom(_)).then_some(message)
}
