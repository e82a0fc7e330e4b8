//! The connection to the client.

use super::http::stream::Streams;
use crate::mode::host::Refusal;
use crate::mode::output::Output;
use crate::mode::peer::{self, Lines};
use serde::Serialize;
use std::sync::Arc;

pub type Peer = peer::Peer<Client, Way>;
pub type Reply = peer::Reply<Client, Way>;

/// What carries messages to the client.
pub enum Way {
    /// Lines on stdout.
    Output(Arc<Output>),
    /// Answers to HTTP requests.
    Streams(Arc<Streams>),
}

impl Lines for Way {
    fn line(&self, message: &impl Serialize) -> bool {
        match self {
            Self::Output(output) => Lines::line(output, message),
            Self::Streams(streams) => streams.pass(&serde_json::to_value(message).unwrap_or_default()),
        }
    }
}

/// Capabilities of the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client {
    /// Shows forms (`elicitation`).
    pub forms: bool,
    pub is_greeted: bool,
}

/// The reason of a refusal, for the client.
pub fn reason(refusal: Refusal) -> String {
    let (Refusal::NoFolder(reason)
    | Refusal::NotFound(reason)
    | Refusal::NoModel(reason)
    | Refusal::Failed(reason)) = refusal;
    reason
}
