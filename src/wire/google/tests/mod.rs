//! Requests compared field by field, and recorded answers decoded.

mod endpoints;
mod requests;
mod streams;

use crate::llm::model::Model;
use crate::llm::protocol::{Decoder, Protocol};
use crate::wire::google::variant::Google;
use crate::wire::testing;
use serde_json::{Value, json};

const BASE: &str = "https://generativelanguage.googleapis.com/v1beta";

fn model(id: &str) -> Model {
    testing::model(json!({"id": id, "api": "google-generative-ai", "provider": "google", "baseUrl": BASE}))
}

/// A model that is told how much to think by a level, as the catalogue has them.
fn with_levels(id: &str) -> Model {
    let map = json!({"off": null, "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": null, "max": null});
    Model { reasoning: true, thinking_level_map: map.as_object().cloned(), ..model(id) }
}

fn decoder(api: Google) -> Box<dyn Decoder> {
    let messages = json!([{"role": "user", "content": "q", "timestamp": 5}]);
    let context = testing::context(&messages);
    api.decoder(&model("gemini-2.5-flash"), &context, &testing::options())
}
