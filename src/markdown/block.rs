//! Lines into blocks.
//!
//! A container (quote, list item) collects its lines, takes its own marks off them and parses what is left
//! in the same way, [`DEPTH_MAX`] deep: each line is looked at once a level.

use super::inline::inlines;
use super::{Align, Block, DEPTH_MAX, Item, List, Table};

/// The blocks of `text`, each with the byte where its first line begins.
pub fn parse(text: &str) -> Vec<(usize, Block)> {
    let mut starts = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        starts.push(at);
        at += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        lines.push(line.strip_suffix('\r').unwrap_or(line));
    }
    let parsed = Parser {
        lines: &lines,
        at: 0,
    }
    .blocks(0)
    .blocks;
    let placed = parsed.into_iter();
    placed
        .map(|(line, block)| (starts.get(line).copied().unwrap_or(0), block))
        .collect()
}

struct Parser<'a, 'b> {
    lines: &'b [&'a str],
    at: usize,
}

struct Parsed {
    /// Each with the number of its first line.
    blocks: Vec<(usize, Block)>,
    /// Blank lines stand between two of them.
    spaced: bool,
}

impl<'a> Parser<'a, '_> {
    fn blocks(mut self, depth: usize) -> Parsed {
        let mut parsed = Parsed {
            blocks: Vec::new(),
            spaced: false,
        };
        let mut blank = false;
        while let Some(line) = self.line(0) {
            if is_blank(line) {
                blank = true;
                self.at += 1;
                continue;
            }
            let first = self.at;
            parsed.spaced |= blank && !parsed.blocks.is_empty();
            blank = false;
            let block = self.block(line, depth);
            // A list takes the blank lines after its last item with it.
            blank |= self.at > first && self.lines.get(self.at - 1).is_some_and(|l| is_blank(l));
            parsed.blocks.push((first, block));
        }
        parsed
    }

    fn line(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    /// The block that begins at the current line, which is not blank. Takes at least one line.
    fn block(&mut self, line: &'a str, depth: usize) -> Block {
        if indent(line) >= 4 {
            return self.indented_code();
        }
        if let Some(fence) = Fence::parse(line) {
            return self.fenced_code(&fence);
        }
        if let Some((level, text)) = heading(line) {
            self.at += 1;
            let text = inlines(text);
            return Block::Heading { level, text };
        }
        if is_rule(line) {
            self.at += 1;
            return Block::Rule;
        }
        if depth < DEPTH_MAX {
            if quoted(line).is_some() {
                return self.quote(depth);
            }
            if let Some(marker) = Marker::parse(line) {
                return self.list(&marker, depth);
            }
        }
        if let Some(align) = self.table_head() {
            return self.table(line, align);
        }
        self.paragraph(depth)
    }

    fn indented_code(&mut self) -> Block {
        let mut taken = Vec::new();
        while let Some(line) = self
            .line(0)
            .filter(|line| indent(line) >= 4 || is_blank(line))
        {
            taken.push(strip_indent(line, 4));
            self.at += 1;
        }
        while taken.last().is_some_and(|line| is_blank(line)) {
            taken.pop();
            self.at -= 1;
        }
        Block::Code {
            language: String::new(),
            text: taken.join("\n"),
        }
    }

    fn fenced_code(&mut self, fence: &Fence<'_>) -> Block {
        self.at += 1;
        let mut taken = Vec::new();
        while let Some(line) = self.line(0) {
            self.at += 1;
            if fence.is_closed_by(line) {
                break;
            }
            taken.push(strip_indent(line, fence.indent));
        }
        let language = fence.info.split_whitespace().next().unwrap_or_default();
        Block::Code {
            language: language.to_owned(),
            text: taken.join("\n"),
        }
    }

    fn quote(&mut self, depth: usize) -> Block {
        let mut inside = Inside::default();
        while let Some(line) = self.line(0) {
            match quoted(line) {
                Some(rest) => inside.push(rest),
                None if inside.may_go_on_with(line, depth) => inside.push(line),
                None => break,
            }
            self.at += 1;
        }
        let parser = Parser {
            lines: &inside.lines,
            at: 0,
        };
        Block::Quote(without_places(parser.blocks(depth + 1)))
    }

    fn list(&mut self, first: &Marker<'a>, depth: usize) -> Block {
        let mut items = Vec::new();
        let mut tight = true;
        let mut next = Some(first.clone());
        while let Some(marker) = next {
            let lines = self.item_lines(&marker, depth);
            let ends_blank = lines.last().is_some_and(|line| is_blank(line)) && lines.len() > 1;
            let (task, first_line) = task(lines.first().copied().unwrap_or_default());
            let mut lines = lines;
            if let (Some(_), Some(line)) = (task, lines.first_mut()) {
                *line = first_line;
            }
            let parser = Parser {
                lines: &lines,
                at: 0,
            };
            let parsed = parser.blocks(depth + 1);
            tight &= !parsed.spaced;
            let blocks = without_places(parsed);
            items.push(Item { task, blocks });
            next = self
                .line(0)
                .filter(|line| indent(line) < 4 && !is_rule(line))
                .and_then(Marker::parse)
                .filter(|marker| marker.kind == first.kind);
            tight &= !(ends_blank && next.is_some());
        }
        Block::List(List {
            start: first.number,
            tight,
            items,
        })
    }

    /// Takes the lines of one item, its blank lines at the end too.
    fn item_lines(&mut self, marker: &Marker<'a>, depth: usize) -> Vec<&'a str> {
        let mut inside = Inside::default();
        inside.push(marker.rest);
        self.at += 1;
        while let Some(line) = self.line(0) {
            if is_blank(line) {
                // An item may begin with one blank line, not with two.
                if inside.lines.len() == 1 && is_blank(marker.rest) {
                    break;
                }
                inside.push("");
            } else if indent(line) >= marker.width {
                inside.push(strip_indent(line, marker.width));
            } else if inside.may_go_on_with(line, depth) {
                inside.push(line);
            } else {
                break;
            }
            self.at += 1;
        }
        inside.lines
    }

    /// The columns of a table, if its first two lines stand here.
    fn table_head(&self) -> Option<Vec<Align>> {
        let head = self.line(0)?;
        let rule = self.line(1).filter(|_| head.contains('|'))?;
        if indent(rule) >= 4 {
            return None;
        }
        let align = cells(rule).into_iter().map(alignment);
        let align: Vec<Align> = align.collect::<Option<_>>()?;
        (align.len() == cells(head).len()).then_some(align)
    }

    fn table(&mut self, head: &str, align: Vec<Align>) -> Block {
        let row = |line: &str| {
            let mut row: Vec<_> = cells(line).into_iter().map(cell).collect();
            row.truncate(align.len());
            row
        };
        let head = row(head);
        self.at += 2;
        let mut rows = Vec::new();
        while let Some(line) = self.line(0) {
            if is_blank(line) || interrupts(line, true) {
                break;
            }
            rows.push(row(line));
            self.at += 1;
        }
        Block::Table(Table { align, head, rows })
    }

    fn paragraph(&mut self, depth: usize) -> Block {
        let mut text = String::new();
        let mut first = true;
        while let Some(line) = self.line(0) {
            if !first {
                if let Some(level) = underline(line) {
                    self.at += 1;
                    let text = inlines(text.trim_end());
                    return Block::Heading { level, text };
                }
                if is_blank(line) || interrupts(line, depth < DEPTH_MAX) {
                    break;
                }
                if self.table_head().is_some() {
                    break;
                }
                text.push('\n');
            }
            first = false;
            text.push_str(line.trim_start_matches([' ', '\t']));
            self.at += 1;
        }
        Block::Paragraph(inlines(text.trim_end()))
    }
}

/// The lines of a container, without its marks.
#[derive(Default)]
struct Inside<'a> {
    lines: Vec<&'a str>,
    /// The fence that is open at the end.
    fence: Option<Fence<'a>>,
}

impl<'a> Inside<'a> {
    fn push(&mut self, line: &'a str) {
        match &self.fence {
            Some(fence) if fence.is_closed_by(line) => self.fence = None,
            Some(_) => {}
            None => self.fence = Fence::parse(line),
        }
        self.lines.push(line);
    }

    /// Whether a line without the container's mark belongs to its last paragraph all the same.
    fn may_go_on_with(&self, line: &str, depth: usize) -> bool {
        let in_paragraph = self.lines.last().is_some_and(|last| {
            let mut last = *last;
            // The paragraph may lie in containers further inside.
            for _ in depth..DEPTH_MAX {
                match quoted(last).or_else(|| Marker::parse(last).map(|marker| marker.rest)) {
                    Some(rest) => last = rest,
                    None => break,
                }
            }
            !is_blank(last) && !is_rule(last) && heading(last).is_none()
        });
        self.fence.is_none()
            && in_paragraph
            && !is_blank(line)
            && !interrupts(line, true)
            && Marker::parse(line).is_none()
    }
}

fn without_places(parsed: Parsed) -> Vec<Block> {
    let blocks = parsed.blocks.into_iter();
    blocks.map(|(_, block)| block).collect()
}

/// Whether a line ends a paragraph before it.
fn interrupts(line: &str, containers: bool) -> bool {
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
        || (containers && (quoted(line).is_some() || marker().is_some()))
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte == b' ' || byte == b'\t')
}

/// Columns before the first other character; a tab reaches to the next multiple of four.
fn indent(line: &str) -> usize {
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
fn strip_indent(line: &str, columns: usize) -> &str {
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

struct Fence<'a> {
    mark: char,
    len: usize,
    indent: usize,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let indent = indent(line);
        let text = line.trim_start_matches([' ', '\t']);
        let mark = text
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let len = text.len() - info.len();
        let fits = indent < 4 && len >= 3 && !(mark == '`' && info.contains('`'));
        fits.then(|| Self {
            mark,
            len,
            indent,
            info: info.trim(),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        indent(line) < 4 && text.len() >= self.len && text.chars().all(|c| c == self.mark)
    }
}

/// `# text`, with the hashes at its end taken off.
fn heading(line: &str) -> Option<(u8, &str)> {
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

fn is_rule(line: &str) -> bool {
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

/// What makes the paragraph above it a heading.
fn underline(line: &str) -> Option<u8> {
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
fn quoted(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches([' ', '\t']).strip_prefix('>');
    let rest = rest.filter(|_| indent(line) < 4)?;
    Some(rest.strip_prefix([' ', '\t']).unwrap_or(rest))
}

/// The mark of a list item.
#[derive(Clone)]
struct Marker<'a> {
    /// Items of one list have the same: `-`, `+`, `*`, `.` or `)`.
    kind: char,
    number: Option<u64>,
    /// Columns up to the item's text.
    width: usize,
    rest: &'a str,
}

impl<'a> Marker<'a> {
    fn parse(line: &'a str) -> Option<Self> {
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
        Some(Self {
            kind,
            number,
            width: mark + blanks,
            rest,
        })
    }
}

/// `[ ] text` and `[x] text`.
fn task(line: &str) -> (Option<bool>, &str) {
    let done = |rest: &str| rest.starts_with([' ', '\t']);
    for (mark, is_done) in [("[ ]", false), ("[x]", true), ("[X]", true)] {
        if let Some(rest) = line.strip_prefix(mark).filter(|rest| done(rest)) {
            return (Some(is_done), rest.trim_start());
        }
    }
    (None, line)
}

/// The cells of a row: parts between bars that no backslash stands before.
fn cells(line: &str) -> Vec<&str> {
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

fn cell(text: &str) -> Vec<super::Inline> {
    inlines(&text.replace("\\|", "|"))
}

/// A cell of the line below a table's head.
fn alignment(cell: &str) -> Option<Align> {
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
