//! The variants of the Responses API.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    OpenAi,
    Azure,
    Codex,
}
