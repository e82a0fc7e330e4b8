//! Extensions that answer and register what is not understood: the rest of them counts, and the user is told once.

use super::{HELLO, greeting, hello, install, results};
use crate::server::Reply;
use crate::world;
use serde_json::json;

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
