//! `pi docs rpc --schema` against what is really said: each line fits, and each shape is met.

use super::client;
use crate::agent::World;
use crate::server::{Reply, Server, Step};
use pi::client::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The schema, closed: a field that it does not name is a fault.
pub struct Schema(pub Value);

/// The shapes that a value is made of, and their fields: `Event.error`, `Event.error/error`.
type Met = BTreeSet<String>;

impl Schema {
    pub fn printed() -> Self {
        let printed = World::new().pi().words("docs rpc --schema").run();
        let text = printed.success().stdout;
        Self(serde_json::from_str(&text).expect("a schema"))
    }

    /// Fails for what is no line of the program.
    #[track_caller]
    pub fn holds(&self, line: &Value) {
        if let Err(fault) = self.check(line, &self.0, "line") {
            panic!("{fault}");
        }
    }

    fn definition(&self, name: &str) -> &Value {
        self.0.pointer(name.trim_start_matches('#')).expect(name)
    }

    /// What `value` is made of, or the place and the reason of the first fault.
    fn check(&self, value: &Value, shape: &Value, name: &str) -> Result<Met, String> {
        if let Some(reference) = shape["$ref"].as_str() {
            let name = reference.trim_start_matches("#/$defs/");
            let mut met = self.check(value, self.definition(reference), name)?;
            met.insert(name.to_owned());
            return Ok(met);
        }
        if let Some(choices) = shape["anyOf"].as_array() {
            let tried = choices.iter().map(|choice| self.check(value, choice, name));
            let mut faults = Vec::new();
            for outcome in tried {
                match outcome {
                    Ok(met) => return Ok(met),
                    Err(fault) => faults.push(fault),
                }
            }
            // The fault that lies deepest is that of the choice which was meant.
            let deepest = faults.into_iter().max_by_key(|fault| fault.matches('/').count());
            return Err(deepest.unwrap_or_else(|| "there is no choice".into()));
        }
        let fault = |text: &str| Err(format!("{name} {text}: {value}"));
        if shape.get("const").is_some_and(|only| only != value) {
            return fault("is another word");
        }
        if shape["enum"].as_array().is_some_and(|all| !all.contains(value)) {
            return fault("is no such word");
        }
        let types = match &shape["type"] {
            Value::Array(types) => types.clone(),
            Value::Null => Vec::new(),
            kind => vec![kind.clone()],
        };
        let is = |kind: &Value| match kind.as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64() || value.is_i64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            other => panic!("the type {other:?}"),
        };
        if !types.is_empty() && !types.iter().any(is) {
            return fault(&format!("is no {}", shape["type"]));
        }
        let mut met = Met::new();
        if let (Some(items), Some(shape)) = (value.as_array(), shape.get("items")) {
            for item in items {
                met.append(&mut self.check(item, shape, &format!("{name}[]"))?);
            }
        }
        let (Some(fields), Some(known)) = (value.as_object(), shape["properties"].as_object()) else {
            return Ok(met);
        };
        for needed in shape["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(needed.as_str().unwrap()) {
                return fault(&format!("has no {needed}"));
            }
        }
        for (field, value) in fields {
            let place = format!("{name}/{field}");
            match known.get(field).or(shape.get("additionalProperties")) {
                Some(shape) => met.append(&mut self.check(value, shape, &place)?),
                None => return Err(format!("{place} is not in the schema: {value}")),
            }
            met.insert(place);
        }
        Ok(met)
    }
}

/// A client, and all that it and the program said.
struct Recorder<'t> {
    client: Client,
    asked: &'t mut Vec<Value>,
    told: &'t mut Vec<Value>,
}

impl Recorder<'_> {
    fn send(&mut self, command: &str, fields: Value) -> u64 {
        let mut line = fields.clone();
        line["type"] = json!(command);
        self.asked.push(line);
        self.client.send(command, fields).unwrap()
    }

    /// Sends a command and gives the whole answer.
    #[track_caller]
    fn answer(&mut self, command: &str, fields: Value) -> Value {
        let id = self.send(command, fields);
        let answer = self.client.answer(id).unwrap();
        self.told.push(answer.clone());
        answer
    }

    /// The data of a command that succeeds.
    #[track_caller]
    fn ask(&mut self, command: &str, fields: Value) -> Value {
        let mut answer = self.answer(command, fields);
        assert_eq!(answer["success"], json!(true), "{answer}");
        answer["data"].take()
    }

    /// The next line of this type that answers nothing.
    #[track_caller]
    fn until(&mut self, kind: &str) -> Value {
        let events = self.client.events_until(kind);
        let events = events.unwrap_or_else(|error| panic!("no {kind}: {error}"));
        self.told.extend(events.iter().cloned());
        events.last().unwrap().clone()
    }

    #[track_caller]
    fn prompt(&mut self, text: &str) {
        self.ask("prompt", json!({"message": text}));
        self.until("agent_settled");
    }

    /// Answers a question, or a call of a tool.
    fn respond(&mut self, kind: &str, to: &Value, mut fields: Value) {
        fields["type"] = json!(kind);
        fields["id"] = to["id"].clone();
        self.asked.push(fields.clone());
        self.client.send_line(fields.to_string().as_bytes()).unwrap();
    }
}

#[derive(Default)]
struct Tape {
    asked: Vec<Value>,
    told: Vec<Value>,
}

impl Tape {
    fn play(&mut self, world: &World, words: &str, scene: impl FnOnce(&mut Recorder<'_>)) {
        let mut recorder =
            Recorder { client: client(world, words), asked: &mut self.asked, told: &mut self.told };
        scene(&mut recorder);
        assert!(recorder.client.close().unwrap().success());
    }
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const LONG: &str = "words and words and words and words and words and words and words and words ";

fn no_fields() -> Value {
    json!({})
}

/// A small window, of which little is kept free, so that two answers fill it.
fn world(settings: &Value, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let (world, server) = crate::world(replies);
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m1", "contextWindow": 10_000, "maxTokens": 4000, "reasoning": true}, {"id": "m2"}]}}});
    world.write_config("models.json", &models.to_string());
    world.write_config("settings.json", &settings.to_string());
    (world, server)
}

/// What can be asked of an idle session, and set.
fn questions(tape: &mut Tape) {
    let read = r#"data: {"choices": [], "prompt_progress": {"processed": 1, "total": 2}}"#;
    let one = Reply::stream().then_bytes(format!("{read}\n\n")).then_text("one");
    let (world, _server) = world(&json!({}), [one, Reply::text("two")]);
    std::fs::create_dir_all(world.agent_dir().join("prompts")).unwrap();
    std::fs::create_dir_all(world.agent_dir().join("skills/s")).unwrap();
    world.write_config("prompts/t.md", "text");
    world.write_config("skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\ntext");
    tape.play(&world, "--model mock/m1 --ready", |pi| {
        pi.until("ready");
        pi.ask("cycle_thinking_level", no_fields());
        pi.ask("message", json!({"content": "hi"}));
        pi.until("agent_settled");
        let text = json!({"type": "document", "fileName": "f", "extractedText": "x"});
        let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
        let said = json!({"message": "x", "images": [image], "attachments": [text], "streamingBehavior": "followUp"});
        pi.ask("prompt", said);
        pi.until("agent_settled");
        for (command, fields) in [
            ("ping", no_fields()),
            ("get_state", no_fields()),
            ("get_messages", no_fields()),
            ("get_messages", json!({"offset": 0, "limit": 1})),
            ("get_tree", no_fields()),
            ("get_session_stats", no_fields()),
            ("get_last_assistant_text", no_fields()),
            ("get_fork_messages", no_fields()),
            ("get_branch_messages", no_fields()),
            ("get_tools", no_fields()),
            ("get_commands", no_fields()),
            ("get_available_models", no_fields()),
            ("get_available_thinking_levels", no_fields()),
            ("set_active_tools", json!({"toolNames": ["read", "bash"]})),
            ("set_thinking_level", json!({"level": "low"})),
            ("set_model", json!({"provider": "mock", "modelId": "m2"})),
            ("cycle_thinking_level", no_fields()),
            ("cycle_model", no_fields()),
            ("set_steering_mode", json!({"mode": "all"})),
            ("set_follow_up_mode", json!({"mode": "one-at-a-time"})),
            ("set_interrupt_mode", json!({"mode": "immediate"})),
            ("set_auto_compaction", json!({"enabled": false})),
            ("set_auto_retry", json!({"enabled": false})),
            ("abort_retry", no_fields()),
            ("abort_bash", no_fields()),
            ("abort", no_fields()),
            ("steer", json!({"message": "s"})),
            ("follow_up", json!({"message": "f"})),
            ("clear_queue", no_fields()),
            ("set_session_name", json!({"name": "n"})),
            ("get_entries", no_fields()),
            ("get_state", no_fields()),
            ("bash", json!({"command": "yes | head -100000", "excludeFromContext": true})),
            ("export_html", json!({"outputPath": "page.html"})),
            ("reload", no_fields()),
        ] {
            pi.ask(command, fields);
        }
        pi.until("bash_execution_update");
        for (command, fields) in [
            ("prompt", no_fields()),
            ("fork", json!({"entryId": "nothing"})),
            ("nonsense", no_fields()),
        ] {
            assert_eq!(pi.answer(command, fields)["success"], json!(false));
            // What is refused need not be in the schema.
            pi.asked.pop();
        }
        pi.send("interrupt", no_fields());
        pi.until("interrupted");
    });
}

/// Thinking, tools here and at the client, dialogs, an abort; all in the older form of events.
fn tools(tape: &mut Tape) {
    let (world, _server) = crate::world([
        Reply::stream().then_thinking("hm").then_text("so").then_tool(
            0,
            "t1",
            "bash",
            &json!({"command": "echo x"}),
        ),
        Reply::stream().then_tool(0, "t2", "bash", &json!({"command": "echo y"})).then_tool(
            1,
            "t3",
            "look",
            &no_fields(),
        ),
        Reply::text("done"),
        Reply::tool("t4", "look", &no_fields()),
        Reply::text("x").then(Step::Stall),
        Reply::text("y"),
    ]);
    let look = json!({"name": "look", "label": "Look", "description": "d", "snippet": "s",
        "parameters": {"type": "object", "properties": {}}, "sequential": true, "readOnly": true, "timeoutMs": 60_000});
    tape.play(&world, "--ask-tools bash --cumulative-events", |pi| {
        pi.ask("register_tools", json!({"tools": [look]}));
        pi.ask("prompt", json!({"message": "go"}));
        let asked = pi.until("extension_ui_request");
        pi.respond("extension_ui_response", &asked, json!({"value": "Change the arguments"}));
        let asked = pi.until("extension_ui_request");
        pi.respond("extension_ui_response", &asked, json!({"value": r#"{"command": "echo z"}"#}));
        let asked = pi.until("extension_ui_request");
        pi.respond("extension_ui_response", &asked, json!({"value": "Deny with a reason"}));
        let asked = pi.until("extension_ui_request");
        pi.respond("extension_ui_response", &asked, json!({"cancelled": true}));
        let call = pi.until("tool_call_request");
        pi.respond("tool_call_update", &call, json!({"content": "half"}));
        pi.until("tool_execution_update");
        let block = json!({"type": "text", "text": "whole"});
        let result = json!({"content": [block], "details": {"n": 1}, "isError": false});
        pi.respond("tool_call_response", &call, result);
        pi.until("agent_settled");

        pi.ask("prompt", json!({"message": "again"}));
        pi.until("tool_call_request");
        pi.ask("abort", no_fields());
        pi.until("agent_settled");
        pi.ask("prompt", json!({"message": "stall"}));
        pi.until("message_update");
        pi.ask("steer", json!({"message": "s"}));
        pi.ask("abort_and_prompt", json!({"message": "other"}));
        pi.until("agent_settled");
        pi.until("agent_settled");
        pi.ask("unregister_tools", json!({"toolNames": ["look"]}));
        pi.ask("bash", json!({"command": "exit 3"}));
        pi.until("bash_end");
        pi.client.send_line(b"nonsense").unwrap();
        pi.until("error");
        pi.ask("set_cumulative_events", json!({"enabled": false}));
    });
}

/// One session becomes many.
fn sessions(tape: &mut Tape) {
    let replies = (0..4).map(|n| Reply::text(&n.to_string()));
    let (world, _server) = world(&json!({}), replies);
    tape.play(&world, "--model mock/m1", |pi| {
        pi.prompt("one");
        pi.prompt("two");
        let points = pi.ask("get_fork_messages", no_fields())["messages"].clone();
        let file = pi.ask("get_state", no_fields())["sessionFile"].clone();
        let second = json!({"entryId": points[1]["entryId"]});
        let first = points[0]["entryId"].clone();
        let moved = json!({"targetId": first, "summarize": true, "customInstructions": "i",
            "replaceInstructions": true, "label": "here"});
        pi.ask("navigate_tree", moved);
        pi.ask("get_tree", no_fields());
        pi.ask("get_messages", no_fields());
        pi.ask("fork", second.clone());
        pi.ask("switch_session", json!({"sessionPath": file}));
        pi.ask("branch", second);
        pi.ask("clone", no_fields());
        pi.ask("new_session", json!({"parentSession": file}));
        pi.ask("get_entries", no_fields());
        pi.ask("get_last_assistant_text", no_fields());
    });
}

/// Compactions of every kind, with what goes wrong in them; failures that are tried again, or not.
fn trouble(tape: &mut Tape) {
    let settings = json!({"compaction": {"reserveTokens": 1000, "keepRecentTokens": 100},
        "retry": {"enabled": true, "maxRetries": 1, "baseDelayMs": 1}});
    let busy = || Reply::error(503, "busy");
    let refused = || Reply::error(400, "This model's maximum context length is 10000 tokens.");
    let full = || Reply::text(&LONG.repeat(12)).with_prompt_tokens(9500);
    let first = [
        Reply::text(&LONG.repeat(12)),
        busy(),
        full(),
        busy(), // for the summary
        Reply::text("THE SUMMARY"),
        Reply::text("THE TURN"),
        Reply::text(&LONG.repeat(12)),
        refused(),
    ];
    let rest = (0..8).map(|_| Reply::text(&LONG.repeat(12)));
    let (world, _server) = world(&settings, first.into_iter().chain(rest));
    tape.play(&world, "--model mock/m1 --cumulative-events", |pi| {
        pi.prompt("one");
        pi.prompt("two");
        pi.prompt("three");
        pi.prompt("four");
        pi.ask("compact", json!({"customInstructions": "short"}));
        pi.until("compaction_end");
        pi.ask("get_entries", no_fields());
        pi.ask("get_messages", no_fields());
        assert_eq!(pi.answer("compact", no_fields())["success"], json!(false));
        pi.until("compaction_end");
    });
}

/// A value as the result, limits, and the one line that only JSON mode has.
fn ends(tape: &mut Tape) {
    let wanted = json!({"type": "object", "required": ["n"]}).to_string();
    let replies = [r#"{"n": 1}"#, "a", "b", "c"].map(Reply::text);
    let (world, _server) = crate::world(replies);
    world.write("schema.json", &wanted);
    tape.play(&world, "--output-schema schema.json", |pi| {
        pi.prompt("one");
        pi.prompt("two");
    });
    let busy = || Reply::error(503, "busy");
    let (world, _server) = crate::world([busy(), busy()]);
    world.write_config("settings.json", r#"{"retry": {"maxRetries": 1, "baseDelayMs": 1}}"#);
    tape.play(&world, "", |pi| pi.prompt("go"));
    let call = || Reply::tool("t", "read", &json!({"path": "schema.json"}));
    let (world, _server) = crate::world([call(), call(), Reply::text("x")]);
    world.write("schema.json", &wanted);
    tape.play(&world, "--max-turns 1", |pi| pi.prompt("go"));
    let outcome = world.pi().words("--mode json -p go").run().success();
    tape.told.extend(outcome.events());
}

/// Plan mode, jobs, questions beside the conversation, and a way back.
fn beside(tape: &mut Tape) {
    let (world, _server) = crate::world([
        Reply::tool("w", "write", &json!({"path": "a", "content": "x"})),
        Reply::text("done"),
        Reply::text("beside"),
        Reply::text("begin"),
    ]);
    tape.play(&world, "--model mock/m1", |pi| {
        pi.prompt("one");
        pi.ask("btw", json!({"question": "what?"}));
        pi.ask("undo", json!({"count": 1, "dryRun": true}));
        let entry = pi.ask("get_fork_messages", no_fields())["messages"][0]["entryId"].clone();
        pi.ask("undo", json!({"to": entry, "force": true}));
        pi.ask("job", json!({"op": "start", "command": "echo x; sleep 1000"}));
        let wait = json!({"op": "wait", "job": "j1", "pattern": "x", "port": 1, "timeout": 60, "text": "t", "lines": 1});
        pi.ask("job", wait);
        pi.ask("job", json!({"op": "stop", "job": "j1"}));
        pi.ask("helper", json!({"op": "list", "helper": "x", "text": "t"}));
        pi.ask("set_plan_mode", json!({"enabled": true}));
        pi.ask("set_plan_mode", json!({"enabled": false}));
        pi.until("extension_ui_request");
        pi.ask("handoff", json!({"goal": "g"}));
    });
}

/// What no scene here comes to: files of other programs hold it, or damaged ones. What extensions show and ask is
/// tested in `extension`, questions and news of helpers in `helper` and `helper_background`.
const UNSEEN: &[&str] = &[
    "Event.helper_update",
    "Event.helper_update/type",
    "Event.helper_update/helper",
    // Calls of scripts need an engine for JavaScript: tests/e2e/codemode.rs.
    "Event.tool_execution_start/parentToolCallId",
    "Event.tool_execution_update/parentToolCallId",
    "Event.tool_execution_end/parentToolCallId",
    "Event.extension_ui_request/message",
    "Event.extension_ui_request/placeholder",
    "Event.extension_ui_request/timeout",
    "Event.extension_ui_request/notifyType",
    "Event.extension_ui_request/widgetKey",
    "Event.extension_ui_request/widgetLines",
    "Event.extension_ui_request/widgetPlacement",
    "Event.extension_ui_request/text",
    "Event.extension_ui_request/helper",
    "Event.extension_error",
    "Event.extension_error/type",
    "Event.extension_error/extensionPath",
    "Event.extension_error/event",
    "Event.extension_error/error",
    "Event.session/parentSession",
    "Message.custom",
    "Entry.usage",
    "Entry.custom_message",
    "Entry.damaged",
];

#[test]
fn recorded_streams_fit_the_schema_and_meet_all_of_it() {
    let schema = Schema::printed();
    let mut tape = Tape::default();
    questions(&mut tape);
    tools(&mut tape);
    sessions(&mut tape);
    trouble(&mut tape);
    ends(&mut tape);
    beside(&mut tape);
    let mut met = Met::new();
    let command = json!({"$ref": "#/$defs/Command"});
    for (lines, shape) in [(&tape.asked, &command), (&tape.told, &schema.0)] {
        for line in lines {
            let checked = schema.check(line, shape, "line");
            met.append(&mut checked.unwrap_or_else(|fault| panic!("{fault}\nin {line}")));
            let mut odd = line.clone();
            odd["odd"] = json!(1);
            assert!(schema.check(&odd, shape, "line").is_err(), "{odd}");
        }
    }
    let mut unseen = Vec::new();
    for (name, shape) in schema.0["$defs"].as_object().unwrap() {
        // Of what is said in the protocol's own words every field, of what is only carried the kinds.
        let is_own = ["Event.", "Step.", "Response."].iter().any(|own| name.starts_with(own));
        let fields = shape["properties"].as_object().filter(|_| is_own);
        let fields = fields.into_iter().flatten().map(|(field, _)| format!("{name}/{field}"));
        let names = std::iter::once(name.clone()).chain(fields);
        unseen.extend(names.filter(|name| !met.contains(name)));
    }
    assert_eq!(unseen, UNSEEN, "{} lines", tape.told.len());
}
