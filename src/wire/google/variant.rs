//! Which of Google's two services is asked.

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Google {
    /// The Gemini API, and gateways that speak it.
    GenerativeAi,
    Vertex,
}
