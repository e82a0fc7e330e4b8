//! Files of the project for `@`.

use super::app::App;
use crate::tui::complete::Token;
use crate::tui::select::Item;

pub fn offer(app: &mut App, token: &Token) -> Vec<Item> {
    let _ = (app, token);
    Vec::new()
}
