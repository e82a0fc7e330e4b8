//! Rows of trees and their connector lines.

use super::*;
use crate::runtime::outline::{Bookmark, Item};
use proptest::prelude::*;

/// An outline of `parent kind text` rows; the last is the current entry.
fn outline(rows: &[(Option<u32>, &str)]) -> Outline {
    let mut items: Vec<Option<Item>> = rows
        .iter()
        .enumerate()
        .map(|(at, (_, text))| {
            let (kind, text) = text.split_once(' ').unwrap_or((text, ""));
            let preview = match kind {
                "user" => Preview::User(text.to_owned()),
                "answer" => Preview::Answer(text.to_owned()),
                "silent" => Preview::Silent,
                "tool" => Preview::Tool(text.to_owned()),
                _ => Preview::Setting(text.to_owned()),
            };
            Some(Item { id: at.to_string(), children: Vec::new(), preview, bookmark: None })
        })
        .collect();
    let mut roots = Vec::new();
    for ((parent, _), at) in rows.iter().zip(0_u32..) {
        match parent {
            Some(parent) => items[*parent as usize].as_mut().unwrap().children.push(at),
            None => roots.push(at),
        }
    }
    Outline { leaf: u32::try_from(rows.len()).unwrap().checked_sub(1), items, roots }
}

fn drawn(shape: &Shape) -> Vec<String> {
    (0..shape.rows.len())
        .map(|index| {
            let item = shape.item(shape.rows[index].item).unwrap();
            let text = match &item.preview {
                Preview::User(text)
                | Preview::Answer(text)
                | Preview::Tool(text)
                | Preview::Setting(text) => text.as_str(),
                _ => "-",
            };
            let fold = if shape.is_folded(shape.rows[index].item) { " +" } else { "" };
            format!("{}{text}{fold}", shape.lines_before(index, false))
        })
        .collect()
}

#[track_caller]
fn check(rows: &[(Option<u32>, &str)], filter: Filter, expected: &[&str]) {
    assert_eq!(drawn(&Shape::new(outline(rows), filter)), expected);
}

const BRANCHED: &[(Option<u32>, &str)] = &[
    (None, "setting model"),
    (Some(0), "user one"),
    (Some(1), "answer two"),
    (Some(2), "user left"),
    (Some(3), "answer left end"),
    (Some(2), "user right"),
    (Some(5), "silent"),
    (Some(6), "tool ls"),
    (Some(7), "answer right middle"),
    (Some(8), "user deep a"),
    (Some(8), "user deep b"),
];

#[test]
fn a_chain_stays_in_one_column() {
    let rows = [(None, "user a"), (Some(0), "answer b"), (Some(1), "user c")];
    check(&rows, Filter::Default, &["a", "b", "c"]);
}

#[test]
fn branches_go_in_and_the_one_in_use_comes_first() {
    check(
        BRANCHED,
        Filter::Default,
        &[
            "one",
            "two",
            "├⊟ right",
            "│     ls",
            "│     right middle",
            "│     ├─ deep b",
            "│     └─ deep a",
            "└⊟ left",
            "      left end",
        ],
    );
}

#[test]
fn filters_pass_over_what_they_hide() {
    check(BRANCHED, Filter::UserOnly, &["one", "├⊟ right", "│  ├─ deep b", "│  └─ deep a", "└─ left"]);
    let all = Shape::new(outline(BRANCHED), Filter::All);
    assert_eq!(drawn(&all)[0], "model");
    let without = Shape::new(outline(BRANCHED), Filter::NoTools);
    assert!(!drawn(&without).iter().any(|row| row.contains("ls")));
    check(BRANCHED, Filter::LabeledOnly, &[]);
    let mut labelled = Shape::new(outline(BRANCHED), Filter::LabeledOnly);
    labelled.set_label(3, Some("Here"), String::new());
    labelled.lay_out();
    assert_eq!(drawn(&labelled), ["left"]);
}

#[test]
fn some_roots_stand_side_by_side() {
    let rows = [
        (None, "user a"),
        (Some(0), "answer b"),
        (None, "user c"),
        (Some(2), "answer d"),
        (Some(3), "answer e"),
    ];
    check(&rows, Filter::Default, &["c", "   d", "   e", "a", "   b"]);
}

#[test]
fn a_search_wants_all_words_of_text_label_and_kind() {
    let mut shape = Shape::new(outline(BRANCHED), Filter::Default);
    for (query, expected) in
        [("RIGHT", &["right", "└⊟ right middle"][..]), ("right user", &["right"]), ("nothing", &[])]
    {
        shape.query = query.to_owned();
        shape.lay_out();
        assert_eq!(drawn(&shape).len(), expected.len(), "{:?}", drawn(&shape));
    }
    shape.set_label(4, Some("Best"), String::new());
    shape.query = "best".into();
    shape.lay_out();
    assert_eq!(drawn(&shape), ["left end"]);
}

#[test]
fn branches_fold_and_one_moves_from_one_to_the_next() {
    let mut shape = Shape::new(outline(BRANCHED), Filter::Default);
    assert!(shape.can_fold(0) && !shape.can_fold(1) && shape.can_fold(2));
    assert_eq!(shape.branch_below(0), 2);
    assert_eq!(shape.branch_below(2), 5);
    assert_eq!(shape.branch_above(5), 2);
    assert_eq!(shape.branch_above(2), 0);
    let right = shape.rows[2].item;
    shape.fold(right, true);
    assert_eq!(drawn(&shape), ["one", "two", "├⊞ right +", "└⊟ left", "      left end"]);
    // What is folded away is found by what it is under.
    assert_eq!(shape.nearest(Some(10)), 2);
    shape.fold(right, false);
    assert_eq!(shape.rows.len(), 9);
    assert_eq!(shape.nearest(Some(6)), 2, "a hidden entry");
    assert_eq!(shape.nearest(None), 8);
}

#[test]
fn a_window_is_around_the_chosen_row() {
    let shape = Shape::new(outline(BRANCHED), Filter::Default);
    for (index, height, expected) in [(0, 4, 0..4), (4, 4, 2..6), (8, 4, 5..9), (3, 20, 0..9)] {
        assert_eq!(shape.window(index, height), expected);
    }
}

#[test]
fn a_long_session_is_laid_out_at_once() {
    let rows: Vec<(Option<u32>, &str)> =
        (0..10_000_u32).map(|at| (at.checked_sub(1 + at % 3), "user x")).collect();
    let mut shape = Shape::new(outline(&rows), Filter::Default);
    assert_eq!(shape.rows.len(), 10_000);
    let all = shape.rows.len();
    for index in [0, all / 2, all - 1] {
        shape.lines_before(index, false);
    }
    shape.query = "x".into();
    shape.lay_out();
    assert_eq!(shape.rows.len(), all);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every entry has one row, below its parent's, and its connector lines end where its text begins.
    #[test]
    fn any_tree_is_drawn_whole(parents in prop::collection::vec(prop::option::weighted(0.9, 0_u32..30), 1..30)) {
        let rows: Vec<(Option<u32>, &str)> = parents.iter().zip(0_u32..)
            .map(|(parent, at)| (parent.filter(|&parent| parent < at), "user x")).collect();
        let mut outline = outline(&rows);
        outline.items[0].as_mut().unwrap().bookmark = Some(Bookmark { label: "l".into(), timestamp: String::new() });
        let shape = Shape::new(outline, Filter::Default);
        prop_assert_eq!(shape.rows.len(), rows.len());
        for (index, row) in shape.rows.iter().enumerate() {
            prop_assert!(row.parent.is_none_or(|parent| parent < index));
            prop_assert_eq!(shape.lines_before(index, false).chars().count(), row.indent * 3);
            prop_assert!(shape.branch_above(index) <= index && shape.branch_below(index) >= index);
        }
    }
}
