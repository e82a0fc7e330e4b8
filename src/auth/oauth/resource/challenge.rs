//! What a server says when it refuses a request (`WWW-Authenticate`, RFC 6750 and 9728).

/// The parts of a challenge that a sign-in uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Address of the metadata of the protected resource.
    pub resource_metadata: Option<String>,
    pub scope: Option<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Reads a header. One for another scheme than Bearer or DPoP says nothing.
    pub fn parse(header: Option<&str>) -> Self {
        let header = header.unwrap_or_default().trim_start();
        let (scheme, rest) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
        if !["bearer", "dpop"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return Self::default();
        }
        let mut challenge = Self::default();
        for (name, value) in fields(rest) {
            let place = match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => continue,
            };
            if place.is_none() && !value.is_empty() {
                *place = Some(value);
            }
        }
        challenge
    }

    /// The scopes that are asked for, in the letters that the protocol allows (RFC 6749).
    pub fn scopes(&self) -> Option<String> {
        let is_scope =
            |word: &&str| word.bytes().all(|letter| letter.is_ascii_graphic() && !b"\"\\".contains(&letter));
        let scopes: Vec<&str> = self.scope.as_deref()?.split_whitespace().filter(is_scope).collect();
        (!scopes.is_empty()).then(|| scopes.join(" "))
    }

    /// True if the token is good, but not for what was asked.
    pub fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// `name=value` and `name="value"`, separated by commas or blanks.
fn fields(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.rsplit([',', ' ', '\t']).next().unwrap_or_default();
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted),
            None => {
                let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        found.push((name, value));
        rest = after;
    }
    found
}

/// The text up to the closing quote, without its escapes, and what follows.
fn quoted_text(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fields_of_a_challenge_are_found() {
        let check = |header: &str, expected: [Option<&str>; 3]| {
            let found = Challenge::parse(Some(header));
            let found = [found.resource_metadata, found.scope, found.error];
            assert_eq!(found.each_ref().map(Option::as_deref), expected, "{header}");
        };
        check(
            r#"Bearer realm="x, scope=no", resource_metadata="https://a/b?c=d", scope="one two""#,
            [Some("https://a/b?c=d"), Some("one two"), None],
        );
        check("bearer error=insufficient_scope scope=a", [None, Some("a"), Some("insufficient_scope")]);
        check(r#"DPoP error="a\"b", error="second""#, [None, None, Some("a\"b")]);
        check(r#"Basic scope="x""#, [None; 3]);
        check("Bearer", [None; 3]);
        check(r#"Bearer scope="""#, [None; 3]);
        check(r#"Bearer scope="open"#, [None, Some("open"), None]);
        assert_eq!(Challenge::parse(None), Challenge::default());
    }

    proptest! {
        #[test]
        fn any_header_is_read(text in "(Bearer )?\\PC*") {
            let _ = Challenge::parse(Some(&text));
        }
    }
}
