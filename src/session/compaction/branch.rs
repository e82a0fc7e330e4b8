//! Chooses the part of an abandoned branch that is summarized: its newest messages, within a token budget.

use super::estimate;
use super::files::Files;
use crate::agent::call::Describe;
use crate::agent::message::AgentMessage;
use crate::session::context;
use crate::session::entry::{Body, Entry};
use crate::session::log::Log;
use std::collections::VecDeque;

/// The part of a branch that is sent to the summarizing model.
#[derive(Clone, Debug, Default)]
pub struct Branch {
    pub messages: Vec<AgentMessage>,
    pub files: Files,
}

/// Collects entries at `positions`, which are oldest first, from the newest back until `budget` tokens are
/// reached. An earlier summary may exceed the budget if a tenth of it is left.
pub fn collect(log: &Log, positions: &[u32], budget: u64, describe: Describe<'_>) -> Branch {
    let mut files = Files::default();
    let mut messages = VecDeque::new();
    let mut tokens = 0_u64;
    let mut is_full = false;
    for entry in positions.iter().rev().filter_map(|position| log.entry_at(*position)) {
        if let Body::BranchSummary(branch) = &entry.body
            && branch.from_hook != Some(true)
            && let Some(details) = &branch.details
        {
            files.add_details(details);
        }
        if is_full {
            continue;
        }
        let is_summary = matches!(entry.body, Body::BranchSummary(_) | Body::Compaction(_));
        let Some(message) = spoken(entry) else {
            continue;
        };
        files.add_message(&message, describe);
        let size = estimate::message_tokens(&message);
        is_full = tokens.saturating_add(size) > budget;
        if !is_full || (is_summary && tokens < budget - budget / 10) {
            tokens = tokens.saturating_add(size);
            messages.push_front(message);
        }
    }
    Branch { messages: messages.into(), files }
}

/// Returns the message of an entry. Tool results are omitted, since the calls tell what was done.
fn spoken(entry: Entry) -> Option<AgentMessage> {
    match entry.body {
        Body::Message(body) => match context::complete(body.message) {
            AgentMessage::ToolResult(_) | AgentMessage::System(_) => None,
            message => Some(message),
        },
        Body::Compaction(_) => context::checkpoint(entry).pop(),
        _ => context::summary_or_custom(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::session::entry::{BranchSummary, Compaction};
    use crate::session::testing::{answer, user};
    use std::path::Path;

    fn texts(log: &Log, budget: u64) -> Vec<String> {
        let positions: Vec<u32> = (0_u32..).take(log.index().slots.len()).collect();
        let branch = collect(log, &positions, budget, &crate::tools::describe);
        branch.messages.iter().map(AgentMessage::text).collect()
    }

    #[test]
    fn the_newest_part_is_taken_and_summaries_are_squeezed_in() {
        let mut log = Log::in_memory(Path::new("/x"), None).unwrap();
        log.append(BranchSummary {
            summary: "s".repeat(400),
            details: Some(json!({"readFiles": ["a"], "modifiedFiles": ["b"]})),
            ..BranchSummary::default()
        })
        .unwrap();
        log.append_message(&user(&"u".repeat(40))).unwrap();
        log.append_model_change("p", "m").unwrap();
        log.append(Compaction { summary: "c".repeat(400), ..Compaction::default() }).unwrap();
        log.append_message(&answer(&"a".repeat(40))).unwrap();
        let first = |budget| -> String {
            let texts = texts(&log, budget);
            texts.iter().filter_map(|text| text.chars().next()).collect()
        };
        assert_eq!(first(1000), "suca");
        assert_eq!(first(120), "uca");
        assert_eq!(first(115), "ca");
        // 110 tokens do not fit into 100, but a tenth of them is free still.
        assert_eq!(first(100), "ca");
        assert_eq!(first(11), "a");
        assert_eq!(first(5), "");
        let all: Vec<u32> = (0..5).collect();
        let details = collect(&log, &all, 1, &crate::tools::describe).files.details();
        assert_eq!(details, json!({"readFiles": ["a"], "modifiedFiles": ["b"]}));
    }
}
