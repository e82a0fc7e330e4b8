//! What a session is made from, and the part that changes while the session lives.

use crate::agent::message::AgentMessage;
use crate::agent::tool::Tool;
use crate::base::cancel::CancelToken;
use crate::llm::model::{Model, ThinkingLevel};
use crate::runtime::config::{Config, tools_named};
use crate::runtime::recorded_tools::RecordedTools;
use crate::session::Conversation;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A conversation and what its requests need.
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
    /// Tools that the conversation which the state began with has removed.
    removed: Vec<String>,
    /// Names of active tools in the record of the conversation; those that no tool here has stay in it.
    absent: Vec<String>,
    /// The prompt for the active tools.
    pub sections: Arc<Map<String, Value>>,
    /// Tools that the mode adds to those of the configuration, whatever the conversation.
    pub registered: Vec<Arc<dyn Tool>>,
    pub name: Option<String>,
    pub switches: Switches,
    /// Commands of the user that ended while a run was under way.
    pub held_back: Vec<AgentMessage>,
    /// Commands of the user that run.
    pub shells: Vec<CancelToken>,
    pub run: Option<CancelToken>,
    /// A compaction that was asked for by hand, or a move in the tree.
    pub compaction: Option<CancelToken>,
    /// Compactions under way, of whatever kind.
    pub compacting: usize,
    pub retry: Option<CancelToken>,
    pub when_idle: Vec<Box<dyn FnOnce() + Send>>,
}

/// What a command can switch on and off. Switches outlive a change of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    pub auto_retry: bool,
    pub auto_compaction: bool,
    pub interrupt: InterruptMode,
}

impl Switches {
    /// Switches as the settings have them.
    pub(super) fn of(config: &Config, interrupt: InterruptMode) -> Self {
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
    /// After all tools of the turn have ended.
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

impl State {
    /// The state that `parts` begin with, and the conversation.
    pub(super) fn new(parts: Parts) -> (Self, Conversation) {
        let Parts { mut conversation, model, thinking, tools, absent, config } = parts;
        conversation.hide(config.services.vault().clone());
        let recorded = RecordedTools::of(conversation.messages().iter());
        let state = Self {
            switches: Switches::of(&config, InterruptMode::default()),
            sections: Arc::new(config.sections(&tools)),
            config: Arc::new(config),
            model,
            thinking,
            tools,
            removed: recorded.map(|recorded| recorded.removed).unwrap_or_default(),
            absent,
            registered: Vec::new(),
            name: conversation.name(),
            held_back: Vec::new(),
            shells: Vec::new(),
            run: None,
            compaction: None,
            compacting: 0,
            retry: None,
            when_idle: Vec::new(),
        };
        (state, conversation)
    }

    /// Goes on with what `next` begins with. What the user switched, registered and runs stays.
    pub(super) fn succeed(&mut self, next: Self) {
        let Self { config, model, thinking, tools, removed, absent, name, .. } = next;
        self.config = config;
        self.model = model;
        self.thinking = thinking;
        self.tools = tools;
        self.absent = absent;
        self.name = name;
        self.held_back.clear();
        let names = names_of(&self.tools);
        self.activate_beside(names, &removed);
    }

    /// Makes the tools with these names active, and those that were registered, but for the `removed` ones.
    fn activate_beside(&mut self, mut names: Vec<String>, removed: &[String]) {
        names.extend(names_of(&self.registered).into_iter().filter(|name| !removed.contains(name)));
        self.activate(&names);
    }

    /// Makes the tools that a conversation has recorded the active ones.
    pub(super) fn restore_tools(&mut self, recorded: RecordedTools) {
        self.absent = recorded.active.clone();
        self.activate_beside(recorded.active, &recorded.removed);
    }

    /// Names of tools that the conversation has recorded as active and that cannot be offered here, such as those of
    /// another program. They stay recorded, and no request declares them.
    pub fn absent_tools(&self) -> Vec<String> {
        let offered = names_of(&self.config.tools);
        let registered = names_of(&self.registered);
        let is_absent = |name: &&String| !offered.contains(name) && !registered.contains(name);
        self.absent.iter().filter(is_absent).cloned().collect()
    }

    /// All tools that can be made active.
    pub fn all_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.config.tools.iter().chain(&self.registered).cloned().collect()
    }

    /// Makes the tools with these names the active ones, in their order, each once; names of no tool are left out.
    /// Gives the names that are active now.
    pub(super) fn activate(&mut self, names: &[String]) -> Vec<String> {
        let tools = tools_named(&self.all_tools(), names);
        self.sections = Arc::new(self.config.sections(&tools));
        self.tools = tools;
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

pub(super) fn names_of(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    tools.iter().map(|tool| tool.info().spec.name.clone()).collect()
}
