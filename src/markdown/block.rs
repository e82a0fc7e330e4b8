//! Parses lines into blocks.
//!
//! A container (quote, list item) collects its lines, strips its own marks and parses the rest recursively,
//! [`DEPTH_MAX`] deep: each line is read once a level.

use super::formula::{self, Formula, Marks};
use super::inline::inlines;
use super::line::{
    Fence, Marker, alignment, cells, heading, indent, interrupts, is_blank, is_rule, quoted, strip_indent,
    task, underline,
};
use super::{Align, Block, DEPTH_MAX, Inline, Item, List, Table};

/// The parsed lines of a text.
pub struct Blocks {
    /// Each with the byte offset of its first line.
    pub blocks: Vec<(usize, Block)>,
    /// If the last block is a list: the byte offset of each item.
    pub items: Vec<usize>,
}

pub fn parse(text: &str) -> Blocks {
    let mut starts = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        starts.push(at);
        at += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        lines.push(line.strip_suffix('\r').unwrap_or(line));
    }
    let parsed = Parser::new(&lines).blocks(0);
    let place = |line: usize| starts.get(line).copied().unwrap_or(0);
    Blocks {
        blocks: parsed.blocks.into_iter().map(|(line, block)| (place(line), block)).collect(),
        items: parsed.items.into_iter().map(place).collect(),
    }
}

struct Parser<'a, 'b> {
    lines: &'b [&'a str],
    at: usize,
    /// As in [`Parsed`].
    items: Vec<usize>,
}

struct Parsed {
    /// Blocks, each with the number of its first line.
    blocks: Vec<(usize, Block)>,
    /// True if blank lines separate two of the blocks.
    spaced: bool,
    /// If the last block is a list: the number of each item's first line.
    items: Vec<usize>,
}

impl<'a, 'b> Parser<'a, 'b> {
    fn new(lines: &'b [&'a str]) -> Self {
        Self { lines, at: 0, items: Vec::new() }
    }

    fn blocks(mut self, depth: usize) -> Parsed {
        let mut parsed = Parsed { blocks: Vec::new(), spaced: false, items: Vec::new() };
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
            self.items.clear();
            let block = self.block(line, depth);
            // A list takes the blank lines after its last item with it.
            blank |= self.at > first && self.lines.get(self.at - 1).is_some_and(|l| is_blank(l));
            parsed.blocks.push((first, block));
        }
        parsed.items = self.items;
        parsed
    }

    fn line(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    /// Parses the block at the current line, which is not blank. Consumes at least one line.
    fn block(&mut self, line: &'a str, depth: usize) -> Block {
        if indent(line) >= 4 {
            return self.indented_code();
        }
        if let Some(fence) = Fence::parse(line) {
            return self.fenced_code(&fence);
        }
        if let Some((marks, rest)) = formula::opening(line) {
            return self.formula(marks, rest);
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
        while let Some(line) = self.line(0).filter(|line| indent(line) >= 4 || is_blank(line)) {
            taken.push(strip_indent(line, 4));
            self.at += 1;
        }
        while taken.last().is_some_and(|line| is_blank(line)) {
            taken.pop();
            self.at -= 1;
        }
        Block::Code { language: String::new(), text: taken.join("\n") }
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
        Block::Code { language: language.to_owned(), text: taken.join("\n") }
    }

    /// Parses a formula of several lines. Without an end before the next blank line it is shown as source,
    /// since its end may still be received.
    fn formula(&mut self, marks: Marks, rest: &'a str) -> Block {
        let mut tex = rest.trim().to_owned();
        let mut raw = vec![Inline::Text(format!("{}{}", marks.open(), rest.trim_end()))];
        self.at += 1;
        while let Some(line) = self.line(0).filter(|line| !is_blank(line) && Fence::parse(line).is_none()) {
            self.at += 1;
            let text = line.trim();
            if let Some((last, behind)) = marks.end(text).and_then(|end| text.split_at_checked(end)) {
                tex.push('\n');
                tex.push_str(last.trim_end());
                let behind = behind.get(marks.open().len()..).unwrap_or_default();
                let mut inside = vec![Inline::Formula(Formula { tex, marks })];
                inside.extend(inlines(behind));
                return Block::Paragraph(inside);
            }
            tex.push('\n');
            tex.push_str(text);
            raw.extend([Inline::SoftBreak, Inline::Text(text.to_owned())]);
        }
        Block::Paragraph(raw)
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
        Block::Quote(without_places(Parser::new(&inside.lines).blocks(depth + 1)))
    }

    fn list(&mut self, first: &Marker<'a>, depth: usize) -> Block {
        let mut items = Vec::new();
        let mut next = Some(first.clone());
        while let Some(marker) = next {
            self.items.push(self.at);
            let lines = self.item_lines(&marker, depth);
            let ends_blank = lines.last().is_some_and(|line| is_blank(line)) && lines.len() > 1;
            let (task, first_line) = task(lines.first().copied().unwrap_or_default());
            let mut lines = lines;
            if let (Some(_), Some(line)) = (task, lines.first_mut()) {
                *line = first_line;
            }
            let parsed = Parser::new(&lines).blocks(depth + 1);
            let spaced = parsed.spaced;
            let blocks = without_places(parsed);
            next = self
                .line(0)
                .filter(|line| indent(line) < 4 && !is_rule(line))
                .and_then(Marker::parse)
                .filter(|marker| marker.kind == first.kind);
            items.push(Item { task, blocks, spaced, gap: ends_blank && next.is_some() });
        }
        Block::List(List { start: first.number, items })
    }

    /// Consumes the lines of one item, including trailing blank lines.
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

    /// The columns of a table, if its first two lines are at the current position.
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
    /// The fence that is open after the lines.
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

    /// True if a line without the container's mark continues its last paragraph.
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

fn cell(text: &str) -> Vec<Inline> {
    inlines(&text.replace("\\|", "|"))
}
