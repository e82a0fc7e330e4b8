//! Models and tools: `/model`, `/scoped-models`, `/tools`.

use super::login;
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::config;
use crate::mode::interactive::dialog::model::{self, full, search_text};
use crate::mode::interactive::dialog::scope;
use crate::mode::interactive::dialog::tools::{self, Tool};
use crate::mode::interactive::effect::{Effect, ModelLists, Update};
use crate::runtime::control::Control;
use crate::runtime::selection::is_foreign;
use crate::runtime::{Fatal, Model};
use crate::tui::select::{Item, List};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for local model servers while the list is shown.
const LOCAL_LIMIT: Duration = Duration::from_millis(1000);

/// `/model`: selects the model that `reference` names exactly, or opens the list.
pub fn run(app: &mut App, reference: &str) {
    if !reference.is_empty()
        && let Some(model) = exact(&app.control, reference)
    {
        return choose(app, &model, false);
    }
    app.open(model::models(lists(&app.control, true), reference, &app.config));
    let control = app.control.clone();
    app.find_out("local models", move || find_local(&control));
}

/// `/llama`: loads, unloads and downloads models of a llama.cpp router.
pub fn llama(app: &mut App, _: &str) {
    let (control, feed) = (app.control.clone(), app.threads.feed.clone());
    login::talk(app, "llama.cpp".to_owned(), move |interaction, cancel| {
        match control.models().manage_llama(interaction, cancel) {
            Ok(told) => {
                if !told.is_empty() {
                    feed.effect(Effect::Say(Weight::Info, told));
                }
                find_local(&control)
            }
            Err(reason) => Effect::Say(Weight::Error, reason),
        }
    });
}

fn find_local(control: &Control) -> Effect {
    let found = control.models().find_local(LOCAL_LIMIT);
    let strangers = found.strangers.iter().map(ToString::to_string);
    Effect::FoundModels { has_found: !found.offers.is_empty(), strangers: strangers.collect() }
}

/// Adds the models of local servers that have answered.
pub fn found(app: &mut App, has_found: bool, strangers: &[String]) {
    for stranger in strangers {
        app.info(&format!("Left out: {stranger}. To use it, start pi with --model local"));
    }
    if has_found {
        app.status.footer.count_providers(&app.control);
    }
    app.dialogs.update(Update::Models(lists(&app.control, false)), &app.config);
}

/// The models to choose from.
fn lists(control: &Control, is_looking: bool) -> ModelLists {
    let current = control.snapshot().model;
    let config = control.config();
    let settings = &config.settings;
    let default = settings.default_provider().zip(settings.default_model());
    ModelLists {
        all: control.models().available(),
        scope: control.models().scope().into_iter().map(|scoped| scoped.model).collect(),
        current: (current.provider.clone(), current.id.clone()),
        default: default.map(|(provider, id)| (provider.to_owned(), id.to_owned())),
        is_looking,
    }
}

/// Completions for the argument of `/model`.
pub fn arguments(control: &Control, text: &str) -> Vec<Item> {
    let models = offered(control);
    let items = models
        .iter()
        .map(|model| Item::new(&full(model), &model.id).about(&model.provider).search(search_text(model)));
    List::found(items.collect(), text)
}

/// Models that `/model` accepts: the scoped ones, otherwise all usable ones.
fn offered(control: &Control) -> Vec<Arc<Model>> {
    let scope = control.models().scope();
    match scope.is_empty() {
        true => control.models().available(),
        false => scope.into_iter().map(|scoped| scoped.model).collect(),
    }
}

/// The model with exactly this name: `provider/id`, or an id that is unique.
fn exact(control: &Control, reference: &str) -> Option<Arc<Model>> {
    let wanted = reference.trim().to_lowercase();
    let models = offered(control);
    let by_full = models.iter().find(|model| full(model).to_lowercase() == wanted);
    let found = by_full.cloned().or_else(|| {
        let mut by_id = models.iter().filter(|model| model.id.to_lowercase() == wanted);
        let first = by_id.next().cloned();
        first.filter(|_| by_id.next().is_none())
    });
    // The faux provider is in no list until it is asked for.
    found.or_else(|| {
        let (provider, id) = reference.trim().split_once('/')?;
        let config = control.config();
        let services = &config.services;
        let model = services.registry.find(provider, id)?;
        (services.is_faux(provider)).then_some(model)
    })
}

/// Switches to a model; `saves` also makes it the default.
pub fn choose(app: &mut App, model: &Model, saves: bool) {
    let feed = app.threads.feed.clone();
    match app.control.models().set(&model.provider, &model.id, &mut |event| feed.event(event)) {
        Ok(Some(model)) => {
            match saves {
                true => save(app, &model),
                false => app.note(&format!("Model: {}", model.id)),
            }
            warn_of_extra_usage(app);
        }
        Ok(None) => app.error(&format!("No API key for {}. Use /login.", model.provider)),
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

/// Switches to the next or the previous model.
pub fn cycle(app: &mut App, is_forward: bool) {
    let feed = app.threads.feed.clone();
    match app.control.models().cycle(is_forward, &mut |event| feed.event(event)) {
        Ok(Some(cycled)) => app.note(&format!("Switched to {}", cycled.model.name)),
        Ok(None) => app.note("Only one model available"),
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

/// Warns once if use of a subscription may incur extra charges.
pub fn warn_of_extra_usage(app: &mut App) {
    let model = app.control.models().current();
    let warns = config::flag(&app.control.config().settings, "warnings.anthropicExtraUsage");
    if app.status.knows_extra_usage
        || model.provider != "anthropic"
        || warns == Some(false)
        || !app.control.models().is_subscribed(&model)
    {
        return;
    }
    app.status.knows_extra_usage = true;
    app.warn(
        "Anthropic bills what other programs than its own do on a subscription as extra usage, by the token: \
         https://claude.ai/settings/usage. An API key is billed as always. (warnings.anthropicExtraUsage)",
    );
}

fn save(app: &mut App, model: &Model) {
    let changes = [
        ("defaultProvider", Some(Value::from(model.provider.as_str()))),
        ("defaultModel", Some(Value::from(model.id.as_str()))),
    ];
    change_settings(app, &changes, &format!("Default model: {}", full(model)));
}

/// Changes settings, then shows `done`; true if that succeeded.
fn change_settings(app: &mut App, changes: &[(&str, Option<Value>)], done: &str) -> bool {
    let changed = app.control.preferences().change_settings(changes);
    let is_changed = changed.is_ok();
    app.warn_of(changed);
    if is_changed {
        app.note(done);
    }
    is_changed
}

/// `/scoped-models`.
pub fn scope(app: &mut App, _: &str) {
    let patterns = app.control.config().settings.enabled_models().unwrap_or_default();
    let models = app.control.models().available();
    app.open(scope::scope(models, &app.control.models().scope(), patterns, &app.config));
}

pub fn save_scope(app: &mut App, patterns: Option<Vec<String>>) {
    let change = ("enabledModels", patterns.map(Value::from));
    if change_settings(app, &[change], "Model selection saved to settings") {
        app.dialogs.update(Update::ScopeSaved, &app.config);
    }
}

/// `/tools`.
pub fn tools(app: &mut App, _: &str) {
    let tools = app.control.tools().all().into_iter().map(|(tool, is_active)| {
        let info = tool.info();
        let about = info.snippet.clone().unwrap_or_else(|| info.spec.description.clone());
        Tool { name: info.spec.name.clone(), about, is_active }
    });
    app.open(tools::tools(tools.collect(), &app.config));
}

pub fn use_tools(app: &mut App, names: &[String]) {
    let active = app.control.tools().set_active(names);
    app.dialogs.update(Update::Tools(active), &app.config);
}

pub fn save_tools(app: &mut App, names: Vec<String>) {
    let config = app.control.config();
    let stored = config.settings.of_user("defaultTools").and_then(Value::as_array);
    // What names tools of other programs with this file stays.
    let foreign = stored.into_iter().flatten().filter_map(Value::as_str);
    let foreign = foreign.filter(|entry| is_foreign(entry.strip_prefix(['+', '-']).unwrap_or(entry)));
    let entries: Vec<String> = names.into_iter().chain(foreign.map(str::to_owned)).collect();
    let change = ("defaultTools", Some(Value::from(entries)));
    change_settings(app, &[change], "Tools of new sessions saved to settings");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use crate::mode::interactive::testing::Bench;
    use crate::runtime::{Scoped, ThinkingLevel};

    fn open(bench: &mut Bench, search: &str) {
        let lists = lists(&bench.app.control, false);
        let dialog = model::models(lists, search, &bench.app.config);
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
            assert_eq!(bench.settings(), crate::base::json::json!({}));
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
        assert_eq!(bench.app.status.footer.model.id, "m2");
        assert_eq!(bench.settings(), crate::base::json::json!({}));
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
        let saved = crate::base::json::json!({"defaultProvider": "mock", "defaultModel": "m2"});
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
        bench.app.control.models().set_scope(vec![scoped]);
        open(&mut bench, "");
        let screen = bench.screen(80);
        assert!(screen.contains("m2 [mock]") && !screen.contains("m1 [mock]"), "{screen}");
        bench.press("tab");
        assert!(bench.screen(80).contains("m1 [mock]"));
    }

    #[test]
    fn arguments_are_models_by_their_full_name() {
        let bench = Bench::new();
        let values: Vec<String> =
            arguments(&bench.app.control, "two").into_iter().map(|item| item.value).collect();
        assert_eq!(values, ["mock/m2"]);
    }

    #[test]
    fn tools_are_turned_off_and_on() {
        let mut bench = Bench::new();
        bench.send("/tools");
        let screen = bench.screen(80);
        assert!(screen.contains("→ ✓ read"), "{screen}");
        bench.press("enter");
        assert_eq!(bench.app.control.snapshot().active_tools, ["bash"]);
        assert!(bench.screen(80).contains("→   read"));
        bench.press("ctrl+s enter");
        assert_eq!(bench.app.control.snapshot().active_tools, ["read", "bash"]);
        assert_eq!(bench.settings(), json!({"defaultTools": ["bash"]}));
        bench.press("escape");
        assert!(!bench.app.has_dialog());
    }

    fn scope(bench: &Bench) -> Vec<String> {
        let scope = bench.app.control.models().scope();
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
        assert_eq!(bench.app.control.models().scope().len(), 0);
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
            model: bench.app.control.config().services.registry.find("mock", id).unwrap(),
            thinking,
        };
        let both = vec![scoped("m2", Some(ThinkingLevel::High)), scoped("m1", None)];
        bench.app.control.models().set_scope(both);
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
