//! The whole way from `stream` to the last event, against scripted servers.
//!
//! The protocol is a toy: `+text` is a delta, `.` is the last event, `!text` is an error of the
//! provider, `panic` is a bug in the decoder.

mod answer;
mod hostile;
mod network;
mod silence;

use super::*;
use crate::base::env::Env;
use crate::llm::body::Body;
use crate::llm::message::StopReason;
use crate::llm::protocol::{Call, Decoder, Frame, Gone, HttpRequest, Protocol, Source};
use crate::llm::secret::Secret;
use crate::llm::testing::{Connection, ROOT, Received, Server};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

struct Toy {
    url: String,
    /// Number of items in the list of the body, of 1 kB each.
    items: usize,
}

#[derive(Default)]
struct ToyDecoder {
    begun: bool,
    done: bool,
}

impl Protocol for Toy {
    fn request<'a>(
        &self,
        _: &'a Model,
        _: &'a Context,
        options: &'a StreamOptions,
    ) -> Result<HttpRequest<'a>, StreamError> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if let Some(key) = &options.api_key {
            headers.push(("authorization".to_owned(), format!("Bearer {}", key.expose())));
        }
        let mut body = Body::default();
        body.set("ask", &1);
        if self.items > 0 {
            let items = self.items;
            body.list("list", move |list| {
                list.extend((0..items).map(|item| format!("{item} {}", "x".repeat(1000))));
                Ok(())
            });
        }
        Ok(HttpRequest { url: self.url.clone(), headers, body })
    }

    fn decoder(&self, _: &Model, _: &Context, _: &StreamOptions) -> Box<dyn Decoder> {
        Box::new(ToyDecoder::default())
    }

    fn explain(&self, error: &mut StreamError, _: &[(String, String)], body: &str) {
        if body.contains("toys are sold out") {
            error.message.push_str(", come back tomorrow");
        }
    }
}

impl Decoder for ToyDecoder {
    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        let data = match frame {
            Frame::Sse { data, .. } => data,
            Frame::Body(body) => {
                self.done = true;
                return self.frame(Frame::Sse { event: "", data: &format!("+{body}") }, out);
            }
        };
        match data.as_bytes() {
            [b'+', ..] => {
                if !std::mem::replace(&mut self.begun, true) {
                    out.push(AssistantEvent::TextStart { index: 0 });
                }
                let delta = data[1..].to_owned();
                out.push(AssistantEvent::TextDelta { index: 0, delta });
            }
            b"." => self.done = true,
            b"panic" => panic!("a bug"),
            [b'!', ..] => return Err(StreamError::new(ErrorKind::Provider, &data[1..])),
            _ => {
                return Err(StreamError::new(ErrorKind::Protocol, format!("what is {data:?}?")));
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<AssistantEvent>) -> Result<(), StreamError> {
        if !self.done {
            let text = "the stream ended without its last event";
            return Err(StreamError::new(ErrorKind::Transport, text));
        }
        if self.begun {
            out.push(AssistantEvent::TextEnd { index: 0, signature: None });
        }
        out.push(AssistantEvent::Done { reason: StopReason::Stop });
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

/// What a client needs to ask a server.
struct Asker {
    client: Client,
    toy: Arc<Toy>,
    model: Arc<Model>,
    options: StreamOptions,
    cancel: CancelToken,
}

impl Asker {
    fn new(url: impl Into<String>) -> Self {
        Self::with_env(url, &[])
    }

    fn with_env(url: impl Into<String>, env: &[(&str, &str)]) -> Self {
        let settings: Vec<_> =
            env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self {
            client: Client::new(Env::of([]).with(&settings)),
            toy: Arc::new(Toy { url: url.into(), items: 0 }),
            model: Arc::new(Model {
                id: "toy-1".to_owned(),
                api: "toy".to_owned(),
                provider: "toys".to_owned(),
                base_url: "http://model.test/v1".to_owned(),
                ..Model::default()
            }),
            options: StreamOptions {
                api_key: Some(Secret::new("sk-canary-0123456789")),
                // Far beyond what any test needs: a hang fails instead of lasting.
                clocks: Clocks {
                    first: Some(Duration::from_secs(20)),
                    idle: Some(Duration::from_secs(20)),
                    is_chosen: false,
                },
                ..StreamOptions::default()
            },
            cancel: CancelToken::new(),
        }
    }

    fn start(&self) -> StreamHandle {
        self.start_api(Api::Wire(self.toy.clone()))
    }

    fn start_api(&self, api: Api) -> StreamHandle {
        let (client, options) = (self.client.clone(), self.options.clone());
        start_with(client, api, &self.model, Context::default(), options, &self.cancel)
    }

    fn ask(&self) -> Outcome {
        Outcome::of(self.start())
    }

    /// Waits until no provider thread is left: each holds the protocol.
    #[track_caller]
    fn settle(&self) {
        for _ in 0..10_000 {
            if Arc::strong_count(&self.toy) == 1 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("a provider thread is left");
    }
}

/// What came of a request; its events have the form they must have.
#[derive(Debug)]
struct Outcome {
    text: String,
    reason: StopReason,
    error: Option<StreamError>,
}

impl Outcome {
    #[track_caller]
    fn of(mut handle: StreamHandle) -> Self {
        let mut events = Vec::new();
        while let Some(event) = handle.next_event() {
            events.push(event);
        }
        assert_eq!(handle.next_event(), None);
        let is_terminal =
            |event: &AssistantEvent| matches!(event, AssistantEvent::Done { .. } | AssistantEvent::Error(_));
        let terminals = events.iter().filter(|event| is_terminal(event)).count();
        assert!(terminals == 1 && is_terminal(events.last().unwrap()), "{events:?}");
        let starts = events.iter().filter(|event| **event == AssistantEvent::Start).count();
        assert!(starts == 1 && events[0] == AssistantEvent::Start || events.len() == 1, "{events:?}");

        let (message, error) = handle.finish();
        assert_eq!((message.api.as_str(), message.model.as_str()), ("toy", "toy-1"));
        assert_eq!(message.error_message, error.as_ref().map(|error| error.message.clone()));
        assert!(message.timestamp > 0);
        let shown = format!("{error:?}");
        assert!(!shown.contains("canary") && !shown.chars().any(char::is_control), "{shown}");
        let text = message.content.first().and_then(|block| block.as_text());
        Self { text: text.unwrap_or_default().to_owned(), reason: message.stop_reason, error }
    }

    #[track_caller]
    fn whole(self, text: &str) {
        assert_eq!((self.text.as_str(), self.reason, &self.error), (text, StopReason::Stop, &None));
    }

    /// Checks kind and text of the error, which must hold all of `parts`.
    #[track_caller]
    fn failed(self, kind: ErrorKind, parts: &[&str]) -> StreamError {
        let error = self.error.expect("an error");
        assert_eq!(error.kind, kind, "{error:?}");
        for part in parts {
            assert!(error.message.contains(part), "{part:?} in {:?}", error.message);
        }
        error
    }
}

const ANSWER: &str = "data: +Hel\n\ndata: +lo\n\n: ping\n\ndata: .\n\n";

fn chunked(pieces: &[&str]) -> String {
    let mut body = String::from(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        body += &format!("{:x}\r\n{piece}\r\n", piece.len());
    }
    body + "0\r\n\r\n"
}

fn sized(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn unsized_(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n\r\n{body}")
}

/// A server that gives the same answer to every request and keeps the connection.
fn serve(answer: impl Into<Vec<u8>>) -> Server {
    let answer = answer.into();
    Server::start(move |connection| while connection.request().is_some() && connection.send(&answer) {})
}

/// A server that gives the same answer to every request and closes the connection.
fn serve_and_close(answer: impl Into<Vec<u8>>) -> Server {
    let answer = answer.into();
    Server::start(move |connection| {
        if connection.request().is_some() {
            connection.send(&answer);
        }
    })
}

fn secure(server: &Server, host: &str) -> String {
    format!("https://{host}:{}/", server.address().port())
}

fn serve_tls(answer: impl Into<Vec<u8>>) -> Server {
    let answer = answer.into();
    Server::start(move |connection| {
        if connection.tls() {
            while connection.request().is_some() && connection.send(&answer) {}
        }
    })
}

/// A server that remembers what it was asked.
fn listening(
    answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static,
) -> (Server, Arc<Mutex<Vec<Received>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let server = Server::start({
        let asked = asked.clone();
        move |connection| {
            while let Some(request) = connection.request() {
                asked.lock().unwrap().push(request.clone());
                if !connection.send(answer(&request)) {
                    break;
                }
            }
        }
    });
    (server, asked)
}

#[test]
fn an_answer_comes_as_events() {
    let server = serve(chunked(&[ANSWER]));
    let asker = Asker::new(server.url("/"));
    let mut handle = asker.start();
    let mut events = Vec::new();
    while let Some(event) = handle.next_event() {
        events.push(event);
    }
    let delta = |text: &str| AssistantEvent::TextDelta { index: 0, delta: text.to_owned() };
    let expected = [
        AssistantEvent::Start,
        AssistantEvent::TextStart { index: 0 },
        delta("Hel"),
        delta("lo"),
        AssistantEvent::TextEnd { index: 0, signature: None },
        AssistantEvent::Done { reason: StopReason::Stop },
    ];
    assert_eq!(events, expected);
    assert_eq!(handle.partial().content[0].as_text(), Some("Hello"));
    drop(handle);
    asker.settle();
}

#[test]
fn every_framing_and_every_split_gives_the_same_answer() {
    let bodies = [
        ANSWER.to_owned(),
        ANSWER.replace('\n', "\r\n"),
        ANSWER.replace('\n', "\r"),
        ANSWER.replace("data: ", "data:"),
        format!("\u{feff}{ANSWER}"),
        ANSWER.trim_end().to_owned(),
        format!("{ANSWER}data: what follows the last event is nobody's\n\n"),
    ];
    for body in &bodies {
        for answer in [chunked(&[body]), sized(body), unsized_(body)] {
            let server = serve_and_close(answer);
            Asker::new(server.url("/")).ask().whole("Hello");
        }
        let bytes = chunked(&body.split_inclusive(|_| true).collect::<Vec<_>>());
        let server = Server::start(move |connection| {
            if connection.request().is_some() {
                for byte in bytes.as_bytes().chunks(1) {
                    connection.send(byte);
                }
            }
        });
        Asker::new(server.url("/")).ask().whole("Hello");
    }
}

#[test]
fn gzip_is_unpacked() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(ANSWER.as_bytes()).unwrap();
    let body = packer.finish().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
    for cut in [body.len(), body.len() - 12] {
        let server = serve_and_close([head.as_bytes(), &body[..cut]].concat());
        let outcome = Asker::new(server.url("/")).ask();
        match cut == body.len() {
            true => outcome.whole("Hello"),
            false => assert!(outcome.error.is_some() || outcome.text == "Hello"),
        }
    }
}

#[test]
fn many_deltas_arrive_in_order_at_a_slow_reader() {
    let body: String = (0..5000).map(|n| format!("data: +{n} \n\n")).collect();
    let server = serve(chunked(&[&body, "data: .\n\n"]));
    let asker = Asker::new(server.url("/"));
    let mut handle = asker.start();
    for _ in 0..20 {
        handle.next_event();
        std::thread::sleep(Duration::from_millis(1));
    }
    let (message, error) = handle.finish();
    assert_eq!(error, None);
    let expected: String = (0..5000).map(|n| format!("{n} ")).collect();
    assert_eq!(message.content[0].as_text(), Some(expected.as_str()));
}

#[test]
fn a_request_that_cannot_be_made_ends_with_its_error() {
    let asker = Asker::new("");
    let failed = StreamHandle::failed(&asker.model, StreamError::aborted());
    assert_eq!(Outcome::of(failed).reason, StopReason::Aborted);
}

struct Scripted(Vec<AssistantEvent>);

impl Source for Scripted {
    fn run(&self, _: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>) {
        for event in &self.0 {
            if emit(event.clone()).is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_source_is_held_to_the_form_of_a_stream() {
    let delta = AssistantEvent::TextDelta { index: 0, delta: "a".to_owned() };
    let text = AssistantEvent::TextStart { index: 0 };
    let done = AssistantEvent::Done { reason: StopReason::Stop };
    let failure = AssistantEvent::Error(StreamError::new(ErrorKind::Provider, "no"));
    let rows = [
        (vec![AssistantEvent::Start, text.clone(), delta.clone(), done.clone()], "a", None),
        // Without a start, with two of them, and with events after the end.
        (vec![text.clone(), delta.clone(), done.clone()], "a", None),
        (
            vec![
                AssistantEvent::Start,
                AssistantEvent::Start,
                text.clone(),
                AssistantEvent::Start,
                delta.clone(),
                done.clone(),
                delta.clone(),
                done.clone(),
            ],
            "a",
            None,
        ),
        (vec![failure.clone()], "", Some("no")),
        (vec![text.clone(), delta.clone(), failure], "a", Some("no")),
        (vec![text, delta], "a", Some("without a last event")),
        (vec![], "", Some("without a last event")),
    ];
    for (events, text, error) in rows {
        let asker = Asker::new("");
        let api = Api::Source(Arc::new(Scripted(events)));
        let outcome = Outcome::of(asker.start_api(api));
        assert_eq!(outcome.text, text);
        match error {
            Some(part) => assert!(outcome.error.unwrap().message.contains(part)),
            None => assert_eq!(outcome.error, None),
        }
    }
}

#[test]
fn hosts_in_urls() {
    let rows = [
        ("http://localhost:8080/v1", Some("localhost")),
        ("https://me:pw@[::1]:1/x", Some("::1")),
        ("https://api.test", Some("api.test")),
        ("https://api.test?x=@y", Some("api.test")),
        ("https://", None),
        ("api.test", None),
        ("", None),
    ];
    for (url, host) in rows {
        assert_eq!(host_of(url), host, "{url}");
    }
}
