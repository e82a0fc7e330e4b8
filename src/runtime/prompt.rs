//! The system prompt of a session: texts that are read once, and the descriptions of the active tools.

use super::config::Prompt;
use crate::resources::context_file::ContextFile;
use crate::resources::prompt::{self, PromptOptions, PromptTool, UserPrompts};
use crate::resources::skill::Skill;
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
    pub fn into_prompt(self) -> Prompt {
        Arc::new(move |tools| {
            let tools: Vec<PromptTool<'_>> = tools
                .iter()
                .map(|tool| tool.info())
                .map(|info| PromptTool {
                    name: &info.spec.name,
                    snippet: info.snippet.as_deref(),
                    rules: &info.rules,
                    reads: info.serves.reading,
                    searches: info.serves.searching,
                    runs_commands: info.serves.commands,
                })
                .collect();
            prompt::sections(&PromptOptions {
                custom: self.texts.custom.as_deref(),
                addendum: self.texts.addendum.as_deref(),
                tools: &tools,
                context_files: &self.context_files,
                skills: &self.skills,
                cwd: &self.cwd,
            })
        })
    }
}
