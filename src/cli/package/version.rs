//! The order of npm's versions.

use serde_json::Value;

/// A version as `1.2.3` or `1.2.3-beta.4`. Versions of a release are greater than those before it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    is_release: bool,
    pre: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Version {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let numbers: Vec<u64> = core.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        let part = |part: &str| part.parse().map_or_else(|_| Part::Word(part.to_owned()), Part::Number);
        Some(Self {
            numbers: numbers.try_into().ok()?,
            is_release: pre.is_none(),
            pre: pre.map(|pre| pre.split('.').map(part).collect()).unwrap_or_default(),
        })
    }
}

/// The greatest version in the answer of `npm view NAME version --json`: a text, or a list of texts.
pub fn newest(answer: &str) -> Option<String> {
    match serde_json::from_str(answer).ok()? {
        Value::String(version) => Some(version),
        Value::Array(versions) => {
            let versions = versions.iter().filter_map(Value::as_str);
            versions.max_by_key(|version| Version::parse(version)).map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_an_order() {
        let rising =
            ["0.9.0", "1.0.0-2", "1.0.0-10", "1.0.0-a", "1.0.0-a.1", "1.0.0-b", "1.0.0", "1.0.10", "1.2.0"];
        for pair in rising.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
        assert_eq!(Version::parse("1.0.0+x"), Version::parse("1.0.0"));
        for bad in ["", "1", "1.0", "1.0.x", "a.b.c"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_greatest_version_of_an_answer_counts() {
        for (answer, expected) in [
            ("\"1.2.3\"", Some("1.2.3")),
            ("[\"1.10.0\", \"1.9.0\", 7]", Some("1.10.0")),
            ("[]", None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(newest(answer).as_deref(), expected, "{answer}");
        }
    }
}
