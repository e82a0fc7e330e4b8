//! The wire protocols: a table from api name to protocol.
//!
//! A protocol is two pure things: a request made from model, context and options, and a decoder that is
//! fed frames and yields events. Threads, sockets, clocks and aborts are in `llm::stream`, once.

use super::context::Context;
use super::event::{AssistantEvent, StreamError};
use super::model::Model;
use super::stream::StreamOptions;
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
    /// A server-sent event.
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
    fn decoder(
        &self,
        model: &Model,
        context: &Context,
        options: &StreamOptions,
    ) -> Box<dyn Decoder>;
}

/// Turns frames into events. Pure: no clock, no socket.
pub trait Decoder: Send {
    /// Takes one frame. An `Err` ends the stream with that error; events already in `out` are kept.
    /// A frame that carries nothing (a ping) leaves `out` as it is.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>)
    -> Result<(), StreamError>;

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
    pub cancel: &'a super::cancel::CancelToken,
}

/// The reader has gone away.
#[derive(Debug)]
pub struct Gone;

#[derive(Clone)]
pub enum Api {
    Wire(Arc<dyn Protocol>),
    Source(Arc<dyn Source>),
}
