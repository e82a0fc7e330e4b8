//! One request to a model, without an agent: the answer is printed while it comes.
//!
//!     cargo run --example model -- faux/echo "Hello"
//!     cargo run --example model -- openai/gpt-5-mini "Hello"     # with OPENAI_API_KEY

use pi::auth::credential::Credentials;
use pi::base::cancel::CancelToken;
use pi::base::env::Env;
use pi::llm::context::Context;
use pi::llm::event::AssistantEvent;
use pi::llm::message::{Content, Message, UserMessage};
use pi::llm::options::StreamOptions;
use pi::models::Registry;
use pi::resources::dirs::Dirs;
use pi::wire::{self, faux};
use std::error::Error;
use std::io::{Write, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(name), Some(text)) = (words.next(), words.next()) else {
        return Err("usage: model PROVIDER/ID TEXT".into());
    };
    let (dirs, cancel) = (Dirs::find()?, CancelToken::new());
    let (mut registry, _) = Registry::load(dirs.agent());
    registry.add(faux::models());
    let (provider, id) = name.split_once('/').ok_or("a model is PROVIDER/ID")?;
    let model = registry.find(provider, id).ok_or("There is no such model")?;
    let configured = registry.configured(provider, Some(id));
    let key = Credentials::load(dirs.agent(), Env::process()).resolve(&model, &configured, &cancel)?;
    let options = StreamOptions {
        api_key: key.key,
        headers: key.headers,
        env: key.env,
        aws: key.aws,
        ..StreamOptions::default()
    };
    let message = Message::User(UserMessage::new(Content::Text(text)).into());
    let context = Context { messages: vec![message] };
    let mut answer = wire::stream(&model, context, options, &cancel);
    while let Some(event) = answer.next_event() {
        if let AssistantEvent::TextDelta { delta, .. } = event {
            print!("{delta}");
            stdout().flush()?;
        }
    }
    let (message, failure) = answer.finish();
    println!("\n[{} tokens]", message.usage.total_tokens);
    Ok(failure.map_or(Ok(()), Err)?)
}
