//! Which model answers: `/model` and its list.
//!
//! The list is there at once; servers on this machine are asked meanwhile, and what they have comes in.

use super::frame::{indented, inside, keys, list_rows, text};
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::footer::tokens;
use crate::mode::interactive::look::Look;
use crate::mode::interactive::stage;
use crate::runtime::control::Control;
use crate::runtime::{Fatal, Model, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::{self, Action};
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Servers on this machine may take so long to answer while the list is looked at.
const LOCAL_LIMIT: Duration = Duration::from_millis(1000);

const ROWS: usize = 10;
/// Cells of an id with its provider, where its price follows.
const LABEL_CELLS: usize = 48;

/// `/model`: takes the model that is named exactly, or lets the user choose.
pub fn run(app: &mut App, reference: &str) {
    if !reference.is_empty() {
        let found = exact(&app.control, reference);
        if let Some(model) = found {
            return choose(app, &model, false);
        }
    }
    let dialog = Models::new(app, reference);
    app.open(dialog);
    let control = app.control.clone();
    app.aside(
        "local models",
        move || control.find_local(LOCAL_LIMIT),
        |app, found| {
            for stranger in &found.strangers {
                let text = format!("Left out: {stranger}. To use it, start pi with --model local");
                app.say(Weight::Info, &text);
            }
            let has_found = !found.offers.is_empty();
            if has_found {
                app.footer.count_providers(&app.control);
            }
            let (control, is_plain) = (app.control.clone(), app.stage.is_plain);
            if let Some(dialog) = app.dialog::<Models>() {
                dialog.is_looking = false;
                if has_found {
                    dialog.fill(&control, is_plain);
                }
            }
        },
    );
}

/// What can be named behind `/model`.
pub fn arguments(app: &App, text: &str) -> Vec<Item> {
    let models = offered(&app.control);
    let items = models.iter().map(|model| {
        let full = full(model);
        Item::new(&full, &model.id).about(&model.provider).search(search_text(model))
    });
    List::found(items.collect(), text)
}

fn full(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

/// What `/model` names among: those to change between, else all that can be used.
fn offered(control: &Control) -> Vec<Arc<Model>> {
    let scope = control.scope();
    match scope.is_empty() {
        true => control.available_models(),
        false => scope.into_iter().map(|scoped| scoped.model).collect(),
    }
}

/// The model that is called exactly so: `provider/id`, or an id that only one has.
fn exact(control: &Control, reference: &str) -> Option<Arc<Model>> {
    let wanted = reference.trim().to_lowercase();
    let models = offered(control);
    let by_full = models.iter().find(|model| full(model).to_lowercase() == wanted);
    let found = by_full.cloned().or_else(|| {
        let mut by_id = models.iter().filter(|model| model.id.to_lowercase() == wanted);
        let first = by_id.next().cloned();
        first.filter(|_| by_id.next().is_none())
    });
    // The actor is in no list until it is asked for.
    found.or_else(|| {
        let (provider, id) = reference.trim().split_once('/')?;
        let config = control.config();
        let services = &config.services;
        let model = services.registry.find(provider, id)?;
        (services.is_faux(provider)).then_some(model)
    })
}

/// Goes on with a model; `saves` makes it the one to begin with, too.
pub fn choose(app: &mut App, model: &Model, saves: bool) {
    let feed = app.feed.clone();
    let set = app.control.set_model(&model.provider, &model.id, &mut |event| feed.event(event));
    match set {
        Ok(Some(model)) => {
            let told = match saves {
                true => save(app, &model),
                false => Some(format!("Model: {}", model.id)),
            };
            if let Some(told) = told {
                app.say(Weight::Info, &told);
            }
            warn_of_extra_usage(app);
        }
        Ok(None) => {
            let reason = format!("No API key for {}. Use /login.", model.provider);
            app.say(Weight::Error, &reason);
        }
        Err(Fatal(reason)) => app.say(Weight::Error, &reason),
    }
    app.refresh();
}

/// Says once that what is used on a subscription may be paid for besides it, where that is so.
pub fn warn_of_extra_usage(app: &mut App) {
    let model = app.control.model();
    let warns = stage::flag(&app.control.config().settings, "warnings.anthropicExtraUsage");
    if app.told_extra_usage
        || model.provider != "anthropic"
        || warns == Some(false)
        || !app.control.is_subscribed(&model)
    {
        return;
    }
    app.told_extra_usage = true;
    app.say(
        Weight::Warning,
        "Anthropic bills what other programs than its own do on a subscription as extra usage, by the token: \
         https://claude.ai/settings/usage. An API key is billed as always. (warnings.anthropicExtraUsage)",
    );
}

fn save(app: &mut App, model: &Model) -> Option<String> {
    let changes = [
        ("defaultProvider", Some(Value::from(model.provider.as_str()))),
        ("defaultModel", Some(Value::from(model.id.as_str()))),
    ];
    match app.control.change_settings(&changes) {
        Ok(()) => Some(format!("Default model: {}", full(model))),
        Err(reason) => {
            app.say(Weight::Warning, &format!("Warning: {reason}"));
            None
        }
    }
}

/// The full name comes first, so that a router that has the same model comes after its maker.
fn search_text(model: &Model) -> String {
    let (provider, id, name) = (&model.provider, &model.id, &model.name);
    format!("{provider} {provider}/{id} {provider} {id} {name}")
}

/// The list of models.
pub struct Models {
    list: List,
    /// As the list has them.
    models: Vec<Arc<Model>>,
    has_scope: bool,
    shows_scope: bool,
    is_looking: bool,
}

impl Models {
    pub fn new(app: &App, search: &str) -> Self {
        let has_scope = !app.control.scope().is_empty();
        let list = List::new(Vec::new()).searchable().label_cells(LABEL_CELLS);
        let mut dialog =
            Self { list, models: Vec::new(), has_scope, shows_scope: has_scope, is_looking: true };
        dialog.list.set_query(search);
        dialog.fill(&app.control, app.stage.is_plain);
        dialog
    }

    fn fill(&mut self, control: &Control, is_plain: bool) {
        let now = control.snapshot().model;
        let config = control.config();
        let settings = &config.settings;
        let default = settings.default_provider().zip(settings.default_model());
        let is_now = |model: &Model| model.provider == now.provider && model.id == now.id;
        let is_default = |model: &Model| default == Some((&model.provider, &model.id));
        self.models = match self.shows_scope {
            true => offered(control),
            false => {
                let mut models = control.available_models();
                models.sort_by_key(|model| {
                    let (now, default) = (is_now(model), is_default(model));
                    (!now, !default, model.provider.clone())
                });
                models
            }
        };
        let mark = if is_plain { "current: " } else { "✓ " };
        let items = self.models.iter().enumerate().map(|(index, model)| {
            let mark = match is_now(model) {
                true => mark,
                false if is_plain => "",
                false => "  ",
            };
            let (suffix, word) = match is_default(model) {
                true => (" · default", " default"),
                false => ("", ""),
            };
            Item::new(&index.to_string(), &format!("{mark}{}", model.id))
                .badge(&format!("[{}]{suffix}", model.provider))
                .about(&facts(model))
                .search(search_text(model) + word)
        });
        self.list.set_items(items.collect());
        if self.list.query().is_empty()
            && let Some(at) = self.models.iter().position(|model| is_now(model))
        {
            self.list.select(at);
        }
    }

    fn selected(&self) -> Option<&Arc<Model>> {
        self.models.get(self.list.selected_index()?)
    }
}

/// Window, price and thinking, in a few words.
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

impl Dialog for Models {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = match self.has_scope {
            true => vec![scopes(self.shows_scope, look)],
            false => text(
                "Only showing models from configured providers. Use /login to add providers.",
                Role::Warning,
                look,
            ),
        };
        self.list.set_rows(list_rows(rows, &mut body, 8, ROWS));
        body.push(Line::new());
        if self.models.is_empty() {
            let none = match self.is_looking {
                true => "No model can be used yet. Looking for servers on this machine…",
                false => {
                    "No model can be used: there is no key, and no server on this machine answered. \
                     Sign in or store a key with /login, or try /model faux/demo."
                }
            };
            body.extend(text(none, Role::Muted, look));
        } else {
            body.extend(self.list.render(inside(look), &look.looks()));
            body.push(Line::new());
            if let Some(model) = self.selected() {
                let name = format!("  Model Name: {}", model.name);
                body.push(Line::of(&name, look.style(Role::Muted)));
            }
        }
        body.push(keys(
            &[
                (Action::SelectConfirm, "to select"),
                (Action::ModelsSave, "to set as default"),
                (Action::SelectCancel, "to cancel"),
            ],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let keymap = &app.stage.keymap;
        if keymap.is(key, Action::Tab) && self.has_scope {
            self.shows_scope = !self.shows_scope;
            self.fill(&app.control, app.stage.is_plain);
            return Step::Stay;
        }
        let saves = keymap.action(key, keymap::MODELS) == Some(Action::ModelsSave);
        let picked = match saves {
            true => self.list.selected_index().map_or(Picked::Ignored, Picked::Chosen),
            false => self.list.handle(key, keymap),
        };
        match picked {
            Picked::Chosen(index) => {
                if let Some(model) = self.models.get(index).cloned() {
                    choose(app, &model, saves);
                }
                Step::Close
            }
            Picked::Cancelled => Step::Close,
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

/// Which of the two lists is shown, and the key to the other.
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
    if let Some(key) = look.keymap.shown(Action::Tab) {
        line.push(&format!("  {key} scope (all/scoped)"), look.style(Role::Dim));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::testing::Bench;

    fn open(bench: &mut Bench, search: &str) {
        let mut dialog = Models::new(&bench.app, search);
        dialog.is_looking = false;
        bench.app.open(dialog);
    }

    #[test]
    fn a_model_that_is_named_exactly_is_taken_at_once() {
        for (reference, told) in [
            ("mock/m2", "Model: m2"),
            ("m2", "Model: m2"),
            ("Mock/M2", "Model: m2"),
            ("faux/demo", "Model: demo"),
        ] {
            let mut bench = Bench::new();
            bench.send(&format!("/model {reference}"));
            assert!(!bench.app.has_dialog(), "{reference}");
            assert_eq!(bench.printed(), told);
            assert_eq!(bench.settings(), serde_json::json!({}));
        }
    }

    #[test]
    fn the_list_narrows_and_its_choice_lasts_as_long_as_the_session() {
        let mut bench = Bench::new();
        open(&mut bench, "");
        let screen = bench.screen(100);
        assert!(screen.contains("→ ✓ m1 [mock]"), "{screen}");
        assert!(screen.contains("128k"), "{screen}");
        assert!(screen.contains("Model Name: Mock One"), "{screen}");
        bench.type_text("two");
        let screen = bench.screen(100);
        assert!(screen.contains("→   m2 [mock]"), "{screen}");
        assert!(screen.contains("200k · $3/$15 · thinking"), "{screen}");
        assert!(!screen.contains("m1 [mock]"), "{screen}");
        bench.press("enter");
        assert!(!bench.app.has_dialog());
        assert_eq!(bench.printed(), "Model: m2");
        assert_eq!(bench.app.footer.model.id, "m2");
        assert_eq!(bench.settings(), serde_json::json!({}));
        for columns in [1, 10, 33, 79] {
            open(&mut bench, "");
            bench.screen(columns);
            bench.press("escape");
        }
    }

    #[test]
    fn the_other_key_makes_it_the_default() {
        let mut bench = Bench::new();
        open(&mut bench, "m2");
        bench.press("ctrl+s");
        assert_eq!(bench.printed(), "Default model: mock/m2");
        let saved = serde_json::json!({"defaultProvider": "mock", "defaultModel": "m2"});
        assert_eq!(bench.settings(), saved);
        open(&mut bench, "default");
        assert!(bench.screen(100).contains("→ ✓ m2 [mock] · default"));
    }

    #[test]
    fn a_subscription_that_may_cost_extra_is_warned_of_once() {
        let auth =
            r#"{"anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": 9999999999999}}"#;
        let mut bench = Bench::with(&[("auth.json", auth)]);
        for warns in [true, false] {
            bench.send("/model anthropic/claude-opus-4-8");
            let printed = bench.printed();
            assert_eq!(printed.contains("Anthropic bills"), warns, "{printed}");
            bench.send("/model mock/m1");
            bench.printed();
        }
    }

    #[test]
    fn models_to_change_between_come_first_and_tab_shows_all() {
        let mut bench = Bench::new();
        let model = exact(&bench.app.control, "mock/m2").unwrap();
        let scoped = crate::runtime::Scoped { model, thinking: None };
        bench.app.control.set_scope(vec![scoped]);
        open(&mut bench, "");
        let screen = bench.screen(80);
        assert!(screen.contains("m2 [mock]") && !screen.contains("m1 [mock]"), "{screen}");
        bench.press("tab");
        assert!(bench.screen(80).contains("m1 [mock]"));
    }

    #[test]
    fn arguments_are_models_by_their_full_name() {
        let bench = Bench::new();
        let values: Vec<String> = arguments(&bench.app, "two").into_iter().map(|item| item.value).collect();
        assert_eq!(values, ["mock/m2"]);
    }
}
