//! The tools `checkpoint` and `rewind`, by which a model takes back a detour: what lies between is replaced by its
//! report. The detour stays in the session's tree.

use super::addition::{Addition, OWN, Owner};
use super::control::Control;
use super::event::{Event, Listener};
use crate::agent::message::AgentMessage;
use crate::agent::run::Fatal;
use crate::agent::tool::{Exposure, FnTool, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::session::entry::BranchSummary;
use crate::session::index::Kind;
use serde_json::Value;
use std::sync::Arc;

pub const CHECKPOINT: &str = "checkpoint";
pub const REWIND: &str = "rewind";

/// Adds the tools to a session. They are not active before they are chosen.
pub fn offer(control: &Control) {
    let mark = FnTool::new(
        CHECKPOINT,
        "Mark this place before a detour, such as a long search. rewind comes back to it.",
        json!({"type": "object", "properties": {}}),
        |_| Ok(ToolOutput::text("Marked. rewind comes back here.")),
    );
    let weak = control.downgrade();
    let back = FnTool::new(
        REWIND,
        "Go back to the last checkpoint: all since then is replaced by your report. Files stay as they are.",
        json!({"type": "object", "required": ["report"], "properties": {
            "report": {"type": "string", "minLength": 1, "description": "All that is worth knowing of the detour"},
        }}),
        move |call| {
            let control = weak.upgrade().ok_or_else(ToolError::aborted)?;
            if place(&control).is_none() {
                return Err(ToolError::new("There is no checkpoint to go back to"));
            }
            let report = call.arguments.get("report").and_then(Value::as_str).unwrap_or_default();
            control.state().rewind = Some(report.to_owned());
            Ok(ToolOutput::text("Going back"))
        },
    );
    let info = |info: ToolInfo| ToolInfo {
        sequential: true,
        reads_only: true,
        starts_inactive: true,
        exposure: Exposure::ModelOnly,
        ..info
    };
    let (mut mark, mut back) = (mark, back);
    (mark.info, back.info) = (info(mark.info.clone()), info(back.info.clone()));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(mark), Arc::new(back)];
    // Tools of the program itself are never refused.
    control.set_addition(
        Owner { rank: OWN, name: CHECKPOINT.into() },
        Addition { tools, ..Addition::default() },
    );
}

/// The entry to go back to: the last result of the turn with the last checkpoint.
fn place(control: &Control) -> Option<String> {
    let log = control.log();
    let index = log.index();
    let mut at = log.leaf().and_then(|leaf| index.find(leaf));
    let mut last_result = None;
    // A damaged file may hold a cycle.
    for _ in 0..index.slots.len() {
        let slot = index.get(at?)?;
        match slot.kind {
            Kind::ToolResult => {
                last_result.get_or_insert_with(|| slot.id.to_string());
                if let Some(AgentMessage::ToolResult(result)) = log.message(&slot.id)
                    && result.tool_name == CHECKPOINT
                    && !result.is_error
                {
                    return last_result;
                }
            }
            // A detour that has been taken back counts no more, nor does one that a compaction has taken away.
            Kind::Compaction | Kind::BranchSummary => return None,
            // Costs and names are stored at any time.
            Kind::Usage | Kind::Custom | Kind::Label | Kind::SessionInfo => {}
            _ => last_result = None,
        }
        at = slot.parent;
    }
    None
}

/// Goes back, if the turn before has asked for it. True if it has.
pub(super) fn settle(control: &Control, listener: Listener<'_>) -> Result<bool, Fatal> {
    let Some(summary) = control.state().rewind.take() else {
        return Ok(false);
    };
    let Some(place) = place(control) else {
        return Ok(false);
    };
    let entry = control
        .log()
        .branch_with_summary(Some(&place), BranchSummary { summary, ..BranchSummary::default() })?;
    control.restore_tools();
    listener(&Event::EntryAppended { entry: &entry })?;
    Ok(true)
}
