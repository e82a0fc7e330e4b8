//! The loop: a model's answer, its tool calls, their results, and again, until there is nothing to do.
//!
//! It runs on the caller's thread. The conversation and everything else that is not the loop itself (the log, settings,
//! credentials, queues, hooks) are behind [`Host`].
//!
//! A turn is one answer and the results of its tool calls. A failed or aborted answer ends the run and
//! runs no tool. An answer that was cut at the output limit runs none either, since its arguments may
//! be cut too. An abort at any moment leaves every call with a result.

use super::batch;
use super::event::AgentEvent;
use super::message::{self, AgentMessage};
use super::tool::{Tool, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, StreamError};
use crate::llm::message::{AssistantMessage, StopReason, ToolCall};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use crate::llm::stream::StreamHandle;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Who answers, and with which tools.
pub struct Agent {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub tools: Vec<Arc<dyn Tool>>,
    /// Runs every batch of tool calls one call at a time.
    pub sequential: bool,
}

/// What a run begins with.
pub enum Input {
    Prompt(Vec<AgentMessage>),
    /// Messages that were queued, taken as the queue's mode has it.
    Queued(Vec<AgentMessage>),
    /// Goes on from the conversation as it is: after a retry, or a compaction.
    Continue,
}

/// The run cannot go on: the log cannot be written, the reader of the events has gone.
#[derive(Debug)]
pub struct Fatal(pub String);

impl std::fmt::Display for Fatal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fatal {}

/// Where a request goes, and what with.
pub struct Request {
    /// The agent's model, as its credential changes it (another base URL).
    pub model: Arc<Model>,
    pub options: StreamOptions,
}

/// Why a call does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the model is told.
    pub reason: String,
    /// Asks the agent to stop after the batch, as a result does.
    pub terminate: bool,
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTurn {
    /// Continues if there are tool results, steering or follow-up messages.
    Natural,
    End,
}

/// What the loop asks of whoever runs it. All calls come on the loop's thread.
pub trait Host {
    /// The conversation: every message that has ended.
    fn messages(&self) -> Arc<Vec<AgentMessage>>;

    /// Something happened. A message that ended is part of the conversation when this returns.
    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal>;

    /// A later turn is about to begin: the moment for a compaction.
    fn before_turn(&mut self, agent: &mut Agent) -> Result<(), Fatal> {
        let _ = agent;
        Ok(())
    }

    /// `pending` is about to join the conversation; a changed prompt or tool set goes in as a system message.
    fn announce(&mut self, agent: &Agent, pending: &mut Vec<AgentMessage>) -> Result<(), Fatal>;

    /// The last look at a message before it joins the conversation. Its role stays.
    fn revise(&mut self, message: AgentMessage) -> AgentMessage {
        message
    }

    /// A call is about to run, with arguments that are valid. Gives those to run it with.
    fn before_call(
        &mut self,
        call: &ToolCall,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, Refusal> {
        let _ = call;
        Ok(arguments)
    }

    /// A call has run: the last look at its result.
    fn after_call(&mut self, call: &ToolCall, output: &mut ToolOutput, is_error: &mut bool) {
        let _ = (call, output, is_error);
    }

    /// Model and options of the next request, credentials resolved.
    fn request(&mut self, agent: &Agent) -> Result<Request, StreamError>;

    /// The last look at the messages before they become a request.
    fn context(&mut self, messages: &[AgentMessage]) -> Option<Vec<AgentMessage>> {
        let _ = messages;
        None
    }

    /// Something about the request that the user should know.
    fn notice(&mut self, text: &str) {
        let _ = text;
    }

    /// Sends the request.
    fn stream(&mut self, request: Request, context: Context, cancel: &CancelToken) -> StreamHandle {
        crate::wire::stream(&request.model, context, request.options, cancel)
    }

    fn steering(&mut self) -> Vec<AgentMessage>;
    fn follow_up(&mut self) -> Vec<AgentMessage>;

    /// True if a steering message is queued: tool calls that have not started are then skipped.
    fn is_interrupted(&mut self) -> bool {
        false
    }

    fn after_turn(&mut self, message: &AssistantMessage, results: &[AgentMessage]) -> AfterTurn {
        let _ = (message, results);
        AfterTurn::Natural
    }

    /// True if a later run will ask again for the failed answer `message`.
    fn will_retry(&mut self, message: &AssistantMessage, failure: Option<&StreamError>) -> bool {
        let _ = (message, failure);
        false
    }
}

/// Runs until the model has nothing more to do. Gives the failure of the last answer, if it failed.
pub fn run(
    agent: &mut Agent,
    input: Input,
    host: &mut dyn Host,
    cancel: &CancelToken,
) -> Result<Option<StreamError>, Fatal> {
    let is_prompt = matches!(input, Input::Prompt(_));
    let mut pending = match input {
        Input::Prompt(messages) | Input::Queued(messages) => messages,
        Input::Continue => continuation(host)?,
    };
    // What a continuation began with was its turn already.
    if pending.is_empty() || is_prompt {
        pending.extend(host.steering());
    }
    let mut added = Vec::new();
    host.event(&AgentEvent::AgentStart)?;
    let mut first = true;
    loop {
        if !first {
            host.before_turn(agent)?;
            if pending.is_empty() {
                pending = host.steering();
            }
        }
        first = false;
        host.event(&AgentEvent::TurnStart)?;
        host.announce(agent, &mut pending)?;
        for message in pending.drain(..) {
            add(host, &mut added, message)?;
        }
        let Answer { message, failure } = answer(agent, host, cancel)?;
        added.push(AgentMessage::Assistant(message.clone()));
        if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
            host.after_turn(&message, &[]);
            host.event(&AgentEvent::TurnEnd { message: &message, tool_results: &[] })?;
            let will_retry = host.will_retry(&message, failure.as_ref());
            host.event(&AgentEvent::AgentEnd { messages: &added, will_retry })?;
            return Ok(failure);
        }
        let batch = batch::run(agent, &message, host, cancel)?;
        added.extend(batch.results.iter().cloned());
        let next = host.after_turn(&message, &batch.results);
        host.event(&AgentEvent::TurnEnd { message: &message, tool_results: &batch.results })?;
        if next == AfterTurn::End {
            break;
        }
        pending = host.steering();
        if batch.wants_answer || !pending.is_empty() {
            continue;
        }
        pending = host.follow_up();
        if pending.is_empty() {
            break;
        }
    }
    host.event(&AgentEvent::AgentEnd { messages: &added, will_retry: false })?;
    Ok(None)
}

/// What a run without a new prompt begins with: nothing, or messages that wait.
fn continuation(host: &mut dyn Host) -> Result<Vec<AgentMessage>, Fatal> {
    let messages = host.messages();
    let mut spoken = messages.iter().filter(|message| !matches!(message, AgentMessage::System(_)));
    let stuck = match spoken.next_back() {
        None => "Cannot continue: no messages in context",
        Some(AgentMessage::Assistant(_)) => "Cannot continue from message role: assistant",
        Some(_) => return Ok(Vec::new()),
    };
    let mut waiting = host.steering();
    if waiting.is_empty() {
        waiting = host.follow_up();
    }
    if waiting.is_empty() { Err(Fatal(stuck.into())) } else { Ok(waiting) }
}

/// A complete message joins the conversation.
pub(super) fn add(
    host: &mut dyn Host,
    added: &mut Vec<AgentMessage>,
    message: AgentMessage,
) -> Result<(), Fatal> {
    host.event(&AgentEvent::MessageStart { message: &message })?;
    let message = host.revise(message);
    host.event(&AgentEvent::MessageEnd { message: &message })?;
    added.push(message);
    Ok(())
}

struct Answer {
    message: Arc<AssistantMessage>,
    failure: Option<StreamError>,
}

/// One request, streamed.
fn answer(agent: &Agent, host: &mut dyn Host, cancel: &CancelToken) -> Result<Answer, Fatal> {
    let messages = {
        let all = host.messages();
        let hooked = host.context(&all);
        message::to_llm(hooked.as_deref().unwrap_or(&all))
    };
    let mut stream = match host.request(agent) {
        Ok(request) => host.stream(request, Context { messages }, cancel),
        Err(error) => StreamHandle::failed(&agent.model, error),
    };
    let mut started = false;
    while let Some(event) = stream.next_event() {
        match event {
            AssistantEvent::Start => {
                started = true;
                let message = AgentMessage::Assistant(Arc::new(stream.partial().clone()));
                host.event(&AgentEvent::MessageStart { message: &message })?;
            }
            AssistantEvent::Info(info) => {
                if let Some((processed, total)) = info.prompt_progress {
                    host.event(&AgentEvent::PromptProgress { processed, total })?;
                }
                if let Some(text) = &info.notice {
                    host.notice(text);
                }
            }
            AssistantEvent::Done { .. } | AssistantEvent::Error(_) => break,
            event => host.event(&AgentEvent::MessageUpdate { event: &event, fold: stream.fold() })?,
        }
    }
    let (mut message, failure) = stream.finish();
    message.thinking_level = Some(agent.thinking.name().into());
    let mut message = Arc::new(message);
    let mut ended = AgentMessage::Assistant(message.clone());
    if !started {
        host.event(&AgentEvent::MessageStart { message: &ended })?;
    }
    ended = host.revise(ended);
    if let AgentMessage::Assistant(revised) = &ended {
        message = revised.clone();
    }
    host.event(&AgentEvent::MessageEnd { message: &ended })?;
    Ok(Answer { message, failure })
}

#[cfg(test)]
mod tests;
