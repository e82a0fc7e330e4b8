//! The model's tools. Changes take effect with the next request.

use super::Tools;
use super::state::names_of;
use crate::agent::tool::Tool;
use std::sync::Arc;

impl Tools<'_> {
    /// Returns all tools, each with true if it is active.
    pub fn all(&self) -> Vec<(Arc<dyn Tool>, bool)> {
        let state = self.control.state();
        let active = names_of(&state.tools);
        let is_active = |tool: &Arc<dyn Tool>| active.contains(&tool.info().spec.name);
        let all = state.all_tools();
        all.iter().map(|tool| (tool.clone(), is_active(tool))).collect()
    }

    /// Activates the tools with these names, and deactivates all others. Unknown names are ignored. Returns
    /// the names of the active tools.
    pub fn set_active(&self, names: &[String]) -> Vec<String> {
        self.control.state().activate(names)
    }

    /// Activates the tools with these names beside those that are active.
    pub fn activate_too(&self, names: &[String]) {
        let mut state = self.control.state();
        let names = [names_of(&state.tools), names.to_vec()].concat();
        state.activate(&names);
    }

    /// Adds tools and activates them. A tool replaces an earlier registered one of its name. Returns the
    /// names of the active tools. A name that the configuration has already, or that occurs twice, is an
    /// error.
    pub fn register(&self, tools: Vec<Arc<dyn Tool>>) -> Result<Vec<String>, String> {
        let mut state = self.control.state();
        let registered = names_of(&state.registered);
        let mut own = names_of(&state.all_tools());
        own.retain(|name| !registered.contains(name));
        let names = names_of(&tools);
        for (index, name) in names.iter().enumerate() {
            if own.contains(name) {
                return Err(format!("There is a tool \"{name}\" already"));
            }
            if names.iter().skip(index + 1).any(|other| other == name) {
                return Err(format!("The tool \"{name}\" is named twice"));
            }
        }
        state.registered.retain(|tool| !names.contains(&tool.info().spec.name));
        state.registered.extend(tools);
        let active = [names_of(&state.tools), names].concat();
        Ok(state.activate(&active))
    }

    /// Removes registered tools. Returns the names of the active tools.
    pub fn unregister(&self, names: &[String]) -> Vec<String> {
        let mut state = self.control.state();
        state.registered.retain(|tool| !names.contains(&tool.info().spec.name));
        let active = names_of(&state.tools);
        state.activate(&active)
    }
}
