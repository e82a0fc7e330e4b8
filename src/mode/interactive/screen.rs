//! The screen: what of the frame goes to the terminal, when, and where it is there.
//!
//! What is finished is printed and from then on the terminal's. What may still change is drawn again below it. In
//! fullscreen mode, and for the viewer, all of the terminal's other screen is drawn.

use super::config::is_dumb;
use super::pace::Pace;
use super::position::{Meaning, Position, reflows};
use super::transcript::Printed;
use crate::tui::key::Reply;
use crate::tui::line::Line;
use crate::tui::screen::{Abilities, Screen as Renderer, Size};
use crate::tui::terminal::{ASK_POSITION, Inputs, Modes, Terminal};
use std::collections::VecDeque;
use std::io;
use std::time::Instant;

/// What is drawn.
pub trait Frame {
    fn abilities(&self) -> Abilities;

    /// The terminal has another size.
    fn set_size(&mut self, size: Size);

    /// Everything that may still change, from top to bottom.
    fn live(&mut self, now: Instant) -> Vec<Line>;

    /// What is to be printed for good, above what is live.
    fn printed(&mut self, now: Instant) -> Vec<Printed> {
        let _ = now;
        Vec::new()
    }

    /// The end of what was printed.
    fn tail(&self, rows: usize) -> Vec<Line> {
        let _ = rows;
        Vec::new()
    }

    /// True if all of the terminal's other screen is drawn.
    fn is_full(&self) -> bool {
        false
    }

    /// All of the other screen.
    fn whole(&mut self, now: Instant) -> Vec<Line> {
        let _ = now;
        Vec::new()
    }

    /// What is switched on with the other screen.
    fn other_modes(&self) -> Modes {
        Modes::ALTERNATE
    }

    /// Sequences that are no part of a frame; and what takes back what they have set.
    fn sequences(&mut self, now: Instant) -> (String, String) {
        let _ = now;
        (String::new(), String::new())
    }

    /// True once if everything is to be drawn again.
    fn redraws(&mut self) -> bool {
        false
    }
}

pub struct Screen<'a> {
    pub terminal: &'a mut Terminal,
    size: Size,
    usual: Renderer,
    /// The terminal's other screen, while all of it is drawn.
    other: Option<Renderer>,
    /// The usual screen is not as it was left.
    is_stale: bool,
    pub pace: Pace,
    pub position: Position,
    /// Printed when the line has room for it.
    backlog: VecDeque<Printed>,
    /// What is above the frame was there before: nothing of it is drawn again.
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
                true => Position::unknown(),
                false => Position::default(),
            },
            backlog: VecDeque::new(),
            is_guest,
        }
    }

    /// Takes the frame away and leaves the terminal to others.
    pub fn leave(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        self.leave_full(frame, now)?;
        let text = self.usual.clear();
        self.terminal.write(&text)
    }

    /// Others have written; the cursor is on a row of its own.
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

    pub fn resized(&mut self, frame: &mut impl Frame, inputs: &mut Inputs) -> io::Result<()> {
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
        if self.position.resized(now) { self.ask(inputs) } else { self.draw_all(frame, now) }
    }

    fn ask(&mut self, inputs: &mut Inputs) -> io::Result<()> {
        inputs.await_position();
        self.terminal.write(ASK_POSITION)
    }

    /// Takes in what the terminal has answered; true for its place, which is for nobody else.
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

    /// Looks at the time.
    pub fn timed(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        if self.position.expired(now) && self.other.is_none() {
            self.draw_all(frame, now)?;
        }
        self.pace.soon();
        Ok(())
    }

    /// Goes to the other screen, which is drawn whole.
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

    /// Goes back, to what was there before.
    pub fn leave_full(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        let Some(mut other) = self.other.take() else {
            return Ok(());
        };
        self.terminal.write(&other.rest())?;
        self.terminal.switch_screen(Modes::ALTERNATE | Modes::MOUSE, false)?;
        match std::mem::take(&mut self.is_stale) {
            true => self.draw_all(frame, now),
            false => Ok(()),
        }
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

    /// Draws what has changed.
    pub fn paint(&mut self, frame: &mut impl Frame, inputs: &mut Inputs, now: Instant) -> io::Result<()> {
        if frame.is_full() {
            if self.other.is_none() {
                self.enter_other(frame)?;
            }
            return self.paint_other(frame, now);
        }
        self.leave_full(frame, now)?;
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

    /// Draws everything that there is room for, wherever it was.
    fn draw_all(&mut self, frame: &mut impl Frame, now: Instant) -> io::Result<()> {
        let live = frame.live(now);
        let tail = frame.tail(self.size.rows);
        let text = self.usual.resize(self.size, &tail, &live);
        self.position.forget();
        self.terminal.write(&text)
    }

    /// Prints what there is; the rest of the frame is taken away.
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

/// The first `rows` rows of what is to be printed, or somewhat more.
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

/// Prints for good, above what is live.
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
