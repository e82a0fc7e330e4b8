//! When a conversation is compacted, and what is told and stored of it.
//!
//! By itself it happens before a prompt, between two turns and after a run: when the context leaves
//! less room than is to be kept free, or when a model refused it or cut its answer short. In the latter
//! case the answer is left out and asked for again, once; a second failure stays one. Nothing is stored
//! before the summary is there: a compaction that fails or is aborted leaves the conversation as it was.
//!
//! A compaction that fails, or frees next to nothing, is not tried again before the user says something:
//! what fills the window then is not the conversation.
//!
//! Not here: where the cut is and what is asked (`session::compaction`), the request (`summary`).

use super::control::Control;
use super::event::{Event, Listener, Reason};
use super::service::Services;
use super::session::Session;
use super::summary::{Failure, Summarizer, Summary, Task};
use crate::agent::call::Describe;
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::base::cancel::CancelToken;
use crate::llm::classify::is_overflow;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{AssistantMessage, Block, Content, StopReason, now_ms};
use crate::llm::model::{Model, ThinkingLevel};
use crate::models::local;
use crate::session::compaction::{
    CompactionResult, Preparation, Sizes, add_usage, current_system, cut, estimate, prompt, prune,
};
use crate::session::context::Projection;
use crate::session::entry::{Body, Compaction, ContextEdit, Replacement};
use crate::session::index::Kind;
use crate::session::{Log, Notice};
use crate::tools::{OutputDir, artifact};
use std::sync::Arc;
use std::time::Duration;

/// What is remembered from one check to the next.
#[derive(Debug, Default)]
pub struct State {
    /// An answer was left out and asked for again, and none has come since.
    recovered: bool,
    /// The last compaction failed or freed next to nothing, and the user has said nothing since.
    fruitless: bool,
    /// The answer that was left out and not asked for again: how the run ended.
    pub(super) failed: Option<Arc<AssistantMessage>>,
}

impl State {
    /// A message has ended.
    pub(super) fn saw(&mut self, message: &AgentMessage) {
        match message {
            AgentMessage::User(_) => {
                self.recovered = false;
                self.fruitless = false;
                self.failed = None;
            }
            AgentMessage::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Length) =>
            {
                self.recovered = false;
            }
            _ => {}
        }
    }
}

/// How much of the model's window the conversation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextUsage {
    /// Not known from a compaction to the next answer.
    pub tokens: Option<u64>,
    pub window: u64,
}

impl ContextUsage {
    #[allow(clippy::cast_precision_loss)] // token counts are far below 2^52
    pub fn percent(&self) -> Option<f64> {
        Some(self.tokens? as f64 / self.window as f64 * 100.0)
    }
}

/// Why there is no compaction.
#[derive(Debug)]
pub enum NotCompacted {
    Cancelled,
    Failed(String),
    Fatal(Fatal),
}

impl std::fmt::Display for NotCompacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cancelled => f.write_str("Compaction cancelled"),
            Self::Failed(message) => f.write_str(message),
            Self::Fatal(fatal) => fatal.fmt(f),
        }
    }
}

impl std::error::Error for NotCompacted {}

impl From<Fatal> for NotCompacted {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

impl Session {
    /// Replaces the older part of the conversation by a summary. `instructions` say what it should dwell
    /// on.
    pub fn compact(
        &mut self,
        instructions: Option<&str>,
        listener: Listener<'_>,
        cancel: &CancelToken,
    ) -> Result<CompactionResult, NotCompacted> {
        self.compactor(listener, cancel)?.manual(instructions)
    }
}

impl Control {
    /// How full the model's window is; none when its size is not known.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        let (messages, marks) = {
            let log = self.log();
            (log.messages(), log.marks())
        };
        let window = Some(self.model().context_window).filter(|window| *window > 0)?;
        let after = messages.get(marks.after_compaction..);
        let is_known = marks.after_compaction == 0 || after.unwrap_or_default().iter().any(is_reported);
        let tokens = is_known.then(|| estimate::context_tokens(&messages, marks.fresh));
        Some(ContextUsage { tokens, window })
    }
}

fn is_reported(message: &AgentMessage) -> bool {
    estimate::reported(message).is_some()
}

/// When it is asked whether a compaction is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    BeforePrompt,
    BetweenTurns,
    AfterRun,
}

/// All that a compaction touches.
pub(super) struct Compactor<'a> {
    pub control: &'a Control,
    /// The model that the conversation is with.
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub services: &'a Services,
    pub state: &'a mut State,
    pub outputs: &'a dyn OutputDir,
    pub listener: Listener<'a>,
    pub cancel: &'a CancelToken,
}

/// A compaction that can be made.
struct Plan {
    projection: Projection,
    preparation: Preparation,
    sizes: Sizes,
}

impl Compactor<'_> {
    /// Compacts if that is due. True when the run has to go on to ask for the failed answer again.
    pub fn check(&mut self, moment: Moment) -> Result<bool, Fatal> {
        let is_on = self.control.state().switches.auto_compaction;
        if !is_on || self.cancel.is_cancelled() {
            return Ok(false);
        }
        let (messages, marks) = {
            let log = self.control.log();
            (log.messages(), log.marks())
        };
        let answers = messages.iter().enumerate().rev();
        let last = answers.into_iter().find_map(|(at, message)| match message {
            AgentMessage::Assistant(answer) => Some((at, answer.clone())),
            _ => None,
        });
        if moment != Moment::BetweenTurns {
            let Some((at, answer)) = last else {
                return Ok(false);
            };
            if at < marks.after_compaction {
                return Ok(false);
            }
            if moment == Moment::AfterRun && answer.stop_reason == StopReason::Aborted {
                return Ok(false);
            }
            if let Some(pressure) = pressure(&answer, &self.model, at >= marks.fresh) {
                drop(messages);
                return self.recover(&answer, pressure);
            }
        }
        let window = self.model.context_window;
        let tokens = estimate::context_tokens(&messages, marks.fresh);
        drop(messages);
        let may_help = moment == Moment::BeforePrompt || !self.state.fruitless;
        if window > 0 && may_help && self.sizes().is_over(tokens, window) {
            self.auto(Reason::Threshold, false)?;
        }
        Ok(false)
    }

    /// The model had no room: makes some, and has the answer asked for again where there is none.
    fn recover(&mut self, answer: &Arc<AssistantMessage>, pressure: Pressure) -> Result<bool, Fatal> {
        if answer.stop_reason == StopReason::Stop {
            self.auto(Reason::Overflow, false)?;
            return Ok(false);
        }
        if self.state.recovered {
            (self.listener)(&Event::CompactionEnd {
                reason: Reason::Overflow,
                result: None,
                aborted: false,
                will_retry: false,
                error_message: Some(pressure.second_failure()),
            })?;
            return Ok(false);
        }
        self.state.recovered = true;
        self.leave_out_last_answer()?;
        let goes_on = self.auto(Reason::Overflow, true)?;
        if !goes_on {
            self.state.failed = Some(answer.clone());
        }
        Ok(goes_on)
    }

    /// The last answer and the results of its calls stay in the log, and the model is told of neither.
    fn leave_out_last_answer(&mut self) -> Result<(), Fatal> {
        let attempt = last_attempt(&self.control.log());
        for target_id in attempt {
            self.edit(target_id, None)?;
        }
        Ok(())
    }

    fn edit(&mut self, target_id: String, content: Option<Content>) -> Result<(), Fatal> {
        let replacement = content.map(|content| Replacement { content, ..Replacement::default() });
        let edit = ContextEdit { target_id, replacement, ..ContextEdit::default() };
        let entry = self.control.log().append(edit)?;
        (self.listener)(&Event::EntryAppended { entry: &entry })
    }

    fn sizes(&self) -> Sizes {
        let model = &self.model;
        let (reserve, keep) = self.services.compaction.sizes(&model.provider, &model.id);
        Sizes::new(model.context_window, reserve, keep)
    }

    fn is_compacted(&self) -> bool {
        let log = self.control.log();
        let index = log.index();
        let leaf = log.leaf().and_then(|leaf| index.find(leaf));
        let leaf = leaf.and_then(|leaf| index.get(leaf));
        leaf.is_some_and(|leaf| leaf.kind == Kind::Compaction)
    }

    fn plan(&mut self) -> Option<Plan> {
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
        let describer = self.control.describer();
        let describe: Describe<'_> = &|name, arguments| describer.describe(name, arguments);
        let preparation = cut::prepare(&projection, previous.as_ref(), sizes.keep, describe)?;
        Some(Plan { projection, preparation, sizes })
    }

    /// Compacts unasked. True when that went well and the answer is to be asked for again.
    fn auto(&mut self, reason: Reason, will_retry: bool) -> Result<bool, Fatal> {
        let Some(plan) = self.plan() else {
            return Ok(false);
        };
        let busy = self.control.compacting();
        (self.listener)(&Event::CompactionStart { reason })?;
        let (result, error) = match self.carry_out(plan, reason, None) {
            Ok(result) => (Some(result), None),
            Err(Failure::Fatal(fatal)) => return Err(fatal),
            Err(Failure::Aborted) => (None, None),
            Err(Failure::Refused(message) | Failure::TooLarge(message)) => {
                let what = match reason {
                    Reason::Overflow => "Context overflow recovery failed",
                    _ => "Auto-compaction failed",
                };
                // Asking again at the next turn would fail in the same way.
                self.state.fruitless = true;
                (None, Some(format!("{what}: {message}")))
            }
        };
        drop(busy);
        (self.listener)(&Event::CompactionEnd {
            reason,
            result: result.as_ref(),
            aborted: result.is_none() && error.is_none(),
            will_retry: will_retry && result.is_some(),
            error_message: error.as_deref(),
        })?;
        Ok(will_retry && result.is_some())
    }

    fn manual(&mut self, instructions: Option<&str>) -> Result<CompactionResult, NotCompacted> {
        let reason = Reason::Manual;
        (self.listener)(&Event::CompactionStart { reason })?;
        let done = self.manual_result(instructions);
        let error = match &done {
            Err(NotCompacted::Failed(message)) => Some(format!("Compaction failed: {message}")),
            _ => None,
        };
        self.control.end_compaction();
        if !matches!(done, Err(NotCompacted::Fatal(_))) {
            (self.listener)(&Event::CompactionEnd {
                reason,
                result: done.as_ref().ok(),
                aborted: matches!(done, Err(NotCompacted::Cancelled)),
                will_retry: false,
                error_message: error.as_deref(),
            })?;
        }
        done
    }

    fn manual_result(&mut self, instructions: Option<&str>) -> Result<CompactionResult, NotCompacted> {
        let failed = |message: &str| NotCompacted::Failed(message.to_owned());
        self.services.check(&self.model, self.cancel).map_err(|error| failed(&error.message))?;
        if self.is_compacted() {
            return Err(failed("Already compacted"));
        }
        let plan = self.plan().ok_or_else(|| failed("Nothing to compact (session too small)"))?;
        let done = self.carry_out(plan, Reason::Manual, instructions);
        done.map_err(|failure| match failure {
            Failure::Aborted => NotCompacted::Cancelled,
            Failure::Refused(message) | Failure::TooLarge(message) => NotCompacted::Failed(message),
            Failure::Fatal(fatal) => NotCompacted::Fatal(fatal),
        })
    }

    /// Asks for the summary, then stores it and shortens the conversation.
    fn carry_out(
        &mut self,
        plan: Plan,
        reason: Reason,
        instructions: Option<&str>,
    ) -> Result<CompactionResult, Failure> {
        let Plan { projection, preparation, sizes } = plan;
        let summary = self.summarize(&preparation, sizes, reason, instructions)?;
        if self.cancel.is_cancelled() {
            return Err(Failure::Aborted);
        }
        let text = summary.text + &preparation.files.text();
        let system = current_system(projection.messages()).map(|mut system| {
            system.timestamp = now_ms();
            AgentMessage::System(Arc::new(system))
        });
        self.prune(&projection, &preparation, &text, system.as_ref(), sizes)?;
        let details = preparation.files.details();
        let first_kept = preparation.first_kept.to_string();
        let entry = Compaction {
            summary: text.clone(),
            first_kept_entry_id: Some(first_kept.clone()),
            tokens_before: preparation.tokens_before,
            details: Some(details.clone()),
            usage: summary.usage.clone(),
            from_hook: Some(false),
            system_message: system,
            ..Compaction::default()
        };
        self.control.log().append(entry).map_err(Fatal::from)?;
        let messages = self.control.messages();
        let after = messages.iter().map(estimate::message_tokens).fold(0, u64::saturating_add);
        self.judge(&messages, preparation.tokens_before, after, sizes);
        Ok(CompactionResult {
            summary: text,
            first_kept_entry_id: first_kept,
            tokens_before: preparation.tokens_before,
            estimated_tokens_after: after,
            usage: summary.usage,
            details: Some(details),
        })
    }

    /// Notes when a compaction was of no use.
    fn judge(&mut self, messages: &[AgentMessage], before: u64, after: u64, sizes: Sizes) {
        let window = self.model.context_window;
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
        let model = self.summarizer_model();
        let limit = |tokens: u64| match model.max_tokens {
            0 => tokens,
            most => tokens.min(most),
        };
        let summarizer = Summarizer {
            services: self.services,
            thinking: model.clamp_thinking(self.thinking),
            reason: Some(reason),
            cancel: self.cancel,
            model: model.clone(),
        };
        let history = Task {
            label: "Summarization",
            max_tokens: limit(sizes.reserve / 5 * 4 + sizes.reserve % 5 * 4 / 5),
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
            max_tokens: limit(sizes.reserve / 2),
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

    /// The model of the setting, if it can be used, else the session's.
    pub fn summarizer_model(&mut self) -> Arc<Model> {
        /// How long servers on this machine may take to say which models they have.
        const LOCAL_LIMIT: Duration = Duration::from_millis(200);
        let Some(wanted) = self.services.compaction.model.clone() else {
            return self.model.clone();
        };
        let found = wanted.split_once('/').and_then(|(provider, id)| {
            let known = self.services.registry.find(provider, id);
            let known = known.filter(|_| self.services.usable(provider));
            known.or_else(|| {
                let env = self.services.credentials.env();
                let is_local = provider == local::PROVIDER;
                // The setting names it.
                let found = is_local.then(|| local::discover(env, LOCAL_LIMIT, &local::Allowed::All))?;
                found.find(&wanted).map(|offer| offer.model.clone())
            })
        });
        found.unwrap_or_else(|| {
            let used = format!("{}/{}", self.model.provider, self.model.id);
            self.control.log().notice(Notice::NoSummaryModel { wanted, used });
            self.model.clone()
        })
    }

    /// Stores outputs among what is kept, and puts a line in their place, when it would not fit.
    fn prune(
        &mut self,
        projection: &Projection,
        preparation: &Preparation,
        summary: &str,
        system: Option<&AgentMessage>,
        sizes: Sizes,
    ) -> Result<(), Fatal> {
        let window = self.model.context_window;
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
                // What cannot be stored stays in the conversation.
                break;
            };
            let line = prune::line(&pruned, &artifact::uri(number));
            let content = Content::Blocks(vec![Block::text(line)]);
            self.edit(pruned.entry.to_string(), Some(content))?;
        }
        Ok(())
    }
}

/// The entries of the last answer and of the results of its calls.
fn last_attempt(log: &Log) -> Vec<String> {
    let index = log.index();
    let path = index.path(log.leaf().and_then(|leaf| index.find(leaf)));
    let kind_at = |position: &u32| index.get(*position).map(|slot| slot.kind);
    let last = path.iter().rposition(|position| kind_at(position) == Some(Kind::Assistant));
    let attempt = path.get(last.unwrap_or(path.len())..).unwrap_or_default();
    attempt
        .iter()
        .filter_map(|position| index.get(*position))
        .filter(|slot| matches!(slot.kind, Kind::Assistant | Kind::ToolResult))
        .map(|slot| slot.id.to_string())
        .collect()
}

/// How a model shows that it had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressure {
    Overflow,
    CutShort,
}

impl Pressure {
    fn second_failure(self) -> &'static str {
        match self {
            Self::Overflow => {
                "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or switching to a larger-context model."
            }
            Self::CutShort => "Truncated response recovery failed after one compact-and-retry attempt.",
        }
    }
}

/// Whether `answer` came from a full window of `model`. `is_fresh`: its figures are those of the
/// conversation as it is now.
fn pressure(answer: &AssistantMessage, model: &Model, is_fresh: bool) -> Option<Pressure> {
    if answer.provider != model.provider || answer.model != model.id {
        return None;
    }
    let window = model.context_window;
    let input = answer.usage.input.saturating_add(answer.usage.cache_read);
    let is_overflow = match answer.stop_reason {
        StopReason::Error => {
            let said = answer.error_message.as_deref().unwrap_or_default();
            is_overflow(&answer.provider, &StreamError::new(ErrorKind::Provider, said))
        }
        StopReason::Stop => is_fresh && window > 0 && input > window,
        StopReason::Length => {
            let is_full = input.saturating_mul(100) >= window.saturating_mul(99);
            is_fresh && window > 0 && answer.usage.output == 0 && is_full
        }
        _ => false,
    };
    let is_cut_short = answer.stop_reason == StopReason::Length && answer.usage.output < model.max_tokens;
    if is_overflow { Some(Pressure::Overflow) } else { is_cut_short.then_some(Pressure::CutShort) }
}
