//! What a wire protocol is to the stream that runs it: a request and a decoder, both pure.
//!
//! A protocol makes a request of model, context and options, and a decoder that is fed frames and yields
//! events. Threads, sockets, clocks and aborts are in `llm::stream`, once.

use super::context::Context;
use super::event::{AssistantEvent, StreamError};
use super::model::Model;
use super::options::StreamOptions;
use crate::base::cancel::CancelToken;
use std::sync::Arc;

/// An HTTP request to a provider; always a POST with a JSON body.
#[derive(Clone, Debug, Default)]
pub struct HttpRequest {
    pub url: String,
    /// Names in lower case. Values that are secrets are marked by name in `llm::http`.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One unit of a streamed answer.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A server-sent event, or a message of an AWS event stream.
    Sse { event: &'a str, data: &'a str },
    /// A whole JSON body, from a server that does not stream.
    Body(&'a str),
}

/// A protocol that goes over HTTP.
pub trait Protocol: Send + Sync {
    fn request(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Result<HttpRequest, StreamError>;
    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder>;

    /// Signs the request in its final form, with the caller's headers in it, where a key in a header is
    /// not enough.
    fn sign(
        &self,
        _url: &str,
        _headers: &mut Vec<(String, String)>,
        _body: &[u8],
        _options: &StreamOptions,
        _now_ms: u64,
    ) -> Result<(), StreamError> {
        Ok(())
    }

    /// Adds to an error what this protocol's users should know; `body` is the beginning of what the server
    /// said with its error status.
    fn explain(&self, _error: &mut StreamError, _headers: &[(String, String)], _body: &str) {}

    /// What the message keeps of a failure besides its text. `answered`: the status said that all was well.
    fn diagnose(&self, _error: &mut StreamError, _answered: bool) {}

    /// True if an abort first ends the blocks that are open.
    fn closes_when_aborted(&self) -> bool {
        false
    }
}

/// Turns frames into events. Pure: no clock, no socket.
pub trait Decoder: Send {
    /// Takes one frame. An `Err` ends the stream with that error; events already in `out` are kept.
    /// A frame that carries nothing (a ping) leaves `out` as it is.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// The server has said all it will say: emits what is left and `Done`, or says what is missing.
    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// The protocol's terminal marker was seen: what follows on the wire is not waited for.
    fn is_done(&self) -> bool;
}

/// A source of events that is not behind HTTP: the faux provider, later an extension's.
/// Runs on the stream's thread; `emit` blocks when the reader is slow and fails when it has gone.
pub trait Source: Send + Sync {
    fn run(&self, call: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>);
}

/// What a source is asked.
pub struct Call<'a> {
    pub model: &'a Model,
    pub context: &'a Context,
    pub options: &'a StreamOptions,
    pub cancel: &'a CancelToken,
}

/// The reader has gone away.
#[derive(Debug)]
pub struct Gone;

#[derive(Clone)]
pub enum Api {
    Wire(Arc<dyn Protocol>),
    Source(Arc<dyn Source>),
}
