//! Class diagrams.

use super::canvas::{Head, Stroke};
use super::graph::{Direction, Edge, Graph, Row};
use super::text::{row, word};
use std::collections::BTreeMap;

/// Fields and methods of a class, and what it is, such as `interface`.
#[derive(Default)]
struct Members {
    kind: Option<String>,
    fields: Vec<String>,
    methods: Vec<String>,
}

/// Namespaces and notes are not drawn.
pub fn parse(lines: &[&str]) -> Option<Graph> {
    let mut graph = Graph::new(Direction::Down);
    let mut members: BTreeMap<usize, Members> = BTreeMap::new();
    // The class whose body is open.
    let mut open = None;
    for line in lines {
        if let Some(class) = open {
            if *line == "}" {
                open = None;
            } else {
                members.entry(class).or_default().add(line);
            }
            continue;
        }
        let (first, rest) = word(line);
        match first {
            "direction" => graph.direction = Direction::parse(rest)?,
            "classDef" | "style" | "cssClass" | "click" => {}
            "class" => {
                let body = rest.strip_suffix('{');
                let class = self::class(&mut graph, body.unwrap_or(rest))?;
                open = body.map(|_| class);
            }
            _ if first.starts_with("<<") => {
                let class = self::class(&mut graph, rest)?;
                members.entry(class).or_default().add(first);
            }
            _ => {
                if let Some(edge) = relation(line, &mut graph) {
                    graph.edges.push(edge);
                    continue;
                }
                let (class, member) = line.split_once(':')?;
                let class = self::class(&mut graph, class)?;
                members.entry(class).or_default().add(member);
            }
        }
    }
    for (class, members) in members {
        let node = graph.nodes.get_mut(class)?;
        node.rows.splice(..0, members.kind.map(|kind| Row::Text(format!("«{kind}»"))));
        for part in [members.fields, members.methods] {
            if !part.is_empty() {
                node.rows.push(Row::Rule);
                node.rows.extend(part.into_iter().map(Row::Text));
            }
        }
    }
    for row in graph.nodes.iter_mut().flat_map(|node| &mut node.rows) {
        if let Row::Text(text) = row {
            *text = generic(text);
        }
    }
    open.is_none().then_some(graph)
}

impl Members {
    fn add(&mut self, member: &str) {
        let text = row(member);
        match text.strip_prefix("<<").and_then(|kind| kind.strip_suffix(">>")) {
            Some(kind) => self.kind = Some(kind.to_owned()),
            None if text.contains('(') => self.methods.push(text),
            None => self.fields.push(text),
        }
    }
}

/// A class name; `List~int~` is a generic one.
fn name_of(text: &str) -> Option<&str> {
    let name = text.trim();
    let is_name = |letter: char| letter.is_alphanumeric() || "_~.".contains(letter);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The node of a class. Elsewhere a generic one may be named without its parameters.
fn class(graph: &mut Graph, text: &str) -> Option<usize> {
    let shown = name_of(text)?;
    let node = graph.node(shown.split('~').next()?);
    if shown.contains('~') {
        *graph.nodes.get_mut(node)?.rows.first_mut()? = Row::Text(shown.to_owned());
    }
    Some(node)
}

/// Writes `List~int~` as `List<int>`. A `~` at the beginning is the mark of a visibility.
fn generic(text: &str) -> String {
    let is_word =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let (mut out, mut depth, mut before) = (String::new(), 0usize, None);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '~' if before.is_some() && is_word(before) && is_word(letters.peek().copied()) => {
                depth += 1;
                out.push('<');
            }
            '~' if before.is_some() => match depth.checked_sub(1) {
                Some(left) => {
                    depth = left;
                    out.push('>');
                }
                None => return text.to_owned(),
            },
            _ => out.push(letter),
        }
        before = Some(letter);
    }
    if depth == 0 { out } else { text.to_owned() }
}

fn relation(line: &str, graph: &mut Graph) -> Option<Edge> {
    let (sign, stroke) = match (line.find("--"), line.find("..")) {
        (Some(solid), dotted) if dotted.is_none_or(|dotted| solid < dotted) => ("--", Stroke::Solid),
        _ => ("..", Stroke::Dotted),
    };
    let (left, right) = line.split_once(sign)?;
    let ends = [
        ("<|", "|>", Head::Triangle),
        ("*", "*", Head::Diamond),
        ("o", "o", Head::HollowDiamond),
        ("<", ">", Head::Arrow),
    ];
    let (mut left, mut right, mut heads) = (left.trim_end(), right, [Head::None; 2]);
    for (before, behind, head) in ends {
        // An `o` may also be the end of a name.
        let parted = left.strip_suffix(before).filter(|rest| before != "o" || rest.ends_with([' ', '"']));
        if let (Some(rest), Head::None) = (parted, heads[0]) {
            (left, heads[0]) = (rest.trim_end(), head);
        }
        let parted = right.strip_prefix(behind).filter(|rest| behind != "o" || rest.starts_with([' ', '"']));
        if let (Some(rest), Head::None) = (parted, heads[1]) {
            (right, heads[1]) = (rest, head);
        }
    }
    let (right, label) = right.split_once(':').unwrap_or((right, ""));
    let (left, many) = match left.strip_suffix('"') {
        Some(rest) => rest.rsplit_once('"')?,
        None => (left, ""),
    };
    let right = right.trim();
    let (other, right) = match right.strip_prefix('"') {
        Some(rest) => rest.split_once('"')?,
        None => ("", right),
    };
    let (from, to) = (class(graph, left)?, class(graph, right)?);
    let label = [many, label.trim(), other].map(row).into_iter().filter(|part| !part.is_empty());
    let label = label.collect::<Vec<_>>().join(" ");
    let label = if label.is_empty() { Vec::new() } else { vec![label] };
    Some(Edge { from, to, label, stroke, heads })
}
