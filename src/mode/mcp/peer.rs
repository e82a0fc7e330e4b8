//! The connection to the client.

use crate::mode::host::Refusal;
use crate::mode::peer;

pub type Peer = peer::Peer<Client>;
pub type Reply = peer::Reply<Client>;

/// Capabilities of the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client {
    /// Shows forms (`elicitation`).
    pub forms: bool,
}

/// The reason of a refusal, for the client.
pub fn reason(refusal: Refusal) -> String {
    let (Refusal::NoFolder(reason)
    | Refusal::NotFound(reason)
    | Refusal::NoModel(reason)
    | Refusal::Failed(reason)) = refusal;
    reason
}
