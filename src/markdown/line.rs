//! Recognises in a single line the marks that begin and end blocks.

use super::Align;
use super::formula;

/// True if the line ends a preceding paragraph.
pub fn interrupts(line: &str, containers: bool) -> bool {
    if indent(line) >= 4 {
        return false;
    }
    let marker = || {
        let marker = Marker::parse(line)?;
        (marker.number.is_none_or(|number| number == 1) && !is_blank(marker.rest)).then_some(())
    };
    Fence::parse(line).is_some()
        || heading(line).is_some()
        || is_rule(line)
        || formula::opening(line).is_some()
        || (containers && (quoted(line).is_some() || marker().is_some()))
}

pub fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ' || byte == b'\t')
}

/// Columns before the first non-blank; a tab advances to the next multiple of four.
pub fn indent(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// The line without up to `columns` columns of blanks.
pub fn strip_indent(line: &str, columns: usize) -> &str {
    let mut column = 0;
    let taken = line.bytes().take_while(|byte| {
        let width = match byte {
            b' ' => 1,
            b'\t' => 4 - column % 4,
            _ => return false,
        };
        let fits = column < columns;
        column += width;
        fits
    });
    line.get(taken.count()..).unwrap_or_default()
}

#[derive(Clone, Debug)]
pub struct Fence<'a> {
    mark: char,
    len: usize,
    pub indent: usize,
    pub info: &'a str,
}

impl<'a> Fence<'a> {
    pub fn parse(line: &'a str) -> Option<Self> {
        let indent = indent(line);
        let text = line.trim_start_matches([' ', '\t']);
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let len = text.len() - info.len();
        let fits = indent < 4 && len >= 3 && !(mark == '`' && info.contains('`'));
        fits.then(|| Self { mark, len, indent, info: info.trim() })
    }

    /// The fence without its info string, which is all that its end depends on.
    pub fn without_info(&self) -> Fence<'static> {
        let (mark, len, indent) = (self.mark, self.len, self.indent);
        Fence { mark, len, indent, info: "" }
    }

    /// True if the line may become the closing fence when completed.
    pub fn is_half_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches([' ', '\t']);
        indent(line) < 4 && !text.is_empty() && text.len() < self.len && text.chars().all(|c| c == self.mark)
    }

    pub fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) < 4 && text.len() >= self.len && text.chars().all(|c| c == self.mark)
    }
}

/// Level and text of `# text`, without closing hashes.
pub fn heading(line: &str) -> Option<(u8, &str)> {
    let text = line.trim_matches([' ', '\t']);
    let rest = text.trim_start_matches('#');
    let level = u8::try_from(text.len() - rest.len()).ok()?;
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    if indent(line) >= 4 {
        return None;
    }
    let end = rest.trim_end_matches('#');
    let closed = end.is_empty() || end.ends_with([' ', '\t']);
    Some((level, if closed { end.trim() } else { rest.trim() }))
}

pub fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| *c != ' ' && *c != '\t');
    let Some(mark) = marks.next().filter(|mark| matches!(mark, '-' | '_' | '*')) else {
        return false;
    };
    let mut count = 1;
    marks.all(|c| {
        count += 1;
        c == mark
    }) && count >= 3
        && indent(line) < 4
}

/// The heading level that an underline gives to the paragraph above.
pub fn underline(line: &str) -> Option<u8> {
    let text = line.trim();
    let all = |mark| !text.is_empty() && text.chars().all(|c| c == mark);
    match indent(line) {
        4.. => None,
        _ if all('=') => Some(1),
        _ if all('-') => Some(2),
        _ => None,
    }
}

/// The line without the mark of a quote.
pub fn quoted(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches([' ', '\t']).strip_prefix('>');
    let rest = rest.filter(|_| indent(line) < 4)?;
    Some(rest.strip_prefix([' ', '\t']).unwrap_or(rest))
}

/// The mark of a list item.
#[derive(Clone)]
pub struct Marker<'a> {
    /// The mark that all items of a list share: `-`, `+`, `*`, `.` or `)`.
    pub kind: char,
    pub number: Option<u64>,
    /// Columns before the item's text.
    pub width: usize,
    pub rest: &'a str,
}

impl<'a> Marker<'a> {
    pub fn parse(line: &'a str) -> Option<Self> {
        let before = indent(line);
        let text = line.trim_start_matches([' ', '\t']);
        let after_digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = text.get(..text.len() - after_digits.len())?;
        let kind = after_digits.chars().next()?;
        let number = match (kind, digits.len()) {
            ('-' | '+' | '*', 0) => None,
            ('.' | ')', 1..=9) => Some(digits.parse().ok()?),
            _ => return None,
        };
        let rest = after_digits.get(1..)?;
        if before >= 4 || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return None;
        }
        let mark = before + digits.len() + 1;
        let (blanks, rest) = match indent(rest) {
            _ if is_blank(rest) => (1, ""),
            // The text is code, indented by four from the blank after the mark.
            5.. => (1, strip_indent(rest, 1)),
            blanks => (blanks, strip_indent(rest, blanks)),
        };
        Some(Self { kind, number, width: mark + blanks, rest })
    }
}

/// Parses `[ ] text` and `[x] text`.
pub fn task(line: &str) -> (Option<bool>, &str) {
    let done = |rest: &str| rest.starts_with([' ', '\t']);
    for (mark, is_done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        if let Some(rest) = line.strip_prefix(mark).filter(|rest| done(rest)) {
            return (Some(is_done), rest.trim_start());
        }
    }
    (None, line)
}

/// The cells of a row: parts between unescaped bars.
pub fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'|' if !escaped => {
                cells.push(line.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
        escaped = byte == b'\\' && !escaped;
    }
    let last = line.get(start..).unwrap_or_default().trim();
    if !last.is_empty() || cells.is_empty() {
        cells.push(last);
    }
    cells
}

/// The alignment in a cell of the delimiter row.
pub fn alignment(cell: &str) -> Option<Align> {
    let dashes = cell.strip_prefix(':').unwrap_or(cell);
    let (left, dashes) = (dashes.len() < cell.len(), dashes);
    let inner = dashes.strip_suffix(':').unwrap_or(dashes);
    let right = inner.len() < dashes.len();
    if inner.is_empty() || inner.bytes().any(|byte| byte != b'-') {
        return None;
    }
    Some(match (left, right) {
        (false, false) => Align::None,
        (true, false) => Align::Left,
        (true, true) => Align::Center,
        (false, true) => Align::Right,
    })
}
