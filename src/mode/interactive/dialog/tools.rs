//! The list of the model's tools.

use super::frame::{text, title};
use super::list::{ListDialog, Rows, marks};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::keymap::{AppAction, MODELS};
use crate::mode::interactive::look::Look;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

/// A tool in the list, and whether it is active.
pub struct Tool {
    pub name: String,
    pub about: String,
    pub is_active: bool,
}

pub struct Tools {
    tools: Vec<Tool>,
    marks: (&'static str, &'static str),
}

pub fn tools(tools: Vec<Tool>, config: &UiConfig) -> ListDialog<Tools> {
    let tools = Tools { tools, marks: marks(config, ("on: ", "off: ")) };
    let mut list = List::new(Vec::new()).searchable();
    tools.fill(&mut list);
    ListDialog::new(list, tools)
}

impl Tools {
    fn fill(&self, list: &mut List) {
        let at = list.position();
        let items = self.tools.iter().map(|tool| {
            let mark = if tool.is_active { self.marks.0 } else { self.marks.1 };
            Item::new(&tool.name, &format!("{mark}{}", tool.name)).about(&tool.about)
        });
        list.set_items(items.collect());
        list.set_position(at);
    }

    fn active(&self) -> Vec<String> {
        let active = self.tools.iter().filter(|tool| tool.is_active);
        active.map(|tool| tool.name.clone()).collect()
    }
}

impl Rows for Tools {
    fn rows_max(&self) -> usize {
        12
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let about = "What the model may call in this session, from its next answer on.";
        let mut head = vec![title("Tools", look)];
        head.extend(text(about, Role::Muted, look));
        head.push(Line::new());
        head
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[
            (Action::SELECT_CONFIRM, "toggle"),
            (AppAction::MODELS_SAVE, "to set as default"),
            (Action::SELECT_CANCEL, "to leave"),
        ]
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        if let Some(tool) = self.tools.get_mut(index) {
            tool.is_active = !tool.is_active;
        }
        vec![Effect::UseTools(self.active())]
    }

    fn key(&mut self, key: &Key, _: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        let saves = config.keymap.action(key, MODELS) == Some(AppAction::MODELS_SAVE);
        saves.then(|| vec![Effect::SaveTools(self.active())])
    }

    fn update(&mut self, update: &mut Update, list: &mut List, _: &UiConfig) {
        if let Update::Tools(active) = update {
            for tool in &mut self.tools {
                tool.is_active = active.contains(&tool.name);
            }
            self.fill(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn what_is_asked_for_is_shown_when_it_has_been_done() {
        let tool = |name: &str| Tool { name: name.to_owned(), about: String::new(), is_active: true };
        let mut shown = Shown::new(|config| tools(vec![tool("read"), tool("bash")], config));
        let asked = |effects: Vec<Effect>| match effects.into_iter().next() {
            Some(Effect::UseTools(names) | Effect::SaveTools(names)) => names,
            _ => Vec::new(),
        };
        assert_eq!(asked(shown.press("down enter")), ["read"]);
        assert!(shown.text(80).contains("→ ✓ bash"));
        shown.update(Update::Tools(vec!["read".to_owned()]));
        assert!(shown.text(80).contains("→   bash"));
        assert_eq!(asked(shown.press("ctrl+s")), ["read"]);
        assert!(matches!(shown.press("escape")[..], [Effect::Close]));
    }
}
