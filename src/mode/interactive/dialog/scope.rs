//! The models that one changes between with a key: `/scoped-models`.
//!
//! What is chosen counts at once, for this session; a key writes it to the settings.

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::keymap as app_keys;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::runtime::{Model, Scoped, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use serde_json::Value;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const ROWS: usize = 8;

pub fn run(app: &mut App, _: &str) {
    let dialog = Scope::new(app);
    app.open(dialog);
}

pub struct Scope {
    list: List,
    /// All that can be used, by full name, in their order.
    models: Vec<(String, Arc<Model>)>,
    /// Full names in the order of the change; none: all models.
    enabled: Option<Vec<String>>,
    /// What patterns asked for, by full name.
    levels: HashMap<String, ThinkingLevel>,
    is_changed: bool,
    marks: (&'static str, &'static str),
}

impl Scope {
    pub fn new(app: &App) -> Self {
        let full = |model: &Model| format!("{}/{}", model.provider, model.id);
        let models: Vec<_> = app.control.available_models();
        let models: Vec<_> = models.into_iter().map(|model| (full(&model), model)).collect();
        let scope = app.control.scope();
        let mut enabled: Vec<String> = scope.iter().map(|scoped| full(&scoped.model)).collect();
        let levels = scope.iter().filter_map(|scoped| {
            let level = scoped.thinking?;
            Some((full(&scoped.model), level))
        });
        // What cannot be used just now stays in the setting.
        let patterns = app.control.ground().settings.enabled_models();
        let is_name = |text: &String| text.contains('/') && !text.contains(['*', '?', '[']);
        let known: HashSet<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
        for pattern in patterns.unwrap_or_default() {
            let name = without_level(&pattern);
            if is_name(&pattern) && !known.contains(pattern.as_str()) && !known.contains(name) {
                enabled.push(pattern);
            }
        }
        let mut dialog = Self {
            list: List::new(Vec::new()).searchable(),
            levels: levels.collect(),
            enabled: (!enabled.is_empty()).then_some(enabled),
            models,
            is_changed: false,
            marks: match app.stage.is_plain {
                true => ("on: ", "off: "),
                false => ("✓ ", "  "),
            },
        };
        dialog.fill();
        dialog
    }

    /// Those that are enabled in their order, then the others.
    fn fill(&mut self) {
        let at = self.list.position();
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
        self.list.set_items(items.collect());
        self.list.set_position(at);
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.models.iter().map(|(name, _)| name)
    }

    /// What a key for several is about: what fits the search, else all.
    fn meant(&self) -> Vec<String> {
        match self.list.query().is_empty() {
            true => self.names().cloned().collect(),
            false => self.list.shown().map(|item| item.value.clone()).collect(),
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

    /// Turns these on; off, if they all are on.
    fn toggle(&mut self, names: &[String]) {
        match names.iter().all(|name| self.is_on(name)) {
            true => self.disable(names),
            false => self.enable(names),
        }
    }

    /// Moves the chosen one among those that are enabled.
    fn shift(&mut self, is_up: bool) -> bool {
        let name = self.list.selected().map(|item| item.value.clone());
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
        let position = self.list.position();
        self.list.set_position(match is_up {
            true => position.saturating_sub(1),
            false => position + 1,
        });
        true
    }

    /// For the keys that go through the models. Nothing enabled is as good as everything.
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

    fn save(&mut self, app: &mut App) {
        let pattern = |name: &String| match self.levels.get(name) {
            Some(level) => format!("{name}:{}", level.name()),
            None => name.clone(),
        };
        let patterns: Option<Vec<String>> =
            self.enabled.as_ref().map(|names| names.iter().map(pattern).collect());
        let change = ("enabledModels", patterns.map(Value::from));
        match app.control.change_settings(&[change]) {
            Ok(()) => {
                self.is_changed = false;
                app.say(Weight::Info, "Model selection saved to settings");
            }
            Err(reason) => app.say(Weight::Warning, &format!("Warning: {reason}")),
        }
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

/// `provider/id` of `provider/id:level`.
fn without_level(pattern: &str) -> &str {
    match pattern.rsplit_once(':') {
        Some((name, level)) if ThinkingLevel::parse(level).is_some() => name,
        _ => pattern,
    }
}

impl Dialog for Scope {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let muted = look.style(Role::Muted);
        let mut body = vec![title("Model Configuration", look)];
        if let Some(key) = look.keymap.shown(AppAction::MODELS_SAVE) {
            let about = format!("Session-only. {key} to save to settings.");
            body.extend(text(&about, Role::Muted, look));
        }
        body.push(Line::new());
        self.list.set_rows(list_rows(rows, &mut body, 8, ROWS));
        body.extend(self.list.render(inside(look), &look.looks()));
        body.push(Line::new());
        if let Some(item) = self.list.selected() {
            let model = self.models.iter().find(|(name, _)| *name == item.value);
            let about = match model {
                Some((_, model)) => format!("  Model Name: {}", model.name),
                None => "  Model unavailable".to_owned(),
            };
            body.push(Line::of(&about, muted));
        }
        let mut state = Line::of(&format!("  {}", self.count()), look.style(Role::Dim));
        if self.is_changed {
            state.push(" (unsaved)", look.style(Role::Warning));
        }
        body.push(state);
        body.push(keys(
            &[
                (Action::SELECT_CONFIRM, "toggle"),
                (AppAction::MODELS_ENABLE_ALL, "all"),
                (AppAction::MODELS_CLEAR_ALL, "clear"),
                (AppAction::MODELS_TOGGLE_PROVIDER, "provider"),
                (AppAction::MODELS_REORDER_UP, "up"),
                (AppAction::MODELS_REORDER_DOWN, "down"),
                (AppAction::MODELS_SAVE, "save"),
            ],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let keymap = &app.stage.keymap;
        let selected = self.list.selected().map(|item| item.value.clone());
        let changed = match keymap.action(key, app_keys::MODELS) {
            Some(AppAction::MODELS_SAVE) => {
                self.save(app);
                return Step::Stay;
            }
            Some(AppAction::MODELS_ENABLE_ALL) => {
                self.enable(&self.meant());
                true
            }
            Some(AppAction::MODELS_CLEAR_ALL) => {
                self.disable(&self.meant());
                true
            }
            Some(AppAction::MODELS_TOGGLE_PROVIDER) => {
                let mut models = self.models.iter();
                let model = models.find(|(name, _)| Some(name) == selected.as_ref());
                let Some(provider) = model.map(|(_, model)| &model.provider) else {
                    return Step::Stay;
                };
                let of_it = self.models.iter();
                let of_it = of_it.filter(|(_, model)| model.provider == *provider);
                let names: Vec<String> = of_it.map(|(name, _)| name.clone()).collect();
                self.toggle(&names);
                true
            }
            Some(AppAction::MODELS_REORDER_UP) => self.shift(true),
            Some(AppAction::MODELS_REORDER_DOWN) => self.shift(false),
            _ => match self.list.handle(key, keymap) {
                Picked::Chosen(_) => {
                    self.toggle(&selected.into_iter().collect::<Vec<_>>());
                    true
                }
                Picked::Cancelled if !self.list.query().is_empty() && is_clear(key, app) => {
                    self.list.set_query("");
                    return Step::Stay;
                }
                Picked::Cancelled => return Step::Close,
                Picked::Ignored | Picked::Moved => false,
            },
        };
        if changed {
            self.is_changed = true;
            self.fill();
            app.control.set_scope(self.scope());
            app.refresh();
        }
        Step::Stay
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        self.list.paste(text);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// The key that empties the editor empties the search first.
fn is_clear(key: &Key, app: &App) -> bool {
    app.stage.keymap.is(key, AppAction::CLEAR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::testing::Bench;
    use serde_json::json;

    fn scope(bench: &Bench) -> Vec<String> {
        let scope = bench.app.control.scope();
        scope.iter().map(|scoped| format!("{}/{}", scoped.model.provider, scoped.model.id)).collect()
    }

    #[test]
    fn a_change_counts_at_once_and_is_kept_when_it_is_saved() {
        let mut bench = Bench::new();
        bench.send("/scoped-models");
        let screen = bench.screen(80);
        assert!(screen.contains("Model Configuration"), "{screen}");
        assert!(screen.contains("all enabled"), "{screen}");
        assert!(screen.contains("✓ m1 [mock]"), "{screen}");
        bench.type_text("mock/m1");
        bench.press("enter");
        assert!(!scope(&bench).contains(&"mock/m1".to_owned()));
        bench.press("ctrl+c ctrl+x");
        assert_eq!(scope(&bench), [] as [String; 0]);
        bench.type_text("mock/m2");
        bench.press("enter");
        bench.press("ctrl+c");
        bench.type_text("mock/m1");
        bench.press("enter ctrl+c");
        assert_eq!(scope(&bench), ["mock/m2", "mock/m1"]);
        let screen = bench.screen(80);
        assert!(screen.contains("(unsaved)"), "{screen}");
        bench.press("ctrl+p");
        assert_eq!(bench.app.control.scope().len(), 0);
        assert!(bench.screen(80).contains("all enabled"));
        bench.press("ctrl+p down");
        assert!(bench.screen(80).contains("0/3 enabled"));
        bench.press("enter");
        for columns in [1, 12, 40] {
            bench.screen(columns);
        }
        assert_eq!(bench.settings(), json!({}));
        bench.press("ctrl+s");
        assert_eq!(bench.printed(), "Model selection saved to settings");
        assert_eq!(bench.settings()["enabledModels"], json!(["mock/m2"]));
        assert!(!bench.screen(80).contains("(unsaved)"));
        bench.press("escape");
        assert!(!bench.app.has_dialog());
    }

    #[test]
    fn the_order_is_that_of_the_keys_that_change_models() {
        let settings = r#"{"enabledModels": ["mock/m2:high", "gone/x", "mock/m1"]}"#;
        let mut bench = Bench::with(&[("settings.json", settings)]);
        let scoped = |id: &str, thinking| Scoped {
            model: bench.app.control.ground().services.registry.find("mock", id).unwrap(),
            thinking,
        };
        let both = vec![scoped("m2", Some(ThinkingLevel::High)), scoped("m1", None)];
        bench.app.control.set_scope(both);
        bench.send("/scoped-models");
        let screen = bench.screen(80);
        assert!(screen.contains("gone/x [unavailable]"), "{screen}");
        assert!(screen.contains("enabled · 1 unavailable"), "{screen}");
        bench.press("alt+down");
        assert_eq!(scope(&bench), ["mock/m1", "mock/m2"]);
        bench.press("alt+down alt+down");
        assert_eq!(scope(&bench), ["mock/m1", "mock/m2"]);
        bench.press("ctrl+s");
        let saved = json!(["mock/m1", "gone/x", "mock/m2:high"]);
        assert_eq!(bench.settings()["enabledModels"], saved);
    }
}
