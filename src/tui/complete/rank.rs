//! Ranks the files of a project by a typed query.

use crate::tui::fuzzy;
use memchr::memmem::Finder;
use std::cmp::Ordering;

/// A file or folder, by its path below the project, without a slash at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub path: &'a str,
    pub is_folder: bool,
}

const EXACT: i32 = 100;
const PREFIX: i32 = 80;
const IN_NAME: i32 = 50;
const IN_PATH: i32 = 30;
/// Score if the letters match with others between them.
const SCATTERED: i32 = 10;
const FOLDER: i32 = 10;

struct Ranked<'a> {
    candidate: Candidate<'a>,
    score: i32,
    /// Score of scattered letters; lower is better.
    fuzzy: fuzzy::Score,
    depth: usize,
}

impl Ranked<'_> {
    fn order(&self, other: &Self) -> Ordering {
        other
            .score
            .cmp(&self.score)
            .then(self.fuzzy.cmp(&other.fuzzy))
            .then(self.depth.cmp(&other.depth))
            .then(self.candidate.path.len().cmp(&other.candidate.path.len()))
            .then(self.candidate.path.cmp(other.candidate.path))
    }
}

/// The best `limit` of the candidates, the best first, in one pass.
pub fn rank<'a>(
    candidates: impl Iterator<Item = Candidate<'a>>,
    query: &str,
    limit: usize,
) -> Vec<Candidate<'a>> {
    let query = query.to_lowercase();
    let finder = Finder::new(&query);
    let mut best: Vec<Ranked<'a>> = Vec::new();
    let (mut lower, mut letters) = (String::new(), Vec::new());
    let query_letters: Vec<char> = query.chars().collect();
    for candidate in candidates {
        lower_into(candidate.path, &mut lower);
        let (score, fuzzy) = match score(&lower, &query, &finder) {
            Some(score) => (score, 0),
            None if is_scattered(&lower, &query) => {
                letters.clear();
                letters.extend(lower.chars());
                match fuzzy::lower_score(&query_letters, &letters) {
                    Some(fuzzy) => (SCATTERED, fuzzy),
                    None => continue,
                }
            }
            None => continue,
        };
        best.push(Ranked {
            candidate,
            score: match candidate.is_folder && !query.is_empty() {
                true => score + FOLDER,
                false => score,
            },
            fuzzy,
            depth: candidate.path.split('/').count(),
        });
        // Sorted now and then: few comparisons for each, whatever the order they come in.
        if best.len() >= 2 * limit.max(32) {
            best.sort_unstable_by(Ranked::order);
            best.truncate(limit);
        }
    }
    best.sort_unstable_by(Ranked::order);
    best.truncate(limit);
    best.into_iter().map(|ranked| ranked.candidate).collect()
}

fn lower_into(text: &str, lower: &mut String) {
    lower.clear();
    match text.is_ascii() {
        true => lower.extend(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase()))),
        false => lower.extend(text.chars().flat_map(char::to_lowercase)),
    }
}

fn score(path: &str, query: &str, finder: &Finder<'_>) -> Option<i32> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if query.is_empty() {
        return Some(1);
    }
    finder.find(path.as_bytes())?;
    Some(if name == query {
        EXACT
    } else if name.starts_with(query) {
        PREFIX
    } else if finder.find(name.as_bytes()).is_some() {
        IN_NAME
    } else {
        IN_PATH
    })
}

/// Quick test before scoring: most files do not contain all the letters.
fn is_scattered(path: &str, query: &str) -> bool {
    let mut letters = path.chars();
    query.chars().all(|letter| letters.any(|found| found == letter))
}
