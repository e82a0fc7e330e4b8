//! Formats a conversation as text, so that the summarizing model reads it instead of continuing it.

use crate::llm::estimate::utf16_len;
use crate::llm::message::{AssistantMessage, Block, Content, Message};

/// Maximum length of a tool result, in characters (UTF-16 units).
const RESULT_CHARS: u64 = 2000;

/// Formats messages as labelled paragraphs. System messages and images are omitted.
pub fn paragraphs(messages: &[Message]) -> Vec<String> {
    let mut out = Vec::new();
    for message in messages {
        match message {
            Message::System(_) => {}
            Message::User(user) => {
                let text = match &user.content {
                    Content::Text(text) => text.clone(),
                    Content::Blocks(blocks) => joined(blocks),
                };
                if !text.is_empty() {
                    out.push(format!("[User]: {text}"));
                }
            }
            Message::Assistant(answer) => push_answer(answer, &mut out),
            Message::ToolResult(result) => {
                let text = joined(&result.content);
                if !text.is_empty() {
                    out.push(format!("[Tool result]: {}", cut(&text, RESULT_CHARS)));
                }
            }
        }
    }
    out
}

fn joined(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

/// Formats an answer without its thinking, whose conclusions are in the text and the calls.
fn push_answer(answer: &AssistantMessage, out: &mut Vec<String>) {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in &answer.content {
        match block {
            Block::Text(block) => texts.push(block.text.as_str()),
            Block::ToolCall(call) => {
                let arguments = call.arguments.iter();
                let arguments: Vec<String> =
                    arguments.map(|(name, value)| format!("{name}={value}")).collect();
                calls.push(format!("{}({})", call.name, arguments.join(", ")));
            }
            _ => {}
        }
    }
    let mut push = |label: &str, parts: &[&str], between: &str| {
        if !parts.is_empty() {
            out.push(format!("[{label}]: {}", parts.join(between)));
        }
    };
    push("Assistant", &texts, "\n");
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    push("Assistant tool calls", &calls, "; ");
}

/// Returns the first `limit` characters (UTF-16 units), and the count of the omitted ones.
pub fn cut(text: &str, limit: u64) -> String {
    let total = utf16_len(text);
    if total <= limit {
        return text.to_owned();
    }
    let mut taken = 0;
    let end = text.char_indices().find(|(_, letter)| {
        taken += letter.len_utf16() as u64;
        taken > limit
    });
    let (kept, _) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    let left = total - utf16_len(kept);
    format!("{kept}\n\n[... {left} more characters truncated]")
}

/// Groups paragraphs so that each group has at most `limit` characters. A longer paragraph is cut and becomes
/// a group.
pub fn groups(paragraphs: Vec<String>, limit: u64) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut room = 0;
    for paragraph in paragraphs {
        let paragraph = cut(&paragraph, limit);
        let length = utf16_len(&paragraph).saturating_add(2);
        match groups.last_mut() {
            Some(group) if length <= room => group.push(paragraph),
            _ => {
                groups.push(vec![paragraph]);
                room = limit;
            }
        }
        room = room.saturating_sub(length);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use serde_json::Value;

    #[track_caller]
    fn check(messages: Value, expected: &str) {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        assert_eq!(paragraphs(&messages).join("\n\n"), expected);
    }

    #[test]
    fn each_kind_of_message_has_its_label() {
        check(json!([{"role":"system","content":"s"}]), "");
        check(json!([{"role":"user","content":"hi"}]), "[User]: hi");
        check(
            json!([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"b"}]}]),
            "[User]: ab",
        );
        check(json!([{"role":"user","content":""}]), "");
        check(
            json!([{"role":"assistant","content":[{"type":"thinking","thinking":"t1"},{"type":"text","text":"x"},{"type":"thinking","thinking":"t2"},
                {"type":"toolCall","id":"1","name":"read","arguments":{"path":"a \"b\"","limit":5}},{"type":"text","text":"y"},
                {"type":"toolCall","id":"2","name":"ls","arguments":{}}],
                "api":"a","provider":"p","model":"m","stopReason":"toolUse"},
                {"role":"toolResult","toolCallId":"1","toolName":"read","content":[{"type":"text","text":"out"}],"isError":false}]),
            "[Assistant]: x\ny\n\n[Assistant tool calls]: read(path=\"a \\\"b\\\"\", limit=5); ls()\n\n[Tool result]: out",
        );
    }

    #[test]
    fn long_tool_results_are_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc\n\n[... 1 more characters truncated]");
        // The smiley takes two units: one of them does not fit.
        assert_eq!(cut("ab😀d", 3), "ab\n\n[... 3 more characters truncated]");
        assert_eq!(cut("abc", 0), "\n\n[... 3 more characters truncated]");
    }

    #[test]
    fn groups_hold_every_paragraph_in_order() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(groups(Vec::new(), 10).is_empty());
        assert_eq!(groups(words("aaa bbb ccc"), 100).len(), 1);
        let seen = groups(words("aaaa bbbb cccc d"), 12);
        assert_eq!(seen, [words("aaaa bbbb"), words("cccc d")]);
    }
}
