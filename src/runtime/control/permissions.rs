//! The mode of approval and the rules about tool calls: what holds, and changes by the user.

use super::Permissions;
use crate::base::json::json;
use crate::resources::settings::Settings;
use crate::runtime::permission::{Effect, Entry, FOLDERS, Mode, Policy, Rule, Scope};
use serde_json::{Map, Value};

impl Permissions<'_> {
    /// Returns the mode and all rules.
    pub fn policy(&self) -> Policy {
        self.control.0.approvals.policy()
    }

    /// Sets the mode of this session, from the next call on.
    pub fn set_mode(&self, mode: Mode) {
        self.control.0.approvals.set_mode(mode);
    }

    /// Sets the mode, and writes it to the user's settings.
    pub fn save_mode(&self, mode: Mode) -> Result<(), String> {
        let name = mode.name();
        self.set_mode(mode);
        self.control.preferences().remember("permissions.mode", name.into())
    }

    /// Adds a rule for the session, for the folder, or for all sessions. Rules of a folder only allow.
    pub fn add(&self, effect: Effect, scope: Scope, text: &str) -> Result<(), String> {
        let rule = Rule::parse(text).map_err(|fault| format!("The rule {text:?} {fault}"))?;
        let add = |rules: &mut Vec<Value>| {
            if !rules.iter().any(|known| known == rule.text()) {
                rules.push(rule.text().into());
            }
        };
        match scope {
            Scope::User | Scope::Folder => self.change(effect, scope, add),
            Scope::Session | Scope::Flag | Scope::Project => self.control.0.approvals.add(effect, text),
        }
    }

    /// Removes a rule of the session or of the user's settings.
    pub fn remove(&self, entry: &Entry) -> Result<(), String> {
        match entry.scope {
            Scope::Session => {
                self.control.0.approvals.remove(entry);
                Ok(())
            }
            Scope::User | Scope::Folder => self.change(entry.effect, entry.scope, |rules| {
                rules.retain(|known| known.as_str().map(str::trim) != Some(entry.rule.text()));
            }),
            Scope::Flag => Err("The command line has this rule; it holds until pi ends".into()),
            Scope::Project => Err("The project has this rule, in .pi/settings.json".into()),
        }
    }

    /// Changes a list of rules in the user's settings.
    fn change(
        &self,
        effect: Effect,
        scope: Scope,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), String> {
        let config = self.control.config();
        let (settings, _) = Settings::load(config.settings.path().parent().unwrap_or(config.settings.path()));
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let (path, value) = match scope {
            Scope::Folder => {
                let mut folders: Map<String, Value> =
                    settings.of_user(FOLDERS).and_then(Value::as_object).cloned().unwrap_or_default();
                let here = config.workspace.cwd.to_string_lossy().into_owned();
                let mut rules = list(folders.get(&here));
                change(&mut rules);
                match rules.is_empty() {
                    true => drop(folders.shift_remove(&here)),
                    false => drop(folders.insert(here, rules.into())),
                }
                (FOLDERS, (!folders.is_empty()).then(|| json!(folders)))
            }
            _ => {
                let mut rules = list(settings.of_user(effect.setting()));
                change(&mut rules);
                (effect.setting(), (!rules.is_empty()).then(|| json!(rules)))
            }
        };
        self.control.preferences().change_settings(&[(path, value)])
    }
}
