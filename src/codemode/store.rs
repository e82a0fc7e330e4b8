//! Values that scripts keep: entries `codemode-store` of the session, so that each branch has its own.

use crate::runtime::control::Control;
use crate::session::entry::Body;
use crate::session::index::Kind;
use serde_json::{Map, Value};

/// The type of the entries, whose data is `{"set": {key: value}, "delete": [key]}`.
pub const ENTRY: &str = "codemode-store";

/// The values at the leaf of the session.
pub fn load(control: &Control) -> Map<String, Value> {
    let log = control.log();
    let index = log.index();
    let leaf = log.leaf().and_then(|id| index.find(id));
    let path = index.path(leaf).into_iter();
    let customs = path.filter(|at| index.get(*at).is_some_and(|slot| slot.kind == Kind::Custom));
    let mut values = Map::new();
    for entry in customs.filter_map(|at| log.entry_at(at)) {
        let Body::Custom(custom) = entry.body else { continue };
        if custom.custom_type != ENTRY {
            continue;
        }
        let data = custom.data.unwrap_or_default();
        if let (Some(Value::Object(set)), Some(Value::Array(gone))) = (data.get("set"), data.get("delete")) {
            gone.iter().filter_map(Value::as_str).for_each(|key| drop(values.shift_remove(key)));
            values.extend(set.clone());
        }
    }
    values
}

/// Keeps what a script has changed, if it has.
pub fn keep(control: &Control, changes: &Value) -> Result<(), String> {
    let is_empty = |name: &str| match changes.get(name) {
        Some(Value::Object(set)) => set.is_empty(),
        Some(Value::Array(gone)) => gone.is_empty(),
        _ => true,
    };
    if is_empty("set") && is_empty("delete") {
        return Ok(());
    }
    control.append_custom(ENTRY.to_owned(), Some(changes.clone())).map(drop)
}
