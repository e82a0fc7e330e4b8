//! The events of a session, as handlers of extensions are asked about them.

use super::connection::Failed;
use super::instance::GATE;
use super::limit::{END_MAX, HANDLER_MAX, INITIALIZE_MAX};
use super::{Extensions, Instance};
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

impl Extensions {
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
        Some(connection.ask("event", params, Some(limit), cancel))
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
            if name == "terminal_input" && matches!(result, Err(Failed::Late(_))) {
                instance.unregister(&json!({"events": [name]}));
                self.count_events();
            }
            let result = result.map_err(|failed| {
                // The end of a program was reported when it came.
                if !matches!(failed, Failed::Over(_) | Failed::Cancelled) {
                    self.report(&instance, &name, &failed.to_string());
                }
                format!("{}: {failed}", instance.found.path.display())
            });
            if cancel.is_cancelled() {
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
