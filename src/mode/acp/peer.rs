//! The connection to the editor.

use crate::base::json::json;
use crate::mode::peer;
use serde_json::Value;

/// No key, or no model at all.
pub const AUTH_REQUIRED: i64 = -32000;
/// The session does not exist.
pub const NOT_FOUND: i64 = -32002;
/// The editor cancelled its request.
pub const CANCELLED: i64 = -32800;

pub type Peer = peer::Peer<ClientCapabilities>;
pub type Reply = peer::Reply<ClientCapabilities>;

impl Peer {
    /// Sends a `session/update`.
    pub fn update(&self, session: &str, update: &Value) {
        self.notify("session/update", &json!({"sessionId": session, "update": update}));
    }
}

/// Capabilities of the editor.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientCapabilities {
    /// Reads text files, including unsaved text.
    pub reads: bool,
    /// Writes text files.
    pub writes: bool,
    /// Runs commands in terminals.
    pub terminals: bool,
    /// Shows notices beside the conversation.
    pub notices: bool,
    /// Shows the progress of a compaction.
    pub compactions: bool,
    /// Shows forms.
    pub forms: bool,
    /// Runs this program in a terminal, to sign in.
    pub terminal_login: bool,
}
