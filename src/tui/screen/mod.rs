//! Puts lines on the screen by writing only what changed.
//!
//! The screen has two parts. Printed lines belong to the terminal: they scroll into the scrollback and are
//! never written again. Below them is the live region, a frame of lines that is compared with the frame on
//! screen: only rows that differ are written, and of a row only the part after the common prefix. The normal
//! screen is used, so that scrolling, searching and selecting stay the terminal's.
//!
//! Once the live region has reached the last row of the screen, its last line stays there: the screen scrolls
//! by the rows that are really added, and a region that becomes shorter gets empty rows above, which the next
//! printed lines fill. Rows that are there for a while only, such as a list of completions, do not scroll the
//! screen: the region covers printed lines, and puts them back when it becomes shorter or lines are printed.
//!
//! The output is one string in a synchronized update, so that no partial frame is visible. The caller writes
//! it, and queries the size.

use super::bidi;
use super::line::{Line, Span};
use super::style::Depth;
use super::width::clusters;
use super::wrap::wrap;
use std::fmt::Write;

/// Size in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abilities {
    pub depth: Depth,
    pub hyperlinks: bool,
    /// True if synchronized updates are supported; other terminals ignore their marks.
    pub synchronized: bool,
    /// True if the terminal does not put right-to-left text into its order.
    pub reorders: bool,
    /// True if no sequences are supported, only characters and carriage return.
    pub is_dumb: bool,
}

/// Rows drawn by an escape sequence, such as an image, which a line cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    pub rows: usize,
    /// Draws at the cursor, within the block's rows; may leave the cursor anywhere.
    pub sequence: String,
    /// Erases the block.
    pub erase: String,
    /// Lines shown if the screen has no room for the block.
    pub instead: Vec<Line>,
}

/// A raw block that may still be on screen.
#[derive(Debug)]
struct Drawn {
    erase: String,
    /// Rows printed below the block.
    below: usize,
}

#[derive(Debug)]
pub struct Screen {
    size: Size,
    abilities: Abilities,
    /// The live region as on screen.
    shown: Vec<Line>,
    /// Without sequences: the live rows besides the one being typed, as printed last.
    fixed: Vec<Line>,
    /// Row of the cursor in the live region. The column is unknown after a row was written.
    row: usize,
    column: Option<usize>,
    is_cursor_hidden: bool,
    drawn: Vec<Drawn>,
    /// Row of the screen on which the live region begins; `None` until the terminal has reported the cursor,
    /// or so much was drawn that the last row must have been reached.
    top: Option<usize>,
    /// Rows printed while `top` is unknown, and the most rows that were printed and live together.
    printed: usize,
    reached: usize,
    /// True once the live region ends on the last row of the screen.
    is_anchored: bool,
    /// The last printed rows, as far as they are known to stand right above the live region.
    above: Vec<Line>,
    /// Rows at the end of `above` that the live region covers: it begins so many rows above `top`.
    covered: usize,
    /// Rows of the frame that may cover printed lines.
    overlay: usize,
}

impl Screen {
    /// The cursor must be at the beginning of an empty row.
    pub fn new(size: Size, abilities: Abilities) -> Self {
        Self {
            size,
            abilities,
            shown: Vec::new(),
            fixed: Vec::new(),
            row: 0,
            column: Some(0),
            is_cursor_hidden: false,
            drawn: Vec::new(),
            top: None,
            printed: 0,
            reached: 0,
            is_anchored: false,
            above: Vec::new(),
            covered: 0,
            overlay: 0,
        }
    }

    /// Sets the number of rows of the next frames that are there for a while only.
    pub fn set_overlay(&mut self, rows: usize) {
        self.overlay = rows;
    }

    /// Sets the row of the screen that the terminal has reported for the cursor.
    pub fn locate(&mut self, row: usize) {
        self.top = Some((row + self.covered).saturating_sub(self.row));
        self.anchor();
    }

    /// Rows that a live region may have without scrolling printed lines away.
    pub fn room(&self) -> usize {
        self.top.map_or(self.shown.len() - self.covered, |top| self.size.rows.saturating_sub(top))
    }

    pub fn set_abilities(&mut self, abilities: Abilities) {
        self.abilities = abilities;
    }

    /// Prints `above` into the scrollback, and draws `live` as the live region. Empty if nothing changes.
    ///
    /// A frame that is higher than the screen shows its end; its lines are cut at the width, those above are
    /// wrapped.
    pub fn draw(&mut self, above: &[Line], live: &[Line]) -> String {
        if self.abilities.is_dumb {
            return self.draw_plainly(above, live);
        }
        let live = self.frame(live);
        let mut out = String::new();
        if !above.is_empty() {
            self.print(above, live.len(), &mut out);
        }
        self.update(live, &mut out);
        self.finish(out)
    }

    /// Prints `raw` like [`Self::draw`] prints lines.
    pub fn draw_raw(&mut self, raw: &Raw, live: &[Line]) -> String {
        let rows = raw.rows;
        if rows == 0 || rows >= self.size.rows {
            return self.draw(&raw.instead, live);
        }
        let live = self.frame(live);
        let mut out = String::new();
        // First its rows are made, so that nothing scrolls while it is drawn.
        self.print(&vec![Line::new(); rows], live.len(), &mut out);
        let _ = write!(out, "\x1b[{rows}A\x1b7{}\x1b8\x1b[{rows}B", raw.sequence);
        self.drawn.push(Drawn { erase: raw.erase.clone(), below: 0 });
        self.above.clear();
        self.update(live, &mut out);
        self.finish(out)
    }

    /// Redraws after a resize. How the terminal has moved its rows is unknown: they are cleared and filled
    /// with `tail`, the end of the printed lines, and `live`, both laid out for the new width. The scrollback
    /// is unchanged. Raw blocks are erased: `tail` has lines in their place.
    pub fn resize(&mut self, size: Size, tail: &[Line], live: &[Line]) -> String {
        let mut out = String::new();
        if self.abilities.is_dumb {
            self.size = size;
            return self.draw_plainly(&[], live);
        }
        let room = self.size.rows.saturating_sub(self.shown.len());
        for drawn in self.drawn.drain(..).filter(|drawn| drawn.below < room) {
            out.push_str(&drawn.erase);
        }
        self.size = size;
        let live = self.frame(live);
        let room = size.rows.saturating_sub(live.len());
        let tail = self.rows(tail);
        // Row by row: some terminals put a screen that is cleared at once into the scrollback.
        out.push_str("\x1b[H");
        let tail = tail.get(tail.len().saturating_sub(room)..);
        for line in tail.unwrap_or_default() {
            self.write(line, &mut out);
            out.push_str("\r\n");
        }
        match tail.is_some_and(|tail| !tail.is_empty()) {
            true => out.push_str("\x1b[J"),
            false => {
                out.push_str("\x1b[2K");
                out.push_str(&"\n\x1b[2K".repeat(size.rows.saturating_sub(1)));
                out.push_str("\x1b[H");
            }
        }
        self.forget();
        self.above = tail.unwrap_or_default().to_vec();
        self.top = Some(self.above.len());
        self.update(live, &mut out);
        self.finish(out)
    }

    /// Sets another height of the screen; its content is unchanged.
    pub fn set_rows(&mut self, rows: usize) {
        self.size.rows = rows;
        (self.top, self.is_anchored) = (None, false);
        (self.printed, self.reached) = (0, 0);
    }

    /// Redraws after a resize with the cursor reported in row `at`. Only the live region is redrawn: printed
    /// lines stay as the terminal has rewrapped them. `None` if the rewrapping cannot be computed:
    /// [`Self::resize`] is then needed.
    pub fn resize_at(
        &mut self,
        size: Size,
        at: usize,
        reflows: Option<bool>,
        live: &[Line],
    ) -> Option<String> {
        let cursor = self.column?;
        // The terminal has lost the lines that are covered.
        if self.covered > 0 {
            return None;
        }
        // What is left of a row that was too wide goes into further rows, or is cut off.
        let rows_of = |cells: usize| cells.div_ceil(size.columns.max(1)).max(1);
        let above = self.shown.get(..self.row).unwrap_or_default();
        let reflowed =
            above.iter().map(|line| rows_of(line.width())).sum::<usize>() + cursor / size.columns.max(1);
        let up = match reflows {
            _ if reflowed == self.row => reflowed,
            Some(true) => reflowed,
            Some(false) => self.row,
            // A terminal that cuts rows off leaves the cursor where it was.
            None if at == (self.top? + self.row).min(size.rows.saturating_sub(1)) => self.row,
            None => reflowed,
        };
        let mut out = String::new();
        if up > 0 && at > 0 {
            let _ = write!(out, "\x1b[{}A", up.min(at));
        }
        out.push('\r');
        self.size = size;
        let rewrapped = self.above.iter().rposition(|line| line.width() > size.columns);
        self.above.drain(..rewrapped.map_or(0, |last| last + 1));
        // Images are where the terminal has put them.
        self.drawn.clear();
        self.forget();
        let top = at.saturating_sub(up);
        // The terminal has moved rows into the scrollback, and may do so again: the live region goes as far from
        // them as it can.
        self.is_anchored |= self.top.is_some_and(|before| top < before);
        self.top = Some(top);
        self.erase_below(&mut out);
        let live = self.frame(live);
        self.update(live, &mut out);
        Some(self.finish(out))
    }

    /// Erases the live region, and leaves the cursor at its start.
    pub fn clear(&mut self) -> String {
        let mut out = String::new();
        if self.abilities.is_dumb {
            return self.draw_plainly(&[], &[]);
        }
        self.go_to(0, 0, &mut out);
        for line in self.above.split_off(self.above.len() - self.covered) {
            self.write(&line, &mut out);
            out.push_str("\r\n");
            self.above.push(line);
        }
        self.covered = 0;
        self.erase_below(&mut out);
        self.forget();
        self.show_cursor(true, &mut out);
        self.finish(out)
    }

    /// Shows the cursor, before other content is drawn for a while.
    pub fn rest(&mut self) -> String {
        let mut out = String::new();
        self.show_cursor(true, &mut out);
        out
    }

    /// Draws without sequences: only the last row, the one being typed, can be redrawn. The other rows are
    /// printed whenever they change.
    fn draw_plainly(&mut self, above: &[Line], live: &[Line]) -> String {
        let mut out = String::new();
        let typed = live.iter().find(|line| line.cursor.is_some());
        let others: Vec<Line> = live.iter().filter(|line| line.cursor.is_none()).cloned().collect();
        // The last cell stays free: some terminals go on to the next row when it is filled.
        let last = typed.map(|line| line.cut(self.size.columns.saturating_sub(1)));
        let shown = self.shown.first().map_or(0, Line::width);
        let is_new = !others.is_empty() && others != self.fixed;
        if above.is_empty() && !is_new && last.as_ref() == self.shown.first() {
            return out;
        }
        if self.column.take().is_none() {
            let _ = write!(out, "\r{}\r", " ".repeat(shown));
        }
        for line in above.iter().chain(others.iter().filter(|_| is_new)) {
            out.push_str(line.text().trim_end());
            out.push_str("\r\n");
        }
        if let Some(line) = &last {
            out.push_str(line.text());
        } else {
            self.column = Some(0);
        }
        self.fixed = others;
        self.shown = last.into_iter().collect();
        out
    }

    /// Resets the state: the cursor is at the beginning of an empty row, and nothing is live.
    fn forget(&mut self) {
        self.shown.clear();
        self.covered = 0;
        (self.row, self.column) = (0, Some(0));
    }

    /// The lines cut to the screen.
    fn frame(&self, lines: &[Line]) -> Vec<Line> {
        let first = lines.len().saturating_sub(self.size.rows);
        let seen = lines.get(first..).unwrap_or_default();
        seen.iter().map(|line| self.ordered(line.cut(self.size.columns))).collect()
    }

    /// The rows of printed lines.
    fn rows(&self, lines: &[Line]) -> Vec<Line> {
        let rows = lines.iter().flat_map(|line| wrap(line, self.size.columns));
        rows.map(|row| self.ordered(row)).collect()
    }

    /// A row in the order in which it is read.
    fn ordered(&self, row: Line) -> Line {
        match self.abilities.reorders {
            true => bidi::reordered(&row).unwrap_or(row),
            false => row,
        }
    }

    fn finish(&self, out: String) -> String {
        match self.abilities.synchronized && !out.is_empty() {
            true => format!("\x1b[?2026h{out}\x1b[?2026l"),
            false => out,
        }
    }

    /// Prints lines above the live region, which will be `next` rows high. Rows by which it becomes shorter are
    /// overwritten; for the other lines it is moved down, scrolling the screen if needed. Lines that do not fit
    /// above it are written from its first row on.
    fn print(&mut self, above: &[Line], next: usize, out: &mut String) {
        // Lines that are covered are written again, below what they stood below.
        let again = std::mem::take(&mut self.covered);
        let mut rows = self.above.split_off(self.above.len() - again);
        self.top = self.top.map(|top| top.saturating_sub(again));
        rows.extend(self.rows(above));
        let (count, live) = (rows.len(), self.shown.len());
        let over = count.min(live.saturating_sub(next));
        let added = count - over;
        let moves = again == 0 && live > 0 && added + live <= self.size.rows;
        if moves && added > 0 {
            self.go_to(live - 1, 0, out);
            out.extend(std::iter::repeat_n('\n', added));
            let _ = write!(out, "\x1b[{}A\x1b[{added}L", live - 1 + added);
        } else {
            self.go_to(0, 0, out);
        }
        for row in &rows {
            self.write(row, out);
            out.push_str("\r\n");
        }
        let gone = if moves { over } else { count.min(live) };
        self.shown.drain(..gone);
        self.printed += count - again;
        self.scroll_to(count);
        let height = self.size.rows;
        self.drawn.retain_mut(|drawn| {
            drawn.below += count - again;
            drawn.below < height
        });
        self.above.extend(rows);
        self.above.drain(..self.above.len().saturating_sub(height));
        (self.row, self.column) = (0, Some(0));
    }

    /// Moves the start of the live region down by `rows`, scrolling the screen if needed.
    fn scroll_to(&mut self, rows: usize) {
        let last = self.size.rows.saturating_sub((self.shown.len() - self.covered).max(1));
        self.top = self.top.map(|top| (top + rows).min(last));
    }

    /// Finds out whether the live region has reached the last row of the screen.
    fn anchor(&mut self) {
        let end = self.printed + self.shown.len();
        self.reached = self.reached.max(end);
        if self.top.is_none() && self.reached >= self.size.rows {
            // The lowest row that was drawn is the last one.
            self.top = Some((self.size.rows + self.printed).saturating_sub(self.reached));
        }
        let rows = self.shown.len().saturating_sub(self.overlay.max(self.covered));
        self.is_anchored |= self.top.is_some_and(|top| top + rows >= self.size.rows);
    }

    /// The rows by which a frame of `rows` rows covers printed lines.
    fn covers(&self, rows: usize) -> usize {
        let room = self.room();
        let known = self.top.map_or(0, |top| top.min(self.above.len()));
        rows.saturating_sub(room).min(self.overlay).min(known)
    }

    /// Empty rows above a frame, so that it ends on the last row of the screen.
    fn anchored(&self, live: Vec<Line>, covered: usize) -> Vec<Line> {
        let room =
            self.top.filter(|_| self.is_anchored && !live.is_empty()).map_or(0, |_| self.room() + covered);
        let mut lines = vec![Line::new(); room.saturating_sub(live.len())];
        lines.extend(live);
        lines
    }

    /// Rewrites the rows that differ from the frame on screen.
    fn update(&mut self, live: Vec<Line>, out: &mut String) {
        let covered = self.covers(live.len());
        let known = self.above.len();
        // Rows that are covered from now on, or no longer, are drawn with the frame.
        if let Some(more @ 1..) = covered.checked_sub(self.covered) {
            let newly = self.above.get(known - covered..known - self.covered).unwrap_or_default();
            self.shown.splice(0..0, newly.iter().cloned());
            self.row += more;
        }
        let back = self.covered.saturating_sub(covered);
        let mut frame = self.above.get(known - covered - back..known - covered).unwrap_or_default().to_vec();
        frame.extend(self.anchored(live, covered));
        let live = frame;
        self.covered = covered;
        for (row, line) in live.iter().enumerate() {
            let old = self.shown.get(row);
            // Of a row that is erased in part, tmux keeps the empty cells, and wraps them when it is made narrower.
            let is_shorter = old.is_some_and(|old| line.width() < old.width());
            match old.map(|old| common(old, line)) {
                Some(common) if common.all => {}
                Some(common) if !is_shorter => {
                    self.go_to(row, common.cells, out);
                    self.write(&line.slice(common.bytes..line.text().len()), out);
                }
                _ => {
                    self.go_to(row, 0, out);
                    self.write(line, out);
                }
            }
        }
        if live.len() < self.shown.len() {
            self.go_to(live.len(), 0, out);
            self.erase_below(out);
        }
        self.shown = live;
        self.shown.drain(..back);
        if self.row < back {
            self.go_to(back, 0, out);
        }
        self.row -= back;
        let cursors = self.shown.iter().enumerate().rev();
        let cursor = cursors.filter_map(|(row, line)| Some((row, line.cursor?))).next();
        self.scroll_to(0);
        self.anchor();
        match cursor {
            Some((row, column)) => {
                self.go_to(row, column.min(self.size.columns.saturating_sub(1)), out);
            }
            // Somewhere that is known.
            None => self.go_to(self.shown.len().saturating_sub(1), 0, out),
        }
        self.show_cursor(cursor.is_some(), out);
    }

    /// Erases from the cursor, in the first column, to the end of the screen.
    fn erase_below(&self, out: &mut String) {
        let is_first = self.top.is_none_or(|top| top + self.row <= self.covered) && self.size.rows > 1;
        // Some terminals put a screen that is erased from its first cell on into the scrollback.
        out.push_str(if is_first { "\x1b[K\n\x1b[J\x1b[A" } else { "\x1b[J" });
    }

    /// Writes to the end of a row, and clears the rest.
    fn write(&mut self, line: &Line, out: &mut String) {
        // First, since behind a row that is full the cursor still stands on its last character.
        out.push_str("\x1b[K");
        line.write(self.abilities.depth, self.abilities.hyperlinks, out);
        self.column = None;
    }

    /// Moves to a position in the live region; missing rows are created.
    fn go_to(&mut self, row: usize, column: usize, out: &mut String) {
        if row < self.row {
            let _ = write!(out, "\x1b[{}A", self.row - row);
        } else {
            out.extend(std::iter::repeat_n('\n', row - self.row));
        }
        if self.column != Some(column) {
            out.push('\r');
            if column > 0 {
                let _ = write!(out, "\x1b[{column}C");
            }
        }
        (self.row, self.column) = (row, Some(column));
    }

    fn show_cursor(&mut self, show: bool, out: &mut String) {
        if self.is_cursor_hidden == show {
            out.push_str(if show { "\x1b[?25h" } else { "\x1b[?25l" });
            self.is_cursor_hidden = !show;
        }
    }
}

/// The common prefix of two lines.
#[derive(Default)]
struct Common {
    bytes: usize,
    cells: usize,
    /// True if the lines look identical.
    all: bool,
}

fn common(old: &Line, new: &Line) -> Common {
    let mut common = Common::default();
    let (mut olds, mut news) = (old.spans(), new.spans());
    let (mut left, mut right) = (olds.next(), news.next());
    loop {
        let (Some(a), Some(b)) = (left, right) else {
            common.all = left.is_none() && right.is_none();
            return common;
        };
        if (a.style, a.link) != (b.style, b.link) {
            return common;
        }
        let (bytes, cells) = common_text(a.text, b.text);
        common.bytes += bytes;
        common.cells += cells;
        if bytes < a.text.len() && bytes < b.text.len() {
            return common;
        }
        // What is longer may go on in the other's next span.
        left = rest(a, bytes).or_else(|| olds.next());
        right = rest(b, bytes).or_else(|| news.next());
    }
}

fn rest(span: Span<'_>, bytes: usize) -> Option<Span<'_>> {
    let text = span.text.get(bytes..).filter(|text| !text.is_empty())?;
    Some(Span { text, ..span })
}

/// The common prefix in whole clusters: a combining character may change the one before it.
fn common_text(a: &str, b: &str) -> (usize, usize) {
    if a == b {
        return (a.len(), super::width::width(a));
    }
    let same = clusters(a).zip(clusters(b)).take_while(|(a, b)| a == b);
    let (bytes, cells) =
        same.fold((0, 0), |(bytes, cells), ((_, cluster, width), _)| (bytes + cluster.len(), cells + width));
    (bytes, cells)
}

#[cfg(test)]
pub(crate) mod emulator;
#[cfg(test)]
mod tests;
