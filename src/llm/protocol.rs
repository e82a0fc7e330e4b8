//! The interface between a wire protocol and the stream that runs it.
//!
//! A protocol builds a request from model, context and options, and provides a decoder that turns frames into
//! events. Both are free of I/O: threads, sockets, clocks and aborts are in `llm::stream`.

use super::body::{Body, Payload};
use super::context::Context;
use super::event::{AssistantEvent, StreamError};
use super::model::Model;
use super::options::StreamOptions;
use crate::base::cancel::CancelToken;
use std::sync::Arc;

/// An HTTP request to a provider; always a POST with a JSON body.
#[derive(Debug, Default)]
pub struct HttpRequest<'a> {
    pub url: String,
    /// Names in lower case. `llm::http` recognizes secret headers by name.
    pub headers: Vec<(String, String)>,
    pub body: Body<'a>,
}

/// One unit of a streamed answer.
#[derive(Clone, Copy, Debug)]
pub enum Frame<'a> {
    /// A server-sent event, or a message of an AWS event stream.
    Sse { event: &'a str, data: &'a str },
    /// A complete JSON body, from a server that does not stream.
    Body(&'a str),
}

/// A protocol based on HTTP.
pub trait Protocol: Send + Sync {
    fn request<'a>(
        &self,
        model: &'a Model,
        context: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError>;
    fn decoder(&self, model: &Model, context: &Context, options: &StreamOptions) -> Box<dyn Decoder>;

    /// Signs the final request, including the caller's headers, if a key in a header is not enough.
    fn sign(
        &self,
        _url: &str,
        _headers: &mut Vec<(String, String)>,
        _body: &Payload<'_>,
        _options: &StreamOptions,
        _now_ms: u64,
    ) -> Result<(), StreamError> {
        Ok(())
    }

    /// Adds advice about this protocol to an error. `body` is the start of the server's error body.
    fn explain(&self, _error: &mut StreamError, _headers: &[(String, String)], _body: &str) {}

    /// Adds fields about a failure that the message should store. `answered`: true if the status was a
    /// success.
    fn diagnose(&self, _error: &mut StreamError, _answered: bool) {}

    /// True if open blocks are ended before an abort.
    fn closes_when_aborted(&self) -> bool {
        false
    }
}

/// Turns frames into events, without I/O.
pub trait Decoder: Send {
    /// Decodes one frame. An `Err` ends the stream; events already in `out` are kept. A frame without
    /// content, such as a ping, adds nothing to `out`.
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// Ends the answer after the last frame: emits remaining events and `Done`, or returns an error if the
    /// answer is incomplete.
    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError>;

    /// True after the protocol's end marker; further bytes are not waited for.
    fn is_done(&self) -> bool;
}

/// A source of events without HTTP, such as the faux provider. Runs on the stream's thread; `emit` blocks
/// while the reader is slow, and fails after the reader was dropped.
pub trait Source: Send + Sync {
    fn run(&self, call: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>);
}

/// The input of a source.
pub struct Call<'a> {
    pub model: &'a Model,
    pub context: &'a Context,
    pub options: &'a StreamOptions,
    pub cancel: &'a CancelToken,
}

/// The reader of the stream was dropped.
#[derive(Debug)]
pub struct Gone;

#[derive(Clone)]
pub enum Api {
    Wire(Arc<dyn Protocol>),
    Source(Arc<dyn Source>),
}
