//! Inputs that were changed at random: files that a start reads, answers of servers, keys, messages of editors.
//! Whatever they say, a run ends in order or goes on.
//!
//! A run is told by its seed: `PI_FUZZ_SEED` repeats one, `PI_FUZZ_SECONDS` makes it longer.

use crate::agent::{Outcome, World};
use crate::protocol::WIRES;
use crate::rpc::fuzz::{Dice, setting};
#[cfg(feature = "interactive")]
use crate::screen::Screen;
use crate::server::{Reply, Server};
#[cfg(feature = "acp")]
use serde_json::json;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What parsers stumble over.
const ODD: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[[[[[[[[",
    b"]",
    b",",
    b":",
    b"null",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"\\ud800",
    b"\0",
    b"\r",
    b"\n",
    b"\n\n",
    b"\xff\xfe",
    b"\xc3",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"---\n",
    b"data: ",
    b"event: ",
    b"<<: *a",
    b"&a",
    b"${HOME}",
    b"!",
    b"$1",
    b"\x1b[",
    b"\x1b]",
    b"\x1b[200~",
    b"```",
];

/// Makes mutants for as long as the run lasts.
struct Breeder {
    dice: Dice,
    end: Instant,
    count: usize,
}

impl Breeder {
    fn new() -> Self {
        let seed = setting("PI_FUZZ_SEED", 0x2545_f491_4f6c_dd1d);
        println!("seed {seed}");
        let limit = Duration::from_secs(setting("PI_FUZZ_SECONDS", 2));
        Self { dice: Dice(seed), end: Instant::now() + limit, count: 0 }
    }

    fn goes_on(&mut self) -> bool {
        self.count += 1;
        Instant::now() < self.end
    }

    /// `seed` with one to four changes.
    fn mutant(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.dice.roll(4) {
            let at = self.dice.roll(bytes.len() + 1);
            let end = (at + self.dice.roll(30)).min(bytes.len());
            match self.dice.roll(6) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..at, ODD[self.dice.roll(ODD.len())].iter().copied())),
                2 => drop(bytes.splice(at..end, ODD[self.dice.roll(ODD.len())].iter().copied())),
                3 => {
                    let copy = bytes[at..end].to_vec();
                    let to = self.dice.roll(bytes.len() + 1);
                    bytes.splice(to..to, copy);
                }
                4 if at < bytes.len() => bytes[at] ^= 1 << self.dice.roll(8),
                _ => bytes.truncate(at),
            }
        }
        bytes
    }
}

/// Exits as documented, without an internal error.
#[track_caller]
fn ends_in_order(outcome: &Outcome, mutant: &[u8]) {
    let is_known = matches!(outcome.status.code(), Some(0..=2)) && outcome.status.signal().is_none();
    let is_internal = outcome.stderr.contains("panicked") || outcome.stderr.contains("internal error");
    assert!(
        is_known && !is_internal,
        "{}: {}\nafter {}",
        outcome.status,
        outcome.stderr,
        mutant.escape_ascii()
    );
}

/// Files that a start reads, by their paths below the agent folder.
const FILES: &[(&str, &str)] = &[
    (
        "settings.json",
        r#"{"$schema": "s", "defaultThinkingLevel": "low", "theme": "own", "enabledModels": ["faux/*"], "packages": [],
            "compaction": {"enabled": true, "reserveTokens": 1000}, "retry": {"maxRetries": 1}, "skills": ["+a", "-b"],
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true", "timeout": 1}]}]},
            "permissions": {"deny": ["bash(rm *)"]}, "defaultTools": ["+grep"]}"#,
    ),
    (
        "models.json",
        r#"{"providers": {"own": {"baseUrl": "http://127.0.0.1:9", "apiKey": "OWN_KEY", "api": "openai-completions",
            "headers": {"a": "b"}, "models": [{"id": "m", "cost": {"input": 1, "output": 2}, "contextWindow": 10000,
            "thinkingLevelMap": {"off": null}, "compat": {"supportsStore": false}}]}}} // end"#,
    ),
    (
        "auth.json",
        r#"{"own": {"type": "api_key", "key": "k"}, "anthropic": {"type": "oauth", "access": "a", "refresh": "r",
            "expires": 1}}"#,
    ),
    ("keybindings.json", r#"{"app.interrupt": ["escape", "ctrl+x"], "tui.input.submit": "enter"}"#),
    ("mcp.json", r#"{"mcpServers": {"a": {"command": "true", "args": ["${HOME}"], "enabled": false}}}"#),
    ("trust.json", r#"{"/a": true}"#),
    (
        "themes/own.json",
        r##"{"name": "own", "vars": {"a": "#aabbcc", "b": 12}, "colors": {"accent": "a", "border": "b"}}"##,
    ),
    ("prompts/t.md", "---\ndescription: d\nargument-hint: <a>\n---\nSay $1 and ${@:2} and $ARGUMENTS\n"),
    (
        "skills/s/SKILL.md",
        "---\nname: s\ndescription: |\n  two\n  lines\nmetadata: {a: [1, 'b']}\n---\nText\n",
    ),
    ("agents/a.md", "---\nname: a\ndescription: d\ntools: read, grep\nmodel: faux/echo\n---\nText\n"),
    ("SYSTEM.md", "You are {{name}}.\n"),
    ("AGENTS.md", "# Rules\n\n- one\n@other.md\n"),
];

#[test]
fn changed_files_end_no_start_badly() {
    let world = World::new();
    let place = |name: &str| world.agent_dir().join(name);
    let set = |name: &str, content: &[u8]| {
        let path = place(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    FILES.iter().for_each(|(name, content)| set(name, content.as_bytes()));
    let words = ["--offline", "--no-session", "--model", "faux/echo", "-p", "/t one two"];
    world.pi().args(words).run().success().stdout_is("Say one and two and one two\n");
    let mut breeder = Breeder::new();
    while breeder.goes_on() {
        let (name, content) = FILES[breeder.dice.roll(FILES.len())];
        let mutant = breeder.mutant(content.as_bytes());
        set(name, &mutant);
        ends_in_order(&world.pi().args(words).run(), &mutant);
        set(name, content.as_bytes());
    }
    println!("{} mutants", breeder.count);
}

#[test]
fn a_changed_session_is_gone_on_with_or_refused_and_stays_what_it_was() {
    let world = World::new();
    let seed = include_bytes!("../data/session/everything.jsonl");
    let path: PathBuf = world.work().join("s.jsonl");
    let mut breeder = Breeder::new();
    while breeder.goes_on() {
        let mutant = breeder.mutant(seed);
        fs::write(&path, &mutant).unwrap();
        let outcome = world.pi().words("--offline --model faux/echo --session s.jsonl -p hi").run();
        ends_in_order(&outcome, &mutant);
        let after = fs::read(&path).unwrap();
        assert!(after.starts_with(&mutant), "{}", mutant.escape_ascii());
    }
    println!("{} mutants", breeder.count);
}

#[test]
fn changed_answers_end_a_run_in_order() {
    for wire in WIRES {
        let played = Arc::new(Mutex::new(Vec::new()));
        let next = played.clone();
        let server = Server::endless(move |_| Reply::stream().then_bytes(next.lock().unwrap().clone()).cut());
        let world = wire.world_of(&server);
        world.write_config("settings.json", r#"{"retry": {"enabled": false}}"#);
        let mut breeder = Breeder::new();
        breeder.end = Instant::now() + (breeder.end - Instant::now()) / u32::try_from(WIRES.len()).unwrap();
        // The end of a conversation: no tool runs after it.
        let seed = wire.stream(".end");
        while breeder.goes_on() {
            let mutant = breeder.mutant(seed.as_bytes());
            played.lock().unwrap().clone_from(&mutant);
            let words = ["--no-session", "--no-tools", "--model", "mock/m1:low", "-p", "hi"];
            let pi =
                world.pi().args(words).env("GOOGLE_CLOUD_PROJECT", "p").env("GOOGLE_CLOUD_LOCATION", "l");
            ends_in_order(&pi.run(), &mutant);
        }
    }
}

#[test]
#[cfg(feature = "interactive")]
fn changed_keys_leave_the_editor_alive() {
    let world = World::new();
    let mut breeder = Breeder::new();
    let seed = "text \u{1b}[A\u{1b}[1;5C\u{1b}b\u{1b}[27;5;13~\u{1b}[97;5u\u{1b}[200~pasted\ttext\u{1b}[201~\u{1b}OP\u{1b}[3~\
                \u{1}\u{5}\u{b}\u{19}\u{17}\u{1b}d\u{1b}[<0;3;4M\u{1b}[<64;3;4M\u{1b}[I\u{1b}[O\u{1b}[?62;22c\u{1b}]11;rgb:00/00/00\u{7}\
                @a \u{1b}[B\t/mo\u{1b}é漢👩‍💻 end";
    // What sends, ends, suspends, or starts another program.
    let acts = [3, 4, 7, 10, 13, 22, 26, 28];
    while breeder.goes_on() {
        let screen = Screen::start(world.pi().words("--offline --no-session --model faux/echo"));
        screen.wait_for("0.0%/");
        for _ in 0..20 {
            let mut mutant = breeder.mutant(seed.as_bytes());
            mutant.retain(|byte| !acts.contains(byte));
            screen.type_bytes(&mutant);
        }
        // An unfinished sequence or paste ends first.
        screen.type_keys("\u{1b}[201~\u{1b}\\alive");
        screen.wait_until("the editor answers", |text| {
            text.lines().map(str::trim_end).collect::<String>().contains("alive")
        });
    }
    println!("{} sessions", breeder.count);
}

#[test]
#[cfg(feature = "acp")]
fn changed_messages_of_an_editor_leave_the_program_alive() {
    use pi::client::Client;
    let world = World::new();
    let mut pi = world.pi().words("--mode acp --offline --model faux/echo");
    let mut client = Client::spawn(pi.command().stderr(std::process::Stdio::null())).expect("start pi");
    client.set_patience(crate::server::PATIENCE);
    let cwd = world.work();
    let seeds = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "s",
            "prompt": [{"type": "text", "text": "hi"}]}}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "session/list", "params": {"cursor": "c"}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}),
        json!({"jsonrpc": "2.0", "id": 5, "result": {"outcome": {"outcome": "selected", "optionId": "a"}}}),
    ];
    let mut breeder = Breeder::new();
    let mut asked = 0;
    while breeder.goes_on() {
        let seed = seeds[breeder.dice.roll(seeds.len())].to_string();
        let mut mutant = breeder.mutant(seed.as_bytes());
        mutant.retain(|byte| *byte != b'\n');
        client.send_line(&mutant).expect("send");
        asked += 1;
        let id = format!("alive {asked}");
        let question = json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}});
        client.send_line(question.to_string().as_bytes()).expect("send");
        while client.next_event().expect("an answer")["id"] != json!(id) {}
    }
    println!("{} messages", breeder.count);
}
