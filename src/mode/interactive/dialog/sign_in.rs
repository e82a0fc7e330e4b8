//! A talk with something that runs, such as a sign-in: an address to open, a code to enter, questions, and progress
//! messages.

use super::frame::{indented, inside, keys as hints, text, title};
use super::{Dialog, Step};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, SignInNews, Update};
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::program_status::{Blocked, Kind};
use crate::runtime::CancelToken;
use crate::runtime::sign_in::{Answer, Event, Prompt};
use crate::tui::key::Key;
use crate::tui::keymap::{Action, Keymap};
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, Picked, TextInput};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use crossbeam_channel::Sender;
use std::sync::Arc;

/// Progress messages shown.
const SAID_ROWS: usize = 3;
pub struct SignIn {
    title: String,
    number: u64,
    cancel: CancelToken,
    url: Option<String>,
    /// Code that the user types into the page.
    code: Option<String>,
    instructions: String,
    said: Vec<String>,
    pending: Option<PendingPrompt>,
}

struct PendingPrompt {
    message: String,
    reply: Sender<Answer>,
    what: What,
}

enum What {
    Line(TextInput),
    /// Options with their ids.
    One(List),
}

impl SignIn {
    pub fn new(title: String, number: u64, cancel: CancelToken) -> Self {
        Self {
            title,
            number,
            cancel,
            url: None,
            code: None,
            instructions: String::new(),
            said: Vec::new(),
            pending: None,
        }
    }

    fn show(&mut self, event: Event) {
        match event {
            Event::Url { url, instructions } => {
                self.url = Some(url);
                self.instructions = instructions;
            }
            Event::DeviceCode { user_code, url, expires_in_seconds } => {
                self.url = Some(url);
                self.code = Some(user_code);
                let waiting = Event::waiting(expires_in_seconds);
                self.instructions = format!("Open the address and enter the code there. {waiting}");
            }
            Event::Progress(text) => self.said.push(text),
        }
    }

    fn ask(&mut self, prompt: Prompt, reply: Sender<Answer>) {
        let line = |placeholder: &str| {
            let label = match placeholder.is_empty() {
                true => "> ".to_owned(),
                false => format!("> (e.g. {placeholder}) "),
            };
            What::Line(TextInput::new(&label))
        };
        let (message, what) = match prompt {
            Prompt::Text { message, placeholder } | Prompt::Code { message, placeholder } => {
                (message, line(&placeholder))
            }
            Prompt::Secret { message } => (message, What::Line(TextInput::new("> ").secret())),
            Prompt::Select { message, options } => {
                let items = options.iter().map(|option| Item::new(&option.id, &option.label));
                (message, What::One(List::new(items.collect())))
            }
        };
        self.pending = Some(PendingPrompt { message, reply, what });
    }

    /// Handles a key in a question; returns the answer when it is complete.
    fn answer(&mut self, key: &Key, keymap: &Keymap) -> Option<Answer> {
        match &mut self.pending.as_mut()?.what {
            What::Line(input) => match input.handle(key, keymap) {
                Entered::Text(text) => Some(Answer::Text(text)),
                Entered::Cancelled => Some(Answer::Cancelled),
                Entered::Ignored | Entered::Handled => None,
            },
            What::One(list) => match list.handle(key, keymap) {
                Picked::Chosen(_) => {
                    let id = list.selected().map(|item| item.value.clone());
                    id.map(Answer::Text)
                }
                Picked::Cancelled => Some(Answer::Cancelled),
                Picked::Ignored | Picked::Moved => None,
            },
        }
    }

    /// True if the confirm key opens the address, since no answer is pending.
    fn may_open(&self) -> bool {
        let what = self.pending.as_ref().map(|pending| &pending.what);
        let is_empty = match what {
            Some(What::Line(input)) => input.text().is_empty(),
            Some(What::One(_)) => false,
            None => true,
        };
        is_empty && self.url.is_some()
    }

    fn end(&mut self) -> Vec<Effect> {
        // Whoever waits for an answer sees it too: the asker's token is a child of this one.
        self.cancel.cancel();
        self.pending = None;
        vec![Effect::Close]
    }
}

impl Dialog for SignIn {
    fn blocked(&self) -> Option<Blocked> {
        Some(Blocked { kind: Kind::Auth, title: self.title.clone() })
    }

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title(&self.title, look)];
        if let Some(url) = &self.url {
            body.push(Line::new());
            // A server wrote it, and it is part of a sequence.
            let link: Option<Arc<str>> = (!url.contains(char::is_control)).then(|| url.as_str().into());
            let mut line = Line::new();
            line.push_link(url, look.style(Role::Accent), link.as_ref());
            body.extend(wrap(&line, inside(look)));
            let keys =
                [(Action::SELECT_CONFIRM, "opens it in a browser"), (AppAction::MESSAGE_COPY, "copies it")];
            let first = usize::from(!self.may_open());
            body.push(hints(keys.get(first..).unwrap_or_default(), look));
        }
        if let Some(code) = &self.code {
            body.push(Line::new());
            body.extend(text(&format!("Enter code: {code}"), Role::Warning, look));
        }
        if !self.instructions.is_empty() {
            body.push(Line::new());
            body.extend(text(&self.instructions, Role::Muted, look));
        }
        let first = self.said.len().saturating_sub(SAID_ROWS);
        for said in self.said.iter().skip(first) {
            body.extend(text(said, Role::Dim, look));
        }
        if let Some(pending) = &mut self.pending {
            body.push(Line::new());
            body.extend(text(&pending.message, Role::Text, look));
            match &mut pending.what {
                What::Line(input) => body.push(input.render(inside(look), &look.looks())),
                What::One(list) => body.extend(list.render(inside(look), &look.looks())),
            }
        } else if self.url.is_none() {
            body.extend(text("Waiting...", Role::Dim, look));
        }
        let last: &[(Action, &str)] = match self.pending.is_some() && !self.may_open() {
            true => &[(Action::SELECT_CONFIRM, "to submit"), (Action::SELECT_CANCEL, "to cancel")],
            false => &[(Action::SELECT_CANCEL, "to cancel")],
        };
        body.push(Line::new());
        let last = hints(last, look);
        // The address may be longer than the screen is high; the question below it is what is asked.
        let surplus = (body.len() + 3).saturating_sub(rows);
        if surplus > 0 {
            let kept = body.len().saturating_sub(1);
            body.drain(1.min(kept)..(1 + surplus).min(kept));
        }
        body.push(last);
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let keymap = &config.keymap;
        if keymap.is(key, Action::SELECT_CANCEL) {
            return self.end();
        }
        if keymap.is(key, AppAction::MESSAGE_COPY)
            && let Some(url) = self.url.clone()
        {
            return vec![Effect::Copy(url, "Copied the address to the clipboard")];
        }
        if keymap.is(key, Action::SELECT_CONFIRM)
            && self.may_open()
            && let Some(url) = self.url.clone()
        {
            return vec![Effect::OpenAddress(url)];
        }
        match self.answer(key, keymap) {
            None => {}
            Some(Answer::Cancelled) => return self.end(),
            Some(answer) => {
                if let Some(pending) = self.pending.take() {
                    // There is room for the one answer; an asker that has gone needs none.
                    let _ = pending.reply.try_send(answer);
                }
            }
        }
        Vec::new()
    }

    fn paste(&mut self, text: &str) {
        if let Some(What::Line(input)) = self.pending.as_mut().map(|pending| &mut pending.what) {
            input.paste(text.trim());
        }
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        match update {
            Update::SignIn { number, news } if *number == self.number => match news {
                SignInNews::Tell(event) => self.show(event.clone()),
                SignInNews::Ask(prompt, reply) => self.ask(prompt.clone(), reply.clone()),
                SignInNews::AskNoMore => self.pending = None,
                SignInNews::Over => return Step::Close,
            },
            _ => {}
        }
        Step::Stay
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        self.end()
    }
}
