//! What fills the model's context window: by part, and by message.
//!
//! Sizes are estimates, at four characters per token and 1,200 tokens per image; a provider reports only the sum
//! of a request.

use super::control::Control;
use super::plain_text;
use crate::agent::message::AgentMessage;
use crate::llm::estimate::{CHARS_PER_TOKEN, IMAGE_CHARS, json_len, utf16_len};
use crate::llm::message::{Block, Content};
use crate::session::compaction::current_system;
use serde_json::Value;

/// Parts of the context. A message has the parts from `Prompts` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    System,
    Tools,
    ProjectFiles,
    Skills,
    Prompts,
    Answers,
    Thinking,
    Calls,
    Results,
    Images,
    Summaries,
}

impl Part {
    pub const ALL: [Self; 11] = [
        Self::System,
        Self::Tools,
        Self::ProjectFiles,
        Self::Skills,
        Self::Prompts,
        Self::Answers,
        Self::Thinking,
        Self::Calls,
        Self::Results,
        Self::Images,
        Self::Summaries,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system prompt",
            Self::Tools => "tools",
            Self::ProjectFiles => "project files",
            Self::Skills => "skills",
            Self::Prompts => "prompts",
            Self::Answers => "answers",
            Self::Thinking => "thinking",
            Self::Calls => "tool calls",
            Self::Results => "tool results",
            Self::Images => "images",
            Self::Summaries => "summaries",
        }
    }
}

/// Sizes in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// The size of the model's window; 0 if it is not known.
    pub window: u64,
    /// Tokens of the whole context as far as they are known from the provider, else the sum of the parts.
    pub total: u64,
    /// The parts that are there, in the order of [`Part::ALL`].
    pub parts: Vec<(Part, u64)>,
    /// Each message in its order: its beginning, and its size.
    pub messages: Vec<(String, u64)>,
}

/// Characters of a message's beginning.
const BEGINNING: usize = 100;

impl Control {
    /// Measures what the next request holds.
    pub fn filling(&self) -> Filling {
        let messages = self.messages();
        let active: Vec<_> = self.tools().all().into_iter().filter(|(_, is_active)| *is_active).collect();
        let sections = self.system_prompt().1;
        let (content, sections, tools) = match current_system(messages.iter()) {
            Some(system) => {
                let sections = system.sections.map(Value::Object).unwrap_or_default();
                (utf16_len(&system.content.text()), sections, json_len_of(&system.tools_added))
            }
            None => {
                let specs: Vec<_> = active.iter().map(|(tool, _)| tool.info().spec.clone()).collect();
                (0, sections, json_len_of(&specs))
            }
        };
        let mut chars = [0; Part::ALL.len()];
        let mut add = |part: Part, count: u64| {
            if let Some(sum) = chars.get_mut(part as usize) {
                *sum += count;
            }
        };
        add(Part::System, content);
        add(Part::Tools, tools);
        for (name, text) in sections.as_object().into_iter().flatten() {
            let part = match name.as_str() {
                "project_context" => Part::ProjectFiles,
                "skills" => Part::Skills,
                _ => Part::System,
            };
            add(part, utf16_len(text.as_str().unwrap_or_default()));
        }
        let mut rows = Vec::new();
        for message in messages.iter() {
            let mut size = 0;
            measure(message, &mut |part, count| {
                size += count;
                add(part, count);
            });
            if size > 0 {
                rows.push((beginning(message), size.div_ceil(CHARS_PER_TOKEN)));
            }
        }
        let parts: Vec<(Part, u64)> = Part::ALL
            .into_iter()
            .zip(chars)
            .filter(|(_, chars)| *chars > 0)
            .map(|(part, chars)| (part, chars.div_ceil(CHARS_PER_TOKEN)))
            .collect();
        let usage = self.context_usage();
        let sum = parts.iter().map(|(_, tokens)| tokens).sum();
        let has_answer = messages.iter().any(|message| matches!(message, AgentMessage::Assistant(_)));
        let known = usage.and_then(|usage| usage.tokens).filter(|tokens| has_answer && *tokens > 0);
        Filling {
            window: usage.map_or(0, |usage| usage.window),
            total: known.unwrap_or(sum),
            parts,
            messages: rows,
        }
    }
}

fn json_len_of<T: serde::Serialize>(list: &[T]) -> u64 {
    if list.is_empty() { 0 } else { json_len(list) }
}

/// Tells the characters of each part of a message that is sent.
fn measure(message: &AgentMessage, add: &mut dyn FnMut(Part, u64)) {
    let mut content = |part: Part, content: &Content| match content {
        Content::Text(text) => add(part, utf16_len(text)),
        Content::Blocks(blocks) => blocks.iter().for_each(|block| measure_block(block, part, add)),
    };
    match message {
        AgentMessage::User(user) => content(Part::Prompts, &user.content),
        AgentMessage::Custom(custom) => content(Part::Prompts, &custom.content),
        AgentMessage::Assistant(answer) => {
            answer.content.iter().for_each(|block| measure_block(block, Part::Answers, add));
        }
        AgentMessage::ToolResult(result) => {
            result.content.iter().for_each(|block| measure_block(block, Part::Results, add));
        }
        AgentMessage::BashExecution(bash) if bash.exclude_from_context == Some(true) => {}
        AgentMessage::BashExecution(bash) => add(Part::Prompts, utf16_len(&bash.text())),
        AgentMessage::BranchSummary(branch) => add(Part::Summaries, utf16_len(&branch.summary)),
        AgentMessage::CompactionSummary(compaction) => add(Part::Summaries, utf16_len(&compaction.summary)),
        AgentMessage::System(_) | AgentMessage::Unknown(_) => {}
    }
}

fn measure_block(block: &Block, part: Part, add: &mut dyn FnMut(Part, u64)) {
    match block {
        Block::Text(text) => add(part, utf16_len(&text.text)),
        Block::Thinking(thinking) => add(Part::Thinking, utf16_len(&thinking.thinking)),
        Block::ToolCall(call) => add(Part::Calls, utf16_len(&call.name) + json_len(&call.arguments)),
        Block::Image(_) => add(Part::Images, IMAGE_CHARS),
        Block::Other(_) => {}
    }
}

/// What a message is, and how its text begins, on one line.
fn beginning(message: &AgentMessage) -> String {
    let kind: &str = match message {
        AgentMessage::User(_) => "prompt",
        AgentMessage::Assistant(_) => "answer",
        AgentMessage::ToolResult(result) => &result.tool_name,
        AgentMessage::BashExecution(_) => "!",
        AgentMessage::Custom(custom) => &custom.custom_type,
        AgentMessage::BranchSummary(_) | AgentMessage::CompactionSummary(_) => "summary",
        AgentMessage::System(_) | AgentMessage::Unknown(_) => "",
    };
    let mut text = message.text();
    if let AgentMessage::Assistant(answer) = message
        && text.trim().is_empty()
    {
        let calls: Vec<&str> = answer.tool_calls().map(|call| call.name.as_str()).collect();
        text = if calls.is_empty() { "thinking".to_owned() } else { format!("calls {}", calls.join(", ")) };
    }
    // A long text need not be cleaned as a whole.
    let begin: String = text.chars().take(BEGINNING * 4).collect();
    let begin = plain_text(begin.as_bytes());
    let begin: Vec<&str> = begin.split_whitespace().collect();
    let begin: String = begin.join(" ").chars().take(BEGINNING).collect();
    format!("{}: {begin}", plain_text(kind.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn each_part_of_a_message_is_counted_once() {
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let rows = [
            (json!({"role": "user", "content": "12345678"}), "prompt: 12345678", "prompts 8"),
            (
                json!({"role": "user", "content": [{"type": "text", "text": "12"}, image]}),
                "prompt: 12",
                "prompts 2, images 4800",
            ),
            (
                json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "123"},
                    {"type": "toolCall", "id": "1", "name": "ls", "arguments": {}}], "api": "a", "provider": "p",
                    "model": "m", "usage": {}, "stopReason": "toolUse", "timestamp": 1}),
                "answer: calls ls",
                "thinking 3, tool calls 4",
            ),
            (
                json!({"role": "toolResult", "toolCallId": "1", "toolName": "ls", "isError": false, "timestamp": 1,
                    "content": [{"type": "text", "text": "a\n\u{1b}[31mb"}]}),
                "ls: a b",
                "tool results 8",
            ),
            (json!({"role": "other"}), ": ", ""),
        ];
        for (message, expected, sizes) in rows {
            let message: AgentMessage = serde_json::from_value(message).unwrap();
            assert_eq!(beginning(&message), expected);
            let mut parts = Vec::new();
            measure(&message, &mut |part, count| parts.push(format!("{} {count}", part.name())));
            assert_eq!(parts.join(", "), sizes);
        }
    }
}
