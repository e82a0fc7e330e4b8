//! Renders TeX formulas as Unicode text.
//!
//! Fractions, roots and scripts become one line, with brackets if the meaning would change without them:
//! `1/(4x²)`. The rows of an environment (`aligned`, `pmatrix`, `cases`) are placed below each other if there
//! is room, otherwise after each other. A formula with an unknown command is not drawn at all: half of it
//! could mean the contrary.
//!
//! How parts become one row is in [`row`], how rows stand below each other in [`layout`].

mod layout;
mod row;
mod table;

use row::{
    BLANK, DRAWING, GAP, MARKS, NAME, NAME_END, accented, bracketed, divisor, factor, finished, is_single,
    pick, raised, scripted, tidy,
};
use table::{ACCENTS, BIG, BINARY, DOUBLE, FUNCTIONS, IGNORED, NEGATED, PLAIN, PREFIX, RELATIONS, SYMBOLS};

/// Longer formulas are not drawn.
const BYTES_MAX: usize = 8192;
/// Larger tables are not drawn.
const CELLS_MAX: usize = 1024;
/// Maximum nesting of groups.
const DEPTH_MAX: usize = 20;

/// Draws a formula in one row.
pub fn inline(tex: &str) -> Option<String> {
    let mut reader = Reader::new(tex, false)?;
    let rows = reader.rows(Stop::End)?;
    let rows = rows.into_iter().map(|row| row.concat()).filter(|row| !row.trim().is_empty());
    Some(finished(&rows.collect::<Vec<_>>().join("; ")))
}

/// Draws a formula in as many rows as it needs.
pub fn display(tex: &str) -> Option<Vec<String>> {
    let mut reader = Reader::new(tex, true)?;
    let rows = reader.rows(Stop::End)?;
    let mut drawings = std::mem::take(&mut reader.drawings).into_iter();
    let mut out = Vec::new();
    for row in rows {
        let row = tidy(&row.concat());
        let drawn = drawings.by_ref().take(row.matches(DRAWING).count()).collect();
        out.extend(layout::beside(&row, drawn).into_iter().filter(|row| !row.trim().is_empty()));
    }
    Some(out)
}

/// The token that ends a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The end of the formula.
    End,
    /// A closing brace.
    Brace,
    /// The closing bracket of an option.
    Bracket,
    /// The end of an environment.
    Environment,
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    /// True if drawings may have several rows.
    is_display: bool,
    /// The rows of each [`DRAWING`].
    drawings: Vec<Vec<String>>,
}

impl<'a> Reader<'a> {
    fn new(tex: &'a str, is_display: bool) -> Option<Self> {
        let is_plain = tex.len() <= BYTES_MAX && !tex.contains(|c| (NAME..=DRAWING).contains(&c));
        is_plain.then(|| Self { rest: tex.trim(), depth: 0, is_display, drawings: Vec::new() })
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        Some(letter)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Skips `text` if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parses rows of cells, up to the end of the formula or of the environment.
    fn rows(&mut self, stop: Stop) -> Option<Vec<Vec<String>>> {
        let mut rows = vec![Vec::new()];
        loop {
            let cell = self.cell(stop)?;
            rows.last_mut()?.push(cell);
            if self.takes("&") {
                continue;
            }
            if !self.takes("\\\\") {
                break;
            }
            self.takes("*");
            if self.rest.starts_with('[') {
                // The height of the gap between rows.
                self.rest = self.rest.split_once(']')?.1;
            }
            rows.push(Vec::new());
        }
        (stop != Stop::End || self.rest.is_empty()).then_some(rows)
    }

    /// Parses a braced group, or an option in brackets, after its opening.
    fn group(&mut self, stop: Stop) -> Option<String> {
        let inside = self.cell(stop)?;
        let end = if stop == Stop::Brace { "}" } else { "]" };
        self.takes(end).then(|| tidy(&inside))
    }

    /// Parses up to the end of the group or of the table cell.
    fn cell(&mut self, stop: Stop) -> Option<String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let has_rows = matches!(stop, Stop::End | Stop::Environment);
        let has_cells = stop == Stop::Environment || (stop == Stop::End && self.is_display);
        let mut out = String::new();
        // Where the last atom begins: scripts are about it.
        let mut atom = 0;
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                '}' => break,
                ']' if stop == Stop::Bracket => break,
                '&' if has_cells => break,
                '\\' if has_rows && (self.rest.starts_with("\\\\") || self.rest.starts_with("\\end{")) => {
                    break;
                }
                mark @ ('^' | '_') => {
                    self.next();
                    let text = self.argument()?;
                    let base = out.split_off(atom);
                    out.push_str(&scripted(&base, &text, mark));
                }
                blank if blank.is_whitespace() => {
                    self.next();
                    out.push(' ');
                }
                _ => {
                    // A closing bar leaves no blank before it.
                    if self.rest.starts_with("\\rvert") || self.rest.starts_with("\\rVert") {
                        out.truncate(out.trim_end_matches(' ').len());
                    }
                    let text = self.atom()?;
                    // Scripts behind a command that shows nothing are about what is before it.
                    if !text.is_empty() {
                        atom = out.len();
                    }
                    // `:=` and the like are one sign.
                    if text == " = " && out.ends_with([':', '!']) {
                        let sign = out.pop().unwrap_or_default();
                        atom = out.len();
                        out.push_str(&format!(" {sign}= "));
                    } else {
                        out.push_str(&text);
                    }
                }
            }
        }
        self.depth -= 1;
        Some(out)
    }

    /// Parses the argument of a command or a mark: a group, or the next token.
    fn argument(&mut self) -> Option<String> {
        self.skip_blanks();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        // What it holds has no lines of its own.
        let is_display = std::mem::replace(&mut self.is_display, false);
        let text = self.atom();
        self.is_display = is_display;
        self.depth -= 1;
        Some(tidy(&text?).trim_matches(MARKS).to_owned())
    }

    /// Parses an optional argument in brackets.
    fn option(&mut self) -> Option<Option<String>> {
        match self.takes("[") {
            true => Some(Some(self.group(Stop::Bracket)?)),
            false => Some(None),
        }
    }

    /// Parses a word in braces, verbatim.
    fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let (word, rest) = self.rest.strip_prefix('{')?.split_once('}')?;
        self.rest = rest;
        Some(word)
    }

    /// Parses text between braces; formulas in it are drawn.
    fn words(&mut self) -> Option<String> {
        self.skip_blanks();
        let inside = self.rest.strip_prefix('{')?;
        match inside.split_once('}') {
            Some((words, rest)) if !words.contains(['{', '\\', '$']) => {
                self.rest = rest;
                Some(words.replace(char::is_whitespace, " "))
            }
            _ => self.argument().map(|text| text.replace('$', "")),
        }
    }

    fn atom(&mut self) -> Option<String> {
        match self.next()? {
            '{' => {
                let is_display = std::mem::replace(&mut self.is_display, false);
                let text = self.group(Stop::Brace);
                self.is_display = is_display;
                text
            }
            '\\' => self.command(),
            '-' => Some("−".to_owned()),
            '~' => Some(BLANK.to_string()),
            '\'' => Some("′".to_owned()),
            sign @ ('=' | '<' | '>') => {
                let end = self.rest.find(|c| !matches!(c, '=' | '<' | '>')).unwrap_or(self.rest.len());
                let (more, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(format!(" {sign}{more} "))
            }
            '&' | '}' | '^' | '_' => None,
            letter => Some(letter.to_string()),
        }
    }

    fn command(&mut self) -> Option<String> {
        let end = self.rest.find(|letter: char| !letter.is_ascii_alphabetic());
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Some(match self.next()? {
                ',' | ';' | ':' | '>' | ' ' | '\n' => " ".to_owned(),
                '!' | '-' | '/' => String::new(),
                '|' => "‖".to_owned(),
                mark @ ('{' | '}' | '$' | '%' | '#' | '&' | '_') => mark.to_string(),
                _ => return None,
            });
        }
        self.rest = rest;
        let find = |table: &[(&str, &'static str)]| {
            table.iter().find(|(known, _)| *known == name).map(|(_, symbol)| *symbol)
        };
        if let Some(symbol) = find(SYMBOLS) {
            return Some(symbol.to_owned());
        }
        if let Some(symbol) = find(RELATIONS).or_else(|| find(BINARY)) {
            return Some(format!(" {symbol} "));
        }
        if let Some(symbol) = find(PREFIX) {
            self.skip_blanks();
            return Some(symbol.to_owned());
        }
        if let Some(symbol) = find(BIG) {
            return Some(symbol.to_owned());
        }
        if let Some(accent) = ACCENTS.iter().find(|(known, _)| *known == name) {
            return Some(accented(&self.argument()?, *accent));
        }
        if let Some(words) = find(FUNCTIONS) {
            return Some(format!("{NAME}{words}{NAME_END}"));
        }
        if PLAIN.contains(&name) {
            return self.argument();
        }
        if IGNORED.contains(&name) {
            self.skip_blanks();
            return Some(String::new());
        }
        self.structure(name)
    }

    /// Draws a command with a layout of its own.
    fn structure(&mut self, name: &str) -> Option<String> {
        match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" => {
                let (above, below) = (self.argument()?, self.argument()?);
                Some(format!("{GAP}{}/{}{GAP}", factor(&above), divisor(&below)))
            }
            "sqrt" => {
                let index = self.option()?;
                let body = self.argument()?;
                let body = if is_single(&body) { body } else { bracketed(&body) };
                let sign = match index.as_deref() {
                    None | Some("2") => "√".to_owned(),
                    Some("3") => "∛".to_owned(),
                    Some("4") => "∜".to_owned(),
                    Some(index) => format!("{}√", raised(index, '^')),
                };
                Some(format!("{sign}{body}"))
            }
            "text" | "textrm" | "textbf" | "textit" | "textsf" | "texttt" | "textnormal" | "textsc"
            | "mbox" | "emph" => self.words(),
            "operatorname" => {
                self.takes("*");
                Some(format!("{NAME}{}{NAME_END}", self.argument()?))
            }
            "mathbb" => {
                let letters = self.argument()?;
                Some(letters.chars().map(|letter| pick(DOUBLE, letter).unwrap_or(letter)).collect())
            }
            "boxed" | "fbox" => Some(format!("[{}]", self.argument()?)),
            "binom" | "dbinom" | "tbinom" => {
                let (above, below) = (self.argument()?, self.argument()?);
                Some(format!("({above} choose {below})"))
            }
            "overset" | "stackrel" | "underset" => {
                let (mark, base) = (self.argument()?, self.argument()?);
                let text = scripted(&base, &mark, if name == "underset" { '_' } else { '^' });
                // Over a sign it is a sign.
                let is_sign = !base.contains(char::is_alphanumeric);
                Some(if is_sign { format!(" {text} ") } else { text })
            }
            "underbrace" | "overbrace" => {
                let text = self.argument()?;
                let is_named = self.rest.trim_start().starts_with(['_', '^']);
                Some(if is_named && !is_single(&text) { bracketed(&text) } else { text })
            }
            "xrightarrow" | "xleftarrow" => {
                self.option()?;
                let arrow = if name == "xrightarrow" { "→" } else { "←" };
                Some(format!(" {} ", scripted(arrow, &self.argument()?, '^')))
            }
            "tag" => Some(format!("{BLANK}{BLANK}({})", self.argument()?)),
            "label" | "hspace" | "vspace" | "color" => self.word().map(|_| String::new()),
            "textcolor" => self.word().and_then(|_| self.argument()),
            "phantom" | "hphantom" | "vphantom" => self.argument().map(|_| " ".to_owned()),
            "enspace" | "enskip" | "thinspace" | "medspace" | "thickspace" | "space" => Some(" ".to_owned()),
            "substack" => self.argument(),
            "bmod" | "mod" => Some(" mod ".to_owned()),
            "pmod" => Some(format!(" (mod {})", self.argument()?)),
            "pod" => Some(format!(" ({})", self.argument()?)),
            "left" | "right" | "middle" | "big" | "Big" | "bigg" | "Bigg" | "bigl" | "Bigl" | "biggl"
            | "Biggl" | "bigr" | "Bigr" | "biggr" | "Biggr" | "bigm" => {
                self.skip_blanks();
                // A point is no bracket at all.
                self.takes(".");
                Some(String::new())
            }
            "quad" | "qquad" => Some(format!("{BLANK}{BLANK}")),
            "not" => {
                let sign = self.argument()?;
                let letter = sign.trim().chars().next()?;
                let negated = pick(NEGATED, letter).map_or_else(|| format!("{letter}\u{338}"), String::from);
                Some(format!(" {negated} "))
            }
            "begin" => self.environment(),
            _ => None,
        }
    }

    fn environment(&mut self) -> Option<String> {
        let name = self.word()?;
        match name {
            "array" | "alignedat" | "alignat" | "alignat*" => {
                self.word()?;
            }
            _ => {}
        }
        let is_display = std::mem::replace(&mut self.is_display, false);
        let rows = self.rows(Stop::Environment)?;
        self.is_display = is_display;
        if !self.takes("\\end") || self.word()? != name {
            return None;
        }
        let rows: Vec<Vec<String>> = rows
            .into_iter()
            .map(|row| row.iter().map(|cell| finished(cell)).collect())
            .filter(|row: &Vec<String>| row.iter().any(|cell| !cell.is_empty()))
            .collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let shape = layout::Shape::of(name).filter(|_| rows.len() * columns <= CELLS_MAX)?;
        if self.is_display && rows.len() > 1 {
            self.drawings.push(shape.drawn(&rows));
            return Some(DRAWING.to_string());
        }
        Some(shape.in_one_row(&rows))
    }
}

#[cfg(test)]
mod tests;
