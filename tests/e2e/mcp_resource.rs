//! Servers of MCP with resources that change, calls that become tasks, and a limit of memory.

use crate::agent::{World, wait_until};
use crate::mcp::configure_script;
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;

const PRINT: [&str; 4] = ["--model", "mock/m1", "-p", "go"];

/// A server in `sh`. A first `tasks/result` of the task `slow` is not answered.
const SCRIPT: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"},"execution":{"taskSupport":"%s"}}' "$1" "$2"; }
while read -r line; do
  printf '%s\n' "$line" >> "$HOME/seen"
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"t","version":"1"}}';;
    *'"method":"tools/list"'*) answer "{\"tools\":[$(tool quick forbidden),$(tool slow required)]}";;
    *'"method":"resources/read"'*) answer '{"contents":[{"uri":"note:///a b","mimeType":"text/plain","text":"the note"}]}';;
    *'"method":"resources/subscribe"'*) answer '{}'
      echo '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note:///other"}}'
      for n in 1 2; do echo '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note:///a b"}}'; done
      touch "$HOME/told";;
    *'"method":"tools/call"'*'"task":'*) answer '{"task":{"taskId":"t1","status":"working","ttl":null}}';;
    *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"quick"}]}';;
    *'"method":"tasks/get"'*) answer '{"taskId":"t1","status":"working","statusMessage":"half done"}'; asked=1;;
    *'"method":"tasks/result"'*) [ -z "$asked" ] || answer '{"content":[{"type":"text","text":"done at last"}]}';;
  esac
done
"#;

fn start(replies: Vec<Reply>, fields: &Value) -> (World, Server) {
    let (world, server) = world(replies);
    let script = world.home().join("server.sh");
    fs::write(&script, SCRIPT).unwrap();
    let mut entry = json!({"exposure": "direct"});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    configure_script(&world, "one", &[&script.to_string_lossy()], &entry);
    (world, server)
}

fn seen(world: &World, method: &str) -> usize {
    let seen = fs::read_to_string(world.home().join("seen")).unwrap_or_default();
    seen.matches(&format!("\"method\":\"{method}\"")).count()
}

#[test]
fn resources_are_read_by_path_and_their_changes_are_told_once() {
    let read = |id: &str| Reply::tool(id, "read", &json!({"path": "mcp://one/note:///a b"}));
    let wait = "until [ -e \"$HOME/told\" ]; do sleep 0.01; done";
    let (world, server) = start(
        vec![
            read("c1"),
            Reply::tool("c2", "bash", &json!({"command": wait})),
            Reply::text("one"),
            Reply::text("two"),
            Reply::text("three"),
        ],
        &json!({}),
    );
    world.pi().args(PRINT).args(["again", "and again"]).run().success();
    let requests = server.requests();
    assert_eq!(requests[1].last_text(), "the note");
    // It is told with the next prompt, and not again before the resource is read again.
    let told = |at: usize| requests[at].body["messages"].to_string().matches("has changed since").count();
    assert_eq!([told(2), told(3), told(4)], [0, 1, 1], "{:#}", requests[3].body["messages"]);
    assert!(requests[3].body["messages"].to_string().contains("The resource note:///a b of the MCP server"));
    assert_eq!(seen(&world, "resources/subscribe"), 1);
}

#[test]
fn what_is_no_resource_is_read_as_a_file_or_refused() {
    let rows = [
        ("a.txt", "content"),
        ("mcp://two/x", "MCP server \\\"two\\\" has no resources. Servers with resources: one"),
    ];
    for (path, expected) in rows {
        let call = Reply::tool("c", "read", &json!({"path": path}));
        let (world, server) = start(vec![call, Reply::text("done")], &json!({}));
        world.write("a.txt", "content");
        world.pi().args(PRINT).run().success();
        let text = serde_json::to_string(&server.requests()[1].last_text()).unwrap();
        assert!(text.contains(expected), "{path}: {text}");
    }
    // Who leaves that tool out has no other way to resources.
    let call = Reply::tool("c", "read", &json!({"path": "mcp://one/x"}));
    let (world, server) = start(vec![call, Reply::text("done")], &json!({}));
    world.pi().args(PRINT).args(["--exclude-tools", "read_mcp_resource"]).run().success();
    assert!(server.requests()[1].last_text().contains("ENOENT"));
    assert_eq!(seen(&world, "resources/read"), 0);
}

#[test]
fn a_call_that_becomes_a_task_is_followed_to_its_result() {
    let calls = vec![
        Reply::tool("c1", "mcp__one__quick", &json!({})),
        Reply::tool("c2", "mcp__one__slow", &json!({})),
        Reply::text("done"),
    ];
    let (world, server) = start(calls, &json!({"timeout": 2}));
    world.pi().args(PRINT).run().success();
    let requests = server.requests();
    assert_eq!(requests[1].last_text(), "quick");
    assert_eq!(requests[2].last_text(), "done at last");
    assert_eq!((seen(&world, "tasks/result"), seen(&world, "tasks/get")), (2, 1));
}

#[test]
fn an_aborted_task_is_cancelled() {
    let call = Reply::tool("c", "mcp__one__slow", &json!({}));
    let (world, _server) = start(vec![call], &json!({}));
    let mut client = crate::rpc::client(&world, "--model mock/m1");
    client.prompt("go").unwrap();
    wait_until("the result is asked for", || seen(&world, "tasks/result") > 0);
    client.abort().unwrap();
    client.wait_until_settled().unwrap();
    wait_until("the task is cancelled", || seen(&world, "tasks/cancel") > 0);
    client.close().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_takes_too_much_memory_ends_alone() {
    let script = "read -r _; x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo \"${#x}\" > \"$HOME/size\"; sleep 1000";
    let (world, server) = world([Reply::text("done")]);
    configure_script(&world, "big", &["-c", script], &json!({"exposure": "direct", "memory": 200}));
    let outcome = world.pi().args(PRINT).run().success();
    assert!(!world.home().join("size").exists(), "{outcome:?}");
    assert_eq!(server.requests().len(), 1);
    let listed = world.pi().args(["mcp", "list", "--json"]).run();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["servers"][0]["state"], "failed", "{listed}");
}
