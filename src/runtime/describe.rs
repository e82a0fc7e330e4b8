//! Who describes the tool calls of a conversation: its tools, else the built-in ones of the same name.

use super::control::Control;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::Tool;
use crate::tools;
use std::sync::Arc;

/// The tools of a conversation, asked by name. Without any it knows the built-in tools.
#[derive(Clone, Default)]
pub struct Describer(Vec<Arc<dyn Tool>>);

/// Knows the built-in tools.
#[cfg(test)]
pub static BUILTIN: Describer = Describer(Vec::new());

impl Describer {
    pub fn describe<'a>(&self, name: &str, arguments: &'a Arguments) -> CallInfo<'a> {
        match self.0.iter().find(|tool| tool.info().spec.name == name) {
            Some(tool) => tool.describe(arguments),
            None => tools::describe(name, arguments),
        }
    }
}

impl Control {
    /// Describes calls of the tools that the conversation has now.
    pub fn describer(&self) -> Describer {
        Describer(self.state().all_tools())
    }
}
