//! Finds tools by words: BM25 over descriptions, and matches in names and in what is said of the server.
//!
//! A tool that has more of the words goes before one that has fewer; a word in the name counts more than any number of
//! mentions; a query that is a tool's name finds that tool first.

use crate::agent::tool::ToolInfo;
use crate::base::order::{self, Order};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// How much a word counts in a name. In a description it counts less than 2.2.
const NAME_WEIGHT: f64 = 3.0;
/// How much a word counts in what is said of the server, which all its tools share.
const SERVER_WEIGHT: f64 = 0.5;
/// Depth of a schema that is read.
const DEPTH_MAX: usize = 32;

const STOP_WORDS: [&str; 22] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or",
    "that", "the", "this", "to", "with", "",
];

/// What a search knows of a tool.
pub struct Document {
    pub name: String,
    /// Description, and names and descriptions of parameters.
    pub text: String,
    /// Name, description and instructions of the server.
    pub server: String,
}

impl Document {
    /// What is known of a tool of this program.
    pub fn of(info: &ToolInfo) -> Self {
        let about = info.namespace.as_deref().map(|namespace| {
            let parts = [&namespace.description, &namespace.instructions].into_iter().flatten();
            parts.fold(namespace.name.clone(), |text, part| format!("{text} {part}"))
        });
        let spec = &info.spec;
        Self::new(&spec.name, &spec.description, &spec.parameters, about.unwrap_or_default())
    }

    pub fn new(name: &str, description: &str, schema: &Value, server: String) -> Self {
        let mut text = description.to_owned();
        add_schema(schema, schema, &mut text, &mut BTreeSet::new(), 0);
        Self { name: name.to_owned(), text, server }
    }
}

/// Adds the names and descriptions of a schema, each definition once.
fn add_schema<'a>(
    schema: &'a Value,
    root: &'a Value,
    text: &mut String,
    seen: &mut BTreeSet<&'a str>,
    depth: usize,
) {
    if depth > DEPTH_MAX {
        return;
    }
    let mut add = |part: &str| {
        text.push(' ');
        text.push_str(part);
    };
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        add(description);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys()).for_each(|name| add(name));
    let target = schema.get("$ref").and_then(Value::as_str).filter(|target| seen.insert(*target));
    let target = target.and_then(|target| root.pointer(target.strip_prefix('#')?));
    let variants =
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let inner = properties.into_iter().flat_map(|properties| properties.values());
    for schema in target.into_iter().chain(inner).chain(schema.get("items")).chain(variants) {
        add_schema(schema, root, text, seen, depth + 1);
    }
}

/// The words of a text, in small letters and singular, without those that say nothing.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before: [char; 2] = [' '; 2];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_small = chars.peek().is_some_and(char::is_ascii_lowercase);
        // `getIssue` and `HTTPServer` are two words each; a script without spaces is read by characters.
        let begins = (c.is_ascii_uppercase()
            && (before[1].is_ascii_lowercase() || before[1].is_ascii_digit()))
            || (c.is_ascii_uppercase() && before[1].is_ascii_uppercase() && next_is_small)
            || is_ideograph(c)
            || is_ideograph(before[1]);
        if !c.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = [before[1], c];
    }
    words.retain(|word| !STOP_WORDS.contains(&word.as_str()));
    words.into_iter().map(singular).collect()
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}')
}

/// `issues` finds `issue`, and `searches` `search`.
fn singular(mut word: String) -> String {
    if !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return word;
    }
    let long = word.len() > 4;
    if long && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if long && ["ches", "shes", "sses", "xes", "zes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

/// A document as words.
struct Indexed {
    name: BTreeSet<String>,
    /// The words of the tool's own name, without the server's.
    own: BTreeSet<String>,
    counts: BTreeMap<String, f64>,
    length: f64,
    server: BTreeSet<String>,
}

impl Indexed {
    fn of(document: &Document) -> Self {
        let set = |text: &str| words(text).into_iter().collect();
        let mut counts = BTreeMap::new();
        for word in words(&document.text) {
            *counts.entry(word).or_insert(0.0) += 1.0;
        }
        let own = document.name.rsplit("__").next().unwrap_or_default();
        let length = counts.values().sum();
        Self { name: set(&document.name), own: set(own), counts, length, server: set(&document.server) }
    }

    fn has(&self, word: &str) -> bool {
        self.name.contains(word) || self.counts.contains_key(word) || self.server.contains(word)
    }

    /// How well a word fits, before its rarity counts.
    fn weight(&self, word: &str, length_mean: f64) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or_default();
        let norm = K1 * (1.0 - B + B * self.length / length_mean);
        let flag = |has: bool, weight: f64| if has { weight } else { 0.0 };
        flag(self.name.contains(word), NAME_WEIGHT)
            + flag(self.server.contains(word), SERVER_WEIGHT)
            + count * (K1 + 1.0) / (count + norm)
    }
}

/// The positions of the documents that fit, best first, `limit` at most.
pub fn rank(query: &str, documents: &[Document], limit: usize) -> Vec<usize> {
    let wanted = order::set(words(query));
    let indexed: Vec<Indexed> = documents.iter().map(Indexed::of).collect();
    let total: f64 = indexed.iter().map(|document| document.length).sum();
    let count = count(indexed.len());
    let length_mean = if total > 0.0 { total / count } else { 1.0 };
    let rarity = |word: &String| {
        let having = self::count(indexed.iter().filter(|document| document.has(word)).count());
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    };
    let wanted = order::map(wanted.iter().map(|word| (word, rarity(word))));
    let all: f64 = wanted.values().sum();
    let exact = identifier(query);
    let mut found = Vec::new();
    for (at, (document, indexed)) in documents.iter().zip(&indexed).enumerate() {
        let weights = wanted.iter().map(|(word, rarity)| (indexed.weight(word, length_mean), rarity));
        let (mut covered, mut score) = (0, 0.0);
        for (weight, rarity) in weights.filter(|(weight, _)| *weight > 0.0) {
            covered += 1;
            score += weight * rarity;
        }
        if covered == 0 {
            continue;
        }
        if !indexed.own.is_empty() && indexed.own.iter().all(|word| wanted.contains_key(word)) {
            score += all;
        }
        let name = identifier(&document.name);
        let is_exact = name == exact || name.ends_with(&format!("__{exact}"));
        found.push((is_exact, covered, score, at));
    }
    found.order_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)).then(b.2.total_cmp(&a.2)).then(a.3.cmp(&b.3)));
    found.into_iter().take(limit).map(|(.., at)| at).collect()
}

/// A name in the form that names of tools have.
fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '$' { c } else { '_' };
    text.trim().to_lowercase().chars().map(plain).collect()
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn documents() -> Vec<Document> {
        let schema = json!({"properties": {"repo": {"description": "owner and name"}, "labels": {"items":
            {"$ref": "#/$defs/label"}}}, "$defs": {"label": {"description": "colour", "properties": {"tint": {}}}}});
        let tool =
            |name: &str, about: &str| Document::new(name, about, &schema, "mcp__hub issue tracker".into());
        vec![
            tool("mcp__hub__list_issues", "Lists the issues of a repository"),
            tool("mcp__hub__createIssue", "Opens a new one"),
            tool("mcp__peek__window", "Moves something"),
            tool("mcp__peek__capture", "Takes a screenshot of a window"),
            Document::new("mcp__cn__x", "搜索文档 schnell Größe", &Value::Null, String::new()),
        ]
    }

    #[track_caller]
    fn check(query: &str, expected: &[usize]) {
        let found = rank(query, &documents(), 2);
        assert!(found.starts_with(expected), "{query}: {found:?}");
        assert!(found.len() <= 2);
    }

    #[test]
    fn the_best_match_comes_first() {
        check("list issue", &[0]);
        check("create issues", &[1]);
        check("createIssue", &[1]);
        check("screenshot window", &[3, 2]);
        check("window", &[2, 3]);
        check("hub__list_issues", &[0]);
        check("文档", &[4]);
        check("größe", &[4]);
        check("tint", &[2]);
        assert!(rank("the of", &documents(), 8).is_empty());
        assert!(rank("nothing like this", &documents(), 8).is_empty());
        assert!(rank("x", &[], 8).is_empty());
    }
}
