//! Statistics of a session's log, including abandoned branches.

use super::cache_warming;
use super::control::{Control, Tree};
use super::limit::{Limits, Spent};
use crate::agent::message::AgentMessage;
use crate::llm::message::{AssistantMessage, Block, StopReason, Usage, number};
use crate::session::Log;
use crate::session::compaction::estimate;
use crate::session::entry::{Body, Entry};
use serde::Serialize;
use std::sync::Arc;

/// Entries that are read before the log is unlocked for others.
const BATCH: u32 = 256;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    pub session_id: String,
    pub user_messages: u64,
    pub assistant_messages: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
    pub total_messages: u64,
    pub tokens: Tokens,
    /// Cost in US dollars.
    #[serde(with = "number::amount")]
    pub cost: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<Context>,
    /// Spending of each model, in the order of first use.
    #[serde(skip)]
    pub by_model: Vec<Spending>,
    /// US dollars that were spent to keep the prompt cache warm; a part of `cost`.
    #[serde(skip)]
    pub warmed: f64,
}

/// Tokens and cost of one model, or of all tools and summaries together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    pub name: String,
    pub tokens: u64,
    /// Cost in US dollars.
    pub cost: f64,
}

/// The name of spending that no answer of a model caused.
const TOOLS: &str = "Tools/summaries";

/// How full the model's context window is, as JSON. `tokens` and `percent` are null between a compaction and
/// the next answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    pub tokens: Option<u64>,
    pub context_window: u64,
    pub percent: Option<f64>,
}

/// How full the model's context window is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextUsage {
    /// Tokens in the window; unknown between a compaction and the next answer.
    pub tokens: Option<u64>,
    pub window: u64,
}

impl ContextUsage {
    #[allow(clippy::cast_precision_loss)] // token counts are far below 2^52
    pub fn percent(&self) -> Option<f64> {
        Some(self.tokens? as f64 / self.window as f64 * 100.0)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub total: u64,
}

impl Stats {
    fn count(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Usage(record) => {
                if record.kind == cache_warming::KIND {
                    self.warmed += record.usage.cost.total;
                }
                self.spend(&record.usage, &format!("{}/{}", record.provider, record.model));
            }
            Body::Compaction(compaction) => {
                let usage = compaction.usage.iter();
                usage.for_each(|usage| self.spend(usage, TOOLS));
            }
            Body::BranchSummary(summary) => {
                let usage = summary.usage.iter();
                usage.for_each(|usage| self.spend(usage, TOOLS));
            }
            Body::Message(body) => {
                self.total_messages += 1;
                match &body.message {
                    AgentMessage::User(_) => self.user_messages += 1,
                    AgentMessage::ToolResult(result) => {
                        self.tool_results += 1;
                        let usage = result.usage.iter();
                        usage.for_each(|usage| self.spend(usage, TOOLS));
                    }
                    AgentMessage::Assistant(answer) => {
                        self.assistant_messages += 1;
                        self.tool_calls += answer.tool_calls().count() as u64;
                        let model = answer.response_model.as_ref().unwrap_or(&answer.model);
                        self.spend(&answer.usage, &format!("{}/{model}", answer.provider));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn spend(&mut self, usage: &Usage, by: &str) {
        self.spend_by(usage, by);
        let tokens = &mut self.tokens;
        tokens.input = tokens.input.saturating_add(usage.input);
        tokens.output = tokens.output.saturating_add(usage.output);
        tokens.cache_read = tokens.cache_read.saturating_add(usage.cache_read);
        tokens.cache_write = tokens.cache_write.saturating_add(usage.cache_write);
        let parts = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
        tokens.total = parts.into_iter().fold(0, u64::saturating_add);
        self.cost += usage.cost.total;
    }

    fn spend_by(&mut self, usage: &Usage, by: &str) {
        let parts = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        let tokens = parts.into_iter().fold(0, u64::saturating_add);
        if tokens == 0 && usage.cost.total == 0.0 {
            return;
        }
        let known = self.by_model.iter().position(|spent| spent.name == by);
        let at = known.unwrap_or_else(|| {
            self.by_model.push(Spending { name: by.to_owned(), ..Spending::default() });
            self.by_model.len() - 1
        });
        if let Some(spent) = self.by_model.get_mut(at) {
            spent.tokens = spent.tokens.saturating_add(tokens);
            spent.cost += usage.cost.total;
        }
    }
}

impl Control {
    /// Returns how full the model's context window is; `None` if its size is unknown.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let (messages, marks) = {
            let log = self.log();
            (log.messages(), log.marks())
        };
        let window = Some(self.models().limiting().context_window).filter(|window| *window > 0)?;
        let after = messages.get(marks.after_compaction..);
        let is_known = marks.after_compaction == 0 || after.unwrap_or_default().iter().any(is_reported);
        let tokens = is_known.then(|| estimate::context_tokens(&messages, marks.fresh));
        Some(ContextUsage { tokens, window })
    }

    /// Returns what the session has spent so far; zero if no limit needs the sum.
    pub(super) fn spent(&self, limits: &Limits) -> Spent {
        if limits.session_cost.is_none() && limits.session_tokens.is_none() {
            return Spent::default();
        }
        let stats = self.stats();
        Spent { tokens: stats.tokens.total, cost: stats.cost }
    }

    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        {
            let log = self.log();
            stats.session_id.clone_from(&log.header().id);
            stats.session_file = log.path().map(|path| path.to_string_lossy().into_owned());
        }
        self.each_entry(0, |entry| stats.count(&entry));
        stats.context_usage = self.context_usage().map(|usage| Context {
            tokens: usage.tokens,
            context_window: usage.window,
            percent: usage.percent(),
        });
        stats
    }

    fn each_entry(&self, first: u32, visit: impl FnMut(Entry)) {
        self.each(first, Log::entry_at, visit);
    }

    /// Calls `read` for every entry from `first` on and passes the results to `visit`. The log is unlocked
    /// after each batch, so that a run can write.
    pub(super) fn each<T>(
        &self,
        first: u32,
        read: impl Fn(&Log, u32) -> Option<T>,
        mut visit: impl FnMut(T),
    ) {
        let mut next = first;
        loop {
            let batch: Vec<T> = {
                let log = self.log();
                let end = u32::try_from(log.index().slots.len()).unwrap_or(u32::MAX);
                if next >= end {
                    return;
                }
                let from = next;
                next = end.min(from.saturating_add(BATCH));
                (from..next).filter_map(|position| read(&log, position)).collect()
            };
            batch.into_iter().for_each(&mut visit);
        }
    }

    /// Returns the last message of the conversation if it is an answer.
    pub(super) fn last_answer(&self) -> Option<Arc<AssistantMessage>> {
        match self.messages().last() {
            Some(AgentMessage::Assistant(answer)) => Some(answer.clone()),
            _ => None,
        }
    }

    /// Returns the text of the last answer; `None` if it has no text. Aborted answers without content are
    /// skipped.
    pub fn last_assistant_text(&self) -> Option<String> {
        let messages = self.messages();
        let answer = messages.iter().rev().find_map(|message| match message {
            AgentMessage::Assistant(answer)
                if !(answer.stop_reason == StopReason::Aborted && answer.content.is_empty()) =>
            {
                Some(answer)
            }
            _ => None,
        })?;
        let text: String = answer.content.iter().filter_map(Block::as_text).collect();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}

impl Tree<'_> {
    /// Returns the entries after the entry `since`, or all, in the order of the file, and the leaf. `None` if
    /// there is no entry `since`.
    pub fn entries(&self, since: Option<&str>) -> Option<(Vec<Entry>, Option<String>)> {
        let (first, leaf) = {
            let log = self.control.log();
            let first = match since {
                None => 0,
                Some(id) => log.index().find(id)?.saturating_add(1),
            };
            (first, log.leaf().map(str::to_owned))
        };
        let mut entries = Vec::new();
        self.control.each_entry(first, |entry| entries.push(entry));
        Some((entries, leaf))
    }
}

fn is_reported(message: &AgentMessage) -> bool {
    estimate::reported(message).is_some()
}
