//! Thinking in chat completions: its field name, or the provider's record of it.
//!
//! There is no standard. Servers send thinking as text in one of three fields, and expect it back in that
//! field; some also send `reasoning_details`, pieces of a record that must be sent back whole. The block's
//! signature stores either the field's name or the record as JSON.

use crate::wire::parse;
use crate::wire::parse::{Lenient, Text};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// The field in which thinking with this signature is sent back.
pub fn field(provider: &str, signature: &str) -> Option<&'static str> {
    match signature {
        // This provider sends one field and accepts the other.
        "reasoning" if provider == "opencode-go" => Some("reasoning_content"),
        "reasoning" => Some("reasoning"),
        "reasoning_content" => Some("reasoning_content"),
        "reasoning_text" => Some("reasoning_text"),
        _ => None,
    }
}

/// The record stored in a signature.
pub fn parse_details(signature: Option<&str>) -> Option<Value> {
    let details: Value = serde_json::from_str(signature?.trim_start()).ok()?;
    let list = details.as_array()?;
    (!list.is_empty() && list.iter().all(is_detail)).then_some(details)
}

fn is_detail(detail: &Value) -> bool {
    serde_json::from_str::<Piece<'_>>(&detail.to_string()).is_ok_and(|piece| piece.kind().is_some())
}

/// The encrypted detail that older sessions store on a call.
pub fn parse_legacy_detail(signature: Option<&str>) -> Option<Value> {
    let detail: Value = serde_json::from_str(signature?).ok()?;
    let filled = |name: &str| detail[name].as_str().is_some_and(|text| !text.is_empty());
    let sealed = detail["type"] == "reasoning.encrypted" && filled("id") && filled("data");
    (sealed && is_detail(&detail)).then_some(detail)
}

/// The record of a streamed answer.
#[derive(Default)]
pub struct Details(Vec<Map<String, Value>>);

impl Details {
    /// Adds a piece. A text or summary extends a preceding detail of its kind; other details are separate.
    /// False if the piece is not a valid detail.
    pub fn push(&mut self, piece: Piece<'_>) -> bool {
        let Some(kind) = piece.kind() else {
            return false;
        };
        match self.0.last_mut() {
            Some(last) if continues(last, kind) => {
                if let Some(Value::String(text)) = last.get_mut(kind.text_field()) {
                    text.push_str(piece.text(kind.text_field()).unwrap_or_default());
                }
                fill_in(last, &piece);
            }
            _ => self.0.push(piece.into_map()),
        }
        true
    }

    /// The record as a signature; `None` if there is none.
    pub fn signature(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        serde_json::to_string(&self.0).ok()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Summary,
    Encrypted,
}

impl Kind {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "reasoning.text" => Some(Self::Text),
            "reasoning.summary" => Some(Self::Summary),
            "reasoning.encrypted" => Some(Self::Encrypted),
            _ => None,
        }
    }

    /// The required text field of a detail of this kind.
    fn text_field(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Summary => "summary",
            Self::Encrypted => "data",
        }
    }
}

fn continues(last: &Map<String, Value>, kind: Kind) -> bool {
    let last = last.get("type").and_then(Value::as_str);
    kind != Kind::Encrypted && last.and_then(Kind::parse) == Some(kind)
}

/// Adds fields of a later piece that were missing so far.
fn fill_in(detail: &mut Map<String, Value>, piece: &Piece<'_>) {
    for name in ["signature", "id", "format", "index"] {
        let absent = match detail.get(name) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(_) => false,
        };
        if !absent {
            continue;
        }
        match piece.get(name) {
            None | Some(Field::Other(Value::Null)) => {}
            Some(Field::Text(text)) if text.is_empty() => {}
            Some(field) => {
                detail.insert(name.to_owned(), field.to_value());
            }
        }
    }
}

/// A piece of the record: an object's fields in order, with texts borrowed from the frame, since nearly every
/// thinking delta has one.
#[derive(Debug, Default)]
pub struct Piece<'a>(Vec<(Cow<'a, str>, Field<'a>)>);

#[derive(Debug)]
enum Field<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl Field<'_> {
    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_ref()),
            Self::Other(value) => value.clone(),
        }
    }
}

impl Piece<'_> {
    fn get(&self, name: &str) -> Option<&Field<'_>> {
        let mut fields = self.0.iter().rev();
        fields.find(|(known, _)| known == name).map(|(_, field)| field)
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Field::Text(text) => Some(text),
            Field::Other(_) => None,
        }
    }

    /// `None` if the piece is not a valid detail.
    fn kind(&self) -> Option<Kind> {
        let kind = Kind::parse(self.text("type")?)?;
        self.text(kind.text_field())?;
        let text_or_null = |name: &str| {
            let field = self.get(name);
            matches!(field, None | Some(Field::Text(_) | Field::Other(Value::Null)))
        };
        let format = matches!(self.get("format"), None | Some(Field::Text(_)));
        let index = matches!(self.get("index"), None | Some(Field::Other(Value::Number(_))));
        let signature = kind != Kind::Text || text_or_null("signature");
        (text_or_null("id") && format && index && signature).then_some(kind)
    }

    fn into_map(self) -> Map<String, Value> {
        let fields = self.0.into_iter();
        let fields = fields.map(|(name, field)| {
            let value = match field {
                Field::Text(text) => Value::String(text.into_owned()),
                Field::Other(value) => value,
            };
            (name.into_owned(), value)
        });
        fields.collect()
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Piece<'a> {
    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, field)) = object.next_entry::<Text<'de>, Field<'de>>()? {
            fields.push((name.0.unwrap_or_default(), field));
        }
        Ok(Self(fields))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse::read(deserializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(object)).map(Field::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn pieces_of_text_are_joined_and_sealed_ones_stand_alone() {
        let mut details = Details::default();
        for piece in [
            json!({"type":"reasoning.text","text":"a","id":null,"format":"f","index":0}),
            json!({"type":"reasoning.text","text":"b","signature":"s"}),
            json!({"type":"reasoning.encrypted","data":"x","id":"1"}),
            json!({"type":"reasoning.encrypted","data":"y"}),
            json!({"type":"reasoning.summary","summary":"c"}),
            json!({"type":"reasoning.summary","summary":"d","id":"2"}),
        ] {
            assert!(details.push(Piece::deserialize(&piece).unwrap()));
        }
        for bad in [
            json!(null),
            json!([]),
            json!({"type":"reasoning.text"}),
            json!({"type":"reasoning.text","text":"x","index":"0"}),
            json!({"type":"other","text":"x"}),
        ] {
            assert!(!details.push(Piece::deserialize(&bad).unwrap()));
        }
        let signature = details.signature().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&signature).unwrap(),
            json!([
                {"type":"reasoning.text","text":"ab","id":null,"format":"f","index":0,"signature":"s"},
                {"type":"reasoning.encrypted","data":"x","id":"1"},
                {"type":"reasoning.encrypted","data":"y"},
                {"type":"reasoning.summary","summary":"cd","id":"2"},
            ])
        );
        assert!(parse_details(Some(&signature)).is_some());
    }

    #[test]
    fn only_a_record_is_read_as_one() {
        for signature in [None, Some(""), Some("reasoning_content"), Some("[]"), Some("[{}]"), Some("{}")] {
            assert_eq!(parse_details(signature), None, "{signature:?}");
        }
        let sealed = r#"{"type":"reasoning.encrypted","id":"1","data":"x"}"#;
        assert!(parse_legacy_detail(Some(sealed)).is_some());
        assert!(parse_legacy_detail(Some(r#"{"type":"reasoning.encrypted","data":"x"}"#)).is_none());
    }
}
