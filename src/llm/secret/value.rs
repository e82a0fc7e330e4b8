//! Visits the strings of a JSON value that people and models read.

use serde_json::Value;

/// Calls `change` with every string of `value`, including field names, and replaces the string by the result.
/// Skips image data and providers' opaque data (signatures), which cannot reveal a key and must not change.
pub fn each_text(value: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => {
            let is_image = fields.get("type").is_some_and(|kind| kind == "image");
            let opaque = |name: &str| name.ends_with("Signature") || (is_image && name == "data");
            if fields.keys().any(|name| change(name).is_some()) {
                let old = std::mem::take(fields);
                fields.extend(old.into_iter().map(|(name, value)| (change(&name).unwrap_or(name), value)));
            }
            for (name, value) in fields.iter_mut() {
                if !opaque(name) {
                    each_text(value, change);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
