//! Estimates the number of tokens of a conversation.
//!
//! Seven characters of a message count as two tokens, an image as 4,800 characters. If an answer reports its
//! usage, the reported count replaces the estimate for all messages up to the answer.

use super::message::{Block, Content, Message, Usage};
use serde::Serialize;

pub const CHARS_PER_TOKEN: u64 = 4;
pub const IMAGE_CHARS: u64 = 4800;

/// Number of tokens of `messages`: the last usable count from a provider, plus an estimate of later messages.
///
/// A count is not used if an earlier message is newer than the answer by its timestamp: a summary then
/// replaced the messages that were counted.
pub fn context_tokens(messages: &[Message]) -> u64 {
    let mut newest = 0;
    let mut counted = None;
    for (index, message) in messages.iter().enumerate() {
        if let Message::Assistant(answer) = message
            && answer.timestamp >= newest
            && !answer.is_failed()
            && usage_tokens(&answer.usage) > 0
        {
            counted = Some((index, usage_tokens(&answer.usage)));
        }
        newest = newest.max(message.timestamp());
    }
    let (rest, known) = match counted {
        Some((index, tokens)) => (messages.get(index + 1..).unwrap_or_default(), tokens),
        None => (messages, 0),
    };
    let estimated = rest.iter().map(message_tokens);
    estimated.fold(known, u64::saturating_add)
}

/// Tokens of an answer and its request.
pub fn usage_tokens(usage: &Usage) -> u64 {
    if usage.total_tokens > 0 {
        return usage.total_tokens;
    }
    [usage.output, usage.cache_read, usage.cache_write].into_iter().fold(usage.input, u64::saturating_add)
}

/// Estimated tokens of one message.
pub fn message_tokens(message: &Message) -> u64 {
    match message {
        Message::System(system) => {
            tokens(utf16_len(&system.prompt()))
                + list_tokens(&system.tools_added)
                + list_tokens(&system.tools_removed)
        }
        Message::User(user) => match &user.content {
            Content::Text(text) => tokens(utf16_len(text)),
            Content::Blocks(blocks) => block_tokens(blocks),
        },
        Message::ToolResult(result) => block_tokens(&result.content),
        Message::Assistant(answer) => block_tokens(&answer.content),
    }
}

/// Estimated tokens for a number of characters, at 3.5 characters per token: rather too many than too few.
fn tokens(chars: u64) -> u64 {
    chars.saturating_mul(2).div_ceil(7)
}

/// Estimated tokens of a text, at four characters per token.
pub fn text_tokens(text: &str) -> u64 {
    utf16_len(text).div_ceil(CHARS_PER_TOKEN)
}

fn block_tokens(blocks: &[Block]) -> u64 {
    let chars = blocks.iter().map(|block| match block {
        Block::Text(block) => utf16_len(&block.text),
        Block::Thinking(block) => utf16_len(&block.thinking),
        Block::Image(_) => IMAGE_CHARS,
        Block::ToolCall(call) => utf16_len(&call.name) + json_len(&call.arguments),
        Block::Other(_) => 0,
    });
    tokens(chars.sum())
}

fn list_tokens<T: Serialize>(list: &[T]) -> u64 {
    if list.is_empty() {
        return 0;
    }
    tokens(json_len(list))
}

/// Length of `value` as JSON, in UTF-16 units.
pub fn json_len(value: &(impl Serialize + ?Sized)) -> u64 {
    serde_json::to_string(value).map_or(0, |json| utf16_len(&json))
}

/// Length in UTF-16 units, as the reference counts.
pub fn utf16_len(text: &str) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = text.as_bytes().as_chunks();
    let units = |word: u64| {
        if word & (LOW << 7) == 0 {
            return 8;
        }
        // Bytes that go on with a character make no unit, the first of four makes two.
        let others = (word >> 7) & !(word >> 6) & LOW;
        let pairs = (word >> 7) & (word >> 6) & (word >> 5) & (word >> 4) & LOW;
        8 - others.count_ones() + pairs.count_ones()
    };
    let of_words: u64 = words.iter().map(|word| u64::from(units(u64::from_ne_bytes(*word)))).sum();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    of_words + u64::from(units(u64::from_ne_bytes(last))) - (8 - rest.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use serde_json::Value;

    #[track_caller]
    fn check(messages: Value, expected: u64) {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        assert_eq!(context_tokens(&messages), expected);
    }

    fn answer(total: u64, timestamp: u64, reason: &str) -> Value {
        json!({"role":"assistant","content":[],"api":"a","provider":"p","model":"m",
            "usage":{"totalTokens":total},"stopReason":reason,"timestamp":timestamp})
    }

    #[test]
    fn every_kind_of_message_is_counted() {
        check(json!([]), 0);
        check(json!([{"role":"user","content":"12345"}]), 2);
        check(
            json!([{"role":"user","content":[{"type":"text","text":"1234"},{"type":"image","data":"","mimeType":"image/png"}]}]),
            1373,
        );
        check(json!([{"role":"system","content":"1234","sections":{"a":"5678"}}]), 3);
        check(
            json!([{"role":"toolResult","toolCallId":"1","toolName":"x","content":[{"type":"text","text":"😀😀"}],"isError":false}]),
            2,
        );
        let mut call = answer(0, 1, "toolUse");
        call["content"] = json!([{"type":"toolCall","id":"1","name":"ls","arguments":{"path":"."}}]);
        check(json!([call]), 4);
    }

    #[test]
    fn a_figure_of_the_provider_stands_for_what_came_before_it() {
        let user = |at: u64| json!({"role":"user","content":"1234","timestamp":at});
        check(json!([user(1), answer(900, 2, "stop"), user(3)]), 902);
        check(json!([user(1), answer(900, 2, "error"), user(3)]), 4);
        check(json!([user(1), answer(900, 2, "aborted"), user(3)]), 4);
        // The summary is newer than the answer that follows it.
        check(json!([user(5), answer(900, 2, "stop"), user(6)]), 4);
    }

    proptest::proptest! {
        #[test]
        fn units_are_counted_as_they_would_be_written(text in "[a-zé漢😀\\u{80}\\u{ffff}]{0,40}|\\PC{0,40}") {
            proptest::prop_assert_eq!(utf16_len(&text), text.encode_utf16().count() as u64);
        }
    }
}
