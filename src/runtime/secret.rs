//! Replaces secrets by placeholders between the user, the model and the tools.
//!
//! Every tool is wrapped. Placeholders in the model's arguments are replaced by their values just before the
//! tool runs, and values in its result, updates and details are replaced by placeholders. Approvals, events
//! and the log are outside of the wrapper, so they contain placeholders only.

use super::config::Config;
use super::prompt;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::message::AgentMessage;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::llm::secret::{Vault, placeholder};
use crate::resources::prompt::PromptOptions;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// A tool that is given values of secrets and whose output contains placeholders only.
pub(super) struct Wrapped {
    pub tool: Arc<dyn Tool>,
    pub vault: Vault,
}

impl Tool for Wrapped {
    fn info(&self) -> &ToolInfo {
        self.tool.info()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.tool.prepare(arguments)
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        self.tool.describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let arguments = match self.vault.reveal(call.arguments) {
            Ok(Some(arguments)) => Cow::Owned(arguments),
            Ok(None) => Cow::Borrowed(call.arguments),
            // A read-only tool may search for the placeholder itself.
            Err(_) if self.info().reads_only => Cow::Borrowed(call.arguments),
            Err(name) => return Err(unknown(&name)),
        };
        let update = |output: ToolOutput| (call.update)(self.hidden(output));
        match self.tool.run(&Invocation { arguments: &arguments, update: &update, ..*call }) {
            Ok(output) => Ok(self.hidden(output)),
            Err(ToolError { message, mut details, mut structured }) => {
                let values = details.iter_mut().chain(structured.as_deref_mut());
                values.for_each(|value| self.vault.hide_value(value));
                Err(ToolError { message: self.vault.hide(&message).into_owned(), details, structured })
            }
        }
    }
}

impl Wrapped {
    fn hidden(&self, mut output: ToolOutput) -> ToolOutput {
        if let Some(set) = self.vault.set() {
            set.hide_blocks(&mut output.content);
            let values = output.details.iter_mut().chain(&mut output.structured);
            values.for_each(|value| set.hide_value(value));
        }
        output
    }
}

fn unknown(name: &str) -> ToolError {
    ToolError::new(format!(
        "The call was not executed: {} stands for a secret that is not known here, so its value cannot be put \
         back. Leave that part as it is, or ask the user for the value's place.",
        placeholder(name)
    ))
}

/// Replaces secrets in a user message by placeholders.
pub(super) fn hidden(vault: &Vault, mut message: AgentMessage) -> AgentMessage {
    if let Some(set) = vault.set()
        && let AgentMessage::User(user) = &mut message
    {
        set.hide_content(&mut Arc::make_mut(user).content);
    }
    message
}

impl Config {
    /// Returns the sections of a prompt. If there are secrets, a section explains placeholders. `tools` are all tools.
    pub(super) fn sections(&self, options: &PromptOptions, tools: &[Arc<dyn Tool>]) -> Map<String, Value> {
        let mut sections = prompt::sections(options, tools);
        if let Some(set) = self.services.vault().set() {
            sections.values_mut().for_each(|text| set.hide_value(text));
            let note = format!(
                "<secrets>\nText like {} stands for a value that is kept from you. Use it as it is, in the \
                 arguments of tools too: they get the value.\n</secrets>",
                placeholder("NAME")
            );
            sections.insert("secrets".into(), note.into());
        }
        sections
    }
}
