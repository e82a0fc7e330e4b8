//! One conversation and its runs.
//!
//! A message that ended is in the log before anyone is told. What the model is told about prompt and
//! tools travels as system messages in the same log, so that the file alone says what a request held.
//!
//! The session itself belongs to one thread, which runs prompts. What others may do meanwhile goes
//! through its [`Control`].

use super::compaction::{self, Compactor, Moment, NotCompacted};
use super::conductor::Conductor;
use super::config::Config;
use super::control::{self, Begin, Control, Parts, Ticket};
use super::event::{Event, Listener};
use super::expand::Commands;
use super::limit::{Guard, TimeLimit};
use super::outcome;
use super::succession::Succession;
use crate::agent::event::AgentEvent;
use crate::agent::message::AgentMessage;
use crate::agent::run::{self, Fatal, Input};
use crate::base::cancel::CancelToken;
use crate::llm::message::{AssistantMessage, Block, StopReason, now_ms};
use crate::llm::model::Model;
use crate::session::Notice;
use crate::session::compaction::CompactionResult;
use crate::session::entry::Header;
use crate::tools::Workspace;
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};

pub struct Session {
    config: Arc<Config>,
    control: Control,
    compaction: compaction::State,
    guard: Guard,
    /// The limit that ended the last run.
    ended_by: Option<String>,
    /// Why the last attempt of the last run failed.
    failure: Option<String>,
    /// The value that the last run ended with, or why with none.
    outcome: Option<Result<Value, String>>,
    succession: Option<Succession>,
    /// The leaf has gone elsewhere since the last prompt.
    pub(super) has_moved: bool,
}

impl Session {
    /// `cancel` ends whatever the session does. Without a succession it stays with its conversation.
    pub fn new(parts: Parts, succession: Option<Succession>, cancel: &CancelToken) -> Self {
        let control = Control::new(parts, cancel.clone());
        let config = control.config();
        let session = Self {
            guard: Guard::new(config.limits.clone(), control.spent(&config.limits)),
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

    /// What other threads may do to the session.
    pub fn control(&self) -> &Control {
        &self.control
    }

    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.config.workspace
    }

    /// What the user can call with a slash. Prompts are expanded before they are asked or queued.
    pub fn commands(&self) -> &Commands {
        &self.config.commands
    }

    /// The header line of the session's file, also when nothing is stored.
    pub fn header(&self) -> Header {
        self.control.log().header().clone()
    }

    /// The last message of the conversation, if it is an answer.
    pub fn last_answer(&self) -> Option<Arc<AssistantMessage>> {
        if let Some(failed) = &self.compaction.failed {
            return Some(failed.clone());
        }
        match self.control.messages().last() {
            Some(AgentMessage::Assistant(message)) => Some(message.clone()),
            _ => None,
        }
    }

    /// The limit that ended the last run, if one did.
    pub fn ended_by(&self) -> Option<&str> {
        self.ended_by.as_deref()
    }

    /// The value that the last run ended with, or why with none; where one was asked for.
    pub fn outcome(&self) -> Option<&Result<Value, String>> {
        self.outcome.as_ref()
    }

    /// Asks the model, and runs until it has nothing more to do.
    ///
    /// A failed answer is no error here: it is a message, the last one. `Err` means that the run could
    /// not begin or go on: there is no key, the log cannot be written, the listener failed.
    pub fn prompt(&mut self, text: String, images: Vec<Block>, listener: Listener<'_>) -> Result<(), Fatal> {
        let message = control::user_message(text, images);
        let taken = self.control.begin(None, || message.clone(), &mut |_| {});
        match taken.map_err(Fatal)? {
            Begin::Run(ticket) => self.ask(ticket, message, &mut || {}, listener),
            Begin::Queued => Ok(()),
        }
    }

    /// Runs a prompt that `Control::begin` accepted. `accepted` is called once nothing speaks against the
    /// prompt any more, before the first event; an error before that is a refusal.
    pub fn ask(
        &mut self,
        mut ticket: Ticket,
        message: AgentMessage,
        accepted: &mut dyn FnMut(),
        listener: Listener<'_>,
    ) -> Result<(), Fatal> {
        let cancel = ticket.cancel.clone();
        let message = self.control.hidden(message);
        self.refresh()?;
        // Without a key nothing is stored: there was no conversation yet.
        self.check_key(&cancel)?;
        self.guard.begin();
        (self.ended_by, self.failure) = (None, None);
        if let Some(limit) = self.guard.passed() {
            return Err(Fatal(format!("The model was not asked: {limit}")));
        }
        let time = TimeLimit::start(self.guard.limits.time, &cancel)
            .map_err(|error| Fatal(format!("Cannot watch the time: {error}")))?;
        accepted();
        if std::mem::take(&mut self.has_moved) {
            self.control.record_choice()?;
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
        let outcome = match (outcome, &self.ended_by) {
            (Ok(()), Some(reason)) => listener(&Event::LimitReached { reason }),
            (outcome, _) => outcome,
        };
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(Fatal(reason)) => {
                // A listener that has failed itself need not be told.
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
        // The log may have had to go on in another file.
        self.update_child_env();
        let settled = Event::AgentSettled { aborted: cancel.is_cancelled() };
        let told = listener(&settled);
        ticket.wake_idle();
        self.control.hooked().event(&settled, || Value::Null, self.control.root());
        outcome.and(told)
    }

    /// Says why the model cannot be asked, where that is known without running a command.
    pub fn check_key(&self, cancel: &CancelToken) -> Result<(), Fatal> {
        let checked = self.config.services.check(&self.control.models().current(), cancel);
        checked.map_err(|error| Fatal(error.to_string()))
    }

    fn run_until_settled(
        &mut self,
        ticket: &mut Ticket,
        message: AgentMessage,
        listener: Listener<'_>,
        cancel: &CancelToken,
    ) -> Result<(), Fatal> {
        let mut messages = vec![message];
        messages.append(&mut self.control.state().next_turn);
        let preparation = self.control.prepare_run(&messages[0], cancel);
        messages.extend(preparation.messages);
        let mut conductor = Conductor {
            control: &self.control,
            config: &self.config,
            compaction: &mut self.compaction,
            guard: &mut self.guard,
            ended_by: &mut self.ended_by,
            failure: &mut self.failure,
            listener,
            cancel,
            hooked: self.control.hooked(),
            system_prompt: preparation.system_prompt,
            turns: 0,
            attempt: 0,
            output_retries: 0,
            is_first: true,
        };
        let mut agent = self.control.agent();
        conductor.compactor(&agent).check(Moment::BeforePrompt)?;
        let mut input = Input::Prompt(messages);
        loop {
            let failure = run::run(&mut agent, input, &mut conductor, cancel)?;
            if conductor.ended_by.is_some() {
                return ticket.finish(true).map(drop);
            }
            let goes_on =
                conductor.wait_to_retry(failure)? || conductor.compactor(&agent).check(Moment::AfterRun)?;
            agent = self.control.agent();
            input = if goes_on && !cancel.is_cancelled() {
                Input::Continue
            } else if let Some(demand) = conductor.retry_output() {
                Input::Queued(vec![demand])
            } else if ticket.finish(cancel.is_cancelled())? {
                return Ok(());
            } else {
                Input::Queued(conductor.queued())
            };
        }
    }

    /// Takes over what has changed since the last run.
    pub(super) fn refresh(&mut self) -> Result<(), Fatal> {
        self.control.write_held_back()?;
        self.config = self.control.config();
        self.update_child_env();
        Ok(())
    }

    /// Goes on with another conversation. The one before is closed.
    pub(super) fn replace(&mut self, parts: Parts) -> Result<(), Fatal> {
        self.compaction = compaction::State::default();
        let old = self.control.replace(parts);
        self.config = self.control.config();
        self.guard.go_on_in(self.control.spent(&self.config.limits));
        self.update_child_env();
        Ok(old.finish()?)
    }

    /// Continues the conversation with a configuration that was read again.
    pub(super) fn reconfigure(&mut self, config: Arc<Config>) {
        self.control.reconfigure(config.clone());
        self.guard.limits = config.limits.clone();
        self.config = config;
        self.update_child_env();
    }

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

    /// All that a compaction of the conversation needs.
    pub(super) fn compactor<'a>(
        &'a mut self,
        listener: Listener<'a>,
        cancel: &'a CancelToken,
    ) -> Result<Compactor<'a>, Fatal> {
        self.refresh()?;
        let thinking = self.control.state().thinking;
        Ok(Compactor {
            control: &self.control,
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

    /// What the user should know about the log since this was last asked.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.control.log().take_notices()
    }

    /// Ends the session in order: what is not needed any more is removed.
    pub fn close(self) -> Result<(), Fatal> {
        // The token of the process may be cancelled already; handlers have limits of their own.
        let quits = || json!({"reason": "quit"});
        self.control.hooked().tell("session_shutdown", quits, &CancelToken::new());
        self.control.close_hooks();
        self.control.write_held_back()?;
        self.control.close()
    }

    /// Sets the variables that tell child processes of the session.
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

/// How far the events of a run have come, so that those of one that fails can be completed.
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

    /// Tells of a failed answer that is in no log, as the reference does, and of the end of the run.
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
