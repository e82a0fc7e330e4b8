//! Builds a ConverseStream request.

use super::family::{Family, is_gov_cloud};
use super::messages::{self, CachePoint};
use crate::base::json::json;
use crate::llm::body::Body;
use crate::llm::context::Context;
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::limits;
use crate::llm::message::ToolSpec;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::{CacheRetention, StreamOptions, ToolChoice};
use crate::llm::protocol::HttpRequest;
use crate::wire::endpoint;
use crate::wire::endpoint::Headers;
use crate::wire::schema;
use crate::wire::sigv4::percent;
use crate::wire::transcript::Transcript;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Smallest thinking budget, in tokens.
const MIN_BUDGET: u64 = 1024;

const THINKING_BINDING: &str = "thinking-binding-controls-2026-08-01";
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum SystemBlock<'a> {
    CachePoint(CachePoint),
    #[serde(untagged)]
    Text {
        text: &'a str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    tool_spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    name: &'a str,
    input_schema: InputSchema<'a>,
    description: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: Cow<'a, Value>,
}

pub fn request<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<HttpRequest<'a>, StreamError> {
    let path = format!("/model/{}/converse-stream", encode_id(model)?);
    let mut headers = Headers::json("application/vnd.amazon.eventstream");
    headers.merge_model(model.headers.as_ref());
    headers.merge_options(options);
    Ok(HttpRequest {
        url: endpoint::url(model, options, &path)?,
        headers: headers.into_vec(),
        body: body(model, context, options)?,
    })
}

/// The id as one path segment: slashes and colons of an ARN are encoded.
fn encode_id(model: &Model) -> Result<String, StreamError> {
    let id = &model.id;
    if id.is_empty() || id.chars().all(|c| c == '.') {
        let message = format!("\"{id}\" is not the id of a model on Amazon Bedrock");
        return Err(StreamError::new(ErrorKind::Request, message));
    }
    Ok(percent(id, ""))
}

fn body<'a>(
    model: &'a Model,
    context: &'a Context,
    options: &StreamOptions,
) -> Result<Body<'a>, StreamError> {
    let family = Family::of(model);
    let transcript = Arc::new(Transcript::new(context, false));
    let retention = limits::cache_retention(options);
    let mark = (retention != CacheRetention::None && family.takes_cache_points(options))
        .then(|| CachePoint::new(retention == CacheRetention::Long));

    let mut body = Body::default();
    let said = transcript.clone();
    body.list("messages", move |items| messages::convert(model, &said, mark, items));
    if !transcript.prompt.is_empty() {
        let text = SystemBlock::Text { text: &transcript.prompt };
        let blocks = std::iter::once(text).chain(mark.map(SystemBlock::CachePoint));
        body.set("system", &blocks.collect::<Vec<_>>());
    }
    let thinking = thinking(model, &family, context, options);
    let config = InferenceConfig {
        max_tokens: thinking.max_tokens.or_else(|| limits::output_tokens(model, context, options)),
        // Claude accepts only its default temperature while it thinks.
        temperature: options.temperature.filter(|_| thinking.fields.is_none() || !family.is_claude()),
    };
    body.set("inferenceConfig", &config);
    let tools = tools(model, &transcript.current_tools)?;
    if !tools.is_empty() && options.tool_choice != Some(ToolChoice::None) {
        let config = ToolConfig { tools, tool_choice: options.tool_choice.and_then(tool_choice) };
        body.set("toolConfig", &config);
    }
    body.set_some("additionalModelRequestFields", thinking.fields.as_ref());
    Ok(body)
}

fn tools<'a>(model: &Model, tools: &'a [ToolSpec]) -> Result<Vec<Tool<'a>>, StreamError> {
    let compat = model.compat.as_ref();
    let supported = compat.and_then(|compat| compat.get("supportsStrictMode")?.as_bool());
    let tools = tools.iter().map(|tool| {
        let strict = schema::strict_parameters(tool, supported.unwrap_or(false))?;
        Ok(Tool {
            tool_spec: Spec {
                name: &tool.name,
                description: &tool.description,
                strict: strict.is_some(),
                input_schema: InputSchema {
                    json: strict.map_or_else(|| schema::parameters(tool), Cow::Owned),
                },
            },
        })
    });
    tools.collect()
}

fn tool_choice(choice: ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => Some(json!({"auto": {}})),
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::None => None,
    }
}

/// The fields that request thinking, in the vendor's format, and the output limit if thinking counts towards
/// it.
#[derive(Default)]
struct Thinking {
    fields: Option<Map<String, Value>>,
    max_tokens: Option<u64>,
}

fn thinking(model: &Model, family: &Family, context: &Context, options: &StreamOptions) -> Thinking {
    let level = limits::thinking_level(model, options).filter(|_| model.reasoning);
    let Some(level) = level else {
        return Thinking::default();
    };
    if !family.is_claude() {
        return Thinking { fields: gpt_effort(level, model, family), max_tokens: None };
    }
    let mut how = Map::new();
    let mut fields = Map::new();
    let mut max_tokens = None;
    if family.adaptive_thinking() {
        how.insert("type".into(), "adaptive".into());
    } else {
        let (ceiling, budget) = budget(level, model, context, options);
        max_tokens = Some(ceiling);
        // The budget is part of the limit: a small limit leaves no room to think.
        if ceiling <= MIN_BUDGET {
            return Thinking { fields: None, max_tokens };
        }
        how.insert("type".into(), "enabled".into());
        how.insert("budget_tokens".into(), budget.into());
    }
    let gov_cloud = is_gov_cloud(model, options);
    if !gov_cloud {
        how.insert("display".into(), "summarized".into());
    }
    let binding = !gov_cloud && family.adaptive_thinking() && family.takes_block_binding();
    if binding {
        how.insert("block_binding".into(), json!({"prefix_mismatch_behavior": "drop_block"}));
    }
    fields.insert("thinking".into(), how.into());
    if family.adaptive_thinking() {
        let effort = effort(level, model, family);
        fields.insert("output_config".into(), json!({"effort": effort}));
        if binding {
            fields.insert("anthropic_beta".into(), json!([THINKING_BINDING]));
        }
    } else {
        fields.insert("anthropic_beta".into(), json!([INTERLEAVED_THINKING]));
    }
    Thinking { fields: Some(fields), max_tokens }
}

/// The fields that request thinking from OpenAI's models. The open models support three efforts in a
/// top-level field.
fn gpt_effort(level: ThinkingLevel, model: &Model, family: &Family) -> Option<Map<String, Value>> {
    let word = match level {
        ThinkingLevel::Minimal => "low",
        level if family.is_gpt_oss() => level.min(ThinkingLevel::High).name(),
        level => level.name(),
    };
    let fields = if family.is_gpt_oss() {
        json!({"reasoning_effort": word})
    } else if family.is_gpt() {
        json!({"reasoning": {"effort": model.thinking_word(level).unwrap_or(word)}})
    } else {
        return None;
    };
    fields.as_object().cloned()
}

/// The output limit, and the thinking budget as a part of it; both in tokens.
fn budget(level: ThinkingLevel, model: &Model, context: &Context, options: &StreamOptions) -> (u64, u64) {
    let budget = limits::thinking_budget(level, options);
    let base = limits::output_tokens(model, context, options).unwrap_or(budget);
    let ceiling = match model.max_tokens {
        0 => u64::MAX,
        ceiling => ceiling,
    };
    let wanted = base.saturating_add(budget).min(ceiling);
    let max_tokens = limits::clamp_to_window(model, context, wanted);
    let budget = limits::with_room_for_answer(budget, max_tokens).max(MIN_BUDGET);
    (max_tokens, budget)
}

fn effort<'a>(level: ThinkingLevel, model: &'a Model, family: &Family) -> &'a str {
    if level == ThinkingLevel::Xhigh && family.knows_xhigh() {
        return "xhigh";
    }
    let map = model.thinking_level_map.as_ref();
    let mapped = map.and_then(|map| map.get(level.name())?.as_str());
    mapped.unwrap_or(match level {
        ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        _ => "high",
    })
}
