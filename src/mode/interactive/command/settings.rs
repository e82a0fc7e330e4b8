//! Settings, themes, levels by model: `/settings`.

use crate::mode::interactive::app::App;
use crate::mode::interactive::dialog::model::full;
use crate::mode::interactive::dialog::{model_levels, settings, theme};
use crate::mode::interactive::effect::{ThemeFor, Update};
use crate::runtime::{Fatal, Model, QueueMode, ThinkingLevel};
use serde_json::Value;
use std::sync::Arc;

/// `/settings`.
pub fn run(app: &mut App, _: &str) {
    let current = app.control.config().settings.clone();
    app.open(settings::settings(current, &app.config));
}

/// Writes a setting and applies it, as far as that is possible without a restart.
pub fn write(app: &mut App, path: &str, value: Option<Value>) -> Result<(), String> {
    app.control.preferences().change_settings(&[(path, value)])?;
    let config = app.control.config();
    let settings = &config.settings;
    match path {
        // These are switches of the session too.
        "steeringMode" => {
            let mode = QueueMode::parse(settings.steering_mode()).unwrap_or_default();
            app.control.preferences().use_steering_mode(mode);
        }
        "followUpMode" => {
            let mode = QueueMode::parse(settings.follow_up_mode()).unwrap_or_default();
            app.control.preferences().use_follow_up_mode(mode);
        }
        "compaction.enabled" => app.control.preferences().use_auto_compaction(settings.compaction().enabled),
        "retry.enabled" => app.control.preferences().use_auto_retry(settings.retry().enabled),
        _ => {}
    }
    app.read_settings();
    if path == "theme" {
        app.ask_for_backdrop();
    }
    app.refresh();
    Ok(())
}

/// Updates the settings dialog, with the result of a change that it has requested.
pub fn refresh(app: &mut App, result: Option<Result<(), String>>) {
    let settings = Box::new(app.control.config().settings.clone());
    app.dialogs.update(Update::Settings { settings, result }, &app.config);
}

/// Lists the themes; for the second of a pair, the first is drawn until the selection moves.
pub fn choose_theme(app: &mut App, which: ThemeFor) {
    let is_second = which != ThemeFor::All;
    let dialog = theme::themes(which, &app.config);
    let first = dialog.list.selected().map(|item| item.value.clone());
    app.open(dialog);
    if is_second {
        preview_theme(app, first.as_deref());
    }
}

/// Draws with a theme without choosing it; `None` returns to the chosen one.
pub fn preview_theme(app: &mut App, name: Option<&str>) {
    match name.and_then(|name| app.config.themes.find(name)) {
        Some(theme) => app.config.theme = theme,
        // What is wrong with the setting was said before.
        None => drop(app.config.choose_theme()),
    }
}

pub fn use_theme(app: &mut App, setting: String) {
    app.config.themes.overrule();
    let written = write(app, "theme", Some(setting.into()));
    app.warn_of(written);
    refresh(app, None);
}

pub fn list_model_levels(app: &mut App) {
    let (models, current) = (app.control.models().available(), app.control.models().current());
    let settings = app.control.config().settings.clone();
    app.open(model_levels::models(models, &current, &settings));
}

pub fn choose_model_level(app: &mut App, model: Arc<Model>) {
    let settings = app.control.config().settings.clone();
    app.open(model_levels::levels(model, &settings));
}

/// Sets a model's own thinking level, or removes it.
pub fn set_model_level(app: &mut App, model: &Model, level: Option<ThinkingLevel>) {
    let mut levels = model_levels::of_user(&app.control.config().settings);
    let name = full(model);
    match level {
        None => drop(levels.shift_remove(&name)),
        Some(level) => drop(levels.insert(name, level.name().into())),
    }
    let value = (!levels.is_empty()).then_some(Value::Object(levels));
    if let Err(reason) = write(app, model_levels::PATH, value) {
        return app.warn(&format!("Warning: {reason}"));
    }
    let current = app.control.models().current();
    if current.provider == model.provider && current.id == model.id {
        let default = app.control.config().settings.default_thinking_level();
        let level = level.or(default).unwrap_or(ThinkingLevel::Medium);
        let feed = app.threads.feed.clone();
        if let Err(Fatal(reason)) = app.control.models().set_thinking(level, &mut |event| feed.event(event)) {
            app.error(&reason);
        }
        app.refresh();
    }
    refresh(app, None);
}

#[cfg(test)]
mod tests {
    use crate::base::json::json;
    use crate::mode::interactive::config::is_dumb;
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn a_theme_is_shown_as_one_moves_and_kept_when_it_is_chosen() {
        let mut bench = Bench::new();
        bench.app.config.backdrop = crate::tui::theme::Backdrop::Dark;
        assert_eq!(bench.app.config.choose_theme(), None);
        bench.send("/settings");
        bench.type_text("theme");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("→ ✓ system"), "{screen}");
        bench.press("up");
        assert_eq!(bench.app.config.theme.name, "light");
        bench.press("escape");
        assert_eq!(bench.app.config.theme.name, "system");
        assert_eq!(bench.settings(), json!({}));
        bench.press("enter up enter");
        assert_eq!(bench.app.config.theme.name, "light");
        assert_eq!(bench.settings(), json!({"theme": "light"}));
        let screen = bench.screen(80);
        assert!(screen.contains("→ Theme") && screen.contains("light"), "{screen}");
    }

    #[test]
    fn two_themes_are_chosen_one_after_the_other() {
        let mut bench = Bench::new();
        assert_eq!(bench.app.config.choose_theme(), None);
        bench.send("/settings");
        bench.type_text("theme");
        bench.press("enter");
        assert!(bench.screen(80).contains("Theme"));
        bench.press("up up up enter");
        assert!(bench.screen(80).contains("Light Theme"));
        bench.press("down enter");
        assert!(bench.screen(80).contains("Dark Theme"));
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"theme": "light/dark"}));
    }

    #[test]
    fn a_model_gets_a_level_of_its_own_and_loses_it_again() {
        let mut bench = Bench::new();
        bench.send("/model mock/m2");
        bench.printed();
        bench.send("/settings");
        bench.type_text("level per model");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Per-Model Thinking Level"), "{screen}");
        bench.type_text("m2");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("Thinking Level for m2 [mock]"), "{screen}");
        assert!(!screen.contains("clear override"), "{screen}");
        bench.press("down down down down enter");
        let set = json!({"modelThinkingLevels": {"mock/m2": "high"}});
        assert_eq!(bench.settings(), set);
        assert_eq!(bench.app.control.snapshot().thinking.name(), "high");
        assert!(bench.screen(80).contains("high"));
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("→ high"), "{screen}");
        bench.press("down enter");
        assert_eq!(bench.settings(), json!({}));
        assert_eq!(bench.app.control.snapshot().thinking.name(), "medium");
        for columns in [1, 30] {
            bench.screen(columns);
        }
        bench.press("escape escape");
        assert!(!bench.app.has_dialog());
    }

    #[test]
    fn a_switch_is_turned_and_counts_at_once() {
        let mut bench = Bench::new();
        bench.send("/settings");
        let screen = bench.screen(80);
        assert!(screen.contains("→ Auto-compact"), "{screen}");
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"compaction": {"enabled": false}}));
        assert!(!bench.app.control.snapshot().switches.auto_compaction);
        bench.press("enter delete");
        assert_eq!(bench.settings(), json!({"compaction": {}}));
        assert!(bench.app.control.snapshot().switches.auto_compaction);
        for (search, keys, path, expected) in [
            ("hide thinking", "enter", "hideThinkingBlock", json!(true)),
            ("steering mode", "enter", "steeringMode", json!("all")),
            ("editor padding", "enter enter", "editorPaddingX", json!(2)),
            ("true color", "enter", "terminal", json!({"trueColor": true})),
            ("tui mode", "enter", "tuiMode", json!("fullscreen")),
        ] {
            bench.type_text(search);
            bench.press(keys);
            assert_eq!(bench.settings()[path], expected, "{}", bench.screen(80));
            bench.press("ctrl+u");
        }
        assert!(bench.app.config.options.hides_thinking);
        assert_eq!(bench.app.config.options.padding, 2);
        assert_eq!(bench.app.config.is_fullscreen, !is_dumb());
        assert_eq!(bench.app.control.snapshot().steering_mode.name(), "all");
        bench.press("escape");
        assert!(!bench.app.has_dialog());
    }

    #[test]
    fn a_text_is_typed_and_a_wrong_one_is_refused() {
        let mut bench = Bench::new();
        bench.send("/settings");
        bench.type_text("limits: turns");
        bench.press("enter");
        bench.type_text("many");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("must be a whole number"), "{screen}");
        bench.press("ctrl+u");
        bench.type_text("7");
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"limits": {"turns": 7}}));
        let screen = bench.screen(80);
        assert!(screen.contains("takes effect after /reload"), "{screen}");
        assert!(screen.contains("limits.turns in settings.json"), "{screen}");
        bench.press("ctrl+u");
        bench.type_text("default model");
        bench.press("enter");
        bench.type_text("m9");
        bench.press("escape");
        assert!(bench.app.has_dialog());
        assert_eq!(bench.settings(), json!({"limits": {"turns": 7}}));
        for columns in [1, 10, 40] {
            bench.screen(columns);
        }
    }
}
