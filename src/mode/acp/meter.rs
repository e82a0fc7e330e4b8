//! Tells the editor how full the context is and what the session has cost.

use super::peer::Peer;
use crate::base::json::json;
use crate::runtime::control::Control;
use crate::runtime::event::Event;
use crate::runtime::session::Session;
use crate::runtime::{AgentEvent, AgentMessage};

/// The cost of a session so far, in US dollars.
pub struct Meter {
    cost: f64,
}

impl Meter {
    /// Reads what a stored session has cost, and tells it.
    pub fn start(session: &Session, peer: &Peer) -> Self {
        let control = session.control();
        if control.snapshot().message_count == 0 {
            return Self { cost: 0.0 };
        }
        let meter = Self { cost: control.stats().cost };
        meter.tell(control, peer);
        meter
    }

    /// Adds what `event` reports, and tells it at the end of a turn or compaction.
    pub fn event(&mut self, event: &Event<'_>, control: &Control, peer: &Peer) {
        match event {
            Event::Agent(AgentEvent::TurnEnd { message, tool_results }) => {
                self.cost += message.usage.cost.total;
                for result in *tool_results {
                    if let AgentMessage::ToolResult(result) = result {
                        self.cost += result.usage.as_ref().map_or(0.0, |usage| usage.cost.total);
                    }
                }
            }
            Event::CompactionEnd { result, .. } => {
                let usage = result.and_then(|result| result.usage.as_ref());
                self.cost += usage.map_or(0.0, |usage| usage.cost.total);
            }
            _ => return,
        }
        self.tell(control, peer);
    }

    fn tell(&self, control: &Control, peer: &Peer) {
        let Some(usage) = control.context_usage() else {
            return;
        };
        // The number is not known between a compaction and the next answer.
        let Some(used) = usage.tokens else {
            return;
        };
        let id = control.snapshot().session_id;
        peer.update(
            &id,
            &json!({"sessionUpdate": "usage_update", "used": used, "size": usage.window,
            "cost": {"amount": self.cost, "currency": "USD"}}),
        );
    }
}
