//! The list of themes. The selected theme is previewed.

use super::frame::{text, title};
use super::list::{ListDialog, Rows, marks};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, ThemeFor};
use crate::mode::interactive::look::Look;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

const AUTOMATIC: &str = "Automatic";

pub struct Themes(ThemeFor);

pub fn themes(which: ThemeFor, config: &UiConfig) -> ListDialog<Themes> {
    let (mark, blank) = marks(config, ("current: ", ""));
    let is_pair = config.themes.follows() && !config.themes.is_system();
    let current = if is_pair && which == ThemeFor::All { "" } else { &*config.theme.name };
    let named = config
        .themes
        .names()
        .into_iter()
        .map(|name| Item::new(name, &format!("{}{name}", if name == current { mark } else { blank })));
    let list = match which {
        ThemeFor::All => {
            let label = format!("{}{AUTOMATIC}", if is_pair { mark } else { blank });
            let automatic = Item::new("", &label).about("One for light terminals, another for dark ones");
            let mut list = List::new(std::iter::once(automatic).chain(named).collect());
            if let Some(at) = list.items().iter().position(|item| item.value == current) {
                list.select(at);
            }
            list
        }
        ThemeFor::Light | ThemeFor::Dark(_) => List::new(named.collect()),
    };
    ListDialog::new(list, Themes(which))
}

impl Rows for Themes {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let (name, about) = match &self.0 {
            ThemeFor::All => ("Theme", "For new lines, and for the viewer."),
            ThemeFor::Light => ("Light Theme", "For terminals with a light background."),
            ThemeFor::Dark(_) => ("Dark Theme", "For terminals with a dark background."),
        };
        let mut head = vec![title(name, look)];
        head.extend(text(about, Role::Muted, look));
        head.push(Line::new());
        head
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "to select"), (Action::SELECT_CANCEL, "to go back")]
    }

    fn choose(&mut self, _: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        let name = list.selected().map(|item| item.value.clone()).unwrap_or_default();
        let next = match &self.0 {
            ThemeFor::All if name.is_empty() => Effect::ChooseTheme(ThemeFor::Light),
            ThemeFor::All => Effect::UseTheme(name),
            ThemeFor::Light => Effect::ChooseTheme(ThemeFor::Dark(name)),
            ThemeFor::Dark(light) => Effect::UseTheme(format!("{light}/{name}")),
        };
        vec![Effect::Close, next]
    }

    fn moved(&mut self, list: &List) -> Vec<Effect> {
        vec![Effect::PreviewTheme(list.selected().map(|item| item.value.clone()))]
    }

    fn cancelled(&mut self) -> Vec<Effect> {
        vec![Effect::Close, Effect::PreviewTheme(None)]
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        vec![Effect::PreviewTheme(None)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn the_theme_is_shown_as_one_moves_and_the_old_one_when_one_leaves() {
        let mut shown = Shown::new(|config| themes(ThemeFor::All, config));
        assert!(shown.text(80).contains("→ ✓ system"), "{}", shown.text(80));
        assert!(matches!(&shown.press("up")[..], [Effect::PreviewTheme(Some(name))] if name == "light"));
        let left = shown.press("escape");
        assert!(matches!(left[..], [Effect::Close, Effect::PreviewTheme(None)]));
        let mut dark = Shown::new(|config| themes(ThemeFor::Dark("light".to_owned()), config));
        assert!(matches!(&dark.press("enter")[..], [_, Effect::UseTheme(pair)] if pair == "light/dark"));
    }
}
