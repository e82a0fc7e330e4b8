//! What can be asked of a session, and done to it, from any thread and whatever it is doing.
//!
//! Nothing here waits for a run. Three locks, taken in this order where more than one is needed: the
//! queues (held while their change is told, so that listeners learn of changes in the order in which
//! they happen), the log, and the state (never held while something is written or told). An abort
//! takes the state alone, and so waits for nobody.
//!
//! Not here: models and thinking levels (`model`), shell commands of the user (`shell`), sums over the
//! log (`stats`).

use super::approval::{Approver, Desk};
use super::config::Config;
use super::event::Event;
use super::secret::{self, Wrapped};
use super::session::Queues;
use crate::agent::message::AgentMessage;
use crate::agent::queue::QueueMode;
use crate::agent::run::Fatal;
use crate::agent::tool::Tool;
use crate::base::cancel::CancelToken;
use crate::llm::message::{Block, Content, UserMessage};
use crate::llm::model::{Model, ThinkingLevel};
use crate::resources::{Diagnostic, settings};
use crate::session::Log;
use crate::session::context::Marks;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Told of what a command changes.
pub type Tell<'a> = &'a mut dyn FnMut(&Event<'_>);

/// Cheap to clone; all clones are of one session, also when it goes on with another conversation.
#[derive(Clone)]
pub struct Control(Arc<Shared>);

struct Shared {
    /// Cancelled when the process is to end.
    root: CancelToken,
    queues: Mutex<Queues>,
    log: Mutex<Log>,
    state: Mutex<State>,
    desk: Arc<Desk>,
}

pub(super) struct State {
    pub config: Arc<Config>,
    /// The conversation, as far as its messages have ended.
    pub messages: Vec<AgentMessage>,
    pub marks: Marks,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The active tools, and the prompt that goes with them.
    pub tools: Vec<Arc<dyn Tool>>,
    pub sections: Arc<Map<String, Value>>,
    /// Tools that the mode adds to those of the configuration, whatever the conversation.
    lent: Vec<Arc<dyn Tool>>,
    pub name: Option<String>,
    pub switches: Switches,
    /// Commands of the user that ended while a run was under way.
    pub held_back: Vec<AgentMessage>,
    /// Commands of the user that run.
    pub shells: Vec<CancelToken>,
    run: Option<CancelToken>,
    /// A compaction that was asked for by hand, or a move in the tree.
    compaction: Option<CancelToken>,
    /// Compactions under way, of whatever kind.
    compacting: usize,
    retry: Option<CancelToken>,
    when_idle: Vec<Box<dyn FnOnce() + Send>>,
}

/// What a command can switch on and off; it outlives a change of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    pub auto_retry: bool,
    pub auto_compaction: bool,
    pub interrupt: InterruptMode,
}

impl Switches {
    /// As the settings have them.
    fn of(config: &Config, interrupt: InterruptMode) -> Self {
        Self {
            auto_retry: config.services.retry.enabled,
            auto_compaction: config.services.compaction.enabled,
            interrupt,
        }
    }
}

/// When a steering message is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterruptMode {
    /// When all tools of the turn have ended.
    #[default]
    Wait,
    /// After each tool; tools run one at a time, and those that have not begun are skipped.
    Immediate,
}

impl InterruptMode {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "wait" => Some(Self::Wait),
            "immediate" => Some(Self::Immediate),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Immediate => "immediate",
        }
    }
}

/// Where a prompt goes that comes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    Steer,
    FollowUp,
}

/// What became of a prompt.
pub enum Begin {
    /// The session is the prompt's; see [`super::session::Session::ask`].
    Run(Ticket),
    /// A run is under way and will look at it.
    Queued,
}

/// The right to run a prompt, or a compaction. While it lives the session is busy.
pub struct Ticket {
    control: Control,
    pub cancel: CancelToken,
    kind: Work,
}

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Run,
    Compaction,
    Over,
}

/// How things stand.
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
    pub(super) fn new(
        config: Arc<Config>,
        sections: Map<String, Value>,
        start: Start,
        root: CancelToken,
    ) -> Self {
        let name = start.log.name();
        Self(Arc::new(Shared {
            root,
            queues: Mutex::new(start.queues),
            state: Mutex::new(State {
                switches: Switches::of(&config, InterruptMode::default()),
                config,
                messages: start.messages,
                marks: start.marks,
                model: start.model,
                thinking: start.thinking,
                tools: start.tools,
                sections: Arc::new(sections),
                lent: Vec::new(),
                name,
                held_back: Vec::new(),
                shells: Vec::new(),
                run: None,
                compaction: None,
                compacting: 0,
                retry: None,
                when_idle: Vec::new(),
            }),
            log: Mutex::new(start.log),
            desk: Arc::default(),
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log of the conversation. Nothing is appended while this is held.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn snapshot(&self) -> Snapshot {
        let (steering_mode, follow_up_mode, pending_message_count) = {
            let queues = self.queues();
            let pending = queues.steering.len() + queues.follow_up.len();
            (queues.steering.mode, queues.follow_up.mode, pending)
        };
        let (session_file, session_id) = {
            let log = self.log();
            (log.path().map(ToOwned::to_owned), log.header().id.clone())
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
            message_count: state.messages.len(),
            pending_message_count,
            active_tools: names_of(&state.tools),
        }
    }

    /// What the conversation stands on just now.
    pub fn config(&self) -> Arc<Config> {
        self.state().config.clone()
    }

    /// Who is asked about tool calls that need approval.
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        self.0.desk.set_approver(approver);
    }

    /// The tools as the agent gets them.
    pub(super) fn guard(&self, config: &Config, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let vault = config.services.vault();
        let wrap = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            Arc::new(Wrapped { tool: tool.clone(), vault: vault.clone() })
        };
        let tools: Vec<_> = tools.iter().map(wrap).collect();
        self.0.desk.guard(&config.approval, &tools)
    }

    /// The message without secrets.
    pub(super) fn hidden(&self, message: AgentMessage) -> AgentMessage {
        let vault = self.state().config.services.vault().clone();
        secret::hidden(&vault, message)
    }

    /// The conversation as the model knows it.
    pub fn messages(&self) -> Vec<AgentMessage> {
        self.state().messages.clone()
    }

    /// Takes the session for a prompt; during a run the prompt is queued, if it says how.
    pub fn begin(
        &self,
        streaming: Option<Streaming>,
        message: impl FnOnce() -> AgentMessage,
        tell: Tell<'_>,
    ) -> Result<Begin, String> {
        let mut queues = self.queues();
        {
            let mut state = self.state();
            if state.compaction.is_some() {
                return Err(
                    "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
                        .into(),
                );
            }
            if state.run.is_none() {
                let cancel = self.0.root.child();
                state.run = Some(cancel.clone());
                queues.steering.mark();
                return Ok(Begin::Run(self.ticket(cancel, Work::Run)));
            }
        }
        match streaming {
            None => Err("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.".into()),
            Some(Streaming::Steer) => {
                queues.steering.push(self.hidden(message()));
                queues.tell(tell);
                Ok(Begin::Queued)
            }
            Some(Streaming::FollowUp) => {
                queues.follow_up.push(self.hidden(message()));
                queues.tell(tell);
                Ok(Begin::Queued)
            }
        }
    }

    /// Takes the session for a compaction, or a move in the tree. A run that is under way is not ended
    /// by this.
    pub fn begin_compaction(&self) -> Result<Ticket, String> {
        let mut state = self.state();
        if state.compaction.is_some() {
            return Err("A compaction is already in progress".into());
        }
        let cancel = self.0.root.child();
        state.compaction = Some(cancel.clone());
        Ok(self.ticket(cancel, Work::Compaction))
    }

    fn ticket(&self, cancel: CancelToken, kind: Work) -> Ticket {
        Ticket { control: self.clone(), cancel, kind }
    }

    /// Queues a message for the end of the turn. In an idle session it waits for the next prompt.
    pub fn steer(&self, message: AgentMessage, tell: Tell<'_>) {
        let mut queues = self.queues();
        queues.steering.push(self.hidden(message));
        queues.tell(tell);
    }

    /// Queues a message for when the model has nothing more to do.
    pub fn follow_up(&self, message: AgentMessage, tell: Tell<'_>) {
        let mut queues = self.queues();
        queues.follow_up.push(self.hidden(message));
        queues.tell(tell);
    }

    /// Empties both queues, and gives what was in them: steering, follow-up.
    pub fn clear_queue(&self, tell: Tell<'_>) -> (Vec<String>, Vec<String>) {
        let texts = |messages: Vec<AgentMessage>| -> Vec<String> {
            messages.iter().map(AgentMessage::text).collect()
        };
        let mut queues = self.queues();
        let cleared = (texts(queues.steering.clear()), texts(queues.follow_up.clear()));
        queues.tell(tell);
        cleared
    }

    /// Sets the mode here and in the user's settings. An error says why the settings could not be written.
    pub fn set_steering_mode(&self, mode: QueueMode) -> Result<(), String> {
        self.use_steering_mode(mode);
        self.remember("steeringMode", mode.name().into())
    }

    pub fn set_follow_up_mode(&self, mode: QueueMode) -> Result<(), String> {
        self.use_follow_up_mode(mode);
        self.remember("followUpMode", mode.name().into())
    }

    pub fn set_auto_compaction(&self, on: bool) -> Result<(), String> {
        self.use_auto_compaction(on);
        self.remember("compaction.enabled", on.into())
    }

    pub fn set_auto_retry(&self, on: bool) -> Result<(), String> {
        self.use_auto_retry(on);
        self.remember("retry.enabled", on.into())
    }

    /// Without a word to the settings; the next ones too.
    pub fn use_steering_mode(&self, mode: QueueMode) {
        self.queues().steering.mode = mode;
    }

    pub fn use_follow_up_mode(&self, mode: QueueMode) {
        self.queues().follow_up.mode = mode;
    }

    pub fn use_auto_compaction(&self, on: bool) {
        self.state().switches.auto_compaction = on;
    }

    pub fn use_auto_retry(&self, on: bool) {
        self.state().switches.auto_retry = on;
    }

    /// Writes a setting of the user. It counts from the next run on, where it is not looked at anew anyway.
    pub fn remember(&self, setting: &str, value: Value) -> Result<(), String> {
        self.change_settings(&[(setting, Some(value))])
    }

    /// Writes several settings of the user at once; `None` removes a setting.
    pub fn change_settings(&self, changes: &[(&str, Option<Value>)]) -> Result<(), String> {
        let config = self.config();
        settings::write(config.settings.path(), changes)?;
        let settings = config.settings.again();
        self.change_config(|config| {
            config.services.follow(&settings);
            config.settings = settings;
        });
        Ok(())
    }

    /// Changes what the next run stands on.
    pub(super) fn change_config(&self, change: impl FnOnce(&mut Config)) {
        let mut state = self.state();
        let mut config = Config::clone(&state.config);
        change(&mut config);
        state.config = Arc::new(config);
    }

    /// For as long as the program runs.
    pub fn set_interrupt_mode(&self, mode: InterruptMode) {
        self.state().switches.interrupt = mode;
    }

    /// Ends what the session is doing: the run with its retries, a compaction. Does not wait for it.
    pub fn abort(&self) {
        let under_way: Vec<CancelToken> = {
            let state = self.state();
            let all = [&state.run, &state.retry, &state.compaction];
            all.into_iter().flatten().cloned().collect()
        };
        under_way.iter().for_each(CancelToken::cancel);
    }

    /// Ends the wait before a retry, and with it the retries.
    pub fn abort_retry(&self) {
        let retry = self.state().retry.clone();
        if let Some(retry) = retry {
            retry.cancel();
        }
    }

    pub fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// Calls `then` as soon as the session is idle: now, or when the work under way has settled, on the
    /// thread that did it.
    pub fn when_idle(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.is_idle() {
            drop(state);
            then();
        } else {
            state.when_idle.push(Box::new(then));
        }
    }

    /// All tools there are, and whether each is active.
    pub fn tools(&self) -> Vec<(Arc<dyn Tool>, bool)> {
        let state = self.state();
        let active = names_of(&state.tools);
        let is_active = |tool: &Arc<dyn Tool>| active.contains(&tool.info().spec.name);
        let all = state.all_tools();
        all.iter().map(|tool| (tool.clone(), is_active(tool))).collect()
    }

    /// Makes these tools the active ones, from the next request on. Unknown names are left out; gives
    /// the names that are active now.
    pub fn set_active_tools(&self, names: &[String]) -> Vec<String> {
        let mut state = self.state();
        let tools = named(&state.all_tools(), names);
        state.use_tools(tools)
    }

    /// Adds tools and makes them active, from the next request on. One that was lent before under the same
    /// name is replaced. Gives the names that are active now.
    pub fn lend(&self, tools: Vec<Arc<dyn Tool>>) -> Result<Vec<String>, String> {
        let mut state = self.state();
        let own = names_of(&state.config.tools);
        let names = names_of(&tools);
        for (index, name) in names.iter().enumerate() {
            if own.contains(name) {
                return Err(format!("There is a tool \"{name}\" already"));
            }
            if names.iter().skip(index + 1).any(|other| other == name) {
                return Err(format!("The tool \"{name}\" is named twice"));
            }
        }
        state.lent.retain(|tool| !names.contains(&tool.info().spec.name));
        state.lent.extend(tools);
        let mut active = names_of(&state.tools);
        active.extend(names);
        let tools = named(&state.all_tools(), &active);
        Ok(state.use_tools(tools))
    }

    /// Takes lent tools away again. Gives the names that are active now.
    pub fn take_back(&self, names: &[String]) -> Vec<String> {
        let mut state = self.state();
        state.lent.retain(|tool| !names.contains(&tool.info().spec.name));
        let tools = named(&state.all_tools(), &names_of(&state.tools));
        state.use_tools(tools)
    }

    /// Continues the conversation with a configuration that was read again. Active tools stay active.
    pub(super) fn reconfigure(&self, config: Arc<Config>) {
        self.log().hide(config.services.vault().clone());
        let mut queues = self.queues();
        (queues.steering.mode, queues.follow_up.mode) = config.queue_modes();
        let mut state = self.state();
        state.switches = Switches::of(&config, state.switches.interrupt);
        state.config = config;
        let tools = named(&state.all_tools(), &names_of(&state.tools));
        state.use_tools(tools);
    }

    /// Names the session.
    pub fn set_name(&self, name: &str, tell: Tell<'_>) -> Result<(), Fatal> {
        let name = {
            let mut log = self.log();
            log.append_session_info(name).map_err(|error| Fatal(error.to_string()))?;
            let name = log.name();
            self.state().name.clone_from(&name);
            name
        };
        tell(&Event::SessionInfoChanged { name: name.as_deref() });
        Ok(())
    }

    /// The session goes on with another conversation. What is queued is gone.
    pub(super) fn replace(&self, config: Arc<Config>, sections: Map<String, Value>, start: Start) -> Log {
        let mut queues = self.queues();
        let mut log = self.log();
        let name = start.log.name();
        let mut state = self.state();
        let (steering, follow_up) = (queues.steering.mode, queues.follow_up.mode);
        *queues = Queues::new(steering, follow_up);
        state.config = config;
        (state.messages, state.marks) = (start.messages, start.marks);
        state.model = start.model;
        state.thinking = start.thinking;
        state.tools = start.tools;
        state.sections = Arc::new(sections);
        if !state.lent.is_empty() {
            let mut active = names_of(&state.tools);
            active.extend(names_of(&state.lent));
            let tools = named(&state.all_tools(), &active);
            state.use_tools(tools);
        }
        state.name = name;
        state.held_back.clear();
        std::mem::replace(&mut *log, start.log)
    }

    /// Ends the log. Nothing is appended after this.
    pub(super) fn close(&self) -> Result<(), Fatal> {
        let mut log = self.log();
        let cwd = PathBuf::from(&log.header().cwd);
        let empty = Log::in_memory(&cwd, None).map_err(|error| Fatal(error.to_string()))?;
        let old = std::mem::replace(&mut *log, empty);
        old.finish().map_err(|error| Fatal(error.to_string()))
    }

    /// What a turn wrote is handed to the disk. The log is not held meanwhile: others look at it, and a disk may
    /// be slow.
    pub(super) fn turn_ended(&self) {
        let unsynced = self.log().turn_unsynced();
        if let Some(unsynced) = unsynced {
            let done = unsynced.sync();
            self.log().synced(done);
        }
    }

    /// Writes what was held back during a run.
    pub(super) fn settle_log(&self) -> Result<(), Fatal> {
        let mut log = self.log();
        loop {
            let held_back = std::mem::take(&mut self.state().held_back);
            if held_back.is_empty() {
                return Ok(());
            }
            for message in held_back {
                log.append_message(&message).map_err(|error| Fatal(error.to_string()))?;
                self.state().messages.push(message);
            }
        }
    }

    /// The conversation is another one than the log's messages one after another.
    pub(super) fn publish(&self, messages: &[AgentMessage], marks: Marks) {
        let mut state = self.state();
        state.messages = messages.to_vec();
        state.marks = marks;
    }

    /// While the guard lives, the session is compacting.
    pub(super) fn compacting(&self) -> Compacting {
        self.state().compacting += 1;
        Compacting(self.clone())
    }

    /// A compaction that was asked for is over. Before its listeners are told: they may go on at once.
    pub(super) fn end_compaction(&self) {
        self.state().compaction = None;
    }

    /// What a prompt stands for; and what is wrong, if it cannot be found out.
    pub fn expand(&self, text: String) -> (String, Option<Diagnostic>) {
        let config = self.state().config.clone();
        config.commands.expand(text)
    }

    /// What a prompt can begin with, in the form that other programs are told.
    pub fn commands(&self) -> Vec<Value> {
        let config = self.state().config.clone();
        config.commands.list()
    }

    /// A wait before a retry: true when it was ended early.
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

/// The conversation that a session begins with.
pub(super) struct Start {
    pub log: Log,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub messages: Vec<AgentMessage>,
    pub marks: Marks,
    pub tools: Vec<Arc<dyn Tool>>,
    pub queues: Queues,
}

impl State {
    /// All tools that can be made active.
    pub(super) fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.config.tools.iter().chain(&self.lent).cloned().collect()
    }

    /// Makes these the active ones; gives their names.
    fn use_tools(&mut self, tools: Vec<Arc<dyn Tool>>) -> Vec<String> {
        self.sections = Arc::new(self.config.sections(&tools));
        self.tools = tools;
        names_of(&self.tools)
    }

    fn is_idle(&self) -> bool {
        self.run.is_none() && !self.is_compacting()
    }

    fn is_compacting(&self) -> bool {
        self.compaction.is_some() || self.compacting > 0
    }

    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }
}

impl Ticket {
    /// The run is over, unless a message waits that it is to go on with. What was held back during the
    /// run is written.
    pub(super) fn settle(&mut self, leave_queue: bool) -> Result<bool, Fatal> {
        let control = self.control.clone();
        let queues = control.queues();
        let is_empty = queues.steering.is_empty() && queues.follow_up.is_empty();
        if !is_empty && !leave_queue {
            return Ok(false);
        }
        control.settle_log()?;
        self.kind = Work::Over;
        control.state().run = None;
        Ok(true)
    }

    /// Tells those who wait for an idle session. After the listeners were told.
    pub fn wake_idle(&self) {
        let waiting = {
            let mut state = self.control.state();
            if !state.is_idle() {
                return;
            }
            std::mem::take(&mut state.when_idle)
        };
        waiting.into_iter().for_each(|then| then());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.kind {
            Work::Run => self.control.state().run = None,
            Work::Compaction => {
                let mut state = self.control.state();
                // Its listeners were told before, and may have begun another one.
                if state.compaction.as_ref().is_some_and(|of| of.is(&self.cancel)) {
                    state.compaction = None;
                }
            }
            Work::Over => {}
        }
        self.wake_idle();
    }
}

/// A message of the user.
pub fn user_message(text: String, images: Vec<Block>) -> AgentMessage {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(images);
    AgentMessage::User(Arc::new(UserMessage::new(Content::Blocks(blocks))))
}

/// The tools with these names, in their order, each once; names that are none are left out.
fn named(all: &[Arc<dyn Tool>], names: &[String]) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for name in names {
        let is_meant = |tool: &&Arc<dyn Tool>| tool.info().spec.name == *name;
        if let Some(tool) = all.iter().find(is_meant)
            && !tools.iter().any(|known| Arc::ptr_eq(known, tool))
        {
            tools.push(tool.clone());
        }
    }
    tools
}

fn names_of(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.info().spec.name.clone()).collect()
}
