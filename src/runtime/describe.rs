//! Describes the tool calls of a conversation: by its own tools, or by a built-in tool of that name.

use super::control::Tools;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::tool::Tool;
use crate::tools;
use std::sync::Arc;

/// The tools of a conversation, for lookup by name. The default value describes only calls of built-in tools.
#[derive(Clone, Default)]
pub struct Describer(Vec<Arc<dyn Tool>>);

/// A describer for the built-in tools.
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

impl Tools<'_> {
    /// Returns a describer for the conversation's current tools.
    pub fn describer(&self) -> Describer {
        Describer(self.control.state().all_tools())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::call::Kind;
    use crate::agent::tool::{Invocation, ToolError, ToolInfo, ToolOutput};
    use crate::llm::message::ToolSpec;

    struct Own(ToolInfo);

    impl Tool for Own {
        fn info(&self) -> &ToolInfo {
            &self.0
        }

        fn describe<'a>(&self, _: &'a Arguments) -> CallInfo<'a> {
            CallInfo { title: Some("Own".into()), ..CallInfo::default() }
        }

        fn run(&self, _: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }

    #[test]
    fn a_tool_of_the_conversation_speaks_for_itself_and_others_are_known_by_name() {
        let spec = ToolSpec { name: "bash".into(), ..ToolSpec::default() };
        let describer = Describer(vec![Arc::new(Own(ToolInfo { spec, ..ToolInfo::default() }))]);
        let none = Arguments::new();
        assert_eq!(describer.describe("bash", &none).title.as_deref(), Some("Own"));
        assert_eq!(describer.describe("read", &none).kind, Kind::Read);
        assert_eq!(BUILTIN.describe("bash", &none).kind, Kind::Execute);
        assert_eq!(describer.describe("other", &none).kind, Kind::Other);
    }
}
