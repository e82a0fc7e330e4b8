//! Flowcharts: `graph TD` and `flowchart LR`.
//!
//! Styles and links to pages are left out. A node of a subgraph names it, and those around it.

use super::canvas::{Head, Stroke};
use super::graph::{Direction, Edge, Graph, Row, Shape, texts};
use super::text::{PARTS_MAX, ends_escape, label_rows, word};
use std::collections::BTreeMap;

/// Opening and closing brackets of a node's text; longer ones first.
const BRACKETS: &[(&str, &[&str], Shape)] = &[
    ("(((", &[")))"], Shape::Round),
    ("((", &["))"], Shape::Round),
    ("([", &["])"], Shape::Round),
    ("(", &[")"], Shape::Round),
    ("[[", &["]]"], Shape::Box),
    ("[(", &[")]"], Shape::Round),
    ("[/", &["/]", "\\]"], Shape::Box),
    ("[\\", &["\\]", "/]"], Shape::Box),
    ("[", &["]"], Shape::Box),
    ("{{", &["}}"], Shape::Decision),
    ("{", &["}"], Shape::Decision),
    (">", &["]"], Shape::Box),
];

pub fn parse(options: &str, lines: &[&str]) -> Option<Graph> {
    let mut graph = Graph::new(Direction::parse(options)?);
    // The open subgraphs, by their places in `titles`, and for each node those of the first that mentions it.
    let mut open: Vec<usize> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut titles: Vec<String> = Vec::new();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for statement in lines.iter().flat_map(|line| statements(line)) {
        let (first, rest) = word(statement);
        match first {
            "classDef" | "class" | "style" | "linkStyle" | "click" => {}
            "direction" if !open.is_empty() => {}
            "subgraph" => {
                let (name, title) = match rest.split_once('[') {
                    Some((name, title)) => (name.trim(), label_rows(title.strip_suffix(']')?).join(" ")),
                    None => (rest, label_rows(rest).join(" ")),
                };
                names.push(name.to_owned());
                open.push(titles.len());
                titles.push(title);
            }
            "end" if rest.is_empty() => {
                open.pop()?;
            }
            _ => {
                let mut reader = Reader { rest: statement, graph: &mut graph, mentioned: Vec::new() };
                reader.chain()?;
                let mentioned = std::mem::take(&mut reader.mentioned);
                for node in mentioned.into_iter().filter(|_| !open.is_empty()) {
                    groups.entry(node).or_insert_with(|| open.clone());
                }
            }
        }
        if graph.nodes.len() > PARTS_MAX {
            return None;
        }
    }
    // An edge to a whole subgraph has no box to lead to.
    if !open.is_empty() || names.iter().any(|name| graph.known(name).is_some()) {
        return None;
    }
    // A title that no node shows would be lost.
    let is_shown =
        |(at, title): (usize, &String)| title.is_empty() || groups.values().any(|group| group.contains(&at));
    if !titles.iter().enumerate().all(is_shown) {
        return None;
    }
    for (node, group) in groups {
        let shown = group.iter().filter_map(|at| titles.get(*at)).filter(|title| !title.is_empty());
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        if !shown.is_empty() {
            graph.nodes.get_mut(node)?.rows.push(Row::Text(format!("[{}]", shown.join(" / "))));
        }
    }
    Some(graph)
}

/// The statements of a line, which semicolons outside of texts separate.
fn statements(line: &str) -> Vec<&str> {
    let (mut start, mut depth, mut is_quoted) = (0, 0usize, false);
    let mut out = Vec::new();
    for (at, letter) in line.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '[' | '(' | '{' if !is_quoted => depth += 1,
            ']' | ')' | '}' if !is_quoted => depth = depth.saturating_sub(1),
            ';' if !is_quoted && depth == 0 && !ends_escape(line, at) => {
                out.extend(line.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    out.extend(line.get(start..));
    out.into_iter().map(str::trim).filter(|statement| !statement.is_empty()).collect()
}

struct Reader<'a> {
    rest: &'a str,
    graph: &'a mut Graph,
    /// The nodes of the statement.
    mentioned: Vec<usize>,
}

struct Arrow {
    label: Vec<String>,
    stroke: Stroke,
    heads: [Head; 2],
}

impl<'a> Reader<'a> {
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips the text up to `end`, and `end`.
    fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// Skips the letters that are `sign`; returns how many.
    fn run(&mut self, sign: char) -> usize {
        let rest = self.rest.trim_start_matches(sign);
        let count = (self.rest.len() - rest.len()) / sign.len_utf8();
        self.rest = rest;
        count
    }

    fn chain(&mut self) -> Option<()> {
        let mut before = self.nodes()?;
        while !self.rest.trim_start().is_empty() {
            let arrow = self.arrow()?;
            let after = self.nodes()?;
            for from in &before {
                for to in &after {
                    let Arrow { label, stroke, heads } = &arrow;
                    let (label, stroke, heads) = (label.clone(), *stroke, *heads);
                    self.graph.edges.push(Edge { from: *from, to: *to, label, stroke, heads });
                    if self.graph.edges.len() > PARTS_MAX {
                        return None;
                    }
                }
            }
            before = after;
        }
        Some(())
    }

    fn nodes(&mut self) -> Option<Vec<usize>> {
        let mut nodes = vec![self.node()?];
        loop {
            self.rest = self.rest.trim_start();
            if !self.takes("&") {
                return Some(nodes);
            }
            nodes.push(self.node()?);
        }
    }

    fn node(&mut self) -> Option<usize> {
        self.rest = self.rest.trim_start();
        let name = self.name()?;
        let node = self.graph.node(name);
        self.mentioned.push(node);
        for (opening, closings, shape) in BRACKETS {
            if self.takes(opening) {
                let text = self.text(closings)?;
                let known = self.graph.nodes.get_mut(node)?;
                known.rows = texts(label_rows(text));
                known.shape = *shape;
                break;
            }
        }
        if self.takes(":::") {
            self.name()?;
        }
        (!self.rest.starts_with('@')).then_some(node)
    }

    fn name(&mut self) -> Option<&'a str> {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let mut letters = self.rest.char_indices().peekable();
        let mut end = 0;
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().is_some_and(|(_, next)| is_word(*next));
            let is_inside = matches!(letter, '-' | '.' | '/') && next && at > 0;
            if !is_word(letter) && !is_inside {
                break;
            }
            end = at + letter.len_utf8();
        }
        let (name, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!name.is_empty()).then_some(name)
    }

    /// The text of a node, up to its closing bracket.
    fn text(&mut self, closings: &[&str]) -> Option<&'a str> {
        let start = self.rest.trim_start();
        if let Some(quoted) = start.strip_prefix('"') {
            let (text, rest) = quoted.split_once('"')?;
            self.rest = rest.trim_start();
            return closings.iter().any(|closing| self.takes(closing)).then_some(text);
        }
        let ends = closings.iter().filter_map(|closing| Some((self.rest.find(closing)?, *closing)));
        let (_, closing) = ends.min()?;
        self.until(closing).filter(|text| !text.contains(['[', ']', '{', '}', '"']))
    }

    fn arrow(&mut self) -> Option<Arrow> {
        self.rest = self.rest.trim_start();
        let mut heads = [Head::None; 2];
        for (sign, head) in [("<", Head::Arrow), ("o", Head::Circle), ("x", Head::Cross)] {
            if self.rest.starts_with(sign) {
                self.takes(sign);
                heads[0] = head;
                break;
            }
        }
        let mut label = Vec::new();
        let stroke = if self.rest.starts_with("~~~") && heads[0] == Head::None {
            self.run('~');
            Stroke::Hidden
        } else if self.takes("-.") {
            self.run('.');
            if !self.takes("-") {
                label = label_rows(self.until(".")?.trim_end_matches('-'));
                self.run('.');
                self.takes("-").then_some(())?;
            }
            heads[1] = self.head();
            Stroke::Dotted
        } else {
            let (sign, double, stroke) = match self.rest.starts_with('=') {
                true => ('=', "==", Stroke::Thick),
                false => ('-', "--", Stroke::Solid),
            };
            let count = self.run(sign);
            if count < 2 {
                return None;
            }
            heads[1] = self.head();
            if count == 2 && heads[1] == Head::None {
                label = label_rows(self.until(double)?);
                let more = self.run(sign);
                heads[1] = self.head();
                // The sign may be a part of the text.
                if more == 0 && heads[1] == Head::None {
                    return None;
                }
            }
            stroke
        };
        self.rest = self.rest.trim_start();
        if self.takes("|") {
            label = label_rows(self.until("|")?);
        }
        label.retain(|row| !row.is_empty());
        Some(Arrow { label, stroke, heads })
    }

    fn head(&mut self) -> Head {
        let heads = [(">", Head::Arrow), ("o", Head::Circle), ("x", Head::Cross)];
        heads.into_iter().find(|(sign, _)| self.takes(sign)).map_or(Head::None, |(_, head)| head)
    }
}
