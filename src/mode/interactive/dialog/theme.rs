//! The choice of a theme. What is chosen is shown as one moves.

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::settings::{self, Dialogue};
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::look::Look;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use std::any::Any;

const ROWS: usize = 10;
const AUTOMATIC: &str = "Automatic";

pub fn run(app: &mut App) {
    let dialog = Choose::new(app);
    app.open(dialog);
}

/// What is chosen just now.
enum Turn {
    /// One theme, or that there are to be two.
    One,
    /// That for light terminals.
    Light,
    /// That for dark ones; the one for light ones is chosen.
    Dark(String),
}

struct Choose {
    list: List,
    turn: Turn,
}

impl Choose {
    fn new(app: &App) -> Self {
        let mut items =
            vec![Item::new("", AUTOMATIC).about("One for light terminals, another for dark ones")];
        items.extend(themes(app));
        let mut list = List::new(items);
        let now = &app.stage.theme.name;
        if let Some(at) = list.items().iter().position(|item| item.value == *now) {
            list.select(at);
        }
        Self { list, turn: Turn::One }
    }

    fn go_on(&mut self, turn: Turn, app: &App) {
        self.turn = turn;
        self.list = List::new(themes(app));
    }

    /// Shows the screen in the colours of the choice.
    fn preview(&self, app: &mut App) {
        let theme = self.list.selected().map(|item| item.value.as_str());
        match theme.and_then(|name| app.stage.themes.find(name)) {
            Some(theme) => app.stage.theme = theme,
            // What is wrong with the setting was said before.
            None => drop(app.stage.choose_theme()),
        }
    }

    fn take(&mut self, app: &mut App) -> Step {
        let name = self.list.selected().map(|item| item.value.clone());
        let name = name.unwrap_or_default();
        let setting = match std::mem::replace(&mut self.turn, Turn::One) {
            Turn::One if name.is_empty() => {
                self.go_on(Turn::Light, app);
                self.preview(app);
                return Step::Stay;
            }
            Turn::One => name,
            Turn::Light => {
                self.go_on(Turn::Dark(name), app);
                self.preview(app);
                return Step::Stay;
            }
            Turn::Dark(light) => format!("{light}/{name}"),
        };
        app.stage.themes.overrule();
        if let Err(reason) = settings::write(app, "theme", Some(setting.into())) {
            app.say(Weight::Warning, &format!("Warning: {reason}"));
        }
        refresh(app);
        Step::Close
    }
}

/// The list below shows how it stands now.
fn refresh(app: &mut App) {
    app.with_dialog(|dialog: &mut Dialogue, app| dialog.refresh(app));
}

fn themes(app: &App) -> Vec<Item> {
    let (mark, blank) = match app.stage.is_plain {
        true => ("current: ", ""),
        false => ("✓ ", "  "),
    };
    let names = app.stage.themes.names().into_iter();
    names
        .map(|name| {
            let is_now = app.stage.theme.name == name;
            Item::new(name, &format!("{}{name}", if is_now { mark } else { blank }))
        })
        .collect()
}

impl Dialog for Choose {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let (name, about) = match &self.turn {
            Turn::One => ("Theme", "For new lines, and for the viewer."),
            Turn::Light => ("Light Theme", "For terminals with a light background."),
            Turn::Dark(_) => ("Dark Theme", "For terminals with a dark background."),
        };
        let mut body = vec![title(name, look)];
        body.extend(text(about, Role::Muted, look));
        body.push(Line::new());
        self.list.set_rows(list_rows(rows, &mut body, 6, ROWS));
        body.extend(self.list.render(inside(look), &look.looks()));
        body.push(Line::new());
        body.push(keys(
            &[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to go back")],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        match self.list.handle(key, &app.stage.keymap) {
            Picked::Chosen(_) => self.take(app),
            Picked::Cancelled => {
                // What is wrong with the setting was said before.
                let _ = app.stage.choose_theme();
                Step::Close
            }
            Picked::Moved => {
                self.preview(app);
                Step::Stay
            }
            Picked::Ignored => Step::Stay,
        }
    }

    fn dismiss(&mut self, app: &mut App) {
        let _ = app.stage.choose_theme();
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
    fn a_theme_is_shown_as_one_moves_and_kept_when_it_is_chosen() {
        let mut bench = Bench::new();
        bench.app.stage.backdrop = crate::tui::theme::Backdrop::Dark;
        assert_eq!(bench.app.stage.choose_theme(), None);
        bench.send("/settings");
        bench.type_text("theme");
        bench.press("enter");
        let screen = bench.screen(80);
        assert!(screen.contains("→ ✓ dark"), "{screen}");
        bench.press("down");
        assert_eq!(bench.app.stage.theme.name, "light");
        bench.press("escape");
        assert_eq!(bench.app.stage.theme.name, "dark");
        assert_eq!(bench.settings(), json!({}));
        bench.press("enter down enter");
        assert_eq!(bench.app.stage.theme.name, "light");
        assert_eq!(bench.settings(), json!({"theme": "light"}));
        let screen = bench.screen(80);
        assert!(screen.contains("→ Theme") && screen.contains("light"), "{screen}");
    }

    #[test]
    fn two_themes_are_chosen_one_after_the_other() {
        let mut bench = Bench::new();
        bench.app.stage.theme = crate::tui::theme::Theme::dark();
        bench.send("/settings");
        bench.type_text("theme");
        bench.press("enter");
        assert!(bench.screen(80).contains("Theme"));
        bench.press("up enter");
        assert!(bench.screen(80).contains("Light Theme"));
        bench.press("down enter");
        assert!(bench.screen(80).contains("Dark Theme"));
        bench.press("enter");
        assert_eq!(bench.settings(), json!({"theme": "light/dark"}));
    }
}
