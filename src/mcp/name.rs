//! The names of a server's tools for the model: `mcp__server__tool`, as the reference makes them.

use crate::base::hex::hex;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;

/// Characters of the longest name that providers take.
const CHARS_MAX: usize = 64;
/// Digits of the hash that tells names apart.
const HASH_CHARS: usize = 8;

/// The names that are given, and to whom. A name stays with its tool for as long as this lives.
#[derive(Default)]
pub struct Names(BTreeMap<String, (String, String)>);

impl Names {
    /// The names of all tools of a server, in their order. Names that would be the same, or too long, get a hash.
    pub fn of(&mut self, server: &str, tools: &[&str]) -> Vec<String> {
        let plain: Vec<String> = tools.iter().map(|tool| plain(server, tool)).collect();
        let mut names = Vec::new();
        for (tool, name) in tools.iter().zip(&plain) {
            let owner = (server.to_owned(), (*tool).to_owned());
            let is_double = plain.iter().filter(|other| *other == name).count() > 1;
            let is_taken = self.0.get(name).is_some_and(|known| *known != owner);
            let name = match is_double || is_taken || name.len() > CHARS_MAX {
                true => hashed(server, tool, name),
                false => name.clone(),
            };
            self.0.insert(name.clone(), owner);
            names.push(name);
        }
        names
    }
}

fn plain(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    // A character outside of the first plane counts twice in the reference's language.
    let units = |c: char| std::iter::repeat_n(plain(c), c.len_utf16());
    format!("mcp__{server}__{tool}").chars().flat_map(units).collect()
}

fn hashed(server: &str, tool: &str, name: &str) -> String {
    let hash = hex(digest(&SHA256, format!("{server}\0{tool}").as_bytes()).as_ref());
    let hash = hash.get(..HASH_CHARS).unwrap_or_default();
    let start = name.get(..CHARS_MAX - HASH_CHARS - 1).unwrap_or(name);
    format!("{start}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_reference() {
        let mut names = Names::default();
        assert_eq!(names.of("dev-x", &["get.it", "b"]), ["mcp__dev_x__get_it", "mcp__dev_x__b"]);
        // Seen with the reference.
        let both = ["mcp__test__read_file_76994252", "mcp__test__read_file_2e79d3f9"];
        assert_eq!(names.of("test", &["read-file", "read_file"]), both);
        let long = names.of("s", &["t".repeat(80).as_str()]);
        assert_eq!((long[0].len(), &long[0][..12]), (64, "mcp__s__tttt"));
    }

    #[test]
    fn a_name_stays_with_its_tool() {
        let mut names = Names::default();
        assert_eq!(names.of("a", &["b__c"]), ["mcp__a__b__c"]);
        let other = names.of("a__b", &["c"]);
        assert!(other[0].starts_with("mcp__a__b__c_"), "{other:?}");
        assert_eq!(names.of("a", &["b__c"]), ["mcp__a__b__c"]);
        assert_eq!(names.of("a__b", &["c"]), other);
    }
}
