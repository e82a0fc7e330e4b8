//! The modes of a session: all tools, or only those that change nothing.

use crate::runtime::control::Control;
use serde_json::{Value, json};

const DEFAULT: &str = "default";
const READ_ONLY: &str = "read-only";

#[derive(Clone, Debug)]
pub struct Modes {
    /// The tools of the default mode.
    all: Vec<String>,
    reading: Vec<String>,
    current: &'static str,
}

impl Modes {
    /// The modes of a session; `None` if no active tool changes anything, so that there is no choice.
    pub fn of(control: &Control) -> Option<Self> {
        let (mut all, mut reading, mut differs) = (Vec::new(), Vec::new(), false);
        for (tool, active) in control.tools().all() {
            let info = tool.info();
            if active {
                all.push(info.spec.name.clone());
                differs |= !info.reads_only;
            }
            if info.reads_only {
                reading.push(info.spec.name.clone());
            }
        }
        differs.then_some(Self { all, reading, current: DEFAULT })
    }

    /// Changes the mode. False if no mode has this name.
    pub fn set(&mut self, id: &str, control: &Control) -> bool {
        let (current, tools) = match id {
            DEFAULT => (DEFAULT, &self.all),
            READ_ONLY => (READ_ONLY, &self.reading),
            _ => return false,
        };
        control.tools().set_active(tools);
        self.current = current;
        true
    }

    pub fn current(&self) -> &'static str {
        self.current
    }

    /// The modes with name and description. `id` is the field that holds a mode's id.
    pub fn choices(&self, id: &str) -> Value {
        let mode = |mode: &str, name: &str, description: &str| json!({id: mode, "name": name, "description": description});
        json!([
            mode(DEFAULT, "Default", "All tools of the session"),
            mode(READ_ONLY, "Read only", "Tools that look and change nothing"),
        ])
    }
}
