//! Events as JSON lines, in the reference's shapes.
//!
//! The linear form carries what is new: deltas, a block's whole content at its end, the message at
//! `message_end`. The cumulative form adds the snapshots `message` and `partial` that older clients read;
//! its size grows with the square of the answer's length.

use crate::runtime::event::{Event, Reason};
use crate::runtime::{AgentEvent, AgentMessage, AssistantEvent, Block, Fold, ToolOutput, Usage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A delta that waits for a slow reader; later ones of the same block join it.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    pub kind: &'static str,
    pub index: usize,
    pub delta: String,
    pub usage: Usage,
}

impl Delta {
    /// The delta in `event`, if it is one and may be joined with others.
    pub fn of<'a>(event: &Event<'a>) -> Option<(&'static str, usize, &'a str, &'a Usage)> {
        let Event::Agent(AgentEvent::MessageUpdate { event, fold }) = event else {
            return None;
        };
        let (kind, index, delta) = match event {
            AssistantEvent::TextDelta { index, delta } => ("text_delta", index, delta),
            AssistantEvent::ThinkingDelta { index, delta } => ("thinking_delta", index, delta),
            AssistantEvent::ToolCallDelta { index, delta } => ("toolcall_delta", index, delta),
            _ => return None,
        };
        Some((kind, *index, delta, &fold.message().usage))
    }
}

/// Appends `event` as one line.
pub fn write_event(event: &Event<'_>, cumulative: bool, out: &mut Vec<u8>) {
    if !cumulative && let Some((kind, index, delta, usage)) = Delta::of(event) {
        return write_delta(kind, index, delta, usage, out);
    }
    line(out, &Line { event, cumulative });
    if cumulative {
        older_compaction(event, out);
    }
}

/// The event by which older clients are told of a compaction, beside `compaction_end`.
fn older_compaction(event: &Event<'_>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Older<'a> {
        r#type: &'static str,
        summary: &'a str,
        tokens_before: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        auto: Option<bool>,
    }
    if let Event::CompactionEnd { reason, result: Some(result), .. } = event {
        let older = Older {
            r#type: "compaction",
            summary: &result.summary,
            tokens_before: result.tokens_before,
            auto: (*reason != Reason::Manual).then_some(true),
        };
        line(out, &older);
    }
}

/// Appends one delta in the linear form: the hot path of a stream.
pub fn write_delta(kind: &str, index: usize, delta: &str, usage: &Usage, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Update<'a> {
        r#type: &'static str,
        usage: &'a Usage,
        #[serde(rename = "assistantMessageEvent")]
        event: Inner<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Inner<'a> {
        r#type: &'a str,
        content_index: usize,
        delta: &'a str,
    }
    let event = Inner { r#type: kind, content_index: index, delta };
    line(out, &Update { r#type: "message_update", usage, event });
}

/// Appends any value as one line. U+2028 and U+2029 are left as they are: readers split at LF only.
pub fn line(out: &mut Vec<u8>, value: &impl Serialize) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        return;
    }
    out.push(b'\n');
}

struct Line<'a> {
    event: &'a Event<'a>,
    cumulative: bool,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.event {
            Event::Agent(event) => self.agent_event(event, &mut map)?,
            Event::AgentSettled => map.serialize_entry("type", "agent_settled")?,
            Event::Failed { reason } => {
                map.serialize_entry("type", "error")?;
                map.serialize_entry("error", reason)?;
            }
            Event::LimitReached { reason } => {
                map.serialize_entry("type", "limit_reached")?;
                map.serialize_entry("reason", reason)?;
            }
            Event::Output { outcome } => {
                map.serialize_entry("type", "output")?;
                match outcome {
                    Ok(value) => map.serialize_entry("value", value)?,
                    Err(reason) => map.serialize_entry("error", reason)?,
                }
            }
            Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
                map.serialize_entry("type", "auto_retry_start")?;
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("maxAttempts", max_attempts)?;
                map.serialize_entry("delayMs", delay_ms)?;
                map.serialize_entry("errorMessage", error_message)?;
            }
            Event::AutoRetryEnd { success, attempt, final_error } => {
                map.serialize_entry("type", "auto_retry_end")?;
                map.serialize_entry("success", success)?;
                map.serialize_entry("attempt", attempt)?;
                if let Some(error) = final_error {
                    map.serialize_entry("finalError", error)?;
                }
            }
            Event::CompactionStart { reason } => {
                map.serialize_entry("type", "compaction_start")?;
                map.serialize_entry("reason", reason.name())?;
            }
            Event::CompactionEnd { reason, result, aborted, will_retry, error_message } => {
                map.serialize_entry("type", "compaction_end")?;
                map.serialize_entry("reason", reason.name())?;
                if let Some(result) = result {
                    map.serialize_entry("result", result)?;
                }
                map.serialize_entry("aborted", aborted)?;
                map.serialize_entry("willRetry", will_retry)?;
                if let Some(message) = error_message {
                    map.serialize_entry("errorMessage", message)?;
                }
            }
            Event::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
                map.serialize_entry("type", "summarization_retry_scheduled")?;
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("maxAttempts", max_attempts)?;
                map.serialize_entry("delayMs", delay_ms)?;
                map.serialize_entry("errorMessage", error_message)?;
            }
            Event::SummaryRetryStart { reason } => {
                map.serialize_entry("type", "summarization_retry_attempt_start")?;
                match reason {
                    Some(reason) => {
                        map.serialize_entry("source", "compaction")?;
                        map.serialize_entry("reason", reason.name())?;
                    }
                    None => map.serialize_entry("source", "branchSummary")?,
                }
            }
            Event::SummaryRetryFinished => {
                map.serialize_entry("type", "summarization_retry_finished")?;
            }
            Event::EntryAppended { entry } => {
                map.serialize_entry("type", "entry_appended")?;
                map.serialize_entry("entry", entry)?;
            }
            Event::SessionInfoChanged { name } => {
                map.serialize_entry("type", "session_info_changed")?;
                if let Some(name) = name {
                    map.serialize_entry("name", name)?;
                }
            }
            Event::ThinkingLevelChanged { level } => {
                map.serialize_entry("type", "thinking_level_changed")?;
                map.serialize_entry("level", level)?;
            }
            Event::BashUpdate { id, delta } => {
                map.serialize_entry("type", "bash_execution_update")?;
                if let Some(id) = id {
                    map.serialize_entry("id", id)?;
                }
                map.serialize_entry("delta", delta)?;
            }
            Event::QueueUpdate { steering, follow_up } => {
                map.serialize_entry("type", "queue_update")?;
                map.serialize_entry("steering", &texts(steering))?;
                map.serialize_entry("followUp", &texts(follow_up))?;
            }
        }
        map.end()
    }
}

fn texts(messages: &[AgentMessage]) -> Vec<String> {
    messages.iter().map(AgentMessage::text).collect()
}

impl Line<'_> {
    fn agent_event<M: SerializeMap>(&self, event: &AgentEvent<'_>, map: &mut M) -> Result<(), M::Error> {
        match event {
            AgentEvent::AgentStart => map.serialize_entry("type", "agent_start"),
            AgentEvent::AgentEnd { messages, will_retry } => {
                map.serialize_entry("type", "agent_end")?;
                map.serialize_entry("messages", messages)?;
                map.serialize_entry("willRetry", will_retry)
            }
            AgentEvent::TurnStart => map.serialize_entry("type", "turn_start"),
            AgentEvent::TurnEnd { message, tool_results } => {
                map.serialize_entry("type", "turn_end")?;
                map.serialize_entry("message", &AgentMessage::Assistant((*message).clone()))?;
                map.serialize_entry("toolResults", tool_results)
            }
            AgentEvent::PromptProgress { processed, total } => {
                map.serialize_entry("type", "prompt_progress")?;
                map.serialize_entry("processed", processed)?;
                map.serialize_entry("total", total)
            }
            AgentEvent::MessageStart { message } => {
                map.serialize_entry("type", "message_start")?;
                map.serialize_entry("message", message)
            }
            AgentEvent::MessageEnd { message } => {
                map.serialize_entry("type", "message_end")?;
                map.serialize_entry("message", message)
            }
            AgentEvent::MessageUpdate { event, fold } => {
                map.serialize_entry("type", "message_update")?;
                let partial = self.cumulative.then(|| snapshot(fold));
                if let Some(partial) = &partial {
                    map.serialize_entry("message", partial)?;
                }
                map.serialize_entry("usage", &fold.message().usage)?;
                map.serialize_entry("assistantMessageEvent", &Step { event, fold, partial: partial.as_ref() })
            }
            AgentEvent::ToolStart { id, name, arguments } => {
                tool(map, "tool_execution_start", id, name)?;
                map.serialize_entry("args", arguments)
            }
            AgentEvent::ToolUpdate { id, name, arguments, output } => {
                tool(map, "tool_execution_update", id, name)?;
                map.serialize_entry("args", arguments)?;
                map.serialize_entry("partialResult", &Output(output))
            }
            AgentEvent::ToolEnd { id, name, output, is_error } => {
                tool(map, "tool_execution_end", id, name)?;
                map.serialize_entry("result", &Output(output))?;
                map.serialize_entry("isError", is_error)
            }
        }
    }
}

fn tool<M: SerializeMap>(map: &mut M, kind: &str, id: &str, name: &str) -> Result<(), M::Error> {
    map.serialize_entry("type", kind)?;
    map.serialize_entry("toolCallId", id)?;
    map.serialize_entry("toolName", name)
}

/// A tool's result, as the reference shapes it.
struct Output<'a>(&'a ToolOutput);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(output) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &output.content)?;
        if let Some(details) = &output.details {
            map.serialize_entry("details", details)?;
        }
        if let Some(usage) = &output.usage {
            map.serialize_entry("usage", usage)?;
        }
        if output.terminate {
            map.serialize_entry("terminate", &true)?;
        }
        map.end()
    }
}

/// The answer so far, with the arguments of open tool calls as far as they are known.
fn snapshot(fold: &Fold) -> AgentMessage {
    let mut message = fold.message().clone();
    for (index, block) in message.content.iter_mut().enumerate() {
        if let (Block::ToolCall(call), Some(open)) = (block, fold.open_arguments(index)) {
            call.arguments = open.object().clone();
        }
    }
    AgentMessage::Assistant(std::sync::Arc::new(message))
}

/// The event inside a `message_update`.
struct Step<'a> {
    event: &'a AssistantEvent,
    fold: &'a Fold,
    partial: Option<&'a AgentMessage>,
}

impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use AssistantEvent as E;
        let mut map = serializer.serialize_map(None)?;
        let mut head = |kind: &str, index: &usize| {
            map.serialize_entry("type", kind)?;
            map.serialize_entry("contentIndex", index)
        };
        match self.event {
            E::TextStart { index } => head("text_start", index)?,
            E::ThinkingStart { index } => head("thinking_start", index)?,
            E::TextDelta { index, delta } => {
                head("text_delta", index)?;
                map.serialize_entry("delta", delta)?;
            }
            E::ThinkingDelta { index, delta } => {
                head("thinking_delta", index)?;
                map.serialize_entry("delta", delta)?;
            }
            E::ToolCallDelta { index, delta } => {
                head("toolcall_delta", index)?;
                map.serialize_entry("delta", delta)?;
            }
            E::TextEnd { index, .. } => {
                head("text_end", index)?;
                map.serialize_entry("content", self.text(*index))?;
            }
            E::ThinkingEnd { index, .. } => {
                head("thinking_end", index)?;
                map.serialize_entry("content", self.text(*index))?;
            }
            E::ToolCallStart { index, id, name } => {
                head("toolcall_start", index)?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("toolName", name)?;
            }
            E::ToolCallEnd { index, .. } => {
                head("toolcall_end", index)?;
                let call = self.fold.message().content.get(*index);
                map.serialize_entry("toolCall", &call)?;
            }
            // The loop turns these into message_start and message_end.
            E::Start | E::Info(_) | E::Done { .. } | E::Error(_) => {}
        }
        if let Some(partial) = self.partial {
            map.serialize_entry("partial", partial)?;
        }
        map.end()
    }
}

impl Step<'_> {
    fn text(&self, index: usize) -> &str {
        match self.fold.message().content.get(index) {
            Some(Block::Text(block)) => &block.text,
            Some(Block::Thinking(block)) => &block.thinking,
            _ => "",
        }
    }
}
