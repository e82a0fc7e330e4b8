//! One conversation: its agent, its log, and what both need for the next request.
//!
//! A message that ended is in the log before anyone is told. What the model is told about prompt and
//! tools travels as system messages in the same log, so that the file alone says what a request held.

use super::compaction::{self, Compactor, Moment};
use super::event::Event;
use super::expand::Commands;
use super::image;
use super::retry;
use super::service::Services;
use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::queue::Queue;
use crate::agent::run::{self, Agent, Fatal, Host, Input, Request};
use crate::agent::tool::Tool;
use crate::llm::cancel::CancelToken;
use crate::llm::context::Head;
use crate::llm::event::StreamError;
use crate::llm::message::{
    AssistantMessage, Block, Content, StopReason, SystemMessage, ToolReference, UserMessage, now_ms,
};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::resolve::Scoped;
use crate::resources::prompt;
use crate::session::context::Marks;
use crate::session::entry::ContextEdit;
use crate::session::{Log, Notice};
use crate::tools::Workspace;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Told of every event, on the thread that runs the prompt. An error ends the run.
pub type Listener<'a> = &'a mut dyn FnMut(&Event<'_>) -> Result<(), Fatal>;

pub struct Session {
    agent: Agent,
    log: Log,
    services: Services,
    workspace: Arc<Workspace>,
    /// The prompt as it should be; the log says what the model was told.
    sections: Map<String, Value>,
    commands: Commands,
    queues: Arc<Mutex<Queues>>,
    compaction: compaction::State,
    cancel: CancelToken,
    scope: Vec<Scoped>,
}

/// What waits to be said to the model.
#[derive(Debug, Default)]
pub struct Queues {
    pub steering: Queue,
    pub follow_up: Queue,
}

/// What a session is made from.
pub struct Parts {
    pub log: Log,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The models to change between, as the user listed them; empty: all.
    pub scope: Vec<Scoped>,
    pub messages: Vec<AgentMessage>,
    pub marks: Marks,
    pub tools: Vec<Arc<dyn Tool>>,
    pub sections: Map<String, Value>,
    pub commands: Commands,
    pub services: Services,
    pub workspace: Arc<Workspace>,
    pub queues: Queues,
    pub cancel: CancelToken,
}

impl Session {
    pub fn new(parts: Parts) -> Self {
        let agent = Agent {
            messages: parts.messages,
            model: parts.model,
            thinking: parts.thinking,
            tools: parts.tools,
            sequential: false,
            failure: None,
        };
        let session = Self {
            agent,
            log: parts.log,
            services: parts.services,
            workspace: parts.workspace,
            sections: parts.sections,
            commands: parts.commands,
            queues: Arc::new(Mutex::new(parts.queues)),
            compaction: compaction::State::new(parts.marks),
            cancel: parts.cancel,
            scope: parts.scope,
        };
        session.tell_children();
        session
    }

    pub fn model(&self) -> &Arc<Model> {
        &self.agent.model
    }

    /// The models to change between, each with the level its pattern asked for; empty: all.
    pub fn scope(&self) -> &[Scoped] {
        &self.scope
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// What the user can call with a slash. Prompts are expanded before they are asked or queued.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// The header line of the session's file, also when nothing is stored.
    pub fn header(&self) -> &crate::session::entry::Header {
        self.log.header()
    }

    /// The last message of the conversation, if it is an answer.
    pub fn last_answer(&self) -> Option<&Arc<AssistantMessage>> {
        if let Some(failed) = &self.compaction.failed {
            return Some(failed);
        }
        match self.agent.messages.last() {
            Some(AgentMessage::Assistant(message)) => Some(message),
            _ => None,
        }
    }

    /// Asks the model, and runs until it has nothing more to do.
    ///
    /// A failed answer is no error here: it is a message, the last one. `Err` means that the run could
    /// not begin or go on: there is no key, the log cannot be written, the listener failed.
    pub fn prompt(
        &mut self,
        text: String,
        images: Vec<Block>,
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        // Without a key nothing is stored: there was no conversation yet.
        self.services
            .check(&self.agent.model, &self.cancel)
            .map_err(|error| Fatal(error.to_string()))?;
        let mut blocks = vec![Block::text(text)];
        blocks.extend(images);
        let message = AgentMessage::User(Arc::new(UserMessage::new(Content::Blocks(blocks))));
        let mut conductor = Conductor {
            log: &mut self.log,
            services: &self.services,
            sections: &self.sections,
            queues: &self.queues,
            compaction: &mut self.compaction,
            workspace: &self.workspace,
            listener,
            cancel: &self.cancel,
            attempt: 0,
            last_entry: String::new(),
        };
        conductor
            .compactor()
            .check(&mut self.agent, Moment::BeforePrompt)?;
        let mut input = Input::Prompt(vec![message]);
        loop {
            run::run(&mut self.agent, input, &mut conductor, &self.cancel)?;
            let goes_on = conductor.wait_to_retry(&mut self.agent)?
                || conductor
                    .compactor()
                    .check(&mut self.agent, Moment::AfterRun)?;
            if !goes_on || self.cancel.is_cancelled() {
                break;
            }
            input = Input::Continue;
        }
        (conductor.listener)(&Event::AgentSettled)?;
        // The log may have had to go on in another file.
        self.tell_children();
        Ok(())
    }

    pub(super) fn services(&self) -> &Services {
        &self.services
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(super) fn compaction(&self) -> &compaction::State {
        &self.compaction
    }

    /// The agent, and all that a compaction of its conversation needs.
    pub(super) fn compactor<'a>(
        &'a mut self,
        listener: Listener<'a>,
        cancel: &'a CancelToken,
    ) -> (Compactor<'a>, &'a mut Agent) {
        let compactor = Compactor {
            log: &mut self.log,
            services: &self.services,
            state: &mut self.compaction,
            outputs: &*self.workspace.outputs,
            listener,
            cancel,
        };
        (compactor, &mut self.agent)
    }

    /// Whether conversations are compacted by themselves, from now on.
    pub fn set_auto_compaction(&mut self, enabled: bool) {
        self.services.compaction.enabled = enabled;
    }

    /// What the user should know about the log since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.log.take_notices()
    }

    /// Ends the session in order: what is not needed any more is removed.
    pub fn close(self) -> Result<(), Fatal> {
        self.log.finish().map_err(|error| Fatal(error.to_string()))
    }

    /// Session variables for child processes.
    fn tell_children(&self) {
        let mut env = vec![
            ("PI_SESSION_ID".to_owned(), self.log.header().id.clone()),
            ("PI_PROVIDER".to_owned(), self.agent.model.provider.clone()),
            ("PI_MODEL".to_owned(), self.agent.model.id.clone()),
            (
                "PI_REASONING_LEVEL".to_owned(),
                self.agent.thinking.name().to_owned(),
            ),
        ];
        if let Some(path) = self.log.path() {
            self.workspace.outputs.follow(path);
            self.workspace.changes.follow(path);
            env.push((
                "PI_SESSION_FILE".to_owned(),
                path.to_string_lossy().into_owned(),
            ));
        }
        *self
            .workspace
            .env
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = env;
    }
}

/// The session's side of the loop.
struct Conductor<'a> {
    log: &'a mut Log,
    services: &'a Services,
    sections: &'a Map<String, Value>,
    queues: &'a Mutex<Queues>,
    compaction: &'a mut compaction::State,
    workspace: &'a Workspace,
    listener: Listener<'a>,
    cancel: &'a CancelToken,
    /// Retries of the answer that is being asked for.
    attempt: u64,
    /// The entry that was written last.
    last_entry: String,
}

impl Conductor<'_> {
    fn compactor(&mut self) -> Compactor<'_> {
        Compactor {
            log: self.log,
            services: self.services,
            state: self.compaction,
            outputs: &*self.workspace.outputs,
            listener: self.listener,
            cancel: self.cancel,
        }
    }

    /// After a failed answer: leaves it out of the conversation and waits, if it is to be asked for
    /// again. The log keeps it.
    fn wait_to_retry(&mut self, agent: &mut Agent) -> Result<bool, Fatal> {
        let Some(failure) = agent.failure.take() else {
            return Ok(false);
        };
        let policy = &self.services.retry;
        let Some(delay) = retry::delay(policy, self.attempt + 1, &failure) else {
            return self.end_retries(&failure.message).map(|()| false);
        };
        self.attempt += 1;
        (self.listener)(&Event::AutoRetryStart {
            attempt: self.attempt,
            max_attempts: policy.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: &failure.message,
        })?;
        let edit = ContextEdit {
            target_id: self.last_entry.clone(),
            replacement: None,
            extra: Map::new(),
        };
        let entry = self
            .log
            .append(edit)
            .map_err(|error| Fatal(error.to_string()))?;
        agent.messages.pop();
        self.compaction.marks.fresh = agent.messages.len();
        (self.listener)(&Event::EntryAppended { entry: &entry })?;
        if self.cancel.wait_timeout(retry::with_jitter(delay)) {
            return self.end_retries("Retry cancelled").map(|()| false);
        }
        Ok(true)
    }

    /// Says that there will be no further attempt, if there was any.
    fn end_retries(&mut self, final_error: &str) -> Result<(), Fatal> {
        if self.attempt == 0 {
            return Ok(());
        }
        let (attempt, final_error) = (std::mem::take(&mut self.attempt), Some(final_error));
        (self.listener)(&Event::AutoRetryEnd {
            success: false,
            attempt,
            final_error,
        })
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both queues to the listener, after a message left one of them.
    fn tell_queues(&mut self) -> Result<(), Fatal> {
        let (steering, follow_up): (Vec<_>, Vec<_>) = {
            let queues = self.queues();
            (
                queues.steering.iter().cloned().collect(),
                queues.follow_up.iter().cloned().collect(),
            )
        };
        (self.listener)(&Event::QueueUpdate {
            steering: &steering,
            follow_up: &follow_up,
        })
    }
}

impl Host for Conductor<'_> {
    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), Fatal> {
        match event {
            AgentEvent::MessageEnd { message } => {
                let entry = self
                    .log
                    .append_message(message)
                    .map_err(|error| Fatal(error.to_string()))?;
                self.last_entry = entry.id;
                self.compaction.saw(message);
            }
            AgentEvent::TurnEnd { .. } => self.log.turn_ended(),
            _ => {}
        }
        (self.listener)(&Event::Agent(*event))?;
        if let AgentEvent::MessageEnd {
            message: AgentMessage::Assistant(answer),
        } = event
            && self.attempt > 0
            && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        {
            let attempt = std::mem::take(&mut self.attempt);
            (self.listener)(&Event::AutoRetryEnd {
                success: true,
                attempt,
                final_error: None,
            })?;
        }
        Ok(())
    }

    fn will_retry(&mut self, _: &AssistantMessage, failure: Option<&StreamError>) -> bool {
        failure.is_some_and(|failure| {
            retry::delay(&self.services.retry, self.attempt + 1, failure).is_some()
        })
    }

    fn before_turn(&mut self, agent: &mut Agent) -> Result<(), Fatal> {
        self.compactor()
            .check(agent, Moment::BetweenTurns)
            .map(|_| ())
    }

    fn announce(&mut self, agent: &Agent, pending: &mut Vec<AgentMessage>) -> Result<(), Fatal> {
        let mut head = Head::default();
        for message in &agent.messages {
            if let AgentMessage::System(system) = message {
                head.apply(system);
            }
        }
        if let Some(update) = update(&head, self.sections, &agent.tools) {
            pending.insert(0, AgentMessage::System(Arc::new(update)));
        }
        Ok(())
    }

    fn request(&mut self, agent: &Agent) -> Result<Request, StreamError> {
        self.services.request(
            &agent.model,
            agent.thinking,
            &self.log.header().id,
            self.cancel,
        )
    }

    fn context(&mut self, messages: &[AgentMessage]) -> Option<Vec<AgentMessage>> {
        self.services.block_images.then(|| image::without(messages))
    }

    fn steering(&mut self) -> Vec<AgentMessage> {
        let taken = self.queues().steering.take();
        if !taken.is_empty() {
            // A listener that fails here fails at the next event too, where it can end the run.
            let _ = self.tell_queues();
        }
        taken
    }

    fn follow_up(&mut self) -> Vec<AgentMessage> {
        let taken = self.queues().follow_up.take();
        if !taken.is_empty() {
            let _ = self.tell_queues();
        }
        taken
    }
}

/// What changes the model's prompt and tools from `head` to what they should be; `None` when nothing does.
fn update(
    head: &Head,
    sections: &Map<String, Value>,
    tools: &[Arc<dyn Tool>],
) -> Option<SystemMessage> {
    let patch = prompt::diff(&head.sections, sections);
    let specs: Vec<_> = tools.iter().map(|tool| &tool.info().spec).collect();
    let added: Vec<_> = specs
        .iter()
        .filter(|spec| !head.tools.contains(spec))
        .map(|&spec| spec.clone())
        .collect();
    let removed: Vec<_> = head
        .tools
        .iter()
        .filter(|known| !specs.contains(known))
        .map(|known| ToolReference {
            name: known.name.clone(),
            extra: Map::new(),
        })
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
    use serde_json::json;

    #[test]
    fn only_what_changed_is_told() {
        let sections = |value: Value| value.as_object().unwrap().clone();
        let mut head = Head::default();
        let wanted = sections(json!({"preamble": "p", "cwd": "/a"}));
        let first = update(&head, &wanted, &[]).unwrap();
        assert_eq!(first.sections.as_ref(), Some(&wanted));
        head.apply(&first);
        assert_eq!(update(&head, &wanted, &[]), None);
        let later = update(
            &head,
            &sections(json!({"preamble": "p", "rules": "r"})),
            &[],
        )
        .unwrap();
        assert_eq!(
            later.sections,
            Some(sections(json!({"rules": "r", "cwd": null})))
        );
    }
}
