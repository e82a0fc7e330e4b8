//! Approval of tool calls by the client, with questions that every client can show.
//!
//! One `select` decides. A choice that needs more (a reason, other arguments) finds it in the response, or
//! asks a second question: `input` for a reason, `editor` for arguments.

use super::dialog::Dialog;
use super::field::Fields;
use crate::runtime::CancelToken;
use crate::runtime::approval::{self, Approver, DENIED, Decision, excerpt, squeezed};
use crate::runtime::event_json::Question;
use serde_json::{Map, Value};
use std::sync::Arc;

const ALLOW: &str = "Allow";
/// What is allowed follows; without it, every call of the tool.
const ALWAYS: &str = "Always allow";
const CHANGE: &str = "Change the arguments";
const DENY: &str = "Deny";
const DENY_BECAUSE: &str = "Deny with a reason";

/// Maximum characters of the arguments in the title; the field `arguments` holds all of them.
const TITLE_MAX: usize = 1000;

pub struct DialogApprover(pub Arc<Dialog>);

impl Approver for DialogApprover {
    fn decide(&self, call: &approval::Question<'_>, cancel: &CancelToken) -> Decision {
        let name = &call.tool.spec.name;
        let mut problem = String::new();
        let scopes: Vec<String> =
            call.always.iter().map(|always| format!("{ALWAYS}: {}", always.label)).collect();
        let tool = call.always.last().map(|_| ALWAYS);
        let narrow = scopes.iter().map(String::as_str).take(scopes.len().saturating_sub(1));
        let options: Vec<&str> =
            [ALLOW].into_iter().chain(tool).chain(narrow).chain([CHANGE, DENY, DENY_BECAUSE]).collect();
        let asked_by = call.asked_by.as_ref().map(|rule| format!(" ({rule})")).unwrap_or_default();
        loop {
            let question = Question {
                method: "select",
                title: format!("{problem}Allow {}? {}{asked_by}", call.who(), shown(call.arguments)),
                options: Some(&options),
                tool_call_id: Some(call.id),
                tool_name: Some(name),
                helper: call.helper,
                arguments: Some(call.arguments),
                ..Question::default()
            };
            let Some(answer) = self.0.ask(&question, cancel) else {
                return Decision::Deny(None);
            };
            match answer.text("value") {
                Some(ALLOW) => return Decision::Allow,
                Some(CHANGE) => match self.changed(&answer, call, cancel) {
                    Some(Ok(arguments)) => return Decision::Change(arguments),
                    Some(Err(fault)) => problem = format!("{fault}\n"),
                    // Back to the choice, unless there is nobody left to make it.
                    None if cancel.is_cancelled() => return Decision::Deny(None),
                    None => problem.clear(),
                },
                Some(DENY_BECAUSE) => return Decision::Deny(self.reason(&answer, name, cancel)),
                Some(DENY) => return Decision::Deny(answer.text("reason").map(because)),
                answer => {
                    let index = scopes.iter().position(|scope| answer == Some(scope));
                    let always = match answer {
                        Some(ALWAYS) => call.always.last(),
                        _ => index.and_then(|index| call.always.get(index)),
                    };
                    // What is not understood is no permission.
                    return always
                        .map_or(Decision::Deny(None), |always| Decision::AllowAlways(always.rules.clone()));
                }
            }
        }
    }
}

impl DialogApprover {
    fn reason(&self, answer: &Fields, name: &str, cancel: &CancelToken) -> Option<String> {
        if let Some(reason) = answer.text("reason") {
            return Some(because(reason));
        }
        let title = format!("Why not {name}? The model is told.");
        let answer = self.0.ask(&Question { method: "input", title, ..Question::default() }, cancel)?;
        answer.text("value").map(because)
    }

    fn changed(
        &self,
        answer: &Fields,
        call: &approval::Question<'_>,
        cancel: &CancelToken,
    ) -> Option<Result<Map<String, Value>, String>> {
        if let Some(Value::Object(arguments)) = answer.0.get("arguments") {
            return Some(Ok(arguments.clone()));
        }
        let title = format!("Arguments of {}, as JSON", call.tool.spec.name);
        let prefill = serde_json::to_string_pretty(call.arguments).unwrap_or_default();
        let editor = Question { method: "editor", title, prefill: Some(&prefill), ..Question::default() };
        let answer = self.0.ask(&editor, cancel)?;
        let text = answer.text("value")?;
        let read: Result<Map<String, Value>, _> = serde_json::from_str(text);
        Some(read.map_err(|error| format!("The arguments are no JSON object: {error}.")))
    }
}

fn because(reason: &str) -> String {
    format!("{DENIED}: {reason}")
}

fn shown(arguments: &Map<String, Value>) -> String {
    let squeeze = |value: &Value| match value {
        Value::String(text) => squeezed(text).into(),
        value => value.clone(),
    };
    let shown = arguments.iter().map(|(name, value)| (name.clone(), squeeze(value))).collect();
    excerpt(&Value::Object(shown).to_string(), TITLE_MAX)
}
