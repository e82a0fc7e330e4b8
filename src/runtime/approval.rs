//! Tool calls that need approval before they run.
//!
//! The thread of a call asks its question: while nobody answers, only that call waits, and an abort ends the
//! wait like any tool. A mode implements [`Approver`] to show questions; without an approver, every call that
//! needs approval is denied.

use crate::agent::call::{Arguments, CallInfo};
use crate::agent::schema;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What the model is told of a call that the user denied; a reason follows a colon.
pub const DENIED: &str = "The user denied this call";

/// The tools whose calls need approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub ask: Ask,
    /// Names of tools whose calls never need approval, whatever `ask` says.
    pub allowed: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    #[default]
    Nothing,
    All,
    /// Calls of every tool that is not marked as read-only.
    Writes,
    /// Calls of the tools with these names.
    Named(Vec<String>),
}

impl Ask {
    /// Parses `all`, `writes`, or tool names separated by commas.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "all" => Self::All,
            "writes" => Self::Writes,
            names => {
                let names = names.split(',').map(str::trim);
                Self::Named(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
            }
        }
    }
}

impl Rules {
    fn cover(&self, tool: &ToolInfo) -> bool {
        let name = &tool.spec.name;
        let is_asked = match &self.ask {
            Ask::Nothing => false,
            Ask::All => true,
            Ask::Writes => !tool.reads_only,
            Ask::Named(names) => names.contains(name),
        };
        is_asked && !self.allowed.contains(name)
    }
}

/// A tool call that waits for approval.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The tool call's id.
    pub id: &'a str,
    pub tool: &'a ToolInfo,
    /// Arguments that satisfy the tool's schema.
    pub arguments: &'a Map<String, Value>,
    /// The name of the helper that makes the call; `None` for a call of the session itself.
    pub helper: Option<&'a str>,
}

impl Question<'_> {
    /// Returns the tool's name, with the helper's name if a helper makes the call.
    pub fn who(&self) -> String {
        let tool = &self.tool.spec.name;
        self.helper.map_or_else(|| tool.clone(), |helper| format!("{tool} of helper {helper}"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Allow,
    /// Allows the call, and all later calls of its tool while the program runs.
    AllowAlways,
    /// Runs the call with these arguments instead, after they are checked against the tool's schema.
    Change(Map<String, Value>),
    /// Refuses the call. The model is told the reason, if there is one.
    Deny(Option<String>),
}

/// Shortens `text` for a question: a run of more than 16 blanks or 2 blank lines, which could push text out
/// of sight, is replaced by its count.
pub fn squeezed(text: &str) -> String {
    const BLANKS_MAX: usize = 16;
    const BLANK_LINES_MAX: usize = 2;
    let mut out = String::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let mut blank_lines = usize::from(line.chars().all(is_blank));
        while blank_lines > 0 && lines.next_if(|line| line.chars().all(is_blank)).is_some() {
            blank_lines += 1;
        }
        match blank_lines {
            0 => squeeze_line(line, BLANKS_MAX, &mut out),
            count if count <= BLANK_LINES_MAX => out.extend(std::iter::repeat_n('\n', count - 1)),
            count => out.push_str(&format!("[{count} blank lines]")),
        }
        if lines.peek().is_some() {
            out.push('\n');
        }
    }
    out
}

fn squeeze_line(line: &str, blanks_max: usize, out: &mut String) {
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.find(is_blank).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word);
        let blanks = after.find(|c| !is_blank(c)).unwrap_or(after.len());
        let (blanks, after) = after.split_at(blanks);
        out.push_str(word);
        match blanks.chars().count() {
            count if count > blanks_max => out.push_str(&format!(" [{count} blanks] ")),
            _ => out.push_str(blanks),
        }
        rest = after;
    }
}

/// True for whitespace and other characters that a terminal shows as a blank or as nothing.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Returns the beginning, the length and the end of a text of more than `chars_max` characters; a shorter
/// text is returned whole.
pub fn excerpt(text: &str, chars_max: usize) -> String {
    let length = text.chars().count();
    if length <= chars_max {
        return text.to_owned();
    }
    let tail = chars_max / 3;
    let head: String = text.chars().take(chars_max - tail).collect();
    let tail: String = text.chars().skip(length - tail).collect();
    format!("{head} … ({length} characters) … {tail}")
}

/// Decides on tool calls that need approval. Called from several threads at once.
pub trait Approver: Send + Sync {
    /// Waits for a decision. Must return soon after `cancel` is cancelled; the result is then ignored.
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision;
}

/// A session's approver, and the tools that are allowed while the program runs. Both are kept when the
/// session changes to another conversation.
#[derive(Default)]
pub(super) struct Approvals {
    approver: Mutex<Option<Arc<dyn Approver>>>,
    always: Mutex<HashSet<String>>,
}

impl Approvals {
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        *self.approver.lock().unwrap_or_else(PoisonError::into_inner) = Some(approver);
    }

    /// Wraps each tool that needs approval under `rules` so that its calls ask first. Other tools are
    /// returned unchanged.
    pub fn guard(self: &Arc<Self>, rules: &Rules, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let guard = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            if rules.cover(tool.info()) {
                Arc::new(Guarded { tool: tool.clone(), approvals: self.clone() })
            } else {
                tool.clone()
            }
        };
        tools.iter().map(guard).collect()
    }

    pub fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
        let name = &question.tool.spec.name;
        let always = || self.always.lock().unwrap_or_else(PoisonError::into_inner);
        if always().contains(name) {
            return Decision::Allow;
        }
        let approver = {
            let approver = self.approver.lock();
            approver.unwrap_or_else(PoisonError::into_inner).clone()
        };
        let Some(approver) = approver else {
            return Decision::Deny(Some(format!(
                "Tool \"{name}\" needs approval, and there is nobody to ask. To allow it: --allow-tools {name}"
            )));
        };
        let decision = approver.decide(question, cancel);
        if decision == Decision::AllowAlways {
            always().insert(name.clone());
        }
        decision
    }
}

/// A tool whose calls ask for approval first.
struct Guarded {
    tool: Arc<dyn Tool>,
    approvals: Arc<Approvals>,
}

impl Tool for Guarded {
    fn info(&self) -> &ToolInfo {
        self.tool.info()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.tool.prepare(arguments)
    }

    fn describe<'a>(&self, arguments: &'a Arguments) -> CallInfo<'a> {
        self.tool.describe(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let question =
            Question { id: call.id, tool: self.tool.info(), arguments: call.arguments, helper: None };
        let decision = self.approvals.decide(&question, call.cancel);
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        match decision {
            Decision::Allow | Decision::AllowAlways => self.tool.run(call),
            Decision::Change(arguments) => {
                let spec = &self.tool.info().spec;
                let arguments = self.tool.prepare(arguments);
                let arguments = schema::validate(&spec.name, &spec.parameters, &arguments)?;
                self.tool.run(&Invocation { arguments: &arguments, ..*call })
            }
            Decision::Deny(reason) => Err(ToolError::new(reason.unwrap_or_else(|| DENIED.into()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::message::ToolSpec;
    use serde_json::json;

    fn tool(name: &str, reads_only: bool) -> ToolInfo {
        ToolInfo {
            spec: ToolSpec { name: name.into(), ..ToolSpec::default() },
            reads_only,
            ..ToolInfo::default()
        }
    }

    #[test]
    fn rules_say_which_tools_are_asked_about() {
        let rows = [
            ("all", "", [true, true, true]),
            ("writes", "", [false, true, true]),
            ("writes", "bash", [false, false, true]),
            ("read, own,", "", [true, false, true]),
            ("", "", [false, false, false]),
        ];
        for (ask, allowed, expected) in rows {
            let rules =
                Rules { ask: Ask::parse(ask), allowed: allowed.split(',').map(str::to_owned).collect() };
            let tools = [tool("read", true), tool("bash", false), tool("own", false)];
            let covered = tools.map(|tool| rules.cover(&tool));
            assert_eq!(covered, expected, "{ask} without {allowed}");
        }
        assert!(!Rules::default().cover(&tool("bash", false)));
    }

    #[test]
    fn what_pushes_a_text_out_of_sight_is_counted() {
        let blanks = |count| " ".repeat(count);
        let rows = [
            ("", ""),
            ("\n", "\n"),
            ("a\n\nb\n", "a\n\nb\n"),
            ("a\n\n\nb", "a\n\n\nb"),
            (&*format!("if\n{}b", blanks(16)), &*format!("if\n{}b", blanks(16))),
            (&*format!("a{}b c", blanks(8000)), "a [8000 blanks] b c"),
            (&*format!("a{}b", "\n".repeat(300)), "a\n[299 blank lines]\nb"),
            (&*format!("a{}b", "\n \t".repeat(300)), "a\n[299 blank lines]\n \tb"),
            (&*format!("a{}", "\u{2800}".repeat(17)), "a [17 blanks] "),
            ("\n\n\n", "[4 blank lines]"),
        ];
        for (text, expected) in rows {
            assert_eq!(squeezed(text), expected, "{text:?}");
        }
        assert_eq!(excerpt("abc", 3), "abc");
        assert_eq!(excerpt(&format!("a{}é", "x".repeat(98)), 6), "axxx … (100 characters) … xé");
    }

    struct Says(Decision);

    impl Approver for Says {
        fn decide(&self, _: &Question<'_>, _: &CancelToken) -> Decision {
            self.0.clone()
        }
    }

    #[test]
    fn always_is_asked_once_and_nobody_is_a_no() {
        let (approvals, cancel) = (Approvals::default(), CancelToken::new());
        let (bash, write) = (tool("bash", false), tool("write", false));
        let arguments = json!({}).as_object().cloned().unwrap_or_default();
        let ask = |tool: &ToolInfo| {
            let question = Question { id: "1", tool, arguments: &arguments, helper: None };
            approvals.decide(&question, &cancel)
        };
        assert!(matches!(ask(&bash), Decision::Deny(Some(reason)) if reason.contains("--allow-tools bash")));
        approvals.set_approver(Arc::new(Says(Decision::AllowAlways)));
        assert_eq!(ask(&bash), Decision::AllowAlways);
        approvals.set_approver(Arc::new(Says(Decision::Deny(None))));
        assert_eq!(ask(&bash), Decision::Allow);
        assert_eq!(ask(&write), Decision::Deny(None));
    }
}
