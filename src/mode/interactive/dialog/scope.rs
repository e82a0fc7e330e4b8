//! The models that a key cycles through: `/scoped-models`.
//!
//! Changes apply immediately to this session; a key writes them to the settings.

use super::frame::{text, title};
use super::list::{ListDialog, Rows, marks};
use super::model::full;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::keymap::{AppAction, MODELS};
use crate::mode::interactive::look::Look;
use crate::runtime::{Model, Scoped, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub struct Scope {
    /// All usable models in order, by full name.
    models: Vec<(String, Arc<Model>)>,
    /// Full names in cycling order; `None` means all models.
    enabled: Option<Vec<String>>,
    /// Thinking levels that patterns name, by full model name.
    levels: HashMap<String, ThinkingLevel>,
    is_changed: bool,
    marks: (&'static str, &'static str),
}

/// The list of usable models, with those that keys cycle through and the patterns of the setting.
pub fn scope(
    models: Vec<Arc<Model>>,
    scope: &[Scoped],
    patterns: Vec<String>,
    config: &UiConfig,
) -> ListDialog<Scope> {
    let models: Vec<_> = models.into_iter().map(|model| (full(&model), model)).collect();
    let mut enabled: Vec<String> = scope.iter().map(|scoped| full(&scoped.model)).collect();
    let levels = scope.iter().filter_map(|scoped| Some((full(&scoped.model), scoped.thinking?)));
    // What cannot be used just now stays in the setting.
    let is_name = |text: &String| text.contains('/') && !text.contains(['*', '?', '[']);
    let known: HashSet<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
    for pattern in patterns {
        let name = without_level(&pattern);
        if is_name(&pattern) && !known.contains(pattern.as_str()) && !known.contains(name) {
            enabled.push(pattern);
        }
    }
    let scope = Scope {
        levels: levels.collect(),
        enabled: (!enabled.is_empty()).then_some(enabled),
        models,
        is_changed: false,
        marks: marks(config, ("on: ", "off: ")),
    };
    let mut list = List::new(Vec::new()).searchable();
    scope.fill(&mut list);
    ListDialog::new(list, scope)
}

impl Scope {
    /// Fills the list: enabled models in their order, then the others.
    fn fill(&self, list: &mut List) {
        let at = list.position();
        let by_name: HashMap<&str, &Arc<Model>> =
            self.models.iter().map(|(name, model)| (name.as_str(), model)).collect();
        let enabled: HashSet<&str> = self.enabled.iter().flatten().map(String::as_str).collect();
        let rest = self.models.iter().map(|(name, _)| name);
        let rest = rest.filter(|name| !enabled.contains(name.as_str()));
        let items = self.enabled.iter().flatten().chain(rest).map(|name| {
            let is_on = self.enabled.is_none() || enabled.contains(name.as_str());
            match by_name.get(name.as_str()) {
                Some(model) => {
                    let mark = if is_on { self.marks.0 } else { self.marks.1 };
                    let (provider, id) = (&model.provider, &model.id);
                    let search = format!("{id} {provider} {name} {provider} {id} {}", model.name);
                    Item::new(name, &format!("{mark}{id}")).badge(&format!("[{provider}]")).search(search)
                }
                None => Item::new(name, &format!("{}{name}", self.marks.1)).badge("[unavailable]"),
            }
        });
        list.set_items(items.collect());
        list.set_position(at);
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.models.iter().map(|(name, _)| name)
    }

    /// Models that a bulk key applies to: those that match the search, or all.
    fn meant(&self, list: &List) -> Vec<String> {
        match list.query().is_empty() {
            true => self.names().cloned().collect(),
            false => list.shown().map(|item| item.value.clone()).collect(),
        }
    }

    fn enable(&mut self, names: &[String]) {
        let Some(enabled) = &mut self.enabled else {
            return;
        };
        let known: HashSet<String> = enabled.iter().cloned().collect();
        enabled.extend(names.iter().filter(|name| !known.contains(*name)).cloned());
        let known: HashSet<&str> = enabled.iter().map(String::as_str).collect();
        let mut all = self.models.iter();
        if known.len() == self.models.len() && all.all(|(name, _)| known.contains(name.as_str())) {
            self.enabled = None;
        }
    }

    fn disable(&mut self, names: &[String]) {
        let gone: HashSet<&String> = names.iter().collect();
        let now: Vec<String> = match &self.enabled {
            Some(enabled) => enabled.clone(),
            None => self.names().cloned().collect(),
        };
        self.enabled = Some(now.into_iter().filter(|name| !gone.contains(name)).collect());
    }

    fn is_on(&self, name: &str) -> bool {
        let enabled = self.enabled.as_ref();
        enabled.is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// Enables models; disables them if all are enabled.
    fn toggle(&mut self, names: &[String]) {
        match names.iter().all(|name| self.is_on(name)) {
            true => self.disable(names),
            false => self.enable(names),
        }
    }

    /// Moves the selected model up or down among the enabled ones.
    fn shift(&mut self, is_up: bool, list: &mut List) -> bool {
        let name = list.selected().map(|item| item.value.clone());
        let (Some(enabled), Some(name)) = (&mut self.enabled, name) else {
            return false;
        };
        let Some(at) = enabled.iter().position(|known| *known == name) else {
            return false;
        };
        let to = match is_up {
            true => at.checked_sub(1),
            false => (at + 1 < enabled.len()).then_some(at + 1),
        };
        let Some(to) = to else { return false };
        enabled.swap(at, to);
        let position = list.position();
        list.set_position(match is_up {
            true => position.saturating_sub(1),
            false => position + 1,
        });
        true
    }

    /// The models to cycle through. None enabled means all.
    fn scope(&self) -> Vec<Scoped> {
        let by_name: HashMap<&str, &Arc<Model>> =
            self.models.iter().map(|(name, model)| (name.as_str(), model)).collect();
        let scoped = self.enabled.iter().flatten().filter_map(|name| {
            Some(Scoped {
                model: Arc::clone(by_name.get(name.as_str())?),
                thinking: self.levels.get(name).copied(),
            })
        });
        scoped.collect()
    }

    /// Patterns for the setting.
    fn patterns(&self) -> Option<Vec<String>> {
        let pattern = |name: &String| match self.levels.get(name) {
            Some(level) => format!("{name}:{}", level.name()),
            None => name.clone(),
        };
        self.enabled.as_ref().map(|names| names.iter().map(pattern).collect())
    }

    /// Updates the list and the models to cycle through after a change.
    fn changed(&mut self, list: &mut List) -> Vec<Effect> {
        self.is_changed = true;
        self.fill(list);
        vec![Effect::UseScope(self.scope())]
    }

    fn count(&self) -> String {
        let Some(enabled) = &self.enabled else {
            return "all enabled".to_owned();
        };
        let known: HashSet<&str> = self.names().map(String::as_str).collect();
        let count = enabled.iter().filter(|name| known.contains(&***name)).count();
        let mut text = format!("{count}/{} enabled", self.models.len());
        if count < enabled.len() {
            text += &format!(" · {} unavailable", enabled.len() - count);
        }
        text
    }
}

/// The `provider/id` of a pattern `provider/id:level`.
fn without_level(pattern: &str) -> &str {
    match pattern.rsplit_once(':') {
        Some((name, level)) if ThinkingLevel::parse(level).is_some() => name,
        _ => pattern,
    }
}

impl Rows for Scope {
    fn rows_max(&self) -> usize {
        8
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let mut head = vec![title("Model Configuration", look)];
        if let Some(key) = look.keymap.shown(AppAction::MODELS_SAVE) {
            let about = format!("Session-only. {key} to save to settings.");
            head.extend(text(&about, Role::Muted, look));
        }
        head.push(Line::new());
        head
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let about = selected.map(|item| match self.models.iter().find(|(name, _)| *name == item.value) {
            Some((_, model)) => format!("  Model Name: {}", model.name),
            None => "  Model unavailable".to_owned(),
        });
        let about = about.map(|about| Line::of(&about, look.style(Role::Muted)));
        let mut state = Line::of(&format!("  {}", self.count()), look.style(Role::Dim));
        if self.is_changed {
            state.push(" (unsaved)", look.style(Role::Warning));
        }
        about.into_iter().chain([state]).collect()
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[
            (Action::SELECT_CONFIRM, "toggle"),
            (AppAction::MODELS_ENABLE_ALL, "all"),
            (AppAction::MODELS_CLEAR_ALL, "clear"),
            (AppAction::MODELS_TOGGLE_PROVIDER, "provider"),
            (AppAction::MODELS_REORDER_UP, "up"),
            (AppAction::MODELS_REORDER_DOWN, "down"),
            (AppAction::MODELS_SAVE, "save"),
        ]
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        let selected = list.selected().map(|item| item.value.clone());
        self.toggle(&selected.into_iter().collect::<Vec<_>>());
        self.changed(list)
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        let is_changed = match config.keymap.action(key, MODELS) {
            Some(AppAction::MODELS_SAVE) => return Some(vec![Effect::SaveScope(self.patterns())]),
            Some(AppAction::MODELS_ENABLE_ALL) => {
                self.enable(&self.meant(list));
                true
            }
            Some(AppAction::MODELS_CLEAR_ALL) => {
                self.disable(&self.meant(list));
                true
            }
            Some(AppAction::MODELS_TOGGLE_PROVIDER) => {
                let selected = list.selected();
                let mut models = self.models.iter();
                let model = models.find(|(name, _)| selected.is_some_and(|item| item.value == *name));
                let provider = model.map(|(_, model)| model.provider.clone());
                let of_it =
                    self.models.iter().filter(|(_, model)| Some(&model.provider) == provider.as_ref());
                let names: Vec<String> = of_it.map(|(name, _)| name.clone()).collect();
                if !names.is_empty() {
                    self.toggle(&names);
                }
                !names.is_empty()
            }
            Some(AppAction::MODELS_REORDER_UP) => self.shift(true, list),
            Some(AppAction::MODELS_REORDER_DOWN) => self.shift(false, list),
            // The key that empties the editor empties the search first.
            _ if config.keymap.is(key, AppAction::CLEAR)
                && config.keymap.is(key, Action::SELECT_CANCEL)
                && !list.query().is_empty() =>
            {
                list.set_query("");
                false
            }
            _ => return None,
        };
        Some(if is_changed { self.changed(list) } else { Vec::new() })
    }

    fn update(&mut self, update: &mut Update, _: &mut List, _: &UiConfig) {
        if matches!(update, Update::ScopeSaved) {
            self.is_changed = false;
        }
    }
}
