//! Markdown as models write it: text in, blocks and inlines out, for the exported page and the screen.
//!
//! CommonMark with the tables, task lists, strike-through and bare addresses of GitHub's flavour, and
//! formulas. Raw HTML is plain text and has no effect. Definitions of reference links (`[x]: url`) are plain
//! text too, since a definition could change much earlier blocks, while growing text is already shown: see
//! [`Growing`].
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
pub use link::decode as entity;

/// Maximum nesting. Deeper quotes and lists become paragraphs; deeper styles are dropped.
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
    /// Number of the first item; `None` for bullets.
    pub start: Option<u64>,
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// True if the task is done; `None` for an item that is not a task.
    pub task: Option<bool>,
    pub blocks: Vec<Block>,
    /// True if blank lines are between the blocks.
    pub spaced: bool,
    /// True if a blank line is between the item and the one after it.
    pub gap: bool,
}

/// A row has at most as many cells as `align`; missing cells are empty.
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
    /// A line end in the source: a space in print, a line end on a screen.
    SoftBreak,
    HardBreak,
    Open(Style),
    Close(Style),
    /// Start of a link to a URL as in the source: see [`is_safe_link`]. Links do not nest.
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
    block::parse(text).blocks.into_iter().map(|(_, block)| block).collect()
}

/// True if a link to `url` may be clickable: it opens a web page or a mail, and runs nothing.
pub fn is_safe_link(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else {
        return false;
    };
    let plain = url.chars().all(|c| !c.is_control() && !c.is_whitespace());
    let known = ["http", "https", "mailto"];
    plain && !rest.is_empty() && known.iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// The text of `inlines`, without styles.
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
