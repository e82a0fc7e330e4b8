//! Virtual models: a part of the program chooses the model and the thinking level of each request.
//!
//! A virtual model is selected like any other and is never sent a request. Answers name the model that was chosen, so
//! a conversation reads as if the user had changed models by hand.

use super::control::Models;
use super::service::Services;
use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{AssistantMessage, Message, StopReason};
use crate::llm::model::{Model, ThinkingLevel};
use crate::session::Conversation;
use crate::session::entry::{Body, Custom};
use crate::session::index::Kind;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The custom type of entries with the state of a virtual model.
const STATE: &str = "pi.virtual-model-state";

/// Why a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The first request after a message of the user.
    User,
    Continuation,
    Retry,
    /// A request outside the conversation.
    Direct,
}

impl Occasion {
    /// The occasion of a request of the agent's loop for `messages`.
    pub fn of(messages: &[AgentMessage], is_retry: bool) -> Self {
        let answered = messages.iter().rposition(|message| matches!(message, AgentMessage::Assistant(_)));
        let new = messages.get(answered.map_or(0, |at| at + 1)..).unwrap_or_default();
        match new.iter().any(|message| matches!(message, AgentMessage::User(_))) {
            _ if is_retry => Self::Retry,
            true => Self::User,
            false => Self::Continuation,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Continuation => "continuation",
            Self::Retry => "retry",
            Self::Direct => "direct",
        }
    }
}

/// A request that a model is to be chosen for.
pub(super) struct Unrouted<'a> {
    pub thinking: ThinkingLevel,
    pub occasion: Occasion,
    /// The failed answer that is requested again.
    pub failed: Option<&'a AssistantMessage>,
    /// What the router stored last on this branch.
    pub state: Option<Value>,
    pub messages: &'a [Message],
}

/// What a router has chosen.
#[derive(Debug)]
pub(super) struct Route {
    pub model: Arc<Model>,
    pub thinking: ThinkingLevel,
    /// The state to store.
    pub state: Option<Value>,
}

impl Services {
    /// Finds a model that requests can be sent to.
    pub(super) fn physical(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.registry.find(provider, id).filter(|model| !model.is_virtual())
    }

    /// Has a virtual model choose the model of a request.
    pub(super) fn route(
        &self,
        model: &Model,
        request: &Unrouted<'_>,
        cancel: &CancelToken,
    ) -> Result<Route, StreamError> {
        let name = format!("The virtual model {}/{}", model.provider, model.id);
        let fail = |why: String| StreamError::new(ErrorKind::Provider, why);
        let router = self.router(model)?;
        let mut fields = json!({"provider": model.provider, "id": model.id, "model": model,
            "thinkingLevel": request.thinking, "reason": request.occasion.name(), "messages": request.messages});
        let answer = request.messages.iter().rev().find_map(|message| match message {
            Message::Assistant(answer) if is_success(answer) => Some(answer),
            _ => None,
        });
        let of = |answer: &AssistantMessage| {
            let model = self.physical(&answer.provider, &answer.model)?;
            Some(json!({"model": model.shown(), "thinkingLevel": answer.thinking_level}))
        };
        if let Some(previous) = answer.and_then(|answer| of(answer)) {
            fields["previous"] = previous;
        }
        if let Some(failed) = request.failed
            && let Some(mut known) = of(failed)
        {
            known["message"] = json!(AgentMessage::Assistant(Arc::new(failed.clone())));
            fields["failed"] = known;
        }
        if let Some(state) = &request.state {
            fields["state"] = state.clone();
        }
        let chosen = router.route(fields, cancel).map_err(|why| match cancel.is_cancelled() {
            true => StreamError::aborted(),
            false => fail(why),
        })?;
        let named = |field: &str| chosen["model"][field].as_str().unwrap_or_default();
        let (provider, id) = (named("provider"), named("id"));
        let target = self
            .physical(provider, id)
            .ok_or_else(|| fail(format!("{name} chose {provider}/{id}, which no request can be sent to")))?;
        if !self.is_faux(provider) && !self.usable(provider) {
            return Err(fail(format!("{name} chose {provider}/{id}, for which there is no key")));
        }
        let thinking = ThinkingLevel::deserialize(&chosen["thinkingLevel"]).unwrap_or(ThinkingLevel::Off);
        let state = chosen.get("state").cloned();
        Ok(Route { thinking: target.clamp_thinking(thinking), model: target, state })
    }

    /// The model and the level of a request outside the conversation.
    pub(super) fn route_direct(
        &self,
        model: &Arc<Model>,
        thinking: ThinkingLevel,
        messages: &[Message],
        cancel: &CancelToken,
    ) -> Result<(Arc<Model>, ThinkingLevel), StreamError> {
        if !model.is_virtual() {
            return Ok((model.clone(), thinking));
        }
        let request = Unrouted { thinking, occasion: Occasion::Direct, failed: None, state: None, messages };
        self.route(model, &request, cancel).map(|route| (route.model, route.thinking))
    }
}

impl Models<'_> {
    /// Returns the model and the thinking level that the selected virtual model last chose. `None` for other models,
    /// and before the first answer.
    pub fn routed(&self) -> Option<(Arc<Model>, Option<Box<str>>)> {
        if !self.current().is_virtual() {
            return None;
        }
        let messages = self.control.messages();
        let answer = messages.iter().rev().find_map(|message| match message {
            AgentMessage::Assistant(answer) if is_success(answer) => Some(answer),
            _ => None,
        })?;
        let model = self.control.config().services.physical(&answer.provider, &answer.model)?;
        Some((model, answer.thinking_level.clone()))
    }

    /// Returns the model whose limits the conversation is to keep.
    pub fn limiting(&self) -> Arc<Model> {
        self.routed().map_or_else(|| self.current(), |(model, _)| model)
    }
}

/// The body of an entry that stores `state` of a virtual model.
pub(super) fn state_entry(model: &Model, state: &Value) -> Body {
    let data = json!({"provider": model.provider, "modelId": model.id, "state": state});
    Body::Custom(Custom { custom_type: STATE.to_owned(), data: Some(data), ..Custom::default() })
}

/// The state that the branch of `log` stores for a virtual model.
pub(super) fn state_of(log: &Conversation, model: &Model) -> Option<Value> {
    let path = log.index().path(log.leaf().and_then(|leaf| log.index().find(leaf)));
    let is_custom = |at: &&u32| log.index().get(**at).is_some_and(|slot| slot.kind == Kind::Custom);
    path.iter().rev().filter(is_custom).find_map(|at| match log.entry_at(*at)?.body {
        Body::Custom(custom) if custom.custom_type == STATE => {
            let mut data = custom.data?;
            let is_its = data["provider"] == *model.provider && data["modelId"] == *model.id;
            is_its.then(|| data["state"].take())
        }
        _ => None,
    })
}

fn is_success(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::control::user_message;

    #[test]
    fn a_turn_begins_with_a_message_of_the_user() {
        let user = || user_message("hi".to_owned(), Vec::new());
        let answer = || AgentMessage::Assistant(Arc::default());
        for (messages, is_retry, expected) in [
            (vec![user()], false, Occasion::User),
            (vec![user(), answer()], false, Occasion::Continuation),
            (vec![answer(), user(), answer(), user()], false, Occasion::User),
            (vec![user()], true, Occasion::Retry),
            (Vec::new(), false, Occasion::Continuation),
        ] {
            assert_eq!(Occasion::of(&messages, is_retry), expected, "{messages:?}");
        }
    }
}
