//! Tool calls that need approval before they run.
//!
//! The thread of a call asks its question: while nobody answers, only that call waits, and an abort ends the
//! wait like any tool. A mode implements [`Approver`] to show questions; without an approver, every call that
//! needs approval is denied.
//!
//! Not here: which calls need approval (`permission`).

use super::config::Config;
use super::overrides::ApprovalOverrides;
use super::permission::{self, Always, Call, Effect, Entry, Mode, Place, Policy, Scope, Subject, Verdict};
use crate::agent::call::{Arguments, Body, CallInfo, Kind};
use crate::agent::schema;
use crate::agent::tool::{Invocation, Tool, ToolError, ToolInfo, ToolOutput};
use crate::base::cancel::CancelToken;
use crate::llm::message::ToolSpec;
use crate::tools::Workspace;
use crate::tools::path;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the model is told of a call that the user denied; a reason follows a colon.
pub const DENIED: &str = "The user denied this call";

/// A tool call that waits for approval.
#[derive(Clone)]
pub struct Question<'a> {
    /// The tool call's id.
    pub id: &'a str,
    pub tool: &'a ToolInfo,
    /// Arguments that satisfy the tool's schema.
    pub arguments: &'a Map<String, Value>,
    /// The name of the helper that makes the call; `None` for a call of the session itself.
    pub helper: Option<&'a str>,
    /// The arguments that rules are asked about, if a helper works in a copy: with the paths of the folder itself.
    pub original: Option<&'a Map<String, Value>>,
    /// What can be allowed for good, the narrowest first. Empty if a rule asks about the call each time.
    pub always: Vec<Always>,
    /// The rule that asks; `None` if the mode does.
    pub asked_by: Option<String>,
}

impl<'a> Question<'a> {
    /// Makes a question about a call of the session.
    pub fn new(id: &'a str, tool: &'a ToolInfo, arguments: &'a Map<String, Value>) -> Self {
        Self { id, tool, arguments, helper: None, original: None, always: Vec::new(), asked_by: None }
    }
}

impl Question<'_> {
    /// The arguments that rules are asked about.
    pub fn judged(&self) -> &Map<String, Value> {
        self.original.unwrap_or(self.arguments)
    }

    /// Returns the tool's name, with the helper's name if a helper makes the call.
    pub fn who(&self) -> String {
        let tool = &self.tool.spec.name;
        self.helper.map_or_else(|| tool.clone(), |helper| format!("{tool} of helper {helper}"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Allow,
    /// Allows the call, and while the program runs all calls that these rules are about.
    AllowAlways(Vec<String>),
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

    /// Takes a call that needs approval. True if its question waits until those before are answered, which may
    /// answer it, too.
    fn takes_turns(&self, call: &str) -> bool {
        let _ = call;
        false
    }

    /// Called for a call that has waited, and is allowed without a question.
    fn allowed(&self, call: &str) {
        let _ = call;
    }
}

/// A session's approver and its rules. The mode and the rules that the user has chosen are kept when the session
/// changes to another conversation.
pub(super) struct Approvals {
    approver: Mutex<Option<Arc<dyn Approver>>>,
    state: Mutex<State>,
    /// Holds one item while a question is open that others wait for.
    turn: (Sender<()>, Receiver<()>),
}

impl Default for Approvals {
    fn default() -> Self {
        Self { approver: Mutex::default(), state: Mutex::default(), turn: bounded(1) }
    }
}

#[derive(Default)]
struct State {
    /// The policy of the configuration.
    policy: Policy,
    workspace: Option<Arc<Workspace>>,
    /// The mode and the rules of this session.
    mode: Option<Mode>,
    entries: Vec<Entry>,
}

impl State {
    fn policy(&self) -> Policy {
        let mut policy = self.policy.clone();
        policy.entries.extend(self.entries.iter().cloned());
        if let Some(mode) = &self.mode {
            policy.mode = mode.clone();
        }
        policy
    }
}

impl Approvals {
    pub fn set_approver(&self, approver: Arc<dyn Approver>) {
        *self.approver.lock().unwrap_or_else(PoisonError::into_inner) = Some(approver);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the rules of a configuration.
    pub fn follow(&self, config: &Config) {
        let ApprovalOverrides { mode, allowed } = &config.over.approval;
        let cwd = &config.workspace.cwd;
        let policy = Policy::new(mode.as_ref(), allowed, &config.settings, cwd);
        let mut state = self.state();
        (state.policy, state.workspace) = (policy, Some(config.workspace.clone()));
    }

    /// Returns the mode and all rules.
    pub fn policy(&self) -> Policy {
        self.state().policy()
    }

    /// Sets the mode of this session.
    pub fn set_mode(&self, mode: Mode) {
        self.state().mode = Some(mode);
    }

    /// Adds a rule for this session, or says why it cannot be read.
    pub fn add(&self, effect: Effect, text: &str) -> Result<(), String> {
        let rule = permission::Rule::parse(text).map_err(|fault| format!("The rule {text:?} {fault}"))?;
        let entry = Entry { effect, scope: Scope::Session, rule };
        let mut state = self.state();
        if !state.entries.contains(&entry) {
            state.entries.push(entry);
        }
        Ok(())
    }

    /// Removes a rule of this session.
    pub fn remove(&self, entry: &Entry) {
        self.state().entries.retain(|other| other != entry);
    }

    /// Wraps each tool so that its calls are decided on first.
    pub fn guard(self: &Arc<Self>, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let guard = |tool: &Arc<dyn Tool>| -> Arc<dyn Tool> {
            Arc::new(Guarded { tool: tool.clone(), approvals: self.clone() })
        };
        tools.iter().map(guard).collect()
    }

    /// Why the file at `path` may not be changed now, whatever tool does it; `None` if it may.
    pub fn refuses(&self, path: &Path) -> Option<String> {
        let (policy, workspace) = (self.policy(), self.state().workspace.clone()?);
        let arguments = Map::from_iter([("path".to_owned(), path.to_string_lossy().into())]);
        ["write", "edit"].into_iter().find_map(|name| {
            let spec = ToolSpec { name: name.to_owned(), ..ToolSpec::default() };
            let tool = ToolInfo { spec, ..ToolInfo::default() };
            judged(&policy, &Question::new("", &tool, &arguments), &CallInfo::of(&arguments), &workspace)
                .err()
        })
    }

    /// Decides on a call by the rules, or asks. `info` describes the call.
    pub fn decide(&self, question: Question<'_>, info: &CallInfo<'_>, cancel: &CancelToken) -> Decision {
        let workspace = self.state().workspace.clone();
        let Some(workspace) = workspace else {
            return Decision::Allow;
        };
        let judge = || judged(&self.policy(), &question, info, &workspace);
        let mut judged = judge();
        let approver = {
            let approver = self.approver.lock();
            approver.unwrap_or_else(PoisonError::into_inner).clone()
        };
        let asking = approver.as_ref().filter(|_| matches!(judged, Ok(Some(_))));
        let turn = asking.filter(|approver| approver.takes_turns(question.id)).map(|_| &self.turn);
        if let Some((begin, _)) = turn {
            select! {
                send(begin, ()) -> _ => {}
                recv(cancel.receiver()) -> _ => return Decision::Deny(None),
            }
            // What was answered for good meanwhile may answer this, too.
            judged = judge();
            if let (Ok(None), Some(approver)) = (&judged, &approver) {
                approver.allowed(question.id);
            }
        }
        let decision = match judged {
            Ok(None) => Decision::Allow,
            Ok(Some((asked_by, always))) => {
                let question = Question { asked_by, always, ..question.clone() };
                approver.map_or_else(|| nobody(&question), |approver| approver.decide(&question, cancel))
            }
            Err(reason) => Decision::Deny(Some(reason)),
        };
        if let Decision::AllowAlways(rules) = &decision {
            // They were proposed, and so can be read.
            rules.iter().for_each(|rule| drop(self.add(Effect::Allow, rule)));
        }
        if let Some((_, end)) = turn {
            let _ = end.try_recv();
        }
        decision
    }
}

/// The decision where nobody can be asked.
fn nobody(question: &Question<'_>) -> Decision {
    let name = &question.tool.spec.name;
    let how = match &question.asked_by {
        Some(rule) => format!("The rule \"{rule}\" asks for it"),
        None => format!("To allow it: --allow-tools {name}"),
    };
    Decision::Deny(Some(format!("Tool \"{name}\" needs approval, and there is nobody to ask. {how}")))
}

/// The rule that asks about a call, if one does, and what can be allowed for good.
type Asked = (Option<String>, Vec<Always>);

/// Returns `None` for a call that is allowed; the rule that asks, and what can be allowed for good; or why the
/// call is refused.
fn judged(
    policy: &Policy,
    question: &Question<'_>,
    info: &CallInfo<'_>,
    workspace: &Workspace,
) -> Result<Option<Asked>, String> {
    if policy.is_empty() {
        return Ok(None);
    }
    let real = |path: &Path| workspace.backend.canonical(path).ok();
    let cwd = &workspace.cwd;
    let folders: Vec<PathBuf> =
        [cwd.clone()].into_iter().chain(real(cwd).filter(|real| real != cwd)).collect();
    let resolve = |given: &str| {
        let Ok(path) = path::resolve(workspace, given) else {
            return Vec::new();
        };
        let real = real(&path).filter(|real| *real != path);
        [path].into_iter().chain(real).collect()
    };
    let place = Place { folders: &folders, home: workspace.home.as_deref(), resolve: &resolve };
    let subject = match (&info.body, info.path) {
        (Body::Command { command, .. }, _) => Subject::Command(command.text().and_then(|text| {
            let shell = workspace.options.shell_path.as_deref().unwrap_or("bash");
            permission::is_known_shell(shell).then(|| permission::parse_command(text)).flatten()
        })),
        (_, Some(place)) => {
            Subject::Path { paths: resolve(place.text()), is_folder: info.kind == Kind::Search }
        }
        (_, None) => Subject::Other,
    };
    let call = Call {
        tool: &question.tool.spec.name,
        reads_only: question.tool.reads_only,
        subject,
        arguments: question.judged(),
        place: &place,
    };
    match permission::judge(policy, &call) {
        Verdict::Allow => Ok(None),
        Verdict::Ask(None) => Ok(Some((None, permission::proposals(policy, &call)))),
        Verdict::Ask(rule) => Ok(Some((rule, Vec::new()))),
        Verdict::Deny(reason) => Err(reason),
    }
}

/// A tool whose calls are decided on first.
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
        let question = Question::new(call.id, self.tool.info(), call.arguments);
        let info = self.tool.describe(call.arguments);
        let decision = self.approvals.decide(question, &info, call.cancel);
        if call.cancel.is_cancelled() {
            return Err(ToolError::aborted());
        }
        match decision {
            Decision::Allow | Decision::AllowAlways(_) => self.tool.run(call),
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
    use crate::base::json::json;

    fn tool(name: &str, reads_only: bool) -> ToolInfo {
        ToolInfo {
            spec: ToolSpec { name: name.into(), ..ToolSpec::default() },
            reads_only,
            ..ToolInfo::default()
        }
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
        let scratch = crate::tools::testing::TempDir::create();
        let (approvals, cancel) = (Approvals::default(), CancelToken::new());
        approvals.state().workspace = Some(Arc::new(scratch.workspace()));
        approvals.set_mode(Mode::Writes);
        let (bash, write) = (tool("bash", false), tool("write", false));
        let arguments = json!({}).as_object().cloned().unwrap_or_default();
        let ask = |tool: &ToolInfo| {
            let question = Question::new("1", tool, &arguments);
            approvals.decide(question, &CallInfo::default(), &cancel)
        };
        assert!(matches!(ask(&bash), Decision::Deny(Some(reason)) if reason.contains("--allow-tools bash")));
        let always = Decision::AllowAlways(vec!["bash".into()]);
        approvals.set_approver(Arc::new(Says(always.clone())));
        assert_eq!(ask(&bash), always);
        approvals.set_approver(Arc::new(Says(Decision::Deny(None))));
        assert_eq!(ask(&bash), Decision::Allow);
        assert_eq!(ask(&write), Decision::Deny(None));
        // A rule that asks is not overruled.
        approvals.add(Effect::Ask, "bash").unwrap();
        assert_eq!(ask(&bash), Decision::Deny(None));
        approvals.set_mode(Mode::ReadOnly);
        assert!(matches!(ask(&write), Decision::Deny(Some(reason)) if reason.starts_with("Read-only")));
    }
}
