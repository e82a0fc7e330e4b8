//! Parses AWS's shared configuration files into sections.
//!
//! ```text
//! [profile work]            ; a comment
//! region = eu-west-1        # a comment
//! services = mine
//! s3 =
//!   endpoint_url = http://… -> named `s3.endpoint_url`
//! ```
//!
//! An invalid line is ignored, as AWS's programs do. A `#` or `;` starts a comment only at the beginning of a
//! line or after a blank.

use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq)]
pub struct Section {
    /// The section's header, such as `profile work`.
    pub name: String,
    pub values: BTreeMap<String, String>,
}

/// All sections in file order. A section that occurs twice is returned twice.
pub fn parse(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    // The setting without a value to which indented lines belong.
    let mut parent: Option<String> = None;
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let indented = line.starts_with([' ', '\t']);
        let line = uncommented(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or(name);
            sections.push(Section {
                name: name.split_whitespace().collect::<Vec<_>>().join(" "),
                values: BTreeMap::new(),
            });
            parent = None;
            continue;
        }
        let (Some(section), Some((name, value))) = (sections.last_mut(), line.split_once('=')) else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if indented && let Some(parent) = &parent {
            let name = format!("{parent}.{name}");
            section.values.insert(name, value.to_owned());
            continue;
        }
        parent = value.is_empty().then(|| name.to_owned());
        section.values.insert(name.to_owned(), value.to_owned());
    }
    sections
}

/// The line up to a `#` or `;` at its beginning or after a blank.
fn uncommented(line: &str) -> &str {
    let mut blank = true;
    for (at, c) in line.char_indices() {
        if blank && (c == '#' || c == ';') {
            return line.get(..at).unwrap_or(line);
        }
        blank = c.is_whitespace();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &[(&str, &str)])]) {
        let expected = expected.iter().map(|(name, values)| Section {
            name: (*name).to_owned(),
            values: values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        });
        assert_eq!(parse(text), expected.collect::<Vec<_>>());
    }

    #[test]
    fn sections_and_settings() {
        check("", &[]);
        check("a = 1\n", &[]);
        check("[x]", &[("x", &[])]);
        check(
            "\u{feff}[default]\r\nregion=eu-west-1\r\n\r\n[profile  work ] # mine\n a = b = c \n",
            &[("default", &[("region", "eu-west-1")]), ("profile work", &[("a", "b = c")])],
        );
        check("[a]\nx=1\nx=2\nnonsense\n[a]\ny=3", &[("a", &[("x", "2")]), ("a", &[("y", "3")])]);
    }

    #[test]
    fn comments_need_a_blank_before_them() {
        check(
            "# c\n; c\n[a]\n#x=0\nx=1#2\ny=1 # 2\nz=a;b ; c",
            &[("a", &[("x", "1#2"), ("y", "1"), ("z", "a;b")])],
        );
    }

    #[test]
    fn indented_lines_belong_to_the_setting_without_a_value() {
        check(
            "[services s]\nbedrock_runtime =\n  endpoint_url = http://x\n\tb = 2\nregion = r\n  c = 3",
            &[(
                "services s",
                &[
                    ("bedrock_runtime", ""),
                    ("bedrock_runtime.endpoint_url", "http://x"),
                    ("bedrock_runtime.b", "2"),
                    ("region", "r"),
                    ("c", "3"),
                ],
            )],
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(text in "([\\[\\]a= \t#;é]|\n|\r)*") {
            parse(&text);
        }

        #[test]
        fn what_is_written_is_read(
            name in "[a-z]{1,8}",
            values in proptest::collection::btree_map("[a-z_]{1,8}", "[a-zA-Z0-9/+=:]{1,20}", 0..5),
        ) {
            let lines = values.iter().map(|(name, value)| format!("{name} = {value}\n"));
            let text = format!("[{name}]\n{}", lines.collect::<String>());
            proptest::prop_assert_eq!(parse(&text), [Section { name, values }]);
        }
    }
}
