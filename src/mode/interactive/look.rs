//! How the conversation is drawn at a moment: size, colours, folding.

use super::drawings::{Drawing, Drawings, LAST, Part, Texts};
use crate::base::json::json;
use crate::runtime::{Describer, normalize_path};
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::{self, Line};
use crate::tui::markdown_view::{self, Diagrams};
use crate::tui::select::Looks;
use crate::tui::sgr;
use crate::tui::style::{Attributes, Style};
use crate::tui::theme::{Role, Theme};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Cells that rows below the conversation leave free at the edge.
const EDGE: usize = 4;

/// Everything that a part of the screen needs to draw itself.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub theme: &'a Theme,
    pub keymap: &'a Keymap,
    /// Width in cells.
    pub width: usize,
    /// True if the terminal supports links.
    pub hyperlinks: bool,
    /// Text before each line of a code block in Markdown.
    pub code_indent: &'a str,
    pub diagrams: Diagrams,
    /// True if tool output is shown in full.
    pub is_open: bool,
    pub hides_thinking: bool,
    /// What stands for thinking that is not shown.
    pub thinking_label: &'a str,
    /// For screen readers, and users whom motion disturbs: states are words, nothing is animated.
    pub is_plain: bool,
    /// True if a call that went well is one row, and nothing has empty rows inside.
    pub is_compact: bool,
    /// True if the terminal shows backgrounds that text is readable on.
    pub has_backgrounds: bool,
    /// Cells left and right of messages.
    pub pad: usize,
    pub cwd: &'a Path,
    pub home: &'a Path,
    /// Describes tool calls.
    pub describer: &'a Describer,
    /// What extensions draw.
    pub drawings: &'a Arc<Drawings>,
}

/// Stands for thinking that is not shown, if nobody wants other words.
pub const THINKING: &str = "Thinking...";

#[cfg(test)]
static NO_DRAWINGS: std::sync::LazyLock<Arc<Drawings>> = std::sync::LazyLock::new(Arc::default);

impl<'a> Look<'a> {
    /// A look in the folder `/home/u/p`, with everything folded.
    #[cfg(test)]
    pub fn testing(theme: &'a Theme, keymap: &'a Keymap, width: usize) -> Self {
        Self {
            theme,
            keymap,
            width,
            hyperlinks: false,
            code_indent: "  ",
            diagrams: Diagrams::Final,
            is_open: false,
            hides_thinking: false,
            thinking_label: THINKING,
            is_plain: false,
            is_compact: false,
            has_backgrounds: true,
            pad: 1,
            cwd: Path::new("/home/u/p"),
            home: Path::new("/home/u"),
            describer: &crate::runtime::BUILTIN,
            drawings: &NO_DRAWINGS,
        }
    }

    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Looks for the lists of `tui::select`.
    pub fn looks(&self) -> Looks {
        Looks {
            text: self.style(Role::Text),
            selected: self.style(Role::Accent).with(Attributes::BOLD),
            accent: self.style(Role::Accent),
            muted: self.style(Role::Muted),
            is_plain: self.is_plain,
        }
    }

    /// Look for Markdown in `width` cells, with plain text styled as `base`.
    pub fn markdown(&self, width: usize, base: Style) -> markdown_view::Look<'a> {
        markdown_view::Look {
            theme: self.theme,
            width,
            hyperlinks: self.hyperlinks,
            code_indent: self.code_indent,
            diagrams: self.diagrams,
            base,
            is_plain: self.is_plain,
        }
    }

    pub fn within(&self, width: usize) -> Self {
        Self { width, ..*self }
    }

    /// Width of rows that end short of the edge: a terminal that becomes slightly narrower does not wrap them.
    pub fn short(&self) -> usize {
        if self.width > 20 { self.width - EDGE } else { self.width }
    }

    /// A horizontal rule over the whole width.
    pub fn rule(&self, style: Style) -> Line {
        let mark = if self.is_plain { "-" } else { "─" };
        Line::of(&mark.repeat(self.width), style)
    }

    /// A path with `~` for the home folder.
    pub fn path(&self, path: &Path) -> String {
        match path.strip_prefix(self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }

    /// A tool's path argument as shown, as short as possible, and its link target.
    pub fn place(&self, given: &str) -> (String, Option<Arc<str>>) {
        let path = match given.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.cwd.join(given),
        };
        let path = normalize_path(&path);
        let shown = match path.strip_prefix(self.cwd) {
            _ if given.is_empty() || given == "." => given.to_owned(),
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.display().to_string(),
            Err(_) => self.path(&path),
        };
        (shown, file_link(&path))
    }

    /// A line of an extension: its first line, in the width of the look.
    pub fn shown(&self, text: &str) -> Line {
        let first = text.lines().next().unwrap_or_default();
        sgr::line(first, self.style(Role::Text)).cut(self.width)
    }

    /// What an extension draws of a part, and whether that is how the part is now; none in pi's own form.
    pub fn drawn(&self, part: Part<'_>, fields: impl FnOnce() -> Value) -> Option<(Option<Vec<Line>>, bool)> {
        let shown = |texts: Texts| texts.iter().map(|text| self.shown(text)).collect();
        match self.drawings.of(part, self.width, self.is_open, fields) {
            Drawing::Own => None,
            Drawing::Waiting(before) => Some((before.map(shown), false)),
            Drawing::Lines(texts) => Some((Some(shown(texts)), true)),
        }
    }

    /// The Markdown of a surface as extensions have it shown in so many cells; `text` itself until they have answered.
    /// `growing`: an id and a version for a text that is still written.
    pub fn transformed<'t>(
        &self,
        surface: &'static str,
        text: &'t str,
        width: usize,
        growing: Option<(&str, u64)>,
    ) -> Cow<'t, str> {
        if text.is_empty() || !self.drawings.draws("markdown", surface) {
            return text.into();
        }
        let known;
        let (id, version) = match growing {
            Some((id, version)) => (id, version),
            None => {
                let mut hasher = DefaultHasher::new();
                (surface, text).hash(&mut hasher);
                known = format!("{:x} {}", hasher.finish(), text.len());
                (known.as_str(), LAST)
            }
        };
        let part = Part { kind: "markdown", name: surface, id, version };
        let context = || {
            let context =
                json!({"messageType": surface, "isStreaming": version != LAST, "availableWidth": width});
            json!({"text": text, "context": context})
        };
        match self.drawings.of(part, width, false, context) {
            Drawing::Lines(texts) | Drawing::Waiting(Some(texts)) => texts.concat().into(),
            Drawing::Own | Drawing::Waiting(None) => text.into(),
        }
    }

    /// The key of an action for a hint: `ctrl+o`.
    pub fn key(&self, action: Action) -> Option<String> {
        self.keymap.keys(action).first().map(ToString::to_string)
    }
}

/// An owned look that can be sent to another thread.
pub struct Kept {
    layout: Layout,
    keymap: Keymap,
    cwd: PathBuf,
    home: PathBuf,
    hyperlinks: bool,
    describer: Describer,
    drawings: Arc<Drawings>,
}

impl Kept {
    pub fn of(look: &Look<'_>) -> Self {
        Self {
            layout: Layout::of(look),
            keymap: look.keymap.clone(),
            cwd: look.cwd.to_owned(),
            home: look.home.to_owned(),
            hyperlinks: look.hyperlinks,
            describer: look.describer.clone(),
            drawings: look.drawings.clone(),
        }
    }

    pub fn look(&self) -> Look<'_> {
        Look {
            theme: &self.layout.theme,
            keymap: &self.keymap,
            width: self.layout.width,
            hyperlinks: self.hyperlinks,
            code_indent: &self.layout.code_indent,
            diagrams: self.layout.diagrams,
            is_open: self.layout.is_open,
            hides_thinking: self.layout.hides_thinking,
            thinking_label: &self.layout.thinking_label,
            is_plain: self.layout.is_plain,
            is_compact: self.layout.is_compact,
            has_backgrounds: self.layout.has_backgrounds,
            pad: self.layout.pad,
            cwd: &self.cwd,
            home: &self.home,
            describer: &self.describer,
            drawings: &self.drawings,
        }
    }
}

/// Inputs of a layout besides the content: a change of one makes laid out lines invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    theme: Theme,
    code_indent: String,
    diagrams: Diagrams,
    width: usize,
    is_open: bool,
    hides_thinking: bool,
    is_plain: bool,
    is_compact: bool,
    has_backgrounds: bool,
    pad: usize,
    thinking_label: String,
    /// Count of what extensions have drawn.
    drawn: u64,
}

impl Layout {
    pub fn of(look: &Look<'_>) -> Self {
        Self {
            theme: look.theme.clone(),
            code_indent: look.code_indent.to_owned(),
            diagrams: look.diagrams,
            width: look.width,
            is_open: look.is_open,
            hides_thinking: look.hides_thinking,
            is_plain: look.is_plain,
            is_compact: look.is_compact,
            has_backgrounds: look.has_backgrounds,
            pad: look.pad,
            thinking_label: look.thinking_label.to_owned(),
            drawn: look.drawings.count(),
        }
    }

    pub fn is_of(&self, look: &Look<'_>) -> bool {
        (self.width, self.is_open, self.hides_thinking) == (look.width, look.is_open, look.hides_thinking)
            && (self.is_plain, self.pad, self.diagrams) == (look.is_plain, look.pad, look.diagrams)
            && (self.is_compact, self.has_backgrounds) == (look.is_compact, look.has_backgrounds)
            && (&*self.code_indent, &*self.thinking_label) == (look.code_indent, look.thinking_label)
            && self.drawn == look.drawings.count()
            && self.theme == *look.theme
    }
}

/// The `file:` URL of a path.
fn file_link(path: &Path) -> Option<Arc<str>> {
    let mut address = String::from("file://");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => address.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            _ => {
                let _ = write!(address, "%{byte:02X}");
            }
        }
    }
    line::link(&address)
}

/// Lines with a margin of one cell on a background as wide as the screen.
pub fn boxed(lines: &[Line], look: &Look<'_>, background: Style) -> Vec<Line> {
    boxed_within(lines, 1, look, background)
}

/// Lines with a margin of `pad` cells on a background as wide as the screen, with an empty row above and below
/// unless the look is compact. Without backgrounds only the margin is left.
pub fn boxed_within(lines: &[Line], pad: usize, look: &Look<'_>, background: Style) -> Vec<Line> {
    if !look.has_backgrounds {
        return padded(lines.iter().cloned(), pad);
    }
    let row = |line: &Line| {
        let mut row = Line::of(&" ".repeat(pad), background);
        row.append(line);
        row.over(background);
        row.pad_to(look.width, background);
        row
    };
    let edge = (!look.is_compact).then(|| row(&Line::new()));
    edge.clone().into_iter().chain(lines.iter().map(row)).chain(edge).collect()
}

/// Lines with a margin of one cell.
pub fn indented(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    padded(lines, 1)
}

/// Lines with a margin.
pub fn padded(lines: impl IntoIterator<Item = Line>, pad: usize) -> Vec<Line> {
    let indent = |line: Line| match pad == 0 || (line.is_empty() && line.cursor.is_none()) {
        true => line,
        false => {
            let mut row = Line::of(&" ".repeat(pad), Style::PLAIN);
            row.append(&line);
            row
        }
    };
    lines.into_iter().map(indent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::keymap::defaults;
    use crate::tui::theme::Theme;

    #[test]
    fn paths_are_short_and_lead_to_the_file() {
        let (theme, keymap) = (Theme::dark(), defaults());
        let look = Look::testing(&theme, &keymap, 40);
        for (given, shown, link) in [
            ("src/a b.rs", "src/a b.rs", "file:///home/u/p/src/a%20b.rs"),
            ("/home/u/p/x.rs", "x.rs", "file:///home/u/p/x.rs"),
            ("./x.rs", "x.rs", "file:///home/u/p/x.rs"),
            ("../q", "~/q", "file:///home/u/q"),
            ("~/q", "~/q", "file:///home/u/q"),
            ("/etc/é", "/etc/é", "file:///etc/%C3%A9"),
            ("/home/u/p", ".", "file:///home/u/p"),
            (".", ".", "file:///home/u/p"),
        ] {
            let (short, address) = look.place(given);
            assert_eq!((&*short, address.as_deref()), (shown, Some(link)), "{given}");
        }
    }
}
