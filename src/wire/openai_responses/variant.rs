//! Who speaks the protocol.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    OpenAi,
    Azure,
    Codex,
}
