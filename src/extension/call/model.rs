//! `models.*`: which model answers, and answers outside the conversation.

use super::{Answer, Call, Failure, INVALID_PARAMS, failed, json_of, unknown};
use crate::agent::message::AgentMessage;
use crate::base::json::json;
use crate::llm::message::ToolSpec;
use crate::llm::model::{Model, ThinkingLevel};
use crate::runtime::nested::Nested;
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

    pub(super) fn models(&self, name: &str) -> Answer {
        let (control, params) = (self.control, self.params);
        let models = control.models();
        let shown = |models: Vec<Arc<Model>>| -> Vec<Value> {
            models.iter().map(|model| json!(model.shown())).collect()
        };
        match name {
            "list" if params.flag("all")? => {
                Ok(json!({"models": shown(control.config().services.registry.all())}))
            }
            "list" => Ok(json!({"models": shown(models.available())})),
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
            _ => unknown(&format!("models.{name}")),
        }
    }
}
