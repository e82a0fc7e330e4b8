//! Lists the files that a conversation read and changed, from the arguments of its tool calls.

use crate::agent::call::{Describe, Kind};
use crate::agent::message::AgentMessage;
use crate::base::json::json;
use serde_json::Value;
use std::collections::BTreeSet;

/// Files that were read and files that were changed, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

impl Files {
    /// Adds the lists in the `details` of an earlier summary.
    pub fn add_details(&mut self, details: &Value) {
        let list = |name: &str| {
            let list = details.get(name).and_then(Value::as_array);
            let names = list.into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        self.read.extend(list("readFiles"));
        self.modified.extend(list("modifiedFiles"));
    }

    /// Adds the files of an answer's tool calls.
    pub fn add_message(&mut self, message: &AgentMessage, describe: Describe<'_>) {
        let AgentMessage::Assistant(answer) = message else {
            return;
        };
        for call in answer.tool_calls() {
            let info = describe(&call.name, &call.arguments);
            let path = info.path.and_then(|path| path.given.text()).filter(|path| !path.is_empty());
            match (info.kind, path) {
                (Kind::Read, Some(path)) => self.read.insert(path.to_owned()),
                (Kind::Edit, Some(path)) => self.modified.insert(path.to_owned()),
                _ => continue,
            };
        }
    }

    /// Returns files that were read and not changed.
    fn only_read(&self) -> impl Iterator<Item = &str> {
        self.read.difference(&self.modified).map(String::as_str)
    }

    /// Returns the lists that handlers of a compaction get. Files that were written whole are among those that were
    /// edited.
    pub fn operations(&self) -> Value {
        json!({"read": self.read, "written": [], "edited": self.modified})
    }

    /// Returns the lists for the `details` of the entry.
    pub fn details(&self) -> Value {
        let read: Vec<&str> = self.only_read().collect();
        json!({"readFiles": read, "modifiedFiles": self.modified})
    }

    /// Returns the text to add to the summary; empty if there are no files.
    pub fn text(&self) -> String {
        let section = |tag: &str, files: Vec<&str>| match files.as_slice() {
            [] => String::new(),
            files => format!("\n\n<{tag}>\n{}\n</{tag}>", files.join("\n")),
        };
        let modified = self.modified.iter().map(String::as_str).collect();
        section("read-files", self.only_read().collect()) + &section("modified-files", modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::describe;

    fn call(name: &str, arguments: Value) -> AgentMessage {
        serde_json::from_value(json!({"role":"assistant","content":[{"type":"toolCall","id":"1","name":name,"arguments":arguments}],
            "api":"a","provider":"p","model":"m","stopReason":"toolUse"}))
        .unwrap()
    }

    #[test]
    fn lists_are_sorted_carried_on_and_disjoint() {
        let mut files = Files::default();
        assert_eq!(files.text(), "");
        assert_eq!(files.details(), json!({"readFiles":[],"modifiedFiles":[]}));
        files.add_details(&json!({"readFiles":["z","m",1],"modifiedFiles":["old"],"more":1}));
        files.add_details(&json!({"readFiles":"no"}));
        files.add_details(&json!(null));
        for (name, path) in
            [("read", "b"), ("read", "a"), ("edit", "b"), ("write", "new"), ("grep", "x"), ("read", "")]
        {
            files.add_message(&call(name, json!({"path": path})), &describe);
        }
        files.add_message(&call("read", json!({"path": 5})), &describe);
        files.add_message(&call("read", json!({})), &describe);
        assert_eq!(
            files.text(),
            "\n\n<read-files>\na\nm\nz\n</read-files>\n\n<modified-files>\nb\nnew\nold\n</modified-files>"
        );
        assert_eq!(files.details(), json!({"readFiles":["a","m","z"],"modifiedFiles":["b","new","old"]}));
    }
}
