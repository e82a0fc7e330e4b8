//! The three kinds of JSON-RPC messages, and errors.
//!
//! Batches are invalid: no protocol of this program has them. An id is echoed unchanged, whatever its type; a
//! request whose id is `null` is still a request.

use crate::base::lenient;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

/// A message received from the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request {
        id: Value,
        method: String,
        /// Null if the message has none.
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        outcome: Result<Value, Failure>,
    },
}

/// The error member of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Failure {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// A line that is not a message. The failure is sent back under `id`, or null if unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad {
    pub id: Value,
    pub failure: Failure,
}

/// Parses one line.
pub fn parse(line: &[u8]) -> Result<Message, Box<Bad>> {
    let bad = |id: Value, code: i64, message: String| {
        let failure = Failure::new(code, message);
        Box::new(Bad { id, failure })
    };
    let value: Value = lenient::read(line).map_err(|error| {
        let message = format!("Parse error: {error}");
        bad(Value::Null, PARSE_ERROR, message)
    })?;
    let invalid = |id: &Option<Value>, what: &str| {
        let id = id.clone().unwrap_or_default();
        bad(id, INVALID_REQUEST, format!("Invalid request: {what}"))
    };
    let Value::Object(mut fields) = value else {
        return Err(invalid(&None, "a message is one object"));
    };
    let id = fields.remove("id");
    if !matches!(id, None | Some(Value::Null | Value::String(_) | Value::Number(_))) {
        return Err(invalid(&None, "\"id\" must be a string or a number"));
    }
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(&id, "\"jsonrpc\" must be \"2.0\""));
    }
    match fields.remove("method") {
        Some(Value::String(method)) => {
            let params = fields.remove("params").unwrap_or_default();
            if !matches!(params, Value::Null | Value::Object(_) | Value::Array(_)) {
                return Err(invalid(&id, "\"params\" must be an object or a list"));
            }
            Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            })
        }
        Some(_) => Err(invalid(&id, "\"method\" must be a string")),
        None => match (id, outcome(&mut fields)) {
            (Some(id), Some(outcome)) => Ok(Message::Response { id, outcome }),
            (id, _) => Err(invalid(&id, "it has neither a method nor a result")),
        },
    }
}

/// What stands at the start of a message that is not read to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    pub id: Option<Value>,
    /// It is a request or a notification.
    pub has_method: bool,
}

impl Start {
    /// `None` if it is no message at all.
    pub fn read(start: &[u8]) -> Option<Self> {
        let mut seen = Self::default();
        // The text is cut.
        let _ = serde_json::Deserializer::from_slice(start).deserialize_map(&mut seen);
        (start.trim_ascii_start().first() == Some(&b'{')).then_some(seen)
    }
}

/// Keeps what it has seen when the input ends.
impl<'de> Visitor<'de> for &mut Start {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(name) = fields.next_key::<String>()? {
            // The next field shows that an id is whole.
            self.id = id.clone();
            self.has_method |= name == "method";
            match &*name {
                "id" => id = Some(fields.next_value()?),
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn outcome(fields: &mut Map<String, Value>) -> Option<Result<Value, Failure>> {
    if let Some(error) = fields.remove("error").filter(|error| !error.is_null()) {
        let strange = Failure::new(INTERNAL_ERROR, error.to_string());
        return Some(Err(serde_json::from_value(error).unwrap_or(strange)));
    }
    fields.remove("result").map(Ok)
}

#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

const VERSION: &str = "2.0";

pub fn request<'a>(id: u64, method: &'a str, params: impl Serialize + 'a) -> impl Serialize + 'a {
    Call { jsonrpc: VERSION, id: Some(id), method, params }
}

pub fn notification<'a>(method: &'a str, params: impl Serialize + 'a) -> impl Serialize + 'a {
    Call { jsonrpc: VERSION, id: None, method, params }
}

pub fn result<'a>(id: &'a Value, result: impl Serialize + 'a) -> impl Serialize + 'a {
    Response { jsonrpc: VERSION, id, result: Some(result), error: None }
}

pub fn failure<'a>(id: &'a Value, error: &'a Failure) -> impl Serialize + 'a {
    Response { jsonrpc: VERSION, id, result: None::<()>, error: Some(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use proptest::prelude::*;

    #[test]
    fn messages_are_told_apart() {
        let request = |id: Value, params: Value| Message::Request { id, method: "m".into(), params };
        let rows = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, request(json!(1), json!({"a": 1}))),
            (r#"{"jsonrpc":"2.0","id":"x","method":"m"}"#, request(json!("x"), Value::Null)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, request(Value::Null, Value::Null)),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#,
                Message::Notification { method: "m".into(), params: json!([1]) },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
                Message::Response { id: json!(1), outcome: Ok(Value::Null) },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"no"}}"#,
                Message::Response { id: json!(1), outcome: Err(Failure::new(-1, "no")) },
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"odd"}"#,
                Message::Response { id: json!(1), outcome: Err(Failure::new(INTERNAL_ERROR, "\"odd\"")) },
            ),
        ];
        for (line, expected) in rows {
            assert_eq!(parse(line.as_bytes()), Ok(expected), "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_answered_under_its_id() {
        let rows = [
            ("{", Value::Null, PARSE_ERROR),
            ("\u{fffd}", Value::Null, PARSE_ERROR),
            ("[]", Value::Null, INVALID_REQUEST),
            ("7", Value::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"m"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, Value::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":2}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":2}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","result":1}"#, Value::Null, INVALID_REQUEST),
        ];
        for (line, id, code) in rows {
            let bad = parse(line.as_bytes()).unwrap_err();
            assert_eq!((bad.id, bad.failure.code), (id, code), "{line}");
        }
    }

    #[test]
    fn a_message_is_known_by_its_start() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":"yyy"#, Some(json!(7)), false),
            (r#"{"id":"a","error":"#, Some(json!("a")), false),
            (r#"{"id":7,"method":"m","params":{"id":8,"x":"yyy"#, Some(json!(7)), true),
            (r#"{"jsonrpc":"2.0","method":"m","params":["yyy"#, None, true),
            (r#"{"jsonrpc":"2.0","result":{"id":7,"x":"yyy"#, None, false),
            (r#"{"jsonrpc":"2.0","id":7"#, None, false),
        ];
        for (start, id, has_method) in rows {
            assert_eq!(Start::read(start.as_bytes()), Some(Start { id, has_method }), "{start}");
        }
        assert_eq!(Start::read(b"yyy"), None);
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let message = parse(br#"{"jsonrpc":"2.0","method":"m","params":["x \ud83d"]}"#).unwrap();
        let expected = Message::Notification { method: "m".into(), params: json!(["x \u{fffd}"]) };
        assert_eq!(message, expected);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let bytes = |value: &dyn Fn() -> Value| value().to_string().into_bytes();
        let failure_of = Failure::new(1, "no");
        let id = json!("a");
        let read = |value: Value| parse(&bytes(&|| value.clone())).unwrap();
        let written = |value: serde_json::Result<Value>| read(value.unwrap());
        assert_eq!(
            written(serde_json::to_value(request(7, "m", [1]))),
            Message::Request { id: json!(7), method: "m".into(), params: json!([1]) }
        );
        assert_eq!(
            written(serde_json::to_value(notification("m", json!({})))),
            Message::Notification { method: "m".into(), params: json!({}) }
        );
        assert_eq!(
            written(serde_json::to_value(result(&id, ()))),
            Message::Response { id: id.clone(), outcome: Ok(Value::Null) }
        );
        assert_eq!(
            written(serde_json::to_value(failure(&id, &failure_of))),
            Message::Response { id: id.clone(), outcome: Err(failure_of.clone()) }
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes);
        }
    }
}
