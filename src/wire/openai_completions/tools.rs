//! Converts tools to the format of chat completions: functions, and custom tools whose input follows a
//! grammar.

use super::compat::Compat;
use crate::llm::body::CacheControl;
use crate::llm::event::StreamError;
use crate::llm::message::ToolSpec;
use crate::wire::schema;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Serialize)]
pub struct WireTool<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Kind<'a> {
    Function { function: Function<'a> },
    Custom { custom: Custom<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    /// `None` if the server is not known to accept the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
struct Custom<'a> {
    name: &'a str,
    description: &'a str,
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Format<'a> {
    Grammar { grammar: Definition<'a> },
}

#[derive(Serialize)]
struct Definition<'a> {
    syntax: &'static str,
    definition: &'a str,
}

pub fn convert<'a>(tools: &'a [ToolSpec], compat: &Compat<'_>) -> Result<Vec<WireTool<'a>>, StreamError> {
    let tools = tools.iter().map(|tool| Ok(WireTool { kind: kind(tool, compat)?, cache_control: None }));
    tools.collect()
}

/// Tools as functions, for a server that accepts strict schemas.
pub fn functions(tools: &[ToolSpec]) -> Result<Vec<WireTool<'_>>, StreamError> {
    let tools = tools.iter().map(|tool| Ok(WireTool { kind: function(tool, true)?, cache_control: None }));
    tools.collect()
}

fn kind<'a>(tool: &'a ToolSpec, compat: &Compat<'_>) -> Result<Kind<'a>, StreamError> {
    if let Some(grammar) = schema::grammar(tool, compat.supports_grammar_tools)? {
        return Ok(Kind::Custom {
            custom: Custom {
                name: &tool.name,
                description: &tool.description,
                format: Format::Grammar {
                    grammar: Definition { syntax: grammar.syntax, definition: grammar.definition },
                },
            },
        });
    }
    function(tool, compat.supports_strict_mode)
}

fn function(tool: &ToolSpec, is_strict_known: bool) -> Result<Kind<'_>, StreamError> {
    let strict = schema::strict_parameters(tool, is_strict_known)?;
    Ok(Kind::Function {
        function: Function {
            name: &tool.name,
            description: &tool.description,
            strict: is_strict_known.then_some(strict.is_some()),
            parameters: strict.map_or_else(|| schema::parameters(tool), Cow::Owned),
        },
    })
}

pub fn mark_last(tools: &mut [WireTool<'_>], mark: CacheControl) {
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(mark);
    }
}
