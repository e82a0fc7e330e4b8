//! Draws a graph: boxes in their layers, and edges in the channels between them.
//!
//! In a channel an edge leaves its item, goes along a track across the flow, and on to its item in the next
//! layer. Edges that leave at one port share a track. Two edges may meet only where it stays clear which leads
//! where: otherwise one gets a port of its own, and the graph is laid out anew.

use super::canvas::{Canvas, Head, Side, Stroke};
use super::graph::{Direction, Graph, Node, Row, Shape};
use super::layers::{Kind, Layers, Link, layers, turned};
use super::text::PARTS_MAX;
use crate::tui::width;
use std::collections::{BTreeMap, HashSet};

/// Widths at which texts are wrapped, in the order in which they are tried.
const TEXT_WIDTHS: [usize; 2] = [32, 16];
/// Taller drawings are not drawn.
const ROWS_MAX: usize = 300;
/// How often edges get ports of their own.
const TRIES: usize = 12;

/// What shares a port: edges with equal lines and heads there, or a single edge.
type Key = (bool, Head, Stroke, Option<usize>);

/// The keys of the ports of each node, before and after it in the flow.
struct Ports([Vec<Vec<Key>>; 2]);

/// The edges of a channel that leave at one port.
#[derive(Default)]
struct Net {
    links: Vec<Link>,
    /// Where the edges go on.
    ends: Vec<usize>,
    track: usize,
}

struct Channel {
    /// By the port at which they leave.
    nets: BTreeMap<usize, Net>,
    tracks: usize,
}

/// Draws the graph in the first way that fits.
pub fn draw(mut graph: Graph, width: usize, is_plain: bool) -> Option<Vec<String>> {
    if graph.nodes.is_empty() || graph.nodes.len() > PARTS_MAX || graph.edges.len() > PARTS_MAX {
        return None;
    }
    graph.fold_loops(is_plain);
    // Edges of different kinds between the same nodes would share a line.
    let mut strokes = BTreeMap::new();
    if graph
        .edges
        .iter()
        .any(|edge| *strokes.entry((edge.from, edge.to)).or_insert(edge.stroke) != edge.stroke)
    {
        return None;
    }
    let directions = [graph.direction, graph.direction.turned()];
    let mut ways = directions.into_iter().flat_map(|direction| TEXT_WIDTHS.map(|cells| (direction, cells)));
    ways.find_map(|(direction, cells)| {
        let mut graph = graph.clone();
        graph.direction = direction;
        graph.wrap(cells);
        draw_once(&graph, width, is_plain)
    })
}

fn draw_once(graph: &Graph, width: usize, is_plain: bool) -> Option<Vec<String>> {
    let turned = turned(graph);
    let mut alone = HashSet::new();
    for _ in 0..TRIES {
        let ports = Ports::new(graph, &turned, &alone);
        let step = if graph.direction.is_vertical() { 2 } else { 1 };
        let layers = layers(graph, &turned, |node| {
            let most = ports.0[0][node].len().max(ports.0[1][node].len());
            if most > 1 { most / 2 * 2 * step + 3 } else { 1 }
        })?;
        // With more ports it would not become narrower.
        if layers.columns(graph.direction) > width {
            return None;
        }
        let drawing = Drawing { graph, layers, ports: &ports, alone: &alone, step };
        let channels: Result<Vec<Channel>, Option<usize>> =
            (1..drawing.layers.layers.len()).map(|layer| drawing.channel(layer - 1)).collect();
        match channels {
            Ok(channels) => return drawing.draw(&channels, width, is_plain),
            Err(edge) => {
                alone.insert(edge?);
            }
        }
    }
    None
}

impl Ports {
    fn new(graph: &Graph, turned: &[bool], alone: &HashSet<usize>) -> Self {
        let mut ports = [vec![Vec::new(); graph.nodes.len()], vec![Vec::new(); graph.nodes.len()]];
        for (at, (edge, is_turned)) in graph.edges.iter().zip(turned).enumerate() {
            let ends = if *is_turned { [edge.to, edge.from] } else { [edge.from, edge.to] };
            for (side, node) in [(1, ends[0]), (0, ends[1])] {
                let key = key(graph, at, *is_turned, side, alone);
                let known: &mut Vec<Key> = &mut ports[side][node];
                if !known.contains(&key) {
                    known.push(key);
                }
            }
        }
        Self(ports)
    }
}

/// The key of an edge's port; `side` is 0 where it goes on, 1 where it leaves.
fn key(graph: &Graph, edge: usize, is_turned: bool, side: usize, alone: &HashSet<usize>) -> Key {
    let is_own = side == 0 && alone.contains(&edge);
    let stroke = match graph.edges[edge].stroke {
        // Beside it nothing is drawn.
        Stroke::Hidden => Stroke::Solid,
        stroke => stroke,
    };
    (is_turned, head(graph, edge, is_turned, side), stroke, is_own.then_some(edge))
}

/// The head of an edge where it leaves (1) or goes on (0) in the flow.
fn head(graph: &Graph, edge: usize, is_turned: bool, side: usize) -> Head {
    let [from, to] = graph.edges[edge].heads;
    if (side == 1) == is_turned { to } else { from }
}

struct Drawing<'a> {
    graph: &'a Graph,
    layers: Layers,
    ports: &'a Ports,
    alone: &'a HashSet<usize>,
    /// Cells between ports.
    step: usize,
}

impl Drawing<'_> {
    /// The cell across the flow at which a link meets its item.
    fn port(&self, link: &Link, side: usize) -> usize {
        let item = &self.layers.items[if side == 1 { link.from } else { link.to }];
        let Kind::Node(node) = item.kind else {
            return item.center();
        };
        let key = key(self.graph, link.edge, link.is_turned, side, self.alone);
        let place = self.ports.0[side][node].iter().position(|known| *known == key).unwrap_or(0);
        let away = place.div_ceil(2) * self.step;
        if place % 2 == 1 { item.center() + away } else { item.center() - away.min(item.center()) }
    }

    /// Gives the nets between a layer and the next their tracks; else the edge that needs a port of its own.
    fn channel(&self, layer: usize) -> Result<Channel, Option<usize>> {
        let mut nets: BTreeMap<usize, Net> = BTreeMap::new();
        for link in self.layers.links.iter().filter(|link| self.layers.items[link.from].layer == layer) {
            let net = nets.entry(self.port(link, 1)).or_default();
            net.ends.push(self.port(link, 0));
            net.links.push(*link);
        }
        let own = |net: &Net, end: usize| -> Option<usize> {
            let links = net.links.iter().zip(&net.ends).filter(|(_, known)| **known == end);
            let free = |link: &&Link| {
                matches!(self.layers.items[link.to].kind, Kind::Node(_)) && !self.alone.contains(&link.edge)
            };
            links.map(|(link, _)| link).find(free).map(|link| link.edge)
        };
        let is_straight = |port: usize, net: &Net| net.ends.iter().all(|end| *end == port);
        let is_fork = |net: &Net| net.ends.iter().any(|end| Some(end) != net.ends.first());
        // For each net, the nets that must be above it.
        let mut above: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (&port, net) in &nets {
            for (&other, lower) in nets.iter().filter(|(other, _)| **other != port) {
                let shared = net.ends.iter().copied().find(|end| lower.ends.contains(end));
                if let Some(end) = shared.filter(|_| is_fork(net)) {
                    if is_fork(lower) || is_straight(other, lower) {
                        return Err(own(net, end).or_else(|| own(lower, end)));
                    }
                    above.entry(other).or_default().push(port);
                }
                if lower.ends.contains(&port) && !is_straight(port, net) {
                    above.entry(other).or_default().push(port);
                }
            }
        }
        let mut waiting: Vec<usize> =
            nets.iter().filter(|(port, net)| !is_straight(**port, net)).map(|(port, _)| *port).collect();
        let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
        while !waiting.is_empty() {
            let is_ready = |port: &usize| {
                !above.get(port).is_some_and(|all| all.iter().any(|one| waiting.contains(one)))
            };
            let Some(at) = waiting.iter().position(is_ready) else {
                // The nets wait for each other.
                let ends = |port: &usize| {
                    let net = &nets[port];
                    net.ends.iter().filter(|end| waiting.contains(end)).find_map(|end| own(net, *end))
                };
                let any = |port: &usize| nets[port].ends.iter().find_map(|end| own(&nets[port], *end));
                return Err(waiting.iter().find_map(ends).or_else(|| waiting.iter().find_map(any)));
            };
            let port = waiting.remove(at);
            let before = above.get(&port).into_iter().flatten().filter_map(|one| nets.get(one));
            let first =
                before.filter(|net| net.track != usize::MAX).map(|net| net.track + 1).max().unwrap_or(0);
            let net = &nets[&port];
            let low = net.ends.iter().copied().chain([port]).min().unwrap_or(port);
            let high = net.ends.iter().copied().chain([port]).max().unwrap_or(port);
            let is_free = |track: &usize| {
                let spans = taken.get(*track).into_iter().flatten();
                spans.into_iter().all(|(from, to)| high + 1 < *from || to + 1 < low)
            };
            let track = (first..).find(is_free).unwrap_or(first);
            taken.resize(taken.len().max(track + 1), Vec::new());
            taken[track].push((low, high));
            if let Some(net) = nets.get_mut(&port) {
                net.track = track;
            }
        }
        Ok(Channel { nets, tracks: taken.len() })
    }

    fn draw(&self, channels: &[Channel], width: usize, is_plain: bool) -> Option<Vec<String>> {
        let vertical = self.graph.direction.is_vertical();
        // The first cell of each layer along the flow, and the one after it.
        let mut spans: Vec<(usize, usize)> = Vec::new();
        // The first track of each channel.
        let mut tracks = Vec::new();
        let mut next = 0;
        for (at, layer) in self.layers.layers.iter().enumerate() {
            let length = layer.iter().map(|item| self.layers.items[*item].length).max().unwrap_or(0);
            spans.push((next, next + length));
            next += length;
            if let Some(channel) = channels.get(at) {
                let has_head = |side| {
                    let mut links = channel.nets.values().flat_map(|net| &net.links);
                    links.any(|link| self.head(link, side) != Head::None)
                };
                let leave = usize::from(has_head(1) || !vertical);
                let straight = usize::from(channel.tracks == 0 && (leave == 0 || !vertical));
                tracks.push(next + leave);
                next += leave + channel.tracks + straight + usize::from(has_head(0) || !vertical);
            }
        }
        let breadth = self.layers.items.iter().map(|item| item.start + item.breadth).max()?;
        let (columns, rows) = if vertical { (breadth, next) } else { (next, breadth) };
        if columns > width || rows > ROWS_MAX {
            return None;
        }
        let canvas = Canvas::new(columns, rows, is_plain);
        let mut pen = Pen { canvas, direction: self.graph.direction, length: next, is_plain };
        for item in &self.layers.items {
            let (start, end) = spans[item.layer];
            let last = if matches!(item.kind, Kind::Node(_)) { start + item.length } else { end } - 1;
            let (one, two) = (pen.place(start, item.start), pen.place(last, item.start + item.breadth - 1));
            let corner = (one.0.min(two.0), one.1.min(two.1));
            let size = (one.0.abs_diff(two.0) + 1, one.1.abs_diff(two.1) + 1);
            match item.kind {
                Kind::Node(node) => pen.node(&self.graph.nodes[node], corner, size),
                Kind::Label(edge) => pen.label(&self.graph.edges[edge].label, corner, size),
                Kind::Bend => {}
            }
        }
        for (at, channel) in channels.iter().enumerate() {
            for (&port, net) in &channel.nets {
                for (link, &end) in net.links.iter().zip(&net.ends) {
                    let track = tracks[at] + net.track;
                    self.link(link, (port, end), (spans[at].0, track, spans[at + 1].0), &mut pen);
                }
            }
        }
        Some(pen.canvas.rows())
    }

    /// The head of a link where it leaves (1) or goes on (0); none if that is not at a node.
    fn head(&self, link: &Link, side: usize) -> Head {
        let item = &self.layers.items[if side == 1 { link.from } else { link.to }];
        match item.kind {
            Kind::Node(_) => head(self.graph, link.edge, link.is_turned, side),
            _ => Head::None,
        }
    }

    /// Draws a link from the layer that begins at `first`, over a track, to the layer that begins at `next`.
    fn link(
        &self,
        link: &Link,
        (port, end): (usize, usize),
        (first, track, next): (usize, usize, usize),
        pen: &mut Pen,
    ) {
        let stroke = self.graph.edges[link.edge].stroke;
        let is_framed = |item: usize| match self.layers.items[item].kind {
            Kind::Node(node) => self.graph.nodes[node].shape != Shape::Bare,
            _ => true,
        };
        let (leaving, entering) = (self.head(link, 1), self.head(link, 0));
        let from = match self.layers.items[link.from].kind {
            Kind::Node(_) => {
                let behind = first + self.layers.items[link.from].length;
                behind - usize::from(leaving == Head::None && is_framed(link.from))
            }
            _ => first,
        };
        let to = next - usize::from(entering != Head::None || !is_framed(link.to));
        if port == end {
            pen.line((from, port), (to, port), stroke);
        } else {
            pen.line((from, port), (track, port), stroke);
            pen.line((track, port), (track, end), stroke);
            pen.line((track, end), (to, end), stroke);
        }
        pen.head((from, port), leaving, false);
        pen.head((to, end), entering, true);
    }
}

/// Draws at places along and across the flow.
struct Pen {
    canvas: Canvas,
    direction: Direction,
    /// Cells along the flow.
    length: usize,
    is_plain: bool,
}

impl Pen {
    fn place(&self, along: usize, across: usize) -> (usize, usize) {
        match self.direction {
            Direction::Down => (across, along),
            Direction::Up => (across, self.length - 1 - along),
            Direction::Right => (along, across),
            Direction::Left => (self.length - 1 - along, across),
        }
    }

    fn line(&mut self, from: (usize, usize), to: (usize, usize), stroke: Stroke) {
        let (from, to) = (self.place(from.0, from.1), self.place(to.0, to.1));
        self.canvas.line(from, to, stroke);
    }

    fn head(&mut self, at: (usize, usize), head: Head, is_forward: bool) {
        let forward = match self.direction {
            Direction::Down => Side::Down,
            Direction::Up => Side::Up,
            Direction::Right => Side::Right,
            Direction::Left => Side::Left,
        };
        let side = if is_forward { forward } else { forward.opposite() };
        self.canvas.head(self.place(at.0, at.1), head, side);
    }

    fn node(&mut self, node: &Node, corner: (usize, usize), size: (usize, usize)) {
        let corners = match (node.shape, self.is_plain) {
            (Shape::Round, false) => Some("╭╮╰╯"),
            (Shape::Round, true) => Some("..''"),
            (Shape::Decision, false) => Some("╱╲╲╱"),
            (Shape::Decision, true) => Some("/\\\\/"),
            (Shape::Box | Shape::Bare, _) => None,
        };
        if node.shape != Shape::Bare {
            self.canvas.frame(corner, size, corners);
        }
        let top = corner.1 + (size.1 - node.rows.len().min(size.1)) / 2;
        for (row, y) in node.rows.iter().zip(top..) {
            match row {
                Row::Text(text) => {
                    let left = size.0.saturating_sub(width::width(text)) / 2;
                    self.canvas.text((corner.0 + left, y), text);
                }
                Row::Rule => {
                    self.canvas.line((corner.0, y), (corner.0 + size.0 - 1, y), Stroke::Solid);
                }
            }
        }
    }

    fn label(&mut self, rows: &[String], corner: (usize, usize), size: (usize, usize)) {
        let top = corner.1 + (size.1 - rows.len().min(size.1)) / 2;
        for (row, y) in rows.iter().zip(top..) {
            let text = format!(" {row} ");
            let left = size.0.saturating_sub(width::width(&text)) / 2;
            self.canvas.text((corner.0 + left, y), &text);
        }
    }
}
