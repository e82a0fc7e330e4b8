//! One conversation after another, and what is stored of each.

use super::{client, conversation, start, until_text};
use crate::server::{Reply, Step};
use serde_json::{Value, json};

#[test]
fn a_new_session_ends_the_run_and_leaves_the_old_one_stored() {
    let (world, _server, mut client) =
        start([Reply::text("half").then(Step::Stall), Reply::text("second")]);
    let first = client.state().unwrap();
    client.prompt("one").unwrap();
    until_text(&mut client);
    let new = json!({"parentSession": first.session_file});
    let answer = client.request("new_session", new).unwrap();
    assert_eq!(answer, json!({"cancelled": false}));
    let second = client.state().unwrap();
    assert_ne!(first.session_id, second.session_id);
    assert_eq!((second.message_count, second.pending_message_count), (0, 0));
    client.wait_until_settled().unwrap();
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();

    let path = json!({"sessionPath": first.session_file});
    client.request("switch_session", path).unwrap();
    assert_eq!(client.state().unwrap().session_id, first.session_id);
    assert_eq!(conversation(&mut client), ["user: one", "assistant: half"]);
    // The session that is open can be opened again.
    let path = json!({"sessionPath": first.session_file});
    client.request("switch_session", path).unwrap();
    assert_eq!(conversation(&mut client), ["user: one", "assistant: half"]);
    assert!(client.close().unwrap().success());
    let file = std::fs::read_to_string(second.session_file.unwrap()).unwrap();
    let header: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    assert_eq!(header["parentSession"], json!(first.session_file));
    assert_eq!(world.session_files().len(), 2);
}

#[test]
fn modes_and_switches_outlive_a_conversation() {
    let (world, _server, mut client) = start([]);
    for (command, fields) in [
        ("set_steering_mode", json!({"mode": "all"})),
        ("set_follow_up_mode", json!({"mode": "all"})),
        ("set_interrupt_mode", json!({"mode": "immediate"})),
        ("set_auto_compaction", json!({"enabled": false})),
        ("set_auto_retry", json!({"enabled": true})),
        ("new_session", Value::Null),
    ] {
        client.request(command, fields).unwrap();
    }
    let state = client.request("get_state", Value::Null).unwrap();
    let keys = [
        "steeringMode",
        "followUpMode",
        "interruptMode",
        "autoCompactionEnabled",
        "autoRetryEnabled",
    ];
    assert_eq!(
        keys.map(|key| state[key].clone()),
        [
            json!("all"),
            json!("all"),
            json!("immediate"),
            json!(false),
            json!(true)
        ]
    );
    let settings = std::fs::read(world.agent_dir().join("settings.json")).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&settings).unwrap(),
        json!({"retry": {"enabled": true}, "steeringMode": "all", "followUpMode": "all",
            "compaction": {"enabled": false}})
    );
}

#[test]
fn nothing_is_stored_on_request() {
    let (world, _server) = crate::world([Reply::text("a")]);
    let mut client = client(&world, "--no-session");
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    assert_eq!(client.state().unwrap().session_file, None);
    client.request("new_session", Value::Null).unwrap();
    assert_eq!(client.state().unwrap().message_count, 0);
    drop(client);
    assert_eq!(world.session_files().len(), 0);
}

#[test]
fn entries_are_read_from_a_cursor_on() {
    let (_world, _server, mut client) = start([Reply::text("a"), Reply::text("b")]);
    client.prompt("one").unwrap();
    client.wait_until_settled().unwrap();
    let before = client.request("get_entries", Value::Null).unwrap();
    let last = before["entries"].as_array().unwrap().last().unwrap()["id"].clone();
    assert_eq!(before["leafId"], last);
    client.prompt("two").unwrap();
    client.wait_until_settled().unwrap();
    let after = client
        .request("get_entries", json!({"since": last}))
        .unwrap();
    let roles: Vec<&Value> = after["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["message"]["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant"]);

    let page = client
        .request("get_messages", json!({"offset": 1, "limit": 2}))
        .unwrap();
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&page["total"], &page["nextOffset"]),
        (&json!(5), &json!(3))
    );
    let page = client
        .request("get_messages", json!({"offset": 9}))
        .unwrap();
    assert_eq!(
        page,
        json!({"messages": [], "total": 5, "nextOffset": null})
    );
}

#[test]
fn a_name_is_stored_and_told() {
    let (_world, _server, mut client) = start([Reply::text("a")]);
    client
        .request("set_session_name", json!({"name": " mine "}))
        .unwrap();
    assert_eq!(
        client.next_event().unwrap(),
        json!({"type": "session_info_changed", "name": "mine"})
    );
    assert_eq!(
        client.state().unwrap().session_name.as_deref(),
        Some("mine")
    );
}
