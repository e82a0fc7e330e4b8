//! Makes Markdown of others harmless: HTML becomes text, images become links.
//!
//! Code is left unchanged, but only if every Markdown reader takes it for code: text that one reader takes
//! for markup would be active there.

/// Escapes `<` in `text` where it could begin HTML, and turns `![` into a link.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fence: Option<Fence> = None;
    // True while every line of the paragraph closes the code spans that it opens.
    let mut is_balanced = true;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        if let Some(open) = fence {
            if open.holds(body) {
                fence = (!open.ends_at(body)).then_some(open);
                out.push_str(line);
                continue;
            }
            fence = None;
        }
        if let Some(open) = Fence::begin(body) {
            fence = Some(open);
            is_balanced = true;
            // The name of a language follows the marks.
            out.push_str(&line.replace('<', "&lt;"));
            continue;
        }
        if body.trim().is_empty() {
            is_balanced = true;
            out.push_str(line);
            continue;
        }
        is_balanced &= inline(line, is_balanced, &mut out);
    }
    out
}

/// A fenced code block.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    count: usize,
    indent: usize,
}

impl Fence {
    fn begin(line: &str) -> Option<Self> {
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let count = rest.len() - info.len();
        let is_fence = indent < 4 && count >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then_some(Self { mark, count, indent })
    }

    /// True if `line` belongs to the block. A less indented line may end the list that contains the block.
    fn holds(self, line: &str) -> bool {
        line.trim().is_empty() || line.bytes().take_while(|byte| *byte == b' ').count() >= self.indent
    }

    fn ends_at(self, line: &str) -> bool {
        let rest = line.trim_start_matches(' ');
        let after = rest.trim_start_matches(self.mark);
        line.len() - rest.len() < 4 && rest.len() - after.len() >= self.count && after.trim().is_empty()
    }
}

/// Adds a line of text. False if a code span may continue on the next line.
fn inline(line: &str, trusts_code: bool, out: &mut String) -> bool {
    let mut is_balanced = true;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let mut len = first.len_utf8();
        let after = rest.get(len..).unwrap_or_default();
        match first {
            '\\' => len += after.chars().next().filter(char::is_ascii_punctuation).map_or(0, char::len_utf8),
            '`' => {
                let marks = rest.len() - rest.trim_start_matches('`').len();
                match code(rest, marks) {
                    // A table cell ends at a bar, even inside a code span.
                    Some(code) if trusts_code && is_balanced && !code.contains('|') => len = code.len(),
                    Some(_) => len = marks,
                    None => {
                        is_balanced = false;
                        len = marks;
                    }
                }
            }
            '<' if begins_html(after) => {
                out.push_str("&lt;");
                rest = after;
                continue;
            }
            '!' if after.starts_with('[') => out.push('\\'),
            _ => {}
        }
        let (taken, left) = rest.split_at_checked(len).unwrap_or((rest, ""));
        // An escaped character may still be one that begins HTML.
        out.push_str(taken);
        rest = left;
    }
    is_balanced
}

/// Returns the code span at the beginning of `text`, with its `marks` backticks on both sides.
fn code(text: &str, marks: usize) -> Option<&str> {
    let mut at = marks;
    loop {
        let begin = at + text.get(at..)?.find('`')?;
        let run = text.get(begin..)?.bytes().take_while(|byte| *byte == b'`').count();
        at = begin + run;
        if run == marks {
            return text.get(..at);
        }
    }
}

/// True if `<` followed by `after` could begin HTML. A URL in angle brackets does not: it loads nothing by
/// itself.
fn begins_html(after: &str) -> bool {
    let is_address = ["http://", "https://", "mailto:"].iter().any(|scheme| after.starts_with(scheme))
        && after
            .find(['>', '<', '`', ' ', '\n'])
            .is_some_and(|end| after.get(end..).is_some_and(|rest| rest.starts_with('>')));
    !is_address && after.starts_with(|next: char| next.is_ascii_alphabetic() || "/!?".contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_text_and_code_stays() {
        for (text, expected) in [
            ("a < b, 1 <2\n", "a < b, 1 <2\n"),
            ("<b>x</b>", "&lt;b>x&lt;/b>"),
            ("<!-- c --><?p?>", "&lt;!-- c -->&lt;?p?>"),
            ("<https://a.example/?q> <mailto:a@b>", "<https://a.example/?q> <mailto:a@b>"),
            ("<https://a b>", "&lt;https://a b>"),
            ("`Vec<T>` and ``a`<b>`` <i>", "`Vec<T>` and ``a`<b>`` &lt;i>"),
            ("![alt](https://a.example/p.png)", "\\![alt](https://a.example/p.png)"),
            ("`![a](b)` wow! [a](b)", "`![a](b)` wow! [a](b)"),
            ("```html\n<b>\n```\n<b>\n", "```html\n<b>\n```\n&lt;b>\n"),
            ("- a\n  ~~~\n  <b>\n  ~~~\n", "- a\n  ~~~\n  <b>\n  ~~~\n"),
        ] {
            assert_eq!(markdown(text), expected, "{text:?}");
        }
    }

    /// Each of these is code to a hasty look only.
    #[test]
    fn what_only_looks_like_code_is_text() {
        for text in [
            "a ` b\n` <b> `",
            "# a `\nx\n<b> `",
            "\\` <b> `",
            "| ` | <b> ` |",
            "- a\n  ```\n<b>\n",
            "para\n    ```\n    <b>\n",
            "> ```\n<b>\n",
            "```` ` ```` <b>",
            "``` a`\n<b>\n",
            "```\n``` x\n```\n<b>\n",
            "`` <b> `",
        ] {
            assert!(!markdown(text).contains("<b>"), "{text:?}: {}", markdown(text));
        }
    }
}
