//! The JSON body of a request, built field by field.
//!
//! Fields keep the order in which they were first set, so that equal requests have equal bytes.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

#[derive(Default)]
pub struct Body {
    fields: Vec<(String, Box<RawValue>)>,
}

impl Body {
    /// Sets a field; an existing field keeps its position.
    pub fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // Fails only for maps whose keys are not strings, which do not occur.
        let Ok(value) = to_raw_value(value) else {
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

    /// Sets fields configured by the user, replacing existing ones.
    pub fn merge<'a>(&mut self, fields: impl Iterator<Item = (&'a String, &'a Value)>) {
        for (name, value) in fields {
            self.set(name, value);
        }
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.fields.iter().position(|(known, _)| known == name)?;
        Some(self.fields.remove(at).1)
    }

    /// Renames a field and keeps its position. False if there is no such field.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let field = self.fields.iter_mut().find(|(known, _)| known == from);
        field.map(|(name, _)| to.clone_into(name)).is_some()
    }

    /// Removes the value at the path `place`, in which `*` stands for each item of a list. Other text is not
    /// changed. False if there is no such value.
    pub fn remove_at(&mut self, place: &[&str]) -> bool {
        match place {
            [] => false,
            [name] => self.remove(name).is_some(),
            [name, rest @ ..] => match self.get(name).and_then(|value| without(value, rest)) {
                Some(value) => {
                    self.set(name, &value);
                    true
                }
                None => false,
            },
        }
    }

    /// The object as JSON. The longest field, which is the conversation, is not copied: the others are
    /// written around it.
    pub fn into_bytes(self) -> Vec<u8> {
        let longest = self.fields.iter().enumerate().max_by_key(|(_, (_, value))| value.get().len());
        let Some(longest) = longest.map(|(at, _)| at) else {
            return b"{}".to_vec();
        };
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let mut bytes = Vec::new();
        for (at, (name, value)) in self.fields.into_iter().enumerate() {
            let part = if at <= longest { &mut head } else { &mut tail };
            part.push(b',');
            part.extend(serde_json::to_vec(&name).unwrap_or_default());
            part.push(b':');
            match at == longest {
                true => bytes = Box::<str>::from(value).into_string().into_bytes(),
                false => part.extend(value.get().as_bytes()),
            }
        }
        head[0] = b'{';
        tail.push(b'}');
        bytes.reserve_exact(head.len() + tail.len());
        bytes.splice(..0, head);
        bytes.extend(tail);
        bytes
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

/// `value` without the value at the path `place`; `None` if there is none.
fn without(value: &RawValue, place: &[&str]) -> Option<Box<RawValue>> {
    let ["*", rest @ ..] = place else {
        let mut object: Body = serde_json::from_str(value.get()).ok()?;
        return object.remove_at(place).then(|| to_raw_value(&object).ok()).flatten();
    };
    let items: Vec<Box<RawValue>> = serde_json::from_str(value.get()).ok()?;
    let mut changed = false;
    let items = items.into_iter().map(|item| match without(&item, rest) {
        Some(item) => {
            changed = true;
            item
        }
        None => item,
    });
    let items: Vec<_> = items.collect();
    changed.then(|| to_raw_value(&items).ok()).flatten()
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Body;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Body { fields })
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Marks the end of a part of the request that the provider should keep in its prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    /// A mark that lasts an hour if `long`, otherwise five minutes.
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

    #[test]
    fn fields_stand_around_the_longest_one_wherever_that_is() {
        assert_eq!(Body::default().into_bytes(), b"{}");
        for longest in 0..3 {
            let mut body = Body::default();
            for at in 0..3 {
                body.set(&format!("\"{at}"), &"é".repeat(if at == longest { 9 } else { 1 }));
            }
            let plain = serde_json::to_vec(&body).unwrap();
            assert_eq!(body.into_bytes(), plain, "{longest}");
        }
    }

    #[test]
    fn what_is_removed_leaves_the_rest_as_it_is_written() {
        let text = r#"{"a":[{"b":{"c":1.50,"d":"\u00e9"}},3,{"b":{"c":2}}],"e":1e2}"#;
        let rows: &[(&[&str], &str)] = &[
            (&["a", "*", "b", "c"], r#"{"a":[{"b":{"d":"\u00e9"}},3,{"b":{}}],"e":1e2}"#),
            (&["a", "*", "b"], r#"{"a":[{},3,{}],"e":1e2}"#),
            (&["a"], r#"{"e":1e2}"#),
            (&["e", "x"], text),
            (&["a", "b"], text),
            (&["e", "*", "x"], text),
            (&["z"], text),
            (&[], text),
        ];
        for (place, left) in rows {
            let mut body: Body = serde_json::from_str(text).unwrap();
            assert_eq!(body.remove_at(place), *left != text, "{place:?}");
            assert_eq!(String::from_utf8(body.into_bytes()).unwrap(), *left, "{place:?}");
        }
        let mut body: Body = serde_json::from_str(text).unwrap();
        assert!(body.rename("a", "x") && !body.rename("a", "y") && body.has("x"));
        assert!(serde_json::from_str::<Body>("[1]").is_err());
    }
}
