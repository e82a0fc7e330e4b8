//! The fields of a client's line: each is declared once, with its name, its shape and its parser.
//!
//! A declaration yields a field's part of the schema, and its value or an error that names it. A `null` field
//! counts as absent.

use crate::base::json::json;
use crate::runtime::control::{InterruptMode, Streaming};
use crate::runtime::{Block, QueueMode, ThinkingLevel, ToolInfo, ToolSpec};
use serde_json::{Map, Value};
use std::time::Duration;

/// The fields of an object that have not been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(pub Map<String, Value>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
}

/// Arguments of a command: a field, a group of fields, or a tuple.
pub trait Args: Sync {
    type Values: Send + 'static;

    /// The fields in the notation of `shape`.
    fn shape(&self) -> String;

    /// Takes the values from `fields`. The error names the invalid field.
    fn read(&self, fields: &mut Fields) -> Result<Self::Values, String>;
}

/// A required field.
pub struct Field<T> {
    name: &'static str,
    shape: &'static str,
    /// Parses a value; the name is for the error.
    read: fn(&str, Value) -> Result<T, String>,
}

impl<T: Send + 'static> Args for Field<T> {
    type Values = T;

    fn shape(&self) -> String {
        format!("{}: {}", self.name, self.shape)
    }

    fn read(&self, fields: &mut Fields) -> Result<T, String> {
        let value = fields.take(self.name).ok_or_else(|| format!("\"{}\" is missing", self.name))?;
        (self.read)(self.name, value)
    }
}

/// An optional field.
pub struct Optional<T>(Field<T>);

pub const fn optional<T>(field: Field<T>) -> Optional<T> {
    Optional(field)
}

impl<T: Send + 'static> Args for Optional<T> {
    type Values = Option<T>;

    fn shape(&self) -> String {
        format!("{}?: {}", self.0.name, self.0.shape)
    }

    fn read(&self, fields: &mut Fields) -> Result<Option<T>, String> {
        fields.take(self.0.name).map(|value| (self.0.read)(self.0.name, value)).transpose()
    }
}

macro_rules! tuple {
    ($($part:ident $at:tt),*) => {
        impl<$($part: Args),*> Args for ($($part,)*) {
            type Values = ($($part::Values,)*);

            fn shape(&self) -> String {
                let parts: &[String] = &[$(self.$at.shape()),*];
                parts.join(", ")
            }

            fn read(&self, _fields: &mut Fields) -> Result<Self::Values, String> {
                Ok(($(self.$at.read(_fields)?,)*))
            }
        }
    };
}

tuple!();
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);

pub const fn text(name: &'static str) -> Field<String> {
    Field { name, shape: "string", read: read_text }
}

pub const fn switch(name: &'static str) -> Field<bool> {
    let read =
        |name: &str, value: Value| value.as_bool().ok_or_else(|| format!("\"{name}\" must be true or false"));
    Field { name, shape: "boolean", read }
}

pub const fn count(name: &'static str) -> Field<usize> {
    let read = |name: &str, value: Value| {
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| format!("\"{name}\" must be a whole number, 0 or more"))
    };
    Field { name, shape: "integer", read }
}

pub const fn thinking_level(name: &'static str) -> Field<ThinkingLevel> {
    Field { name, shape: "Thinking", read: |name, value| read_word(name, value, ThinkingLevel::parse) }
}

pub const fn queue_mode(name: &'static str) -> Field<QueueMode> {
    Field { name, shape: "Queue", read: |name, value| read_word(name, value, QueueMode::parse) }
}

pub const fn interrupt_mode(name: &'static str) -> Field<InterruptMode> {
    Field { name, shape: "Interrupt", read: |name, value| read_word(name, value, InterruptMode::parse) }
}

/// How a prompt during a run is handled.
pub const fn streaming(name: &'static str) -> Field<Streaming> {
    let read = |name: &str, value: Value| {
        read_word(name, value, |word| match word {
            "steer" => Some(Streaming::Steer),
            "followUp" => Some(Streaming::FollowUp),
            _ => None,
        })
    };
    Field { name, shape: r#""steer"|"followUp""#, read }
}

pub const fn texts(name: &'static str) -> Field<Vec<String>> {
    let read = |name: &str, value: Value| {
        let text = |value| match value {
            Value::String(text) => Ok(text),
            _ => Err(format!("\"{name}\" must be a list of strings")),
        };
        read_list(name, value)?.into_iter().map(text).collect()
    };
    Field { name, shape: "string[]", read }
}

/// Tools that the client runs.
pub const fn host_tools(name: &'static str) -> Field<Vec<HostToolSpec>> {
    let read = |name: &str, value: Value| read_objects(name, value)?.iter_mut().map(read_host_tool).collect();
    Field { name, shape: "HostTool[]", read }
}

/// All fields as sent, for the receiver to read.
pub struct All(pub &'static str);

impl Args for All {
    type Values = Fields;

    fn shape(&self) -> String {
        self.0.to_owned()
    }

    fn read(&self, fields: &mut Fields) -> Result<Fields, String> {
        Ok(std::mem::take(fields))
    }
}

/// The text and the images of a user's message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Block>,
}

/// The fields of a prompt: its text in the field of this name, images, and the attachments of the first
/// protocol.
pub struct PromptIn(pub &'static str);

const IMAGES: Optional<Vec<Fields>> =
    optional(Field { name: "images", shape: "Image[]", read: read_objects });
const ATTACHMENTS: Optional<Vec<Fields>> =
    optional(Field { name: "attachments", shape: "Attachment[]", read: read_objects });

impl Args for PromptIn {
    type Values = Prompt;

    fn shape(&self) -> String {
        [text(self.0).shape(), IMAGES.shape(), ATTACHMENTS.shape()].join(", ")
    }

    fn read(&self, fields: &mut Fields) -> Result<Prompt, String> {
        let mut prompt = Prompt { text: text(self.0).read(fields)?, images: Vec::new() };
        for mut image in IMAGES.read(fields)?.unwrap_or_default() {
            prompt.add_image(&mut image, "data")?;
        }
        for mut attachment in ATTACHMENTS.read(fields)?.unwrap_or_default() {
            prompt.attach(&mut attachment)?;
        }
        Ok(prompt)
    }
}

impl Prompt {
    fn add_image(&mut self, fields: &mut Fields, data: &'static str) -> Result<(), String> {
        let (data, kind) = (text(data), text("mimeType")).read(fields)?;
        self.images.push(Block::image(data, kind));
        Ok(())
    }

    fn attach(&mut self, fields: &mut Fields) -> Result<(), String> {
        match text("type").read(fields)?.as_str() {
            "image" => self.add_image(fields, "content"),
            "document" => {
                let name = optional(text("fileName")).read(fields)?.unwrap_or_default();
                let Some(text) = optional(text("extractedText")).read(fields)? else {
                    return Err(format!("The document \"{name}\" has no \"extractedText\""));
                };
                self.text.push_str(&format!("\n\n[Document: {name}]\n{text}"));
                Ok(())
            }
            other => Err(format!("Unknown type of attachment \"{other}\"")),
        }
    }
}

/// A tool that the client runs, as declared by `register_tools`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostToolSpec {
    pub info: ToolInfo,
    pub timeout: Option<Duration>,
}

/// Maximum length of a tool's name, as required by providers.
const TOOL_NAME_MAX: usize = 64;

fn read_host_tool(fields: &mut Fields) -> Result<HostToolSpec, String> {
    let name = text("name").read(fields)?;
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if name.is_empty() || name.len() > TOOL_NAME_MAX || !name.chars().all(is_known) {
        return Err(format!(
            "The name \"{name}\" of a tool must be 1 to {TOOL_NAME_MAX} letters, digits, \"_\" or \"-\""
        ));
    }
    let parameters = match fields.take("parameters") {
        None => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) if schema["type"] == "object" => schema,
        Some(_) => {
            return Err(format!("The \"parameters\" of {name} must be a JSON schema of the type \"object\""));
        }
    };
    let timeout = optional(count("timeoutMs")).read(fields)?;
    Ok(HostToolSpec {
        info: ToolInfo {
            label: optional(text("label")).read(fields)?.unwrap_or_else(|| name.clone()),
            snippet: optional(text("snippet")).read(fields)?,
            sequential: optional(switch("sequential")).read(fields)?.unwrap_or(false),
            reads_only: optional(switch("readOnly")).read(fields)?.unwrap_or(false),
            spec: ToolSpec {
                description: optional(text("description")).read(fields)?.unwrap_or_default(),
                name,
                parameters,
                ..ToolSpec::default()
            },
            ..ToolInfo::default()
        },
        timeout: timeout.map(|ms| Duration::from_millis(ms as u64)),
    })
}

fn read_text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("\"{name}\" must be a string")),
    }
}

fn read_word<T>(name: &str, value: Value, known: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let word = read_text(name, value)?;
    known(&word).ok_or_else(|| format!("Unknown {name} \"{word}\""))
}

fn read_list(name: &str, value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(format!("\"{name}\" must be a list")),
    }
}

fn read_objects(name: &str, value: Value) -> Result<Vec<Fields>, String> {
    let object = |value| match value {
        Value::Object(fields) => Ok(Fields(fields)),
        _ => Err(format!("\"{name}\" must be a list of objects")),
    };
    read_list(name, value)?.into_iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<A: Args>(args: &A, fields: Value, expected: Result<A::Values, &str>)
    where
        A::Values: PartialEq + std::fmt::Debug,
    {
        let Value::Object(map) = fields else { panic!("no object: {fields}") };
        let mut fields = Fields(map);
        assert_eq!(args.read(&mut fields), expected.map_err(str::to_owned));
    }

    fn prompt(text: &str, images: &[&str]) -> Prompt {
        let images = images.iter().map(|data| Block::image(*data, "image/png")).collect();
        Prompt { text: text.into(), images }
    }

    #[test]
    fn prompts_carry_images_and_attachments() {
        let args = (PromptIn("message"), optional(streaming("streamingBehavior")));
        check(
            &args,
            json!({"message": "hi", "images": [{"type": "image", "data": "AA", "mimeType": "image/png"}],
                "streamingBehavior": "steer"}),
            Ok((prompt("hi", &["AA"]), Some(Streaming::Steer))),
        );
        check(
            &args,
            json!({"message": "hi", "images": null, "streamingBehavior": null, "attachments": [
                {"id": "1", "type": "image", "fileName": "a.png", "mimeType": "image/png", "size": 1, "content": "BB"},
                {"id": "2", "type": "document", "fileName": "a.pdf", "mimeType": "application/pdf", "size": 1,
                    "content": "CC", "extractedText": "words"}]}),
            Ok((prompt("hi\n\n[Document: a.pdf]\nwords", &["BB"]), None)),
        );
        check(&PromptIn("content"), json!({"content": "hi"}), Ok(prompt("hi", &[])));
    }

    #[test]
    fn a_wrong_field_is_named() {
        let message = PromptIn("message");
        check(&message, json!({}), Err("\"message\" is missing"));
        check(&message, json!({"message": 5}), Err("\"message\" must be a string"));
        check(&message, json!({"message": "x", "images": {}}), Err("\"images\" must be a list"));
        check(
            &message,
            json!({"message": "x", "images": ["x"]}),
            Err("\"images\" must be a list of objects"),
        );
        check(&message, json!({"message": "x", "images": [{"data": "x"}]}), Err("\"mimeType\" is missing"));
        let document = json!({"message": "x", "attachments": [{"type": "document", "fileName": "f"}]});
        check(&message, document, Err("The document \"f\" has no \"extractedText\""));
        let behavior = optional(streaming("streamingBehavior"));
        check(&behavior, json!({"streamingBehavior": "later"}), Err("Unknown streamingBehavior \"later\""));
        check(&behavior, json!({"streamingBehavior": 1}), Err("\"streamingBehavior\" must be a string"));
        check(&switch("enabled"), json!({"enabled": "yes"}), Err("\"enabled\" must be true or false"));
        check(&thinking_level("level"), json!({"level": "deep"}), Err("Unknown level \"deep\""));
        check(&count("offset"), json!({"offset": -1}), Err("\"offset\" must be a whole number, 0 or more"));
        check(&texts("toolNames"), json!({"toolNames": [1]}), Err("\"toolNames\" must be a list of strings"));
        check(&host_tools("tools"), json!({"tools": [1]}), Err("\"tools\" must be a list of objects"));
    }

    #[test]
    fn a_field_that_is_null_is_absent() {
        check(&(text("a"), optional(text("b"))), json!({"a": "x", "b": null}), Ok(("x".to_owned(), None)));
        check(&text("a"), json!({"a": null}), Err("\"a\" is missing"));
    }

    #[test]
    fn a_declaration_gives_its_shape() {
        assert_eq!(().shape(), "");
        assert_eq!((text("a"), optional(count("b"))).shape(), "a: string, b?: integer");
        assert_eq!(
            PromptIn("message").shape(),
            "message: string, images?: Image[], attachments?: Attachment[]"
        );
    }
}
