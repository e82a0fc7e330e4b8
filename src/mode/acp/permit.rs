//! Approval of tool calls by the editor's user.

use super::call;
use super::peer::Peer;
use super::update::{WARNING, notice};
use crate::base::json::json;
use crate::runtime::approval::{Approver, Decision, Question};
use crate::runtime::control::{Control, WeakControl};
use crate::runtime::permission::{Always, Effect, Scope};
use crate::runtime::{CancelToken, Describer, Workspace};
use serde_json::Value;
use std::sync::Arc;

const ALLOW: &str = "allow";
const DENY: &str = "deny";

/// An answer that makes rules.
struct Lasting<'a> {
    effect: Effect,
    scope: Scope,
    about: &'a Always,
}

impl<'a> Lasting<'a> {
    /// The answers that are offered: the narrowest rule for each scope, the widest one for the session alone, and no.
    fn of(always: &'a [Always], is_trusted: bool) -> Vec<Self> {
        let Some((narrow, wide)) = always.split_first() else { return Vec::new() };
        let lasting = |effect, scope, about| Self { effect, scope, about };
        let allow = |scope| lasting(Effect::Allow, scope, narrow);
        let mut all = vec![allow(Scope::Session)];
        if !wide.is_empty() {
            all.extend(is_trusted.then(|| allow(Scope::Folder)));
            all.push(allow(Scope::User));
        }
        all.extend(wide.iter().map(|wide| lasting(Effect::Allow, Scope::Session, wide)));
        all.push(lasting(Effect::Deny, Scope::Session, narrow));
        all
    }

    fn name(&self) -> String {
        let what = if self.effect == Effect::Deny { "Never allow" } else { "Always allow" };
        format!("{what} {} ({})", self.about.label, self.scope.name())
    }

    fn kind(&self) -> &'static str {
        if self.effect == Effect::Deny { "reject_always" } else { "allow_always" }
    }

    /// Adds the rules. The error says why they could not be kept.
    fn add(&self, control: &Control) -> Result<(), String> {
        let rules = self.about.rules.iter();
        rules.into_iter().try_for_each(|rule| control.permissions().add(self.effect, self.scope, rule))
    }
}

/// Asks the user to approve the calls of one session.
pub struct EditorApprover {
    pub peer: Peer,
    pub session: String,
    pub workspace: Arc<Workspace>,
    pub describer: Describer,
    pub control: WeakControl,
}

impl Approver for EditorApprover {
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
        let (name, arguments) = (&question.tool.spec.name, question.arguments);
        let info = self.describer.describe(name, arguments);
        let change = call::coming_change(&self.workspace, &info, arguments);
        let title = call::title_to_approve(name, &info);
        let title = question.helper.map_or_else(|| title.clone(), |helper| format!("{helper}: {title}"));
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let Some(control) = self.control.upgrade() else { return Decision::Deny(None) };
        let lasting = Lasting::of(&question.always, control.config().consent.is_some());
        let (mut options, mut refusals) =
            (vec![option(ALLOW, "Allow", "allow_once")], vec![option(DENY, "Deny", "reject_once")]);
        for (index, answer) in lasting.iter().enumerate() {
            let option = option(&index.to_string(), &answer.name(), answer.kind());
            if answer.effect == Effect::Deny { refusals.push(option) } else { options.push(option) }
        }
        options.extend(refusals);
        let params = json!({
            "sessionId": self.session,
            "toolCall": {
                "toolCallId": question.id,
                "title": title,
                "name": name,
                "kind": call::kind(&info),
                "status": "pending",
                "content": change.diffs,
                "locations": call::locations(&self.workspace, &info, &change),
                "rawInput": arguments,
            },
            "options": options,
        });
        let answer = self.peer.ask("session/request_permission", &params, cancel, None);
        let chosen = match &answer {
            Some(Ok(result)) => result.pointer("/outcome/optionId").and_then(Value::as_str),
            Some(Err(failure)) => {
                let reason = format!("The editor could not ask for approval: {}", failure.message);
                return Decision::Deny(Some(reason));
            }
            None => None,
        };
        let answer = chosen.and_then(|id| lasting.get(id.parse::<usize>().ok()?));
        if let Some(Err(error)) = answer.map(|answer| answer.add(&control)) {
            let what = "An answer could not be kept as a rule";
            self.peer.update(&self.session, &notice(self.peer.capabilities(), WARNING, what, Some(&error)));
        }
        let is_allowed = chosen == Some(ALLOW) || answer.is_some_and(|answer| answer.effect == Effect::Allow);
        // What is not understood is no permission.
        if is_allowed { Decision::Allow } else { Decision::Deny(None) }
    }
}
