//! Requests compared field by field, and recorded answers decoded.

mod requests;
mod streams;

use super::BedrockConverseStream;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::protocol::{Decoder, Protocol};
use crate::wire::testing;
use serde_json::{Value, json};

const CLAUDE: &str = "us.anthropic.claude-opus-4-6-v1:0";

fn model(fields: Value) -> Model {
    let mut all = json!({"id": CLAUDE, "name": "Claude Opus 4.6", "api": "bedrock-converse-stream",
        "provider": "amazon-bedrock", "baseUrl": "https://bedrock-runtime.us-east-1.amazonaws.com"});
    testing::merge(&mut all, fields);
    testing::model(all)
}

fn decoder(model: &Model) -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    let context = testing::context(&messages);
    BedrockConverseStream.decoder(model, &context, &StreamOptions::default())
}
