//! Images by OpenRouter: chat completions that answer with images.

use super::context::ImageBlock;
use super::{Answer, Answered, Ask};
use crate::base::json::json;
use crate::llm::message::Usage;
use crate::llm::model::Model;
use serde_json::Value;

pub const API: &str = "openrouter-images";
pub const LABEL: &str = "OpenRouter";

pub fn make(ask: &Ask<'_>, input: &[Value], got: &mut Answer) -> Answered {
    let part = |block: &Value| match ImageBlock::parse(block) {
        Some(image) => json!({"type": "image_url", "image_url": {"url": image.url()}}),
        None => json!({"type": "text", "text": block["text"]}),
    };
    let content: Vec<Value> = input.iter().map(part).collect();
    let says_text = ask.model.extra.get("output").and_then(Value::as_array);
    let says_text = says_text.is_some_and(|kinds| kinds.iter().any(|kind| kind == "text"));
    let modalities: &[&str] = if says_text { &["image", "text"] } else { &["image"] };
    let body = json!({"model": ask.model.id, "messages": [{"role": "user", "content": content}],
        "stream": false, "modalities": modalities});
    // An image that was made is paid for: nothing is asked again unless the user wants that.
    let answer = ask.post("/chat/completions", &body, &[], 0, &[])?;
    if let Some(id) = answer.get("id") {
        got.fields.insert("responseId".into(), id.clone());
    }
    got.usage = answer.get("usage").filter(|usage| usage.is_object()).map(|told| usage(ask.model, told));
    let message = answer.get("choices").and_then(|choices| choices.get(0)?.get("message"));
    let text = message.and_then(|message| message.get("content")?.as_str()).filter(|text| !text.is_empty());
    let mut output: Vec<Value> = text.map(|text| json!({"type": "text", "text": text})).into_iter().collect();
    let images = message.and_then(|message| message.get("images")?.as_array());
    output.extend(images.into_iter().flatten().filter_map(image));
    got.fields.insert("output".into(), output.into());
    Ok(())
}

/// An image that is sent as a `data:` URL. Others are not fetched.
fn image(part: &Value) -> Option<Value> {
    let url = part.get("image_url")?;
    let url = url.as_str().or_else(|| url.get("url")?.as_str())?;
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let is_whole = !data.is_empty() && !mime_type.is_empty() && !mime_type.contains(';');
    is_whole.then(|| json!({"type": "image", "mimeType": mime_type, "data": data}))
}

fn usage(model: &Model, told: &Value) -> Usage {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
    let detail = |name: &str| count(told.get("prompt_tokens_details").and_then(|details| details.get(name)));
    let (prompt, cached, cache_write) =
        (count(told.get("prompt_tokens")), detail("cached_tokens"), detail("cache_write_tokens"));
    // What was written is counted as cached, too.
    let cache_read = cached.saturating_sub(cache_write);
    let input = prompt.saturating_sub(cache_read + cache_write);
    let output = count(told.get("completion_tokens"));
    let total_tokens = input + output + cache_read + cache_write;
    let mut usage = Usage { input, output, cache_read, cache_write, total_tokens, ..Usage::default() };
    model.price(&mut usage);
    usage
}
