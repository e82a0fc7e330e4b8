//! How much each model thinks at first, where that is not the same for all: the setting `modelThinkingLevels`.

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::settings::{self, Dialogue};
use super::thinking::item;
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::look::Look;
use crate::runtime::{Fatal, Model, ThinkingLevel};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use serde_json::{Map, Value};
use std::any::Any;
use std::sync::Arc;

const PATH: &str = "modelThinkingLevels";
const ROWS: usize = 10;
const CLEAR: &str = "";

pub fn run(app: &mut App) {
    let dialog = ModelLevels::new(app);
    app.open(dialog);
}

struct ModelLevels {
    models: Vec<Arc<Model>>,
    list: List,
    /// The model that is chosen, and its levels.
    of_one: Option<(Arc<Model>, List)>,
}

impl ModelLevels {
    fn new(app: &App) -> Self {
        let mut dialog = Self {
            models: app.control.available_models(),
            list: List::new(Vec::new()).searchable().label_cells(48),
            of_one: None,
        };
        let now = app.control.model();
        dialog.models.sort_by_key(|model| {
            (model.provider != now.provider || model.id != now.id, model.provider.clone())
        });
        dialog.fill(app);
        dialog
    }

    fn fill(&mut self, app: &App) {
        let levels = levels(app);
        let items = self.models.iter().map(|model| {
            let name = full(model);
            let level = levels.get(&name).and_then(Value::as_str);
            Item::new(&name, &model.id)
                .badge(&format!("[{}]", model.provider))
                .about(level.unwrap_or_default())
                .search(format!("{name} {}", model.name))
        });
        self.list.set_items(items.collect());
    }

    fn open(&mut self, index: usize, app: &App) {
        let Some(model) = self.models.get(index).cloned() else {
            return;
        };
        let levels = levels(app);
        let now = levels.get(&full(&model)).and_then(Value::as_str);
        let mut items: Vec<Item> = model.thinking_levels().into_iter().map(item).collect();
        if now.is_some() {
            items.push(Item::new(CLEAR, "(clear override)").about("the same as for all"));
        }
        let mut list = List::new(items);
        if let Some(at) = list.items().iter().position(|item| Some(item.value.as_str()) == now) {
            list.select(at);
        }
        self.of_one = Some((model, list));
    }

    fn take(&mut self, model: &Model, word: &str, app: &mut App) {
        let mut levels = levels(app);
        let name = full(model);
        match word {
            CLEAR => drop(levels.shift_remove(&name)),
            word => drop(levels.insert(name, word.into())),
        }
        let value = (!levels.is_empty()).then_some(Value::Object(levels));
        if let Err(reason) = settings::write(app, PATH, value) {
            return app.say(Weight::Warning, &format!("Warning: {reason}"));
        }
        let now = app.control.model();
        if now.provider == model.provider && now.id == model.id {
            let default = app.control.ground().settings.default_thinking_level();
            let level = ThinkingLevel::parse(word).or(default);
            let feed = app.feed.clone();
            let level = level.unwrap_or(ThinkingLevel::Medium);
            let set = app.control.set_thinking(level, &mut |event| feed.event(event));
            if let Err(Fatal(reason)) = set {
                app.say(Weight::Error, &reason);
            }
            app.refresh();
        }
        app.with_dialog(|dialog: &mut Dialogue, app| dialog.refresh(app));
        self.fill(app);
    }
}

fn full(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

/// As the user's file has them.
fn levels(app: &App) -> Map<String, Value> {
    let ground = app.control.ground();
    let levels = ground.settings.of_user(PATH).and_then(Value::as_object);
    levels.cloned().unwrap_or_default()
}

impl Dialog for ModelLevels {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let (name, about, list) = match &mut self.of_one {
            None => (
                "Per-Model Thinking Level".to_owned(),
                "How much a model thinks when it is chosen.",
                &mut self.list,
            ),
            Some((model, list)) => (
                format!("Thinking Level for {} [{}]", model.id, model.provider),
                "When this model is chosen.",
                list,
            ),
        };
        let mut body = vec![title(&name, look)];
        body.extend(text(about, Role::Muted, look));
        body.push(Line::new());
        list.set_rows(list_rows(rows, &mut body, 6, ROWS));
        body.extend(list.render(inside(look), &look.looks()));
        body.push(Line::new());
        body.push(keys(
            &[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to go back")],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let Some((model, list)) = &mut self.of_one else {
            match self.list.handle(key, &app.stage.keymap) {
                Picked::Chosen(index) => self.open(index, app),
                Picked::Cancelled => return Step::Close,
                Picked::Ignored | Picked::Moved => {}
            }
            return Step::Stay;
        };
        match list.handle(key, &app.stage.keymap) {
            Picked::Chosen(_) => {
                let word = list.selected().map(|item| item.value.clone());
                let model = model.clone();
                self.of_one = None;
                self.take(&model, &word.unwrap_or_default(), app);
            }
            Picked::Cancelled => self.of_one = None,
            Picked::Ignored | Picked::Moved => {}
        }
        Step::Stay
    }

    fn paste(&mut self, text: &str, _: &mut App) {
        if self.of_one.is_none() {
            self.list.paste(text);
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
    fn a_model_gets_a_level_of_its_own_and_loses_it_again() {
        let mut bench = Bench::new();
        bench.send("/model mock/m2");
        bench.printed();
        bench.send("/settings");
        bench.type_text("per model");
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
}
