//! Requests compared field by field, and recorded answers decoded.

mod requests;
mod streams;

use super::MistralConversations;
use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Protocol};
use crate::wire::testing;
use serde_json::{Value, json};

fn model(fields: Value) -> Model {
    let mut all = json!({"id": "devstral", "api": "mistral-conversations", "provider": "mistral", "baseUrl": "https://api.mistral.ai"});
    testing::merge(&mut all, fields);
    testing::model(all)
}

fn decoder() -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    let context = testing::context(&messages);
    MistralConversations.decoder(&model(json!({})), &context, &testing::options())
}
