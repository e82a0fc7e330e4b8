//! Answers that are cut, flood, or end without a word.

use super::*;
use crate::base::testing::TempFile;
use crate::llm::stream::measure::{ANSWER_MAX, BLOCK_BYTES, CALLS_MAX};

/// N1: an answer that is cut anywhere is an error, or whole; it never stops cleanly too early.
#[test]
fn a_cut_answer_is_never_taken_for_a_whole_one() {
    for answer in [chunked(&["data: +Hel\n\n", "data: +lo\n\ndata: .\n\n"]), sized(ANSWER), unsized_(ANSWER)]
    {
        for reset in [false, true] {
            let bytes = answer.clone().into_bytes();
            let cuts = bytes.len();
            let server = Server::start(move |connection| {
                let request = match reset {
                    true => connection.head(), // the body stays unread: the close is a reset
                    false => connection.request(),
                };
                let Some(request) = request else { return };
                let cut: usize = request.line.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
                connection.send(&bytes[..cut]);
            });
            let client = Asker::new("").client;
            for cut in 0..=cuts {
                let asker = Asker { client: client.clone(), ..Asker::new(server.url(&format!("/{cut}"))) };
                let outcome = asker.ask();
                match &outcome.error {
                    None => outcome.whole("Hello"),
                    Some(error) => {
                        assert_eq!(error.kind, ErrorKind::Transport, "{error:?}");
                        assert!("Hello".starts_with(&outcome.text), "{outcome:?}");
                        assert_eq!(outcome.reason, StopReason::Error);
                    }
                }
            }
        }
    }
}

/// N1c
#[test]
fn a_tls_connection_that_ends_without_a_word_is_a_cut() {
    let root = TempFile::create("cut.pem", ROOT);
    for (answer, whole) in [
        (unsized_("data: +Hel\n\n"), false),
        (unsized_(ANSWER), true),
        (sized(&format!("{ANSWER} "))[..60].to_owned(), false),
    ] {
        let server = Server::start(move |connection| {
            if connection.tls() && connection.request().is_some() {
                connection.send(&answer);
            }
        });
        let asker = Asker::with_env(secure(&server, "localhost"), &[("SSL_CERT_FILE", root.path())]);
        let outcome = asker.ask();
        match whole {
            true => outcome.whole("Hello"),
            false => assert_eq!(outcome.error.unwrap().kind, ErrorKind::Transport),
        }
    }
}

/// N5: comments without end do not pile up; the client leaves when it has enough.
#[test]
fn floods_are_bounded() {
    let empty = "data:\n\n: x\n\nevent: y\n\n".repeat(1000);
    let server = Server::start(move |connection| {
        connection.request();
        connection.begin();
        for _ in 0..400 {
            connection.send(&empty);
        }
        connection.send(ANSWER);
    });
    Asker::new(server.url("/")).ask().whole("Hello");

    let line = "x".repeat(1 << 20);
    let server = Server::start(move |connection| {
        connection.request();
        connection.begin();
        connection.send("data: +");
        while connection.send(&line) {}
    });
    Asker::new(server.url("/")).ask().failed(ErrorKind::Protocol, &["more than 64 MB"]);
}

#[test]
fn a_large_or_endless_error_page_is_read_in_part() {
    let page = format!("<html><title>Down</title>{}", "x".repeat(5 << 20));
    let server = serve_and_close(sized(&page).replace("200 OK", "500 Oops"));
    let error = Asker::new(server.url("/")).ask().failed(ErrorKind::Provider, &[]);
    assert_eq!(error.message, "500 Down (an HTML page)");

    let server = Server::start(|connection| {
        connection.request();
        connection.send("HTTP/1.1 500 Oops\r\n\r\n");
        while connection.send("word ".repeat(1000)) {}
    });
    let error = Asker::new(server.url("/")).ask().failed(ErrorKind::Provider, &["500 word word"]);
    assert!(error.message.len() < 4100);
}

#[test]
fn an_event_stream_is_told_by_its_first_byte_and_never_taken_for_whole_when_it_is_not() {
    use crate::llm::event_stream::event;
    let answer = |bytes: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len());
        let whole = [head.as_bytes(), bytes].concat();
        let server = Server::start(move |connection| {
            connection.request();
            connection.send(&whole);
        });
        Asker::new(server.url("/")).ask()
    };
    let whole = [event("x", "+Hel"), event("x", "+lo"), event("x", ".")].concat();
    answer(&whole).whole("Hello");
    let cut = &whole[..whole.len() - 1];
    answer(cut).failed(ErrorKind::Transport, &["cut short"]);
    let mut damaged = whole.clone();
    damaged[whole.len() - 5] ^= 1;
    answer(&damaged).failed(ErrorKind::Transport, &["damaged", "checksum"]);
    let text = [&event("x", "+a")[..], b"no message at all"].concat();
    answer(&text).failed(ErrorKind::Transport, &["checksum"]);
}

/// However small or large the pieces are, the end comes by itself and the connection is closed.
#[test]
fn an_answer_without_end_is_refused() {
    let (left, gone) = mpsc::channel();
    let server = Server::start(move |connection| {
        connection.request();
        connection.begin();
        let event = format!("data: +{}\n\n", "x".repeat(1 << 20));
        while connection.send(&event) {}
        left.send(()).unwrap();
    });
    let asker = Asker::new(server.url("/"));
    let outcome = asker.ask();
    assert_eq!(outcome.text.len(), ANSWER_MAX - (1 << 20));
    outcome.failed(ErrorKind::Protocol, &["more than 64 MB"]);
    gone.recv().unwrap();
    asker.settle();
}

#[test]
fn blocks_and_calls_without_end_are_refused() {
    let call = |index| AssistantEvent::ToolCallStart { index, id: "c".into(), name: "bash".into() };
    let mut measure = Measure::default();
    assert!((0..CALLS_MAX).all(|index| measure.add(&call(index)).is_ok()));
    let error = measure.add(&call(CALLS_MAX)).unwrap_err();
    assert!(error.message.ends_with("more than 1000 tool calls"), "{error}");
    assert!(!crate::llm::classify::classify(&error).is_passing(), "it is not asked for again");
    let mut measure = Measure::default();
    let text = |index| AssistantEvent::TextStart { index };
    let first = (0..).find(|&index| measure.add(&text(index)).is_err());
    assert_eq!(first, Some(ANSWER_MAX / BLOCK_BYTES));
}
