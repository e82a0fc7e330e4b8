//! How much the model thinks: `/thinking` and its list.

use super::frame::{indented, inside, keys, list_rows, title};
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::keymap as app_keys;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::runtime::{Fatal, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use std::any::Any;

/// `/thinking`: takes the level that is named, or lets the user choose.
pub fn run(app: &mut App, name: &str) {
    if name.is_empty() {
        let dialog = Levels::new(app);
        return app.open(dialog);
    }
    let levels = app.control.thinking_levels();
    let wanted = name.to_lowercase();
    match levels.iter().find(|level| level.name() == wanted) {
        Some(level) => choose(app, *level, false),
        None => {
            let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
            let known = names.join(", ");
            let text = format!("Unknown thinking level \"{name}\". Available levels: {known}.");
            app.say(Weight::Error, &text);
        }
    }
}

/// What can be named behind `/thinking`.
pub fn arguments(app: &App, text: &str) -> Vec<Item> {
    let levels = app.control.thinking_levels();
    let items = levels.iter().map(|level| item(*level));
    List::found(items.collect(), text)
}

pub fn item(level: ThinkingLevel) -> Item {
    Item::new(level.name(), level.name()).about(about(level)).search(level.name().to_owned())
}

fn about(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "answers at once",
        ThinkingLevel::Minimal => "hardly any, about 1k tokens",
        ThinkingLevel::Low => "a little, about 2k tokens",
        ThinkingLevel::Medium => "some, about 8k tokens",
        ThinkingLevel::High => "much, about 16k tokens",
        ThinkingLevel::Xhigh => "very much, about 32k tokens",
        ThinkingLevel::Max => "as much as the model can",
    }
}

/// Sets the level; `saves` makes it the one to begin with, too.
fn choose(app: &mut App, level: ThinkingLevel, saves: bool) {
    let feed = app.feed.clone();
    match app.control.set_thinking(level, &mut |event| feed.event(event)) {
        Ok(level) if saves => {
            app.set("defaultThinkingLevel", level.name().into());
            app.say(Weight::Info, &format!("Default thinking level: {}", level.name()));
        }
        Ok(level) => app.say(Weight::Info, &format!("Thinking level: {}", level.name())),
        Err(Fatal(reason)) => app.say(Weight::Error, &reason),
    }
    app.refresh();
}

pub struct Levels {
    list: List,
    levels: Vec<ThinkingLevel>,
}

impl Levels {
    pub fn new(app: &App) -> Self {
        let levels = app.control.thinking_levels();
        let now = app.control.snapshot().thinking;
        let default = app.control.ground().settings.default_thinking_level();
        let default = default.unwrap_or(ThinkingLevel::Medium);
        let (mark, blank) = match app.stage.is_plain {
            true => ("current: ", ""),
            false => ("✓ ", "  "),
        };
        let items = levels.iter().map(|level| {
            let mark = if *level == now { mark } else { blank };
            let note = if *level == default { " · default" } else { "" };
            Item { label: format!("{mark}{}", level.name()), ..item(*level) }
                .about(&format!("{}{note}", about(*level)))
        });
        let mut list = List::new(items.collect()).searchable();
        if let Some(at) = levels.iter().position(|level| *level == now) {
            list.select(at);
        }
        Self { list, levels }
    }
}

impl Dialog for Levels {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title("Thinking Level", look)];
        if let Some(key) = look.keymap.shown(AppAction::THINKING_CYCLE) {
            let hint = format!("{key} goes through the levels without this list");
            body.push(Line::of(&hint, look.style(Role::Dim)));
        }
        body.push(Line::new());
        self.list.set_rows(list_rows(rows, &mut body, 6, self.levels.len().max(1)));
        body.extend(self.list.render(inside(look), &look.looks()));
        body.push(Line::new());
        body.push(keys(
            &[
                (Action::SELECT_CONFIRM, "to select"),
                (AppAction::THINKING_SAVE, "to set as default"),
                (Action::SELECT_CANCEL, "to cancel"),
            ],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let keymap = &app.stage.keymap;
        let saves = keymap.action(key, app_keys::THINKING) == Some(AppAction::THINKING_SAVE);
        let picked = match saves {
            true => self.list.selected_index().map_or(Picked::Ignored, Picked::Chosen),
            false => self.list.handle(key, keymap),
        };
        match picked {
            Picked::Chosen(index) => {
                if let Some(level) = self.levels.get(index) {
                    choose(app, *level, saves);
                }
                Step::Close
            }
            Picked::Cancelled => Step::Close,
            Picked::Ignored | Picked::Moved => Step::Stay,
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::mode::interactive::testing::Bench;
    use serde_json::json;

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
