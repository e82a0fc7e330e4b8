//! Shows a tool call and its result on the exported page: a summary line, with the details folded below.

use super::entry::json;
use super::html::{Html, brief};
use crate::agent::call::{Argument, Arguments, Body, CallInfo, Describe, Lines};
use crate::llm::message::{Block, ToolCall, ToolResultMessage, text_of};
use serde_json::Value;
use std::sync::Arc;

pub fn show(
    html: &mut Html,
    call: &ToolCall,
    describe: Describe<'_>,
    result: Option<&(String, Arc<ToolResultMessage>)>,
) {
    let info = describe(&call.name, &call.arguments);
    html.open("details", &[("class", "tool")]);
    html.open("summary", &[]);
    html.element("b", &[], &brief(&call.name, 64));
    html.text(" ");
    match result {
        Some((_, result)) if result.is_error => html.element("span", &[("class", "state bad")], "failed"),
        Some(_) => {}
        None => html.element("span", &[("class", "state")], "no result"),
    }
    html.element("code", &[("class", "gist")], &gist(&info, &call.arguments));
    html.close("summary");
    let diff = result.and_then(|(_, result)| result.details.as_ref()?.get("diff")?.as_str());
    body(html, &info, &call.arguments, diff);
    if let Some((id, result)) = result {
        self::result(html, id, result, diff.is_some());
    }
    html.close("details");
}

/// Returns a one-line description of a call, such as its command or path.
pub fn gist(info: &CallInfo<'_>, arguments: &Arguments) -> String {
    let path = info.path.and_then(|path| path.given.text());
    let gist = match (&info.body, &info.subject) {
        (Body::Command { command, .. }, _) => command.text().map(|command| format!("$ {command}")),
        (_, Some(subject)) => subject.text.text().map(|subject| match path {
            Some(path) => format!("{subject} in {path}"),
            None => subject.to_owned(),
        }),
        _ => path.map(|path| match Lines::of(arguments).range() {
            Some((first, Some(last))) => format!("{path}:{first}-{last}"),
            Some((first, None)) => format!("{path}:{first}-"),
            None => path.to_owned(),
        }),
    };
    let first = || arguments.values().find_map(Value::as_str).map(str::to_owned);
    brief(&gist.or_else(first).unwrap_or_default(), 120)
}

fn body(html: &mut Html, info: &CallInfo<'_>, arguments: &Arguments, diff: Option<&str>) {
    match (&info.body, diff) {
        (_, Some(diff)) => html.diff(diff),
        (Body::Command { command: Argument::Text(text), .. } | Body::Content(Argument::Text(text)), _) => {
            html.element("pre", &[], text)
        }
        // Failed edits have no diff in the result.
        (Body::Edits(edits), _) => edits.iter().for_each(|edit| {
            let side = |text: Option<&str>, mark: char| {
                let lines = text.unwrap_or_default().lines().map(|line| format!("{mark}{line}\n"));
                lines.collect::<String>()
            };
            html.diff(&(side(edit.old, '-') + &side(edit.new, '+')));
        }),
        (Body::Nothing, _) => {}
        _ if arguments.is_empty() => {}
        _ => json(html, &Value::Object(arguments.clone())),
    }
}

/// Adds a tool result. `shown` is true if a diff above already shows what the text says.
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

/// Adds the output of a program.
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

/// Embeds an image. Only PNG, JPEG, GIF and WebP are embedded, since other types may contain scripts.
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
