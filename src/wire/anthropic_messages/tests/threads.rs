//! Conversations that the server keeps: what is sent, and what happens when the server has forgotten.

use super::*;
use crate::base::cancel::CancelToken;
use crate::llm::message::{AssistantMessage, Message};
use crate::llm::testing::Server;
use crate::wire::stream;
use std::sync::{Arc, Mutex};

/// A server that answers with the replies in turn: an id and a text, or a status and an error. It ends the
/// connection after each of them.
struct Kept {
    server: Server,
    bodies: Arc<Mutex<Vec<(Value, String)>>>,
}

fn said(id: &str, text: &str) -> (u16, String) {
    let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
    let body = [
        event(
            "message_start",
            json!({"type": "message_start", "message": {"id": id, "model": "claude", "usage": {}}}),
        ),
        event(
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        ),
        event("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        event(
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}),
        ),
        event("message_stop", json!({"type": "message_stop"})),
    ];
    (200, body.concat())
}

fn refused(status: u16, code: Option<&str>, message: &str) -> (u16, String) {
    let details = json!({"error_code": code});
    (
        status,
        json!({"error": {"type": "invalid_request_error", "message": message, "details": details}})
            .to_string(),
    )
}

impl Kept {
    fn start(replies: Vec<(u16, String)>) -> Self {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (seen, replies) = (bodies.clone(), Mutex::new(replies.into_iter()));
        let server = Server::start(move |connection| {
            let Some(request) = connection.request() else { return };
            let betas = request.header("anthropic-beta").unwrap_or_default().to_owned();
            seen.lock().unwrap().push((serde_json::from_slice(&request.body).unwrap(), betas));
            let (status, body) = replies.lock().unwrap().next().unwrap();
            connection.answer(&format!("{status} x"), "connection: close\r\n", body);
        });
        Self { server, bodies }
    }

    fn model(&self) -> Arc<Model> {
        let compat = json!({"supportsMessageThreads": true});
        Arc::new(model(json!({"baseUrl": self.server.url(""), "compat": compat})))
    }

    /// Sends `messages`, and adds the answer to them.
    #[track_caller]
    fn ask(&self, session: &str, messages: &mut Vec<Value>) -> AssistantMessage {
        let options = StreamOptions { session_id: Some(session.to_owned()), ..testing::options() };
        let context = testing::context(&Value::from(messages.clone()));
        let (message, error) = stream(&self.model(), context, options, &CancelToken::new()).finish();
        assert_eq!(error, None);
        messages.push(serde_json::to_value(Message::Assistant(Arc::new(message.clone()))).unwrap());
        message
    }

    /// The texts of the messages of each request, after what it says of a thread.
    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let text = |message: &Value| {
            let blocks = message["content"].as_array().unwrap().iter();
            let texts =
                blocks.map(|block| block["text"].as_str().or(block["content"].as_str()).unwrap_or("call"));
            texts.collect::<Vec<_>>().join("+")
        };
        let bodies = self.bodies.lock().unwrap();
        let shown: Vec<String> = bodies
            .iter()
            .map(|(body, betas)| {
                assert!(betas.contains("message-threads-2026-08-12"), "{betas}");
                let thread = &body["thread"];
                let is_short = thread["type"] == "continue";
                assert_eq!((body["system"].is_null(), body["tools"].is_null()), (is_short, is_short));
                assert_eq!(body["model"], "claude");
                let head = match thread["previous_message_id"].as_str() {
                    Some(id) => format!("after {id}"),
                    None => thread["type"].as_str().unwrap_or("plain").to_owned(),
                };
                let texts: Vec<String> = body["messages"].as_array().unwrap().iter().map(text).collect();
                format!("{head}: {}", texts.join(", "))
            })
            .collect();
        assert_eq!(shown, expected);
    }
}

fn begin() -> Vec<Value> {
    vec![
        json!({"role": "system", "content": "Be brief.", "toolsAdded": [testing::tool("ls")], "timestamp": 1}),
        user("one"),
    ]
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 2})
}

#[test]
fn a_repetition_leaves_the_thread_alone() {
    let kept = Kept::start(vec![said("m1", "A"), said("m2", "B"), said("m3", "C")]);
    let mut messages = begin();
    let context = testing::context(&Value::from(messages.clone()));
    kept.ask("repeated", &mut messages);
    let session_id = Some("repeated".to_owned());
    let options = StreamOptions { session_id, is_repetition: true, ..testing::options() };
    stream(&kept.model(), context, options, &CancelToken::new()).finish();
    messages.push(user("two"));
    kept.ask("repeated", &mut messages);
    kept.check(&["create: one", "plain: one", "after m1: two"]);
}

#[test]
fn only_what_is_new_is_sent() {
    let kept = Kept::start(vec![said("m1", "A"), said("m2", "B"), said("m3", "C")]);
    let mut messages = begin();
    kept.ask("only-new", &mut messages);
    messages.push(user("two"));
    kept.ask("only-new", &mut messages);
    messages.push(user("three"));
    let answer = kept.ask("only-new", &mut messages);
    kept.check(&["create: one", "after m1: two", "after m2: three"]);
    assert_eq!(answer.extra.get("diagnostics"), None);
}

#[test]
fn a_changed_beginning_is_sent_whole() {
    let kept = Kept::start((1..=6).map(|n| said(&format!("m{n}"), "A")).collect());
    let mut messages = begin();
    kept.ask("changed", &mut messages);
    messages.push(user("two"));
    // Another session knows nothing of it.
    kept.ask("changed-other", &mut messages.clone());
    // The answer was changed after it came.
    messages[2]["content"][0]["text"] = json!("Edited.");
    kept.ask("changed", &mut messages);
    messages.push(user("three"));
    kept.ask("changed", &mut messages);
    // Other tools, then a shorter conversation.
    messages[0]["toolsAdded"][0]["description"] = json!("other");
    messages.push(user("four"));
    kept.ask("changed", &mut messages);
    messages.truncate(2);
    kept.ask("changed", &mut messages);
    kept.check(&[
        "create: one",
        "create: one, A, two",
        "create: one, Edited., two",
        "after m3: three",
        "create: one, Edited., two, A, three, A, four",
        "create: one",
    ]);
}

#[test]
fn an_answer_of_another_model_is_not_continued() {
    let (status, fallback) = said("m1", "A");
    let kept = Kept::start(vec![(status, fallback.replace("claude", "haiku")), said("m2", "B")]);
    let mut messages = begin();
    kept.ask("fallback", &mut messages);
    messages.push(user("two"));
    kept.ask("fallback", &mut messages);
    kept.check(&["create: one", "create: one, A, two"]);
}

#[test]
fn a_server_that_has_forgotten_gets_the_whole() {
    for code in [
        "thread_not_found",
        "thread_already_continued",
        "thread_continue_in_flight",
        "thread_fingerprint_mismatch",
    ] {
        let replies =
            vec![said("m1", "A"), refused(404, Some(code), "gone"), said("m2", "B"), said("m3", "C")];
        let kept = Kept::start(replies);
        let mut messages = begin();
        kept.ask(code, &mut messages);
        messages.push(user("two"));
        let answer = kept.ask(code, &mut messages);
        messages.push(user("three"));
        kept.ask(code, &mut messages);
        kept.check(&["create: one", "after m1: two", "create: one, A, two", "after m2: three"]);
        let told = &answer.extra["diagnostics"][0];
        assert_eq!(told["type"], "anthropic_thread_fallback");
        assert_eq!(told["details"]["reason"], code);
    }
}

#[test]
fn a_server_without_threads_is_asked_once() {
    let rows = [
        ("unsupported", refused(400, Some("thread_unsupported_request"), "no")),
        ("unknown", refused(400, None, "thread: Extra inputs are not permitted")),
    ];
    for (session, refusal) in rows {
        let kept = Kept::start(vec![refusal, said("m1", "A"), said("m2", "B")]);
        let mut messages = begin();
        kept.ask(session, &mut messages);
        messages.push(user("two"));
        kept.ask(session, &mut messages);
        kept.check(&["create: one", "plain: one", "plain: one, A, two"]);
    }
}

#[test]
fn other_refusals_stay() {
    let kept = Kept::start(vec![refused(400, Some("prompt_too_long"), "the thread is too long")]);
    let options = StreamOptions { session_id: Some("other".to_owned()), ..testing::options() };
    let context = testing::context(&Value::from(begin()));
    let error = stream(&kept.model(), context, options, &CancelToken::new()).finish().1.unwrap();
    assert!(error.message.contains("too long"), "{error}");
    assert_eq!(kept.bodies.lock().unwrap().len(), 1);
}

#[test]
fn who_keeps_conversations() {
    let rows = [
        (json!({}), true),
        (json!({"compat": {"supportsMessageThreads": false}}), false),
        (json!({"baseUrl": "https://gateway.test"}), false),
        (json!({"baseUrl": "https://gateway.test", "compat": {"supportsMessageThreads": true}}), true),
        (json!({"provider": "other"}), false),
    ];
    for (fields, expected) in rows {
        let options = StreamOptions { session_id: Some("s".to_owned()), ..testing::options() };
        let body = testing::body(&AnthropicMessages, &model(fields.clone()), &json!([user("x")]), &options);
        assert_eq!(body["thread"] == json!({"type": "create"}), expected, "{fields}");
        let body =
            testing::body(&AnthropicMessages, &model(fields), &json!([user("x")]), &testing::options());
        assert_eq!(body["thread"], Value::Null);
    }
}
