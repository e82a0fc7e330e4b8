//! The `todo` tool: a list of what is left to do, kept in the session.
//!
//! The details of each result hold the whole list, so that a branch has its own, and a resumed session goes on with it.
//! Exactly one item is in progress while any is open.

use super::addition::{Addition, OWN, Owner};
use super::control::{Control, WeakControl};
use super::task::{Delivery, Streaming};
use super::ui::Change;
use crate::agent::call::{Arguments, Body, CallInfo};
use crate::agent::message::{AgentMessage, CustomMessage};
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::json::json;
use crate::llm::message::{Content, ToolSpec, now_ms};
use crate::session::index::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

pub const NAME: &str = "todo";

/// Maximum items of a list.
const ITEMS_MAX: usize = 200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    Dropped,
}

impl Status {
    fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    fn mark(self) -> char {
        match self {
            Self::Pending => ' ',
            Self::InProgress => '/',
            Self::Completed => 'x',
            Self::Dropped => '-',
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub text: String,
    #[serde(default)]
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

/// A list of items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(pub Vec<Item>);

impl List {
    /// Reads the list in the details of a result.
    pub fn of(details: &Value) -> Option<Self> {
        Vec::deserialize(details.get("todos")?).ok().map(Self)
    }

    /// The last list among `messages`.
    pub fn in_messages(messages: &[AgentMessage]) -> Option<Self> {
        messages.iter().rev().find_map(|message| match message {
            AgentMessage::ToolResult(result) if result.tool_name == NAME => {
                Self::of(result.details.as_ref()?)
            }
            AgentMessage::Custom(message) if message.custom_type == NAME => {
                Self::of(message.details.as_ref()?)
            }
            _ => None,
        })
    }

    /// The list at the leaf of a session.
    pub fn of_session(control: &Control) -> Self {
        if let Some(list) = Self::in_messages(&control.messages()) {
            return list;
        }
        // A compaction may have taken it from the messages.
        let log = control.log();
        let index = log.index();
        let mut at = log.leaf().and_then(|leaf| index.find(leaf));
        // A damaged file may hold a cycle.
        for _ in 0..index.slots.len() {
            let Some((position, slot)) = at.and_then(|at| Some((at, index.get(at)?))) else {
                break;
            };
            if matches!(slot.kind, Kind::ToolResult | Kind::CustomMessage)
                && let Some(message) = log.message(&slot.id)
                && let Some(list) = Self::in_messages(&[message])
            {
                return list;
            }
            at = slot.parent.filter(|parent| *parent != position);
        }
        Self::default()
    }

    /// The open items for people, with those that are done folded; `None` if nothing is open.
    fn panel(&self) -> Option<Vec<String>> {
        const ITEMS_SHOWN: usize = 6;
        let open: Vec<&Item> = self.0.iter().filter(|item| item.status.is_open()).collect();
        let mut lines = vec![format!("To do: {} of {}", open.len(), self.0.len())];
        let mut phase = None;
        for item in open.iter().take(ITEMS_SHOWN) {
            if item.phase != phase {
                phase.clone_from(&item.phase);
                lines.extend(phase.as_ref().map(|phase| format!("  {phase}")));
            }
            lines.push(format!("  [{}] {}", item.status.mark(), item.text));
        }
        if open.len() > ITEMS_SHOWN {
            lines.push(format!("  … {} more", open.len() - ITEMS_SHOWN));
        }
        (!open.is_empty()).then_some(lines)
    }

    /// The list as a person edits it: a line for each item, under the names of phases.
    pub fn markdown(&self) -> String {
        let text = self.to_string();
        let lines: Vec<&str> = text.lines().collect();
        lines
            .iter()
            .take(if self.0.is_empty() { 0 } else { lines.len() - 1 })
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// Reads a list that a person has edited. Numbers and list marks may be missing, and marks of the state, too.
    fn parse(text: &str) -> Result<Self, String> {
        let (mut list, mut phase) = (Self::default(), None);
        for line in text.lines().map(str::trim) {
            let item = line.trim_start_matches(|c: char| c.is_ascii_digit());
            let item = item
                .strip_prefix(". ")
                .or_else(|| line.strip_prefix("- "))
                .or_else(|| line.strip_prefix("* "));
            let item = item.unwrap_or(line).trim_start();
            let marked = item.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let known = [Status::Pending, Status::InProgress, Status::Completed, Status::Dropped];
            let status = marked.and_then(|(mark, _)| {
                let mark = mark.to_lowercase();
                known.into_iter().find(|status| {
                    mark.chars().eq([status.mark()]) || (mark.is_empty() && *status == Status::Pending)
                })
            });
            let text = marked.filter(|_| status.is_some()).map_or(item, |(_, text)| text);
            let before = list.0.len();
            phase = list.add_to(phase, &[text])?;
            if list.0.len() > before
                && let (Some(item), Some(status)) = (list.0.last_mut(), status)
            {
                item.status = status;
            }
        }
        let mut has_one = false;
        for item in list.0.iter_mut().filter(|item| item.status == Status::InProgress) {
            if std::mem::replace(&mut has_one, true) {
                item.status = Status::Pending;
            }
        }
        Ok(list)
    }

    pub fn open(&self) -> usize {
        self.0.iter().filter(|item| item.status.is_open()).count()
    }

    /// Replaces or extends the list. A text that begins with `#` names the phase of those after it.
    fn add(&mut self, texts: &[&str]) -> Result<(), String> {
        let phase = self.0.last().and_then(|item| item.phase.clone());
        self.add_to(phase, texts).map(drop)
    }

    /// Adds items, the first ones to `phase`. Returns the phase of the last one.
    fn add_to(&mut self, mut phase: Option<String>, texts: &[&str]) -> Result<Option<String>, String> {
        for text in texts {
            // An item is a line of the list that a person edits.
            let text = text.trim().lines().map(str::trim).collect::<Vec<_>>().join(" ");
            if let Some(name) = text.strip_prefix('#') {
                phase = Some(name.trim_start_matches('#').trim().to_owned()).filter(|name| !name.is_empty());
            } else if self.0.iter().any(|item| item.text == text) {
                return Err(format!("\"{text}\" is in the list already"));
            } else if !text.is_empty() {
                self.0.push(Item { text, status: Status::Pending, phase: phase.clone() });
            }
        }
        match self.0.len() {
            ..=ITEMS_MAX => Ok(phase),
            count => Err(format!("A list of {count} items is too long; {ITEMS_MAX} are the most")),
        }
    }

    /// Finds an item by its text or its number.
    fn find(&mut self, wanted: &str) -> Result<usize, String> {
        let by_text = self.0.iter().position(|item| item.text == wanted.trim());
        let by_number = || wanted.trim().trim_end_matches('.').parse::<usize>().ok()?.checked_sub(1);
        let at = by_text.or_else(by_number).filter(|at| *at < self.0.len());
        at.ok_or_else(|| format!("There is no item {wanted:?}. The list:\n{self}"))
    }

    fn apply(&mut self, call: &Arguments) -> Result<(), String> {
        let texts = || -> Vec<&str> {
            call.get("items")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        let item =
            || call.get("item").and_then(Value::as_str).ok_or("item is needed: its text or its number");
        match call.get("op").and_then(Value::as_str).unwrap_or_default() {
            "set" => {
                self.0.clear();
                self.add(&texts())?;
            }
            "add" => self.add(&texts())?,
            "start" => {
                let at = self.find(item()?)?;
                for (other, item) in self.0.iter_mut().enumerate() {
                    if other == at {
                        item.status = Status::InProgress;
                    } else if item.status == Status::InProgress {
                        item.status = Status::Pending;
                    }
                }
            }
            "done" => self.end(item()?, Status::Completed)?,
            "drop" => self.end(item()?, Status::Dropped)?,
            _ => {}
        }
        if !self.0.iter().any(|item| item.status == Status::InProgress)
            && let Some(next) = self.0.iter_mut().find(|item| item.status == Status::Pending)
        {
            next.status = Status::InProgress;
        }
        Ok(())
    }

    fn end(&mut self, wanted: &str, status: Status) -> Result<(), String> {
        let at = self.find(wanted)?;
        if let Some(item) = self.0.get_mut(at) {
            item.status = status;
        }
        Ok(())
    }
}

/// Numbered lines with marks, as in Markdown: `[ ]`, `[/]` in progress, `[x]`, `[-]` dropped.
impl std::fmt::Display for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut phase = None;
        for (at, item) in self.0.iter().enumerate() {
            if item.phase != phase {
                phase.clone_from(&item.phase);
                writeln!(f, "# {}", phase.as_deref().unwrap_or("Others"))?;
            }
            writeln!(f, "{}. [{}] {}", at + 1, item.status.mark(), item.text)?;
        }
        match self.0.len() {
            0 => f.write_str("Nothing is to be done."),
            all => write!(f, "{} of {all} open", self.open()),
        }
    }
}

/// Shows the list of the branch where the user sees it, if the session has the tool.
pub fn show(control: &Control) {
    if control.snapshot().active_tools.iter().any(|name| name == NAME) {
        show_list(control, &List::of_session(control));
    }
}

fn show_list(control: &Control, list: &List) {
    if let Some(ui) = control.ui() {
        ui.show(Change::Widget { key: NAME.into(), lines: list.panel(), is_below: false });
    }
}

/// Puts the list that a person has edited in place of the one of the session, and tells the model.
pub fn replace(control: &Control, text: &str) -> Result<(), String> {
    let list = List::parse(text)?;
    if list.0 == List::of_session(control).0 {
        return Ok(());
    }
    show_list(control, &list);
    let message = CustomMessage {
        custom_type: NAME.into(),
        content: Content::Text(format!("The user has changed the list of what is to be done:\n{list}")),
        display: true,
        details: Some(json!({"todos": list.0})),
        timestamp: now_ms(),
        ..CustomMessage::default()
    };
    control.send(AgentMessage::Custom(Arc::new(message)), Delivery::Now(Streaming::Steer), false)
}

/// The reminder to a model that stops while items are open; `None` if none is.
pub fn reminder(messages: &[AgentMessage]) -> Option<String> {
    let list = List::in_messages(messages)?;
    (list.open() > 0).then(|| {
        format!(
            "These items are still open:\n{list}\nGo on with them. If they are done or not needed, say so with {NAME}; \
             if you wait for the user, say that."
        )
    })
}

/// Adds the tool to a session. It is not active before it is chosen.
pub fn offer(control: &Control) {
    let tool = TodoTool { info: info(), control: control.downgrade(), last: Mutex::default() };
    let addition = Addition { tools: vec![Arc::new(tool)], ..Addition::default() };
    // A tool of the program itself is never refused.
    control.set_addition(Owner { rank: OWN, name: NAME.into() }, addition);
}

fn info() -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: NAME.into(),
            description: "Keep the list of steps of a long task. set replaces it, add extends it; start, done and drop \
                          change one item; the next one starts by itself."
                .into(),
            parameters: json!({
                "type": "object",
                "required": ["op"],
                "properties": {
                    "op": {"type": "string", "enum": ["set", "add", "start", "done", "drop", "view"]},
                    "items": {"type": "array", "items": {"type": "string"},
                        "description": "For set and add; \"# name\" begins a phase"},
                    "item": {"type": "string", "description": "Text or number of an item"},
                },
            }),
            ..ToolSpec::default()
        },
        label: NAME.into(),
        snippet: Some("Keep a list of what is left to do".into()),
        sequential: true,
        reads_only: true,
        starts_inactive: true,
        ..ToolInfo::default()
    }
}

struct TodoTool {
    info: ToolInfo,
    control: WeakControl,
    /// The list after the last call, and the leaf at that time: calls of one answer do not see each other's results in
    /// the conversation.
    last: Mutex<Option<(Option<String>, List)>>,
}

impl Tool for TodoTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let about = format!(" {} {}", text("op"), text("item")).trim_end().to_owned();
        CallInfo {
            title: Some(format!("Todo:{about}").into()),
            notes: vec![about],
            body: Body::Arguments,
            rows: 20,
            ..CallInfo::default()
        }
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let control = self.control.upgrade().ok_or_else(ToolError::aborted)?;
        let leaf = control.log().leaf().map(str::to_owned);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().filter(|(at, _)| *at == leaf).map(|(_, list)| list.clone());
        let mut list = known.unwrap_or_else(|| List::of_session(&control));
        list.apply(call.arguments)?;
        *last = Some((leaf, list.clone()));
        show_list(&control, &list);
        let details = json!({"op": call.arguments.get("op"), "todos": list.0});
        Ok(ToolOutput::text(list.to_string()).with_details(details))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &mut List, call: Value, expected: &str) {
        let arguments = call.as_object().unwrap();
        let told = list.apply(arguments).map_or_else(|fault| fault, |()| list.to_string());
        assert_eq!(told, expected, "{call}");
    }

    #[test]
    fn a_list_is_edited_as_markdown() {
        let edited = "1. [x] a\n# Later\n- [/] b\n* c\n[X] d\n\n7. [ ] e [draft]\n[/] f\n# None\n";
        let list = List::parse(edited).unwrap();
        let expected = "1. [x] a\n# Later\n2. [/] b\n3. [ ] c\n4. [x] d\n5. [ ] e [draft]\n6. [ ] f\n";
        assert_eq!(list.markdown(), expected);
        assert_eq!(List::parse(expected).unwrap(), list);
        assert_eq!(List::parse(" \n").unwrap().markdown(), "");
        assert!(List::parse("- a\n- a").unwrap_err().contains("in the list already"));
    }

    #[test]
    fn one_item_is_in_progress_and_the_next_one_follows() {
        let mut list = List::default();
        check(&mut list, json!({"op": "view"}), "Nothing is to be done.");
        let texts = json!(["a", "# Later", "b", " c "]);
        check(
            &mut list,
            json!({"op": "set", "items": texts}),
            "1. [/] a\n# Later\n2. [ ] b\n3. [ ] c\n3 of 3 open",
        );
        check(
            &mut list,
            json!({"op": "done", "item": "a"}),
            "1. [x] a\n# Later\n2. [/] b\n3. [ ] c\n2 of 3 open",
        );
        check(
            &mut list,
            json!({"op": "start", "item": "3"}),
            "1. [x] a\n# Later\n2. [ ] b\n3. [/] c\n2 of 3 open",
        );
        check(
            &mut list,
            json!({"op": "drop", "item": "3."}),
            "1. [x] a\n# Later\n2. [/] b\n3. [-] c\n1 of 3 open",
        );
        check(&mut list, json!({"op": "add", "items": ["b"]}), "\"b\" is in the list already");
        check(
            &mut list,
            json!({"op": "add", "items": ["#", "d"]}),
            "1. [x] a\n# Later\n2. [/] b\n3. [-] c\n# Others\n4. [ ] d\n2 of 4 open",
        );
        let missing =
            list.clone().apply(json!({"op": "done", "item": "9"}).as_object().unwrap()).unwrap_err();
        assert!(missing.starts_with("There is no item \"9\". The list:\n1. [x] a"), "{missing}");
        check(&mut list, json!({"op": "done"}), "item is needed: its text or its number");
        assert_eq!(List::of(&json!({"todos": list.0})), Some(list.clone()));
        let panel = ["To do: 2 of 4", "  Later", "  [/] c", "  [ ] d"];
        check(
            &mut list,
            json!({"op": "start", "item": "3"}),
            "1. [x] a\n# Later\n2. [ ] b\n3. [/] c\n# Others\n4. [ ] d\n3 of 4 open",
        );
        check(
            &mut list,
            json!({"op": "drop", "item": "2"}),
            "1. [x] a\n# Later\n2. [-] b\n3. [/] c\n# Others\n4. [ ] d\n2 of 4 open",
        );
        assert_eq!(list.panel().unwrap(), panel);
        for item in ["3", "4"] {
            list.apply(json!({"op": "done", "item": item}).as_object().unwrap()).unwrap();
        }
        assert_eq!(list.panel(), None);
    }
}
