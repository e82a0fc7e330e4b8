//! Unique ids for the tool calls of one answer: the server's ids if possible, otherwise generated ones.

use crate::llm::context::Context;
use crate::llm::message::Message;
use std::collections::HashSet;

/// The name of a call whose name is unknown.
pub const NO_NAME: &str = "unknown";

/// `id` with every character except letters, digits, `_` and `-` replaced by `_`, cut to `limit` characters.
pub fn plain(id: &str, limit: usize) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if legal(c) { c } else { '_' }).take(limit).collect()
}

pub struct Ids {
    /// Differs between requests; a repeated request has an equal seed.
    seed: String,
    taken: HashSet<String>,
    /// Converts a generated id to a form that the provider accepts.
    form: fn(&str) -> String,
}

impl Ids {
    pub fn new(context: &Context) -> Self {
        Self::with_form(context, str::to_owned)
    }

    pub fn with_form(context: &Context, form: fn(&str) -> String) -> Self {
        let messages = &context.messages;
        let last = messages.last().map_or(0, Message::timestamp);
        Self { seed: format!("{last:x}_{:x}", messages.len()), taken: HashSet::new(), form }
    }

    /// `given` if it is neither empty nor taken, otherwise a generated id. `block` is the index of the call's
    /// block.
    pub fn take(&mut self, given: &str, block: usize) -> String {
        let mut id = given.to_owned();
        let mut number = block;
        while id.is_empty() || !self.taken.insert(id.clone()) {
            id = (self.form)(&format!("call_{}_{number}", self.seed));
            number += 1;
        }
        id
    }

    /// Reserves exactly `given`; false if it is empty or taken.
    pub fn claim(&mut self, given: &str) -> bool {
        !given.is_empty() && self.taken.insert(given.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_empty_or_given_twice() {
        let mut ids = Ids::new(&Context::default());
        let given = ["a", "", "a", "", "call_0_0_1", "call_0_0_1"];
        let given = given.iter().enumerate();
        let taken: Vec<String> = given.map(|(block, id)| ids.take(id, block)).collect();
        assert_eq!(taken[0], "a");
        let distinct: HashSet<&String> = taken.iter().collect();
        assert!(distinct.len() == taken.len() && taken.iter().all(|id| !id.is_empty()));
        assert!(!ids.claim("a") && !ids.claim("") && ids.claim("b"));
    }
}
