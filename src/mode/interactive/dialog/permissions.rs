//! The list of `/permissions`: the modes of approval, and the rules about tool calls with their scope.

use super::frame::{inside, text, title};
use super::list::{ListDialog, Rows, marks};
use crate::mode::interactive::config::UiConfig;
use crate::mode::interactive::effect::{Effect, Update};
use crate::mode::interactive::keymap::{AppAction, MODELS};
use crate::mode::interactive::look::Look;
use crate::runtime::permission::{self, Entry, Mode, Policy, Rule, Scope};
use crate::tui::key::{Code, Key};
use crate::tui::keymap::Action;
use crate::tui::line::Line;
use crate::tui::select::{Entered, Item, List, TextInput};
use crate::tui::theme::Role;

pub struct Permissions {
    modes: Vec<Mode>,
    policy: Policy,
    is_trusted: bool,
    marks: (&'static str, &'static str),
    /// A rule that is typed, with its scope.
    adding: Option<(TextInput, Scope)>,
    problem: String,
}

/// A row of the list, by its index.
enum Row<'a> {
    Mode(&'a Mode),
    Rule(&'a Entry),
    Add,
}

/// Makes the list. Rules can be added for the folder only if its project is trusted.
pub fn permissions(policy: Policy, is_trusted: bool, config: &UiConfig) -> ListDialog<Permissions> {
    let mut modes = Mode::CHOICES.to_vec();
    if !modes.contains(&policy.mode) {
        modes.push(policy.mode.clone());
    }
    let marks = marks(config, ("on: ", "off: "));
    let at = modes.iter().position(|mode| *mode == policy.mode).unwrap_or(0);
    let rows = Permissions { modes, policy, is_trusted, marks, adding: None, problem: String::new() };
    let mut list = List::new(Vec::new()).label_cells(60);
    rows.fill(&mut list);
    list.set_position(at);
    ListDialog::new(list, rows)
}

impl Permissions {
    fn fill(&self, list: &mut List) {
        let at = list.position();
        let modes = self.modes.iter().map(|mode| {
            let mark = if *mode == self.policy.mode { self.marks.0 } else { self.marks.1 };
            Item::new(mode.name(), &format!("{mark}{}", mode.about())).group("What no rule is about")
        });
        let rules = self.policy.entries.iter().map(|entry| {
            let label = format!("{} {}", entry.effect.name(), entry.rule.text());
            Item::new(&label, &label).about(entry.scope.name()).group("Rules")
        });
        let add = Item::new("+", "+ Add a rule").group("Rules");
        list.set_items(modes.chain(rules).chain([add]).collect());
        list.set_position(at);
    }

    fn row(&self, index: usize) -> Row<'_> {
        let rule = || self.policy.entries.get(index - self.modes.len());
        match self.modes.get(index) {
            Some(mode) => Row::Mode(mode),
            None => rule().map_or(Row::Add, Row::Rule),
        }
    }

    /// Handles a key while a rule is typed.
    fn edit(&mut self, key: &Key, config: &UiConfig) -> Vec<Effect> {
        let Some((input, scope)) = &mut self.adding else {
            return Vec::new();
        };
        if key.code == Code::Tab {
            *scope = match scope {
                Scope::Session if self.is_trusted => Scope::Folder,
                Scope::Session | Scope::Folder => Scope::User,
                _ => Scope::Session,
            };
            return Vec::new();
        }
        match input.handle(key, &config.keymap) {
            Entered::Cancelled => self.adding = None,
            Entered::Ignored | Entered::Handled => {}
            Entered::Text(text) => match parse(&text, *scope) {
                Ok(effect) => {
                    self.adding = None;
                    self.problem.clear();
                    return vec![effect];
                }
                Err(problem) => self.problem = problem,
            },
        }
        Vec::new()
    }
}

/// Parses `allow bash(ls *)`; a rule alone allows.
fn parse(text: &str, scope: Scope) -> Result<Effect, String> {
    let text = text.trim();
    let named = text.split_once(' ').and_then(|(word, rest)| {
        let effect = permission::Effect::ALL.into_iter().find(|effect| effect.name() == word)?;
        Some((effect, rest.trim()))
    });
    let (effect, rule) = named.unwrap_or((permission::Effect::Allow, text));
    if scope == Scope::Folder && effect != permission::Effect::Allow {
        return Err("Rules for a folder can only allow".into());
    }
    Rule::parse(rule).map_err(|fault| format!("The rule {fault}"))?;
    Ok(Effect::AddRule { effect, scope, rule: rule.to_owned() })
}

impl Rows for Permissions {
    fn rows_max(&self) -> usize {
        14
    }

    fn head(&self, look: &Look<'_>) -> Vec<Line> {
        vec![title("Permissions", look)]
    }

    fn detail(&mut self, selected: Option<&Item>, look: &Look<'_>) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some((input, scope)) = &mut self.adding {
            let about = format!(
                "allow, ask or deny, and what: allow bash(cargo test *). For {} (tab changes it)",
                scope.name()
            );
            lines.extend(text(&about, Role::Muted, look));
            lines.push(input.render(inside(look), &look.looks()));
        } else if selected.is_some_and(|item| item.group == "Rules") {
            lines.extend(text(
                "deny goes before ask, ask before allow. pi docs permissions",
                Role::Muted,
                look,
            ));
        }
        if !self.problem.is_empty() {
            lines.extend(text(&self.problem, Role::Warning, look));
        }
        lines
    }

    fn hints(&self) -> &[(Action, &'static str)] {
        &[
            (Action::SELECT_CONFIRM, "choose"),
            (AppAction::MODELS_SAVE, "mode by default"),
            (Action::DELETE_CHAR_FORWARD, "remove rule"),
            (Action::SELECT_CANCEL, "leave"),
        ]
    }

    fn other_rows(&self, detail: usize) -> usize {
        // Two headings take rows, too.
        8 + detail
    }

    fn choose(&mut self, index: usize, _: &mut List, _: &UiConfig) -> Vec<Effect> {
        match self.row(index) {
            Row::Mode(mode) => vec![Effect::UseMode { mode: mode.clone(), saves: false }],
            Row::Rule(_) => Vec::new(),
            Row::Add => {
                self.adding = Some((TextInput::new("Rule: "), Scope::Session));
                Vec::new()
            }
        }
    }

    fn key(&mut self, key: &Key, list: &mut List, config: &UiConfig) -> Option<Vec<Effect>> {
        if self.adding.is_some() {
            return Some(self.edit(key, config));
        }
        let saves = config.keymap.action(key, MODELS) == Some(AppAction::MODELS_SAVE);
        let removes = matches!(key.code, Code::Delete | Code::Backspace);
        match list.selected_index().map(|index| self.row(index)) {
            Some(Row::Mode(mode)) if saves && Mode::CHOICES.contains(mode) => {
                Some(vec![Effect::UseMode { mode: mode.clone(), saves }])
            }
            Some(Row::Rule(entry)) if removes => Some(vec![Effect::RemoveRule(entry.clone())]),
            _ => None,
        }
    }

    fn paste(&mut self, text: &str) -> bool {
        if let Some((input, _)) = &mut self.adding {
            input.paste(text);
        }
        self.adding.is_some()
    }

    fn update(&mut self, update: &mut Update, list: &mut List, _: &UiConfig) {
        if let Update::Policy(policy) = update {
            self.policy = policy.clone();
            self.fill(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::interactive::dialog::testing::Shown;

    #[test]
    fn modes_are_chosen_and_rules_added_and_removed() {
        let mut policy = Policy { mode: Mode::Writes, ..Policy::default() };
        policy.add(permission::Effect::Deny, Scope::User, "bash(rm *)");
        let mut shown = Shown::new(|config| permissions(policy.clone(), true, config));
        let text = shown.text(80);
        assert!(text.contains("→ ✓ asks before changes"), "{text}");
        assert!(text.contains("deny bash(rm *)") && text.contains("everywhere"), "{text}");
        assert!(matches!(
            &shown.press("down enter")[..],
            [Effect::UseMode { mode: Mode::All, saves: false }]
        ));
        assert!(matches!(&shown.press("ctrl+s")[..], [Effect::UseMode { mode: Mode::All, saves: true }]));
        assert!(
            matches!(&shown.press("down down down delete")[..], [Effect::RemoveRule(entry)] if entry.rule.text() == "bash(rm *)")
        );
        shown.press("down enter tab");
        assert!(shown.text(80).contains("For this folder"));
        shown.type_text("ask bash");
        assert!(shown.press("enter").is_empty());
        assert!(shown.text(80).contains("can only allow"));
        shown.press("tab");
        let effects = shown.press("enter");
        let [Effect::AddRule { effect: permission::Effect::Ask, scope: Scope::User, rule }] = &effects[..]
        else {
            panic!("no rule");
        };
        assert_eq!(rule, "bash");
        policy.add(permission::Effect::Ask, Scope::User, "bash");
        shown.update(Update::Policy(policy));
        assert!(shown.text(80).contains("ask bash "));
        assert!(matches!(shown.press("escape")[..], [Effect::Close]));
    }
}
