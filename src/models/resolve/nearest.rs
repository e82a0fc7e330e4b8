//! Suggestions of similar model names for an error about an unknown model.

use super::Usable;
use crate::base::distance::{Compare, between, letters};
use crate::base::order::Order;
use crate::models::ModelName;
use std::collections::HashSet;

const SHOWN_MAX: usize = 5;

const HOW_TO_LIST: &str = "\"pi --list-models\" shows the models that can be used.";

pub fn unknown_model(text: &str, names: &[ModelName], usable: Usable<'_>) -> String {
    let near = among(text, names, usable);
    let near = if near.is_empty() { near } else { format!("Did you mean {near}? ") };
    format!("Model \"{text}\" not found. {near}{HOW_TO_LIST}")
}

pub fn unknown_provider(text: &str, providers: &[&str]) -> String {
    let wanted = letters(text);
    let mut near: Vec<(usize, &str)> = providers
        .iter()
        .map(|name| (between(&wanted, &letters(name), Compare::Whole), *name))
        .filter(|(distance, _)| *distance <= wanted.len() / 3)
        .collect();
    near.order_by_key(|(distance, _)| *distance);
    let near: Vec<&str> = near.iter().take(SHOWN_MAX).map(|(_, name)| *name).collect();
    let near = if near.is_empty() {
        format!("There are {}.", providers.join(", "))
    } else {
        format!("Did you mean {}?", near.join(", "))
    };
    format!("Unknown provider \"{text}\". {near} {HOW_TO_LIST}")
}

/// The models whose `provider/id` contains something similar to `text`: usable models first, then by
/// similarity. A model of several providers is listed once.
pub fn among(text: &str, names: &[ModelName], usable: Usable<'_>) -> String {
    let text = super::split_level(text).map_or(text, |(id, _)| id);
    let wanted = letters(text.trim());
    if wanted.is_empty() {
        return String::new();
    }
    let mut near: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let full = letters(&name.full());
            let within = between(&wanted, &full, Compare::Within);
            (within <= wanted.len() / 5).then(|| {
                let whole = between(&wanted, &full, Compare::Whole);
                ((!usable(&name.provider), within, whole), name)
            })
        })
        .collect();
    near.order_by_key(|(key, _)| *key);
    let mut seen = HashSet::new();
    near.retain(|(_, name)| seen.insert(own_part(&name.id).to_lowercase()));
    let shown: Vec<String> = near.iter().take(SHOWN_MAX).map(|(_, name)| name.full()).collect();
    shown.join(", ")
}

/// An id without the maker that routers prepend.
fn own_part(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(_, part)| part)
}
