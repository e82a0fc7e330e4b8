//! The tool `agent`: a prompt that a session of its own works on to the end.

use super::ask::ClientUi;
use super::call::Progress;
use super::peer::reason;
use super::serve::Shared;
use crate::base::json::json;
use crate::runtime::event::Event;
use crate::runtime::{AgentEvent, Block, CancelToken, StopReason};
use serde_json::{Map, Value};
use std::sync::Arc;

pub const NAME: &str = "agent";

pub fn declare() -> Value {
    json!({
        "name": NAME,
        "title": "Agent",
        "description": "Give a coding agent a task in this folder. It reads, edits and runs commands by itself until \
                        the task is done, and answers with a report. It knows nothing but the prompt; with a \
                        session it goes on where that one ended.",
        "inputSchema": {
            "type": "object",
            "required": ["prompt"],
            "properties": {
                "prompt": {"type": "string", "description": "The whole task"},
                "session": {"type": "string", "description": "Id of a session to go on with"},
            },
        },
        "outputSchema": {
            "type": "object",
            "required": ["session", "text"],
            "properties": {
                "session": {"type": "string", "description": "Id of the session"},
                "text": {"type": "string", "description": "The last answer"},
            },
        },
    })
}

/// Runs the task. Returns the result for the client; a failure is one, too.
pub fn run(
    shared: &Shared,
    arguments: &Map<String, Value>,
    progress: &Progress,
    cancel: &CancelToken,
) -> Value {
    let done = work(shared, arguments, progress, cancel);
    done.unwrap_or_else(|text| json!({"content": [{"type": "text", "text": text}], "isError": true}))
}

fn work(
    shared: &Shared,
    arguments: &Map<String, Value>,
    progress: &Progress,
    cancel: &CancelToken,
) -> Result<Value, String> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    let prompt = argument("prompt").ok_or("\"prompt\" must be a string")?.to_owned();
    let cwd = shared.control.config().workspace.cwd.clone();
    let mut session = shared
        .host()
        .open(&cwd, argument("session"), &[], Box::new(|files| files), cancel)
        .map_err(reason)?;
    let control = session.control().clone();
    let ui = Arc::new(ClientUi { peer: shared.peer.clone(), is_offered: false, level: shared.level.clone() });
    control.set_approver(ui.clone());
    control.set_ui(ui);
    let describer = control.tools().describer();
    let ends = control.clone();
    let _guard = cancel.on_cancel(move || ends.abort());
    let asked = session.prompt(prompt, Vec::new(), &mut |event| {
        if let Event::Agent(AgentEvent::ToolStart { name, arguments, .. }) = event {
            progress.tell(describer.describe(name, arguments).title.as_deref().unwrap_or(name));
        }
        Ok(())
    });
    let (id, answer) = (session.header().id, session.last_answer());
    let limit = session.ended_by().map(str::to_owned);
    let closed = session.close();
    asked.and(closed).map_err(|error| error.0)?;
    let answer = answer.ok_or("The model gave no answer")?;
    let text = match answer.stop_reason {
        StopReason::Error | StopReason::Aborted => {
            let reason = answer.error_message.as_deref();
            return Err(reason.unwrap_or("The model's answer failed").to_owned());
        }
        _ => answer.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
    };
    let text = limit.map_or_else(|| text.clone(), |limit| format!("{text}\n\n{limit}"));
    Ok(json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"session": id, "text": text},
        "isError": false,
    }))
}
