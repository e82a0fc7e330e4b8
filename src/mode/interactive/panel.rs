//! Components of extensions: what one has drawn last, and where it stands: as a dialog, over the screen, or as
//! the editor.

use super::config::UiConfig;
use super::dialog::{Dialog, Step};
use super::effect::{Effect, Update};
use super::keymap::AppAction;
use super::look::Look;
use super::program_status::Blocked;
use crate::runtime::overlay::{Area, Overlay as Wishes};
use crate::runtime::ui::{Arrange, Component, Picture, Room};
use crate::tui::encode::encode;
use crate::tui::key::Key;
use crate::tui::line::Line;
use crate::tui::screen::Size;
use crate::tui::style::Style;
use std::sync::Arc;

/// A component, as it was drawn last.
pub struct Panel {
    number: u64,
    component: Arc<dyn Component>,
    picture: Picture,
    is_drawn: bool,
    room: Room,
    /// The last key was the one that clears: a second one ends a component that does not end itself.
    is_leaving: bool,
}

impl Panel {
    pub fn new(number: u64, component: Arc<dyn Component>) -> Self {
        let picture = Picture::default();
        Self { number, component, picture, is_drawn: false, room: Room::default(), is_leaving: false }
    }

    fn fit(&mut self, room: Room) {
        if self.room != room {
            self.room = room;
            self.component.resize(room);
        }
    }

    fn lines(&self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let lines = self.picture.lines.iter().take(rows);
        let mut lines: Vec<Line> = lines.map(|line| look.shown(line)).collect();
        if let Some((row, column)) = self.picture.cursor
            && let Some(line) = lines.get_mut(row)
        {
            line.cursor = Some(column.min(look.width.saturating_sub(1)));
        }
        lines
    }

    /// Passes a key on. True if the user ends the component with it.
    fn key(&mut self, key: &Key, config: &UiConfig) -> bool {
        let clears = config.keymap.is(key, AppAction::CLEAR);
        if clears && self.is_leaving {
            self.component.dismiss();
            return true;
        }
        self.is_leaving = clears;
        self.component.input(&encode(key), &key.to_string());
        false
    }

    fn paste(&self, text: &str) {
        self.component.input(&format!("\x1b[200~{text}\x1b[201~"), "");
    }

    /// Takes what the component has drawn, if it is this one's.
    fn take(&mut self, update: &mut Update) -> Step {
        match update {
            Update::Drawn { number, picture } if *number == self.number => {
                self.picture = std::mem::take(picture);
                self.is_drawn = true;
                Step::Stay
            }
            Update::ComponentOver(number) if *number == self.number => Step::Close,
            _ => Step::Stay,
        }
    }
}

/// A component instead of the editor.
pub struct InDialog(pub Panel);

impl Dialog for InDialog {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        self.0.fit(Room { width: look.width, rows, columns: look.width });
        let mut lines = self.0.lines(look, rows);
        if lines.is_empty() {
            lines.push(Line::new());
        }
        lines
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        if self.0.key(key, config) { vec![Effect::Close] } else { Vec::new() }
    }

    fn paste(&mut self, text: &str) {
        self.0.paste(text);
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        self.0.take(update)
    }

    fn blocked(&self) -> Option<Blocked> {
        self.0.component.awaited().map(Blocked::from)
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        self.0.component.dismiss();
        Vec::new()
    }
}

/// A component as the editor. It draws around pi's own editor, which keeps the text.
pub struct AsEditor {
    panel: Panel,
    /// Pi's own editor as it was drawn last.
    own: Vec<Line>,
}

impl AsEditor {
    pub fn new(number: u64, component: Arc<dyn Component>) -> Self {
        Self { panel: Panel::new(number, component), own: Vec::new() }
    }

    /// The lines of the component; those of pi's own editor while there are none. A change of the latter has the
    /// component drawn anew.
    pub fn lines(&mut self, own: Vec<Line>, look: &Look<'_>, rows: usize) -> Vec<Line> {
        self.panel.fit(Room { width: look.width, rows, columns: look.width });
        if self.own != own {
            self.own.clone_from(&own);
            self.panel.component.redraw();
        }
        if self.panel.is_drawn { self.panel.lines(look, rows) } else { own }
    }

    pub fn key(&self, key: &Key) {
        self.panel.component.input(&encode(key), &key.to_string());
    }

    pub fn paste(&self, text: &str) {
        self.panel.paste(text);
    }

    pub fn take(&mut self, update: &mut Update) -> Step {
        self.panel.take(update)
    }
}

/// The components over the screen, from back to front.
#[derive(Default)]
pub struct Overlays(Vec<OnTop>);

struct OnTop {
    panel: Panel,
    wishes: Wishes,
    /// Hidden by its extension for now.
    is_hidden: bool,
    is_focused: bool,
    /// Dialogs that were open before it: later ones get the keys.
    dialogs: usize,
}

impl OnTop {
    fn is_seen(&self) -> bool {
        !self.is_hidden && !self.panel.picture.is_hidden
    }

    fn focus(&mut self, is_focused: bool) {
        if std::mem::replace(&mut self.is_focused, is_focused) != is_focused {
            self.panel.component.focus(is_focused);
        }
    }
}

impl Overlays {
    /// Opens an overlay over `dialogs` open dialogs.
    pub fn open(&mut self, number: u64, component: Arc<dyn Component>, wishes: Wishes, dialogs: usize) {
        let is_focused = !wishes.non_capturing;
        if is_focused {
            self.0.iter_mut().for_each(|overlay| overlay.focus(false));
        }
        let panel = Panel::new(number, component);
        self.0.push(OnTop { panel, wishes, is_hidden: false, is_focused, dialogs });
    }

    /// What the user is waited for; also while it is hidden.
    pub fn blocked(&self) -> Option<Blocked> {
        self.0.iter().rev().find_map(|overlay| overlay.panel.component.awaited()).map(Blocked::from)
    }

    /// True if something is to be seen, or has yet to say whether it is.
    pub fn are_seen(&self) -> bool {
        self.0.iter().any(OnTop::is_seen)
    }

    fn focused(&mut self, dialogs: usize) -> Option<&mut OnTop> {
        self.0
            .iter_mut()
            .find(|overlay| overlay.is_focused && overlay.is_seen() && overlay.dialogs >= dialogs)
    }

    /// Passes a key to the overlay with the focus. False if there is none.
    pub fn key(&mut self, key: &Key, config: &UiConfig, dialogs: usize) -> bool {
        let Some(overlay) = self.focused(dialogs) else { return false };
        if overlay.panel.key(key, config) {
            let number = overlay.panel.number;
            self.remove(number);
        }
        true
    }

    /// Passes pasted text to the overlay with the focus. False if there is none.
    pub fn paste(&mut self, text: &str, dialogs: usize) -> bool {
        let overlay = self.focused(dialogs);
        overlay.map(|overlay| overlay.panel.paste(text)).is_some()
    }

    pub fn arrange(&mut self, number: u64, arrange: Arrange) {
        let Some(at) = self.0.iter().position(|overlay| overlay.panel.number == number) else { return };
        match arrange {
            Arrange::Focused(true) => {
                let chosen = self.0.remove(at);
                self.0.push(chosen);
                let last = self.0.len() - 1;
                for (at, overlay) in self.0.iter_mut().enumerate() {
                    overlay.focus(at == last);
                }
                return;
            }
            Arrange::Focused(false) => {}
            Arrange::Hidden(is_hidden) => {
                if let Some(overlay) = self.0.get_mut(at) {
                    overlay.is_hidden = is_hidden;
                    let takes = !is_hidden && !overlay.wishes.non_capturing;
                    if takes {
                        return self.arrange(number, Arrange::Focused(true));
                    }
                }
            }
        }
        if let Some(overlay) = self.0.get_mut(at)
            && overlay.is_focused
        {
            overlay.focus(false);
            self.pass_focus(Some(number));
        }
    }

    /// Gives the focus to the frontmost overlay that takes it.
    fn pass_focus(&mut self, but: Option<u64>) {
        let mut others = self.0.iter_mut().rev().filter(|overlay| Some(overlay.panel.number) != but);
        if let Some(next) = others.find(|overlay| overlay.is_seen() && !overlay.wishes.non_capturing) {
            next.focus(true);
        }
    }

    fn remove(&mut self, number: u64) {
        let was_focused = self.0.iter().any(|overlay| overlay.panel.number == number && overlay.is_focused);
        self.0.retain(|overlay| overlay.panel.number != number);
        if was_focused {
            self.pass_focus(None);
        }
    }

    pub fn take(&mut self, update: &mut Update) {
        let mut over = None;
        for overlay in &mut self.0 {
            if let Update::Drawn { number, picture } = update
                && *number == overlay.panel.number
                && let Some(wishes) = picture.overlay.take()
            {
                overlay.wishes = *wishes;
            }
            if overlay.panel.take(update) == Step::Close {
                over = Some(overlay.panel.number);
            }
        }
        if let Some(number) = over {
            self.remove(number);
        }
    }

    /// Draws all over `lines`, which fill the screen.
    pub fn draw_over(&mut self, lines: &mut Vec<Line>, look: &Look<'_>, size: Size) {
        lines.resize_with(size.rows.max(lines.len()), Line::new);
        let first = lines.len() - size.rows;
        let has_focus = self.0.iter().any(|overlay| overlay.is_focused && overlay.is_seen());
        if has_focus {
            lines.iter_mut().for_each(|line| line.cursor = None);
        }
        for overlay in &mut self.0 {
            let width = overlay.wishes.width(size.columns);
            overlay.panel.fit(Room { width, rows: size.rows, columns: size.columns });
            if !overlay.is_seen() {
                continue;
            }
            let drawn = overlay.panel.lines(&look.within(width), size.rows);
            let Area { row, column, width, height } =
                overlay.wishes.area(drawn.len(), size.columns, size.rows);
            for (at, mut line) in drawn.into_iter().take(height).enumerate() {
                if !overlay.is_focused {
                    line.cursor = None;
                }
                if let Some(below) = lines.get_mut(first + row + at) {
                    *below = laid_over(below, line, column, width);
                }
            }
        }
    }

    /// Ends all.
    pub fn dismiss(&mut self) {
        self.0.drain(..).for_each(|overlay| overlay.panel.component.dismiss());
    }
}

/// `below` with `line` over the cells from `column` on, `width` wide.
fn laid_over(below: &Line, line: Line, column: usize, width: usize) -> Line {
    let text = below.text().len();
    let mut out = below.slice(0..below.byte_at(column));
    out.pad_to(column, Style::PLAIN);
    let mut line = line;
    line.pad_to(width, Style::PLAIN);
    out.append(&line);
    let mut behind = below.byte_at(column + width);
    // A wide letter may begin in the last covered cell.
    if below.slice(0..behind).width() < column + width {
        behind = below.byte_at(column + width + 1);
    }
    let rest = below.slice(behind..text);
    out.pad_to(below.width().saturating_sub(rest.width()).max(out.width()), Style::PLAIN);
    out.append(&rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_covers_the_cells_that_it_stands_on() {
        for (below, column, width, expected) in [
            ("abcdefgh", 2, 3, "abXX fgh"),
            ("ab", 4, 3, "ab  XX "),
            ("", 0, 2, "XX"),
            ("日本語文", 2, 3, "日XX  文"),
            ("日本語文", 1, 2, " XX 語文"),
        ] {
            let out = laid_over(&Line::of(below, Style::PLAIN), Line::of("XX", Style::PLAIN), column, width);
            assert_eq!(out.text(), expected, "{below}");
        }
    }
}
