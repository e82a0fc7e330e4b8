//! Carries out a compaction: finds the cut, requests the summary, stores it.

use super::Compactor;
use crate::agent::call::Describe;
use crate::agent::message::{self, AgentMessage};
use crate::agent::run::Fatal;
use crate::base::json::json;
use crate::base::patience::patience;
use crate::llm::message::{Block, Content, Usage, now_ms};
use crate::llm::model::{Model, ThinkingLevel};
use crate::models::local;
use crate::runtime::event::Reason;
use crate::runtime::hook::{Flow, is_yes};
use crate::runtime::summary::{Failure, Summarizer, Summary, Task};
use crate::session::Notice;
use crate::session::compaction::{
    CompactionResult, Preparation, Sizes, add_usage, current_system, cut, estimate, prompt, prune,
};
use crate::session::context::Projection;
use crate::session::entry::{Body, Compaction, Entry};
use crate::session::index::Kind;
use crate::tools::artifact;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A compaction that a handler made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    summary: String,
    first_kept_entry_id: Option<String>,
    usage: Option<Usage>,
    details: Option<Value>,
}

/// A compaction that is ready to be carried out: the messages to summarize and the sizes to respect.
pub struct Plan {
    projection: Projection,
    preparation: Preparation,
    sizes: Sizes,
}

impl Compactor<'_> {
    pub(super) fn sizes(&self) -> Sizes {
        let model = &self.model;
        let (reserve, keep) = self.services.compaction.sizes(&model.provider, &model.id);
        Sizes::new(self.limiting.context_window, reserve, keep)
    }

    pub(super) fn is_compacted(&self) -> bool {
        let log = self.control.log();
        let index = log.index();
        let leaf = log.leaf().and_then(|leaf| index.find(leaf));
        let leaf = leaf.and_then(|leaf| index.get(leaf));
        leaf.is_some_and(|leaf| leaf.kind == Kind::Compaction)
    }

    pub(super) fn plan(&mut self) -> Option<Plan> {
        if self.is_compacted() {
            return None;
        }
        let sizes = self.sizes();
        let projection = self.control.log().projection();
        let first = projection.entries.first();
        let previous = first
            .filter(|first| first.kind == Kind::Compaction)
            .and_then(|first| self.control.log().entry(&first.entry));
        let previous = previous.and_then(|entry| match entry.body {
            Body::Compaction(compaction) => Some(compaction),
            _ => None,
        });
        let describer = self.control.tools().describer();
        let describe: Describe<'_> = &|name, arguments| describer.describe(name, arguments);
        let preparation = cut::prepare(&projection, previous.as_ref(), sizes.keep, describe)?;
        Some(Plan { projection, preparation, sizes })
    }

    /// Requests the summary, stores it and shortens the conversation.
    pub(super) fn carry_out(
        &mut self,
        plan: Plan,
        reason: Reason,
        instructions: Option<&str>,
    ) -> Result<CompactionResult, Failure> {
        let Plan { projection, preparation, sizes } = plan;
        self.state.from_handler = false;
        let given = self.ask_handlers(&preparation, sizes, reason, instructions)?;
        self.state.from_handler = given.is_some();
        self.store(&projection, &preparation, sizes, given, reason, instructions)
    }

    /// Asks handlers about a compaction. Gives the one that a handler made, if one did.
    fn ask_handlers(
        &mut self,
        preparation: &Preparation,
        sizes: Sizes,
        reason: Reason,
        instructions: Option<&str>,
    ) -> Result<Option<Given>, Failure> {
        let fields = || {
            let log = self.control.log();
            let leaf = log.leaf().and_then(|leaf| log.index().find(leaf));
            let branch: Vec<Entry> =
                log.index().path(leaf).into_iter().filter_map(|position| log.entry_at(position)).collect();
            let mut fields = json!({
                "preparation": {
                    "firstKeptEntryId": &*preparation.first_kept,
                    "messagesToSummarize": preparation.history,
                    "turnPrefixMessages": preparation.prefix,
                    "isSplitTurn": !preparation.prefix.is_empty(),
                    "tokensBefore": preparation.tokens_before,
                    "fileOps": preparation.files.operations(),
                    "settings": {"enabled": true, "reserveTokens": sizes.reserve, "keepRecentTokens": sizes.keep},
                },
                "branchEntries": branch,
                "reason": reason.name(),
                "willRetry": reason == Reason::Overflow,
            });
            if let Some(previous) = &preparation.previous_summary {
                fields["preparation"]["previousSummary"] = previous.as_str().into();
            }
            if let Some(instructions) = instructions {
                fields["customInstructions"] = instructions.into();
            }
            fields
        };
        let (mut is_cancelled, mut given) = (false, None);
        self.control.hooked().ask("session_before_compact", fields, self.cancel, &mut |_, result| {
            let mut result = result.unwrap_or_default();
            is_cancelled |= is_yes(&result["cancel"]);
            if let Some(made) = result.get_mut("compaction").filter(|made| made.is_object()) {
                given = serde_json::from_value(made.take()).ok();
            }
            if is_cancelled { Flow::Stop } else { Flow::Next }
        });
        if is_cancelled { Err(Failure::Aborted) } else { Ok(given) }
    }

    fn store(
        &mut self,
        projection: &Projection,
        preparation: &Preparation,
        sizes: Sizes,
        given: Option<Given>,
        reason: Reason,
        instructions: Option<&str>,
    ) -> Result<CompactionResult, Failure> {
        let from_handler = given.is_some();
        let (mut first_kept, mut details) =
            (preparation.first_kept.to_string(), Some(preparation.files.details()));
        let summary = match given {
            None => {
                let summary = self.summarize(preparation, sizes, reason, instructions)?;
                Summary { text: summary.text + &preparation.files.text(), ..summary }
            }
            Some(given) => {
                details = given.details;
                if let Some(id) = given.first_kept_entry_id
                    && projection.entries.iter().any(|entry| *entry.entry == *id)
                {
                    first_kept = id;
                }
                Summary { text: given.summary, usage: given.usage }
            }
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Aborted);
        }
        let text = summary.text;
        let system = current_system(projection.messages()).map(|mut system| {
            system.timestamp = now_ms();
            AgentMessage::System(Arc::new(system))
        });
        self.prune(projection, preparation, &text, system.as_ref(), sizes)?;
        let entry = Compaction {
            summary: text.clone(),
            first_kept_entry_id: Some(first_kept.clone()),
            tokens_before: preparation.tokens_before,
            details: details.clone(),
            usage: summary.usage.clone(),
            from_hook: Some(from_handler),
            system_message: system,
            ..Compaction::default()
        };
        let entry = self.control.log().append(entry).map_err(Fatal::from)?;
        let fields = || {
            json!({"compactionEntry": entry, "fromExtension": from_handler, "reason": reason.name(),
                "willRetry": reason == Reason::Overflow})
        };
        self.control.hooked().tell("session_compact", fields, self.control.root());
        let messages = self.control.messages();
        let after = messages.iter().map(estimate::message_tokens).fold(0, u64::saturating_add);
        self.judge(&messages, preparation.tokens_before, after, sizes);
        Ok(CompactionResult {
            summary: text,
            first_kept_entry_id: first_kept,
            tokens_before: preparation.tokens_before,
            estimated_tokens_after: after,
            usage: summary.usage,
            details,
        })
    }

    /// Marks the compaction as fruitless if it freed less than a tenth and the window is still too full.
    fn judge(&mut self, messages: &[AgentMessage], before: u64, after: u64, sizes: Sizes) {
        let window = self.limiting.context_window;
        let freed_little = after.saturating_mul(10) > before.saturating_mul(9);
        if window > 0 && freed_little && sizes.is_over(after, window) {
            self.state.fruitless = true;
            let system = current_system(messages).map(Arc::new);
            let system = system.map(AgentMessage::System);
            self.control.log().notice(Notice::StillFull {
                tokens: after,
                system: system.as_ref().map_or(0, estimate::message_tokens),
                window,
            });
        }
    }

    fn summarize(
        &mut self,
        preparation: &Preparation,
        sizes: Sizes,
        reason: Reason,
        instructions: Option<&str>,
    ) -> Result<Summary, Failure> {
        let (model, thinking) = self.summarizer_model()?;
        let limit = |tokens: u64| match model.max_tokens {
            0 => tokens,
            most => tokens.min(most),
        };
        let summarizer = Summarizer {
            services: self.services,
            thinking: model.clamp_thinking(thinking),
            reason: Some(reason),
            hooked: self.control.hooked(),
            cancel: self.cancel,
            model: model.clone(),
        };
        let history = Task {
            label: "Summarization",
            reserve: limit(sizes.reserve / 5 * 4 + sizes.reserve % 5 * 4 / 5),
            prompt: &|conversation, previous| prompt::history(conversation, previous, instructions),
        };
        let previous = preparation.previous_summary.as_deref();
        if preparation.prefix.is_empty() {
            let messages = &preparation.history;
            return summarizer.summarize(messages, previous, &history, self.listener);
        }
        let before = if preparation.history.is_empty() {
            Summary { text: previous.unwrap_or(prompt::NO_HISTORY).to_owned(), usage: None }
        } else {
            let messages = &preparation.history;
            summarizer.summarize(messages, previous, &history, self.listener)?
        };
        let beginning = Task {
            label: "Turn prefix summarization",
            reserve: limit(sizes.reserve / 2),
            prompt: &prompt::prefix,
        };
        let turn = summarizer.summarize(&preparation.prefix, None, &beginning, self.listener)?;
        Ok(Summary {
            text: before.text + prompt::SPLIT + &turn.text,
            usage: match (before.usage, turn.usage) {
                (Some(one), Some(other)) => Some(add_usage(&one, &other)),
                (one, other) => one.or(other),
            },
        })
    }

    /// Returns the model of the `compaction.model` setting if it is usable, or the session's model, and its thinking
    /// level. Has a virtual model choose.
    pub fn summarizer_model(&mut self) -> Result<(Arc<Model>, ThinkingLevel), Failure> {
        let model = self.configured_model();
        if !model.is_virtual() {
            return Ok((model, self.thinking));
        }
        let messages = message::to_llm(&self.control.messages());
        let routed = self.services.route_direct(&model, self.thinking, &messages, self.cancel);
        routed.map_err(|error| match self.cancel.is_cancelled() {
            true => Failure::Aborted,
            false => Failure::Refused(error.message),
        })
    }

    fn configured_model(&self) -> Arc<Model> {
        /// Time limit for asking local servers for their models.
        const LOCAL_LIMIT: Duration = Duration::from_millis(200);
        let Some(wanted) = self.services.compaction.model.clone() else {
            return self.model.clone();
        };
        let found = wanted.split_once('/').and_then(|(provider, id)| {
            let known = self.services.registry.find(provider, id);
            let known = known.filter(|_| self.services.usable(provider));
            known.or_else(|| {
                let is_local = local::is_provider(provider);
                // All servers are allowed, since the setting names a local model.
                let env = is_local.then(|| self.services.credentials.local_env())?;
                let found = local::discover(&env, patience(LOCAL_LIMIT), &local::Allowed::All);
                found.find(&wanted).map(|offer| offer.model.clone())
            })
        });
        found.unwrap_or_else(|| {
            let used = format!("{}/{}", self.model.provider, self.model.id);
            self.control.log().notice(Notice::NoSummaryModel { wanted, used });
            self.model.clone()
        })
    }

    /// Stores large tool outputs among the kept messages in files, with a line in their place, if the kept
    /// messages would not fit into the window.
    fn prune(
        &mut self,
        projection: &Projection,
        preparation: &Preparation,
        summary: &str,
        system: Option<&AgentMessage>,
        sizes: Sizes,
    ) -> Result<(), Fatal> {
        let window = self.limiting.context_window;
        let kept = projection.entries.get(preparation.first_kept_at..);
        let room = match window.saturating_sub(sizes.reserve) {
            _ if window == 0 => return Ok(()),
            0 => window,
            room => room,
        };
        let taken = crate::llm::estimate::text_tokens(summary) + system.map_or(0, estimate::message_tokens);
        for pruned in prune::choose(kept.unwrap_or_default(), room.saturating_sub(taken)) {
            let text = self.services.vault().hide(&pruned.text);
            let stored = artifact::store(self.outputs, &pruned.tool, text.as_bytes());
            let Ok(number) = stored else {
                // An output that cannot be stored stays in the conversation.
                break;
            };
            let line = prune::line(&pruned, &artifact::uri(number));
            let content = Content::Blocks(vec![Block::text(line)]);
            self.edit(pruned.entry.to_string(), Some(content))?;
        }
        Ok(())
    }
}
