//! What answers mean: error statuses, bodies that are no stream, errors inside one, and what is logged.

use super::*;
use crate::base::testing::TempFile;

#[test]
fn what_an_error_status_says() {
    let rows = [
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-canary-0123456789.","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ErrorKind::Auth,
            "401 Incorrect API key provided: •••. (invalid_api_key) (the key was refused; see: pi docs providers)",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ErrorKind::Provider,
            "529 Overloaded (overloaded_error)",
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"too long"}}}"#,
            ErrorKind::Provider,
            "400 Provider returned error: too long",
        ),
        (400, r#"{"error":"plain"}"#, ErrorKind::Provider, "400 plain"),
        (400, r#"{"message":"deep\u001b[31m red\n line"}"#, ErrorKind::Provider, "400 deep [31m red line"),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
            ErrorKind::Provider,
            "422 field required",
        ),
        (
            500,
            r#"[{"error":{"code":500,"message":"Internal","status":"INTERNAL"}}]"#,
            ErrorKind::Provider,
            "500 Internal",
        ),
        (500, r#"{"unknown":"shape"}"#, ErrorKind::Provider, r#"500 {"unknown":"shape"}"#),
        (503, "  upstream connect error\r\n", ErrorKind::Provider, "503 upstream connect error"),
        (413, "", ErrorKind::Provider, "413 status code (no body)"),
        (
            403,
            "<html><head><TITLE>\n Access denied </TITLE></head><body>x</body>",
            ErrorKind::Auth,
            "403 Access denied (an HTML page)",
        ),
        (
            502,
            "<!DOCTYPE html><h1 class=x>Bad <b>Gateway</b>",
            ErrorKind::Provider,
            "502 Bad <b>Gateway (an HTML page)",
        ),
        (502, "<html>", ErrorKind::Provider, "502 an HTML page without a title"),
    ];
    for (status, body, kind, expected) in rows {
        let server = Server::start(move |connection| {
            connection.request();
            connection.answer(
                &format!("{status} Whatever"),
                "x-request-id: req_1\r\nretry-after: 2.5\r\n",
                body,
            );
        });
        let error = Asker::new(server.url("/")).ask().failed(kind, &[]);
        assert_eq!(error.message, format!("{expected} [request req_1]"));
        assert_eq!((error.status, error.retry_after_ms), (Some(status), Some(2500)));
        assert_eq!(error.request_id.as_deref(), Some("req_1"));
    }
}

#[test]
fn the_protocol_may_say_more_about_an_error() {
    let server = serve("HTTP/1.1 429 No\r\ncontent-length: 17\r\n\r\ntoys are sold out");
    let error = Asker::new(server.url("/")).ask();
    let error = error.failed(ErrorKind::Provider, &[]);
    assert_eq!(error.message, "429 toys are sold out, come back tomorrow");
}

#[test]
fn a_missing_page_names_what_was_asked() {
    let server = serve("HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno!");
    let url = server.url("/v1/chat?key=canary");
    let error = Asker::new(url).ask();
    error.failed(ErrorKind::Provider, &["404 no!", &server.url("/v1/chat"), "model's name"]);
}

#[test]
fn an_answer_that_is_no_stream_is_told_by_its_first_bytes() {
    let json = |kind: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 14\r\n\r\n\n {{\"whole\": 1}}")
    };
    for kind in ["application/json", "text/event-stream", "text/plain"] {
        let server = serve(json(kind));
        Asker::new(server.url("/")).ask().whole("\n {\"whole\": 1}");
    }
    let mislabelled =
        sized(ANSWER).replace("content-length", "content-type: application/json\r\ncontent-length");
    Asker::new(serve(mislabelled).url("/")).ask().whole("Hello");

    let page = sized("\n<!doctype html><title>Welcome</title><p>Sign in</p>");
    let server = serve_and_close(page);
    let outcome = Asker::new(server.url("/ui")).ask();
    outcome.failed(ErrorKind::Protocol, &[&server.url("/ui"), "Welcome (an HTML page)", "base URL"]);

    let server = serve(sized(""));
    Asker::new(server.url("/")).ask().failed(ErrorKind::Transport, &["without its last event"]);
}

#[test]
fn errors_inside_the_stream_keep_what_came_before() {
    let rows = [
        ("!overloaded: sk-canary-0123456789", ErrorKind::Provider, "overloaded: •••"),
        ("what", ErrorKind::Protocol, "what is \"what\"?"),
        ("panic", ErrorKind::Protocol, "internal error in the protocol toy: a bug"),
    ];
    for (data, kind, expected) in rows {
        let body = format!("data: +Hel\n\ndata: {data}\n\ndata: .\n\n");
        let server =
            serve_and_close(chunked(&[&body]).replace("content-type", "request-id: req_2\r\ncontent-type"));
        let asker = Asker::new(server.url("/"));
        let outcome = asker.ask();
        assert_eq!(outcome.text, "Hel");
        let error = outcome.failed(kind, &[]);
        // What went wrong on this side has nothing to do with the request's name.
        let name = match data {
            "panic" => "",
            _ => " [request req_2]",
        };
        assert_eq!(error.message, format!("{expected}{name}"));
        asker.settle();
    }
}

#[test]
fn headers_of_the_options_come_last() {
    let (server, asked) = listening(|_| sized(ANSWER).into_bytes());
    let mut asker = Asker::new(server.url("/"));
    let set = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    asker.options.headers = vec![
        set("Authorization", None),
        set("X-Extra", Some("1")),
        set("Content-Type", Some("application/other")),
    ];
    asker.ask().whole("Hello");
    asker.options.headers = vec![set("user-agent", Some("me"))];
    asker.ask().whole("Hello");
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(asked[0].header("x-extra"), Some("1"));
    assert_eq!(asked[0].header("content-type"), Some("application/other"));
    assert!(asked[0].header("user-agent").unwrap().starts_with(concat!(
        "pi/",
        env!("CARGO_PKG_VERSION"),
        " ("
    )));
    assert_eq!(asked[1].header("user-agent"), Some("me"));
    assert_eq!(asked[1].header("authorization"), Some("Bearer sk-canary-0123456789"));
}

#[test]
fn the_debug_log_has_everything_but_secrets() {
    let log = TempFile::create("debug.log", "");
    let pieces = ["data: +Your key is sk-can", "ary-0123456789, ", "isn't it\n\ndata: .\n\n"];
    let server = serve(chunked(&pieces).replace("content-type", "set-cookie: canary\r\ncontent-type"));
    let url = server.url("/v1?key=canary&alt=sse").replace("http://", "http://canary:canary@");
    let asker = Asker::with_env(url, &[("PI_DEBUG_HTTP", log.path())]);
    asker.ask();
    asker.settle();
    Asker::with_env("http://127.0.0.1:1/", &[("PI_DEBUG_HTTP", log.path())]).ask();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let wanted = [
        "POST http://127.0.0.1:",
        "/v1?key=•••&alt=sse",
        "authorization: •••",
        "{\"ask\":1}",
        "answer: 200",
        "set-cookie: •••",
        "data: +Your key is •••, isn't it",
        "data: .",
        "failed: connection error",
    ];
    for part in wanted {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!text.contains("canary"), "{text}");

    let asker = Asker::with_env("http://127.0.0.1:1/", &[("PI_DEBUG_HTTP", "/no/such/folder/log")]);
    asker.ask().failed(ErrorKind::Request, &["PI_DEBUG_HTTP", "/no/such/folder/log"]);
}
