//! Approval of tool calls: shows the call, and the user decides.

use super::{Dialog, Step};
use crate::mode::interactive::card::Call;
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, ToApprove, Update};
use crate::mode::interactive::look::{Look, indented};
use crate::mode::interactive::program_status::{Blocked, Kind};
use crate::runtime::approval::Decision;
use crate::runtime::permission::{self, Always, Scope};
use crate::tui::editor::{Editor, Outcome};
use crate::tui::key::Key;
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, Picked, TextInput, hints};
use crate::tui::style::Attributes;
use crate::tui::theme::Role;
use crate::tui::wrap::wrap;
use crossbeam_channel::Sender;
use serde_json::{Map, Value};

/// What can be answered: the letter that answers at once, and the row of the list.
const ANSWERS: [(char, &str); 5] = [
    ('y', "Allow"),
    ('a', "Always allow …"),
    ('c', "Change the arguments"),
    ('n', "Deny"),
    ('r', "Deny with a reason"),
];

/// Screens with no more rows show one row of the call.
const LOW: usize = 10;
/// Screens with no more rows show more of the call in place of the key hints.
const BRIEF: usize = 16;

pub struct Approve {
    call: Call,
    /// What can be allowed for good: the row's text, the scope and the rules.
    always: Vec<(String, Scope, Vec<String>)>,
    asked_by: Option<String>,
    reply: Sender<Decision>,
    page: Page,
    problem: Option<String>,
    /// True if the user was writing when the question came: what was meant for the editor decides nothing.
    is_typing: bool,
}

enum Page {
    What(List),
    Always(List),
    Why(TextInput),
    Arguments(Editor),
}

impl Approve {
    /// Makes the dialog. Rules are offered for the folder only if its project is trusted.
    pub fn new(asked: ToApprove, is_trusted: bool, is_typing: bool) -> Self {
        let ToApprove { call, always, asked_by, reply } = asked;
        let scopes = [Scope::Session, Scope::Folder, Scope::User].into_iter();
        let scopes: Vec<Scope> = scopes.filter(|scope| is_trusted || *scope != Scope::Folder).collect();
        let row = |always: &Always, scope: Scope| {
            (format!("{}: {}", scope.name(), always.label), scope, always.rules.clone())
        };
        let always =
            always.iter().flat_map(|always| scopes.iter().map(|scope| row(always, *scope))).collect();
        let mut dialog = Self {
            call,
            always,
            asked_by,
            reply,
            page: Page::Always(List::new(Vec::new())),
            problem: None,
            is_typing,
        };
        dialog.page = dialog.what();
        dialog
    }

    fn decide(&self, decision: Decision) -> Vec<Effect> {
        // There is room for the one answer; an asker that has gone needs none.
        let _ = self.reply.try_send(decision);
        vec![Effect::Approved(self.call.id.clone()), Effect::Close]
    }

    fn what(&self) -> Page {
        let answers = ANSWERS.iter().filter(|(letter, _)| *letter != 'a' || !self.always.is_empty());
        let row =
            |(letter, text): &(char, &str)| Item::new(&letter.to_string(), &format!("{letter}  {text}"));
        Page::What(List::new(answers.map(row).collect()))
    }

    fn choose(&mut self, letter: char) -> Vec<Effect> {
        match letter {
            'y' => return self.decide(Decision::Allow),
            'n' => return self.decide(Decision::Deny(None)),
            'a' if !self.always.is_empty() => {
                let rows = self.always.iter().map(|(text, ..)| Item::new(text, text));
                self.page = Page::Always(List::new(rows.collect()));
            }
            'c' => {
                let text = serde_json::to_string_pretty(self.call.arguments()).unwrap_or_default();
                let mut editor = Editor::new();
                editor.set_text(&text);
                self.page = Page::Arguments(editor);
            }
            'r' => self.page = Page::Why(TextInput::new("Why not? The model is told: ")),
            _ => {}
        }
        Vec::new()
    }

    /// Allows the call and those like it.
    fn allow_always(&self, index: usize) -> Vec<Effect> {
        match self.always.get(index) {
            Some((_, Scope::Session, rules)) => self.decide(Decision::AllowAlways(rules.clone())),
            Some((_, scope, rules)) => {
                let add = |rule: &String| Effect::AddRule {
                    effect: permission::Effect::Allow,
                    scope: *scope,
                    rule: rule.clone(),
                };
                // The rules hold before the next question is judged.
                let decided = Effect::Decide(self.reply.clone(), Decision::Allow);
                let closed = [Effect::Approved(self.call.id.clone()), Effect::Close];
                rules.iter().map(add).chain([decided]).chain(closed).collect()
            }
            None => Vec::new(),
        }
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
        let cancel = if matches!(self.page, Page::Always(_)) { "back" } else { "deny" };
        let mut lines = match &mut self.page {
            Page::What(list) | Page::Always(list) => {
                // The call stays in sight.
                list.set_rows(rows.saturating_sub(8).clamp(1, 10));
                let mut lines = list.render(inner.width, &looks);
                if rows > BRIEF {
                    lines.push(Line::new());
                    let keys = [(Action::SELECT_CONFIRM, "choose"), (Action::SELECT_CANCEL, cancel)];
                    lines.extend(wrap(&hints(&keys, look.keymap, &looks), inner.width));
                }
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
        let rule =
            self.asked_by.as_ref().map(|rule| Line::of(&format!("The rule \"{rule}\" asks."), looks.muted));
        let typing = "What you were writing waits. Up or Down first, then answer.";
        let typing = self.is_typing.then(|| Line::of(typing, look.style(Role::Warning)));
        for line in typing.iter().chain(&rule) {
            lines.splice(0..0, wrap(line, inner.width));
        }
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
        if rows > LOW {
            out.extend(card);
            out.push(Line::new());
        } else {
            // The title, one row of the call, and the answers.
            let first =
                self.call.lines_to_approve(look, LOW).into_iter().find(|line| !line.text().trim().is_empty());
            out.extend(first);
        }
        out.extend(indented(lines));
        out.push(border);
        out.truncate(rows.max(1));
        out.iter().map(|line| line.cut(look.width)).collect()
    }

    fn key(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let keymap = &config.keymap;
        let is_choice = matches!(self.page, Page::What(_));
        match &mut self.page {
            Page::What(_)
                if self.is_typing && (key.typed().is_some() || keymap.is(key, Action::SELECT_CONFIRM)) =>
            {
                Vec::new()
            }
            Page::What(list) | Page::Always(list) => match list.handle(key, keymap) {
                Picked::Chosen(index) if is_choice => {
                    let letter = list.items().get(index).and_then(|item| item.value.chars().next());
                    letter.map(|letter| self.choose(letter)).unwrap_or_default()
                }
                Picked::Chosen(index) => self.allow_always(index),
                Picked::Cancelled if is_choice => self.decide(Decision::Deny(None)),
                Picked::Cancelled => {
                    self.page = self.what();
                    Vec::new()
                }
                Picked::Moved => {
                    self.is_typing = false;
                    Vec::new()
                }
                Picked::Ignored if is_choice => match key.typed() {
                    Some(letter) => self.choose(letter),
                    None => Vec::new(),
                },
                Picked::Ignored => Vec::new(),
            },
            Page::Why(input) => match input.handle(key, keymap) {
                Entered::Text(reason) if reason.trim().is_empty() => self.decide(Decision::Deny(None)),
                Entered::Text(reason) => {
                    self.decide(Decision::Deny(Some(format!("The user denied this call: {}", reason.trim()))))
                }
                Entered::Cancelled => {
                    self.page = self.what();
                    Vec::new()
                }
                _ => Vec::new(),
            },
            Page::Arguments(_) if keymap.is(key, Action::SELECT_CANCEL) => {
                self.page = self.what();
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
            Page::What(_) | Page::Always(_) => {}
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

    fn ask(is_trusted: bool, is_typing: bool) -> (Shown, crossbeam_channel::Receiver<Decision>) {
        let (reply, decided) = bounded(1);
        let mut call = Call::new("1", "bash");
        call.set_arguments(Map::from_iter([("command".to_owned(), Value::from("ls -l"))]));
        let always =
            |label: &str, rule: &str| Always { label: label.to_owned(), rules: vec![rule.to_owned()] };
        let always = vec![always("bash(ls *)", "bash(ls *)"), always("every call of bash", "bash")];
        let asked = ToApprove { call, always, asked_by: None, reply };
        (Shown::new(|_| Approve::new(asked, is_trusted, is_typing)), decided)
    }

    #[test]
    fn a_call_is_allowed_changed_or_denied() {
        for (keys, typed, last, expected) in [
            ("enter", "", "enter", "Allow"),
            ("y", "", "enter", "Allow"),
            ("n", "", "enter", "Deny(None)"),
            ("a", "", "enter", "AllowAlways([\"bash(ls *)\"])"),
            ("down enter down down down", "", "enter", "AllowAlways([\"bash\"])"),
            ("down down down down enter", "no", "enter", "Deny(Some(\"The user denied this call: no\"))"),
            ("r", "no", "enter", "Deny(Some(\"The user denied this call: no\"))"),
            ("a escape", "", "enter", "Allow"),
            ("f1", "", "escape", "Deny(None)"),
        ] {
            let (mut shown, decided) = ask(true, false);
            assert!(shown.text(80).contains("Allow bash?"));
            shown.press(keys);
            shown.type_text(typed);
            if decided.is_empty() {
                assert!(matches!(shown.press(last)[..], [Effect::Approved(_), Effect::Close]), "{keys}");
            }
            assert_eq!(format!("{:?}", decided.recv().unwrap()), expected);
        }
    }

    #[test]
    fn always_names_its_scope_and_the_folder_only_where_it_is_trusted() {
        let (mut shown, decided) = ask(true, false);
        shown.press("a");
        let text = shown.text(80);
        for row in ["→ this session: bash(ls *)", "this folder: bash(ls *)", "everywhere: every call of bash"]
        {
            assert!(text.contains(row), "{text}");
        }
        let effects = shown.press("down enter");
        let [
            Effect::AddRule { scope, rule, .. },
            Effect::Decide(_, decision),
            Effect::Approved(_),
            Effect::Close,
        ] = &effects[..]
        else {
            panic!("other effects");
        };
        assert!(decided.is_empty());
        assert_eq!((*scope, rule.as_str(), decision), (Scope::Folder, "bash(ls *)", &Decision::Allow));
        let (mut shown, _decided) = ask(false, false);
        shown.press("a");
        assert!(!shown.text(80).contains("this folder"));
    }

    #[test]
    fn what_was_meant_for_the_editor_decides_nothing() {
        let (mut shown, decided) = ask(true, true);
        assert!(shown.text(80).contains("What you were writing waits"));
        shown.press("y enter n");
        assert!(decided.is_empty());
        shown.press("down up y");
        assert_eq!(decided.recv().unwrap(), Decision::Allow);
    }

    #[test]
    fn the_answers_are_there_on_a_small_screen() {
        let (mut shown, _decided) = ask(true, false);
        shown.set_rows(5);
        let text = shown.text(20);
        assert!(text.contains("ls -l") && text.contains("→ y  Allow"), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}
