//! Parses JSON from servers that violate the protocol.
//!
//! A field of the wrong type counts as absent and does not affect other fields. Strings without escapes are
//! borrowed from the frame, to avoid allocations.

use crate::llm::event::StreamError;
use crate::llm::http::fault::not_understood;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Converts each type of JSON value; by default the value counts as absent.
pub trait Lenient<'de>: Default {
    fn text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn number(_: f64) -> Self {
        Self::default()
    }

    fn flag(_: bool) -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Implements `Deserialize` for a [`Lenient`] type.
pub fn read<'de, T: Lenient<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(LenientVisitor(PhantomData))
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text)))
    }

    #[allow(clippy::cast_precision_loss)] // counts are far below 2^52
    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number as f64))
    }

    #[allow(clippy::cast_precision_loss)]
    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::number(number))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::object(object)
    }
}

/// A text that is not empty.
#[derive(Debug, Default)]
pub struct Text<'a>(pub Option<Cow<'a, str>>);

impl Text<'_> {
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    pub fn or_empty(&self) -> &str {
        self.as_str().unwrap_or_default()
    }

    pub fn to_owned(&self) -> Option<String> {
        self.as_str().map(str::to_owned)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Text<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text).filter(|text| !text.is_empty()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// Maximum count, so that sums of a few counts do not overflow.
const COUNT_LIMIT: f64 = 9e15;

/// A number that is not negative; fractions are cut off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count(pub Option<u64>);

impl Count {
    pub fn or_zero(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

impl<'de> Lenient<'de> for Count {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the limits
    fn number(number: f64) -> Self {
        Self((number >= 0.0).then_some(number.min(COUNT_LIMIT) as u64))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// True only for the JSON value `true`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flag(pub bool);

impl<'de> Lenient<'de> for Flag {
    fn flag(flag: bool) -> Self {
        Self(flag)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// A list; empty if the value is not a list.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Self(items))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// The first item of a list; `None` if the list is empty or the value is not a list.
#[derive(Debug)]
pub struct First<T>(pub Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for First<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(first))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// An object; `None` if the value is not an object.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Self(Some(object)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

/// Parses JSON that strict parsing may reject: of repeated fields the last counts, and raw control characters
/// and unknown escapes inside strings are repaired.
pub fn value(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        let repaired = repair(json);
        let again = serde_json::from_str(&repaired);
        again.map_err(|_| error)
    })
}

fn repair(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len() + 16);
    let mut in_string = false;
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                in_string = !in_string;
                repaired.push(c);
            }
            '\\' if in_string => match chars.clone().next() {
                Some('u') => {
                    let (escape, length) = unicode_escape(chars.as_str());
                    repaired.push(c);
                    repaired.push_str(escape);
                    chars.by_ref().take(length).for_each(drop);
                }
                Some(known @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                    repaired.extend([c, known]);
                    chars.next();
                }
                _ => repaired.push_str("\\\\"),
            },
            c if in_string && c < ' ' => {
                repaired.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => repaired.push(c),
        }
    }
    repaired
}

/// For text that begins with the `u` of an escape: a valid replacement, and the length in characters of the
/// text it replaces. An unpaired surrogate becomes the replacement character.
fn unicode_escape(text: &str) -> (&str, usize) {
    let unit = |text: &str| {
        let digits = text.strip_prefix('u')?.get(..4)?;
        let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        all_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let second = || unit(text.get(5..)?.strip_prefix('\\')?);
    match unit(text) {
        Some(0xd800..=0xdbff) => match second() {
            Some(0xdc00..=0xdfff) => (text.get(..11).unwrap_or_default(), 11),
            _ => ("ufffd", 5),
        },
        Some(0xdc00..=0xdfff) => ("ufffd", 5),
        Some(_) => (text.get(..5).unwrap_or_default(), 5),
        None => ("\\u", 1),
    }
}

/// Parses `T` from JSON, which is repaired if necessary. `mended` holds the repaired JSON, from which `T`
/// then borrows. It is text: each source that `T` is read from costs code of its own.
pub fn event<'a, T: Deserialize<'a>>(json: &'a str, mended: &'a mut String) -> Result<T, StreamError> {
    if let Ok(event) = serde_json::from_str(json) {
        return Ok(event);
    }
    *mended = value(json).map_err(|_| not_understood("stream", json))?.to_string();
    serde_json::from_str(mended).map_err(|_| not_understood("stream", json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Sample<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        list: List<Count>,
        object: Object<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[serde(default)]
        count: Count,
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_absent_and_spoils_nothing() {
        let kinds = ["null", "true", "-1.5", "7", "\"x\"", "[1,[2]]", "{\"count\":3,\"z\":[]}"];
        for kind in kinds {
            for field in ["text", "count", "list", "object"] {
                let json = format!(r#"{{"{field}":{kind},"other":{kind},"last":1}}"#);
                let read: Sample<'_> = serde_json::from_str(&json).unwrap();
                assert_eq!(read.text.as_str().is_some(), field == "text" && kind == "\"x\"");
                assert_eq!(read.count.0, (field == "count" && kind == "7").then_some(7));
                assert_eq!(read.list.0.len(), 2 * usize::from(field == "list" && kind == "[1,[2]]"));
                let inner = read.object.0.map(|inner| inner.count.or_zero());
                assert_eq!(inner, (field == "object" && kind.starts_with('{')).then_some(3));
            }
        }
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let read: Sample<'_> = serde_json::from_str(r#"{"text":"plain"}"#).unwrap();
        assert!(matches!(read.text.0, Some(Cow::Borrowed("plain"))));
    }

    #[test]
    fn the_slow_way_takes_repeated_fields_and_mends_strings() {
        assert_eq!(value(r#"{"a":1,"a":2}"#).unwrap()["a"], 2);
        assert_eq!(value("{\"a\":\"x\ny\\q\"}").unwrap()["a"], "x\ny\\q");
        assert_eq!(value(r#"{"a":"\\"}"#).unwrap()["a"], "\\");
        let pair = value(r#"{"a":1,"a":"\ud83d\ude00 \ud83d \ude00 \u00e9"}"#).unwrap();
        assert_eq!(pair["a"], "😀 \u{fffd} \u{fffd} é");
        assert_eq!(value("{\"a\":\"\\u12\"}").unwrap()["a"], "\\u12");
        assert!(value("{\"a\":").is_err());
        assert!(value("<html>").is_err());
    }
}
