//! Requests thinking in one of eleven vendor formats.

use super::compat::{Compat, ThinkingFormat};
use crate::llm::body::Body;
use crate::llm::limits;
use crate::llm::model::{Model, ThinkingLevel};
use crate::llm::options::StreamOptions;
use serde::Serialize;
use serde_json::{Map, Value};

/// The thinking settings of one request.
pub struct Thinking<'a> {
    model: &'a Model,
    compat: &'a Compat<'a>,
    /// `None` for no thinking.
    level: Option<ThinkingLevel>,
    /// Thinking budget in tokens, which leaves room for an answer.
    budget: Option<u64>,
}

#[derive(Serialize)]
struct Kind {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_thinking: Option<bool>,
}

#[derive(Serialize)]
struct Effort<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Serialize)]
struct QwenTemplate {
    enable_thinking: bool,
    preserve_thinking: bool,
}

impl<'a> Thinking<'a> {
    /// `max_tokens` limits thinking and answer together.
    pub fn new(
        model: &'a Model,
        compat: &'a Compat<'a>,
        options: &StreamOptions,
        max_tokens: Option<u64>,
    ) -> Self {
        let level = limits::thinking_level(model, options);
        let ceiling = max_tokens.unwrap_or(model.max_tokens);
        let budget = level
            .map(|level| limits::thinking_budget(level, options))
            .map(|budget| limits::with_room_for_answer(budget, ceiling))
            .filter(|budget| *budget > 0);
        Self { model, compat, level, budget }
    }

    /// Writes the fields of the model's format.
    pub fn write(&self, body: &mut Body) {
        if self.model.reasoning {
            self.write_format(body);
        }
        // Sent with every format: without a budget, thinking can use up the whole output limit.
        if let Some(field) = self.compat.thinking_budget_field {
            body.set_some(field, self.budget.as_ref());
        }
    }

    fn write_format(&self, body: &mut Body) {
        let on = self.level.is_some();
        match self.compat.thinking_format {
            ThinkingFormat::Zai => {
                let kind = Kind {
                    r#type: if on { "enabled" } else { "disabled" },
                    clear_thinking: on.then_some(false),
                };
                body.set("thinking", &kind);
                self.write_effort(body, self.level.and_then(|level| self.word_unless_null(level)));
            }
            ThinkingFormat::Qwen => {
                body.set("enable_thinking", &on);
                self.write_effort(body, self.word());
            }
            ThinkingFormat::QwenChatTemplate => {
                let template = QwenTemplate { enable_thinking: on, preserve_thinking: true };
                body.set("chat_template_kwargs", &template);
            }
            ThinkingFormat::ChatTemplate => {
                let values = self.template(self.compat.chat_template_kwargs);
                body.set_some("chat_template_kwargs", values.as_ref());
            }
            ThinkingFormat::Baseten => {
                let values = self.template(self.compat.chat_template_args);
                body.set_some("chat_template_args", values.as_ref());
                self.write_effort(body, self.template_effort());
            }
            ThinkingFormat::DeepSeek => {
                if on || self.can_be_off() {
                    let kind = Kind { r#type: if on { "enabled" } else { "disabled" }, clear_thinking: None };
                    body.set("thinking", &kind);
                }
                self.write_effort(body, self.word());
            }
            ThinkingFormat::OpenRouter => {
                if let Some(effort) = self.word_or_off() {
                    body.set("reasoning", &Effort { effort });
                }
            }
            ThinkingFormat::AntLing if on => {
                let own = |level| self.model.thinking_word(level);
                if let Some(effort) = self.level.and_then(own) {
                    body.set("reasoning", &Effort { effort });
                }
            }
            ThinkingFormat::Together => {
                body.set("reasoning", &Enabled { enabled: on });
                self.write_effort(body, self.word());
            }
            ThinkingFormat::StringThinking => {
                body.set_some("thinking", self.word_or_off());
            }
            ThinkingFormat::OpenAi | ThinkingFormat::AntLing => {
                let off = self.model.thinking_word(ThinkingLevel::Off);
                self.write_effort(body, if on { self.word() } else { off });
            }
        }
    }

    fn write_effort(&self, body: &mut Body, effort: Option<&str>) {
        if self.compat.supports_reasoning_effort {
            body.set_some("reasoning_effort", effort);
        }
    }

    /// The provider's name for the level, otherwise the level's own name.
    fn word(&self) -> Option<&'a str> {
        let level = self.level?;
        Some(self.model.thinking_word(level).unwrap_or(level.name()))
    }

    /// The provider's name for `level`, otherwise its own name; `None` if the map says `null`.
    fn word_unless_null(&self, level: ThinkingLevel) -> Option<&'a str> {
        let map = self.model.thinking_level_map.as_ref();
        match map.and_then(|map| map.get(level.name())) {
            None => Some(level.name()),
            Some(word) => word.as_str(),
        }
    }

    /// The name of the level; without thinking the name for `off`, if the model can switch thinking off.
    fn word_or_off(&self) -> Option<&'a str> {
        let off = || {
            let word = self.model.thinking_word(ThinkingLevel::Off);
            self.can_be_off().then(|| word.unwrap_or("none"))
        };
        self.word().or_else(off)
    }

    fn can_be_off(&self) -> bool {
        let map = self.model.thinking_level_map.as_ref();
        !matches!(map.and_then(|map| map.get("off")), Some(Value::Null))
    }

    /// The effort for a chat template: the map's name for the level or for `off`, otherwise the level's own
    /// name.
    fn template_effort(&self) -> Option<&'a str> {
        match self.level {
            Some(level) => self.word_unless_null(level),
            None => self.model.thinking_word(ThinkingLevel::Off),
        }
    }

    /// The values for a chat template, with `$var` objects replaced. `None` if there are none.
    fn template(&self, values: Option<&Map<String, Value>>) -> Option<Map<String, Value>> {
        let values = values?.iter();
        let values = values.filter_map(|(key, value)| {
            let value = match value {
                Value::Object(variable) => self.variable(variable)?,
                other => other.clone(),
            };
            Some((key.clone(), value))
        });
        let values: Map<String, Value> = values.collect();
        (!values.is_empty()).then_some(values)
    }

    fn variable(&self, variable: &Map<String, Value>) -> Option<Value> {
        let omitted_when_off = variable.get("omitWhenOff").and_then(Value::as_bool);
        if self.level.is_none() && omitted_when_off == Some(true) {
            return None;
        }
        match variable.get("$var").and_then(Value::as_str) {
            Some("thinking.enabled") => Some(self.level.is_some().into()),
            Some("thinking.budget") => self.budget.map(Value::from),
            _ => self.template_effort().map(Value::from),
        }
    }
}
