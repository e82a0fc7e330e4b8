//! Requests a summary of a conversation.
//!
//! The request is retried like any other, but has its own prompt, no tools and no cache. A conversation that
//! is larger than the window of the summarizing model is sent in parts, each with the summary of the parts
//! before it.

use super::event::{Event, Listener, Reason};
use super::hook::Hooked;
use super::retry;
use super::service::Services;
use super::tap::HookTap;
use crate::agent::message::{self, AgentMessage};
use crate::agent::run::{Fatal, Request};
use crate::base::cancel::CancelToken;
use crate::llm::classify::is_overflow;
use crate::llm::context::Context;
use crate::llm::estimate::{CHARS_PER_TOKEN, utf16_len};
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{
    AssistantMessage, Block, Content, Message, StopReason, SystemMessage, Usage, UserMessage, now_ms, text_of,
};
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::CacheRetention;
use crate::llm::stream::StreamHandle;
use crate::models::local;
use crate::session::compaction::{add_usage, prompt, transcript};
use crate::session::id;
use crate::wire;
use std::sync::Arc;

/// The model and services for a summary.
pub struct Summarizer<'a> {
    pub services: &'a Services,
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// Why the conversation is compacted; `None` for the summary of a branch.
    pub reason: Option<Reason>,
    pub hooked: Hooked,
    pub cancel: &'a CancelToken,
}

/// The kind of summary to request.
pub struct Task<'a> {
    /// The first words of every error message.
    pub label: &'static str,
    /// Tokens kept free for the summary if a conversation is sent in parts. The answer itself is limited only
    /// by the model.
    pub reserve: u64,
    /// Makes the prompt from the conversation and the summary of earlier messages.
    pub prompt: &'a dyn Fn(&str, Option<&str>) -> String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub text: String,
    pub usage: Option<Usage>,
}

pub enum Failure {
    Aborted,
    /// There is no summary, for the given reason.
    Refused(String),
    /// The request was larger than the context window.
    TooLarge(String),
    Fatal(Fatal),
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

impl Summarizer<'_> {
    /// Summarizes `messages`. `previous` is the summary of earlier messages.
    pub fn summarize(
        &self,
        messages: &[AgentMessage],
        previous: Option<&str>,
        task: &Task<'_>,
        listener: Listener<'_>,
    ) -> Result<Summary, Failure> {
        /// Parts of fewer characters are not halved again when a request is too large.
        const LEAST_CHARS: u64 = 4000;
        let paragraphs = transcript::paragraphs(&message::to_llm(messages));
        let whole: u64 = paragraphs.iter().map(|text| utf16_len(text)).sum();
        let mut limit = self.limit_chars(task.reserve);
        for _ in 0..2 {
            match self.in_parts(paragraphs.clone(), limit, previous, task, listener) {
                Err(Failure::TooLarge(_)) if limit.min(whole) / 2 >= LEAST_CHARS => {
                    limit = limit.min(whole) / 2;
                }
                done => return done,
            }
        }
        self.in_parts(paragraphs, limit, previous, task, listener)
    }

    fn in_parts(
        &self,
        paragraphs: Vec<String>,
        limit: u64,
        previous: Option<&str>,
        task: &Task<'_>,
        listener: Listener<'_>,
    ) -> Result<Summary, Failure> {
        let mut parts = transcript::groups(paragraphs, limit);
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        let mut so_far: Option<Summary> = None;
        for part in parts {
            let before = so_far.as_ref().map(|summary| summary.text.as_str());
            let prompt = (task.prompt)(&part.join("\n\n"), before.or(previous));
            let summary = self.ask(prompt, task, listener)?;
            let earlier = so_far.and_then(|summary| summary.usage);
            let usage = match (earlier, summary.usage) {
                (Some(earlier), Some(usage)) => Some(add_usage(&earlier, &usage)),
                (earlier, usage) => usage.or(earlier),
            };
            so_far = Some(Summary { usage, ..summary });
        }
        Ok(so_far.unwrap_or_default())
    }

    /// Returns the most characters of a conversation for one request. A local server cuts a longer text
    /// silently, hence the margin; other servers refuse it, and smaller parts are then sent.
    fn limit_chars(&self, reserve: u64) -> u64 {
        const INSTRUCTIONS_TOKENS: u64 = 800;
        const LEAST_TOKENS: u64 = 500;
        match self.model.context_window {
            0 => u64::MAX,
            window if local::is_provider(&self.model.provider) => {
                let room = window.saturating_sub(reserve + INSTRUCTIONS_TOKENS);
                room.max(LEAST_TOKENS) * (CHARS_PER_TOKEN - 1)
            }
            window => window.saturating_mul(CHARS_PER_TOKEN),
        }
    }

    /// Requests one summary, with retries.
    fn ask(&self, prompt: String, task: &Task<'_>, listener: Listener<'_>) -> Result<Summary, Failure> {
        let policy = &self.services.retry;
        let mut attempt = 0;
        loop {
            let (answer, failure) = self.request(&prompt);
            let failed = match answer.stop_reason {
                _ if self.cancel.is_cancelled() => Some(Failure::Aborted),
                StopReason::Aborted => Some(Failure::Aborted),
                StopReason::Error => None,
                _ => {
                    if attempt > 0 {
                        listener(&Event::SummaryRetryFinished)?;
                    }
                    return accept(&answer, task.label);
                }
            };
            let failure = failure.unwrap_or_else(|| {
                let said = answer.error_message.as_deref();
                StreamError::new(ErrorKind::Provider, said.unwrap_or("Unknown error"))
            });
            let delay = match failed {
                Some(_) => None,
                None => retry::delay(policy, attempt + 1, &failure),
            };
            let Some(delay) = delay else {
                if attempt > 0 {
                    listener(&Event::SummaryRetryFinished)?;
                }
                return Err(failed.unwrap_or_else(|| refusal(&self.model.provider, &failure, task.label)));
            };
            attempt += 1;
            listener(&Event::SummaryRetryScheduled {
                attempt,
                max_attempts: policy.max_retries,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                error_message: &failure.message,
            })?;
            if self.cancel.wait_timeout(retry::with_jitter(delay)) {
                listener(&Event::SummaryRetryFinished)?;
                return Err(Failure::Aborted);
            }
            listener(&Event::SummaryRetryStart { reason: self.reason })?;
        }
    }

    fn request(&self, prompt: &str) -> (AssistantMessage, Option<StreamError>) {
        let prepared = self.services.request(&self.model, self.thinking, &id::session_id(), self.cancel);
        let mut stream = match prepared {
            Ok(Request { model, mut options }) => {
                options.cache = CacheRetention::None;
                options.tap = HookTap::of_summary(self.hooked.clone(), &model, self.cancel);
                let system = SystemMessage {
                    content: Content::Text(prompt::SYSTEM.to_owned()),
                    timestamp: now_ms(),
                    ..SystemMessage::default()
                };
                let user = UserMessage::new(Content::Blocks(vec![Block::text(prompt)]));
                let messages = vec![Message::System(Arc::new(system)), Message::User(Arc::new(user))];
                wire::stream(&model, Context { messages }, options, self.cancel)
            }
            Err(error) => StreamHandle::failed(&self.model, error),
        };
        while stream.next_event().is_some() {}
        stream.finish()
    }
}

fn refusal(provider: &str, failure: &StreamError, label: &str) -> Failure {
    let text = format!("{label} failed: {}", failure.message);
    match is_overflow(provider, failure) {
        true => Failure::TooLarge(text),
        false => Failure::Refused(text),
    }
}

/// Returns the summary if it is a complete text without tool calls; otherwise it could not stand in for the
/// conversation.
fn accept(answer: &AssistantMessage, label: &str) -> Result<Summary, Failure> {
    if answer.stop_reason == StopReason::Length {
        return Err(Failure::Refused(format!(
            "{label} failed: generation hit the token cap and the summary is incomplete"
        )));
    }
    if answer.tool_calls().next().is_some() {
        return Err(Failure::Refused(format!("{label} attempted to call a tool")));
    }
    let text = text_of(&answer.content);
    if text.trim().is_empty() {
        return Err(Failure::Refused(format!("{label} failed: the model gave no text")));
    }
    Ok(Summary { text, usage: Some(answer.usage.clone()) })
}
