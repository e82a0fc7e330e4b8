//! Sequence diagrams: a lifeline for each participant, and what happens from top to bottom.

use super::canvas::{Canvas, Head, Side, Stroke};
use super::text::{PARTS_MAX, ends_escape, row, rows, word};
use crate::tui::width::width;
use std::collections::HashMap;

/// Kinds of arrows; longer ones first.
const ARROWS: &[(&str, Stroke, [Head; 2])] = &[
    ("<<-->>", Stroke::Dotted, [Head::Arrow, Head::Arrow]),
    ("<<->>", Stroke::Solid, [Head::Arrow, Head::Arrow]),
    ("-->>", Stroke::Dotted, [Head::None, Head::Arrow]),
    ("->>", Stroke::Solid, [Head::None, Head::Arrow]),
    ("--x", Stroke::Dotted, [Head::None, Head::Cross]),
    ("-x", Stroke::Solid, [Head::None, Head::Cross]),
    ("--)", Stroke::Dotted, [Head::None, Head::Open]),
    ("-)", Stroke::Solid, [Head::None, Head::Open]),
    ("-->", Stroke::Dotted, [Head::None, Head::None]),
    ("->", Stroke::Solid, [Head::None, Head::None]),
];

enum Step {
    Message {
        from: usize,
        to: usize,
        text: Vec<String>,
        stroke: Stroke,
        heads: [Head; 2],
    },
    /// Over the lifelines from the first to the second, or beside one of them.
    Note {
        first: usize,
        last: usize,
        side: Option<Side>,
        text: Vec<String>,
    },
    /// The beginning, a part, or the end of a block.
    Divider(String),
}

#[derive(Default)]
struct Sequence {
    titles: Vec<Vec<String>>,
    names: HashMap<String, usize>,
    steps: Vec<Step>,
    /// The kinds of the open blocks.
    blocks: Vec<String>,
    is_numbered: bool,
    messages: usize,
}

pub fn draw(lines: &[&str], cells: usize, is_plain: bool) -> Option<Vec<String>> {
    let mut sequence = Sequence::default();
    for line in lines.iter().flat_map(|line| statements(line)) {
        sequence.read(line)?;
        if sequence.titles.len() > PARTS_MAX || sequence.steps.len() > PARTS_MAX {
            return None;
        }
    }
    (sequence.blocks.is_empty() && !sequence.titles.is_empty()).then_some(())?;
    sequence.drawn(cells, is_plain)
}

/// The statements of a line. A semicolon that ends an escape such as `#35;` separates none.
fn statements(line: &str) -> Vec<&str> {
    let mut start = 0;
    let mut out = Vec::new();
    for (at, _) in line.match_indices(';').filter(|(at, _)| !ends_escape(line, *at)) {
        out.extend(line.get(start..at));
        start = at + 1;
    }
    out.extend(line.get(start..));
    out.into_iter().map(str::trim).filter(|statement| !statement.is_empty()).collect()
}

/// The rows of a message or a note.
fn said(text: &str) -> Vec<String> {
    let text = text.trim();
    rows(text.strip_prefix("wrap:").or_else(|| text.strip_prefix("nowrap:")).unwrap_or(text))
}

impl Sequence {
    fn participant(&mut self, name: &str) -> Option<usize> {
        let name = name.trim();
        if name.is_empty() || name.contains(['<', '>', ':', ',', ';', '+']) {
            return None;
        }
        let next = self.titles.len();
        let at = *self.names.entry(name.to_owned()).or_insert(next);
        if at == next {
            self.titles.push(rows(name));
        }
        Some(at)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let (first, rest) = word(line);
        match first.to_ascii_lowercase().as_str() {
            "participant" | "actor" => {
                let (name, title) = rest.split_once(" as ").unwrap_or((rest, rest));
                let at = self.participant(name)?;
                *self.titles.get_mut(at)? = rows(title);
            }
            "activate" | "deactivate" if self.names.contains_key(rest) => {}
            "autonumber" if rest.is_empty() => self.is_numbered = true,
            "note" => self.note(rest)?,
            "rect" => self.blocks.push(String::new()),
            kind @ ("loop" | "alt" | "opt" | "par" | "critical" | "break") => {
                self.blocks.push(kind.to_owned());
                self.steps.push(Step::Divider(row(&format!("{kind} {rest}"))));
            }
            kind @ ("else" | "and" | "option") => {
                let is_part = matches!(
                    (self.blocks.last()?.as_str(), kind),
                    ("alt", "else") | ("par", "and") | ("critical", "option")
                );
                is_part.then_some(())?;
                self.steps.push(Step::Divider(row(&format!("{kind} {rest}"))));
            }
            "end" if rest.is_empty() => {
                let kind = self.blocks.pop()?;
                if !kind.is_empty() {
                    self.steps.push(Step::Divider(format!("end {kind}")));
                }
            }
            _ => self.message(line)?,
        }
        Some(())
    }

    fn note(&mut self, rest: &str) -> Option<()> {
        let (place, text) = rest.split_once(':')?;
        let lower = place.to_ascii_lowercase();
        let (side, names) = if lower.starts_with("left of ") {
            (Some(Side::Left), place.get(8..)?)
        } else if lower.starts_with("right of ") {
            (Some(Side::Right), place.get(9..)?)
        } else {
            lower.starts_with("over ").then_some(())?;
            (None, place.get(5..)?)
        };
        let (one, two) = names.split_once(',').unwrap_or((names, names));
        let (one, two) = (self.participant(one)?, self.participant(two)?);
        (side.is_none() || one == two).then_some(())?;
        self.steps.push(Step::Note { first: one.min(two), last: one.max(two), side, text: said(text) });
        Some(())
    }

    fn message(&mut self, line: &str) -> Option<()> {
        let (ends, text) = line.split_once(':').unwrap_or((line, ""));
        // The arrow that begins first; of several there, the longest.
        let found = ARROWS.iter().filter_map(|arrow| Some((ends.find(arrow.0)?, arrow)));
        let (at, (sign, stroke, heads)) =
            found.min_by_key(|(at, arrow)| (*at, usize::MAX - arrow.0.len()))?;
        let to = ends.get(at + sign.len()..)?.trim_start().trim_start_matches(['+', '-']);
        let (from, to) = (self.participant(ends.get(..at)?)?, self.participant(to)?);
        let mut text = said(text);
        self.messages += 1;
        if self.is_numbered {
            text[0] = format!("{}. {}", self.messages, text[0]);
        }
        self.steps.push(Step::Message { from, to, text, stroke: *stroke, heads: *heads });
        Some(())
    }

    /// The columns of the lifelines, and the width of all.
    fn columns(&self) -> (Vec<usize>, usize) {
        let halves: Vec<usize> = self.titles.iter().map(|title| widest(title) / 2 + 2).collect();
        let count = halves.len();
        // Room before each lifeline, and behind the last.
        let mut room: Vec<usize> = vec![0; count + 1];
        for (at, half) in halves.iter().enumerate() {
            room[at] += half;
            room[at + 1] += half + 1;
        }
        for step in &self.steps {
            let (first, last, wanted) = match step {
                Step::Message { from, to, text, .. } if from == to => {
                    (*from + 1, *from + 1, widest(text) + 6)
                }
                Step::Message { from, to, text, .. } => (from.min(to) + 1, *from.max(to), widest(text) + 4),
                Step::Note { first, text, side: Some(Side::Left), .. } => (*first, *first, widest(text) + 6),
                Step::Note { last, text, side: Some(_), .. } => (*last + 1, *last + 1, widest(text) + 6),
                Step::Note { first, last, text, side: None } => {
                    let half = widest(text) / 2 + 4;
                    if first == last {
                        room[*first] = room[*first].max(half);
                    }
                    let behind = if first == last { last + 1 } else { *last };
                    (first + 1, behind, if first == last { half } else { widest(text) })
                }
                Step::Divider(_) => continue,
            };
            let given: usize = room[first..=last].iter().sum();
            room[last] += wanted.saturating_sub(given);
        }
        let mut at = 0;
        let mut columns = Vec::new();
        for room in &room[..count] {
            at += room;
            columns.push(at);
        }
        let dividers = self.steps.iter().filter_map(|step| match step {
            Step::Divider(text) => Some(width(text) + 6),
            _ => None,
        });
        let all = (at + room[count]).max(dividers.max().unwrap_or(0));
        (columns, all)
    }

    fn drawn(&self, cells: usize, is_plain: bool) -> Option<Vec<String>> {
        let (columns, all) = self.columns();
        if all > cells {
            return None;
        }
        let head = self.titles.iter().map(Vec::len).max()? + 2;
        let height = |step: &Step| match step {
            Step::Message { from, to, text, .. } => shown(text) + if from == to { 2 } else { 1 },
            Step::Note { text, .. } => text.len() + 2,
            Step::Divider(_) => 1,
        };
        let rows = head + self.steps.iter().map(height).sum::<usize>() + 1;
        let mut canvas = Canvas::new(all, rows, is_plain);
        for (title, x) in self.titles.iter().zip(&columns) {
            framed(&mut canvas, (x - widest(title) / 2 - 2, 0), widest(title) + 4, head, title);
            canvas.line((*x, head - 1), (*x, rows - 1), Stroke::Solid);
        }
        let mut y = head;
        for step in &self.steps {
            match step {
                Step::Message { from, to, text, stroke, heads } if from == to => {
                    let x = columns[*from];
                    let below = y + shown(text);
                    for (row, y) in text.iter().zip(y..below) {
                        canvas.text((x + 2, y), row);
                    }
                    canvas.line((x, below), (x + 4, below), *stroke);
                    canvas.line((x + 4, below), (x + 4, below + 1), *stroke);
                    canvas.line(
                        (x + usize::from(heads[1] != Head::None), below + 1),
                        (x + 4, below + 1),
                        *stroke,
                    );
                    canvas.head((x + 1, below + 1), heads[1], Side::Left);
                }
                Step::Message { from, to, text, stroke, heads } => {
                    let (from, to) = (columns[*from], columns[*to]);
                    let (left, right) = (from.min(to), from.max(to));
                    let below = y + shown(text);
                    for (row, y) in text.iter().zip(y..below) {
                        canvas.text((left + 1 + (right - left - 1 - width(row)) / 2, y), row);
                    }
                    let (before, behind) =
                        if from < to { (heads[0], heads[1]) } else { (heads[1], heads[0]) };
                    let start = left + usize::from(before != Head::None);
                    canvas.line((start, below), (right - usize::from(behind != Head::None), below), *stroke);
                    canvas.head((left + 1, below), before, Side::Left);
                    canvas.head((right - 1, below), behind, Side::Right);
                }
                Step::Note { first, last, side, text } => {
                    let wide = widest(text) + 4;
                    let (left, right) = (columns[*first], columns[*last]);
                    let (start, wide) = match side {
                        Some(Side::Left) => (left - wide - 1, wide),
                        Some(_) => (right + 2, wide),
                        None if first == last => (left - wide / 2, wide),
                        None => (left - 2, right - left + 5),
                    };
                    canvas.clear((start, y), (wide, text.len() + 2));
                    framed(&mut canvas, (start, y), wide, text.len() + 2, text);
                }
                Step::Divider(text) => {
                    canvas.line((0, y), (all - 1, y), Stroke::Dotted);
                    canvas.text((2, y), &format!(" {text} "));
                }
            }
            y += height(step);
        }
        Some(canvas.rows())
    }
}

/// The rows that a message's text takes.
fn shown(text: &[String]) -> usize {
    if text.iter().all(String::is_empty) { 0 } else { text.len() }
}

fn widest(text: &[String]) -> usize {
    text.iter().map(|row| width(row)).max().unwrap_or(0)
}

fn framed(canvas: &mut Canvas, (x, y): (usize, usize), wide: usize, height: usize, text: &[String]) {
    canvas.frame((x, y), (wide, height), None);
    let top = y + (height - text.len()) / 2;
    for (row, y) in text.iter().zip(top..) {
        canvas.text((x + (wide - width(row)) / 2, y), row);
    }
}
