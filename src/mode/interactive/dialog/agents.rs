//! The list of `/agents`: the helpers of the session, as they are now.

use super::frame::{inside, text, title};
use super::helper::act;
use super::list::{ListDialog, Rows};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::look::Look;
use crate::runtime::helpers::{Helpers, Member};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List};
use crate::tui::theme::Role;
use std::sync::Arc;

pub struct Agents {
    helpers: Arc<Helpers>,
    /// The rows, the last helper first.
    members: Vec<Arc<Member>>,
    /// What came of the last key.
    said: String,
}

pub fn agents(helpers: Arc<Helpers>) -> ListDialog<Agents> {
    let mut rows = Agents { helpers, members: Vec::new(), said: String::new() };
    let mut list = List::new(Vec::new());
    rows.fill(&mut list);
    ListDialog::new(list, rows)
}

impl Agents {
    fn fill(&mut self, list: &mut List) {
        let selected = list.selected_index().and_then(|index| self.members.get(index)).cloned();
        self.members = self.helpers.all();
        self.members.reverse();
        let item = |member: &Arc<Member>| Item::new(&member.name, &member.report().line());
        list.set_items(self.members.iter().map(item).collect());
        let is_selected =
            |member: &Arc<Member>| selected.as_ref().is_some_and(|one| Arc::ptr_eq(one, member));
        list.select(self.members.iter().position(is_selected).unwrap_or(0));
    }
}

impl Rows for Agents {
    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        vec![title("Helpers", look), Line::new()]
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let member = selected.and_then(|item| self.members.iter().find(|member| member.name == item.value));
        let Some(report) = member.map(|member| member.report()) else {
            return Vec::new();
        };
        let line = |words: &str, role| {
            text(words.lines().next().unwrap_or_default(), role, look).into_iter().take(2)
        };
        let mut lines: Vec<Line> = line(&report.task, Role::Muted).collect();
        lines.extend(report.note.iter().flat_map(|note| line(note, Role::Warning)));
        lines.extend(line(&self.said, Role::Error));
        lines
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[(Action::SELECT_CONFIRM, "look at"), (Action::SELECT_CANCEL, "leave")]
    }

    fn hint_lines(&self, look: &Look<'_>) -> Vec<Line> {
        let mut line = super::frame::keys(self.hints(), look);
        line.push("  m message  s stop  g go on with its session", look.style(Role::Dim));
        vec![line.cut(inside(look))]
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        self.members.get(index).cloned().map(Effect::OpenHelper).into_iter().collect()
    }

    fn key(&mut self, key: &Key, list: &mut List, _: &UiConfig) -> Option<Vec<Effect>> {
        self.said.clear();
        let member = self.members.get(list.selected_index()?)?;
        match act(member, key)? {
            Ok(effects) => Some(effects),
            Err(reason) => {
                self.said = reason;
                Some(Vec::new())
            }
        }
    }

    fn update(&mut self, update: &mut Update, list: &mut List, _: &UiConfig) {
        if matches!(update, Update::Helpers) {
            self.fill(list);
        }
    }
}
