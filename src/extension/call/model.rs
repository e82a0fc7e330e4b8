//! `models.*`: which model answers, and answers outside the conversation.

use super::{Answer, Call, Failure, INVALID_PARAMS, failed, json_of, unknown};
use crate::agent::message::AgentMessage;
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::llm::model::{Model, ModelType, ThinkingLevel};
use crate::runtime::nested::Nested;
use crate::runtime::others::Input;
use serde_json::Value;
use std::sync::Arc;

impl Call<'_> {
    fn model(&self) -> Result<Arc<Model>, Failure> {
        let params = self.params;
        let (Some(provider), Some(id)) =
            (params.optional_text("provider")?, params.optional_text("modelId")?)
        else {
            return Ok(self.control.models().current());
        };
        let found = self.control.config().services.registry.find(provider, id);
        found.ok_or_else(|| failed(format_args!("Model not found: {provider}/{id}")))
    }

    fn model_type(&self, usual: &str) -> Result<ModelType, Failure> {
        let name = self.params.optional_text("type")?.unwrap_or(usual);
        let unknown = || Failure::new(INVALID_PARAMS, format!("Unknown model type \"{name}\""));
        ModelType::parse(name).ok_or_else(unknown)
    }

    /// Asks a model that does not chat.
    fn ask_other(&self, kind: ModelType, read: fn(&Value) -> Result<Input, String>) -> Answer {
        let (provider, id) = (self.params.text("provider")?, self.params.text("modelId")?);
        let input = read(&self.params.required("context")?)
            .map_err(|problem| Failure::new(INVALID_PARAMS, problem))?;
        let models = self.control.models();
        let model = models.find_of_type(kind, provider, id);
        let unknown = || failed(format_args!("Unknown {} model \"{provider}/{id}\"", kind.name()));
        Ok(models.ask(&model.ok_or_else(unknown)?, &input, self.cancel).result)
    }

    pub(super) fn models(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        let models = control.models();
        match name {
            "list" => {
                let kind = self.model_type("chat")?;
                let list = match params.flag("all")? {
                    true => models.of_type(kind, None),
                    false => models.available_of_type(kind, None),
                };
                let list: Vec<Value> = match kind {
                    ModelType::Chat => list.iter().map(|model| json!(model.shown())).collect(),
                    _ => list.iter().map(|model| model.for_scripts()).collect(),
                };
                Ok(json!({"models": list}))
            }
            "current" => json_of(models.current().shown()),
            "scoped" => {
                let scoped = models.scope();
                let one = |scoped: &crate::runtime::Scoped| json!({"model": scoped.model.shown(), "thinkingLevel": scoped.thinking});
                Ok(json!({"models": scoped.iter().map(one).collect::<Vec<_>>()}))
            }
            "set" => {
                let (provider, id) = (params.text("provider")?, params.text("modelId")?);
                let set = models.set(provider, id, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(json!({"ok": set.is_some()}))
            }
            "thinkingLevels" => {
                Ok(json!({"levels": models.thinking_levels(), "current": control.snapshot().thinking}))
            }
            "setThinkingLevel" => {
                let name = params.text("level")?;
                let level = ThinkingLevel::parse(name)
                    .ok_or_else(|| Failure::new(INVALID_PARAMS, format!("Unknown level \"{name}\"")))?;
                let level = models.set_thinking(level, &mut |event| self.emit(event)).map_err(failed)?;
                Ok(json!({"level": level}))
            }
            "complete" => {
                let level = params.optional_text("thinkingLevel")?;
                let nested = Nested {
                    model: self.model()?,
                    thinking: level.and_then(ThinkingLevel::parse).unwrap_or(ThinkingLevel::Off),
                    max_tokens: params.optional("maxTokens")?,
                    system_prompt: params.optional_text("systemPrompt")?.map(str::to_owned),
                    tools: params.optional::<Vec<ToolSpec>>("tools")?.unwrap_or_default(),
                    messages: params.required::<Vec<AgentMessage>>("messages")?,
                };
                let message = control.complete(nested, self.cancel);
                json_of(AgentMessage::Assistant(Arc::new(message)))
            }
            "classify" => self.ask_other(ModelType::Classifier, Input::classify),
            "generateImages" => self.ask_other(ModelType::Image, Input::images),
            _ => unknown(&format!("models.{name}")),
        }
    }
}
