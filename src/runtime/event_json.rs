//! Events as JSON lines, in the reference's shapes.
//!
//! A line is declared once, in a row of [`lines!`]: its `type`, and its fields with their shapes and values. The
//! schema of RPC mode has the same rows.
//!
//! The linear form carries what is new: deltas, a block's whole content at its end, the message at
//! `message_end`. The cumulative form adds the snapshots `message` and `partial` that older clients read;
//! its size grows with the square of the answer's length.

use super::event::{Event, Reason};
use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::tool::ToolOutput;
use crate::llm::event::{AssistantEvent, Fold};
use crate::llm::message::{Block, Usage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Declares lines: a table of their fields for the schema, and the function that writes them.
///
/// A row is `"type" pattern => { fields }`; a field is `name: "shape" = value`, or `name? "shape" = option`
/// for a field that is omitted without a value. Patterns after `else` are written by the expression after
/// them.
macro_rules! lines {
    (
        $table:ident, $write:ident, $map:ident, |$($argument:ident: $type:ty),+| $value:ident,
        $($word:literal $pattern:pat => { $($name:ident $mark:tt $shape:literal = $field:expr),* $(,)? })*
        $(else $other:pat => $written:expr)?
    ) => {
        /// The `type` of each line and its fields, in the notation of `rpc::shape`.
        pub const $table: &[(&str, &str)] = &[
            $(($word, concat!($(stringify!($name), lines!(mark $mark), $shape, ", "),*))),*
        ];

        fn $write<M: SerializeMap>($map: &mut M, $($argument: $type),+) -> Result<(), M::Error> {
            match $value {
                $($pattern => {
                    $map.serialize_entry("type", $word)?;
                    $(lines!(put $map $name $mark $field);)*
                    Ok(())
                })*
                $($other => $written,)?
            }
        }
    };
    (mark :) => { ": " };
    (mark ?) => { "?: " };
    (put $map:ident $name:ident : $field:expr) => { $map.serialize_entry(stringify!($name), &$field)? };
    (put $map:ident $name:ident ? $field:expr) => {
        if let Some(value) = &$field {
            $map.serialize_entry(stringify!($name), value)?;
        }
    };
}

lines! { SESSION_EVENTS, session_event, map, |event: &Event<'_>, partial: Option<&AgentMessage>| event,
    "limit_reached" Event::LimitReached { reason } => { reason: "string" = reason }
    "output" Event::Output { outcome } => {
        value? "any" = outcome.as_ref().ok(),
        error? "string" = outcome.as_ref().err(),
    }
    "auto_retry_start" Event::AutoRetryStart { attempt, max_attempts, delay_ms, error_message } => {
        attempt: "integer" = attempt,
        maxAttempts: "integer" = max_attempts,
        delayMs: "integer" = delay_ms,
        errorMessage: "string" = error_message,
    }
    "auto_retry_end" Event::AutoRetryEnd { success, attempt, final_error } => {
        success: "boolean" = success,
        attempt: "integer" = attempt,
        finalError? "string" = final_error,
    }
    "compaction_start" Event::CompactionStart { reason } => { reason: "Reason" = reason.name() }
    "compaction_end" Event::CompactionEnd { reason, result, aborted, will_retry, error_message } => {
        reason: "Reason" = reason.name(),
        result? "Compacted" = result,
        aborted: "boolean" = aborted,
        willRetry: "boolean" = will_retry,
        errorMessage? "string" = error_message,
    }
    "summarization_retry_scheduled"
    Event::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => {
        attempt: "integer" = attempt,
        maxAttempts: "integer" = max_attempts,
        delayMs: "integer" = delay_ms,
        errorMessage: "string" = error_message,
    }
    "summarization_retry_attempt_start" Event::SummaryRetryStart { reason } => {
        source: r#""compaction"|"branchSummary""# = if reason.is_some() { "compaction" } else { "branchSummary" },
        reason? "Reason" = reason.map(Reason::name),
    }
    "summarization_retry_finished" Event::SummaryRetryFinished => {}
    "helper_update" Event::HelperUpdate { helper } => { helper: "any" = helper }
    "entry_appended" Event::EntryAppended { entry } => { entry: "Entry" = entry }
    "session_info_changed" Event::SessionInfoChanged { name } => { name? "string" = name }
    "thinking_level_changed" Event::ThinkingLevelChanged { level } => { level: "Thinking" = level }
    "bash_execution_update" Event::BashUpdate { id, delta } => {
        id? "any" = id,
        delta: "string" = delta,
    }
    "queue_update" Event::QueueUpdate { steering, follow_up } => {
        steering: "string[]" = texts(steering),
        followUp: "string[]" = texts(follow_up),
    }
    "error" Event::Failed { reason } => { error: "string" = reason }
    "agent_settled" Event::AgentSettled { aborted } => { aborted: "boolean" = aborted }
    else Event::Agent(event) => agent_event(map, event, partial)
}

lines! { AGENT_EVENTS, agent_event, map, |event: &AgentEvent<'_>, partial: Option<&AgentMessage>| event,
    "agent_start" AgentEvent::AgentStart => {}
    "agent_end" AgentEvent::AgentEnd { messages, will_retry } => {
        messages: "Message[]" = messages,
        willRetry: "boolean" = will_retry,
    }
    "turn_start" AgentEvent::TurnStart => {}
    "turn_end" AgentEvent::TurnEnd { message, tool_results } => {
        message: "Message.assistant" = AgentMessage::Assistant((*message).clone()),
        toolResults: "Message.toolResult[]" = tool_results,
    }
    "prompt_progress" AgentEvent::PromptProgress { processed, total } => {
        processed: "integer" = processed,
        total: "integer" = total,
    }
    "message_start" AgentEvent::MessageStart { message } => { message: "Message" = message }
    "message_end" AgentEvent::MessageEnd { message } => { message: "Message" = message }
    "tool_execution_start" AgentEvent::ToolStart { id, name, arguments, parent } => {
        toolCallId: "string" = id,
        toolName: "string" = name,
        args: "object" = arguments,
        parentToolCallId? "string" = parent,
    }
    "tool_execution_update" AgentEvent::ToolUpdate { id, name, arguments, output, parent } => {
        toolCallId: "string" = id,
        toolName: "string" = name,
        args: "object" = arguments,
        partialResult: "Output" = Output { output, is_error: false },
        parentToolCallId? "string" = parent,
    }
    "tool_execution_end" AgentEvent::ToolEnd { id, name, output, is_error, duration_ms, parent } => {
        toolCallId: "string" = id,
        toolName: "string" = name,
        result: "Output" = Output { output, is_error: *is_error },
        isError: "boolean" = is_error,
        durationMs? "integer" = duration_ms,
        parentToolCallId? "string" = parent,
    }
    else AgentEvent::MessageUpdate { event, fold } => {
        let message = fold.message();
        update(map, &Update { event, usage: &message.usage, content: &message.content, partial })
    }
}

/// A step of an answer, with the parts of the answer that its line needs.
struct Update<'a> {
    event: &'a AssistantEvent,
    usage: &'a Usage,
    /// The answer so far, which holds the content of ended blocks.
    content: &'a [Block],
    partial: Option<&'a AgentMessage>,
}

lines! { UPDATES, update, map, |step: &Update<'_>| step,
    "message_update" Update { usage, partial, .. } => {
        message? "Message.assistant" = partial,
        usage: "Usage" = usage,
        assistantMessageEvent: "Step" = Step(step),
    }
}

lines! { STEPS, step_fields, map, |event: &AssistantEvent, content: &[Block]| event,
    "text_start" AssistantEvent::TextStart { index } => { contentIndex: "integer" = index }
    "text_delta" AssistantEvent::TextDelta { index, delta } => {
        contentIndex: "integer" = index,
        delta: "string" = delta,
    }
    "text_end" AssistantEvent::TextEnd { index, .. } => {
        contentIndex: "integer" = index,
        content: "string" = block_text(content, *index),
    }
    "thinking_start" AssistantEvent::ThinkingStart { index } => { contentIndex: "integer" = index }
    "thinking_delta" AssistantEvent::ThinkingDelta { index, delta } => {
        contentIndex: "integer" = index,
        delta: "string" = delta,
    }
    "thinking_end" AssistantEvent::ThinkingEnd { index, .. } => {
        contentIndex: "integer" = index,
        content: "string" = block_text(content, *index),
    }
    "toolcall_start" AssistantEvent::ToolCallStart { index, id, name } => {
        contentIndex: "integer" = index,
        id: "string" = id,
        toolName: "string" = name,
    }
    "toolcall_delta" AssistantEvent::ToolCallDelta { index, delta } => {
        contentIndex: "integer" = index,
        delta: "string" = delta,
    }
    "toolcall_end" AssistantEvent::ToolCallEnd { index, .. } => {
        contentIndex: "integer" = index,
        toolCall: "Block.toolCall" = content.get(*index),
    }
    // The loop turns the others into `message_start` and `message_end`.
    else _ => Ok(())
}

/// A line that is not an event of the session.
pub enum Line<'a> {
    /// The first line of RPC mode, if enabled.
    Ready { protocol: u32, capabilities: &'a [&'a str], commands: &'a [&'a str] },
    /// A question to the user of the client.
    UiRequest { id: &'a str, question: &'a Question<'a> },
    /// A failure of an extension; the session goes on.
    ExtensionError { path: &'a str, event: &'a str, error: &'a str },
    /// A call of a tool that the client runs.
    ToolCallRequest { id: &'a str, call: &'a str, name: &'a str, arguments: &'a Map<String, Value> },
    /// The result of a call is no longer awaited.
    ToolCallCancel { id: &'a str, reason: &'a str },
    /// The end of a shell command, for older clients.
    BashEnd { message: &'a AgentMessage },
    /// A compaction, for older clients.
    Compaction { summary: &'a str, tokens_before: u64, auto: Option<bool> },
}

/// A question that the client asks its user, or something that it shows him.
#[derive(Default)]
pub struct Question<'a> {
    pub method: &'static str,
    pub title: String,
    /// The choices of a `select`.
    pub options: Option<&'a [&'a str]>,
    /// The initial text of an `editor`.
    pub prefill: Option<&'a str>,
    /// The question of a `confirm`, or the text of a `notify`.
    pub message: Option<&'a str>,
    /// What an `input` shows while it is empty.
    pub placeholder: Option<&'a str>,
    /// Milliseconds after which the question is over.
    pub timeout: Option<u64>,
    pub notify_type: Option<&'a str>,
    pub status_key: Option<&'a str>,
    pub status_text: Option<&'a str>,
    pub widget_key: Option<&'a str>,
    pub widget_lines: Option<&'a [String]>,
    pub widget_placement: Option<&'a str>,
    /// The new text of the editor.
    pub text: Option<&'a str>,
    /// The tool call to approve.
    pub tool_call_id: Option<&'a str>,
    pub tool_name: Option<&'a str>,
    /// The helper that makes the call.
    pub helper: Option<&'a str>,
    pub arguments: Option<&'a Map<String, Value>>,
}

lines! { OTHER_LINES, other_line, map, |line: &Line<'_>| line,
    "ready" Line::Ready { protocol, capabilities, commands } => {
        protocolVersion: "integer" = protocol,
        capabilities: "string[]" = capabilities,
        commands: "string[]" = commands,
    }
    "extension_ui_request" Line::UiRequest { id, question } => {
        id: "string" = id,
        method: r#""select"|"confirm"|"input"|"editor"|"notify"|"setStatus"|"setWidget"|"setTitle"|"set_editor_text""# = question.method,
        title? "string" = Some(&question.title).filter(|title| !title.is_empty()),
        message? "string" = question.message,
        options? "string[]" = question.options,
        placeholder? "string" = question.placeholder,
        prefill? "string" = question.prefill,
        timeout? "integer" = question.timeout,
        notifyType? "string" = question.notify_type,
        statusKey? "string" = question.status_key,
        statusText? "string" = question.status_text,
        widgetKey? "string" = question.widget_key,
        widgetLines? "string[]" = question.widget_lines,
        widgetPlacement? "string" = question.widget_placement,
        text? "string" = question.text,
        toolCallId? "string" = question.tool_call_id,
        toolName? "string" = question.tool_name,
        helper? "string" = question.helper,
        arguments? "object" = question.arguments,
    }
    "extension_error" Line::ExtensionError { path, event, error } => {
        extensionPath: "string" = path,
        event: "string" = event,
        error: "string" = error,
    }
    "tool_call_request" Line::ToolCallRequest { id, call, name, arguments } => {
        id: "string" = id,
        toolCallId: "string" = call,
        toolName: "string" = name,
        arguments: "object" = arguments,
    }
    "tool_call_cancel" Line::ToolCallCancel { id, reason } => {
        id: "string" = id,
        reason: r#""aborted"|"timeout""# = reason,
    }
    "bash_end" Line::BashEnd { message } => { message: "Message.bashExecution" = message }
    "compaction" Line::Compaction { summary, tokens_before, auto } => {
        summary: "string" = summary,
        tokensBefore: "integer" = tokens_before,
        auto? "boolean" = auto,
    }
}

fn object<S: Serializer>(
    serializer: S,
    write: impl FnOnce(&mut S::SerializeMap) -> Result<(), S::Error>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    write(&mut map)?;
    map.end()
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        object(serializer, |map| other_line(map, self))
    }
}

/// An event, in the cumulative form with the answer so far.
struct EventLine<'a> {
    event: &'a Event<'a>,
    partial: Option<AgentMessage>,
}

impl Serialize for EventLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        object(serializer, |map| session_event(map, self.event, self.partial.as_ref()))
    }
}

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        object(serializer, |map| update(map, self))
    }
}

/// The event inside a `message_update`.
struct Step<'a>(&'a Update<'a>);

impl Serialize for Step<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Update { event, content, partial, .. } = self.0;
        object(serializer, |map| {
            step_fields(map, event, content)?;
            partial.map_or(Ok(()), |partial| map.serialize_entry("partial", partial))
        })
    }
}

/// A tool's result in the reference's shape.
struct Output<'a> {
    output: &'a ToolOutput,
    is_error: bool,
}

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { output, is_error } = self;
        object(serializer, |map| {
            map.serialize_entry("content", &output.content)?;
            if let Some(details) = &output.details {
                map.serialize_entry("details", details)?;
            }
            if let Some(structured) = &output.structured {
                map.serialize_entry("structuredContent", structured)?;
                if *is_error {
                    map.serialize_entry("isError", &true)?;
                }
            }
            if let Some(usage) = &output.usage {
                map.serialize_entry("usage", usage)?;
            }
            if output.terminate {
                map.serialize_entry("terminate", &true)?;
            }
            Ok(())
        })
    }
}

fn texts(messages: &[AgentMessage]) -> Vec<String> {
    messages.iter().map(AgentMessage::text).collect()
}

fn block_text(content: &[Block], index: usize) -> &str {
    match content.get(index) {
        Some(Block::Text(block)) => &block.text,
        Some(Block::Thinking(block)) => &block.thinking,
        _ => "",
    }
}

/// The answer so far, with the arguments of open tool calls received so far.
fn snapshot(fold: &Fold) -> AgentMessage {
    let mut message = fold.message().clone();
    for (index, block) in message.content.iter_mut().enumerate() {
        if let (Block::ToolCall(call), Some(open)) = (block, fold.open_arguments(index)) {
            call.arguments = open.object().clone();
        }
    }
    AgentMessage::Assistant(Arc::new(message))
}

/// The `type` of an event that handlers can take.
pub fn name(event: &Event<'_>) -> Option<&'static str> {
    Some(match event {
        Event::AgentSettled { .. } => "agent_settled",
        Event::SessionInfoChanged { .. } => "session_info_changed",
        Event::Agent(event) => match event {
            AgentEvent::AgentStart => "agent_start",
            AgentEvent::AgentEnd { .. } => "agent_end",
            AgentEvent::TurnStart => "turn_start",
            AgentEvent::MessageStart { .. } => "message_start",
            AgentEvent::MessageUpdate { .. } => "message_update",
            AgentEvent::ToolStart { .. } => "tool_execution_start",
            AgentEvent::ToolUpdate { .. } => "tool_execution_update",
            AgentEvent::ToolEnd { .. } => "tool_execution_end",
            // Told where a message can still be changed, and a turn be added to.
            AgentEvent::MessageEnd { .. }
            | AgentEvent::TurnEnd { .. }
            | AgentEvent::PromptProgress { .. } => {
                return None;
            }
        },
        _ => return None,
    })
}

/// The line of `event`, in the linear form.
pub fn to_value(event: &Event<'_>) -> Value {
    serde_json::to_value(EventLine { event, partial: None }).unwrap_or_default()
}

/// Appends `event` as one line; in the cumulative form also the events of older versions.
pub fn write_event(event: &Event<'_>, cumulative: bool, out: &mut Vec<u8>) {
    let partial = match event {
        Event::Agent(AgentEvent::MessageUpdate { fold, .. }) if cumulative => Some(snapshot(fold)),
        _ => None,
    };
    write(&EventLine { event, partial }, out);
    if let Event::CompactionEnd { reason, result: Some(result), .. } = event
        && cumulative
    {
        let auto = (*reason != Reason::Manual).then_some(true);
        let (summary, tokens_before) = (result.summary.as_str(), result.tokens_before);
        write(&Line::Compaction { summary, tokens_before, auto }, out);
    }
}

/// Appends any value as one line. U+2028 and U+2029 are not escaped: readers split at LF only.
pub fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        return;
    }
    out.push(b'\n');
}

/// A delta queued for a slow reader; later deltas of its block are joined to it.
pub struct Delta {
    event: AssistantEvent,
    usage: Usage,
}

impl Delta {
    /// The delta in `event`, and the usage so far; `None` if `event` cannot be joined.
    pub fn of<'a>(event: &Event<'a>) -> Option<(&'a AssistantEvent, &'a Usage)> {
        use AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
        match event {
            Event::Agent(AgentEvent::MessageUpdate { event, fold }) => match event {
                TextDelta { .. } | ThinkingDelta { .. } | ToolCallDelta { .. } => {
                    Some((event, &fold.message().usage))
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub fn new(event: &AssistantEvent, usage: &Usage) -> Self {
        Self { event: event.clone(), usage: usage.clone() }
    }

    /// Appends a delta of the same block. False if it belongs to another block.
    pub fn join(&mut self, event: &AssistantEvent, usage: &Usage) -> bool {
        use AssistantEvent::{TextDelta, ThinkingDelta, ToolCallDelta};
        match (&mut self.event, event) {
            (TextDelta { index, delta }, TextDelta { index: at, delta: more })
            | (ThinkingDelta { index, delta }, ThinkingDelta { index: at, delta: more })
            | (ToolCallDelta { index, delta }, ToolCallDelta { index: at, delta: more })
                if index == at =>
            {
                delta.push_str(more);
                self.usage.clone_from(usage);
                true
            }
            _ => false,
        }
    }

    /// Appends the delta as one line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Self { event, usage } = self;
        write(&Update { event, usage, content: &[], partial: None }, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_event() {
        let pages = [include_str!("../docs/json.md"), include_str!("../docs/rpc.md")].concat();
        for (word, _) in [SESSION_EVENTS, AGENT_EVENTS, UPDATES, STEPS, OTHER_LINES].concat() {
            let is_there =
                pages.contains(&format!("`{word}`")) || pages.contains(&format!("\"type\":\"{word}\""));
            assert!(is_there, "the manual is without {word}");
        }
    }
}
