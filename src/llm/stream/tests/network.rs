//! The way to the server: connections, TLS, proxies, redirects.

use super::*;
use crate::base::testing::{TempDir, TempFile};

/// N4
#[test]
fn what_is_said_when_there_is_no_connection() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let asker = Asker::new(format!("http://{free}/v1"));
    let place = free.to_string();
    let wanted = ["connection refused", place.as_str(), "server running"];
    asker.ask().failed(ErrorKind::Transport, &wanted);

    let asker = Asker::new("http://no-such-host..invalid/v1");
    asker.ask().failed(ErrorKind::Transport, &["no-such-host..invalid", "not found", "base URL"]);

    for url in [
        "",
        "nonsense",
        "/v1",
        "ftp://a.com",
        "http://",
        "http://me:canary@a b/?key=canary",
        "https://sk-canary-0123456789@/v1",
    ] {
        Asker::new(url).ask().failed(ErrorKind::Request, &["not a URL"]);
    }

    let closed = Server::start(|_| {});
    let outcome = Asker::new(closed.url("/")).ask();
    outcome.failed(ErrorKind::Transport, &["connection lost", &closed.address().to_string()]);

    let babble = Server::start(|connection| {
        connection.request();
        connection.send("SSH-2.0-OpenSSH_9.6\r\n\r\n");
    });
    let outcome = Asker::new(babble.url("/")).ask();
    outcome.failed(ErrorKind::Transport, &["did not answer in HTTP", "https://"]);
}

#[test]
fn a_header_that_cannot_be_sent_is_an_error_of_the_request() {
    let mut asker = Asker::new("http://127.0.0.1:1/");
    asker.options.api_key = Some(Secret::new("sk-canary\n-0123456789"));
    asker.ask().failed(ErrorKind::Request, &["cannot be made", "key"]);
}

#[test]
fn a_root_of_ones_own_is_trusted_beside_the_others() {
    let root = TempFile::create("root.pem", ROOT);
    let server = serve_tls(chunked(&[ANSWER]));
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        for host in ["localhost", "127.0.0.1"] {
            let asker = Asker::with_env(secure(&server, host), &[(variable, root.path())]);
            asker.ask().whole("Hello");
        }
    }
    let asker = Asker::new(secure(&server, "localhost"));
    asker.ask().failed(ErrorKind::Request, &["not trusted", "SSL_CERT_FILE", "localhost"]);

    let asker = Asker::with_env(secure(&server, "localhost"), &[("SSL_CERT_FILE", "/no/such.pem")]);
    asker.ask().failed(ErrorKind::Request, &["not trusted", "SSL_CERT_FILE=/no/such.pem: No such file"]);
}

#[test]
fn a_folder_of_roots_is_trusted() {
    let folder = TempDir::create();
    folder.write("root.0", ROOT);
    folder.write("README", "not a certificate");
    let server = serve_tls(chunked(&[ANSWER]));
    let folders = format!("/no/such/folder:{}", folder.path().display());
    let asker = Asker::with_env(secure(&server, "localhost"), &[("SSL_CERT_DIR", &folders)]);
    asker.ask().whole("Hello");
}

#[test]
fn plain_http_on_a_tls_port_and_the_other_way_round() {
    let answering = Server::start(|connection| {
        connection.take(1);
        connection.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let outcome = Asker::new(secure(&answering, "127.0.0.1")).ask();
    outcome.failed(ErrorKind::Request, &["does not speak TLS", "http://"]);

    let tls = serve_tls(sized(ANSWER));
    let outcome = Asker::new(tls.url("/")).ask();
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Transport);
}

#[test]
fn a_connection_serves_several_requests() {
    for answer in [chunked(&[ANSWER]), chunked(&[&format!("{ANSWER}data: more\n\n")]), sized(ANSWER)] {
        let server = serve(answer);
        let asker = Asker::new(server.url("/"));
        for _ in 0..3 {
            asker.ask().whole("Hello");
            asker.settle(); // the connection is back when the thread has ended
        }
        assert_eq!(server.accepted(), 1);
    }
}

#[test]
fn a_cancel_after_the_answer_leaves_the_connection_alone() {
    let server = serve(chunked(&[ANSWER]));
    let asker = Asker::new(server.url("/"));
    asker.ask().whole("Hello");
    asker.settle();
    asker.cancel.cancel();
    let again = Asker { cancel: CancelToken::new(), ..asker };
    again.ask().whole("Hello");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced_once() {
    let server = Server::start(|connection| {
        connection.request();
        connection.send(sized(ANSWER));
        // The next request is read and not answered.
        connection.request();
    });
    let asker = Asker::new(server.url("/"));
    for expected in 1..4 {
        asker.ask().whole("Hello");
        asker.settle();
        assert_eq!(server.accepted(), expected);
    }

    let server = Server::start(|connection| {
        connection.request();
        if connection.number == 0 {
            connection.send(sized(ANSWER));
            connection.request();
        }
    });
    let asker = Asker::new(server.url("/"));
    asker.ask().whole("Hello");
    asker.settle();
    asker.ask().failed(ErrorKind::Transport, &["connection lost", "no answer"]);
    assert_eq!(server.accepted(), 2);
}

#[test]
fn redirects_stay_on_the_same_server() {
    let (server, asked) = listening(|request| {
        let to = match request.line.as_str() {
            "POST /old HTTP/1.1" => "/v1/new",
            "POST /v1/new HTTP/1.1" => "newer",
            "POST /loop HTTP/1.1" => "/loop",
            _ => return sized(ANSWER).into_bytes(),
        };
        format!("HTTP/1.1 307 Moved\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
    });
    Asker::new(server.url("/old")).ask().whole("Hello");
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    let last = asked.last().unwrap();
    assert_eq!((asked.len(), last.line.as_str()), (3, "POST /v1/newer HTTP/1.1"));
    assert_eq!(last.body, b"{\"ask\":1}");

    Asker::new(server.url("/loop")).ask().failed(ErrorKind::Request, &["redirects in a row"]);
}

/// The list of a long body in order, whole, each time it is sent.
#[test]
fn a_body_too_long_for_memory_arrives_as_a_short_one() {
    let (server, asked) = listening(|request| match request.line.as_str() {
        "POST /old HTTP/1.1" => "HTTP/1.1 307 Moved\r\nlocation: /new\r\ncontent-length: 0\r\n\r\n".into(),
        _ => sized(ANSWER).into_bytes(),
    });
    const ITEMS: usize = 20_000;
    let mut asker = Asker::new(server.url("/old"));
    asker.toy = Arc::new(Toy { url: server.url("/old"), items: ITEMS });
    for _ in 0..2 {
        asker.ask().whole("Hello");
        asker.settle();
    }
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    for request in asked.iter() {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let list = body["list"].as_array().unwrap().iter();
        let numbers =
            list.map(|item| item.as_str().unwrap().split_once(' ').unwrap().0.parse::<usize>().unwrap());
        assert!(numbers.eq(0..ITEMS));
    }
}

#[test]
fn a_long_body_is_cut_off_by_a_cancel() {
    let cancel = CancelToken::new();
    let server = Server::start({
        let cancel = cancel.clone();
        move |connection| {
            connection.head();
            cancel.cancel();
            connection.wait_for_close();
        }
    });
    let toy = Arc::new(Toy { url: server.url("/"), items: 100_000 });
    let asker = Asker { toy, cancel, ..Asker::new(server.url("/")) };
    asker.ask().failed(ErrorKind::Aborted, &["aborted"]);
    asker.settle();
}

#[test]
fn redirects_elsewhere_are_refused_and_see_no_key() {
    let (other, asked) = listening(|_| sized(ANSWER).into_bytes());
    let elsewhere = other.url("/v1?key=canary");
    for status in ["301", "302", "303", "307", "308"] {
        let head = format!("HTTP/1.1 {status} Moved\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
        let server = serve(head);
        let error = Asker::new(server.url("/")).ask();
        let error = error.failed(ErrorKind::Request, &["redirects to", &other.url("/v1"), "base URL"]);
        assert_eq!(error.status, Some(status.parse().unwrap()));
    }
    // A POST that would become a GET is not followed either.
    let server = serve("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n");
    Asker::new(server.url("/")).ask().failed(ErrorKind::Request, &["redirects to", "/login"]);
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_proxy_gets_a_connect_and_its_credentials_show_nowhere() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let root = TempFile::create("proxy.pem", ROOT);
    let server = Server::start({
        let asked = asked.clone();
        move |connection| {
            let Some(connect) = connection.request() else {
                return;
            };
            asked.lock().unwrap().push(connect.clone());
            connection.send("HTTP/1.1 200 Connected\r\n\r\n");
            if connect.line.contains(":443 ") && !connection.tls() {
                return;
            }
            while connection.request().is_some() && connection.send(sized(ANSWER)) {}
        }
    });
    let proxy = format!("http://me:canary-password@{}", server.address());
    let env = [("HTTPS_PROXY", proxy.as_str()), ("HTTP_PROXY", &proxy), ("SSL_CERT_FILE", root.path())];
    let asker = Asker::with_env("http://model.test:8000/v1", &env);
    for _ in 0..2 {
        asker.ask().whole("Hello");
        asker.settle();
    }
    let connects = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(connects.len(), 1, "the way through the proxy is kept open");
    assert_eq!(connects[0].line, "CONNECT model.test:8000 HTTP/1.1");
    assert!(connects[0].header("proxy-authorization").unwrap().starts_with("Basic "));
    assert_eq!(connects[0].header("authorization"), None);

    // Through the proxy to a certificate for another name: the tunnel stands, TLS does not.
    let asker = Asker::with_env("https://model.test/v1", &env);
    asker.ask().failed(ErrorKind::Request, &["model.test", "another name"]);
    assert_eq!(asked.lock().unwrap()[0].line, "CONNECT model.test:443 HTTP/1.1");

    let refusing = serve_and_close("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    let place = refusing.address().to_string();
    let proxy = format!("http://me:canary-password@{place}");
    let asker = Asker::with_env("https://model.test/v1", &[("https_proxy", &proxy)]);
    asker.ask().failed(ErrorKind::Transport, &["407", &place, "model.test:443", "HTTPS_PROXY"]);

    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let proxy = format!("http://me:canary-password@{gone}");
    let asker = Asker::with_env("https://model.test/v1", &[("https_proxy", &proxy)]);
    asker.ask().failed(ErrorKind::Transport, &["through the proxy", &gone, "model.test:443", "NO_PROXY"]);
}

#[test]
fn a_socks_proxy_is_told_the_name() {
    let server = Server::start(|connection| {
        assert_eq!(connection.take(2), [5, 1]);
        connection.take(1);
        connection.send([5, 0]);
        assert_eq!(connection.take(5), [5, 1, 0, 3, 10]);
        assert_eq!(connection.take(10), b"model.test");
        assert_eq!(connection.take(2), 8000u16.to_be_bytes());
        connection.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        connection.request();
        connection.send(sized(ANSWER));
    });
    let proxy = format!("socks5h://{}", server.address());
    let asker = Asker::with_env("http://model.test:8000/v1", &[("ALL_PROXY", &proxy)]);
    asker.ask().whole("Hello");
}

#[test]
fn servers_on_this_machine_are_reached_without_a_proxy() {
    let server = serve(sized(ANSWER));
    let asker = Asker::with_env(server.url("/"), &[("HTTP_PROXY", "http://127.0.0.1:1")]);
    asker.ask().whole("Hello");
}
