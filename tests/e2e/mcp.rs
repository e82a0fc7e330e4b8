//! Servers of the Model Context Protocol: scripts of `sh`, and servers on loopback.

use crate::agent::{World, lines};
use crate::screen::{ENTER, ESCAPE, Screen};
use crate::server::{Reply, Request, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const PRINT: [&str; 4] = ["--model", "mock/m1", "-p", "go"];

/// A server in `sh`. `$1` is what it does on `tools/call`, with `$id` as the request's id.
pub const SCRIPT: &str = r#"
echo started >> "$HOME/started"
tool() { printf '{"name":"%s","description":"%s","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}' "$1" "$2"; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
  printf '%s\n' "$line" >> "$HOME/seen"
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"},"instructions":"Says things\nand more"}';;
    *'"method":"tools/list","params":{}'*) answer "{\"tools\":[$(tool echo 'Says it again')],\"nextCursor\":\"2\"}";;
    *'"method":"tools/list"'*) answer "{\"tools\":[$(tool shout 'Says it loudly')]}";;
    *'"method":"tools/call"'*) eval "$1";;
  esac
done
"#;

/// Configures the server `name`, with more fields than its command.
pub fn configure(world: &World, name: &str, on_call: &str, fields: &Value) {
    let script = world.home().join("server.sh");
    fs::write(&script, SCRIPT).unwrap();
    configure_script(world, name, &[&script.to_string_lossy(), on_call], fields);
}

pub fn configure_script(world: &World, name: &str, args: &[&str], fields: &Value) {
    let path = world.agent_dir().join("mcp.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|_| r#"{"mcpServers": {}}"#.into());
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let mut entry = json!({"command": "sh", "args": args});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    config["mcpServers"][name] = entry;
    fs::write(path, config.to_string()).unwrap();
}

fn declared(request: &Request) -> String {
    let tools = request.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    names.join(" ")
}

fn home_file(world: &World, name: &str) -> String {
    fs::read_to_string(world.home().join(name)).unwrap_or_default()
}

#[test]
fn servers_are_added_listed_and_removed() {
    let (world, _server) = world([]);
    let pi = |words: &str| world.pi().words(words).run();
    let added = pi("mcp add one --env KEY=a=b --cwd . --description words --exposure direct -- sh -c true");
    added.success().stdout_has("Added the global MCP server \"one\"");
    pi("mcp add one -- sh -c").success().stdout_has("Replaced");
    pi("mcp add web --url http://127.0.0.1:1/mcp --bearer-token-env-var TOKEN --oauth-callback-port 80 -l")
        .success();
    let config: Value =
        serde_json::from_str(&fs::read_to_string(world.agent_dir().join("mcp.json")).unwrap()).unwrap();
    assert_eq!(config, json!({"mcpServers": {"one": {"command": "sh", "args": ["-c"]}}}));
    let project: Value = serde_json::from_str(&world.read(".pi/mcp.json")).unwrap();
    let web = json!({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
        "oauth": {"callbackPort": 80}});
    assert_eq!(project["mcpServers"]["web"], web);
    for (words, expected) in [
        ("mcp add", "needs a name"),
        ("mcp add x", "needs a name"),
        ("mcp add x --url http://h -- y", "needs a name"),
        ("mcp add x --header A=b -- y", "--header is for servers over HTTP"),
        ("mcp add x --env A=b --url http://h", "--env is for programs"),
        ("mcp add x --env A -- y", "--env takes KEY=VALUE"),
        ("mcp add x --exposure all -- y", "\"exposure\" must be one of"),
        ("mcp add a.b -- y", "letters, digits"),
        ("mcp add x --wrong -- y", "Unknown option --wrong"),
        ("mcp remove two", "There is no global MCP server \"two\""),
        ("mcp remove web", "try with --local"),
        ("mcp test on", "Did you mean \"one\"?"),
        ("mcp fly", "Unknown mcp command \"fly\""),
    ] {
        let outcome = pi(words);
        assert!(outcome.stderr.contains(expected), "{words}: {}", outcome.stderr);
        assert!(!outcome.status.success(), "{words}");
    }
    pi("mcp remove one").success();
    pi("mcp remove -l web").success();
    pi("mcp list").success().stdout_has("There is no MCP server in");
    pi("mcp").success().stdout_has("Usage:");
}

#[test]
fn a_list_connects_to_every_server() {
    let (world, _server) = world([]);
    configure(&world, "good", "say hi", &json!({"toolExposure": {"sh*": "hidden"}}));
    configure(&world, "off", "say hi", &json!({"enabled": false}));
    configure_script(&world, "dead", &["-c", "echo gone >&2; exit 4"], &json!({}));
    let outcome = world.pi().words("mcp list --json").run();
    assert_eq!(outcome.status.code(), Some(1));
    let list: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let good = &list["servers"][0];
    assert_eq!((&good["state"], &good["scope"]), (&json!("connected"), &json!("global")));
    assert_eq!(good["tools"], json!(["echo", "shout"]));
    assert_eq!(good["toolExposure"], json!({"shout": "hidden"}));
    assert_eq!(
        (&list["servers"][1]["state"], &list["servers"][1]["enabled"]),
        (&json!("disabled"), &json!(false))
    );
    let error = list["servers"][2]["error"].as_str().unwrap();
    assert_eq!(error, "the server ended with exit code 4:\ngone");
    assert!(fs::read_to_string(world.agent_dir().join("mcp.log")).unwrap().contains("[dead] stderr gone"));
    // What is off can be tried.
    world.pi().words("mcp test off").run().success().stdout_has("echo: Says it again");
}

#[test]
fn a_direct_tool_is_declared_at_once_and_its_result_told() {
    let call = Reply::tool("c", "mcp__one__echo", &json!({"text": "x"}));
    let (world, server) = world([call, Reply::text("done")]);
    let on_call = r#"say "key=$OPENAI_API_KEY own=$OWN pwd=${PWD##*/}""#;
    configure(&world, "one", on_call, &json!({"exposure": "direct", "env": {"OWN": "${FROM}"}}));
    let pi = world.pi().args(PRINT).env("OPENAI_API_KEY", "sk-secret-0123456789").env("FROM", "here");
    pi.run().success().stdout_is("done\n");
    let requests = server.requests();
    assert_eq!(declared(&requests[0]), "read bash edit write mcp__one__echo mcp__one__shout");
    assert_eq!(requests[1].last_text(), "key= own=here pwd=work");
    let seen = home_file(&world, "seen");
    assert!(
        seen.contains(
            r#""protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"pi""#
        )
    );
    assert!(seen.contains(r#""name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":"#), "{seen}");
}

#[test]
fn a_search_declares_what_fits() {
    let (world, server) = world([
        Reply::tool("s", "tool_search", &json!({"query": "loudly"})),
        Reply::tool("c", "mcp__one__shout", &json!({"text": "x"})),
        Reply::text("done"),
    ]);
    configure(&world, "one", "say LOUD", &json!({"exposure": "deferred"}));
    world.pi().args(PRINT).run().success();
    let requests = server.requests();
    assert_eq!(declared(&requests[0]), "read bash edit write tool_search");
    assert_eq!(declared(&requests[1]), "read bash edit write tool_search mcp__one__shout");
    let prompt = requests[0].messages()[0]["content"].to_string();
    assert!(prompt.contains("<mcp_servers>") && prompt.contains("- mcp__one (tool_search)"), "{prompt}");
    assert_eq!(requests[2].last_text(), "LOUD");
    // What was declared is, when the conversation goes on.
    let (again, more) =
        (world.pi().args(["--model", "mock/m1", "-c", "-p", "more"]), Server::start([Reply::text("ok")]));
    world.use_server(&more);
    again.run().success();
    assert_eq!(declared(&more.requests()[0]), "read bash edit write tool_search mcp__one__shout");
}

#[test]
fn flags_decide_which_tools_are_declared() {
    for (words, expected) in [
        ("", "read bash edit write mcp__one__echo mcp__one__shout"),
        ("--no-mcp", "read bash edit write"),
        ("-t read", "read"),
        ("-t read,mcp__one__echo", "read mcp__one__echo"),
        ("-t read,mcp__one__*", "read mcp__one__echo mcp__one__shout"),
        ("-xt mcp__*__shout", "read bash edit write mcp__one__echo"),
        ("-nt", ""),
    ] {
        let (world, server) = world([Reply::text("hi")]);
        configure(&world, "one", "", &json!({"exposure": "direct"}));
        world.pi().args(PRINT).words(words).run().success();
        assert_eq!(declared(&server.requests()[0]), expected, "{words}");
    }
}

#[test]
fn declarations_over_the_budget_wait_for_a_search() {
    let (world, server) = world([Reply::text("hi")]);
    configure(&world, "one", "", &json!({"exposure": "direct"}));
    let settings = r#"{"retry": {"enabled": false}, "mcp": {"directTokens": 40}}"#;
    world.write_config("settings.json", settings);
    let outcome = world.pi().args(PRINT).run().success();
    assert_eq!(declared(&server.requests()[0]), "read bash edit write tool_search mcp__one__echo");
    assert!(outcome.stderr.contains("1 MCP tools with direct exposure"), "{}", outcome.stderr);
}

#[test]
fn a_known_server_is_started_when_it_is_called() {
    let (world, _server) = world([Reply::text("hi")]);
    configure(&world, "one", "say hi", &json!({"exposure": "direct"}));
    world.pi().args(PRINT).run().success();
    assert_eq!(home_file(&world, "started"), "started\n");
    let next = Server::start([Reply::text("hi")]);
    world.use_server(&next);
    world.pi().args(PRINT).run().success();
    assert!(declared(&next.requests()[0]).contains("mcp__one__echo"));
    assert_eq!(home_file(&world, "started"), "started\n");
    let next = Server::start([Reply::tool("c", "mcp__one__echo", &json!({})), Reply::text("hi")]);
    world.use_server(&next);
    world.pi().args(PRINT).run().success();
    assert_eq!(next.requests()[1].last_text(), "hi");
    assert_eq!(home_file(&world, "started"), "started\nstarted\n");
}

#[test]
fn an_error_of_a_tool_is_an_error_with_its_text() {
    let (world, server) = world([
        Reply::tool("c", "mcp__one__echo", &json!({})).then_tool(1, "d", "mcp__one__shout", &json!({})),
        Reply::text("done"),
    ]);
    let on_call = r#"case $line in
        *'"name":"echo"'*) answer '{"isError":true,"content":[{"type":"text","text":"not today"}]}';;
        *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such \\u001b[31mthing"}}\n' "$id";;
    esac"#;
    configure(&world, "one", on_call, &json!({"exposure": "direct"}));
    let outcome = world.pi().args(PRINT).args(["--mode", "json"]).run().success();
    let events = lines(&outcome.stdout);
    let mut ends: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end")
        .map(|end| format!("{} {}", end["isError"], end["result"]["content"][0]["text"].as_str().unwrap()))
        .collect();
    ends.sort();
    assert_eq!(ends[0], "true MCP server \"one\": no such [31mthing (error -32000)");
    assert_eq!(ends[1], "true not today");
    drop(server);
}

/// Each of these servers costs an error, and nothing else.
#[test]
fn hostile_servers_cost_an_error() {
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}}"#;
    let greet = format!("read -r line; printf '{}\\n' 1;", ANSWER);
    for (script, timeout, expected) in [
        ("exit 0", 60.0, "the server ended"),
        ("kill -9 $$", 60.0, "the server ended with exit code 137"),
        ("sleep 1000", 0.3, "no answer for 0.3 s"),
        ("echo why >&2; trap '' TERM; sleep 1000", 0.3, "no answer for 0.3 s"),
        (
            "echo {}; echo []; echo '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}'; exit 0",
            60.0,
            "the server ended",
        ),
        (
            "read -r line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}'; sleep 1000",
            60.0,
            "speaks version \"\"",
        ),
        ("read -r line; head -c 100000000 /dev/zero; echo; sleep 1000", 60.0, "more than 16 MB"),
        ("(trap '' TERM HUP; sleep 1000) & sleep 1000", 0.3, "no answer for 0.3 s"),
    ] {
        let (world, _server) = world([]);
        configure_script(&world, "bad", &["-c", script], &json!({"timeout": timeout}));
        let outcome = world.pi().words("mcp test bad").run();
        assert_eq!(outcome.status.code(), Some(1), "{script}: {}", outcome.stdout);
        assert!(outcome.stdout.contains(expected), "{script}: {}", outcome.stdout);
    }
    // Answers twice, then to nothing, then floods.
    let (world, _server) = world([]);
    let script = format!(
        "{greet} {greet} printf '{ANSWER}\\n' 1; printf '{ANSWER}\\n' 77; yes noise | head -100000; cat >/dev/null"
    );
    configure_script(&world, "odd", &["-c", &script], &json!({}));
    world.pi().words("mcp test odd").run().success().stdout_has("connected, 0 tools");
}

#[test]
fn a_server_that_is_still_being_connected_to_ends_in_silence() {
    let (world, _server) = world([Reply::text("done")]);
    configure_script(&world, "slow", &["-c", "trap '' TERM; sleep 300"], &json!({"exposure": "deferred"}));
    let outcome = world.pi().args(PRINT).run().success();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("done\n", ""));
    assert_eq!(world.processes_left(), Vec::<u32>::new());
}

#[test]
fn a_call_that_is_aborted_is_cancelled_at_the_server() {
    let (world, _server) = world([Reply::tool("c", "mcp__one__echo", &json!({}))]);
    let on_call = r#"printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"under way"}}\n' "$id""#;
    configure(&world, "one", on_call, &json!({"exposure": "direct"}));
    let run = world.pi().args(PRINT).args(["--mode", "json"]).spawn();
    run.wait_for("under way");
    run.signal("INT");
    run.wait();
    let seen = home_file(&world, "seen");
    assert!(seen.contains(r#""method":"notifications/cancelled","params":{"requestId":"#), "{seen}");
}

#[test]
fn a_server_of_an_untrusted_project_is_not_started() {
    let (world, server) = world([Reply::text("hi"), Reply::text("hi")]);
    configure(&world, "one", "", &json!({"exposure": "direct"}));
    let config = fs::read_to_string(world.agent_dir().join("mcp.json")).unwrap();
    fs::remove_file(world.agent_dir().join("mcp.json")).unwrap();
    world.write(".pi/mcp.json", config);
    world.pi().args(PRINT).run().success();
    assert_eq!(home_file(&world, "started"), "");
    world.pi().words("mcp list").run().success().stdout_has("the project is not trusted");
    assert_eq!(home_file(&world, "started"), "");
    world.pi().args(PRINT).args(["-a"]).run().success();
    let requests = server.requests();
    assert_eq!(declared(&requests[0]), "read bash edit write");
    assert!(declared(&requests[1]).ends_with("mcp__one__echo mcp__one__shout"));
}

/// A server over HTTP: what it has seen, as lines of method and session.
struct Web {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Method, headers in small letters, body.
pub type Asked = (String, String, Value);

impl Web {
    /// `answer` gets the number of the request and the request, and gives status, further headers and body.
    fn start(answer: impl Fn(usize, &Asked) -> (u16, String, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || drop(serve(stream, &kept, &*answer)));
            }
        });
        Self { port, seen }
    }

    fn configure(&self, world: &World, fields: &Value) {
        let mut entry = json!({"url": format!("http://127.0.0.1:{}/mcp", self.port), "exposure": "direct"});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        world.write_config("mcp.json", &json!({"mcpServers": {"web": entry}}).to_string());
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().join("\n")
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &dyn Fn(usize, &Asked) -> (u16, String, String),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line)? > 2 {
            head.push_str(&std::mem::take(&mut line).to_lowercase());
        }
        if head.is_empty() {
            return Ok(());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let method = head.split(' ').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap_or("-");
        let what = body["method"].as_str().unwrap_or(&method).to_owned();
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(format!("{what} {session}"));
            seen.len()
        };
        let (status, headers, text) = answer(number, &(method, head, body));
        let reply = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n{text}", text.len());
        stream.write_all(reply.as_bytes())?;
    }
}

/// The usual answers of a server with one tool.
pub fn usual(asked: &Asked) -> (u16, String, String) {
    const JSON: &str = "content-type: application/json\r\n";
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": asked.2["id"], "result": result}).to_string();
    match asked.2["method"].as_str() {
        Some("initialize") => {
            let answer = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "w", "version": "1"}});
            (200, format!("{JSON}mcp-session-id: first\r\n"), result(answer))
        }
        Some("tools/list") => {
            (200, JSON.into(), result(json!({"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})))
        }
        Some("tools/call") => {
            (200, JSON.into(), result(json!({"content": [{"type": "text", "text": "told"}]})))
        }
        Some(_) => (202, String::new(), String::new()),
        None => (405, String::new(), String::new()),
    }
}

fn call_web(world: &World, model: &Server) -> String {
    world.pi().args(PRINT).env("TOKEN", "t-0123456789").run().success();
    model.requests()[1].last_text()
}

fn asks_web() -> (World, Server) {
    world([Reply::tool("c", "mcp__web__ask", &json!({})), Reply::text("done")])
}

#[test]
fn a_session_over_http_begins_goes_on_and_ends() {
    let web = Web::start(|_, asked| match asked.1.contains("authorization: bearer t-0123456789") {
        true => usual(asked),
        false => (401, String::new(), String::new()),
    });
    let (world, model) = asks_web();
    web.configure(&world, &json!({"headers": {"Authorization": "Bearer ${TOKEN}"}}));
    assert_eq!(call_web(&world, &model), "told");
    let seen = web.seen();
    assert!(seen.starts_with("initialize -\nnotifications/initialized first\n"), "{seen}");
    assert!(seen.contains("tools/call first") && seen.contains("delete first"), "{seen}");
    // Another token is refused, and the key is in no output.
    let outcome = world.pi().words("mcp test web").env("TOKEN", "wrong-0123456789").run();
    assert!(
        outcome.stdout.contains("needs a sign-in") && !outcome.stdout.contains("wrong-"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_forgotten_session_begins_anew_and_the_call_is_made_again() {
    let web = Web::start(|_, asked| {
        let is_first = asked.1.contains("mcp-session-id: first");
        match asked.2["method"].as_str() {
            Some("tools/call") if is_first => (404, String::new(), String::new()),
            _ => usual(asked),
        }
    });
    let (world, model) = asks_web();
    web.configure(&world, &json!({}));
    // The new session has the old id here: the second 404 is told.
    assert!(call_web(&world, &model).contains("the server has forgotten the session"));
    assert_eq!(web.seen().matches("initialize -").count(), 2, "{}", web.seen());
    assert_eq!(web.seen().matches("tools/call first").count(), 2);
}

#[test]
fn a_broken_stream_is_resumed_from_its_last_event() {
    const EVENTS: &str = "content-type: text/event-stream\r\n";
    let web = Web::start(|_, asked| match (asked.0.as_str(), asked.2["method"].as_str()) {
        (_, Some("tools/call")) => {
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
            (200, EVENTS.into(), format!("id: e{}\nretry: 1\ndata: {progress}\n\n", asked.2["id"]))
        }
        ("get", None) if asked.1.contains("last-event-id: e") => {
            let id: u64 =
                asked.1.split("last-event-id: e").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            let result = json!({"content": [{"type": "text", "text": "resumed"}]});
            (
                200,
                EVENTS.into(),
                format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": result})),
            )
        }
        _ => usual(asked),
    });
    let (world, model) = asks_web();
    web.configure(&world, &json!({}));
    assert_eq!(call_web(&world, &model), "resumed");
}

#[test]
fn a_call_that_was_taken_is_not_made_twice() {
    const EVENTS: &str = "content-type: text/event-stream\r\nmcp-session-id: first\r\n";
    const NARROW: &str = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"all\"\r\n";
    // How the stream, or the task, is lost when its answer is asked for.
    for (is_task, status, headers, told) in [
        (false, 404, "", "the server does not resume it"),
        (false, 403, NARROW, "the server does not resume it"),
        (true, 404, "", "does not give its result"),
        (true, 403, NARROW, "does not give its result"),
    ] {
        let web = Web::start(move |_, asked| match (asked.0.as_str(), asked.2["method"].as_str()) {
            (_, Some("tools/call")) if is_task => {
                let result = json!({"task": {"taskId": "t1", "status": "working"}});
                let answer = json!({"jsonrpc": "2.0", "id": asked.2["id"], "result": result});
                (200, "content-type: application/json\r\n".into(), answer.to_string())
            }
            (_, Some("tools/call")) => {
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
                (200, EVENTS.into(), format!("id: e1\nretry: 1\ndata: {progress}\n\n"))
            }
            (_, Some("tasks/result")) => (status, headers.into(), String::new()),
            ("get", None) if asked.1.contains("last-event-id: e1") => (status, headers.into(), String::new()),
            _ => usual(asked),
        });
        let (world, model) = asks_web();
        web.configure(&world, &json!({}));
        let answer = call_web(&world, &model);
        assert!(answer.contains(told), "{answer}");
        assert_eq!(web.seen().matches("tools/call").count(), 1, "{}", web.seen());
    }
}

#[test]
fn a_server_of_the_first_kind_is_found_out() {
    let (stream, held) = std::sync::mpsc::channel::<String>();
    let (stream, held) = (Mutex::new(stream), Mutex::new(Some(held)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stream, held) = (Arc::new(stream), Arc::new(held));
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (stream, held) = (stream.clone(), held.clone());
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                let (mut head, mut line) = (String::new(), String::new());
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    head.push_str(&std::mem::take(&mut line).to_lowercase());
                }
                if head.starts_with("get /mcp") {
                    let head =
                        "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                    socket.write_all(format!("{head}event: endpoint\ndata: /say\n\n").as_bytes()).unwrap();
                    let events = held.lock().unwrap().take().unwrap();
                    for event in events {
                        socket.write_all(format!("data: {event}\n\n").as_bytes()).unwrap();
                    }
                    return;
                }
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                reader.read_exact(&mut body).unwrap();
                let status = if head.starts_with("post /say") { 202 } else { 405 };
                let reply = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                socket.write_all(reply.as_bytes()).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                if status == 202 && body.get("id").is_some() {
                    let answer = usual(&(String::new(), String::new(), body)).2;
                    stream.lock().unwrap().send(answer).unwrap();
                }
            });
        }
    });
    let (world, model) = asks_web();
    Web { port, seen: Arc::default() }.configure(&world, &json!({}));
    assert_eq!(call_web(&world, &model), "told");
}

#[test]
fn servers_are_changed_from_a_list_in_the_terminal() {
    let (world, _server) = world([]);
    configure(&world, "one", "say x", &json!({}));
    configure(&world, "two", "say x", &json!({"enabled": false}));
    let screen = Screen::start(world.pi().words("--model mock/m1"));
    screen.wait_for("m1");
    screen.send("/mcp");
    let text = screen.wait_for("→ one: ");
    assert!(text.contains("two: disabled (codemode, global)"), "{text}");
    screen.type_keys("\x1b[B");
    screen.wait_for("→ two");
    screen.type_keys(ENTER);
    screen.wait_for("→ Enable");
    screen.type_keys(ENTER);
    // The list is shown again.
    screen.wait_for("→ one: ");
    assert!(!fs::read_to_string(world.agent_dir().join("mcp.json")).unwrap().contains("enabled"));
    screen.type_keys(ENTER);
    screen.wait_for("→ Reconnect");
    screen.type_keys(ENTER);
    screen.wait_for("one: connected, 2 tools of");
    screen.type_keys(ESCAPE);
}
