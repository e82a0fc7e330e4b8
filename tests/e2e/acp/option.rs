//! What an editor offers beside the conversation: pickers, commands of pi, usage, questions, removal.

use super::{Editor, start};
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

/// The option `id` among `options`.
#[track_caller]
fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    let options = options["configOptions"].as_array().expect("options");
    options.iter().find(|option| option["id"] == id).expect("the option")
}

#[test]
fn model_thinking_and_mode_are_chosen_in_pickers() {
    let (world, server) = world([Reply::text("a")]);
    let model =
        |id: &str, reasoning: bool| json!({"id": id, "contextWindow": 10_000, "reasoning": reasoning});
    let models = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": "k",
        "api": "openai-completions", "models": [model("m1", false), model("m2", true)]}}});
    world.write_config("models.json", &models.to_string());
    let mut editor = Editor::start(&world, "--model mock/m1");
    let place = json!({"cwd": world.work(), "mcpServers": []});
    let opened = editor.request("session/new", &place).result();
    let id = opened["sessionId"].clone();
    let picker = option(&opened, "model");
    assert_eq!((&picker["currentValue"], &picker["category"]), (&json!("mock/m1"), &json!("model")));
    let values: Vec<&Value> = picker["options"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
    assert_eq!(values, ["mock/m1", "mock/m2"]);
    assert_eq!(option(&opened, "mode")["currentValue"], opened["modes"]["currentModeId"]);
    let mut set = |option: &str, value: &str| {
        let params = json!({"sessionId": id, "configId": option, "value": value});
        editor.request("session/set_config_option", &params)
    };
    let answer = set("model", "mock/m2").result();
    assert_eq!(option(&answer, "model")["currentValue"], "mock/m2");
    assert_eq!(option(&answer, "thinking")["category"], "thought_level");
    let answer = set("thinking", "high").result();
    assert_eq!(option(&answer, "thinking")["currentValue"], "high");
    let answer = set("mode", "read-only").result();
    assert_eq!(option(&answer, "mode")["currentValue"], "read-only");
    for (name, value) in
        [("model", "mock/m3"), ("model", "m1"), ("thinking", "huge"), ("mode", "x"), ("no", "x")]
    {
        let (code, text) = set(name, value).error();
        assert_eq!(code, -32602, "{text}");
        assert!(text.contains(value) || text.contains(name), "{text}");
    }
    let id = id.as_str().unwrap();
    editor.prompt(id, "x").result();
    let body = &server.requests()[0].body;
    assert_eq!((&body["model"], &body["reasoning_effort"]), (&json!("m2"), &json!("high")));
}

#[test]
fn models_of_several_providers_are_grouped() {
    let (world, server) = world([]);
    let provider = |ids: [&str; 2]| {
        json!({"baseUrl": server.url(), "apiKey": "k", "api": "openai-completions",
            "models": ids.map(|id| json!({"id": id}))})
    };
    let models = json!({"providers": {"zeta": provider(["a", "c"]), "mock": provider(["b", "m1"])}});
    world.write_config("models.json", &models.to_string());
    let mut editor = Editor::start(&world, "--model mock/m1");
    let opened = editor.request("session/new", &json!({"cwd": world.work(), "mcpServers": []})).result();
    let groups = option(&opened, "model")["options"].as_array().unwrap();
    let groups: Vec<(&str, Vec<&str>)> = groups
        .iter()
        .map(|group| {
            let values = group["options"].as_array().unwrap().iter();
            (group["group"].as_str().unwrap(), values.map(|value| value["value"].as_str().unwrap()).collect())
        })
        .collect();
    assert_eq!(groups, [("zeta", vec!["zeta/a", "zeta/c"]), ("mock", vec!["mock/b", "mock/m1"])]);
}

#[test]
fn commands_of_pi_answer_without_the_model() {
    let (world, server, mut editor) = start([Reply::text("a")]);
    let id = editor.new_session(&world);
    editor.prompt(&id, "one").result();
    for (command, expected) in [
        ("/name  A good name ", "The session is named A good name."),
        ("/name", "A good name"),
        ("/session", "1 prompts, 1 answers"),
        ("/model", "mock/m1"),
        ("/model none-such", "no model with a key matches"),
        ("/export page.html", "page.html"),
        ("/compact", "/compact: "),
    ] {
        let answer = editor.prompt(&id, command);
        assert!(answer.said("agent_message_chunk").contains(expected), "{command}: {:?}", answer.updates);
        assert_eq!(answer.stopped_by(), "end_turn");
    }
    assert!(world.read("page.html").contains("A good name"));
    assert_eq!(server.requests().len(), 1);
    let listed = editor.request("session/list", &json!({})).result();
    assert_eq!(listed["sessions"][0]["title"], "A good name");
}

#[test]
fn usage_is_told_after_each_turn_and_when_a_session_is_opened() {
    let (world, _server, mut editor) = start([Reply::text("a").with_prompt_tokens(500)]);
    let id = editor.new_session(&world);
    let usage = |updates: &[Value]| {
        let mut told = updates.iter().filter(|update| update["sessionUpdate"] == "usage_update");
        told.next_back().cloned()
    };
    let told = usage(&editor.prompt(&id, "one").updates).expect("usage");
    assert!(told["used"].as_u64().unwrap() >= 500 && told["size"].as_u64().unwrap() > 500, "{told}");
    assert_eq!(told["cost"]["currency"], "USD");
    drop(editor);
    let mut editor = Editor::start(&world, "");
    let place = json!({"cwd": world.work(), "sessionId": id, "mcpServers": []});
    let id = editor.send("session/resume", &place);
    let mut lines = vec![editor.next(), editor.next(), editor.next()];
    lines.retain(|line| line["id"] != id);
    let updates: Vec<Value> = lines.into_iter().map(|mut line| line["params"]["update"].take()).collect();
    assert_eq!(usage(&updates).expect("usage"), told);
}

#[test]
fn a_session_is_removed_with_all_that_belongs_to_it() {
    let (world, _server, mut editor) = start([Reply::text("a"), Reply::text("b")]);
    let (open, closed) = (editor.new_session(&world), editor.new_session(&world));
    for id in [&open, &closed] {
        editor.prompt(id, "one").result();
    }
    editor.request("session/close", &json!({"sessionId": closed})).result();
    for id in [&open, &closed] {
        editor.request("session/delete", &json!({"sessionId": id})).result();
    }
    let listed = editor.request("session/list", &json!({})).result();
    assert_eq!(listed, json!({"sessions": []}));
    assert_eq!(editor.prompt(&open, "two").error().0, -32002);
    // One that is not there is removed already.
    editor.request("session/delete", &json!({"sessionId": open})).result();
}

#[test]
fn questions_are_asked_by_forms_or_as_permissions() {
    let call = || {
        let questions = json!({"questions": [{"question": "Which one?", "options": ["red", "blue"]}]});
        Reply::tool("c1", "ask", &questions)
    };
    for (able, method, answer) in [
        (
            json!({"elicitation": {"form": {}}}),
            "elicitation/create",
            json!({"action": "accept", "content": {"answer": "blue"}}),
        ),
        (
            json!({}),
            "session/request_permission",
            json!({"outcome": {"outcome": "selected", "optionId": "1"}}),
        ),
    ] {
        let (world, server) = world([call(), Reply::text("done")]);
        let mut editor = Editor::start(&world, "--tools +ask");
        editor.initialize(able);
        let id = editor.new_session(&world);
        let prompt = editor.send_prompt(&id, "x");
        let asked = loop {
            let line = editor.next();
            if line["method"] == method {
                break line;
            }
        };
        let params = &asked["params"];
        let options = match method {
            "elicitation/create" => params["requestedSchema"]["properties"]["answer"]["enum"].clone(),
            _ => params["options"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect(),
        };
        assert_eq!(options.as_array().unwrap()[..2], ["red", "blue"]);
        editor.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string());
        assert_eq!(editor.answer(prompt).stopped_by(), "end_turn");
        assert!(server.requests()[1].last_text().contains("blue"), "{}", server.requests()[1].last_text());
    }
}
