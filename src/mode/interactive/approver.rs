//! Approval of tool calls on the screen.

use super::card::Call;
use super::effect::{Effect, ToApprove, Update};
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
        let (always, asked_by) = (question.always.clone(), question.asked_by.clone());
        self.0.effect(Effect::Approve(Box::new(ToApprove { call, always, asked_by, reply })));
        select! {
            recv(decided) -> decision => decision.unwrap_or(Decision::Deny(None)),
            recv(cancel.receiver()) -> _ => {
                let id = question.id.to_owned();
                self.0.effect(Effect::Update(Update::ApprovalOver(id)));
                Decision::Deny(None)
            }
        }
    }

    fn takes_turns(&self, call: &str) -> bool {
        self.0.effect(Effect::Waits(call.to_owned()));
        true
    }

    fn allowed(&self, call: &str) {
        self.0.effect(Effect::Approved(call.to_owned()));
    }
}
