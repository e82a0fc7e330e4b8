//! Colours code, line by line.
//!
//! There are no grammars: a row of a table lists a language's keywords, comments and strings ([`table`]), and
//! one scanner reads all languages. A comment, string or tag that is open at a line's end continues in the
//! next; every byte is visited once. Colours may be wrong in odd corners, but no character is ever changed.

mod language;
mod table;

use super::line::Line;
use super::theme::{Role, Theme};
use language::{Kind, Language, Quote};
use std::collections::HashMap;
use table::LANGUAGES;

/// Role of text without a special meaning.
const PLAIN: Role = Role::MdCodeBlock;

/// Highlights one piece of code, line after line.
#[derive(Clone, Debug)]
pub struct Highlighter {
    known: Option<Known>,
    open: Open,
}

#[derive(Clone, Debug)]
struct Known {
    language: &'static Language,
    words: HashMap<&'static str, Role>,
}

/// The construct left open by the previous line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Comment {
        depth: usize,
    },
    Quote(&'static Quote),
    /// A string that ends at a quote and this many `#`.
    Raw {
        hashes: usize,
    },
    Tag,
}

impl Highlighter {
    /// `language` is a name or an extension; an unknown one leaves the code plain.
    pub fn new(language: &str) -> Self {
        let language = find(language);
        Self { known: language.map(Known::new), open: Open::Nothing }
    }

    pub fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Adds the next line of the code, coloured, to `out`.
    pub fn line(&mut self, text: &str, theme: &Theme, out: &mut Line) {
        let paint = &mut |part: &str, role| out.push(part, theme.style(role));
        match &self.known {
            None => paint(text, PLAIN),
            Some(known) => {
                let mut scanner = Scanner { known, text, at: 0, open: self.open, paint };
                scanner.line();
                self.open = scanner.open;
            }
        }
    }
}

/// The language for [`Highlighter::new`] of a file with this name; it may be unknown.
pub fn of_path(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

fn find(name: &str) -> Option<&'static Language> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    let mut languages = LANGUAGES.iter();
    languages.find(|language| language.names.split(' ').any(is_it))
}

impl Known {
    fn new(language: &'static Language) -> Self {
        let mut words = HashMap::new();
        for (list, role) in [
            (language.keywords, Role::SyntaxKeyword),
            (language.types, Role::SyntaxType),
            (language.literals, Role::SyntaxNumber),
        ] {
            words.extend(list.split_whitespace().map(|word| (word, role)));
        }
        Self { language, words }
    }

    fn word(&self, word: &str) -> Option<Role> {
        match self.language.ignores_case {
            true => self.words.get(&*word.to_ascii_lowercase()).copied(),
            false => self.words.get(word).copied(),
        }
    }
}

struct Scanner<'a, 'p> {
    known: &'a Known,
    text: &'a str,
    at: usize,
    open: Open,
    paint: &'p mut dyn FnMut(&str, Role),
}

impl<'a> Scanner<'a, '_> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Emits `bytes` in a colour and moves past them.
    fn take(&mut self, bytes: usize, role: Role) {
        let end = self.at + bytes;
        let part = self.text.get(self.at..end).unwrap_or_default();
        (self.paint)(part, role);
        self.at = end;
    }

    fn line(&mut self) {
        match self.known.language.kind {
            Kind::Diff => return self.whole(diff_line(self.text)),
            Kind::Markdown => {
                if let Some(role) = markdown_line(self.text) {
                    return self.whole(role);
                }
            }
            Kind::Code | Kind::Markup => {}
        }
        while self.at < self.text.len() {
            let before = self.at;
            match self.open {
                Open::Comment { depth } => self.comment(depth),
                Open::Quote(quote) => self.quote(quote, 0),
                Open::Raw { hashes } => self.raw(hashes, 0),
                Open::Tag => self.tag(),
                Open::Nothing => self.token(),
            }
            // Each of them passes something; were it not so, the rest is plain.
            if self.at == before {
                self.whole(PLAIN);
            }
        }
        // What may not reach over the end of a line was never closed.
        if matches!(self.open, Open::Quote(quote) if !quote.lines) {
            self.open = Open::Nothing;
        }
    }

    fn whole(&mut self, role: Role) {
        self.take(self.text.len() - self.at, role);
    }

    fn token(&mut self) {
        let language = self.known.language;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return;
        };
        if let Some((begin, _)) = language.block
            && rest.starts_with(begin)
        {
            self.take(begin.len(), Role::SyntaxComment);
            self.open = Open::Comment { depth: 1 };
        } else if self.is_line_comment(rest) {
            self.whole(Role::SyntaxComment);
        } else if let Some(quote) = language.quotes.iter().find(|q| rest.starts_with(q.begin)) {
            self.quote(quote, quote.begin.len());
        } else if language.kind == Kind::Markup {
            self.markup(rest, first);
        } else if first == '\'' && language.has_lifetimes {
            self.tick(rest);
        } else if let Some(hashes) = raw_begin(rest).filter(|_| language.has_lifetimes) {
            self.raw(hashes, 2 + hashes);
        } else if first.is_ascii_digit() {
            self.take(number(rest), Role::SyntaxNumber);
        } else if language.is_word(first) {
            self.word(rest);
        } else if language.sigils.contains(first) {
            let name = rest.get(first.len_utf8()..).unwrap_or_default();
            let len = word(name, language).max(usize::from(name.starts_with(['#', '?', '@', '!'])));
            self.take(first.len_utf8() + len, Role::SyntaxVariable);
        } else {
            let role = match first {
                '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' => Role::SyntaxPunctuation,
                _ if first.is_ascii_punctuation() => Role::SyntaxOperator,
                _ => PLAIN,
            };
            self.take(first.len_utf8(), role);
        }
    }

    fn is_line_comment(&self, rest: &str) -> bool {
        let mut marks = self.known.language.comments.iter();
        let before = self.text.get(..self.at).unwrap_or_default();
        let after_space = before.ends_with([' ', '\t', ';', ')']) || before.is_empty();
        // `a#b` and `$#` are no comments in most languages that have `#`.
        marks.any(|mark| rest.starts_with(mark) && (after_space || !matches!(*mark, "#" | "%")))
    }

    fn comment(&mut self, depth: usize) {
        let rest = self.rest();
        let Some((begin, end)) = self.known.language.block else {
            return self.open = Open::Nothing;
        };
        let nests = self.known.language.nests;
        let mut depth = depth;
        let mut at = 0;
        while let Some(byte) = rest.as_bytes().get(at) {
            let here = rest.as_bytes().get(at..).unwrap_or_default();
            if Some(byte) == end.as_bytes().first() && here.starts_with(end.as_bytes()) {
                at += end.len();
                depth -= 1;
                if depth == 0 {
                    self.take(at, Role::SyntaxComment);
                    return self.open = Open::Nothing;
                }
            } else if nests && here.starts_with(begin.as_bytes()) {
                at += begin.len();
                depth += 1;
            } else {
                at += 1;
            }
        }
        self.open = Open::Comment { depth };
        self.whole(Role::SyntaxComment);
    }

    /// Reads a string, of which `begun` bytes were already read.
    fn quote(&mut self, quote: &'static Quote, begun: usize) {
        let rest = self.rest();
        let end = quote.end.as_bytes();
        let mut at = begun;
        while let Some(byte) = rest.as_bytes().get(at) {
            let here = rest.as_bytes().get(at..).unwrap_or_default();
            if *byte == b'\\' && quote.escapes {
                at += 2;
            } else if here.starts_with(end) {
                at += end.len();
                let key = begun > 0 && self.is_key(rest.get(at..).unwrap_or_default());
                let role = match key {
                    true => Role::SyntaxVariable,
                    false => Role::SyntaxString,
                };
                self.take(at, role);
                return self.open = Open::Nothing;
            } else {
                at += 1;
            }
        }
        self.open = Open::Quote(quote);
        self.whole(Role::SyntaxString);
    }

    fn raw(&mut self, hashes: usize, begun: usize) {
        let rest = self.rest();
        let inside = rest.get(begun..).unwrap_or_default();
        let mut from = 0;
        while let Some(found) = inside.get(from..).and_then(|text| text.find('"')) {
            from += found + 1;
            let after = inside.get(from..).unwrap_or_default();
            let marks = after.bytes().take(hashes).take_while(|byte| *byte == b'#');
            if marks.count() == hashes {
                self.take(begun + from + hashes, Role::SyntaxString);
                return self.open = Open::Nothing;
            }
        }
        self.open = Open::Raw { hashes };
        self.whole(Role::SyntaxString);
    }

    /// A character or a lifetime.
    fn tick(&mut self, rest: &str) {
        let inside = rest.get(1..).unwrap_or_default();
        let mut letters = inside.char_indices();
        let first = letters.next().map(|(_, letter)| letter);
        let len = match (first, letters.next()) {
            // The end is near, if it is a character at all.
            (Some('\\'), Some((at, escaped))) => {
                let after = at + escaped.len_utf8();
                let tail = inside.get(after..).unwrap_or_default();
                tail.bytes().take(12).position(|byte| byte == b'\'').map(|at| after + at)
            }
            (Some(_), Some((at, '\''))) => Some(at),
            _ => None,
        };
        match len {
            Some(len) => self.take(len + 2, Role::SyntaxString),
            None => self.take(1 + word(inside, self.known.language), Role::SyntaxType),
        }
    }

    fn word(&mut self, rest: &'a str) {
        let language = self.known.language;
        let len = word(rest, language).max(1);
        let (name, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        let mut letters = name.chars();
        let is_capital = letters.next().is_some_and(char::is_uppercase);
        let has_small = name.len() == 1 || letters.any(char::is_lowercase);
        let is_call = after.starts_with('(') || (language.has_lifetimes && after.starts_with("!("));
        let role = if self.is_key(after) {
            Role::SyntaxVariable
        } else if let Some(role) = self.known.word(name) {
            role
        } else if is_capital && has_small && language.has_capital_types {
            Role::SyntaxType
        } else if is_call {
            Role::SyntaxFunction
        } else {
            PLAIN
        };
        self.take(name.len(), role);
    }

    /// True if the text before `after` is the name of a value, as in data formats.
    fn is_key(&self, after: &str) -> bool {
        let marks = self.known.language.keys;
        !marks.is_empty() && after.trim_start_matches([' ', '\t']).starts_with(marks)
    }

    /// Reads markup outside of tags.
    fn markup(&mut self, rest: &str, first: char) {
        if first == '&' {
            let end = rest.bytes().take(12).position(|byte| byte == b';');
            return self.take(end.map_or(1, |end| end + 1), Role::SyntaxNumber);
        }
        let name = rest.strip_prefix('<').unwrap_or(rest);
        let name = name.strip_prefix(['/', '!', '?']).unwrap_or(name);
        let marks = rest.len() - name.len();
        if first == '<' && name.starts_with(|letter: char| letter.is_alphabetic()) {
            self.take(marks, Role::SyntaxPunctuation);
            self.take(word(name, self.known.language), Role::SyntaxKeyword);
            return self.open = Open::Tag;
        }
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let plain = after.find(['<', '&']).unwrap_or(after.len());
        self.take(first.len_utf8() + plain, PLAIN);
    }

    fn tag(&mut self) {
        let rest = self.rest();
        let end = rest.find(['>', '"', '\'', '=']).unwrap_or(rest.len());
        if end > 0 {
            return self.take(end, Role::SyntaxVariable);
        }
        match rest.as_bytes().first() {
            Some(b'>') => {
                self.take(1, Role::SyntaxPunctuation);
                self.open = Open::Nothing;
            }
            Some(b'=') => self.take(1, Role::SyntaxOperator),
            Some(mark) => {
                let inside = rest.bytes().skip(1);
                let end = inside.take_while(|byte| byte != mark).count();
                self.take(rest.len().min(end + 2), Role::SyntaxString);
            }
            None => {}
        }
    }
}

/// Length of the word at the start of `text`, in bytes.
fn word(text: &str, language: &Language) -> usize {
    text.find(|letter| !language.is_word(letter) && !letter.is_numeric()).unwrap_or(text.len())
}

/// Length of the number at the start of `text`, in bytes; `1..2` is two numbers.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        let goes_on = match byte {
            b'.' => next.is_some_and(u8::is_ascii_digit),
            b'+' | b'-' => {
                let exponent = at.checked_sub(1).and_then(|before| bytes.get(before));
                matches!(exponent, Some(b'e' | b'E')) && !text.starts_with("0x")
            }
            _ => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        if !goes_on {
            break;
        }
        at += 1;
    }
    at.max(1)
}

/// Number of hashes of `r##"`.
fn raw_begin(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let name = after.trim_start_matches('#');
    name.starts_with('"').then_some(after.len() - name.len())
}

fn diff_line(line: &str) -> Role {
    match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => Role::SyntaxKeyword,
        Some(b'+') => Role::ToolDiffAdded,
        Some(b'-') => Role::ToolDiffRemoved,
        Some(b'@') => Role::SyntaxFunction,
        Some(b' ') | None => Role::ToolDiffContext,
        _ => Role::Muted,
    }
}

fn markdown_line(line: &str) -> Option<Role> {
    let text = line.trim_start();
    match text.as_bytes().first()? {
        b'#' => Some(Role::MdHeading),
        b'>' => Some(Role::MdQuote),
        b'`' | b'~' if text.starts_with("```") || text.starts_with("~~~") => Some(Role::MdCodeBlockBorder),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
