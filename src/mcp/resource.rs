//! The tools for resources of servers: `list_mcp_resources`, `list_mcp_resource_templates`, `read_mcp_resource`.
//!
//! Their names, arguments and answers are those that models know from other programs.

use super::client::Kind;
use super::config::Exposure;
use super::result::{Maker, READ_TOOL};
use super::server::Server;
use super::tool::Servers;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::{self, Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::base::order::Order;
use crate::llm::message::{Block, ToolSpec};
use crate::runtime::addition::Arranger;
use crate::runtime::config::Config;
use crate::runtime::control::Control;
use serde_json::{Map, Value};
use std::sync::{Arc, Weak};
use std::thread;

/// The beginning of paths that name resources.
const SCHEME: &str = "mcp://";

#[derive(Clone, Copy, PartialEq)]
enum Work {
    List(Kind),
    Read,
}

pub struct ResourceTool {
    info: ToolInfo,
    work: Work,
    servers: Weak<dyn Servers>,
    control: Control,
    this: Weak<Self>,
}

/// The three tools, reached as `exposure` says.
pub fn tools(exposure: Exposure, servers: &Weak<dyn Servers>, control: &Control) -> Vec<Arc<ResourceTool>> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let list = json!({"type": "object", "additionalProperties": false, "properties": {
        "server": text("Name of the server; without it, all servers"),
        "cursor": text("nextCursor of the answer before, for the next part of a server's list"),
    }});
    let read = json!({"type": "object", "additionalProperties": false, "required": ["server", "uri"], "properties": {
        "server": text("Name of the server, as list_mcp_resources gives it"),
        "uri": text("Address of the resource, as list_mcp_resources gives it"),
    }});
    let rows = [
        (
            "list_mcp_resources",
            Work::List(Kind::Resources),
            "Lists resources that MCP servers offer: files, schemas and other data to be read.",
            list.clone(),
        ),
        (
            "list_mcp_resource_templates",
            Work::List(Kind::Templates),
            "Lists templates of addresses for resources that MCP servers offer without listing each.",
            list,
        ),
        (
            READ_TOOL,
            Work::Read,
            "Reads a resource of an MCP server, as read does with the path mcp://SERVER/URI.",
            read,
        ),
    ];
    let make = |(name, work, description, parameters): (&str, Work, &str, Value)| {
        let info = ToolInfo {
            spec: ToolSpec {
                name: name.into(),
                description: description.into(),
                parameters,
                ..ToolSpec::default()
            },
            label: name.into(),
            result: Some(json!({"type": "object"})),
            reads_only: true,
            exposure: match exposure {
                Exposure::Direct => tool::Exposure::Direct,
                _ => tool::Exposure::Deferred,
            },
            ..ToolInfo::default()
        };
        let (servers, control) = (servers.clone(), control.clone());
        Arc::new_cyclic(|this| ResourceTool { info, work, servers, control, this: this.clone() })
    };
    rows.into_iter().map(make).collect()
}

impl Tool for ResourceTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        self.with_servers(call, |servers| match self.work {
            Work::List(kind) => self.list(kind, servers, call),
            Work::Read => {
                let word = |name: &str| argument(call, name).unwrap_or_default();
                self.read(servers, word("server"), word("uri"), call)
            }
        })
    }
}

/// The tool `read`, which also reads resources: `mcp://SERVER/URI`.
struct Reader {
    /// The tool as it is without servers.
    inner: Arc<dyn Tool>,
    resources: Arc<ResourceTool>,
}

impl Tool for Reader {
    fn info(&self) -> &ToolInfo {
        self.inner.info()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.inner.prepare(arguments)
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        self.inner.describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let Some(place) = argument(call, "path").and_then(|path| path.strip_prefix(SCHEME)) else {
            return self.inner.run(call);
        };
        let (name, uri) = place.split_once('/').unwrap_or((place, ""));
        self.resources.with_servers(call, |servers| self.resources.read(servers, name, uri, call))
    }
}

impl Arranger for ResourceTool {
    /// Lets the built-in tool `read` read resources, where there is a tool for them.
    fn arrange(&self, active: &mut [Arc<dyn Tool>], all: &[Arc<dyn Tool>], config: &Config) -> Vec<String> {
        let is_built_in = |tool: &Arc<dyn Tool>| {
            tool.info().spec.name == "read" && config.tools.iter().any(|known| Arc::ptr_eq(known, tool))
        };
        if all.iter().any(|tool| tool.info().spec.name == READ_TOOL)
            && let Some(tool) = active.iter_mut().find(|tool| is_built_in(tool))
            && let Some(resources) = self.this.upgrade()
        {
            *tool = Arc::new(Reader { inner: tool.clone(), resources });
        }
        Vec::new()
    }
}

impl ResourceTool {
    /// Does something with the servers that have resources, once they are there.
    fn with_servers(
        &self,
        call: &Invocation<'_>,
        work: impl FnOnce(&[Arc<Server>]) -> Result<ToolOutput, String>,
    ) -> Result<ToolOutput, ToolError> {
        let servers = self.servers.upgrade().ok_or_else(|| ToolError::new("The servers are closed"))?;
        servers.wait(call);
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        work(&servers.with_resources()).map_err(|text| match call.cancel.is_cancelled() {
            true => ToolError::aborted(),
            false => ToolError::new(text),
        })
    }
}

/// An argument that is not blank.
fn argument<'a>(call: &'a Invocation<'_>, name: &str) -> Option<&'a str> {
    call.arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

fn find<'a>(servers: &'a [Arc<Server>], name: &str) -> Result<&'a Arc<Server>, String> {
    servers.iter().find(|server| server.name() == name).ok_or_else(|| {
        let names: Vec<String> = servers.iter().map(|server| server.name()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("MCP server \"{name}\" has no resources. Servers with resources: {names}")
    })
}

impl ResourceTool {
    fn list(&self, kind: Kind, servers: &[Arc<Server>], call: &Invocation<'_>) -> Result<ToolOutput, String> {
        let cursor = argument(call, "cursor");
        let mut answer = json!({});
        match argument(call, "server") {
            Some(name) => {
                let server = find(servers, name)?;
                let page = server.run(true, call.cancel, |client| client.page(kind, cursor, call.cancel))?;
                answer["server"] = name.into();
                answer[kind.field()] = listed(name, page.entries).collect();
                if let Some(next) = page.next {
                    answer["nextCursor"] = next.into();
                }
            }
            None if cursor.is_some() => return Err("cursor goes with a server only".into()),
            None => {
                let (entries, errors) = all(kind, servers, call);
                answer[kind.field()] = entries.into();
                if !errors.is_empty() {
                    answer["errors"] = errors.into();
                }
            }
        }
        Ok(self.output(argument(call, "server").unwrap_or_default(), call, answer, |maker, answer| {
            maker.limit(vec![Block::text(answer.to_string())])
        }))
    }

    fn read(
        &self,
        servers: &[Arc<Server>],
        name: &str,
        uri: &str,
        call: &Invocation<'_>,
    ) -> Result<ToolOutput, String> {
        let server = find(servers, name)?;
        let mut contents = server.run(true, call.cancel, |client| client.read(uri, call.cancel))?;
        for content in contents.iter_mut().filter_map(Value::as_object_mut) {
            content.shift_remove("_meta");
        }
        let answer = json!({"server": name, "uri": uri, "contents": contents});
        Ok(self.output(name, call, answer, |maker, _| match contents.as_slice() {
            [] => maker.limit(vec![Block::text(format!("Resource {uri} is empty."))]),
            contents => maker.of_resource(contents),
        }))
    }

    fn output(
        &self,
        server: &str,
        call: &Invocation<'_>,
        answer: Value,
        make: impl Fn(&Maker<'_>, &Value) -> super::result::Made,
    ) -> ToolOutput {
        let config = self.control.config();
        let made = make(&Maker { server, workspace: &config.workspace, call, can_read: true }, &answer);
        let mut details = json!({"server": server, "tool": self.info.spec.name});
        if let Some(path) = made.full_output {
            details["fullOutputPath"] = path.into();
        }
        let output = ToolOutput { content: made.content, structured: Some(answer), ..ToolOutput::default() };
        output.with_details(details)
    }
}

/// The lists of all servers, and what could not be listed.
fn all(kind: Kind, servers: &[Arc<Server>], call: &Invocation<'_>) -> (Vec<Value>, Vec<Value>) {
    let cancel = call.cancel;
    let list = |server: &Arc<Server>| server.run(true, cancel, |client| client.list(kind, cancel));
    let mut servers: Vec<&Arc<Server>> = servers.iter().collect();
    servers.order_by_key(|server| server.name());
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let threads: Vec<_> = servers.iter().map(|server| scope.spawn(move || list(server))).collect();
        for (server, thread) in servers.iter().zip(threads) {
            let name = server.name();
            match thread.join() {
                Ok(Ok(list)) => entries.extend(listed(&name, list)),
                Ok(Err(error)) => errors.push(json!({"server": name, "error": error})),
                Err(_) => errors.push(json!({"server": name, "error": "it could not be asked"})),
            }
        }
    });
    (entries, errors)
}

/// Entries of a list with their server. What only a program with windows can show is left out.
fn listed(server: &str, entries: Vec<Value>) -> impl Iterator<Item = Value> {
    entries.into_iter().filter(|entry| !is_app(entry)).map(move |entry| {
        let mut all = json!({"server": server});
        if let (Value::Object(entry), Some(all)) = (entry, all.as_object_mut()) {
            let fields =
                entry.into_iter().filter(|(name, _)| !matches!(name.as_str(), "_meta" | "icons" | "server"));
            all.extend(fields);
        }
        all
    })
}

fn is_app(entry: &Value) -> bool {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind: String = text("mimeType").chars().filter(|c| !c.is_whitespace() && *c != '"').collect();
    text("uri").starts_with("ui://")
        || text("uriTemplate").starts_with("ui://")
        || kind.to_ascii_lowercase().contains(";profile=mcp-app")
}
