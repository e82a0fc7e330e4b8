//! Tools that the client runs itself: `tool_call_request` out, `tool_call_response` in.
//!
//! The agent treats them like other tools: arguments are checked, calls run in parallel, results are in
//! order. A call waits on its own thread; an abort, the tool's time limit and a closed client end the wait
//! immediately, and `tool_call_cancel` is sent.

use super::field::{Fields, HostToolSpec};
use crate::mode::output::Output;
use crate::runtime::event_json::Line;
use crate::runtime::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crossbeam_channel::{Receiver, Sender, at, bounded, never, select};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Maximum updates queued for the call's thread. An update replaces earlier ones.
const UPDATES_MAX: usize = 16;

/// The client's tools, and their unfinished calls.
pub struct HostTools {
    output: Arc<Output>,
    open: Mutex<HashMap<String, Caller>>,
    last_id: AtomicU64,
}

/// The thread that waits for the result of a call.
struct Caller {
    updates: Sender<Fields>,
    result: Sender<Fields>,
}

struct HostTool {
    spec: HostToolSpec,
    client: Arc<HostTools>,
}

impl HostTools {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output, open: Mutex::default(), last_id: AtomicU64::new(0) }
    }

    pub fn tool(self: &Arc<Self>, spec: HostToolSpec) -> Arc<dyn Tool> {
        Arc::new(HostTool { spec, client: self.clone() })
    }

    /// Handles a `tool_call_update`. If the queue is full it is dropped, since a later one follows.
    pub fn update(&self, id: &Value, update: Fields) {
        let open = self.open();
        if let Some(caller) = id.as_str().and_then(|id| open.get(id)) {
            let _ = caller.updates.try_send(update);
        }
    }

    /// Handles a `tool_call_response`. A response without a call is dropped.
    pub fn respond(&self, id: &Value, result: Fields) {
        let caller = id.as_str().and_then(|id| self.open().remove(id));
        if let Some(caller) = caller {
            let _ = caller.result.try_send(result);
        }
    }

    fn begin(&self) -> (String, Receiver<Fields>, Receiver<Fields>) {
        let number = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("call-{number}");
        let (updates, shown) = bounded(UPDATES_MAX);
        let (result, ended) = bounded(1);
        self.open().insert(id.clone(), Caller { updates, result });
        (id, shown, ended)
    }

    /// Tells the client that the result of a call is no longer awaited.
    fn give_up(&self, id: &str, reason: &str) {
        self.open().remove(id);
        self.send(&Line::ToolCallCancel { id, reason });
    }

    fn send(&self, line: &Line<'_>) {
        // A reader that has gone cancels every call.
        let _ = self.output.line(line);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Caller>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tool for HostTool {
    fn info(&self) -> &ToolInfo {
        &self.spec.info
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let client = &self.client;
        let name = &self.spec.info.spec.name;
        let end = self.spec.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let late = end.map_or_else(never, at);
        let (id, updates, ended) = client.begin();
        client.send(&Line::ToolCallRequest { id: &id, call: call.id, name, arguments: call.arguments });
        let show = |update: &Fields| {
            if let Ok((output, _)) = read(update) {
                (call.update)(output);
            }
        };
        loop {
            select! {
                recv(ended) -> result => {
                    updates.try_iter().for_each(|update| show(&update));
                    let result = result.map_err(|_| ToolError::new("The client gave no result"))?;
                    return conclude(name, &result);
                }
                recv(updates) -> update => if let Ok(update) = update {
                    show(&update);
                },
                recv(call.cancel.receiver()) -> _ => {
                    client.give_up(&id, "aborted");
                    return Err(ToolError::aborted());
                }
                recv(late) -> _ => {
                    client.give_up(&id, "timeout");
                    let limit = self.spec.timeout.unwrap_or_default();
                    return Err(ToolError::new(format!("The tool {name} gave no result within {limit:?}")));
                }
            }
        }
    }
}

fn conclude(name: &str, answer: &Fields) -> Result<ToolOutput, ToolError> {
    let (output, is_error) = read(answer)
        .map_err(|fault| ToolError::new(format!("The result of {name} is not understood: {fault}")))?;
    if is_error { Err(output.into_error()) } else { Ok(output) }
}

/// Parses the result in a response or an update, and whether it is an error.
fn read(Fields(fields): &Fields) -> Result<(ToolOutput, bool), String> {
    ToolOutput::read(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::runtime::Block;

    #[track_caller]
    fn check(fields: Value, expected: Result<&str, &str>) {
        let Value::Object(fields) = fields else {
            panic!("no object");
        };
        let got = conclude("t", &Fields(fields));
        let text = |output: ToolOutput| {
            let texts = output.content.iter().filter_map(Block::as_text);
            texts.collect::<Vec<_>>().join("|")
        };
        let got = got.map(text).map_err(|error| error.message);
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn results_are_text_or_blocks() {
        check(json!({"content": "a"}), Ok("a"));
        check(json!({}), Ok(""));
        check(
            json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA", "mimeType": "image/png"},
                               {"type": "text", "text": "b"}]}),
            Ok("a|b"),
        );
        check(json!({"content": "no", "isError": true}), Err("no"));
        let wrong = "The result of t is not understood: ";
        for (fields, fault) in [
            (json!({"content": 1}), "\"content\" must be a string or a list of blocks"),
            (json!({"content": [{"type": "song"}]}), "a block of \"content\" is neither text nor an image"),
            (json!({"content": ["a"]}), "a block of \"content\" is neither text nor an image"),
            (json!({"terminate": 1}), "\"terminate\" must be true or false"),
            (json!({"isError": 1}), "\"isError\" must be true or false"),
        ] {
            check(fields, Err(&format!("{wrong}{fault}")));
        }
    }
}
