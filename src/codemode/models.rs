//! The global `models` of scripts: the chat models, which scripts can list. Classifiers and models that make images
//! cannot be run here, so there are none.

use crate::llm::model::Model;
use crate::runtime::control::Control;
use serde_json::Value;
use std::sync::Arc;

/// Its functions.
pub const NAMES: [&str; 5] =
    ["getModelsOfType", "getAvailableOfType", "getModelOfType", "classify", "generateImages"];

/// Answers a function. None stands for undefined.
pub fn answer(control: &Control, name: &str, given: &[Value]) -> Result<Option<Value>, String> {
    if matches!(name, "classify" | "generateImages") {
        return Err(format!("models.{name}() is not there: this pi runs chat models only"));
    }
    let text = |at: usize| given.get(at).and_then(Value::as_str);
    let is_chat = match text(0) {
        Some("chat") => true,
        Some("image" | "classifier") => false,
        _ => return Err(format!("models.{name}() takes \"chat\", \"image\" or \"classifier\" first")),
    };
    let shown = |model: &Arc<Model>| serde_json::to_value(model.shown()).unwrap_or_default();
    let of_provider = |all: Vec<Arc<Model>>| {
        let is_meant = |model: &&Arc<Model>| is_chat && text(1).is_none_or(|name| model.provider == name);
        all.iter().filter(is_meant).map(shown).collect::<Value>()
    };
    let registry = &control.config().services.registry;
    match name {
        "getModelsOfType" => Ok(Some(of_provider(registry.all()))),
        "getAvailableOfType" => Ok(Some(of_provider(control.models().available()))),
        _ => {
            let (Some(provider), Some(id)) = (text(1), text(2)) else {
                return Err(format!("models.{name}() takes three strings: type, provider, id"));
            };
            Ok(registry.find(provider, id).filter(|_| is_chat).as_ref().map(shown))
        }
    }
}
