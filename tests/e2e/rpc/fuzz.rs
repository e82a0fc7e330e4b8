//! Garbage, and commands of every kind in any order, while the model does something all the time. Every
//! line that comes back fits the schema.
//!
//! A run is told by its seed: `PI_FUZZ_SEED` repeats one, `PI_FUZZ_SECONDS` makes it longer.

use super::load::{held, resident};
use super::schema::Schema;
use crate::agent::World;
use crate::server::{PATIENCE, Reply, Server};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Commands that may be open before their answers are waited for.
const OPEN_MAX: usize = 40;

pub fn setting(name: &str, usual: u64) -> u64 {
    let asked = std::env::var(name).ok();
    asked.map_or(usual, |asked| asked.parse().expect(name))
}

/// A small generator.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = self.roll(60);
        let bytes = (0..count).map(|_| u8::try_from(self.roll(256)).unwrap());
        bytes.filter(|byte| *byte != b'\n').collect()
    }
}

/// Makes values by the schema, most of them right.
struct Maker {
    schema: Value,
    dice: Dice,
    /// Texts that mean something somewhere: ids of entries and questions, files.
    texts: Vec<String>,
}

impl Maker {
    fn value(&mut self, shape: &Value) -> Value {
        if self.dice.roll(40) == 0 {
            let odd = [json!(null), json!(-1), json!([[]]), json!({"a": 1}), json!("\u{2028}\0")];
            return self.dice.pick(&odd).clone();
        }
        if let Some(name) = shape["$ref"].as_str() {
            let shape = self.schema.pointer(name.trim_start_matches('#')).unwrap().clone();
            return self.value(&shape);
        }
        for choice in ["anyOf", "enum"] {
            if let Some(choices) = shape[choice].as_array() {
                let chosen = self.dice.pick(choices).clone();
                return if choice == "enum" { chosen } else { self.value(&chosen) };
            }
        }
        match shape["type"].as_str() {
            Some("string") => {
                let text = self.dice.roll(self.texts.len());
                json!(self.texts[text])
            }
            Some("integer") => json!(self.dice.roll(20)),
            Some("boolean") => json!(self.dice.roll(2) == 0),
            Some("array") => {
                let count = self.dice.roll(3);
                (0..count).map(|_| self.value(&shape["items"])).collect()
            }
            Some("object") => self.object(shape).into(),
            _ => shape.get("const").cloned().unwrap_or_else(|| json!("x")),
        }
    }

    fn object(&mut self, shape: &Value) -> Map<String, Value> {
        let needed = shape["required"].as_array().cloned().unwrap_or_default();
        let fields = shape["properties"].as_object().cloned().unwrap_or_default();
        let mut made = Map::new();
        for (name, shape) in fields {
            let is_needed = needed.iter().any(|needed| *needed == json!(name));
            if name != "id" && (self.dice.roll(4) == 0 || (is_needed && self.dice.roll(30) > 0)) {
                made.insert(name, self.value(&shape));
            }
        }
        made
    }

    fn command(&mut self, name: &str) -> Value {
        let shape = self.schema["$defs"][format!("Command.{name}")].clone();
        let mut fields = self.object(&shape);
        fields.insert("type".into(), json!(name));
        match name {
            // Only what does no harm and ends soon.
            "bash" => {
                let commands = ["true", "echo x; echo y >&2", "sleep 0.02", "yes | head -10000", "exit 3"];
                fields.insert("command".into(), json!(self.dice.pick(&commands)));
            }
            "export_html" => drop(fields.insert("outputPath".into(), json!("page.html"))),
            _ => {}
        }
        Value::Object(fields)
    }

    /// An answer to a question of the program, for what is one.
    fn answer(&mut self, event: &Value) -> Option<Value> {
        let kind = match event["type"].as_str() {
            Some("extension_ui_request") => "extension_ui_response",
            Some("tool_call_request") => "tool_call_response",
            _ => return None,
        };
        let mut answer = self.command(kind);
        if self.dice.roll(6) > 0 {
            answer["id"] = event["id"].clone();
        }
        let words = ["Allow", "Always allow", "Deny", "Change the arguments", "{}", "x"];
        if kind == "extension_ui_response" {
            answer["value"] = json!(self.dice.pick(&words));
        }
        Some(answer)
    }
}

fn reply(n: usize) -> Reply {
    match n % 8 {
        0 => Reply::tool("t", "bash", &json!({"command": "sleep 0.01"})),
        1 => Reply::stream().then_thinking("hm").then_tool(0, "t", "look", &json!({})).then_tool(
            1,
            "u",
            "read",
            &json!({"path": "a"}),
        ),
        2 => Reply::error(503, "busy"),
        3 => Reply::error(400, "no"),
        4 => Reply::text("half").cut(),
        5 => Reply::tool("t", "write", &json!({"path": "a", "content": "b"})),
        6 => Reply::text(&"long ".repeat(200)).with_prompt_tokens(120_000),
        _ => Reply::text("some text"),
    }
}

/// A line of the program. A tree that is too deep to be held counts by its head.
fn read(line: &[u8]) -> Value {
    #[derive(Deserialize)]
    struct Head {
        id: Value,
        command: Value,
        #[serde(rename = "data")]
        _tree: IgnoredAny,
    }
    let value = serde_json::from_slice(line).or_else(|_| {
        let head: Head = serde_json::from_slice(line)?;
        Ok(json!({"type": "response", "id": head.id, "command": head.command}))
    });
    value.unwrap_or_else(|error: serde_json::Error| {
        let start = line.get(..200).unwrap_or(line);
        panic!("{error}: {}", String::from_utf8_lossy(start))
    })
}

/// The program, and what it has not answered yet.
struct Peer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    open: HashMap<u64, String>,
    last_id: u64,
    schema: Schema,
    maker: Maker,
    /// Texts of the maker that stay.
    kept: usize,
}

impl Peer {
    fn start(world: &World, maker: Maker) -> Self {
        let mut pi = world.pi().words("--mode rpc --ask-tools writes");
        let command = pi.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("start pi");
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.expect("a line");
                let value = read(&line);
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            open: HashMap::new(),
            last_id: 0,
            schema: Schema::printed(),
            kept: maker.texts.len(),
            maker,
        }
    }

    fn say(&mut self, line: &[u8]) {
        self.stdin.write_all(line).expect("write");
        self.stdin.write_all(b"\n").expect("write");
    }

    fn send(&mut self, name: &str, mut command: Value) {
        self.last_id += 1;
        command["id"] = json!(self.last_id);
        command["type"] = json!(name);
        self.open.insert(self.last_id, name.to_owned());
        self.say(command.to_string().as_bytes());
    }

    fn hear(&mut self, line: &Value) {
        // The head of a tree is no whole line.
        if line.get("success").is_some() || line["type"] != "response" {
            self.schema.holds(line);
        }
        let id = line["id"].as_u64();
        match line["type"].as_str() {
            Some("response" | "interrupted") => {
                if let Some(name) = id.and_then(|id| self.open.remove(&id)) {
                    let is_named = line["command"] == json!(name) || name == "interrupt";
                    assert!(is_named, "{name}: {line}");
                }
                let leaf = line["data"]["leafId"].as_str();
                self.maker.texts.extend(leaf.map(str::to_owned));
            }
            _ => {
                if let Some(answer) = self.maker.answer(line) {
                    self.say(answer.to_string().as_bytes());
                }
                let entry = line["entry"]["id"].as_str();
                self.maker.texts.extend(entry.map(str::to_owned));
            }
        }
        if self.maker.texts.len() > self.kept + 20 {
            self.maker.texts.remove(self.kept);
        }
    }

    /// Hears what there is, and more while too much is open.
    fn catch_up(&mut self, open_max: usize) {
        while let Ok(line) = self.lines.try_recv() {
            self.hear(&line);
        }
        if self.open.len() > open_max {
            // A run may wait for an answer that is not given, and others for the run.
            self.send("abort", json!({}));
        }
        while self.open.len() > open_max {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("{error}: open are {:?}", self.open));
            self.hear(&line);
        }
    }
}

#[test]
fn garbage_and_commands_in_any_order_do_no_harm() {
    let seed = setting("PI_FUZZ_SEED", 0x9e37_79b9_7f4a_7c15);
    let limit = Duration::from_secs(setting("PI_FUZZ_SECONDS", 2));
    let world = World::new();
    let server = Server::endless(reply);
    world.use_server(&server);
    world.write_config(
        "settings.json",
        r#"{"retry": {"maxRetries": 2, "baseDelayMs": 1}, "compaction": {"keepRecentTokens": 50}}"#,
    );
    let words = "text /t mock m1 read bash look ui-1 call-1 a.jsonl";
    let schema = Schema::printed();
    let maker = Maker {
        schema: schema.0.clone(),
        dice: Dice(seed),
        texts: words.split(' ').map(str::to_owned).collect(),
    };
    let mut peer = Peer::start(&world, maker);
    let shapes = schema.0["$defs"].as_object().expect("shapes");
    let names = shapes.keys().filter_map(|name| name.strip_prefix("Command."));
    let names: Vec<&str> = names.filter(|name| shapes.contains_key(&format!("Response.{name}"))).collect();
    assert!(names.contains(&"prompt"));
    let (start, mut count) = (Instant::now(), 0);
    println!("seed {seed}");
    while start.elapsed() < limit {
        count += 1;
        if peer.maker.dice.roll(6) == 0 {
            let line = peer.maker.dice.bytes();
            peer.say(&line);
        } else {
            // Prompts come often, so that there is a run that the others meet.
            let name = match peer.maker.dice.roll(6) {
                0 => "prompt",
                _ => peer.maker.dice.pick(&names),
            };
            let command = peer.maker.command(name);
            peer.send(name, command);
        }
        peer.catch_up(OPEN_MAX);
    }
    for last in ["abort", "abort_bash", "clear_queue", "abort"] {
        peer.send(last, json!({}));
        peer.catch_up(0);
    }
    let (threads, files) = held(peer.child.id());
    println!("{count} lines; {threads} threads, {files} files, {} KB", resident(peer.child.id()));
    assert!(threads < 20 && files < 40, "{threads} threads, {files} files");
    assert!(resident(peer.child.id()) < 120_000);
    drop(peer.stdin);
    assert!(peer.child.wait().expect("an end").success());
}
