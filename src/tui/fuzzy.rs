//! Fuzzy matching of typed letters against a text.
//!
//! All letters must occur in order, ignoring case. Consecutive letters and letters at the start of words
//! score better; letters between and before them score worse.

/// Score in tenths; lower is better.
pub type Score = i32;

const IN_A_ROW: Score = -50;
const WORD: Score = -100;
const GAP: Score = 20;
const LATE: Score = 1;
const EXACT: Score = -1000;
const SWAPPED: Score = 50;
/// Added for a word that only the other text has.
const ELSEWHERE: Score = 10_000;
/// Added for a word whose letters are not side by side: below every real match.
const SCATTERED: Score = 100_000;

/// Score of lower-case letters; `None` if not all of them occur. `5gpt` also matches `gpt-5`.
fn score_of(query: &[char], text: &[char]) -> Option<Score> {
    lower_score(query, text).or_else(|| Some(lower_score(&swapped(query)?, text)?.saturating_add(SWAPPED)))
}

/// Score of a word in lower case: its letters in `text`, or the word itself in `other`.
fn score_in_either(word: &[char], text: &[char], other: &[char]) -> Option<Score> {
    let has = |text: &[char]| text.windows(word.len().max(1)).any(|part| part == word);
    let score = score_of(word, text);
    match score {
        Some(score) if has(text) => Some(score),
        _ if has(other) => Some(ELSEWHERE),
        score => score.map(|score| score.saturating_add(SCATTERED)),
    }
}

/// Score of letters and text in lower case.
pub(super) fn lower_score(query: &[char], text: &[char]) -> Option<Score> {
    if query.is_empty() {
        return Some(0);
    }
    let mut score: Score = 0;
    let mut add = |points: Score| score = score.saturating_add(points);
    let mut last: Option<usize> = None;
    let mut row = 0;
    for letter in query {
        let from = last.map_or(0, |last| last + 1);
        let rest = text.get(from..)?;
        let gap = rest.iter().position(|found| found == letter)?;
        let at = from + gap;
        // The beginning of the text is a row that goes on, too.
        if gap == 0 {
            row += 1;
            add(IN_A_ROW * row);
        } else {
            row = 0;
            if last.is_some() {
                add(GAP.saturating_mul(Score::try_from(gap).unwrap_or(Score::MAX)));
            }
        }
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        if before.is_none_or(|before| before.is_whitespace() || "-_./:".contains(*before)) {
            add(WORD);
        }
        add(LATE.saturating_mul(Score::try_from(at).unwrap_or(Score::MAX)));
        last = Some(at);
    }
    if query == text {
        add(EXACT);
    }
    Some(score)
}

/// Swaps leading digits with the letters after them, and the other way round.
fn swapped(query: &[char]) -> Option<Vec<char>> {
    let first = query.first()?;
    let kind: fn(&char) -> bool = match first {
        'a'..='z' => char::is_ascii_lowercase,
        '0'..='9' => char::is_ascii_digit,
        _ => return None,
    };
    let at = query.iter().position(|letter| !kind(letter))?;
    let (first, second) = query.split_at(at);
    let is_other = |letter: &char| match kind(&'a') {
        true => letter.is_ascii_digit(),
        false => letter.is_ascii_lowercase(),
    };
    second.iter().all(is_other).then(|| [second, first].concat())
}

/// Indices of the texts that match all words of the query, best first; a slash also separates words.
pub fn filter<'a>(query: &str, texts: impl Iterator<Item = &'a str>) -> Vec<usize> {
    Texts::new(texts).filter(query)
}

/// Like [`filter`], for pairs of texts: letters of a word may be scattered over the first text only.
pub fn filter_pairs<'a>(query: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<usize> {
    let pairs: Vec<_> = pairs.map(|(text, other)| (lower(text), lower(other))).collect();
    ranked(query, pairs.iter().map(|(text, other)| (text.as_slice(), other.as_slice())))
}

fn lower(text: &str) -> Vec<char> {
    text.to_lowercase().chars().collect()
}

fn ranked<'a>(query: &str, pairs: impl Iterator<Item = (&'a [char], &'a [char])>) -> Vec<usize> {
    let words: Vec<Vec<char>> = query
        .split(|letter: char| letter.is_whitespace() || letter == '/')
        .filter(|word| !word.is_empty())
        .map(lower)
        .collect();
    let all = |text: &[char], other: &[char]| {
        words
            .iter()
            .try_fold(0, |sum: Score, word| Some(sum.saturating_add(score_in_either(word, text, other)?)))
    };
    let mut found: Vec<(Score, usize)> =
        pairs.enumerate().filter_map(|(index, (text, other))| Some((all(text, other)?, index))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, index)| index).collect()
}

/// Texts in a form for repeated searches.
#[derive(Clone, Debug, Default)]
pub struct Texts(Vec<Vec<char>>);

impl Texts {
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.map(lower).collect())
    }

    /// Like [`filter`].
    pub fn filter(&self, query: &str) -> Vec<usize> {
        ranked(query, self.0.iter().map(|text| (text.as_slice(), [].as_slice())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(query: &str, text: &str) -> Option<Score> {
        let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<_>>();
        score_of(&letters(query), &letters(text))
    }

    #[test]
    fn scattered_letters_come_last_or_not_at_all() {
        let models = ["gpt-oss-120b openai/plus", "claude-sonnet-4.5", "claude-opus-4.1"];
        assert_eq!(filter("opus", models.into_iter())[0], 2);
        let sessions = [
            ("", "01a2-0b24 fix the parser"),
            ("parser work", "77 hello"),
            ("", "port 1024 is in use"),
            ("p-a-r-s-e-r", "88 hi"),
        ];
        for (query, expected) in
            [("1024", &[2][..]), ("parser", &[1, 0, 3]), ("pw", &[1]), ("hello 77", &[1])]
        {
            assert_eq!(filter_pairs(query, sessions.into_iter()), expected, "{query}");
        }
    }

    #[test]
    fn letters_are_worth_what_the_rule_says() {
        for (query, text, expected) in [
            ("", "abc", Some(0)),
            ("abc", "abc", Some(-1397)),
            ("ab", "xabc", Some(-47)),
            ("abc", "a-b-c", Some(-304)),
            ("ac", "abc", Some(-128)),
            ("mod", "scoped-models", Some(-226)),
            ("gpt5", "5gpt", Some(-1544)),
            ("5gpt", "gpt-5", Some(-423)),
            ("x", "abc", None),
            ("abcd", "abc", None),
            ("A", "bAa", Some(1)),
            ("m", "model", Some(-150)),
            ("mo", "/model", Some(-147)),
            ("fb", "foo bar", Some(-186)),
            ("fb", "foo_bar", Some(-186)),
            ("gpt4", "openai/gpt-4o", Some(-295)),
            ("4gpt", "openai/gpt-4o", Some(-245)),
            ("aab", "aaab", Some(-226)),
            ("É", "é", Some(-1150)),
        ] {
            assert_eq!(score(query, text), expected, "{query:?} in {text:?}");
        }
    }

    #[test]
    fn all_words_must_fit_and_the_best_is_first() {
        #[track_caller]
        fn check(query: &str, texts: &[&str], expected: &[&str]) {
            let found = filter(query, texts.iter().copied());
            let found: Vec<&str> = found.into_iter().map(|index| texts[index]).collect();
            assert_eq!(found, expected, "{query:?}");
        }
        let models = ["anthropic/claude-sonnet", "openai/gpt", "x/claude"];
        check("", &models, &models);
        check(" / ", &models, &models);
        check("claude anth", &models, &models[..1]);
        check("anth/son", &models, &models[..1]);
        check("nothing", &models, &[]);
        check(
            "mo",
            &["model", "scoped-models", "compact", "mo de l"],
            &["model", "mo de l", "scoped-models"],
        );
    }
}
