//! What a server asks in the middle of a request: data of the user (elicitation), an answer of the model (sampling).
//!
//! The user decides on each. Where nobody can be asked, pi says at the greeting that it offers neither.

use crate::agent::message::AgentMessage;
use crate::base::cancel::CancelToken;
use crate::base::json::json;
use crate::jsonrpc::message::{Failure, INVALID_PARAMS};
use crate::llm::message::{AssistantMessage, Block, Content, StopReason, UserMessage, now_ms, text_of};
use crate::llm::model::ThinkingLevel;
use crate::runtime::control::WeakControl;
use crate::runtime::nested::Nested;
use crate::runtime::ui::{Change, Dialog, Severity, Ui, YES};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Fields of a form.
const FIELDS_MAX: usize = 20;
/// Answers to one field that are wrong before the form is given up.
const ATTEMPTS: usize = 3;
/// Messages of a request for an answer of the model.
const MESSAGES_MAX: usize = 100;
/// Characters of such a request that the user is shown.
const SHOWN_CHARS: usize = 600;
/// What the protocol answers when the user refuses.
const REFUSED: i64 = -1;

/// Asks the user of a session.
pub struct Questions {
    pub control: WeakControl,
}

impl Questions {
    /// What pi offers to servers.
    pub fn capabilities() -> Value {
        json!({"roots": {}, "elicitation": {"form": {}, "url": {}}, "sampling": {}})
    }

    /// The answer to a request of the server; none if it is no question.
    pub fn answer(
        &self,
        server: &str,
        method: &str,
        params: &Value,
        cancel: &CancelToken,
    ) -> Option<Result<Value, Failure>> {
        let is_known = matches!(method, "elicitation/create" | "sampling/createMessage");
        let control = self.control.upgrade().filter(|_| is_known)?;
        let ui = control.ui().filter(|ui| ui.is_attended());
        let Some(ui) = ui else {
            return Some(match method {
                "elicitation/create" => Ok(json!({"action": "cancel"})),
                _ => Err(Failure::new(REFUSED, "Nobody can be asked")),
            });
        };
        let asked = Asked { server, ui, cancel };
        Some(match (method, params.get("mode").and_then(Value::as_str)) {
            ("elicitation/create", Some("url")) => asked.open(params),
            ("elicitation/create", _) => asked.form(params),
            _ => asked
                .sample(params, &|nested| control.complete(nested, cancel), &|| control.models().current()),
        })
    }
}

struct Asked<'a> {
    server: &'a str,
    ui: Arc<dyn Ui>,
    cancel: &'a CancelToken,
}

fn invalid(text: &str) -> Failure {
    Failure::new(INVALID_PARAMS, text)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Asked<'_> {
    fn ask(&self, dialog: &Dialog<'_>) -> Option<String> {
        self.ui.ask(dialog, None, self.cancel)
    }

    fn head(&self, text: &str) -> String {
        format!("MCP server \"{}\": {text}", self.server)
    }

    /// Asks whether the user goes to an address.
    fn open(&self, params: &Value) -> Result<Value, Failure> {
        let url = text(params, "url");
        crate::llm::http::address::address(url)
            .filter(|url| url.is_safe())
            .ok_or_else(|| invalid("\"url\" must be a https address"))?;
        let message = format!("{}\n\n{url}\n\nOpen this address?", text(params, "message"));
        let title = self.head("it wants you to open an address");
        let Some(answer) = self.ask(&Dialog::Confirm { title: &title, message: &message }) else {
            return Ok(json!({"action": "cancel"}));
        };
        if answer != YES {
            return Ok(json!({"action": "decline"}));
        }
        self.ui.show(Change::Notify { message: format!("Open {url}"), severity: Severity::Info });
        Ok(json!({"action": "accept"}))
    }

    /// Asks for the fields of a form, one after another.
    fn form(&self, params: &Value) -> Result<Value, Failure> {
        const ANSWER: &str = "Answer";
        const DECLINE: &str = "Decline";
        let schema =
            params.get("requestedSchema").ok_or_else(|| invalid("\"requestedSchema\" is missing"))?;
        let fields = schema.get("properties").and_then(Value::as_object);
        let fields = fields.ok_or_else(|| invalid("\"requestedSchema\" has no properties"))?;
        if fields.len() > FIELDS_MAX {
            return Err(invalid(&format!("a form may have {FIELDS_MAX} fields")));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.contains(&json!(name)));
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        let title = format!("{} (it asks for: {})", self.head(text(params, "message")), names.join(", "));
        let options = [ANSWER.to_owned(), DECLINE.to_owned()];
        match self.ask(&Dialog::Select { title: &title, options: &options }).as_deref() {
            Some(ANSWER) => {}
            Some(_) => return Ok(json!({"action": "decline"})),
            None => return Ok(json!({"action": "cancel"})),
        }
        let mut content = Map::new();
        for (name, field) in fields {
            match self.field(name, field, is_required(name)) {
                Some(Value::Null) => {}
                Some(value) => drop(content.insert(name.clone(), value)),
                None => return Ok(json!({"action": "cancel"})),
            }
        }
        Ok(json!({"action": "accept", "content": content}))
    }

    /// Asks for one field. Null stands for one that is left out; none is a form that is given up.
    fn field(&self, name: &str, field: &Value, is_required: bool) -> Option<Value> {
        let label = Some(text(field, "title")).filter(|title| !title.is_empty()).unwrap_or(name);
        let about = Some(text(field, "description")).filter(|about| !about.is_empty());
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        let optional = if is_required { "" } else { " (may be empty)" };
        let title = format!("{label}{about}{optional}");
        let choices = choices(field);
        let default = field.get("default");
        if !choices.is_empty() {
            const NOTHING: &str = "(nothing)";
            let mut options: Vec<String> = choices.iter().map(|(_, label)| label.clone()).collect();
            options.extend((!is_required).then(|| NOTHING.to_owned()));
            let chosen = self.ask(&Dialog::Select { title: &title, options: &options })?;
            let value = choices.iter().find(|(_, label)| *label == chosen).map(|(value, _)| value.clone());
            return Some(value.unwrap_or(Value::Null));
        }
        let placeholder =
            default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let mut title = title;
        for _ in 0..ATTEMPTS {
            let answer = self.ask(&Dialog::Input { title: &title, placeholder: placeholder.as_deref() })?;
            match (answer.trim(), default) {
                ("", Some(default)) => return Some(default.clone()),
                ("", None) if !is_required => return Some(Value::Null),
                (answer, _) => match read(field, answer) {
                    Ok(value) => return Some(value),
                    Err(why) => title = format!("{label}: {why}"),
                },
            }
        }
        None
    }

    /// Asks the model, if the user agrees.
    fn sample(
        &self,
        params: &Value,
        complete: &dyn Fn(Nested) -> AssistantMessage,
        model: &dyn Fn() -> Arc<crate::llm::model::Model>,
    ) -> Result<Value, Failure> {
        let messages = params.get("messages").and_then(Value::as_array);
        let messages = messages.filter(|messages| (1..=MESSAGES_MAX).contains(&messages.len()));
        let messages = messages.ok_or_else(|| invalid("\"messages\" must be a list of 1 to 100 messages"))?;
        let messages: Vec<AgentMessage> = messages.iter().map(message).collect::<Result<_, _>>()?;
        let system_prompt =
            Some(text(params, "systemPrompt")).filter(|text| !text.is_empty()).map(str::to_owned);
        let said = |message: &AgentMessage| match message {
            AgentMessage::User(user) => text_of(&user.content.to_blocks()),
            AgentMessage::Assistant(assistant) => text_of(&assistant.content),
            _ => String::new(),
        };
        let mut shown: Vec<String> = system_prompt.iter().cloned().collect();
        shown.extend(messages.iter().map(said));
        let shown: String = shown.join("\n").chars().take(SHOWN_CHARS).collect();
        let model = model();
        let title = self.head(&format!("it wants to ask {}", model.id));
        let message = format!("{shown}\n\nThe answer goes to the server. Ask?");
        if self.ask(&Dialog::Confirm { title: &title, message: &message }).as_deref() != Some(YES) {
            return Err(Failure::new(REFUSED, "User rejected sampling request"));
        }
        let max_tokens = params.get("maxTokens").and_then(Value::as_u64);
        let answer = complete(Nested {
            model,
            thinking: ThinkingLevel::Off,
            max_tokens,
            system_prompt,
            tools: Vec::new(),
            messages,
        });
        let stop_reason = match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse => "endTurn",
            StopReason::Length => "maxTokens",
            _ => {
                let why = answer.error_message.unwrap_or_else(|| "the model gave no answer".into());
                return Err(Failure::new(crate::jsonrpc::message::INTERNAL_ERROR, why));
            }
        };
        Ok(json!({"role": "assistant", "content": {"type": "text", "text": text_of(&answer.content)},
            "model": answer.model, "stopReason": stop_reason}))
    }
}

/// A message of a request for an answer of the model.
fn message(value: &Value) -> Result<AgentMessage, Failure> {
    let content = value.get("content").ok_or_else(|| invalid("a message has no \"content\""))?;
    let parts: Vec<&Value> = match content {
        Value::Array(parts) => parts.iter().collect(),
        part => vec![part],
    };
    let block = |part: &&Value| match text(part, "type") {
        "text" => Ok(Block::text(text(part, "text"))),
        "image" => Ok(Block::image(text(part, "data"), text(part, "mimeType"))),
        kind => Err(invalid(&format!("content of the kind \"{kind}\" is not taken"))),
    };
    let blocks: Vec<Block> = parts.iter().map(block).collect::<Result<_, _>>()?;
    Ok(match text(value, "role") {
        "assistant" => AgentMessage::Assistant(Arc::new(AssistantMessage {
            content: blocks,
            stop_reason: StopReason::Stop,
            timestamp: now_ms(),
            ..AssistantMessage::default()
        })),
        _ => AgentMessage::User(Arc::new(UserMessage {
            content: Content::Blocks(blocks),
            timestamp: now_ms(),
            extra: Default::default(),
        })),
    })
}

/// The values that a field may have, with their labels; empty if any value of its type will do.
fn choices(field: &Value) -> Vec<(Value, String)> {
    if text(field, "type") == "boolean" {
        return vec![(true.into(), "yes".into()), (false.into(), "no".into())];
    }
    let of = |list: &Value| -> Vec<(Value, String)> {
        let label = |value: &Value, label: Option<&Value>| {
            let label = label.and_then(Value::as_str).or(value.as_str()).map(str::to_owned);
            (value.clone(), label.unwrap_or_else(|| value.to_string()))
        };
        let names = field.get("enumNames");
        match list.as_array() {
            Some(list) => (0..)
                .zip(list)
                .map(|(at, value)| match value.get("const") {
                    Some(constant) => label(constant, value.get("title")),
                    None => label(value, names.and_then(|names| names.get(at as usize))),
                })
                .collect(),
            None => Vec::new(),
        }
    };
    ["enum", "oneOf"].iter().filter_map(|name| field.get(*name)).map(of).next().unwrap_or_default()
}

/// Reads an answer as the type of its field.
fn read(field: &Value, answer: &str) -> Result<Value, String> {
    let in_range = |number: f64| {
        let bound = |name: &str| field.get(name).and_then(Value::as_f64);
        match (bound("minimum"), bound("maximum")) {
            (Some(least), _) if number < least => Err(format!("at least {least} is needed")),
            (_, Some(most)) if number > most => Err(format!("{most} is the most")),
            _ => Ok(()),
        }
    };
    match text(field, "type") {
        "integer" => {
            let number: i64 = answer.parse().map_err(|_| "a whole number is needed".to_owned())?;
            #[allow(clippy::cast_precision_loss)] // bounds are small
            in_range(number as f64)?;
            Ok(number.into())
        }
        "number" => {
            let number: f64 = answer.parse().map_err(|_| "a number is needed".to_owned())?;
            in_range(number)?;
            Ok(json!(number))
        }
        "array" => {
            let items = answer.split(',').map(str::trim).filter(|item| !item.is_empty());
            let allowed = choices(field.get("items").unwrap_or(&Value::Null));
            let known = |item: &str| {
                let found = allowed.iter().find(|(value, label)| label == item || value == item);
                found.map(|(value, _)| value.clone())
            };
            let items = items.map(|item| match allowed.is_empty() {
                true => Ok(Value::from(item)),
                false => known(item).ok_or_else(|| {
                    let labels: Vec<&str> = allowed.iter().map(|(_, label)| label.as_str()).collect();
                    format!("\"{item}\" is none of {}", labels.join(", "))
                }),
            });
            items.collect::<Result<Vec<Value>, String>>().map(Value::from)
        }
        _ => {
            let count = answer.chars().count() as u64;
            let bound = |name: &str| field.get(name).and_then(Value::as_u64);
            match (bound("minLength"), bound("maxLength")) {
                (Some(least), _) if count < least => Err(format!("at least {least} characters are needed")),
                (_, Some(most)) if count > most => Err(format!("{most} characters are the most")),
                _ => Ok(answer.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_the_type_of_the_field() {
        for (field, answer, expected) in [
            (json!({"type": "string"}), "a", Ok(json!("a"))),
            (json!({"type": "string", "maxLength": 1}), "ab", Err("1 characters are the most")),
            (json!({"type": "integer", "minimum": 2}), "1", Err("at least 2 is needed")),
            (json!({"type": "integer"}), "x", Err("a whole number is needed")),
            (json!({"type": "number", "maximum": 1}), "0.5", Ok(json!(0.5))),
            (json!({"type": "array", "items": {"enum": ["a", "b"]}}), "a, b", Ok(json!(["a", "b"]))),
            (json!({"type": "array", "items": {"enum": ["a"]}}), "c", Err("\"c\" is none of a")),
        ] {
            let found = read(&field, answer);
            assert_eq!(
                found.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|text| *text),
                "{field}"
            );
        }
        assert_eq!(
            choices(&json!({"enum": ["a", "b"], "enumNames": ["A"]})),
            [(json!("a"), "A".to_owned()), (json!("b"), "b".to_owned())]
        );
        assert_eq!(
            choices(&json!({"oneOf": [{"const": 1, "title": "One"}]})),
            [(json!(1), "One".to_owned())]
        );
        assert!(choices(&json!({"type": "string"})).is_empty());
    }
}
