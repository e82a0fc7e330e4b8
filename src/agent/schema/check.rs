//! Checks a value against a schema.

use super::scope::Scope;
use super::{has_type, join, names, types};
use serde_json::{Map, Value};

/// Faults of a value, each with its path.
pub struct Faults {
    list: Vec<(String, String)>,
    /// True to stop at the first fault, if only its existence matters.
    brief: bool,
}

impl Faults {
    pub fn all() -> Self {
        Self { list: Vec::new(), brief: false }
    }

    fn push(&mut self, path: &str, text: impl Into<String>) {
        self.list.push((path.to_owned(), text.into()));
    }

    pub fn into_lines(self) -> Vec<String> {
        let line = |(path, text): (String, String)| {
            let place = if path.is_empty() { "root" } else { &path };
            format!("{place}: {text}")
        };
        self.list.into_iter().map(line).collect()
    }
}

pub fn is_valid<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>) -> bool {
    let mut faults = Faults { list: Vec::new(), brief: true };
    check(value, schema, scope, "", &mut faults);
    faults.list.is_empty()
}

pub fn check<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>, path: &str, faults: &mut Faults) {
    if faults.brief && !faults.list.is_empty() {
        return;
    }
    if schema == &Value::Bool(false) {
        faults.push(path, "no value is allowed here");
        return;
    }
    match scope.follow(schema) {
        Ok(None) => {}
        Ok(Some(step)) => check(value, step.target(), scope, path, faults),
        Err(text) => return faults.push(path, text),
    }
    let mut fault = |text: String| faults.push(path, text);
    let allowed: Vec<&str> = types(schema).collect();
    if !allowed.is_empty() && !allowed.iter().any(|kind| has_type(value, kind)) {
        return fault(format!("expected {}, got {}", allowed.join(" or "), type_name(value)));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        fault(format!("expected one of {}", list_values(allowed.iter())));
    }
    if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
        fault(format!("expected {wanted}"));
    }
    match value {
        Value::Number(number) => check_number(number.as_f64().unwrap_or(0.0), schema, &mut fault),
        Value::String(text) => check_string(text, schema, &mut fault),
        Value::Array(items) => {
            let count = items.len() as u64;
            if schema["minItems"].as_u64().is_some_and(|least| count < least) {
                fault(format!("expected at least {} items", schema["minItems"]));
            }
            if schema["maxItems"].as_u64().is_some_and(|most| count > most) {
                fault(format!("expected at most {} items", schema["maxItems"]));
            }
            let schemas = &schema["items"];
            let _inside = scope.enter();
            for (index, item) in items.iter().enumerate() {
                let rule = if schemas.is_array() { &schemas[index] } else { schemas };
                check(item, rule, scope, &join(path, &index.to_string()), faults);
            }
        }
        Value::Object(map) => check_object(map, schema, scope, path, faults),
        _ => {}
    }
    check_unions(value, schema, scope, path, faults);
}

fn check_number(number: f64, schema: &Value, fault: &mut impl FnMut(String)) {
    type Holds = fn(&f64, &f64) -> bool;
    let rules: [(&str, &str, Holds); 4] = [
        ("minimum", ">=", f64::ge),
        ("maximum", "<=", f64::le),
        ("exclusiveMinimum", ">", f64::gt),
        ("exclusiveMaximum", "<", f64::lt),
    ];
    for (key, sign, holds) in rules {
        if schema[key].as_f64().is_some_and(|bound| !holds(&number, &bound)) {
            fault(format!("expected {sign} {}", schema[key]));
        }
    }
}

fn check_string(text: &str, schema: &Value, fault: &mut impl FnMut(String)) {
    let count = text.chars().count() as u64;
    if schema["minLength"].as_u64().is_some_and(|least| count < least) {
        fault(format!("expected at least {} characters", schema["minLength"]));
    }
    if schema["maxLength"].as_u64().is_some_and(|most| count > most) {
        fault(format!("expected at most {} characters", schema["maxLength"]));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && regex::Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        fault(format!("expected to match {pattern}"));
    }
}

fn check_object<'a>(
    map: &Map<String, Value>,
    schema: &'a Value,
    scope: &Scope<'a>,
    path: &str,
    faults: &mut Faults,
) {
    for name in names(&schema["required"]).filter(|name| !map.contains_key(*name)) {
        faults.push(&join(path, name), "missing");
    }
    let properties = schema["properties"].as_object();
    let rest = &schema["additionalProperties"];
    let _inside = scope.enter();
    for (key, inner) in map {
        let place = join(path, key);
        match properties.and_then(|known| known.get(key)) {
            Some(property) => check(inner, property, scope, &place, faults),
            None if rest == &Value::Bool(false) => faults.push(&place, "unknown field"),
            None => check(inner, rest, scope, &place, faults),
        }
    }
}

fn check_unions<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>, path: &str, faults: &mut Faults) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(value, part, scope, path, faults);
    }
    for union in ["anyOf", "oneOf"] {
        let Some(choices) = schema[union].as_array() else {
            continue;
        };
        match choices.iter().filter(|choice| is_valid(value, choice, scope)).count() {
            0 if faults.brief => faults.push(path, "matches no alternative"),
            0 => explain_union(value, choices, scope, path, faults),
            2.. if union == "oneOf" => faults.push(path, "matches more than one alternative"),
            _ => {}
        }
    }
}

/// Adds the faults of a value that no choice allows, as seen by the choice that was most likely meant: the
/// one with the value's tag, or else the one that declares most of the value's properties.
fn explain_union<'a>(
    value: &Value,
    choices: &'a [Value],
    scope: &Scope<'a>,
    path: &str,
    faults: &mut Faults,
) {
    let target = |choice: &'a Value| match scope.follow(choice) {
        Ok(Some(step)) => step.target(),
        _ => choice,
    };
    let targets: Vec<&Value> = choices.iter().map(target).collect();
    if let (Some((key, tags)), Value::Object(map)) = (tag(&targets), value) {
        match tags.iter().position(|tag| map.get(key) == Some(tag)) {
            Some(index) => check(value, &choices[index], scope, path, faults),
            None => {
                let text = format!("expected one of {}", list_values(tags.into_iter()));
                faults.push(&join(path, key), text);
            }
        }
        return;
    }
    let declared = |choice: &Value| match (value, choice["properties"].as_object()) {
        (Value::Object(map), Some(properties)) => {
            map.keys().filter(|key| properties.contains_key(*key)).count()
        }
        _ => 0,
    };
    let mut best: Option<(usize, usize, Faults)> = None;
    for (choice, target) in choices.iter().zip(targets) {
        let mut found = Faults::all();
        check(value, choice, scope, path, &mut found);
        let rank = (declared(target), found.list.first().map_or(0, |(path, _)| path.len()));
        if best.as_ref().is_none_or(|(declared, deep, _)| rank > (*declared, *deep)) {
            best = Some((rank.0, rank.1, found));
        }
    }
    match best {
        Some((_, _, found)) => faults.list.extend(found.list),
        None => faults.push(path, "matches no alternative"),
    }
}

/// Returns the property that is a different constant in each of `choices`, with these constants.
fn tag<'a>(choices: &[&'a Value]) -> Option<(&'a str, Vec<&'a Value>)> {
    choices.first()?["properties"].as_object()?.keys().find_map(|key| {
        let tags: Option<Vec<&Value>> =
            choices.iter().map(|choice| choice["properties"][key].get("const")).collect();
        let tags = tags?;
        let is_new = |(index, tag): (usize, &&Value)| {
            !tag.is_object() && !tag.is_array() && !tags[..index].contains(tag)
        };
        tags.iter().enumerate().all(is_new).then(|| (key.as_str(), tags.clone()))
    })
}

/// Maximum number of values that a message lists.
const LISTED_MAX: usize = 20;

fn list_values<'a>(values: impl ExactSizeIterator<Item = &'a Value>) -> String {
    let rest = values.len().saturating_sub(LISTED_MAX);
    let mut shown: Vec<String> = values.take(LISTED_MAX).map(Value::to_string).collect();
    if rest > 0 {
        shown.push(format!(" ... and {rest} more"));
    }
    format!("[{}]", shown.join(","))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if has_type(value, "integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
