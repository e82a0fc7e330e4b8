//! The shown entries of a session's tree, and the lines between them.
//!
//! Hidden entries are passed over: the children of one are attached to its nearest shown ancestor. A chain
//! without branches stays in one column; at a branch, each child is indented by one column. Every step here
//! visits the entries once, so that a key in a long session costs milliseconds.

use crate::runtime::outline::{Outline, Preview};
use std::collections::HashSet;
use std::ops::Range;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    #[default]
    Default,
    NoTools,
    UserOnly,
    LabeledOnly,
    All,
}

impl Filter {
    pub const ALL: [Self; 5] = [Self::Default, Self::NoTools, Self::UserOnly, Self::LabeledOnly, Self::All];

    /// Parses a value of the setting `treeFilterMode`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::NoTools => "no-tools",
            Self::UserOnly => "user-only",
            Self::LabeledOnly => "labeled-only",
            Self::All => "all",
        }
    }

    /// Text shown after the counter.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::NoTools => " [no-tools]",
            Self::UserOnly => " [user]",
            Self::LabeledOnly => " [labeled]",
            Self::All => " [all]",
        }
    }

    /// The next or the previous filter.
    pub fn turned(self, is_forward: bool) -> Self {
        let at = Self::ALL.iter().position(|&filter| filter == self).unwrap_or(0);
        let step = if is_forward { 1 } else { Self::ALL.len() - 1 };
        let next = Self::ALL.get((at + step) % Self::ALL.len());
        next.copied().unwrap_or_default()
    }

    fn shows(self, preview: &Preview, is_labeled: bool, is_leaf: bool) -> bool {
        match preview {
            Preview::Usage => return false,
            // Where one is must be seen.
            Preview::Silent if !is_leaf => return false,
            _ => {}
        }
        let is_setting = matches!(preview, Preview::Setting(_));
        match self {
            Self::Default => !is_setting,
            Self::NoTools => !is_setting && !matches!(preview, Preview::Tool(_)),
            Self::UserOnly => matches!(preview, Preview::User(_)),
            Self::LabeledOnly => is_labeled,
            Self::All => true,
        }
    }
}

/// A shown entry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Index of the entry in the outline.
    pub item: u32,
    /// Row of the nearest shown ancestor.
    pub parent: Option<usize>,
    /// Columns of three cells before the row's text.
    pub indent: usize,
    /// True if the row has a connector, `├─` or `└─`, in the column before its text.
    pub is_branch: bool,
    /// True if no sibling branch follows below.
    pub is_last: bool,
    /// Number of child rows.
    pub children: usize,
    /// The first child row.
    pub first_child: Option<usize>,
    is_root: bool,
    /// True if the row is the first of its branch: the next row is indented.
    has_branched: bool,
    /// The nearest row with a connector: this one or an ancestor.
    branch: Option<usize>,
}

pub struct Shape {
    outline: Outline,
    /// All entries, parents before children, the current branch first.
    order: Vec<u32>,
    parents: Vec<Option<u32>>,
    is_on_path: Vec<bool>,
    /// Searchable texts, in lower case.
    texts: Vec<String>,
    pub filter: Filter,
    pub query: String,
    folded: HashSet<u32>,
    pub rows: Vec<Row>,
}

impl Shape {
    pub fn new(outline: Outline, filter: Filter) -> Self {
        let count = outline.items.len();
        let mut parents = vec![None; count];
        for (item, at) in outline.items.iter().zip(0_u32..) {
            for &child in item.iter().flat_map(|item| &item.children) {
                if let Some(parent) = parents.get_mut(child as usize) {
                    *parent = Some(at);
                }
            }
        }
        let mut is_on_path = vec![false; count];
        let mut next = outline.leaf;
        while let Some(at) = next
            && let Some(on_path) = is_on_path.get_mut(at as usize)
            && !std::mem::replace(on_path, true)
        {
            next = parents.get(at as usize).copied().flatten();
        }
        let texts = outline.items.iter().map(|item| {
            item.as_ref().map_or_else(String::new, |item| {
                let label = item.bookmark.as_ref().map_or("", |mark| &mark.label);
                searchable(&item.preview, label)
            })
        });
        let mut shape = Self {
            order: order(&outline, &is_on_path),
            texts: texts.collect(),
            parents,
            is_on_path,
            outline,
            filter,
            query: String::new(),
            folded: HashSet::new(),
            rows: Vec::new(),
        };
        shape.lay_out();
        shape
    }

    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    pub fn item(&self, at: u32) -> Option<&crate::runtime::outline::Item> {
        self.outline.items.get(at as usize)?.as_ref()
    }

    pub fn is_on_path(&self, at: u32) -> bool {
        self.is_on_path.get(at as usize).copied().unwrap_or(false)
    }

    pub fn is_folded(&self, at: u32) -> bool {
        self.folded.contains(&at)
    }

    pub fn position(&self, id: &str) -> Option<u32> {
        let items = self.outline.items.iter().zip(0_u32..);
        let mut found = items.filter(|(item, _)| item.as_ref().is_some_and(|item| item.id == id));
        found.next().map(|(_, at)| at)
    }

    pub fn set_label(&mut self, at: u32, label: Option<&str>, now: String) {
        if let Some(Some(item)) = self.outline.items.get_mut(at as usize) {
            item.bookmark = label
                .map(|label| crate::runtime::outline::Bookmark { label: label.to_owned(), timestamp: now });
            if let Some(text) = self.texts.get_mut(at as usize) {
                *text = searchable(&item.preview, label.unwrap_or_default());
            }
        }
    }

    /// Rebuilds the rows after a change of filter, search or folding.
    pub fn lay_out(&mut self) {
        let words: Vec<String> = self.query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let is_shown = |at: u32| {
            let Some(item) = self.item(at) else {
                return false;
            };
            let is_leaf = self.outline.leaf == Some(at);
            let text = self.texts.get(at as usize).map_or("", String::as_str);
            self.filter.shows(&item.preview, item.bookmark.is_some(), is_leaf)
                && words.iter().all(|word| text.contains(word.as_str()))
        };
        // For each entry: the row that what hangs on it is under, and whether that is folded away.
        let mut above: Vec<Option<usize>> = vec![None; self.outline.items.len()];
        let mut is_hidden = vec![false; self.outline.items.len()];
        let mut rows: Vec<Row> = Vec::new();
        let mut roots: Vec<usize> = Vec::new();
        for &at in &self.order {
            let parent = self.parents.get(at as usize).copied().flatten();
            let is_gone = parent.is_some_and(|parent| {
                self.folded.contains(&parent) || is_hidden.get(parent as usize).copied().unwrap_or(false)
            });
            if let Some(hidden) = is_hidden.get_mut(at as usize) {
                *hidden = is_gone;
            }
            let under = parent.and_then(|parent| above.get(parent as usize).copied().flatten());
            let below = if !is_gone && is_shown(at) {
                let row = rows.len();
                match under.and_then(|under| rows.get_mut(under)) {
                    Some(under) => {
                        under.children += 1;
                        under.first_child.get_or_insert(row);
                    }
                    None => roots.push(row),
                }
                rows.push(Row::new(at, under));
                Some(row)
            } else {
                under
            };
            if let Some(above) = above.get_mut(at as usize) {
                *above = below;
            }
        }
        place(&mut rows, &roots);
        self.rows = rows;
    }

    /// The row of an entry, or of its nearest shown ancestor, otherwise the last.
    pub fn nearest(&self, at: Option<u32>) -> usize {
        let mut by_item = vec![None; self.outline.items.len()];
        for (row, index) in self.rows.iter().zip(0..) {
            if let Some(slot) = by_item.get_mut(row.item as usize) {
                *slot = Some(index);
            }
        }
        let mut next = at;
        let mut steps = self.outline.items.len();
        while let Some(at) = next
            && steps > 0
        {
            if let Some(index) = by_item.get(at as usize).copied().flatten() {
                return index;
            }
            next = self.parents.get(at as usize).copied().flatten();
            steps -= 1;
        }
        self.rows.len().saturating_sub(1)
    }

    /// True if the row has children and begins a branch, or has no parent.
    pub fn can_fold(&self, index: usize) -> bool {
        let Some(row) = self.rows.get(index).filter(|row| row.children > 0) else {
            return false;
        };
        let parent = row.parent.and_then(|parent| self.rows.get(parent));
        parent.is_none_or(|parent| parent.children > 1)
    }

    pub fn fold(&mut self, item: u32, folds: bool) {
        match folds {
            true => self.folded.insert(item),
            false => self.folded.remove(&item),
        };
        self.lay_out();
    }

    pub fn unfold_all(&mut self) {
        self.folded.clear();
    }

    /// The start of the previous branch, further up the tree.
    pub fn branch_above(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(parent) = self.rows.get(at).and_then(|row| row.parent) {
            let branches = self.rows.get(parent).is_some_and(|row| row.children > 1);
            if branches && at < from {
                return at;
            }
            at = parent;
        }
        at
    }

    /// The first branch below, or the end of the current one.
    pub fn branch_below(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(row) = self.rows.get(at)
            && let Some(child) = row.first_child
        {
            at = child;
            if row.children > 1 {
                break;
            }
        }
        at
    }

    /// The connector lines before a row's text, three cells a column.
    pub fn lines_before(&self, index: usize, is_plain: bool) -> String {
        let Some(row) = self.rows.get(index) else {
            return String::new();
        };
        if is_plain {
            return "  ".repeat(row.indent);
        }
        let mut cells = vec![' '; row.indent * 3];
        let mut next = row.branch;
        while let Some(at) = next
            && let Some(branch) = self.rows.get(at)
        {
            let column = branch.indent.saturating_sub(1) * 3;
            let marks: &[char] = match (at == index, branch.is_last) {
                (true, is_last) => {
                    let middle = match (self.is_folded(row.item), self.can_fold(index)) {
                        (true, _) => '⊞',
                        (false, true) => '⊟',
                        (false, false) => '─',
                    };
                    &[if is_last { '└' } else { '├' }, middle]
                }
                (false, true) => &[],
                (false, false) => &['│'],
            };
            for (cell, mark) in cells.iter_mut().skip(column).zip(marks) {
                *cell = *mark;
            }
            next = branch.parent.and_then(|parent| self.rows.get(parent)).and_then(|parent| parent.branch);
        }
        cells.into_iter().collect()
    }

    /// The rows shown in a window of `height` rows, with `index` in the middle.
    pub fn window(&self, index: usize, height: usize) -> Range<usize> {
        let height = height.min(self.rows.len());
        let start = index.saturating_sub(height / 2).min(self.rows.len() - height);
        start..start + height
    }
}

impl Row {
    fn new(item: u32, parent: Option<usize>) -> Self {
        Self {
            item,
            parent,
            indent: 0,
            is_branch: false,
            is_last: true,
            children: 0,
            first_child: None,
            is_root: parent.is_none(),
            has_branched: false,
            branch: None,
        }
    }
}

/// Entries in drawing order.
fn order(outline: &Outline, is_on_path: &[bool]) -> Vec<u32> {
    let mut order = Vec::with_capacity(outline.items.len());
    let mut seen = vec![false; outline.items.len()];
    let is_on_path = |at: &u32| is_on_path.get(*at as usize).copied().unwrap_or(false);
    let mut next: Vec<u32> = Vec::new();
    let push = |next: &mut Vec<u32>, siblings: &[u32]| {
        next.extend(siblings.iter().rev().filter(|at| !is_on_path(at)));
        next.extend(siblings.iter().filter(|at| is_on_path(at)));
    };
    push(&mut next, &outline.roots);
    while let Some(at) = next.pop() {
        let Some(seen) = seen.get_mut(at as usize) else {
            continue;
        };
        if std::mem::replace(seen, true) {
            continue;
        }
        order.push(at);
        if let Some(Some(item)) = outline.items.get(at as usize) {
            push(&mut next, &item.children);
        }
    }
    order
}

/// Sets columns and connectors of the rows.
fn place(rows: &mut [Row], roots: &[usize]) {
    let has_many_roots = roots.len() > 1;
    let mut placed = vec![0_usize; rows.len()];
    let mut placed_roots = 0;
    for index in 0..rows.len() {
        let Some(row) = rows.get(index).copied() else {
            return;
        };
        let parent = row.parent.and_then(|at| Some((at, rows.get(at).copied()?)));
        let new = match parent {
            None => {
                placed_roots += 1;
                Row { has_branched: has_many_roots, is_last: placed_roots == roots.len(), ..row }
            }
            Some((at, parent)) => {
                let before = placed.get_mut(at);
                let nth = before.map_or(0, |before| {
                    *before += 1;
                    *before
                });
                let is_branch = parent.children > 1;
                let goes_in = is_branch || (parent.has_branched && (parent.indent > 0 || parent.is_root));
                Row {
                    indent: parent.indent + usize::from(goes_in),
                    is_branch,
                    has_branched: is_branch,
                    is_last: nth == parent.children,
                    branch: if is_branch { Some(index) } else { parent.branch },
                    ..row
                }
            }
        };
        if let Some(row) = rows.get_mut(index) {
            *row = new;
        }
    }
}

fn searchable(preview: &Preview, label: &str) -> String {
    let (kind, text) = match preview {
        Preview::User(text) => ("user", text.as_str()),
        Preview::Answer(text) | Preview::Failed(text) => ("assistant", text.as_str()),
        Preview::Aborted => ("assistant", "aborted"),
        Preview::Silent => ("assistant", ""),
        Preview::Tool(text) => ("toolResult", text.as_str()),
        Preview::Shell(text) => ("bashExecution", text.as_str()),
        Preview::Message(role) => ("", role.as_str()),
        Preview::Custom { kind, text } => (kind.as_str(), text.as_str()),
        Preview::Compaction { .. } => ("compaction", ""),
        Preview::Summary(text) => ("branch summary", text.as_str()),
        Preview::Setting(text) => ("", text.as_str()),
        Preview::Usage | Preview::Unknown => ("", ""),
    };
    format!("{label} {kind} {text}").to_lowercase()
}

#[cfg(test)]
mod tests;
