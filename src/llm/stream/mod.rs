//! One request to a model, from the call to the last event.
//!
//! A thread talks to the provider and puts events into a bounded queue, so that a slow reader slows the
//! socket and memory use is bounded. The handle reads the queue, and at the same time waits for the cancel
//! token and for a time limit, so that neither a silent server nor a hanging connection blocks it. The handle
//! also guarantees the order of events: `Start` first (except for an error before the provider answered),
//! exactly one `Done` or `Error` last.
//!
//! Not here: the thread's work (`worker`) and the wire protocols (`wire`).

mod mailbox;
mod measure;
mod optional;
mod refusal;
mod retry;
mod thread;
mod worker;

#[cfg(test)]
mod tests;

pub use measure::CALLS_MAX;
pub use retry::Next;

use super::context::Context;
use super::event::{AssistantEvent, ErrorKind, Fold, StreamError};
use super::http::{self, Client};
use super::message::{AssistantMessage, now_ms};
use super::model::Model;
use super::options::{Clocks, StreamOptions};
use super::protocol::Api;
use crate::base::cancel::CancelToken;
use crate::base::thread::Thread;
use crossbeam_channel::{after, never, select};
use measure::Measure;
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use worker::{Job, OnWhole};

/// A running request. Dropping it ends the request.
pub struct StreamHandle {
    fold: Fold,
    error: Option<StreamError>,
    measure: Measure,
    mailbox: Option<mailbox::Reader>,
    /// Events taken from the mailbox.
    events: VecDeque<AssistantEvent>,
    cancel: CancelToken,
    /// Ends the provider thread; also cancelled by `cancel`.
    stop: CancelToken,
    clocks: Clocks,
    begun: Instant,
    whole: OnWhole,
    /// Host of the server, for messages.
    server: String,
    open: Vec<Open>,
    closes_when_aborted: bool,
    started: bool,
    /// True after the first event that follows `Start`.
    progressed: bool,
    ended: bool,
}

/// An open block, with its index.
#[derive(Clone, Copy)]
enum Open {
    Text(usize),
    Thinking(usize),
    ToolCall(usize),
}

impl Open {
    fn index(self) -> usize {
        let (Self::Text(index) | Self::Thinking(index) | Self::ToolCall(index)) = self;
        index
    }

    fn into_end(self) -> AssistantEvent {
        match self {
            Self::Text(index) => AssistantEvent::TextEnd { index, signature: None },
            Self::Thinking(index) => AssistantEvent::ThinkingEnd { index, signature: None, redacted: false },
            Self::ToolCall(index) => {
                AssistantEvent::ToolCallEnd { index, id: None, name: None, thought_signature: None }
            }
        }
    }
}

/// Starts a request on a new thread. Never fails: an error is the last event.
pub fn start(
    api: Api,
    model: &Arc<Model>,
    context: Context,
    options: StreamOptions,
    cancel: &CancelToken,
) -> StreamHandle {
    start_with(Client::shared().clone(), api, model, context, options, cancel)
}

fn start_with(
    client: Client,
    api: Api,
    model: &Arc<Model>,
    mut context: Context,
    options: StreamOptions,
    cancel: &CancelToken,
) -> StreamHandle {
    if let Some(set) = options.vault.set() {
        context.messages.iter_mut().for_each(|message| set.hide_message(message));
    }
    let (writer, reader) = mailbox::mailbox();
    let mut clocks = options.clocks;
    if !clocks.is_chosen && host_of(&model.base_url).is_some_and(http::is_loopback) {
        clocks.first = None; // to read a long prompt can take this machine minutes
    }
    let mut handle = StreamHandle::new(model, Some(reader), clocks, cancel.clone());
    handle.closes_when_aborted = matches!(&api, Api::Wire(protocol) if protocol.closes_when_aborted());
    let (stop, whole) = (handle.stop.clone(), handle.whole.clone());
    let job = Job { client, api, model: model.clone(), context, options, stop, whole };
    match Thread::named("llm-stream").start(move || worker::run(&job, writer)) {
        Ok(_) => handle,
        Err(error) => {
            let text = format!("cannot start a thread for the request: {error}");
            StreamHandle::failed(model, StreamError::new(ErrorKind::Request, text))
        }
    }
}

/// The host in a URL, without brackets.
fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (_, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = match place.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => place.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

impl StreamHandle {
    /// A request that failed before it was sent: its only event is the error.
    pub fn failed(model: &Model, error: StreamError) -> Self {
        let mut handle = Self::new(model, None, Clocks::default(), CancelToken::new());
        handle.events.push_back(AssistantEvent::Error(error));
        handle
    }

    fn new(model: &Model, mailbox: Option<mailbox::Reader>, clocks: Clocks, cancel: CancelToken) -> Self {
        let message = AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        };
        Self {
            fold: Fold::new(message),
            error: None,
            measure: Measure::default(),
            mailbox,
            events: VecDeque::new(),
            stop: cancel.child(),
            cancel,
            clocks,
            begun: Instant::now(),
            whole: OnWhole::default(),
            server: host_of(&model.base_url).unwrap_or(&model.provider).to_owned(),
            open: Vec::new(),
            closes_when_aborted: false,
            started: false,
            progressed: false,
            ended: false,
        }
    }

    /// The next event; `None` after the last. If the token is cancelled, returns the terminal event at once,
    /// regardless of the provider thread.
    pub fn next_event(&mut self) -> Option<AssistantEvent> {
        if self.ended {
            return None;
        }
        let mut event = self.next_raw();
        if let Err(error) = self.measure.add(&event) {
            event = AssistantEvent::Error(error);
        }
        if !self.started && !matches!(event, AssistantEvent::Error(_)) {
            self.started = true;
            if event != AssistantEvent::Start {
                self.events.push_front(event); // of a provider that forgot to start
                event = AssistantEvent::Start;
            }
        }
        self.fold.apply(&event);
        self.note_open(&event);
        match &event {
            AssistantEvent::Start => {}
            AssistantEvent::Done { .. } => {
                let keep = self.whole.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(keep) = keep {
                    keep(self.fold.message());
                }
                self.end();
            }
            AssistantEvent::Error(error) => {
                self.error = Some(error.clone());
                self.end();
                self.stop.cancel();
            }
            _ => self.progressed = true,
        }
        Some(event)
    }

    fn note_open(&mut self, event: &AssistantEvent) {
        use AssistantEvent as E;
        match *event {
            E::TextStart { index } => self.open.push(Open::Text(index)),
            E::ThinkingStart { index } => self.open.push(Open::Thinking(index)),
            E::ToolCallStart { index, .. } => self.open.push(Open::ToolCall(index)),
            E::TextEnd { index, .. } | E::ThinkingEnd { index, .. } | E::ToolCallEnd { index, .. } => {
                self.open.retain(|open| open.index() != index)
            }
            _ => {}
        }
    }

    /// The next event as received; repeated `Start` events are skipped.
    fn next_raw(&mut self) -> AssistantEvent {
        loop {
            if self.cancel.is_cancelled() {
                let open = (self.closes_when_aborted && !self.open.is_empty()).then(|| self.open.remove(0));
                return open.map_or_else(|| AssistantEvent::Error(StreamError::aborted()), Open::into_end);
            }
            match self.events.pop_front() {
                Some(AssistantEvent::Start) if self.started => {}
                Some(event) => return event,
                None => {
                    if let Err(error) = self.wait()
                        && !self.cancel.is_cancelled()
                    {
                        return AssistantEvent::Error(error);
                    }
                }
            }
        }
    }

    /// Waits for events, for the cancellation, or for the current time limit.
    fn wait(&mut self) -> Result<(), StreamError> {
        let Some(mailbox) = &self.mailbox else {
            return Err(ended_too_early());
        };
        if mailbox.take(&mut self.events) {
            return Ok(());
        }
        let limit = match self.progressed {
            true => self.clocks.idle,
            false => self.clocks.first,
        };
        let left = limit.map(|limit| match self.progressed {
            true => limit,
            false => limit.saturating_sub(self.begun.elapsed()),
        });
        let clock = left.map_or_else(never, after);
        select! {
            recv(mailbox.ready()) -> signal => match signal {
                Err(_) if !mailbox.take(&mut self.events) => Err(ended_too_early()),
                _ => Ok(()),
            },
            recv(self.cancel.receiver()) -> _ => Err(StreamError::aborted()),
            recv(clock) -> _ => {
                let seconds = limit.unwrap_or_default().as_secs_f64();
                let what = if self.progressed { "nothing more" } else { "no answer" };
                let text = format!(
                    "Request timed out: {what} came from {} in {seconds} seconds", self.server
                );
                Err(StreamError::new(ErrorKind::Timeout, text))
            }
        }
    }

    /// Releases the queue after the last event.
    fn end(&mut self) {
        self.fold.took(self.begun.elapsed());
        self.ended = true;
        self.mailbox = None;
        self.events = VecDeque::new();
    }

    /// The answer so far; complete after the terminal event.
    pub fn partial(&self) -> &AssistantMessage {
        self.fold.message()
    }

    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Reads all remaining events, and returns the complete answer and its error, if any.
    pub fn finish(mut self) -> (AssistantMessage, Option<StreamError>) {
        while self.next_event().is_some() {}
        let fold = std::mem::replace(&mut self.fold, Fold::new(AssistantMessage::default()));
        (fold.into_message(), self.error.take())
    }
}

fn ended_too_early() -> StreamError {
    let text = "the provider's thread ended without a last event";
    StreamError::new(ErrorKind::Protocol, text)
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
