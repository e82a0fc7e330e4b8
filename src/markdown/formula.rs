//! Formulas: TeX between marks.
//!
//! A formula is found before escapes and styles are: its backslashes and stars are its own. A single dollar
//! begins one as in Pandoc: something stands directly behind it, and the dollar that ends it has something
//! directly before it and no letter or digit behind. `$$` and `\[` at the begin of a line may span lines.

use memchr::memchr2;

/// Maximum length of a formula; longer text is not one.
const BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// The text as written, without the marks.
    pub tex: String,
    pub marks: Marks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// `$…$`
    Dollar,
    /// `$$…$$`
    Dollars,
    /// `\(…\)`
    Parentheses,
    /// `\[…\]`
    Brackets,
}

impl Formula {
    /// The text as written, with the marks.
    pub fn source(&self) -> String {
        let (open, close) = (self.marks.open(), self.marks.close());
        format!("{open}{}{close}", self.tex)
    }

    /// True if the formula may take lines of its own.
    pub fn is_display(&self) -> bool {
        matches!(self.marks, Marks::Dollars | Marks::Brackets)
    }
}

impl Marks {
    /// The marks that `text` begins with the first of.
    pub(super) fn of(text: &str) -> Option<Self> {
        // `$$` before `$`.
        let all = [Self::Dollars, Self::Dollar, Self::Parentheses, Self::Brackets];
        all.into_iter().find(|marks| text.starts_with(marks.open()))
    }

    pub(super) fn open(self) -> &'static str {
        match self {
            Self::Dollar => "$",
            Self::Dollars => "$$",
            Self::Parentheses => "\\(",
            Self::Brackets => "\\[",
        }
    }

    fn close(self) -> &'static str {
        match self {
            Self::Dollar => "$",
            Self::Dollars => "$$",
            Self::Parentheses => "\\)",
            Self::Brackets => "\\]",
        }
    }

    /// The place of the mark that ends a formula, in the text behind the first mark. A mark behind a backslash is
    /// none.
    pub(super) fn end(self, text: &str) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let rest = bytes.get(at..)?;
            at += memchr2(b'\\', b'$', rest)?;
            let rest = bytes.get(at..)?;
            if rest.starts_with(self.close().as_bytes()) {
                return Some(at);
            }
            at += if rest.starts_with(b"\\") { 2 } else { 1 };
        }
    }
}

/// Places of the marks that end formulas, as the inline parser knows them: each is looked for once.
#[derive(Default)]
pub(super) struct Ends([Option<Option<usize>>; 4]);

impl Ends {
    /// The formula at the byte `at` of `text`, and the byte behind it.
    pub(super) fn formula(&mut self, text: &str, at: usize) -> Option<(Formula, usize)> {
        let (before, rest) = text.split_at_checked(at)?;
        let marks = Marks::of(rest)?;
        if before.chars().next_back().is_some_and(char::is_alphanumeric) {
            return None;
        }
        let start = at + marks.open().len();
        let end = self.end(marks, text, start)?;
        let tex = text.get(start..end)?;
        let behind = end + marks.close().len();
        let after = text.get(behind..)?.chars().next();
        let is_formula = !tex.trim().is_empty()
            && tex.len() <= BYTES_MAX
            && match marks {
                Marks::Dollar => is_tight(tex) && after.is_none_or(|c| !c.is_alphanumeric() && c != '$'),
                Marks::Dollars => after.is_none_or(|c| !c.is_alphanumeric() && c != '$'),
                Marks::Parentheses => true,
                // A link that was escaped.
                Marks::Brackets => after != Some('('),
            };
        is_formula.then(|| (Formula { tex: tex.to_owned(), marks }, behind))
    }

    fn end(&mut self, marks: Marks, text: &str, start: usize) -> Option<usize> {
        let known = self.0.get_mut(marks as usize)?;
        match known {
            Some(Some(end)) if *end >= start => Some(*end),
            Some(None) => None,
            _ => {
                let end = text.get(start..).and_then(|rest| marks.end(rest)).map(|end| start + end);
                *known = Some(end);
                end
            }
        }
    }
}

/// True if the text between two dollars is a formula and not prose about prices or shell variables.
fn is_tight(tex: &str) -> bool {
    let blank = char::is_whitespace;
    !tex.starts_with(blank) && !tex.ends_with(blank) && !tex.contains(['`', '\n']) && !tex.contains("**")
}

/// The marks and the rest of a line that begins a formula of several lines.
pub(super) fn opening(line: &str) -> Option<(Marks, &str)> {
    let text = line.trim_start_matches([' ', '\t']);
    let marks = Marks::of(text).filter(|marks| matches!(marks, Marks::Dollars | Marks::Brackets))?;
    let rest = text.get(marks.open().len()..)?;
    let begins = rest.trim().is_empty() || rest.contains(['\\', '^', '_', '=', '{']);
    (begins && marks.end(rest).is_none()).then_some((marks, rest))
}
