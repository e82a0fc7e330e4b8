//! Entries that extensions propose at the end of a turn or a run.
//!
//! A proposal is checked as a whole before the first of its entries is appended.

use super::Conversation;
use super::compaction::{current_system, estimate};
use super::entry::{Body, ContextEdit, Entry};
use super::index::{Index, Kind};
use crate::agent::message::AgentMessage;
use crate::llm::message::{Block, Content, Extra, now_ms};
use crate::session::error::SessionError;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Reads a list of proposed entries: lines of a session file without their places in it. The types are `custom`,
/// `custom_message`, `context_edit` and `compaction`.
pub fn read(conversation: &Conversation, entries: &Value) -> Result<Vec<Body>, String> {
    let list = entries.as_array().ok_or("\"entries\" must be a list")?;
    list.iter().map(|entry| read_one(conversation, entry)).collect()
}

fn read_one(conversation: &Conversation, fields: &Value) -> Result<Body, String> {
    let wrong = || format!("not an entry that can be appended here: {fields}");
    let mut body = Entry::deserialize(fields).map_err(|_| wrong())?.body;
    match &mut body {
        Body::Custom(custom) => custom.extra = Extra::new(),
        Body::CustomMessage(message) => message.extra = Extra::new(),
        Body::ContextEdit(edit) => {
            edit.extra = Extra::new();
            check_edit(conversation, edit, fields)?;
        }
        Body::Compaction(compaction) => {
            compaction.extra = Extra::new();
            compaction.from_hook = Some(true);
        }
        _ => return Err(wrong()),
    }
    Ok(body)
}

fn check_edit(conversation: &Conversation, edit: &mut ContextEdit, fields: &Value) -> Result<(), String> {
    if fields.get("replacement").is_none() {
        return Err("A context_edit needs a \"replacement\": null, or an object with \"content\"".into());
    }
    let id = &edit.target_id;
    let index: &Index = conversation.index();
    let target = index.find(id).ok_or_else(|| format!("There is no entry {id}"))?;
    let leaf = conversation.leaf().and_then(|leaf| index.find(leaf));
    if !index.path(leaf).contains(&target) {
        return Err(format!("The entry {id} is not on the current branch"));
    }
    match index.get(target).map(|slot| slot.kind) {
        Some(Kind::User | Kind::CustomMessage) => {}
        Some(Kind::Assistant | Kind::ToolResult) => {
            if let Some(replacement) = &mut edit.replacement
                && let Content::Text(text) = &replacement.content
            {
                replacement.content = Content::Blocks(vec![Block::text(text.clone())]);
            }
        }
        _ => return Err(format!("The entry {id} has no content that could be replaced")),
    }
    Ok(())
}

impl Conversation {
    /// Appends an entry that [`read`] has checked.
    pub fn append_draft(&mut self, mut body: Body) -> Result<Entry, SessionError> {
        if let Body::Compaction(compaction) = &mut body {
            let messages = self.messages();
            compaction.tokens_before = estimate::context_tokens(&messages, self.marks().fresh);
            compaction.system_message = current_system(messages.iter()).map(|mut system| {
                system.timestamp = now_ms();
                AgentMessage::System(Arc::new(system))
            });
        }
        self.append(body)
    }
}
