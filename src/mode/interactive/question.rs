//! Questions from before there is a conversation: which session, whether a project is trusted.
//!
//! Each takes the terminal, is drawn in place below what is there, goes away when it is answered, and gives the
//! terminal back.

use super::dialog::Choice;
use super::dialog::sessions::picker::{Link, Picked, Picker, Place, Task};
use super::look::Look;
use super::stage::{self, Places, Stage};
use crate::runtime::config::Themes;
use crate::runtime::stored::Info;
use crate::runtime::{CancelToken, Dirs, Settings, Store};
use crate::tui::key::{Action, Code, Input, Key, Modifiers, Reply};
use crate::tui::keymap::Keymap;
use crate::tui::line::Line;
use crate::tui::screen::Screen;
use crate::tui::select;
use crate::tui::terminal::{Event, Inputs, Modes, Terminal};
use crate::tui::theme::Backdrop;
use crossbeam_channel::{Receiver, after, bounded, never, select};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What threads have for the list that is not taken in yet; then they wait.
const TASKS_MAX: usize = 16;

/// What questions are drawn with.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub dirs: &'a Dirs,
    pub settings: &'a Settings,
    pub cwd: &'a Path,
}

/// What came of a question.
#[derive(Debug)]
pub enum Answer<T> {
    Given(T),
    /// None was wanted.
    Left,
    /// The program is to end, with this exit code.
    End(u8),
}

/// Lets the user choose one of some answers.
pub fn choose(ground: Ground<'_>, title: &str, text: &str, answers: &[String]) -> io::Result<Answer<usize>> {
    ask(ground, Choice::new(title, text, answers), &never())
}

/// Lets the user choose a stored session.
pub fn pick(ground: Ground<'_>, store: &Store) -> io::Result<Answer<Info>> {
    let (sender, tasks) = bounded::<Task>(TASKS_MAX);
    let link: Link = Arc::new(move |task| {
        // Nobody may ask any more.
        let _ = sender.send(task);
    });
    let cancel = CancelToken::new();
    let place =
        Place { store: store.clone(), cwd: ground.cwd.to_owned(), current: None, cancel: cancel.clone() };
    let answer = ask(ground, Picker::new(place, link), &tasks);
    cancel.cancel();
    answer
}

/// Something that can be asked.
trait Asked {
    type Answer;
    /// What threads have for it.
    type Task;

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line>;
    /// The answer, once there is one; none inside of it where it was left.
    fn key(&mut self, key: &Key, keymap: &Keymap) -> Option<Option<Self::Answer>>;
    fn paste(&mut self, text: &str);
    fn take(&mut self, task: Self::Task);
}

impl Asked for Choice {
    type Answer = usize;
    type Task = ();

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        Self::lines(self, look, rows)
    }

    fn key(&mut self, key: &Key, keymap: &Keymap) -> Option<Option<usize>> {
        match self.handle(key, keymap) {
            select::Picked::Chosen(index) => Some(Some(index)),
            select::Picked::Cancelled => Some(None),
            select::Picked::Ignored | select::Picked::Moved => None,
        }
    }

    fn paste(&mut self, _: &str) {}

    fn take(&mut self, (): ()) {}
}

impl Asked for Picker {
    type Answer = Info;
    type Task = Task;

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        Self::lines(self, look, rows)
    }

    fn key(&mut self, key: &Key, keymap: &Keymap) -> Option<Option<Info>> {
        match self.handle(key, keymap) {
            Picked::Chosen(info) => Some(Some(*info)),
            Picked::Leave => Some(None),
            Picked::Stay | Picked::RenameCurrent(_) => None,
        }
    }

    fn paste(&mut self, text: &str) {
        Self::paste(self, text);
    }

    fn take(&mut self, task: Task) {
        task(self);
    }
}

fn ask<A: Asked>(
    ground: Ground<'_>,
    mut asked: A,
    tasks: &Receiver<A::Task>,
) -> io::Result<Answer<A::Answer>> {
    let mut terminal = Terminal::open(Modes::usual(stage::is_dumb()), super::external::keep)?;
    let places = Places {
        cwd: ground.cwd.to_owned(),
        home: ground.dirs.home().unwrap_or(Path::new("/")).to_owned(),
        agent: ground.dirs.agent().to_owned(),
    };
    // Themes of files are not known yet, and what is wrong with keys is said by the conversation's screen.
    let themes = Themes::default();
    let (mut stage, _) = Stage::new(places, ground.settings, &themes, terminal.size());
    let mut screen = Screen::new(terminal.size(), stage.abilities());
    let mut inputs = Inputs::new(|name| std::env::var(name).ok());
    let events = terminal.events().clone();
    let answer = loop {
        let lines = asked.lines(&stage.look(), stage.size.rows.saturating_sub(1).max(1));
        terminal.write(&screen.draw(&[], &lines))?;
        let timer =
            inputs.deadline().map_or_else(never, |at| after(at.saturating_duration_since(Instant::now())));
        let mut came = Vec::new();
        select! {
            recv(events) -> event => match event {
                Ok(Event::Bytes(bytes)) => came = inputs.push(&bytes, Instant::now()),
                Ok(Event::Resized) => {
                    terminal.write(&screen.clear())?;
                    stage.size = terminal.size();
                    screen = Screen::new(stage.size, stage.abilities());
                }
                Ok(Event::Suspend) => {
                    terminal.write(&screen.clear())?;
                    terminal.suspend()?;
                }
                Ok(Event::Resumed) => terminal.take()?,
                Ok(Event::Signal(signal)) => {
                    break Answer::End(128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)));
                }
                Ok(Event::End) | Err(_) => break Answer::End(1),
            },
            recv(tasks) -> task => if let Ok(task) = task {
                asked.take(task);
                tasks.try_iter().for_each(|task| asked.take(task));
            },
            recv(timer) -> _ => came = inputs.expire(),
        }
        let mut answer = None;
        for input in came {
            if let Input::Reply(reply) = &input {
                terminal.answer(reply)?;
            }
            answer = take(&mut asked, &mut stage, input);
            if answer.is_some() {
                break;
            }
        }
        if let Some(answer) = answer {
            break answer;
        }
    };
    terminal.write(&screen.clear())?;
    Ok(answer)
}

fn take<A: Asked>(asked: &mut A, stage: &mut Stage, input: Input) -> Option<Answer<A::Answer>> {
    match input {
        Input::Key(key) if key.action == Action::Release => None,
        Input::Key(key) if is_interrupt(&key) => Some(Answer::End(130)),
        Input::Key(key) => {
            let answer = asked.key(&key, &stage.keymap)?;
            Some(answer.map_or(Answer::Left, Answer::Given))
        }
        Input::Paste(text) => {
            asked.paste(&text);
            None
        }
        Input::Reply(Reply::Background(red, green, blue)) => {
            stage.backdrop = Backdrop::of(red, green, blue);
            let _ = stage.choose_theme();
            None
        }
        Input::Focus(_) | Input::Reply(_) | Input::Mouse(_) => None,
    }
}

/// Ctrl+C ends the program, as it does where nothing is drawn.
fn is_interrupt(key: &Key) -> bool {
    key.code == Code::Char('c') && key.modifiers == Modifiers::CTRL
}
