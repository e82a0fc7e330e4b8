//! Every wire protocol through the built binary: the recorded streams in tests/data/streams, played as
//! a server plays them.

use crate::agent::World;
use crate::server::{Reply, Server, Step};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

pub struct Wire {
    api: &'static str,
    /// Names the files.
    stream: &'static str,
    /// Of the list of messages in a request.
    place: &'static str,
}

const fn wire(api: &'static str, stream: &'static str, place: &'static str) -> Wire {
    Wire { api, stream, place }
}

pub const WIRES: &[Wire] = &[
    wire("anthropic-messages", "anthropic-messages", "/messages"),
    wire("azure-openai-responses", "openai-responses", "/input"),
    wire("google-generative-ai", "google-generative-ai", "/contents"),
    #[cfg(feature = "clouds")]
    wire("google-vertex", "google-generative-ai", "/contents"),
    wire("mistral-conversations", "mistral-conversations", "/messages"),
    wire("openai-codex-responses", "openai-responses", "/input"),
    wire("openai-completions", "openai-completions", "/messages"),
    wire("openai-responses", "openai-responses", "/input"),
    wire("pi-messages", "pi-messages", "/context/messages"),
];

/// A token of ChatGPT's form, which the others take as a key.
const KEY: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.s";

impl Wire {
    pub fn stream(&self, end: &str) -> String {
        let name = format!("tests/data/streams/{}{end}.sse", self.stream);
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
    }

    /// The provider `mock`, speaking this protocol and playing `replies`.
    fn world(&self, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
        let server = Server::start(replies);
        (self.world_of(&server), server)
    }

    pub fn world_of(&self, server: &Server) -> World {
        let world = World::new();
        let config = json!({"providers": {"mock": {"baseUrl": server.url(), "apiKey": KEY, "api": self.api,
            "models": [{"id": "m1", "input": ["text", "image"], "reasoning": true}]}}});
        world.write_config("models.json", &config.to_string());
        world.write("a.txt", "what the file says\n");
        world
    }
}

fn plays(stream: &str) -> Reply {
    Reply::stream().then_bytes(stream).cut()
}

#[test]
fn a_turn_with_tools_on_every_protocol() {
    for wire in WIRES {
        let replies = [plays(&wire.stream("")), plays(&wire.stream(".end"))];
        let (world, server) = wire.world(replies);
        let outcome = world
            .pi()
            .args(["--model", "mock/m1:low", "-p", "hi"])
            .env("GOOGLE_CLOUD_PROJECT", "p")
            .env("GOOGLE_CLOUD_LOCATION", "l")
            .run();
        outcome.success().stdout_is("All done.\n");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{}", wire.api);
        let messages = |at: usize| {
            let list = requests[at].body.pointer(wire.place);
            let list = list.and_then(Value::as_array).expect(wire.api).clone();
            list.iter().map(Value::to_string).collect::<Vec<_>>()
        };
        let second = messages(1).concat();
        for part in ["what the file says", "I read é.", "a.txt"] {
            assert!(second.contains(part), "{}: {part} in {second}", wire.api);
        }
        // The call and its result stand in the log, and what it cost.
        let session = world.session();
        let answers = session.iter().filter(|entry| entry["message"]["role"] == "assistant");
        let answers: Vec<&Value> = answers.map(|entry| &entry["message"]).collect();
        assert_eq!(answers[0]["api"], wire.api);
        assert_eq!(answers[0]["content"][0]["thinking"], "Let me look.");
        assert_eq!(answers[0]["usage"]["totalTokens"], 24, "{}", wire.api);
        let results = session.iter().filter(|entry| entry["message"]["role"] == "toolResult");
        assert_eq!(results.count(), 2, "{}", wire.api);
    }
}

#[test]
fn half_a_stream_runs_no_tool_and_is_no_answer() {
    for wire in WIRES {
        let stream = wire.stream("");
        let lines: Vec<&str> = stream.split_inclusive("\n\n").collect();
        // All but what says that the answer has ended.
        let last = match wire.api {
            "mistral-conversations" => lines.len() - 2,
            "openai-completions" => lines.len() - 3,
            _ => lines.len() - 1,
        };
        let (world, server) = wire.world([plays(&lines[..last].concat())]);
        let outcome = world.pi().args(["--model", "mock/m1", "-p", "hi"]).run();
        outcome.fails_with(1).stdout_is("");
        assert_eq!(server.requests().len(), 1, "{}", wire.api);
        let session = world.session();
        let is = |role: &str| session.iter().filter(|e| e["message"]["role"] == role).count();
        assert_eq!((is("assistant"), is("toolResult")), (1, 0), "{}", wire.api);
        assert_eq!(session.last().unwrap()["message"]["stopReason"], "error", "{}", wire.api);
    }
}

#[test]
fn an_abort_keeps_what_was_said_on_every_protocol() {
    for wire in WIRES {
        let stream = wire.stream(".end");
        let cut = stream.find("All ").unwrap();
        let cut = cut + stream[cut..].find("\n\n").unwrap() + 2;
        let reply = Reply::stream().then_bytes(&stream.as_bytes()[..cut]).then(Step::Stall);
        let (world, _server) = wire.world([reply]);
        let running = world.pi().args(["--model", "mock/m1", "--mode", "json", "hi"]).spawn();
        running.wait_for(r#""delta":"All ""#);
        running.signal("INT");
        running.wait().fails_with(130);
        let session = world.session();
        let message = &session.last().unwrap()["message"];
        assert_eq!(message["stopReason"], "aborted", "{}", wire.api);
        assert_eq!(message["content"][0]["text"], "All ", "{}", wire.api);
        if wire.api == "anthropic-messages" {
            assert_eq!(message["usage"]["input"], 10);
        }
    }
}

#[test]
fn halves_of_surrogate_pairs_in_a_session_reach_no_server() {
    for wire in WIRES {
        let (world, server) = wire.world([plays(&wire.stream(".end"))]);
        let user = r#"{"role":"user","content":[{"type":"text","text":"see \ud83d and \udc00 \u0007"}],"timestamp":1}"#;
        let said = r#"{"role":"assistant","content":[{"type":"text","text":"ok \ud83d"}],"api":"x","provider":"x","model":"x","stopReason":"stop","timestamp":2,"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}"#;
        let cwd = world.work().to_string_lossy().into_owned();
        let header = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd});
        let entry = |id: &str, parent: &str, message: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{message}}}"#
            )
        };
        let lines = [header.to_string(), entry("a", "null", user), entry("b", "\"a\"", said)];
        let path = world.write("old.jsonl", lines.join("\n") + "\n");
        let path = path.to_string_lossy().into_owned();
        let args = ["--model", "mock/m1", "--session", &path, "-p", "go on"];
        world.pi().args(args).run().success().stdout_is("All done.\n");
        // The server parsed the body, so it is JSON and UTF-8.
        let body = server.requests()[0].body.to_string();
        assert!(body.contains("see \u{fffd} and \u{fffd}"), "{}: {body}", wire.api);
        assert!(body.contains("ok \u{fffd}"), "{}: {body}", wire.api);
    }
}

#[test]
fn an_error_is_told_in_the_server_s_words_on_every_protocol() {
    let body = r#"{"error":{"message":"The model is tired.","type":"tired_error"}}"#;
    for wire in WIRES {
        let reply = Reply::raw(format!(
            "HTTP/1.1 418 No\r\ncontent-type: application/json\r\nx-request-id: req_77\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ));
        let (world, _server) = wire.world([reply]);
        let outcome = world.pi().args(["--model", "mock/m1", "-p", "hi"]).run();
        let outcome = outcome.fails_with(1).stdout_is("");
        for part in ["418", "The model is tired.", "req_77"] {
            assert!(outcome.stderr.contains(part), "{}: {}", wire.api, outcome.stderr);
        }
        assert!(!outcome.stderr.contains(KEY), "{}", wire.api);
    }
}
