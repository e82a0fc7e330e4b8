//! One conversation with everything it needs: agent, log, tools, models, settings.

pub mod event;

// What modes see of the rooms below.
pub use crate::agent::event::AgentEvent;
pub use crate::agent::message::AgentMessage;
pub use crate::agent::run::Fatal;
pub use crate::agent::tool::ToolOutput;
pub use crate::llm::cancel::CancelToken;
pub use crate::llm::event::{AssistantEvent, Fold};
pub use crate::llm::message::{AssistantMessage, Block, StopReason, ToolCall, Usage};
