//! Markdown as models write it: text in, blocks and inlines out, for the exported page and the screen.
//!
//! CommonMark with the tables, task lists, strike-through and bare addresses of GitHub's flavour, and formulas. Raw
//! HTML is plain text: nobody here wants it to act. Definitions of reference links (`[x]: url`) are plain
//! text too, since with them a line could change blocks long before it, and text that grows is shown while
//! it grows: see [`Growing`].
//!
//! Time is linear in the text, whatever it holds, and no recursion goes deeper than [`DEPTH_MAX`].

mod block;
mod formula;
mod growing;
mod inline;
mod line;
mod link;

pub use formula::Formula;
pub use growing::Growing;

/// Quotes and lists nest this deep; what is deeper is a paragraph. Styles nest this deep; deeper ones are
/// dropped.
pub const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Level 1 to 6.
    Heading {
        level: u8,
        text: Vec<Inline>,
    },
    Paragraph(Vec<Inline>),
    /// `language` is the first word after the fence, or empty.
    Code {
        language: String,
        text: String,
    },
    Quote(Vec<Block>),
    List(List),
    Table(Table),
    Rule,
}

#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The number of the first item; none for bullets.
    pub start: Option<u64>,
    /// No blank lines between or inside the items: paragraphs in them are plain lines.
    pub tight: bool,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// True if the task is done; none for an item that is no task.
    pub task: Option<bool>,
    pub blocks: Vec<Block>,
}

/// A row has at most as many cells as `align`; cells that it lacks are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub align: Vec<Align>,
    pub head: Vec<Vec<Inline>>,
    pub rows: Vec<Vec<Vec<Inline>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    None,
    Left,
    Center,
    Right,
}

/// A run of text, or the beginning or end of a style. Begins and ends are always paired and nested.
#[derive(Clone, Debug, PartialEq)]
pub enum Inline {
    Text(String),
    Code(String),
    Formula(Formula),
    /// A line's end that asks for nothing: a space in print, a line on a screen.
    SoftBreak,
    HardBreak,
    Open(Style),
    Close(Style),
    /// A link to a URL as it was written: see [`is_safe_link`]. Links hold no links.
    OpenLink {
        url: String,
    },
    CloseLink,
    Image {
        url: String,
        alt: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Emphasis,
    Strong,
    Strike,
}

/// The blocks of a whole text.
pub fn parse(text: &str) -> Vec<Block> {
    block::parse(text).into_iter().map(|(_, block)| block).collect()
}

/// True if a link to `url` may be offered for a click: it leads to the web or to a mail, and runs nothing.
pub fn is_safe_link(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else {
        return false;
    };
    let plain = url.chars().all(|c| !c.is_control() && !c.is_whitespace());
    let known = ["http", "https", "mailto"];
    plain && !rest.is_empty() && known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The words of `inlines`, without their styles.
pub fn plain(inlines: &[Inline]) -> String {
    let mut text = String::new();
    for inline in inlines {
        match inline {
            Inline::Text(part) | Inline::Code(part) | Inline::Image { alt: part, .. } => {
                text.push_str(part);
            }
            Inline::Formula(formula) => text.push_str(&formula.source()),
            Inline::SoftBreak | Inline::HardBreak => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests;
