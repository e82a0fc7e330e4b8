//! The interface of tools.

use super::call::{Arguments, CallInfo};
use crate::base::cancel::CancelToken;
use crate::llm::message::{Block, ToolSpec, Usage};
use crate::llm::model::Model;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A tool: its description, and a function.
pub trait Tool: Send + Sync {
    fn info(&self) -> &ToolInfo;

    /// Reshapes arguments before validation, for forms that models send despite the schema.
    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// Describes a call for people. The arguments are the model's own, neither prepared nor necessarily
    /// complete.
    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        CallInfo::of(arguments)
    }

    /// Runs a call. An error becomes a result for the model; it does not end the run.
    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError>;
}

/// A tool made of a function.
pub struct FnTool<F> {
    pub info: ToolInfo,
    run: F,
}

impl<F> FnTool<F>
where
    F: Fn(&Invocation<'_>) -> Result<ToolOutput, ToolError> + Send + Sync,
{
    /// Makes a tool. `parameters` is a JSON schema of type `object`, against which arguments are checked
    /// before `run`.
    pub fn new(name: &str, description: &str, parameters: Value, run: F) -> Self {
        let info = ToolInfo {
            spec: ToolSpec {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters,
                ..ToolSpec::default()
            },
            label: name.to_owned(),
            snippet: Some(description.to_owned()),
            ..ToolInfo::default()
        };
        Self { info, run }
    }
}

impl<F> Tool for FnTool<F>
where
    F: Fn(&Invocation<'_>) -> Result<ToolOutput, ToolError> + Send + Sync,
{
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        (self.run)(call)
    }
}

/// The description of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolInfo {
    /// Name, description and schema for the model.
    pub spec: ToolSpec,
    /// The display name.
    pub label: String,
    /// JSON schema of [`ToolOutput::structured`], for tools that have such a result.
    pub result: Option<Value>,
    /// One line for the system prompt; a tool without a snippet is not listed there.
    pub snippet: Option<String>,
    /// Rules for the system prompt while the tool is active.
    pub rules: Vec<String>,
    /// Purposes for which the system prompt refers to the tool.
    pub serves: Serves,
    /// True if every batch with this tool must run one call at a time.
    pub sequential: bool,
    /// True if the tool is known to change nothing.
    pub reads_only: bool,
    pub exposure: Exposure,
    /// Not active before it is chosen by name.
    pub starts_inactive: bool,
    /// The group that the tool belongs to.
    pub namespace: Option<Arc<Namespace>>,
}

/// A group of tools, such as those of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The beginning of the names of its tools.
    pub name: String,
    /// Other names that it is asked for by.
    pub aliases: Vec<String>,
    pub description: Option<String>,
    /// How its tools go together.
    pub instructions: Option<String>,
}

/// How the model reaches a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// Declared to the model while active; other tools may call it.
    #[default]
    Direct,
    /// Declared to the model while active; no tool may call it.
    ModelOnly,
    /// Called by other tools, which list it; not declared unless it is activated.
    Codemode,
    /// Called by other tools and found by a search; listed by none.
    Deferred,
    /// Known, and reached by nobody.
    Hidden,
}

impl Exposure {
    const NAMES: [(&'static str, Self); 5] = [
        ("direct", Self::Direct),
        ("model-only", Self::ModelOnly),
        ("codemode", Self::Codemode),
        ("deferred", Self::Deferred),
        ("hidden", Self::Hidden),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, exposure)| *exposure)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, exposure)| *exposure == self).map_or("direct", |(name, _)| name)
    }

    /// True for tools that are declared to the model from the moment when they are registered.
    pub fn is_declared(self) -> bool {
        matches!(self, Self::Direct | Self::ModelOnly)
    }
}

/// Purposes that the system prompt mentions, if an active tool serves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serves {
    /// True if the tool can read a file that the prompt names, such as a skill.
    pub reading: bool,
    /// True if the tool can list or search files.
    pub searching: bool,
    /// True if the tool can run shell commands, for instance to read the manual.
    pub commands: bool,
}

/// One call of a tool.
pub struct Invocation<'a> {
    pub id: &'a str,
    /// Arguments that satisfy the tool's schema.
    pub arguments: &'a Map<String, Value>,
    pub cancel: &'a CancelToken,
    /// The model that made the call. Its input kinds and limits decide what a result may contain.
    pub model: &'a Model,
    /// Reports the result so far, in place of the previous report.
    pub update: &'a (dyn Fn(ToolOutput) + Sync),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Block>,
    /// Data for people and programs, never sent to the model.
    pub details: Option<Value>,
    /// The result as data for programs that follow the events. Not part of the conversation.
    pub structured: Option<Value>,
    pub usage: Option<Usage>,
    /// True to end the run after this batch. The run ends only if all results of the batch agree.
    pub terminate: bool,
    /// True if the call failed, and `content` says how.
    pub is_error: bool,
    /// What the session keeps of the calls that the tool has made: `nestedCalls` of the result.
    pub nested_calls: Option<Value>,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], ..Self::default() }
    }

    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

impl ToolOutput {
    /// Reads a result as other programs write it: `content` (a text, or blocks), `details`, `structuredContent`,
    /// `usage`, `terminate`. Gives whether `isError` says that the call failed, too.
    pub fn read(fields: &Map<String, Value>) -> Result<(Self, bool), String> {
        let present = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let flag = |name: &str| match present(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| format!("\"{name}\" must be true or false")),
        };
        let content = match present("content") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![Block::text(text)],
            Some(Value::Array(blocks)) => blocks.iter().map(block).collect::<Result<_, _>>()?,
            Some(_) => return Err("\"content\" must be a string or a list of blocks".into()),
        };
        let usage = present("usage").map(Usage::deserialize).transpose();
        let output = Self {
            content,
            details: present("details").cloned(),
            structured: present("structuredContent").cloned(),
            usage: usage.map_err(|error| format!("\"usage\" is not understood: {error}"))?,
            terminate: flag("terminate")?,
            ..Self::default()
        };
        Ok((output, flag("isError")?))
    }

    /// What came of a call, and whether it has failed.
    pub fn of(result: Result<Self, ToolError>) -> (Self, bool) {
        match result {
            Ok(output) => {
                let is_error = output.is_error;
                (output, is_error)
            }
            Err(ToolError { message, details, structured }) => {
                // A failure with structured data needs no empty details.
                let details = match structured {
                    None => Some(details.unwrap_or_else(|| Value::Object(Map::new()))),
                    Some(_) => details,
                };
                let structured = structured.map(|data| *data);
                (Self { details, structured, ..Self::text(message) }, true)
            }
        }
    }

    /// The texts of the content.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }

    /// The result of a failed call.
    pub fn into_error(self) -> ToolError {
        ToolError {
            message: self.joined_text(),
            details: self.details,
            structured: self.structured.map(Box::new),
        }
    }
}

fn block(value: &Value) -> Result<Block, String> {
    match Block::deserialize(value) {
        Ok(block @ (Block::Text(_) | Block::Image(_))) => Ok(block),
        _ => Err("a block of \"content\" is neither text nor an image".into()),
    }
}

/// The error of a failed call, as the model is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    pub message: String,
    pub details: Option<Value>,
    /// The error as data for programs that follow the events.
    pub structured: Option<Box<Value>>,
}

impl ToolError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), details: None, structured: None }
    }

    pub fn aborted() -> Self {
        Self::new("Operation aborted")
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}
