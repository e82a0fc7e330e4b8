//! The loop: waits for keys, news and timeouts, handles all that are pending, then draws once.

use super::feed::{Feed, News};
use super::screen::{Frame, Screen};
use crate::runtime::CancelToken;
use crate::tui::key::{Input, Reply};
use crate::tui::terminal::{Event, Inputs, Terminal};
use crossbeam_channel::{after, never, select};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of text that are laid out before the keyboard is polled again.
const TEXT_AT_ONCE: usize = 16 << 10;

/// Longest wait for the answers to the first queries.
const FIRST: Duration = Duration::from_millis(100);

/// Content of the screen: the conversation, or a question before it.
pub trait Client: Frame {
    fn feed(&self) -> Arc<Feed>;

    fn input(&mut self, input: Input, now: Instant);

    /// Handles news.
    fn take(&mut self, news: News, now: Instant);

    /// Called after a wait for [`Self::changes_in`], and at other times.
    fn timed(&mut self, now: Instant) {
        let _ = now;
    }

    /// Handles a signal that requests the end of the program.
    fn signal(&mut self, signal: i32);

    /// Called when the terminal is gone.
    fn lost(&mut self) {}

    fn is_over(&self) -> bool;

    /// True once if the program should be suspended.
    fn suspends(&mut self) -> bool {
        false
    }

    /// Command of an editor that should get the terminal, if any.
    fn editor(&mut self) -> Option<String> {
        None
    }

    /// Runs the editor command.
    fn edit(&mut self, command: &str) {
        let _ = command;
    }

    /// Time until the frame changes by itself, or other work is due.
    fn changes_in(&self, now: Instant) -> Option<Duration> {
        let _ = now;
        None
    }

    /// Queries whose answers the first lines are drawn by. An answer with the background comes last.
    fn first_queries(&mut self) -> String {
        String::new()
    }

    /// Called once, before anything is drawn.
    fn begin(&mut self) {}

    /// Removes the frame at the end; its final part is printed.
    fn end(&mut self, screen: &mut Screen<'_>, now: Instant) -> io::Result<()>;
}

pub struct EventLoop<'a, C> {
    client: &'a mut C,
    screen: Screen<'a>,
    inputs: Inputs,
    /// News taken from the feed and not handled yet.
    news: VecDeque<News>,
    /// True if there is news in the feed, for the next frame.
    has_news: bool,
    suspends: bool,
    /// True once the terminal has told its colours, or will not.
    is_told: bool,
    /// Until then the first lines wait for the answers to the first queries, unless a key is pressed.
    first: Option<Instant>,
}

impl<'a, C: Client> EventLoop<'a, C> {
    /// With `is_guest` the cursor position is not queried, and the rows above are left alone.
    pub fn new(client: &'a mut C, terminal: &'a mut Terminal, is_guest: bool) -> Self {
        let screen = Screen::new(terminal, client.abilities(), is_guest);
        let inputs = Inputs::new(|name| std::env::var(name).ok());
        Self {
            client,
            screen,
            inputs,
            news: VecDeque::new(),
            has_news: false,
            suspends: false,
            is_told: false,
            first: None,
        }
    }

    /// Runs until the client ends, the terminal is gone or `cancel` is cancelled.
    pub fn run(&mut self, cancel: &CancelToken) -> io::Result<()> {
        let feed = self.client.feed();
        let woken = feed.woken().clone();
        let events = self.screen.terminal.events().clone();
        self.ask_first()?;
        loop {
            let now = Instant::now();
            if self.first.is_some_and(|until| self.is_told || until <= now) {
                self.begin();
            }
            if self.client.is_over() || cancel.is_cancelled() {
                return self.end(&feed, now);
            }
            if std::mem::take(&mut self.suspends) || self.client.suspends() {
                self.screen.leave(self.client, now)?;
                self.screen.terminal.suspend()?;
            }
            let free_in = self.screen.pace.free_in(now);
            if self.has_news
                && self.first.is_none()
                && free_in.is_zero()
                && self.screen.held_for(now).is_none()
            {
                self.has_news = false;
                self.news.extend(feed.take());
                self.take_news(now);
            }
            // What is drawn begins with the first lines.
            let holds = self.first.is_some() || self.screen.position.holds();
            if self.screen.pace.is_due(now) && !holds {
                self.screen.paint(self.client, &mut self.inputs, now)?;
            }
            let held = self.screen.held_for(now);
            let news = if self.has_news { never() } else { woken.clone() };
            let in_time = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
            let sleep = [
                self.screen.pace.due_in(now).filter(|_| !holds),
                in_time(self.inputs.deadline()),
                in_time(self.screen.position.deadline()),
                in_time(self.first),
                self.client.changes_in(now),
                held,
                (self.has_news && self.first.is_none())
                    .then_some(self.screen.pace.free_in(now))
                    .filter(|_| held.is_none()),
                // There is more to take in, but keys come first.
                (!self.news.is_empty() && held.is_none()).then_some(Duration::ZERO),
            ];
            let timer = sleep.into_iter().flatten().min().map_or_else(never, after);
            select! {
                recv(events) -> event => {
                    if !self.handle(event.ok())? {
                        return Ok(());
                    }
                }
                recv(news) -> _ => self.has_news = true,
                recv(timer) -> _ => self.timed()?,
                recv(cancel.receiver()) -> _ => {}
            }
        }
    }

    /// Sends the first queries.
    fn ask_first(&mut self) -> io::Result<()> {
        let queries = self.client.first_queries();
        let wait = if queries.is_empty() { Duration::ZERO } else { FIRST };
        self.first = Some(Instant::now() + wait);
        self.screen.terminal.write(&queries)
    }

    /// Prints the first lines.
    fn begin(&mut self) {
        if self.first.take().is_some() {
            self.client.begin();
            self.screen.pace.soon();
        }
    }

    /// Handles an event of the terminal. False if the terminal is gone.
    fn handle(&mut self, event: Option<Event>) -> io::Result<bool> {
        match event {
            Some(Event::Bytes(bytes)) => {
                let now = Instant::now();
                let inputs = self.inputs.push(&bytes, now);
                self.take(inputs, now)?;
            }
            Some(Event::Resized) => self.screen.resized(self.client)?,
            Some(Event::Suspend) => self.suspends = true,
            Some(Event::Resumed) => {
                self.screen.terminal.take()?;
                self.screen.begin(self.client)?;
            }
            Some(Event::Signal(signal)) => self.client.signal(signal),
            Some(Event::End) | None => {
                self.client.lost();
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Handles news, limited in text so that keys are not delayed.
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
            self.client.take(news, now);
        }
        self.screen.pace.soon();
    }

    fn timed(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.screen.held_for(now).is_none() {
            self.take_news(now);
        }
        if self.inputs.deadline().is_some_and(|at| at <= now) {
            let inputs = self.inputs.expire();
            self.take(inputs, now)?;
        }
        self.client.timed(now);
        self.screen.timed(self.client, &mut self.inputs, now)
    }

    fn take(&mut self, inputs: Vec<Input>, now: Instant) -> io::Result<()> {
        for input in inputs {
            // The position is asked for later than the colours.
            self.is_told |= matches!(input, Input::Reply(Reply::Background(..) | Reply::Position { .. }));
            match &input {
                Input::Reply(reply) if self.screen.answered(reply, self.client, now)? => continue,
                Input::Reply(_) => {}
                _ => {
                    self.begin();
                    self.screen.pace.at_once();
                }
            }
            self.client.input(input, now);
            if let Some(command) = self.client.editor() {
                self.screen.leave(self.client, now)?;
                self.screen.terminal.hand_over();
                self.client.edit(&command);
                self.screen.terminal.resume()?;
                self.screen.begin(self.client)?;
            }
            if self.client.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self, feed: &Feed, now: Instant) -> io::Result<()> {
        self.news.extend(feed.take());
        for news in self.news.drain(..) {
            self.client.take(news, now);
        }
        self.client.end(&mut self.screen, now)
    }
}
