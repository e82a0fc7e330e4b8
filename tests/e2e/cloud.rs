//! Models behind the clouds' own sign-ins, whose keys come from where those keep them.

use crate::agent::World;
use crate::server::{Reply, Server};
use serde_json::{Value, json};
use std::fs;

/// A message of an AWS event stream.
fn event(kind: &str, payload: &Value) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [(":event-type", kind), (":message-type", "event")] {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(&headers);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn answer(events: &[(&str, Value)]) -> Reply {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n";
    let events = events.iter().map(|(kind, payload)| event(kind, payload));
    Reply::raw(head).then_bytes(events.collect::<Vec<_>>().concat())
}

fn says(text: &str) -> Reply {
    answer(&[
        ("messageStart", json!({"role": "assistant"})),
        ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": text}})),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": "end_turn"})),
        ("metadata", json!({"usage": {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}})),
    ])
}

fn calls(id: &str, name: &str, arguments: &Value) -> Reply {
    let start = json!({"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": id, "name": name}}});
    let input = json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": arguments.to_string()}}});
    answer(&[
        ("messageStart", json!({"role": "assistant"})),
        ("contentBlockStart", start),
        ("contentBlockDelta", input),
        ("contentBlockStop", json!({"contentBlockIndex": 0})),
        ("messageStop", json!({"stopReason": "tool_use"})),
        ("metadata", json!({"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}})),
    ])
}

fn bedrock(replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let world = World::new();
    let server = Server::start(replies);
    let url = format!("http://127.0.0.1:{}", server.port());
    let model = json!({"id": "anthropic.claude-test-v1:0", "input": ["text", "image"]});
    let provider = json!({"baseUrl": url, "api": "bedrock-converse-stream", "models": [model]});
    let config = json!({"providers": {"amazon-bedrock": provider}});
    world.write_config("models.json", &config.to_string());
    (world, server)
}

const MODEL: [&str; 2] = ["--model", "amazon-bedrock/anthropic.claude-test-v1:0"];

#[test]
fn a_conversation_with_bedrock_is_signed_with_the_keys_of_the_profile() {
    let arguments = json!({"path": "a.txt"});
    let (world, server) = bedrock([calls("t1", "read", &arguments), says("It says: hello")]);
    world.write("a.txt", "hello\n");
    fs::create_dir_all(world.home().join(".aws")).unwrap();
    let keys = "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = canary-secret\naws_session_token = canary-token\n";
    fs::write(world.home().join(".aws/credentials"), keys).unwrap();
    fs::write(world.home().join(".aws/config"), "[profile work]\nregion = eu-west-1\n").unwrap();
    let run = |mode: &[&str]| {
        let pi = world.pi().env("AWS_PROFILE", "work").args(MODEL).args(mode);
        pi.args(["what is in a.txt?"]).run().success()
    };
    run(&["-p"]).stdout_is("It says: hello\n");
    let requests = server.requests();
    assert_eq!(requests[0].path, "/model/anthropic.claude-test-v1%3A0/converse-stream");
    let signature = requests[0].header("authorization").unwrap();
    let place = "/eu-west-1/bedrock/aws4_request, SignedHeaders=accept;content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
    assert!(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDWORK/"), "{signature}");
    assert!(signature.contains(place), "{signature}");
    assert_eq!(requests[0].header("x-amz-security-token"), Some("canary-token"));
    let messages = requests[1].messages();
    assert_eq!(
        messages[1]["content"],
        json!([{"toolUse": {"toolUseId": "t1", "name": "read", "input": arguments}}])
    );
    let result =
        json!([{"toolResult": {"toolUseId": "t1", "content": [{"text": "hello\n"}], "status": "success"}}]);
    assert_eq!(messages[2]["content"], result);
    let session = world.session();
    let last = &session.last().unwrap()["message"];
    assert_eq!((&last["usage"]["totalTokens"], &last["rawStopReason"]), (&json!(11), &json!("end_turn")));
    let stored = fs::read_to_string(&world.session_files()[0]).unwrap();
    assert!(!stored.contains("canary"), "{stored}");
}

#[test]
fn a_bedrock_key_goes_as_a_bearer_token() {
    let (world, server) = bedrock([says("ok")]);
    let pi = world.pi().env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-1");
    pi.args(MODEL).args(["-p", "hi"]).run().success().stdout_is("ok\n");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer bedrock-key-1"));
    assert_eq!(request.header("x-amz-date"), None);
}

#[test]
fn an_error_of_bedrock_is_told_in_its_words() {
    let body = r#"{"message":"The provided model identifier is invalid."}"#;
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nx-amzn-errortype: ValidationException:http://x\r\nconnection: close";
    let reply = Reply::raw(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    let (world, _server) = bedrock([reply]);
    let pi = world.pi().env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key-1");
    let outcome = pi.args(MODEL).args(["-p", "hi"]).run();
    outcome.fails_with(1).stderr_has("Validation error: The provided model identifier is invalid.");
}

#[test]
fn a_profile_that_is_not_there_is_named_and_nobody_is_asked() {
    let (world, server) = bedrock([says("ok")]);
    let pi = world.pi().env("AWS_PROFILE", "nobody").args(MODEL);
    pi.args(["-p", "hi"]).run().fails_with(1).stderr_has("The AWS profile \"nobody\" is not in");
    assert_eq!(server.connections(), 0);
}

#[test]
fn vertex_is_asked_with_the_token_of_application_default_credentials() {
    let world = World::new();
    let chunk = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}]});
    let token = json!({"access_token": "ya29.token", "expires_in": 3600}).to_string();
    let server = Server::start([
        Reply::status(200, "application/json", &token),
        Reply::stream().cut().then_bytes(format!("data: {chunk}\n\n")),
    ]);
    let url = format!("http://127.0.0.1:{}", server.port());
    let provider = json!({"baseUrl": url, "api": "google-vertex", "models": [{"id": "gemini-test"}]});
    world.write_config("models.json", &json!({"providers": {"google-vertex": provider}}).to_string());
    let adc = json!({"type": "authorized_user", "client_id": "c", "client_secret": "canary-secret", "refresh_token": "canary-refresh", "token_uri": format!("{url}/token")});
    let adc = world.write("adc.json", adc.to_string());
    let pi = world
        .pi()
        .env("GOOGLE_APPLICATION_CREDENTIALS", &adc)
        .env("PI_DEBUG_HTTP", world.work().join("http.log"))
        .env("GOOGLE_CLOUD_PROJECT", "p1")
        .env("GOOGLE_CLOUD_LOCATION", "global");
    let pi = pi.args(["--model", "google-vertex/gemini-test", "-p", "hi"]);
    pi.run().success().stdout_is("ok\n");
    let requests = server.requests();
    assert_eq!(requests[0].path, "/token");
    assert_eq!(requests[1].header("authorization"), Some("Bearer ya29.token"));
    assert_eq!(requests[1].header("x-goog-api-key"), None);
    let log = world.read("http.log");
    for secret in ["ya29.token", "canary"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(log.contains("/token") && log.contains("answer: 200"), "{log}");
}
