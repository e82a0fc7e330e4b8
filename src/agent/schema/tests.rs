//! What is taken, what is bent, and what is said of the rest.

use super::*;
use proptest::prelude::*;

fn schema() -> Value {
    json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string"}, "offset": {"type": "number"}, "a": {"type": "integer", "minimum": 3, "maximum": 5},
        "b": {"enum": ["p", "q"]}, "c": {"const": 1}, "d": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "e": {"type": "boolean"}, "f": {"type": ["string", "null"]}, "g": {"type": "string", "minLength": 2, "pattern": "^a"},
        "h": {"type": "array", "items": {"type": "number"}, "maxItems": 1},
        "l": {"type": "object", "properties": {"x": {"type": "number"}}}, "m": {"type": ["string", "array"]},
        "n": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "i": {"oneOf": [{"type": "number"}, {"type": "boolean"}]}, "j": {"type": "null"},
        "k": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["x", "y"],
            "additionalProperties": false, "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}}}})
}

/// Checks one property beside a valid `path`: the value it becomes, or the lines that are said.
#[track_caller]
fn property(given: Value, expected: Result<Value, &str>) {
    let (key, value) = given.as_object().unwrap().iter().next().unwrap();
    let mut arguments = Map::new();
    arguments.insert("path".into(), json!("p"));
    arguments.insert(key.clone(), value.clone());
    let got = validate("t", &schema(), &arguments);
    match expected {
        Ok(value) => {
            let mut map = got.unwrap_or_else(|fault| panic!("{given}: {fault}"));
            assert_eq!(map.shift_remove(key).unwrap_or(json!("absent")), value, "{given}");
        }
        Err(lines) => {
            let fault = got.expect_err(&given.to_string());
            let said = fault.split("\n\n").next().unwrap().replace("Validation failed for tool \"t\":\n", "");
            assert_eq!(said, lines, "{given}");
        }
    }
}

#[test]
fn near_misses_are_bent() {
    property(json!({"offset": "2"}), Ok(json!(2)));
    property(json!({"offset": "2.5"}), Ok(json!(2.5)));
    property(json!({"offset": null}), Ok(json!("absent")));
    property(json!({"path": 1}), Ok(json!("1")));
    property(json!({"path": null}), Ok(json!("")));
    property(json!({"d": true}), Ok(json!("true")));
    property(json!({"e": "true"}), Ok(json!(true)));
    property(json!({"e": "True"}), Ok(json!(true)));
    property(json!({"e": "0"}), Ok(json!(false)));
    property(json!({"e": 1}), Ok(json!(true)));
    property(json!({"j": "null"}), Ok(json!(null)));
    property(json!({"f": null}), Ok(json!(null)));
    property(json!({"f": 3}), Ok(json!("3")));
    property(json!({"h": ["1"]}), Ok(json!([1])));
    property(json!({"i": "true"}), Ok(json!(true)));
    property(json!({"a": "4"}), Ok(json!(4)));
    property(json!({"unknown": {"x": 1}}), Ok(json!({"x": 1})));
}

#[test]
fn faults_name_the_place_and_the_rule() {
    property(json!({"path": ["a"]}), Err("  - path: expected string, got array"));
    property(json!({"offset": "abc"}), Err("  - offset: expected number, got string"));
    property(json!({"offset": "inf"}), Err("  - offset: expected number, got string"));
    property(json!({"a": 1}), Err("  - a: expected >= 3"));
    property(json!({"a": 9}), Err("  - a: expected <= 5"));
    property(json!({"a": 4.5}), Err("  - a: expected integer, got number"));
    property(json!({"b": "z"}), Err(r#"  - b: expected one of ["p","q"]"#));
    property(json!({"c": 2}), Err("  - c: expected 1"));
    property(json!({"d": []}), Err("  - d: expected string, got array"));
    property(json!({"e": 2}), Err("  - e: expected boolean, got integer"));
    property(json!({"g": "a"}), Err("  - g: expected at least 2 characters"));
    property(json!({"g": "bb"}), Err("  - g: expected to match ^a"));
    property(json!({"h": [1, 2]}), Err("  - h: expected at most 1 items"));
    property(json!({"h": "x"}), Err("  - h.0: expected number, got string"));
    property(json!({"h": null}), Ok(json!("absent")));
    property(json!({"j": 1}), Err("  - j: expected null, got integer"));
    property(json!({"k": []}), Err("  - k: expected at least 1 items"));
    property(json!({"k": [{"x": 1}]}), Err("  - k.0.y: missing"));
    property(json!({"k": [{"x": "a", "y": "b", "z": 1}]}), Err("  - k.0.z: unknown field"));
}

#[test]
fn the_message_shows_what_was_received() {
    let fault = validate("read", &schema(), &Map::new()).unwrap_err();
    assert_eq!(fault, "Validation failed for tool \"read\":\n  - path: missing\n\nReceived arguments:\n{}");
}

/// Checks `value` against `schema`, as it is and as arguments under the key `v`.
#[track_caller]
fn referred(mut schema: Value, value: &Value, expected: &[&str]) {
    assert_eq!(faults(value, &schema), expected, "{value}");
    let property = json!({"v": {"$ref": "#/$defs/root"}});
    let root = schema.as_object_mut().unwrap();
    let mut definitions = root.shift_remove("$defs").unwrap_or(json!({}));
    definitions["root"] = root.clone().into();
    let whole = json!({"type": "object", "properties": property, "$defs": definitions});
    let arguments = json!({"v": value}).as_object().unwrap().clone();
    let is_valid = validate("t", &whole, &arguments).is_ok();
    assert_eq!(is_valid, expected.is_empty(), "{value} as arguments");
}

#[test]
fn references_lead_to_definitions() {
    let schema = || {
        json!({"$ref": "#/$defs/node", "$defs": {
            "node": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "minLength": 1},
                "kind": {"$ref": "#/$defs/a~1b%20c", "description": "what it is"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "parent": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}},
            "a/b c": {"enum": ["x", "y"]}}})
    };
    let leaf = json!({"name": "leaf", "kind": "x"});
    referred(schema(), &leaf, &[]);
    referred(
        schema(),
        &json!({"name": "a", "children": [leaf, {"name": "b", "children": [leaf]}], "parent": null}),
        &[],
    );
    referred(
        schema(),
        &json!({"name": "a", "children": [{"name": "b", "children": [{"name": ""}]}]}),
        &["children.0.children.0.name: expected at least 1 characters"],
    );
    referred(schema(), &json!({"name": "a", "kind": "z"}), &[r#"kind: expected one of ["x","y"]"#]);
    referred(
        schema(),
        &json!({"name": "a", "parent": {"name": []}}),
        &["parent.name: expected string, got array"],
    );
}

#[test]
fn rules_beside_a_reference_count_too() {
    let schema = json!({"$ref": "#/definitions/n", "maximum": 5, "definitions": {"n": {"minimum": 3}}});
    for (value, fault) in [(2, "root: expected >= 3"), (9, "root: expected <= 5")] {
        assert_eq!(faults(&json!(value), &schema), [fault]);
    }
    assert!(faults(&json!(4), &schema).is_empty());
}

#[test]
fn the_whole_schema_can_be_referred_to() {
    let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}},
        "additionalProperties": false});
    assert!(faults(&json!({"next": {"next": {"n": 1}}}), &schema).is_empty());
    assert_eq!(
        faults(&json!({"next": {"next": {"n": "1"}}}), &schema),
        ["next.next.n: expected integer, got string"]
    );
    let given = json!({"next": {"next": {"n": "1", "next": null}}});
    let bent = validate("t", &schema, given.as_object().unwrap()).unwrap();
    assert_eq!(Value::from(bent), json!({"next": {"next": {"n": 1}}}));
}

#[test]
fn a_reference_that_leads_nowhere_is_not_checked() {
    for reference in ["#/$defs/none", "other.json", "#anchor", "http://x/y#/z", ""] {
        let schema = json!({"$ref": reference});
        assert!(faults(&json!(1), &schema).is_empty(), "{reference}");
        assert_eq!(unsupported(&schema).len(), 1, "{reference}");
    }
    assert_eq!(unsupported(&json!({"$ref": 1})).len(), 1);
}

#[test]
fn a_reference_without_end_is_a_fault() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}),
        json!({"allOf": [{"$ref": "#/allOf/0"}]}),
    ] {
        assert!(!faults(&json!({"x": 1}), &schema).is_empty(), "{schema}");
        assert!(!unsupported(&schema).is_empty(), "{schema}");
        let arguments = Map::new();
        let fault = validate("t", &schema, &arguments).unwrap_err();
        assert!(fault.contains(scope::ENDLESS), "{fault}");
    }
    let fine = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/a"}}]}}});
    assert!(unsupported(&fine).is_empty());
}

#[test]
fn work_and_depth_are_bounded() {
    // Each level means all choices of the next one, twice.
    let choice = json!({"type": "object", "required": ["v"], "properties": {"v": {"$ref": "#"}}});
    let choices = vec![choice; 6];
    let schema = json!({"anyOf": choices});
    let deep = |depth: usize| (0..depth).fold(json!("no"), |value, _| json!({"v": value}));
    assert_eq!(faults(&deep(3), &schema), ["v.v.v: expected object, got string"]);
    for depth in [30, 100] {
        let faults = faults(&deep(depth), &schema);
        let is_too_long = |fault: &String| fault.ends_with("takes too long to be checked");
        assert!(faults.iter().any(is_too_long), "{depth}");
        let arguments = deep(depth).as_object().unwrap().clone();
        assert!(validate("t", &schema, &arguments).is_err());
    }
    let long: Map<String, Value> =
        (0..500).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": long});
    assert_eq!(faults(&json!(1), &schema), ["root: is nested too deeply to be checked"]);
}

#[test]
fn definitions_are_surveyed() {
    let schema = json!({"$defs": {"a": {"if": {}}}, "definitions": {"b": {"type": "text"}}});
    assert_eq!(
        unsupported(&schema),
        ["$defs.a: \"if\" is not supported", "definitions.b: the type \"text\" is not known"]
    );
}

/// Schemas of a small vocabulary, with references to each other, to nothing, and in circles.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(&["#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/%", "x"][..])
            .prop_map(|reference| json!({"$ref": reference})),
        prop::sample::select(survey::TYPES).prop_map(|kind| json!({"type": kind})),
    ];
    let schema = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| json!({"anyOf": parts})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| json!({"allOf": parts})),
            inner.clone().prop_map(|part| json!({"items": part})),
            inner.prop_map(|part| json!({"properties": {"k": part}, "additionalProperties": {"$ref": "#"}})),
        ]
    });
    (schema.clone(), schema.clone(), schema).prop_map(|(mut root, a, b)| {
        root["$defs"] = json!({"a": a, "b": b});
        root
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!("1")), Just(json!(0)), Just(json!(true))];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[kx]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn any_references_come_to_an_end(schema in any_schema(), value in any_value()) {
        unsupported(&schema);
        let before = faults(&value, &schema);
        if let Value::Object(map) = &value && let Ok(taken) = validate("t", &schema, map) {
            prop_assert_eq!(faults(&taken.into(), &schema), Vec::<String>::new());
        } else if before.is_empty() {
            prop_assert!(!value.is_object());
        }
    }
}

#[test]
fn lists_and_objects_may_come_as_json_or_alone() {
    property(json!({"h": "[1]"}), Ok(json!([1])));
    property(json!({"h": " [\"1\"] "}), Ok(json!([1])));
    property(json!({"h": "[]"}), Ok(json!([])));
    property(json!({"h": "1"}), Ok(json!([1])));
    property(json!({"h": 1}), Ok(json!([1])));
    property(json!({"k": "[{\"x\": \"a\", \"y\": \"b\"}]"}), Ok(json!([{"x": "a", "y": "b"}])));
    property(json!({"k": {"x": "a", "y": "b"}}), Ok(json!([{"x": "a", "y": "b"}])));
    property(json!({"l": "{\"x\": \"1\"}"}), Ok(json!({"x": 1})));
    property(json!({"n": "[\"a\"]"}), Ok(json!(["a"])));
    // A text stays one where it may.
    property(json!({"m": "[1]"}), Ok(json!("[1]")));
    property(json!({"path": "[1]"}), Ok(json!("[1]")));
    // JSON of another type, or broken.
    property(json!({"l": "[1]"}), Err("  - l: expected object, got string"));
    property(json!({"l": "{\"x\": 1"}), Err("  - l: expected object, got string"));
    property(json!({"h": "[1"}), Err("  - h.0: expected number, got string"));
}
