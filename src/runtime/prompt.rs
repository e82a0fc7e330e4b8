//! The system prompt of a session: texts that are read once, and the descriptions of the tools.

use crate::agent::tool::Tool;
use crate::resources::context_file::ContextFile;
use crate::resources::prompt::{PromptOptions, Purposes, UserPrompts};
use crate::resources::skill::Skill;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;

/// The parts of the system prompt that do not depend on the tools.
#[derive(Default)]
pub struct Source {
    pub texts: UserPrompts,
    pub context_files: Vec<ContextFile>,
    pub skills: Vec<Skill>,
    pub cwd: PathBuf,
}

impl Source {
    /// The parts of the prompt while the tools `selected` are active, of which no request declares `hidden`. `tools`
    /// are all tools; the last of one name counts.
    pub fn options<'a>(
        &self,
        selected: Vec<String>,
        hidden: Vec<String>,
        tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
    ) -> PromptOptions {
        let mut options = PromptOptions {
            custom_prompt: self.texts.custom.clone(),
            selected_tools: selected,
            hidden_tools: hidden,
            append_system_prompt: self.texts.addendum.clone().unwrap_or_default(),
            cwd: self.cwd.to_string_lossy().into_owned(),
            context_files: self.context_files.iter().map(Into::into).collect(),
            skills: self.skills.iter().map(Into::into).collect(),
            ..PromptOptions::default()
        };
        for info in tools.map(|tool| tool.info()) {
            let name = &info.spec.name;
            match &info.snippet {
                Some(snippet) => drop(options.tool_snippets.insert(name.clone(), snippet.clone())),
                None => drop(options.tool_snippets.remove(name)),
            }
            match info.rules.is_empty() {
                false => drop(options.tool_guidelines.insert(name.clone(), info.rules.clone())),
                true => drop(options.tool_guidelines.remove(name)),
            }
        }
        options
    }
}

/// Makes the sections of the prompt of its parts. `tools` are all tools.
pub fn sections(options: &PromptOptions, tools: &[Arc<dyn Tool>]) -> Map<String, Value> {
    options.sections(|name| {
        let tool = tools.iter().find(|tool| tool.info().spec.name == name);
        tool.map_or_else(Purposes::default, |tool| {
            let serves = tool.info().serves;
            Purposes { reads: serves.reading, searches: serves.searching, runs_commands: serves.commands }
        })
    })
}
