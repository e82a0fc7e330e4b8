//! Converts styled runs of text into lines, one for each line of the source.

use super::Look;
use crate::markdown::{self, Formula, Inline, plain};
use crate::tui::line::{self, Line};
use crate::tui::math;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::Role;
use crate::tui::width::width;
use std::sync::Arc;

/// Replacement for a `data:` address.
const DATA_SHOWN: &str = "data:…";

pub fn lines(inlines: &[Inline], look: &Look<'_>, style: Style) -> Vec<Line> {
    let mut writer =
        Writer { look, done: Vec::new(), line: Line::new(), style, outer: Vec::new(), link: None };
    for (at, inline) in inlines.iter().enumerate() {
        let rest = inlines.get(at + 1..).unwrap_or_default();
        writer.inline(inline, rest);
    }
    writer.done.push(writer.line);
    writer.done
}

struct Writer<'a, 'l> {
    look: &'a Look<'l>,
    done: Vec<Line>,
    line: Line,
    style: Style,
    /// Stack of the enclosing styles.
    outer: Vec<Style>,
    link: Option<Link>,
}

struct Link {
    /// Address for the terminal, if it supports links.
    address: Option<Arc<str>>,
    /// Address to write after the text.
    written: Option<String>,
}

impl Writer<'_, '_> {
    fn inline(&mut self, inline: &Inline, rest: &[Inline]) {
        match inline {
            Inline::Text(text) => self.text(text, self.style),
            Inline::Formula(formula) => self.formula(formula),
            Inline::Code(code) => {
                let color = self.look.theme.color(Role::MdCode);
                let style = Style { foreground: color, ..self.style };
                self.text(code, style);
            }
            // Answers and prompts are written by line: a list without marks, an address.
            Inline::SoftBreak | Inline::HardBreak => self.done.push(std::mem::take(&mut self.line)),
            Inline::Open(style) => {
                let attribute = match style {
                    markdown::Style::Emphasis => Attributes::ITALIC,
                    markdown::Style::Strong => Attributes::BOLD,
                    markdown::Style::Strike => Attributes::STRIKE,
                };
                self.open(self.style.with(attribute));
            }
            Inline::Close(_) => self.close(),
            Inline::OpenLink { url } => {
                let end = rest.iter().position(|inline| *inline == Inline::CloseLink);
                let text = plain(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
                self.open_link(url, &text);
            }
            Inline::CloseLink => self.close_link(),
            Inline::Image { url, alt } => {
                let text = if alt.is_empty() { "image" } else { alt };
                // Inside of a link it is the link that leads somewhere.
                let is_own = self.link.is_none();
                if is_own {
                    self.open_link(url, text);
                }
                self.text(&format!("[{text}]"), self.style);
                if is_own {
                    self.close_link();
                }
            }
        }
    }

    /// Adds a formula: in rows of its own if allowed and they fit, otherwise in one row, otherwise as source.
    fn formula(&mut self, formula: &Formula) {
        let has_lines = formula.is_display() && self.line.is_empty();
        let fits = |rows: &Vec<String>| rows.iter().all(|row| width(row) <= self.look.width);
        let drawn = has_lines.then(|| math::display(&formula.tex)).flatten().filter(fits);
        let rows = drawn.or_else(|| math::inline(&formula.tex).map(|row| vec![row]));
        let rows = rows.unwrap_or_else(|| formula.source().split('\n').map(str::to_owned).collect());
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.done.push(std::mem::take(&mut self.line));
            }
            self.text(row, self.style);
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        let address = self.link.as_ref().and_then(|link| link.address.as_ref());
        self.line.push_link(text, style, address);
    }

    fn open(&mut self, style: Style) {
        self.outer.push(std::mem::replace(&mut self.style, style));
    }

    fn close(&mut self) {
        if let Some(style) = self.outer.pop() {
            self.style = style;
        }
    }

    fn open_link(&mut self, url: &str, text: &str) {
        let is_offered = self.look.hyperlinks && markdown::is_safe_link(url);
        let address = Some(url).filter(|_| is_offered).and_then(line::link);
        let written = match url {
            _ if url.is_empty() || text == url.strip_prefix("mailto:").unwrap_or(url) => None,
            _ if address.is_some() => other_host(url, text),
            _ if url.starts_with("data:") => Some(DATA_SHOWN.to_owned()),
            _ => Some(url.to_owned()),
        };
        self.link = Some(Link { address, written });
        let style = self.look.theme.style(Role::MdLink).over(self.style);
        self.open(Style {
            foreground: self.look.theme.color(Role::MdLink),
            ..style.with(Attributes::UNDERLINE)
        });
    }

    fn close_link(&mut self) {
        self.close();
        if let Some(written) = self.link.take().and_then(|link| link.written) {
            let style = self.look.style(Role::MdLinkUrl);
            self.text(" (", style);
            self.text(&written, style);
            self.text(")", style);
        }
    }
}

/// The host of a link whose text names another host.
fn other_host(url: &str, text: &str) -> Option<String> {
    let real = host(url)?;
    let differs = |word: &str| host(word).is_some_and(|named| named != real);
    text.split_whitespace().any(differs).then_some(real)
}

/// The host of an address, with or without scheme; `None` if `word` is not an address.
fn host(word: &str) -> Option<String> {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '/');
    let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
    let rest = rest.strip_prefix("mailto:").unwrap_or(rest);
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let (_, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let name = place.split(':').next()?.to_lowercase();
    let name = name.strip_prefix("www.").unwrap_or(&name);
    let is_named = word.contains("://")
        || name.rsplit_once('.').is_some_and(|(above, top)| {
            !above.is_empty() && top.chars().count() > 1 && top.chars().all(char::is_alphabetic)
        });
    (is_named && !name.is_empty()).then(|| name.to_owned())
}
