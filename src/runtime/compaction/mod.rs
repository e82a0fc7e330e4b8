//! Decides when a conversation is compacted.
//!
//! Automatic compaction runs before a prompt, between two turns and after a run: when less than the reserve
//! of the context window is free, or when a model refused the context or cut its answer short for want of
//! room. Such an answer is left out of the conversation and requested again, once. Nothing is stored before
//! the summary exists: a compaction that fails or is aborted leaves the conversation unchanged.
//!
//! After a compaction that fails or frees next to nothing, automatic compaction pauses until the next user
//! message: another attempt would fail too.
//!
//! Not here: the steps of a compaction (`work`), where the cut is and the prompt (`session::compaction`), the
//! request (`summary`).

mod pressure;
mod work;

use super::control::Control;
use super::event::{Event, Listener, Reason};
use super::service::Services;
use super::summary::Failure;
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{AssistantMessage, Content, StopReason};
use crate::llm::model::{Model, ThinkingLevel};
use crate::session::Log;
use crate::session::compaction::{CompactionResult, estimate};
use crate::session::entry::{ContextEdit, Replacement};
use crate::session::index::Kind;
use crate::tools::OutputDir;
use pressure::{Pressure, pressure};
use std::sync::Arc;

/// What automatic compaction remembers between two checks.
#[derive(Debug, Default)]
pub struct State {
    /// True if an answer was left out and requested again, and no answer has succeeded since.
    recovered: bool,
    /// True if a compaction failed or freed next to nothing since the last user message.
    fruitless: bool,
    /// True if the compaction under way, or the last one, was made by a handler.
    from_handler: bool,
    /// The failed answer that was left out of the conversation and not retried. It is the result of the run.
    pub(super) failed: Option<Arc<AssistantMessage>>,
}

impl State {
    /// Updates the state after `message` has ended.
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

/// Why no compaction was made.
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

/// The point of a run at which automatic compaction is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    BeforePrompt,
    BetweenTurns,
    AfterRun,
}

/// The session's parts that a compaction reads and changes.
pub(super) struct Compactor<'a> {
    pub control: &'a Control,
    /// The conversation's model; another model may write the summary.
    pub model: Arc<Model>,
    /// The model whose limits the conversation is to keep: of a virtual model, the one that it has chosen.
    pub limiting: Arc<Model>,
    pub thinking: ThinkingLevel,
    pub services: &'a Services,
    pub state: &'a mut State,
    pub outputs: &'a dyn OutputDir,
    pub listener: Listener<'a>,
    pub cancel: &'a CancelToken,
}

impl Compactor<'_> {
    /// Compacts if that is due. True if the run must continue with a new request for the failed answer.
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
            if self.model.is_virtual()
                && let Some(model) = self.services.physical(&answer.provider, &answer.model)
            {
                self.limiting = model;
            }
            if let Some(pressure) = pressure(&answer, &self.limiting, at >= marks.fresh) {
                drop(messages);
                return self.recover(&answer, pressure);
            }
        }
        let tokens = estimate::context_tokens(&messages, marks.fresh);
        drop(messages);
        if moment == Moment::BeforePrompt || !self.state.fruitless {
            self.compact_if_over(tokens)?;
        }
        Ok(false)
    }

    /// Compacts a conversation that is too large for the limiting model. True if there was a compaction.
    pub fn make_room(&mut self) -> Result<bool, Fatal> {
        let is_on = self.control.state().switches.auto_compaction;
        if !is_on || self.cancel.is_cancelled() || self.state.fruitless {
            return Ok(false);
        }
        let tokens = {
            let log = self.control.log();
            estimate::context_tokens(&log.messages(), log.marks().fresh)
        };
        self.compact_if_over(tokens)
    }

    fn compact_if_over(&mut self, tokens: u64) -> Result<bool, Fatal> {
        let window = self.limiting.context_window;
        match window > 0 && self.sizes().is_over(tokens, window) {
            true => self.auto(Reason::Threshold, false).map(|_| true),
            false => Ok(false),
        }
    }

    /// Compacts after the model ran out of room. True if the run must continue with a new request, because
    /// the answer was incomplete.
    fn recover(&mut self, answer: &Arc<AssistantMessage>, pressure: Pressure) -> Result<bool, Fatal> {
        if answer.stop_reason == StopReason::Stop {
            self.auto(Reason::Overflow, false)?;
            return Ok(false);
        }
        if self.state.recovered {
            self.state.from_handler = false;
            self.tell_failure(Reason::Overflow, Some(pressure.second_failure()))?;
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

    /// Leaves the last answer and the results of its calls out of the model's context. The log keeps them.
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

    /// Runs automatic compaction. True if it succeeded and `will_retry` is set.
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
                // Another attempt at the next turn would fail, too.
                self.state.fruitless = true;
                (None, Some(format!("{what}: {message}")))
            }
        };
        drop(busy);
        match &result {
            Some(result) => self.tell_success(reason, result, will_retry)?,
            None => self.tell_failure(reason, error.as_deref())?,
        }
        Ok(will_retry && result.is_some())
    }

    pub fn manual(&mut self, instructions: Option<&str>) -> Result<CompactionResult, NotCompacted> {
        let reason = Reason::Manual;
        (self.listener)(&Event::CompactionStart { reason })?;
        let done = self.manual_result(instructions);
        let error = match &done {
            Err(NotCompacted::Failed(message)) => Some(format!("Compaction failed: {message}")),
            _ => None,
        };
        self.control.end_compaction();
        match &done {
            Ok(result) => self.tell_success(reason, result, false)?,
            Err(NotCompacted::Fatal(_)) => {}
            Err(NotCompacted::Failed(_) | NotCompacted::Cancelled) => {
                self.tell_failure(reason, error.as_deref())?;
            }
        }
        done
    }

    fn tell_success(
        &mut self,
        reason: Reason,
        result: &CompactionResult,
        will_retry: bool,
    ) -> Result<(), Fatal> {
        let result = Some(result);
        (self.listener)(&Event::CompactionEnd {
            reason,
            result,
            aborted: false,
            will_retry,
            error_message: None,
        })
    }

    /// Tells listeners and handlers of a compaction that failed, or was aborted if there is no `error`.
    fn tell_failure(&mut self, reason: Reason, error: Option<&str>) -> Result<(), Fatal> {
        let (aborted, will_retry) = (error.is_none(), false);
        let ended = Event::CompactionEnd { reason, result: None, aborted, will_retry, error_message: error };
        (self.listener)(&ended)?;
        let mut fields = json!({"reason": reason.name(), "aborted": aborted, "willRetry": will_retry,
            "fromExtension": self.state.from_handler});
        if let Some(error) = error {
            fields["errorMessage"] = error.into();
        }
        self.control.hooked().tell("session_compact_failed", || fields, self.control.root());
        Ok(())
    }

    fn manual_result(&mut self, instructions: Option<&str>) -> Result<CompactionResult, NotCompacted> {
        let failed = |message: &str| NotCompacted::Failed(message.to_owned());
        self.state.from_handler = false;
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
}

/// Returns the ids of the entries of the last answer and of the results of its calls.
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
