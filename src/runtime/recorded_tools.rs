//! The tools that the system messages of a conversation have added and removed.

use crate::agent::message::AgentMessage;

/// Names of the tools that a conversation has recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedTools {
    /// Tools that are active at the leaf, in the order of their addition.
    pub active: Vec<String>,
    /// Tools that were removed and not added again.
    pub removed: Vec<String>,
}

impl RecordedTools {
    /// Collects the record of a conversation; `None` if it has no system message.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a AgentMessage>) -> Option<Self> {
        let mut record: Option<Self> = None;
        for message in messages {
            let AgentMessage::System(system) = message else {
                continue;
            };
            let record = record.get_or_insert_default();
            if system.replace == Some(true) {
                record.removed.append(&mut record.active);
            }
            for tool in &system.tools_removed {
                record.remove(&tool.name);
            }
            for tool in &system.tools_added {
                record.add(&tool.name);
            }
        }
        record
    }

    /// Applies `changes`, each `+name` or `-name`.
    pub fn changed(mut self, changes: &[String]) -> Self {
        for change in changes {
            match change.split_at_checked(1) {
                Some(("+", name)) => self.add(name),
                Some(("-", name)) => self.remove(name),
                _ => {}
            }
        }
        self
    }

    fn add(&mut self, name: &str) {
        self.removed.retain(|known| known != name);
        if !self.active.iter().any(|known| known == name) {
            self.active.push(name.to_owned());
        }
    }

    fn remove(&mut self, name: &str) {
        self.active.retain(|known| known != name);
        if !self.removed.iter().any(|known| known == name) {
            self.removed.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use serde_json::Value;

    /// Checks the record of system messages with these additions and removals, after `changes`.
    #[track_caller]
    fn check(steps: &[Value], changes: &str, expected: Option<(&str, &str)>) {
        let tools = |names: &Value| -> Vec<Value> {
            let names = names.as_str().unwrap_or_default().split_whitespace();
            names.map(|name| json!({"name": name})).collect()
        };
        let messages = steps.iter().map(|step| match step.as_str() {
            Some(text) => json!({"role": "user", "content": text, "timestamp": 1}),
            None => json!({"role": "system", "content": "", "replace": step["replace"], "timestamp": 1,
                "toolsAdded": tools(&step["+"]), "toolsRemoved": tools(&step["-"])}),
        });
        let messages: Vec<AgentMessage> =
            messages.map(|message| serde_json::from_value(message).unwrap()).collect();
        let changes: Vec<String> = changes.split_whitespace().map(str::to_owned).collect();
        let found = RecordedTools::of(&messages).map(|record| record.changed(&changes));
        let found = found.map(|record| (record.active.join(" "), record.removed.join(" ")));
        let found = found.as_ref().map(|(active, removed)| (active.as_str(), removed.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn system_messages_add_up() {
        check(&[], "", None);
        check(&[json!("hi")], "+read", None);
        check(&[json!({})], "", Some(("", "")));
        let steps = [
            json!({"+": "read bash edit write"}),
            json!("hi"),
            json!({"+": "grep", "-": "write"}),
            // Declared anew.
            json!({"+": "read", "-": "read"}),
        ];
        check(&steps, "", Some(("bash edit grep read", "write")));
        check(&steps, "+ls -bash +write -none", Some(("edit grep read ls write", "bash none")));
        check(&[json!({"+": "a b"}), json!({"replace": true, "+": "c"})], "", Some(("c", "a b")));
    }
}
