//! The agent's loop: requests an answer, runs its tool calls, and repeats until the model makes no call.
//!
//! The loop runs on the caller's thread. Everything else (the conversation, log, settings, credentials,
//! queues, hooks) is behind [`Host`].
//!
//! A turn is one answer and the results of its tool calls. A failed or aborted answer ends the run, and its
//! tool calls do not run. The tool calls of an answer that was cut at the output limit do not run either,
//! since their arguments may be incomplete. After an abort, every call still has a result.

use super::batch;
use super::event::AgentEvent;
use super::message::{self, AgentMessage};
use super::tool::{Tool, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, StreamError};
use crate::llm::message::{AssistantMessage, Block, StopReason, ToolCall};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use crate::llm::stream::StreamHandle;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The model, and its tools.
pub struct Agent {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub tools: Vec<Arc<dyn Tool>>,
    /// True to run tool calls one at a time.
    pub sequential: bool,
}

/// The input of a run.
pub enum Input {
    Prompt(Vec<AgentMessage>),
    /// Messages taken from a queue.
    Queued(Vec<AgentMessage>),
    /// No new message: after a retry or a compaction, or to continue a run that was cut off.
    Continue,
}

/// An error that ends the run, for instance because the log cannot be written or the reader of events is
/// gone.
#[derive(Debug)]
pub struct Fatal(pub String);

impl std::fmt::Display for Fatal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fatal {}

/// What a request goes to.
pub struct Target {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
}

/// The model and the options of a request.
pub struct Request {
    /// The target's model. Its credential may have changed the base URL.
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

/// Whether the run continues after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterTurn {
    /// Continue if there are tool results, steering or follow-up messages.
    Natural,
    /// Continue in any case.
    Continue,
    End,
}

/// The loop's access to conversation, credentials and queues. All methods are called on the loop's thread.
pub trait Host {
    /// Returns all messages of the conversation that have ended.
    fn messages(&self) -> Arc<Vec<AgentMessage>>;

    /// Handles an event. After `MessageEnd`, its message must be part of the conversation.
    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal>;

    /// Called before every turn but the first, for instance to compact the conversation.
    fn before_turn(&mut self, agent: &mut Agent) -> Result<(), Fatal> {
        let _ = agent;
        Ok(())
    }

    /// Called before `pending` joins the conversation. If prompt or tools have changed, adds a system
    /// message.
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

    /// A call has run with these arguments: the last look at its result.
    fn after_call(
        &mut self,
        call: &ToolCall,
        arguments: &Map<String, Value>,
        output: &mut ToolOutput,
        is_error: &mut bool,
    ) {
        let _ = (call, arguments, output, is_error);
    }

    /// Called before each request for `messages`. May replace the target, which is the agent's model.
    fn route(
        &mut self,
        target: &mut Target,
        messages: &[AgentMessage],
    ) -> Result<Result<(), StreamError>, Fatal> {
        let _ = (target, messages);
        Ok(Ok(()))
    }

    /// Returns model and options of the next request, with resolved credentials.
    fn request(&mut self, target: &Target) -> Result<Request, StreamError>;

    /// Replaces the messages of the next request, or returns `None` to send them unchanged.
    fn context(&mut self, messages: &[AgentMessage]) -> Option<Vec<AgentMessage>> {
        let _ = messages;
        None
    }

    /// Passes a remark about the request on to the user.
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

    /// Called before each `TurnEnd`. A failed answer ends the run whatever this returns.
    fn after_turn(
        &mut self,
        message: &Arc<AssistantMessage>,
        results: &[AgentMessage],
    ) -> Result<AfterTurn, Fatal> {
        let _ = (message, results);
        Ok(AfterTurn::Natural)
    }

    /// True if a later run will retry the failed answer `message`.
    fn will_retry(&mut self, message: &AssistantMessage, failure: Option<&StreamError>) -> bool {
        let _ = (message, failure);
        false
    }
}

/// Runs until the model has nothing more to do. Returns the last answer's failure, if it failed.
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
    // Queued input is all that the queue's mode allows in one turn.
    let takes_steering = pending.is_empty() || is_prompt;
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
        host.event(&AgentEvent::TurnStart)?;
        if first && takes_steering {
            pending.extend(host.steering());
        }
        first = false;
        host.announce(agent, &mut pending)?;
        for message in pending.drain(..) {
            add(host, &mut added, message)?;
        }
        let Answer { message, failure } = answer(agent, host, cancel)?;
        added.push(AgentMessage::Assistant(message.clone()));
        if matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
            host.after_turn(&message, &[])?;
            host.event(&AgentEvent::TurnEnd { message: &message, tool_results: &[] })?;
            let will_retry = host.will_retry(&message, failure.as_ref());
            host.event(&AgentEvent::AgentEnd { messages: &added, will_retry })?;
            return Ok(failure);
        }
        let batch = batch::run(agent, &message, host, cancel)?;
        added.extend(batch.results.iter().cloned());
        let next = host.after_turn(&message, &batch.results)?;
        host.event(&AgentEvent::TurnEnd { message: &message, tool_results: &batch.results })?;
        if next == AfterTurn::End {
            break;
        }
        pending = host.steering();
        if batch.wants_answer || !pending.is_empty() {
            continue;
        }
        pending = host.follow_up();
        if pending.is_empty() && next != AfterTurn::Continue {
            break;
        }
    }
    host.event(&AgentEvent::AgentEnd { messages: &added, will_retry: false })?;
    Ok(None)
}

/// Returns the input of a run without a prompt: none if the last message awaits an answer or the results of its
/// calls, otherwise queued messages. It is an error if no message is queued then.
fn continuation(host: &mut dyn Host) -> Result<Vec<AgentMessage>, Fatal> {
    let messages = host.messages();
    let mut spoken = messages.iter().filter(|message| !matches!(message, AgentMessage::System(_)));
    let stuck = match spoken.next_back() {
        None => "Cannot continue: no messages in context",
        // The program ended while the calls ran.
        Some(AgentMessage::Assistant(answer))
            if answer.stop_reason == StopReason::ToolUse && answer.tool_calls().next().is_some() =>
        {
            return Ok(Vec::new());
        }
        Some(AgentMessage::Assistant(_)) => "Cannot continue from message role: assistant",
        Some(_) => return Ok(Vec::new()),
    };
    let mut waiting = host.steering();
    if waiting.is_empty() {
        waiting = host.follow_up();
    }
    if waiting.is_empty() { Err(Fatal(stuck.into())) } else { Ok(waiting) }
}

/// Adds a complete message to the conversation.
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

/// The messages of the next request.
fn context(host: &mut dyn Host) -> Arc<Vec<AgentMessage>> {
    let all = host.messages();
    host.context(&all).map_or(all, Arc::new)
}

/// Makes one request and streams its answer.
fn answer(agent: &Agent, host: &mut dyn Host, cancel: &CancelToken) -> Result<Answer, Fatal> {
    let mut target = Target { model: agent.model.clone(), thinking: agent.thinking };
    let routed = {
        let messages = host.messages();
        host.route(&mut target, &messages)?
    };
    let has_target = routed.is_ok();
    // What handlers make of the conversation is for the request alone.
    let request = routed.and_then(|()| {
        let context = Context { messages: message::to_llm(&context(host)) };
        host.request(&target).map(|request| (request, context))
    });
    let mut stream = match request {
        Ok((request, context)) => host.stream(request, context, cancel),
        Err(error) => StreamHandle::failed(&target.model, error),
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
    match has_target {
        true => message.thinking_level = Some(target.thinking.name().into()),
        // The form of the reference.
        false => {
            message.content = vec![Block::text("")];
            message.duration_ms = None;
        }
    }
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
