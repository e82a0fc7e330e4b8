//! `--mode mcp --listen`, as a client at the wire sees it.

use crate::agent::{Running, World, wait_until};
use crate::server::PATIENCE;
use crate::world;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const TOKEN: &str = "Authorization: Bearer secret";

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

struct Listening<'w> {
    pi: Running<'w>,
    /// Address of the listener, or path of its socket.
    address: String,
}

impl<'w> Listening<'w> {
    fn start(world: &'w World, words: &str) -> Self {
        let pi = world.pi().words("--mode mcp --model mock/m1").words(words).env("PI_MCP_TOKEN", "secret");
        let pi = pi.spawn();
        pi.wait_until_shown("Clients send the header Authorization: Bearer $PI_MCP_TOKEN\n");
        let shown = pi.shown();
        let line = shown.lines().find_map(|line| line.strip_prefix("Listening at ")).expect("an address");
        let address = line.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.or_else(|| line.strip_prefix("unix:")?.strip_suffix(" (/mcp)"));
        Self { address: address.expect("an address").to_owned(), pi }
    }

    fn connect(&self) -> Box<dyn Stream> {
        if self.address.starts_with('/') {
            let stream = UnixStream::connect(&self.address).expect("connect");
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            return Box::new(stream);
        }
        let stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Box::new(stream)
    }

    /// Sends a request, and gives the response as it begins.
    fn send(&self, method: &str, headers: &[&str], body: &str) -> Response {
        let mut stream = self.connect();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let head = format!(
            "{method} /mcp HTTP/1.1\r\n{host}Connection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        Response::read(stream)
    }

    fn status(&self, method: &str, headers: &[&str], body: &str) -> u16 {
        self.send(method, headers, body).status
    }

    /// Begins a session, and gives the header that names it.
    fn greet(&self, able: &Value) -> String {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": able,
            "clientInfo": {"name": "test", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params});
        let mut response = self.send("POST", &[TOKEN], &request.to_string());
        assert_eq!(response.status, 200);
        assert_eq!(response.last()["result"]["serverInfo"]["name"], "pi");
        format!("Mcp-Session-Id: {}", response.header("mcp-session-id"))
    }

    fn post(&self, session: &str, message: &Value) -> Response {
        self.send("POST", &[TOKEN, session], &message.to_string())
    }

    fn call(&self, session: &str, id: u64, command: &str) -> Response {
        let params =
            json!({"name": "bash", "arguments": {"command": command}, "_meta": {"progressToken": id}});
        self.post(session, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }
}

struct Response {
    status: u16,
    head: String,
    body: BufReader<Box<dyn Stream>>,
    /// The id of the last event.
    id: String,
}

impl Response {
    fn read(stream: Box<dyn Stream>) -> Self {
        let mut body = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(body.read_line(&mut head).expect("a head") > 0, "cut off: {head}");
        }
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Self { status, head, body, id: String::new() }
    }

    fn header(&self, name: &str) -> String {
        let found = self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        found.unwrap_or_else(|| panic!("no {name}: {}", self.head))
    }

    /// The next message of a stream; null at its end.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        while self.body.read_line(&mut line).expect("a line") > 0 {
            if let Some(id) = line.strip_prefix("id: ") {
                self.id = id.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("JSON");
            }
            line.clear();
        }
        Value::Null
    }

    /// The answer, whether it comes alone or in a stream.
    fn last(&mut self) -> Value {
        if self.header("content-type") == "application/json" {
            let mut text = String::new();
            self.body.read_to_string(&mut text).expect("a body");
            return serde_json::from_str(&text).expect("JSON");
        }
        let mut last = Value::Null;
        loop {
            match self.next() {
                Value::Null => return last,
                message => last = message,
            }
        }
    }
}

fn output(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn sessions_begin_work_and_end() {
    let (world, _server) = world([]);
    let pi = Listening::start(&world, "--listen 127.0.0.1:0");
    let (one, two) = (pi.greet(&json!({})), pi.greet(&json!({})));
    assert_ne!(one, two);
    let told = pi.post(&one, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(told.status, 202);
    // An answer that nothing precedes comes alone, otherwise in a stream.
    let mut quick = pi.post(&one, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(quick.header("content-type"), "application/json");
    assert_eq!(quick.last(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let mut streamed = pi.call(&one, 2, "echo under way; until [ -e go ]; do sleep 0.02; done; echo done");
    assert_eq!(streamed.header("content-type"), "text/event-stream");
    assert_eq!(streamed.next()["params"], json!({"progressToken": 2, "progress": 1, "message": "under way"}));
    // Ids are of a session, and used once at a time there.
    assert_eq!(pi.call(&one, 2, "true").status, 400);
    assert_eq!(output(&pi.call(&two, 2, "echo other").last()), "other\n");
    world.write("go", "");
    assert!(output(&streamed.last()).ends_with("done\n"));
    // A call that is cancelled is not answered; the end of the session ends calls, too.
    let mut cancelled = pi.call(&one, 3, "echo under way; sleep 1000");
    assert_eq!(cancelled.next()["params"]["message"], "under way");
    let params = json!({"requestId": 3});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(pi.post(&one, &cancel).status, 202);
    assert_eq!(cancelled.last(), Value::Null);
    let mut ended = pi.call(&one, 4, "echo under way; sleep 1000");
    assert_eq!(ended.next()["params"]["message"], "under way");
    assert_eq!(pi.status("DELETE", &[TOKEN, &one], ""), 204);
    assert_eq!(ended.last(), Value::Null);
    assert_eq!(pi.post(&one, &json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).status, 404);
    assert_eq!(pi.status("DELETE", &[TOKEN, &one], ""), 404);
    // What still runs ends with the program.
    let mut running = pi.call(&two, 6, "echo under way; sleep 1000");
    assert_eq!(running.next()["params"]["message"], "under way");
    let waiting = pi.connect();
    pi.pi.signal("TERM");
    assert_eq!(pi.pi.wait().code(), 143);
    drop((running, waiting));
    assert_eq!(world.processes_left(), Vec::<u32>::new());
}

#[test]
fn who_may_not_connect_is_refused() {
    let (world, _server) = world([]);
    let pi = Listening::start(&world, "--listen localhost:0");
    let session = pi.greet(&json!({}));
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    for (method, headers, body, expected) in [
        ("POST", vec![TOKEN, &session], ping, 200),
        ("POST", vec![TOKEN, &session, "Origin: http://localhost:5173"], ping, 200),
        ("POST", vec![&*session], ping, 401),
        ("POST", vec!["Authorization: Bearer secre", &session], ping, 401),
        ("POST", vec!["Authorization: Basic secret", &session], ping, 401),
        ("POST", vec![TOKEN, &session, "Origin: https://example.com"], ping, 403),
        ("POST", vec![TOKEN, &session, "Origin: null"], ping, 403),
        ("POST", vec![TOKEN, &session, "Host: example.com"], ping, 403),
        ("POST", vec![TOKEN], ping, 400),
        ("POST", vec![TOKEN, "Mcp-Session-Id: other"], ping, 404),
        ("POST", vec![TOKEN, &session, "MCP-Protocol-Version: 1999-01-01"], ping, 400),
        ("POST", vec![TOKEN, &session], "nonsense", 400),
        ("POST", vec![TOKEN, &session], "[]", 400),
        ("POST", vec![TOKEN, &session, "Transfer-Encoding: chunked"], ping, 411),
        ("GET", vec![TOKEN], "", 400),
        ("GET", vec![TOKEN, "Mcp-Session-Id: other"], "", 404),
        ("GET", vec![TOKEN, &session, "Last-Event-ID: 9-9"], "", 400),
        ("OPTIONS", vec![TOKEN], "", 405),
        ("DELETE", vec![TOKEN], "", 400),
    ] {
        assert_eq!(pi.status(method, &headers, body), expected, "{method} {headers:?} {body}");
    }
    let world = World::new();
    for (address, expected) in [
        ("0.0.0.0:0", "only addresses of this machine"),
        ("nowhere", "it must be unix:PATH, or an address with a port"),
        ("unix:/nowhere/at/all", "No such file"),
    ] {
        let outcome = world.pi().args(["--mode", "mcp", "--listen", address]).run();
        assert!(outcome.code() == 1 && outcome.stderr.contains(expected), "{address}: {outcome:?}");
    }
    world.pi().args(["--listen", "127.0.0.1:0", "-p", "x"]).run().stderr_has("--listen requires --mode mcp");
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed() {
    let (world, _server) = world([]);
    let pi = Listening::start(&world, "--listen 127.0.0.1:0");
    let session = pi.greet(&json!({}));
    let get = |last: &str| pi.send("GET", &[TOKEN, &session, &format!("Last-Event-ID: {last}")], "");
    let mut broken = pi.call(&session, 1, "echo one; until [ -e go ]; do sleep 0.02; done; echo two");
    assert_eq!(broken.next()["params"]["message"], "one");
    let id = broken.id.clone();
    drop(broken);
    // While the call runs, and when it is done.
    let mut back = get(&id);
    world.write("go", "");
    assert_eq!(output(&back.last()), "one\ntwo\n");
    let mut again = get(&id);
    assert_eq!(output(&again.last()), "one\ntwo\n");
    assert_eq!(again.next(), Value::Null);
    assert_eq!(get(&back.id).status, 200);
    assert!(get(&back.id).last().is_null());
    // A client of the newest revision can come back before it has got any message.
    let version = "MCP-Protocol-Version: 2025-11-25";
    let params = json!({"name": "bash", "arguments": {"command": "until [ -e on ]; do sleep 0.02; done"}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
    let mut early = pi.send("POST", &[TOKEN, &session, version], &call);
    let mut lines = String::new();
    while !lines.ends_with("\n\n") {
        assert!(early.body.read_line(&mut lines).unwrap() > 0, "cut off: {lines}");
    }
    let id = lines.lines().find_map(|line| line.strip_prefix("id: ")).expect("an id").to_owned();
    assert!(lines.contains("\ndata: \n"), "{lines}");
    drop(early);
    world.write("on", "");
    assert_eq!(get(&id).last()["id"], 2);
    // The end of the session ends its streams.
    let mut news = pi.send("GET", &[TOKEN, &session], "");
    assert_eq!(news.header("content-type"), "text/event-stream");
    assert_eq!(pi.status("DELETE", &[TOKEN, &session], ""), 204);
    assert_eq!(news.next(), Value::Null);
}

#[test]
fn a_rude_client_costs_its_connection_alone() {
    let (world, _server) = world([]);
    let pi = Listening::start(&world, "--listen 127.0.0.1:0");
    let session = pi.greet(&json!({}));
    // One begins a request and stays, one takes nothing of what it is sent, one goes in the middle.
    let mut begun = pi.connect();
    begun.write_all(b"POST /mcp HTTP/1.1\r\nHost: loc").unwrap();
    let mut deaf = pi.call(&session, 1, "yes under way");
    assert_eq!(deaf.next()["params"]["message"], "under way");
    drop(pi.call(&session, 2, "echo under way; until [ -e go ]; do sleep 0.02; done; touch done"));
    assert_eq!(output(&pi.call(&session, 3, "touch go; echo hi").last()), "hi\n");
    // Connections are counted; the next client is served when one has gone.
    let mut idle: Vec<_> = (0..64).map(|_| pi.connect()).collect();
    let refused = idle.iter_mut().any(|stream| {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").is_err() || {
            let mut start = [0; 12];
            // Those that are served wait for the rest of the request.
            stream.write_all(b"\r\n").is_err()
                || (stream.read_exact(&mut start).is_ok() && start.ends_with(b"503"))
        }
    });
    assert!(refused);
    drop(idle);
    let status = || {
        let mut stream = pi.connect();
        stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Response::read(stream).status
    };
    wait_until("there is room again", || status() != 503);
    assert_eq!(output(&pi.call(&session, 4, "echo hi").last()), "hi\n");
    // Of many sessions those that nobody uses end. One whose client listens is used.
    let [first, heard] = [(); 2].map(|()| pi.greet(&json!({})));
    let news = pi.send("GET", &[TOKEN, &heard], "");
    (0..16).for_each(|_| drop(pi.greet(&json!({}))));
    let ping = |session: &str| pi.post(session, &json!({"jsonrpc": "2.0", "id": 5, "method": "ping"})).status;
    assert_eq!((ping(&first), ping(&heard)), (404, 200));
    drop(news);
    drop((begun, deaf));
    pi.pi.signal("TERM");
    assert_eq!(pi.pi.wait().code(), 143);
    assert_eq!(world.processes_left(), Vec::<u32>::new());
}

#[test]
fn questions_come_with_the_call_that_they_are_about() {
    let (world, _server) = world([]);
    let pi = Listening::start(&world, "--listen 127.0.0.1:0 --ask-tools all");
    let session = pi.greet(&json!({"elicitation": {}}));
    let mut call = pi.call(&session, 1, "echo hi");
    let question = call.next();
    assert_eq!(question["method"], "elicitation/create");
    let properties = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let content = json!({properties.keys().next().unwrap(): "Allow"});
    let answer =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}});
    assert_eq!(pi.post(&session, &answer).status, 202);
    assert_eq!(output(&call.last()), "hi\n");
}

#[test]
fn a_socket_is_of_its_user_and_goes_with_the_program() {
    let (world, _server) = world([]);
    let path = world.tmp().join("pi.sock");
    let words = format!("--listen unix:{}", path.display());
    let pi = Listening::start(&world, &words);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let session = pi.greet(&json!({}));
    assert_eq!(output(&pi.call(&session, 1, "echo hi").last()), "hi\n");
    // Another program does not take it over.
    let other = world.pi().words("--mode mcp --model mock/m1").words(&words).run();
    assert!(other.code() == 1 && other.stderr.contains("another program listens there"), "{other:?}");
    // One that was left behind is replaced.
    pi.pi.signal("KILL");
    pi.pi.wait();
    assert!(path.exists());
    let pi = Listening::start(&world, &words);
    pi.greet(&json!({}));
    pi.pi.signal("TERM");
    assert_eq!(pi.pi.wait().code(), 143);
    assert!(!path.exists());
}
