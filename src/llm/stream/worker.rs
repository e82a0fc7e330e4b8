//! The provider thread: sends the request, reads the answer, and converts it to events.

use super::mailbox::Writer;
use super::optional::Fitting;
use super::retry::Next;
use super::thread::Thread;
use crate::base::cancel::CancelToken;
use crate::llm::body::{Body as Fields, Payload};
use crate::llm::context::Context;
use crate::llm::event::{AssistantEvent, ErrorKind, Info, StreamError};
use crate::llm::event_stream::{Broken, EventStreamDecoder, MESSAGE_LIMIT};
use crate::llm::http::{self, Answer, Client, Request, Secrets};
use crate::llm::message::{AssistantMessage, now_ms};
use crate::llm::model::Model;
use crate::llm::options::{Header, StreamOptions, Tap};
use crate::llm::protocol::{Api, Call, Decoder, Frame, Gone, HttpRequest, Protocol, Source};
use crate::llm::secret::EventHider;
use crate::llm::size;
use crate::llm::sse::{EVENT_LIMIT, SseDecoder, TooLarge};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of events passed on at once: one read can contain thousands of small events.
const BATCH_LIMIT: usize = 512;
/// Maximum size of an answer with its framing, in bytes; some protocols add much framing to each word.
const BODY_MAX: u64 = 1 << 30;
/// Size of a read, in bytes.
const READ_SIZE: usize = 64 << 10;
/// Limits for reading the body of an error: its size in bytes, and the wait for each part.
const ERROR_BODY_LIMIT: usize = 64 << 10;
const ERROR_BODY_PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Job {
    pub client: Client,
    pub api: Api,
    pub model: Arc<Model>,
    pub context: Context,
    pub options: StreamOptions,
    pub stop: CancelToken,
    pub whole: OnWhole,
}

/// Called with the complete answer before its last event is delivered.
pub(super) type OnWhole = Arc<Mutex<Option<Box<dyn FnOnce(&AssistantMessage) + Send>>>>;

/// Why the thread stops before the end of the answer.
enum Stop {
    Gone,
    Failed(StreamError),
}

impl From<StreamError> for Stop {
    fn from(error: StreamError) -> Self {
        Self::Failed(error)
    }
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<TooLarge> for Stop {
    fn from(_: TooLarge) -> Self {
        let megabytes = EVENT_LIMIT >> 20;
        let text = format!("the server sent an event of more than {megabytes} MB");
        Self::Failed(StreamError::new(ErrorKind::Protocol, text))
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        let (kind, text) = match broken {
            Broken::TooLarge => {
                let megabytes = (MESSAGE_LIMIT >> 20) + 1;
                let text = format!("the server sent a message of more than {megabytes} MB");
                (ErrorKind::Protocol, text)
            }
            Broken::Malformed => {
                let text = "the server sent a message that is no part of an event stream";
                (ErrorKind::Protocol, text.to_owned())
            }
            Broken::Checksum => {
                let text = "connection lost: the answer was damaged on its way (wrong checksum)";
                (ErrorKind::Transport, text.to_owned())
            }
            Broken::Cut => {
                let text = "connection lost: the answer was cut short (Truncated event message received.)";
                (ErrorKind::Transport, text.to_owned())
            }
        };
        Self::Failed(StreamError::new(kind, text))
    }
}

pub(super) fn run(job: &Job, writer: Writer) {
    let mut secrets = Secrets::new(&job.options.vault);
    if let Some(key) = &job.options.api_key {
        secrets.add(key.expose());
    }
    let mut outlet = Outlet { writer, batch: Vec::new(), hider: EventHider::new(job.options.vault.set()) };
    let result = catch_unwind(AssertUnwindSafe(|| match &job.api {
        Api::Wire(protocol) => speak(job, protocol.as_ref(), &mut secrets, &mut outlet),
        Api::Source(source) => play(job, source.as_ref(), &mut outlet),
    }));
    let mut error = match result {
        Ok(Ok(())) | Ok(Err(Stop::Gone)) => return,
        Ok(Err(Stop::Failed(error))) => error,
        Err(panic) => {
            let why = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let why = why.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = why.unwrap_or_default();
            let text = format!("internal error in the protocol {}: {why}", job.model.api);
            StreamError::new(ErrorKind::Protocol, text)
        }
    };
    if let Some(id) = error.request_id.as_ref()
        && !error.message.contains(id)
    {
        error.message.push_str(&format!(" [request {id}]"));
    }
    error.message = secrets.hide(&error.message).into_owned();
    for text in error.extra.iter_mut().flat_map(|extra| extra.values_mut()) {
        secrets.hide_value(text);
    }
    outlet.batch.push(AssistantEvent::Error(error));
    let _ = outlet.flush(); // without a reader there is nobody to tell
}

/// A buffer of events for the handle.
struct Outlet {
    writer: Writer,
    batch: Vec<AssistantEvent>,
    hider: EventHider,
}

impl Outlet {
    /// Passes on all buffered events. Waits while the reader is slow.
    fn flush(&mut self) -> Result<(), Gone> {
        self.hider.pass(&mut self.batch);
        self.writer.put(&mut self.batch)
    }

    fn flush_if_full(&mut self) -> Result<(), Gone> {
        match self.batch.len() {
            BATCH_LIMIT.. => self.flush(),
            _ => Ok(()),
        }
    }
}

/// Runs a source of events without HTTP.
fn play(job: &Job, source: &dyn Source, outlet: &mut Outlet) -> Result<(), Stop> {
    let call = Call { model: &job.model, context: &job.context, options: &job.options, cancel: &job.stop };
    source.run(&call, &mut |event| {
        outlet.batch.push(event);
        outlet.flush()
    });
    Ok(())
}

/// Sends the request of a wire protocol and decodes the answer.
fn speak(job: &Job, protocol: &dyn Protocol, secrets: &mut Secrets, outlet: &mut Outlet) -> Result<(), Stop> {
    let Job { model, context, options, .. } = job;
    // What nobody waits for any more is neither changed nor sent.
    if job.stop.is_cancelled() {
        return Err(StreamError::aborted().into());
    }
    let retouched = retouched(job, secrets);
    let options = retouched.as_ref().unwrap_or(options);
    let HttpRequest { url, mut headers, mut body } = protocol.request(model, context, options)?;
    if let Some(tap) = options.tap.as_ref().filter(|tap| tap.wants_body())
        && let Some(changed) = tap.body(&body.to_bytes()?)
    {
        body = Fields::default();
        body.merge(changed.iter());
    }
    for (name, value) in &options.headers {
        secrets.mask_header(name);
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if let Some(value) = value {
            headers.push((name.clone(), value.clone()));
        }
    }
    let mut fitting = Fitting::new(model, options, &url, &mut headers, &mut body);
    let mut thread = Thread::new(options);
    let mut payload = None;
    let mut attempt = 0;
    let mut answer = loop {
        let payload_sent = match &mut payload {
            Some(payload) => payload,
            none => {
                let shaped = thread.shape(&url, &headers, &body)?;
                none.insert(shaped.as_ref().unwrap_or(&body).render()?)
            }
        };
        size::check(model, context, payload_sent.len())?;
        let mut signed = headers.clone();
        protocol.sign(&url, &mut signed, payload_sent, options, now_ms())?;
        secrets.add_headers(&signed);
        let (body_sent, long) = match &*payload_sent {
            Payload::Whole(bytes) => (bytes.as_slice(), None),
            Payload::Long(long) => (&[][..], Some(long)),
        };
        let request = Request {
            headers: signed,
            body: body_sent,
            long,
            secrets: secrets.clone(),
            env: &options.env,
            is_unnamed: options
                .headers
                .iter()
                .any(|(name, value)| value.is_none() && name.eq_ignore_ascii_case("user-agent")),
            ..Request::new(&url)
        };
        let sent = job.client.send(&request, &job.stop);
        if let (Ok(answer), Some(tap)) = (&sent, &options.tap) {
            tap.answered(answer.status, &answer.headers);
        }
        let (error, advice) = match sent {
            Ok(answer) if (200..300).contains(&answer.status) => break answer,
            Ok(answer) => {
                let advice = http::header(&answer.headers, "x-should-retry").map(str::to_owned);
                let (mut error, said) = refusal(protocol, answer);
                if thread.is_refused(&error, &said)
                    || fitting.adapt(&mut error, &said, &mut headers, &mut body)
                {
                    payload = None;
                    continue;
                }
                (error, advice)
            }
            Err(error) => (error, None),
        };
        match options.resend.after(attempt, error, advice.as_deref()) {
            Next::Fail(error) => return Err(error.into()),
            Next::Wait(time) if job.stop.wait_timeout(time) => {
                return Err(StreamError::aborted().into());
            }
            Next::Wait(_) => attempt += 1,
        }
    };
    drop((body, payload));
    outlet.batch.push(AssistantEvent::Start);
    let (refused, sent) = thread.settle();
    outlet.batch.extend(refused.map(AssistantEvent::info));
    if let (Some(sent), Api::Wire(protocol)) = (sent, &job.api) {
        let (protocol, model, options) = (protocol.clone(), model.clone(), options.clone());
        let keep = move |reply: &_| sent.answered(reply, &*protocol, &model, &options);
        *job.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(keep));
    }
    let notice = fitting.settle();
    if notice.is_some() {
        outlet.batch.push(AssistantEvent::info(Info { notice, ..Info::default() }));
    }
    outlet.flush()?;
    let request_id = http::request_id(&answer.headers);
    let decoder = protocol.decoder(model, context, options);
    let mut reader = Reader { decoder, outlet, tap: options.tap.as_deref() };
    let read = reader.read(&mut answer);
    // From here on a cancellation, which may follow the last event immediately, does not close the
    // connection: it can serve the next request.
    let rest = answer.detach();
    read.map_err(|stop| match stop {
        Stop::Failed(mut error) => {
            error.request_id = error.request_id.or(request_id);
            protocol.diagnose(&mut error, true);
            Stop::Failed(error)
        }
        Stop::Gone => Stop::Gone,
    })?;
    outlet.flush()?;
    rest.drain();
    Ok(())
}

/// The options with the headers that the tap makes of the configured ones; `None` if these stay.
fn retouched(job: &Job, secrets: &mut Secrets) -> Option<StreamOptions> {
    let Job { model, options, .. } = job;
    let tap = options.tap.as_ref()?;
    let of_model = model.headers.iter().flatten();
    let of_model = of_model.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned)));
    let mut configured: Vec<Header> = Vec::new();
    for header in of_model.chain(options.headers.iter().cloned()) {
        put(&mut configured, header);
    }
    let values = configured.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    secrets.add_headers(&values.collect::<Vec<_>>());
    let shown =
        |(name, value): &Header| (name.clone(), value.as_ref().map(|value| secrets.hide(value).into_owned()));
    let shown: Vec<Header> = configured.iter().map(shown).collect();
    let mut headers = Vec::new();
    for header in tap.headers(&shown)? {
        // A secret that came back as it was shown stays.
        let at = shown.iter().position(|known| *known == header);
        put(&mut headers, at.and_then(|at| configured.get(at)).cloned().unwrap_or(header));
    }
    for (name, _) in configured {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            headers.push((name, None));
        }
    }
    Some(StreamOptions { headers, ..StreamOptions::clone(options) })
}

/// Adds a header, in place of one with its name.
fn put(headers: &mut Vec<Header>, header: Header) {
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&header.0));
    headers.push(header);
}

/// The error for an answer with an error status, and the start of its body.
fn refusal(protocol: &dyn Protocol, mut answer: Answer) -> (StreamError, String) {
    let said = answer.read_some(ERROR_BODY_LIMIT, ERROR_BODY_PATIENCE);
    let mut error = http::status_error(answer.status, &answer.headers, &said, &answer.target);
    let said = String::from_utf8_lossy(&said).into_owned();
    protocol.explain(&mut error, &answer.headers, &said);
    protocol.diagnose(&mut error, false);
    (error, said)
}

/// Splits a body into frames for a decoder.
struct Reader<'a> {
    decoder: Box<dyn Decoder>,
    outlet: &'a mut Outlet,
    tap: Option<&'a dyn Tap>,
}

/// The format of a body, recognized by its first bytes, since content types are often wrong.
enum Body {
    Unknown,
    Events(SseDecoder),
    Messages(EventStreamDecoder),
    Json(Vec<u8>),
    Page(Vec<u8>),
}

impl Body {
    fn guess(bytes: &[u8]) -> Self {
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => Self::Unknown,
            Some(b'{' | b'[') => Self::Json(Vec::new()),
            Some(b'<') => Self::Page(Vec::new()),
            Some(0) => Self::Messages(EventStreamDecoder::default()),
            Some(_) => Self::Events(SseDecoder::new()),
        }
    }
}

impl Reader<'_> {
    /// Reads until the decoder is done, and ends the decoder. The last events remain in the outlet.
    fn read(&mut self, answer: &mut Answer) -> Result<(), Stop> {
        let mut body = Body::Unknown;
        let mut buffer = vec![0; READ_SIZE];
        let mut lost = None;
        let mut total = 0;
        while !self.decoder.is_done() {
            let bytes = match answer.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => &buffer[..count],
                Err(error) => {
                    lost = Some(error);
                    break;
                }
            };
            total += bytes.len() as u64;
            if total > BODY_MAX {
                let text = format!("the server sent more than {} MB for one answer", BODY_MAX >> 20);
                return Err(StreamError::new(ErrorKind::Protocol, text).into());
            }
            if let Body::Unknown = body {
                body = Body::guess(bytes);
            }
            match &mut body {
                Body::Unknown => {}
                Body::Events(events) => {
                    events.feed(bytes, |event, data| self.event(event, data))?;
                    self.outlet.flush()?;
                }
                Body::Messages(messages) => {
                    messages.feed(bytes, |event, data| self.event(event, data))?;
                    self.outlet.flush()?;
                }
                Body::Json(text) if text.len() + bytes.len() > EVENT_LIMIT => {
                    return Err(TooLarge.into());
                }
                Body::Json(text) => text.extend_from_slice(bytes),
                Body::Page(page) if page.len() > ERROR_BODY_LIMIT => break,
                Body::Page(page) => page.extend_from_slice(bytes),
            }
        }
        match (body, lost) {
            (Body::Page(page), _) => {
                let page = http::html_text(&String::from_utf8_lossy(&page));
                let url = &answer.target.url;
                let text = format!("{url} is not a model's API: it answers with {page}; check the base URL");
                Err(StreamError::new(ErrorKind::Protocol, text).into())
            }
            (Body::Json(text), None) => {
                let text = String::from_utf8_lossy(&text);
                self.decoder.frame(Frame::Body(&text), &mut self.outlet.batch)?;
                self.decoder.end(&mut self.outlet.batch)?;
                Ok(())
            }
            // If the decoder accepts the end, the connection broke after a complete answer.
            (Body::Events(_) | Body::Messages(_), Some(lost)) => {
                let ended = self.decoder.end(&mut self.outlet.batch);
                ended.map_err(|_| lost.into())
            }
            (_, Some(lost)) => Err(lost.into()),
            (Body::Events(mut events), None) => {
                match events.end(|event, data| self.event(event, data)) {
                    // An event without a final blank line that cannot be decoded was cut off.
                    Err(Stop::Failed(error)) if error.kind == ErrorKind::Protocol => {
                        let server = answer.target.server();
                        let text = format!("connection lost: the answer of {server} was cut short");
                        return Err(StreamError::new(ErrorKind::Transport, text).into());
                    }
                    last => last?,
                }
                self.decoder.end(&mut self.outlet.batch)?;
                Ok(())
            }
            (Body::Messages(messages), None) => {
                if !self.decoder.is_done() {
                    messages.end()?;
                }
                self.decoder.end(&mut self.outlet.batch)?;
                Ok(())
            }
            (Body::Unknown, None) => {
                self.decoder.end(&mut self.outlet.batch)?;
                Ok(())
            }
        }
    }

    fn event(&mut self, event: &str, data: &str) -> Result<(), Stop> {
        // Some servers send empty events to keep the connection open.
        if data.is_empty() || self.decoder.is_done() {
            return Ok(());
        }
        if let Some(tap) = self.tap {
            tap.event(data);
        }
        let frame = Frame::Sse { event, data };
        self.decoder.frame(frame, &mut self.outlet.batch)?;
        self.outlet.flush_if_full()?;
        Ok(())
    }
}
