//! Formulas: TeX between marks.
//!
//! Formulas are parsed before escapes and styles: their backslashes and stars belong to them. Single dollars
//! follow Pandoc's rule: no space after the first, no space before the last, and no letter or digit after it.
//! `$$` and `\[` at the start of a line may span lines.

use memchr::memchr2;

/// Maximum length of a formula; longer text is not one.
const BYTES_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// The source, without the marks.
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
    /// The source, with the marks.
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
    /// The kind of marks whose opening is at the start of `text`.
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

    /// Offset of the closing mark, in the text after the opening. A mark after a backslash is ignored.
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

/// Positions of closing marks, cached by the inline parser, so that each is searched once.
#[derive(Default)]
pub(super) struct Ends([Option<Option<usize>>; 4]);

impl Ends {
    /// The formula at byte `at` of `text`, and the byte after it.
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

/// The marks of a formula that begins on the line and spans several, and the rest of the line.
pub(super) fn opening(line: &str) -> Option<(Marks, &str)> {
    let text = line.trim_start_matches([' ', '\t']);
    let marks = Marks::of(text).filter(|marks| matches!(marks, Marks::Dollars | Marks::Brackets))?;
    let rest = text.get(marks.open().len()..)?;
    let begins = rest.trim().is_empty() || rest.contains(['\\', '^', '_', '=', '{']);
    (begins && marks.end(rest).is_none()).then_some((marks, rest))
}
