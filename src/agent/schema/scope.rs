//! Follows `$ref` in a schema, with limits.
//!
//! Only references within the document are followed: `#`, and `#/` with a JSON pointer. Others are not
//! checked. A schema may refer to itself if each cycle makes a step into the value; a cycle without such a
//! step is an error. Recursive choices can take exponential time, so the number of followed references is
//! limited by the size of the value.

use serde_json::Value;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};

pub const ENDLESS: &str = "the schema refers to itself without end";

/// Maximum nesting of references and steps into the value.
pub const DEPTH_MAX: usize = 400;

/// Maximum number of references that a check follows: a base, and an addition for each part of the value.
const FOLLOWED_MAX: usize = 4096;
const FOLLOWED_PER_PART: usize = 256;

/// The progress of one check of a value.
pub struct Scope<'a> {
    root: &'a Value,
    /// The references that led to the current schema; `None` stands for a step into the value.
    path: RefCell<Vec<Option<&'a str>>>,
    /// References that may still be followed.
    left: Cell<usize>,
}

/// The target of a followed reference, or a step into the value. Dropped when the check leaves it.
pub struct Step<'s, 'a> {
    scope: &'s Scope<'a>,
    target: &'a Value,
}

impl<'a> Scope<'a> {
    pub fn new(root: &'a Value, value: &Value) -> Self {
        let left = parts(value).saturating_mul(FOLLOWED_PER_PART).saturating_add(FOLLOWED_MAX);
        Self { root, path: RefCell::default(), left: Cell::new(left) }
    }

    /// Returns the target of the `$ref` in `schema`; `None` if there is no reference, or no target. A
    /// reference that is endless or nested too deeply is an error.
    pub fn follow(&self, schema: &'a Value) -> Result<Option<Step<'_, 'a>>, &'static str> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(None);
        };
        let Some(target) = resolve(self.root, reference) else {
            return Ok(None);
        };
        {
            let path = self.path.borrow();
            let mut here = path.iter().rev().map_while(|step| *step);
            if here.any(|followed| followed == reference) {
                return Err(ENDLESS);
            }
            if path.len() >= DEPTH_MAX {
                return Err("is nested too deeply to be checked");
            }
        }
        let Some(left) = self.left.get().checked_sub(1) else {
            return Err("takes too long to be checked");
        };
        self.left.set(left);
        Ok(Some(self.step(Some(reference), target)))
    }

    /// Enters a value. The step must be held while the value's parts are checked.
    pub fn enter(&self) -> Step<'_, 'a> {
        self.step(None, self.root)
    }

    fn step(&self, step: Option<&'a str>, target: &'a Value) -> Step<'_, 'a> {
        self.path.borrow_mut().push(step);
        Step { scope: self, target }
    }
}

impl<'a> Step<'_, 'a> {
    pub fn target(&self) -> &'a Value {
        self.target
    }
}

impl Drop for Step<'_, '_> {
    fn drop(&mut self) {
        self.scope.path.borrow_mut().pop();
    }
}

/// Returns the target of a reference within the document.
pub fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = decoded(reference.strip_prefix('#')?);
    root.pointer(&pointer)
}

/// Decodes `%XX` in a fragment.
fn decoded(fragment: &str) -> Cow<'_, str> {
    if !fragment.contains('%') {
        return fragment.into();
    }
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part
            .split_at_checked(2)
            .and_then(|(digits, rest)| Some((u8::from_str_radix(digits, 16).ok()?, rest)));
        match byte {
            Some((byte, rest)) => {
                bytes.push(byte);
                bytes.extend_from_slice(rest.as_bytes());
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Counts a value and everything in it.
fn parts(value: &Value) -> usize {
    let inner: usize = match value {
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Object(map) => map.values().map(parts).sum(),
        _ => 0,
    };
    inner + 1
}
