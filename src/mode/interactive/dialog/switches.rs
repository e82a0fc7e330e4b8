//! A list of things to switch on and off, in one of two scopes.

use super::frame::{text, title};
use super::list::{ListDialog, Rows};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::Effect;
use crate::mode::interactive::look::Look;
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;

/// A row of the list.
pub struct Switch {
    pub group: String,
    /// State and name.
    pub label: String,
    pub note: String,
    /// Text that a search looks in.
    pub search: String,
}

/// What the list shows, and what its keys do.
pub trait Switches {
    fn title(&self) -> String;

    /// Text below the title.
    fn about(&self) -> String;

    fn rows(&self) -> Vec<Switch>;

    /// Switches the row `index` to its next state.
    fn toggle(&mut self, index: usize) -> Result<(), String>;

    /// Changes to the other scope; false if there is none.
    fn change_scope(&mut self) -> bool;
}

pub struct SwitchRows {
    source: Box<dyn Switches>,
    problem: String,
    is_empty: bool,
}

pub fn switches(source: impl Switches + 'static) -> ListDialog<SwitchRows> {
    let mut rows = SwitchRows { source: Box::new(source), problem: String::new(), is_empty: true };
    let mut list = List::new(Vec::new()).searchable();
    rows.fill(&mut list);
    ListDialog::new(list, rows)
}

impl SwitchRows {
    fn fill(&mut self, list: &mut List) {
        let at = list.position();
        let item =
            |row: Switch| Item::new("", &row.label).about(&row.note).group(&row.group).search(row.search);
        let items: Vec<Item> = self.source.rows().into_iter().map(item).collect();
        self.is_empty = items.is_empty();
        list.set_items(items);
        list.set_position(at);
    }
}

impl Rows for SwitchRows {
    fn rows_max(&self) -> usize {
        30
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        let mut head = vec![title(&self.source.title(), look)];
        head.extend(text(&self.source.about(), Role::Muted, look));
        head.push(Line::new());
        head
    }

    fn detail(&mut self, _: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        text(&self.problem, Role::Error, look)
    }

    fn other_rows(&self, detail: usize) -> usize {
        // Headings take rows, too.
        11 + detail
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "switch"), (Action::SELECT_CANCEL, "leave")]
    }

    fn nothing(&self, look: &Look<'_>) -> Option<Vec<Line>> {
        self.is_empty.then(|| text("No resources found\n", Role::Muted, look))
    }

    fn choose(&mut self, index: usize, list: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.problem = self.source.toggle(index).err().unwrap_or_default();
        self.fill(list);
        Vec::new()
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        match key.code {
            Code::Char(' ') => {
                let index = list.selected_index()?;
                Some(self.choose(index, list, config))
            }
            Code::Tab if self.source.change_scope() => {
                self.problem.clear();
                list.set_position(0);
                self.fill(list);
                Some(Vec::new())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    /// Two rows, of which the first cannot be switched.
    struct Two(bool, bool);

    impl Switches for Two {
        fn title(&self) -> String {
            if self.1 { "Project".into() } else { "User".into() }
        }

        fn about(&self) -> String {
            "settings.json".into()
        }

        fn rows(&self) -> Vec<Switch> {
            let row = |name: &str, is_on: bool| Switch {
                group: "Group".into(),
                label: format!("[{}] {name}", if is_on { "x" } else { " " }),
                note: String::new(),
                search: name.into(),
            };
            vec![row("one", true), row("two", self.0)]
        }

        fn toggle(&mut self, index: usize) -> Result<(), String> {
            if index == 0 {
                return Err("cannot be written".into());
            }
            self.0 = !self.0;
            Ok(())
        }

        fn change_scope(&mut self) -> bool {
            self.1 = !self.1;
            true
        }
    }

    #[test]
    fn rows_are_switched_and_failures_are_shown() {
        let mut shown = Shown::new(|_| switches(Two(false, false)));
        shown.press("enter");
        let text = shown.text(80);
        assert!(
            text.contains("→ [x] one") && text.contains("Group") && text.contains("cannot be written"),
            "{text}"
        );
        shown.press("down space");
        let text = shown.text(80);
        assert!(text.contains("→ [x] two") && !text.contains("cannot"), "{text}");
        shown.press("tab");
        assert!(shown.text(80).contains("Project") && shown.text(80).contains("→ [x] one"));
        shown.type_text("two");
        shown.press("enter");
        assert!(shown.text(80).contains("→ [ ] two"));
        assert!(matches!(shown.press("escape")[..], [Effect::Close]));
    }
}
