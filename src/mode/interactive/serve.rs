//! The loop: waits for keys, news and time, takes in what is there, then draws once.

use super::app::App;
use super::feed::News;
use super::pace::Pace;
use super::position::{Meaning, Position, reflows};
use super::stage::is_dumb;
use super::transcript::Printed;
use crate::runtime::CancelToken;
use crate::tui::key::{Input, Reply};
use crate::tui::line::Line;
use crate::tui::screen::Screen;
use crate::tui::terminal::{ASK_POSITION, Event, Inputs, Modes, Terminal};
use crossbeam_channel::{after, never, select};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// Text that is laid out between two looks at the keyboard, in bytes.
const TEXT_AT_ONCE: usize = 16 << 10;

pub struct Serving<'a> {
    app: &'a mut App,
    terminal: &'a mut Terminal,
    screen: Screen,
    /// Of the terminal's other screen, while all of it is drawn there.
    other: Option<Screen>,
    /// The usual screen is not as it was left.
    is_stale: bool,
    inputs: Inputs,
    pace: Pace,
    position: Position,
    /// Taken from the feed, and not looked at yet.
    news: VecDeque<News>,
    /// Printed when the line has room for it.
    backlog: VecDeque<Printed>,
}

fn is_termux() -> bool {
    std::env::var_os("TERMUX_VERSION").is_some()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl<'a> Serving<'a> {
    pub fn new(app: &'a mut App, terminal: &'a mut Terminal) -> Self {
        let screen = Screen::new(terminal.size(), app.stage.abilities());
        Self {
            app,
            terminal,
            screen,
            other: None,
            is_stale: false,
            inputs: Inputs::new(variable),
            pace: Pace::default(),
            position: match is_dumb() {
                true => Position::unknown(),
                false => Position::default(),
            },
            news: VecDeque::new(),
            backlog: VecDeque::new(),
        }
    }

    /// Until the user leaves, the terminal is gone or `cancel` says so.
    pub fn serve(&mut self, cancel: &CancelToken) -> io::Result<()> {
        let woken = self.app.feed.woken().clone();
        let events = self.terminal.events().clone();
        loop {
            let now = Instant::now();
            if self.app.is_over || cancel.is_cancelled() {
                return self.end(now);
            }
            if std::mem::take(&mut self.app.suspends) {
                self.leave_other(now)?;
                let text = self.screen.clear();
                self.terminal.write(&text)?;
                self.terminal.suspend()?;
            }
            if self.pace.is_due(now) && !self.position.holds() {
                self.paint(now)?;
            }
            let held = self.pace.held_for(now);
            let news = if held.is_some() { never() } else { woken.clone() };
            let in_time = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
            let sleep = [
                self.pace.due_in(now).filter(|_| !self.position.holds()),
                in_time(self.inputs.deadline()),
                in_time(self.position.deadline()),
                self.app.changes_in(now),
                held,
                // There is more to take in, but keys come first.
                (!self.news.is_empty() && held.is_none()).then_some(Duration::ZERO),
            ];
            let timer = sleep.into_iter().flatten().min().map_or_else(never, after);
            select! {
                recv(events) -> event => match event {
                    Ok(Event::Bytes(bytes)) => {
                        let now = Instant::now();
                        let inputs = self.inputs.push(&bytes, now);
                        self.take(inputs, now)?;
                    }
                    Ok(Event::Resized) => self.resized()?,
                    Ok(Event::Suspend) => self.app.suspends = true,
                    Ok(Event::Resumed) => {
                        self.terminal.take()?;
                        self.begin()?;
                    }
                    // Who watches for signals cancels the token.
                    Ok(Event::Signal(_)) => {}
                    Ok(Event::End) | Err(_) => return Ok(()),
                },
                recv(news) -> _ => {
                    self.news.extend(self.app.feed.take());
                    self.take_news(Instant::now());
                },
                recv(timer) -> _ => self.timed()?,
                recv(cancel.receiver()) -> _ => {}
            }
        }
    }

    /// Takes in what happened, but only so much text that a key does not wait for it.
    fn take_news(&mut self, now: Instant) {
        let mut room = TEXT_AT_ONCE;
        while room > 0
            && let Some(mut news) = self.news.pop_front()
        {
            if let News::Piece { index, kind, text } = &mut news {
                let mut cut = room.min(text.len());
                while !text.is_char_boundary(cut) {
                    cut -= 1;
                }
                if cut < text.len() {
                    let rest = text.split_off(cut);
                    let (index, kind) = (*index, *kind);
                    let text = rest;
                    self.news.push_front(News::Piece { index, kind, text });
                }
                room = room.saturating_sub(text.len().max(1));
            }
            self.app.take(news, now);
        }
        self.pace.soon();
    }

    fn timed(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.pace.held_for(now).is_none() {
            self.take_news(now);
        }
        if self.inputs.deadline().is_some_and(|at| at <= now) {
            let inputs = self.inputs.expire();
            self.take(inputs, now)?;
        }
        if self.position.expired(now) && self.other.is_none() {
            self.draw_all(now)?;
        }
        self.pace.soon();
        Ok(())
    }

    fn take(&mut self, inputs: Vec<Input>, now: Instant) -> io::Result<()> {
        for input in inputs {
            match &input {
                Input::Reply(Reply::Position { row, .. }) => {
                    self.located(*row, now)?;
                    if self.position.is_quiet() {
                        self.pace.arrived(now);
                    }
                    continue;
                }
                Input::Reply(reply) => {
                    self.terminal.answer(reply)?;
                    self.pace.soon();
                }
                _ => self.pace.at_once(),
            }
            self.app.input(input, now);
            if let Some(lend) = self.app.lends.take() {
                self.leave_other(now)?;
                let text = self.screen.clear();
                self.terminal.write(&text)?;
                self.terminal.lend();
                lend(self.app);
                self.terminal.resume()?;
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Others have written; the cursor is on a row of its own.
    fn begin(&mut self) -> io::Result<()> {
        self.app.stage.size = self.terminal.size();
        if self.other.is_some() {
            self.is_stale = true;
            return self.clear_other();
        }
        self.screen = Screen::new(self.app.stage.size, self.app.stage.abilities());
        self.position.forget();
        self.pace.at_once();
        match is_dumb() {
            true => Ok(()),
            false => self.terminal.write("\r\x1b[J"),
        }
    }

    fn resized(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.app.stage.size, self.terminal.size());
        let size = self.app.stage.size;
        // There the keyboard comes and goes, and with it the height: nothing is to be laid out anew.
        if self.other.is_none() && size.columns == before.columns && is_termux() {
            self.screen.set_rows(size.rows);
            self.position.forget();
            self.pace.soon();
            return Ok(());
        }
        if self.other.is_some() {
            self.is_stale = true;
            return self.clear_other();
        }
        if self.position.resized(now) { self.ask() } else { self.draw_all(now) }
    }

    fn ask(&mut self) -> io::Result<()> {
        self.inputs.await_position();
        self.terminal.write(ASK_POSITION)
    }

    /// The terminal says where the cursor is.
    fn located(&mut self, row: usize, now: Instant) -> io::Result<()> {
        match self.position.answered() {
            _ if self.other.is_some() => self.is_stale = true,
            Meaning::Place => self.screen.locate(row),
            Meaning::Nothing => {}
            Meaning::Resize => {
                let live = self.app.live(now);
                let size = self.app.stage.size;
                match self.screen.resize_at(size, row, reflows(variable), &live) {
                    Some(text) => self.terminal.write(&text)?,
                    None => self.draw_all(now)?,
                }
            }
        }
        Ok(())
    }

    /// Goes to the other screen, which is drawn whole.
    fn enter_other(&mut self) -> io::Result<()> {
        let text = self.screen.rest();
        self.terminal.write(&text)?;
        self.terminal.switch_screen(self.app.other_modes(), true)?;
        self.clear_other()
    }

    fn clear_other(&mut self) -> io::Result<()> {
        let (size, abilities) = (self.app.stage.size, self.app.stage.abilities());
        self.other = Some(Screen::new(size, abilities));
        self.pace.at_once();
        self.terminal.write("\x1b[0m\x1b[2J\x1b[H")
    }

    /// Goes back, to what was there before.
    fn leave_other(&mut self, now: Instant) -> io::Result<()> {
        let Some(mut other) = self.other.take() else {
            return Ok(());
        };
        self.terminal.write(&other.rest())?;
        self.terminal.switch_screen(Modes::ALTERNATE | Modes::MOUSE, false)?;
        match std::mem::take(&mut self.is_stale) {
            true => self.draw_all(now),
            false => Ok(()),
        }
    }

    /// Draws the whole of the other screen.
    fn paint_other(&mut self, now: Instant) -> io::Result<()> {
        let Some(screen) = &mut self.other else {
            return Ok(());
        };
        let app = &mut *self.app;
        app.tell_terminal(now);
        self.terminal.set_farewell(&app.title.ending());
        let mut text = String::new();
        if std::mem::take(&mut app.redraws) {
            screen.set_abilities(app.stage.abilities());
            text = screen.clear();
        }
        let lines = app.whole(now);
        text.push_str(&screen.draw(&[], &lines));
        text.push_str(&std::mem::take(&mut app.sequences));
        if !text.is_empty() {
            self.terminal.write(&text)?;
        }
        self.pace.painted(now, Instant::now());
        Ok(())
    }

    fn paint(&mut self, now: Instant) -> io::Result<()> {
        if self.app.is_full() {
            if self.other.is_none() {
                self.enter_other()?;
            }
            return self.paint_other(now);
        }
        self.leave_other(now)?;
        let app = &mut *self.app;
        app.tell_terminal(now);
        self.terminal.set_farewell(&app.title.ending());
        self.backlog.extend(app.settle(now));
        let rows = match (self.pace.is_slow(), self.pace.is_urgent()) {
            (false, _) => usize::MAX,
            (true, false) => app.stage.size.rows,
            // A key is not to wait for what streams.
            (true, true) => 0,
        };
        let printed = take_rows(&mut self.backlog, rows);
        let live = app.live(now);
        let mut text = String::new();
        if std::mem::take(&mut app.redraws) {
            self.screen.set_abilities(app.stage.abilities());
            text = self.screen.clear();
        }
        text.push_str(&print(&mut self.screen, printed, &live));
        text.push_str(&std::mem::take(&mut app.sequences));
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
            self.ask()?;
            if self.position.has_answered() {
                self.pace.asked(painted);
            }
        }
        Ok(())
    }

    /// Draws everything that there is room for, wherever it was.
    fn draw_all(&mut self, now: Instant) -> io::Result<()> {
        let live = self.app.live(now);
        let size = self.app.stage.size;
        let tail = self.app.transcript.tail(size.rows);
        let text = self.screen.resize(size, &tail, &live);
        self.position.forget();
        self.terminal.write(&text)
    }

    /// What there is of the conversation stays, the rest is taken away.
    fn end(&mut self, now: Instant) -> io::Result<()> {
        self.news.extend(self.app.feed.take());
        for news in self.news.drain(..) {
            self.app.take(news, now);
        }
        self.app.dismiss();
        self.leave_other(now)?;
        let app = &mut *self.app;
        app.leave_fullscreen(true);
        let mut printed: Vec<Printed> = self.backlog.drain(..).collect();
        printed.extend(app.settle(now));
        let live = app.transcript.live(&app.stage.look(), now, usize::MAX);
        printed.push(Printed::Lines(live));
        let text = print(&mut self.screen, printed, &[]) + &app.title.end();
        self.terminal.write(&text)
    }
}

/// Prints for good, above what is live.
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

fn print(screen: &mut Screen, printed: Vec<Printed>, live: &[Line]) -> String {
    if printed.is_empty() {
        return screen.draw(&[], live);
    }
    let draw = |printed: Printed| match printed {
        Printed::Lines(lines) => screen.draw(&lines, live),
        Printed::Image(raw) => screen.draw_raw(&raw, live),
    };
    printed.into_iter().map(draw).collect()
}
