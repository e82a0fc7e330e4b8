//! Divides the tree of a session into runs: chains of entries without a fork.
//!
//! The current branch consists of whole runs: a run ends at the leaf even if entries follow. Each entry is in
//! exactly one run; if damaged parents form a cycle, one of its entries becomes a root.

use crate::session::index::Index;

#[derive(Debug, Default, PartialEq)]
pub struct Run {
    pub entries: Vec<u32>,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    /// True for a run of the current branch.
    pub current: bool,
    /// Number of forks above the run.
    pub depth: usize,
}

/// Returns the runs, parents before children.
pub fn runs(index: &Index, leaf: Option<u32>) -> Vec<Run> {
    let count = index.slots.len();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut starts = Vec::new();
    for (position, slot) in (0_u32..).zip(&index.slots) {
        match slot.parent.and_then(|parent| children.get_mut(parent as usize)) {
            Some(siblings) => siblings.push(position),
            None => starts.push((position, None)),
        }
    }
    let mut current = vec![false; count];
    for position in index.path(leaf) {
        if let Some(current) = current.get_mut(position as usize) {
            *current = true;
        }
    }
    let mut runs: Vec<Run> = Vec::new();
    let mut seen = vec![false; count];
    let mut unseen = 0..count;
    starts.reverse();
    loop {
        let Some((first, parent)) = starts.pop() else {
            // Cycles have no root.
            match unseen.find(|position| seen.get(*position) == Some(&false)) {
                Some(position) => starts.push((u32::try_from(position).unwrap_or(u32::MAX), None)),
                None => return runs,
            }
            continue;
        };
        let number = runs.len();
        let mut run =
            Run { parent, current: current.get(first as usize).copied().unwrap_or(false), ..Run::default() };
        let mut next = Some(first);
        while let Some(position) = next.take() {
            match seen.get_mut(position as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => break,
            }
            run.entries.push(position);
            let below = children.get(position as usize).map_or(&[][..], Vec::as_slice);
            match below {
                [only] if leaf != Some(position) => next = Some(*only),
                _ => starts.extend(below.iter().rev().map(|child| (*child, Some(number)))),
            }
        }
        if run.entries.is_empty() {
            continue;
        }
        if let Some(parent) = parent.and_then(|parent| runs.get_mut(parent)) {
            parent.children.push(number);
            run.depth = parent.depth + 1;
        }
        runs.push(run);
    }
}
