//! The prompt and the tools of a request, and which system messages stay inside the conversation.
//!
//! A model that takes system messages only at the start is told the sum of all of them there. One that
//! takes them anywhere is told the first at the start and the others where they stand, so that a later
//! change leaves the cached beginning as it was.

use crate::llm::context::Context;
use crate::llm::message::{Message, SystemMessage, ToolSpec};
use std::collections::{HashMap, HashSet};

pub struct Transcript<'a> {
    /// What stands before the conversation.
    pub prompt: String,
    /// The tools declared in that place.
    pub initial_tools: Vec<ToolSpec>,
    /// The tools that can be called now.
    pub current_tools: Vec<ToolSpec>,
    /// What follows the prompt. Has system messages only if they stay in place.
    pub messages: Vec<&'a Message>,
}

impl<'a> Transcript<'a> {
    /// `in_place`: the model takes system messages inside the conversation.
    pub fn new(context: &'a Context, in_place: bool) -> Self {
        let head = context.head();
        let messages = &context.messages;
        // A message that replaces all before it cannot be said in place.
        let in_place = in_place
            && !messages
                .iter()
                .skip(1)
                .any(|m| matches!(m, Message::System(system) if system.replace == Some(true)));
        if !in_place {
            return Self {
                prompt: head.prompt(),
                initial_tools: head.tools.clone(),
                current_tools: head.tools,
                messages: context.conversation().collect(),
            };
        }
        match messages.split_first() {
            Some((Message::System(first), rest)) => Self {
                prompt: first.prompt(),
                initial_tools: first.tools_added.clone(),
                current_tools: head.tools,
                messages: rest.iter().collect(),
            },
            _ => Self {
                prompt: String::new(),
                initial_tools: Vec::new(),
                current_tools: head.tools,
                messages: messages.iter().collect(),
            },
        }
    }

    /// The system messages that stay in place.
    pub fn later(&self) -> impl Iterator<Item = &'a SystemMessage> {
        self.messages.iter().filter_map(|message| match message {
            Message::System(system) => Some(system.as_ref()),
            _ => None,
        })
    }

    /// Tools that were declared after the start under new names, each once, as declared last.
    pub fn later_tools(&self) -> Vec<&'a ToolSpec> {
        let mut tools: Vec<&ToolSpec> = Vec::new();
        for tool in self.later().flat_map(|system| &system.tools_added) {
            if self.initial_tools.iter().any(|t| t.name == tool.name) {
                continue;
            }
            match tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => *known = tool,
                None => tools.push(tool),
            }
        }
        tools
    }

    /// True when tools were only ever added, under new names.
    pub fn only_adds_tools(&self) -> bool {
        let mut names = HashSet::new();
        self.declared().all(|tool| names.insert(tool.name.as_str()))
            && self.later().all(|system| system.tools_removed.is_empty())
    }

    /// True when one name stood for two different tools.
    pub fn redefines_tools(&self) -> bool {
        let mut known: HashMap<&str, &ToolSpec> = HashMap::new();
        self.declared().any(|tool| {
            let earlier = known.insert(&tool.name, tool);
            earlier.is_some_and(|earlier| earlier != tool)
        })
    }

    /// Every declaration, in order.
    fn declared(&self) -> impl Iterator<Item = &ToolSpec> {
        let later = self.later().flat_map(|system| &system.tools_added);
        self.initial_tools.iter().chain(later)
    }
}

/// A later system message as text: what is new, and which sections changed.
pub fn update_text(system: &SystemMessage) -> String {
    let mut parts = vec![system.content.text()];
    for (name, text) in system.sections.iter().flatten() {
        parts.push(match text.as_str() {
            Some(text) => format!("Section \"{name}\" of the system prompt is now:\n\n{text}"),
            None => format!("Section \"{name}\" of the system prompt no longer applies."),
        });
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn context(messages: Value) -> Context {
        let messages = serde_json::from_value(messages).unwrap();
        Context { messages }
    }

    fn names(tools: &[ToolSpec]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn conversation() -> Context {
        context(json!([
            {"role":"system","content":"base","sections":{"cwd":"in /a"},"toolsAdded":[{"name":"read"},{"name":"bash"}]},
            {"role":"user","content":"hi"},
            {"role":"system","content":"more","sections":{"cwd":null},"toolsAdded":[{"name":"grep"}],"toolsRemoved":[{"name":"read"}]},
        ]))
    }

    #[test]
    fn without_system_messages_inside_all_is_said_at_the_start() {
        let context = conversation();
        let transcript = Transcript::new(&context, false);
        assert_eq!(transcript.prompt, "base\n\nmore");
        assert_eq!(names(&transcript.initial_tools), ["bash", "grep"]);
        assert_eq!(transcript.messages.len(), 1);
        assert!(transcript.later_tools().is_empty());
    }

    #[test]
    fn with_system_messages_inside_the_start_never_changes() {
        let context = conversation();
        let transcript = Transcript::new(&context, true);
        assert_eq!(transcript.prompt, "base\n\nin /a");
        assert_eq!(names(&transcript.initial_tools), ["read", "bash"]);
        assert_eq!(names(&transcript.current_tools), ["bash", "grep"]);
        assert_eq!(transcript.messages.len(), 2);
        assert_eq!(transcript.later_tools()[0].name, "grep");
        assert!(!transcript.only_adds_tools() && !transcript.redefines_tools());
        let update = update_text(transcript.later().next().unwrap());
        assert!(update.starts_with("more\n\n") && update.contains("\"cwd\""));
    }

    #[test]
    fn a_message_that_replaces_all_is_said_at_the_start() {
        let context = context(json!([
            {"role":"system","content":"old"},
            {"role":"system","content":"new","replace":true},
        ]));
        let transcript = Transcript::new(&context, true);
        assert_eq!(transcript.prompt, "new");
        assert!(transcript.messages.is_empty());
    }

    #[test]
    fn a_second_definition_of_a_name_is_noticed() {
        let context = context(json!([
            {"role":"system","toolsAdded":[{"name":"read","description":"a"}]},
            {"role":"system","toolsAdded":[{"name":"read","description":"b"}]},
        ]));
        let transcript = Transcript::new(&context, true);
        assert!(transcript.redefines_tools() && !transcript.only_adds_tools());
    }
}
