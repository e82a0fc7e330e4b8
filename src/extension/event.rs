//! The events of a session, as handlers of extensions are asked about them.

use super::instance::GATE;
use super::limit::{END_MAX, HANDLER_MAX, INITIALIZE_MAX};
use super::registration::Subscription;
use super::request::Failed;
use super::{Extensions, Instance, result};
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::runtime::hook::{Flow, Fold, Hooks};
use crate::runtime::lent::SERVERS_CHANGED;
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The event that begins a session.
const OPENING: &str = "session_start";

/// Time for a handler of keys. One that is late is not asked any more.
const KEY_MAX: Duration = Duration::from_millis(500);

/// Events that nobody waits for: pieces of a stream, and news of changes that are made.
const NEWS: &[&str] = &[
    "message_update",
    "tool_execution_update",
    "model_select",
    "thinking_level_select",
    "session_info_changed",
    "ui_prompt_start",
    "ui_prompt_end",
    "theme_changed",
    "after_provider_response",
    "provider_stream_event",
    SERVERS_CHANGED,
];

/// All events.
const KNOWN: &[&str] = &[
    "after_provider_response",
    "agent_before_settle",
    "agent_end",
    "agent_settled",
    "agent_start",
    "before_agent_start",
    "before_provider_headers",
    "before_provider_request",
    "cache_warming_decision",
    "context",
    "context_with_system",
    "input",
    "mcp_servers_change",
    "message_end",
    "message_start",
    "message_update",
    "model_select",
    "project_trust",
    "provider_stream_event",
    "resources_discover",
    "session_before_compact",
    "session_before_fork",
    "session_before_switch",
    "session_before_tree",
    "session_compact",
    "session_compact_failed",
    "session_info_changed",
    "session_shutdown",
    "session_start",
    "session_tree",
    "terminal_input",
    "theme_changed",
    "thinking_level_select",
    "tool_call",
    "tool_execution_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_result",
    "turn_end",
    "turn_start",
    "ui_prompt_end",
    "ui_prompt_start",
    "user_bash",
];

impl Extensions {
    /// Reports events that an instance handles and that do not exist. Scripts may name any, as in the TypeScript pi.
    pub(super) fn report_unknown_events(&self, instance: &Instance) {
        let registration = instance.registration();
        let unknown = registration.events.iter().filter(|known| !KNOWN.contains(&&*known.event));
        for Subscription { event, .. } in unknown.filter(|_| !instance.found.is_script()) {
            self.report_once(instance, "register", &format!("There is no event \"{event}\""));
        }
    }

    /// Asks the handler of one instance. None if it takes no such event, or nobody waits for it.
    pub(super) fn ask_one(
        &self,
        instance: &Arc<Instance>,
        event: &Value,
        deadline: Option<Instant>,
        cancel: &CancelToken,
    ) -> Option<Result<Value, Failed>> {
        let name = event["type"].as_str().unwrap_or_default();
        // Its handler may not be known yet, and a gate must not stand open.
        if name == GATE && instance.is_loading() && instance.may_gate() {
            return Some(Err(match cancel.is_cancelled() {
                true => Failed::Cancelled,
                false => Failed::Late(INITIALIZE_MAX),
            }));
        }
        let (timeout, waits) = {
            let registration = instance.registration();
            let subscription = registration.events.iter().find(|known| known.event == name)?;
            (subscription.timeout, subscription.waits && !NEWS.contains(&name))
        };
        // What it has registered on the way counts when it is loaded; the session begins for it then.
        if instance.is_loading() && name != "project_trust" {
            return None;
        }
        let Some(connection) = instance.connection() else {
            return Some(Err(Failed::Over(instance.end_text())));
        };
        let params = json!({"extension": instance.id, "event": event});
        if !waits {
            connection.notify("event", params, cancel);
            return None;
        }
        let usual = match name {
            "session_before_compact" | "session_before_tree" => Duration::from_secs(300),
            "session_shutdown" => END_MAX,
            "terminal_input" => KEY_MAX,
            _ => HANDLER_MAX,
        };
        let mut limit = timeout.unwrap_or(usual);
        if let Some(deadline) = deadline {
            limit = limit.min(deadline.saturating_duration_since(Instant::now()));
        }
        let result = connection.ask_handler(&instance.pulse, "event", params, limit, cancel);
        Some(result.map(|result| match result::fault(event, &result) {
            None => result,
            Some(fault) => {
                if instance.is_news(name, "result") {
                    self.report(
                        instance,
                        name,
                        &format!("the result is passed over: {fault}. This is said once"),
                    );
                }
                Value::Null
            }
        }))
    }
}

impl Hooks for Extensions {
    fn wants(&self, event: &str) -> bool {
        // Instances that come later are told how the session began.
        event == OPENING
            || self.wanted.read().unwrap_or_else(PoisonError::into_inner).contains(event)
            || (event == GATE && self.instances().iter().any(|instance| instance.is_coming()))
    }

    fn ask(&self, event: &mut Value, cancel: &CancelToken, fold: Fold<'_>) {
        let name = event["type"].as_str().unwrap_or_default().to_owned();
        let is_opening = name == OPENING;
        if name == GATE {
            self.await_gates(cancel);
        }
        if is_opening {
            self.state().opening = Some(event.clone());
        }
        // What all handlers of an end may take together.
        let deadline = (name == "session_shutdown").then(|| Instant::now() + END_MAX);
        for instance in self.instances() {
            // One that is still being started is told when it has come.
            if is_opening && instance.start_ms() == 0 {
                continue;
            }
            let is_fresh = matches!(event["reason"].as_str(), Some("startup" | "reload"));
            if is_opening && instance.is_greeted() && is_fresh {
                continue;
            }
            let Some(result) = self.ask_one(&instance, event, deadline, cancel) else { continue };
            if name == "terminal_input" && matches!(result, Err(Failed::Late(_) | Failed::Hung { .. })) {
                instance.unregister(&json!({"events": [name]}));
                self.count_events();
            }
            let result = result.map_err(|failed| {
                // The end of a program was reported when it came, and that it hangs when it was seen first.
                if !matches!(failed, Failed::Over(_) | Failed::Cancelled | Failed::Hung { is_news: false }) {
                    self.report(&instance, &name, &failed.to_string());
                }
                format!("{}: {failed}", instance.found.path.display())
            });
            // The others are told that the session has begun, but not waited for.
            if cancel.is_cancelled() && !is_opening {
                return;
            }
            match fold(event, result) {
                Flow::Next => {}
                Flow::Stop => return,
                Flow::Fault(why) => self.report(&instance, &name, &why),
            }
        }
    }

    fn settling(&self) -> Vec<String> {
        self.awaited().map(|instance| instance.found.name.clone()).collect()
    }

    fn settle(&self, cancel: &CancelToken) {
        self.await_settled(cancel);
        let problems = self.take_problems();
        if let Some(control) = self.control.get() {
            problems.iter().for_each(|problem| control.report(problem));
        }
    }

    fn renew(self: Arc<Self>, cancel: &CancelToken) {
        self.begin_anew(cancel);
    }

    fn before_prompt(&self, _cancel: &CancelToken) {
        self.report_missing();
        self.report_unconnected();
    }

    fn is_to_come(&self) -> bool {
        Instant::now() < self.drawing_limit() && self.instances().iter().any(|one| one.is_coming())
    }

    fn await_all(&self, cancel: &CancelToken) {
        self.await_start(self.drawing_limit(), cancel);
    }

    fn close(&self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_names_known_events_only() {
        let manual = include_str!("../docs/extensions.md");
        let part = manual.split("\n## ").find(|part| part.starts_with("Events")).unwrap();
        let cells =
            part.lines().filter(|line| line.starts_with("| `")).filter_map(|row| row.split('|').nth(1));
        let names =
            cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|name| !name.contains('*'));
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 30, "{names:?}");
        assert!(names.iter().all(|name| KNOWN.contains(name)), "{names:?}");
    }
}
