//! Finds where a compaction cuts a conversation, and divides the messages.
//!
//! Messages are kept from the newest back until they reach the size to keep. The cut is made before a message
//! that can begin a conversation, never before a tool result, which stays with its call. A cut inside a turn
//! leaves two parts to summarize: the messages before the turn, and the turn's beginning.

use super::estimate;
use super::files::Files;
use crate::agent::call::Describe;
use crate::agent::message::AgentMessage;
use crate::session::context::{Projected, Projection};
use crate::session::entry::Compaction;
use crate::session::index::Kind;
use std::collections::HashSet;
use std::sync::Arc;

/// A planned compaction, before any request.
#[derive(Clone, Debug)]
pub struct Preparation {
    pub first_kept: Arc<str>,
    /// Index of the first kept entry in the projection.
    pub first_kept_at: usize,
    /// Messages of the whole turns that are cut off.
    pub history: Vec<AgentMessage>,
    /// Messages at the beginning of the turn that is cut; empty if the cut is between turns.
    pub prefix: Vec<AgentMessage>,
    /// The summary of the previous compaction.
    pub previous_summary: Option<String>,
    pub tokens_before: u64,
    pub files: Files,
}

/// Plans a compaction that keeps about `keep` tokens; `None` if nothing can be cut off. `previous` is the
/// compaction at the beginning of the projection.
pub fn prepare(
    projection: &Projection,
    previous: Option<&Compaction>,
    keep: u64,
    describe: Describe<'_>,
) -> Option<Preparation> {
    let entries = projection.entries.as_slice();
    let start = usize::from(
        entries.first().is_some_and(|entry| entry.kind == Kind::Compaction && !entry.messages.is_empty()),
    );
    let at = cut_point(entries, start, keep)?;
    let cut = entries.get(at)?;
    let turn = match is_turn_start(cut) {
        true => None,
        false => (start..at).rev().find(|&at| is_turn_start_at(entries, at)),
    };
    let span = |from: usize, to: usize| -> Vec<AgentMessage> {
        let entries = entries.get(from..to).unwrap_or_default();
        let spoken = entries
            .iter()
            .filter(|entry| entry.kind != Kind::Compaction)
            .flat_map(|entry| &entry.messages)
            .filter(|message| !matches!(message, AgentMessage::System(_)));
        spoken.cloned().collect()
    };
    let history = span(start, turn.unwrap_or(at));
    let prefix = turn.map_or(Vec::new(), |turn| span(turn, at));
    if history.is_empty() && prefix.is_empty() {
        return None;
    }
    let mut files = Files::default();
    if let Some(previous) = previous
        && previous.from_hook != Some(true)
        && let Some(details) = &previous.details
    {
        files.add_details(details);
    }
    for message in history.iter().chain(&prefix) {
        files.add_message(message, describe);
    }
    let messages: Vec<AgentMessage> = projection.messages().cloned().collect();
    Some(Preparation {
        first_kept: cut.entry.clone(),
        first_kept_at: at,
        history,
        prefix,
        previous_summary: previous.filter(|_| start == 1).map(|previous| previous.summary.clone()),
        tokens_before: estimate::context_tokens(&messages, projection.marks().fresh),
        files,
    })
}

/// Returns the index of the first kept entry.
fn cut_point(entries: &[Projected], start: usize, keep: u64) -> Option<usize> {
    let is_candidate =
        |entry: &Projected| entry.kind != Kind::Compaction && entry.messages.iter().any(can_begin);
    let mut candidates =
        (start..entries.len()).filter(|&at| entries.get(at).is_some_and(is_candidate)).peekable();
    let first = *candidates.peek()?;
    let mut kept = 0_u64;
    let mut cut = first;
    let mut is_full = false;
    for (at, entry) in entries.iter().enumerate().skip(start).rev() {
        let tokens = entry.messages.iter().map(estimate::message_tokens).sum();
        kept = kept.saturating_add(tokens);
        if tokens > 0 && kept >= keep {
            is_full = true;
            let mut last = first;
            cut = candidates
                .find(|&candidate| {
                    last = candidate;
                    candidate >= at
                })
                .unwrap_or(last);
            break;
        }
    }
    if is_full && is_failed_attempt(entries.get(cut + 1..).unwrap_or_default()) {
        cut += 1;
    }
    // Entries without a message stay with the entry after them.
    while cut > start
        && let Some(before) = entries.get(cut - 1)
        && before.kind != Kind::Compaction
        && before.messages.is_empty()
    {
        cut -= 1;
    }
    Some(cut)
}

/// True if after the last input there is only an answer that was left out of the context. Then the input
/// itself may be summarized, and the edits that leave out the answer are kept.
fn is_failed_attempt(suffix: &[Projected]) -> bool {
    let omitted: HashSet<&str> =
        suffix.iter().filter(|entry| entry.omitted).map(|entry| &*entry.entry).collect();
    let changes_input = |entry: &Projected| {
        let edit = entry.edit.as_ref();
        edit.is_some_and(|edit| !edit.omits && !omitted.contains(edit.target.as_str()))
    };
    let is_answer = |entry: &Projected| entry.kind == Kind::Assistant && entry.omitted;
    let is_silent = |entry: &Projected| entry.kind != Kind::Compaction && entry.messages.is_empty();
    !suffix.iter().any(changes_input) && suffix.iter().any(is_answer) && suffix.iter().all(is_silent)
}

fn is_turn_start_at(entries: &[Projected], at: usize) -> bool {
    entries.get(at).is_some_and(is_turn_start)
}

fn is_turn_start(entry: &Projected) -> bool {
    let begins =
        |message: &AgentMessage| can_begin(message) && !matches!(message, AgentMessage::Assistant(_));
    entry.kind != Kind::Compaction && entry.messages.iter().any(begins)
}

/// True if a conversation can begin with this message.
fn can_begin(message: &AgentMessage) -> bool {
    matches!(
        message,
        AgentMessage::User(_)
            | AgentMessage::Assistant(_)
            | AgentMessage::BashExecution(_)
            | AgentMessage::Custom(_)
            | AgentMessage::BranchSummary(_)
            | AgentMessage::CompactionSummary(_)
    )
}
