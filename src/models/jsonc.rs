//! Removes comments and trailing commas from JSON.
//!
//! The removed text is overwritten with spaces, so that lines and columns in a parser's error are correct for
//! the file.

/// `text` as plain JSON of the same length. Other errors are left for the parser. `text` must not begin with
/// a byte order mark.
pub fn strip(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // The last comma, and the number of adjacent commas: two are an error, which is left for the parser.
    let (mut comma, mut commas) = (0, 0);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => {
                commas = 0;
                at = string_end(&bytes, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            (b'/', Some(b'*')) => {
                let end = memchr::memmem::find(&bytes[at + 2..], b"*/");
                let end = end.map_or(bytes.len(), |n| at + 2 + n + 2);
                blank(&mut bytes[at..end]);
                at = end;
                continue;
            }
            (b',', _) => {
                comma = at;
                commas += 1;
            }
            (b'}' | b']', _) => {
                if commas == 1 {
                    bytes[comma] = b' ';
                }
                commas = 0;
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => commas = 0,
        }
        at += 1;
    }
    // Only whole comments and ASCII were overwritten.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The index after the string that opens at `open`.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn blank(comment: &mut [u8]) {
    for byte in comment {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        let output = strip(input);
        assert_eq!(output, expected);
        assert_invariants(input, &output);
    }

    /// Checks that the output keeps length and line breaks, and that a second run changes nothing.
    #[track_caller]
    fn assert_invariants(input: &str, output: &str) {
        assert_eq!(input.len(), output.len());
        let breaks = |text: &str| -> Vec<usize> {
            let found = text.bytes().enumerate();
            found.filter(|(_, b)| *b == b'\n').map(|(i, _)| i).collect()
        };
        assert_eq!(breaks(input), breaks(output));
        assert_eq!(strip(output), output);
    }

    #[test]
    fn comments_become_spaces() {
        check("{} // end", "{}       ");
        check("{// a\r\n}", "{    \r\n}");
        check("[1,/* two\n */2]", "[1,      \n   2]");
        check("[1 /* é */]", "[1         ]");
        check("// only", "       ");
    }

    #[test]
    fn trailing_commas_become_spaces() {
        check("[1,]", "[1 ]");
        check("{\"a\":[1, ] , }", "{\"a\":[1  ]   }");
        check("[1, // last\n]", "[1         \n]");
        check("[1, /* , */ ]", "[1          ]");
        check("[,]", "[ ]");
    }

    #[test]
    fn strings_are_left_alone() {
        for json in [r#"["http://x/*y*/",",]"]"#, r#"{"a\\":"//","b\"//":",}"}"#, r#"["\\\"// no comment"]"#]
        {
            check(json, json);
        }
    }

    #[test]
    fn what_is_not_json_stays_so() {
        for text in ["[1,,]", "{,1}", "\"open // ,]", "\"\\", "/", "[1,2", "*/", "1 / 2"] {
            let output = strip(text);
            assert_invariants(text, &output);
            assert!(serde_json::from_str::<Value>(&output).is_err(), "{text} -> {output}");
        }
        check("/* open ,]", "          ");
    }

    /// Splits a document into tokens, between which comments may be inserted.
    fn tokens(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                out.push("[".into());
                for item in items {
                    tokens(item, out);
                    out.push(",".into());
                }
                out.push("]".into());
            }
            Value::Object(map) => {
                out.push("{".into());
                for (key, item) in map {
                    out.extend([Value::from(key.as_str()).to_string(), ":".into()]);
                    tokens(item, out);
                    out.push(",".into());
                }
                out.push("}".into());
            }
            plain => out.push(plain.to_string()),
        }
    }

    fn document() -> impl Strategy<Value = Value> {
        let text = r#"[a-z"\\/*,\]} é\n]{0,8}"#;
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), text.prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_shape(text in r#"([\[\]{},:"/*\\ \n\ré1a]|//|/\*|\*/)*"#) {
            assert_invariants(&text, &strip(&text));
        }

        #[test]
        fn plain_json_is_not_changed(value in document()) {
            let json = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(strip(&json), json);
        }

        #[test]
        fn comments_and_trailing_commas_do_not_change_a_document(
            value in document(),
            gaps in prop::collection::vec(prop_oneof![
                Just(""), Just(" "), Just("// \",]}\n"), Just("/* \" ] , \n**/"), Just("\n"),
            ], 1..40),
        ) {
            let mut parts = Vec::new();
            tokens(&value, &mut parts);
            let mut text = String::new();
            for (part, gap) in parts.iter().zip(gaps.iter().cycle()) {
                text.push_str(gap);
                text.push_str(part);
            }
            let output = strip(&text);
            assert_invariants(&text, &output);
            prop_assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), value, "{}", text);
        }
    }
}
