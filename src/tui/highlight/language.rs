//! Properties of a language for the scanner, and those that many languages share.

/// The scanner mode of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Code,
    /// Tags with attributes, and text between tags.
    Markup,
    Diff,
    Markdown,
}

#[derive(Debug)]
pub struct Language {
    /// Names and file extensions, separated by spaces.
    pub names: &'static str,
    pub kind: Kind,
    pub keywords: &'static str,
    pub types: &'static str,
    pub literals: &'static str,
    /// Beginnings of comments that extend to the end of the line.
    pub comments: &'static [&'static str],
    pub block: Option<(&'static str, &'static str)>,
    /// True if block comments nest.
    pub nests: bool,
    /// Kinds of quotes; longer beginnings come first.
    pub quotes: &'static [Quote],
    /// True if keywords match in any case; here they are in lower case.
    pub ignores_case: bool,
    /// True if words that begin with a capital letter are types.
    pub has_capital_types: bool,
    /// True if a quote may begin a lifetime, and `r#"` strings exist.
    pub has_lifetimes: bool,
    /// Characters before the name of a variable.
    pub sigils: &'static str,
    /// Characters after the name of a value.
    pub keys: &'static [char],
    /// Letters of words, besides the usual ones.
    pub letters: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Quote {
    pub begin: &'static str,
    pub end: &'static str,
    /// True if a backslash escapes the next character.
    pub escapes: bool,
    /// True if a string may span lines.
    pub lines: bool,
}

impl Language {
    pub fn is_word(&self, letter: char) -> bool {
        letter.is_alphabetic() || letter == '_' || self.letters.contains(letter)
    }
}

pub const fn quote(mark: &'static str, escapes: bool, lines: bool) -> Quote {
    Quote { begin: mark, end: mark, escapes, lines }
}

pub const NONE: Language = Language {
    names: "",
    kind: Kind::Code,
    keywords: "",
    types: "",
    literals: "true false null",
    comments: &[],
    block: None,
    nests: false,
    quotes: &[quote("\"", true, false), quote("'", true, false)],
    ignores_case: false,
    has_capital_types: false,
    has_lifetimes: false,
    sigils: "",
    keys: &[],
    letters: "",
};

/// Languages with braces, `//` and `/* */`.
pub const BRACES: Language =
    Language { comments: &["//"], block: Some(("/*", "*/")), has_capital_types: true, ..NONE };

/// Languages with `#` comments and quoted strings.
pub const HASH: Language = Language { comments: &["#"], ..NONE };
