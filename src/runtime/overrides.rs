//! Options of the command line or of an embedding program.

use super::limit::Limits;
use super::outcome::Wanted;
use super::permission::Mode;
use super::selection::ToolOverrides;
use crate::llm::model::ThinkingLevel;
use std::sync::Arc;

/// Options of the command line or of an embedding program, which take precedence over the settings while the
/// program runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    pub model: ModelOverrides,
    pub tools: ToolOverrides,
    pub sandbox: SandboxOverrides,
    pub approval: ApprovalOverrides,
    pub limits: Limits,
    pub resources: ResourceOverrides,
    /// The JSON value that each run must end with, if any.
    pub wanted: Option<Arc<Wanted>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOverrides {
    pub provider: Option<String>,
    /// Pattern of the model.
    pub model: Option<String>,
    /// Patterns of the models that the user can cycle through.
    pub models: Option<Vec<String>>,
    pub api_key: Option<String>,
    pub base_url: Option<String>,
    pub thinking: Option<ThinkingLevel>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxOverrides {
    /// Mode of the sandbox: `off`, `read-only` or `workspace`.
    pub mode: Option<String>,
    pub network: bool,
    /// Folders that commands may write to, besides the working folder.
    pub writable: Vec<String>,
}

/// Resources given on the command line. Paths are relative to [`started_in`](super::config::Inputs::started_in).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceOverrides {
    /// The system prompt: its text, or the path of a file.
    pub system_prompt: Option<String>,
    /// Additions to the system prompt: texts, or paths of files.
    pub append_system_prompt: Vec<String>,
    pub no_context_files: bool,
    pub skills: Vec<String>,
    pub no_skills: bool,
    pub prompt_templates: Vec<String>,
    pub no_prompt_templates: bool,
    pub themes: Vec<String>,
    pub no_themes: bool,
    pub use_theme: Option<String>,
    pub extensions: Vec<String>,
    pub no_extensions: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalOverrides {
    /// The mode, instead of the one of the settings.
    pub mode: Option<Mode>,
    /// Names of tools whose calls need no approval.
    pub allowed: Vec<String>,
}
