//! Questions before a conversation: which session to open, whether to trust a project.
//!
//! Each is a dialog that has the terminal to itself: it is drawn below the existing rows, disappears when
//! answered, and releases the terminal.

use super::config::{Places, UiConfig, is_dumb};
use super::dialog::question::question;
use super::dialog::sessions::picker::{Picker, Place};
use super::dialog::switches::switches;
pub use super::dialog::switches::{Switch, Switches};
use super::dialog::{Dialog, Dialogs};
use super::effect::Effect;
use super::event_loop::{Client, EventLoop};
use super::feed::{Feed, News};
use super::screen::{Frame, Screen};
use super::terminal::keep;
use crate::runtime::config::Themes;
use crate::runtime::{CancelToken, Dirs, Settings, Store};
use crate::tui::key::{Action, Code, Input, Key, Modifiers, Reply};
use crate::tui::line::Line;
use crate::tui::screen::{Abilities, Size};
use crate::tui::terminal::{Modes, Terminal};
use crate::tui::theme::Backdrop;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Settings that questions are drawn with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub dirs: &'a Dirs,
    pub settings: &'a Settings,
    pub cwd: &'a Path,
}

/// Result of a question.
#[derive(Debug)]
pub enum Answer<T> {
    Given(T),
    /// The question was left without an answer.
    Left,
    /// The program should end, with this exit code.
    End(u8),
}

/// Asks the user to choose an answer.
pub fn choose(
    context: Context<'_>,
    title: &str,
    text: &str,
    answers: &[String],
) -> io::Result<Answer<usize>> {
    let dialog = question(title, text, answers, |answer| answer.map(Effect::Answer).into_iter().collect());
    let answer = ask(context, dialog, Arc::new(Feed::new()))?;
    Ok(answer.map(|effect| match effect {
        Effect::Answer(index) => Some(index),
        _ => None,
    }))
}

/// Asks the user to choose a stored session. Returns its file.
pub fn pick(context: Context<'_>, store: &Store) -> io::Result<Answer<PathBuf>> {
    let feed = Arc::new(Feed::new());
    let cancel = CancelToken::new();
    let place =
        Place { store: store.clone(), cwd: context.cwd.to_owned(), current: None, cancel: cancel.clone() };
    let answer = ask(context, Picker::new(place, feed.clone()), feed);
    cancel.cancel();
    Ok(answer?.map(|effect| match effect {
        Effect::Open(session) => Some(session.path),
        _ => None,
    }))
}

/// Lets the user switch things on and off, until he leaves. Gives the exit code of the program.
pub fn switch(context: Context<'_>, source: impl Switches + 'static) -> io::Result<u8> {
    Ok(match ask(context, switches(source), Arc::new(Feed::new()))? {
        Answer::End(code) => code,
        Answer::Left | Answer::Given(_) => 0,
    })
}

impl Answer<Effect> {
    fn map<T>(self, read: impl FnOnce(Effect) -> Option<T>) -> Answer<T> {
        match self {
            Self::Given(effect) => read(effect).map_or(Answer::Left, Answer::Given),
            Self::Left => Answer::Left,
            Self::End(code) => Answer::End(code),
        }
    }
}

/// A dialog with the answer that it was given.
struct Asking {
    dialogs: Dialogs,
    config: UiConfig,
    feed: Arc<Feed>,
    answer: Option<Answer<Effect>>,
}

fn ask(context: Context<'_>, dialog: impl Dialog + 'static, feed: Arc<Feed>) -> io::Result<Answer<Effect>> {
    let mut terminal = Terminal::open(Modes::usual(is_dumb()), keep)?;
    let places = Places {
        cwd: context.cwd.to_owned(),
        home: context.dirs.home().unwrap_or(Path::new("/")).to_owned(),
        agent: context.dirs.agent().to_owned(),
    };
    // Themes of files are not known yet, and what is wrong with keys is said by the conversation's screen.
    let (config, _) = UiConfig::new(places, context.settings, &Themes::default(), terminal.size());
    let mut dialogs = Dialogs::default();
    dialogs.open(dialog);
    let mut asking = Asking { dialogs, config, feed, answer: None };
    EventLoop::new(&mut asking, &mut terminal, true).run(&CancelToken::new())?;
    Ok(asking.answer.unwrap_or(Answer::End(1)))
}

impl Asking {
    fn key(&mut self, key: &Key) {
        if key.action == Action::Release {
            return;
        }
        // Ctrl+C ends the program, as it does where nothing is drawn.
        if key.code == Code::Char('c') && key.modifiers == Modifiers::CTRL {
            self.answer = Some(Answer::End(130));
            return;
        }
        let mut effects = self.dialogs.key(key, &self.config);
        if self.dialogs.is_empty() {
            self.answer = Some(effects.pop().map_or(Answer::Left, Answer::Given));
        }
    }
}

impl Frame for Asking {
    fn abilities(&self) -> Abilities {
        self.config.abilities()
    }

    fn set_size(&mut self, size: Size) {
        self.config.size = size;
    }

    fn live(&mut self, _: Instant) -> Vec<Line> {
        let rows = self.config.size.rows.saturating_sub(1).max(1);
        self.dialogs.lines(&self.config.look(), rows).unwrap_or_default()
    }
}

impl Client for Asking {
    fn feed(&self) -> Arc<Feed> {
        self.feed.clone()
    }

    fn input(&mut self, input: Input, _: Instant) {
        match input {
            Input::Key(key) => self.key(&key),
            Input::Paste(text) => self.dialogs.paste(&text),
            Input::Reply(Reply::Background(red, green, blue)) => {
                self.config.backdrop = Backdrop::of(red, green, blue);
                let _ = self.config.choose_theme();
            }
            Input::Focus(_) | Input::Reply(_) | Input::Mouse(_) => {}
        }
    }

    fn take(&mut self, news: News, _: Instant) {
        if let News::Effect(effect) = news
            && let Effect::Update(update) = *effect
        {
            self.dialogs.update(update, &self.config);
        }
    }

    fn signal(&mut self, signal: i32) {
        let code = 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
        self.answer = Some(Answer::End(code));
    }

    fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    fn end(&mut self, screen: &mut Screen<'_>, now: Instant) -> io::Result<()> {
        screen.end(self, Vec::new(), "", now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_answer_a_question_before_there_is_a_conversation() {
        for (key, expected) in [("enter", "Given(0)"), ("escape", "Left"), ("ctrl+c", "End(130)")] {
            let home = PathBuf::from("/nowhere");
            let places = Places { cwd: home.clone(), home: home.clone(), agent: home };
            let size = Size { columns: 40, rows: 20 };
            let (config, _) = UiConfig::new(places, &Settings::default(), &Themes::default(), size);
            let mut dialogs = Dialogs::default();
            dialogs.open(question("Trust?", "", &["Yes", "No"], |answer| {
                answer.map(Effect::Answer).into_iter().collect()
            }));
            let mut asking = Asking { dialogs, config, feed: Arc::new(Feed::new()), answer: None };
            let now = Instant::now();
            assert!(asking.live(now).iter().any(|line| line.text().contains("Yes")));
            asking.input(Input::Key(Key::parse(key).unwrap()), now);
            let answer = asking.answer.unwrap().map(|effect| match effect {
                Effect::Answer(index) => Some(index),
                _ => None,
            });
            assert_eq!(format!("{answer:?}"), expected);
        }
    }
}
