//! Lines for messages: of the user, of the model, of extensions, and summaries.

use super::block::{Weight, notice, spaced};
use super::shell::Shell;
use crate::base::json::json;
use crate::mode::interactive::drawings::{LAST, Part};
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::{Look, boxed, boxed_within, padded};
use crate::runtime::{AgentMessage, AssistantMessage, CalledSkill, CustomMessage, StopReason};
use crate::tui::line::Line;
use crate::tui::markdown_view;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use serde_json::Value;

/// Lines for a message other than an answer or a tool result; empty if the message is not shown.
pub fn message(message: &AgentMessage, look: &Look<'_>) -> Vec<Line> {
    match message {
        AgentMessage::User(_) => user(&message.text(), look),
        AgentMessage::BashExecution(bash) => Shell::of(bash).lines(look, None, None),
        AgentMessage::Custom(custom) if custom.display => {
            if let Some((Some(lines), _)) = custom_drawing(custom, look) {
                return spaced(lines);
            }
            let label = format!("[{}]", custom.custom_type);
            let text = custom.content.text();
            let text = look.transformed("custom", &text, boxed_width(look), None);
            summary_box(&label, markdown(&text, look, Role::CustomMessageText), look)
        }
        AgentMessage::CompactionSummary(summary) => compaction(&summary.summary, summary.tokens_before, look),
        AgentMessage::BranchSummary(branch) => {
            let (closed, head) = ("Branch summary", "**Branch Summary**");
            summary("[branch]", closed, head, &branch.summary, look)
        }
        AgentMessage::System(_)
        | AgentMessage::Assistant(_)
        | AgentMessage::ToolResult(_)
        | AgentMessage::Custom(_)
        | AgentMessage::Unknown(_) => Vec::new(),
    }
}

/// What an extension draws of its message.
fn custom_drawing(custom: &CustomMessage, look: &Look<'_>) -> Option<(Option<Vec<Line>>, bool)> {
    let id = format!("{} {} {}", custom.timestamp, custom.custom_type, custom.content.text().len());
    let part = Part { kind: "message", name: &custom.custom_type, id: &id, version: LAST };
    look.drawn(part, || json!({"message": custom}))
}

/// True if an extension draws the message or changes its text, and has not yet.
pub fn is_awaited(shown: &AgentMessage, look: &Look<'_>) -> bool {
    let awaited = look.drawings.awaited();
    message(shown, look);
    look.drawings.awaited() > awaited
}

/// What an extension draws of an entry of its own; empty if nobody draws it.
pub fn entry(entry: &Value, look: &Look<'_>) -> Vec<Line> {
    match entry_drawing(entry, look) {
        Some((Some(lines), _)) => spaced(lines),
        _ => Vec::new(),
    }
}

/// True if an extension draws the entry, and has not yet.
pub fn is_entry_awaited(entry: &Value, look: &Look<'_>) -> bool {
    matches!(entry_drawing(entry, look), Some((_, false)))
}

fn entry_drawing(entry: &Value, look: &Look<'_>) -> Option<(Option<Vec<Line>>, bool)> {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let part = Part { kind: "entry", name: text("customType"), id: text("id"), version: LAST };
    look.drawn(part, || json!({"entry": entry}))
}

fn user(text: &str, look: &Look<'_>) -> Vec<Line> {
    let Some(skill) = CalledSkill::parse(text) else {
        return prompt(text, look);
    };
    let mut label = Line::of("[skill] ", label_style(look));
    let lines = match look.is_open {
        false => {
            label.push(skill.name, look.style(Role::CustomMessageText));
            label.push(&to_expand(look), look.style(Role::Dim));
            wrap(&label, boxed_width(look))
        }
        true => {
            let content = look.transformed("custom", skill.content, boxed_width(look), None);
            let text = format!("**{}**\n\n{content}", skill.name);
            let mut lines = wrap(&label, boxed_width(look));
            lines.extend(markdown(&text, look, Role::CustomMessageText));
            lines
        }
    };
    let mut out = spaced(boxed(&lines, look, look.style(Role::CustomMessageBg)));
    out.extend(prompt(skill.said, look));
    out
}

fn prompt(text: &str, look: &Look<'_>) -> Vec<Line> {
    match text.trim().is_empty() {
        true => Vec::new(),
        false => {
            let background = look.style(Role::UserMessageBg);
            // Lines stay as they were typed.
            let text = text.trim();
            let mark = match (look.is_plain, look.has_backgrounds) {
                (true, _) => "You: ",
                (false, false) => "> ",
                (false, true) => "",
            };
            let room = look.within(look.width.saturating_sub(mark.len()).max(1));
            let style = look.style(Role::Accent).with(Attributes::BOLD);
            let text = look.transformed("user", text, boxed_width(&room), None).replace('\n', "  \n");
            let mut lines = markdown(&text, &room, Role::UserMessageText);
            if !mark.is_empty() {
                let mut before = Line::of(mark, style);
                for line in &mut lines {
                    before.append(line);
                    *line = std::mem::replace(&mut before, Line::of(&" ".repeat(mark.len()), style));
                }
            }
            spaced(boxed_within(&lines, look.pad, look, background))
        }
    }
}

/// The summary that replaces compacted messages.
pub fn compaction(text: &str, tokens_before: u64, look: &Look<'_>) -> Vec<Line> {
    let closed = format!("Compacted from {} tokens", grouped(tokens_before));
    let head = format!("**{closed}**");
    summary("[compaction]", &closed, &head, text, look)
}

fn summary(label: &str, closed: &str, head: &str, text: &str, look: &Look<'_>) -> Vec<Line> {
    let lines = match look.is_open {
        true => {
            let text = look.transformed("summary", text, boxed_width(look), None);
            markdown(&format!("{head}\n\n{text}"), look, Role::CustomMessageText)
        }
        false => {
            let mut line = Line::of(closed, look.style(Role::CustomMessageText));
            line.push(&to_expand(look), look.style(Role::Dim));
            wrap(&line, boxed_width(look))
        }
    };
    summary_box(label, lines, look)
}

fn summary_box(label: &str, text: Vec<Line>, look: &Look<'_>) -> Vec<Line> {
    let mut lines = wrap(&Line::of(label, label_style(look)), boxed_width(look));
    if !look.is_compact {
        lines.push(Line::new());
    }
    lines.extend(text);
    spaced(boxed(&lines, look, look.style(Role::CustomMessageBg)))
}

fn label_style(look: &Look<'_>) -> Style {
    look.style(Role::CustomMessageLabel).with(Attributes::BOLD)
}

/// ` (ctrl+o to expand)`, if a key is bound.
fn to_expand(look: &Look<'_>) -> String {
    let key = look.key(AppAction::TOOLS_EXPAND);
    key.map_or_else(String::new, |key| format!(" ({key} to expand)"))
}

/// A number as `12,345`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn boxed_width(look: &Look<'_>) -> usize {
    look.width.saturating_sub(2).max(1)
}

fn markdown(text: &str, look: &Look<'_>, role: Role) -> Vec<Line> {
    markdown_view::lines(text, &look.markdown(boxed_width(look), look.style(role)))
}

/// The look of Markdown in an answer's text or thinking.
pub fn answer_look<'a>(is_thinking: bool, look: &Look<'a>) -> markdown_view::Look<'a> {
    let base = match is_thinking {
        true => look.style(Role::ThinkingText).with(Attributes::ITALIC),
        false => look.style(Role::Text),
    };
    look.markdown(look.width.saturating_sub(2 * look.pad).max(1), base)
}

/// The name by which extensions know the text or the thinking of an answer.
pub fn surface(is_thinking: bool) -> &'static str {
    match is_thinking {
        true => "assistant-thinking",
        false => "assistant",
    }
}

/// A text or thinking as extensions have it shown. `growing`: see [`Look::transformed`].
pub fn changed(is_thinking: bool, text: &str, growing: Option<(&str, u64)>, look: &Look<'_>) -> Vec<Line> {
    if is_thinking && look.hides_thinking {
        return vec![Line::of(look.thinking_label, answer_look(true, look).base)];
    }
    let inner = answer_look(is_thinking, look);
    let text = look.transformed(surface(is_thinking), text.trim(), inner.width, growing);
    markdown_view::lines(&text, &inner)
}

/// A text in the look of an answer.
pub fn text(text: &str, look: &Look<'_>) -> Vec<Line> {
    let lines = markdown_view::lines(text.trim(), &answer_look(false, look));
    spaced(padded(lines, look.pad))
}

/// Placeholder for hidden thinking.
pub fn thinking_label(look: &Look<'_>) -> Vec<Line> {
    let style = answer_look(true, look).base;
    spaced(padded([Line::of(look.thinking_label, style)], look.pad))
}

/// Why an answer ended early; empty if it ended normally. Calls that did not run show their own error.
pub fn ending(answer: &AssistantMessage, look: &Look<'_>) -> Vec<Line> {
    let has_calls = answer.content.iter().any(|block| block.as_tool_call().is_some());
    match answer.stop_reason {
        StopReason::Length => notice(
            Weight::Error,
            match has_calls {
                true => {
                    "Response was truncated before completion: it reached the output limit. Its tool calls do not run."
                }
                false => {
                    "Response was truncated before completion: it reached the output limit. Send \"continue\" for the rest."
                }
            },
            look,
        ),
        StopReason::Aborted | StopReason::Error if has_calls => Vec::new(),
        StopReason::Aborted => notice(Weight::Error, &reason(answer), look),
        StopReason::Error => {
            let reason = reason(answer);
            let text = match advice(&reason) {
                Some(advice) => format!("Error: {reason}\n{advice}"),
                None => format!("Error: {reason}"),
            };
            notice(Weight::Error, &text, look)
        }
        _ => Vec::new(),
    }
}

/// The error message of an answer.
pub fn reason(answer: &AssistantMessage) -> String {
    let told = answer.error_message.as_deref().unwrap_or_default();
    match (answer.stop_reason, told) {
        (StopReason::Aborted, "" | "Request was aborted") => "Operation aborted".to_owned(),
        (_, "") => "Unknown error".to_owned(),
        (_, told) => told.to_owned(),
    }
}

/// Advice about an error, unless its text already has it.
fn advice(error: &str) -> Option<&'static str> {
    let error = error.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    if has(&["/login", "/model", "/compact"]) {
        None
    } else if has(&["401", "403", "api key", "api_key", "unauthorized", "authentication"]) {
        Some("Sign in with /login, or set the provider's key, and send the prompt again.")
    } else if has(&["context window", "context length", "too long", "maximum context"]) {
        Some("/compact makes the conversation shorter; /model changes to one with more room.")
    } else if has(&["429", "rate limit", "quota", "overloaded", "529", "capacity"]) {
        Some("Wait a while and send \"continue\", or change to another model with /model.")
    } else if has(&["connect", "timed out", "timeout", "dns", "resolve", "network", "502", "503"]) {
        Some("Check the connection, then send \"continue\".")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_groups() {
        for (count, shown) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(grouped(count), shown);
        }
    }
}
