//! The messages of a conversation, and their conversion for a provider.
//!
//! A provider knows four roles ([`Message`]). A conversation also contains commands that the user ran,
//! messages of extensions, and summaries of compacted messages or abandoned branches. Events and session
//! files keep them as they are; only [`to_llm`] converts them into user messages, for a request.

use crate::llm::message::{
    AssistantMessage, Block, Content, Extra, Message, SystemMessage, ToolResultMessage, UserMessage, number,
    text_of,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A message of any role. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum AgentMessage {
    System(Arc<SystemMessage>),
    User(Arc<UserMessage>),
    Assistant(Arc<AssistantMessage>),
    ToolResult(Arc<ToolResultMessage>),
    BashExecution(Arc<BashExecution>),
    Custom(Arc<CustomMessage>),
    BranchSummary(Arc<BranchSummary>),
    CompactionSummary(Arc<CompactionSummary>),
    /// An unknown role, or an unknown form of a known role: kept in files, never sent.
    #[serde(untagged)]
    Unknown(Arc<Value>),
}

/// A shell command of the user, with its output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BashExecution {
    pub command: String,
    #[serde(default)]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default)]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    #[serde(default)]
    pub timestamp: u64,
    /// True if the message is not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message of an extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    pub custom_type: String,
    #[serde(default)]
    pub content: Content,
    /// True if the message is shown on the screen.
    #[serde(default)]
    pub display: bool,
    /// Data for the extension, never sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary of an abandoned branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    pub summary: String,
    /// The id of the abandoned branch's last entry.
    #[serde(default)]
    pub from_id: Option<String>,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary that replaces messages in the model's context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummary {
    pub summary: String,
    #[serde(default, with = "number::count")]
    pub tokens_before: u64,
    #[serde(default)]
    pub timestamp: u64,
    #[serde(flatten)]
    pub extra: Extra,
}

impl AgentMessage {
    /// True if both are handles of one message in memory.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::System(one), Self::System(other)) => Arc::ptr_eq(one, other),
            (Self::User(one), Self::User(other)) => Arc::ptr_eq(one, other),
            (Self::Assistant(one), Self::Assistant(other)) => Arc::ptr_eq(one, other),
            (Self::ToolResult(one), Self::ToolResult(other)) => Arc::ptr_eq(one, other),
            (Self::BashExecution(one), Self::BashExecution(other)) => Arc::ptr_eq(one, other),
            (Self::Custom(one), Self::Custom(other)) => Arc::ptr_eq(one, other),
            (Self::BranchSummary(one), Self::BranchSummary(other)) => Arc::ptr_eq(one, other),
            (Self::CompactionSummary(one), Self::CompactionSummary(other)) => Arc::ptr_eq(one, other),
            (Self::Unknown(one), Self::Unknown(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::Unknown(value) => value.get("role").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// Returns the time in Unix milliseconds; 0 if the message has none.
    pub fn timestamp(&self) -> u64 {
        match self {
            Self::System(message) => message.timestamp,
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
            Self::BashExecution(message) => message.timestamp,
            Self::Custom(message) => message.timestamp,
            Self::BranchSummary(message) => message.timestamp,
            Self::CompactionSummary(message) => message.timestamp,
            Self::Unknown(value) => value.get("timestamp").and_then(Value::as_u64).unwrap_or(0),
        }
    }

    /// Returns the message's text, for lists and searches; empty if it has none.
    pub fn text(&self) -> String {
        match self {
            Self::System(message) => message.content.text(),
            Self::User(message) => message.content.text(),
            Self::Assistant(message) => text_of(&message.content),
            Self::ToolResult(message) => text_of(&message.content),
            Self::BashExecution(bash) => bash.text(),
            Self::Custom(message) => message.content.text(),
            Self::BranchSummary(message) => message.summary.clone(),
            Self::CompactionSummary(message) => message.summary.clone(),
            Self::Unknown(_) => String::new(),
        }
    }

    /// Converts the message for a provider. `None` if it must not be sent.
    pub fn to_llm(&self) -> Option<Message> {
        Some(match self {
            Self::System(message) => Message::System(message.clone()),
            Self::User(message) => Message::User(message.clone()),
            Self::Assistant(message) => Message::Assistant(message.clone()),
            Self::ToolResult(message) => Message::ToolResult(message.clone()),
            Self::BashExecution(bash) if bash.exclude_from_context == Some(true) => return None,
            Self::BashExecution(bash) => user(vec![Block::text(bash.text())], bash.timestamp),
            Self::Custom(custom) => user(custom.content.to_blocks(), custom.timestamp),
            Self::BranchSummary(branch) => user(
                vec![Block::text(format!(
                    "Another branch of this conversation was followed and then left. What was done there:\n\n<summary>\n{}\n</summary>",
                    branch.summary
                ))],
                branch.timestamp,
            ),
            Self::CompactionSummary(compaction) => user(
                vec![Block::text(format!(
                    "To save space, the conversation up to here was replaced by this summary of it:\n\n<summary>\n{}\n</summary>",
                    compaction.summary
                ))],
                compaction.timestamp,
            ),
            Self::Unknown(_) => return None,
        })
    }
}

/// Converts a conversation for a provider, without messages that must not be sent.
pub fn to_llm(messages: &[AgentMessage]) -> Vec<Message> {
    messages.iter().filter_map(AgentMessage::to_llm).collect()
}

fn user(blocks: Vec<Block>, timestamp: u64) -> Message {
    Message::User(Arc::new(UserMessage { content: Content::Blocks(blocks), timestamp, extra: Extra::new() }))
}

impl BashExecution {
    /// Returns the command and its output in the form for the model.
    pub fn text(&self) -> String {
        let mut text = format!("Ran `{}`\n", self.command);
        if self.output.is_empty() {
            text.push_str("(no output)");
        } else {
            text.push_str("```\n");
            text.push_str(&self.output);
            text.push_str("\n```");
        }
        match self.exit_code {
            _ if self.cancelled => text.push_str("\n\n(command cancelled)"),
            Some(code) if code != 0 => {
                text.push_str(&format!("\n\nCommand exited with code {code}"));
            }
            _ => {}
        }
        if let (true, Some(path)) = (self.truncated, &self.full_output_path) {
            text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
        }
        text
    }
}

impl From<Message> for AgentMessage {
    fn from(message: Message) -> Self {
        match message {
            Message::System(message) => Self::System(message),
            Message::User(message) => Self::User(message),
            Message::Assistant(message) => Self::Assistant(message),
            Message::ToolResult(message) => Self::ToolResult(message),
        }
    }
}

macro_rules! from_struct {
    ($($kind:ident($message:ty)),+ $(,)?) => {$(
        impl From<$message> for AgentMessage {
            fn from(message: $message) -> Self {
                Self::$kind(Arc::new(message))
            }
        }
    )+};
}

from_struct!(
    System(SystemMessage),
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    BashExecution(BashExecution),
    Custom(CustomMessage),
    BranchSummary(BranchSummary),
    CompactionSummary(CompactionSummary),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::text_of;

    /// Checks that `json` survives a round trip, and what the model is told for it.
    #[track_caller]
    fn check(json: &str, role: &str, told: Option<&str>) {
        let message: AgentMessage = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), json);
        assert_eq!(message.role(), role);
        assert_eq!(message.timestamp(), 5);
        let text = message.to_llm().map(|message| match message {
            Message::User(user) => user.content.text(),
            Message::ToolResult(result) => text_of(&result.content),
            Message::Assistant(answer) => text_of(&answer.content),
            Message::System(system) => system.content.text(),
        });
        assert_eq!(text.as_deref(), told);
    }

    #[test]
    fn every_kind_survives_and_becomes_what_a_provider_knows() {
        check(r#"{"role":"user","content":"hi","timestamp":5}"#, "user", Some("hi"));
        check(
            r#"{"role":"toolResult","toolCallId":"1","toolName":"bash","content":[{"type":"text","text":"x"}],"isError":false,"timestamp":5,"later":1}"#,
            "toolResult",
            Some("x"),
        );
        check(
            r#"{"role":"custom","customType":"k","content":[{"type":"text","text":"c"}],"display":true,"details":{"a":1},"timestamp":5,"later":[]}"#,
            "custom",
            Some("c"),
        );
        check(
            r#"{"role":"custom","customType":"k","content":"plain","display":false,"timestamp":5}"#,
            "custom",
            Some("plain"),
        );
        check(
            r#"{"role":"branchSummary","summary":"went\nwrong","fromId":null,"timestamp":5}"#,
            "branchSummary",
            Some(
                "Another branch of this conversation was followed and then left. What was done there:\n\n<summary>\nwent\nwrong\n</summary>",
            ),
        );
        check(
            r#"{"role":"compactionSummary","summary":"s","tokensBefore":50000,"timestamp":5}"#,
            "compactionSummary",
            Some(
                "To save space, the conversation up to here was replaced by this summary of it:\n\n<summary>\ns\n</summary>",
            ),
        );
        check(r#"{"role":"hologram","timestamp":5,"z":{"a":[1]}}"#, "hologram", None);
        // A known role without what makes it one.
        check(r#"{"role":"assistant","timestamp":5,"z":null}"#, "assistant", None);
    }

    #[test]
    fn a_command_of_the_user_is_told_as_a_block() {
        let rows: &[(&str, Option<&str>)] = &[
            (
                r#""command":"ls","output":"a\nb","exitCode":0,"cancelled":false,"truncated":false"#,
                Some("Ran `ls`\n```\na\nb\n```"),
            ),
            (
                r#""command":"false","output":"","exitCode":1,"cancelled":false,"truncated":false"#,
                Some("Ran `false`\n(no output)\n\nCommand exited with code 1"),
            ),
            (
                r#""command":"x","output":"o","cancelled":true,"truncated":false"#,
                Some("Ran `x`\n```\no\n```\n\n(command cancelled)"),
            ),
            (
                r#""command":"x","output":"o","exitCode":2,"cancelled":false,"truncated":true,"fullOutputPath":"/t/f""#,
                Some(
                    "Ran `x`\n```\no\n```\n\nCommand exited with code 2\n\n[Output truncated. Full output: /t/f]",
                ),
            ),
        ];
        for (fields, told) in rows {
            let json = format!(r#"{{"role":"bashExecution",{fields},"timestamp":5}}"#);
            check(&json, "bashExecution", *told);
            let hidden = json.replace("\"timestamp\":5", "\"timestamp\":5,\"excludeFromContext\":true");
            check(&hidden, "bashExecution", None);
        }
    }

    #[test]
    fn a_conversation_keeps_its_order() {
        let messages: Vec<AgentMessage> = vec![
            UserMessage { content: Content::Text("a".into()), ..UserMessage::default() }.into(),
            AgentMessage::Unknown(Arc::new(Value::Null)),
            BranchSummary { summary: "b".into(), ..BranchSummary::default() }.into(),
            AssistantMessage::default().into(),
        ];
        let told = to_llm(&messages);
        assert!(matches!(told.as_slice(), [Message::User(_), Message::User(_), Message::Assistant(_)]));
    }
}
