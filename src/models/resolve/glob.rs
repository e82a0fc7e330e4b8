//! Patterns over model names: `*`, `?` and `[a-z]` within one part between slashes, `**` over any
//! number of whole parts. Case does not count.

/// A pattern, ready to be matched many times.
pub struct Glob {
    parts: Vec<Part>,
}

enum Part {
    /// `**`: any number of parts.
    Deep,
    Text(Vec<Piece>),
}

enum Piece {
    One(char),
    Any,
    /// Any number of characters.
    Many,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// True if `text` is meant as a pattern at all.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl Glob {
    pub fn new(pattern: &str) -> Self {
        let part = |text: &str| match text {
            "**" => Part::Deep,
            text => Part::Text(pieces(&text.to_lowercase())),
        };
        Self { parts: pattern.split('/').map(part).collect() }
    }

    pub fn matches(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let names: Vec<Vec<char>> = name.split('/').map(|part| part.chars().collect()).collect();
        walk(
            &self.parts,
            &names,
            |part| matches!(part, Part::Deep),
            |part, name| match part {
                Part::Deep => false,
                Part::Text(pieces) => {
                    walk(pieces, name, |piece| matches!(piece, Piece::Many), |piece, &c| piece.takes(c))
                }
            },
        )
    }
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::One(own) => *own == c,
            Self::Any => true,
            Self::Many => false,
            Self::Class { negated, ranges } => {
                *negated != ranges.iter().any(|(first, last)| (*first..=*last).contains(&c))
            }
        }
    }
}

/// Matches all of `items` against all of `pattern`, in which some entries stand for any number of
/// items. Only the last of those ever needs to give way, so this is quadratic at worst.
fn walk<P, T>(
    pattern: &[P],
    items: &[T],
    is_many: impl Fn(&P) -> bool,
    takes: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut retry = None;
    while let Some(value) = items.get(item) {
        match pattern.get(at) {
            Some(entry) if is_many(entry) => {
                retry = Some((at, item));
                at += 1;
            }
            Some(entry) if takes(entry, value) => {
                at += 1;
                item += 1;
            }
            _ => {
                let Some((many, from)) = retry else {
                    return false;
                };
                retry = Some((many, from + 1));
                at = many + 1;
                item = from + 1;
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(is_many)
}

fn pieces(text: &str) -> Vec<Piece> {
    let chars: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        pieces.push(match c {
            '*' => Piece::Many,
            '?' => Piece::Any,
            '[' => match class(&chars, at) {
                Some((class, after)) => {
                    at = after;
                    class
                }
                None => Piece::One('['),
            },
            '\\' => match chars.get(at) {
                Some(&escaped) => {
                    at += 1;
                    Piece::One(escaped)
                }
                None => Piece::One('\\'),
            },
            c => Piece::One(c),
        });
    }
    pieces
}

/// The class whose `[` stands before `at`, and the index after its `]`; `None` if it is not closed.
fn class(chars: &[char], mut at: usize) -> Option<(Piece, usize)> {
    let negated = matches!(chars.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let start = at;
    let mut ranges = Vec::new();
    loop {
        let first = *chars.get(at)?;
        if first == ']' && at > start {
            return Some((Piece::Class { negated, ranges }, at + 1));
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&last)) if last != ']' => {
                ranges.push((first, last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, hits: &[&str], misses: &[&str]) {
        let glob = Glob::new(pattern);
        for hit in hits {
            assert!(glob.matches(hit), "{pattern} should match {hit}");
            assert!(glob.matches(&hit.to_uppercase()), "{pattern} should match {hit} in capitals");
        }
        for miss in misses {
            assert!(!glob.matches(miss), "{pattern} should not match {miss}");
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

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = "*a".repeat(2000);
        assert!(!Glob::new(&pattern).matches(&format!("{}b", "a".repeat(4000))));
    }

    /// The obvious matcher, exponential and without short cuts.
    fn naive(pattern: &[Piece], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((Piece::Many, rest)), None) => naive(rest, text),
            (Some((Piece::Many, rest)), Some((_, after))) => naive(rest, text) || naive(pattern, after),
            (Some((piece, rest)), Some((c, after))) => piece.takes(*c) && naive(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_matcher(pattern in "[ab*?\\[\\]!-]{0,8}", text in "[ab\\[-]{0,8}") {
            let chars: Vec<char> = text.chars().collect();
            let expected = if pattern == "**" { true } else { naive(&pieces(&pattern), &chars) };
            prop_assert_eq!(Glob::new(&pattern).matches(&text), expected);
        }

        #[test]
        fn no_pattern_panics_and_a_plain_one_matches_itself(pattern in "\\PC{0,20}", text in "[a-zé/:.-]{1,20}") {
            Glob::new(&pattern).matches(&text);
            prop_assert!(Glob::new(&text).matches(&text));
            prop_assert!(Glob::new("**").matches(&text));
        }
    }
}
