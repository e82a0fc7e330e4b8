//! Approval of tool calls: shows the call, and the user decides.

use super::{Dialog, Step};
use crate::mode::interactive::card::Call;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::look::{Look, indented};
use crate::mode::interactive::program_status::{Blocked, Kind};
use crate::runtime::approval::Decision;
use crate::tui::editor::{Editor, Outcome};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, Picked, TextInput, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crossbeam_channel::Sender;
use serde_json::{Map, Value};

const ALLOW: &str = "Allow";
const ALWAYS: &str = "Always allow";
const CHANGE: &str = "Change the arguments";
const DENY: &str = "Deny";
const DENY_BECAUSE: &str = "Deny with a reason";

pub struct Approve {
    call: Call,
    reply: Sender<Decision>,
    page: Page,
    problem: Option<String>,
}

enum Page {
    What(List),
    Why(TextInput),
    Arguments(Editor),
}

impl Approve {
    pub fn new(call: Call, reply: Sender<Decision>) -> Self {
        Self { call, reply, page: what(), problem: None }
    }

    fn decide(&self, decision: Decision) -> Vec<Effect> {
        // There is room for the one answer; an asker that has gone needs none.
        let _ = self.reply.try_send(decision);
        vec![Effect::Approved(self.call.id.clone()), Effect::Close]
    }

    fn choose(&mut self, value: &str) -> Vec<Effect> {
        match value {
            ALLOW => return self.decide(Decision::Allow),
            ALWAYS => return self.decide(Decision::AllowAlways),
            DENY => return self.decide(Decision::Deny(None)),
            CHANGE => {
                let text = serde_json::to_string_pretty(self.call.arguments()).unwrap_or_default();
                let mut editor = Editor::new();
                editor.set_text(&text);
                self.page = Page::Arguments(editor);
            }
            _ => self.page = Page::Why(TextInput::new("Why not? The model is told: ")),
        }
        Vec::new()
    }

    fn change(&mut self, text: &str) -> Vec<Effect> {
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(arguments) => self.decide(Decision::Change(arguments)),
            Err(error) => {
                self.problem = Some(format!("The arguments are no JSON object: {error}"));
                let mut editor = Editor::new();
                editor.set_text(text);
                self.page = Page::Arguments(editor);
                Vec::new()
            }
        }
    }
}

fn what() -> Page {
    let items = [ALLOW, ALWAYS, CHANGE, DENY, DENY_BECAUSE];
    Page::What(List::new(items.iter().map(|text| Item::new(text, text)).collect()))
}

impl Dialog for Approve {
    fn blocked(&self) -> Option<Blocked> {
        Some(Blocked { kind: Kind::Permission, title: format!("Allow {}", self.call.name) })
    }

    fn lines(&mut self, look: &Look<'_>, rows: usize) -> Vec<Line> {
        let looks = look.looks();
        let border = look.rule(look.style(Role::BorderAccent));
        let title = match &self.call.helper {
            Some(helper) => format!("Allow {} of helper {helper}?", self.call.name),
            None => format!("Allow {}?", self.call.name),
        };
        let title = Line::of(&title, look.style(Role::Warning).with(Attributes::BOLD));
        let inner = look.within(look.width.saturating_sub(2).max(1));
        let mut lines = match &mut self.page {
            Page::What(list) => {
                let mut lines = list.render(inner.width, &looks);
                lines.push(Line::new());
                lines.push(hints(
                    &[(Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, "deny")],
                    look.keymap,
                    &looks,
                ));
                lines
            }
            Page::Why(input) => vec![input.render(inner.width, &looks)],
            Page::Arguments(editor) => {
                let rows_max = rows.saturating_sub(8).clamp(3, 20);
                let (text, marker) = (looks.text, looks.accent);
                let mut lines = editor.render(inner.width, rows_max, text, marker).lines;
                lines.push(Line::new());
                lines.push(hints(
                    &[(Action::SUBMIT, "use these"), (Action::SELECT_CANCEL, "back")],
                    look.keymap,
                    &looks,
                ));
                lines
            }
        };
        if let Some(problem) = &self.problem {
            lines.insert(0, Line::of(problem, look.style(Role::Error)).cut(inner.width));
        }
        let room = rows.saturating_sub(lines.len() + 4);
        let mut card = self.call.lines_to_approve(look, room);
        if card.len() > room {
            card.truncate(room.saturating_sub(1));
            card.push(Line::of(" …", looks.muted));
        }
        let mut out = vec![border.clone()];
        out.extend(indented([title]));
        out.extend(card);
        out.push(Line::new());
        out.extend(indented(lines));
        out.push(border);
        out
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let keymap = &config.keymap;
        match &mut self.page {
            Page::What(list) => match list.handle(key, keymap) {
                Picked::Chosen(index) => {
                    let value = list.items().get(index).map(|item| item.value.clone());
                    self.choose(&value.unwrap_or_default())
                }
                Picked::Cancelled => self.decide(Decision::Deny(None)),
                Picked::Moved | Picked::Ignored => Vec::new(),
            },
            Page::Why(input) => match input.handle(key, keymap) {
                Entered::Text(reason) if reason.trim().is_empty() => self.decide(Decision::Deny(None)),
                Entered::Text(reason) => {
                    self.decide(Decision::Deny(Some(format!("The user denied this call: {}", reason.trim()))))
                }
                Entered::Cancelled => {
                    self.page = what();
                    Vec::new()
                }
                _ => Vec::new(),
            },
            Page::Arguments(_) if keymap.is(key, Action::SELECT_CANCEL) => {
                self.page = what();
                self.problem = None;
                Vec::new()
            }
            Page::Arguments(editor) => match editor.handle(key, keymap) {
                Outcome::Submit(text) => self.change(&text),
                _ => Vec::new(),
            },
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.page {
            Page::What(_) => {}
            Page::Why(input) => input.paste(text),
            Page::Arguments(editor) => {
                editor.paste(text);
            }
        }
    }

    fn update(&mut self, update: &mut Update, _: &UiConfig) -> Step {
        match update {
            Update::ApprovalOver(id) if *id == self.call.id => Step::Close,
            _ => Step::Stay,
        }
    }

    fn dismiss(&mut self) -> Vec<Effect> {
        self.decide(Decision::Deny(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;
    use crossbeam_channel::bounded;

    #[test]
    fn a_call_is_allowed_changed_or_denied() {
        for (keys, typed, last, expected) in [
            ("enter", "", "enter", "Allow"),
            ("down enter", "", "enter", "AllowAlways"),
            ("down down down down enter", "no", "enter", "Deny(Some(\"The user denied this call: no\"))"),
            ("f1", "", "escape", "Deny(None)"),
        ] {
            let (reply, decided) = bounded(1);
            let mut call = Call::new("1", "bash");
            call.set_arguments(Map::from_iter([("command".to_owned(), Value::from("ls"))]));
            let mut shown = Shown::new(|_| Approve::new(call, reply));
            assert!(shown.text(80).contains("Allow bash?"));
            shown.press(keys);
            shown.type_text(typed);
            if decided.is_empty() {
                assert!(matches!(shown.press(last)[..], [Effect::Approved(_), Effect::Close]));
            }
            assert_eq!(format!("{:?}", decided.recv().unwrap()), expected);
        }
    }
}
