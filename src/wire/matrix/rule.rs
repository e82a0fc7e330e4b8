//! Rules for requests from each provider's public documentation, as far as a conversation can violate them.

use serde_json::Value;
use std::collections::HashSet;

/// An error describes what the server would reject.
pub type Verdict = Result<(), String>;

macro_rules! must {
    ($ok:expr, $($why:tt)+) => {
        if !$ok {
            return Err(format!($($why)+));
        }
    };
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let list = value[name].as_array();
    list.map(Vec::as_slice).ok_or_else(|| format!("no list {name:?} in {value}"))
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("no text {name:?} in {value}"))
}

/// Fails if the text is empty or blank.
fn said(value: &Value, name: &str) -> Verdict {
    must!(!text(value, name)?.trim().is_empty(), "blank text in {value}");
    Ok(())
}

fn plain(id: &str, longest: usize) -> Verdict {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    must!(!id.is_empty() && id.len() <= longest && id.chars().all(legal), "{id:?} cannot be an id or a name");
    Ok(())
}

fn an_object(arguments: &Value) -> Verdict {
    let parsed = arguments.as_str().map(serde_json::from_str::<Value>);
    must!(matches!(parsed, Some(Ok(Value::Object(_)))), "arguments are no object: {arguments}");
    Ok(())
}

/// `data:image/png;base64,...`
fn data_url(url: &Value) -> Verdict {
    let url = url.as_str().unwrap_or_default();
    let data = url.strip_prefix("data:image/");
    must!(
        data.is_some_and(|data| data.split_once(";base64,").is_some_and(|(_, data)| !data.is_empty())),
        "no image: {url:?}"
    );
    Ok(())
}

/// Calls that wait for their results.
#[derive(Default)]
struct Calls {
    seen: HashSet<String>,
    open: Vec<String>,
}

impl Calls {
    fn ask(&mut self, id: &str) -> Verdict {
        must!(self.seen.insert(id.to_owned()), "{id:?} was called twice");
        self.open.push(id.to_owned());
        Ok(())
    }

    fn answer(&mut self, id: &str) -> Verdict {
        let at = self.open.iter().position(|open| open == id);
        must!(at.is_some(), "a result for {id:?}, which nobody waits for");
        self.open.remove(at.unwrap_or_default());
        Ok(())
    }

    fn all_answered(&self) -> Verdict {
        must!(self.open.is_empty(), "no result for {:?}", self.open);
        Ok(())
    }
}

pub fn anthropic(body: &Value) -> Verdict {
    let mut calls = Calls::default();
    let messages = list(body, "messages")?;
    must!(messages.first().is_some_and(|first| first["role"] == "user"), "the user begins");
    must!(messages.last().is_some_and(|last| last["role"] == "user"), "nothing to answer");
    // The server joins adjacent messages of one role.
    for message in messages {
        let role = text(message, "role")?;
        if message["content"].is_string() {
            said(message, "content")?;
            calls.all_answered()?;
            continue;
        }
        let blocks = list(message, "content")?;
        must!(!blocks.is_empty(), "an empty message");
        let mut other = false;
        for block in blocks {
            let kind = text(block, "type")?;
            match (role, kind) {
                ("user", "tool_result") => {
                    must!(!other, "results come first: {message}");
                    calls.answer(text(block, "tool_use_id")?)?;
                    for part in block["content"].as_array().into_iter().flatten() {
                        anthropic_part(part)?;
                    }
                    continue;
                }
                ("user", "text" | "image") => {
                    calls.all_answered()?;
                    anthropic_part(block)?;
                }
                ("assistant", "text") => said(block, "text")?,
                ("assistant", "thinking") => {
                    said(block, "signature")?;
                    text(block, "thinking")?;
                }
                ("assistant", "redacted_thinking") => said(block, "data")?,
                ("assistant", "tool_use") => {
                    plain(text(block, "id")?, 64)?;
                    plain(text(block, "name")?, 64)?;
                    must!(block["input"].is_object(), "no input in {block}");
                    calls.ask(text(block, "id")?)?;
                }
                _ => must!(false, "{kind} of {role}"),
            }
            other = true;
        }
        if role == "user" {
            calls.all_answered()?;
        }
    }
    let marks = body.to_string().matches("\"cache_control\"").count();
    must!(marks <= 4, "{marks} marks of the cache");
    calls.all_answered()
}

fn anthropic_part(part: &Value) -> Verdict {
    match text(part, "type")? {
        "text" => said(part, "text"),
        "image" => {
            let source = &part["source"];
            must!(source["type"] == "base64", "no image: {part}");
            let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
            must!(kinds.contains(&text(source, "media_type")?), "{part}");
            said(source, "data")
        }
        kind => Err(format!("{kind} in a result")),
    }
}

pub fn bedrock(body: &Value) -> Verdict {
    let mut calls = Calls::default();
    let mut before = "";
    let messages = list(body, "messages")?;
    must!(messages.first().is_some_and(|first| first["role"] == "user"), "the user begins");
    for message in messages {
        let role = text(message, "role")?;
        must!(role != before, "two messages of {role}");
        before = role;
        let blocks = list(message, "content")?;
        must!(!blocks.is_empty(), "an empty message");
        for block in blocks {
            let fields = block.as_object();
            let kind = fields.and_then(|fields| fields.keys().next());
            match (role, kind.map_or("", String::as_str)) {
                (_, "text") => said(block, "text")?,
                ("user", "image") => said(&block["image"]["source"], "bytes")?,
                ("user", "toolResult") => {
                    let result = &block["toolResult"];
                    calls.answer(text(result, "toolUseId")?)?;
                    for part in list(result, "content")? {
                        match part["image"].is_null() {
                            true => said(part, "text")?,
                            false => said(&part["image"]["source"], "bytes")?,
                        }
                    }
                }
                ("assistant", "toolUse") => {
                    let call = &block["toolUse"];
                    plain(text(call, "toolUseId")?, 64)?;
                    plain(text(call, "name")?, 64)?;
                    must!(call["input"].is_object(), "no input in {block}");
                    calls.ask(text(call, "toolUseId")?)?;
                }
                ("assistant", "reasoningContent") | (_, "cachePoint") => {}
                (_, kind) => must!(false, "{kind} of {role}"),
            }
        }
        if role == "user" {
            calls.all_answered()?;
        }
    }
    must!(before == "user", "nothing to answer");
    calls.all_answered()
}

pub fn completions(body: &Value) -> Verdict {
    chat(body, &|id| plain(id, 40))
}

/// Requires call ids of exactly nine letters and digits, and no user message directly after a tool's.
pub fn mistral(body: &Value) -> Verdict {
    let mut before = "";
    for message in list(body, "messages")? {
        let role = text(message, "role")?;
        must!(!(before == "tool" && matches!(role, "user" | "system")), "{role} right after a tool");
        must!(role != "tool" || matches!(before, "tool" | "assistant"), "a result after {before}");
        before = role;
    }
    must!(matches!(before, "user" | "tool"), "{before} speaks last");
    chat(body, &|id| {
        must!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id:?} cannot be an id");
        Ok(())
    })
}

fn chat(body: &Value, legal: &dyn Fn(&str) -> Verdict) -> Verdict {
    let mut calls = Calls::default();
    for message in list(body, "messages")? {
        let role = text(message, "role")?;
        if role != "tool" {
            calls.all_answered()?;
        }
        match &message["content"] {
            Value::String(_) => said(message, "content")?,
            Value::Array(parts) => {
                must!(!parts.is_empty(), "an empty message");
                for part in parts {
                    match text(part, "type")? {
                        "text" => said(part, "text")?,
                        "image_url" => {
                            let url = &part["image_url"];
                            data_url(if url.is_string() { url } else { &url["url"] })?;
                            must!(
                                role == "user" || body["model"] == "mistral-conversations-model",
                                "an image of {role}"
                            );
                        }
                        "thinking" if role == "assistant" => {}
                        kind => must!(false, "{kind} of {role}"),
                    }
                }
            }
            Value::Null => {
                must!(role == "assistant" && message["tool_calls"].is_array(), "nothing is said in {message}")
            }
            other => must!(false, "content {other}"),
        }
        match role {
            "tool" => calls.answer(text(message, "tool_call_id")?)?,
            "assistant" if !message["tool_calls"].is_null() => {
                let list = list(message, "tool_calls")?;
                must!(!list.is_empty(), "an empty list of calls");
                for call in list {
                    must!(call["type"] == "function", "{call}");
                    legal(text(call, "id")?)?;
                    plain(text(&call["function"], "name")?, 64)?;
                    an_object(&call["function"]["arguments"])?;
                    calls.ask(text(call, "id")?)?;
                }
            }
            "assistant" | "user" | "system" | "developer" => {}
            _ => must!(false, "{role} speaks"),
        }
    }
    calls.all_answered()
}

pub fn responses(body: &Value) -> Verdict {
    let mut calls = Calls::default();
    let mut ids = HashSet::new();
    let items = list(body, "input")?;
    for (at, item) in items.iter().enumerate() {
        if let Some(id) = item["id"].as_str() {
            plain(id, 64)?;
            must!(ids.insert(id), "{id:?} twice");
        }
        match item["type"].as_str().unwrap_or("message") {
            "message" => {
                let role = text(item, "role")?;
                if item["content"].is_string() {
                    said(item, "content")?;
                    continue;
                }
                let parts = list(item, "content")?;
                must!(!parts.is_empty(), "an empty message");
                for part in parts {
                    match (role, text(part, "type")?) {
                        ("assistant", "output_text") | ("user", "input_text") => {
                            said(part, "text")?;
                        }
                        ("user", "input_image") => data_url(&part["image_url"])?,
                        (role, kind) => must!(false, "{kind} of {role}"),
                    }
                }
            }
            "reasoning" => {
                said(item, "encrypted_content")?;
                let next = items.get(at + 1);
                let follows = next.is_some_and(|next| {
                    next["role"] == "assistant"
                        || next["type"] == "function_call"
                        || next["type"] == "reasoning"
                });
                must!(follows, "nothing follows the thought {item}");
            }
            "function_call" => {
                let id = text(item, "call_id")?;
                plain(id, 64)?;
                plain(text(item, "name")?, 64)?;
                an_object(&item["arguments"])?;
                if let Some(own) = item["id"].as_str() {
                    must!(own.starts_with("fc"), "{own:?} is no call's id");
                }
                calls.ask(id)?;
            }
            "function_call_output" => {
                calls.answer(text(item, "call_id")?)?;
                match &item["output"] {
                    Value::String(_) => said(item, "output")?,
                    parts => {
                        for part in parts.as_array().into_iter().flatten() {
                            match text(part, "type")? {
                                "input_text" => said(part, "text")?,
                                "input_image" => data_url(&part["image_url"])?,
                                kind => must!(false, "{kind} in a result"),
                            }
                        }
                    }
                }
            }
            kind => must!(false, "{kind} in the input"),
        }
    }
    calls.all_answered()
}

pub fn google(body: &Value) -> Verdict {
    let contents = list(body, "contents")?;
    must!(contents.first().is_some_and(|first| first["role"] == "user"), "the user begins");
    let mut open: Vec<&Value> = Vec::new();
    for content in contents {
        let role = text(content, "role")?;
        must!(matches!(role, "user" | "model"), "{role} speaks");
        let parts = list(content, "parts")?;
        must!(!parts.is_empty(), "an empty message");
        let mut answered = Vec::new();
        let mut asked = Vec::new();
        for part in parts {
            if let Some(signature) = part["thoughtSignature"].as_str() {
                let legal = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
                must!(signature.chars().all(legal), "{signature:?} is no signature");
            }
            if !part["functionCall"].is_null() {
                must!(role == "model", "a call of the user");
                plain(text(&part["functionCall"], "name")?, 64)?;
                asked.push(&part["functionCall"]);
            } else if !part["functionResponse"].is_null() {
                must!(role == "user", "a result of the model");
                must!(part["functionResponse"]["response"].is_object(), "{part}");
                answered.push(&part["functionResponse"]);
            } else if !part["inlineData"].is_null() {
                said(&part["inlineData"], "data")?;
                must!(text(&part["inlineData"], "mimeType")?.starts_with("image/"), "{part}");
            } else if part["thoughtSignature"].is_null() {
                said(part, "text")?;
            }
        }
        let names = |calls: &[&Value]| -> Vec<(Value, Value)> {
            calls.iter().map(|call| (call["name"].clone(), call["id"].clone())).collect()
        };
        let (waiting, results) = (names(&open), names(&answered));
        must!(waiting == results, "{waiting:?} were called, {results:?} came");
        open = asked;
    }
    must!(open.is_empty(), "no result for {open:?}");
    must!(contents.last().is_some_and(|last| last["role"] == "user"), "nothing to answer");
    Ok(())
}

/// Checks a request to a pi gateway, which accepts a conversation as stored and applies the providers' rules
/// itself.
pub fn pi(body: &Value) -> Verdict {
    for message in list(&body["context"], "messages")? {
        let role = text(message, "role")?;
        must!(matches!(role, "system" | "user" | "assistant" | "toolResult"), "{role} speaks");
        must!(message["details"].is_null(), "details left this machine");
    }
    Ok(())
}
