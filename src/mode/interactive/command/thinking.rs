//! The thinking level: `/thinking`.

use crate::mode::interactive::app::App;
use crate::mode::interactive::dialog::thinking::{item, levels};
use crate::runtime::control::Control;
use crate::runtime::{Fatal, ThinkingLevel};
use crate::tui::select::{Item, List};

/// `/thinking`: sets the named level, or opens the list.
pub fn run(app: &mut App, name: &str) {
    let offered = app.control.models().thinking_levels();
    if name.is_empty() {
        let default = app.control.config().settings.default_thinking_level();
        let default = default.unwrap_or(ThinkingLevel::Medium);
        return app.open(levels(offered, app.control.snapshot().thinking, default, &app.config));
    }
    let wanted = name.to_lowercase();
    match offered.iter().find(|level| level.name() == wanted) {
        Some(level) => choose(app, *level, false),
        None => {
            let names: Vec<&str> = offered.iter().map(|level| level.name()).collect();
            let known = names.join(", ");
            app.error(&format!("Unknown thinking level \"{name}\". Available levels: {known}."));
        }
    }
}

/// Completions for the argument of `/thinking`.
pub fn arguments(control: &Control, text: &str) -> Vec<Item> {
    List::found(control.models().thinking_levels().into_iter().map(item).collect(), text)
}

/// Sets the level; `saves` also makes it the default.
pub fn choose(app: &mut App, level: ThinkingLevel, saves: bool) {
    let feed = app.threads.feed.clone();
    match app.control.models().set_thinking(level, &mut |event| feed.event(event)) {
        Ok(level) if saves => {
            app.set("defaultThinkingLevel", level.name().into());
            app.note(&format!("Default thinking level: {}", level.name()));
        }
        Ok(level) => app.note(&format!("Thinking level: {}", level.name())),
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

/// Switches to the next level.
pub fn cycle(app: &mut App) {
    let feed = app.threads.feed.clone();
    match app.control.models().cycle_thinking(&mut |event| feed.event(event)) {
        Ok(Some(level)) => app.note(&format!("Thinking level: {}", level.name())),
        Ok(None) => app.note("Current model does not support thinking"),
        Err(Fatal(reason)) => app.error(&reason),
    }
    app.refresh();
}

#[cfg(test)]
mod tests {
    use crate::base::json::json;
    use crate::mode::interactive::testing::Bench;

    #[test]
    fn a_level_is_named_or_chosen() {
        let mut bench = Bench::new();
        bench.send("/thinking high");
        assert_eq!(bench.printed(), "Unknown thinking level \"high\". Available levels: off.");
        bench.send("/model mock/m2");
        bench.printed();
        bench.send("/thinking HIGH");
        assert_eq!(bench.printed(), "Thinking level: high");
        bench.send("/thinking");
        let screen = bench.screen(80);
        assert!(screen.contains("Thinking Level"), "{screen}");
        assert!(screen.contains("→ ✓ high"), "{screen}");
        bench.press("up ctrl+s");
        assert_eq!(bench.printed(), "Default thinking level: medium");
        assert_eq!(bench.settings(), json!({"defaultThinkingLevel": "medium"}));
        bench.send("/thinking");
        assert!(bench.screen(80).contains("· default"));
        bench.type_text("low");
        bench.press("enter");
        assert_eq!(bench.printed(), "Thinking level: low");
        assert_eq!(bench.settings(), json!({"defaultThinkingLevel": "medium"}));
        for columns in [1, 12, 40] {
            bench.send("/thinking");
            bench.screen(columns);
            bench.press("escape");
        }
        assert_eq!(bench.printed(), "");
    }
}
