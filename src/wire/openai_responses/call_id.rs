//! Ids of tool calls with two parts: `call_id|item_id`.
//!
//! The call id links a result to its call; the item id names the item of the call. The model's own items are
//! sent back with their ids; items of other models get an id in the provider's format, or none.

use crate::llm::model::Model;
use crate::wire::{hash, ids};
use std::collections::{HashMap, HashSet};

/// Maximum length of an id at OpenAI, in characters.
const LIMIT: usize = 64;

/// Providers that accept item ids in this format.
const NAMED: [&str; 4] = ["openai", "openai-codex", "opencode", "azure"];

/// Joins the two ids; the second may be empty.
pub fn join(call: &str, item: &str) -> String {
    if item.is_empty() {
        return call.to_owned();
    }
    format!("{call}|{item}")
}

pub fn split(id: &str) -> (&str, &str) {
    id.split_once('|').unwrap_or((id, ""))
}

/// Converts an id of another model.
pub fn legal(model: &Model, id: &str) -> String {
    match id.split_once('|') {
        Some((call, item)) if NAMED.contains(&model.provider.as_str()) => {
            join(&clean(call), &format!("fc_{}", hash::short(item)))
        }
        _ => clean(id),
    }
}

fn clean(id: &str) -> String {
    ids::plain(id, LIMIT).trim_end_matches('_').to_owned()
}

/// The ids sent for each call, needed for its result.
#[derive(Default)]
pub struct Sent {
    taken: HashSet<String>,
    calls: HashMap<String, SentCall>,
}

#[derive(Clone)]
pub struct SentCall {
    pub call_id: String,
    pub custom: bool,
}

impl Sent {
    /// The call id sent for the call `id`, made unique: the ids of two answers may differ only in the second
    /// part.
    pub fn call(&mut self, id: &str, custom: bool) -> String {
        let (call, _) = split(id);
        let mut call_id = call.to_owned();
        let mut number = self.calls.len() + 1;
        while call_id.is_empty() || self.taken.contains(&call_id) {
            // The number comes first, so that a length limit cannot cut it off.
            call_id = match call {
                "" => format!("call_{number}"),
                _ => format!("call{number}_{call}").chars().take(LIMIT).collect(),
            };
            number += 1;
        }
        self.taken.insert(call_id.clone());
        let sent = SentCall { call_id: call_id.clone(), custom };
        self.calls.insert(id.to_owned(), sent);
        call_id
    }

    /// The ids that were sent for the call `id`.
    pub fn answered(&self, id: &str) -> SentCall {
        let sent = self.calls.get(id).cloned();
        sent.unwrap_or_else(|| SentCall { call_id: split(id).0.to_owned(), custom: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_others_are_made_legal() {
        let long = "x".repeat(100);
        #[rustfmt::skip]
        let cases = [
            ("openai", "toolu_01", "toolu_01".to_owned()),
            ("openai", "a.b:c__", "a_b_c".to_owned()),
            ("openai", &long, "x".repeat(64)),
            ("openai", "call_1|fc_abc", format!("call_1|fc_{}", hash::short("fc_abc"))),
            ("azure", "call é|rs", format!("call__|fc_{}", hash::short("rs")).replace("__|", "|")),
            ("xai", "call_1|fc_abc", "call_1_fc_abc".to_owned()),
            ("openai", "é", String::new()),
        ];
        for (provider, id, expected) in cases {
            let model = Model { provider: provider.into(), ..Model::default() };
            assert_eq!(legal(&model, id), expected, "{provider} {id}");
        }
    }

    #[test]
    fn no_call_id_is_empty_or_sent_twice() {
        let mut sent = Sent::default();
        let ids = ["a|1", "a|2", "|3", "a", "call2_a|x", ""];
        let mut seen = HashSet::new();
        for id in ids {
            let call_id = sent.call(id, id == "a|2");
            assert!(!call_id.is_empty() && seen.insert(call_id.clone()), "{id}");
            assert_eq!(sent.answered(id).call_id, call_id);
        }
        assert_eq!(sent.answered("a|1").call_id, "a");
        assert!(sent.answered("a|2").custom && !sent.answered("a").custom);
    }
}
