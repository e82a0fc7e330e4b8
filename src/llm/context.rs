//! The conversation for a request; its system messages carry the prompt and the tools.

use super::message::{Message, SystemMessage, ToolSpec};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default)]
pub struct Context {
    pub messages: Vec<Message>,
}

/// The prompt and the tools after all system messages were applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    pub contents: Vec<String>,
    pub sections: Map<String, Value>,
    pub tools: Vec<ToolSpec>,
}

impl Context {
    /// The result of applying all system messages in order, for providers that accept the prompt and tools
    /// only at the start.
    pub fn head(&self) -> Head {
        let mut head = Head::default();
        for message in &self.messages {
            if let Message::System(system) = message {
                head.apply(system);
            }
        }
        head
    }

    /// Every tool that was ever declared, once for each declaration.
    pub fn declared_tools(&self) -> impl Iterator<Item = &ToolSpec> {
        let systems = self.messages.iter().filter_map(|message| match message {
            Message::System(system) => Some(system),
            _ => None,
        });
        systems.flat_map(|system| &system.tools_added)
    }

    /// The messages that are not system messages.
    pub fn conversation(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|message| !matches!(message, Message::System(_)))
    }
}

impl Head {
    /// Applies a system message: sections are replaced by name (`null` removes one), tools are added and
    /// removed.
    pub fn apply(&mut self, system: &SystemMessage) {
        if system.replace == Some(true) {
            *self = Self::default();
        }
        let content = system.content.text();
        if !content.is_empty() {
            self.contents.push(content);
        }
        for (name, text) in system.sections.iter().flatten() {
            if text.is_null() {
                self.sections.shift_remove(name);
            } else {
                self.sections.insert(name.clone(), text.clone());
            }
        }
        self.tools.retain(|tool| !system.tools_removed.iter().any(|gone| gone.name == tool.name));
        for tool in &system.tools_added {
            match self.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => known.clone_from(tool),
                None => self.tools.push(tool.clone()),
            }
        }
    }

    /// The prompt as one text: contents, then sections, separated by empty lines.
    pub fn prompt(&self) -> String {
        let contents = self.contents.iter().map(String::as_str);
        let sections = self.sections.values().filter_map(Value::as_str);
        contents.chain(sections).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}
