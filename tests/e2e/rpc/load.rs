//! Much of everything: prompts, garbage, output that nobody reads.

use super::{client, start};
use crate::agent::World;
use crate::server::{PATIENCE, Reply, Server, Step};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Threads and open files of a process.
pub fn held(pid: u32) -> (usize, usize) {
    let count = |folder: &str| std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count);
    (count("task"), count("fd"))
}

/// Resident memory in KB.
pub fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// How much of something a test does: more where the environment asks for it.
fn amount(name: &str, usual: usize) -> usize {
    let asked = std::env::var(name).ok();
    asked.map_or(usual, |asked| asked.parse().expect(name))
}

/// `PI_SOAK_PROMPTS=10000` for a long run.
#[test]
fn many_prompts_leave_threads_files_and_memory_as_they_were() {
    /// Prompts of one conversation.
    const SESSION: usize = 25;
    let prompts = amount("PI_SOAK_PROMPTS", 150);
    let world = World::new();
    let server = Server::endless(|n| match n % 3 {
        0 => Reply::tool("t", "bash", &json!({"command": "echo x"})),
        _ => Reply::text(&n.to_string()),
    });
    world.use_server(&server);
    let mut client = client(&world, "");
    let (mut settled, mut first) = (0, ((0, 0), 0));
    for n in 1..=prompts {
        client.prompt("again").unwrap();
        let events = client.wait_until_settled().unwrap();
        let is_end = |event: &&Value| event["type"] == "agent_settled";
        settled += events.iter().filter(is_end).count();
        client.request("bash", json!({"command": ":"})).unwrap();
        // The conversation itself may grow: what it holds goes with it.
        if n % SESSION == 0 {
            client.request("new_session", Value::Null).unwrap();
        }
        if n == prompts / SESSION / 3 * SESSION {
            first = (held(client.pid()), resident(client.pid()));
        }
    }
    let last = (held(client.pid()), resident(client.pid()));
    println!("{prompts} prompts: threads, files and KB {first:?}, then {last:?}");
    assert_eq!(settled, prompts);
    let ((threads, files), kilobytes) = last;
    assert!(threads <= first.0.0 + 2 && files <= first.0.1 + 2, "{first:?}, {last:?}");
    assert!(kilobytes < first.1 + 4096, "{first:?}, {last:?}");
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
    assert_eq!(answer["error"], json!("Failed to parse command: the line is longer than 64 MB"));
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
                .map(|_| {
                    format!(
                        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n"
                    )
                })
                .collect::<String>(),
        );
    }
    let (world, server) = crate::world([reply]);
    let mut pi = world.pi().words("--mode rpc");
    pi.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = pi.command().spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n").unwrap();
    server.wait_for(1);
    // The whole answer has come in when the program has nothing left to read.
    stdin.write_all(b"{\"id\":\"last\",\"type\":\"abort_bash\"}\n").unwrap();
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
    for _ in 0..200 {
        assert!(client.state().unwrap().is_streaming);
    }
    open.send(()).unwrap();
    client.wait_until_settled().unwrap();
}

/// Makes a pipe with a name, for a command of the program to say something to the test.
fn pipe(world: &World, name: &str) -> PathBuf {
    let path = world.work().join(name);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("run mkfifo").success());
    path
}

/// What `wait` gives, if that does not take too long.
#[track_caller]
fn soon<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = sync_channel(1);
    thread::spawn(move || sender.send(wait()));
    done.recv_timeout(PATIENCE).expect("an end in time")
}

/// Waits until the other end has been opened and closed, and gives what it said.
#[track_caller]
fn said_by(pipe: PathBuf) -> String {
    soon(move || std::fs::read_to_string(pipe).expect("read a pipe"))
}

#[test]
fn a_full_pipe_holds_up_neither_the_model_nor_commands() {
    const DELTAS: usize = 100_000;
    let word = "forty bytes of text, again and again ...";
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": word}}]});
    let many = format!("data: {chunk}\n\n").repeat(DELTAS / 100);
    // Of no capacity: what is sent is received, and so all that stands before it has left. The second
    // gate is thrown away, unopened, when the client has gone.
    let ((open, held), (gone, never)) = (sync_channel(0), sync_channel(0));
    let reply = (0..100).fold(Reply::stream(), |reply, _| reply.then_bytes(many.clone()));
    let reply = reply.then_wait(held).then(Step::Stall).then_wait(never);
    let (world, _server) = crate::world([reply]);
    let [begun, obeyed, ended] = ["begun", "obeyed", "ended"].map(|name| pipe(&world, name));
    // The command waits until somebody is there to see its end.
    let ended = thread::spawn(move || said_by(ended));
    let mut pi = world.pi().words("--mode rpc");
    let command = pi.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take();
    let mut id = 0;
    let mut say = |mut line: Value| {
        id += 1;
        line["id"] = json!(id);
        writeln!(stdin.as_mut().unwrap(), "{line}").unwrap();
    };
    say(json!({"type": "prompt", "message": "go"}));
    soon(move || open.send(())).unwrap();
    let kilobytes = resident(child.id());
    assert!(kilobytes < 60_000, "{kilobytes} KB");

    // Many times what the pipe holds, and what a run may leave unread.
    for _ in 0..500 {
        say(json!({"type": "get_tools"}));
    }
    say(json!({"type": "steer", "message": "later"}));
    say(json!({"type": "bash", "command": "echo yes > obeyed"}));
    assert_eq!(said_by(obeyed), "yes\n");
    let sleep = "exec 9>ended; echo > begun; sleep 1000";
    say(json!({"type": "bash", "command": sleep}));
    said_by(begun);
    say(json!({"type": "abort_bash"}));
    ended.join().unwrap();
    say(json!({"type": "abort"}));
    assert!(soon(move || gone.send(()).is_err()));
    say(json!({"type": "clear_queue"}));
    let kilobytes = resident(child.id());
    assert!(kilobytes < 90_000, "{kilobytes} KB");

    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (mut said, mut whole) = (String::new(), String::new());
    let (mut lines, mut answered, mut kinds) = (0, Vec::new(), Vec::new());
    for line in stdout.lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        lines += 1;
        match event["type"].as_str().unwrap() {
            "response" => answered.push(event["id"].as_u64().unwrap()),
            kind => kinds.push(kind.to_owned()),
        }
        let step = &event["assistantMessageEvent"];
        if step["type"] == "text_delta" {
            said.push_str(step["delta"].as_str().unwrap());
        }
        if event["message"]["role"] == "assistant" {
            let text = &event["message"]["content"][0]["text"];
            text.as_str().unwrap_or_default().clone_into(&mut whole);
        }
        if event["type"] == "agent_settled" {
            drop(stdin.take());
        }
    }
    assert!(child.wait().unwrap().success());
    // Nothing of what came in is lost or out of order; the rest was not taken any more.
    assert!(said == whole, "{} and {} bytes", said.len(), whole.len());
    assert!(said.len() > 1 << 20, "{} bytes", said.len());
    assert!(lines < DELTAS / 4, "{lines} lines");
    // All are answered. Those that take no time are in their order.
    assert_eq!(answered.len(), id);
    let at_once: Vec<u64> = answered.into_iter().filter(|id| *id <= 502).collect();
    assert!(at_once.is_sorted(), "{at_once:?}");
    kinds.retain(|kind| !["queue_update", "entry_appended"].contains(&kind.as_str()));
    kinds.dedup();
    let expected = [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ];
    assert_eq!(kinds, expected);
}
