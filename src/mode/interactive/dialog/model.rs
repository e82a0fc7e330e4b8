//! The list of models.
//!
//! The list appears immediately; models of local servers are added when the servers answer.

use super::frame::text;
use super::list::{ListDialog, Rows, marks};
use crate::base::order::Order;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, ModelLists, Update};
use crate::mode::interactive::footer::tokens;
use crate::mode::interactive::keymap::{AppAction, MODELS};
use crate::mode::interactive::look::Look;
use crate::runtime::{Model, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;
use std::sync::Arc;

/// Width of an id with its provider, if a price follows.
const LABEL_CELLS: usize = 48;

/// `provider/id`.
pub fn full(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

/// The text in which a model is searched. The full name comes first, so that a router that has a model is
/// listed after its maker.
pub fn search_text(model: &Model) -> String {
    let (provider, id, name) = (&model.provider, &model.id, &model.name);
    format!("{provider} {provider}/{id} {provider} {id} {name}")
}

pub struct Models {
    lists: ModelLists,
    /// Models in the order of the list.
    models: Vec<Arc<Model>>,
    shows_scope: bool,
}

pub fn models(lists: ModelLists, search: &str, config: &UiConfig) -> ListDialog<Models> {
    let mut list = List::new(Vec::new()).searchable().label_cells(LABEL_CELLS);
    list.set_query(search);
    let mut models = Models { shows_scope: !lists.scope.is_empty(), lists, models: Vec::new() };
    models.fill(&mut list, config);
    ListDialog::new(list, models)
}

impl Models {
    fn fill(&mut self, list: &mut List, config: &UiConfig) {
        let lists = &self.lists;
        let is_named =
            |model: &Model, (provider, id): &(String, String)| model.provider == *provider && model.id == *id;
        let is_current = |model: &Model| is_named(model, &lists.current);
        let is_default = |model: &Model| lists.default.as_ref().is_some_and(|name| is_named(model, name));
        self.models = match self.shows_scope && !lists.scope.is_empty() {
            true => lists.scope.clone(),
            false => lists.all.clone(),
        };
        if !self.shows_scope {
            self.models
                .order_by_key(|model| (!is_current(model), !is_default(model), model.provider.clone()));
        }
        let (mark, blank) = marks(config, ("current: ", ""));
        let items = self.models.iter().enumerate().map(|(index, model)| {
            let mark = if is_current(model) { mark } else { blank };
            let (suffix, word) = match is_default(model) {
                true => (" · default", " default"),
                false => ("", ""),
            };
            Item::new(&index.to_string(), &format!("{mark}{}", model.id))
                .badge(&format!("[{}]{suffix}", model.provider))
                .about(&facts(model))
                .search(search_text(model) + word)
        });
        list.set_items(items.collect());
        if list.query().is_empty()
            && let Some(at) = self.models.iter().position(|model| is_current(model))
        {
            list.select(at);
        }
    }

    fn take(&self, index: Option<usize>, saves: bool) -> Vec<Effect> {
        match index {
            None => Vec::new(),
            Some(index) => {
                let model = self.models.get(index).cloned();
                let chosen = model.map(|model| Effect::UseModel { model, saves });
                std::iter::once(Effect::Close).chain(chosen).collect()
            }
        }
    }
}

/// Context window, price and thinking, as short text.
fn facts(model: &Model) -> String {
    let mut facts = vec![tokens(model.context_window)];
    let cost = &model.cost;
    if cost.input > 0.0 || cost.output > 0.0 {
        facts.push(format!("${}/${}", cost.input, cost.output));
    }
    if model.thinking_levels() != [ThinkingLevel::Off] {
        facts.push("thinking".to_owned());
    }
    if model.takes_images() {
        facts.push("images".to_owned());
    }
    facts.join(" · ")
}

impl Rows for Models {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let mut head = match self.lists.scope.is_empty() {
            false => vec![scopes(self.shows_scope, look)],
            true => text(
                "Only showing models from configured providers. Use /login to add providers.",
                Role::Warning,
                look,
            ),
        };
        head.push(Line::new());
        head
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let index = selected.and_then(|item| item.value.parse::<usize>().ok());
        let model = index.and_then(|index| self.models.get(index));
        let name = model.map(|model| format!("  Model Name: {}", model.name));
        name.map(|name| Line::of(&name, look.style(Role::Muted))).into_iter().collect()
    }

    fn nothing(&self, look: &Look<'_>) -> Option<Vec<Line>> {
        let none = match self.lists.is_looking {
            true => "No model can be used yet. Looking for servers on this machine…",
            false => {
                "No model can be used: there is no key, and no server on this machine answered. \
                 Sign in or store a key with /login, or try /model faux/demo."
            }
        };
        self.models.is_empty().then(|| text(none, Role::Muted, look))
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[
            (Action::SELECT_CONFIRM, "to select"),
            (AppAction::MODELS_SAVE, "to set as default"),
            (Action::SELECT_CANCEL, "to cancel"),
        ]
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.take(Some(index), false)
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        if config.keymap.is(key, Action::TAB) && !self.lists.scope.is_empty() {
            self.shows_scope = !self.shows_scope;
            self.fill(list, config);
            return Some(Vec::new());
        }
        let saves = config.keymap.action(key, MODELS) == Some(AppAction::MODELS_SAVE);
        saves.then(|| self.take(list.selected_index(), true))
    }

    fn update(&mut self, update: &mut Update, list: &mut List, config: &UiConfig) {
        if let Update::Models(lists) = update {
            let names = |lists: &ModelLists| lists.all.iter().map(|model| full(model)).collect::<Vec<_>>();
            let is_other = names(lists) != names(&self.lists);
            self.lists = lists.clone();
            if is_other {
                self.fill(list, config);
            }
        }
    }
}

/// Line that shows the active list, and the key for the other.
fn scopes(shows_scope: bool, look: &Look<'_>) -> Line {
    let style = |is_on| look.style(if is_on { Role::Accent } else { Role::Muted });
    let mut line = Line::of("Scope: ", look.style(Role::Muted));
    line.push("all", style(!shows_scope));
    line.push(" | ", look.style(Role::Muted));
    line.push("scoped", style(shows_scope));
    if look.is_plain {
        let now = if shows_scope { "scoped" } else { "all" };
        line.push(&format!(", shown: {now}"), look.style(Role::Muted));
    }
    if let Some(key) = look.keymap.shown(Action::TAB) {
        line.push(&format!("  {key} scope (all/scoped)"), look.style(Role::Dim));
    }
    line
}
