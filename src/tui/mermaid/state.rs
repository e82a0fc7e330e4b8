//! State diagrams.

use super::canvas::{Head, Stroke};
use super::graph::{Direction, Edge, Graph, Row, Shape, texts};
use super::text::{label_rows, word};

/// Composite states, forks and notes are not drawn.
pub fn parse(lines: &[&str], is_plain: bool) -> Option<Graph> {
    let mut graph = Graph::new(Direction::Down);
    for line in lines {
        let (first, rest) = word(line);
        match first {
            "direction" => graph.direction = Direction::parse(rest)?,
            "classDef" | "class" | "style" => {}
            "state" => {
                let (text, name) = rest.split_once(" as ")?;
                let node = graph.node(name_of(name)?);
                graph.nodes.get_mut(node)?.rows = texts(label_rows(text));
            }
            _ => transition(line, &mut graph, is_plain)?,
        }
    }
    for node in &mut graph.nodes {
        if node.shape == Shape::Box {
            node.shape = Shape::Round;
        }
    }
    Some(graph)
}

fn transition(line: &str, graph: &mut Graph, is_plain: bool) -> Option<()> {
    let (states, text) = match line.split_once(" :").or_else(|| line.split_once(": ")) {
        Some((states, text)) => {
            (states, label_rows(text).into_iter().filter(|row| !row.is_empty()).collect())
        }
        None => (line, Vec::new()),
    };
    let Some((from, to)) = states.split_once("-->") else {
        let node = graph.node(name_of(states)?);
        let known = graph.nodes.get_mut(node)?;
        known.rows.extend((!text.is_empty()).then_some(Row::Rule));
        known.rows.extend(texts(text));
        return Some(());
    };
    let mut end = |name: &str, is_start: bool| {
        if name.trim() != "[*]" {
            return Some(graph.node(name_of(name)?));
        }
        let signs = if is_plain { ["(start)", "(end)"] } else { ["●", "◉"] };
        // No name contains a blank.
        let node = graph.node(if is_start { "the start" } else { "the end" });
        let known = graph.nodes.get_mut(node)?;
        known.rows = texts(vec![signs[usize::from(!is_start)].to_owned()]);
        known.shape = Shape::Bare;
        Some(node)
    };
    let (from, to) = (end(from, true)?, end(to, false)?);
    graph.edges.push(Edge { from, to, label: text, stroke: Stroke::Solid, heads: [Head::None, Head::Arrow] });
    Some(())
}

fn name_of(text: &str) -> Option<&str> {
    let name = text.trim();
    let name = name.split_once(":::").map_or(name, |(name, _)| name);
    let is_name = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    (!name.is_empty() && name.chars().all(is_name) && name.contains(char::is_alphanumeric)).then_some(name)
}
