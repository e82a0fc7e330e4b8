//! Line diffs of two texts.
//!
//! The shortest script by the greedy algorithm of Myers, with the choices of the `diff` package, so that
//! the output is the same as the reference's. Its cost grows with the number of changes: past a limit
//! the texts are cut at lines that occur once in both, and a piece that is still too different is shown
//! as replaced whole. So the work is bounded for any input.
//!
//! The result has two forms: one for people, with line numbers, and a unified patch for programs.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;

/// Unchanged lines shown on either side of a change.
const CONTEXT: usize = 4;
/// Maximum changed lines for which the shortest script is computed.
const MAX_CHANGES: usize = 2048;
/// Maximum line comparisons for one text.
const MAX_STEPS: usize = 1 << 22;

/// The changes of a text, in the forms of the `edit` tool's `details`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Lines as `-12 old`, `+12 new`, ` 12 same`; ` ...` marks omitted unchanged lines.
    pub diff: String,
    /// Unified diff with four lines of context.
    pub patch: String,
    /// Number of the first changed line in the new text, from 1.
    pub first_changed_line: Option<usize>,
}

/// Compares two texts whose lines end in `\n`.
pub fn changes(path: &str, old: &str, new: &str) -> Changes {
    let script = Script::new(old, new);
    let first = script.runs.iter().find(|run| run.kind != Kind::Same);
    Changes {
        diff: script.numbered(),
        patch: script.patch(path),
        first_changed_line: first.map(|run| run.new.start + 1),
    }
}

/// The lines of `old` that `new` replaces, as ranges in order, each with its new text. No two ranges touch.
pub(super) fn replaced(old: &str, new: &str) -> Vec<(Range<usize>, String)> {
    let script = Script::new(old, new);
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut is_open = false;
    for run in &script.runs {
        if run.kind == Kind::Same {
            is_open = false;
            continue;
        }
        if !std::mem::replace(&mut is_open, true) {
            changes.push((run.old.start..run.old.start, String::new()));
        }
        if let Some((range, text)) = changes.last_mut() {
            range.end = run.old.end;
            if run.kind == Kind::Added {
                text.extend(script.lines(run).iter().copied());
            }
        }
    }
    changes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Removed,
    Added,
}

/// Consecutive lines that are all kept, all removed or all added.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    kind: Kind,
    old: Range<usize>,
    new: Range<usize>,
}

struct Script<'a> {
    /// Lines of the old text, with newlines.
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    runs: Vec<Run>,
    /// Digits of the largest line number.
    width: usize,
}

impl<'a> Script<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
        let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
        // Numbers compare faster than lines, however long those are.
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut number = |line: &&'a str| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(line).or_insert(next)
        };
        let old_numbers: Vec<u32> = old_lines.iter().map(&mut number).collect();
        let new_numbers: Vec<u32> = new_lines.iter().map(&mut number).collect();
        let mut runs = Runs::default();
        compare(&old_numbers, &new_numbers, &mut runs);
        // A final newline counts as the start of one more line.
        let count = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
        Self {
            old: old_lines,
            new: new_lines,
            runs: runs.0,
            width: count(old).max(count(new)).to_string().len(),
        }
    }

    fn lines(&self, run: &Run) -> &[&'a str] {
        let lines = match run.kind {
            Kind::Removed => self.old.get(run.old.clone()),
            Kind::Added | Kind::Same => self.new.get(run.new.clone()),
        };
        lines.unwrap_or_default()
    }

    fn numbered(&self) -> String {
        let width = self.width;
        let mut out = Vec::new();
        let show = |out: &mut Vec<String>, sign: char, lines: &[&str], first: usize| {
            for (line, number) in lines.iter().zip(first + 1..) {
                let line = line.strip_suffix('\n').unwrap_or(line);
                out.push(format!("{sign}{number:>width$} {line}"));
            }
        };
        let last = self.runs.len().saturating_sub(1);
        for (at, run) in self.runs.iter().enumerate() {
            let lines = self.lines(run);
            match run.kind {
                Kind::Removed => show(&mut out, '-', lines, run.old.start),
                Kind::Added => show(&mut out, '+', lines, run.new.start),
                Kind::Same if last == 0 => {}
                Kind::Same => {
                    let head = if at > 0 { CONTEXT } else { 0 };
                    let tail = if at < last { CONTEXT } else { 0 };
                    match lines.len().checked_sub(head + tail) {
                        None | Some(0) => show(&mut out, ' ', lines, run.old.start),
                        Some(hidden) => {
                            let (first, rest) = lines.split_at(head);
                            show(&mut out, ' ', first, run.old.start);
                            out.push(format!(" {:width$} ...", ""));
                            show(&mut out, ' ', &rest[hidden..], run.old.start + head + hidden);
                        }
                    }
                }
            }
        }
        out.join("\n")
    }

    fn patch(&self, path: &str) -> String {
        let mut out = format!("--- {path}\n+++ {path}\n");
        // An empty range is named by the line before it.
        let range = |start: usize, end: usize| {
            let length = end - start;
            format!("{},{length}", start + usize::from(length > 0))
        };
        for hunk in self.hunks() {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
                continue;
            };
            let old = range(first.old.start, last.old.end);
            let new = range(first.new.start, last.new.end);
            let _ = writeln!(out, "@@ -{old} +{new} @@");
            for run in &hunk {
                let sign = match run.kind {
                    Kind::Same => ' ',
                    Kind::Removed => '-',
                    Kind::Added => '+',
                };
                for line in self.lines(run) {
                    out.push(sign);
                    out.push_str(line);
                    if !line.ends_with('\n') {
                        out.push_str("\n\\ No newline at end of file\n");
                    }
                }
            }
        }
        out
    }

    /// Groups of changes with context; nearby changes share a group.
    fn hunks(&self) -> Vec<Vec<Run>> {
        let last = self.runs.len().saturating_sub(1);
        let mut hunks = Vec::new();
        let mut open: Vec<Run> = Vec::new();
        let mut before = None;
        for (at, run) in self.runs.iter().enumerate() {
            if run.kind != Kind::Same {
                if open.is_empty() {
                    open.extend(before.take());
                }
                open.push(run.clone());
                continue;
            }
            let length = run.old.len();
            if !open.is_empty() {
                if length <= 2 * CONTEXT && at < last {
                    open.push(run.clone());
                    continue;
                }
                open.push(run.part(0..length.min(CONTEXT)));
                hunks.push(std::mem::take(&mut open));
            }
            before = Some(run.part(length.saturating_sub(CONTEXT)..length));
        }
        if !open.is_empty() {
            hunks.push(open);
        }
        hunks
    }
}

impl Run {
    /// A part of a run of unchanged lines.
    fn part(&self, part: Range<usize>) -> Self {
        Self {
            kind: self.kind,
            old: self.old.start + part.start..self.old.start + part.end,
            new: self.new.start + part.start..self.new.start + part.end,
        }
    }
}

/// The runs found so far; each starts at the end of the previous one.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    fn push(&mut self, kind: Kind, count: usize) {
        if count == 0 {
            return;
        }
        let (old, new) = match kind {
            Kind::Same => (count, count),
            Kind::Removed => (count, 0),
            Kind::Added => (0, count),
        };
        match self.0.last_mut() {
            Some(run) if run.kind == kind => {
                run.old.end += old;
                run.new.end += new;
            }
            last => {
                let (at_old, at_new) = last.map_or((0, 0), |run| (run.old.end, run.new.end));
                self.0.push(Run { kind, old: at_old..at_old + old, new: at_new..at_new + new });
            }
        }
    }

    /// Appends a script for the next lines: its changes in order, each placed as late as the lines allow.
    fn replay(&mut self, old: &[u32], new: &[u32], changes: &[Kind]) {
        let (mut old, mut new) = (old, new);
        let mut changes = changes.iter();
        loop {
            let same = common_prefix(old, new);
            self.push(Kind::Same, same);
            (old, new) = (&old[same..], &new[same..]);
            match changes.next() {
                Some(Kind::Removed) => {
                    self.push(Kind::Removed, 1);
                    old = old.get(1..).unwrap_or_default();
                }
                Some(_) => {
                    self.push(Kind::Added, 1);
                    new = new.get(1..).unwrap_or_default();
                }
                None => return,
            }
        }
    }
}

fn compare(old: &[u32], new: &[u32], runs: &mut Runs) {
    let mut steps = MAX_STEPS + old.len() + new.len();
    let same = common_prefix(old, new);
    runs.push(Kind::Same, same);
    let (old, new) = (&old[same..], &new[same..]);
    if let Some(changes) = shortest(old, new, &mut steps) {
        runs.replay(old, new, &changes);
        return;
    }
    let mut at = (0, 0);
    for anchor in anchors(old, new).into_iter().chain([(old.len(), new.len())]) {
        let (old_gap, new_gap) = (&old[at.0..anchor.0], &new[at.1..anchor.1]);
        match shortest(old_gap, new_gap, &mut steps) {
            Some(changes) => runs.replay(old_gap, new_gap, &changes),
            None => {
                runs.push(Kind::Removed, old_gap.len());
                runs.push(Kind::Added, new_gap.len());
            }
        }
        // The anchor itself is the first line of the next gap.
        at = anchor;
    }
}

fn common_prefix(old: &[u32], new: &[u32]) -> usize {
    old.iter().zip(new).take_while(|(a, b)| a == b).count()
}

/// The shortest script of removals and additions from `old` to `new`, in order; `None` if there are too many.
///
/// For each number of changes, the furthest reachable point on each diagonal (lines of `old` minus lines of
/// `new`) is computed from its two neighbours. On a tie removing comes first.
fn shortest(old: &[u32], new: &[u32], steps: &mut usize) -> Option<Vec<Kind>> {
    /// The furthest point on a diagonal: lines of `old` consumed, and the change that led to it.
    #[derive(Clone, Copy)]
    struct Reached {
        old: usize,
        change: usize,
    }
    const NOWHERE: usize = usize::MAX;

    let same = common_prefix(old, new);
    *steps = steps.checked_sub(same)?;
    if same == old.len() && same == new.len() {
        return Some(Vec::new());
    }
    let limit = MAX_CHANGES.min(old.len() + new.len());
    // Diagonals are counted from `limit + 1`, so that both neighbours of all have a place.
    let middle = limit + 1;
    let mut reached: Vec<Option<Reached>> = vec![None; 2 * middle + 1];
    reached[middle] = Some(Reached { old: same, change: NOWHERE });
    // Each change with the index of the one before it.
    let mut made: Vec<(Kind, usize)> = Vec::new();
    // Diagonals beyond these cannot lead to the end in fewer changes.
    let (mut lowest, mut highest) = (0, 2 * middle);
    for count in 1..=limit {
        let from = lowest.max(middle - count);
        let to = highest.min(middle + count);
        for diagonal in (from..=to).step_by(2) {
            *steps = steps.checked_sub(1)?;
            let removal = reached[diagonal - 1].take().filter(|at| at.old < old.len());
            let addition = reached[diagonal + 1].filter(|at| {
                (at.old + middle).checked_sub(diagonal + 1).is_some_and(|passed| passed < new.len())
            });
            let (kind, before, mut at) = match (removal, addition) {
                (Some(removal), Some(addition)) if removal.old < addition.old => {
                    (Kind::Added, addition.change, addition.old)
                }
                (Some(removal), _) => (Kind::Removed, removal.change, removal.old + 1),
                (None, Some(addition)) => (Kind::Added, addition.change, addition.old),
                (None, None) => {
                    reached[diagonal] = None;
                    continue;
                }
            };
            let mut new_at = at + middle - diagonal;
            let same = common_prefix(&old[at..], &new[new_at..]);
            *steps = steps.checked_sub(same)?;
            at += same;
            new_at += same;
            made.push((kind, before));
            let change = made.len() - 1;
            if at == old.len() && new_at == new.len() {
                let mut changes = Vec::with_capacity(count);
                let mut next = change;
                while let Some(&(kind, before)) = made.get(next) {
                    changes.push(kind);
                    next = before;
                }
                changes.reverse();
                return Some(changes);
            }
            reached[diagonal] = Some(Reached { old: at, change });
            if at == old.len() {
                highest = highest.min(diagonal - 1);
            }
            if new_at == new.len() {
                lowest = lowest.max(diagonal + 1);
            }
        }
    }
    None
}

/// Positions of lines that occur once in both texts, as many as are in the same order.
fn anchors(old: &[u32], new: &[u32]) -> Vec<(usize, usize)> {
    let once = |lines: &[u32]| {
        let mut places: HashMap<u32, Option<usize>> = HashMap::new();
        for (at, &line) in lines.iter().enumerate() {
            places.entry(line).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let new_places = once(new);
    let mut pairs: Vec<(usize, usize)> = once(old)
        .into_iter()
        .filter_map(|(line, place)| Some((place?, (*new_places.get(&line)?)?)))
        .collect();
    pairs.sort_unstable();
    // The longest rising sequence: `ends[n]` is the pair that ends the best one of length n + 1.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        chain.push(pairs[index]);
        next = before[index];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Old text, new text, and the reference's result.
    type Row = (String, String, String, String, Option<usize>);

    #[test]
    fn the_output_is_that_of_the_reference() {
        let json = include_str!("../../tests/data/tools/diff.json");
        let rows: Vec<Row> = serde_json::from_str(json).unwrap();
        assert!(rows.len() > 30);
        for (old, new, diff, patch, first_changed_line) in rows {
            let expected = Changes { diff, patch, first_changed_line };
            assert_eq!(changes("dir/f.txt", &old, &new), expected, "{old:?} -> {new:?}");
        }
    }

    /// Checks that the runs are contiguous, cover both texts, and that kept lines are equal.
    #[track_caller]
    fn check_script(old: &str, new: &str) -> usize {
        let script = Script::new(old, new);
        let (mut at_old, mut at_new, mut changed) = (0, 0, 0);
        for run in &script.runs {
            assert_eq!((run.old.start, run.new.start), (at_old, at_new));
            (at_old, at_new) = (run.old.end, run.new.end);
            if run.kind == Kind::Same {
                assert_eq!(script.old[run.old.clone()], script.new[run.new.clone()]);
            } else {
                changed += run.old.len() + run.new.len();
            }
        }
        assert_eq!((at_old, at_new), (script.old.len(), script.new.len()));
        changed
    }

    #[test]
    fn texts_that_differ_everywhere_are_cut_at_lines_they_share() {
        // Every second line differs: too many changes to look for the shortest script in one go.
        let text = |other: &str| {
            (0..3 * MAX_CHANGES).fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "line {line}\n{other}");
                text
            })
        };
        assert_eq!(check_script(&text("old"), &text("new")), 6 * MAX_CHANGES);
        // Nothing is shared at all, or nothing is unique.
        let lines = |seed: u64, different: u64| {
            let mut state = seed;
            (0..8_000).fold(String::new(), |mut text, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
                let _ = writeln!(text, "{}", (state >> 33) % different);
                text
            })
        };
        check_script(&lines(1, 1 << 30), &lines(3, 1 << 30));
        check_script(&lines(1, 5), &lines(3, 5));
    }

    proptest! {
        #[test]
        fn a_script_makes_the_new_text_of_the_old(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let changed = check_script(&old, &new);
            prop_assert_eq!(changed == 0, old == new);
            prop_assert_eq!(changes("p", &old, &new).first_changed_line.is_none(), old == new);
        }
    }
}
