//! Puts the nodes of a graph into layers, orders them, and places them across the flow.
//!
//! Each edge leads from one layer to the next: longer ones pass through bends, and a label is a part of its
//! edge with a layer of its own, so that no line runs through it. An edge of a circle is turned around, and
//! keeps its heads.

use super::graph::{Direction, Graph};
use crate::base::order::Order;
use crate::tui::width::width;

/// More parts in all layers are not laid out.
const ITEMS_MAX: usize = 600;
const SWEEPS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Node(usize),
    Label(usize),
    Bend,
}

/// A part of a layer.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: Kind,
    pub layer: usize,
    /// Cells along the flow.
    pub length: usize,
    /// Cells across the flow, and the first of them.
    pub breadth: usize,
    pub start: usize,
}

impl Item {
    pub fn center(&self) -> usize {
        self.start + (self.breadth - 1) / 2
    }
}

/// A part of an edge between neighbouring layers.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub edge: usize,
    pub from: usize,
    pub to: usize,
    /// True if the edge itself leads against the flow.
    pub is_turned: bool,
}

/// Nodes come first in `items`, in their order.
pub struct Layers {
    pub items: Vec<Item>,
    pub links: Vec<Link>,
    /// The items of each layer, in order.
    pub layers: Vec<Vec<usize>>,
}

/// Lays out the graph; `breadth` gives the least cells that a node takes across the flow.
pub fn layers(graph: &Graph, turned: &[bool], breadth: impl Fn(usize) -> usize) -> Option<Layers> {
    let vertical = graph.direction.is_vertical();
    let depths = depths(graph, turned)?;
    let mut out = Layers { items: Vec::new(), links: Vec::new(), layers: Vec::new() };
    for (at, node) in graph.nodes.iter().enumerate() {
        let (width, height) = node.size();
        let (length, across) = if vertical { (height, width) } else { (width, height) };
        out.add(Kind::Node(at), depths[at], length, across.max(breadth(at)));
    }
    for (at, edge) in graph.edges.iter().enumerate() {
        let is_turned = turned[at];
        let (from, to) = if is_turned { (edge.to, edge.from) } else { (edge.from, edge.to) };
        let mut before = from;
        let label = if edge.label.is_empty() { None } else { Some((depths[from] + depths[to]) / 2) };
        for layer in depths[from] + 1..depths[to] {
            let item = if label == Some(layer) {
                let text = edge.label.iter().map(|row| width(row)).max().unwrap_or(0).max(1) + 2;
                let rows = edge.label.len();
                let (length, across) = if vertical { (rows, text) } else { (text, rows) };
                out.add(Kind::Label(at), layer, length, across)
            } else {
                out.add(Kind::Bend, layer, 1, 1)
            };
            out.links.push(Link { edge: at, from: before, to: item, is_turned });
            before = item;
        }
        out.links.push(Link { edge: at, from: before, to, is_turned });
        if out.items.len() > ITEMS_MAX {
            return None;
        }
    }
    out.order();
    out.place(graph.direction);
    Some(out)
}

/// For each edge, true if it must be turned around so that no circle is left.
pub fn turned(graph: &Graph) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    fn visit(at: usize, graph: &Graph, out: &[Vec<usize>], seen: &mut [Seen], turned: &mut [bool]) {
        seen[at] = Seen::Open;
        for &edge in &out[at] {
            let to = graph.edges[edge].to;
            match seen[to] {
                Seen::No => visit(to, graph, out, seen, turned),
                Seen::Open => turned[edge] = true,
                Seen::Done => {}
            }
        }
        seen[at] = Seen::Done;
    }
    let mut out = vec![Vec::new(); graph.nodes.len()];
    for (at, edge) in graph.edges.iter().enumerate() {
        out[edge.from].push(at);
    }
    let mut seen = vec![Seen::No; graph.nodes.len()];
    let mut turned = vec![false; graph.edges.len()];
    for at in 0..graph.nodes.len() {
        if seen[at] == Seen::No {
            visit(at, graph, &out, &mut seen, &mut turned);
        }
    }
    turned
}

/// The layer of each node: as early as its edges allow.
fn depths(graph: &Graph, turned: &[bool]) -> Option<Vec<usize>> {
    let mut depths = vec![0; graph.nodes.len()];
    for _ in 0..=graph.nodes.len() {
        let mut is_changed = false;
        for (edge, is_turned) in graph.edges.iter().zip(turned) {
            let (from, to) = if *is_turned { (edge.to, edge.from) } else { (edge.from, edge.to) };
            let least = depths[from] + if edge.label.is_empty() { 1 } else { 2 };
            if depths[to] < least {
                (depths[to], is_changed) = (least, true);
            }
        }
        if !is_changed {
            return Some(depths);
        }
    }
    None
}

impl Layers {
    /// The least columns of a drawing.
    pub fn columns(&self, direction: Direction) -> usize {
        match direction.is_vertical() {
            true => self.items.iter().map(|item| item.start + item.breadth).max().unwrap_or(0),
            false => {
                let lengths = |layer: &Vec<usize>| layer.iter().map(|item| self.items[*item].length).max();
                self.layers.iter().filter_map(lengths).sum()
            }
        }
    }

    fn add(&mut self, kind: Kind, layer: usize, length: usize, breadth: usize) -> usize {
        let at = self.items.len();
        self.items.push(Item { kind, layer, length, breadth, start: 0 });
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.layers[layer].push(at);
        at
    }

    /// The neighbours of each item in the layers before and after.
    fn neighbours(&self) -> [Vec<Vec<usize>>; 2] {
        let mut both = [vec![Vec::new(); self.items.len()], vec![Vec::new(); self.items.len()]];
        for link in &self.links {
            both[0][link.to].push(link.from);
            both[1][link.from].push(link.to);
        }
        both
    }

    /// Orders the layers so that few edges cross: each item goes to the middle of its neighbours.
    fn order(&mut self) {
        let neighbours = self.neighbours();
        let mut best = (self.crossings(&neighbours[1]), self.layers.clone());
        for sweep in 0..SWEEPS {
            let neighbours = &neighbours[sweep % 2];
            let count = self.layers.len();
            for step in 1..count {
                let at = if sweep % 2 == 0 { step } else { count - 1 - step };
                let places = self.places();
                let middle = |item: &usize| -> usize {
                    let near = &neighbours[*item];
                    match near.is_empty() {
                        true => places[*item] * 1000,
                        false => near.iter().map(|near| places[*near] * 1000).sum::<usize>() / near.len(),
                    }
                };
                self.layers[at].order_by_key(middle);
            }
            let crossings = self.crossings(&self.neighbours()[1]);
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// The place of each item in its layer.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.items.len()];
        for layer in &self.layers {
            for (place, item) in layer.iter().enumerate() {
                places[*item] = place;
            }
        }
        places
    }

    fn crossings(&self, after: &[Vec<usize>]) -> usize {
        let places = self.places();
        let mut count = 0;
        for layer in &self.layers {
            let mut ends: Vec<usize> = Vec::new();
            for item in layer {
                let new: Vec<usize> = after[*item].iter().map(|to| places[*to]).collect();
                for to in &new {
                    count += ends.iter().filter(|end| *end > to).count();
                }
                ends.extend(new);
            }
        }
        count
    }

    /// Places the items near the middle of their neighbours, in their order and with gaps.
    fn place(&mut self, direction: Direction) {
        let gap = if direction.is_vertical() { 3 } else { 1 };
        for layer in &self.layers {
            let mut next = 0;
            for item in layer {
                self.items[*item].start = next;
                next += self.items[*item].breadth + gap;
            }
        }
        let neighbours = self.neighbours();
        for sweep in 0..SWEEPS {
            // The layers move freely, also to the left of the first cell.
            let room: usize = 10_000;
            if sweep == 0 {
                self.items.iter_mut().for_each(|item| item.start += room);
            }
            let count = self.layers.len();
            for step in 0..count {
                let at = if sweep % 2 == 0 { step } else { count - 1 - step };
                let near = |item: usize| {
                    let mut centers: Vec<usize> =
                        neighbours[sweep % 2][item].iter().map(|near| self.items[*near].center()).collect();
                    centers.order();
                    let middle = centers.len() / 2;
                    match centers.len() {
                        0 => self.items[item].center(),
                        count if count % 2 == 0 => (centers[middle - 1] + centers[middle]) / 2,
                        _ => centers[middle],
                    }
                };
                let wanted: Vec<usize> = self.layers[at].iter().map(|item| near(*item)).collect();
                let breadths: Vec<usize> =
                    self.layers[at].iter().map(|item| self.items[*item].breadth).collect();
                for (item, start) in self.layers[at].clone().into_iter().zip(spread(&wanted, &breadths, gap))
                {
                    self.items[item].start = start;
                }
            }
        }
        let first = self.items.iter().map(|item| item.start).min().unwrap_or(0);
        self.items.iter_mut().for_each(|item| item.start -= first);
    }
}

/// Starts of the items, as near to the wanted centers as their order and the gaps allow (least squares).
fn spread(wanted: &[usize], breadths: &[usize], gap: usize) -> Vec<usize> {
    // Without breadths and gaps, the starts only must not decrease: neighbours that would are averaged.
    let mut before = 0;
    let mut groups: Vec<(usize, usize)> = Vec::new();
    let mut offsets = Vec::new();
    for (center, breadth) in wanted.iter().zip(breadths) {
        let start = center.saturating_sub((breadth - 1) / 2).saturating_sub(before);
        offsets.push(before);
        before += breadth + gap;
        let mut group = (start, 1);
        while let Some(last) = groups.last().copied().filter(|last| last.0 * group.1 > group.0 * last.1) {
            group = (last.0 + group.0, last.1 + group.1);
            groups.pop();
        }
        groups.push(group);
    }
    let starts = groups.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count, count));
    starts.zip(offsets).map(|(start, offset)| start + offset).collect()
}
