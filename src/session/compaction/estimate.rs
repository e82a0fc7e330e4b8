//! Estimates the size of a conversation in tokens, as the reference does for compaction.
//!
//! Four characters (UTF-16 units) count as one token, and an image as 4,800 characters. The token usage that
//! a provider reported for an answer covers all messages up to that answer, unless an edit or a compaction
//! has changed them since.

use super::current_system;
use crate::agent::message::AgentMessage;
use crate::llm::estimate::{CHARS_PER_TOKEN, IMAGE_CHARS, json_len, usage_tokens, utf16_len};
use crate::llm::message::{Block, Content, SystemMessage, Usage};
use serde_json::Value;

/// Returns the tokens of a conversation. Usage reports of answers before the index `fresh` are ignored.
pub fn context_tokens(messages: &[AgentMessage], fresh: usize) -> u64 {
    let counted = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, reported(message)?)));
    match counted {
        Some((at, usage)) if at >= fresh => {
            let later = messages.get(at + 1..).unwrap_or_default();
            later.iter().map(message_tokens).fold(usage_tokens(usage), u64::saturating_add)
        }
        _ => plain_tokens(messages),
    }
}

/// Estimates the tokens of a conversation without usage reports. System messages count with their combined
/// effect.
pub fn plain_tokens(messages: &[AgentMessage]) -> u64 {
    let system = current_system(messages).map_or(0, |system| system_tokens(&system));
    let spoken = messages.iter().filter(|message| !matches!(message, AgentMessage::System(_)));
    spoken.map(message_tokens).fold(system, u64::saturating_add)
}

/// Returns the usage that the provider reported for an answer; `None` for a failed answer or other message.
pub fn reported(message: &AgentMessage) -> Option<&Usage> {
    match message {
        AgentMessage::Assistant(answer) if !answer.is_failed() && usage_tokens(&answer.usage) > 0 => {
            Some(&answer.usage)
        }
        _ => None,
    }
}

/// Estimates the tokens of one message.
pub fn message_tokens(message: &AgentMessage) -> u64 {
    let chars = match message {
        AgentMessage::System(system) => return system_tokens(system),
        AgentMessage::User(user) => content_chars(&user.content),
        AgentMessage::Custom(custom) => content_chars(&custom.content),
        AgentMessage::ToolResult(result) => block_chars(&result.content),
        AgentMessage::Assistant(answer) => answer.content.iter().map(answer_chars).sum(),
        AgentMessage::BashExecution(bash) => utf16_len(&bash.command) + utf16_len(&bash.output),
        AgentMessage::BranchSummary(branch) => utf16_len(&branch.summary),
        AgentMessage::CompactionSummary(compaction) => utf16_len(&compaction.summary),
        AgentMessage::Unknown(_) => 0,
    };
    chars.div_ceil(CHARS_PER_TOKEN)
}

fn system_tokens(system: &SystemMessage) -> u64 {
    let sections = system.sections.iter().flat_map(|sections| sections.values());
    let sections = sections.filter_map(Value::as_str).map(utf16_len);
    let tools = match system.tools_added.as_slice() {
        [] => 0,
        tools => json_len(tools),
    };
    let chars = content_chars(&system.content) + sections.sum::<u64>() + tools;
    chars.div_ceil(CHARS_PER_TOKEN)
}

fn content_chars(content: &Content) -> u64 {
    match content {
        Content::Text(text) => utf16_len(text),
        Content::Blocks(blocks) => block_chars(blocks),
    }
}

fn block_chars(blocks: &[Block]) -> u64 {
    let chars = blocks.iter().map(|block| match block {
        Block::Text(block) => utf16_len(&block.text),
        Block::Image(_) => IMAGE_CHARS,
        _ => 0,
    });
    chars.sum()
}

fn answer_chars(block: &Block) -> u64 {
    match block {
        Block::Text(block) => utf16_len(&block.text),
        Block::Thinking(block) => utf16_len(&block.thinking),
        Block::ToolCall(call) => utf16_len(&call.name) + json_len(&call.arguments),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[track_caller]
    fn check(messages: Value, fresh: usize, expected: u64) {
        let read: Vec<AgentMessage> = serde_json::from_value(messages.clone()).unwrap();
        assert_eq!(context_tokens(&read, fresh), expected, "{messages}");
    }

    fn answer(total: u64, reason: &str) -> Value {
        json!({"role":"assistant","content":[{"type":"text","text":"abcd"}],"api":"a","provider":"p","model":"m",
            "usage":{"totalTokens":total},"stopReason":reason,"timestamp":1})
    }

    #[test]
    fn every_kind_of_message_is_counted() {
        check(json!([]), 0, 0);
        check(json!([{"role":"user","content":"12345"}]), 0, 2);
        check(json!([{"role":"user","content":"😀😀"}]), 0, 1);
        check(
            json!([{"role":"user","content":[{"type":"text","text":"1"},{"type":"image","data":"","mimeType":"image/png"}]}]),
            0,
            1201,
        );
        check(json!([{"role":"bashExecution","command":"ls -","output":"1234"}]), 0, 2);
        check(json!([{"role":"custom","customType":"x","content":"12345678"}]), 0, 2);
        check(json!([{"role":"branchSummary","summary":"1234"}]), 0, 1);
        check(json!([{"role":"compactionSummary","summary":"12345"}]), 0, 2);
        check(json!([{"role":"hologram","content":"12345"}]), 0, 0);
        check(
            json!([{"role":"toolResult","toolCallId":"1","toolName":"x","content":[{"type":"text","text":"1234"}],"isError":false}]),
            0,
            1,
        );
        let mut call = answer(0, "toolUse");
        call["content"] = json!([{"type":"thinking","thinking":"1234"},{"type":"toolCall","id":"1","name":"ls","arguments":{"path":"."}}]);
        // `ls` and `{"path":"."}` are 14 characters.
        check(json!([call]), 0, 5);
    }

    #[test]
    fn system_messages_count_once_with_what_is_in_force() {
        let first = json!({"role":"system","content":"1234","sections":{"a":"12345678","b":"1234"},
            "toolsAdded":[{"name":"x","description":"","parameters":{}}]});
        // 16 characters and `[{"name":"x","description":"","parameters":{}}]`, which are 47.
        check(json!([first]), 0, 16);
        check(
            json!([first, {"role":"system","content":"","sections":{"a":null},"toolsRemoved":[{"name":"x"}]}]),
            0,
            2,
        );
    }

    #[test]
    fn a_report_stands_for_what_came_before_it_while_it_is_fresh() {
        let user = json!({"role":"user","content":"1234"});
        let rows = [
            (json!([user, answer(900, "stop"), user]), 0, 901),
            (json!([user, answer(900, "stop"), user]), 1, 901),
            (json!([user, answer(900, "stop"), user]), 2, 3),
            (json!([user, answer(900, "error"), user]), 0, 3),
            (json!([user, answer(900, "aborted"), user]), 0, 3),
            (json!([user, answer(0, "stop"), user]), 0, 3),
            (json!([answer(900, "stop"), answer(0, "stop"), answer(9, "error")]), 0, 902),
        ];
        for (messages, fresh, expected) in rows {
            check(messages, fresh, expected);
        }
    }
}
