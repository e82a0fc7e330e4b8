//! Target of a link's or an embedded resource's URI: a path, and a part of the file.
//!
//! Editors write a selection as fragment `#L10:12`, and a symbol as query `?symbol=name`. Other fragments and
//! queries of a file URI are ignored.

use crate::base::file_url;

#[derive(Debug, Default, PartialEq)]
pub struct Place {
    /// The path of a file URI; any other URI unchanged.
    pub name: String,
    /// The first and the last line of a selection.
    pub lines: Option<(u32, u32)>,
    pub symbol: Option<String>,
}

impl Place {
    pub fn of(uri: &str) -> Self {
        let Some(Ok(path)) = uri.strip_prefix("file://").map(file_url::path) else {
            return Self { name: uri.into(), ..Self::default() };
        };
        let (rest, fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let symbol = query.split('&').find_map(|pair| pair.strip_prefix("symbol="));
        Self {
            name: path.to_string_lossy().into_owned(),
            lines: lines(fragment),
            symbol: symbol.filter(|name| !name.is_empty()).map(decoded),
        }
    }

    /// Text that mentions the place: `/p/a.rs (symbol foo, lines 3-5)`, with quotes if the path has spaces.
    pub fn mention(&self) -> String {
        let name = match self.name.contains(char::is_whitespace) {
            true => format!("\"{}\"", self.name),
            false => self.name.clone(),
        };
        let symbol = self.symbol.as_ref().map(|symbol| format!("symbol {symbol}"));
        let lines = self.lines.map(|(first, last)| match first == last {
            true => format!("line {first}"),
            false => format!("lines {first}-{last}"),
        });
        let part: Vec<String> = symbol.into_iter().chain(lines).collect();
        if part.is_empty() { name } else { format!("{name} ({})", part.join(", ")) }
    }

    /// Marks `text` as the content of the place, in the form of `@file` arguments.
    pub fn attachment(&self, text: &str) -> String {
        let lines = self.lines.map(|(first, last)| match first == last {
            true => format!(" lines=\"{first}\""),
            false => format!(" lines=\"{first}-{last}\""),
        });
        let symbol = self.symbol.as_ref().map(|symbol| format!(" symbol=\"{}\"", symbol.replace('"', "'")));
        let part: String = lines.into_iter().chain(symbol).collect();
        format!("<file name=\"{}\"{part}>\n{text}\n</file>", self.name)
    }
}

/// The first and last line in `L10`, `L10:12`, `L10-12` or `L10-L12`; the column of `L10:3` is no last line.
fn lines(fragment: &str) -> Option<(u32, u32)> {
    let range = fragment.strip_prefix('L')?;
    let (first, last) = range.split_once([':', '-']).unwrap_or((range, range));
    let first: u32 = first.parse().ok()?;
    let last: u32 = last.strip_prefix('L').unwrap_or(last).parse().ok()?;
    Some((first, last.max(first)))
}

fn decoded(text: &str) -> String {
    let path = file_url::path(&format!("/{text}")).ok();
    let decoded = path.as_deref().and_then(|path| path.to_str()?.strip_prefix('/'));
    decoded.unwrap_or(text).to_owned()
}

/// The URI of the file at `path`.
pub fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_is_named_as_a_path_and_the_part_that_is_meant() {
        for (uri, mention, head) in [
            ("file:///a/b.rs", "/a/b.rs", r#"<file name="/a/b.rs">"#),
            ("file:///a/b%20c.rs", "\"/a/b c.rs\"", r#"<file name="/a/b c.rs">"#),
            ("file:///a.rs#L10:12", "/a.rs (lines 10-12)", r#"<file name="/a.rs" lines="10-12">"#),
            ("file:///a.rs#L10-L12", "/a.rs (lines 10-12)", r#"<file name="/a.rs" lines="10-12">"#),
            ("file:///a.rs#L10-12", "/a.rs (lines 10-12)", r#"<file name="/a.rs" lines="10-12">"#),
            ("file:///a.rs#L7", "/a.rs (line 7)", r#"<file name="/a.rs" lines="7">"#),
            ("file:///a.rs#L7:7", "/a.rs (line 7)", r#"<file name="/a.rs" lines="7">"#),
            ("file:///a.rs#L7:2", "/a.rs (line 7)", r#"<file name="/a.rs" lines="7">"#),
            (
                "file:///a.rs?symbol=a%3A%3Ab&x=1#L20:30",
                "/a.rs (symbol a::b, lines 20-30)",
                r#"<file name="/a.rs" lines="20-30" symbol="a::b">"#,
            ),
            ("file:///a.rs?symbol=#top", "/a.rs", r#"<file name="/a.rs">"#),
            ("file:///a.rs#L99999999999", "/a.rs", r#"<file name="/a.rs">"#),
            ("https://x.org/y#L1:2", "https://x.org/y#L1:2", r#"<file name="https://x.org/y#L1:2">"#),
        ] {
            let place = Place::of(uri);
            assert_eq!(place.mention(), mention, "{uri}");
            assert_eq!(place.attachment("x"), format!("{head}\nx\n</file>"), "{uri}");
        }
    }

    #[test]
    fn a_path_and_its_uri_are_the_same_place() {
        for path in ["/a/b c#d?.rs", "/100%", "/é/ü.txt"] {
            assert_eq!(Place::of(&file_uri(path)), Place { name: path.into(), ..Place::default() });
        }
    }
}
