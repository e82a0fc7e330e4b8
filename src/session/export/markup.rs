//! Converts Markdown to HTML.

use super::html::Html;
use crate::markdown::{self, Align, Block, Inline, List, Style, Table, is_safe_link};

/// How a line break inside a paragraph is shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Lines {
    /// As a space, as in Markdown.
    Joined,
    /// As a line break.
    Kept,
}

/// Adds `text` as HTML.
pub fn markdown(html: &mut Html, text: &str, lines: Lines) {
    html.open("div", &[("class", "prose")]);
    blocks(html, &markdown::parse(text), lines);
    html.close("div");
}

fn blocks(html: &mut Html, all: &[Block], lines: Lines) {
    for block in all {
        self::block(html, block, lines);
    }
}

fn block(html: &mut Html, block: &Block, lines: Lines) {
    match block {
        Block::Heading { level, text } => {
            // Headings of the page and the entry use h1 and h2.
            let tag = match level {
                1 => "h3",
                2 => "h4",
                3 => "h5",
                _ => "h6",
            };
            html.open(tag, &[]);
            inlines(html, text, lines);
            html.close(tag);
        }
        Block::Paragraph(text) => {
            html.open("p", &[]);
            inlines(html, text, lines);
            html.close("p");
        }
        Block::Code { language, text } if language == "diff" => html.diff(text),
        Block::Code { text, .. } => {
            html.open("pre", &[]);
            html.element("code", &[], text);
            html.close("pre");
        }
        Block::Quote(inner) => {
            html.open("blockquote", &[]);
            blocks(html, inner, lines);
            html.close("blockquote");
        }
        Block::List(inner) => list(html, inner, lines),
        Block::Table(inner) => table(html, inner, lines),
        Block::Rule => html.open("hr", &[]),
    }
}

fn list(html: &mut Html, list: &List, lines: Lines) {
    let tag = if list.start.is_some() { "ol" } else { "ul" };
    let start = list.start.unwrap_or(1).to_string();
    match start.as_str() {
        "1" => html.open(tag, &[]),
        start => html.open(tag, &[("start", start)]),
    }
    let is_tight = list.items.iter().all(|item| !item.spaced && !item.gap);
    for item in &list.items {
        html.open("li", &[]);
        match item.task {
            Some(true) => html.element("span", &[("class", "task")], "☑ "),
            Some(false) => html.element("span", &[("class", "task")], "☐ "),
            None => {}
        }
        for block in &item.blocks {
            match block {
                Block::Paragraph(text) if is_tight => inlines(html, text, lines),
                block => self::block(html, block, lines),
            }
        }
        html.close("li");
    }
    html.close(tag);
}

fn table(html: &mut Html, table: &Table, lines: Lines) {
    html.open("div", &[("class", "wide")]);
    html.open("table", &[]);
    let row = |html: &mut Html, cells: &[Vec<Inline>], tag: &'static str| {
        html.open("tr", &[]);
        for (cell, align) in cells.iter().zip(&table.align) {
            match align {
                Align::None => html.open(tag, &[]),
                Align::Left => html.open(tag, &[("class", "left")]),
                Align::Center => html.open(tag, &[("class", "center")]),
                Align::Right => html.open(tag, &[("class", "right")]),
            }
            inlines(html, cell, lines);
            html.close(tag);
        }
        html.close("tr");
    };
    html.open("thead", &[]);
    row(html, &table.head, "th");
    html.close("thead");
    html.open("tbody", &[]);
    for cells in &table.rows {
        row(html, cells, "td");
    }
    html.close("tbody");
    html.close("table");
    html.close("div");
}

fn inlines(html: &mut Html, all: &[Inline], lines: Lines) {
    let tag = |style: Style| match style {
        Style::Emphasis => "em",
        Style::Strong => "strong",
        Style::Strike => "s",
    };
    // Links do not nest, so one tag is enough.
    let mut link = "a";
    for inline in all {
        match inline {
            Inline::Text(text) => html.text(text),
            Inline::Formula(formula) => html.text(&formula.source()),
            Inline::Code(code) => html.element("code", &[], code),
            Inline::SoftBreak if lines == Lines::Joined => html.text("\n"),
            Inline::SoftBreak | Inline::HardBreak => html.open("br", &[]),
            Inline::Open(style) => html.open(tag(*style), &[]),
            Inline::Close(style) => html.close(tag(*style)),
            Inline::OpenLink { url } => {
                link = open_link(html, url);
            }
            Inline::CloseLink => html.close(link),
            // The page loads nothing: an image becomes a link.
            Inline::Image { url, alt } => {
                let tag = open_link(html, url);
                html.text(if alt.is_empty() { url } else { alt });
                html.close(tag);
            }
        }
    }
}

fn open_link(html: &mut Html, url: &str) -> &'static str {
    if is_safe_link(url) {
        html.open("a", &[("href", url), ("rel", "noreferrer noopener")]);
        "a"
    } else {
        html.open("span", &[("class", "target"), ("title", url)]);
        "span"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_elements() {
        let rows = [
            ("# a", "<h3>a</h3>"),
            ("- a\n- [x] b", "<ul><li>a</li><li><span class=\"task\">☑ </span>b</li></ul>"),
            ("2. a\n\n3. b", "<ol start=\"2\"><li><p>a</p></li><li><p>b</p></li></ol>"),
            ("> *a* `<b>`", "<blockquote><p><em>a</em> <code>&lt;b&gt;</code></p></blockquote>"),
            ("```diff\n+a\n b\n```", "<pre class=\"diff\"><span class=\"add\">+a\n</span> b</pre>"),
            (
                "[a](https://b \"t\") [c](javascript:d)",
                "<p><a href=\"https://b\" rel=\"noreferrer noopener\">a</a> <span class=\"target\" title=\"javascript:d\">c</span></p>",
            ),
            ("![a](https://b/c.png)", "<p><a href=\"https://b/c.png\" rel=\"noreferrer noopener\">a</a></p>"),
            (
                "|a|\n|-:|\n|b|",
                "<div class=\"wide\"><table><thead><tr><th class=\"right\">a</th></tr></thead><tbody><tr><td class=\"right\">b</td></tr></tbody></table></div>",
            ),
            ("<b onclick=x>&lt;", "<p>&lt;b onclick=x&gt;&lt;</p>"),
        ];
        for (text, expected) in rows {
            let mut html = Html::default();
            markdown(&mut html, text, Lines::Joined);
            assert_eq!(html.take(), format!("<div class=\"prose\">{expected}</div>"));
        }
    }
}
