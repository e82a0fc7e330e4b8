//! Exports the current branch as Markdown.

use super::call;
use super::entry::{Turn, minute};
use super::html::{brief, clean};
use super::inert;
use super::source::Source;
use super::survey::{Survey, spent, thousands};
use crate::agent::call::{Argument, Body as Shown, Describe};
use crate::agent::message::AgentMessage;
use crate::llm::message::{AssistantMessage, Block, Content, StopReason, ToolResultMessage, text_of};
use crate::session::entry::Body;
use std::fmt::Write as _;
use std::io::{self, Write};

pub fn write(source: &Source<'_>, out: &mut dyn Write) -> io::Result<()> {
    let survey = Survey::new(source);
    let header = source.log.header();
    let mut text = format!("# {}\n\n", one_line(survey.title()));
    let _ = writeln!(text, "- Session: {}", header.id);
    let _ = writeln!(text, "- Folder: {}", one_line(&source.shown(&header.cwd)));
    let _ = writeln!(text, "- Started: {} UTC", minute(&header.timestamp));
    let sum = spent(&survey.sum);
    if !sum.is_empty() {
        let _ = writeln!(text, "- Usage: {sum}");
    }
    out.write_all(text.as_bytes())?;
    let path = source.index().path(source.log.leaf_position());
    let mut rest = path.as_slice();
    while !rest.is_empty() {
        let turn = Turn::take(source, &mut rest);
        let text =
            self::turn(&turn, source.describe).unwrap_or_else(|| "> A damaged entry is left out.\n".into());
        if !text.is_empty() {
            out.write_all(b"\n")?;
            for part in clean(&text) {
                out.write_all(part.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Formats a turn as Markdown; empty if there is no text, `None` if the entry is damaged.
fn turn(turn: &Turn, describe: Describe<'_>) -> Option<String> {
    let entry = turn.entry()?;
    Some(match &entry.body {
        Body::Message(body) => message(turn, &body.message, describe),
        Body::Compaction(compaction) => summary(compaction.tokens_before, &compaction.summary),
        Body::BranchSummary(branch) => branch_summary(&branch.summary),
        Body::CustomMessage(custom) if custom.display => {
            let content = custom.content.clone().unwrap_or_default();
            section(&one_line(&custom.custom_type), &self::content(&content))
        }
        Body::ModelChange(change) => format!("> Model: {}/{}\n", change.provider, change.model_id),
        Body::ThinkingLevelChange(change) => format!("> Thinking: {}\n", change.thinking_level),
        _ => String::new(),
    })
}

fn message(turn: &Turn, message: &AgentMessage, describe: Describe<'_>) -> String {
    match message {
        AgentMessage::User(message) => section("You", &content(&message.content)),
        AgentMessage::Assistant(answer) => self::answer(turn, answer, describe),
        AgentMessage::ToolResult(result) => {
            let name = one_line(&result.tool_name);
            section(&format!("Result of {name}"), &self::result(result))
        }
        AgentMessage::BashExecution(bash) => {
            let mut text = fence("sh", &bash.command);
            if !bash.output.is_empty() {
                text.push('\n');
                text.push_str(&fence("", &bash.output));
            }
            section("You ran", &text)
        }
        AgentMessage::Custom(custom) if custom.display => {
            section(&one_line(&custom.custom_type), &content(&custom.content))
        }
        AgentMessage::BranchSummary(branch) => branch_summary(&branch.summary),
        AgentMessage::CompactionSummary(compaction) => summary(compaction.tokens_before, &compaction.summary),
        AgentMessage::System(_) | AgentMessage::Custom(_) | AgentMessage::Unknown(_) => String::new(),
    }
}

fn answer(turn: &Turn, answer: &AssistantMessage, describe: Describe<'_>) -> String {
    let mut parts = Vec::new();
    for block in &answer.content {
        match block {
            Block::Thinking(thinking) if thinking.thinking.trim().is_empty() => {}
            Block::Thinking(thinking) => {
                let text = inert::markdown(thinking.thinking.trim());
                let lines = text.lines();
                let quoted: String = lines.map(|line| format!("> {line}\n")).collect();
                parts.push(format!("> *Thinking*\n>\n{quoted}"));
            }
            Block::ToolCall(call) => {
                let name = one_line(&call.name);
                let info = describe(&call.name, &call.arguments);
                let mut text = format!("**{name}** {}\n", code(&call::gist(&info, &call.arguments)));
                let arguments = || serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
                match info.body {
                    Shown::Nothing => {}
                    Shown::Command { command: Argument::Text(command), .. } => {
                        text += &format!("\n{}", fence("sh", command));
                    }
                    _ => text += &format!("\n{}", fence("json", &arguments())),
                }
                if let Some((_, result)) = turn.results.get(&call.id) {
                    text.push('\n');
                    text.push_str(&self::result(result));
                }
                parts.push(text);
            }
            block => parts.push(self::block(block)),
        }
    }
    if !matches!(answer.stop_reason, StopReason::Stop | StopReason::ToolUse) {
        let error = answer.error_message.as_deref().unwrap_or("not complete");
        parts.push(format!("> Ended: {}\n", one_line(error)));
    }
    section("Assistant", &parts.join("\n"))
}

fn result(result: &ToolResultMessage) -> String {
    let diff = result.details.as_ref().and_then(|details| details.get("diff")?.as_str());
    let mut text = match diff {
        Some(diff) => fence("diff", diff),
        None => fence("", &text_of(&result.content)),
    };
    if result.is_error {
        text.insert_str(0, "Failed:\n\n");
    }
    let images = result.content.iter().filter(|block| matches!(block, Block::Image(_)));
    for image in images {
        text.push('\n');
        text.push_str(&block(image));
    }
    text
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => ended(text),
        Content::Blocks(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join("\n"),
    }
}

fn block(block: &Block) -> String {
    match block {
        Block::Text(text) => ended(&text.text),
        Block::Image(image) => format!("*(an image, {})*\n", one_line(&image.mime_type)),
        _ => String::new(),
    }
}

fn section(title: &str, text: &str) -> String {
    format!("## {title}\n\n{text}")
}

fn summary(before: u64, text: &str) -> String {
    section(&format!("Context compacted, {} tokens before", thousands(before)), &ended(text))
}

fn branch_summary(text: &str) -> String {
    section("Summary of a branch that was left", &ended(text))
}

fn ended(text: &str) -> String {
    format!("{}\n", inert::markdown(text.trim_end()))
}

fn one_line(text: &str) -> String {
    inert::markdown(&brief(text, 200))
}

/// Formats text as a fenced code block. The fence is longer than any backticks in the text.
fn fence(language: &str, text: &str) -> String {
    let marks = "`".repeat((longest_run(text) + 1).max(3));
    format!("{marks}{language}\n{}\n{marks}\n", text.trim_end_matches('\n'))
}

/// Formats text as inline code; an empty text stays empty.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let marks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{pad}{text}{pad}{marks}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`');
    runs.map(str::len).max().unwrap_or(0)
}
