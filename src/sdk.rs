//! What other programs use of this crate, under flat names: sessions with tools of their own, and bare requests
//! to a model. `pi docs sdk` shows how.

// A session.
pub use crate::agent::event::AgentEvent;
pub use crate::agent::message::AgentMessage;
pub use crate::agent::run::Fatal;
pub use crate::base::cancel::CancelToken;
pub use crate::resources::dirs::Dirs;
pub use crate::runtime::control::{Control, user_message};
pub use crate::runtime::event::Event;
pub use crate::runtime::session::Session;
pub use crate::runtime::setup::Setup;
pub use crate::runtime::{end_children, plain_text};
pub use crate::session::log::Log;
pub use crate::session::{Store, SyncMode};

// Tools.
pub use crate::agent::tool::{FnTool, Invocation, Tool, ToolError, ToolInfo, ToolOutput};

// A request to a model.
pub use crate::auth::credential::Credentials;
pub use crate::base::env::Env;
pub use crate::llm::context::Context;
pub use crate::llm::event::{AssistantEvent, Fold};
pub use crate::llm::message::{
    AssistantMessage, Block, Content, Message, StopReason, ToolCall, ToolResultMessage, Usage, UserMessage,
};
pub use crate::llm::model::{Model, ThinkingLevel};
pub use crate::llm::options::StreamOptions;
pub use crate::models::Registry;
pub use crate::wire::faux::models as faux_models;
pub use crate::wire::stream;
