//! Messages and tool calls as blocks of lines. Each begins with an empty row and ends without one.

mod call;

pub use call::{Call, State};

use super::look::{Look, boxed, indented};
use crate::runtime::{AgentMessage, AssistantMessage, Block, StopReason};
use crate::tui::line::Line;
use crate::tui::markdown_view;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Info,
    Warning,
    Error,
}

/// A message that is no answer; nothing for one that is not shown.
pub fn message(message: &AgentMessage, look: &Look<'_>) -> Vec<Line> {
    match message {
        AgentMessage::User(_) => spaced(user(&message.text(), look)),
        AgentMessage::System(_)
        | AgentMessage::Assistant(_)
        | AgentMessage::ToolResult(_)
        | AgentMessage::Unknown(_) => Vec::new(),
        _ => spaced(user(&message.text(), look)),
    }
}

fn user(text: &str, look: &Look<'_>) -> Vec<Line> {
    let background = look.style(Role::UserMessageBg);
    let style = look.style(Role::UserMessageText);
    let lines = markdown_view::lines(text, &look.markdown(look.width.saturating_sub(2), style));
    boxed(&lines, look, background)
}

/// A finished text block of an answer.
pub fn text(text: &str, look: &Look<'_>) -> Vec<Line> {
    let width = look.width.saturating_sub(2);
    let lines = markdown_view::lines(text, &look.markdown(width, look.style(Role::Text)));
    spaced(indented(lines))
}

pub fn thinking_style(look: &Look<'_>) -> Style {
    look.style(Role::ThinkingText).with(Attributes::ITALIC)
}

/// A finished thinking block.
pub fn thinking(text: &str, look: &Look<'_>) -> Vec<Line> {
    let style = thinking_style(look);
    if look.hides_thinking {
        return spaced(indented([Line::of("Thinking...", style)]));
    }
    let width = look.width.saturating_sub(2);
    spaced(indented(markdown_view::lines(
        text.trim(),
        &look.markdown(width, style),
    )))
}

/// How an answer ended, where it did not end well.
pub fn ending(answer: &AssistantMessage, look: &Look<'_>) -> Vec<Line> {
    // Said by the program itself, it says nothing more.
    let reason = answer
        .error_message
        .as_deref()
        .filter(|reason| *reason != "Request was aborted");
    match answer.stop_reason {
        StopReason::Aborted => notice(Weight::Error, reason.unwrap_or("Operation aborted"), look),
        StopReason::Error => notice(
            Weight::Error,
            &format!("Error: {}", reason.unwrap_or("Unknown error")),
            look,
        ),
        StopReason::Length => notice(
            Weight::Warning,
            "The answer is not whole: it was cut at the output limit",
            look,
        ),
        _ => Vec::new(),
    }
}

/// Something the program says.
pub fn notice(weight: Weight, text: &str, look: &Look<'_>) -> Vec<Line> {
    let style = look.style(match weight {
        Weight::Info => Role::Dim,
        Weight::Warning => Role::Warning,
        Weight::Error => Role::Error,
    });
    let lines = text
        .lines()
        .flat_map(|line| wrap(&Line::of(line, style), look.width.saturating_sub(2).max(1)));
    spaced(indented(lines))
}

/// The summary that a conversation was replaced by.
pub fn compaction(summary: &str, tokens_before: u64, look: &Look<'_>) -> Vec<Line> {
    let _ = tokens_before;
    text(summary, look)
}

/// The end of a conversation, at least `rows` lines if it has as many.
pub fn conversation_end(messages: &[AgentMessage], look: &Look<'_>, rows: usize) -> Vec<Line> {
    let mut parts: Vec<Vec<Line>> = Vec::new();
    let mut count = 0;
    for message in messages.iter().rev() {
        let lines = match message {
            AgentMessage::Assistant(answer) => answer
                .content
                .iter()
                .flat_map(|block| match block {
                    Block::Text(block) => text(&block.text, look),
                    Block::Thinking(block) => thinking(&block.thinking, look),
                    _ => Vec::new(),
                })
                .collect(),
            other => self::message(other, look),
        };
        count += lines.len();
        parts.push(lines);
        if count >= rows {
            break;
        }
    }
    parts.into_iter().rev().flatten().collect()
}

fn spaced(lines: Vec<Line>) -> Vec<Line> {
    if lines.is_empty() {
        return lines;
    }
    let mut out = vec![Line::new()];
    out.extend(lines);
    out
}
