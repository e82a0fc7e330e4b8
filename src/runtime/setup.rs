//! Makes a session for a program that embeds the agent. Only folders and model have no default.
//!
//! Only the given agent folder (settings, `models.json`, `auth.json`, each optional) and keys in the
//! environment are read. Project files are ignored, nothing is stored without a log, and only the named tools
//! are active, without a sandbox.

use super::config::{Inputs, Place, Resources, configure};
use super::control::Parts;
use super::overrides::Overrides;
use super::selection::Selection;
use super::selection::ToolOverrides;
use super::session::Session;
use crate::agent::tool::Tool;
use crate::base::cancel::CancelToken;
use crate::llm::model::ThinkingLevel;
use crate::resources::dirs::Dirs;
use crate::resources::prompt::UserPrompts;
use crate::resources::settings::Settings;
use crate::session::{Conversation, Log};
use crate::tools;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

pub struct Setup {
    cwd: PathBuf,
    agent_dir: PathBuf,
    model: String,
    thinking: ThinkingLevel,
    builtin: Vec<String>,
    own: Vec<Arc<dyn Tool>>,
    system_prompt: Option<String>,
    log: Option<Log>,
}

impl Setup {
    /// Makes a setup for the working folder `cwd` and `model`, as `provider/id`. `agent_dir` holds settings
    /// and keys.
    pub fn new(cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>, model: impl Into<String>) -> Self {
        Self {
            cwd: cwd.into(),
            agent_dir: agent_dir.into(),
            model: model.into(),
            thinking: ThinkingLevel::Off,
            builtin: Vec::new(),
            own: Vec::new(),
            system_prompt: None,
            log: None,
        }
    }

    /// Sets the thinking level.
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = level;
        self
    }

    /// Adds built-in tools, by name: `read`, `bash`, `edit`, `write`, `grep`, `find`, `ls`.
    pub fn builtin(mut self, names: &[&str]) -> Self {
        self.builtin.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// Adds a custom tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.own.push(Arc::new(tool));
        self
    }

    /// Replaces the default system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Stores the conversation in `log`, or continues the conversation in it.
    pub fn log(mut self, log: Log) -> Self {
        self.log = Some(log);
        self
    }

    /// Makes the session, and returns warnings about the files that were read. `cancel` cancels all work of
    /// the session. An unknown model or tool is an error.
    pub fn start(self, cancel: &CancelToken) -> Result<(Session, Vec<String>), String> {
        let mut warnings = Vec::new();
        let mut warn = |text: &dyn Display| warnings.push(text.to_string());
        let (settings, diagnostics) = Settings::load(&self.agent_dir);
        diagnostics.iter().for_each(|diagnostic| warn(diagnostic));
        let dirs = Dirs::with_agent(self.agent_dir);
        let inputs = Inputs::load(dirs, self.cwd.clone(), self.cwd.clone(), settings, &mut warn);
        let model = self
            .model
            .split_once('/')
            .and_then(|(provider, id)| inputs.services.registry.find(provider, id))
            .ok_or_else(|| format!("There is no model \"{}\"", self.model))?;
        if let Some(name) = self.builtin.iter().find(|name| !tools::names().any(|known| known == *name)) {
            return Err(format!("There is no tool \"{name}\""));
        }
        let mut log = match self.log {
            Some(log) => log,
            None => Log::in_memory(&self.cwd, None).map_err(|error| error.to_string())?,
        };
        log.hide(inputs.services.vault().clone());
        let context = log.context();
        if context.messages.is_empty() {
            log.append_model_change(&model.provider, &model.id)
                .and_then(|_| log.append_thinking_level(self.thinking.name()))
                .map_err(|error| error.to_string())?;
        }
        let resources = Resources {
            prompts: UserPrompts { custom: self.system_prompt, addendum: None },
            ..Resources::default()
        };
        let over = Overrides {
            tools: ToolOverrides {
                selection: Some(Selection::Only(self.builtin)),
                ..ToolOverrides::default()
            },
            ..Overrides::default()
        };
        let place = Place::new(&log, None, None, None);
        let (mut config, mut tools) = configure(inputs, resources, &over, Vec::new(), place, &mut warn);
        config.tools.extend(self.own.iter().cloned());
        tools.extend(self.own);
        let parts = Parts {
            conversation: Conversation::new(log, context),
            model,
            thinking: self.thinking,
            tools,
            absent: Vec::new(),
            config,
        };
        Ok((Session::new(parts, None, cancel), warnings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tool::{FnTool, ToolOutput};
    use crate::base::json::json;
    use crate::runtime::control::Control;
    use crate::runtime::hook::{Fold, Hooks};
    use crate::session::SyncMode;
    use crate::session::store::Store;
    use crate::tools::testing::TempDir;
    use serde_json::Value;

    /// A handler that holds its session.
    struct Holder(#[expect(dead_code)] Control);

    impl Hooks for Holder {
        fn wants(&self, _: &str) -> bool {
            false
        }

        fn ask(&self, _: &mut Value, _: &CancelToken, _: Fold<'_>) {}
    }

    fn setup(dir: &TempDir, model: &str) -> Setup {
        Setup::new(dir.path(), dir.path().join("none"), model)
    }

    #[test]
    fn a_session_has_what_was_named_and_stores_where_it_is_told() {
        let dir = TempDir::create();
        let store = Store::new(dir.path(), None, SyncMode::default());
        let log = store.create(dir.path(), None).unwrap();
        let path = log.path().unwrap().to_owned();
        let tool =
            FnTool::new("clock", "The time", json!({"type": "object"}), |_| Ok(ToolOutput::text("noon")));
        let started = setup(&dir, "faux/echo")
            .builtin(&["read"])
            .tool(tool)
            .system_prompt("Be brief.")
            .log(log)
            .start(&CancelToken::new());
        let (mut session, warnings) = started.unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(warnings, [] as [String; 0]);
        session.prompt("hi".into(), Vec::new(), &mut |_| Ok(())).unwrap();
        assert_eq!(session.control().last_assistant_text().as_deref(), Some("hi"));
        session.control().add_hooks(Arc::new(Holder(session.control().clone())));
        let (control, workspace) = (session.control().downgrade(), Arc::downgrade(session.workspace()));
        session.close().unwrap();
        assert!(control.upgrade().is_none() && workspace.upgrade().is_none(), "the session is gone");
        let stored = std::fs::read_to_string(path).unwrap();
        for part in ["Be brief.", "\"clock\"", "\"read\"", "\"modelId\":\"echo\""] {
            assert!(stored.contains(part), "{part} in {stored}");
        }
        assert!(!stored.contains("\"bash\""));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let dir = TempDir::create();
        let fault = |setup: Setup| setup.start(&CancelToken::new()).map(drop).unwrap_err();
        assert_eq!(fault(setup(&dir, "faux/x")), "There is no model \"faux/x\"");
        assert_eq!(fault(setup(&dir, "echo")), "There is no model \"echo\"");
        let wrong = setup(&dir, "faux/echo").builtin(&["teleport"]);
        assert_eq!(fault(wrong), "There is no tool \"teleport\"");
    }
}
