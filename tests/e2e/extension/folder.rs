//! Extensions follow the session into another folder, and the trust in that folder decides on them.

use super::rpc::client;
use super::{log, registers, script};
use crate::agent::{World, write_program};
use crate::sessions::stored;
use crate::world;
use pi::client::Client;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// An extension of the project in `folder` that leaves a file `NAME.started` in the home folder.
fn install_in(folder: &Path, name: &str) {
    let fields = json!({"commands": [{"name": name}], "events": ["session_start", "session_shutdown"]});
    let mark = format!("#!/bin/sh\necho $$ >> \"$HOME/{name}.started\"\n");
    let text = script(&registers(&fields)).replace("#!/bin/sh\n", &mark);
    write_program(&folder.join(".pi/extensions").join(name), &text);
}

/// How often an extension was started.
fn starts(world: &World, name: &str) -> usize {
    fs::read_to_string(world.home().join(format!("{name}.started"))).unwrap_or_default().lines().count()
}

/// The commands of extensions, once there is one called `wanted`. What it starts may still be on its way.
fn commands(client: &mut Client, wanted: &str) -> Vec<String> {
    loop {
        let all = client.request("get_commands", json!({})).unwrap()["commands"].clone();
        let is_added = |command: &&Value| command["source"] == "extension" && command["name"] != "mcp";
        let all = all.as_array().unwrap().iter().filter(is_added);
        let names: Vec<String> = all.map(|command| command["name"].as_str().unwrap().to_owned()).collect();
        if wanted.is_empty() || names.iter().any(|name| name == wanted) {
            return names;
        }
        std::thread::yield_now();
    }
}

fn trust(world: &World, folders: &[&Path]) {
    let known: serde_json::Map<String, Value> = folders
        .iter()
        .map(|folder| (folder.canonicalize().unwrap().to_str().unwrap().to_owned(), json!(true)))
        .collect();
    world.write_config("trust.json", &Value::Object(known).to_string());
}

#[test]
fn extensions_of_the_folder_before_end_and_those_of_an_untrusted_one_never_start() {
    let (world, _server) = world([]);
    let (here, there) = (world.work(), world.home().join("there"));
    fs::create_dir_all(&there).unwrap();
    install_in(&here, "mine");
    install_in(&there, "theirs");
    write_program(
        &world.agent_dir().join("extensions/always"),
        &script(&registers(&json!({"commands": [{"name": "always"}]}))),
    );
    trust(&world, &[&here]);
    let own = stored(&world, &here, "aaaa", "one");
    let other = stored(&world, &there, "bbbb", "two");
    let mut client = client(&world);
    assert_eq!(commands(&mut client, "mine"), ["mine", "always"]);
    let switch = |client: &mut Client, path: &Path| {
        let answer = client.request("switch_session", json!({"sessionPath": path})).unwrap();
        assert_eq!(answer, json!({"cancelled": false}));
    };
    // Another session of the folder goes on with the processes that there are.
    switch(&mut client, &own);
    assert_eq!(
        (commands(&mut client, "mine"), starts(&world, "mine")),
        (vec!["mine".into(), "always".into()], 1)
    );
    // The folder is not trusted.
    switch(&mut client, &other);
    assert_eq!(commands(&mut client, "always"), ["always"]);
    assert_eq!(starts(&world, "theirs"), 0);
    let started = log(&world).into_iter().rfind(|message| message["method"] == "initialize").unwrap();
    assert_eq!(started["params"]["cwd"], there.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(started["params"]["isProjectTrusted"], false);
    // It is now.
    trust(&world, &[&here, &there]);
    switch(&mut client, &own);
    switch(&mut client, &other);
    assert_eq!(commands(&mut client, "theirs"), ["theirs", "always"]);
    assert_eq!((starts(&world, "mine"), starts(&world, "theirs")), (2, 1));
    // A new session asks for trust anew.
    trust(&world, &[&here]);
    client.request("new_session", json!({})).unwrap();
    assert_eq!(commands(&mut client, "always"), ["always"]);
    client.close().unwrap();
    assert_eq!(starts(&world, "theirs"), 1);
}

#[test]
fn a_fork_stays_in_its_folder() {
    let (world, _server) = world([]);
    let there = world.home().join("there");
    fs::create_dir_all(&there).unwrap();
    install_in(&world.work(), "mine");
    install_in(&there, "theirs");
    trust(&world, &[&world.work()]);
    let own = stored(&world, &world.work(), "aaaa", "one");
    let foreign = stored(&world, &there, "bbbb", "two");
    let mut client = client(&world);
    client.request("switch_session", json!({"sessionPath": own})).unwrap();
    client.request("fork", json!({"entryId": "u1"})).unwrap();
    assert_eq!((commands(&mut client, "mine"), starts(&world, "mine")), (vec!["mine".to_owned()], 1));
    client.request("switch_session", json!({"sessionPath": foreign})).unwrap();
    assert!(commands(&mut client, "").is_empty());
    client.close().unwrap();
    assert_eq!(starts(&world, "theirs"), 0);
}

#[test]
fn the_first_extension_of_a_session_may_come_with_a_reload() {
    let (world, _server) = world([]);
    let mut client = client(&world);
    assert!(commands(&mut client, "").is_empty());
    write_program(
        &world.agent_dir().join("extensions/late"),
        &script(&registers(&json!({"commands": [{"name": "late"}]}))),
    );
    client.request("reload", json!({})).unwrap();
    assert_eq!(commands(&mut client, "late"), ["late"]);
    client.close().unwrap();
}

#[test]
fn what_a_program_has_put_on_the_screen_goes_with_it() {
    let (world, _server) = world([]);
    let arms = r#"
    *'"type":"session_start"'*)
      call s ui.setStatus '{"key":"k","text":"on"}'; call w ui.setWidget '{"key":"k","lines":["x"]}'; ok null ;;
"#;
    super::install(&world, "shows", &json!({"events": ["session_start"]}), arms);
    let mut client = client(&world);
    commands(&mut client, "");
    fs::remove_file(world.agent_dir().join("extensions/shows")).unwrap();
    client.request("reload", json!({})).unwrap();
    for (method, key, content) in
        [("setStatus", "statusKey", "statusText"), ("setWidget", "widgetKey", "widgetLines")]
    {
        loop {
            let event = client.next_event().unwrap();
            if event["method"] == method && event.get(content).is_none() {
                assert_eq!(event[key], "k");
                break;
            }
        }
    }
    client.close().unwrap();
}

#[test]
fn a_session_that_is_opened_at_the_start_has_the_extensions_of_its_folder() {
    let (world, _server) = world([crate::server::Reply::text("done")]);
    let there = world.home().join("there");
    fs::create_dir_all(&there).unwrap();
    install_in(&world.work(), "mine");
    install_in(&there, "theirs");
    trust(&world, &[&world.work()]);
    let foreign = stored(&world, &there, "bbbb", "two");
    let pi =
        world.pi().words("--model mock/m1 --mode json --session").args([foreign.to_str().unwrap(), "hi"]);
    let done = pi.run().success();
    assert_eq!(done.events()[0]["cwd"], there.to_str().unwrap());
    // One that was on its way already is ended before the session begins.
    let told = super::events(&world).into_iter().filter(|event| event["type"] == "session_start");
    assert_eq!((told.count(), starts(&world, "theirs")), (0, 0));
}
