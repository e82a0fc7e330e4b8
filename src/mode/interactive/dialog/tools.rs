//! Which tools the model has: `/tools`.

use super::frame::{indented, inside, keys, list_rows, text, title};
use super::{Dialog, Step};
use crate::mode::interactive::app::App;
use crate::mode::interactive::card::Weight;
use crate::mode::interactive::keymap as app_keys;
use crate::mode::interactive::keymap::AppAction;
use crate::mode::interactive::look::Look;
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Item, List, Picked};
use crate::tui::theme::Role;
use serde_json::Value;
use std::any::Any;

const ROWS: usize = 12;

pub fn run(app: &mut App, _: &str) {
    let dialog = Tools::new(app);
    app.open(dialog);
}

pub struct Tools {
    list: List,
    /// Name, description, whether it is active.
    tools: Vec<(String, String, bool)>,
    marks: (&'static str, &'static str),
}

impl Tools {
    pub fn new(app: &App) -> Self {
        let tools = app.control.tools().into_iter().map(|(tool, is_active)| {
            let info = tool.info();
            let about = info.snippet.clone();
            let about = about.unwrap_or_else(|| info.spec.description.clone());
            (info.spec.name.clone(), about, is_active)
        });
        let mut dialog = Self {
            list: List::new(Vec::new()).searchable(),
            tools: tools.collect(),
            marks: match app.stage.is_plain {
                true => ("on: ", "off: "),
                false => ("✓ ", "  "),
            },
        };
        dialog.fill();
        dialog
    }

    fn fill(&mut self) {
        let items = self.tools.iter().map(|(name, about, is_active)| {
            let mark = if *is_active { self.marks.0 } else { self.marks.1 };
            Item::new(name, &format!("{mark}{name}")).about(about)
        });
        self.list.set_items(items.collect());
    }

    fn active(&self) -> Vec<String> {
        let active = self.tools.iter().filter(|(.., is_active)| *is_active);
        active.map(|(name, ..)| name.clone()).collect()
    }
}

impl Dialog for Tools {
    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let mut body = vec![title("Tools", look)];
        let about = "What the model may call in this session, from its next answer on.";
        body.extend(text(about, Role::Muted, look));
        body.push(Line::new());
        self.list.set_rows(list_rows(rows, &mut body, 6, ROWS));
        body.extend(self.list.render(inside(look), &look.looks()));
        body.push(Line::new());
        body.push(keys(
            &[
                (Action::SELECT_CONFIRM, "toggle"),
                (AppAction::MODELS_SAVE, "to set as default"),
                (Action::SELECT_CANCEL, "to leave"),
            ],
            look,
        ));
        indented(body, look, rows)
    }

    fn key(&mut self, key: &Key, app: &mut App) -> Step {
        let keymap = &app.stage.keymap;
        if keymap.action(key, app_keys::MODELS) == Some(AppAction::MODELS_SAVE) {
            let change = ("defaultTools", Some(Value::from(self.active())));
            match app.control.change_settings(&[change]) {
                Ok(()) => app.say(Weight::Info, "Tools of new sessions saved to settings"),
                Err(reason) => app.say(Weight::Warning, &format!("Warning: {reason}")),
            }
            return Step::Stay;
        }
        match self.list.handle(key, keymap) {
            Picked::Chosen(index) => {
                let at = self.list.position();
                if let Some((.., is_active)) = self.tools.get_mut(index) {
                    *is_active = !*is_active;
                }
                let active = app.control.set_active_tools(&self.active());
                for (name, _, is_active) in &mut self.tools {
                    *is_active = active.contains(name);
                }
                self.fill();
                self.list.set_position(at);
                Step::Stay
            }
            Picked::Cancelled => Step::Close,
            Picked::Ignored | Picked::Moved => Step::Stay,
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
    fn tools_are_turned_off_and_on() {
        let mut bench = Bench::new();
        bench.send("/tools");
        let screen = bench.screen(80);
        assert!(screen.contains("→ ✓ read"), "{screen}");
        bench.press("enter");
        assert_eq!(bench.app.control.snapshot().active_tools, ["bash"]);
        assert!(bench.screen(80).contains("→   read"));
        bench.press("ctrl+s enter");
        assert_eq!(bench.app.control.snapshot().active_tools, ["read", "bash"]);
        assert_eq!(bench.settings(), json!({"defaultTools": ["bash"]}));
        bench.press("escape");
        assert!(!bench.app.has_dialog());
    }
}
