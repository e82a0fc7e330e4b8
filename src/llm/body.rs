//! The JSON body of a request, built field by field.
//!
//! Fields keep the order in which they were first set, so that equal requests have equal bytes.

use super::event::StreamError;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;
use std::sync::Arc;

/// Bodies up to this size in bytes are built once and sent from memory.
const WHOLE_MAX: usize = 2 << 20;
/// Size of the parts that a larger body is made of, in bytes.
const PART: usize = 128 << 10;

/// A path of field names, in which `*` stands for each item of a list.
pub type Place = &'static [&'static str];

/// The fields of a request. The conversation is a list whose items are converted while the body is written, so
/// that neither the converted messages nor a body of many megabytes are ever in memory as a whole.
#[derive(Clone, Default)]
pub struct Body<'a> {
    fields: Vec<(String, Field<'a>)>,
}

#[derive(Clone)]
enum Field<'a> {
    Value(Box<RawValue>),
    List(List<'a>),
}

/// Writes the items of a list in order.
type Source<'a> = dyn Fn(&mut Items<'_>) -> Result<(), StreamError> + Send + Sync + 'a;

#[derive(Clone)]
struct List<'a> {
    source: Arc<Source<'a>>,
    /// The text before and after the items.
    around: [&'static str; 2],
    /// Number of items at the start that are left out.
    skip: usize,
    /// Values that are left out of each item.
    cuts: Vec<Place>,
}

/// Receives the items of a list.
pub struct Items<'o> {
    out: &'o mut Vec<u8>,
    /// Called after each item with the output and the position of the item in it. False if no more is needed.
    after: &'o mut dyn FnMut(&mut Vec<u8>, usize) -> bool,
    skip: usize,
    cuts: &'o [Place],
    is_first: bool,
    is_over: bool,
}

impl Items<'_> {
    pub fn push(&mut self, item: &impl Serialize) {
        if self.is_over || self.skip > 0 {
            self.skip = self.skip.saturating_sub(1);
            return;
        }
        if !self.is_first {
            self.out.push(b',');
        }
        let start = self.out.len();
        // Fails only for maps whose keys are not strings, which do not occur.
        if serde_json::to_writer(&mut *self.out, item).is_err() {
            self.out.truncate(start - usize::from(!self.is_first));
            return;
        }
        self.is_first = false;
        for cut in self.cuts {
            let item = serde_json::from_slice::<&RawValue>(&self.out[start..]).ok();
            if let Some(item) = item.and_then(|item| without(item, cut)) {
                self.out.truncate(start);
                self.out.extend(item.get().as_bytes());
            }
        }
        self.is_over = !(self.after)(self.out, start);
    }

    pub fn extend(&mut self, items: impl IntoIterator<Item = impl Serialize>) {
        items.into_iter().for_each(|item| self.push(&item));
    }
}

impl List<'_> {
    fn write(
        &self,
        out: &mut Vec<u8>,
        after: &mut dyn FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<(), StreamError> {
        let Self { skip, cuts, .. } = self;
        (self.source)(&mut Items { out, after, skip: *skip, cuts, is_first: true, is_over: false })
    }
}

impl<'a> Body<'a> {
    /// Sets a field; an existing field keeps its position.
    pub fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // Fails only for maps whose keys are not strings, which do not occur.
        if let Ok(value) = to_raw_value(value) {
            self.put(name, Field::Value(value));
        }
    }

    /// Sets a field to a list that `source` writes, each time the same items.
    pub fn list(
        &mut self,
        name: &str,
        source: impl Fn(&mut Items<'_>) -> Result<(), StreamError> + Send + Sync + 'a,
    ) {
        self.list_inside(name, ["[", "]"], source);
    }

    /// Like [`Self::list`], for a list inside another value, which is written before and after the items.
    pub fn list_inside(
        &mut self,
        name: &str,
        around: [&'static str; 2],
        source: impl Fn(&mut Items<'_>) -> Result<(), StreamError> + Send + Sync + 'a,
    ) {
        self.put(name, Field::List(List { source: Arc::new(source), around, skip: 0, cuts: Vec::new() }));
    }

    fn put(&mut self, name: &str, field: Field<'a>) {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = field,
            None => self.fields.push((name.to_owned(), field)),
        }
    }

    pub fn set_some(&mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Sets fields configured by the user, replacing existing ones.
    pub fn merge<'f>(&mut self, fields: impl Iterator<Item = (&'f String, &'f Value)>) {
        for (name, value) in fields {
            self.set(name, value);
        }
    }

    /// The value of a field; `None` for a list of [`Self::list`].
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.values().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All fields but the lists of [`Self::list`].
    pub fn values(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.fields.iter().filter_map(|(name, field)| match field {
            Field::Value(value) => Some((name.as_str(), &**value)),
            Field::List(_) => None,
        })
    }

    /// Calls `each` with the items of a list of [`Self::list`].
    pub fn each_item(&self, name: &str, mut each: impl FnMut(&str)) -> Result<(), StreamError> {
        let Some((_, Field::List(list))) = self.fields.iter().find(|(known, _)| known == name) else {
            return Ok(());
        };
        list.write(&mut Vec::new(), &mut |out, start| {
            each(std::str::from_utf8(&out[start..]).unwrap_or_default());
            out.clear();
            true
        })
    }

    /// Leaves out the first items of a list of [`Self::list`].
    pub fn skip_items(&mut self, name: &str, count: usize) {
        let field = self.fields.iter_mut().find(|(known, _)| known == name);
        if let Some((_, Field::List(list))) = field {
            list.skip += count;
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// Removes a field. False if there is none.
    pub fn remove(&mut self, name: &str) -> bool {
        let count = self.fields.len();
        self.fields.retain(|(known, _)| known != name);
        self.fields.len() < count
    }

    /// Renames a field and keeps its position. False if there is no such field.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let field = self.fields.iter_mut().find(|(known, _)| known == from);
        field.map(|(name, _)| to.clone_into(name)).is_some()
    }

    /// Removes the value at a place. Other text is not changed. False if there is no such value.
    pub fn remove_at(&mut self, place: Place) -> bool {
        let [name, rest @ ..] = place else { return false };
        if rest.is_empty() {
            return self.remove(name);
        }
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            None => false,
            Some((_, Field::Value(value))) => match without(value, rest) {
                Some(changed) => {
                    *value = changed;
                    true
                }
                None => false,
            },
            Some((_, Field::List(list))) => list.cut(rest),
        }
    }

    /// The body, in memory unless it is large.
    pub fn render(&self) -> Result<Payload<'a>, StreamError> {
        let mut length = 0;
        let mut out = Vec::new();
        self.write(&mut out, &mut |out, _| {
            if out.len() > WHOLE_MAX || (length > 0 && out.len() > PART) {
                if length == 0 {
                    length = out.len();
                    *out = Vec::new();
                } else {
                    length += out.len();
                    out.clear();
                }
            }
            true
        })?;
        Ok(match length {
            0 => Payload::Whole(out),
            _ => Payload::Long(Long { length: length + out.len(), body: self.clone() }),
        })
    }

    /// The object as JSON, in memory.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StreamError> {
        let mut out = Vec::new();
        self.write(&mut out, &mut |_, _| true)?;
        Ok(out)
    }

    /// Appends the object to `out`; `after` may take away what is there after each item of a list.
    fn write(
        &self,
        out: &mut Vec<u8>,
        after: &mut dyn FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> Result<(), StreamError> {
        out.push(b'{');
        for (at, (name, field)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            let _ = serde_json::to_writer(&mut *out, name); // to memory: cannot fail
            out.push(b':');
            match field {
                Field::Value(value) => out.extend(value.get().as_bytes()),
                Field::List(list) => {
                    out.extend(list.around[0].as_bytes());
                    list.write(out, after)?;
                    out.extend(list.around[1].as_bytes());
                }
            }
        }
        out.push(b'}');
        Ok(())
    }
}

impl List<'_> {
    /// Leaves the value at `place`, as seen from the list, out of all items. False if no item has it.
    fn cut(&mut self, place: Place) -> bool {
        let ["*", rest @ ..] = place else { return false };
        let mut found = false;
        let _ = self.write(&mut Vec::new(), &mut |out, start| {
            let item = serde_json::from_slice::<&RawValue>(&out[start..]).ok();
            found = item.and_then(|item| without(item, rest)).is_some();
            out.clear();
            !found
        });
        if found {
            self.cuts.push(rest);
        }
        found
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.fields.iter().map(|(name, _)| name)).finish()
    }
}

/// The bytes of a body.
pub enum Payload<'a> {
    Whole(Vec<u8>),
    Long(Long<'a>),
}

/// A body too large to be kept in memory, made again each time it is read.
pub struct Long<'a> {
    body: Body<'a>,
    /// In bytes.
    pub length: usize,
}

impl Payload<'_> {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Long(long) => long.length,
        }
    }

    /// Calls `each` with the parts of the body.
    pub fn each_part(&self, each: &mut dyn FnMut(&[u8])) {
        match self {
            Self::Whole(bytes) => each(bytes),
            Self::Long(long) => long.read(&mut |part| {
                each(&part);
                true
            }),
        }
    }
}

impl Long<'_> {
    /// The whole body, for logs.
    pub fn text(&self) -> String {
        self.body.to_bytes().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// Gives the body to `take` in parts, until it returns false.
    pub fn read(&self, take: &mut dyn FnMut(Vec<u8>) -> bool) {
        let mut out = Vec::with_capacity(2 * PART);
        let mut goes_on = true;
        let written = self.body.write(&mut out, &mut |out, _| {
            if out.len() > PART {
                goes_on = take(std::mem::replace(out, Vec::with_capacity(2 * PART)));
            }
            goes_on
        });
        // An error was found when the length was counted.
        if written.is_ok() && goes_on {
            take(out);
        }
    }
}

/// `value` without the value at a place; `None` if there is none.
fn without(value: &RawValue, place: Place) -> Option<Box<RawValue>> {
    let text = match place {
        ["*", rest @ ..] => {
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
            changed.then(|| serde_json::to_string(&items).ok()).flatten()?
        }
        place => {
            let mut object: Body<'_> = serde_json::from_str(value.get()).ok()?;
            object.remove_at(place).then(|| String::from_utf8(object.to_bytes().ok()?).ok()).flatten()?
        }
    };
    RawValue::from_string(text).ok()
}

impl<'de> Deserialize<'de> for Body<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, Box<RawValue>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        let fields = deserializer.deserialize_map(Fields)?.into_iter();
        Ok(Self { fields: fields.map(|(name, value)| (name, Field::Value(value))).collect() })
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
    use crate::base::json::json;

    fn text(body: &Body<'_>) -> String {
        String::from_utf8(body.to_bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_field_set_again_keeps_its_place() {
        let mut body = Body::default();
        assert_eq!(text(&body), "{}");
        body.set("b", "x");
        body.set("a", &[1, 2]);
        body.set("b", &CacheControl::new(true));
        body.set_some("c", None::<&str>);
        assert_eq!(text(&body), r#"{"b":{"type":"ephemeral","ttl":"1h"},"a":[1,2]}"#);
    }

    #[test]
    fn what_is_removed_leaves_the_rest_as_it_is_written() {
        let all = r#"{"a":[{"b":{"c":1.50,"d":"\u00e9"}},3,{"b":{"c":2}}],"e":1e2}"#;
        let rows: &[(Place, &str)] = &[
            (&["a", "*", "b", "c"], r#"{"a":[{"b":{"d":"\u00e9"}},3,{"b":{}}],"e":1e2}"#),
            (&["a", "*", "b"], r#"{"a":[{},3,{}],"e":1e2}"#),
            (&["a"], r#"{"e":1e2}"#),
            (&["e", "x"], all),
            (&["a", "b"], all),
            (&["e", "*", "x"], all),
            (&["z"], all),
            (&[], all),
        ];
        for (place, left) in rows {
            let mut body: Body<'_> = serde_json::from_str(all).unwrap();
            let items: Vec<Box<RawValue>> = serde_json::from_str(body.get("a").unwrap().get()).unwrap();
            let mut listed = body.clone();
            listed.list("a", move |out| {
                out.extend(&items);
                Ok(())
            });
            for body in [&mut body, &mut listed] {
                assert_eq!(text(body), all);
                assert_eq!(body.remove_at(place), *left != all, "{place:?}");
                assert_eq!(text(body), *left, "{place:?}");
            }
        }
        let mut body: Body<'_> = serde_json::from_str(all).unwrap();
        assert!(body.rename("a", "x") && !body.rename("a", "y") && body.has("x"));
        assert!(serde_json::from_str::<Body<'_>>("[1]").is_err());
    }

    #[test]
    fn items_are_read_and_skipped() {
        let mut body = Body::default();
        body.list_inside("a", [r#"{"b":["#, "]}"], |items| {
            items.extend([json!(1), json!([2]), json!("é")]);
            Ok(())
        });
        let mut seen = Vec::new();
        body.each_item("a", |item| seen.push(item.to_owned())).unwrap();
        assert_eq!(seen, ["1", "[2]", "\"é\""]);
        body.skip_items("a", 2);
        assert_eq!(text(&body), r#"{"a":{"b":["é"]}}"#);
        body.skip_items("a", 1);
        assert_eq!(text(&body), r#"{"a":{"b":[]}}"#);
    }

    #[test]
    fn a_large_body_has_the_same_bytes_each_time_it_is_read() {
        let item = "x".repeat(100_000);
        for count in [1, 19, 25, 200] {
            let mut body = Body::default();
            body.set("a", "b");
            body.list("list", |items| {
                (0..count).for_each(|_| items.push(&item));
                Ok(())
            });
            body.set("c", &item);
            let whole = body.to_bytes().unwrap();
            let payload = body.render().unwrap();
            assert_eq!((payload.len(), matches!(payload, Payload::Long(_))), (whole.len(), count > 20));
            for _ in 0..2 {
                let mut read: Vec<u8> = Vec::new();
                payload.each_part(&mut |part| read.extend(part));
                assert!(read == whole, "{count}");
            }
            if let Payload::Long(long) = payload {
                let mut parts = 0;
                long.read(&mut |_| {
                    parts += 1;
                    false
                });
                assert_eq!(parts, 1);
            }
        }
    }
}
