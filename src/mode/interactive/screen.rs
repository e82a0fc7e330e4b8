//! Writes the parts of a frame to the terminal, at the right time and place.
//!
//! Finished parts are printed and left to the terminal. Unfinished parts are redrawn below. In fullscreen
//! mode, and for the viewer, the alternate screen is drawn instead.

use super::config::is_dumb;
use super::pace::Pace;
use super::position::{Meaning, Position, reflows};
use super::transcript::Printed;
use crate::base::failpoint;
use crate::tui::key::Reply;
use crate::tui::line::Line;
use crate::tui::screen::{Abilities, Screen as Renderer, Size};
use crate::tui::terminal::{ASK_POSITION, Inputs, Modes, Terminal};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Content to draw.
pub trait Frame {
    fn abilities(&self) -> Abilities;

    /// Called when the size of the terminal changes.
    fn set_size(&mut self, size: Size);

    /// Everything that may still change, from top to bottom.
    fn live(&mut self, now: Instant) -> Vec<Line>;

    /// Lines to print into the scrollback, above the live part.
    fn printed(&mut self, now: Instant) -> Vec<Printed> {
        let _ = now;
        Vec::new()
    }

    /// The last `rows` printed lines.
    fn tail(&self, rows: usize) -> Vec<Line> {
        let _ = rows;
        Vec::new()
    }

    /// Rows of the live part that are there for a while only, and may cover printed lines.
    fn overlay(&self) -> usize {
        0
    }

    /// True if the alternate screen is used. `room`: rows that the live part may have on the normal screen
    /// without scrolling printed lines away.
    fn is_full(&mut self, room: usize, now: Instant) -> bool {
        let _ = (room, now);
        false
    }

    /// Content of the alternate screen.
    fn whole(&mut self, now: Instant) -> Vec<Line> {
        let _ = now;
        Vec::new()
    }

    /// Modes to switch on with the alternate screen.
    fn other_modes(&self) -> Modes {
        Modes::ALTERNATE
    }

    /// Escape sequences to write besides the frame, and those that undo them.
    fn sequences(&mut self, now: Instant) -> (String, String) {
        let _ = now;
        (String::new(), String::new())
    }

    /// True once if everything should be redrawn.
    fn redraws(&mut self) -> bool {
        false
    }
}

pub struct Screen<'a> {
    pub terminal: &'a mut Terminal,
    size: Size,
    usual: Renderer,
    /// Renderer of the alternate screen, while in use.
    other: Option<Renderer>,
    /// True if the normal screen has changed since it was left.
    is_stale: bool,
    pub pace: Pace,
    pub position: Position,
    /// Lines to print when the line is fast enough.
    backlog: VecDeque<Printed>,
    /// True if the rows above the frame are another program's, and never redrawn.
    is_guest: bool,
}

fn is_termux() -> bool {
    std::env::var_os("TERMUX_VERSION").is_some()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl<'a> Screen<'a> {
    pub fn new(terminal: &'a mut Terminal, abilities: Abilities, is_guest: bool) -> Self {
        let size = terminal.size();
        Self {
            terminal,
            size,
            usual: Renderer::new(size, abilities),
            other: None,
            is_stale: false,
            pace: Pace::default(),
            position: match is_guest || is_dumb() {
                true => Position::new(variable).silent(),
                false => Position::new(variable),
            },
            backlog: VecDeque::new(),
            is_guest,
        }
    }

    /// Removes the frame and releases the terminal.
    pub fn leave(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        self.leave_full(frame, now)?;
        let text = self.usual.clear();
        self.terminal.write(&text)
    }

    /// Draws after others have written; the cursor is on an empty row.
    pub fn begin(&mut self, frame: &mut impl Frame) -> io::Result<()> {
        self.size = self.terminal.size();
        frame.set_size(self.size);
        if self.other.is_some() {
            self.is_stale = true;
            return self.clear_other(frame);
        }
        self.usual = Renderer::new(self.size, frame.abilities());
        self.position.forget();
        self.pace.at_once();
        match is_dumb() {
            true => Ok(()),
            false => self.terminal.write("\r\x1b[J"),
        }
    }

    pub fn resized(&mut self, frame: &mut impl Frame) -> io::Result<()> {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.size, self.terminal.size());
        let size = self.size;
        frame.set_size(size);
        if self.is_guest {
            let text = self.usual.clear();
            self.terminal.write(&text)?;
            self.usual = Renderer::new(size, frame.abilities());
            self.pace.at_once();
            return Ok(());
        }
        // There the keyboard comes and goes, and with it the height: nothing is to be laid out anew.
        if self.other.is_none() && size.columns == before.columns && is_termux() {
            self.usual.set_rows(size.rows);
            self.position.forget();
            self.pace.soon();
            return Ok(());
        }
        if self.other.is_some() {
            self.is_stale = true;
            return self.clear_other(frame);
        }
        self.position.resized(now);
        Ok(())
    }

    /// Redraws after the size has settled: now, or when the terminal has said where the cursor is.
    fn settled(&mut self, frame: &mut impl Frame, inputs: &mut Inputs, now: Instant) -> io::Result<()> {
        if self.position.settled(now) { self.ask(inputs) } else { self.draw_all(frame, now) }
    }

    /// Time that news has to wait: until the size has settled, so that text is laid out for the width that it is
    /// drawn in, or until the last frame has arrived.
    pub fn held_for(&self, now: Instant) -> Option<Duration> {
        let settled = self.position.deadline().filter(|_| self.position.holds());
        settled.map(|at| at.saturating_duration_since(now)).or_else(|| self.pace.held_for(now))
    }

    fn ask(&mut self, inputs: &mut Inputs) -> io::Result<()> {
        inputs.await_position();
        self.terminal.write(ASK_POSITION)
    }

    /// Handles a reply of the terminal; true for a cursor position, which no one else needs.
    pub fn answered(&mut self, reply: &Reply, frame: &mut impl Frame, now: Instant) -> io::Result<bool> {
        let Reply::Position { row, .. } = reply else {
            self.terminal.answer(reply)?;
            self.pace.soon();
            return Ok(false);
        };
        match self.position.answered() {
            _ if self.other.is_some() => self.is_stale = true,
            Meaning::Place => self.usual.locate(*row),
            Meaning::Nothing => {}
            Meaning::Resize => {
                let live = frame.live(now);
                match self.usual.resize_at(self.size, *row, reflows(variable), &live) {
                    Some(text) => self.terminal.write(&text)?,
                    None => self.draw_all(frame, now)?,
                }
            }
        }
        if self.position.is_quiet() {
            self.pace.arrived(now);
        }
        Ok(true)
    }

    /// Handles passed deadlines.
    pub fn timed(&mut self, frame: &mut impl Frame, inputs: &mut Inputs, now: Instant) -> io::Result<()> {
        if self.position.expired(now) && self.other.is_none() {
            self.draw_all(frame, now)?;
        }
        if self.position.settles(now) && self.other.is_none() {
            self.settled(frame, inputs, now)?;
        }
        self.pace.soon();
        Ok(())
    }

    /// Switches to the alternate screen.
    fn enter_other(&mut self, frame: &impl Frame) -> io::Result<()> {
        let text = self.usual.rest();
        self.terminal.write(&text)?;
        self.terminal.switch_screen(frame.other_modes(), true)?;
        self.clear_other(frame)
    }

    fn clear_other(&mut self, frame: &impl Frame) -> io::Result<()> {
        self.other = Some(Renderer::new(self.size, frame.abilities()));
        self.pace.at_once();
        self.terminal.write("\x1b[0m\x1b[2J\x1b[H")
    }

    /// Returns to the normal screen, and draws it if it has changed.
    pub fn leave_full(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        match self.leave_other()? {
            true => self.draw_all(frame, now),
            false => Ok(()),
        }
    }

    /// Returns to the normal screen. True if it has changed, and is to be redrawn.
    fn leave_other(&mut self) -> io::Result<bool> {
        let Some(mut other) = self.other.take() else {
            return Ok(false);
        };
        self.terminal.write(&other.rest())?;
        self.terminal.switch_screen(Modes::ALTERNATE | Modes::MOUSE, false)?;
        Ok(std::mem::take(&mut self.is_stale))
    }

    fn paint_other(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        let Some(renderer) = &mut self.other else {
            return Ok(());
        };
        let (sequences, farewell) = frame.sequences(now);
        self.terminal.set_farewell(&farewell);
        let mut text = String::new();
        if frame.redraws() {
            renderer.set_abilities(frame.abilities());
            text = renderer.clear();
        }
        let lines = frame.whole(now);
        text.push_str(&renderer.draw(&[], &lines));
        text.push_str(&sequences);
        if !text.is_empty() {
            self.terminal.write(&text)?;
        }
        self.pace.painted(now, Instant::now());
        Ok(())
    }

    /// Draws the changes.
    pub fn paint(&mut self, frame: &mut impl Frame, inputs: &mut Inputs, now: Instant) -> io::Result<()> {
        failpoint::hit("screen.paint")?;
        if self.terminal.size() != self.size {
            // The signal is on its way. Rows that are too wide would be wrapped.
            return self.resized(frame);
        }
        if frame.is_full(self.usual.room(), now) {
            if self.other.is_none() {
                self.enter_other(frame)?;
            }
            return self.paint_other(frame, now);
        }
        if self.leave_other()? {
            return self.settled(frame, inputs, now);
        }
        let (sequences, farewell) = frame.sequences(now);
        self.terminal.set_farewell(&farewell);
        self.backlog.extend(frame.printed(now));
        let rows = match (self.pace.is_slow(), self.pace.is_urgent()) {
            (false, _) => usize::MAX,
            (true, false) => self.size.rows,
            // A key is not to wait for what streams.
            (true, true) => 0,
        };
        let printed = take_rows(&mut self.backlog, rows);
        let live = frame.live(now);
        self.usual.set_overlay(frame.overlay());
        let mut text = String::new();
        if frame.redraws() {
            self.usual.set_abilities(frame.abilities());
            text = self.usual.clear();
        }
        text.push_str(&print(&mut self.usual, printed, &live));
        text.push_str(&sequences);
        let streams = !text.is_empty() && !self.pace.is_urgent();
        if !text.is_empty() {
            self.terminal.write(&text)?;
        }
        let painted = Instant::now();
        self.pace.painted(now, painted);
        if !self.backlog.is_empty() {
            self.pace.soon();
        }
        if self.position.drawn(now) || (streams && self.position.trace(now)) {
            self.ask(inputs)?;
            if self.position.has_answered() {
                self.pace.asked(painted);
            }
        }
        Ok(())
    }

    /// Redraws everything that fits, wherever the frame was.
    fn draw_all(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        let live = frame.live(now);
        let tail = frame.tail(self.size.rows);
        let text = self.usual.resize(self.size, &tail, &live);
        self.position.forget();
        self.terminal.write(&text)
    }

    /// Prints finished lines and removes the rest of the frame.
    pub fn end(
        &mut self,
        frame: &mut impl Frame,
        last: Vec<Printed>,
        farewell: &str,
        now: Instant,
    ) -> io::Result<()> {
        self.leave_full(frame, now)?;
        let mut printed: Vec<Printed> = self.backlog.drain(..).collect();
        printed.extend(last);
        let text = match printed.is_empty() {
            true => self.usual.clear(),
            false => print(&mut self.usual, printed, &[]),
        };
        self.terminal.write(&(text + farewell))
    }
}

/// Takes the first `rows` rows of the backlog, or slightly more.
fn take_rows(backlog: &mut VecDeque<Printed>, rows: usize) -> Vec<Printed> {
    let mut out = Vec::new();
    let mut room = rows;
    while room > 0
        && let Some(next) = backlog.pop_front()
    {
        match next {
            Printed::Lines(mut lines) => {
                if lines.len() > room {
                    backlog.push_front(Printed::Lines(lines.split_off(room)));
                }
                room -= lines.len();
                out.push(Printed::Lines(lines));
            }
            Printed::Image(raw) => {
                room = room.saturating_sub(raw.rows);
                out.push(Printed::Image(raw));
            }
        }
    }
    out
}

/// Prints lines into the scrollback, above the live part.
fn print(renderer: &mut Renderer, printed: Vec<Printed>, live: &[Line]) -> String {
    if printed.is_empty() {
        return renderer.draw(&[], live);
    }
    let draw = |printed: Printed| match printed {
        Printed::Lines(lines) => renderer.draw(&lines, live),
        Printed::Image(raw) => renderer.draw_raw(&raw, live),
    };
    printed.into_iter().map(draw).collect()
}
