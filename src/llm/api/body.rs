//! The JSON object that is sent, built field by field.
//!
//! Fields stand in the order in which they were set first, so the same request is the same bytes.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::value::RawValue;

#[derive(Default)]
pub struct Body {
    fields: Vec<(String, Box<RawValue>)>,
}

impl Body {
    /// Sets a field; one that is there already keeps its place.
    pub fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // Fails only for maps whose keys are not strings, which are sent by nobody.
        let Ok(value) = serde_json::value::to_raw_value(value) else {
            return;
        };
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    pub fn set_some(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A mark on a block up to which the provider keeps the request in its prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    /// `long`: for an hour instead of minutes.
    pub fn new(long: bool) -> Self {
        Self { r#type: "ephemeral", ttl: long.then_some("1h") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_set_again_keeps_its_place() {
        let mut body = Body::default();
        body.set("b", "x");
        body.set("a", &[1, 2]);
        body.set("b", &CacheControl::new(true));
        body.set_some("c", None::<&str>);
        assert_eq!(body.into_bytes(), br#"{"b":{"type":"ephemeral","ttl":"1h"},"a":[1,2]}"#);
    }
}
