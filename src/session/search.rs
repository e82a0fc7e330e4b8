//! Searches sessions by their messages, name, id and folder.
//!
//! Files are read in parallel, one message at a time. A match is reported as soon as it is found.

use super::catalog::in_parallel;
use super::info::{Info, boundary_before, each_text};
use regex::{Regex, RegexBuilder};
use std::borrow::Borrow;

/// Bytes of context on each side of a match.
const AROUND: usize = 40;

/// Words that must all occur, in any order and case, or a regular expression after `re:`.
#[derive(Debug)]
pub struct Query(Vec<Regex>);

impl Query {
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(true)
                .build()
                .map_err(|error| format!("Invalid search pattern: {error}"))
        };
        if let Some(pattern) = words.first().and_then(|word| word.strip_prefix("re:")) {
            let rest = words.iter().skip(1).map(String::as_str);
            let pattern: Vec<&str> = std::iter::once(pattern).chain(rest).collect();
            let pattern = pattern.join(" ");
            return match pattern.trim() {
                "" => Err("Invalid search pattern: it is empty".into()),
                pattern => Ok(Self(vec![build(pattern)?])),
            };
        }
        let words = words.iter().map(|word| word.trim());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Err("There is nothing to search for".into());
        }
        // Any whitespace matches any other, since a phrase may be broken across lines.
        let phrase = |word: &&str| {
            let parts: Vec<String> = word.split_whitespace().map(regex::escape).collect();
            build(&parts.join(r"\s+"))
        };
        words.iter().map(phrase).collect::<Result<_, _>>().map(Self)
    }

    /// Parses a line of words, `"phrases"`, or `re:` and a pattern. An unclosed quote is an ordinary
    /// character.
    pub fn parse_line(line: &str) -> Result<Self, String> {
        let line = line.trim();
        if line.starts_with("re:") || line.matches('"').count() % 2 == 1 {
            let words = line.split_whitespace().map(str::to_owned);
            return Self::parse(&words.collect::<Vec<_>>());
        }
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        Self::parse(&words.map(str::to_owned).collect::<Vec<_>>())
    }

    /// True if every part of the query occurs in `text`.
    pub fn fits(&self, text: &str) -> bool {
        self.0.iter().all(|word| word.is_match(text))
    }

    /// Searches one session.
    fn look(&self, info: &Info) -> Option<Hit> {
        let mut missing: Vec<&Regex> = self.0.iter().collect();
        let facts = [&info.id, info.name.as_deref().unwrap_or(""), &info.cwd];
        missing.retain(|word| !facts.iter().any(|fact| word.is_match(fact)));
        let mut place = None;
        if !missing.is_empty() {
            let read = each_text(&info.path, |text| {
                missing.retain(|word| match word.find(text) {
                    Some(found) => {
                        place.get_or_insert_with(|| around(text, found.range()));
                        false
                    }
                    None => true,
                });
                !missing.is_empty()
            });
            // After a read error, the messages before it still count.
            drop(read);
        }
        missing.is_empty().then(|| Hit { info: info.clone(), place })
    }
}

/// A session that matches a query.
#[derive(Clone, Debug)]
pub struct Hit {
    pub info: Info,
    /// Text around the first match in a message, on one line; `None` if name, id and folder match.
    pub place: Option<String>,
}

/// Passes every match among `infos` to `found` as soon as it is found.
pub fn search(infos: &[Info], query: &Query, found: impl FnMut(Hit)) {
    search_while(infos, query, &|| true, found);
}

/// Searches like [`search`], as long as `is_wanted` returns true.
pub fn search_while(
    infos: &[impl Borrow<Info> + Sync],
    query: &Query,
    is_wanted: &(dyn Fn() -> bool + Sync),
    mut found: impl FnMut(Hit),
) {
    const WAITING_MAX: usize = 64;
    let (sender, hits) = crossbeam_channel::bounded(WAITING_MAX);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            in_parallel(infos, |info| {
                if is_wanted()
                    && let Some(hit) = query.look(info.borrow())
                {
                    // The receiver takes all matches.
                    let _ = sender.send(hit);
                }
            });
        });
        hits.iter().for_each(&mut found);
    });
}

fn around(text: &str, found: std::ops::Range<usize>) -> String {
    let start = boundary_before(text, found.start.saturating_sub(AROUND));
    let end = boundary_before(text, found.end.min(found.start + 200) + AROUND);
    let words: Vec<&str> = text.get(start..end).unwrap_or_default().split_whitespace().collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    format!("{before}{}{after}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;
    use crate::session::catalog;
    use std::path::PathBuf;

    fn session(id: &str, texts: &[&str]) -> String {
        let mut file = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"t\",\"cwd\":\"/home/{id}\"}}\n"
        );
        for (at, text) in texts.iter().enumerate() {
            let text = serde_json::to_string(text).unwrap();
            file += &format!(
                "{{\"type\":\"message\",\"id\":\"{at}\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{{\"role\":\"user\",\"content\":{text}}}}}\n"
            );
        }
        file
    }

    #[test]
    fn all_words_must_occur_somewhere() {
        let scratch = TempDir::create();
        let files: Vec<PathBuf> = [
            ("alpha", &["Fix the parser", "and the tokens\nof it"] as &[_]),
            ("beta", &["fix nothing", "straße (a.b)"]),
            ("gamma", &[]),
        ]
        .iter()
        .map(|(id, texts)| scratch.write(&format!("{id}.jsonl"), session(id, texts)))
        .collect();
        let infos = catalog::list(&scratch.path().join("index"), &files);
        let find = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let query = Query::parse(&words).unwrap();
            let mut found = Vec::new();
            search(&infos, &query, |hit| found.push((hit.info.id, hit.place)));
            found.sort();
            found
        };
        let ids = |words: &[&str]| -> Vec<String> { find(words).into_iter().map(|(id, _)| id).collect() };
        assert_eq!(ids(&["FIX"]), ["alpha", "beta"]);
        assert_eq!(ids(&["fix", "tokens"]), ["alpha"]);
        assert_eq!(ids(&["tokens of"]), ["alpha"]);
        assert_eq!(ids(&["fix", "beta"]), ["beta"]);
        assert_eq!(ids(&["gam", "/home"]), ["gamma"]);
        assert_eq!(ids(&["(a.b)"]), ["beta"]);
        assert_eq!(ids(&["a.b)x"]), [""; 0]);
        assert_eq!(ids(&["re:^and", "the"]), ["alpha"]);
        assert_eq!(find(&["nothing"])[0].1.as_deref(), Some("fix nothing"));
        assert_eq!(find(&["gamma"])[0].1, None);
        for bad in [vec![], vec![" ".to_owned()], vec!["re: ".into()], vec!["re:(".into()]] {
            assert!(Query::parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_line_is_words_phrases_or_a_pattern() {
        let text = "Fix the node cve now";
        for (line, fits) in [
            ("cve fix", true),
            ("\"node cve\" fix", true),
            ("\"cve node\"", false),
            ("fix \"", false),
            ("re:n.de  cve", true),
            ("re:^cve", false),
        ] {
            assert_eq!(Query::parse_line(line).unwrap().fits(text), fits, "{line}");
        }
        assert!(Query::parse_line("re:(").is_err());
        assert!(Query::parse_line(" ").is_err());
    }

    #[test]
    fn the_place_is_cut_between_characters() {
        let text = format!("{}needle{}", "é".repeat(100), "ü".repeat(100));
        let at = text.find("needle").unwrap();
        let shown = around(&text, at..at + 6);
        assert!(shown.starts_with("…é") && shown.ends_with("ü…"), "{shown}");
        assert_eq!(around("a\n\tb", 0..1), "a b");
    }
}
