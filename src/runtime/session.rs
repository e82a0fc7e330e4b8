//! A conversation and its runs.
//!
//! A message is in the log before listeners see its end. Prompt and tools are recorded in the log as system
//! messages, so that the session file alone tells what a request contained.
//!
//! The session belongs to one thread, which runs prompts. Other threads use its [`Control`].

use super::boundary::Turn;
use super::checkpoint;
use super::compaction::{self, Compactor, Moment, NotCompacted};
use super::conductor::Conductor;
use super::config::Config;
use super::control::{self, Begin, Control, Parts, Ticket};
use super::event::{Event, Listener};
use super::expand::Commands;
use super::limit::TimeLimit;
use super::outcome;
use super::succession::Succession;
use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::run::{self, Fatal, Input};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{AssistantMessage, Block, StopReason, now_ms};
use crate::llm::model::Model;
use crate::session::Notice;
use crate::session::compaction::CompactionResult;
use crate::session::entry::Header;
use crate::tools::Workspace;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

pub struct Session {
    config: Arc<Config>,
    control: Control,
    compaction: compaction::State,
    /// The limit that ended the last run, as a text.
    ended_by: Option<String>,
    /// Why the last request of the last run failed.
    failure: Option<String>,
    /// The JSON value of the last run, or why there is none; `None` if no value was wanted.
    outcome: Option<Result<Value, String>>,
    succession: Option<Succession>,
    /// True if the leaf was moved since the last prompt.
    pub(super) has_moved: bool,
}

impl Session {
    /// Makes a session. `cancel` cancels all its work. Without a succession it cannot change to another
    /// conversation.
    pub fn new(parts: Parts, succession: Option<Succession>, cancel: &CancelToken) -> Self {
        let control = Control::new(parts, cancel.clone());
        let config = control.config();
        control.guard_run(&config.limits);
        let session = Self {
            ended_by: None,
            failure: None,
            outcome: None,
            control,
            config,
            compaction: compaction::State::default(),
            succession,
            has_moved: false,
        };
        session.update_child_env();
        session
    }

    /// Returns the handle that other threads use.
    pub fn control(&self) -> &Control {
        &self.control
    }

    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.config.workspace
    }

    /// Returns the skills and templates that the user can call. Prompts are expanded before they are sent or
    /// queued.
    pub fn commands(&self) -> &Commands {
        &self.config.commands
    }

    /// Returns the header line of the session's file, even if the session is not stored.
    pub fn header(&self) -> Header {
        self.control.log().header().clone()
    }

    /// Returns the last message of the conversation if it is an answer. If a failed answer was left out of
    /// the conversation, returns that answer.
    pub fn last_answer(&self) -> Option<Arc<AssistantMessage>> {
        if let Some(failed) = &self.compaction.failed {
            return Some(failed.clone());
        }
        self.control.last_answer()
    }

    /// Describes the limit that ended the last run, if one did.
    pub fn ended_by(&self) -> Option<&str> {
        self.ended_by.as_deref()
    }

    /// Returns the JSON value of the last run, or why there is none; `None` if no value was wanted.
    pub fn outcome(&self) -> Option<&Result<Value, String>> {
        self.outcome.as_ref()
    }

    /// Runs a prompt until the model is finished.
    ///
    /// A failed answer is not an error here: it is the last message. An error means that the run could not
    /// start or continue: there is no key, the log cannot be written, or the listener failed.
    pub fn prompt(&mut self, text: String, images: Vec<Block>, listener: Listener<'_>) -> Result<(), Fatal> {
        let message = control::user_message(text, images);
        let taken = self.control.begin(None, || message.clone(), &mut |_| {});
        match taken.map_err(Fatal)? {
            Begin::Run(ticket) => self.ask(ticket, message, &mut || {}, listener),
            Begin::Queued => Ok(()),
        }
    }

    /// Runs a prompt that `Control::begin` accepted. `accepted` is called after all checks and before the
    /// first event; an error before that call means that the prompt was refused.
    pub fn ask(
        &mut self,
        ticket: Ticket,
        message: AgentMessage,
        accepted: &mut dyn FnMut(),
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        let message = self.control.hidden(message);
        self.start(ticket, Some(message), accepted, listener)
    }

    /// Continues a run that was cut off, without a new message. Calls without a result are not run again.
    pub fn go_on(
        &mut self,
        ticket: Ticket,
        accepted: &mut dyn FnMut(),
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        self.start(ticket, None, accepted, listener)
    }

    fn start(
        &mut self,
        mut ticket: Ticket,
        message: Option<AgentMessage>,
        accepted: &mut dyn FnMut(),
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        let cancel = ticket.cancel.clone();
        self.control.hooked().0.iter().for_each(|hooks| hooks.before_prompt(&cancel));
        self.refresh()?;
        // Without a key nothing is stored, so that no empty conversation is left.
        self.check_key(&cancel)?;
        self.control.guard().begin();
        (self.ended_by, self.failure) = (None, None);
        let (limit, time) = {
            let guard = self.control.guard();
            (guard.passed(), guard.limits.time)
        };
        if let Some(limit) = limit {
            return Err(Fatal(format!("The model was not asked: {limit}")));
        }
        let time = TimeLimit::start(time, &cancel)
            .map_err(|error| Fatal(format!("Cannot watch the time: {error}")))?;
        accepted();
        let has_moved = std::mem::take(&mut self.has_moved);
        // Answers record another model than a virtual one.
        if has_moved || self.config.services.has_virtual_models() {
            self.control.record_choice(has_moved)?;
        }
        let mut open = OpenRun::default();
        let outcome = self.run_until_settled(
            &mut ticket,
            message,
            &mut |event: &Event<'_>| {
                open.follow(event);
                listener(event)
            },
            &cancel,
        );
        if let Some(limit) = time.end() {
            self.ended_by = Some(match self.failure.take() {
                Some(failure) => format!("{limit}; the last attempt failed: {failure}"),
                None => limit,
            });
        }
        self.control.state().set_run_prompt(None);
        let outcome = outcome.and_then(|()| self.control.write_after_turn(listener));
        let outcome = match (outcome, &self.ended_by) {
            (Ok(()), Some(reason)) => listener(&Event::LimitReached { reason }),
            (outcome, _) => outcome,
        };
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(Fatal(reason)) => {
                // A failure of the listener itself is ignored here.
                let _ = open.fail(&self.control.models().current(), &reason, cancel.is_cancelled(), listener);
                ticket.finish(true).and(Err(Fatal(reason)))
            }
        };
        self.outcome = self.config.wanted.as_ref().map(|wanted| {
            let answer = self.last_answer().filter(|answer| outcome::is_whole(answer));
            let answer = answer.ok_or("the run did not end with an answer")?;
            wanted.check(&outcome::text(&answer))
        });
        let outcome = match (outcome, &self.outcome) {
            (Ok(()), Some(value)) => listener(&Event::Output { outcome: value }),
            (outcome, _) => outcome,
        };
        // The last turn may have been one that goes back.
        let outcome = match checkpoint::settle(&self.control, listener) {
            Ok(true) => {
                self.compaction = compaction::State::default();
                outcome
            }
            Ok(false) => outcome,
            Err(fatal) => outcome.and(Err(fatal)),
        };
        // The log may have moved to another file.
        self.update_child_env();
        let settled = Event::AgentSettled { aborted: cancel.is_cancelled() };
        self.control.settle_warming();
        // Handlers come first: what a listener begins would find them with a session that is busy again.
        self.control.hooked().event(&settled, || Value::Null, self.control.root());
        let told = listener(&settled);
        ticket.wake_idle();
        outcome.and(told)
    }

    /// Returns an error if the current model is known to be unusable. Runs no command to find out.
    pub fn check_key(&self, cancel: &CancelToken) -> Result<(), Fatal> {
        let checked = self.config.services.check(&self.control.models().current(), cancel);
        checked.map_err(|error| Fatal(error.to_string()))
    }

    fn run_until_settled(
        &mut self,
        ticket: &mut Ticket,
        message: Option<AgentMessage>,
        listener: Listener<'_>,
        cancel: &CancelToken,
    ) -> Result<(), Fatal> {
        let mut input = match message {
            Some(message) => {
                let mut messages = vec![message];
                messages.append(&mut self.control.state().next_turn);
                let added = self.control.prepare_run(&messages[0], cancel);
                messages.extend(added);
                Input::Prompt(messages)
            }
            None => Input::Continue,
        };
        let mut conductor = Conductor {
            control: &self.control,
            config: &self.config,
            compaction: &mut self.compaction,
            ended_by: &mut self.ended_by,
            failed: None,
            failure: &mut self.failure,
            listener,
            cancel,
            hooked: self.control.hooked(),
            looking: HashMap::new(),
            turns: 0,
            turn: Turn::default(),
            attempt: 0,
            output_retries: 0,
            is_reminded: false,
            is_first: true,
        };
        let mut agent = self.control.agent();
        conductor.compactor(&agent).check(Moment::BeforePrompt)?;
        loop {
            let failure = run::run(&mut agent, input, &mut conductor, cancel)?;
            if conductor.ended_by.is_some() {
                return ticket.finish(true).map(drop);
            }
            let answer = self.control.last_answer();
            let goes_on =
                conductor.wait_to_retry(failure)? || conductor.compactor(&agent).check(Moment::AfterRun)?;
            conductor.failed = answer.filter(|_| goes_on);
            agent = self.control.agent();
            input = if goes_on && !cancel.is_cancelled() {
                Input::Continue
            } else if let Some(demand) = conductor.retry_output() {
                Input::Queued(vec![demand])
            } else if !cancel.is_cancelled()
                && let Some(reminder) = conductor.todo_reminder(&agent)
            {
                Input::Queued(vec![reminder])
            } else if !cancel.is_cancelled() && !self.control.has_queued() && conductor.before_settle()? {
                Input::Continue
            } else if ticket.finish(cancel.is_cancelled())? {
                return Ok(());
            } else {
                Input::Queued(conductor.queued())
            };
        }
    }

    /// Applies held-back messages and configuration changes of other threads.
    pub(super) fn refresh(&mut self) -> Result<(), Fatal> {
        self.control.write_held_back()?;
        self.config = self.control.config();
        self.update_child_env();
        Ok(())
    }

    /// Changes to another conversation, and closes the previous one.
    pub(super) fn replace(&mut self, parts: Parts) -> Result<(), Fatal> {
        self.compaction = compaction::State::default();
        let old = self.control.replace(parts);
        self.config = self.control.config();
        let earlier = self.control.spent(&self.config.limits);
        self.control.guard().go_on_in(earlier);
        self.update_child_env();
        Ok(old.finish()?)
    }

    /// Applies a configuration that was reloaded.
    pub(super) fn reconfigure(&mut self, config: Arc<Config>) {
        self.control.reconfigure(config.clone());
        self.control.guard().limits = config.limits.clone();
        self.config = config;
        self.update_child_env();
    }

    /// Compacts the conversation. `instructions` say what the summary should focus on.
    pub fn compact(
        &mut self,
        instructions: Option<&str>,
        listener: Listener<'_>,
        cancel: &CancelToken,
    ) -> Result<CompactionResult, NotCompacted> {
        self.compactor(listener, cancel)?.manual(instructions)
    }

    /// Prepares a compaction of the conversation.
    pub(super) fn compactor<'a>(
        &'a mut self,
        listener: Listener<'a>,
        cancel: &'a CancelToken,
    ) -> Result<Compactor<'a>, Fatal> {
        self.refresh()?;
        let thinking = self.control.state().thinking;
        Ok(Compactor {
            control: &self.control,
            limiting: self.control.models().limiting(),
            model: self.control.models().current(),
            thinking,
            services: &self.config.services,
            state: &mut self.compaction,
            outputs: &*self.config.workspace.outputs,
            listener,
            cancel,
        })
    }

    pub(super) fn succession(&mut self) -> Option<&mut Succession> {
        self.succession.as_mut()
    }

    /// Takes notices for the user about the log that arose since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.control.log().take_notices()
    }

    /// Closes the session and its log.
    pub fn close(self) -> Result<(), Fatal> {
        // The token of the process may be cancelled already; handlers have limits of their own.
        let quits = || json!({"reason": "quit"});
        self.control.hooked().tell("session_shutdown", quits, &CancelToken::new());
        self.control.close_hooks();
        self.control.helpers().end(self.control.root());
        self.control.write_held_back()?;
        self.control.close()
    }

    /// Sets the environment variables that tell child processes about the session.
    fn update_child_env(&self) {
        let (model, thinking) = {
            let state = self.control.state();
            (state.model.clone(), state.thinking)
        };
        let mut env = vec![
            ("PI_PROVIDER".to_owned(), model.provider.clone()),
            ("PI_MODEL".to_owned(), model.id.clone()),
            ("PI_REASONING_LEVEL".to_owned(), thinking.name().to_owned()),
        ];
        {
            let log = self.control.log();
            env.push(("PI_SESSION_ID".to_owned(), log.header().id.clone()));
            if let Some(path) = log.path() {
                self.config.workspace.outputs.follow(path);
                self.config.workspace.changes.follow(path);
                let path = path.to_string_lossy().into_owned();
                env.push(("PI_SESSION_FILE".to_owned(), path));
            }
        }
        *self.config.workspace.env.lock().unwrap_or_else(PoisonError::into_inner) = env;
    }
}

/// Events of a run that have a start but no end yet. If the run fails, the end events are emitted.
#[derive(Default)]
struct OpenRun {
    run: bool,
    turn: bool,
}

impl OpenRun {
    fn follow(&mut self, event: &Event<'_>) {
        match event {
            Event::Agent(AgentEvent::AgentStart) => self.run = true,
            Event::Agent(AgentEvent::TurnStart) => self.turn = true,
            Event::Agent(AgentEvent::TurnEnd { .. }) => self.turn = false,
            Event::Agent(AgentEvent::AgentEnd { .. }) => *self = Self::default(),
            _ => {}
        }
    }

    /// Emits a failed answer, which is not logged, and the missing end events, as the reference does.
    fn fail(
        &self,
        model: &Model,
        reason: &str,
        is_aborted: bool,
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        let message = Arc::new(AssistantMessage {
            content: vec![Block::text("")],
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            stop_reason: if is_aborted { StopReason::Aborted } else { StopReason::Error },
            error_message: Some(reason.to_owned()),
            timestamp: now_ms(),
            ..AssistantMessage::default()
        });
        let told = AgentMessage::Assistant(message.clone());
        let mut tell = |event: AgentEvent<'_>| listener(&Event::Agent(event));
        if !self.run {
            tell(AgentEvent::AgentStart)?;
        }
        if !self.turn {
            tell(AgentEvent::TurnStart)?;
        }
        tell(AgentEvent::MessageStart { message: &told })?;
        tell(AgentEvent::MessageEnd { message: &told })?;
        tell(AgentEvent::TurnEnd { message: &message, tool_results: &[] })?;
        tell(AgentEvent::AgentEnd { messages: std::slice::from_ref(&told), will_retry: false })?;
        listener(&Event::Failed { reason })
    }
}
