//! Thinking levels of single models: the setting `modelThinkingLevels`. A list of models, and a list of a
//! model's levels.

use super::frame::{text, title};
use super::list::{ListDialog, Rows};
use super::model::full;
use super::thinking::item;
use crate::base::order::Order;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::look::Look;
use crate::runtime::{Model, Settings, ThinkingLevel};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;
use serde_json::{Map, Value};
use std::sync::Arc;

pub const PATH: &str = "modelThinkingLevels";
const CLEAR: &str = "";

const HINTS: &[(Action, &str)] =
    &[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to go back")];

/// The levels by model in the user's settings.
pub fn of_user(settings: &Settings) -> Map<String, Value> {
    settings.of_user(PATH).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn head(name: &str, about: &str, look: &Look<'_>) -> Vec<Line> {
    let mut head = vec![title(name, look)];
    head.extend(text(about, Role::Muted, look));
    head.push(Line::new());
    head
}

pub struct Models(Vec<Arc<Model>>);

/// The models, the current one first.
pub fn models(mut models: Vec<Arc<Model>>, current: &Model, settings: &Settings) -> ListDialog<Models> {
    models.order_by_key(|model| {
        (model.provider != current.provider || model.id != current.id, model.provider.clone())
    });
    let mut list = List::new(Vec::new()).searchable().label_cells(48);
    let models = Models(models);
    models.fill(&mut list, settings);
    ListDialog::new(list, models)
}

impl Models {
    fn fill(&self, list: &mut List, settings: &Settings) {
        let levels = of_user(settings);
        let items = self.0.iter().map(|model| {
            let name = full(model);
            let level = levels.get(&name).and_then(Value::as_str);
            Item::new(&name, &model.id)
                .badge(&format!("[{}]", model.provider))
                .about(level.unwrap_or_default())
                .search(format!("{name} {}", model.name))
        });
        list.set_items(items.collect());
    }
}

impl Rows for Models {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        head("Per-Model Thinking Level", "How much a model thinks when it is chosen.", look)
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        HINTS
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.0.get(index).map(|model| Effect::ChooseModelLevel(model.clone())).into_iter().collect()
    }

    fn update(&mut self, update: &mut Update, list: &mut List, _: &UiConfig) {
        if let Update::Settings { settings, .. } = update {
            self.fill(list, settings);
        }
    }
}

/// The levels of one model.
pub struct Levels(Arc<Model>);

pub fn levels(model: Arc<Model>, settings: &Settings) -> ListDialog<Levels> {
    let of_user = of_user(settings);
    let current = of_user.get(&full(&model)).and_then(Value::as_str);
    let mut items: Vec<Item> = model.thinking_levels().into_iter().map(item).collect();
    if current.is_some() {
        items.push(Item::new(CLEAR, "(clear override)").about("the same as for all"));
    }
    let mut list = List::new(items);
    if let Some(at) = list.items().iter().position(|item| Some(item.value.as_str()) == current) {
        list.select(at);
    }
    ListDialog::new(list, Levels(model))
}

impl Rows for Levels {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let name = format!("Thinking Level for {} [{}]", self.0.id, self.0.provider);
        head(&name, "When this model is chosen.", look)
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        HINTS
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        let level = list.selected().and_then(|item| ThinkingLevel::parse(&item.value));
        vec![Effect::Close, Effect::SetModelLevel { model: self.0.clone(), level }]
    }
}
