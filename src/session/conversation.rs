//! A conversation: its log, and the model's context at the leaf.
//!
//! All entries are appended here, so that the messages always equal those of [`Log::context`]. A message is
//! written to the log before it is added to the list. The list is shared without copying: a reader keeps the
//! state at the time of its call.

use super::context::{Marks, Projection, SessionContext, StoredModels, replace_content, summary_or_custom};
use super::entry::{Body, BranchSummary, ContextEdit, Entry, ModelChange, SessionInfo, ThinkingLevelChange};
use super::file::Unsynced;
use super::log::Log;
use super::notice::Notice;
use crate::agent::message::AgentMessage;
use crate::llm::secret::Vault;
use crate::session::error::SessionError;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

pub struct Conversation {
    log: Log,
    messages: Arc<Vec<AgentMessage>>,
    /// The id of each message's entry.
    entries: Vec<Arc<str>>,
    marks: Marks,
}

/// Gives read access to the log.
impl Deref for Conversation {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Conversation {
    /// Makes a conversation. `context` must be the present context of `log`.
    pub fn new(log: Log, context: SessionContext) -> Self {
        let mut conversation =
            Self { log, messages: Arc::default(), entries: Vec::new(), marks: Marks::default() };
        conversation.show(context);
        conversation
    }

    fn show(&mut self, context: SessionContext) {
        self.marks = context.marks;
        let messages = context.messages.into_iter().map(|message| (message.entry, message.message));
        let (entries, messages) = messages.unzip();
        self.entries = entries;
        self.messages = Arc::new(messages);
    }

    /// Reads the messages again. The old list is dropped first to save memory.
    fn reload(&mut self) {
        self.messages = Arc::default();
        let context = self.log.context();
        self.show(context);
    }

    /// Returns the messages at the leaf.
    pub fn messages(&self) -> Arc<Vec<AgentMessage>> {
        self.messages.clone()
    }

    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Returns the id of the last message's entry.
    pub fn last_entry(&self) -> Option<&str> {
        self.entries.last().map(|entry| &**entry)
    }

    /// Appends an entry below the leaf and moves the leaf to it.
    pub fn append(&mut self, body: impl Into<Body>) -> Result<Entry, SessionError> {
        let entry = self.log.append(body)?;
        match &entry.body {
            Body::Message(body) => self.push(body.message.clone()),
            Body::CustomMessage(_) => {
                summary_or_custom(entry.clone()).into_iter().for_each(|message| self.push(message));
            }
            Body::ContextEdit(edit) => self.edit(edit),
            Body::Compaction(_) | Body::BranchSummary(_) => self.reload(),
            _ => {}
        }
        Ok(entry)
    }

    pub fn append_message(&mut self, message: &AgentMessage) -> Result<Entry, SessionError> {
        self.append(message.clone())
    }

    pub fn append_model_change(&mut self, provider: &str, model: &str) -> Result<Entry, SessionError> {
        self.append(ModelChange::new(provider, model))
    }

    pub fn append_thinking_level(&mut self, level: &str) -> Result<Entry, SessionError> {
        self.append(ThinkingLevelChange::new(level))
    }

    /// Names the session; an empty name removes the name.
    pub fn append_session_info(&mut self, name: &str) -> Result<Entry, SessionError> {
        self.append(SessionInfo::new(name))
    }

    /// Adds the message of the entry at the leaf.
    fn push(&mut self, message: AgentMessage) {
        let leaf = self.log.leaf_position().and_then(|leaf| self.log.index().get(leaf));
        self.entries.extend(leaf.map(|leaf| leaf.id.clone()));
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Applies an edit, which was just appended, to the messages.
    fn edit(&mut self, edit: &ContextEdit) {
        let at = self.entries.iter().rposition(|entry| **entry == *edit.target_id);
        let messages = Arc::make_mut(&mut self.messages);
        let target = at.and_then(|at| Some((at, messages.get_mut(at)?)));
        match (target, &edit.replacement) {
            // Either an earlier edit left the target out, or it is a compaction, which no edit changes.
            (None | Some((_, AgentMessage::CompactionSummary(_))), _) => return self.reload(),
            (Some((_, message)), Some(replacement)) => replace_content(message, &replacement.content),
            (Some((at, _)), None) => {
                messages.remove(at);
                self.entries.remove(at);
                let after_compaction = &mut self.marks.after_compaction;
                *after_compaction -= usize::from(at < *after_compaction);
            }
        }
        self.marks.fresh = self.messages.len();
    }

    /// Moves the leaf to the entry `id`, or before the first entry if `None`. Writes nothing.
    pub fn set_leaf(&mut self, id: Option<&str>) -> Result<(), SessionError> {
        self.log.set_leaf(id)?;
        self.reload();
        Ok(())
    }

    /// Moves the leaf to `to`, or before the first entry if `None`, and appends a summary of the abandoned
    /// branch.
    pub fn branch_with_summary(
        &mut self,
        to: Option<&str>,
        summary: BranchSummary,
    ) -> Result<Entry, SessionError> {
        let entry = self.log.branch_with_summary(to, summary)?;
        self.reload();
        Ok(entry)
    }

    /// Sets the label of an entry; `None` or an empty label removes it.
    pub fn set_label(&mut self, target: &str, label: Option<&str>) -> Result<Entry, SessionError> {
        self.log.set_label(target, label)
    }

    /// Returns the last chosen model and thinking level on the branch.
    pub fn last_choice(&mut self) -> (StoredModels, Option<String>) {
        self.log.last_choice()
    }

    /// Builds the model's context at the leaf, including entries without a message.
    pub fn projection(&mut self) -> Projection {
        self.log.projection()
    }

    /// Replaces the secrets of `vault` by placeholders in entries that are written or read from now on.
    pub fn hide(&mut self, vault: Vault) {
        self.log.hide(vault);
    }

    /// Takes the notices for the user since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.log.take_notices()
    }

    pub fn notice(&mut self, notice: Notice) {
        self.log.notice(notice);
    }

    /// Syncs the entries of a turn to the disk, if the `session.sync` setting asks for it.
    pub fn turn_ended(&mut self) {
        self.log.turn_ended();
    }

    /// Returns the sync that is due after a turn, to be run without the conversation's lock.
    pub fn turn_unsynced(&mut self) -> Option<Unsynced> {
        self.log.turn_unsynced()
    }

    pub fn synced(&mut self, done: io::Result<()>) {
        self.log.synced(done);
    }

    /// Closes the log like [`Conversation::finish`]. The messages stay readable; later entries are not
    /// stored.
    pub fn end(&mut self) -> Result<(), SessionError> {
        let empty = Log::in_memory(Path::new(&self.header().cwd), None)?;
        std::mem::replace(&mut self.log, empty).finish()
    }

    /// Closes the log. A draft without an answer is removed.
    pub fn finish(self) -> Result<(), SessionError> {
        self.log.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::Content;
    use crate::session::entry::{Compaction, CustomMessage, Replacement};
    use crate::session::testing::{answer, user};
    use proptest::prelude::*;

    fn conversation() -> Conversation {
        let mut log = Log::in_memory(Path::new("/x"), None).unwrap();
        let context = log.context();
        Conversation::new(log, context)
    }

    /// What is done to a conversation; numbers choose an entry.
    #[derive(Clone, Debug)]
    enum Step {
        User,
        Answer,
        Custom,
        Name,
        Omit(usize),
        Replace(usize),
        Compact(usize),
        Leaf(usize),
        Branch(usize),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::User),
            4 => Just(Step::Answer),
            1 => Just(Step::Custom),
            1 => Just(Step::Name),
            2 => (0_usize..40).prop_map(Step::Omit),
            2 => (0_usize..40).prop_map(Step::Replace),
            1 => (0_usize..40).prop_map(Step::Compact),
            1 => (0_usize..40).prop_map(Step::Leaf),
            1 => (0_usize..40).prop_map(Step::Branch),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// The messages are those that the log gives, whatever was appended.
        #[test]
        fn the_messages_are_those_of_the_log(steps in prop::collection::vec(any_step(), 0..30)) {
            let mut conversation = conversation();
            let mut ids: Vec<String> = Vec::new();
            let edit = |target_id: String, replacement| ContextEdit { target_id, replacement, ..ContextEdit::default() };
            for (number, step) in steps.into_iter().enumerate() {
                let id = |at: usize| ids.get(at % ids.len().max(1)).cloned().unwrap_or_default();
                let text = format!("text {number}");
                let entry = match step {
                    Step::User => conversation.append_message(&user(&text)),
                    Step::Answer => conversation.append_message(&answer(&text)),
                    Step::Custom => conversation.append(CustomMessage {
                        content: Some(Content::Text(text)), ..CustomMessage::default()
                    }),
                    Step::Name => conversation.append_session_info(&text),
                    Step::Omit(at) => conversation.append(edit(id(at), None)),
                    Step::Replace(at) => {
                        let replacement = Replacement { content: Content::Text(text), ..Replacement::default() };
                        conversation.append(edit(id(at), Some(replacement)))
                    }
                    Step::Compact(at) => conversation.append(Compaction {
                        summary: text, first_kept_entry_id: Some(id(at)), system_message: Some(user("prompt")),
                        ..Compaction::default()
                    }),
                    Step::Leaf(at) if ids.is_empty() || at == 0 => {
                        conversation.set_leaf(None).unwrap();
                        continue;
                    }
                    Step::Leaf(at) => {
                        conversation.set_leaf(Some(&id(at))).unwrap();
                        continue;
                    }
                    Step::Branch(at) => {
                        let to = Some(id(at)).filter(|id| !id.is_empty());
                        let summary = BranchSummary { summary: text, ..BranchSummary::default() };
                        conversation.branch_with_summary(to.as_deref(), summary)
                    }
                };
                ids.push(entry.unwrap().id);
                let expected = conversation.log.context();
                prop_assert_eq!(conversation.marks(), expected.marks);
                let entries: Vec<Arc<str>> = expected.messages.iter().map(|known| known.entry.clone()).collect();
                prop_assert_eq!(&conversation.entries, &entries);
                prop_assert_eq!(&*conversation.messages(), &expected.into_messages());
            }
        }
    }

    #[test]
    fn a_reader_keeps_what_it_was_given_and_nothing_is_copied() {
        let mut conversation = conversation();
        conversation.append_message(&user("a")).unwrap();
        let before = conversation.messages();
        conversation.append_message(&user("b")).unwrap();
        let after = conversation.messages();
        assert_eq!((before.len(), after.len()), (1, 2));
        let AgentMessage::User(first) = &before[0] else { panic!() };
        assert!(matches!(&after[0], AgentMessage::User(same) if Arc::ptr_eq(first, same)));
    }
}
