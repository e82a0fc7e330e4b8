//! Approval of tool calls on the screen.

use super::card::Call;
use super::effect::{Effect, Update};
use super::feed::Feed;
use crate::runtime::CancelToken;
use crate::runtime::approval::{Approver, Decision, Question};
use crossbeam_channel::{bounded, select};
use std::sync::Arc;

/// Asks the user for approval on the screen.
pub struct ByScreen(pub Arc<Feed>);

impl Approver for ByScreen {
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
        let (reply, decided) = bounded(1);
        let mut call = Call::new(question.id, &question.tool.spec.name);
        call.set_arguments(question.arguments.clone());
        call.written();
        call.helper = question.helper.map(str::to_owned);
        self.0.effect(Effect::Approve { call: Box::new(call), reply });
        select! {
            recv(decided) -> decision => decision.unwrap_or(Decision::Deny(None)),
            recv(cancel.receiver()) -> _ => {
                let id = question.id.to_owned();
                self.0.effect(Effect::Update(Update::ApprovalOver(id)));
                Decision::Deny(None)
            }
        }
    }
}
