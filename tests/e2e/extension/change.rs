//! Handlers that change what a run is made of: the headers of its requests, its prompt, its messages.

use super::{events, install};
use crate::server::Reply;
use crate::world;
use serde_json::json;

/// A key for every protocol: of Codex it has to name an account.
const TOKEN: &str = "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhIn19.x";

#[test]
fn handlers_change_the_headers_of_every_protocol() {
    let apis = [
        "openai-completions",
        "anthropic-messages",
        "openai-responses",
        "azure-openai-responses",
        "openai-codex-responses",
        "google-generative-ai",
        "mistral-conversations",
        "pi-messages",
        "bedrock-converse-stream",
    ];
    for api in apis {
        let (world, server) = world([Reply::error(400, "no"), Reply::error(400, "no")]);
        let arms = r#"    *'"type":"before_provider_headers"'*)
      ok '{"headers":{"X-Kept":"k","X-Given":"other","user-agent":null,"X-Secret-Key":"‹secret:models.p.x-secret-key›","X-New":"n"}}' ;;
"#;
        install(
            &world,
            "x",
            &json!({"events": ["before_provider_headers", "before_provider_request"]}),
            arms,
        );
        let headers = json!({"X-Kept": "k", "X-Given": "g", "X-Gone": "x", "X-Secret-Key": "a-secret-value"});
        let config = json!({"providers": {"p": {"baseUrl": server.url(), "api": api, "apiKey": TOKEN,
            "headers": headers, "models": [{"id": "m"}]}}});
        world.write_config("models.json", &config.to_string());
        world.write_config("settings.json", r#"{"retry":{"enabled":false}}"#);
        let aws =
            [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key"), ("AWS_REGION", "eu-west-1")];
        let pi =
            aws.iter().fold(world.pi().words("--model p/m -p hi"), |pi, (name, value)| pi.env(name, value));
        let ran = pi.run();
        let sent = server.requests();
        let sent = sent.first().unwrap_or_else(|| panic!("{api}: {}", ran.stderr));
        let rows = [
            ("x-kept", Some("k")),
            ("x-given", Some("other")),
            ("x-gone", None),
            ("x-secret-key", Some("a-secret-value")),
            ("x-new", Some("n")),
            ("user-agent", None),
        ];
        for (name, value) in rows {
            assert_eq!(sent.header(name), value, "{api} {name}");
        }
        let told = events(&world);
        let shown = json!({"X-Kept": "k", "X-Given": "g", "X-Gone": "x", "X-Secret-Key": "‹secret:models.p.x-secret-key›"});
        assert_eq!(told[0]["headers"], shown, "{api}");
        let kinds: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["before_provider_headers", "before_provider_request"], "{api}");
    }
}

#[test]
fn headers_that_are_none_are_reported() {
    for answer in [r#"{"headers":{"x":5}}"#, r#"{"headers":["x"]}"#] {
        let (world, server) = world([Reply::text("done")]);
        let arms = format!("    *'\"type\":\"before_provider_headers\"'*) ok '{answer}' ;;\n");
        install(&world, "x", &json!({"events": ["before_provider_headers"]}), &arms);
        let ran = world.pi().words("--model mock/m1 -p hi").run().success();
        assert!(ran.stderr.contains("\"headers\" must be an object of strings and nulls"), "{}", ran.stderr);
        assert_eq!(server.requests()[0].header("x"), None);
    }
    // One that no request can have is an error of the request.
    let (world, _server) = world([Reply::text("done")]);
    let arms = r#"    *'"type":"before_provider_headers"'*) ok '{"headers":{"x\ny":"a"}}' ;;
"#;
    install(&world, "x", &json!({"events": ["before_provider_headers"]}), arms);
    world.write_config("settings.json", r#"{"retry":{"enabled":false}}"#);
    let ran = world.pi().words("--model mock/m1 -p hi").run();
    assert_eq!(ran.code(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("header"), "{}", ran.stderr);
}

#[test]
fn handlers_change_what_the_prompt_is_made_of() {
    /// What is answered, parts that the prompt then has and has not, and the tools that are declared.
    type Row = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);
    let rows: &[Row] = &[
        (
            r#"{"systemPromptOptions":{"sections":{"mine":"ours","docs":"elsewhere"},"promptGuidelines":["Rule nine."]}}"#,
            &["<mine>\nours\n</mine>", "<docs>\nelsewhere\n</docs>", "- Rule nine.", "- read: "],
            &["pi docs"],
            &["read", "bash", "edit", "write"],
        ),
        (
            r#"{"systemPromptOptions":{"selectedTools":["read","nope"],"toolSnippets":{"read":"Other words"},"toolGuidelines":{}}}"#,
            &["<tools>\n- read: Other words\n</tools>"],
            &["- bash: "],
            &["read"],
        ),
        (
            r#"{"systemPromptOptions":{"customPrompt":"Custom.","appendSystemPrompt":"Appended.","cwd":"/else","contextFiles":[{"path":"/f","content":"In it."}]}}"#,
            &["Custom.", "<addendum>\nAppended.\n</addendum>", "/else", "In it."],
            &["<tools>"],
            &["read", "bash", "edit", "write"],
        ),
        (r#"{"systemPrompt":"Forced."}"#, &["Forced."], &["<cwd>"], &["read", "bash", "edit", "write"]),
        (
            r#"{"systemPromptOptions":{"forceSystemPrompt":"Forced."}}"#,
            &["Forced."],
            &["<cwd>"],
            &["read", "bash", "edit", "write"],
        ),
    ];
    for (answer, has, has_not, declared) in rows {
        let (world, server) = world([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
        let arms = format!(
            r#"    *'"type":"before_agent_start"'*)
      if [ -n "$begun" ]; then ok null; else begun=1; ok '{answer}'; fi ;;
    *'"type":"agent_start"'*) call s session.systemPrompt '{{}}'; ok null ;;
"#
        );
        install(&world, "a", &json!({"events": ["before_agent_start", "agent_start"]}), &arms);
        install(&world, "b", &json!({"events": ["before_agent_start"]}), "");
        let ran =
            world.pi().words("--model mock/m1 -p").args(["first prompt", "second prompt"]).run().success();
        assert_eq!(ran.stderr, "", "{answer}");
        let sent = server.requests();
        let head = sent[0].messages()[0]["content"].as_str().unwrap().to_owned();
        for part in *has {
            assert!(head.contains(part), "{answer}: {part}: {head}");
        }
        for part in *has_not {
            assert!(!head.contains(part), "{answer}: {part}: {head}");
        }
        let tools = |at: usize| -> Vec<String> {
            let tools = sent[at].body["tools"].as_array().unwrap().iter();
            tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(tools(0), *declared, "{answer}");
        // The handler of the other extension sees it, as does who asks during the run.
        let heads: Vec<String> = events(&world)
            .into_iter()
            .filter(|event| event["type"] == "before_agent_start")
            .map(|event| event["systemPrompt"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(heads[1], head, "{answer}");
        let asked = super::log(&world).into_iter().filter(|message| message["id"] == "s");
        let asked: Vec<String> =
            asked.map(|answer| answer["result"]["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(asked[0], head, "{answer}");
        // It holds for one run; the tools stay.
        assert_eq!(tools(1), *declared, "{answer}");
        let later = sent[1].body["messages"].to_string();
        assert!(!later.contains("Forced."), "{later}");
        assert!(asked[1].contains("<cwd>"), "{answer}");
        assert!(!world.session().iter().any(|entry| entry.to_string().contains("Forced.")), "{answer}");
    }
}

#[test]
fn what_no_prompt_can_be_made_of_is_reported() {
    for (answer, told) in [
        (
            r#"{"systemPromptOptions":{"sections":{"Bad Name":"x"}}}"#,
            "Not a name for a section of the system prompt: \"Bad Name\"",
        ),
        (r#"{"systemPromptOptions":{"sections":{"ok":5}}}"#, "The system prompt section ok must be a string"),
        (r#"{"systemPromptOptions":{"selectedTools":5}}"#, "invalid type"),
    ] {
        let (world, server) = world([Reply::text("done")]);
        let arms = format!("    *'\"type\":\"before_agent_start\"'*) ok '{answer}' ;;\n");
        install(&world, "x", &json!({"events": ["before_agent_start"]}), &arms);
        let ran = world.pi().words("--model mock/m1 -p hi").run().success();
        assert!(ran.stderr.contains(told), "{answer}: {}", ran.stderr);
        assert!(server.requests()[0].body["messages"].to_string().contains("<cwd>"));
    }
}

#[test]
fn a_result_that_does_not_fit_is_reported_and_passed_over() {
    let row = |event: &str, answer: &str| {
        let (world, server) = world([Reply::text("one")]);
        let arms = format!("    *'\"type\":\"{event}\"'*) ok '{answer}' ;;\n");
        install(&world, "x", &json!({"events": [event]}), &arms);
        let ran = world.pi().words("--model mock/m1 -p hi").run().success();
        (ran.stdout, ran.stderr, server.requests()[0].body["messages"].to_string())
    };
    for answer in [r#"{"message":{"role":"hologram","content":"x"}}"#, r#"{"message":5}"#] {
        let (stdout, stderr, _) = row("message_end", answer);
        assert!(stderr.contains("message_end"), "{answer}: {stderr}");
        assert_eq!(stdout, "one\n", "{answer}");
    }
    // What has no prompt is sent as it is wanted.
    let user = r#"{"messages":[{"role":"user","content":"only this"}]}"#;
    let (_, stderr, sent) = row("context_with_system", user);
    assert!(stderr.contains("no prompt and no tools"), "{stderr}");
    assert!(sent.contains("only this") && !sent.contains("system"), "{sent}");
    let (_, stderr, _) = row("context", user);
    assert_eq!(stderr, "");
}

#[test]
fn handlers_see_the_arguments_that_a_tool_got() {
    // A number comes as a text, and is changed on the way.
    let (world, _server) =
        world([Reply::tool("t1", "read", &json!({"path": "f", "limit": "1"})), Reply::text("done")]);
    world.write("f", "a\nb\n");
    let arms = r#"    *'"type":"tool_call"'*) ok '{"input":{"path":"f","limit":2}}' ;;
"#;
    install(&world, "x", &json!({"events": ["tool_call", "tool_result"]}), arms);
    world.pi().words("--model mock/m1 -p hi").run().success();
    let seen = events(&world);
    assert_eq!(seen[0]["input"]["limit"], 1);
    assert_eq!(seen[1]["input"], json!({"path": "f", "limit": 2}));
}

#[test]
fn a_blocked_call_has_no_result_to_change() {
    let (world, _server) = world([Reply::tool("t1", "read", &json!({"path": "f"})), Reply::text("done")]);
    let arms = r#"    *'"type":"tool_call"'*) ok '{"block":true}' ;;
"#;
    install(&world, "x", &json!({"events": ["tool_call", "tool_result"]}), arms);
    world.pi().words("--model mock/m1 -p hi").run().success();
    assert_eq!(events(&world).len(), 1);
}

#[test]
fn a_shutdown_keeps_no_prompt_of_the_command_line_from_running() {
    for mode in ["-p", "--json"] {
        let (world, server) = world([Reply::text("one"), Reply::text("two")]);
        let arms = r#"    *'"type":"agent_start"'*) call s session.shutdown '{}'; ok null ;;
"#;
        install(&world, "x", &json!({"events": ["agent_start"]}), arms);
        world.pi().words("--model mock/m1").args([mode, "first", "second"]).run().success();
        assert_eq!(server.requests().len(), 2, "{mode}");
    }
}

#[test]
fn what_is_sent_before_the_first_request_goes_with_it() {
    for event in ["before_agent_start", "agent_start", "turn_start"] {
        let (world, server) = world([Reply::text("one"), Reply::text("two")]);
        let arms = format!(
            r#"    *'"type":"{event}"'*) call m session.sendMessage '{{"message":{{"customType":"c","content":"and this"}}}}'; ok null ;;
"#
        );
        install(&world, "x", &json!({"events": [event]}), &arms);
        let ran = world.pi().words("--model mock/m1 --json hi").run().success();
        let sent = server.requests();
        assert_eq!(sent.len(), 1, "{event}");
        assert!(sent[0].messages().last().unwrap().to_string().contains("and this"), "{event}");
        // Only what the user has queued is shown as queued.
        assert!(!ran.stdout.contains("queue_update"), "{event}");
    }
}

#[test]
fn the_request_of_a_summary_has_headers_of_handlers_too() {
    // The turn is cut in two, so that there are two summaries.
    let (world, server) = world(["one", "two", "a summary", "another"].map(Reply::text));
    world.write_config("settings.json", r#"{"compaction":{"keepRecentTokens":1}}"#);
    let arms = r#"    *'"type":"before_provider_headers"'*) ok '{"headers":{"x-mine":"yes"}}' ;;
"#;
    install(&world, "x", &json!({"events": ["before_provider_headers", "before_provider_request"]}), arms);
    let mut client = super::rpc::client(&world);
    for _ in 0..2 {
        client.prompt("hi there").unwrap();
        client.wait_until_settled().unwrap();
    }
    client.request("compact", json!({})).unwrap();
    client.close().unwrap();
    let sent = server.requests();
    assert_eq!(sent.len(), 4);
    assert!(sent.iter().all(|request| request.header("x-mine") == Some("yes")));
    // Its body is none of the conversation's.
    let bodies = events(&world).into_iter().filter(|event| event["type"] == "before_provider_request");
    assert_eq!(bodies.count(), 2);
}
