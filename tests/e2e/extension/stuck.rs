//! Programs that do not read, do not answer, or answer more than there is room for.

use super::{hello, install, results};
use crate::server::Reply;
use crate::world;
use serde_json::json;

#[test]
fn a_program_may_send_thousands_of_calls_before_it_reads() {
    for (method, params) in [
        ("session.state", "{}"),
        ("ui.notify", r#"{\"message\":\"m\"}"#),
        ("ui.select", r#"{\"title\":\"t\",\"options\":[]}"#),
    ] {
        let (world, server) = world([Reply::text("done")]);
        let params = params.replace('\\', "");
        let arms = format!(
            r#"
    *'"type":"session_start"'*)
      i=0; while [ $i -lt 2500 ]; do i=$((i+1)); call x$i {method} '{params}'; done
      while [ $i -gt 0 ]; do i=$((i-1)); read -r answer; done; ok null ;;
"#
        );
        install(&world, "x", &json!({"events": ["session_start", "agent_start"]}), &arms);
        let done = world.pi().words("--model mock/m1 -p hi").run().success();
        assert_eq!(done.stderr, "", "{method}");
        done.stdout_is("done\n");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_program_that_floods_and_never_reads_is_given_up() {
    let (world, _server) = world([Reply::text("done")]);
    let flood = r#"exec yes '{"jsonrpc":"2.0","id":1,"method":"session.state"}'"#;
    let arms = format!("    *'\"type\":\"agent_start\"'*) {flood} ;;\n");
    install(&world, "x", &json!({"events": ["agent_start"]}), &arms);
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    let told = "does not read its stdin: answers of 16 MB wait there";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    done.stdout_is("done\n");
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
fn an_answer_over_the_limit_fails_its_call_at_once() {
    let head = |fields: &str| format!("printf '{{\"jsonrpc\":\"2.0\",{fields}' $id; cat /dev/zero");
    for (name, arm) in [
        ("its id stands first", head(r#""id":%s,"result":{"content":""#)),
        ("nobody sees its id", head(r#""result":{"content":""#)),
    ] {
        let (world, server) =
            world([Reply::tool("t1", "hello", &json!({"name": "Ada"})), Reply::text("done")]);
        install(&world, "x", &hello(), &format!("    *'\"method\":\"tool.call\"'*) {arm} ;;\n"));
        let done = world.pi().words("--model mock/m1 -p hi").run().success();
        let results = results(server.requests()[1].messages());
        assert_eq!(results, ["the answer of the extension is longer than 64 MB"], "{name}");
        done.stdout_is("done\n");
    }
}

#[test]
fn a_huge_line_that_is_no_message_is_passed_over() {
    let (world, _server) = world([Reply::text("done")]);
    let arms = "    *'\"type\":\"agent_start\"'*) head -c 70000000 /dev/zero; echo; ok null ;;\n";
    install(&world, "x", &json!({"events": ["agent_start"]}), arms);
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    assert_eq!(done.stderr, "");
    done.stdout_is("done\n");
}

#[test]
fn a_program_that_does_not_answer_is_not_waited_for() {
    let call = |id: &str| Reply::tool(id, "hello", &json!({"name": "Ada"}));
    let (world, server) = world([call("t1"), call("t2"), Reply::text("done")]);
    let mut fields = hello();
    // The third one would be waited for until the test fails.
    let limits = [("agent_start", 100), ("turn_start", 100), ("tool_call", 600_000), ("turn_end", 600_000)];
    fields["events"] =
        limits.iter().map(|(event, limit)| json!({"event": event, "timeoutMs": limit})).collect();
    install(&world, "x", &fields, "    *'\"method\":\"event\"'*) ;;\n");
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    let results = results(server.requests()[2].messages());
    assert!(results.iter().all(|result| result.ends_with("extensions/x: does not answer")), "{results:?}");
    let told: Vec<&str> = done.stderr.lines().filter(|line| line.contains("Extension error")).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].contains("no answer within 100ms") && told[1].contains("2 times in a row"), "{told:#?}");
    done.stdout_is("done\n");
}
