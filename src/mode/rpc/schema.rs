//! The JSON Schema of the protocol, made from the rows of `command` and `event_json` and the tables of `shape`.
//!
//! The root schema describes a line on stdout; `$defs/Command` a line on stdin. Objects are open, and clients
//! should accept further fields: a later version may add some.

use super::command::{COMMANDS, Response};
use super::query::PROTOCOL_VERSION;
use super::shape::{FAMILIES, SHAPES};
use crate::base::json::json;
use serde_json::{Map, Value};

/// The schema of every command, response and event.
pub fn schema() -> Value {
    let mut defs = Defs::default();
    defs.family(
        "Command",
        "type",
        COMMANDS.iter().map(|command| {
            let id = if command.response() == Response::Silent { "id: string" } else { "id?: any" };
            (command.name(), format!("{id}, {}", command.fields()))
        }),
    );
    defs.responses();
    for family in FAMILIES {
        let members = family.members.iter().copied().flatten();
        let members = members.map(|(name, fields)| (*name, format!("{}, {fields}", family.head)));
        defs.family(family.name, family.tag, members);
    }
    for (name, shape) in SHAPES {
        defs.add(name, shape);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("pi in RPC mode, version {PROTOCOL_VERSION} of the protocol"),
        "description": "A line on stdout. A line on stdin is a #/$defs/Command.",
        "anyOf": [{"$ref": "#/$defs/Response"}, {"$ref": "#/$defs/Event"}],
        "$defs": defs.0,
    })
}

#[derive(Default)]
struct Defs(Map<String, Value>);

impl Defs {
    fn add(&mut self, name: &str, shape: &str) {
        self.0.insert(name.to_owned(), compile(shape).unwrap_or(Value::Null));
    }

    fn family<'a>(&mut self, name: &str, tag: &str, members: impl Iterator<Item = (&'a str, String)>) {
        let shapes = members.map(|(word, fields)| (word, format!("{{{tag}: \"{word}\", {fields}}}")));
        self.choice(name, shapes);
    }

    /// Adds the responses to commands: success, with or without data, and failure.
    fn responses(&mut self) {
        let answer =
            |command: &str, rest: &str| format!("{{id?: any, type: \"response\", command{command}, {rest}}}");
        let good = COMMANDS.iter().filter_map(|command| {
            let name = command.name();
            let shape = match command.response() {
                Response::Done => answer(&format!(": \"{name}\""), "success: true"),
                Response::Data(data) => {
                    answer(&format!(": \"{name}\""), &format!("success: true, data: {data}"))
                }
                Response::Line(kind) => format!("{{id?: any, type: \"{kind}\"}}"),
                Response::Silent => return None,
            };
            Some((name, shape))
        });
        let bad = answer("?: string", "success: false, error: string");
        self.choice("Response", good.chain([("failure", bad)]));
    }

    fn choice<'a>(&mut self, name: &str, members: impl Iterator<Item = (&'a str, String)>) {
        let mut choices = Vec::new();
        for (word, shape) in members {
            let member = format!("{name}.{word}");
            choices.push(reference(&member));
            self.add(&member, &shape);
        }
        self.0.insert(name.to_owned(), json!({ "anyOf": choices }));
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A shape that is known to be valid, as JSON Schema.
pub fn compile_known(shape: &str) -> Value {
    compile(shape).unwrap_or_default()
}

/// A shape as JSON Schema; `None` if the notation is invalid.
fn compile(shape: &str) -> Option<Value> {
    let mut reader = Reader(shape);
    let value = reader.choice()?;
    reader.0.trim().is_empty().then_some(value)
}

struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn eat(&mut self, mark: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(mark);
        rest.map(|rest| self.0 = rest).is_some()
    }

    fn word(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn choice(&mut self) -> Option<Value> {
        let mut choices = vec![self.list()?];
        while self.eat("|") {
            choices.push(self.list()?);
        }
        Some(one_of(choices))
    }

    fn list(&mut self) -> Option<Value> {
        let mut value = self.single()?;
        while self.eat("[]") {
            value = json!({"type": "array", "items": value});
        }
        Some(value)
    }

    fn single(&mut self) -> Option<Value> {
        if self.eat("{") {
            return self.object();
        }
        if self.eat("(") {
            let value = self.choice()?;
            return self.eat(")").then_some(value);
        }
        if self.eat("\"") {
            let word = self.word()?;
            return self.eat("\"").then(|| json!({ "const": word }));
        }
        Some(match self.word()? {
            "any" => json!({}),
            "true" => json!({"const": true}),
            "false" => json!({"const": false}),
            kind @ ("string" | "integer" | "number" | "boolean" | "null" | "object") => {
                json!({ "type": kind })
            }
            name => reference(name),
        })
    }

    fn object(&mut self) -> Option<Value> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut rest = None;
        while !self.eat("}") {
            if self.eat(",") {
                continue;
            }
            let name = if self.eat("*") { None } else { Some(self.word()?) };
            let is_optional = self.eat("?");
            if !self.eat(":") {
                return None;
            }
            let shape = self.choice()?;
            let Some(name) = name else {
                rest = Some(shape);
                continue;
            };
            properties.insert(name.to_owned(), shape);
            if !is_optional {
                required.push(name);
            }
        }
        let mut object = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        if let Some(rest) = rest {
            object["additionalProperties"] = rest;
        }
        Some(object)
    }
}

/// A choice of schemas: words become an `enum`, plain types one list.
fn one_of(mut choices: Vec<Value>) -> Value {
    let all = |key: &str| -> Option<Vec<Value>> {
        let only = |choice: &Value| {
            choice.get(key).filter(|_| choice.as_object().is_some_and(|o| o.len() == 1)).cloned()
        };
        choices.iter().map(only).collect()
    };
    match choices.len() {
        1 => choices.pop().unwrap_or_default(),
        _ => match (all("const"), all("type")) {
            (Some(words), _) => json!({ "enum": words }),
            (_, Some(types)) => json!({ "type": types }),
            _ => json!({ "anyOf": choices }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;
    use std::collections::BTreeSet;

    #[track_caller]
    fn check(shape: &str, expected: Value) {
        assert_eq!(compile(shape), Some(expected), "{shape}");
    }

    #[test]
    fn the_notation() {
        check("string", json!({"type": "string"}));
        check("string|null", json!({"type": ["string", "null"]}));
        check(r#""a"|"b""#, json!({"enum": ["a", "b"]}));
        check("any[]", json!({"type": "array", "items": {}}));
        check("X|null", json!({"anyOf": [{"$ref": "#/$defs/X"}, {"type": "null"}]}));
        check(
            "(A.b|string)[]",
            json!({"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/A.b"}, {"type": "string"}]}}),
        );
        check(
            "{a: integer, , b?: {}, *: boolean}",
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "object", "properties": {}}},
                "required": ["a"], "additionalProperties": {"type": "boolean"}}),
        );
        for wrong in ["", "{", "{a}", "{a: }", "a b", "\"a", "(a", "a|", "[]"] {
            assert_eq!(compile(wrong), None, "{wrong}");
        }
    }

    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn all_shapes_are_in_the_notation_there_and_used() {
        let schema = schema();
        let defs = schema["$defs"].as_object().unwrap();
        for (name, shape) in defs {
            assert_ne!(shape, &Value::Null, "{name}");
        }
        let mut used = BTreeSet::from(["#/$defs/Command"]);
        references(&schema, &mut used);
        let there: Vec<String> = defs.keys().map(|name| format!("#/$defs/{name}")).collect();
        assert_eq!(used, there.iter().map(String::as_str).collect());
    }

    #[test]
    fn every_command_has_a_shape_and_a_response() {
        let schema = schema();
        for name in command::names() {
            for family in ["Command", "Response"] {
                assert!(schema["$defs"][format!("{family}.{name}")].is_object(), "{family}.{name}");
            }
        }
    }
}
