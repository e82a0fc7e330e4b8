//! Answers without a model, for experiments: no key, no network, no cost.
//!
//! | model | does |
//! |---|---|
//! | `faux/demo` | acts out a short task with the tools that are there ([`demo`]) |
//! | `faux/echo` | says what the user said |
//! | `faux/script` | plays the answers of a file ([`script`]) |
//!
//! The answers are streamed in pieces, with usage, errors and a simulated prompt cache, like those of a real
//! provider. A token is four characters.

mod demo;
mod play;
mod script;

use crate::llm::event::AssistantEvent;
use crate::llm::message::{Block, Content, Message};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::protocol::{Api, Call, Gone, Source};
use play::{Answer, Piece, play};
use std::sync::Arc;

pub const PROVIDER: &str = "faux";

pub fn api() -> Api {
    Api::Source(Arc::new(Faux))
}

/// The three models of the provider.
pub fn models() -> Vec<Model> {
    let model = |id: &str, name: &str| Model {
        id: id.to_owned(),
        name: name.to_owned(),
        api: "faux".to_owned(),
        provider: PROVIDER.to_owned(),
        reasoning: true,
        input: vec!["text".to_owned(), "image".to_owned()],
        context_window: 200_000,
        max_tokens: 32_000,
        ..Model::default()
    };
    vec![
        model("demo", "Demo (a script, not a model)"),
        model("echo", "Echo (not a model)"),
        model("script", "Script (answers from a file)"),
    ]
}

struct Faux;

impl Source for Faux {
    fn run(&self, call: &Call<'_>, emit: &mut dyn FnMut(AssistantEvent) -> Result<(), Gone>) {
        let answer = match call.model.id.as_str() {
            "demo" => demo::answer(call.context, thinks(call)),
            "echo" => echo(call),
            _ => script::answer(call),
        };
        // Without a reader no further events are needed.
        let _ = play(&answer, call, emit);
    }
}

fn thinks(call: &Call<'_>) -> bool {
    call.options.thinking != ThinkingLevel::Off
}

fn echo(call: &Call<'_>) -> Answer {
    let messages = &call.context.messages;
    let last = messages.iter().rev().find_map(|message| match message {
        Message::User(user) => Some(&user.content),
        _ => None,
    });
    let mut parts: Vec<String> = Vec::new();
    match last {
        None => {}
        Some(Content::Text(text)) => parts.push(text.clone()),
        Some(Content::Blocks(blocks)) => parts.extend(blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.clone()),
            Block::Image(image) => {
                let bytes = image.data.len() / 4 * 3;
                Some(format!("[{}, about {bytes} bytes]", image.mime_type))
            }
            _ => None,
        })),
    }
    let text = parts.join("\n");
    let mut pieces = Vec::new();
    if thinks(call) {
        let count = text.chars().count();
        pieces.push(Piece::Thinking(format!("There are {count} characters to say again.")));
    }
    pieces.push(Piece::Text(text));
    Answer::new(pieces)
}

#[cfg(test)]
mod tests;
