//! Extensions of the user that decide on the trust of a project.

use super::{log, registers, script};
use crate::agent::{World, write_program};
use crate::server::{Reply, Server};
use crate::world;
use serde_json::{Value, json};
use std::fs;

const MODEL: [&str; 2] = ["--model", "mock/m1"];

/// The program of an extension that answers `project_trust`.
fn voter(answer: &str) -> String {
    let arm = format!("    *'\"type\":\"project_trust\"'*) {answer} ;;\n");
    script(&(registers(&json!({"events": ["project_trust"]})) + &arm))
}

fn install(world: &World, name: &str, answer: &str) {
    write_program(&world.agent_dir().join("extensions").join(name), &voter(answer));
}

/// The events that voters got.
fn asked(world: &World) -> Vec<Value> {
    super::events(world).into_iter().filter(|event| event["type"] == "project_trust").collect()
}

/// True if the template of the project is used.
fn is_used(world: &World, server: &Server) -> bool {
    let before = server.requests().len();
    world.pi().args(MODEL).args(["--no-session", "-p", "/review"]).run().success();
    server.requests()[before].last_text() == "reviewed"
}

fn stored(world: &World) -> Option<Value> {
    let text = fs::read_to_string(world.agent_dir().join("trust.json")).ok()?;
    let all: Value = serde_json::from_str(&text).unwrap();
    all.get(world.work().canonicalize().unwrap().to_str().unwrap()).cloned()
}

#[test]
fn the_first_clear_answer_decides() {
    let rows: &[(&str, Option<bool>, bool, Option<bool>)] = &[
        // The answer, what was stored, whether the project is used, what is stored then.
        (r#"ok '{"trusted":"yes"}'"#, None, true, None),
        (r#"ok '{"trusted":"yes","remember":true}'"#, None, true, Some(true)),
        (r#"ok '{"trusted":"no"}'"#, Some(true), false, Some(true)),
        (r#"ok '{"trusted":"no","remember":true}'"#, Some(true), false, Some(false)),
        (r#"ok '{"trusted":"undecided","remember":true}'"#, Some(true), true, Some(true)),
        ("ok null", None, false, None),
        ("fail broken", Some(true), true, Some(true)),
        ("exit 3", None, false, None),
    ];
    for (answer, before, used, after) in rows {
        let (world, server) = world([Reply::text("ok")]);
        world.write(".pi/prompts/review.md", "reviewed");
        if let Some(before) = before {
            world.write_config("trust.json", &json!({world.work().to_str().unwrap(): before}).to_string());
        }
        install(&world, "a", "ok '{\"trusted\":\"undecided\"}'");
        install(&world, "b", answer);
        install(&world, "c", "ok '{\"trusted\":\"undecided\"}'");
        assert_eq!(is_used(&world, &server), *used, "{answer}");
        assert_eq!(stored(&world), after.map(Value::from), "{answer}");
        let events = asked(&world);
        assert_eq!(events[0], json!({"type": "project_trust", "cwd": world.work().canonicalize().unwrap()}));
        let is_decided = answer.contains("yes") || answer.contains("no\"");
        assert_eq!(events.len(), if is_decided { 2 } else { 3 }, "{answer}");
    }
}

#[test]
fn nobody_is_asked_where_there_is_nothing_to_decide() {
    let (world, server) = world([Reply::text("ok"), Reply::text("ok"), Reply::text("ok")]);
    let starts = || log(&world).iter().filter(|message| message["method"] == "initialize").count();
    install(&world, "voter", "ok '{\"trusted\":\"yes\"}'");
    super::install(&world, "other", &json!({"events": ["turn_end"]}), "");
    world.pi().args(MODEL).args(["-p", "x"]).run().success();
    assert_eq!(starts(), 2, "each for the session");
    world.write(".pi/prompts/review.md", "reviewed");
    for word in ["--approve", "--no-approve"] {
        world.pi().args(MODEL).args([word, "-p", "x"]).run().success();
    }
    assert_eq!((starts(), asked(&world).len()), (6, 0));
    // Extensions that do not name the event are not started for it.
    fs::remove_file(world.agent_dir().join("extensions/voter")).unwrap();
    world.pi().args(MODEL).args(["--no-session", "-p", "/review"]).run();
    assert_eq!(starts(), 7);
    drop(server);
}

#[test]
fn an_extension_of_the_project_has_no_vote() {
    let (world, server) = world([Reply::text("ok")]);
    world.write(".pi/prompts/review.md", "reviewed");
    write_program(&world.work().join(".pi/extensions/own"), &voter("ok '{\"trusted\":\"yes\"}'"));
    assert!(!is_used(&world, &server));
    assert!(log(&world).is_empty());
}

#[test]
fn an_extension_may_ask_the_user() {
    let (world, server) = world([Reply::text("ok")]);
    world.write(".pi/prompts/review.md", "reviewed");
    let arms = r#"
    *'"type":"project_trust"'*) asked=$id; call q ui.confirm '{"title":"Use it?","message":"really"}' ;;
    *'"confirmed":true'*) ok '{"trusted":"yes"}' "$asked" ;;
    *'"confirmed":false'*) ok '{"trusted":"no"}' "$asked" ;;
"#;
    super::install(&world, "asks", &json!({"events": ["project_trust"]}), arms);
    let running = world.pi().args(MODEL).args(["--no-session", "-p", "/review"]).spawn_on_terminal();
    running.wait_until_shown("Use it?");
    running.wait_until_shown("Number");
    running.type_keys("1\r");
    running.wait().success();
    assert_eq!(server.requests()[0].last_text(), "reviewed");
    // Without a terminal nobody can answer.
    assert!(!{
        let outcome = world.pi().args(MODEL).args(["--no-session", "-p", "/review"]).run();
        outcome.stderr.contains("Not used")
    });
}
