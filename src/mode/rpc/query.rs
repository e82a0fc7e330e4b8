//! Commands that read the session without changing it.

use super::reply::Reply;
use super::server::Server;
use crate::base::json::json;
use crate::mode::REFERENCE_VERSION;
use crate::runtime::{ThinkingLevel, Tool};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The version of the protocol that `get_state` and `ready` name.
pub const PROTOCOL_VERSION: u32 = 1;

/// Capabilities beyond the commands of the TypeScript pi.
pub const CAPABILITIES: &[&str] = &[
    "abort_and_prompt",
    "interrupt_mode",
    "navigate_tree",
    "active_tools",
    "paged_messages",
    "cumulative_events",
    "attachments",
    "reload",
    "tool_approval",
    "host_tools",
];

/// Answers a question beside the conversation.
pub fn btw(server: &Server, question: String, reply: Reply) {
    let control = server.control.clone();
    server.beside("btw", reply, move |reply| {
        let answer = control.ask_aside(&question, control.root());
        reply.give(answer.map(|answer| json!({"answer": answer})));
    });
}

pub fn state(server: &Server, (): (), reply: Reply) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct State<'a, M> {
        model: M,
        thinking_level: ThinkingLevel,
        is_streaming: bool,
        is_compacting: bool,
        steering_mode: &'a str,
        follow_up_mode: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<Cow<'a, str>>,
        session_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_name: Option<&'a str>,
        auto_compaction_enabled: bool,
        message_count: usize,
        pending_message_count: usize,
        interrupt_mode: &'a str,
        auto_retry_enabled: bool,
        active_tools: &'a [String],
        cwd: Cow<'a, str>,
        protocol_version: u32,
        capabilities: &'a [&'a str],
        version: &'a str,
        reference_version: &'a str,
    }
    let now = server.control.snapshot();
    reply.data(State {
        model: now.model.shown(),
        thinking_level: now.thinking,
        is_streaming: now.is_streaming,
        is_compacting: now.is_compacting,
        steering_mode: now.steering_mode.name(),
        follow_up_mode: now.follow_up_mode.name(),
        session_file: now.session_file.as_deref().map(Path::to_string_lossy),
        session_id: &now.session_id,
        session_name: now.session_name.as_deref(),
        auto_compaction_enabled: now.switches.auto_compaction,
        message_count: now.message_count,
        pending_message_count: now.pending_message_count,
        interrupt_mode: now.switches.interrupt.name(),
        auto_retry_enabled: now.switches.auto_retry,
        active_tools: &now.active_tools,
        cwd: now.cwd.to_string_lossy(),
        protocol_version: PROTOCOL_VERSION,
        capabilities: CAPABILITIES,
        version: env!("CARGO_PKG_VERSION"),
        reference_version: REFERENCE_VERSION,
    });
}

/// Returns all messages, or one page of them.
pub fn messages(server: &Server, (offset, limit): (Option<usize>, Option<usize>), reply: Reply) {
    let all = server.control.messages();
    if offset.is_none() && limit.is_none() {
        return reply.data(json!({"messages": all}));
    }
    let offset = offset.unwrap_or(0);
    let end = offset.saturating_add(limit.unwrap_or(usize::MAX)).min(all.len());
    let part = all.get(offset..end).unwrap_or_default();
    let next = (end < all.len()).then_some(end);
    reply.data(json!({"messages": part, "total": all.len(), "nextOffset": next}));
}

pub fn entries(server: &Server, since: Option<String>, reply: Reply) {
    match server.control.tree().entries(since.as_deref()) {
        Some((entries, leaf)) => reply.data(json!({"entries": entries, "leafId": leaf})),
        None => reply.fail(format_args!("Entry not found: {}", since.unwrap_or_default())),
    }
}

/// Returns the tree as JSON text, without parsing it.
pub fn tree(server: &Server, (): (), reply: Reply) {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Tree {
        tree: Box<RawValue>,
        leaf_id: Option<String>,
    }
    let (tree, leaf_id) = server.control.tree().json();
    reply.give(RawValue::from_string(tree).map(|tree| Tree { tree, leaf_id }));
}

pub fn available_models(server: &Server, (): (), reply: Reply) {
    let models = server.control.models().available();
    let models: Vec<_> = models.iter().map(|model| model.shown()).collect();
    reply.data(json!({"models": models}));
}

pub fn thinking_levels(server: &Server, (): (), reply: Reply) {
    reply.data(json!({"levels": server.control.models().thinking_levels()}));
}

pub fn session_stats(server: &Server, (): (), reply: Reply) {
    reply.data(server.control.stats());
}

pub fn export_html(server: &Server, path: Option<String>, reply: Reply) {
    let control = server.control.clone();
    server.beside("export", reply, move |reply| {
        let written = control.export(path.as_deref().map(Path::new));
        reply.give(written.map(|path| json!({"path": path.to_string_lossy()})));
    });
}

pub fn fork_messages(server: &Server, (): (), reply: Reply) {
    let points = server.control.tree().fork_points().into_iter();
    let messages: Vec<Value> =
        points.map(|point| json!({"entryId": point.entry_id, "text": point.text})).collect();
    reply.data(json!({"messages": messages}));
}

pub fn last_assistant_text(server: &Server, (): (), reply: Reply) {
    reply.data(json!({"text": server.control.last_assistant_text()}));
}

pub fn commands(server: &Server, (): (), reply: Reply) {
    reply.data(json!({"commands": server.control.commands()}));
}

pub fn tools(server: &Server, (): (), reply: Reply) {
    let describe = |(tool, active): (Arc<dyn Tool>, bool)| {
        let info = tool.info();
        json!({
            "name": info.spec.name,
            "label": info.label,
            "description": info.spec.description,
            "parameters": info.spec.parameters,
            "active": active,
            "readOnly": info.reads_only,
        })
    };
    let tools: Vec<Value> = server.control.tools().all().into_iter().map(describe).collect();
    reply.data(json!({"tools": tools}));
}
