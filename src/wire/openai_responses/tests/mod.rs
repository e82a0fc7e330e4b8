//! Requests compared field by field, and recorded answers decoded.

mod conversation;
mod requests;
mod streams;

use super::OpenAiResponses;
use crate::llm::model::Model;
use crate::llm::options::StreamOptions;
use crate::llm::secret::Secret;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::testing;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

const VARIANTS: [Variant; 3] = [Variant::OpenAi, Variant::Azure, Variant::Codex];

/// A model of the variant's own provider, with `fields` over what every test needs.
fn model(variant: Variant, fields: Value) -> Model {
    let (provider, api) = match variant {
        Variant::OpenAi => ("openai", "openai-responses"),
        Variant::Azure => ("azure", "azure-openai-responses"),
        Variant::Codex => ("openai-codex", "openai-codex-responses"),
    };
    let mut own = json!({"provider": provider, "api": api});
    testing::merge(&mut own, fields);
    testing::model(own)
}

/// A key that every variant takes.
fn options() -> StreamOptions {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc"}}).to_string();
    let token = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
    StreamOptions { api_key: Some(Secret::new(token)), ..StreamOptions::default() }
}

/// A tool whose only argument follows a grammar.
fn patch() -> Value {
    json!({"name": "patch", "description": "patch it",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "constrainedSampling": {"type": "grammar", "variants": {"openai_lark": "start: x"}}})
}
