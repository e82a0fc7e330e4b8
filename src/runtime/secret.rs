//! Secrets on their way between the user, the model and the tools.
//!
//! Every tool is wrapped: the model's arguments get values in the place of placeholders just before the tool
//! runs, and what the tool gives, updates and details too, gets placeholders in the place of values. Approvals,
//! events and the log are outside of the wrapping: they see placeholders.

use super::config::Config;
use crate::agent::call::{Arguments, CallInfo};
use crate::agent::message::AgentMessage;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::llm::secret::{Vault, placeholder};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// A tool that gets values and gives placeholders.
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
            // It looks for the placeholder itself.
            Err(_) if self.info().reads_only => Cow::Borrowed(call.arguments),
            Err(name) => return Err(unknown(&name)),
        };
        let update = |output: ToolOutput| (call.update)(self.hidden(output));
        match self.tool.run(&Invocation { arguments: &arguments, update: &update, ..*call }) {
            Ok(output) => Ok(self.hidden(output)),
            Err(ToolError { message, mut details, mut structured }) => {
                details.iter_mut().chain(&mut structured).for_each(|value| self.vault.hide_value(value));
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

/// What the user says, as it joins the conversation.
pub(super) fn hidden(vault: &Vault, mut message: AgentMessage) -> AgentMessage {
    if let Some(set) = vault.set()
        && let AgentMessage::User(user) = &mut message
    {
        set.hide_content(&mut Arc::make_mut(user).content);
    }
    message
}

impl Config {
    /// The prompt for `tools`. While secrets are known the prompt says what a placeholder is.
    pub(super) fn sections(&self, tools: &[Arc<dyn Tool>]) -> Map<String, Value> {
        let mut sections = (self.prompt)(tools);
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
