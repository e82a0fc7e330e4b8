//! The watcher's state after messages. Its actions are tested end to end.

use super::watcher::Running;
use crate::tools::process::group::Number;
use proptest::prelude::*;

/// Checks the commands that are running after `lines`: number, group, and whether its leader is reaped.
#[track_caller]
fn check(lines: &[&str], expected: &[(u64, i32, bool)]) {
    let mut running = Running::default();
    for line in lines {
        running.note(line.as_bytes());
    }
    let expected = expected
        .iter()
        .map(|&(id, group, is_reaped)| {
            let id_of_group = group;
            let number = Number { id: id_of_group, is_reaped };
            (id, number)
        })
        .collect();
    assert_eq!(running, Running(expected), "{lines:?}");
}

#[test]
fn commands_run_from_their_begin_to_their_end() {
    check(&[], &[]);
    check(&["+1 70", "+2 80"], &[(1, 70, false), (2, 80, false)]);
    check(&["+1 70", "+2 80", "-1"], &[(2, 80, false)]);
    check(&["+1 70", "~1"], &[(1, 70, true)]);
    check(&["+1"], &[(1, 0, true)]);
    check(&["+1", "+1 70"], &[(1, 70, false)]);
    check(&["+1", "-1"], &[]);
    check(&["+1 70", "~1", "-1"], &[]);
    check(&["-1", "~1"], &[]);
}

#[test]
fn a_line_that_is_none_changes_nothing() {
    let before = "+1 70";
    for line in
        ["", "+", "-", "~", "+2 x", "+x 70", "-1 70", "~1 70", "1", "- 1", "é1", "-2", "+2 99999999999"]
    {
        check(&[before, line], &[(1, 70, false)]);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_taken(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 0..8)) {
        let mut running = Running::default();
        for line in &lines {
            running.note(line);
        }
        prop_assert!(running.0.len() <= lines.len());
    }
}
