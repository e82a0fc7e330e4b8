//! Extensions that answer and register what is not understood: the rest of them counts, and the user is told once.

use super::{HELLO, greeting, hello, install, log, results};
use crate::agent::write_program;
use crate::server::Reply;
use crate::world;
use serde_json::json;
use std::fs;

#[test]
fn results_of_another_form_are_reported_once_and_passed_over() {
    let (world, server) = world(greeting());
    let wrong = [
        ("input", r#"{"action":"transform","text":5}"#, "\"text\" must be a text"),
        ("before_agent_start", r#"{"systemPrompt":7}"#, "\"systemPrompt\" must be a text"),
        ("context", r#"{"messages":"none"}"#, "\"messages\" must be a list of messages"),
        ("message_end", r#"{"message":{"role":"custom"}}"#, "\"message\" must be a message of the role"),
        ("before_provider_request", r#"{"payload":[]}"#, "\"payload\" must be an object"),
        ("tool_result", r#""deny""#, "it must be an object"),
    ];
    let arm =
        |(event, result, _): &(&str, &str, &str)| format!("    *'\"type\":\"{event}\"'*) ok '{result}' ;;\n");
    let mut fields = hello();
    fields["events"] = wrong.iter().map(|(event, ..)| json!(event)).collect();
    let arms: String = wrong.iter().map(arm).collect();
    install(&world, "x", &fields, &(HELLO.to_owned() + &arms));
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    for (event, _, why) in wrong {
        let told = format!("{event}: the result is passed over: {why}");
        assert_eq!(done.stderr.matches(&told).count(), 1, "{event}: {}", done.stderr);
    }
    assert_eq!(done.stderr.matches("Extension error").count(), wrong.len(), "{}", done.stderr);
    assert_eq!(results(server.requests()[1].messages()), ["Hello Ada."]);
    done.stdout_is("done\n");
}

#[test]
fn an_event_that_does_not_exist_is_reported_once_and_the_rest_counts() {
    let (world, server) = world([Reply::text("done")]);
    let arms = "    *'\"type\":\"input\"'*) call r register '{\"events\":[\"other_event\"]}'; ok '{\"action\":\"transform\",\"text\":\"changed\"}' ;;\n";
    install(&world, "x", &json!({"events": ["bogus_event", "input"]}), arms);
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    for event in ["bogus_event", "other_event"] {
        let told = format!("register: There is no event \"{event}\"");
        assert_eq!(done.stderr.matches(&told).count(), 1, "{}", done.stderr);
    }
    assert!(server.requests()[0].body.to_string().contains("changed"));
}

#[test]
fn an_entry_that_is_wrong_is_left_out_and_reported_once() {
    let (world, server) = world(greeting());
    let mut fields = hello();
    fields["tools"].as_array_mut().unwrap().push(json!({"name": "no schema"}));
    fields["virtualModels"] = json!([{"provider": "", "id": "m"}]);
    fields["events"] = json!(["agent_start"]);
    let arms = r#"
    *'"type":"agent_start"'*) call p register '{"providers":[{"name":"pp"}]}'; call q register '{"commands":[{"name":"late"}]}'; ok null ;;
"#;
    install(&world, "x", &fields, &(HELLO.to_owned() + arms));
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    assert_eq!(results(server.requests()[1].messages()), ["Hello Ada."]);
    for part in
        ["\"tools\": missing field", "\"virtualModels\": ", "\"providers\": Provider \"pp\": says nothing"]
    {
        assert_eq!(done.stderr.matches(part).count(), 1, "{part}: {}", done.stderr);
    }
    assert_eq!(done.stderr.matches("Extension error").count(), 3, "{}", done.stderr);
    let answer = log(&world).into_iter().find(|line| line["id"] == "p").unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("says nothing"), "{answer}");
}

#[test]
fn a_lazy_manifest_that_nothing_would_start_is_refused() {
    let (world, _server) = world([Reply::text("done")]);
    let folder = world.agent_dir().join("extensions/idle");
    write_program(&folder.join("run"), "#!/bin/sh\n");
    let manifest = json!({"command": "./run", "lazy": true, "flags": [{"name": "f", "type": "boolean"}]});
    fs::write(folder.join("pi-extension.json"), manifest.to_string()).unwrap();
    let done = world.pi().words("--model mock/m1 -p hi").run().success();
    assert!(done.stderr.contains("would never start"), "{}", done.stderr);
}
