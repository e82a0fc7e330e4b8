//! Builds HTML. Text of a session never becomes markup: names of tags and attributes are literals, everything
//! else is escaped.

/// A part of a page.
#[derive(Default)]
pub struct Html {
    out: String,
}

/// Names and values of attributes. Values are escaped.
pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Adds literal markup.
    pub fn literal(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    pub fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.text(value);
            self.out.push('"');
        }
        self.out.push('>');
    }

    pub fn close(&mut self, tag: &'static str) {
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    /// Adds an element that contains text.
    pub fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// Adds text, escaped and without control characters.
    pub fn text(&mut self, text: &str) {
        for part in clean(text) {
            let mut rest = part;
            while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
                let (before, mark) = rest.split_at_checked(at).unwrap_or((rest, ""));
                self.out.push_str(before);
                self.out.push_str(match mark.bytes().next() {
                    Some(b'<') => "&lt;",
                    Some(b'>') => "&gt;",
                    Some(b'&') => "&amp;",
                    Some(b'"') => "&quot;",
                    _ => "&#39;",
                });
                rest = mark.get(1..).unwrap_or_default();
            }
            self.out.push_str(rest);
        }
    }

    /// Adds lines of text, with the lines of a diff colored.
    pub fn diff(&mut self, text: &str) {
        self.open("pre", &[("class", "diff")]);
        for line in text.split_inclusive('\n') {
            let class = match line.bytes().next() {
                Some(b'+') => "add",
                Some(b'-') => "del",
                Some(b'@') => "hunk",
                _ => {
                    self.text(line);
                    continue;
                }
            };
            self.element("span", &[("class", class)], line);
        }
        self.close("pre");
    }

    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }
}

/// Splits `text` at control characters and terminal sequences, which are dropped.
pub fn clean(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let split = text.find(is_control).and_then(|at| text.split_at_checked(at));
        let Some((before, control)) = split else {
            return Some(text);
        };
        let mut after = control.chars();
        let is_escape = after.next() == Some('\u{1b}');
        let after = after.as_str();
        rest = Some(if is_escape { after_sequence(after) } else { after });
        Some(before)
    })
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Skips the rest of an escape sequence after its first byte. A sequence without an end is kept as text.
fn after_sequence(text: &str) -> &str {
    const LONGEST: usize = 4096;
    let end = match text.bytes().next() {
        Some(b'[') => {
            let body = text.bytes().skip(1).take(LONGEST);
            let mut body = body.take_while(u8::is_ascii).enumerate();
            let end = body.find(|(_, byte)| !(0x20..=0x3f).contains(byte));
            end.map(|(at, _)| at + 2)
        }
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let end = text.find(['\u{7}', '\u{1b}', '\n']).filter(|end| *end < LONGEST);
            end.map(|end| match text.get(end..) {
                Some(rest) if rest.starts_with("\u{1b}\\") => end + 2,
                Some(rest) if rest.starts_with('\u{7}') => end + 1,
                _ => end,
            })
        }
        Some(b'(' | b')') => Some(2),
        Some(b'=' | b'>' | b'7' | b'8' | b'c' | b'M') => Some(1),
        _ => None,
    };
    end.and_then(|end| text.get(end..)).unwrap_or(text)
}

/// Returns a link to an entry on the page.
pub fn anchor(id: &str) -> String {
    let mut href = String::from("#");
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => href.push(byte.into()),
            _ => href.push_str(&format!("%{byte:02X}")),
        }
    }
    href
}

/// Returns at most `max` characters of `text` on one line, with an ellipsis if text is omitted.
pub fn brief(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= max {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_drives_no_terminal() {
        let rows = [
            ("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;http://x\u{7}l\u{1b}]8;;\u{1b}\\", "l"),
            ("a\0b\r\nc\td\u{7f}\u{9b}e", "ab\nc\tde"),
            ("\u{1b}", ""),
            ("\u{1b}[", "["),
            ("\u{1b}]no end", "]no end"),
            ("\u{1b}[é", "[é"),
        ];
        for (text, expected) in rows {
            let mut html = Html::default();
            html.text(text);
            assert_eq!(html.take(), expected, "{text:?}");
        }
    }

    #[test]
    fn attributes_hold_anything() {
        let mut html = Html::default();
        html.element("a", &[("href", &anchor("x\"> é")), ("title", "\"><b>")], "t");
        let expected = "<a href=\"#x%22%3E%20%C3%A9\" title=\"&quot;&gt;&lt;b&gt;\">t</a>";
        assert_eq!(html.take(), expected);
    }

    #[test]
    fn brief_text_is_one_line() {
        assert_eq!(brief(" a\n b ", 9), "a b");
        assert_eq!(brief("abcdef", 3), "abc…");
        assert_eq!(brief("äöü", 3), "äöü");
        assert_eq!(brief("", 3), "");
    }
}
