//! A sign-in under way: an address to open, a code to enter, questions, and what it says meanwhile.

use super::complete;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::dialog::frame::{indented, inside, keys as hints, text, title};
use crate::mode::interactive::dialog::{Dialog, Step};
use crate::mode::interactive::feed::Feed;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::program;
use crate::runtime::CancelToken;
use crate::runtime::sign_in::{Answer, Door, Event, Failure, Interaction, Prompt, Way};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, Picked, TextInput};
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use crossbeam_channel::{Sender, bounded, select};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a sign-in said, of which the last lines are shown.
const SAID_ROWS: usize = 3;
/// A program that opens a browser has done it by then.
const BROWSER_LIMIT: Duration = Duration::from_secs(10);

pub fn begin(app: &mut App, door: Door) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let cancel = app.cancel.child();
    let by_screen = ByScreen { feed: app.feed.clone(), number };
    app.open(SignIn::new(&door.name, number, cancel.clone()));
    let control = app.control.clone();
    let provider = door.provider.clone();
    let work = move || control.sign_in(&provider, &by_screen, &cancel);
    app.aside("sign-in", work, move |app, done| {
        app.close_dialogs(|dialog: &SignIn| dialog.number == number);
        match done {
            Ok(()) => complete(app, &door.provider, &door.name, Way::SignIn),
            Err(Failure::Cancelled) => {}
            Err(Failure::Because(reason)) => {
                let text = format!("Failed to login to {}: {reason}", door.name);
                app.say(Weight::Error, &text);
            }
        }
    });
}

/// Carries what a sign-in tells and asks to its dialog.
struct ByScreen {
    feed: Arc<Feed>,
    number: u64,
}

impl ByScreen {
    fn with_dialog(&self, act: impl FnOnce(&mut SignIn) + Send + 'static) {
        let number = self.number;
        self.feed.task(move |app| {
            let dialog = app.dialog::<SignIn>();
            if let Some(dialog) = dialog.filter(|dialog| dialog.number == number) {
                act(dialog);
            }
        });
    }
}

impl Interaction for ByScreen {
    fn tell(&self, event: &Event) {
        let event = event.clone();
        self.with_dialog(move |dialog| dialog.tell(event));
    }

    fn ask(&self, prompt: &Prompt, cancel: &CancelToken) -> Answer {
        let (reply, answers) = bounded(1);
        let prompt = prompt.clone();
        self.with_dialog(move |dialog| dialog.ask(prompt, reply));
        select! {
            // Without the dialog there is nobody to ask.
            recv(answers) -> answer => answer.unwrap_or(Answer::Cancelled),
            recv(cancel.receiver()) -> _ => {
                self.with_dialog(|dialog| dialog.asks = None);
                Answer::Cancelled
            }
        }
    }
}

pub struct SignIn {
    name: String,
    number: u64,
    cancel: CancelToken,
    url: Option<String>,
    /// To be typed into the page.
    code: Option<String>,
    instructions: String,
    said: Vec<String>,
    asks: Option<Asks>,
}

struct Asks {
    message: String,
    reply: Sender<Answer>,
    what: What,
}

enum What {
    Line(TextInput),
    /// The answers, and what each is called for the asker.
    One(List),
}

impl SignIn {
    fn new(name: &str, number: u64, cancel: CancelToken) -> Self {
        Self {
            name: name.to_owned(),
            number,
            cancel,
            url: None,
            code: None,
            instructions: String::new(),
            said: Vec::new(),
            asks: None,
        }
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Url { url, instructions } => {
                self.url = Some(url);
                self.instructions = instructions;
            }
            Event::DeviceCode { user_code, url, expires_in_seconds } => {
                self.url = Some(url);
                self.code = Some(user_code);
                let minutes = expires_in_seconds.div_ceil(60);
                self.instructions = format!(
                    "Open the address and enter the code there. It is valid for {minutes} minutes; waiting..."
                );
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
            Prompt::Select { message, options } => {
                let items = options.iter().map(|option| Item::new(&option.id, &option.label));
                (message, What::One(List::new(items.collect())))
            }
        };
        self.asks = Some(Asks { message, reply, what });
    }

    /// The key's effect on the question; the answer, if it is one.
    fn answer(&mut self, key: &Key, app: &App) -> Option<Answer> {
        let keymap = &app.stage.keymap;
        match &mut self.asks.as_mut()?.what {
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

    /// The key that sends an answer has none to send: it opens the address.
    fn may_open(&self) -> bool {
        let what = self.asks.as_ref().map(|asks| &asks.what);
        let is_empty = match what {
            Some(What::Line(input)) => input.text().is_empty(),
            Some(What::One(_)) => false,
            None => true,
        };
        is_empty && self.url.is_some()
    }

    fn end(&mut self) -> Step {
        // Whoever waits for an answer sees it too: the asker's token is a child of this one.
        self.cancel.cancel();
        self.asks = None;
        Step::Close
    }
}

impl Dialog for SignIn {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title(&format!("Login to {}", self.name), look)];
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
        if let Some(asks) = &mut self.asks {
            body.push(Line::new());
            body.extend(text(&asks.message, Role::Text, look));
            match &mut asks.what {
                What::Line(input) => body.push(input.render(inside(look), &look.looks())),
                What::One(list) => body.extend(list.render(inside(look), &look.looks())),
            }
        } else if self.url.is_none() {
            body.extend(text("Waiting...", Role::Dim, look));
        }
        let last: &[(Action, &str)] = match self.asks.is_some() && !self.may_open() {
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

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let keymap = &app.stage.keymap;
        if keymap.is(key, Action::SELECT_CANCEL) {
            return self.end();
        }
        if keymap.is(key, AppAction::MESSAGE_COPY)
            && let Some(url) = self.url.clone()
        {
            app.copy(url, "Copied the address to the clipboard");
            return Step::Stay;
        }
        if keymap.is(key, Action::SELECT_CONFIRM)
            && self.may_open()
            && let Some(url) = &self.url
        {
            open_browser(app, url);
            return Step::Stay;
        }
        match self.answer(key, app) {
            None => Step::Stay,
            Some(Answer::Cancelled) => self.end(),
            Some(answer) => {
                if let Some(asks) = self.asks.take() {
                    // There is room for the one answer; an asker that has gone needs none.
                    let _ = asks.reply.try_send(answer);
                }
                Step::Stay
            }
        }
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        if let Some(What::Line(input)) = self.asks.as_mut().map(|asks| &mut asks.what) {
            input.paste(text.trim());
        }
    }

    fn dismiss(&mut self, _: &mut App) {
        self.end();
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Opens an address with the desktop's own program.
fn open_browser(app: &mut App, url: &str) {
    // Nothing else is for a browser, and no option of the program.
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return;
    }
    let opener = match cfg!(target_os = "macos") {
        true => "open",
        false => "xdg-open",
    };
    let (url, cancel) = (url.to_owned(), app.cancel.clone());
    let open = move || {
        let job = program::Job {
            arguments: &[&url],
            input: Vec::new(),
            is_read: false,
            limit: BROWSER_LIMIT,
            cancel: &cancel,
        };
        program::run(opener, job).is_ok_and(|ran| ran.is_success)
    };
    app.aside("browser", open, move |app, is_open| {
        if !is_open {
            let text = format!("{opener} cannot open the address; copy it instead");
            app.say(Weight::Warning, &text);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::oauth::Choice;
    use crate::mode::interactive::testing::Bench;

    fn open(bench: &mut Bench) -> (CancelToken, ByScreen) {
        let cancel = CancelToken::new();
        bench.app.open(SignIn::new("Mock", 7, cancel.clone()));
        let by_screen = ByScreen { feed: bench.app.feed.clone(), number: 7 };
        (cancel, by_screen)
    }

    #[test]
    fn what_a_sign_in_tells_is_shown() {
        let mut bench = Bench::new();
        let (_, by_screen) = open(&mut bench);
        by_screen.tell(&Event::DeviceCode {
            user_code: "ABCD-1234".into(),
            url: "https://example.com/\u{1b}]0;x".into(),
            expires_in_seconds: 600,
        });
        by_screen.tell(&Event::Progress("Asking...".into()));
        bench.settle();
        let screen = bench.screen(80);
        for part in
            ["Login to Mock", "https://example.com/", "Enter code: ABCD-1234", "10 minutes", "Asking..."]
        {
            assert!(screen.contains(part), "{part} in {screen}");
        }
        assert!(!screen.contains('\u{1b}'));
        bench.app.stage.size.rows = 12;
        for columns in [1, 9, 40] {
            bench.screen(columns);
        }
    }

    #[test]
    fn questions_are_answered_or_the_sign_in_ends() {
        let mut bench = Bench::new();
        let (cancel, by_screen) = open(&mut bench);
        let choice = |id: &str, label: &str| Choice { id: id.into(), label: label.into() };
        let asker = std::thread::spawn(move || {
            let cancel = CancelToken::new();
            let which = by_screen.ask(
                &Prompt::Select {
                    message: "How?".into(),
                    options: vec![choice("b", "Browser"), choice("d", "Device")],
                },
                &cancel,
            );
            let code = by_screen
                .ask(&Prompt::Code { message: "Paste it:".into(), placeholder: String::new() }, &cancel);
            let last = by_screen
                .ask(&Prompt::Text { message: "Domain:".into(), placeholder: "x.com".into() }, &cancel);
            (which, code, last)
        });
        bench.wait();
        assert!(bench.screen(80).contains("How?"));
        bench.press("down enter");
        bench.wait();
        let screen = bench.screen(80);
        assert!(screen.contains("Paste it:"), "{screen}");
        bench.type_text("http://x/?code=1");
        bench.press("enter");
        bench.wait();
        assert!(bench.screen(80).contains("Domain:"));
        bench.press("escape");
        assert!(cancel.is_cancelled());
        assert!(!bench.app.has_dialog());
        let text = |text: &str| Answer::Text(text.to_owned());
        let (which, code, last) = asker.join().unwrap();
        assert_eq!((which, code), (text("d"), text("http://x/?code=1")));
        assert_eq!(last, Answer::Cancelled);
    }
}
