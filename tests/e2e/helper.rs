//! Helpers: the `task` tool, and the agents that it starts.

use crate::agent::{Outcome, World, lines};
use crate::server::{Reply, Server, gate};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A world with the provider `mock` for the session, and an agent for each of `helpers` with a provider of its own, so
/// that each plays its own script.
pub fn world(
    session: impl IntoIterator<Item = Reply>,
    helpers: impl IntoIterator<Item = (&'static str, Vec<Reply>)>,
) -> (World, Server, Vec<Server>) {
    let world = World::new();
    let parent = Server::start(session);
    let mut providers = json!({});
    let provider = |server: &Server| {
        json!({"baseUrl": server.url(), "apiKey": "test-key", "api": "openai-completions",
            "models": [{"id": "m1"}]})
    };
    providers["mock"] = provider(&parent);
    fs::create_dir_all(world.agent_dir().join("agents")).unwrap();
    let mut servers = Vec::new();
    for (agent, replies) in helpers {
        let (name, head) = agent.split_once(' ').unwrap_or((agent, ""));
        let server = Server::start(replies);
        providers[name] = provider(&server);
        let head = head.replace(';', "\n");
        let text =
            format!("---\nname: {name}\ndescription: Test\nmodel: {name}/m1\n{head}\n---\nYou are {name}.\n");
        world.write_config(&format!("agents/{name}.md"), &text);
        servers.push(server);
    }
    world.write_config("models.json", &json!({"providers": providers}).to_string());
    (world, parent, servers)
}

pub const PRINT: [&str; 5] = ["--model", "mock/m1", "--tools", "read,bash,task", "-p"];

fn tasks(agents: &[&str]) -> Reply {
    let tasks: Vec<Value> =
        agents.iter().map(|agent| json!({"agent": agent, "task": format!("Work as {agent}")})).collect();
    Reply::tool("c1", "task", &json!({"tasks": tasks}))
}

fn yields(arguments: &Value) -> Reply {
    Reply::tool("y1", "yield", arguments)
}

pub fn done(text: &str) -> Vec<Reply> {
    vec![yields(&json!({"result": text}))]
}

/// The files of helpers.
fn kept(world: &World) -> Vec<PathBuf> {
    let files = world.session_files().into_iter();
    files.filter(|path| path.parent().is_some_and(|folder| folder.ends_with("helpers"))).collect()
}

#[test]
fn a_helper_is_offered_only_where_it_is_chosen() {
    for (words, expected) in [
        ("", false),
        ("--tools +task", true),
        ("--read-only --tools read,task", true),
        ("--tools +task -xt task", false),
    ] {
        let (world, server, _) = world([Reply::text("ok")], []);
        world.pi().words("--model mock/m1").words(words).args(["-p", "x"]).run().success();
        let body = &server.requests()[0].body;
        let tools = body["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["function"]["name"] == "task");
        assert_eq!(tool.is_some(), expected, "{words}");
        if let Some(tool) = tool {
            let description = tool["function"]["description"].as_str().unwrap();
            assert!(description.contains("\n- explore: Reads and searches only"), "{description}");
            // Small windows are to hold it.
            assert!(tool.to_string().len() < 1600, "{}", tool.to_string().len());
        }
    }
}

#[test]
fn results_come_in_the_order_of_the_tasks() {
    let (open, held) = gate();
    let slow = Reply::tool("y1", "yield", &json!({"result": "from a"}));
    let slow =
        vec![Reply::stream().then_wait(held).then_tool(0, "y1", "yield", &json!({"result": "from a"})), slow];
    let read = Reply::tool("c2", "read", &json!({"path": "agent://a"}));
    let (world, server, helpers) = world(
        [tasks(&["a", "b", "c"]), read, Reply::text("all done")],
        [("a", slow), ("b", done("from b")), ("c", vec![Reply::text("never asked")])],
    );
    world.write_config(
        "agents/c.md",
        "---\nname: c\ndescription: x\nmodel: none/such\noutput: {format: x}\n---\n",
    );
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    helpers[0].wait_for(1);
    helpers[1].wait_for(1);
    open.send(()).unwrap();
    run.wait().success().stdout_is("all done\n");
    let requests = server.requests();
    let result = requests[1].last_text();
    let expected = "## a (a): done\n\nfrom a\n\n## b (b): done\n\nfrom b\n\n## c (c): failed\n[The output schema cannot be used: ";
    assert!(result.starts_with(expected), "{result}");
    assert_eq!(requests[2].last_text(), "from a");
    // Nothing is asked of a helper after its result.
    assert_eq!(helpers.iter().map(|server| server.requests().len()).collect::<Vec<_>>(), [1, 1, 0]);
    let asked = &helpers[1].requests()[0];
    let system = asked.messages()[0]["content"].to_string();
    assert!(system.contains("You are b."), "{system}");
    assert!(asked.last_text().starts_with("Work as b\n"), "{}", asked.last_text());
    let names: Vec<&str> = asked.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["read", "bash", "yield"]);
    // Its session lies beside that of its parent, and names it.
    let files = kept(&world);
    let session = files.iter().find(|path| path.to_string_lossy().ends_with("_b.jsonl")).unwrap();
    let header = &lines(&fs::read_to_string(session).unwrap())[0];
    let parent = PathBuf::from(header["parentSession"].as_str().unwrap());
    assert_eq!(parent.with_extension("outputs").join("helpers"), session.parent().unwrap());
    assert_eq!(header["id"], "b");
    // It is not among the sessions to go on with.
    let list = world.pi().words("sessions list --json").run().success().stdout;
    assert!(!list.contains("Work as b"), "{list}");
    let entries = lines(&fs::read_to_string(&parent).unwrap());
    let result = entries.iter().find(|entry| entry["message"]["toolName"] == "task").unwrap();
    let helper = &result["message"]["details"]["helpers"][1];
    assert_eq!(
        (&helper["name"], &helper["status"], &helper["turns"]),
        (&json!("b"), &json!("done"), &json!(1))
    );
    assert_eq!(helper["sessionFile"], json!(session));
    assert_eq!(result["message"]["usage"]["totalTokens"], 214);
}

#[test]
fn data_is_checked_and_a_helper_without_a_result_is_reminded() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let task =
        |agent: &str| json!({"agent": agent, "task": "count", "name": "Count It!", "output_schema": schema});
    let (world, server, helpers) = world(
        [
            Reply::tool("c1", "task", &json!({"tasks": [task("a"), task("b"), task("c"), task("d")]})),
            Reply::text("ok"),
        ],
        [
            ("a", vec![yields(&json!({"data": {"n": "many"}})), yields(&json!({"data": {"n": 3}}))]),
            ("b", (0..4).map(|_| Reply::text("I think {}")).collect()),
            ("c", (0..4).map(|_| Reply::text("```json\n{\"n\": 4}\n```")).collect()),
            ("d", vec![yields(&json!({"error": "there is nothing to count"}))]),
        ],
    );
    world.pi().args(PRINT).args(["go"]).run().success();
    let result = server.requests()[1].last_text();
    for part in [
        "## Count-It (a): done\n\n{\n  \"n\": 3\n}\n",
        "## Count-It-2 (b): failed\n[The helper gave no result; this is its last text. the answer is not one JSON value",
        "## Count-It-3 (c): done\n[The helper gave no result; this is its last text]\n",
        "## Count-It-4 (d): failed\n[The helper gave up]\n\nthere is nothing to count\n",
    ] {
        assert!(result.contains(part), "{part} in {result}");
    }
    assert_eq!(helpers.iter().map(|server| server.requests().len()).collect::<Vec<_>>(), [2, 4, 4, 1]);
    assert!(helpers[0].requests()[1].last_text().contains("expected integer"));
    assert!(helpers[1].requests()[3].last_text().contains("Call yield"));
}

#[test]
fn no_more_helpers_work_at_once_than_the_setting_says() {
    let replies = [tasks(&["a", "b"]), Reply::text("ok")];
    let (world, server, _helpers) = world(replies, [("a", done("one")), ("b", done("two"))]);
    world.write_config("settings.json", r#"{"helpers": {"concurrency": 1}, "retry": {"enabled": false}}"#);
    let run = world.pi().args(PRINT).args(["--mode", "json", "go"]).run().success();
    assert_eq!(most_running(&run), 1);
    let result = server.requests()[1].last_text();
    assert!(result.contains("one") && result.contains("two"), "{result}");
}

/// The largest number of helpers that events of JSON mode show at work.
fn most_running(run: &Outcome) -> usize {
    let running = run.events().into_iter().map(|event| {
        let helpers = event["partialResult"]["details"]["helpers"].as_array().cloned().unwrap_or_default();
        helpers.iter().filter(|helper| helper["status"] == "running").count()
    });
    running.max().unwrap_or(0)
}

#[test]
fn a_server_on_this_machine_says_how_many_helpers_it_serves_at_once() {
    let script =
        || [tasks(&["general", "general"]), yields(&json!({"result": "r"})), yields(&json!({"result": "r"}))];
    let (world, server, _) = self::world(script().into_iter().chain([Reply::text("ok")]), []);
    server.have_slots(1);
    let run = world.pi().args(PRINT).args(["--mode", "json", "go"]).run().success();
    assert_eq!(most_running(&run), 1);
    assert_eq!(server.requests().len(), 4);
    // What the user has chosen holds: the second one asks while the first one waits for its answer.
    let (open, held) = gate();
    let slow = Reply::stream().then_wait(held).then_tool(0, "y", "yield", &json!({"result": "r"}));
    let [given, _, quick] = script();
    let (world, server, _) = self::world([given, slow, quick, Reply::text("ok")], []);
    server.have_slots(1);
    world.write_config("settings.json", r#"{"helpers": {"concurrency": 2}}"#);
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    server.wait_for(3);
    open.send(()).unwrap();
    run.wait().success().stdout_is("ok\n");
}

#[test]
fn helpers_of_a_helper_work_in_its_place() {
    let (world, server, helpers) = world(
        [tasks(&["a"]), Reply::text("ok")],
        [
            ("a spawns: b", vec![tasks(&["b", "general"]), yields(&json!({"result": "a knows"}))]),
            ("b spawns: b", done("from b")),
        ],
    );
    world.write_config("settings.json", r#"{"helpers": {"concurrency": 1}}"#);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(server.requests()[1].last_text().contains("## a (a): done\n\na knows"));
    let inner = helpers[0].requests()[1].last_text();
    let expected = "## b (b): done\n\nfrom b\n\n## general (general): failed\n[There is no agent \"general\". Known: b]\n";
    assert_eq!(inner, expected);
    let tools = |server: &Server| server.requests()[0].body["tools"].to_string();
    assert!(tools(&helpers[0]).contains("- b: Test") && !tools(&helpers[0]).contains("- general"));
    // The depth is limited.
    assert!(!tools(&helpers[1]).contains("\"task\""));
}

#[test]
fn limits_hold_for_all_helpers_together() {
    let look = || Reply::tool("c", "bash", &json!({"command": "true"}));
    let many = || (0..20).map(|_| look()).collect::<Vec<_>>();
    let (world, server, helpers) =
        world([tasks(&["a", "b"]), Reply::text("never asked")], [("a", many()), ("b", many())]);
    let run = world.pi().args(["--max-tokens-total", "600"]).args(PRINT).args(["go"]).run();
    run.fails_with(1).stderr_has("the limit is 600");
    assert_eq!(server.requests().len(), 1);
    let asked: usize = helpers.iter().map(|server| server.requests().len()).sum();
    // Each for itself would ask 10 times; one that is told late asks a few times more than its part.
    assert!((4..16).contains(&asked), "{asked}");
    let (world, server, helpers) = self::world([tasks(&["a"]), Reply::text("ok")], [("a", many())]);
    world.write_config("settings.json", r#"{"helpers": {"turns": 8}, "limits": {"loops": false}}"#);
    world.pi().args(PRINT).args(["go"]).run().success();
    let requests = helpers[0].requests();
    assert_eq!(requests.len(), 12);
    // It is told while the helper works: which request has it first depends on the machine.
    let is_told = |request: usize| requests[request].body.to_string().contains("Finish now");
    assert!(is_told(11) && !is_told(7));
    let result = server.requests()[1].last_text();
    assert!(result.contains("## a (a): failed\n[It was ended: the limit of 12 turns"), "{result}");
}

#[test]
fn a_helper_that_is_killed_is_a_result_and_the_session_goes_on() {
    let (world, server, helpers) = world(
        [tasks(&["a"]), Reply::text("I see")],
        [("a", vec![Reply::stream().then_text("half").then(crate::server::Step::Stall)])],
    );
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    helpers[0].wait_for(1);
    for pid in world.processes() {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if words.contains("--parent-session") {
            assert!(
                std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success()
            );
        }
    }
    run.wait().success().stdout_is("I see\n");
    let result = server.requests()[1].last_text();
    assert!(result.contains("## a (a): failed\n[The helper's process ended (signal: 9"), "{result}");
}

#[test]
fn nothing_is_left_when_the_session_is_killed() {
    let stall = || vec![Reply::tool("c", "bash", &json!({"command": "sleep 1000"}))];
    let (world, _server, helpers) = world(
        [tasks(&["a", "b"])],
        [("a", stall()), ("b", vec![Reply::stream().then(crate::server::Step::Stall)])],
    );
    let run = world.pi().args(PRINT).args(["--mode", "json", "go"]).spawn();
    helpers[1].wait_for(1);
    run.wait_for("sleep 1000");
    run.signal("KILL");
    assert_eq!(run.wait().code(), 137);
    assert_eq!(world.processes_left(), [0u32; 0]);
    for path in kept(&world).iter().filter(|path| path.to_string_lossy().contains(".jsonl")) {
        assert!(fs::read_to_string(path).unwrap().ends_with('\n'), "{}", path.display());
    }
}

#[test]
fn an_abort_ends_all_helpers() {
    let stall = || vec![Reply::stream().then_text("half of it").then(crate::server::Step::Stall)];
    let (world, _server, helpers) = world([tasks(&["a", "b"])], [("a", stall()), ("b", stall())]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools task");
    client.prompt("go").unwrap();
    helpers.iter().for_each(|server| drop(server.wait_for(1)));
    client.abort().unwrap();
    let events = client.wait_until_settled().unwrap();
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").unwrap();
    assert_eq!(end["toolName"], "task");
    let text = end["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("## a (a): aborted") && text.contains("## b (b): aborted"), "{text}");
    client.close().unwrap();
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
fn questions_of_a_helper_travel_up_with_its_name() {
    let write = || {
        vec![Reply::tool("w", "bash", &json!({"command": "echo hi > made"})), yields(&json!({"result": "r"}))]
    };
    let (world, server, helpers) = world([tasks(&["a"]), Reply::text("ok")], [("a", write())]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools bash,task --ask-tools writes");
    client.prompt("go").unwrap();
    let question = client.events_until("extension_ui_request").unwrap().pop().unwrap();
    assert_eq!((&question["helper"], &question["toolName"]), (&json!("a"), &json!("bash")));
    assert_eq!(question["arguments"]["command"], "echo hi > made");
    assert!(question["title"].as_str().unwrap().starts_with("Allow bash of helper a? "), "{question}");
    client
        .send("extension_ui_response", json!({"id": question["id"], "value": "Deny", "reason": "not now"}))
        .unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(helpers[0].requests()[1].last_text(), "The user denied this call: not now");
    assert!(!world.work().join("made").exists());
    assert!(server.requests()[1].last_text().contains("## a (a): done"));
    client.close().unwrap();
    // Where nobody can be asked, nobody allows.
    let (world, _server, helpers) = self::world([tasks(&["a"]), Reply::text("ok")], [("a", write())]);
    world.pi().args(["--ask-tools", "writes"]).args(PRINT).args(["go"]).run().success();
    assert!(helpers[0].requests()[1].last_text().contains("there is nobody to ask"));
    assert!(!world.work().join("made").exists());
}

#[test]
fn rules_of_the_session_hold_for_its_helpers() {
    for (permissions, told) in [
        (json!({"deny": ["bash(touch *)"]}), "deny bash(touch *)"),
        (json!({"mode": "read-only"}), "Read-only mode"),
    ] {
        let touch = vec![
            Reply::tool("w", "bash", &json!({"command": "touch made"})),
            yields(&json!({"result": "r"})),
        ];
        let (world, _server, helpers) = self::world([tasks(&["a"]), Reply::text("ok")], [("a", touch)]);
        let path = world.agent_dir().join("settings.json");
        let mut settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        settings["permissions"] = permissions;
        fs::write(path, settings.to_string()).unwrap();
        world.pi().args(PRINT).args(["go"]).run().success();
        let result = helpers[0].requests()[1].last_text();
        assert!(result.contains(told), "{result}");
        assert!(!world.work().join("made").exists());
    }
}

#[test]
fn agents_of_other_programs_are_read_when_asked() {
    let (world, server, _) =
        self::world([tasks(&["checker"]), yields(&json!({"result": "checked"})), Reply::text("ok")], []);
    let claude = "---\nname: checker\ndescription: Checks\ntools: Read, Glob, Bash(git log:*)\nmodel: inherit\n---\nCheck.\n";
    fs::create_dir_all(world.home().join(".claude/agents")).unwrap();
    fs::write(world.home().join(".claude/agents/checker.md"), claude).unwrap();
    world.write(".claude/agents/ours.md", "---\nname: ours\ndescription: Ours\n---\n");
    let import = |words: &str| world.pi().words("agents import").words(words).run();
    let list = import("").success().stdout;
    assert!(list.contains("/.claude/agents, 1 agent\n  not read: pi agents import claude\n"), "{list}");
    assert!(list.contains("  not read: pi agents import claude -l\n"), "{list}");
    // Never silently.
    assert!(!world.pi().words("agents").run().success().stdout.contains("checker"));
    import("nothing").fails_with(1).stderr_has("nothing is not known; known are claude, ");
    import("cursor").fails_with(1).stderr_has("cursor has no agents of yours");
    import("claude").success().stdout_has("is read from now on");
    import("claude").success().stdout_has("is read already");
    import("claude -l --no-approve").fails_with(1).stderr_has("not trusted");
    import("claude -l --approve").success().stdout_has("is read once the project is trusted");
    let listed = |words: &str| world.pi().words("agents").words(words).run().success().stdout;
    assert!(listed("--approve").contains("ours (project): Ours"));
    assert!(!listed("--no-approve").contains("ours"));
    assert!(listed("--no-approve").contains("checker (user): Checks"));

    world.pi().words("--model mock/m1 --tools +task -p go").run().success();
    let requests = server.requests();
    let tools = requests[1].body["tools"].to_string();
    assert!(requests[1].messages()[0]["content"].to_string().contains("Check."));
    assert!(
        tools.contains("\"read\"") && tools.contains("\"find\"") && !tools.contains("\"bash\""),
        "{tools}"
    );
    let told = requests[2].last_text();
    assert!(told.contains("[This session has no tool Bash(git log:*)]"), "{told}");
}

#[test]
fn agents_are_listed_with_those_that_lost() {
    let (world, _server, _) = world([], []);
    world.write_config(
        "agents/e.md",
        "---\nname: explore\ndescription: Mine\nspawns: [general]\n---\nLook.\n",
    );
    world.write(".pi/agents/e.md", "---\nname: explore\ndescription: Ours\n---\nLook here.\n");
    let list = |words: &str| {
        let out = world.pi().words("agents list --json").words(words).run().success().stdout;
        let rows: Value = serde_json::from_str(&out).unwrap();
        let row = |row: &Value| {
            format!(
                "{} {} {}",
                row["name"].as_str().unwrap(),
                row["scope"].as_str().unwrap(),
                !row["shadowedBy"].is_null()
            )
        };
        rows.as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(
        list("--no-approve"),
        ["explore user false", "general builtin false", "explore builtin true", "reviewer builtin false"]
    );
    assert_eq!(list("--approve")[..2], ["explore project false", "explore user true"]);
    let text = world.pi().words("agents").run().success().stdout;
    assert!(text.contains("explore (user): Mine\n"), "{text}");
    assert!(text.contains("explore (builtin; not used: "), "{text}");
    let shown = world.pi().words("agents show explore").run().success().stdout;
    assert!(shown.contains("Gives tasks to: general\n") && shown.ends_with("\n\nLook.\n"), "{shown}");
    world.pi().words("agents show nobody").run().fails_with(1).stderr_has("There is no agent nobody");
}

#[test]
fn explore_uses_the_fast_model_of_the_setting() {
    let (world, server, helpers) = world(
        [
            tasks(&["explore"]),
            Reply::text("ok"),
            tasks(&["explore"]),
            done("slow").remove(0),
            Reply::text("ok"),
        ],
        [("a", done("quick"))],
    );
    world.write_config("settings.json", r#"{"helpers": {"fastModel": "a/m1"}}"#);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert_eq!(helpers[0].requests().len(), 1);
    // Where none is known, the model of the session is used, without a remark.
    world.write_config("settings.json", "{}");
    world.pi().args(PRINT).args(["go"]).run().success();
    assert_eq!(
        server.requests()[4].last_text(),
        "## explore (explore): done\n[This session has no tool grep, find, ls]\n\nslow\n"
    );
}

#[test]
fn a_small_window_holds_the_tool_and_a_result() {
    let long = "A long finding. ".repeat(4000);
    let (world, server, _helpers) = world(
        [tasks(&["a"]), Reply::text("a summary of it"), Reply::text("I see"), Reply::text("I see")],
        [("a", done(&long))],
    );
    let path = world.agent_dir().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for provider in ["mock", "a"] {
        models["providers"][provider]["models"][0]["contextWindow"] = 8192.into();
        models["providers"][provider]["models"][0]["maxTokens"] = 1024.into();
    }
    fs::write(path, models.to_string()).unwrap();
    world.pi().words("--model mock/m1 --tools read,task -p go").run().success();
    for request in server.requests() {
        // Four bytes a token, and a fifth of the window for the answer.
        let size = request.body.to_string().len();
        assert!(size < 4 * 8192, "{size}");
    }
}

#[test]
fn eight_helpers_work_at_once_and_none_is_left() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (opens, replies): (Vec<_>, Vec<_>) = NAMES
        .into_iter()
        .map(|name| {
            let (open, held) = crate::server::gate();
            let reply = Reply::stream().then_wait(held);
            (open, (name, vec![reply.then_tool(0, "y", "yield", &json!({"result": name}))]))
        })
        .unzip();
    let (world, server, helpers) = world([tasks(&NAMES), Reply::text("ok")], replies);
    world.write_config("settings.json", r#"{"helpers": {"concurrency": 8}}"#);
    let run = world.pi().args(PRINT).args(["go"]).spawn();
    // All of them ask before one is answered.
    helpers.iter().for_each(|server| drop(server.wait_for(1)));
    opens.iter().for_each(|open| open.send(()).unwrap());
    run.wait().success();
    assert_eq!(server.requests()[1].last_text().matches("): done\n").count(), 8);
    assert_eq!(world.processes_left(), [0u32; 0]);
}

#[test]
fn a_helper_uses_no_settings_that_nobody_agreed_to() {
    let settings =
        r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}"#;
    let writes = format!("mkdir -p .pi; printf '%s' '{settings}' > .pi/settings.json");
    let write = || Reply::tool("w", "bash", &json!({ "command": writes }));
    // A project that brought nothing: what is written meanwhile counts for nobody.
    let (world, _server, helpers) =
        self::world([write(), tasks(&["a"]), Reply::text("ok")], [("a", done("r"))]);
    world.pi().args(PRINT).args(["go"]).run().success();
    assert!(helpers[0].requests().len() == 1 && !world.work().join("ran").exists());

    // A trusted one that has changed: no helper starts, with the hooks or without them.
    let (world, server, helpers) =
        self::world([write(), tasks(&["a"]), Reply::text("ok")], [("a", done("r"))]);
    world.write(".pi/settings.json", r#"{"theme": "dark"}"#);
    world.write_config("trust.json", &json!({world.work().to_str().unwrap(): true}).to_string());
    world.pi().args(PRINT).args(["go"]).run().success();
    let told = server.requests()[2].last_text();
    assert!(told.contains("has changed since it was trusted: .pi/settings.json#hooks (new)"), "{told}");
    assert!(helpers[0].requests().is_empty() && !world.work().join("ran").exists());
}

#[test]
fn a_helper_has_the_settings_of_a_trusted_project() {
    let hooks =
        json!({"PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "sh gate.sh"}]}]});
    let touch =
        vec![Reply::tool("w", "bash", &json!({"command": "touch made"})), yields(&json!({"result": "r"}))];
    let (world, _server, helpers) = self::world([tasks(&["a"]), Reply::text("ok")], [("a", touch)]);
    world.write(".pi/settings.json", json!({ "hooks": hooks }).to_string());
    world.write("gate.sh", "echo 'not here' >&2; exit 2");
    world.write_config("trust.json", &json!({world.work().to_str().unwrap(): true}).to_string());
    world.pi().args(PRINT).args(["go"]).run().success();
    let result = helpers[0].requests()[1].last_text();
    assert!(result.contains("not here") && !world.work().join("made").exists(), "{result}");
}
