//! Encodes and decodes forms and queries as browsers do.

use std::fmt::Write;

/// Encodes fields as `name=value&...`, with `+` for a blank.
pub fn encode(fields: &[(&str, &str)]) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        if !form.is_empty() {
            form.push('&');
        }
        encode_part(&mut form, name);
        form.push('=');
        encode_part(&mut form, value);
    }
    form
}

fn encode_part(form: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b' ' => form.push('+'),
            b'*' | b'-' | b'.' | b'_' => form.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => form.push(char::from(byte)),
            _ => {
                let _ = write!(form, "%{byte:02X}");
            }
        }
    }
}

/// The first value of `name` in a query, decoded.
pub fn value(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|part| {
        let (known, value) = part.split_once('=').unwrap_or((part, ""));
        (decode(known) == name).then(|| decode(value))
    })
}

/// Decodes `+` and `%XX`; an invalid escape is kept.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn digit(letter: u8) -> Option<u8> {
    let value = char::from(letter).to_digit(16)?;
    u8::try_from(value).ok()
}

/// The parameters of a redirect: the authorization code, and its state and client id if known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Returned {
    pub code: String,
    pub state: Option<String>,
    /// Client id issued by the sign-in, if any.
    pub client_id: Option<String>,
    /// Issuer of the code, if the answer names it (RFC 9207).
    pub issuer: Option<String>,
}

/// Parses the query of a redirect. `None` if it has no code.
pub fn returned(query: &str) -> Option<Returned> {
    let filled = |name| value(query, name).filter(|value| !value.trim().is_empty());
    Some(Returned {
        code: filled("code")?,
        state: filled("state"),
        client_id: filled("client_id"),
        issuer: filled("iss"),
    })
}

/// Parses a redirect URL, its query, `code#state`, or a bare code.
pub fn pasted(text: &str) -> Option<Returned> {
    let text = text.trim();
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    if text.contains("://") || text.contains("code=") {
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        return returned(query);
    }
    let (code, state) = match text.split_once('#') {
        Some((code, state)) => (code, filled(state.to_owned())),
        None => (text, None),
    };
    Some(Returned { code: filled(code.to_owned())?, state, ..Returned::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn forms_are_written_as_browsers_write_them() {
        let rows: &[(&[(&str, &str)], &str)] = &[
            (&[], ""),
            (&[("a", "b c"), ("d", "")], "a=b+c&d="),
            (&[("scope", "org:x y_z")], "scope=org%3Ax+y_z"),
            (&[("ä", "~+&=%*")], "%C3%A4=%7E%2B%26%3D%25*"),
        ];
        for (fields, expected) in rows {
            assert_eq!(encode(fields), *expected);
        }
    }

    #[test]
    fn values_are_found_and_decoded() {
        let query = "code=a%2Fb+c&state&x=%zz%&state=2&code=second";
        let rows = [("code", Some("a/b c")), ("state", Some("")), ("x", Some("%zz%")), ("y", None)];
        for (name, expected) in rows {
            assert_eq!(value(query, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_paste_may_have_any_of_its_usual_forms() {
        let rows = [
            ("http://localhost:1/cb?code=c&state=s", Some(("c", Some("s")))),
            (" http://localhost:1/cb?state=s&code=c#_=_\n", Some(("c", Some("s")))),
            ("code=c&state=s", Some(("c", Some("s")))),
            ("?code=c", Some(("c", None))),
            ("c#s", Some(("c", Some("s")))),
            ("c", Some(("c", None))),
            ("c#", Some(("c", None))),
            ("http://localhost:1/cb?error=access_denied", None),
            ("https://x/y", None),
            ("#s", None),
            ("  ", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(code, state)| Returned {
                code: code.into(),
                state: state.map(str::to_owned),
                ..Returned::default()
            });
            assert_eq!(pasted(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_can_be_decoded(name in "[a-z]{1,5}", text in "\\PC*", any in "\\PC*") {
            prop_assert_eq!(value(&encode(&[(&name, &text)]), &name), Some(text));
            let _ = value(&any, "code");
            let _ = pasted(&any);
        }
    }
}
