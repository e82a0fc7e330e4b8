//! Finds the models that match a pattern.

use super::{Choice, Usable, order};
use crate::base::glob::{Dialect, Glob};
use crate::base::order::Order;
use crate::llm::model::ThinkingLevel;
use crate::models::{ModelName, Registry};

/// Longest pattern, in bytes. A longer one matches nothing.
const PATTERN_BYTES_MAX: usize = 512;

/// Model names, prepared for matching.
pub struct Candidates<'a> {
    rows: Vec<Candidate<'a>>,
    usable: Usable<'a>,
}

struct Candidate<'a> {
    name: &'a ModelName,
    // Lower case.
    provider: String,
    id: String,
    label: String,
}

/// The result of matching a pattern.
pub struct Found<'a> {
    /// One name, or several if providers share the id.
    pub names: Vec<&'a ModelName>,
    pub level: Option<ThinkingLevel>,
    pub warning: Option<String>,
}

impl<'a> Candidates<'a> {
    pub fn new(names: &'a [ModelName], usable: Usable<'a>) -> Self {
        let row = |name: &'a ModelName| Candidate {
            name,
            provider: name.provider.to_lowercase(),
            id: name.id.to_lowercase(),
            label: name.name.to_lowercase(),
        };
        Self { rows: names.iter().map(row).collect(), usable }
    }

    /// The model with exactly this `provider/id`, otherwise all with exactly this id. Ignores case.
    pub fn exact(&self, text: &str) -> Vec<&'a ModelName> {
        let text = text.trim().to_lowercase();
        let full = self.rows.iter().find(|row| {
            let rest = text.strip_prefix(&row.provider);
            let id = rest.and_then(|rest| rest.trim_start().strip_prefix('/'));
            id.is_some_and(|id| id.trim_start() == row.id)
        });
        match full {
            Some(row) => vec![row.name],
            None => {
                let rows = self.rows.iter().filter(|row| row.id == text);
                rows.map(|row| row.name).collect()
            }
        }
    }

    /// The best model with `text` in its id or name. Usable models are preferred, then aliases without a
    /// date, then the highest id. Several names if providers share the id.
    fn partial(&self, text: &str) -> Vec<&'a ModelName> {
        let text = text.to_lowercase();
        let hit = |row: &&Candidate<'a>| row.id.contains(&text) || row.label.contains(&text);
        let hits: Vec<&ModelName> = self.rows.iter().filter(hit).map(|row| row.name).collect();
        let best = |hits: &mut dyn Iterator<Item = &'a ModelName>| {
            hits.min_by(|a, b| {
                let dated = is_dated(&a.id).cmp(&is_dated(&b.id));
                dated.then_with(|| order::compare(&b.id, &a.id))
            })
        };
        let usable = |name: &&ModelName| (self.usable)(&name.provider);
        let with_key = best(&mut hits.iter().copied().filter(usable));
        let Some(found) = with_key.or_else(|| best(&mut hits.iter().copied())) else { return Vec::new() };
        let tied = hits.into_iter().filter(|name| name.id == found.id);
        tied.filter(|name| with_key.is_none() || usable(name)).collect()
    }

    /// The models whose `id` or `provider/id` matches a glob; empty for an invalid glob.
    pub fn matching(&self, pattern: &str) -> impl Iterator<Item = &'a ModelName> {
        let glob = model_glob(pattern);
        let matches = move |text: &str| glob.as_ref().is_some_and(|glob| glob.is_match(text.as_bytes()));
        let names = self.rows.iter().map(|row| row.name);
        names.filter(move |name| matches(&name.full()) || matches(&name.id))
    }
}

fn model_glob(pattern: &str) -> Option<Glob> {
    Glob::new(pattern, Dialect { ignore_case: true, lenient: true, no_hidden: false }).ok()
}

/// True if an id ends in a date, `-YYYYMMDD`.
fn is_dated(id: &str) -> bool {
    let date = id.rsplit_once('-').map(|(_, date)| date);
    date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Matches `pattern` as a whole, then without thinking levels at its end. `lenient`: an invalid level is
/// ignored with a warning.
pub fn find_with_level<'a>(pattern: &str, candidates: &Candidates<'a>, lenient: bool) -> Option<Found<'a>> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let mut text = pattern;
    let mut level = None;
    let mut warning = None;
    loop {
        let mut names = candidates.exact(text);
        if names.is_empty() && !text.trim().is_empty() {
            names.extend(candidates.partial(text));
        }
        if !names.is_empty() {
            return Some(Found { names, level: level.filter(|_| warning.is_none()), warning });
        }
        let (rest, end) = text.rsplit_once(':')?;
        match ThinkingLevel::parse(end) {
            // Of several levels the last one counts.
            Some(found) => level = level.or(Some(found)),
            None if lenient => {
                warning = Some(format!(
                    "Invalid thinking level \"{end}\" in pattern \"{pattern}\". Using default instead."
                ));
            }
            None => return None,
        }
        text = rest;
    }
}

impl Found<'_> {
    pub fn choose(self, registry: &Registry, text: &str, usable: Usable<'_>) -> Result<Choice, String> {
        let mut with_key = self.names.iter().filter(|name| usable(&name.provider));
        let name = match (self.names.as_slice(), with_key.next(), with_key.next()) {
            ([only], _, _) => only,
            (_, Some(only), None) => only,
            (names, first, _) => {
                let mut full: Vec<String> = names.iter().map(|name| name.full()).collect();
                full.order_by(|a, b| order::compare(a, b));
                let full = full.join(", ");
                let keys = match first {
                    None => "None of these providers has a key",
                    Some(_) => "More than one of these providers has a key",
                };
                return Err(format!(
                    "Model \"{text}\" is ambiguous across providers: {full}. {keys}; name one with --provider or as provider/model."
                ));
            }
        };
        let model = registry.find(&name.provider, &name.id);
        let model = model.ok_or_else(|| format!("Model \"{}\" not found.", name.full()))?;
        Ok(Choice { model, thinking: self.level, warning: self.warning })
    }
}

/// Splits `id:level`; `None` if there is no valid level at the end.
pub fn split_level(pattern: &str) -> Option<(&str, ThinkingLevel)> {
    let (id, level) = pattern.rsplit_once(':')?;
    Some((id, ThinkingLevel::parse(level)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, hits: &[&str], misses: &[&str]) {
        let glob = model_glob(pattern);
        let matches = |text: &str| glob.as_ref().is_some_and(|glob| glob.is_match(text.as_bytes()));
        for hit in hits {
            assert!(matches(hit), "{pattern} should match {hit}");
            assert!(matches(&hit.to_uppercase()), "{pattern} should match {hit} in capitals");
        }
        for miss in misses {
            assert!(!matches(miss), "{pattern} should not match {miss}");
        }
    }

    #[test]
    fn stars_stay_within_a_part() {
        check(
            "anthropic/*",
            &["anthropic/claude", "anthropic/x-1"],
            &["anthropic/a/b", "x/anthropic/a", "anthropic"],
        );
        check("*sonnet*", &["sonnet", "claude-sonnet-5"], &["anthropic/claude-sonnet-5", "sonet"]);
        check("ANTHROPIC/*Haiku*", &["anthropic/claude-haiku-4-5"], &["anthropic/claude"]);
        check("*a*b*c", &["abc", "xaxbxc", "aabbcc"], &["acb", "abcd"]);
    }

    #[test]
    fn double_stars_cross_parts() {
        check("**", &["a", "a/b", "a/b/c"], &[]);
        check("openrouter/**", &["openrouter/a", "openrouter/a/b"], &["x/openrouter/a"]);
        check("**/kimi*", &["kimi-k2", "a/kimi-k2", "a/b/kimi"], &["a/b/x"]);
        check("a/**/b/**/c", &["a/b/c", "a/x/b/y/z/c", "a/b/b/c"], &["a/c", "a/b/c/d"]);
        check("a/**kimi", &["a/kimi", "a/xkimi"], &["a/b/kimi"]);
    }

    #[test]
    fn one_character_and_classes() {
        check("gpt-4?", &["gpt-4o", "gpt-4é"], &["gpt-4", "gpt-4oo", "gpt-4/"]);
        check("opus-4-[56]", &["opus-4-5", "opus-4-6"], &["opus-4-7", "opus-4-"]);
        check("claude-[h-o]*", &["claude-haiku", "claude-opus"], &["claude-sonnet"]);
        check("a[!0-9]", &["ab", "a-"], &["a1", "a"]);
        check("a[^b]", &["ac"], &["ab"]);
        check("a[]-]", &["a]", "a-"], &["ab"]);
        check("a[b", &["a[b"], &["ab"]);
        check("a\\*", &["a*"], &["ab"]);
        check("a[9-0]", &[], &["a9", "a0", "a5"]);
    }
}
