//! Tool calls that somebody is asked about before they run.
//!
//! The question is put from the thread of the call itself: while nobody answers, only that call waits,
//! and an abort ends the wait like any tool. What the surface looks like that a question appears on is
//! the mode's ([`Approver`]); without one, nobody can say yes, and the call is denied.

use crate::agent::schema;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::llm::cancel::CancelToken;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Which calls are asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub ask: Ask,
    /// The tools whose calls run unasked in any case.
    pub allowed: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ask {
    #[default]
    Nothing,
    All,
    /// Every tool that is not known to change nothing.
    Writes,
    /// The tools with these names.
    Named(Vec<String>),
}

impl Ask {
    /// `all`, `writes`, or names between commas.
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

/// A call that waits for a decision.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The id of the call.
    pub id: &'a str,
    pub tool: &'a ToolInfo,
    /// Valid by the tool's schema.
    pub arguments: &'a Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Allow,
    /// This call, and all later ones of the same tool while the program runs.
    AllowAlways,
    /// With other arguments, which are checked like those of the model.
    Change(Map<String, Value>),
    /// The model is told why.
    Deny(Option<String>),
}

/// Whoever can be asked. Called from many threads at once.
pub trait Approver: Send + Sync {
    /// Waits for the decision. When `cancel` says so the wait is over, and what is given does not matter.
    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision;
}

/// Who is asked, and what was allowed for good. One for the life of a session, whatever conversation it
/// goes on with.
#[derive(Default)]
pub(super) struct Desk {
    approver: Mutex<Option<Arc<dyn Approver>>>,
    always: Mutex<HashSet<String>>,
}

impl Desk {
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        *self.approver.lock().unwrap_or_else(PoisonError::into_inner) = Some(approver);
    }

    /// `tools` as they are given to the agent: those that the rules cover ask first.
    pub fn guard(self: &Arc<Self>, rules: &Rules, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let guard = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            if rules.cover(tool.info()) {
                Arc::new(Guarded { tool: tool.clone(), desk: self.clone() })
            } else {
                tool.clone()
            }
        };
        tools.iter().map(guard).collect()
    }

    fn decide(&self, question: &Question<'_>, cancel: &CancelToken) -> Decision {
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

/// A tool whose calls wait for a decision.
struct Guarded {
    tool: Arc<dyn Tool>,
    desk: Arc<Desk>,
}

impl Tool for Guarded {
    fn info(&self) -> &ToolInfo {
        self.tool.info()
    }

    fn prepare(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        self.tool.prepare(arguments)
    }

    fn run(&self, call: &Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let question = Question { id: call.id, tool: self.tool.info(), arguments: call.arguments };
        let decision = self.desk.decide(&question, call.cancel);
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
            Decision::Deny(reason) => {
                Err(ToolError::new(reason.unwrap_or_else(|| "The user denied this call".into())))
            }
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

    struct Says(Decision);

    impl Approver for Says {
        fn decide(&self, _: &Question<'_>, _: &CancelToken) -> Decision {
            self.0.clone()
        }
    }

    #[test]
    fn always_is_asked_once_and_nobody_is_a_no() {
        let (desk, cancel) = (Desk::default(), CancelToken::new());
        let (bash, write) = (tool("bash", false), tool("write", false));
        let arguments = json!({}).as_object().cloned().unwrap_or_default();
        let ask = |tool: &ToolInfo| {
            let question = Question { id: "1", tool, arguments: &arguments };
            desk.decide(&question, &cancel)
        };
        assert!(matches!(ask(&bash), Decision::Deny(Some(reason)) if reason.contains("--allow-tools bash")));
        desk.set_approver(Arc::new(Says(Decision::AllowAlways)));
        assert_eq!(ask(&bash), Decision::AllowAlways);
        desk.set_approver(Arc::new(Says(Decision::Deny(None))));
        assert_eq!(ask(&bash), Decision::Allow);
        assert_eq!(ask(&write), Decision::Deny(None));
    }
}
