//! JSON values, written as JSON.
//!
//! [`json!`] takes what `serde_json::json!` takes. A member is one call here; the other macro makes its key, puts
//! it in and drops what it replaced where it is used, which is four times as much code.

use serde::de::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A value made of JSON literals and of expressions that serialize. A key that is no literal stands in brackets.
macro_rules! json {
    (@members $map:ident) => { let _ = $map; };
    (@members $map:ident $key:tt: null $(, $($rest:tt)*)?) => {
        $crate::base::json::put($map, &$key, &());
        $crate::base::json::json!(@members $map $($($rest)*)?);
    };
    (@members $map:ident $key:tt: [$($item:tt)*] $(, $($rest:tt)*)?) => {
        let list = $crate::base::json::list($crate::base::json::member($map, &$key));
        $crate::base::json::json!(@items list $($item)*);
        $crate::base::json::json!(@members $map $($($rest)*)?);
    };
    (@members $map:ident $key:tt: {$($member:tt)*} $(, $($rest:tt)*)?) => {
        let map = $crate::base::json::object($crate::base::json::member($map, &$key));
        $crate::base::json::json!(@members map $($member)*);
        $crate::base::json::json!(@members $map $($($rest)*)?);
    };
    (@members $map:ident $key:tt: $value:expr $(, $($rest:tt)*)?) => {
        $crate::base::json::put($map, &$key, &$value);
        $crate::base::json::json!(@members $map $($($rest)*)?);
    };

    (@items $list:ident) => { let _ = $list; };
    (@items $list:ident null $(, $($rest:tt)*)?) => {
        $crate::base::json::push($list, &());
        $crate::base::json::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident [$($item:tt)*] $(, $($rest:tt)*)?) => {
        let list = $crate::base::json::list($crate::base::json::item($list));
        $crate::base::json::json!(@items list $($item)*);
        $crate::base::json::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident {$($member:tt)*} $(, $($rest:tt)*)?) => {
        let map = $crate::base::json::object($crate::base::json::item($list));
        $crate::base::json::json!(@members map $($member)*);
        $crate::base::json::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $crate::base::json::push($list, &$value);
        $crate::base::json::json!(@items $list $($($rest)*)?);
    };

    (null) => { ::serde_json::Value::Null };
    ([$($item:tt)*]) => {{
        let mut root = ::serde_json::Value::Null;
        let list = $crate::base::json::list(&mut root);
        $crate::base::json::json!(@items list $($item)*);
        root
    }};
    ({$($member:tt)*}) => {{
        let mut root = ::serde_json::Value::Null;
        let map = $crate::base::json::object(&mut root);
        $crate::base::json::json!(@members map $($member)*);
        root
    }};
    ($value:expr) => { $crate::base::json::of(&$value) };
}
pub(crate) use json;

/// Parses JSON. A parser of bytes would be made for each type beside the one of text.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(str::from_utf8(bytes).map_err(Error::custom)?)
}

/// `value` as JSON; null for what has no form there.
pub fn of<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[inline(never)]
pub fn put<T: Serialize + ?Sized>(map: &mut Map<String, Value>, key: &str, value: &T) {
    *member(map, key) = of(value);
}

#[inline(never)]
pub fn push<T: Serialize + ?Sized>(list: &mut Vec<Value>, value: &T) {
    list.push(of(value));
}

#[inline(never)]
pub fn member<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Value {
    map.entry(key).or_insert(Value::Null)
}

#[inline(never)]
pub fn item(list: &mut Vec<Value>) -> &mut Value {
    list.push(Value::Null);
    let last = list.len() - 1;
    &mut list[last]
}

/// Makes an empty object of `slot`.
#[inline(never)]
pub fn object(slot: &mut Value) -> &mut Map<String, Value> {
    *slot = Value::Object(Map::new());
    slot.as_object_mut().expect("it was made one")
}

/// Makes an empty list of `slot`.
#[inline(never)]
pub fn list(slot: &mut Value) -> &mut Vec<Value> {
    *slot = Value::Array(Vec::new());
    slot.as_array_mut().expect("it was made one")
}

#[cfg(test)]
mod tests {
    #[test]
    fn makes_what_the_macro_of_serde_json_makes() {
        let (key, some, none) = ("k", Some(1.5), None::<u8>);
        macro_rules! same {
            ($($value:tt)+) => { assert_eq!(json!($($value)+), serde_json::json!($($value)+)) };
        }
        same!(null);
        same!("text");
        same!([]);
        same!({});
        same!([null, [], {}, [1, "two"], {"a": {}}, some, none, (key.len()),]);
        same!({
            "z": null, "a": [], "b": {}, (key): true, "list": [{"a": [null]}, key], "some": some, "none": none,
            "number": -1 + 2, "text": format!("{key}{key}"), "a": "again", "value": json!({"x": [1]}),
        });
    }
}
