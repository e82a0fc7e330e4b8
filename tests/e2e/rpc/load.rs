//! Much of everything: prompts, garbage, output that nobody reads.

use super::{client, start};
use crate::server::Reply;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Threads and open files of a process.
fn held(pid: u32) -> (usize, usize) {
    let count = |folder: &str| {
        std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count)
    };
    (count("task"), count("fd"))
}

/// Resident memory in KB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

#[test]
fn many_prompts_leave_threads_and_files_as_they_were() {
    const PROMPTS: usize = 300;
    let (_world, _server, mut client) = start((0..PROMPTS).map(|n| Reply::text(&n.to_string())));
    let mut settled = 0;
    let mut first = (0, 0);
    for n in 0..PROMPTS {
        client.prompt("again").unwrap();
        let events = client.wait_until_settled().unwrap();
        settled += events
            .iter()
            .filter(|event| event["type"] == "agent_settled")
            .count();
        client.request("bash", json!({"command": ":"})).unwrap();
        if n == 10 {
            first = held(client.pid());
        }
    }
    assert_eq!(settled, PROMPTS);
    let (threads, files) = held(client.pid());
    assert!(
        threads <= first.0 + 2 && files <= first.1 + 2,
        "{first:?}, then {threads} and {files}"
    );
    assert_eq!(client.last_text().unwrap(), Some((PROMPTS - 1).to_string()));
}

/// A small generator with a seed, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

#[test]
fn garbage_and_commands_in_any_order_do_no_harm() {
    let replies = (0..500).map(|n| match n % 3 {
        0 => Reply::text("some text"),
        1 => Reply::tool("t", "bash", &json!({"command": "sleep 0.01"})),
        _ => Reply::error(400, "no"),
    });
    let (_world, _server, mut client) = start(replies);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let values = [
        json!("text"),
        json!(""),
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!(true),
        json!("steer"),
        json!("all"),
        json!("immediate"),
        json!("high"),
        json!("mock"),
        json!("m1"),
        json!(["read"]),
        json!("sleep 0.02"),
    ];
    let keys = [
        "message",
        "mode",
        "level",
        "enabled",
        "provider",
        "modelId",
        "name",
        "command",
        "since",
        "offset",
        "streamingBehavior",
        "toolNames",
        "images",
        "entryId",
        "parentSession",
        "excludeFromContext",
    ];
    let names: Vec<&str> = pi::mode::rpc::names().collect();
    let mut sent = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) && sent.len() < 1500 {
        match dice.roll(4) {
            0 => {
                let line: Vec<u8> = (0..dice.roll(40))
                    .map(|_| u8::try_from(dice.roll(256)).unwrap())
                    .filter(|byte| *byte != b'\n')
                    .collect();
                client.send_line(&line).unwrap();
            }
            _ => {
                let name = names[dice.roll(names.len())];
                if ["switch_session", "export_html", "bash"].contains(&name) && dice.roll(4) > 0 {
                    continue;
                }
                let mut fields = serde_json::Map::new();
                for _ in 0..dice.roll(3) {
                    let key = keys[dice.roll(keys.len())];
                    fields.insert(key.into(), values[dice.roll(values.len())].clone());
                }
                if ["prompt", "steer", "abort_and_prompt"].contains(&name) {
                    fields.insert("message".into(), json!("hi"));
                }
                // An interrupt is answered in the way of the first protocol.
                let id = client.send(name, fields.into()).unwrap();
                if name != "interrupt" {
                    sent.push((id, name));
                }
            }
        }
        if dice.roll(16) == 0 {
            client.state().unwrap();
        }
    }
    for (id, name) in sent {
        let answer = client
            .answer(id)
            .unwrap_or_else(|error| panic!("{name} ({id}): {error}"));
        assert_eq!(answer["command"], json!(name));
    }
    client.abort().unwrap();
    client.request("clear_queue", Value::Null).unwrap();
    assert!(client.state().is_ok());
    let (threads, files) = held(client.pid());
    assert!(
        threads < 20 && files < 40,
        "{threads} threads, {files} files"
    );
    assert!(client.close().unwrap().success());
}

#[test]
fn a_line_without_end_costs_no_memory() {
    let (_world, _server, mut client) = start([]);
    client.request("ping", Value::Null).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let mut line = b"{\"type\":\"prompt\",\"message\":\"".to_vec();
    for _ in 0..70 {
        line.extend_from_slice(&piece);
    }
    client.send_line(&line).unwrap();
    let answer = client.next_event().unwrap();
    assert_eq!(
        answer["error"],
        json!("Failed to parse command: the line is longer than 64 MB")
    );
    client.request("ping", Value::Null).unwrap();
    let kilobytes = resident(client.pid());
    assert!(kilobytes < 60_000, "{kilobytes} KB");
}

#[test]
fn what_nobody_reads_waits_and_costs_no_memory() {
    const DELTAS: usize = 100_000;
    let word = "forty bytes of text, again and again ...";
    let mut reply = Reply::stream();
    for _ in 0..DELTAS / 100 {
        reply = reply.then_bytes(
            (0..100)
                .map(|_| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n"))
                .collect::<String>(),
        );
    }
    let (world, server) = crate::world([reply]);
    let mut pi = world.pi().words("--mode rpc");
    pi.command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n")
        .unwrap();
    server.wait_for(1);
    // The whole answer has come in when the program has nothing left to read.
    stdin
        .write_all(b"{\"id\":\"last\",\"type\":\"abort_bash\"}\n")
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (mut said, mut peak, mut lines) = (String::new(), 0, 0);
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
        lines += 1;
        if lines % 100 == 1 {
            peak = peak.max(resident(child.id()));
        }
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["assistantMessageEvent"]["type"] == "text_delta" {
            said.push_str(event["assistantMessageEvent"]["delta"].as_str().unwrap());
        }
        if event["type"] == "agent_settled" {
            break;
        }
    }
    assert_eq!(said.len(), DELTAS * word.len());
    assert!(peak < 60_000, "{peak} KB");
    drop((stdin, stdout));
    assert!(child.wait().unwrap().success());
}

#[test]
fn answers_are_quick_while_an_answer_streams() {
    let (open, held) = crate::server::gate();
    let (world, _server) = crate::world([Reply::text("x").then_wait(held)]);
    let mut client = client(&world, "");
    client.prompt("go").unwrap();
    for _ in 0..1000 {
        assert!(client.state().unwrap().is_streaming);
    }
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
}
