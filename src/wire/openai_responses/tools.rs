//! Converts tools to the format of the Responses API: functions, and custom tools whose input follows a
//! grammar.

use super::compat::Compat;
use crate::llm::event::StreamError;
use crate::llm::message::ToolSpec;
use crate::wire::openai_responses::variant::Variant;
use crate::wire::schema;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum WireTool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: Cow<'a, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        defer_loading: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<Strict>,
    },
    Custom {
        name: &'a str,
        description: &'a str,
        format: Format<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        defer_loading: Option<bool>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum Strict {
    AssistantBlock(bool),
    /// `null`: the server decides.
    Unsaid,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Format<'a> {
    Grammar { syntax: &'static str, definition: &'a str },
}

/// Converts tools. `found`: they are the result of a tool search.
pub fn convert<'a>(
    tools: &'a [ToolSpec],
    variant: Variant,
    compat: &Compat,
    found: bool,
) -> Result<Vec<WireTool<'a>>, StreamError> {
    let tools = tools.iter().map(|tool| wire(tool, variant, compat, found));
    tools.collect()
}

fn wire<'a>(
    tool: &'a ToolSpec,
    variant: Variant,
    compat: &Compat,
    found: bool,
) -> Result<WireTool<'a>, StreamError> {
    let defer_loading = found.then_some(true);
    if let Some(grammar) = schema::grammar(tool, compat.supports_grammar_tools)? {
        return Ok(WireTool::Custom {
            name: &tool.name,
            description: &tool.description,
            format: Format::Grammar { syntax: grammar.syntax, definition: grammar.definition },
            defer_loading,
        });
    }
    let strict = schema::strict_parameters(tool, compat.supports_strict_mode)?;
    let said = match variant {
        Variant::Codex if strict.is_none() => Strict::Unsaid,
        _ => Strict::AssistantBlock(strict.is_some()),
    };
    Ok(WireTool::Function {
        name: &tool.name,
        description: &tool.description,
        parameters: strict.map_or_else(|| schema::parameters(tool), Cow::Owned),
        defer_loading,
        strict: compat.supports_strict_mode.then_some(said),
    })
}
