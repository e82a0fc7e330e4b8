//! Holds a value against the rules of a schema.

use super::scope::Scope;
use super::{has_type, join, names, types};
use serde_json::{Map, Value};

/// Places and what is wrong there.
pub struct Faults {
    list: Vec<(String, String)>,
    /// The first one decides, and none is shown.
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
        faults.push(path, "schema is false");
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
        fault(match allowed[..] {
            [kind] => format!("must be {kind}"),
            _ => format!("must be either {}", allowed.join(" or ")),
        });
        return;
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        fault("must be equal to one of the allowed values".into());
    }
    if schema.get("const").is_some_and(|wanted| wanted != value) {
        fault("must be equal to constant".into());
    }
    match value {
        Value::Number(number) => check_number(number.as_f64().unwrap_or(0.0), schema, &mut fault),
        Value::String(text) => check_string(text, schema, &mut fault),
        Value::Array(items) => {
            let count = items.len() as u64;
            if schema["minItems"].as_u64().is_some_and(|least| count < least) {
                fault(format!("must not have fewer than {} items", schema["minItems"]));
            }
            if schema["maxItems"].as_u64().is_some_and(|most| count > most) {
                fault(format!("must not have more than {} items", schema["maxItems"]));
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
            fault(format!("must be {sign} {}", schema[key]));
        }
    }
}

fn check_string(text: &str, schema: &Value, fault: &mut impl FnMut(String)) {
    let count = text.chars().count() as u64;
    if schema["minLength"].as_u64().is_some_and(|least| count < least) {
        fault(format!("must not have fewer than {} characters", schema["minLength"]));
    }
    if schema["maxLength"].as_u64().is_some_and(|most| count > most) {
        fault(format!("must not have more than {} characters", schema["maxLength"]));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && regex::Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        fault(format!("must match pattern {pattern:?}"));
    }
}

fn check_object<'a>(
    map: &Map<String, Value>,
    schema: &'a Value,
    scope: &Scope<'a>,
    path: &str,
    faults: &mut Faults,
) {
    let missing: Vec<&str> = names(&schema["required"]).filter(|name| !map.contains_key(*name)).collect();
    if let Some(first) = missing.first() {
        let text = format!("must have required properties {}", missing.join(", "));
        faults.push(&join(path, first), text);
    }
    let properties = schema["properties"].as_object();
    let rest = &schema["additionalProperties"];
    let mut unknown = false;
    let _inside = scope.enter();
    for (key, inner) in map {
        match properties.and_then(|known| known.get(key)) {
            Some(property) => check(inner, property, scope, &join(path, key), faults),
            None => {
                unknown = true;
                check(inner, rest, scope, &join(path, key), faults);
            }
        }
    }
    if unknown && rest == &Value::Bool(false) {
        faults.push(path, "must not have additional properties");
    }
}

fn check_unions<'a>(value: &Value, schema: &'a Value, scope: &Scope<'a>, path: &str, faults: &mut Faults) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(value, part, scope, path, faults);
    }
    for (union, text) in
        [("anyOf", "must match a schema in anyOf"), ("oneOf", "must match exactly one schema in oneOf")]
    {
        let Some(choices) = schema[union].as_array() else {
            continue;
        };
        let matching = choices.iter().filter(|choice| is_valid(value, choice, scope)).count();
        if matching == 0 || (union == "oneOf" && matching > 1) {
            if matching == 0 && !faults.brief {
                for choice in choices {
                    check(value, choice, scope, path, faults);
                }
            }
            faults.push(path, text);
        }
    }
}
