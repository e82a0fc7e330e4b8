//! Sign-in: the list of providers, and the input of an API key, which is never shown.

use super::Dialog;
use super::frame::{indented, inside, keys, text, title};
use super::list::{ListDialog, Rows};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::look::Look;
use crate::runtime::sign_in::{SignInMethod, State, Way};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, TextInput};
use crate::tui::theme::Role;

/// The providers to choose from.
pub struct Providers {
    methods: Vec<SignInMethod>,
    /// True if the previous dialog asked for the method.
    goes_back: bool,
}

pub fn providers(methods: Vec<SignInMethod>, search: &str, goes_back: bool) -> ListDialog<Providers> {
    let shows_way = methods.windows(2).any(|pair| match pair {
        [a, b] => a.way != b.way,
        _ => false,
    });
    let items = methods.iter().map(|method| {
        let way = match method.way {
            Way::SignIn => "subscription",
            Way::Key => "API key",
        };
        let state = match &method.state {
            State::Nothing => "• unconfigured".to_owned(),
            State::Stored(way) if *way == method.way => "✓ configured".to_owned(),
            State::Stored(Way::SignIn) => "• subscription configured".to_owned(),
            State::Stored(Way::Key) => "• API key configured".to_owned(),
            State::Elsewhere(source) if method.way == Way::Key => format!("✓ {source}"),
            State::Elsewhere(_) => "• API key configured".to_owned(),
        };
        let badge = match shows_way {
            true => format!("[{way}] {state}"),
            false => state,
        };
        Item::new(&method.provider, &method.name)
            .badge(&badge)
            .search(format!("{} {} {way} {}", method.name, method.provider, method.label))
    });
    let mut list = List::new(items.collect()).searchable();
    list.set_query(search);
    ListDialog::new(list, Providers { methods, goes_back })
}

impl Rows for Providers {
    fn rows_max(&self) -> usize {
        8
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        vec![title("Select provider to configure:", look), Line::new()]
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to cancel")]
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        let chosen = self.methods.get(index).map(|method| Effect::SignIn(method.clone()));
        std::iter::once(Effect::Close).chain(chosen).collect()
    }

    fn cancelled(&mut self) -> Vec<Effect> {
        let back = self.goes_back.then_some(Effect::Call("/login"));
        std::iter::once(Effect::Close).chain(back).collect()
    }
}

/// Input of an API key, not shown.
pub struct KeyEntry {
    method: SignInMethod,
    input: TextInput,
    problem: &'static str,
}

impl KeyEntry {
    pub fn new(method: SignInMethod) -> Self {
        Self { method, input: TextInput::new("API key: ").secret(), problem: "" }
    }
}

impl Dialog for KeyEntry {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let name = format!("Login to {}", self.method.name);
        let mut body = vec![title(&name, look), Line::new()];
        if !self.method.variables.is_empty() {
            let about =
                format!("Instead of storing a key you can set {}.", self.method.variables.join(" or "));
            body.extend(text(&about, Role::Muted, look));
        }
        if !self.method.required.is_empty() {
            let needs = self.method.required.join(", ").replace('|', " or ");
            let about = format!("This provider needs in the environment: {needs}.");
            body.extend(text(&about, Role::Warning, look));
        }
        body.push(self.input.render(inside(look), &look.looks()));
        if !self.problem.is_empty() {
            body.extend(text(self.problem, Role::Error, look));
        }
        body.push(Line::new());
        body.push(keys(&[(Action::SELECT_CONFIRM, "to submit"), (Action::SELECT_CANCEL, "to cancel")], look));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        match self.input.handle(key, &config.keymap) {
            Entered::Ignored | Entered::Handled => Vec::new(),
            Entered::Cancelled => vec![Effect::Close],
            Entered::Text(key) if key.trim().is_empty() => {
                self.problem = "There is no key: nothing was entered.";
                Vec::new()
            }
            Entered::Text(key) => vec![Effect::Close, Effect::StoreKey { method: self.method.clone(), key }],
        }
    }

    fn paste(&mut self, text: &str) {
        // What is copied from a page often ends with a line end.
        self.input.paste(text.trim());
    }
}
