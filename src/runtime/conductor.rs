//! The session as the [`Host`] of the agent's loop: stores messages, notifies listeners, decides what comes
//! next.

use super::boundary::Turn;
use super::checkpoint;
use super::compaction::{self, Compactor, Moment};
use super::config::Config;
use super::control::{self, Control, InterruptMode, is_typed};
use super::event::{Event, Listener, RETRY_CANCELLED};
use super::event_json;
use super::hook::Hooked;
use super::image::blocked;
use super::limit::Verdict;
use super::outcome;
use super::retry;
use super::tap::HookTap;
use super::todo;
use super::virtual_model::{self, Occasion, Unrouted};
use crate::agent::event::AgentEvent;
use crate::agent::message::{self, AgentMessage, CustomMessage};
use crate::agent::run::{AfterTurn, Agent, Fatal, Host, Refusal, Request, Target};
use crate::agent::tool::{Tool, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::context::{Context, Head};
use crate::llm::event::StreamError;
use crate::llm::message::{
    AssistantMessage, Content, Extra, StopReason, SystemMessage, ToolCall, ToolReference, now_ms,
};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::stream::StreamHandle;
use crate::resources::prompt;
use crate::resources::settings::Retry;
use crate::session::Notice;
use crate::session::compaction::current_system;
use crate::session::entry::ContextEdit;
use crate::tools;
use crate::wire;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Connects one run of the agent's loop to its session.
pub(super) struct Conductor<'a> {
    pub control: &'a Control,
    pub config: &'a Config,
    pub compaction: &'a mut compaction::State,
    pub ended_by: &'a mut Option<String>,
    /// The failed answer that the next request repeats.
    pub failed: Option<Arc<AssistantMessage>>,
    /// Why the last request failed; `None` after a request that succeeded.
    pub failure: &'a mut Option<String>,
    pub listener: Listener<'a>,
    pub cancel: &'a CancelToken,
    /// Retries made for the current answer.
    pub attempt: u64,
    /// Answers that were requested again because they were not the wanted JSON value.
    pub output_retries: usize,
    /// True if the model was reminded of open items.
    pub is_reminded: bool,
    pub hooked: Hooked,
    /// Calls whose changes of files are looked at, with the number of each.
    pub looking: HashMap<String, u64>,
    /// Turns of the run.
    pub turns: u64,
    pub turn: Turn,
    /// True before the first request. Steering messages that arrived after the prompt then stay queued until
    /// the second request.
    pub is_first: bool,
}

impl Conductor<'_> {
    pub fn compactor(&mut self, agent: &Agent) -> Compactor<'_> {
        self.compactor_of(agent.model.clone(), agent.thinking)
    }

    fn compactor_of(&mut self, model: Arc<Model>, thinking: ThinkingLevel) -> Compactor<'_> {
        Compactor {
            control: self.control,
            limiting: self.control.models().limiting(),
            model,
            thinking,
            services: &self.config.services,
            state: self.compaction,
            outputs: &*self.config.workspace.outputs,
            listener: self.listener,
            cancel: self.cancel,
        }
    }

    pub fn policy(&self) -> Retry {
        Retry { enabled: self.control.state().switches.auto_retry, ..self.config.services.retry }
    }

    /// Leaves a failed answer out of the model's context and waits, if the retry policy allows another
    /// attempt. True after the wait; false if there is no retry or the wait was cancelled. The log keeps the
    /// answer.
    pub fn wait_to_retry(&mut self, failure: Option<StreamError>) -> Result<bool, Fatal> {
        let Some(failure) = failure else {
            return Ok(false);
        };
        let policy = self.policy();
        let Some(delay) = retry::delay(&policy, self.attempt + 1, &failure) else {
            return self.end_retries(&failure.message).map(|()| false);
        };
        self.attempt += 1;
        *self.failure = Some(failure.message.clone());
        (self.listener)(&Event::AutoRetryStart {
            attempt: self.attempt,
            max_attempts: policy.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: &failure.message,
        })?;
        let entry = {
            let mut log = self.control.log();
            let target_id = log.last_entry().unwrap_or_default().to_owned();
            log.append(ContextEdit { target_id, replacement: None, extra: Extra::new() })?
        };
        (self.listener)(&Event::EntryAppended { entry: &entry })?;
        if self.control.wait_to_retry(self.cancel, retry::with_jitter(delay)) {
            return self.end_retries(RETRY_CANCELLED).map(|()| false);
        }
        Ok(true)
    }

    /// Emits `auto_retry_end` with `final_error` if there was a retry.
    pub fn end_retries(&mut self, final_error: &str) -> Result<(), Fatal> {
        if self.attempt == 0 {
            return Ok(());
        }
        let (attempt, final_error) = (std::mem::take(&mut self.attempt), Some(final_error));
        (self.listener)(&Event::AutoRetryEnd { success: false, attempt, final_error })
    }

    /// Returns the message that asks again for a JSON value, if the last answer is not the wanted one and
    /// retries are left.
    pub fn retry_output(&mut self) -> Option<AgentMessage> {
        let wanted = self.config.wanted.as_ref()?;
        let messages = self.control.messages();
        let Some(AgentMessage::Assistant(answer)) = messages.last() else {
            return None;
        };
        if self.output_retries >= outcome::RETRIES_MAX || !outcome::is_whole(answer) {
            return None;
        }
        // Queued messages go first; their answer will then be the last one.
        if self.control.has_queued() {
            return None;
        }
        let fault = wanted.check(&outcome::text(answer)).err()?;
        self.output_retries += 1;
        Some(control::user_message(wanted.ask_again(&fault), Vec::new()))
    }

    /// Returns the message that reminds a model which stopped of the items that its list has open. Once for each
    /// prompt.
    pub fn todo_reminder(&mut self, agent: &Agent) -> Option<AgentMessage> {
        if self.is_reminded || !agent.tools.iter().any(|tool| tool.info().spec.name == todo::NAME) {
            return None;
        }
        let messages = self.control.messages();
        let Some(AgentMessage::Assistant(answer)) = messages.last() else {
            return None;
        };
        let is_over = outcome::is_whole(answer) && answer.stop_reason == StopReason::Stop;
        let text = todo::reminder(&messages).filter(|_| is_over)?;
        self.is_reminded = true;
        Some(note("todo", text))
    }

    /// Takes queued messages after a run ended without them: steering messages, or else follow-ups.
    pub fn queued(&mut self) -> Vec<AgentMessage> {
        let mut queues = self.control.queues();
        let steering = queues.steering.take();
        if steering.is_empty() { queues.follow_up.take() } else { steering }
    }

    /// Emits both queues if `message` came from one of them.
    pub fn emit_queues(&mut self, message: &AgentMessage) -> Result<(), Fatal> {
        let mut told = Ok(());
        let mut queues = self.control.queues();
        if (queues.steering.started(message) || queues.follow_up.started(message)) && is_typed(message) {
            queues.emit(&mut |event| told = (self.listener)(event));
        }
        told
    }
}

impl Host for Conductor<'_> {
    fn messages(&self) -> Arc<Vec<AgentMessage>> {
        self.control.messages()
    }

    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal> {
        match event {
            AgentEvent::MessageStart { message } => self.emit_queues(message)?,
            AgentEvent::MessageEnd { message } => {
                let entry = self.control.log().append_message(message)?;
                self.turn.follow(message, entry.id);
                self.compaction.saw(message);
            }
            AgentEvent::TurnEnd { .. } => self.control.sync_turn(),
            _ => {}
        }
        (self.listener)(&Event::Agent(*event))?;
        match event {
            AgentEvent::AgentStart => self.turns = 0,
            AgentEvent::TurnEnd { .. } => {
                self.turns += 1;
                self.control.write_after_turn(self.listener)?;
            }
            _ => {}
        }
        let turn = self.turns;
        let more = || match event {
            AgentEvent::TurnStart => json!({"turnIndex": turn, "timestamp": now_ms()}),
            _ => Value::Null,
        };
        self.hooked.event(&Event::Agent(*event), more, self.cancel);
        // What handlers send before the first request goes with it.
        if self.is_first
            && event_json::name(&Event::Agent(*event)).is_some_and(|name| self.hooked.wants(name))
        {
            self.control.queues().steering.mark();
        }
        if let AgentEvent::MessageEnd { message: AgentMessage::Assistant(answer) } = event
            && self.attempt > 0
            && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        {
            let attempt = std::mem::take(&mut self.attempt);
            *self.failure = None;
            (self.listener)(&Event::AutoRetryEnd { success: true, attempt, final_error: None })?;
        }
        Ok(())
    }

    fn revise(&mut self, message: AgentMessage) -> AgentMessage {
        self.hooked.message_end(message, self.cancel)
    }

    fn before_call(
        &mut self,
        call: &ToolCall,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, Refusal> {
        let tool = self.control.state().active_tool(&call.name);
        let tool = tool.as_ref().map(|tool| tool.info());
        if let Some(reason) = tool.and_then(|tool| self.control.refusal_while_planning(tool)) {
            return Err(Refusal { reason, terminate: false });
        }
        let arguments = self.hooked.tool_call(call, None, arguments, self.cancel)?;
        let changes = &self.config.workspace.changes;
        changes.prepare();
        if tool.is_some_and(changes_unknown)
            && let Some(number) = changes.begin(&call.name, &call.id, self.cancel)
        {
            self.looking.insert(call.id.clone(), number);
        }
        Ok(arguments)
    }

    fn after_call(
        &mut self,
        call: &ToolCall,
        arguments: &Map<String, Value>,
        output: &mut ToolOutput,
        is_error: &mut bool,
    ) {
        if let Some(number) = self.looking.remove(&call.id) {
            self.config.workspace.changes.end(&call.name, &call.id, number);
        }
        self.hooked.tool_result(call, None, arguments, output, is_error, self.cancel);
    }

    fn before_turn(&mut self, agent: &mut Agent) -> Result<(), Fatal> {
        if checkpoint::settle(self.control, self.listener)? {
            *self.compaction = compaction::State::default();
        }
        *agent = self.control.agent();
        match agent.model.is_virtual() {
            // It is checked when the model of the request is chosen.
            true => Ok(()),
            false => self.compactor(agent).check(Moment::BetweenTurns).map(drop),
        }
    }

    fn after_turn(
        &mut self,
        answer: &Arc<AssistantMessage>,
        results: &[AgentMessage],
    ) -> Result<AfterTurn, Fatal> {
        let goes_on = self.end_turn(answer, results)?;
        let verdict = self.control.guard().turn_ended(answer, results, !results.is_empty());
        match verdict {
            Verdict::Go => {}
            Verdict::Warn(text) => {
                let note = note("limit", text);
                // A listener that fails here also fails at the next event, where the error can end the run.
                self.control.queue().steer(note, &mut |event| drop((self.listener)(event)));
            }
            Verdict::End(reason) => {
                *self.ended_by = Some(reason);
                return Ok(AfterTurn::End);
            }
        }
        Ok(if goes_on { AfterTurn::Continue } else { AfterTurn::Natural })
    }

    fn will_retry(&mut self, _: &AssistantMessage, failure: Option<&StreamError>) -> bool {
        let policy = self.policy();
        failure.is_some_and(|failure| retry::delay(&policy, self.attempt + 1, failure).is_some())
    }

    fn announce(&mut self, agent: &Agent, pending: &mut Vec<AgentMessage>) -> Result<(), Fatal> {
        let mut head = Head::default();
        for message in self.control.messages().iter() {
            if let AgentMessage::System(system) = message {
                head.apply(system);
            }
        }
        let (sections, absent) = {
            let state = self.control.state();
            (state.sections(), state.absent_tools())
        };
        if let Some(update) = update(&head, &sections, &agent.tools, &absent) {
            pending.insert(0, AgentMessage::System(Arc::new(update)));
        }
        Ok(())
    }

    fn route(
        &mut self,
        target: &mut Target,
        messages: &[AgentMessage],
    ) -> Result<Result<(), StreamError>, Fatal> {
        let failed = self.failed.take();
        if !target.model.is_virtual() {
            return Ok(Ok(()));
        }
        let state = virtual_model::state_of(&self.control.log(), &target.model);
        let request = Unrouted {
            thinking: target.thinking,
            occasion: Occasion::of(messages, failed.is_some()),
            failed: failed.as_deref(),
            state,
            messages: &message::to_llm(messages),
        };
        let route = match self.config.services.route(&target.model, &request, self.cancel) {
            Ok(route) => route,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(state) = &route.state {
            let entry = self.control.log().append(virtual_model::state_entry(&target.model, state))?;
            (self.listener)(&Event::EntryAppended { entry: &entry })?;
        }
        let (model, thinking) = (target.model.clone(), target.thinking);
        *target = Target { model: route.model, thinking: route.thinking };
        let mut compactor =
            Compactor { limiting: target.model.clone(), ..self.compactor_of(model, thinking) };
        compactor.make_room()?;
        Ok(Ok(()))
    }

    fn request(&mut self, target: &Target) -> Result<Request, StreamError> {
        let session = self.control.log().header().id.clone();
        let services = &self.config.services;
        let mut request = services.request(&target.model, target.thinking, &session, self.cancel)?;
        request.options.tap = HookTap::of(&self.hooked, &target.model, self.cancel);
        Ok(request)
    }

    fn stream(&mut self, request: Request, context: Context, cancel: &CancelToken) -> StreamHandle {
        self.control.keep_warm(&request, &context);
        wire::stream(&request.model, context, request.options, cancel)
    }

    fn context(&mut self, messages: &[AgentMessage]) -> Option<Vec<AgentMessage>> {
        let mut changed = self.hooked.context(messages, self.cancel);
        let forced = self.control.state().forced_prompt().map(str::to_owned);
        if let Some(text) = forced {
            changed = Some(forced_upon(changed.as_deref().unwrap_or(messages), text));
        }
        let messages = changed.as_deref().unwrap_or(messages);
        let undeclared = self.control.state().undeclared_tools();
        let offered = (!undeclared.is_empty()).then(|| without_tools(messages, &undeclared));
        match self.config.services.block_images {
            true => Some(blocked::without(offered.as_deref().unwrap_or(messages))),
            false => offered.or(changed),
        }
    }

    fn notice(&mut self, text: &str) {
        self.control.log().notice(Notice::Request { text: text.to_owned() });
    }

    fn steering(&mut self) -> Vec<AgentMessage> {
        let is_first = std::mem::take(&mut self.is_first);
        let steering = &mut self.control.queues().steering;
        if is_first { steering.take_marked() } else { steering.take() }
    }

    fn follow_up(&mut self) -> Vec<AgentMessage> {
        loop {
            let queued = self.control.queues().follow_up.take();
            // Where no later run can take up the answers of helpers, this one waits for them.
            let lasts = self.control.ui().is_none_or(|ui| ui.lasts());
            if !queued.is_empty() || lasts || !self.control.helpers().wait(self.cancel) {
                return queued;
            }
        }
    }

    fn is_interrupted(&mut self) -> bool {
        let mode = self.control.state().switches.interrupt;
        mode == InterruptMode::Immediate && !self.control.queues().steering.is_empty()
    }
}

/// True for a tool that may change files which it does not name before.
fn changes_unknown(tool: &ToolInfo) -> bool {
    let name = tool.spec.name.as_str();
    // Built-in tools tell what they change. Helpers change what their own tools change.
    !tools::names().any(|built_in| built_in == name) && (!tool.reads_only || name == "task")
}

/// A message to the model that is shown to the user, too.
pub(super) fn note(kind: &str, text: String) -> AgentMessage {
    AgentMessage::Custom(Arc::new(CustomMessage {
        custom_type: kind.into(),
        content: Content::Text(text),
        display: true,
        timestamp: now_ms(),
        ..CustomMessage::default()
    }))
}

/// Returns `messages` with `prompt` as their only system message, which keeps the tools.
fn forced_upon(messages: &[AgentMessage], prompt: String) -> Vec<AgentMessage> {
    let head = current_system(messages).unwrap_or_default();
    let head = SystemMessage { content: Content::Text(prompt), sections: None, ..head };
    let spoken = messages.iter().filter(|message| !matches!(message, AgentMessage::System(_)));
    [AgentMessage::System(Arc::new(head))].into_iter().chain(spoken.cloned()).collect()
}

/// Returns `messages` without the declarations of the tools with these names.
fn without_tools(messages: &[AgentMessage], names: &[String]) -> Vec<AgentMessage> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let AgentMessage::System(system) = message
            && system.tools_added.iter().any(|tool| names.contains(&tool.name))
        {
            Arc::make_mut(system).tools_added.retain(|tool| !names.contains(&tool.name));
        }
    }
    messages
}

/// Returns the change of prompt sections and tools from `head` to `sections` and `tools`, or `None` if they
/// are equal. Tools with the names in `absent` stay as they are recorded.
fn update(
    head: &Head,
    sections: &Map<String, Value>,
    tools: &[Arc<dyn Tool>],
    absent: &[String],
) -> Option<SystemMessage> {
    let patch = prompt::diff(&head.sections, sections);
    let specs: Vec<_> = tools.iter().map(|tool| &tool.info().spec).collect();
    let added: Vec<_> =
        specs.iter().filter(|spec| !head.tools.contains(spec)).map(|&spec| spec.clone()).collect();
    let removed: Vec<_> = head
        .tools
        .iter()
        .filter(|known| !specs.contains(known) && !absent.contains(&known.name))
        .map(|known| ToolReference { name: known.name.clone(), extra: Extra::new() })
        .collect();
    if patch.is_none() && added.is_empty() && removed.is_empty() {
        return None;
    }
    Some(SystemMessage {
        sections: patch,
        tools_added: added,
        tools_removed: removed,
        timestamp: now_ms(),
        ..SystemMessage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn only_what_changed_is_told() {
        let sections = |value: Value| value.as_object().unwrap().clone();
        let mut head = Head::default();
        let wanted = sections(json!({"preamble": "p", "cwd": "/a"}));
        let first = update(&head, &wanted, &[], &[]).unwrap();
        assert_eq!(first.sections.as_ref(), Some(&wanted));
        head.apply(&first);
        assert_eq!(update(&head, &wanted, &[], &[]), None);
        let later = update(&head, &sections(json!({"preamble": "p", "rules": "r"})), &[], &[]).unwrap();
        assert_eq!(later.sections, Some(sections(json!({"rules": "r", "cwd": null}))));
    }
}
