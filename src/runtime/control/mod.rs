//! Commands to a session from any thread, at any time.
//!
//! No method waits for a run. There are three locks, taken in this order: the queues (held while their change
//! is emitted, so that listeners see changes in order), the conversation, and the state (never held during a
//! write or an event). An abort takes only the state's lock, so it never waits for the others.
//!
//! Not here: models and thinking levels (`model`), shell commands of the user (`shell`), statistics of the
//! log (`stats`).

mod input;
mod part;
mod permissions;
mod preference;
mod queue;
mod state;
mod ticket;
mod tools;

pub use super::task::{Streaming, Taken};
pub use part::{Models, Permissions, Preferences, Queue, SignIns, Tools, Tree};
pub(super) use queue::is_typed;
pub use state::{InterruptMode, Parts, Switches};
pub(super) use state::{Planning, names_of};
pub use ticket::{Begin, Ticket};

use super::addition::NamedCommand;
use super::approval::{Approvals, Approver, Decision, Question};
use super::cache_warming::Warmer;
use super::config::Config;
use super::event::{Emit, Event};
use super::helpers::Helpers;
use super::hook::Hooked;
use super::limit::{Guard, Limits};
use super::recorded_tools::RecordedTools;
use super::secret::{self, Wrapped};
use super::task::Task;
use super::ui::Ui;
use crate::agent::message::AgentMessage;
use crate::agent::queue::QueueMode;
use crate::agent::run::{Agent, Fatal};
use crate::agent::tool::{Exposure, Tool};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::context::Head;
use crate::llm::message::{Block, Content, Usage, UserMessage};
use crate::llm::model::{Model, ThinkingLevel};
use crate::resources::Diagnostic;
use crate::resources::prompt::PromptOptions;
use crate::session::Conversation;
use crate::tools::job::Jobs;
use crate::tools::kept_job::Kept;
use crossbeam_channel::{Receiver, Sender, bounded};
use queue::Queues;
use serde::Deserialize;
use serde_json::{Map, Value};
use state::State;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A handle to a session, cheap to clone. All clones refer to one session, even after it changes to another
/// conversation.
#[derive(Clone)]
pub struct Control(Arc<Shared>);

/// A handle for parts of the session itself, such as its tools, which must not keep it alive.
#[derive(Clone, Default)]
pub struct WeakControl(Weak<Shared>);

impl WeakControl {
    /// Returns the session's handle; `None` if the session has ended.
    pub fn upgrade(&self) -> Option<Control> {
        self.0.upgrade().map(Control)
    }
}

struct Shared {
    /// Cancelled when the process ends.
    root: CancelToken,
    queues: Mutex<Queues>,
    conversation: Mutex<Conversation>,
    state: Mutex<State>,
    approvals: Arc<Approvals>,
    /// The limits of the run, and what it has spent. Locked for no longer than a count.
    guard: Mutex<Guard>,
    hooks: Mutex<Hooked>,
    ui: Mutex<Option<Arc<dyn Ui>>>,
    tasks: (Sender<Task>, Receiver<Task>),
    jobs: Jobs,
    kept_jobs: Arc<Kept>,
    warmer: Warmer,
    helpers: Arc<Helpers>,
    planning: Mutex<Option<Planning>>,
    adapt: Mutex<Option<Adapt>>,
}

/// Makes the tools of a request out of the active ones.
pub type Adapt = Arc<dyn Fn(&[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// Tasks that may wait for the session's thread.
const TASKS_MAX: usize = 64;

/// The state of a session at one moment.
pub struct Snapshot {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub is_streaming: bool,
    pub is_compacting: bool,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub session_file: Option<PathBuf>,
    pub session_id: String,
    pub session_name: Option<String>,
    pub cwd: PathBuf,
    pub switches: Switches,
    pub message_count: usize,
    pub pending_message_count: usize,
    pub active_tools: Vec<String>,
}

impl Control {
    pub(super) fn new(parts: Parts, root: CancelToken) -> Self {
        let queues = Mutex::new(Queues::new(parts.config.queue_modes()));
        let (state, conversation) = State::new(parts);
        let approvals = Arc::<Approvals>::default();
        approvals.follow(&state.config);
        Self(Arc::new(Shared {
            helpers: Arc::new(Helpers::new(&root)),
            root,
            queues,
            conversation: Mutex::new(conversation),
            state: Mutex::new(state),
            approvals,
            guard: Mutex::default(),
            hooks: Mutex::default(),
            ui: Mutex::default(),
            tasks: bounded(TASKS_MAX),
            jobs: Jobs::default(),
            kept_jobs: Arc::default(),
            warmer: Warmer::default(),
            planning: Mutex::default(),
            adapt: Mutex::default(),
        }))
    }

    pub fn downgrade(&self) -> WeakControl {
        WeakControl(Arc::downgrade(&self.0))
    }

    pub(super) fn guard(&self) -> MutexGuard<'_, Guard> {
        self.0.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch `limits`.
    pub(super) fn guard_run(&self, limits: &Limits) {
        let earlier = self.spent(limits);
        *self.guard() = Guard::new(limits.clone(), earlier);
    }

    /// Counts a turn of a helper towards the limits of the run. Returns why the run must end, if a limit is
    /// reached.
    pub fn helper_turn_ended(&self, usage: &Usage) -> Option<String> {
        self.guard().helper_turn_ended(usage)
    }

    /// The token of the run that is going on; between runs, one that only the end of the session cancels.
    pub fn run_token(&self) -> CancelToken {
        self.state().run.clone().unwrap_or_else(|| self.0.root.child())
    }

    /// Counts a request of a helper that is not a turn.
    pub fn helper_spent(&self, usage: &Usage) {
        self.guard().spend(usage);
    }

    /// Returns what is left of the limits of tokens and cost.
    pub fn limits_left(&self) -> Limits {
        self.guard().left()
    }

    /// Decides on a call of a helper, as on one of the session.
    pub fn approve(&self, question: Question<'_>, cancel: &CancelToken) -> Decision {
        let describer = self.tools().describer();
        let info = describer.describe(&question.tool.spec.name, question.judged());
        self.0.approvals.decide(question.clone(), &info, cancel)
    }

    /// Why rules or the mode do not let a file be changed now.
    pub fn refuses_change(&self, path: &std::path::Path) -> Option<String> {
        self.0.approvals.refuses(path)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if a message is queued.
    pub(super) fn has_queued(&self) -> bool {
        let queues = self.queues();
        !queues.steering.is_empty() || !queues.follow_up.is_empty()
    }

    /// Locks the conversation and its log. Nothing is appended while the guard lives.
    pub fn log(&self) -> MutexGuard<'_, Conversation> {
        self.0.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snapshot(&self) -> Snapshot {
        let (steering_mode, follow_up_mode, pending_message_count) = {
            let queues = self.queues();
            let pending = queues.steering.len() + queues.follow_up.len();
            (queues.steering.mode, queues.follow_up.mode, pending)
        };
        let (session_file, session_id, message_count) = {
            let log = self.log();
            (log.path().map(ToOwned::to_owned), log.header().id.clone(), log.messages().len())
        };
        let state = self.state();
        Snapshot {
            model: state.model.clone(),
            thinking: state.thinking,
            is_streaming: state.run.is_some(),
            is_compacting: state.is_compacting(),
            steering_mode,
            follow_up_mode,
            session_file,
            session_id,
            session_name: state.name.clone(),
            cwd: state.config.workspace.cwd.clone(),
            switches: state.switches,
            message_count,
            pending_message_count,
            active_tools: names_of(&state.tools),
        }
    }

    /// Returns the configuration of the next run.
    pub fn config(&self) -> Arc<Config> {
        self.state().config.clone()
    }

    /// Sets what makes the tools of a request out of the active ones.
    pub(super) fn set_adapt(&self, adapt: Adapt) {
        *self.0.adapt.lock().unwrap_or_else(PoisonError::into_inner) = Some(adapt);
    }

    /// Plan mode, if it is on.
    pub(super) fn planning(&self) -> MutexGuard<'_, Option<Planning>> {
        self.0.planning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commands that run in the background.
    pub fn jobs(&self) -> &Jobs {
        &self.0.jobs
    }

    /// Jobs that outlive the session.
    pub fn kept_jobs(&self) -> &Arc<Kept> {
        &self.0.kept_jobs
    }

    pub(super) fn warmer(&self) -> &Warmer {
        &self.0.warmer
    }

    /// The helpers that the session has given tasks to.
    pub fn helpers(&self) -> &Arc<Helpers> {
        &self.0.helpers
    }

    /// Hands work to the session's thread, which may be busy with a run before.
    pub fn hand_over(&self, task: Task) -> Result<(), String> {
        self.0.tasks.0.try_send(task).map_err(|_| "Too many tasks wait for the session".to_owned())
    }

    /// The work that was handed over. Whoever owns the session takes it, between other work.
    pub fn tasks(&self) -> &Receiver<Task> {
        &self.0.tasks.1
    }

    /// Cancelled when the process is to end.
    pub fn root(&self) -> &CancelToken {
        &self.0.root
    }

    /// The system prompt of the present or the next run, and its sections by name.
    pub fn system_prompt(&self) -> (String, Value) {
        let state = self.state();
        let head = Head { sections: Map::clone(&state.sections()), ..Head::default() };
        let text = state.forced_prompt().map_or_else(|| head.prompt(), str::to_owned);
        (text, Value::Object(head.sections))
    }

    /// The parts of the system prompt, without what handlers have changed for a run.
    pub fn prompt_options(&self) -> Value {
        let options = self.state().prompt_options();
        let mut options = json!(options);
        self.config().services.vault().hide_value(&mut options);
        options
    }

    /// The system prompt that these parts make.
    pub fn render_prompt(&self, options: &Value) -> Result<String, String> {
        let options = PromptOptions::deserialize(options).map_err(|error| error.to_string())?;
        options.check()?;
        if let Some(text) = options.force_system_prompt {
            return Ok(text);
        }
        Ok(Head { sections: self.state().sections_of(&options), ..Head::default() }.prompt())
    }

    /// Sets the approver of tool calls.
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        self.0.approvals.set_approver(approver);
    }

    /// Returns the agent of the next request. Its tools replace placeholders of secrets and ask for approval.
    pub(super) fn agent(&self) -> Agent {
        let adapt = self.0.adapt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let state = self.state();
        let adapted = adapt.map(|adapt| adapt(&state.tools));
        Agent {
            model: state.model.clone(),
            thinking: state.thinking,
            tools: self.guarded(&state.config, adapted.as_ref().unwrap_or(&state.tools)),
            sequential: state.switches.interrupt == InterruptMode::Immediate,
        }
    }

    fn guarded(&self, config: &Config, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let vault = config.services.vault();
        let wrap = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            Arc::new(Wrapped { tool: tool.clone(), vault: vault.clone() })
        };
        let tools: Vec<_> = tools.iter().map(wrap).collect();
        self.0.approvals.guard(&tools)
    }

    /// The tool that other tools reach under this name.
    pub(super) fn callable(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let state = self.state();
        let is_active = |tool: &Arc<dyn Tool>| names_of(&state.tools).contains(&tool.info().spec.name);
        let reaches = |tool: &&Arc<dyn Tool>| match tool.info().exposure {
            Exposure::Direct => is_active(tool),
            Exposure::Codemode | Exposure::Deferred => true,
            Exposure::ModelOnly | Exposure::Hidden => false,
        };
        let all = state.all_tools();
        // Active ones first: they may have been arranged.
        let mut named = state.tools.iter().chain(&all).filter(|tool| tool.info().spec.name == name);
        let tool = named.find(reaches)?.clone();
        self.guarded(&state.config, &[tool]).pop()
    }

    /// The built-in tool of this name, also if another one has taken its place.
    pub(super) fn builtin(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let config = self.config();
        let tool = config.tools.iter().find(|tool| tool.info().spec.name == name)?.clone();
        let vault = config.services.vault().clone();
        Some(Arc::new(Wrapped { tool, vault }))
    }

    /// Replaces secrets in a user message by placeholders.
    pub(super) fn hidden(&self, message: AgentMessage) -> AgentMessage {
        let vault = self.state().config.services.vault().clone();
        secret::hidden(&vault, message)
    }

    /// Returns the messages that the model is sent.
    pub fn messages(&self) -> Arc<Vec<AgentMessage>> {
        self.log().messages()
    }

    /// Cancels what the user waits for: the work under way, and waits for handlers. Does not wait for their end.
    pub fn abort(&self) {
        // A run that waits for a handler must not begin when the wait ends.
        self.abort_work();
        let waits = self.state().waits.clone();
        waits.iter().for_each(CancelToken::cancel);
    }

    /// Cancels the run, its retry, the compaction and the questions beside the conversation under way. A handler that
    /// asks for this is waited for all the same.
    pub fn abort_work(&self) {
        let under_way: Vec<CancelToken> = {
            let state = self.state();
            let all = [&state.run, &state.retry, &state.compaction];
            all.into_iter().flatten().chain(&state.asides).cloned().collect()
        };
        under_way.iter().for_each(CancelToken::cancel);
        self.warmer().abort();
    }

    /// Cancels the wait before a retry. No further retry follows.
    pub fn abort_retry(&self) {
        let retry = self.state().retry.clone();
        if let Some(retry) = retry {
            retry.cancel();
        }
    }

    pub fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// Names the work under way, for a message; `None` if the session is idle.
    pub fn work_under_way(&self) -> Option<&'static str> {
        let state = self.state();
        match (state.is_running(), state.is_compacting()) {
            (true, _) => Some("the current response"),
            (false, true) => Some("compaction"),
            (false, false) => None,
        }
    }

    /// Refuses a reload while a response or a compaction runs.
    pub fn may_reload(&self) -> Result<(), String> {
        match self.work_under_way() {
            Some(work) => Err(format!("Wait for {work} to finish before reloading.")),
            None => Ok(()),
        }
    }

    /// Calls `then` once the session is idle: at once, or at the end of the work under way, on the thread
    /// that did it.
    pub fn when_idle(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.is_idle() {
            drop(state);
            then();
        } else {
            state.when_idle.push(Box::new(then));
        }
    }

    /// Applies a configuration that was reloaded. Active tools stay active.
    pub(super) fn reconfigure(&self, config: Arc<Config>) {
        self.log().hide(config.services.vault().clone());
        let mut queues = self.queues();
        (queues.steering.mode, queues.follow_up.mode) = config.queue_modes();
        let mut state = self.state();
        state.switches = Switches::of(&config, state.switches.interrupt);
        self.0.approvals.follow(&config);
        state.config = config;
        state.lend();
        state.look_up_models();
        let active = names_of(&state.tools);
        state.activate(&active);
    }

    /// Names the session in its log and emits the change.
    pub fn set_name(&self, name: &str, emit: Emit<'_>) -> Result<(), Fatal> {
        let name = {
            let mut log = self.log();
            log.append_session_info(name)?;
            let name = log.name();
            self.state().name.clone_from(&name);
            name
        };
        let event = Event::SessionInfoChanged { name: name.as_deref() };
        emit(&event);
        self.hooked().event(&event, || Value::Null, &self.0.root);
        Ok(())
    }

    /// Replaces the conversation, and returns the previous one. Queued messages are dropped.
    pub(super) fn replace(&self, parts: Parts) -> Conversation {
        self.warmer().stop("waiting for first request");
        let (next, conversation) = State::new(parts);
        self.0.approvals.follow(&next.config);
        let mut queues = self.queues();
        let mut current = self.log();
        *queues = Queues::new((queues.steering.mode, queues.follow_up.mode));
        self.state().succeed(next);
        std::mem::replace(&mut *current, conversation)
    }

    /// Ends the log. No entry may be appended afterwards.
    pub(super) fn end_log(&self) -> Result<(), Fatal> {
        self.warmer().stop("inactive");
        Ok(self.log().end()?)
    }

    /// Ends the log for good, and drops handlers and tools: they may hold the session, which would never be dropped.
    pub(super) fn close(&self) -> Result<(), Fatal> {
        let ended = self.end_log();
        let hooks = std::mem::take(&mut *self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner));
        let mut state = self.state();
        let (tools, registered) = (std::mem::take(&mut state.tools), std::mem::take(&mut state.registered));
        let additions = std::mem::take(&mut state.additions);
        // What they do at their ends may ask for the state.
        drop(state);
        drop((hooks, tools, registered, additions));
        ended
    }

    /// Syncs the entries of a turn to the disk. The log is unlocked during the sync, which may be slow.
    pub(super) fn sync_turn(&self) {
        let unsynced = self.log().turn_unsynced();
        if let Some(unsynced) = unsynced {
            let done = unsynced.sync();
            self.log().synced(done);
        }
    }

    /// Records the session's model and thinking level if they differ from the last ones on the current
    /// branch. Unless the session `has_moved` there, only if one of both models is virtual.
    pub(super) fn record_choice(&self, has_moved: bool) -> Result<(), Fatal> {
        let (model, thinking) = {
            let state = self.state();
            (state.model.clone(), state.thinking)
        };
        let config = self.config();
        let mut log = self.log();
        let (stored, level) = log.last_choice();
        let stored = stored.used(|stored| config.services.is_virtual(stored));
        if !has_moved
            && !model.is_virtual()
            && !stored.is_some_and(|stored| config.services.is_virtual(stored))
        {
            return Ok(());
        }
        if stored.is_some_and(|stored| (&stored.provider, &stored.id) != (&model.provider, &model.id)) {
            log.append_model_change(&model.provider, &model.id)?;
        }
        let level = level.and_then(|level| ThinkingLevel::parse(&level));
        if level.is_some_and(|level| model.clamp_thinking(level) != thinking) {
            log.append_thinking_level(thinking.name())?;
        }
        Ok(())
    }

    /// Activates the tools that the conversation has recorded.
    pub(super) fn restore_tools(&self) {
        let messages = self.messages();
        if let Some(recorded) = RecordedTools::of(messages.iter()) {
            self.state().restore_tools(recorded);
        }
    }

    /// Appends the messages that were held back during a run.
    pub(super) fn write_held_back(&self) -> Result<(), Fatal> {
        let mut log = self.log();
        loop {
            let held_back = std::mem::take(&mut self.state().held_back);
            if held_back.is_empty() {
                return Ok(());
            }
            for message in held_back {
                log.append_message(&message)?;
            }
        }
    }

    /// Marks the session as compacting while the guard lives.
    pub(super) fn compacting(&self) -> Compacting {
        self.state().compacting += 1;
        Compacting(self.clone())
    }

    /// Ends a compaction. Must be called before listeners are notified, since a listener may send a prompt.
    pub(super) fn end_compaction(&self) {
        self.state().compaction = None;
    }

    /// Expands a prompt that calls a skill or a template. The diagnostic says why a skill could not be read.
    pub fn expand(&self, text: String) -> (String, Option<Diagnostic>) {
        let config = self.state().config.clone();
        config.commands.expand(text)
    }

    /// Returns the commands, skills and templates that a prompt can call, in the JSON form of RPC mode.
    pub fn commands(&self) -> Vec<Value> {
        let config = self.state().config.clone();
        let added = self.added_commands();
        added.iter().map(NamedCommand::to_json).chain(config.commands.list()).collect()
    }

    /// Waits for `delay` before a retry. True if `run` or the wait was cancelled.
    pub(super) fn wait_to_retry(&self, run: &CancelToken, delay: std::time::Duration) -> bool {
        let wait = run.child();
        self.state().retry = Some(wait.clone());
        let cancelled = wait.wait_timeout(delay);
        self.state().retry = None;
        cancelled
    }
}

pub(super) struct Compacting(Control);

impl Drop for Compacting {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.compacting = state.compacting.saturating_sub(1);
    }
}

/// Makes a user message of a text and images.
pub fn user_message(text: String, images: Vec<Block>) -> AgentMessage {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(images);
    AgentMessage::User(Arc::new(UserMessage::new(Content::Blocks(blocks))))
}
