//! Limits the size of an answer, so that a server that never ends cannot exhaust memory.

use crate::llm::event::{AssistantEvent, ErrorKind, StreamError};

/// Maximum bytes of text, thinking and arguments in an answer, far more than any model writes.
pub(super) const ANSWER_MAX: usize = 64 << 20;
/// Maximum number of tool calls in an answer.
pub const CALLS_MAX: usize = 1000;
/// Overhead of a block in bytes.
pub(super) const BLOCK_BYTES: usize = 256;

/// The size of an answer so far.
#[derive(Default)]
pub(super) struct Measure {
    bytes: usize,
    calls: usize,
}

impl Measure {
    /// Adds an event. An error if the answer exceeds the limits.
    pub(super) fn add(&mut self, event: &AssistantEvent) -> Result<(), StreamError> {
        use AssistantEvent as E;
        self.bytes += match event {
            E::TextDelta { delta, .. } | E::ThinkingDelta { delta, .. } | E::ToolCallDelta { delta, .. } => {
                delta.len()
            }
            E::ToolCallStart { id, name, .. } => {
                self.calls += 1;
                BLOCK_BYTES + id.len() + name.len()
            }
            E::TextStart { .. } | E::ThinkingStart { .. } => BLOCK_BYTES,
            E::TextEnd { signature, .. } | E::ThinkingEnd { signature, .. } => {
                signature.as_ref().map_or(0, String::len)
            }
            E::ToolCallEnd { thought_signature, .. } => thought_signature.as_ref().map_or(0, String::len),
            E::Start | E::Info(_) | E::Done { .. } | E::Error(_) => 0,
        };
        let what = match self {
            Self { calls, .. } if *calls > CALLS_MAX => format!("{CALLS_MAX} tool calls"),
            Self { bytes, .. } if *bytes > ANSWER_MAX => format!("{} MB", ANSWER_MAX >> 20),
            _ => return Ok(()),
        };
        let text = format!("the answer was refused: it has more than {what}");
        Err(StreamError::new(ErrorKind::Protocol, text))
    }
}
