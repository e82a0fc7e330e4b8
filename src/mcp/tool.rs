//! The tools of servers, as tools of the agent.

use super::config::Exposure;
use super::result::Maker;
use super::server::Server;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::{self, Invocation, Namespace, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::codemode::search::{self, Document};
use crate::llm::message::ToolSpec;
use crate::runtime::control::Control;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// The name of the tool that finds tools.
pub const SEARCH_TOOL: &str = "tool_search";

/// Matches that a search declares if the model does not say how many.
const MATCHES: u64 = 8;

/// A tool of a server.
pub struct ServerTool {
    info: ToolInfo,
    /// The name that the server knows.
    own_name: String,
    /// The server runs each call as a task.
    wants_task: bool,
    server: Arc<Server>,
    control: Control,
}

impl ServerTool {
    /// `name` is the model's, `tool` what the server says of it.
    pub fn new(
        name: String,
        tool: &Value,
        exposure: Exposure,
        namespace: &Arc<Namespace>,
        server: &Arc<Server>,
        control: &Control,
    ) -> Self {
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
        };
        let hints = tool.get("annotations").unwrap_or(&Value::Null);
        let own_name = text(tool, "name");
        let label = format!("{}/{own_name}", server.name());
        let words = [text(tool, "description"), text(tool, "title"), text(hints, "title")];
        let description = words.into_iter().find(|text| !text.is_empty());
        let mut parameters = tool.get("inputSchema").cloned().unwrap_or_else(|| json!({}));
        if let Value::Object(schema) = &mut parameters {
            schema.entry("type").or_insert_with(|| "object".into());
            schema.entry("properties").or_insert_with(|| json!({}));
        }
        let result = tool.get("outputSchema").filter(|schema| schema.is_object()).map(|schema| {
            json!({"type": "object", "required": ["content"], "$defs": schema.get("$defs"), "properties": {
                "content": {"type": "array", "items": {"type": "object"}},
                "structuredContent": schema,
                "isError": {"type": "boolean"},
            }})
        });
        let info = ToolInfo {
            result,
            spec: ToolSpec {
                name,
                description: description
                    .unwrap_or_else(|| format!("Tool {own_name} of the MCP server {}", server.name())),
                parameters,
                ..ToolSpec::default()
            },
            label,
            reads_only: hints.get("readOnlyHint") == Some(&Value::Bool(true)),
            exposure: match exposure {
                Exposure::Direct => tool::Exposure::Direct,
                Exposure::Codemode | Exposure::Deferred => tool::Exposure::Deferred,
                Exposure::Hidden => tool::Exposure::Hidden,
            },
            namespace: Some(namespace.clone()),
            ..ToolInfo::default()
        };
        let wants_task = tool.pointer("/execution/taskSupport").is_some_and(|word| word == "required");
        Self { info, own_name, wants_task, server: server.clone(), control: control.clone() }
    }
}

impl Tool for ServerTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        CallInfo { title: Some(self.info.label.clone().into()), ..CallInfo::of(arguments) }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let details = json!({"server": self.server.name(), "tool": self.own_name});
        let progress = |progress: &Value| {
            let text = match progress.get("message").and_then(Value::as_str) {
                Some(message) => message.to_owned(),
                None => {
                    let number = |name: &str| progress.get(name).map(ToString::to_string);
                    let total = number("total").map(|total| format!("/{total}")).unwrap_or_default();
                    format!("Progress {}{total}", number("progress").unwrap_or_default())
                }
            };
            (call.update)(ToolOutput::text(text).with_details(details.clone()));
        };
        let outcome = self.server.run(false, call.cancel, |client| {
            client.call(&self.own_name, call.arguments, self.wants_task, &progress, call.cancel)
        });
        let mut result = match outcome {
            Ok(result) => result,
            Err(_) if call.cancel.is_cancelled() => return Err(ToolError::aborted()),
            Err(text) => return Err(ToolError::new(text)),
        };
        let config = self.control.config();
        let server = self.server.name();
        let can_read = self.server.offer().has_resources;
        let made = Maker { server: &server, workspace: &config.workspace, call, can_read }.of_result(&result);
        if let Some(result) = result.as_object_mut() {
            result.shift_remove("_meta");
        }
        let mut details = details;
        if let Some(path) = &made.full_output {
            details["fullOutputPath"] = path.as_str().into();
        }
        if result.get("isError") == Some(&Value::Bool(true)) {
            let text = Some(made.text()).filter(|text| !text.is_empty());
            let message = text.unwrap_or_else(|| self.server.error(format_args!("{} failed", self.own_name)));
            return Err(ToolError { message, details: Some(details), structured: Some(Box::new(result)) });
        }
        let output = ToolOutput { content: made.content, structured: Some(result), ..ToolOutput::default() };
        Ok(output.with_details(details))
    }
}

/// What a tool needs of all servers.
pub trait Servers: Send + Sync {
    /// Waits for servers that are being connected to.
    fn wait(&self, call: &Invocation<'_>);

    /// The tools that a search can find.
    fn searched(&self) -> Vec<Arc<dyn Tool>>;

    /// The servers with resources.
    fn with_resources(&self) -> Vec<Arc<Server>>;
}

/// Finds tools, and declares them for the next request.
pub struct SearchTool {
    info: ToolInfo,
    servers: Weak<dyn Servers>,
    control: Control,
}

impl SearchTool {
    pub fn new(servers: Weak<dyn Servers>, control: &Control) -> Self {
        let parameters = json!({"type": "object", "required": ["query"], "properties": {
            "query": {"type": "string", "description": "Words that describe the tool, or its name"},
            "limit": {"type": "number", "description": format!("Most tools to declare (default {MATCHES})")},
        }});
        let description = "Searches the tools that are not declared yet, those of MCP servers among them, by words of \
            their names, descriptions and parameters. What fits is declared: call it from the next turn on.";
        let info = ToolInfo {
            spec: ToolSpec {
                name: SEARCH_TOOL.into(),
                description: description.into(),
                parameters,
                ..ToolSpec::default()
            },
            label: SEARCH_TOOL.into(),
            snippet: Some("Find tools that are not declared yet, and declare them".into()),
            reads_only: true,
            exposure: tool::Exposure::ModelOnly,
            ..ToolInfo::default()
        };
        Self { info, servers, control: control.clone() }
    }
}

impl Tool for SearchTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let query = call.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        if query.trim().is_empty() {
            return Err(ToolError::new("The query is empty: name words of what the tool should do"));
        }
        let limit = match call.arguments.get("limit") {
            Some(limit) => limit.as_f64().filter(|limit| *limit >= 1.0 && limit.fract() == 0.0),
            None => Some(MATCHES as f64),
        };
        let limit = limit.ok_or_else(|| ToolError::new("limit must be a whole number above 0"))?;
        let servers = self.servers.upgrade().ok_or_else(|| ToolError::new("The servers are closed"))?;
        servers.wait(call);
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        let all = self.control.tools().all();
        let is_open = |tool: &Arc<dyn Tool>| {
            let name = &tool.info().spec.name;
            all.iter().any(|(known, active)| !active && known.info().spec.name == *name)
        };
        let found: Vec<_> = servers.searched().into_iter().filter(is_open).collect();
        let documents: Vec<Document> = found.iter().map(|tool| Document::of(tool.info())).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates as wanted
        let ranked = search::rank(query, &documents, limit as usize);
        let matches: Vec<_> = ranked.iter().filter_map(|at| found.get(*at)).map(|tool| tool.info()).collect();
        let names: Vec<String> = matches.iter().map(|info| info.spec.name.clone()).collect();
        if names.is_empty() {
            let text = "No tool fits. Try other words, or fewer.";
            return Ok(ToolOutput::text(text).with_details(json!({"loaded": []})));
        }
        self.control.tools().activate_too(&names);
        let line = |info: &&ToolInfo| {
            format!("- {}: {}", info.spec.name, info.spec.description.lines().next().unwrap_or_default())
        };
        let lines: Vec<String> = matches.iter().map(line).collect();
        let head = match names.len() {
            1 => "1 tool is declared from your next turn on:".to_owned(),
            count => format!("{count} tools are declared from your next turn on:"),
        };
        Ok(ToolOutput::text(format!("{head}\n{}", lines.join("\n"))).with_details(json!({"loaded": names})))
    }
}
