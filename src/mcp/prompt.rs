//! Prompts of servers, as slash commands: `/mcp__server__prompt argument name=value`.

use super::server::Server;
use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::llm::message::{Block, Content, UserMessage, now_ms};
use crate::runtime::addition::{Completion, SlashCommand};
use crate::runtime::control::{Streaming, WeakControl};
use crate::runtime::task::Delivery;
use serde_json::{Map, Value};
use std::sync::{Arc, Weak};

/// Proposals of a server for an argument.
const PROPOSALS_MAX: usize = 100;

pub struct Prompt {
    name: String,
    own_name: String,
    description: Option<String>,
    /// Name, and whether it must be given.
    arguments: Vec<(String, bool)>,
    server: Weak<Server>,
    control: WeakControl,
}

impl Prompt {
    /// `name` is that of the command, `prompt` what the server says of it.
    pub fn new(name: String, prompt: &Value, server: &Arc<Server>, control: WeakControl) -> Self {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let arguments = prompt.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let arguments = arguments.filter_map(|about| {
            Some((text(about, "name")?, about.get("required") == Some(&Value::Bool(true))))
        });
        Self {
            name,
            own_name: text(prompt, "name").unwrap_or_default(),
            description: text(prompt, "description").or_else(|| text(prompt, "title")),
            arguments: arguments.collect(),
            server: Arc::downgrade(server),
            control,
        }
    }

    /// The arguments in their order; `name=value` names one, and the last one takes all that is left.
    fn read(&self, line: &str) -> Result<Map<String, Value>, String> {
        let mut given = Map::new();
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let named = word.split_once('=').and_then(|(name, value)| {
                self.arguments.iter().find(|(known, _)| known == name).map(|(name, _)| (name, value))
            });
            if let Some((name, value)) = named {
                given.insert(name.clone(), value.into());
                rest = after.trim_start();
                continue;
            }
            let mut open = self.arguments.iter().filter(|(name, _)| !given.contains_key(name));
            let Some((name, _)) = open.next() else {
                return Err(format!("/{} takes {}", self.name, self.usage()));
            };
            let is_last = open.next().is_none();
            let value = if is_last { rest } else { word };
            given.insert(name.clone(), value.trim().into());
            rest = if is_last { "" } else { after.trim_start() };
        }
        match self.arguments.iter().find(|(name, is_required)| *is_required && !given.contains_key(name)) {
            Some((name, _)) => Err(format!("\"{name}\" is missing: /{} {}", self.name, self.usage())),
            None => Ok(given),
        }
    }

    fn usage(&self) -> String {
        let shown = |(name, is_required): &(String, bool)| match is_required {
            true => format!("<{name}>"),
            false => format!("[{name}]"),
        };
        match self.arguments.is_empty() {
            true => "no arguments".to_owned(),
            false => self.arguments.iter().map(shown).collect::<Vec<_>>().join(" "),
        }
    }
}

impl SlashCommand for Prompt {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Asks the server for the prompt, and gives it to the model.
    fn run(&self, arguments: &str, cancel: &CancelToken) -> Result<(), String> {
        let given = self.read(arguments)?;
        let server = self.server.upgrade().ok_or("The MCP servers are closed")?;
        let params = json!({"name": self.own_name, "arguments": given});
        let answer =
            server.run(true, cancel, |client| client.request("prompts/get", params.clone(), cancel))?;
        let messages =
            answer.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let blocks: Vec<Block> = messages.iter().flat_map(blocks).collect();
        if blocks.is_empty() {
            return Err(server.error(format_args!("its prompt \"{}\" is empty", self.own_name)));
        }
        let control = self.control.upgrade().ok_or("The session is closed")?;
        let message =
            UserMessage { content: Content::Blocks(blocks), timestamp: now_ms(), extra: Default::default() };
        control.send(AgentMessage::User(Arc::new(message)), Delivery::Now(Streaming::FollowUp), true)
    }

    /// Proposes what the server proposes for the argument that is typed.
    fn complete(&self, prefix: &str, cancel: &CancelToken) -> Vec<Completion> {
        let (before, typed) = prefix.rsplit_once(' ').map_or(("", prefix), |(before, typed)| (before, typed));
        let position = before.split_whitespace().count();
        let named =
            typed.split_once('=').filter(|(name, _)| self.arguments.iter().any(|(known, _)| known == name));
        let (name, value) = match (named, self.arguments.get(position)) {
            (Some((name, value)), _) => (name, value),
            (None, Some((name, _))) => (name.as_str(), typed),
            (None, None) => return Vec::new(),
        };
        let params = json!({"ref": {"type": "ref/prompt", "name": self.own_name},
            "argument": {"name": name, "value": value}});
        let Some(server) = self.server.upgrade() else { return Vec::new() };
        let answer = server.run(true, cancel, |client| match client.offers("completions") {
            true => client.request("completion/complete", params.clone(), cancel),
            false => Ok(Value::Null),
        });
        let answer = answer.unwrap_or_default();
        let values = answer.pointer("/completion/values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).take(PROPOSALS_MAX);
        let start = prefix.strip_suffix(value).unwrap_or_default();
        let proposal = |value: &str| Completion {
            value: format!("{start}{value}"),
            label: value.to_owned(),
            description: None,
        };
        values.map(proposal).collect()
    }
}

/// The content of a message of a prompt. What an assistant is to have said is marked.
fn blocks(message: &Value) -> Vec<Block> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = message.get("content").unwrap_or(&Value::Null);
    let mark = if text(message, "role") == "assistant" { "[assistant] " } else { "" };
    match text(content, "type").as_str() {
        "text" => vec![Block::text(format!("{mark}{}", text(content, "text")))],
        "image" => vec![Block::image(text(content, "data"), text(content, "mimeType"))],
        "resource" => {
            let resource = content.get("resource").unwrap_or(&Value::Null);
            vec![Block::text(format!("{mark}{}:\n{}", text(resource, "uri"), text(resource, "text")))]
        }
        "resource_link" => vec![Block::text(format!("{mark}[Resource {}]", text(content, "uri")))],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_by_place_and_by_name() {
        let argument = |name: &str, is_required| (name.to_owned(), is_required);
        let prompt = Prompt {
            name: "p".into(),
            own_name: "p".into(),
            description: None,
            arguments: vec![argument("a", true), argument("b", false)],
            server: Weak::new(),
            control: WeakControl::default(),
        };
        for (line, expected) in [
            ("x", Ok(json!({"a": "x"}))),
            ("x y z", Ok(json!({"a": "x", "b": "y z"}))),
            ("b=1 x  y", Ok(json!({"b": "1", "a": "x  y"}))),
            ("c=1", Ok(json!({"a": "c=1"}))),
            ("", Err("\"a\" is missing: /p <a> [b]")),
            ("b=1", Err("\"a\" is missing: /p <a> [b]")),
            ("a=1 b=2 c", Err("/p takes <a> [b]")),
        ] {
            let found = prompt.read(line).map(Value::from);
            assert_eq!(
                found.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|text| *text),
                "{line}"
            );
        }
    }
}
