//! Draws Mermaid diagrams as text.
//!
//! Flowcharts, state and class diagrams are graphs, laid out in layers; sequence diagrams have lifelines; a pie
//! is drawn as bars. A diagram is drawn whole or not at all: one with a statement that is not known, of more
//! parts than the limits, or wider than the screen stays its source. A graph that is too wide is also tried
//! with narrower texts and in the other direction.

mod canvas;
mod class;
mod flowchart;
mod graph;
mod layers;
mod pie;
mod route;
mod sequence;
mod state;
mod text;

use text::word;

/// Longer sources are not drawn.
pub const BYTES_MAX: usize = 8192;

/// Draws a diagram in at most `width` cells; in ASCII if `is_plain`.
pub fn draw(source: &str, width: usize, is_plain: bool) -> Option<Vec<String>> {
    if source.len() > BYTES_MAX {
        return None;
    }
    let mut lines = source.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("%%"));
    let head = lines.next()?;
    // The first statement may stand behind the kind.
    let (head, first) = head.split_once(';').unwrap_or((head, ""));
    let rest: Vec<&str> =
        Some(first.trim()).filter(|first| !first.is_empty()).into_iter().chain(lines).collect();
    let rest = rest.as_slice();
    let (kind, options) = word(head.trim());
    match kind {
        "graph" | "flowchart" => route::draw(flowchart::parse(options, rest)?, width, is_plain),
        "stateDiagram" | "stateDiagram-v2" if options.is_empty() => {
            route::draw(state::parse(rest, is_plain)?, width, is_plain)
        }
        // ASCII has no signs for the kinds of relations.
        "classDiagram" | "classDiagram-v2" if options.is_empty() && !is_plain => {
            route::draw(class::parse(rest)?, width, is_plain)
        }
        "sequenceDiagram" if options.is_empty() => sequence::draw(rest, width, is_plain),
        "pie" => pie::draw(options, rest, width, is_plain),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
