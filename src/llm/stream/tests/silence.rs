//! Servers that say nothing, or nothing more: cancel, dropped handles, the two clocks.

use super::*;

/// A script, and the text that is there before it says nothing more.
type Silence = (fn(&mut Connection), &'static str);

/// Servers that never come to an end. The last thing each does is wait for the client to leave.
const SILENCES: [Silence; 7] = [
    (|connection| connection.wait_for_close(), ""),
    (
        |connection| {
            connection.request();
            connection.wait_for_close();
        },
        "",
    ),
    (
        |connection| {
            connection.request();
            connection.send("HTTP/1.1 200 OK\r\nx: y");
            connection.wait_for_close();
        },
        "",
    ),
    (
        |connection| {
            connection.request();
            connection.begin();
            connection.wait_for_close();
        },
        "",
    ),
    (
        |connection| {
            connection.request();
            connection.begin();
            connection.send("data: +Hel\n\ndata: +l");
            connection.wait_for_close();
        },
        "Hel",
    ),
    (
        |connection| {
            connection.request();
            connection.begin();
            connection.send("data: +Hel\n\n");
            while connection.send(": ping\n\nevent: ping\ndata:\n\n") {
                std::thread::sleep(Duration::from_millis(1));
            }
        },
        "Hel",
    ),
    (
        |connection| {
            connection.request();
            connection.send("HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\nabc");
            connection.wait_for_close();
        },
        "",
    ),
];

/// N3: a cancel ends a request in any state, the socket is closed, the text so far stays.
#[test]
fn a_cancel_ends_whatever_is_waited_for() {
    for (number, (script, text)) in SILENCES.into_iter().enumerate() {
        let (left, gone) = mpsc::channel();
        let (came, there) = mpsc::channel();
        let server = Server::start(move |connection| {
            came.send(()).unwrap();
            script(connection);
            let _ = left.send(());
        });
        let asker = Asker::new(server.url("/"));
        let mut handle = asker.start();
        there.recv().unwrap();
        while handle.partial().content.first().and_then(|block| block.as_text()) != Some(text)
            && !text.is_empty()
        {
            handle.next_event();
        }
        let canceller = std::thread::spawn({
            let cancel = asker.cancel.clone();
            move || cancel.cancel()
        });
        let mut last = None;
        while let Some(event) = handle.next_event() {
            last = Some(event);
        }
        canceller.join().unwrap();
        assert_eq!(last, Some(AssistantEvent::Error(StreamError::aborted())), "silence {number}");
        let (message, error) = handle.finish();
        assert_eq!((message.stop_reason, error), (StopReason::Aborted, Some(StreamError::aborted())));
        let got = message.content.first().and_then(|block| block.as_text());
        assert_eq!(got.unwrap_or_default(), text, "silence {number}");
        asker.settle();
        gone.recv().unwrap();
    }
}

#[test]
fn a_request_after_its_cancel_sends_nothing() {
    let server = serve(sized(ANSWER));
    let asker = Asker::new(server.url("/"));
    asker.cancel.cancel();
    let outcome = asker.ask();
    assert_eq!((outcome.error, outcome.reason), (Some(StreamError::aborted()), StopReason::Aborted));
    asker.settle();
}

#[test]
fn a_dropped_handle_ends_the_request() {
    for (script, _) in SILENCES {
        let (left, gone) = mpsc::channel();
        let server = Server::start(move |connection| {
            script(connection);
            let _ = left.send(());
        });
        let asker = Asker::new(server.url("/"));
        let mut handle = asker.start();
        while server.accepted() == 0 {
            std::thread::yield_now();
        }
        drop(handle.next_event_within(Duration::from_millis(20)));
        drop(handle);
        asker.settle();
        gone.recv().unwrap();
    }
}

impl StreamHandle {
    /// For silent servers: an event if one comes soon.
    fn next_event_within(&mut self, patience: Duration) -> Option<AssistantEvent> {
        self.mailbox.as_ref()?.ready().recv_timeout(patience).ok()?;
        self.next_event()
    }
}

/// N3: both clocks count events. Bytes, comments and pings are none.
#[test]
fn a_silent_server_runs_out_of_time() {
    for (number, (script, text)) in SILENCES.into_iter().enumerate() {
        let server = Server::start(script);
        let mut asker = Asker::new(server.url("/"));
        let soon = Some(Duration::from_millis(50));
        let late = Some(Duration::from_secs(20));
        asker.options.clocks = match text.is_empty() {
            true => Clocks { first: soon, idle: late, is_chosen: false },
            false => Clocks { first: late, idle: soon, is_chosen: false },
        };
        let outcome = asker.ask();
        assert_eq!(outcome.text, text, "silence {number}");
        outcome.failed(ErrorKind::Timeout, &["timed out", "model.test", "0.05 seconds"]);
        asker.settle();
    }
}

#[test]
fn a_server_on_this_machine_may_take_its_time_for_the_first_event() {
    let server = Server::start(|connection| {
        connection.request();
        std::thread::sleep(Duration::from_millis(30));
        connection.begin();
        connection.send(ANSWER);
    });
    let mut asker = Asker::new(server.url("/"));
    asker.options.clocks.first = Some(Duration::from_millis(1));
    let mut model = Model::clone(&asker.model);
    model.base_url = server.url("/v1");
    asker.model = Arc::new(model);
    asker.ask().whole("Hello");
}

/// Comments are no events, before the first one either.
#[test]
fn a_time_that_was_chosen_counts_for_a_server_on_this_machine() {
    let server = Server::start(|connection| {
        connection.request();
        connection.begin();
        while connection.send(": ping\n\n") {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let mut asker = Asker::new(server.url("/"));
    asker.options.clocks.first = Some(Duration::from_millis(50));
    asker.options.clocks.is_chosen = true;
    let mut model = Model::clone(&asker.model);
    model.base_url = server.url("/v1");
    asker.model = Arc::new(model);
    asker.ask().failed(ErrorKind::Timeout, &["timed out", "0.05 seconds"]);
    asker.settle();
}

#[test]
fn a_cancel_ends_a_tls_handshake_and_a_silent_proxy() {
    let (came, there) = mpsc::channel();
    let server = Server::start(move |connection| {
        connection.take(1);
        came.send(()).unwrap();
        connection.wait_for_close();
    });
    let proxy = server.url("");
    for asker in [
        Asker::new(secure(&server, "localhost")),
        Asker::with_env("https://model.test/", &[("HTTPS_PROXY", &proxy)]),
        Asker::with_env("http://model.test/", &[("ALL_PROXY", &proxy.replace("http", "socks5h"))]),
    ] {
        let handle = asker.start();
        there.recv().unwrap();
        asker.cancel.cancel();
        assert_eq!(Outcome::of(handle).error, Some(StreamError::aborted()));
        asker.settle();
    }
}
