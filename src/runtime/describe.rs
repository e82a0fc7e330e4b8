//! Who describes the tool calls of a conversation: its tools, else the built-in ones of the same name.

use super::control::Control;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::Tool;
use crate::tools;
use std::sync::Arc;

/// The tools of a conversation, asked by name. Without any it knows the built-in tools.
#[derive(Clone, Default)]
pub struct Describer(pub(super) Arc<[Arc<dyn Tool>]>);

impl Describer {
    /// Knows the built-in tools.
    #[cfg(test)]
    pub fn builtin() -> &'static Self {
        static BUILTIN: std::sync::LazyLock<Describer> = std::sync::LazyLock::new(Describer::default);
        &BUILTIN
    }

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
        Describer(self.state().all_tools().into())
    }
}
