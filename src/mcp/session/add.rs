//! What the servers of a session add to it: tools, commands, and a section of the prompt.

use super::{Mcp, owner, with_resources};
use crate::agent::tool::{Namespace, Tool};
use crate::base::json::json;
use crate::codemode;
use crate::llm::estimate::text_tokens;
use crate::mcp::command::Slash;
use crate::mcp::config::{self, Exposure};
use crate::mcp::name::Names;
use crate::mcp::prompt::Prompt;
use crate::mcp::resource::{self, ResourceTool};
use crate::mcp::section;
use crate::mcp::server::Server;
use crate::mcp::tool::{SearchTool, ServerTool, Servers};
use crate::runtime::addition::{Addition, Arranger, SlashCommand};
use crate::runtime::ui::Change;
use serde_json::Value;
use std::sync::{Arc, Weak};

/// The part of a model's window that declarations may take.
const WINDOW_PART: u64 = 10;

impl Mcp {
    /// Makes the section of the prompt anew.
    pub(super) fn describe(&self) {
        let servers = self.servers();
        let listed = servers.iter().filter(|server| {
            let entry = server.entry();
            entry.is_enabled() && entry.may_expose(Exposure::is_searched)
        });
        let has_scripts = self.has_scripts();
        let row = |server: &Arc<Server>| {
            let entry = server.entry();
            let may = |wanted: Exposure| entry.may_expose(|exposure| exposure == wanted);
            let reached_by = match (has_scripts && may(Exposure::Codemode), may(Exposure::Deferred)) {
                (true, false) => section::WAYS[0],
                (false, _) => section::WAYS[1],
                (true, true) => section::WAYS[2],
            };
            section::Row { name: server.name(), reached_by, summary: summary(server) }
        };
        let rows: Vec<section::Row> = listed.map(row).collect();
        self.inside().section = section::text(&rows);
    }

    /// True if scripts can call tools: codemode is active, or is switched on for servers.
    fn has_scripts(&self) -> bool {
        let all = self.control.tools().all();
        let scripts = all.iter().find(|(tool, _)| tool.info().spec.name == codemode::NAME);
        scripts.is_some_and(|(_, is_active)| *is_active || !self.inside().leaves_codemode)
    }

    /// Adds to the session what the servers offer now.
    pub(super) fn update(&self) {
        let has_scripts = self.has_scripts();
        let mut inside = self.inside();
        if inside.is_closed {
            return;
        }
        let budget = self.budget();
        let mut all: Vec<Arc<dyn Tool>> = Vec::new();
        let (mut spent, mut over) = (0, 0);
        let servers = inside.servers.clone();
        for server in &servers {
            let entry = server.entry();
            if !entry.is_enabled() {
                continue;
            }
            let offer = server.offer();
            let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let own: Vec<String> = offer.tools.iter().map(name).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let names = inside.names.of(&entry.name, &own);
            let namespace = Arc::new(Namespace {
                name: config::namespace(&entry.name),
                aliases: vec![entry.name.clone()],
                description: Some(summary(server)).filter(|text| !text.is_empty()),
                instructions: offer.instructions.clone(),
            });
            for ((tool, own), name) in offer.tools.iter().zip(own).zip(names) {
                let mut exposure = entry.exposure_of(own);
                if exposure == Exposure::Hidden {
                    continue;
                }
                if exposure == Exposure::Direct {
                    let tokens = tokens(tool);
                    if inside.declared.contains(&name) || spent + tokens <= budget {
                        spent += tokens;
                        inside.declared.insert(name.clone());
                    } else {
                        exposure = Exposure::Deferred;
                        over += 1;
                    }
                }
                let tool = ServerTool::new(name, tool, exposure, &namespace, server, &self.control);
                all.push(Arc::new(tool));
            }
        }
        let resources = self.resource_tools(&servers);
        let arranger = resources.last().map(|tool| tool.clone() as Arc<dyn Arranger>);
        all.extend(resources.into_iter().map(|tool| tool as Arc<dyn Tool>));
        let may_expose = |wanted: &dyn Fn(Exposure) -> bool| {
            servers
                .iter()
                .map(|server| server.entry())
                .any(|entry| entry.is_enabled() && entry.may_expose(wanted))
        };
        let by_scripts = has_scripts && may_expose(&|exposure| exposure == Exposure::Codemode);
        let may_search = over > 0
            || may_expose(&|exposure| {
                exposure == Exposure::Deferred || (exposure == Exposure::Codemode && !has_scripts)
            });
        let switches =
            by_scripts && !inside.leaves_codemode && !std::mem::replace(&mut inside.has_switched, by_scripts);
        inside.searched = all.iter().filter(|tool| !tool.info().exposure.is_declared()).cloned().collect();
        let mut tools = all;
        if may_search {
            tools.insert(0, Arc::new(SearchTool::new(self.weak(), &self.control)));
        }
        let sections: Vec<(String, String)> =
            inside.section.iter().map(|text| (section::NAME.to_owned(), text.clone())).collect();
        let spec = |tool: &Arc<dyn Tool>| json!([tool.info().spec, tool.info().exposure.name()]);
        let enabled = servers.iter().filter(|server| server.entry().is_enabled());
        let of = |server: &Arc<Server>| {
            server.offer().prompts.iter().map(|prompt| json!([server.name(), prompt])).collect::<Vec<_>>()
        };
        let prompts: Value = enabled.flat_map(of).collect();
        let added = json!([sections, tools.iter().map(spec).collect::<Vec<_>>(), prompts]);
        if inside.added != added {
            let none = json!([]);
            let prompts_changed = inside.added.get(2).unwrap_or(&none) != &added[2];
            inside.added = added;
            let source = json!({"path": "builtin:mcp", "source": "builtin", "scope": "temporary", "origin": "top-level"});
            let mut commands: Vec<Arc<dyn SlashCommand>> = vec![Arc::new(Slash::new(self.this.clone()))];
            commands.extend(self.prompts(&servers));
            let addition = Addition { tools, commands, sections, arranger, source, ..Addition::default() };
            self.control.set_addition(owner(), addition);
            drop(inside);
            if prompts_changed && let Some(ui) = self.control.ui() {
                ui.show(Change::Resources);
            }
        } else {
            drop(inside);
        }
        if switches {
            self.control.tools().activate_too(&[codemode::NAME.to_owned()]);
        }
        if over > 0 {
            self.tell_once(format!(
                "{over} MCP tools with direct exposure are found by tool_search only: declared, they would take more \
                 than {budget} tokens (setting mcp.directTokens, and a tenth of the model's window)"
            ));
        }
    }

    /// The prompts of enabled servers, as commands.
    fn prompts(&self, servers: &[Arc<Server>]) -> Vec<Arc<dyn SlashCommand>> {
        let mut commands: Vec<Arc<dyn SlashCommand>> = Vec::new();
        for server in servers.iter().filter(|server| server.entry().is_enabled()) {
            let offer = server.offer();
            let name =
                |prompt: &Value| prompt.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let own: Vec<String> = offer.prompts.iter().map(name).collect();
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let names = Names::default().of(&server.name(), &own);
            for (prompt, name) in offer.prompts.iter().zip(names) {
                commands.push(Arc::new(Prompt::new(name, prompt, server, self.control.downgrade())));
            }
        }
        commands
    }

    /// The tools for resources, if some server offers any.
    fn resource_tools(&self, servers: &[Arc<Server>]) -> Vec<Arc<ResourceTool>> {
        let widest = with_resources(servers).map(|server| server.entry().exposure()).min();
        widest.map(|exposure| resource::tools(exposure, &self.weak(), &self.control)).unwrap_or_default()
    }

    fn weak(&self) -> Weak<dyn Servers> {
        self.this.clone()
    }

    /// Tokens that declarations of tools may take.
    fn budget(&self) -> u64 {
        let window = self.control.models().limiting().context_window;
        let set = self.control.config().settings.count("mcp.directTokens");
        if window == 0 { set } else { set.min(window / WINDOW_PART) }
    }
}

/// What a server offers, in a line.
fn summary(server: &Server) -> String {
    let entry = server.entry();
    let offer = server.offer();
    let text = entry.description().or(offer.instructions.as_deref()).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Tokens of a tool's declaration.
pub fn tokens(tool: &Value) -> u64 {
    let part = |name: &str| tool.get(name).map(ToString::to_string).unwrap_or_default();
    text_tokens(&part("name")) + text_tokens(&part("description")) + text_tokens(&part("inputSchema"))
}
