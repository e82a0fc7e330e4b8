//! Keeps the prompt cache of a provider warm, where that is cheaper than to lose it.
//!
//! Each request of the session is kept. Before the cache entry that it wrote expires, the request is repeated with
//! an output limit of one token, again and again, as long as a repetition is expected to save money. The price of
//! the repetitions is stored in the session and counted like that of answers. A thread with a timer exists only
//! while a request is kept; a new request, another conversation, and the end of the session end it.
//!
//! The figures and times are those of the TypeScript pi.

mod estimate;

pub use estimate::Estimate;

use super::control::{Control, names_of};
use super::event::Event;
use super::tap::HookTap;
use crate::agent::message::AgentMessage;
use crate::agent::run::Request;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::base::thread::Thread;
use crate::llm::context::Context;
use crate::llm::limits;
use crate::llm::message::{Extra, StopReason, Usage, now_ms};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, Resend};
use crate::runtime::hook::Flow;
use crate::session::entry::UsageRecord;
use estimate::{UNPRICED, delay_ms, is_repeatable, lifetime_ms};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The kind of the usage records.
pub const KIND: &str = "cache_warm";

/// The setting that says when caches are kept warm.
const SETTING: &str = "cacheWarming";

/// Milliseconds after a request in which its cache entry is kept: during a run, and after it.
const RUNNING_MS_MAX: u64 = 60 * 60_000;
const IDLE_MS_MAX: u64 = 30 * 60_000;

const OFF: &str = "cache warming disabled";
const NO_LIFETIME: &str = "cache lifetime unavailable";
const OTHER_CONTEXT: &str = "conversation context changed";
const SETTLED: &str = "agent run settled";
const TOO_OLD: &str = "30-minute idle safety limit reached";

/// What is known of the cache of a session.
#[derive(Default)]
pub(super) struct Warmer(Mutex<State>);

#[derive(Default)]
struct State {
    kept: Option<Kept>,
    /// Why nothing is kept.
    reason: Option<String>,
}

struct Kept {
    /// Cancelled when the request is not kept any more.
    token: CancelToken,
    /// Of a repetition that was sent and is not answered.
    in_flight: Option<CancelToken>,
    /// When the request was sent, in Unix milliseconds.
    sent: u64,
    /// When the next repetition is due, in Unix milliseconds.
    due: u64,
}

/// A request that may be repeated.
struct Repeatable {
    thinking: ThinkingLevel,
    /// Of the session: the level that was chosen, and the names of the active tools.
    chosen: (ThinkingLevel, Vec<String>),
    session: String,
    provider: String,
    model: String,
    context: Context,
    /// The conversation that the request was made of.
    messages: Arc<Vec<AgentMessage>>,
    lifetime_ms: u64,
    delay_ms: u64,
    /// When the request was sent, in Unix milliseconds.
    sent: u64,
    token: CancelToken,
}

/// The state of the cache for the user.
pub struct Status {
    pub mode: String,
    pub text: String,
    pub estimate: Option<Estimate>,
}

impl Warmer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a repetition that is not answered yet.
    pub fn abort(&self) {
        let in_flight = self.state().kept.as_ref().and_then(|kept| kept.in_flight.clone());
        if let Some(in_flight) = in_flight {
            in_flight.cancel();
        }
    }

    /// Keeps nothing any more.
    pub fn stop(&self, reason: &str) {
        self.stop_if(|_| true, reason);
    }

    /// Keeps nothing any more, if what is kept is still that.
    fn stop_if(&self, is_that: impl Fn(Option<&Kept>) -> bool, reason: &str) {
        let kept = {
            let mut state = self.state();
            if !is_that(state.kept.as_ref()) {
                return;
            }
            state.reason = Some(reason.to_owned());
            state.kept.take()
        };
        if let Some(kept) = kept {
            kept.token.cancel();
        }
    }
}

impl Control {
    /// Keeps a request that is about to be sent, in place of the one before.
    pub(super) fn keep_warm(&self, request: &Request, context: &Context) {
        let warmer = self.warmer();
        if let Err(reason) = self.try_keep_warm(request, context) {
            warmer.stop(reason);
        }
    }

    fn try_keep_warm(&self, request: &Request, context: &Context) -> Result<(), &'static str> {
        let Request { model, options } = request;
        if !self.ui().is_some_and(|ui| ui.tells_costs()) {
            return Err("nobody is told what it costs");
        }
        if self.config().settings.word(SETTING) == "off" {
            return Err(OFF);
        }
        if self.models().current().is_virtual() {
            return Err("the next request may go to another model");
        }
        if !is_repeatable(model, options.thinking) {
            return Err("request cannot be replayed safely");
        }
        let retention = limits::cache_retention(options);
        if retention == CacheRetention::None {
            return Err("request disabled prompt caching");
        }
        let lifetime_ms = lifetime_ms(model, retention).ok_or(NO_LIFETIME)?;
        let delay_ms = delay_ms(lifetime_ms).ok_or(NO_LIFETIME)?;
        self.warmer().stop(OTHER_CONTEXT);
        let token = self.root().child();
        let sent = now_ms();
        let kept = Repeatable {
            thinking: options.thinking,
            chosen: self.chosen(),
            session: options.session_id.clone().unwrap_or_default(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            context: context.clone(),
            messages: self.messages(),
            lifetime_ms,
            delay_ms,
            sent,
            token: token.clone(),
        };
        self.warmer().state().kept = Some(Kept { token, in_flight: None, sent, due: sent + delay_ms });
        // While it waits, the thread does not keep the session alive.
        let weak = self.downgrade();
        let keep = move || {
            let mut due = sent + kept.delay_ms;
            loop {
                let left = Duration::from_millis(due.saturating_sub(now_ms()));
                if kept.token.wait_timeout(left) {
                    return;
                }
                let Some(control) = weak.upgrade() else { return };
                match control.repeat(&kept, due) {
                    Ok(next) => due = next,
                    Err(reason) => {
                        let is_this = |now: Option<&Kept>| now.is_some_and(|now| now.token.is(&kept.token));
                        return control.warmer().stop_if(is_this, &reason);
                    }
                }
            }
        };
        let thread = Thread::named("cache-warming").start(keep);
        thread.map(drop).map_err(|_| "cannot start a thread")
    }

    /// Repeats a request if that still pays. Returns when the next repetition is due, or why there is none.
    fn repeat(&self, kept: &Repeatable, due: u64) -> Result<u64, String> {
        // After a suspension of the machine the entry may be gone: to write it again would cost, not save.
        let latest = due + (kept.lifetime_ms - kept.delay_ms) / 2;
        let is_in_time = || match now_ms() > latest {
            true => Err("cache refresh deadline missed"),
            false => Ok(()),
        };
        let model = self.check_kept(kept)?;
        is_in_time()?;
        let estimate = Estimate::of(&model, self.prompt_tokens(), !self.is_idle());
        let warms = self.warming_decision(&estimate, &kept.token);
        let is_overridden = warms != estimate.pays();
        let model = self.check_kept(kept).map(|_| model)?;
        is_in_time()?;
        if !warms {
            return Err(match (is_overridden, estimate.is_known) {
                (true, _) => format!("stopped by extension, {}", estimate.text()),
                (false, true) => estimate.text(),
                (false, false) => UNPRICED.into(),
            });
        }
        if self.limits_left().is_spent() {
            return Err("a limit of the session is reached".into());
        }
        let in_flight = kept.token.child();
        match self.warmer().state().kept.as_mut().filter(|state| state.token.is(&kept.token)) {
            Some(state) => state.in_flight = Some(in_flight.clone()),
            None => return Err(OTHER_CONTEXT.into()),
        }
        let services = &self.config().services;
        let request = services.request(&model, kept.thinking, &kept.session, &in_flight);
        let answer = request.map(|mut request| {
            request.options.tap = HookTap::of(&self.hooked(), &model, &in_flight);
            request.options.max_tokens = Some(1);
            request.options.resend = Resend { count: 0, ..request.options.resend };
            request.options.is_repetition = true;
            crate::wire::stream(&request.model, kept.context.clone(), request.options, &in_flight).finish().0
        });
        // Until another repetition the entry would be gone: that one would pay for writing it again.
        let failed = |why: &str| Err(format!("the request could not be repeated: {why}"));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return failed(&error.message),
        };
        let failure = match answer.stop_reason {
            StopReason::Error => Some(answer.error_message.unwrap_or_default()),
            StopReason::Aborted => Some("it was aborted".to_owned()),
            _ => None,
        };
        let mut extra = Extra::new();
        if is_overridden {
            extra.insert("note".into(), "extension override".into());
        }
        let record = UsageRecord {
            kind: KIND.into(),
            provider: answer.provider,
            model: answer.response_model.unwrap_or(answer.model),
            usage: answer.usage,
            extra,
        };
        if failure.is_none() || record.usage != Usage::default() {
            self.book(record, &kept.session);
        }
        if let Some(failure) = failure {
            return failed(&failure);
        }
        let next = now_ms() + kept.delay_ms;
        self.check_age(kept, next)?;
        if let Some(state) = self.warmer().state().kept.as_mut().filter(|state| state.token.is(&kept.token)) {
            (state.in_flight, state.due) = (None, next);
        }
        Ok(next)
    }

    /// Counts and stores what a repetition cost, unless the log is that of another session by now.
    fn book(&self, record: UsageRecord, session: &str) {
        self.guard().spend(&record.usage);
        let entry = {
            let mut log = self.log();
            if log.header().id != session {
                return;
            }
            log.append(record)
        };
        if let (Ok(entry), Some(ui)) = (entry, self.ui()) {
            ui.event(&Event::EntryAppended { entry: &entry });
        }
    }

    /// Returns the model if the next request of the session would begin as the kept one does.
    fn check_kept(&self, kept: &Repeatable) -> Result<Arc<Model>, String> {
        let mode = self.config().settings.word(SETTING).to_owned();
        match mode.as_str() {
            "off" => return Err(OFF.into()),
            "streaming" if self.is_idle() => return Err(SETTLED.into()),
            _ => {}
        }
        let model = self.models().current();
        let is_prefix = {
            let log = self.log();
            let messages = log.messages();
            let same = kept.messages.iter().zip(messages.iter()).all(|(old, new)| old.is(new));
            log.header().id == kept.session && messages.len() >= kept.messages.len() && same
        };
        let is_same =
            model.provider == kept.provider && model.id == kept.model && self.chosen() == kept.chosen;
        match is_prefix && is_same {
            true => Ok(model),
            false => Err(OTHER_CONTEXT.into()),
        }
    }

    /// What a request begins with, besides the model and the conversation.
    fn chosen(&self) -> (ThinkingLevel, Vec<String>) {
        let state = self.state();
        (state.thinking, names_of(&state.tools))
    }

    /// Returns an error if a repetition at `next` would come too long after the request.
    fn check_age(&self, kept: &Repeatable, next: u64) -> Result<(), String> {
        let (limit, reason) = match self.is_idle() {
            true => (IDLE_MS_MAX, TOO_OLD),
            false => (RUNNING_MS_MAX, "one-hour safety limit reached"),
        };
        if next > kept.sent + limit { Err(reason.into()) } else { Ok(()) }
    }

    /// Ends what does not go on after a run. Called when the run has settled.
    pub(super) fn settle_warming(&self) {
        let Some((sent, due)) = self.warmer().state().kept.as_ref().map(|kept| (kept.sent, kept.due)) else {
            return;
        };
        if self.config().settings.word(SETTING) == "streaming" {
            self.warmer().stop(SETTLED);
        } else if due.max(now_ms()) > sent + IDLE_MS_MAX {
            self.warmer().stop(TOO_OLD);
        }
    }

    /// Asks handlers what they make of the decision. True to repeat the request.
    fn warming_decision(&self, estimate: &Estimate, cancel: &CancelToken) -> bool {
        let fields = || {
            json!({
                "warmCost": estimate.warm_cost,
                "missCost": estimate.miss_cost,
                "continuationProbability": estimate.probability,
                "action": if estimate.pays() { "warm" } else { "stop" },
            })
        };
        let mut decided = None;
        self.hooked().ask("cache_warming_decision", fields, cancel, &mut |_, result| {
            decided = match result.unwrap_or_default()["action"].as_str() {
                Some("warm") => Some(true),
                Some("stop") => Some(false),
                _ => decided,
            };
            Flow::Next
        });
        decided.unwrap_or(estimate.pays())
    }

    /// Tokens of the last prompt, as the provider counted them.
    fn prompt_tokens(&self) -> u64 {
        let messages = self.messages();
        let last = messages.iter().rev().find_map(|message| match message {
            AgentMessage::Assistant(answer) => Some(&answer.usage),
            _ => None,
        });
        last.map_or(0, |usage| usage.input + usage.cache_read + usage.cache_write)
    }

    /// Tells what is done for the cache of the session.
    pub fn cache_warming(&self) -> Status {
        let mode = self.config().settings.word(SETTING).to_owned();
        let state = self.warmer().state();
        let Some(kept) = state.kept.as_ref().filter(|_| mode != "off") else {
            let reason = match mode.as_str() {
                "off" => OFF,
                _ => state.reason.as_deref().unwrap_or("waiting for first request"),
            };
            return Status { text: format!("Inactive ({reason})"), mode, estimate: None };
        };
        let (due, is_refreshing) = (kept.due, kept.in_flight.is_some());
        drop(state);
        let estimate = Estimate::of(&self.models().current(), self.prompt_tokens(), !self.is_idle());
        let when = match due.saturating_sub(now_ms()) {
            _ if is_refreshing => "Warming cache".to_owned(),
            0 => "Decision now".to_owned(),
            left => format!("Decision in {}m{}s", left / 60_000, left / 1000 % 60),
        };
        let text = format!("{when} ({})", estimate.text());
        Status { mode, text, estimate: Some(estimate).filter(|estimate| estimate.is_known) }
    }
}
