//! Signing in and out: `/login`, `/logout`.
//!
//! A sign-in runs on a thread of its own. What it tells goes into the dialog, what it asks is asked there, and
//! Escape ends it. What is secret is never shown.

mod flow;

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::{Dialog, Question, Step, model};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::look::Look;
use crate::runtime::Fatal;
use crate::runtime::sign_in::{Door, Failure, State, Way};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, Picked, TextInput};
use crate::tui::theme::Role;
use std::any::Any;

const ROWS: usize = 8;
const WITH_ACCOUNT: &str = "Sign in with an account";
const WITH_KEY: &str = "Sign in with an API key";

/// `/login`: how and where, as far as that is not said.
pub fn run(app: &mut App, provider: &str) {
    if provider.is_empty() {
        let question =
            Question::new("Select authentication method:", "", &[WITH_ACCOUNT, WITH_KEY], |app, chosen| {
                match chosen {
                    Some(0) => choose(app, Some(Way::SignIn), ""),
                    Some(_) => choose(app, Some(Way::Key), ""),
                    None => {}
                }
            });
        return app.open(question);
    }
    let wanted = provider.to_lowercase();
    let is_meant = |door: &Door| door.provider.to_lowercase() == wanted || door.name.to_lowercase() == wanted;
    let mut doors = app.control.doors();
    doors.retain(is_meant);
    match doors.as_slice() {
        [door] => begin(app, door.clone()),
        [first, rest @ ..] if rest.iter().all(|door| door.provider == first.provider) => {
            let labels: Vec<&str> = doors.iter().map(way_label).collect();
            let title = format!("Select authentication method for {}:", first.name);
            let doors = doors.clone();
            let question = Question::new(&title, "", &labels, move |app, chosen| {
                if let Some(door) = chosen.and_then(|index| doors.get(index)) {
                    begin(app, door.clone());
                }
            });
            app.open(question);
        }
        _ => choose(app, None, provider),
    }
}

/// What can be named behind `/login`.
pub fn arguments(app: &App, text: &str) -> Vec<Item> {
    let mut doors = app.control.doors();
    doors.dedup_by(|a, b| a.provider == b.provider);
    let items = doors.iter().map(|door| Item::new(&door.provider, &door.provider).about(&door.name));
    List::found(items.collect(), text)
}

fn way_label(door: &Door) -> &str {
    match door.way {
        Way::SignIn if !door.label.is_empty() => door.label,
        Way::SignIn => WITH_ACCOUNT,
        Way::Key => WITH_KEY,
    }
}

fn choose(app: &mut App, way: Option<Way>, search: &str) {
    let mut doors = app.control.doors();
    doors.retain(|door| way.is_none_or(|way| door.way == way));
    app.open(Doors::new(doors, search, way.is_some()));
}

fn begin(app: &mut App, door: Door) {
    match door.way {
        Way::Key => app.open(KeyEntry::new(door)),
        Way::SignIn => flow::begin(app, door),
    }
}

/// Something was stored: the models of the provider are there, and one is taken if there was none.
fn complete(app: &mut App, provider: &str, name: &str, way: Way) {
    let done = match way {
        Way::SignIn => format!("Logged in to {name}"),
        Way::Key => format!("Saved API key for {name}"),
    };
    let file = app.stage.look().path(&app.dirs.agent().join("auth.json"));
    let saved = format!("Credentials saved to {file}");
    app.footer.count_providers(&app.control);
    if !app.control.model().is_none() {
        app.say(Weight::Info, &format!("{done}. {saved}"));
        model::warn_of_extra_usage(app);
        return app.refresh();
    }
    let Some(model) = app.control.default_model(provider) else {
        app.say(Weight::Info, &format!("{done}. {saved}"));
        let text = "There is no model of that provider to begin with. Use /model to select one.";
        return app.say(Weight::Warning, text);
    };
    let feed = app.feed.clone();
    let set = app.control.set_model(&model.provider, &model.id, &mut |event| feed.event(event));
    match set {
        Ok(Some(model)) => {
            app.set("defaultProvider", model.provider.as_str().into());
            app.set("defaultModel", model.id.as_str().into());
            let text = format!("{done}. Selected {}. {saved}", model.id);
            app.say(Weight::Info, &text);
            model::warn_of_extra_usage(app);
        }
        Ok(None) => {
            let text = format!("{done}. {saved}. Use /model to select a model.");
            app.say(Weight::Info, &text);
        }
        Err(Fatal(reason)) => app.say(Weight::Error, &reason),
    }
    app.refresh();
}

/// `/logout`: takes away what is stored.
pub fn leave(app: &mut App, _: &str) {
    let stored = match app.control.stored() {
        Ok(stored) => stored,
        Err(reason) => {
            let text = format!("Could not read stored credentials: {reason}");
            return app.say(Weight::Error, &text);
        }
    };
    if stored.is_empty() {
        return app.say(
            Weight::Info,
            "No stored credentials to remove. Keys in the environment and in models.json are not taken away by \
             /logout.",
        );
    }
    let mut places: Vec<(String, String, Way)> = stored
        .into_iter()
        .map(|(provider, way)| (app.control.provider_name(&provider), provider, way))
        .collect();
    places.sort();
    let labels: Vec<String> = places
        .iter()
        .map(|(name, _, way)| match way {
            Way::SignIn => format!("{name} [subscription]"),
            Way::Key => format!("{name} [API key]"),
        })
        .collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let question = Question::new("Select provider to logout:", "", &labels, move |app, chosen| {
        if let Some((name, provider, way)) = chosen.and_then(|index| places.get(index)) {
            sign_out(app, name.clone(), provider.clone(), *way);
        }
    });
    app.open(question);
}

fn sign_out(app: &mut App, name: String, provider: String, way: Way) {
    let (control, cancel) = (app.control.clone(), app.cancel.child());
    let work = move || control.sign_out(&provider, &cancel);
    app.aside("logout", work, move |app, done| {
        match (done, way) {
            (Ok(_), Way::SignIn) => app.say(Weight::Info, &format!("Logged out of {name}")),
            (Ok(_), Way::Key) => {
                let text = format!(
                    "Removed stored API key for {name}. Environment variables and models.json config are unchanged."
                );
                app.say(Weight::Info, &text);
            }
            (Err(Failure::Cancelled), _) => {}
            (Err(Failure::Because(reason)), _) => {
                app.say(Weight::Error, &format!("Logout failed: {reason}"));
            }
        }
        app.footer.count_providers(&app.control);
        app.refresh();
    });
}

/// The providers to choose from.
struct Doors {
    list: List,
    doors: Vec<Door>,
    /// The question before was how, not where.
    goes_back: bool,
}

impl Doors {
    fn new(doors: Vec<Door>, search: &str, goes_back: bool) -> Self {
        let shows_way = doors.windows(2).any(|pair| match pair {
            [a, b] => a.way != b.way,
            _ => false,
        });
        let items = doors.iter().map(|door| {
            let way = match door.way {
                Way::SignIn => "subscription",
                Way::Key => "API key",
            };
            let state = match &door.state {
                State::Nothing => "• unconfigured".to_owned(),
                State::Stored(way) if *way == door.way => "✓ configured".to_owned(),
                State::Stored(Way::SignIn) => "• subscription configured".to_owned(),
                State::Stored(Way::Key) => "• API key configured".to_owned(),
                State::Elsewhere(source) if door.way == Way::Key => format!("✓ {source}"),
                State::Elsewhere(_) => "• API key configured".to_owned(),
            };
            let badge = match shows_way {
                true => format!("[{way}] {state}"),
                false => state,
            };
            Item::new(&door.provider, &door.name)
                .badge(&badge)
                .search(format!("{} {} {way} {}", door.name, door.provider, door.label))
        });
        let mut list = List::new(items.collect()).searchable();
        list.set_query(search);
        Self { list, doors, goes_back }
    }
}

impl Dialog for Doors {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title("Select provider to configure:", look), Line::new()];
        self.list.set_rows(list_rows(rows, &mut body, 7, ROWS));
        body.extend(self.list.render(inside(look), &look.looks()));
        body.push(Line::new());
        body.push(keys(&[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to cancel")], look));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        match self.list.handle(key, &app.stage.keymap) {
            Picked::Chosen(index) => {
                if let Some(door) = self.doors.get(index) {
                    begin(app, door.clone());
                }
                Step::Close
            }
            Picked::Cancelled => {
                if self.goes_back {
                    run(app, "");
                }
                Step::Close
            }
            Picked::Ignored | Picked::Moved => Step::Stay,
        }
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        self.list.paste(text);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// A key is typed, unseen.
struct KeyEntry {
    door: Door,
    input: TextInput,
    problem: String,
}

impl KeyEntry {
    fn new(door: Door) -> Self {
        Self { door, input: TextInput::new("API key: ").secret(), problem: String::new() }
    }
}

impl Dialog for KeyEntry {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let name = format!("Login to {}", self.door.name);
        let mut body = vec![title(&name, look), Line::new()];
        if !self.door.variables.is_empty() {
            let about = format!("Instead of storing a key you can set {}.", self.door.variables.join(" or "));
            body.extend(text(&about, Role::Muted, look));
        }
        if !self.door.required.is_empty() {
            let needs = self.door.required.join(", ").replace('|', " or ");
            let about = format!("This provider needs in the environment: {needs}.");
            body.extend(text(&about, Role::Warning, look));
        }
        body.push(self.input.render(inside(look), &look.looks()));
        if !self.problem.is_empty() {
            body.extend(text(&self.problem, Role::Error, look));
        }
        body.push(Line::new());
        body.push(keys(&[(Action::SELECT_CONFIRM, "to submit"), (Action::SELECT_CANCEL, "to cancel")], look));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        match self.input.handle(key, &app.stage.keymap) {
            Entered::Ignored | Entered::Handled => Step::Stay,
            Entered::Cancelled => Step::Close,
            Entered::Text(key) if key.trim().is_empty() => {
                "There is no key: nothing was entered.".clone_into(&mut self.problem);
                Step::Stay
            }
            Entered::Text(key) => {
                let (control, cancel) = (app.control.clone(), app.cancel.child());
                let provider = self.door.provider.clone();
                let work = move || {
                    let stored = control.store_key(&provider, &key, &cancel);
                    (provider, stored)
                };
                let name = self.door.name.clone();
                app.aside("login", work, move |app, (provider, stored)| match stored {
                    Ok(()) => complete(app, &provider, &name, Way::Key),
                    Err(Failure::Cancelled) => {}
                    Err(Failure::Because(reason)) => {
                        let text = format!("Failed to save API key for {name}: {reason}");
                        app.say(Weight::Error, &text);
                    }
                });
                Step::Close
            }
        }
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        // What is copied from a page often ends with a line end.
        self.input.paste(text.trim());
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::mode::interactive::testing::Bench;
    use serde_json::{Value, json};

    fn stored(bench: &Bench) -> Value {
        serde_json::from_slice(&bench.dir.read("auth.json")).unwrap()
    }

    #[test]
    fn a_key_is_stored_and_never_shown() {
        let mut bench = Bench::new();
        bench.send("/login");
        let screen = bench.screen(80);
        assert!(screen.contains("Select authentication method:"), "{screen}");
        bench.press("down enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Select provider to configure:"), "{screen}");
        bench.press("escape");
        assert!(bench.screen(80).contains("Select authentication method:"));
        bench.press("down enter");
        bench.type_text("groq");
        let screen = bench.screen(80);
        assert!(screen.contains("→ Groq • unconfigured"), "{screen}");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Login to Groq"), "{screen}");
        bench.press("enter");
        assert!(bench.screen(80).contains("nothing was entered"));
        bench.type_text("secret-1");
        bench.app.input(crate::tui::key::Input::Paste("23\n".to_owned()), std::time::Instant::now());
        let screen = bench.screen(80);
        assert!(!screen.contains("secret") && screen.contains("••••"), "{screen}");
        for columns in [1, 20] {
            bench.screen(columns);
        }
        bench.app.stage.size.columns = 200;
        bench.press("enter");
        bench.wait();
        assert!(!bench.app.has_dialog());
        let printed = bench.printed();
        assert_eq!(printed, "Saved API key for Groq. Credentials saved to ~/auth.json");
        let entry = json!({"groq": {"type": "api_key", "key": "secret-123"}});
        assert_eq!(stored(&bench), entry);
        assert!(bench.app.control.usable_providers().contains(&"groq".to_owned()));
    }

    #[test]
    fn a_provider_that_is_named_is_asked_about_at_once() {
        let mut bench = Bench::new();
        bench.send("/login groq");
        assert!(bench.screen(80).contains("Login to Groq"));
        bench.press("escape");
        assert!(!bench.app.has_dialog());
        bench.send("/login anthropic");
        let screen = bench.screen(80);
        assert!(screen.contains("Select authentication method for Anthropic:"), "{screen}");
        assert!(screen.contains("Claude Pro or Max"), "{screen}");
        bench.press("escape");
        bench.send("/login goog");
        let screen = bench.screen(80);
        assert!(screen.contains("Google Gemini [API key]") || screen.contains("Google Gemini"), "{screen}");
        bench.press("escape");
        assert_eq!(bench.printed(), "");
    }

    #[test]
    fn what_is_stored_is_taken_away() {
        let auth = r#"{"groq": {"type": "api_key", "key": "k"}}"#;
        let mut bench = Bench::with(&[("auth.json", auth)]);
        bench.app.stage.size.columns = 200;
        bench.send("/logout");
        let screen = bench.screen(200);
        assert!(screen.contains("Select provider to logout:"), "{screen}");
        assert!(screen.contains("→ Groq [API key]"), "{screen}");
        bench.press("enter");
        bench.wait();
        let printed = bench.printed();
        assert!(printed.starts_with("Removed stored API key for Groq."), "{printed}");
        assert_eq!(stored(&bench), json!({}));
        bench.send("/logout");
        let printed = bench.printed();
        assert!(printed.starts_with("No stored credentials to remove."), "{printed}");
    }
}
