//! A tool call of the page, with its result: a line that says what was done, and the rest folded under it.

use super::entry::json;
use super::html::{Html, brief};
use crate::llm::message::{Block, ToolCall, ToolResultMessage, text_of};
use serde_json::{Map, Value};
use std::sync::Arc;

pub fn show(html: &mut Html, call: &ToolCall, result: Option<&(String, Arc<ToolResultMessage>)>) {
    html.open("details", &[("class", "tool")]);
    html.open("summary", &[]);
    html.element("b", &[], &brief(&call.name, 64));
    html.text(" ");
    match result {
        Some((_, result)) if result.is_error => html.element("span", &[("class", "state bad")], "failed"),
        Some(_) => {}
        None => html.element("span", &[("class", "state")], "no result"),
    }
    html.element("code", &[("class", "gist")], &gist(&call.name, &call.arguments));
    html.close("summary");
    let diff = result.and_then(|(_, result)| result.details.as_ref()?.get("diff")?.as_str());
    arguments(html, call, diff);
    if let Some((id, result)) = result {
        self::result(html, id, result, diff.is_some());
    }
    html.close("details");
}

/// What a call is about, on one line.
pub fn gist(name: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let path = || text("path").or_else(|| text("file_path"));
    let gist = match name {
        "bash" => text("command").map(|command| format!("$ {command}")),
        "grep" | "find" => text("pattern").map(|pattern| match path() {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        }),
        _ => path().map(|path| {
            let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
            match (number("offset"), number("limit")) {
                (Some(from), Some(limit)) => {
                    format!("{path}:{from}-{}", from.saturating_add(limit).saturating_sub(1))
                }
                (Some(from), None) => format!("{path}:{from}-"),
                (None, Some(limit)) => format!("{path}:1-{limit}"),
                (None, None) => path.to_owned(),
            }
        }),
    };
    let first = || arguments.values().find_map(Value::as_str).map(str::to_owned);
    brief(&gist.or_else(first).unwrap_or_default(), 120)
}

fn arguments(html: &mut Html, call: &ToolCall, diff: Option<&str>) {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    match (call.name.as_str(), diff) {
        (_, Some(diff)) => html.diff(diff),
        ("bash", _) if text("command").is_some() => {
            html.element("pre", &[], text("command").unwrap_or_default())
        }
        ("write", _) if text("content").is_some() => {
            html.element("pre", &[], text("content").unwrap_or_default())
        }
        ("edit", _) => edits(html, call),
        ("read" | "ls", _) => {}
        _ if call.arguments.is_empty() => {}
        _ => json(html, &Value::Object(call.arguments.clone())),
    }
}

/// The texts of an edit that has no diff, since it failed.
fn edits(html: &mut Html, call: &ToolCall) {
    let single = Value::Object(call.arguments.clone());
    let many = call.arguments.get("edits").and_then(Value::as_array);
    let edits = many.map_or(std::slice::from_ref(&single), Vec::as_slice);
    for edit in edits {
        let side = |name: &str, mark: char| {
            let text = edit.get(name).and_then(Value::as_str).unwrap_or_default();
            let lines = text.lines().map(|line| format!("{mark}{line}\n"));
            lines.collect::<String>()
        };
        html.diff(&(side("oldText", '-') + &side("newText", '+')));
    }
}

/// `shown`: what the text says is in the diff above it.
pub fn result(html: &mut Html, id: &str, result: &ToolResultMessage, shown: bool) {
    let class = if result.is_error { "result bad" } else { "result" };
    html.open("div", &[("class", class), ("id", id)]);
    let text = text_of(&result.content);
    if shown && !result.is_error {
        html.element("p", &[("class", "quiet")], &brief(&text, 200));
    } else {
        output(html, &text);
    }
    for block in &result.content {
        match block {
            Block::Text(_) => {}
            Block::Image(_) => image(html, block),
            other => json(html, &serde_json::to_value(other).unwrap_or_default()),
        }
    }
    html.close("div");
}

/// What a program printed.
pub fn output(html: &mut Html, text: &str) {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return html.element("p", &[("class", "quiet")], "No output");
    }
    if text.starts_with("diff --git ") || text.starts_with("--- ") && text.contains("\n@@ ") {
        html.diff(text);
    } else {
        html.element("pre", &[], text);
    }
}

/// A picture inside the page. Only kinds that are pixels and nothing else are shown.
pub fn image(html: &mut Html, block: &Block) {
    let Block::Image(image) = block else { return };
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if known.contains(&image.mime_type.as_str()) && image.data.bytes().all(base64) && !image.data.is_empty() {
        let source = format!("data:{};base64,{}", image.mime_type, image.data);
        html.open("img", &[("alt", "Image"), ("loading", "lazy"), ("src", &source)]);
    } else {
        let kind = brief(&image.mime_type, 64);
        html.element("p", &[("class", "quiet")], &format!("An image that is not shown ({kind})"));
    }
}
