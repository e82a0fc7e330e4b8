//! `--mode rpc`, driven by the library's own client.

mod abort;
mod approve;
mod command;
mod doc;
pub mod fuzz;
mod host_tool;
mod life;
mod load;
mod order;
mod queue;
mod reload;
mod schema;
mod session;
mod shell;

use crate::agent::{Pi, World};
use crate::server::{PATIENCE, Server};
use pi::client::Client;
use serde_json::{Value, json};
use std::process::Stdio;

/// The program in RPC mode, with these words on its command line.
pub fn client(world: &World, words: &str) -> Client {
    client_of(world.pi(), words)
}

/// The client of a pi that has its environment.
pub fn client_of(pi: Pi<'_>, words: &str) -> Client {
    let mut pi = pi.words("--mode rpc").words(words);
    let command = pi.command().stderr(Stdio::null());
    let mut client = Client::spawn(command).expect("start pi");
    client.set_patience(PATIENCE);
    client
}

/// The client of a world whose provider plays `replies`.
fn start(replies: impl IntoIterator<Item = crate::server::Reply>) -> (World, Server, Client) {
    let (world, server) = crate::world(replies);
    let client = client(&world, "");
    (world, server, client)
}

/// Waits for the first words of an answer.
#[track_caller]
fn until_text(client: &mut Client) {
    loop {
        let event = client.next_event().expect("an event");
        if event["assistantMessageEvent"]["type"] == "text_delta" {
            return;
        }
    }
}

/// The `type` of each event, runs of `message_update` told once.
fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap_or("?")).collect();
    types.dedup_by(|a, b| a == b && *a == "message_update");
    types
}

/// The text of a message, roles in front.
fn said(message: &Value) -> String {
    let role = message["role"].as_str().unwrap_or("?");
    let content = &message["content"];
    let text: String = match content.as_str() {
        Some(text) => text.to_owned(),
        None => content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    };
    format!("{role}: {text}")
}

/// All messages but those of the system.
fn conversation(client: &mut Client) -> Vec<String> {
    let messages = client.messages().expect("messages");
    let spoken = messages.iter().filter(|message| message["role"] != "system");
    spoken.map(said).collect()
}

/// The error with which a command is refused.
#[track_caller]
fn refusal(client: &mut Client, command: &str, fields: Value) -> String {
    let id = client.send(command, fields).expect("send");
    let answer = client.answer(id).expect("an answer");
    assert_eq!(answer["success"], json!(false), "{answer}");
    assert_eq!(answer["command"], json!(command));
    answer["error"].as_str().expect("an error").to_owned()
}
