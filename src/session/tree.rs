//! The tree of a session's entries: its structure, moves of the leaf, and bookmarks.
//!
//! A tree holds positions of entries, not their contents, so it stays small. It is walked without recursion,
//! since it can be as deep as the conversation is long.

use super::entry::{Body, BranchSummary, Entry, Label};
use super::index::Kind;
use super::log::Log;
use crate::base::json::json;
use crate::base::order::Order;
use crate::base::time;
use crate::session::error::SessionError;
use std::collections::{HashMap, HashSet};

/// The tree of a session's entries.
#[derive(Debug, Default)]
pub struct Tree {
    /// Nodes by position in the log's index.
    pub nodes: Vec<Node>,
    /// Positions of the roots. There are several if a conversation was restarted or a parent is missing.
    pub roots: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Positions of the children, oldest first.
    pub children: Vec<u32>,
    pub bookmark: Option<Bookmark>,
}

/// The user's label for an entry, and when it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bookmark {
    pub label: String,
    pub timestamp: String,
}

impl Log {
    /// Returns all branches of the session. Damaged entries are omitted, and their children become roots.
    pub fn tree(&self) -> Tree {
        let slots = &self.index().slots;
        let mut tree = Tree { nodes: vec![Node::default(); slots.len()], roots: Vec::new() };
        let is_sound = |position: u32| {
            let slot = self.index().get(position);
            slot.is_some_and(|slot| slot.kind != Kind::Damaged)
        };
        for (position, slot) in (0_u32..).zip(slots) {
            if slot.kind == Kind::Damaged {
                continue;
            }
            let parent = slot.parent.filter(|parent| is_sound(*parent) && *parent != position);
            let siblings = parent.and_then(|parent| tree.nodes.get_mut(parent as usize));
            match siblings {
                Some(parent) => parent.children.push(position),
                None => tree.roots.push(position),
            }
        }
        self.break_circles(&mut tree);
        for node in &mut tree.nodes {
            if node.children.len() > 1 {
                // Each entry is read once.
                let mut children: Vec<_> =
                    node.children.iter().map(|child| (self.written_at(*child), *child)).collect();
                children.order_by(|(one, _), (other, _)| one.cmp(other));
                node.children = children.into_iter().map(|(_, child)| child).collect();
            }
        }
        for (target, bookmark) in self.bookmarks() {
            let node = self.index().find(&target);
            if let Some(node) = node.and_then(|node| tree.nodes.get_mut(node as usize)) {
                node.bookmark = Some(bookmark);
            }
        }
        tree
    }

    /// Makes the first entry of each cycle a root, since a cycle of parents has none.
    fn break_circles(&self, tree: &mut Tree) {
        let mut seen = vec![false; tree.nodes.len()];
        let mut next = tree.roots.clone();
        for start in 0_u32.. {
            while let Some(position) = next.pop() {
                let (Some(seen), Some(node)) =
                    (seen.get_mut(position as usize), tree.nodes.get(position as usize))
                else {
                    continue;
                };
                if !std::mem::replace(seen, true) {
                    next.extend(&node.children);
                }
            }
            let Some(is_seen) = seen.get(start as usize) else {
                break;
            };
            let slot = self.index().get(start);
            let slot = slot.filter(|slot| !is_seen && slot.kind != Kind::Damaged);
            let Some(slot) = slot else {
                continue;
            };
            let parent = slot.parent.unwrap_or(start) as usize;
            if let Some(parent) = tree.nodes.get_mut(parent) {
                parent.children.retain(|child| *child != start);
            }
            tree.roots.push(start);
            next.push(start);
        }
    }

    fn written_at(&self, position: u32) -> u64 {
        let entry = self.entry_at(position);
        entry.and_then(|entry| time::parse_iso(&entry.timestamp)).unwrap_or(0)
    }

    /// Returns bookmarks by entry id.
    pub fn bookmarks(&self) -> HashMap<String, Bookmark> {
        let mut bookmarks = HashMap::new();
        for (position, slot) in (0_u32..).zip(&self.index().slots) {
            if slot.kind != Kind::Label {
                continue;
            }
            let Some(entry) = self.entry_at(position) else {
                continue;
            };
            let Body::Label(Label { target_id, label, .. }) = entry.body else {
                continue;
            };
            match label.filter(|label| !label.is_empty()) {
                Some(label) => {
                    let timestamp = entry.timestamp;
                    bookmarks.insert(target_id, Bookmark { label, timestamp })
                }
                None => bookmarks.remove(&target_id),
            };
        }
        bookmarks
    }

    /// Returns the tree as JSON: an array of `{entry, children, label?, labelTimestamp?}`.
    pub fn tree_json(&self) -> String {
        enum Step {
            Open(u32, bool),
            Close(u32),
        }
        let tree = self.tree();
        let mut out = String::from("[");
        let open = |positions: &[u32]| -> Vec<Step> {
            let numbered = positions.iter().enumerate().rev();
            numbered.map(|(at, position)| Step::Open(*position, at == 0)).collect()
        };
        let mut steps = open(&tree.roots);
        while let Some(step) = steps.pop() {
            match step {
                Step::Open(position, is_first) => {
                    if !is_first {
                        out.push(',');
                    }
                    out.push_str("{\"entry\":");
                    out.push_str(&self.entry_json(position));
                    out.push_str(",\"children\":[");
                    steps.push(Step::Close(position));
                    if let Some(node) = tree.nodes.get(position as usize) {
                        steps.append(&mut open(&node.children));
                    }
                }
                Step::Close(position) => {
                    out.push(']');
                    let node = tree.nodes.get(position as usize);
                    if let Some(bookmark) = node.and_then(|node| node.bookmark.as_ref()) {
                        let (label, time) = (&bookmark.label, &bookmark.timestamp);
                        out.push_str(&format!(
                            ",\"label\":{},\"labelTimestamp\":{}",
                            json!(label),
                            json!(time)
                        ));
                    }
                    out.push('}');
                }
            }
        }
        out.push(']');
        out
    }

    fn entry_json(&self, position: u32) -> String {
        let entry = self.entry_at(position);
        let text = entry.and_then(|entry| serde_json::to_string(&entry).ok());
        text.unwrap_or_else(|| {
            // The entry is unreadable, but its children are not.
            let id = self.index().get(position).map(|slot| slot.id.to_string());
            json!({"type": "damaged", "id": id, "parentId": null, "timestamp": ""}).to_string()
        })
    }

    /// Sets the label of an entry; `None` or an empty label removes it.
    pub fn set_label(&mut self, target: &str, label: Option<&str>) -> Result<Entry, SessionError> {
        if self.index().find(target).is_none() {
            return Err(SessionError::NotFound { wanted: target.to_owned() });
        }
        self.append(Label {
            target_id: target.to_owned(),
            label: label.map(str::to_owned),
            ..Label::default()
        })
    }

    /// Moves the leaf to `to`, or before the first entry if `None`, and appends a summary of the abandoned
    /// branch.
    pub fn branch_with_summary(
        &mut self,
        to: Option<&str>,
        summary: BranchSummary,
    ) -> Result<Entry, SessionError> {
        let left = self.leaf().map(str::to_owned);
        self.set_leaf(to)?;
        let from_id = Some(left.clone().unwrap_or_else(|| "root".to_owned()));
        let entry = self.append(BranchSummary { from_id, ..summary });
        if entry.is_err() {
            self.set_leaf(left.as_deref())?;
        }
        entry
    }

    /// Returns the entries that a move to `target` abandons, oldest first: those below the last entry that
    /// both branches share, down to the leaf.
    pub fn abandoned(&self, target: &str) -> Vec<u32> {
        let index = self.index();
        let mut old = index.path(self.leaf_position());
        let shared: HashSet<u32> = index.path(index.find(target)).into_iter().collect();
        let common = old.iter().rposition(|position| shared.contains(position));
        old.drain(..common.map_or(0, |at| at + 1));
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::testing::user;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::path::Path;

    fn log() -> Log {
        Log::in_memory(Path::new("/x"), None).unwrap()
    }

    /// A log with an entry for each number: a child of the entry at that place, or a root.
    fn grown(parents: &[Option<usize>]) -> (Log, Vec<String>) {
        let (mut log, mut ids): (Log, Vec<String>) = (log(), Vec::new());
        for parent in parents {
            let parent = parent.and_then(|at| ids.get(at % ids.len().max(1)).cloned());
            log.set_leaf(parent.as_deref()).unwrap();
            ids.push(log.append_message(&user("x")).unwrap().id);
        }
        (log, ids)
    }

    /// `id(child child)`, by the place of each id in `ids`.
    fn shape(node: &Value, ids: &[String]) -> String {
        let at = ids.iter().position(|id| node["entry"]["id"] == id.as_str()).unwrap();
        let children = node["children"].as_array().unwrap();
        let children: Vec<String> = children.iter().map(|child| shape(child, ids)).collect();
        match children.is_empty() {
            true => at.to_string(),
            false => format!("{at}({})", children.join(" ")),
        }
    }

    fn shapes(log: &Log, ids: &[String]) -> Vec<String> {
        let tree: Vec<Value> = serde_json::from_str(&log.tree_json()).unwrap();
        tree.iter().map(|root| shape(root, ids)).collect()
    }

    #[test]
    fn branches_and_roots_are_in_the_order_they_were_made() {
        assert_eq!(log().tree_json(), "[]");
        let (log, ids) = grown(&[None, Some(0), Some(0), Some(1), None, Some(4)]);
        assert_eq!(shapes(&log, &ids), ["0(1(3) 2)", "4(5)"]);
    }

    #[test]
    fn the_last_label_of_an_entry_holds() {
        let (mut log, ids) = grown(&[None, Some(0)]);
        assert!(log.set_label("nowhere", Some("x")).is_err());
        log.set_label(&ids[0], Some("old")).unwrap();
        let last = log.set_label(&ids[0], Some("new \"one\"")).unwrap();
        log.set_label(&ids[1], Some("gone")).unwrap();
        log.set_label(&ids[1], None).unwrap();
        let tree: Vec<Value> = serde_json::from_str(&log.tree_json()).unwrap();
        assert_eq!(tree[0]["label"], "new \"one\"");
        assert_eq!(tree[0]["labelTimestamp"], last.timestamp.as_str());
        assert!(tree[0]["children"][0].get("label").is_none());
        // A label is an entry: the next one hangs on it.
        assert_ne!(log.leaf(), Some(ids[1].as_str()));
    }

    #[test]
    fn a_summary_hangs_where_the_leaf_moved_to() {
        let (mut log, ids) = grown(&[None, Some(0), Some(1)]);
        let summary = |text: &str| BranchSummary { summary: text.to_owned(), ..BranchSummary::default() };
        let entry = log.branch_with_summary(Some(&ids[0]), summary("S")).unwrap();
        assert_eq!(entry.parent_id.as_deref(), Some(ids[0].as_str()));
        let Body::BranchSummary(branch) = &entry.body else { panic!() };
        assert_eq!(branch.from_id.as_deref(), Some(ids[2].as_str()));
        log.set_leaf(None).unwrap();
        let entry = log.branch_with_summary(None, summary("R")).unwrap();
        let Body::BranchSummary(branch) = &entry.body else { panic!() };
        assert_eq!((entry.parent_id, branch.from_id.as_deref()), (None, Some("root")));
        let leaf = log.leaf().map(str::to_owned);
        assert!(log.branch_with_summary(Some("nowhere"), summary("x")).is_err());
        assert_eq!(log.leaf(), leaf.as_deref());
    }

    #[test]
    fn a_conversation_of_any_depth_is_written() {
        let mut log = log();
        for _ in 0..50_000 {
            log.append_thinking_level("low").unwrap();
        }
        let text = log.tree_json();
        assert_eq!(text.matches("\"entry\":").count(), 50_000);
        assert!(text.ends_with("}]}]"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Every entry is in the tree once, and a move leaves just what the new branch lacks.
        #[test]
        fn a_random_tree_is_whole(parents in prop::collection::vec(prop::option::weighted(0.9, 0_usize..40), 1..40), from in 0_usize..40, to in 0_usize..40) {
            let (mut log, ids) = grown(&parents);
            let tree = log.tree();
            let mut seen = HashSet::new();
            let mut next = tree.roots.clone();
            while let Some(position) = next.pop() {
                prop_assert!(seen.insert(position));
                next.extend(&tree.nodes[position as usize].children);
            }
            prop_assert_eq!(seen.len(), ids.len());
            let (from, to) = (&ids[from % ids.len()], &ids[to % ids.len()]);
            log.set_leaf(Some(from)).unwrap();
            let path = |id: &str| log.index().path(log.index().find(id));
            let (old, new) = (path(from), path(to));
            let expected: Vec<u32> = old.into_iter().filter(|position| !new.contains(position)).collect();
            prop_assert_eq!(log.abandoned(to), expected);
        }

        /// Whatever parents a file claims: each entry once, and no end of the walk.
        #[test]
        fn a_damaged_tree_is_walked_to_its_end(parents in prop::collection::vec(0_usize..12, 1..12)) {
            let mut text = r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/x"}"#.to_owned();
            for (id, parent) in parents.iter().enumerate() {
                text.push_str(&format!("\n{{\"type\":\"x\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"timestamp\":\"t\"}}"));
            }
            text.push('\n');
            let scratch = crate::base::testing::TempDir::create();
            let log = Log::open_to_read(&scratch.write("s.jsonl", text)).unwrap();
            let json = log.tree_json();
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok());
            prop_assert_eq!(json.matches("\"entry\":").count(), parents.len());
        }
    }
}
