//! What commands of hooks answer: by their exit code, or as JSON on stdout.

use super::rule::HookEvent;
use crate::tools::process::peer::Ran;
use serde_json::Value;

/// The shell could not run the command: not a program, or not there.
const CANNOT_RUN: [i32; 2] = [126, 127];
/// The command blocks what the event is about. Its stderr says why.
const BLOCKS: i32 = 2;

/// What the commands of an event say together.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why what the event is about may not happen.
    pub block: Option<String>,
    /// Why the user is to be asked first.
    pub ask: Option<String>,
    /// Other arguments for the tool.
    pub updated_input: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// Why the run is to end.
    pub stop: Option<String>,
    /// Texts for the user.
    pub messages: Vec<String>,
    /// Commands that failed, and why.
    pub failures: Vec<String>,
}

impl Verdict {
    /// Adds the answer of a command.
    pub fn add(&mut self, event: HookEvent, command: &str, ran: &Ran) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        match ran.code {
            _ if ran.truncated => self.fail(event, command, "printed too much"),
            _ if ran.killed => self.fail(event, command, "took too long"),
            Some(0) => match serde_json::from_str(&stdout) {
                Ok(Value::Object(answer)) => self.answer(&Value::Object(answer)),
                _ => {
                    let is_context = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
                    self.context.extend((is_context && !stdout.is_empty()).then_some(stdout));
                }
            },
            Some(BLOCKS) => self.block(or(stderr, "A hook blocked it")),
            Some(code) if CANNOT_RUN.contains(&code) => {
                self.fail(event, command, &or(stderr, "could not be run"));
            }
            Some(code) => self.failures.push(format!("{command}: failed with code {code}. {stderr}")),
            None => self.fail(event, command, "was ended by a signal"),
        }
    }

    /// Notes that a command could not answer. A tool call that it was to decide on does not run.
    pub fn fail(&mut self, event: HookEvent, command: &str, why: &str) {
        if event == HookEvent::PreToolUse {
            self.block(format!("The call was not executed: the hook {command} {why}"));
        }
        self.failures.push(format!("{command}: {why}"));
    }

    fn block(&mut self, reason: String) {
        self.block.get_or_insert(reason);
    }

    fn answer(&mut self, answer: &Value) {
        let specific = &answer["hookSpecificOutput"];
        let text = |value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let reason = text(&answer["reason"]);
        let decided = text(&specific["permissionDecisionReason"]).or_else(|| reason.clone());
        if answer["decision"] == "block" {
            self.block(reason.unwrap_or_else(|| "A hook blocked it".to_owned()));
        }
        match specific["permissionDecision"].as_str() {
            Some("deny") => self.block(decided.unwrap_or_else(|| "A hook denied it".to_owned())),
            Some("ask") => drop(self.ask.get_or_insert(decided.unwrap_or_default())),
            _ => {}
        }
        if specific["updatedInput"].is_object() {
            self.updated_input = Some(specific["updatedInput"].clone());
        }
        self.context.extend(text(&specific["additionalContext"]));
        self.messages.extend(text(&answer["systemMessage"]));
        if answer["continue"] == false {
            let why = text(&answer["stopReason"]).unwrap_or_else(|| "A hook ended the run".to_owned());
            self.stop.get_or_insert(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Verdict {
        let mut verdict = Verdict::default();
        let ran = Ran { stdout: stdout.into(), stderr: stderr.into(), code: Some(code), ..Ran::default() };
        verdict.add(event, "cmd", &ran);
        verdict
    }

    #[test]
    fn exit_codes_decide() {
        use HookEvent::{PostToolUse, PreToolUse, UserPromptSubmit};
        assert_eq!(verdict(PreToolUse, 0, "text", ""), Verdict::default());
        assert_eq!(verdict(PreToolUse, 2, "", " why\n").block.as_deref(), Some("why"));
        assert_eq!(verdict(UserPromptSubmit, 0, "context\n", "").context, ["context"]);
        let failed = verdict(PreToolUse, 1, "", "oops");
        assert_eq!((failed.block, failed.failures.len()), (None, 1));
        let missing = verdict(PreToolUse, 127, "", "sh: gone: not found");
        assert!(missing.block.unwrap().contains("gone: not found"), "a gate that cannot run stays shut");
        assert_eq!(verdict(PostToolUse, 127, "", "x").block, None);
        let mut late = Verdict::default();
        late.add(PreToolUse, "cmd", &Ran { killed: true, ..Ran::default() });
        assert!(late.block.unwrap().contains("took too long"));
    }

    #[test]
    fn json_decides() {
        let answer = |text: &str| verdict(HookEvent::PreToolUse, 0, text, "");
        assert_eq!(answer(r#"{"decision":"block","reason":"no"}"#).block.as_deref(), Some("no"));
        assert_eq!(answer(r#"{"decision":"approve"}"#), Verdict::default());
        let specific = |text: &str| answer(&format!(r#"{{"hookSpecificOutput":{{{text}}}}}"#));
        let denied = specific(r#""permissionDecision":"deny","permissionDecisionReason":"no""#);
        assert_eq!(denied.block.as_deref(), Some("no"));
        assert_eq!(specific(r#""permissionDecision":"ask""#).ask.as_deref(), Some(""));
        assert_eq!(specific(r#""permissionDecision":"allow""#), Verdict::default());
        let changed = specific(r#""updatedInput":{"a":1},"additionalContext":"c""#);
        assert_eq!(
            (changed.updated_input, changed.context),
            (Some(crate::base::json::json!({"a": 1})), vec!["c".into()])
        );
        let ended = answer(r#"{"continue":false,"stopReason":"enough","systemMessage":"hi"}"#);
        assert_eq!((ended.stop.as_deref(), ended.messages), (Some("enough"), vec!["hi".to_owned()]));
    }
}
