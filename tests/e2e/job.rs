//! Commands in the background, and the `job` tool.

use crate::agent::wait_until;
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};

fn job(arguments: &Value) -> Reply {
    Reply::tool("j", "job", arguments)
}

#[test]
fn the_model_starts_a_job_talks_with_it_and_is_told_of_its_end() {
    let command = "echo ready; read line; echo got $line; exit 3";
    let (world, server) = world([
        Reply::tool("b", "bash", &json!({"command": command, "background": true})),
        job(&json!({"op": "wait", "job": "j1", "pattern": "^read"})),
        job(&json!({"op": "send", "job": "j1", "text": "this"})),
        Reply::text("I wait for it"),
        Reply::text("I saw it"),
    ]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --tools bash,job");
    client.prompt("go").unwrap();
    let requests = server.wait_for(5);
    let text = |number: usize| requests[number].last_text();
    assert!(text(1).starts_with("Started as job j1. Its output is in "), "{}", text(1));
    assert_eq!(text(2), "j1 printed: ready");
    assert_eq!(text(3), "Sent to j1");
    // An idle agent is woken by the end.
    assert!(text(4).starts_with("The job j1 ended with exit code 3 after"), "{}", text(4));
    assert!(text(4).ends_with("ready\ngot this"), "{}", text(4));
    while client.last_text().unwrap().as_deref() != Some("I saw it") {
        client.next_event().unwrap();
    }
    let tools = requests[0].body["tools"].to_string();
    assert!(tools.contains("\"background\""), "{tools}");
    client.close().unwrap();
}

#[test]
fn without_the_tool_nothing_runs_in_the_background() {
    let (world, server) = world([Reply::text("ok")]);
    world.pi().words("--model mock/m1 -p go").run().success();
    let tools = server.requests()[0].body["tools"].to_string();
    assert!(!tools.contains("background") && !tools.contains("\"job\""), "{tools}");
}

#[test]
fn a_client_looks_after_jobs_which_end_with_pi() {
    let (world, _server) = world([]);
    for kills in [false, true] {
        let mut client = crate::rpc::client(&world, "--model mock/m1");
        let mut ask = |fields: Value| client.request("job", fields);
        assert_eq!(ask(json!({"op": "list"})).unwrap()["text"], "There are no jobs");
        let started = ask(json!({"op": "start", "command": "echo up; sleep 1000 & sleep 1000"})).unwrap();
        let one = &started["jobs"][0];
        assert_eq!(
            (&one["id"], &one["running"], &one["exitCode"]),
            (&json!("j1"), &json!(true), &json!(null))
        );
        let log = one["log"].as_str().unwrap().to_owned();
        assert_eq!(
            ask(json!({"op": "wait", "job": "j1", "pattern": "up"})).unwrap()["text"],
            "j1 printed: up"
        );
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "up\n");
        let second = ask(json!({"op": "start", "command": "exit 4"})).unwrap();
        assert_eq!(second["jobs"].as_array().unwrap().len(), 2);
        let ended = ask(json!({"op": "wait", "job": "j2"})).unwrap();
        assert!(ended["text"].as_str().unwrap().starts_with("j2 ended with exit code 4"), "{ended}");
        for (fields, fault) in [
            (json!({"op": "tail", "job": "j9"}), "Known: j1, j2"),
            (json!({"op": "tail"}), "job is needed"),
            (json!({"op": "fly", "job": "j1"}), "There is no op"),
            (json!({"op": "wait", "job": "j1", "pattern": "("}), "The pattern cannot be used"),
            (json!({"op": "wait", "job": "j1", "port": 70000}), "There is no port 70000"),
        ] {
            let refused = ask(fields).unwrap_err().to_string();
            assert!(refused.contains(fault), "{refused}");
        }
        if kills {
            world.wait_until_watched();
            let pid = client.pid().to_string();
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
            drop(client);
        } else {
            let stopped = client.request("job", json!({"op": "stop", "job": "j1"})).unwrap();
            assert_eq!(stopped["jobs"][0]["running"], false);
            client.request("job", json!({"op": "start", "command": "sleep 1000"})).unwrap();
            client.close().unwrap();
        }
    }
    // What is left is looked for when the world ends.
}

#[test]
#[cfg(feature = "interactive")]
fn the_terminal_lists_and_stops_jobs() {
    let (world, _server) = world([]);
    let screen = crate::screen::started(&world, "");
    screen.send("/jobs run echo one; echo two; sleep 1000");
    screen.wait_for("Started as job j1");
    screen.send("/jobs");
    screen.wait_for("j1 is running since");
    screen.send("/jobs j1");
    screen.wait_until("the output", |shown| shown.lines().any(|line| line.trim() == "two"));
    screen.send("/jobs stop j1");
    screen.wait_for("j1 ended with exit code 143 after");
    screen.send("/jobs nope");
    screen.wait_for("There is no job \"nope\". Known: j1");
    screen.quit();
}

#[test]
fn kept_jobs_outlive_pi_and_are_found_by_the_next_one() {
    let (world, server) = world([
        Reply::tool("b", "bash", &json!({"command": "read line; exit 3", "background": true})),
        Reply::text("I wait for it"),
        Reply::text("I saw it"),
        Reply::text("ok"),
        Reply::text("ok"),
    ]);
    let jobs = |words: &str| world.pi().words(&format!("jobs {words}")).run();
    assert_eq!(jobs("list").success().stdout, "There are no jobs\n");
    // The model starts one, and is told of its end.
    let keep = "--model mock/m1 --tools bash,job --keep-jobs";
    let mut client = crate::rpc::client(&world, keep);
    client.prompt("go").unwrap();
    let requests = server.wait_for(2);
    assert!(requests[1].last_text().starts_with("Started as job k1. Its output is in "));
    client.request("job", json!({"op": "send", "job": "k1", "text": "x"})).unwrap();
    let told = server.wait_for(3)[2].last_text();
    assert!(told.starts_with("The job k1 ended with exit code 3 after"), "{told}");
    let command = "echo up; while read line; do echo got $line; done; exit 4";
    let started = client.request("job", json!({"op": "start", "command": command})).unwrap();
    assert!(started["text"].as_str().unwrap().starts_with("Started as job k2"), "{started}");
    std::process::Command::new("kill").args(["-9", &client.pid().to_string()]).status().unwrap();
    drop(client);

    // The next pi, and the shell, find it.
    let mut client = crate::rpc::client(&world, keep);
    let found = client.request("job", json!({"op": "wait", "job": "k2", "pattern": "up"})).unwrap();
    assert_eq!(found["text"], "k2 printed: up");
    client.close().unwrap();
    assert_eq!(jobs("send k2 a b").success().stdout, "Sent to k2\n");
    let tail = || jobs("tail k2").success().stdout;
    wait_until("the job has got its input", || tail().ends_with("up\ngot a b\n"));
    assert!(jobs("tail k9").fails_with(1).stderr.contains("no job \"k9\""));

    // One that ends while no pi is there is told to the next one.
    let told = world.pi().words(keep).words("-p go").run().success().stderr;
    assert!(
        told.contains("Jobs of an earlier pi go on here: k2 (echo up") && told.contains("Jobs go on: k2")
    );
    jobs("stop k2");
    assert!(world.processes_left().is_empty(), "{:?}", world.processes_left());
    let told = world.pi().words(keep).words("-p go").run().success().stderr;
    assert!(!told.contains("go on"), "{told}");
}

#[test]
fn the_end_of_a_kept_job_that_nobody_saw_is_told() {
    let (world, _server) = world([Reply::text("ok")]);
    let mut client = crate::rpc::client(&world, "--model mock/m1 --keep-jobs");
    let command = "while [ ! -e go ]; do sleep 0.01; done; exit 5";
    client.request("job", json!({"op": "start", "command": command})).unwrap();
    client.close().unwrap();
    world.write("go", "");
    assert!(world.processes_left().is_empty(), "{:?}", world.processes_left());
    let told = world.pi().words("--model mock/m1 --keep-jobs -p go").run().success().stderr;
    assert!(told.contains("While no pi was here, the job k1 ended with exit code 5 after"), "{told}");
}
