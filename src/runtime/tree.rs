//! Moves in the session's tree.
//!
//! A move sets the leaf to another entry of the file. The abandoned branch stays in the file, and a summary
//! of it can be added at the new leaf. After a move to a user message, the leaf is the message's parent, and
//! its text is returned for editing.

use super::compaction::{self, NotCompacted};
use super::control::{Control, Tree};
use super::event::Listener;
use super::hook::{Flow, is_yes};
use super::session::Session;
use super::summary::{Failure, Summarizer, Summary, Task};
use super::todo;
use crate::agent::call::Describe;
use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{Block, Content};
use crate::llm::model::ThinkingLevel;
use crate::session::compaction::branch::{self, Branch};
use crate::session::compaction::prompt;
use crate::session::entry::{Body, BranchSummary, Entry};
use serde_json::Value;

/// Options of a move in the tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Move<'a> {
    /// True to summarize the abandoned branch.
    pub summarize: bool,
    /// What the summary should focus on.
    pub instructions: Option<&'a str>,
    /// True to use `instructions` instead of the default prompt.
    pub replace_instructions: bool,
    /// Label of the summary, or of the target if there is no summary.
    pub label: Option<&'a str>,
}

/// The result of a move in the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// The text of the target, if it is a user message.
    pub editor_text: Option<String>,
    /// True if the leaf did not move.
    pub cancelled: bool,
    /// True if the leaf did not move because the summary was aborted.
    pub aborted: bool,
    pub summary_entry: Option<Entry>,
}

/// The summary of a branch without messages.
const NOTHING: &str = "No content to summarize";

impl Session {
    /// Moves the leaf to the entry `target`.
    pub fn navigate(
        &mut self,
        target: &str,
        how: Move<'_>,
        listener: Listener<'_>,
        cancel: &CancelToken,
    ) -> Result<Moved, NotCompacted> {
        let failed = |error: &dyn std::fmt::Display| NotCompacted::Failed(error.to_string());
        let mut compactor = self.compactor(listener, cancel)?;
        let control = compactor.control;
        let (entry, abandoned) = {
            let log = control.log();
            if log.leaf() == Some(target) {
                return Ok(Moved::default());
            }
            let entry = log.entry(target).ok_or_else(|| failed(&format_args!("Entry {target} not found")))?;
            let abandoned = match how.summarize {
                true => log.abandoned(target),
                false => Vec::new(),
            };
            (entry, abandoned)
        };
        let old_leaf = control.log().leaf().map(str::to_owned);
        let mut asked = Asked {
            summary: None,
            instructions: how.instructions.map(str::to_owned),
            replace_instructions: how.replace_instructions,
            label: how.label.map(str::to_owned),
        };
        if !asked.ask(control, target, &how, cancel) {
            return Ok(Moved { cancelled: true, ..Moved::default() });
        }
        let how = Move {
            instructions: asked.instructions.as_deref(),
            replace_instructions: asked.replace_instructions,
            label: asked.label.as_deref(),
            ..how
        };
        let from_handler = asked.summary.is_some();
        let mut summary = asked.summary.take();
        if summary.is_none() && !abandoned.is_empty() {
            let window = match compactor.limiting.context_window {
                0 => 128_000,
                window => window,
            };
            let reserve = match compactor.services.compaction.branch_reserve {
                reserve if reserve > window / 3 * 2 => window / 4,
                reserve => reserve,
            };
            let describer = control.tools().describer();
            let describe: Describe<'_> = &|name, arguments| describer.describe(name, arguments);
            let branch = branch::collect(&control.log(), &abandoned, window - reserve, describe);
            let done = compactor.summarizer_model().and_then(|(model, _)| {
                let (services, thinking) = (compactor.services, ThinkingLevel::Off);
                let hooked = control.hooked();
                let summarizer = Summarizer { services, model, thinking, reason: None, hooked, cancel };
                summed_up(&summarizer, &branch, how, compactor.listener)
            });
            match done {
                Ok(done) => summary = Some(done),
                Err(Failure::Aborted) => {
                    return Ok(Moved { cancelled: true, aborted: true, ..Moved::default() });
                }
                Err(Failure::Fatal(fatal)) => return Err(fatal.into()),
                Err(Failure::Refused(message) | Failure::TooLarge(message)) => {
                    return Err(NotCompacted::Failed(message));
                }
            }
        }
        let (to, editor_text) = match prompt_text(&entry.body) {
            Some(text) => (entry.parent_id, Some(text)),
            None => (Some(entry.id), None),
        };
        let mut log = control.log();
        let done = match summary {
            Some(summary) => log.branch_with_summary(to.as_deref(), summary).map(Some),
            None => log.set_leaf(to.as_deref()).map(|()| None),
        };
        let summary_entry = done.map_err(|error| failed(&error))?;
        if let Some(label) = how.label.filter(|label| !label.is_empty()) {
            let labelled = summary_entry.as_ref().map_or(target, |entry| entry.id.as_str());
            log.set_label(labelled, Some(label)).map_err(|error| failed(&error))?;
        }
        drop(log);
        control.restore_tools();
        control.restore_planning();
        todo::show(control);
        *compactor.state = compaction::State::default();
        self.has_moved = true;
        let new_leaf = self.control().log().leaf().map(str::to_owned);
        let mut fields = json!({"newLeafId": new_leaf, "oldLeafId": old_leaf, "fromExtension": from_handler});
        if let Some(entry) = &summary_entry {
            fields["summaryEntry"] = json!(entry);
        }
        self.tell("session_tree", fields);
        Ok(Moved { editor_text, summary_entry, ..Moved::default() })
    }
}

/// What handlers say of a move before it is made.
struct Asked {
    summary: Option<BranchSummary>,
    instructions: Option<String>,
    replace_instructions: bool,
    label: Option<String>,
}

impl Asked {
    /// Asks the handlers. False if one cancels the move.
    fn ask(&mut self, control: &Control, target: &str, how: &Move<'_>, cancel: &CancelToken) -> bool {
        let mut is_cancelled = false;
        let fields = || {
            let (left, common, leaf) = {
                let log = control.log();
                let left = log.abandoned(target);
                let entry = |position: &u32| log.entry_at(*position);
                let entries: Vec<Entry> = left.iter().filter_map(entry).collect();
                let common = entries
                    .first()
                    .map_or_else(|| log.leaf().map(str::to_owned), |first| first.parent_id.clone());
                (entries, common, log.leaf().map(str::to_owned))
            };
            let mut preparation = json!({"targetId": target, "oldLeafId": leaf, "commonAncestorId": common,
                "entriesToSummarize": left, "userWantsSummary": how.summarize});
            if self.replace_instructions {
                preparation["replaceInstructions"] = true.into();
            }
            for (name, text) in [("customInstructions", &self.instructions), ("label", &self.label)] {
                if let Some(text) = text {
                    preparation[name] = text.as_str().into();
                }
            }
            json!({"preparation": preparation})
        };
        let (mut summary, mut instructions, mut label, mut replaces) = (None, None, None, None);
        control.hooked().ask("session_before_tree", fields, cancel, &mut |_, result| {
            let result = result.unwrap_or_default();
            if is_yes(&result["cancel"]) {
                is_cancelled = true;
                return Flow::Stop;
            }
            if let Some(text) = result["summary"]["summary"].as_str().filter(|_| how.summarize) {
                summary = Some(BranchSummary {
                    summary: text.to_owned(),
                    details: result["summary"].get("details").cloned(),
                    usage: result["summary"]
                        .get("usage")
                        .and_then(|usage| serde_json::from_value(usage.clone()).ok()),
                    from_hook: Some(true),
                    ..BranchSummary::default()
                });
            }
            let text = |name: &str| result[name].as_str().map(str::to_owned);
            instructions = text("customInstructions").or(instructions.take());
            label = text("label").or(label.take());
            replaces = result["replaceInstructions"].as_bool().or(replaces);
            Flow::Next
        });
        self.summary = summary;
        self.instructions = instructions.or(self.instructions.take());
        self.label = label.or(self.label.take());
        self.replace_instructions = replaces.unwrap_or(self.replace_instructions);
        !is_cancelled
    }
}

impl Tree<'_> {
    /// Sets the label of an entry; `None` or an empty label removes it.
    pub fn set_label(&self, target: &str, label: Option<&str>) -> Result<Entry, String> {
        let mut log = self.control.log();
        if log.index().find(target).is_none() {
            return Err(format!("Entry {target} not found"));
        }
        let label = label.filter(|label| !label.is_empty());
        let entry = log.set_label(target, label);
        entry.map_err(|error| error.to_string())
    }

    /// Visits all messages of the current branch, oldest first, including those that a compaction removed
    /// from the model's context.
    pub fn each_message(&self, mut visit: impl FnMut(&AgentMessage)) {
        let path = {
            let log = self.control.log();
            let leaf = log.leaf().and_then(|leaf| log.index().find(leaf));
            log.index().path(leaf)
        };
        for position in path {
            // The log is unlocked before each visit, so that a run can write.
            let entry = self.control.log().entry_at(position);
            if let Some(Body::Message(body)) = entry.map(|entry| entry.body) {
                visit(&body.message);
            }
        }
    }

    /// Returns the whole tree as JSON, and the id of the leaf.
    pub fn json(&self) -> (String, Option<String>) {
        let log = self.control.log();
        (log.tree_json(), log.leaf().map(str::to_owned))
    }
}

/// Returns the text of a user message or custom message, to be edited and sent again.
fn prompt_text(body: &Body) -> Option<String> {
    let joined = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::as_text).collect(),
    };
    match body {
        Body::Message(body) => match &body.message {
            AgentMessage::User(user) => Some(joined(&user.content)),
            _ => None,
        },
        Body::CustomMessage(custom) => Some(custom.content.as_ref().map_or_else(String::new, joined)),
        _ => None,
    }
}

fn summed_up(
    summarizer: &Summarizer<'_>,
    branch: &Branch,
    how: Move<'_>,
    listener: Listener<'_>,
) -> Result<BranchSummary, Failure> {
    const MAX_TOKENS: u64 = 4096;
    let details = |value: Value| BranchSummary {
        details: Some(value),
        from_hook: Some(false),
        ..BranchSummary::default()
    };
    if branch.messages.is_empty() {
        return Ok(BranchSummary {
            summary: NOTHING.to_owned(),
            ..details(branch::Branch::default().files.details())
        });
    }
    let task = Task {
        label: "Branch summarization",
        reserve: match summarizer.model.max_tokens {
            0 => MAX_TOKENS,
            most => MAX_TOKENS.min(most),
        },
        prompt: &|conversation, earlier| {
            prompt::branch(conversation, earlier, how.instructions, how.replace_instructions)
        },
    };
    let Summary { text, usage } = summarizer.summarize(&branch.messages, None, &task, listener)?;
    Ok(BranchSummary {
        summary: format!("{}{text}{}", prompt::BRANCH_PREAMBLE, branch.files.text()),
        usage,
        ..details(branch.files.details())
    })
}
