//! Splits a conversation into prompt, tools and messages.
//!
//! For a model that accepts system messages only at the start, all are combined there. For a model that
//! accepts them anywhere, the first is at the start and the others stay in place, so that a later change
//! keeps the cached beginning valid.

use crate::llm::context::{Context, Head};
use crate::llm::message::{Message, SystemMessage, ToolSpec};
use std::collections::HashSet;

pub struct Transcript<'a> {
    pub context: &'a Context,
    /// The text before the conversation.
    pub prompt: String,
    /// The tools declared before the conversation.
    pub initial_tools: Vec<ToolSpec>,
    /// The tools that can be called now.
    pub current_tools: Vec<ToolSpec>,
    /// The messages after the prompt. Contains system messages only if they stay in place.
    pub messages: Vec<&'a Message>,
}

impl<'a> Transcript<'a> {
    /// `in_place`: true if the model accepts system messages inside the conversation.
    pub fn new(context: &'a Context, in_place: bool) -> Self {
        let head = context.head();
        let messages = &context.messages;
        // A message that replaces all earlier ones cannot be sent in place.
        let in_place = in_place
            && !messages
                .iter()
                .skip(1)
                .any(|m| matches!(m, Message::System(system) if system.replace == Some(true)));
        if !in_place {
            return Self {
                context,
                prompt: head.prompt(),
                initial_tools: head.tools.clone(),
                current_tools: head.tools,
                messages: context.conversation().collect(),
            };
        }
        match messages.split_first() {
            Some((Message::System(first), rest)) => Self {
                context,
                prompt: first.prompt(),
                initial_tools: first.tools_added.clone(),
                current_tools: head.tools,
                messages: rest.iter().collect(),
            },
            _ => Self {
                context,
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

    /// The tools that can be called now, all in the request's tool list.
    pub fn current(&self) -> Declared {
        Declared { tools: self.current_tools.clone(), told: usize::MAX }
    }

    /// Tools of later messages are declared in place, but only after the last change that is not a mere
    /// addition: a tool that is removed or declared twice cannot be declared in place.
    pub fn with_additions(&self) -> Declared {
        let mut names: HashSet<&str> = self.initial_tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut told = 0;
        for (index, system) in self.later().enumerate() {
            let again = system.tools_added.iter().filter(|tool| !names.insert(&tool.name)).count();
            if again > 0 || !system.tools_removed.is_empty() {
                told = index + 1;
            }
        }
        let mut head = Head { tools: self.initial_tools.clone(), ..Head::default() };
        self.later().take(told).for_each(|system| head.apply(system));
        Declared { tools: head.tools, told }
    }
}

/// The tools in the request's tool list, and the number of later system messages whose tools the list
/// contains.
pub struct Declared {
    pub tools: Vec<ToolSpec>,
    pub told: usize,
}

/// A later system message as text: new content, and changed sections.
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
    use crate::base::json::json;
    use serde_json::Value;

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
    }

    #[test]
    fn with_system_messages_inside_the_start_never_changes() {
        let context = conversation();
        let transcript = Transcript::new(&context, true);
        assert_eq!(transcript.prompt, "base\n\nin /a");
        assert_eq!(names(&transcript.initial_tools), ["read", "bash"]);
        assert_eq!(names(&transcript.current_tools), ["bash", "grep"]);
        assert_eq!(transcript.messages.len(), 2);
        let declared = transcript.with_additions();
        assert_eq!((names(&declared.tools), declared.told), (vec!["bash", "grep"], 1));
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
    fn only_what_was_added_last_is_declared_in_place() {
        let system = |added: &[&str], removed: &[&str]| {
            let tools = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Value>();
            json!({"role":"system","content":"","toolsAdded":tools(added),"toolsRemoved":tools(removed)})
        };
        let cases: [(Vec<Value>, &[&str], usize); 5] = [
            (vec![system(&["a"], &[])], &["a"], 0),
            (vec![system(&["a"], &[]), system(&["b"], &[])], &["a"], 0),
            (
                vec![system(&["a"], &[]), system(&["b"], &[]), system(&["b"], &[]), system(&["c"], &[])],
                &["a", "b"],
                2,
            ),
            (vec![system(&["a", "b"], &[]), system(&[], &["a"]), system(&["c"], &[])], &["b"], 1),
            (vec![system(&["a", "b"], &[]), system(&[], &["a"]), system(&["a"], &[])], &["b", "a"], 2),
        ];
        for (messages, tools, told) in cases {
            let context = context(messages.into());
            let declared = Transcript::new(&context, true).with_additions();
            assert_eq!((names(&declared.tools), declared.told), (tools.to_vec(), told));
        }
    }
}
