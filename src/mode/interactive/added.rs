//! What extensions show on the screen: questions, notices, status texts, lines above and below the editor.

use super::app::App;
use super::asked::{Asked, Form};
use super::card::Weight;
use super::config::{UiConfig, is_dumb};
use super::dialog::compose::Compose;
use super::dialog::question::question;
use super::dialog::{Dialog as OnScreen, Step};
use super::effect::{Effect, Update};
use super::feed::Feed;
use super::keymap::AppAction;
use super::look::Look;
use super::panel::{AsEditor, InDialog, Overlays, Panel};
use super::program_status::{Blocked, Kind};
use crate::base::patience::seconds_until;
use crate::runtime::event::Event;
use crate::runtime::ui::{
    Arrange, Change, Component, Dialog, Picture, Place, Problem, Query, Severity, Ui, YES,
};
use crate::runtime::{CancelToken, plain_text};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::theme::{Role, Theme};
use crossbeam_channel::{Sender, at, bounded, never, select};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Lines of one widget.
const WIDGET_ROWS: usize = 10;
/// Time for the drawing thread to say what is in the editor.
const READ_MAX: Duration = Duration::from_secs(1);

/// What extensions show beside the conversation.
#[derive(Default)]
pub struct Added {
    status: BTreeMap<String, String>,
    above: BTreeMap<String, Vec<String>>,
    below: BTreeMap<String, Vec<String>>,
    header: Option<Vec<String>>,
    footer: Option<Vec<String>>,
    pub title: Option<String>,
    pub overlays: Overlays,
    pub editor: Option<AsEditor>,
    /// Keys on their way to extensions that look at them first.
    pub keys: Option<Sender<String>>,
    /// The theme that extensions know of.
    pub theme: Option<Theme>,
}

impl Added {
    /// Lines above the editor: the header, then the widgets by their keys.
    pub fn above(&self, look: &Look<'_>) -> Vec<Line> {
        let header = self.header.iter().flatten();
        let lines = header.chain(self.above.values().flatten());
        lines.map(|line| look.shown(line)).collect()
    }

    /// Lines below the editor.
    pub fn below(&self, look: &Look<'_>) -> Vec<Line> {
        self.below.values().flatten().map(|line| look.shown(line)).collect()
    }

    /// The footer, in place of `own`, and the status texts.
    pub fn footer(&self, own: Vec<Line>, look: &Look<'_>) -> Vec<Line> {
        let mut lines = match &self.footer {
            Some(lines) => lines.iter().map(|line| look.shown(line)).collect(),
            None => own,
        };
        if !self.status.is_empty() {
            let texts: Vec<&str> = self.status.values().map(String::as_str).collect();
            lines.push(look.shown(&texts.join("  ")));
        }
        lines
    }

    pub fn statuses(&self) -> &BTreeMap<String, String> {
        &self.status
    }

    fn put(&mut self, key: String, lines: Option<Vec<String>>, is_below: bool) {
        self.above.remove(&key);
        self.below.remove(&key);
        if let Some(mut lines) = lines {
            lines.truncate(WIDGET_ROWS);
            let side = if is_below { &mut self.below } else { &mut self.above };
            side.insert(key, lines);
        }
    }
}

/// The screen, as extensions reach the user through it.
pub struct OnFeed {
    feed: Arc<Feed>,
    last: AtomicU64,
}

impl OnFeed {
    pub fn new(feed: Arc<Feed>) -> Self {
        Self { feed, last: AtomicU64::new(0) }
    }
}

impl Ui for OnFeed {
    fn tells_costs(&self) -> bool {
        true
    }

    fn ask(&self, dialog: &Dialog<'_>, timeout: Option<Duration>, cancel: &CancelToken) -> Option<String> {
        let (reply, told) = bounded(1);
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (text, form) = match *dialog {
            Dialog::Select { options, .. } => (String::new(), Form::Choice(options.to_vec())),
            Dialog::Confirm { message, .. } => (message.to_owned(), Form::Confirm),
            Dialog::Input { placeholder, .. } => {
                (placeholder.unwrap_or_default().to_owned(), Form::Text(String::new()))
            }
            Dialog::Editor { prefill, .. } => {
                (String::new(), Form::Text(prefill.unwrap_or_default().to_owned()))
            }
        };
        let title = dialog.title().to_owned();
        self.feed.effect(Effect::Ask(Box::new(Asked { number, title, text, form, reply })));
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let next = match end.map(|end| (end, seconds_until(end))) {
                None => never(),
                Some((_, 0)) => break,
                Some((end, seconds)) => {
                    self.feed.effect(Effect::Update(Update::QuestionEnds(number, seconds)));
                    at(end - Duration::from_secs(seconds - 1))
                }
            };
            select! {
                recv(told) -> answer => return answer.ok().flatten(),
                recv(cancel.receiver()) -> _ => break,
                recv(next) -> _ => {}
            }
        }
        self.feed.effect(Effect::Update(Update::QuestionOver(number)));
        None
    }

    fn show(&self, change: Change) {
        self.feed.effect(Effect::Show(Box::new(change)));
    }

    fn problem(&self, Problem { source, event, error }: &Problem) {
        self.feed.say(Weight::Error, format!("Extension error ({source}): {event}: {error}"));
    }

    fn event(&self, event: &Event<'_>) {
        self.feed.event(event);
    }

    fn open(&self, number: u64, component: Arc<dyn Component>, place: Place) -> bool {
        self.feed.effect(Effect::ShowComponent { number, component, place });
        true
    }

    fn drawn(&self, number: u64, picture: Picture) {
        self.feed.effect(Effect::Update(Update::Drawn { number, picture }));
    }

    fn arrange(&self, number: u64, arrange: Arrange) {
        self.feed.effect(Effect::Arrange(number, arrange));
    }

    fn close(&self, number: u64) {
        self.feed.effect(Effect::Update(Update::ComponentOver(number)));
    }

    fn read(&self, query: Query) -> Value {
        let (tell, told) = bounded(1);
        self.feed.effect(Effect::Read(query, tell));
        told.recv_timeout(READ_MAX).unwrap_or_default()
    }

    fn editor_input(&self, data: String) {
        self.feed.effect(Effect::TypeIn(data));
    }
}

/// Shows what an extension asked for.
pub fn show(app: &mut App, change: Change) {
    match change {
        Change::Notify { message, severity } => {
            let weight = match severity {
                Severity::Info => Weight::Info,
                Severity::Warning => Weight::Warning,
                Severity::Error => Weight::Error,
            };
            app.say(weight, &message);
        }
        Change::Status { key, text } => match text {
            Some(text) => drop(app.added.status.insert(key, text)),
            None => drop(app.added.status.remove(&key)),
        },
        Change::Widget { key, lines, is_below } => app.added.put(key, lines, is_below),
        Change::Header(lines) => app.added.header = lines,
        Change::Footer(lines) => app.added.footer = lines,
        Change::Title(title) => app.added.title = Some(title),
        Change::WorkingMessage(text) => {
            app.status.activity.working = text.map(|text| plain_text(text.as_bytes()).replace('\n', " "))
        }
        Change::WorkingVisible(is_visible) => app.status.activity.is_hidden = !is_visible,
        Change::WorkingIndicator(indicator) => app.status.activity.indicator = indicator,
        Change::ThinkingLabel(label) => app.config.options.thinking_label = label,
        Change::ToolsExpanded(is_open) => app.config.options.is_open = is_open,
        Change::Resources => app.read_settings(),
        Change::Tools => {}
        Change::Redraw(call) => app.config.drawings.forget(&call),
        Change::DesktopNotify { title, body } if !is_dumb() => {
            let plain = |text: &str| plain_text(text.as_bytes()).replace(['\n', '\t'], " ");
            let sequence =
                format!("\x1b]777;notify;{};{}\x07", plain(&title).replace(';', ","), plain(&body));
            app.requests.sequences.push_str(&sequence);
        }
        Change::DesktopNotify { .. } => {}
        Change::EditorText(text) => app.composer.editor.set_text(&text),
        Change::Paste(text) => {
            app.composer.editor.paste(&text);
        }
    }
}

/// Opens the dialog of a question.
pub fn ask(app: &mut App, asked: Asked) {
    let Asked { number, title, text, form, reply } = asked;
    let answer = reply.clone();
    let inner: Box<dyn OnScreen> = match form {
        Form::Choice(options) => {
            let answers = options.clone();
            Box::new(question(&title, &text, &answers, move |at| {
                let _ = answer.try_send(at.and_then(|at| options.get(at).cloned()));
                Vec::new()
            }))
        }
        Form::Confirm => Box::new(question(&title, &text, &["Yes", "No"], move |at| {
            let _ = answer.try_send((at == Some(0)).then(|| YES.to_owned()));
            Vec::new()
        })),
        Form::Text(prefill) => {
            let title = if text.is_empty() { title.clone() } else { format!("{title} ({text})") };
            let compose = Compose::new(&title, move |text| {
                let _ = answer.try_send(text);
                Effect::Draw
            });
            Box::new(compose.with_text(&prefill))
        }
    };
    app.open(Question { number, title, inner, seconds: None, reply });
}

/// Opens a component.
pub fn open(app: &mut App, number: u64, component: Arc<dyn Component>, place: Place) {
    match place {
        Place::Dialog => app.open(InDialog(Panel::new(number, component))),
        Place::Editor => app.added.editor = Some(AsEditor::new(number, component)),
        Place::Overlay(wishes) => app.added.overlays.open(number, component, *wishes, app.dialogs.count()),
    }
}

/// Passes an update to the components and dialogs.
pub fn update(app: &mut App, mut update: Update) {
    app.added.overlays.take(&mut update);
    if app.added.editor.as_mut().is_some_and(|editor| editor.take(&mut update) == Step::Close) {
        app.added.editor = None;
    }
    app.dialogs.update(update, &app.config);
}

/// Passes a key to the component that is the editor. False if there is none.
pub fn editor_key(app: &mut App, key: &Key, now: Instant) -> bool {
    let Some(editor) = &app.added.editor else { return false };
    // The way out of a component that does not answer.
    if app.config.keymap.is(key, AppAction::CLEAR) && app.composer.last_clear.is_double(now) {
        app.requests.ends = true;
    } else {
        editor.key(key);
    }
    true
}

/// Runs the action that an extension has for a key. False if there is none, or pi cannot do without the key.
pub fn press(app: &mut App, key: &Key) -> bool {
    const RESERVED: [Action; 12] = [
        AppAction::INTERRUPT,
        AppAction::CLEAR,
        AppAction::EXIT,
        AppAction::SUSPEND,
        AppAction::THINKING_CYCLE,
        AppAction::THINKING_TOGGLE,
        AppAction::MODEL_CYCLE_FORWARD,
        AppAction::MODEL_CYCLE_BACKWARD,
        AppAction::MODEL_SELECT,
        AppAction::TOOLS_EXPAND,
        AppAction::EXTERNAL_EDITOR,
        AppAction::MESSAGE_FOLLOW_UP,
    ];
    if key.typed().is_some() || RESERVED.iter().any(|action| app.config.keymap.is(key, *action)) {
        return false;
    }
    let is_pressed = |name: &str| {
        Key::parse(name).is_some_and(|wanted| (wanted.code, wanted.modifiers) == (key.code, key.modifiers))
    };
    let Some(action) = app.control.added_shortcut(is_pressed) else { return false };
    let (cancel, feed) = (app.control.root().child(), app.threads.feed.clone());
    app.begin_thread("shortcut", move || {
        if let Err(why) = action.run("", &cancel) {
            feed.say(Weight::Error, format!("Extension error: {}: {why}", action.name()));
        }
    });
    true
}

/// The dialog of a question, which its extension may withdraw.
struct Question {
    number: u64,
    title: String,
    inner: Box<dyn OnScreen>,
    /// Seconds until it goes away by itself.
    seconds: Option<u64>,
    reply: Sender<Option<String>>,
}

impl OnScreen for Question {
    fn blocked(&self) -> Option<Blocked> {
        Some(Blocked { kind: Kind::Question, title: self.title.clone() })
    }

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let Some(seconds) = self.seconds else { return self.inner.lines(look, rows) };
        let mut lines = self.inner.lines(look, rows.saturating_sub(1).max(1));
        lines.push(
            Line::of(&format!("  goes away by itself in {seconds}s"), look.style(Role::Muted))
                .cut(look.width),
        );
        lines
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        self.inner.key(key, config)
    }

    fn paste(&mut self, text: &str) {
        self.inner.paste(text);
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        match update {
            Update::QuestionOver(number) if *number == self.number => Step::Close,
            Update::QuestionEnds(number, seconds) if *number == self.number => {
                self.seconds = Some(*seconds);
                Step::Stay
            }
            _ => Step::Stay,
        }
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        let _ = self.reply.try_send(None);
        Vec::new()
    }
}
