//! The parts that a session is made of, and its mutable state.

use crate::agent::message::AgentMessage;
use crate::agent::tool::Tool;
use crate::base::cancel::CancelToken;
use crate::llm::model::{Model, ThinkingLevel};
use crate::resources::prompt::PromptOptions;
use crate::runtime::addition::{Addition, Additions, Owner};
use crate::runtime::config::Config;
use crate::runtime::recorded_tools::RecordedTools;
use crate::runtime::selection::tools_named;
use crate::session::Conversation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// A conversation, and the model, tools and configuration of its requests.
pub struct Parts {
    pub conversation: Conversation,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The active tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Names of recorded tools that stay recorded though no tool here has them.
    pub absent: Vec<String>,
    pub config: Config,
}

pub(crate) struct State {
    pub config: Arc<Config>,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The active tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Names of active tools that no request declares, since another tool calls them.
    hidden: Vec<String>,
    /// The tools that the conversation had when the state began.
    recorded: RecordedTools,
    /// Names of tools that the conversation recorded as active. Those that no tool here has stay recorded.
    absent: Vec<String>,
    /// The sections of the system prompt for the active tools, once somebody has asked for them.
    sections: OnceLock<Arc<Map<String, Value>>>,
    /// The system prompt, if handlers have changed it for the present run.
    run_prompt: Option<RunPrompt>,
    /// Tools that a mode registered besides those of the configuration. Kept when the conversation changes.
    pub registered: Vec<Arc<dyn Tool>>,
    /// What parts of the program add, whatever the conversation.
    pub additions: Additions,
    pub name: Option<String>,
    pub switches: Switches,
    /// Messages that go with the next prompt.
    pub next_turn: Vec<AgentMessage>,
    /// The report of a detour that the model takes back after its turn.
    pub rewind: Option<String>,
    /// Records of the user's shell commands that ended during a run, to be appended after it.
    pub held_back: Vec<AgentMessage>,
    /// Messages that wait for the end of the turn.
    pub after_turn: Vec<AgentMessage>,
    /// Cancel tokens of the user's running shell commands.
    pub shells: Vec<CancelToken>,
    pub run: Option<CancelToken>,
    /// Cancel tokens of questions beside the conversation.
    pub asides: Vec<CancelToken>,
    /// Cancel tokens of waits for handlers outside of a run.
    pub waits: Vec<CancelToken>,
    /// The cancel token of a manual compaction or a move in the tree.
    pub compaction: Option<CancelToken>,
    /// Number of automatic compactions under way.
    pub compacting: usize,
    pub retry: Option<CancelToken>,
    pub when_idle: Vec<Box<dyn FnOnce() + Send>>,
}

/// The parts of a run's system prompt.
struct RunPrompt {
    options: PromptOptions,
    /// Names of the tools that were there when handlers saw the parts.
    known: Vec<String>,
}

/// Plan mode, while it is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Planning {
    /// Names of the tools that were active before.
    pub tools: Vec<String>,
    /// True if plans are accepted without a question.
    #[serde(default)]
    pub accepts: bool,
}

/// Switches that commands change. Kept when the conversation changes.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    pub auto_retry: bool,
    pub auto_compaction: bool,
    pub interrupt: InterruptMode,
}

impl Switches {
    /// Reads the switches from the settings.
    pub(super) fn of(config: &Config, interrupt: InterruptMode) -> Self {
        Self {
            auto_retry: config.services.retry.enabled,
            auto_compaction: config.services.compaction.enabled,
            interrupt,
        }
    }
}

/// When queued steering messages reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InterruptMode {
    /// After all tool calls of the turn have ended.
    #[default]
    Wait,
    /// After each tool call. Calls run one at a time; once a message is queued, calls that have not started
    /// are skipped.
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

impl State {
    /// Makes the initial state of a session, and returns the conversation beside it.
    pub(super) fn new(parts: Parts) -> (Self, Conversation) {
        let Parts { mut conversation, model, thinking, tools, absent, config } = parts;
        conversation.hide(config.services.vault().clone());
        let recorded = RecordedTools::of(conversation.messages().iter())
            .map(|recorded| recorded.changed(config.over.tools.changes()));
        let state = Self {
            switches: Switches::of(&config, InterruptMode::default()),
            sections: OnceLock::new(),
            run_prompt: None,
            config: Arc::new(config),
            model,
            thinking,
            tools,
            hidden: Vec::new(),
            recorded: recorded.unwrap_or_default(),
            absent,
            registered: Vec::new(),
            additions: Additions::default(),
            name: conversation.name(),
            next_turn: Vec::new(),
            rewind: None,
            held_back: Vec::new(),
            after_turn: Vec::new(),
            shells: Vec::new(),
            run: None,
            asides: Vec::new(),
            waits: Vec::new(),
            compaction: None,
            compacting: 0,
            retry: None,
            when_idle: Vec::new(),
        };
        (state, conversation)
    }

    /// Takes over conversation, model and tools from `next`. Switches, registered tools and running commands
    /// stay.
    pub(super) fn succeed(&mut self, next: Self) {
        let Self { config, model, thinking, tools, recorded, absent, name, .. } = next;
        self.config = config;
        self.model = model;
        self.thinking = thinking;
        self.tools = tools;
        self.absent = absent;
        self.name = name;
        self.next_turn.clear();
        self.rewind = None;
        self.held_back.clear();
        self.after_turn.clear();
        let names = names_of(&self.tools);
        self.recorded = recorded;
        self.lend();
        self.activate_beside(names);
    }

    /// Gives the configuration the models that were added.
    pub(super) fn lend(&mut self) {
        let models = self.additions.models();
        if !self.config.services.has_lent(&models) {
            Arc::make_mut(&mut self.config).services.lend(models);
            self.look_up_models();
        }
    }

    /// Takes the selected models as they are configured now: a key of today must not go to an address of yesterday.
    pub(super) fn look_up_models(&mut self) {
        let config = Arc::make_mut(&mut self.config);
        let registry = &config.services.registry;
        let renewed = |model: &Arc<Model>| -> Option<Arc<Model>> {
            if let Some(found) = registry.find(&model.provider, &model.id) {
                return Some(found).filter(|found| found != model);
            }
            // One that is known to the provider alone is like its other models.
            let others = registry.models_of(&model.provider);
            let has_moved =
                !others.is_empty() && !others.iter().any(|other| other.base_url == model.base_url);
            let other = others.iter().filter(|_| has_moved).find(|other| other.api == model.api)?;
            Some(Arc::new(Model { base_url: other.base_url.clone(), ..Model::clone(model) }))
        };
        for scoped in &mut config.scope {
            renewed(&scoped.model).into_iter().for_each(|model| scoped.model = model);
        }
        if let Some(model) = renewed(&self.model) {
            self.thinking = model.clamp_thinking(self.thinking);
            self.model = model;
        }
    }

    /// Activates the tools with these names, and the registered and added tools that the conversation has not
    /// removed.
    fn activate_beside(&mut self, mut names: Vec<String>) {
        let RecordedTools { removed, active } = &self.recorded;
        names.extend(names_of(&self.registered).into_iter().filter(|name| !removed.contains(name)));
        let at_first = names_of(&self.added_tools(true));
        let is_wanted =
            |name: &String| active.contains(name) || (at_first.contains(name) && !removed.contains(name));
        names.extend(names_of(&self.added_tools(false)).into_iter().filter(is_wanted));
        self.activate(&names);
    }

    /// Activates the tools that a conversation has recorded.
    pub(super) fn restore_tools(&mut self, recorded: RecordedTools) {
        let names = recorded.active.clone();
        self.absent.clone_from(&names);
        self.recorded = recorded;
        self.activate_beside(names);
    }

    /// Returns the names of tools that the conversation has recorded as active and that cannot be offered here,
    /// such as those of another program. They stay recorded, and no request declares them.
    pub fn absent_tools(&self) -> Vec<String> {
        if self.absent.is_empty() {
            return Vec::new();
        }
        let offered = names_of(&self.all_tools());
        self.absent.iter().filter(|name| !offered.contains(name)).cloned().collect()
    }

    /// Returns the names of recorded tools that no request declares.
    pub fn undeclared_tools(&self) -> Vec<String> {
        [self.absent_tools(), self.hidden.clone()].concat()
    }

    /// The added tools that the configuration admits, or those of them that are active at first.
    fn added_tools(&self, at_first: bool) -> Vec<Arc<dyn Tool>> {
        let is_meant =
            |tool: &&Arc<dyn Tool>| self.config.admits(tool.info()).is_some_and(|active| active || !at_first);
        self.additions.tools().filter(is_meant).cloned().collect()
    }

    /// Returns all tools that can be made active. The first of several with one name counts.
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = self.added_tools(false);
        let names = names_of(&all);
        let others = self.config.tools.iter().chain(&self.registered);
        all.splice(0..0, others.filter(|tool| !names.contains(&tool.info().spec.name)).cloned());
        all
    }

    /// Replaces what `owner` adds. Tools that are new become active as they should be at first.
    pub fn set_addition(&mut self, owner: Owner, addition: Addition) {
        let new = self.additions.set(owner, addition);
        self.lend();
        let at_first = names_of(&self.added_tools(true));
        let is_wanted = |name: &String| {
            let RecordedTools { active, removed } = &self.recorded;
            active.contains(name) || (at_first.contains(name) && !removed.contains(name))
        };
        let mut names = names_of(&self.tools);
        names.extend(new.into_iter().filter(is_wanted));
        self.activate(&names);
    }

    pub fn remove_addition(&mut self, owner: &Owner) {
        self.additions.remove(owner);
        self.lend();
        let names = names_of(&self.tools);
        self.activate(&names);
    }

    /// The sections of the system prompt for the active tools.
    pub fn sections(&self) -> Arc<Map<String, Value>> {
        self.sections.get_or_init(|| Arc::new(self.sections_of(&self.run_prompt_options()))).clone()
    }

    /// The sections of the system prompt with these parts.
    pub fn sections_of(&self, options: &PromptOptions) -> Map<String, Value> {
        // Tools that were arranged for the model come before those that they stand for.
        let tools = [self.tools.clone(), self.all_tools()].concat();
        let mut sections = self.config.sections(options, &tools);
        self.additions.add_sections(&mut sections);
        sections
    }

    /// The parts of the system prompt, without what handlers have changed for a run.
    pub fn prompt_options(&self) -> PromptOptions {
        let all = self.all_tools();
        let tools = all.iter().chain(&self.tools);
        self.config.prompt.options(names_of(&self.tools), self.hidden.clone(), tools)
    }

    /// The parts of the system prompt of the present run, or of the next one.
    fn run_prompt_options(&self) -> PromptOptions {
        let base = self.prompt_options();
        let Some(RunPrompt { options, known }) = &self.run_prompt else { return base };
        let mut options = options.clone();
        options.selected_tools = base.selected_tools;
        options.hidden_tools = base.hidden_tools;
        // Tools that have come since are described as they are.
        let is_new = |name: &String| !known.contains(name);
        options.tool_snippets.extend(base.tool_snippets.into_iter().filter(|(name, _)| is_new(name)));
        options.tool_guidelines.extend(base.tool_guidelines.into_iter().filter(|(name, _)| is_new(name)));
        options
    }

    /// Sets the parts of the system prompt as handlers have changed them for a run; `None` when the run is over.
    pub fn set_run_prompt(&mut self, options: Option<PromptOptions>) {
        if options.is_some() || self.run_prompt.is_some() {
            let known = names_of(&self.all_tools());
            self.run_prompt = options.map(|options| RunPrompt { options, known });
            self.sections = OnceLock::new();
        }
    }

    /// The text that the present run sends in place of the system prompt, if there is one.
    pub fn forced_prompt(&self) -> Option<&str> {
        self.run_prompt.as_ref()?.options.force_system_prompt.as_deref()
    }

    /// The active tool with this name.
    pub fn active_tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.info().spec.name == name).cloned()
    }

    /// Activates the tools with these names, each once and in this order, and deactivates all others. Unknown
    /// names are ignored. Returns the names of the active tools.
    pub(super) fn activate(&mut self, names: &[String]) -> Vec<String> {
        let all = self.all_tools();
        self.tools = tools_named(&all, names);
        self.hidden = self.additions.arrange(&mut self.tools, &all, &self.config);
        self.sections = OnceLock::new();
        names_of(&self.tools)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.run.is_none() && !self.is_compacting()
    }

    pub(super) fn is_compacting(&self) -> bool {
        self.compaction.is_some() || self.compacting > 0
    }

    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }
}

pub(crate) fn names_of(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.info().spec.name.clone()).collect()
}
