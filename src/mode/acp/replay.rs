//! Tells a stored conversation anew.

use super::call;
use super::typed::Typed;
use super::update::{call as call_update, chunk};
use crate::runtime::call::Kind;
use crate::runtime::{AgentMessage, Block, Describer, Workspace, unique_id};
use serde_json::{Map, Value, json};

/// Tells one message.
pub fn message(
    workspace: &Workspace,
    describer: &Describer,
    message: &AgentMessage,
    tell: &mut dyn FnMut(Value),
) {
    match message {
        AgentMessage::User(user) => {
            let id = unique_id();
            for block in user.content.to_blocks().iter().flat_map(shown) {
                tell(chunk("user_message_chunk", &id, block));
            }
        }
        AgentMessage::Assistant(answer) => {
            let (said, thought) = (unique_id(), unique_id());
            for block in &answer.content {
                match block {
                    Block::Text(text) => tell(chunk("agent_message_chunk", &said, text_block(&text.text))),
                    Block::Thinking(thinking) if !thinking.thinking.is_empty() => {
                        tell(chunk("agent_thought_chunk", &thought, text_block(&thinking.thinking)));
                    }
                    // Those of a failed answer never ran, and have no result.
                    Block::ToolCall(asked) if !answer.is_failed() => {
                        let info = describer.describe(&asked.name, &asked.arguments);
                        let change = call::stored_change(workspace, &info);
                        let mut update =
                            call_update(workspace, &asked.id, &asked.name, &asked.arguments, &info, &change);
                        update["status"] = "pending".into();
                        tell(update);
                    }
                    _ => {}
                }
            }
        }
        AgentMessage::ToolResult(result) => {
            let status = if result.is_error { "failed" } else { "completed" };
            let mut update = json!({"sessionUpdate": "tool_call_update",
                "toolCallId": result.tool_call_id, "status": status});
            // The content of a change is its diff, which was told with the call.
            if result.is_error || describer.describe(&result.tool_name, &Map::new()).kind != Kind::Edit {
                update["content"] = call::content(&result.content).into();
            }
            tell(update);
        }
        _ => {}
    }
}

/// A block of the user's, as it was typed.
fn shown(block: &Block) -> Vec<Value> {
    let Block::Text(text) = block else {
        return call::block(block).into_iter().collect();
    };
    let typed = Typed::of(&text.text);
    let mut blocks = Vec::new();
    if !typed.text.is_empty() {
        blocks.push(text_block(&typed.text));
    }
    blocks.extend(typed.files.iter().map(|file| file.link()));
    blocks
}

pub fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
