//! What the scanner knows of a language, and what many languages share.

/// How a language is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Code,
    /// Tags with attributes, and text between them.
    Markup,
    Diff,
    Markdown,
}

#[derive(Debug)]
pub struct Language {
    /// Names and file extensions, between spaces.
    pub names: &'static str,
    pub kind: Kind,
    pub keywords: &'static str,
    pub types: &'static str,
    pub literals: &'static str,
    /// What a comment up to the end of the line begins with.
    pub comments: &'static [&'static str],
    pub block: Option<(&'static str, &'static str)>,
    /// Block comments may hold block comments.
    pub nests: bool,
    /// The longer beginnings first.
    pub quotes: &'static [Quote],
    /// Keywords are the same in capitals; they stand in small letters here.
    pub ignores_case: bool,
    /// True if words that begin with a capital letter are types.
    pub has_capital_types: bool,
    /// A quote may begin a lifetime; `r#"` strings.
    pub has_lifetimes: bool,
    /// Marks before the name of a variable.
    pub sigils: &'static str,
    /// Marks behind the name of a value.
    pub keys: &'static [char],
    /// Letters of words, besides those of all languages.
    pub letters: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Quote {
    pub begin: &'static str,
    pub end: &'static str,
    /// A backslash takes what is special from the next character.
    pub escapes: bool,
    /// May reach over the end of a line.
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

/// Braces, `//` and `/* */`.
pub const BRACES: Language =
    Language { comments: &["//"], block: Some(("/*", "*/")), has_capital_types: true, ..NONE };

/// `#` and what is between quotes.
pub const HASH: Language = Language { comments: &["#"], ..NONE };
