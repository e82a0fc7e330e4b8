//! A graph of boxes and edges.

use super::canvas::{Head, Stroke};
use crate::tui::{width, wrap};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Down,
    Up,
    Right,
    Left,
}

impl Direction {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "" | "TB" | "TD" => Self::Down,
            "BT" => Self::Up,
            "LR" => Self::Right,
            "RL" => Self::Left,
            _ => return None,
        })
    }

    pub fn is_vertical(self) -> bool {
        matches!(self, Self::Down | Self::Up)
    }

    pub fn turned(self) -> Self {
        match self {
            Self::Down => Self::Right,
            Self::Right => Self::Down,
            Self::Up => Self::Left,
            Self::Left => Self::Up,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Box,
    Round,
    Decision,
    /// Text without a frame.
    Bare,
}

#[derive(Clone, Debug)]
pub enum Row {
    Text(String),
    /// A line between parts of a box.
    Rule,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub rows: Vec<Row>,
    pub shape: Shape,
}

#[derive(Clone, Debug)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub label: Vec<String>,
    pub stroke: Stroke,
    /// The heads at both ends.
    pub heads: [Head; 2],
}

/// Nodes are numbered from 0.
#[derive(Clone, Debug)]
pub struct Graph {
    pub direction: Direction,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    names: HashMap<String, usize>,
}

impl Graph {
    pub fn new(direction: Direction) -> Self {
        Self { direction, nodes: Vec::new(), edges: Vec::new(), names: HashMap::new() }
    }

    pub fn known(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The node of that name; a new one shows its name.
    pub fn node(&mut self, name: &str) -> usize {
        *self.names.entry(name.to_owned()).or_insert_with(|| {
            self.nodes.push(Node { rows: texts(vec![name.to_owned()]), shape: Shape::Box });
            self.nodes.len() - 1
        })
    }

    /// Writes the edges from a node to itself into the node.
    pub fn fold_loops(&mut self, is_plain: bool) {
        let (loops, edges) =
            std::mem::take(&mut self.edges).into_iter().partition(|edge| edge.from == edge.to);
        self.edges = edges;
        let mark = if is_plain { "to itself" } else { "↻" };
        for edge in loops as Vec<Edge> {
            if let Some(node) = self.nodes.get_mut(edge.from) {
                node.rows.push(Row::Text(format!("{mark} {}", edge.label.join(" ")).trim_end().to_owned()));
            }
        }
    }

    /// Wraps all texts.
    pub fn wrap(&mut self, cells: usize) {
        for node in &mut self.nodes {
            let rows = std::mem::take(&mut node.rows);
            node.rows = rows
                .into_iter()
                .flat_map(|row| match row {
                    Row::Text(text) => texts(wrapped(&text, cells)),
                    Row::Rule => vec![Row::Rule],
                })
                .collect();
        }
        for edge in &mut self.edges {
            edge.label = edge.label.iter().flat_map(|text| wrapped(text, cells)).collect();
        }
    }
}

impl Node {
    /// Width and height with the frame, in cells.
    pub fn size(&self) -> (usize, usize) {
        let widths = self.rows.iter().map(|row| match row {
            Row::Text(text) => width::width(text),
            Row::Rule => 0,
        });
        let text = widths.max().unwrap_or(0).max(1);
        match self.shape {
            Shape::Bare => (text, self.rows.len()),
            _ => (text + 4, self.rows.len() + 2),
        }
    }
}

pub fn texts(rows: Vec<String>) -> Vec<Row> {
    rows.into_iter().map(Row::Text).collect()
}

fn wrapped(text: &str, cells: usize) -> Vec<String> {
    let rows = wrap::rows(text, cells);
    rows.into_iter().map(|row| text.get(row).unwrap_or_default().trim_end().to_owned()).collect()
}
