//! One request to a model, without an agent: the answer is printed while it comes.
//!
//!     cargo run --example model -- faux/echo "Hello"
//!     cargo run --example model -- openai/gpt-5-mini "Hello"     # with OPENAI_API_KEY

use pi::sdk::{AssistantEvent, CancelToken, Content, Context, Credentials, Dirs, Env, Message};
use pi::sdk::{Registry, StreamOptions, UserMessage, faux_models, stream};
use std::error::Error;
use std::io::{Write, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(name), Some(text)) = (words.next(), words.next()) else {
        return Err("usage: model PROVIDER/ID TEXT".into());
    };
    let (dirs, cancel) = (Dirs::find()?, CancelToken::new());
    let (mut registry, _) = Registry::load(dirs.agent());
    registry.add(faux_models());
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
    let mut answer = stream(&model, context, options, &cancel);
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
