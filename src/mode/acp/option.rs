//! The options of a session that an editor shows as pickers: model, thinking level and mode.

use super::mode::{self, Modes};
use crate::base::json::json;
use crate::runtime::ThinkingLevel;
use crate::runtime::control::Control;
use serde_json::Value;

const MODEL: &str = "model";
const THINKING: &str = "thinking";
const MODE: &str = "mode";

/// The options with their choices and values, as the protocol's `configOptions`.
pub fn list(control: &Control, modes: Option<&Modes>) -> Value {
    let mut options = vec![model(control)];
    options.extend(thinking(control));
    options.extend(modes.map(|modes| {
        json!({"id": MODE, "name": "Mode", "category": "mode", "type": "select",
            "currentValue": mode::current(control), "options": modes.choices("value")})
    }));
    options.into()
}

fn model(control: &Control) -> Value {
    let models = control.models();
    let current = models.current();
    let choice =
        |provider: &str, id: &str, name: &str| json!({"value": format!("{provider}/{id}"), "name": name});
    let mut groups: Vec<(String, Vec<Value>)> = Vec::new();
    for model in models.available() {
        let choice = choice(&model.provider, &model.id, &model.name);
        match groups.last_mut() {
            Some((provider, choices)) if *provider == model.provider => choices.push(choice),
            _ => groups.push((model.provider.clone(), vec![choice])),
        }
    }
    let value = format!("{}/{}", current.provider, current.id);
    let is_listed = groups.iter().any(|(_, choices)| choices.iter().any(|choice| choice["value"] == *value));
    if !is_listed {
        let own = choice(&current.provider, &current.id, &current.name);
        groups.insert(0, (current.provider.clone(), vec![own]));
    }
    let options: Vec<Value> = match groups.as_mut_slice() {
        [(_, choices)] => std::mem::take(choices),
        groups => groups
            .iter()
            .map(|(provider, choices)| json!({"group": provider, "name": provider, "options": choices}))
            .collect(),
    };
    json!({"id": MODEL, "name": "Model", "category": "model", "type": "select",
        "currentValue": value, "options": options})
}

/// The thinking level; `None` if the model has no choice.
fn thinking(control: &Control) -> Option<Value> {
    let levels = control.models().thinking_levels();
    if levels.len() < 2 {
        return None;
    }
    let choices: Vec<Value> =
        levels.iter().map(|level| json!({"value": level.name(), "name": level.name()})).collect();
    Some(json!({"id": THINKING, "name": "Thinking", "category": "thought_level", "type": "select",
        "currentValue": control.snapshot().thinking.name(), "options": choices}))
}

/// Changes the model. The error says why that failed.
pub fn set_model(control: &Control, provider: &str, id: &str) -> Result<(), String> {
    let current = control.models().current();
    if (&*current.provider, &*current.id) == (provider, id) {
        return Ok(());
    }
    let set = control.models().set(provider, id, &mut |_| {}).map_err(|error| error.0)?;
    set.map(drop).ok_or_else(|| format!("There is no model \"{provider}/{id}\", or no key for it"))
}

/// Sets an option. The error says what cannot be set.
pub fn set(control: &Control, modes: Option<&Modes>, id: &str, value: &str) -> Result<(), String> {
    let unknown = || format!("The option \"{id}\" has no value \"{value}\"");
    match id {
        MODEL => {
            let (provider, model) = value.split_once('/').ok_or_else(unknown)?;
            set_model(control, provider, model)
        }
        THINKING => {
            let level = ThinkingLevel::parse(value);
            let level = level.filter(|level| control.models().thinking_levels().contains(level));
            let set = control.models().set_thinking(level.ok_or_else(unknown)?, &mut |_| {});
            set.map(drop).map_err(|error| error.0)
        }
        MODE => modes.ok_or_else(unknown)?.set(value, control),
        _ => Err(format!("There is no option \"{id}\"")),
    }
}
