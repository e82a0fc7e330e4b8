//! MCP servers that break every rule, over both transports: the session goes on in each mode, and nothing is left.

use crate::agent::World;
use crate::mcp::{SCRIPT, configure_script};
use crate::screen::Screen;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Name and program of servers that fail before they offer a tool, or in what they offer.
const AT_START: [(&str, &str); 12] = [
    ("ends at once", "exit 0"),
    ("ends with words", "echo oh no >&2; exit 7"),
    ("closes its stdout", "exec >&-; sleep 300"),
    ("closes its stdin", "exec <&-; sleep 300"),
    ("never reads", "sleep 300 | sleep 300"),
    ("eats signals", "trap '' TERM INT HUP PIPE; while :; do sleep 300; done"),
    ("writes garbage", "yes garbage"),
    ("writes bytes without a line", "cat /dev/zero"),
    ("answers what nobody asked", "yes '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}'"),
    ("asks without end", "yes '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}'"),
    ("forks a daemon", "(setsid sleep 300 >/dev/null 2>&1 &); exit 1"),
    ("floods stderr", "cat /dev/zero >&2"),
];

/// Name and an arm of the script, before its usual ones.
const IN_THE_LISTS: [(&str, &str); 4] = [
    (
        "has lists without end",
        r#"*'"method":"tools/list"'*) answer "{\"tools\":[],\"nextCursor\":\"more$id\"}" ;;"#,
    ),
    ("has a list in circles", r#"*'"method":"tools/list"'*) answer '{"tools":[],"nextCursor":"same"}' ;;"#),
    (
        "has tools that are none",
        r#"*'"method":"tools/list"'*) answer '{"tools":[7,{"name":7},{"name":""},{"name":"echo","inputSchema":"no"}]}' ;;"#,
    ),
    (
        "has another list each moment",
        r#"*'"method":"tools/list"'*) answer '{"tools":[]}'; yes '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' ;;"#,
    ),
];

/// Name and what is done on a call.
const ON_A_CALL: [(&str, &str); 12] = [
    ("dies", "kill -9 $$"),
    ("closes its stdout", "exec >&-; sleep 300"),
    ("never answers", ":"),
    ("answers twice", "say one; say two"),
    ("answers another", "answer2=$id; id=77; say one; id=$answer2; say two"),
    ("answers nonsense", r#"answer '{"content":7,"structuredContent":"no","isError":"maybe"}'"#),
    ("answers nothing", "answer null"),
    ("answers an error of nonsense", r#"printf '{"jsonrpc":"2.0","id":%s,"error":7}\n' "$id""#),
    (
        "answers with 100 MB",
        "printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"' $id; head -c 100000000 /dev/zero; echo",
    ),
    (
        "floods progress",
        r#"yes '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'$id',"progress":1,"message":"x"}}' | head -n 100000; say ok"#,
    ),
    (
        "asks for what nobody may give",
        r#"for m in sampling/createMessage elicitation/create roots/list no/such; do printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":[]}\n' $m $m; done; say ok"#,
    ),
    ("leaves a process", "(setsid sleep 300 >/dev/null 2>&1 &); say ok"),
];

/// Every program, with its name.
fn programs() -> Vec<(String, String, &'static str)> {
    let at_start =
        AT_START.iter().map(|(name, program)| (format!("{name} at its start"), (*program).to_owned(), ""));
    let in_lists = IN_THE_LISTS.iter().map(|(name, arm)| {
        ((*name).to_owned(), SCRIPT.replace("case $line in", &format!("case $line in\n{arm}")), "")
    });
    let on_call =
        ON_A_CALL.iter().map(|(name, code)| (format!("{name} on a call"), SCRIPT.to_owned(), *code));
    at_start.chain(in_lists).chain(on_call).collect()
}

/// A world whose model calls the tool of the server once.
fn called(program: &str, on_call: &str) -> (World, Server) {
    let (world, server) =
        world([Reply::tool("c", "mcp__x__echo", &json!({"text": "a"})), Reply::text("done")]);
    let script = world.home().join("server.sh");
    fs::write(&script, program).unwrap();
    let fields = json!({"exposure": "direct", "timeout": 0.5});
    configure_script(&world, "x", &[&script.to_string_lossy(), on_call], &fields);
    (world, server)
}

#[test]
fn no_server_stops_a_script() {
    // Both modes take turns: they share all but their output.
    for ((name, program, on_call), words) in
        programs().into_iter().zip(["-p hi", "--json hi"].into_iter().cycle())
    {
        let (world, server) = called(&program, on_call);
        let done = world.pi().words("--model mock/m1").words(words).run();
        assert_eq!(done.code(), 0, "{name} {words}: {}", done.stderr);
        assert!(done.stdout.contains("done"), "{name} {words}: {}", done.stdout);
        assert_eq!(server.requests().len(), 2, "{name} {words}");
        assert_eq!(world.processes_left(), [0u32; 0], "{name} {words}");
    }
}

#[test]
fn no_server_stops_a_client() {
    for (name, program, on_call) in programs() {
        let (world, _server) = called(&program, on_call);
        let mut client = crate::extension::rpc::client(&world);
        client.prompt("hi").unwrap_or_else(|error| panic!("{name}: {error}"));
        client.wait_until_settled().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(client.last_text().unwrap().as_deref(), Some("done"), "{name}");
        assert!(client.close().unwrap().success(), "{name}");
        assert_eq!(world.processes_left(), [0u32; 0], "{name}");
    }
}

#[test]
fn no_server_stops_a_terminal() {
    for (name, program, on_call) in programs() {
        let (world, _server) = called(&program, on_call);
        let screen = Screen::start(world.pi().words("--model mock/m1").args(["hello there"]));
        screen.wait_until(&name, |text| text.contains("done"));
        screen.quit();
        assert_eq!(world.processes_left(), [0u32; 0], "{name}");
    }
}

/// What a server over HTTP sends for every request, whatever it is.
const RAW: [(&str, &str, bool); 11] = [
    ("closes", "", false),
    ("speaks another protocol", "220 mail.example ESMTP\r\n", false),
    ("is an error page", "HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops", false),
    ("is a page", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>", false),
    ("is empty", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n", false),
    ("leads in circles", "HTTP/1.1 302 Found\r\nlocation: /mcp\r\ncontent-length: 0\r\n\r\n", false),
    (
        "leads to a file",
        "HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n",
        false,
    ),
    (
        "wants a sign-in at no address",
        "HTTP/1.1 401 No\r\nwww-authenticate: Bearer resource_metadata=\"x\"\r\ncontent-length: 0\r\n\r\n",
        false,
    ),
    ("sends a head without end", "HTTP/1.1 200 OK\r\nx: ", true),
    ("sends a body without end", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", true),
    (
        "sends events without end",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n",
        true,
    ),
];

/// Answers each request with `head`, and zeros after that if `floods`. Gives the port.
fn serve(head: &'static str, floods: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || drop(answer(&stream, head, floods)));
        }
    });
    port
}

fn answer(stream: &TcpStream, head: &str, floods: bool) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(count) = line.to_lowercase().strip_prefix("content-length: ") {
            length = count.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    match floods {
        true => loop {
            stream.write_all(&[b'0'; 65_536])?;
        },
        false => Ok(()),
    }
}

#[test]
fn no_server_over_http_stops_a_script() {
    for (name, head, floods) in RAW {
        let (world, server) = world([Reply::tool("c", "mcp__x__echo", &json!({})), Reply::text("done")]);
        let entry = json!({"url": format!("http://127.0.0.1:{}/mcp", serve(head, floods)), "exposure": "direct", "timeout": 2});
        world.write_config("mcp.json", &json!({"mcpServers": {"x": entry}}).to_string());
        let done = world.pi().words("--model mock/m1 -p hi").run();
        assert_eq!(done.code(), 0, "{name}: {}", done.stderr);
        assert_eq!(done.stdout, "done\n", "{name}");
        assert!(done.stderr.contains("\"x\""), "{name}: {}", done.stderr);
        assert_eq!(server.requests().len(), 2, "{name}");
    }
}
