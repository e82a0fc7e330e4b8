//! Builds a request to `generateContent`.

use super::{contents, family, thinking};
use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::StreamError;
use crate::llm::limits;
use crate::llm::message::ToolSpec;
use crate::llm::model::Model;
use crate::llm::options::{StreamOptions, ToolChoice};
use crate::wire::google::variant::Google;
use crate::wire::schema;
use crate::wire::transcript::Transcript;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

#[derive(Serialize)]
struct Instruction<'a> {
    role: &'static str,
    parts: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    /// Any JSON schema; the older field `parameters` accepts only a subset.
    parameters_json_schema: Cow<'a, Value>,
    #[serde(skip)]
    strict: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: CallingConfig,
}

#[derive(Serialize)]
struct CallingConfig {
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<thinking::ThinkingConfig>,
}

/// The body of a request. Constant fields come first, then the growing conversation, so that prefixes can be
/// cached.
pub fn body<'a>(
    api: Google,
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<Body<'a>, StreamError> {
    let transcript = Transcript::new(context, false);
    let mut body = Body::default();
    if !transcript.prompt.is_empty() {
        let instruction = Instruction { role: "user", parts: [Text { text: &transcript.prompt }] };
        body.set("systemInstruction", &instruction);
    }
    let declarations = declarations(model, &transcript.current_tools)?;
    if !declarations.is_empty() {
        let strict = declarations.iter().any(|declaration| declaration.strict);
        let tools = Tools { function_declarations: declarations };
        body.set("tools", &[tools]);
        if let Some(mode) = mode(options.tool_choice, strict) {
            let config = ToolConfig { function_calling_config: CallingConfig { mode } };
            body.set("toolConfig", &config);
        }
    }
    body.list("contents", move |items| {
        contents::convert(api, model, &transcript, items);
        Ok(())
    });
    let max_output_tokens = limits::output_tokens(model, context, options);
    let config = GenerationConfig {
        temperature: options.temperature,
        max_output_tokens,
        thinking_config: thinking::config(model, options, max_output_tokens)?,
    };
    body.set("generationConfig", &config);
    Ok(body)
}

fn declarations<'a>(model: &Model, tools: &'a [ToolSpec]) -> Result<Vec<Declaration<'a>>, StreamError> {
    let supported = family::takes_strict_tools(&model.id);
    let tools = tools.iter().map(|tool| {
        let strict = schema::strict_parameters(tool, supported)?;
        Ok(Declaration {
            name: &tool.name,
            description: &tool.description,
            strict: strict.is_some(),
            parameters_json_schema: schema::const_as_enum(
                strict.map_or_else(|| schema::parameters(tool), Cow::Owned),
            ),
        })
    });
    tools.collect()
}

/// How functions may be called. `VALIDATED` forces calls to match their schemas.
fn mode(choice: Option<ToolChoice>, strict: bool) -> Option<&'static str> {
    match choice {
        Some(ToolChoice::None) => Some("NONE"),
        Some(ToolChoice::Required) => Some("ANY"),
        _ if strict => Some("VALIDATED"),
        Some(ToolChoice::Auto) => Some("AUTO"),
        None => None,
    }
}
