//! Cutting: where, what falls on each side, and what must hold for any conversation.

use super::*;
use crate::llm::message::{AssistantMessage, Block, StopReason, ToolCall, ToolResultMessage, UserMessage};
use crate::session::entry::{Compaction, ContextEdit, Replacement};
use crate::session::log::Log;
use crate::tools::describe;
use proptest::prelude::*;
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;

fn log() -> Log {
    Log::in_memory(Path::new("/x"), None).unwrap()
}

/// A message by its letter, of about `tokens` tokens.
fn message(letter: char, tokens: usize) -> AgentMessage {
    let text = letter.to_string().repeat(tokens * 4);
    match letter {
        'u' => AgentMessage::User(Arc::new(UserMessage::new(Content::Text(text)))),
        'r' => AgentMessage::ToolResult(Arc::new(ToolResultMessage {
            tool_call_id: "1".into(),
            tool_name: "read".into(),
            content: vec![Block::text(text)],
            ..ToolResultMessage::default()
        })),
        's' => AgentMessage::System(Arc::new(SystemMessage {
            content: Content::Text(text),
            ..SystemMessage::default()
        })),
        letter => {
            let mut content = vec![Block::text(text)];
            if letter == 'c' {
                content.push(Block::ToolCall(Box::new(ToolCall {
                    id: "1".into(),
                    name: "read".into(),
                    arguments: Map::from_iter([("path".to_owned(), json!("f"))]),
                    ..ToolCall::default()
                })));
            }
            AgentMessage::Assistant(Arc::new(AssistantMessage {
                content,
                stop_reason: StopReason::Stop,
                ..AssistantMessage::default()
            }))
        }
    }
}

/// Appends entries by their letters: messages, `m` a change of model, `x` leaves out the last answer.
fn append(log: &mut Log, letters: &str) {
    let mut answer = String::new();
    for letter in letters.chars() {
        let entry = match letter {
            'm' => log.append_model_change("p", "m").unwrap(),
            'x' => log.append(edit(&answer, None)).unwrap(),
            letter => log.append_message(&message(letter, 10)).unwrap(),
        };
        if matches!(letter, 'a' | 'c') {
            answer = entry.id;
        }
    }
}

fn edit(target: &str, content: Option<&str>) -> ContextEdit {
    ContextEdit {
        target_id: target.to_owned(),
        replacement: content
            .map(|text| Replacement { content: Content::Text(text.to_owned()), ..Replacement::default() }),
        ..ContextEdit::default()
    }
}

fn letters(messages: &[AgentMessage]) -> String {
    let letter = |message: &AgentMessage| message.text().chars().next().unwrap_or('?');
    messages.iter().map(letter).collect()
}

/// Checks what is cut off a conversation of ten tokens a message: history, beginning of a turn.
#[track_caller]
fn check(entries: &str, keep: u64, expected: Option<(&str, &str)>) {
    let mut log = log();
    append(&mut log, entries);
    let seen = cut::prepare(&log.projection(), None, keep, &describe);
    let seen = seen.map(|plan| (letters(&plan.history), letters(&plan.prefix)));
    let expected = expected.map(|(one, two)| (one.to_owned(), two.to_owned()));
    assert_eq!(seen, expected, "{entries} keeping {keep}");
}

#[test]
fn the_cut_is_where_the_kept_size_is_reached() {
    check("", 10, None);
    check("u", 10, None);
    check("uaua", 1000, None);
    // Two messages are twenty tokens.
    check("uaua", 20, Some(("ua", "")));
    check("uaua", 10, Some(("ua", "u")));
    check("uaua", 0, Some(("ua", "u")));
    check("uaua", 21, Some(("", "u")));
    check("uaua", 40, None);
    // Prompt and tools are no conversation.
    check("suaua", 20, Some(("ua", "")));
    check("suasua", 20, Some(("ua", "")));
}

#[test]
fn a_result_stays_with_its_call() {
    check("ucrcra", 10, Some(("", "ucrcr")));
    check("ucrcra", 15, Some(("", "ucrcr")));
    check("uacr", 10, Some(("", "ua")));
    check("ucr", 10, Some(("", "u")));
    check("uaucrrr", 10, Some(("ua", "u")));
}

#[test]
fn what_the_model_is_not_told_of_goes_with_what_follows_it() {
    let mut log = log();
    append(&mut log, "uammua");
    let projection = log.projection();
    let plan = cut::prepare(&projection, None, 20, &describe).unwrap();
    assert_eq!(plan.first_kept_at, 2);
    assert_eq!(*plan.first_kept, *projection.entries[2].entry);
}

#[test]
fn an_input_whose_answer_was_left_out_may_be_summarised() {
    check("uauax", 10, Some(("ua", "u")));
    // Without room for the input it is kept.
    check("uaumm", 10, Some(("ua", "")));
    check("uauax", 100, None);
    let mut log = log();
    append(&mut log, "ua");
    let input = log.append_message(&message('u', 10)).unwrap().id;
    append(&mut log, "ax");
    log.append(edit(&input, Some("v"))).unwrap();
    let plan = cut::prepare(&log.projection(), None, 1, &describe).unwrap();
    // The answer that was left out was one to another input.
    assert_eq!(letters(&plan.history), "ua");
}

#[test]
fn the_next_compaction_begins_where_the_last_one_kept() {
    let mut log = log();
    append(&mut log, "ua");
    let kept = log.append_message(&message('c', 10)).unwrap().id;
    append(&mut log, "r");
    let previous = Compaction {
        summary: "before".to_owned(),
        first_kept_entry_id: Some(kept),
        details: Some(json!({"readFiles":["old"],"modifiedFiles":["b"]})),
        ..Compaction::default()
    };
    log.append(previous.clone()).unwrap();
    append(&mut log, "uaua");
    let plan = cut::prepare(&log.projection(), Some(&previous), 20, &describe).unwrap();
    assert_eq!(letters(&plan.history), "crua");
    assert_eq!(plan.previous_summary.as_deref(), Some("before"));
    assert_eq!(plan.files.details(), json!({"readFiles":["f","old"],"modifiedFiles":["b"]}));
    let by_extension = Compaction { from_hook: Some(true), ..previous };
    let plan = cut::prepare(&log.projection(), Some(&by_extension), 20, &describe).unwrap();
    assert_eq!(plan.files.details(), json!({"readFiles":["f"],"modifiedFiles":[]}));
}

#[test]
fn sizes_shrink_with_the_window() {
    let sizes = |window, reserve, keep| {
        let sizes = Sizes::new(window, reserve, keep);
        (sizes.reserve, sizes.keep)
    };
    let rows = [
        (128_000, (16_384, 20_000)),
        (36_385, (16_384, 20_000)),
        (36_384, (16_384, 10_000)),
        (30_000, (16_384, 6_808)),
        (16_384, (4_096, 6_144)),
        (8_192, (2_048, 3_072)),
        (0, (16_384, 20_000)),
    ];
    for (window, expected) in rows {
        assert_eq!(sizes(window, None, None), expected, "{window}");
    }
    assert_eq!(sizes(8_192, Some(9_000), Some(7)), (9_000, 7));
    assert_eq!(sizes(8_192, Some(9_000), None), (9_000, 20_000));
    // The figures of the reference: 13,616 tokens still fit.
    let sizes = Sizes::new(30_000, None, None);
    assert!(sizes.is_over(13_617, 30_000) && !sizes.is_over(13_616, 30_000));
    for window in 1..200_000 {
        let sizes = Sizes::new(window, None, None);
        assert!(sizes.reserve < window && sizes.keep < window, "{window}");
    }
}

#[test]
fn the_oldest_large_outputs_make_way_first() {
    let mut log = log();
    for (letter, tokens) in [('u', 10), ('c', 10), ('r', 2000), ('r', 500), ('r', 2000), ('r', 2000)] {
        log.append_message(&message(letter, tokens)).unwrap();
    }
    let entries = log.projection().entries;
    let chosen = |room| {
        let chosen = prune::choose(&entries, room).into_iter();
        let at = |entry: &Arc<str>| entries.iter().position(|other| other.entry == *entry);
        chosen.filter_map(|one| at(&one.entry)).collect::<Vec<_>>()
    };
    assert!(chosen(10_000).is_empty());
    assert_eq!(chosen(6_000), [2]);
    assert_eq!(chosen(3_000), [2, 4]);
    assert_eq!(chosen(0), [2, 4, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the conversation: no result without its call, nothing lost, nothing twice.
    #[test]
    fn every_cut_is_sound(entries in "s(u(c(r|rr))*(ax?)?m?){1,6}", keep in 0_u64..120) {
        let mut log = log();
        append(&mut log, &entries);
        let before = letters(&log.context().into_messages());
        let projection = log.projection();
        if let Some(plan) = cut::prepare(&projection, None, keep, &describe) {
            let cut_off = letters(&plan.history) + &letters(&plan.prefix);
            prop_assert!(!cut_off.is_empty());
            log.append(Compaction {
                summary: "S".to_owned(),
                first_kept_entry_id: Some(plan.first_kept.to_string()),
                ..Compaction::default()
            }).unwrap();
            let after = log.context().into_messages();
            prop_assert!(matches!(after[0], AgentMessage::CompactionSummary(_)));
            let kept = letters(&after[1..]);
            prop_assert!(!kept.starts_with('r'), "{entries}: {kept}");
            prop_assert_eq!(cut_off + &kept, before.replace('s', ""));
            let first = &projection.entries[plan.first_kept_at];
            prop_assert!(plan.prefix.is_empty() || letters(&first.messages) != "u");
        }
    }
}
