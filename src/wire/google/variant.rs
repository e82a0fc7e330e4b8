//! Google's two services with the `generateContent` protocol.

/// The service of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Google {
    /// The Gemini API, and compatible gateways.
    GenerativeAi,
    Vertex,
}
