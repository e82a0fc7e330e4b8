//! Hiding and putting back, whole and in pieces.

use super::*;
use crate::llm::event::AssistantEvent;
use proptest::prelude::*;
use serde_json::json;

const KEY: &str = "sk-0123456789";
const LONGER: &str = "sk-0123456789-and-more";

fn vault(pairs: &[(&str, &str)]) -> Vault {
    let vault = Vault::default();
    pairs.iter().for_each(|(name, value)| vault.learn(name, value));
    vault
}

#[test]
fn values_are_hidden_under_their_names() {
    let vault = vault(&[
        ("A_KEY", KEY),
        ("LONG", LONGER),
        ("AGAIN", KEY),
        ("A_KEY", "another value"),
        ("short", "elevenchars"),
        ("odd name", "pässword-with-umlaut"),
        ("SELF", "secret:SELF›"),
        ("EMPTY", "  "),
    ]);
    let rows = [
        ("nothing here, elevenchars, secret:SELF›", None),
        ("sk-0123456789", Some("‹secret:A_KEY›")),
        ("x sk-0123456789-and-more y", Some("x ‹secret:LONG› y")),
        ("sk-0123456789-and-mor", Some("‹secret:A_KEY›-and-mor")),
        ("sk-sk-0123456789sk-0123456789", Some("sk-‹secret:A_KEY›‹secret:A_KEY›")),
        ("another value", Some("‹secret:A_KEY.2›")),
        ("ä pässword-with-umlaut ä", Some("ä ‹secret:odd_name› ä")),
    ];
    for (text, expected) in rows {
        let hidden = vault.hide(text);
        assert_eq!(hidden, expected.unwrap_or(text));
        assert_eq!(vault.hide(&hidden), hidden, "hidden twice");
    }
    assert_eq!(format!("{vault:?}"), r#"Vault(["A_KEY", "LONG", "A_KEY.2", "odd_name"])"#);
}

#[test]
fn a_value_of_several_lines_is_known_by_its_lines() {
    let pem =
        "-----BEGIN PRIVATE KEY-----\nAAAABBBBCCCCDDDD\nEEEE\nFFFFGGGGHHHHIIII\n-----END PRIVATE KEY-----\n";
    let vault = vault(&[("PEM", pem)]);
    let hidden = vault.hide(pem).into_owned();
    let lines: Vec<&str> = hidden.lines().collect();
    let expected = ["-----BEGIN PRIVATE KEY-----", "‹secret:PEM.2›", "EEEE", "‹secret:PEM.4›"];
    assert_eq!(lines[..4], expected);
    assert_eq!(vault.hide("-----BEGIN PRIVATE KEY-----"), "-----BEGIN PRIVATE KEY-----");
}

#[test]
fn what_is_escaped_in_json_keeps_its_escapes() {
    let vault = vault(&[("Q", r#"pass"word\123"#)]);
    let document = json!({ "a": r#"pass"word\123"# }).to_string();
    let hidden = vault.hide(&document).into_owned();
    assert_eq!(hidden, r#"{"a":"‹secret:Q.json›"}"#);
    let arguments = json!({"content": hidden, "other": "‹secret:Q›"});
    let revealed = vault.reveal(arguments.as_object().unwrap()).unwrap().unwrap();
    assert_eq!(revealed["content"], document);
    assert_eq!(revealed["other"], r#"pass"word\123"#);
}

#[test]
fn only_what_looks_like_a_key_is_taken_from_where_anything_may_stand() {
    let rows = [
        ("https://host-12.example.com/v1", false),
        ("/usr/local/lib/python3.12", false),
        ("two words 12", false),
        ("application-json", false),
        ("123456789012345", false),
        ("a1b2c3d4e5f6", true),
    ];
    for (value, taken) in rows {
        let vault = Vault::default();
        vault.learn_if_random("X", value);
        assert_eq!(vault.hide(value) != value, taken, "{value}");
    }
}

#[test]
fn placeholders_are_put_back_and_unknown_ones_named() {
    let vault = vault(&[("A_KEY", KEY), ("auth.my-provider", LONGER)]);
    let reveal = |text: &str| {
        let arguments = json!({"list": [{"deep": text}], "n": 1});
        let revealed = vault.reveal(arguments.as_object().unwrap());
        revealed.map(|found| found.map(|found| found["list"][0]["deep"].as_str().unwrap().to_owned()))
    };
    let rows = [
        ("no placeholder", Ok(None)),
        ("‹secret:A_KEY›", Ok(Some(KEY))),
        (
            "a ‹secret:A_KEY› b ‹secret:auth.my-provider›‹",
            Ok(Some("a sk-0123456789 b sk-0123456789-and-more‹")),
        ),
        ("‹secret:NOPE› ‹secret:A_KEY›", Err("NOPE")),
        // No name: plain text.
        ("‹secret:› ‹secret:a b› ‹secret:A_KEY", Ok(Some("‹secret:› ‹secret:a b› ‹secret:A_KEY"))),
        ("‹secret:‹secret:A_KEY›", Ok(Some("‹secret:sk-0123456789"))),
    ];
    for (text, expected) in rows {
        let got = reveal(text);
        assert_eq!(got.as_ref().map(Option::as_deref).map_err(String::as_str), expected, "{text}");
    }
    // A conversation that hid before hides no longer: what it holds still works.
    vault.switch(false);
    assert_eq!(vault.hide(KEY), KEY);
    assert_eq!(reveal("‹secret:A_KEY›"), Ok(Some(KEY.to_owned())));
    assert_eq!(vault.all().unwrap().hide(KEY), "‹secret:A_KEY›");
}

#[test]
fn opaque_data_stays() {
    let vault = vault(&[("K", KEY)]);
    let mut value = json!({"text": KEY, "thinkingSignature": KEY, KEY: [KEY],
        "image": {"type": "image", "data": KEY, "mimeType": "x"}});
    vault.hide_value(&mut value);
    let expected = json!({"text": "‹secret:K›", "thinkingSignature": KEY, "‹secret:K›": ["‹secret:K›"],
        "image": {"type": "image", "data": KEY, "mimeType": "x"}});
    assert_eq!(value, expected);
}

#[test]
fn an_answer_is_hidden_across_its_deltas() {
    use AssistantEvent as E;
    let text = |delta: &str| E::TextDelta { index: 0, delta: delta.into() };
    let call = |delta: &str| E::ToolCallDelta { index: 1, delta: delta.into() };
    let end = |index| E::TextEnd { index, signature: None };
    let check = |batches: Vec<Vec<AssistantEvent>>, expected: Vec<AssistantEvent>| {
        let mut hider = EventHider::new(vault(&[("K", KEY), ("L", LONGER)]).set());
        let mut got = Vec::new();
        for mut batch in batches {
            hider.pass(&mut batch);
            got.extend(batch);
        }
        assert_eq!(got, expected);
    };
    check(
        vec![vec![text("a sk-01"), text("23456789"), text(" b"), end(0)]],
        vec![text("a "), text("‹secret:K› b"), end(0)],
    );
    // Blocks are apart, and what was held back comes before the end.
    check(
        vec![
            vec![text("sk-0123")],
            vec![call("456789"), end(0)],
            vec![E::Done { reason: Default::default() }],
        ],
        vec![call("456789"), text("sk-0123"), end(0), E::Done { reason: Default::default() }],
    );
    check(
        vec![vec![call(r#"{"a":"sk-0123456789"#)], vec![E::Done { reason: Default::default() }]],
        vec![call(r#"{"a":""#), call("‹secret:K›"), E::Done { reason: Default::default() }],
    );
}

proptest! {
    /// Few letters, so that values overlap, begin and end like each other.
    #[test]
    fn pieces_are_hidden_like_the_whole(
        values in prop::collection::vec("[ab]{1,6}|aé{1,2}b?", 0..5),
        text in "[abcé]{0,40}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let pairs = values.iter().enumerate().map(|(at, value)| (value.clone(), format!("<{at}>")));
        let set = Set::new(pairs).map(Arc::new);
        let whole = set.as_ref().map_or(text.clone(), |set| set.hide(&text).into_owned());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let every: Vec<usize> = (0..=text.len()).collect();
        for cuts in [cuts, every] {
            let mut hider = Hider::new(set.clone());
            let mut got = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                got.extend_from_slice(&hider.push(&text.as_bytes()[from..cut]));
                from = cut;
            }
            got.extend(hider.end());
            prop_assert_eq!(String::from_utf8(got).unwrap(), whole.as_str());
        }
    }

    #[test]
    fn what_is_hidden_is_put_back(text in "[a ‹›]{0,5}(sk-0123456789|-and-more|plain){0,4}[a-c\"\\\\]{0,5}") {
        let vault = vault(&[("A_KEY", KEY), ("LONG", LONGER)]);
        let arguments = json!({"text": vault.hide(&text)});
        let revealed = vault.reveal(arguments.as_object().unwrap()).unwrap();
        let revealed = revealed.map_or(arguments["text"].clone(), |found| found["text"].clone());
        prop_assert_eq!(revealed.as_str(), Some(text.as_str()));
    }
}
