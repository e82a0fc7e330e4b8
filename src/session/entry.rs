//! Lines of a session file, version 3: a header, then the entries of a tree.
//!
//! Unknown fields are kept and written back, as are entries of an unknown type or form, so that a file of a
//! newer version loses nothing.

use crate::agent::message::AgentMessage;
use crate::llm::message::{Content, Extra, Usage, number};
use crate::session::error::SessionError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of session files that this program writes.
pub const VERSION: u64 = 3;

/// The first line of a session file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    r#type: HeaderType,
    /// The file's version. Files of version 1 do not name it.
    #[serde(default = "first_version")]
    pub version: u64,
    pub id: String,
    #[serde(default)]
    pub timestamp: String,
    /// The conversation's working folder.
    #[serde(default)]
    pub cwd: String,
    /// The session file that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum HeaderType {
    Session,
}

fn first_version() -> u64 {
    1
}

/// An entry, which is a node of the session's tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: String,
    pub parent_id: Option<String>,
    /// When the entry was written, in ISO 8601.
    pub timestamp: String,
    pub body: Body,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    Message(Message),
    ModelChange(ModelChange),
    ThinkingLevelChange(ThinkingLevelChange),
    Usage(UsageRecord),
    Compaction(Compaction),
    ContextEdit(ContextEdit),
    BranchSummary(BranchSummary),
    Custom(Custom),
    CustomMessage(CustomMessage),
    Label(Label),
    SessionInfo(SessionInfo),
    Unknown(Unknown),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub message: AgentMessage,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    pub provider: String,
    pub model_id: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    pub thinking_level: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Token usage outside the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    pub kind: String,
    #[serde(default)]
    pub provider: String,
    #[serde(default)]
    pub model: String,
    pub usage: Usage,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Replaces everything before `first_kept_entry_id` by a summary. Nothing is kept if the field names the
/// compaction itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<String>,
    #[serde(default, with = "number::count")]
    pub tokens_before: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// True if an extension made the compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// The complete prompt and tools at this point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<AgentMessage>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// Changes an earlier entry in the model's context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    pub target_id: String,
    /// New content; `null` leaves the target out.
    #[serde(default)]
    pub replacement: Option<Replacement>,
    #[serde(flatten)]
    pub extra: Extra,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    pub content: Content,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A summary of the branch that was abandoned at `from_id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    #[serde(default)]
    pub from_id: Option<String>,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// State of an extension. Not part of the model's context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    pub custom_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message of an extension. Its content is part of the model's context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    pub custom_type: String,
    #[serde(default)]
    pub content: Option<Content>,
    #[serde(default)]
    pub display: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// A bookmark; `label: None` removes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Label {
    pub target_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

/// The session's name; an empty string removes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    #[serde(default)]
    pub name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

/// An entry of an unknown type, or of a known type in an unknown form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unknown {
    #[serde(skip)]
    pub kind: String,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl Header {
    pub fn new(id: String, timestamp: String, cwd: String) -> Self {
        Self {
            r#type: HeaderType::Session,
            version: VERSION,
            id,
            timestamp,
            cwd,
            parent_session: None,
            extra: Extra::new(),
        }
    }
}

impl ModelChange {
    pub fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.to_owned(), model_id: model.to_owned(), extra: Extra::new() }
    }
}

impl ThinkingLevelChange {
    pub fn new(level: &str) -> Self {
        Self { thinking_level: level.to_owned(), extra: Extra::new() }
    }
}

impl SessionInfo {
    /// Makes a name on one line: line breaks become spaces.
    pub fn new(name: &str) -> Self {
        let words: Vec<&str> = name.split(['\r', '\n']).filter(|part| !part.is_empty()).collect();
        Self { name: words.join(" ").trim().to_owned(), extra: Extra::new() }
    }
}

impl Body {
    /// Returns the value of the `type` field.
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::ModelChange(_) => "model_change",
            Self::ThinkingLevelChange(_) => "thinking_level_change",
            Self::Usage(_) => "usage",
            Self::Compaction(_) => "compaction",
            Self::ContextEdit(_) => "context_edit",
            Self::BranchSummary(_) => "branch_summary",
            Self::Custom(_) => "custom",
            Self::CustomMessage(_) => "custom_message",
            Self::Label(_) => "label",
            Self::SessionInfo(_) => "session_info",
            Self::Unknown(unknown) => &unknown.kind,
        }
    }

    fn new(kind: String, fields: Map<String, Value>) -> Self {
        fn typed<T: DeserializeOwned>(wrap: fn(T) -> Body, kind: String, fields: Map<String, Value>) -> Body {
            match T::deserialize(&Value::Object(fields.clone())) {
                Ok(body) => wrap(body),
                Err(_) => Body::Unknown(Unknown { kind, fields }),
            }
        }
        match kind.as_str() {
            "message" => typed(Self::Message, kind, fields),
            "model_change" => typed(Self::ModelChange, kind, fields),
            "thinking_level_change" => typed(Self::ThinkingLevelChange, kind, fields),
            "usage" => typed(Self::Usage, kind, fields),
            "compaction" => typed(Self::Compaction, kind, fields),
            "context_edit" => typed(Self::ContextEdit, kind, fields),
            "branch_summary" => typed(Self::BranchSummary, kind, fields),
            "custom" => typed(Self::Custom, kind, fields),
            "custom_message" => typed(Self::CustomMessage, kind, fields),
            "label" => typed(Self::Label, kind, fields),
            "session_info" => typed(Self::SessionInfo, kind, fields),
            _ => Self::Unknown(Unknown { kind, fields }),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            r#type: &'a str,
            id: &'a str,
            parent_id: Option<&'a str>,
            timestamp: &'a str,
            #[serde(flatten)]
            body: &'a Body,
        }
        Line {
            r#type: self.body.kind(),
            id: &self.id,
            parent_id: self.parent_id.as_deref(),
            timestamp: &self.timestamp,
            body: &self.body,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Line {
            r#type: String,
            #[serde(default)]
            id: String,
            #[serde(default)]
            parent_id: Option<String>,
            #[serde(default)]
            timestamp: String,
            #[serde(flatten)]
            fields: Map<String, Value>,
        }
        let line = Line::deserialize(deserializer)?;
        Ok(Self {
            id: line.id,
            parent_id: line.parent_id,
            timestamp: line.timestamp,
            body: Body::new(line.r#type, line.fields),
        })
    }
}

/// Encodes `value` as a line of a session file, with its newline.
pub fn line(value: &impl Serialize) -> Result<Vec<u8>, SessionError> {
    let mut line = serde_json::to_vec(value).map_err(|source| SessionError::Io {
        doing: "encode an entry of",
        path: "the session".into(),
        source: source.into(),
    })?;
    line.push(b'\n');
    Ok(line)
}

pub use crate::base::lenient::read;

macro_rules! from_struct {
    ($($kind:ident),+ $(,)?) => {$(
        impl From<$kind> for Body {
            fn from(body: $kind) -> Self {
                Self::$kind(body)
            }
        }
    )+};
}

from_struct!(
    Message,
    ModelChange,
    ThinkingLevelChange,
    Compaction,
    ContextEdit,
    BranchSummary,
    Custom,
    CustomMessage,
    Label,
    SessionInfo,
);

impl From<UsageRecord> for Body {
    fn from(record: UsageRecord) -> Self {
        Self::Usage(record)
    }
}

impl From<AgentMessage> for Body {
    fn from(message: AgentMessage) -> Self {
        match message {
            // The time of such a message is that of its entry.
            AgentMessage::Custom(custom) => Self::CustomMessage(CustomMessage {
                custom_type: custom.custom_type.clone(),
                content: Some(custom.content.clone()),
                display: custom.display,
                details: custom.details.clone(),
                extra: Extra::new(),
            }),
            message => Self::Message(Message { message, extra: Extra::new() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(json: &str) -> Entry {
        let entry: Entry = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&entry).unwrap(), json);
        entry
    }

    /// Checks that an entry with `fields` is known, survives, and keeps a field of a newer version.
    #[track_caller]
    fn check(kind: &str, fields: &str) {
        for later in ["", r#","later":{"x":[null]}"#] {
            let entry = round_trip(&format!(
                r#"{{"type":"{kind}","id":"a1b2c3d4","parentId":null,"timestamp":"2024-12-03T14:00:00.000Z",{fields}{later}}}"#
            ));
            assert_eq!(entry.body.kind(), kind);
            assert!(!matches!(entry.body, Body::Unknown(_)), "{kind} {fields}");
        }
    }

    #[test]
    fn every_type_is_written_back_as_it_was_read() {
        let usage = r#""usage":{"input":0,"output":0,"cacheRead":50000,"cacheWrite":0,"totalTokens":50000,"cost":{"input":0,"output":0,"cacheRead":0.015,"cacheWrite":0,"total":0.015}}"#;
        check("message", r#""message":{"role":"user","content":"Hello","timestamp":1733234401000}"#);
        check("message", r#""message":{"role":"hologram","z":1}"#);
        check("model_change", r#""provider":"openai","modelId":"gpt-4o""#);
        check("thinking_level_change", r#""thinkingLevel":"high""#);
        check("usage", &format!(r#""kind":"cache_warm","provider":"p","model":"m",{usage},"note":"n""#));
        check("compaction", r#""summary":"s","firstKeptEntryId":"c3d4e5f6","tokensBefore":50000"#);
        check(
            "compaction",
            &format!(
                r#""summary":"s","firstKeptEntryId":"c3d4e5f6","tokensBefore":50000,"details":{{"readFiles":[]}},{usage},"fromHook":true,"systemMessage":{{"role":"system","content":"You","toolsAdded":[{{"name":"x","description":"","parameters":{{}}}}],"timestamp":5}}"#
            ),
        );
        check("context_edit", r#""targetId":"c3d4e5f6","replacement":null"#);
        check("context_edit", r#""targetId":"c3d4e5f6","replacement":{"content":"x","also":1}"#);
        check("branch_summary", r#""fromId":"f6g7h8i9","summary":"Branch""#);
        check("branch_summary", r#""fromId":null,"summary":"","details":{},"fromHook":false"#);
        check("custom", r#""customType":"my-extension","data":{"count":42}"#);
        check("custom_message", r#""customType":"x","content":"Injected","display":true"#);
        check(
            "custom_message",
            r#""customType":"x","content":[{"type":"text","text":"a"}],"display":false,"details":[]"#,
        );
        check("label", r#""targetId":"a1b2c3d4","label":"checkpoint-1""#);
        check("label", r#""targetId":"a1b2c3d4""#);
        check("session_info", r#""name":"Refactor auth module""#);
    }

    #[test]
    fn a_file_with_everything_loses_nothing() {
        let text = include_str!("../../tests/data/session/everything.jsonl");
        for line in text.lines().skip(1) {
            let entry: Entry = read(line.as_bytes()).unwrap();
            let known = !matches!(entry.body, Body::Unknown(_));
            assert_eq!(known, !line.contains("hologram"), "{line}");
            let before: Value = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_value(&entry).unwrap(), before);
        }
    }

    #[test]
    fn what_is_not_known_passes_through() {
        for json in [
            r#"{"type":"hologram","id":"1","parentId":"0","timestamp":"t","depth":{"z":1,"a":[2]}}"#,
            r#"{"type":"label","id":"1","parentId":"0","timestamp":"t","label":5}"#,
        ] {
            assert!(matches!(round_trip(json).body, Body::Unknown(_)));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(proptest::sample::select(br#"\ud8c0{}":a "#.as_slice()), 0..40)) {
            let _ = read::<Entry>(&line);
        }
    }

    #[test]
    fn headers_survive() {
        for json in [
            r#"{"type":"session","version":3,"id":"uuid","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/path/to/project"}"#,
            r#"{"type":"session","version":4,"id":"uuid","timestamp":"t","cwd":"/p","parentSession":"/o.jsonl","later":[1]}"#,
        ] {
            let header: Header = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&header).unwrap(), json);
        }
        let old: Header = serde_json::from_str(r#"{"type":"session","id":"x"}"#).unwrap();
        assert_eq!(old.version, 1);
        assert!(serde_json::from_str::<Header>(r#"{"type":"message","id":"x"}"#).is_err());
    }
}
