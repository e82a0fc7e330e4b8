//! A conversation with its agent, log, tools, models and settings.

pub mod addition;
pub mod approval;
mod aside;
mod ask;
mod boundary;
pub mod cache_miss;
pub mod cache_warming;
pub mod checkpoint;
mod clock;
pub mod command_hook;
pub mod compaction;
mod conductor;
pub mod config;
pub mod control;
mod cut_off;
mod describe;
pub mod event;
pub mod event_json;
pub mod expand;
mod export;
pub mod filling;
pub mod helpers;
pub mod hook;
pub mod image;
pub mod job;
pub mod lent;
pub mod limit;
mod llama;
mod local_servers;
mod model;
pub mod nested;
pub mod nested_calls;
pub mod others;
pub mod outcome;
pub mod outline;
pub mod output_dir;
pub mod overlay;
pub mod overrides;
pub mod permission;
pub mod plan;
pub mod prompt;
pub mod reading;
pub mod recorded_tools;
mod retry;
mod secret;
pub mod selection;
pub mod service;
pub mod session;
pub mod setup;
pub mod shell;
pub mod sign_in;
pub mod stats;
pub mod stored;
pub mod succession;
mod summary;
mod tap;
pub mod task;
pub mod todo;
pub mod tree;
pub mod ui;
pub mod undo;
mod virtual_model;

#[cfg(test)]
mod tests;

use crate::tools::backend::Survivor;
use crate::tools::process;

pub use clock::{age, ago, local_time, now_iso};
pub use describe::Describer;

// Names of lower rooms that modes use.
pub use crate::agent::call;
pub use crate::agent::event::AgentEvent;
pub use crate::agent::message::{AgentMessage, BashExecution, CustomMessage};
pub use crate::agent::queue::QueueMode;
pub use crate::agent::run::Fatal;
pub use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
pub use crate::base::cancel::CancelToken;
pub use crate::base::executable;
pub use crate::llm::event::AssistantEvent;
pub use crate::llm::json_stream::PartialJson;
pub use crate::llm::message::{
    AssistantMessage, Block, StopReason, ToolResultMessage as ToolResult, ToolSpec, Usage, now_ms,
};
pub use crate::llm::model::{Model, ThinkingLevel};
pub use crate::models::local::{explain_refused_tools, is_provider as is_local};
pub use crate::models::resolve::Scoped;
pub use crate::resources::dirs::Dirs;
pub use crate::resources::git::branch as git_branch;
pub use crate::resources::settings::{self, Settings};
pub use crate::resources::text_file;
pub use crate::resources::trust;
pub use crate::session::id::session_id as unique_id;
pub use crate::session::{CalledSkill, Store, prompt_history, unsent};
pub use crate::tools::edit::{preview as preview_edit, texts as edited_texts};
pub use crate::tools::find::each_path;
pub use crate::tools::image::{Kind as ImageKind, size_of as image_size};
pub use crate::tools::path::{normalize as normalize_path, resolve_existing as resolve_path};
pub use crate::tools::plain::text as without_controls;
pub use crate::tools::process::lifeline;
pub use crate::tools::truncate::size as size_text;
pub use crate::tools::{Workspace, backend, kept_job, sandbox};

#[cfg(test)]
pub use crate::tools::testing::TempDir;
#[cfg(test)]
pub use describe::BUILTIN;

/// Decodes `bytes` for a terminal: control sequences are removed, invisible characters marked.
pub fn plain_text(bytes: &[u8]) -> String {
    let text = without_controls(bytes);
    match crate::base::visible::shown(&text) {
        std::borrow::Cow::Owned(shown) => shown,
        std::borrow::Cow::Borrowed(_) => text,
    }
}

/// Kills every process that tools started, and prevents new ones. Called on every exit. Returns the processes
/// that had outlived their command.
pub fn end_children() -> Vec<Survivor> {
    let survivors = process::survivors();
    process::shut_down();
    survivors
}
