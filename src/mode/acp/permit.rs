//! Approval of tool calls by the editor's user.

use super::call;
use super::peer::Peer;
use crate::runtime::approval::{Approver, Decision, Question};
use crate::runtime::{CancelToken, Describer, Workspace};
use serde_json::{Value, json};
use std::sync::Arc;

const ALLOW: &str = "allow";
/// The index of what is allowed follows.
const ALWAYS: &str = "always-";
const DENY: &str = "deny";

/// Asks the user to approve the calls of one session.
pub struct EditorApprover {
    pub peer: Peer,
    pub session: String,
    pub workspace: Arc<Workspace>,
    pub describer: Describer,
}

impl Approver for EditorApprover {
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
        let (name, arguments) = (&question.tool.spec.name, question.arguments);
        let info = self.describer.describe(name, arguments);
        let change = call::coming_change(&self.workspace, &info, arguments);
        let title = call::title_to_approve(name, &info);
        let title = question.helper.map_or_else(|| title.clone(), |helper| format!("{helper}: {title}"));
        let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let always = question.always.iter().enumerate().map(|(index, always)| {
            let name = format!("Always allow {} (this session)", always.label);
            option(&format!("{ALWAYS}{index}"), &name, "allow_always")
        });
        let options: Vec<Value> = [option(ALLOW, "Allow", "allow_once")]
            .into_iter()
            .chain(always)
            .chain([option(DENY, "Deny", "reject_once")])
            .collect();
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
        let always = chosen.and_then(|id| id.strip_prefix(ALWAYS)?.parse().ok());
        match (chosen, always.and_then(|index: usize| question.always.get(index))) {
            (Some(ALLOW), _) => Decision::Allow,
            (_, Some(always)) => Decision::AllowAlways(always.rules.clone()),
            // What is not understood is no permission.
            _ => Decision::Deny(None),
        }
    }
}
