//! The commands that a client can send, and how they are read from a line of JSON.

use super::dialog::Answer;
use super::host_tool::Described;
use crate::base::lenient;
use crate::runtime::control::{InterruptMode, Streaming};
use crate::runtime::{Block, QueueMode, ThinkingLevel, ToolInfo, ToolSpec};
use serde_json::{Map, Value};
use std::time::Duration;

/// A command with what its answer needs.
#[derive(Debug, PartialEq)]
pub struct Incoming {
    /// Echoed as it is.
    pub id: Option<Value>,
    /// The `type`; none when the line has no such word.
    pub name: Option<String>,
    /// An error says what is wrong with the command.
    pub command: Result<Command, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    pub text: String,
    pub images: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Prompt(Said, Option<Streaming>),
    Steer(Said),
    FollowUp(Said),
    Abort,
    /// An abort that is answered by `interrupted`.
    Interrupt,
    AbortAndPrompt(Said),
    ClearQueue,
    NewSession {
        parent: Option<String>,
    },
    GetState,
    GetMessages {
        page: Option<Page>,
    },
    GetEntries {
        since: Option<String>,
    },
    GetTree,
    NavigateTree(Navigate),
    SetModel {
        provider: String,
        id: String,
    },
    CycleModel,
    GetAvailableModels,
    SetThinkingLevel(ThinkingLevel),
    CycleThinkingLevel,
    GetAvailableThinkingLevels,
    SetSteeringMode(QueueMode),
    SetFollowUpMode(QueueMode),
    SetInterruptMode(InterruptMode),
    Compact {
        instructions: Option<String>,
    },
    SetAutoCompaction(bool),
    SetAutoRetry(bool),
    AbortRetry,
    Bash {
        command: String,
        exclude: Option<bool>,
    },
    AbortBash,
    GetSessionStats,
    ExportHtml {
        path: Option<String>,
    },
    SwitchSession {
        path: String,
    },
    Fork {
        entry: String,
    },
    Clone,
    GetForkMessages,
    GetLastAssistantText,
    SetSessionName(String),
    GetCommands,
    GetTools,
    SetActiveTools(Vec<String>),
    Reload,
    Ping,
    SetCumulativeEvents(bool),
    /// An answer to a question; it is not answered itself.
    Answer(Answer),
    RegisterTools(Vec<Described>),
    UnregisterTools(Vec<String>),
    /// What there is of the result of a call that the client runs. Not answered.
    ToolUpdate(Answer),
    /// The result of such a call. Not answered.
    ToolResponse(Answer),
}

/// A part of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Navigate {
    pub target: String,
    pub summarize: bool,
    pub instructions: Option<String>,
    pub replace_instructions: bool,
    pub label: Option<String>,
}

/// Reads one line. An error says why it is no JSON.
pub fn parse(line: &[u8]) -> Result<Incoming, String> {
    let value: Value = lenient::read(line).map_err(|error| error.to_string())?;
    // What is no object has no fields, and so is no known command.
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let id = fields.remove("id").filter(|id| !id.is_null());
    let name = match fields.remove("type") {
        Some(Value::String(name)) => Some(name),
        _ => None,
    };
    let command = match &name {
        Some(name) => read(name, &mut Fields(fields)),
        None => Err(unknown("undefined")),
    };
    Ok(Incoming { id, name, command })
}

/// The fields of a good command that are not its own.
#[cfg(test)]
pub fn parse_rest(line: &[u8]) -> Result<Vec<String>, String> {
    let fields: Map<String, Value> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let name = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut fields = Fields(fields);
    read(&name, &mut fields)?;
    let rest = fields.0.into_iter().map(|(name, _)| name);
    Ok(rest.filter(|name| !["id", "type"].contains(&name.as_str())).collect())
}

fn unknown(name: &str) -> String {
    format!("Unknown command: {name}")
}

fn read(name: &str, fields: &mut Fields) -> Result<Command, String> {
    Ok(match name {
        "prompt" => Command::Prompt(fields.said("message")?, fields.streaming()?),
        // A message of the first protocol is never refused for coming during a run.
        "message" => Command::Prompt(fields.said("content")?, Some(Streaming::FollowUp)),
        "steer" => Command::Steer(fields.said("message")?),
        "follow_up" => Command::FollowUp(fields.said("message")?),
        "abort" => Command::Abort,
        "interrupt" => Command::Interrupt,
        "abort_and_prompt" => Command::AbortAndPrompt(fields.said("message")?),
        "clear_queue" => Command::ClearQueue,
        "new_session" => Command::NewSession { parent: fields.optional_text("parentSession")? },
        "get_state" => Command::GetState,
        "get_messages" => Command::GetMessages { page: fields.page()? },
        "get_entries" => Command::GetEntries { since: fields.optional_text("since")? },
        "get_tree" => Command::GetTree,
        "navigate_tree" => Command::NavigateTree(Navigate {
            target: fields.text("targetId")?,
            summarize: fields.optional_switch("summarize")?.unwrap_or(false),
            instructions: fields.optional_text("customInstructions")?,
            replace_instructions: fields.optional_switch("replaceInstructions")?.unwrap_or(false),
            label: fields.optional_text("label")?,
        }),
        "set_model" => Command::SetModel { provider: fields.text("provider")?, id: fields.text("modelId")? },
        "cycle_model" => Command::CycleModel,
        "get_available_models" => Command::GetAvailableModels,
        "set_thinking_level" => Command::SetThinkingLevel(fields.one_of("level", ThinkingLevel::parse)?),
        "cycle_thinking_level" => Command::CycleThinkingLevel,
        "get_available_thinking_levels" => Command::GetAvailableThinkingLevels,
        "set_steering_mode" => Command::SetSteeringMode(fields.one_of("mode", QueueMode::parse)?),
        "set_follow_up_mode" => Command::SetFollowUpMode(fields.one_of("mode", QueueMode::parse)?),
        "set_interrupt_mode" => Command::SetInterruptMode(fields.one_of("mode", InterruptMode::parse)?),
        "compact" => Command::Compact { instructions: fields.optional_text("customInstructions")? },
        "set_auto_compaction" => Command::SetAutoCompaction(fields.switch("enabled")?),
        "set_auto_retry" => Command::SetAutoRetry(fields.switch("enabled")?),
        "abort_retry" => Command::AbortRetry,
        "bash" => Command::Bash {
            command: fields.text("command")?,
            exclude: fields.optional_switch("excludeFromContext")?,
        },
        "abort_bash" => Command::AbortBash,
        "get_session_stats" => Command::GetSessionStats,
        "export_html" => Command::ExportHtml { path: fields.optional_text("outputPath")? },
        "switch_session" => Command::SwitchSession { path: fields.text("sessionPath")? },
        "fork" | "branch" => Command::Fork { entry: fields.text("entryId")? },
        "clone" => Command::Clone,
        "get_fork_messages" | "get_branch_messages" => Command::GetForkMessages,
        "get_last_assistant_text" => Command::GetLastAssistantText,
        "set_session_name" => Command::SetSessionName(fields.text("name")?),
        "get_commands" => Command::GetCommands,
        "get_tools" => Command::GetTools,
        "set_active_tools" => Command::SetActiveTools(fields.texts("toolNames")?),
        "register_tools" => Command::RegisterTools(fields.tools()?),
        "unregister_tools" => Command::UnregisterTools(fields.texts("toolNames")?),
        "tool_call_update" => Command::ToolUpdate(Answer(std::mem::take(&mut fields.0))),
        "tool_call_response" => Command::ToolResponse(Answer(std::mem::take(&mut fields.0))),
        "reload" => Command::Reload,
        "ping" => Command::Ping,
        "set_cumulative_events" => Command::SetCumulativeEvents(fields.switch("enabled")?),
        "extension_ui_response" => Command::Answer(Answer(std::mem::take(&mut fields.0))),
        _ => return Err(unknown(name)),
    })
}

/// Letters of a tool's name, as providers have it.
const TOOL_NAME_MAX: usize = 64;

/// The fields of a command. One that is `null` counts as absent.
struct Fields(Map<String, Value>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("\"{name}\" must be a string")),
        }
    }

    fn text(&mut self, name: &str) -> Result<String, String> {
        self.optional_text(name)?.ok_or_else(|| missing(name))
    }

    fn optional_switch(&mut self, name: &str) -> Result<Option<bool>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(on)),
            Some(_) => Err(format!("\"{name}\" must be true or false")),
        }
    }

    fn switch(&mut self, name: &str) -> Result<bool, String> {
        self.optional_switch(name)?.ok_or_else(|| missing(name))
    }

    fn optional_count(&mut self, name: &str) -> Result<Option<usize>, String> {
        let wrong = || format!("\"{name}\" must be a whole number, 0 or more");
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let count = value.as_u64().ok_or_else(wrong)?;
        usize::try_from(count).map(Some).map_err(|_| wrong())
    }

    fn one_of<T>(&mut self, name: &str, known: fn(&str) -> Option<T>) -> Result<T, String> {
        let word = self.text(name)?;
        known(&word).ok_or_else(|| format!("Unknown {name} \"{word}\""))
    }

    fn streaming(&mut self) -> Result<Option<Streaming>, String> {
        let behavior = |word: &str| match word {
            "steer" => Some(Streaming::Steer),
            "followUp" => Some(Streaming::FollowUp),
            _ => None,
        };
        match self.0.get("streamingBehavior") {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.one_of("streamingBehavior", behavior).map(Some),
        }
    }

    fn page(&mut self) -> Result<Option<Page>, String> {
        let (offset, limit) = (self.optional_count("offset")?, self.optional_count("limit")?);
        Ok((offset.is_some() || limit.is_some())
            .then(|| Page { offset: offset.unwrap_or(0), limit: limit.unwrap_or(usize::MAX) }))
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(_) => Err(format!("\"{name}\" must be a list")),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let values = self.list(name)?.ok_or_else(|| missing(name))?;
        let text = |value| match value {
            Value::String(text) => Ok(text),
            _ => Err(format!("\"{name}\" must be a list of strings")),
        };
        values.into_iter().map(text).collect()
    }

    /// Tools that the client runs.
    fn tools(&mut self) -> Result<Vec<Described>, String> {
        let tools = self.list("tools")?.ok_or_else(|| missing("tools"))?;
        let tool = |tool| match tool {
            Value::Object(fields) => Self(fields).tool(),
            _ => Err("\"tools\" must be a list of objects".into()),
        };
        tools.into_iter().map(tool).collect()
    }

    fn tool(&mut self) -> Result<Described, String> {
        let name = self.text("name")?;
        let is_known = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || name.len() > TOOL_NAME_MAX || !name.chars().all(is_known) {
            return Err(format!(
                "The name \"{name}\" of a tool must be 1 to {TOOL_NAME_MAX} letters, digits, \"_\" or \"-\""
            ));
        }
        let parameters = match self.take("parameters") {
            None => serde_json::json!({"type": "object", "properties": {}}),
            Some(schema @ Value::Object(_)) if schema["type"] == "object" => schema,
            Some(_) => {
                return Err(format!(
                    "The \"parameters\" of {name} must be a JSON schema of the type \"object\""
                ));
            }
        };
        let timeout = self.optional_count("timeoutMs")?;
        Ok(Described {
            info: ToolInfo {
                label: self.optional_text("label")?.unwrap_or_else(|| name.clone()),
                snippet: self.optional_text("snippet")?,
                sequential: self.optional_switch("sequential")?.unwrap_or(false),
                reads_only: self.optional_switch("readOnly")?.unwrap_or(false),
                spec: ToolSpec {
                    description: self.optional_text("description")?.unwrap_or_default(),
                    name,
                    parameters,
                    ..ToolSpec::default()
                },
                ..ToolInfo::default()
            },
            timeout: timeout.map(|ms| Duration::from_millis(ms as u64)),
        })
    }

    /// What a user says: text, images, and the attachments of the older protocol.
    fn said(&mut self, name: &str) -> Result<Said, String> {
        let mut said = Said { text: self.text(name)?, images: Vec::new() };
        for image in self.list("images")?.unwrap_or_default() {
            let Value::Object(fields) = image else {
                return Err("\"images\" must be a list of objects".into());
            };
            said.add_image(Self(fields), "data")?;
        }
        for attachment in self.list("attachments")?.unwrap_or_default() {
            let Value::Object(fields) = attachment else {
                return Err("\"attachments\" must be a list of objects".into());
            };
            said.attach(Self(fields))?;
        }
        Ok(said)
    }
}

impl Said {
    fn add_image(&mut self, mut fields: Fields, data: &str) -> Result<(), String> {
        let (data, kind) = (fields.text(data)?, fields.text("mimeType")?);
        self.images.push(Block::image(data, kind));
        Ok(())
    }

    fn attach(&mut self, mut fields: Fields) -> Result<(), String> {
        match fields.text("type")?.as_str() {
            "image" => self.add_image(fields, "content"),
            "document" => {
                let name = fields.optional_text("fileName")?.unwrap_or_default();
                let Some(text) = fields.optional_text("extractedText")? else {
                    return Err(format!("The document \"{name}\" has no \"extractedText\""));
                };
                self.text.push_str(&format!("\n\n[Document: {name}]\n{text}"));
                Ok(())
            }
            other => Err(format!("Unknown type of attachment \"{other}\"")),
        }
    }
}

fn missing(name: &str) -> String {
    format!("\"{name}\" is missing")
}

#[cfg(test)]
mod tests {
    use super::super::shape;
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(line: &str, expected: Result<Command, &str>) {
        let incoming = parse(line.as_bytes()).unwrap();
        assert_eq!(incoming.id, None);
        assert_eq!(incoming.command, expected.map_err(str::to_owned), "{line}");
    }

    fn said(text: &str, images: &[&str]) -> Said {
        Said {
            text: text.into(),
            images: images.iter().map(|data| Block::image(*data, "image/png")).collect(),
        }
    }

    #[test]
    fn prompts_carry_images_and_attachments() {
        check(
            r#"{"type":"prompt","message":"hi","images":[{"type":"image","data":"AA","mimeType":"image/png"}],"streamingBehavior":"steer"}"#,
            Ok(Command::Prompt(said("hi", &["AA"]), Some(Streaming::Steer))),
        );
        check(
            r#"{"type":"prompt","message":"hi","images":null,"streamingBehavior":null,"attachments":[
                {"id":"1","type":"image","fileName":"a.png","mimeType":"image/png","size":1,"content":"BB"},
                {"id":"2","type":"document","fileName":"a.pdf","mimeType":"application/pdf","size":1,"content":"CC","extractedText":"words"}]}"#,
            Ok(Command::Prompt(said("hi\n\n[Document: a.pdf]\nwords", &["BB"]), None)),
        );
        check(
            r#"{"type":"message","content":"hi"}"#,
            Ok(Command::Prompt(said("hi", &[]), Some(Streaming::FollowUp))),
        );
    }

    #[test]
    fn wrong_fields_are_named() {
        let rows = [
            (r#"{"type":"prompt"}"#, "\"message\" is missing"),
            (r#"{"type":"prompt","message":5}"#, "\"message\" must be a string"),
            (
                r#"{"type":"prompt","message":"x","streamingBehavior":"later"}"#,
                "Unknown streamingBehavior \"later\"",
            ),
            (
                r#"{"type":"prompt","message":"x","streamingBehavior":1}"#,
                "\"streamingBehavior\" must be a string",
            ),
            (r#"{"type":"steer","message":"x","images":{}}"#, "\"images\" must be a list"),
            (r#"{"type":"steer","message":"x","images":["x"]}"#, "\"images\" must be a list of objects"),
            (r#"{"type":"steer","message":"x","images":[{"data":"x"}]}"#, "\"mimeType\" is missing"),
            (
                r#"{"type":"prompt","message":"x","attachments":[{"type":"document","fileName":"f"}]}"#,
                "The document \"f\" has no \"extractedText\"",
            ),
            (r#"{"type":"set_auto_retry","enabled":"yes"}"#, "\"enabled\" must be true or false"),
            (r#"{"type":"set_thinking_level","level":"deep"}"#, "Unknown level \"deep\""),
            (r#"{"type":"get_messages","offset":-1}"#, "\"offset\" must be a whole number, 0 or more"),
            (r#"{"type":"set_active_tools","toolNames":[1]}"#, "\"toolNames\" must be a list of strings"),
            (r#"{"type":"teleport"}"#, "Unknown command: teleport"),
            (r#"{"type":7}"#, "Unknown command: undefined"),
            ("{}", "Unknown command: undefined"),
        ];
        for (line, error) in rows {
            check(line, Err(error));
        }
    }

    #[test]
    fn what_no_string_can_hold_is_replaced() {
        let lines: [&[u8]; 2] = [
            br#"{"id":"1","type":"prompt","message":"x \ud83d"}"#,
            b"{\"id\":\"1\",\"type\":\"prompt\",\"message\":\"x \xff\"}",
        ];
        for line in lines {
            let incoming = parse(line).unwrap();
            assert_eq!(incoming.id, Some(json!("1")));
            assert_eq!(incoming.command, Ok(Command::Prompt(said("x \u{fffd}", &[]), None)));
        }
    }

    #[test]
    fn ids_are_kept_as_they_are() {
        for id in [json!("a"), json!(7), json!({"x": [1]})] {
            let line = json!({"id": id, "type": "ping"}).to_string();
            assert_eq!(parse(line.as_bytes()).unwrap().id, Some(id));
        }
    }

    #[test]
    fn what_is_no_object_is_no_command() {
        for line in ["null", "[]", "5", "\"prompt\""] {
            check(line, Err("Unknown command: undefined"));
        }
        for line in ["", "x", "{", "{\"type\":\"\\ud8\"}"] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn every_name_is_known() {
        for name in shape::names() {
            let line = json!({"type": name}).to_string();
            let command = parse(line.as_bytes()).unwrap().command;
            assert_ne!(command, Err(unknown(name)));
        }
    }
}
