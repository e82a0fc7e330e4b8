//! Calls of the session's tools.

use super::peer::Peer;
use crate::base::json::json;
use crate::runtime::control::Control;
use crate::runtime::{Block, CancelToken, ToolInfo, ToolOutput};
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum characters of a message of progress.
const MESSAGE_MAX: usize = 200;

/// A tool as `tools/list` declares it.
pub fn declare(info: &ToolInfo) -> Value {
    json!({
        "name": info.spec.name,
        "title": info.label,
        "description": info.spec.description,
        "inputSchema": info.spec.parameters,
        "annotations": {"readOnlyHint": info.reads_only},
    })
}

/// Tells the client how a call goes on, if it asked for that.
pub struct Progress {
    peer: Peer,
    /// Null if the client does not want to know.
    token: Value,
    count: AtomicU64,
}

impl Progress {
    pub fn new(peer: Peer, token: Value) -> Self {
        Self { peer, token, count: AtomicU64::new(0) }
    }

    pub fn tell(&self, message: &str) {
        if self.token.is_null() {
            return;
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let message: String = message.chars().take(MESSAGE_MAX).collect();
        let params = json!({"progressToken": self.token, "progress": number, "message": message});
        self.peer.notify("notifications/progress", &params);
    }

    fn output(&self, output: &ToolOutput) {
        let text = output.content.iter().filter_map(Block::as_text).next_back().unwrap_or_default();
        if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
            self.tell(line);
        }
    }
}

/// Runs a tool. Returns the result for the client; a failure is one, too.
pub fn run(
    control: &Control,
    number: usize,
    name: &str,
    arguments: Map<String, Value>,
    progress: &Progress,
    cancel: &CancelToken,
) -> Value {
    let id = format!("mcp-{number}");
    let update = |output: ToolOutput| progress.output(&output);
    let (output, is_error) = control.begin_call(id, None, name, arguments, cancel).run(&update);
    let content: Vec<Value> = output.content.iter().filter_map(block).collect();
    let mut result = json!({"content": content, "isError": is_error});
    if let Some(structured) = output.structured.filter(Value::is_object) {
        result["structuredContent"] = structured;
    }
    result
}

fn block(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => Some(json!({"type": "text", "text": text.text})),
        Block::Image(image) => {
            Some(json!({"type": "image", "data": image.data, "mimeType": image.mime_type}))
        }
        _ => None,
    }
}
