//! Collects what the page shows before its first entry: names, sums, and the outline.

use super::html::brief;
use super::source::Source;
use crate::agent::message::AgentMessage;
use crate::base::time;
use crate::llm::message::{Usage, UsageCost};
use crate::session::CalledSkill;
use crate::session::entry::Body;
use crate::session::index::Kind;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// Maximum length of a line in the outline, in characters.
const STEP_MAX: usize = 72;

#[derive(Default)]
pub struct Survey {
    /// The session's name, if the user gave it one.
    pub name: Option<String>,
    /// Labels by entry id. A later label replaces an earlier one.
    pub labels: HashMap<String, String>,
    /// Lines of the outline by entry position.
    pub steps: BTreeMap<u32, Step>,
    /// Token usage of all branches.
    pub sum: Usage,
    pub answers: usize,
    /// Time of the last entry with a time, in Unix milliseconds.
    pub ended: Option<u64>,
}

pub struct Step {
    pub text: String,
    pub kind: &'static str,
}

impl Survey {
    pub fn new(source: &Source<'_>) -> Self {
        let mut survey = Self::default();
        for (position, slot) in (0_u32..).zip(&source.index().slots) {
            survey.entry(source, position, slot.kind);
        }
        let last = source.index().last_sound();
        survey.ended =
            last.and_then(|last| source.entry(last)).and_then(|entry| time::parse_iso(&entry.timestamp));
        survey
    }

    fn entry(&mut self, source: &Source<'_>, position: u32, kind: Kind) {
        /// The only part of a message that is parsed: its usage.
        #[derive(Deserialize)]
        struct Line {
            message: Spent,
        }
        #[derive(Deserialize)]
        struct Spent {
            #[serde(default)]
            usage: Option<Usage>,
        }
        match kind {
            Kind::Assistant | Kind::ToolResult => {
                self.answers += usize::from(kind == Kind::Assistant);
                let line: Option<Line> = source.read(position);
                self.spend(line.and_then(|line| line.message.usage).as_ref());
                return;
            }
            Kind::User
            | Kind::OtherMessage
            | Kind::Compaction
            | Kind::BranchSummary
            | Kind::Usage
            | Kind::Label
            | Kind::SessionInfo => {}
            _ => return,
        }
        let Some(entry) = source.entry(position) else {
            return;
        };
        let (text, kind) = match entry.body {
            Body::Message(body) => match body.message {
                AgentMessage::User(message) => {
                    let text = message.content.text();
                    let typed = CalledSkill::parse(&text).map(|skill| skill.typed());
                    (brief(&typed.unwrap_or(text), STEP_MAX), "prompt")
                }
                AgentMessage::BashExecution(bash) => {
                    (brief(&format!("$ {}", bash.command), STEP_MAX), "note")
                }
                AgentMessage::BranchSummary(_) => ("Branch summary".to_owned(), "note"),
                AgentMessage::CompactionSummary(_) => ("Compaction".to_owned(), "note"),
                _ => return,
            },
            Body::Compaction(compaction) => {
                self.spend(compaction.usage.as_ref());
                ("Compaction".to_owned(), "note")
            }
            Body::BranchSummary(summary) => {
                self.spend(summary.usage.as_ref());
                ("Branch summary".to_owned(), "note")
            }
            Body::Usage(record) => return self.spend(Some(&record.usage)),
            Body::Label(label) => {
                match label.label.filter(|label| !label.trim().is_empty()) {
                    Some(text) => self.labels.insert(label.target_id, text),
                    None => self.labels.remove(&label.target_id),
                };
                return;
            }
            Body::SessionInfo(info) => {
                self.name = Some(info.name.trim().to_owned()).filter(|name| !name.is_empty());
                return;
            }
            _ => return,
        };
        let text = if text.is_empty() { "(no text)".to_owned() } else { text };
        self.steps.insert(position, Step { text, kind });
    }

    fn spend(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        let sum = &mut self.sum;
        for (sum, part) in [
            (&mut sum.input, usage.input),
            (&mut sum.output, usage.output),
            (&mut sum.cache_read, usage.cache_read),
            (&mut sum.cache_write, usage.cache_write),
            (&mut sum.total_tokens, usage.total_tokens),
        ] {
            *sum = sum.saturating_add(part);
        }
        let UsageCost { total, .. } = &mut sum.cost;
        *total += usage.cost.total;
    }

    /// Returns the page's title: the session's name or its first prompt.
    pub fn title(&self) -> &str {
        let first = || self.steps.values().find(|step| step.kind == "prompt");
        match &self.name {
            Some(name) => name,
            None => first().map_or("Session", |step| &step.text),
        }
    }
}

/// Formats usage as `12,345 in · 678 out · 9,000 cache read · $0.0123`; empty without usage.
pub fn spent(usage: &Usage) -> String {
    let mut parts = Vec::new();
    for (count, what) in [
        (usage.input, "in"),
        (usage.output, "out"),
        (usage.cache_read, "cache read"),
        (usage.cache_write, "cache write"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", thousands(count)));
        }
    }
    if usage.cost.total > 0.0 {
        parts.push(dollars(usage.cost.total));
    }
    parts.join(" · ")
}

pub fn dollars(amount: f64) -> String {
    if amount >= 1.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
