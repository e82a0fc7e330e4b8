//! The modes of a session: what happens to tool calls (`pi docs permissions`), and plan mode.

use crate::base::json::json;
use crate::runtime::control::Control;
use crate::runtime::permission::Mode;
use crate::runtime::plan;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Modes {
    /// The modes of approval: those that a user changes between, and the one of the command line.
    choices: Vec<Mode>,
    can_plan: bool,
}

/// Lets a session ask before changes, unless the user has chosen a mode or a sandbox.
pub fn ask_by_default(control: &Control) {
    let config = control.config();
    let is_chosen = config.over.approval.mode.is_some()
        || config.settings.get("permissions.mode").is_some()
        || config.workspace.backend.sandbox().is_some();
    if !is_chosen {
        control.permissions().set_mode(Mode::Writes);
    }
}

impl Modes {
    /// The modes of a session; `None` if none of its tools changes anything, so that there is no choice.
    pub fn of(control: &Control) -> Option<Self> {
        let all = control.tools().all();
        let changes = all.iter().any(|(tool, is_active)| *is_active && !tool.info().reads_only);
        let mut choices = Mode::CHOICES.to_vec();
        let mode = control.permissions().policy().mode;
        if !choices.contains(&mode) {
            choices.push(mode);
        }
        let can_plan = all.iter().any(|(tool, _)| tool.info().spec.name == plan::NAME);
        (changes || control.is_planning()).then_some(Self { choices, can_plan })
    }

    /// Changes the mode, from the next call on. The error says why that failed.
    pub fn set(&self, id: &str, control: &Control) -> Result<(), String> {
        if self.can_plan && id == plan::NAME {
            return control.begin_planning(false);
        }
        let mode = self.choices.iter().find(|mode| mode.name() == id);
        let mode = mode.ok_or_else(|| format!("There is no mode \"{id}\""))?;
        control.end_planning()?;
        control.permissions().set_mode(mode.clone());
        Ok(())
    }

    /// The modes with name and description. `id` is the field that holds a mode's id.
    pub fn choices(&self, id: &str) -> Value {
        let mode = |mode: &str, name: String, description: &str| json!({id: mode, "name": name, "description": description});
        let choices = self.choices.iter().map(|choice| {
            let (name, description) = match choice {
                Mode::Free => ("Run without asking", "All calls run"),
                Mode::Writes => ("Ask before changes", "Calls that may change something are asked about"),
                Mode::All | Mode::Every => ("Ask before each call", "All calls are asked about"),
                Mode::ReadOnly => ("Read only", "Calls that may change something are refused"),
                Mode::Named(_) => ("Ask about some tools", "What --ask-tools says"),
            };
            mode(choice.name(), name.into(), description)
        });
        let plan = mode(plan::NAME, "Plan".into(), "Look around, and give a plan before anything is changed");
        choices.chain(self.can_plan.then_some(plan)).collect()
    }
}

/// The id of a session's mode.
pub fn current(control: &Control) -> &'static str {
    if control.is_planning() { plan::NAME } else { control.permissions().policy().mode.name() }
}
