//! Requests compared field by field, and recorded answers decoded.

mod requests;
mod streams;
mod threads;

use super::AnthropicMessages;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, Protocol};
use crate::wire::testing;
use serde_json::{Value, json};

fn model(fields: Value) -> Model {
    let mut all = json!({"id": "claude", "api": "anthropic-messages", "provider": "anthropic", "baseUrl": "https://api.anthropic.com"});
    testing::merge(&mut all, fields);
    testing::model(all)
}

fn decoder(model: &Model, options: &StreamOptions) -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    AnthropicMessages.decoder(model, &testing::context(&messages), options)
}
