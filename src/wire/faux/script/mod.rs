//! `faux/script`: plays the answers in the JSON file that `PI_FAUX_SCRIPT` names.
//!
//! The file is a list of answers, or `{"answers": [...]}` with settings for all answers. An answer is a text
//! or an object with optional fields:
//!
//! | field | means |
//! |---|---|
//! | `content` | blocks: `{"type": "text", "text"}`, `{"type": "thinking", "thinking"}`, `{"type": "toolCall", "name", "arguments", "id"?}`; `arguments` is an object, or the text to stream in its place |
//! | `text`, `thinking` | short for one block each, thinking first |
//! | `expect` | a piece of text that the user's last message must have, or the answer is an error |
//! | `stopReason` | `stop`, `length`, `toolUse`; by default what fits the content |
//! | `usage` | `input`, `output`, `cacheRead`, `cacheWrite`, `reasoning` in tokens; without it an estimate with a simulated prompt cache |
//! | `error` | a message, or `{"message", "kind"?, "status"?, "retryAfterMs"?}`: how the answer ends after its content. Kinds: `aborted auth request transport timeout provider protocol` |
//! | `delayMs` | before the answer (also a setting for all) |
//! | `chunkDelayMs` | before each piece of it (also a setting for all) |
//! | `chunkSize` | characters of a piece, 12 by default (also a setting for all) |
//! | `tokensPerSecond` | a steady rate (also a setting for all) |
//!
//! Each request of a conversation takes the next answer, also after an error. A conversation that is
//! continued in a later run skips as many answers as it has assistant messages. If no answer is left, the
//! request fails; no answer is played twice.
//!
//! The file is read at each request. An unknown field is an error with its line and column.

use super::play::{Answer, Pace, Piece};
use crate::llm::event::{ErrorKind, StreamError};
use crate::llm::message::{Message, StopReason, Usage};
use crate::llm::protocol::Call;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(super) const VARIABLE: &str = "PI_FAUX_SCRIPT";

/// The next answer of the conversation, or an answer that is an error.
pub(super) fn answer(call: &Call<'_>) -> Answer {
    let set = |(name, _): &&(String, String)| name == VARIABLE;
    let own = call.options.env.iter().find(set).map(|(_, value)| value.clone());
    let path = own.or_else(|| std::env::var(VARIABLE).ok()).unwrap_or_default();
    next(&path, call).unwrap_or_else(|message| Answer::failed(StreamError::new(ErrorKind::Request, message)))
}

fn next(path: &str, call: &Call<'_>) -> Result<Answer, String> {
    if path.is_empty() {
        return Err(format!(
            "faux/script plays the file that {VARIABLE} names, and it is not set. See: pi docs faux"
        ));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("Cannot read the script {path}: {error}"))?;
    let script = parse(&text).map_err(|error| format!("The script {path} is broken: {error}"))?;
    let session = call.options.session_id.as_deref().unwrap_or_default();
    let position = take_turn(path, session, &call.context.messages);
    let count = script.answers.len();
    let Some(step) = script.answers.into_iter().nth(position) else {
        return Err(format!(
            "The script {path} is used up: it has {count} answers, and this is request {}.",
            position + 1
        ));
    };
    if let Some(expected) = &step.expect {
        let said = last_said(&call.context.messages);
        if !said.contains(expected.as_str()) {
            return Err(format!(
                "The script {path} expected the user's last message to hold {expected:?} at answer {}.",
                position + 1
            ));
        }
    }
    Ok(step.into_answer(&script.settings))
}

/// The index of the next answer. Counted here too, since the conversation may lack a failed answer.
fn take_turn(path: &str, session: &str, messages: &[Message]) -> usize {
    static TURNS: Mutex<BTreeMap<(String, String), usize>> = Mutex::new(BTreeMap::new());
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let turn = turns.entry((path.to_owned(), session.to_owned())).or_insert_with(|| {
        let answered = |message: &&Message| matches!(message, Message::Assistant(_));
        messages.iter().filter(answered).count()
    });
    *turn += 1;
    *turn - 1
}

fn last_said(messages: &[Message]) -> String {
    let said = messages.iter().rev().find_map(|message| match message {
        Message::User(user) => Some(user.content.text()),
        _ => None,
    });
    said.unwrap_or_default()
}

/// Parses a script. An error contains line and column.
fn parse(text: &str) -> Result<Script, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[derive(Debug)]
struct Script {
    settings: Settings,
    answers: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    delay_ms: Option<u64>,
    chunk_delay_ms: Option<u64>,
    chunk_size: Option<usize>,
    tokens_per_second: Option<f64>,
}

#[derive(Debug, Default)]
struct Step {
    pieces: Vec<Piece>,
    expect: Option<String>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    error: Option<StreamError>,
    settings: Settings,
}

impl Step {
    fn into_answer(self, all: &Settings) -> Answer {
        let own = self.settings;
        let usual = Pace::default();
        let millis =
            |own: Option<u64>, all: Option<u64>| own.or(all).map_or(Duration::ZERO, Duration::from_millis);
        let rate = own.tokens_per_second.or(all.tokens_per_second);
        Answer {
            pieces: self.pieces,
            usage: self.usage,
            stop: self.stop,
            error: self.error,
            pace: Pace {
                delay: millis(own.delay_ms, all.delay_ms),
                chunk_delay: millis(own.chunk_delay_ms, all.chunk_delay_ms),
                chunk_size: own.chunk_size.or(all.chunk_size).unwrap_or(usual.chunk_size),
                tokens_per_second: rate.filter(|rate| rate.is_finite() && *rate > 0.0),
            },
        }
    }
}

// The forms below are distinguished by hand: an untagged enum would lose the position of an error.

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptFields {
    answers: Vec<Step>,
    delay_ms: Option<u64>,
    chunk_delay_ms: Option<u64>,
    chunk_size: Option<usize>,
    tokens_per_second: Option<f64>,
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Script;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of answers, or an object with \"answers\"")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Script, A::Error> {
                let answers = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                let settings = Settings::default();
                Ok(Script { settings, answers })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Script, A::Error> {
                let fields = ScriptFields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Script {
                    settings: Settings {
                        delay_ms: fields.delay_ms,
                        chunk_delay_ms: fields.chunk_delay_ms,
                        chunk_size: fields.chunk_size,
                        tokens_per_second: fields.tokens_per_second,
                    },
                    answers: fields.answers,
                })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepFields {
    #[serde(default)]
    content: Vec<Piece>,
    text: Option<String>,
    thinking: Option<String>,
    expect: Option<String>,
    stop_reason: Option<Stop>,
    usage: Option<UsageFields>,
    error: Option<Failure>,
    delay_ms: Option<u64>,
    chunk_delay_ms: Option<u64>,
    chunk_size: Option<usize>,
    tokens_per_second: Option<f64>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Step;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an answer: a text or an object")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Step, E> {
                let pieces = vec![Piece::Text(text.to_owned())];
                Ok(Step { pieces, ..Step::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Step, A::Error> {
                let fields = StepFields::deserialize(MapAccessDeserializer::new(map))?;
                let thinking = fields.thinking.map(Piece::Thinking).into_iter();
                let short = thinking.chain(fields.text.map(Piece::Text));
                Ok(Step {
                    pieces: short.chain(fields.content).collect(),
                    expect: fields.expect,
                    stop: fields.stop_reason.map(|Stop(reason)| reason),
                    usage: fields.usage.map(UsageFields::into_usage),
                    error: fields.error.map(|Failure(error)| error),
                    settings: Settings {
                        delay_ms: fields.delay_ms,
                        chunk_delay_ms: fields.chunk_delay_ms,
                        chunk_size: fields.chunk_size,
                        tokens_per_second: fields.tokens_per_second,
                    },
                })
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PieceFields {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
}

impl<'de> Deserialize<'de> for Piece {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = PieceFields::deserialize(deserializer)?;
        let missing = |name| D::Error::missing_field(name);
        match fields.r#type.as_str() {
            "text" => fields.text.map(Self::Text).ok_or_else(|| missing("text")),
            "thinking" => fields.thinking.map(Self::Thinking).ok_or_else(|| missing("thinking")),
            "toolCall" => Ok(Self::ToolCall {
                id: fields.id,
                name: fields.name.ok_or_else(|| missing("name"))?,
                arguments: match fields.arguments {
                    None => Value::Object(Map::new()).to_string(),
                    Some(Value::String(text)) => text,
                    Some(value) => value.to_string(),
                },
            }),
            other => Err(D::Error::unknown_variant(other, &["text", "thinking", "toolCall"])),
        }
    }
}

struct Stop(StopReason);

impl<'de> Deserialize<'de> for Stop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "stop" => Ok(Self(StopReason::Stop)),
            "length" => Ok(Self(StopReason::Length)),
            "toolUse" => Ok(Self(StopReason::ToolUse)),
            other => Err(D::Error::unknown_variant(other, &["stop", "length", "toolUse"])),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[derive(Default)]
struct UsageFields {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: Option<u64>,
}

impl UsageFields {
    fn into_usage(self) -> Usage {
        let sum = [self.output, self.cache_read, self.cache_write];
        Usage {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
            total_tokens: sum.into_iter().fold(self.input, u64::saturating_add),
            ..Usage::default()
        }
    }
}

struct Failure(StreamError);

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FailureFields {
    message: String,
    kind: Option<String>,
    status: Option<u16>,
    retry_after_ms: Option<u64>,
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Failure;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an error: a message or an object")
            }

            fn visit_str<E: Error>(self, message: &str) -> Result<Failure, E> {
                Ok(Failure(StreamError::new(ErrorKind::Provider, message)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Failure, A::Error> {
                let fields = FailureFields::deserialize(MapAccessDeserializer::new(map))?;
                let kind = match &fields.kind {
                    Some(name) => kind(name).ok_or_else(|| A::Error::unknown_variant(name, KINDS))?,
                    None => ErrorKind::Provider,
                };
                let mut error = StreamError::new(kind, fields.message);
                error.status = fields.status;
                error.retry_after_ms = fields.retry_after_ms;
                Ok(Failure(error))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

const KINDS: &[&str] = &["aborted", "auth", "request", "transport", "timeout", "provider", "protocol"];

fn kind(name: &str) -> Option<ErrorKind> {
    Some(match name {
        "aborted" => ErrorKind::Aborted,
        "auth" => ErrorKind::Auth,
        "request" => ErrorKind::Request,
        "transport" => ErrorKind::Transport,
        "timeout" => ErrorKind::Timeout,
        "provider" => ErrorKind::Provider,
        "protocol" => ErrorKind::Protocol,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
