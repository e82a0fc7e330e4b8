//! How the conversation is drawn just now: size, colours, and what the user has folded.

use crate::tui::keymap::Keymap;
use crate::tui::line::Line;
use crate::tui::markdown_view;
use crate::tui::select::Looks;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::{Role, Theme};
use std::path::Path;

/// All that a part of the screen needs to draw itself.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub theme: &'a Theme,
    pub keymap: &'a Keymap,
    /// In cells.
    pub width: usize,
    /// The terminal has links.
    pub hyperlinks: bool,
    /// Stands before each line of code in Markdown.
    pub code_indent: &'a str,
    /// Output of tools is shown whole, not folded to some lines.
    pub is_open: bool,
    pub hides_thinking: bool,
    /// For screen readers, and for those whom moving things disturb: states are words, nothing moves.
    pub is_plain: bool,
    pub cwd: &'a Path,
    pub home: &'a Path,
}

impl<'a> Look<'a> {
    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// For the lists of `tui::select`.
    pub fn looks(&self) -> Looks {
        Looks {
            text: self.style(Role::Text),
            selected: self.style(Role::Accent).with(Attributes::BOLD),
            accent: self.style(Role::Accent),
            muted: self.style(Role::Muted),
            is_plain: self.is_plain,
        }
    }

    /// For Markdown in `width` cells, plain text looking like `base`.
    pub fn markdown(&self, width: usize, base: Style) -> markdown_view::Look<'a> {
        markdown_view::Look {
            theme: self.theme,
            width,
            hyperlinks: self.hyperlinks,
            code_indent: self.code_indent,
            base,
        }
    }

    pub fn within(&self, width: usize) -> Self {
        Self { width, ..*self }
    }

    /// A rule over the whole width.
    pub fn rule(&self, style: Style) -> Line {
        let mark = if self.is_plain { "-" } else { "─" };
        Line::of(&mark.repeat(self.width), style)
    }

    /// A path as people write it: `~` for their home.
    pub fn path(&self, path: &Path) -> String {
        match path.strip_prefix(self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

/// Lines with `margin` before them, on a background as wide as the screen, with an empty row above and below.
pub fn boxed(lines: &[Line], look: &Look<'_>, background: Style) -> Vec<Line> {
    let row = |line: Option<&Line>| {
        let mut row = Line::of(" ", background);
        if let Some(line) = line {
            row.append(line);
        }
        row.over(background);
        row.pad_to(look.width, background);
        row
    };
    let mut out = vec![row(None)];
    out.extend(lines.iter().map(|line| row(Some(line))));
    out.push(row(None));
    out
}

/// Lines with a margin of one cell.
pub fn indented(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let indent = |line: Line| match line.is_empty() && line.cursor.is_none() {
        true => line,
        false => {
            let mut row = Line::of(" ", Style::PLAIN);
            row.append(&line);
            row
        }
    };
    lines.into_iter().map(indent).collect()
}
