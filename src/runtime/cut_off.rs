//! Tells from a stored conversation whether its last run ended before the model was finished, as after a kill.

use super::control::Control;
use crate::agent::message::AgentMessage;
use crate::llm::message::StopReason;
use std::fmt;

/// What the last run had come to when it was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// The last prompt has no answer.
    Prompt,
    /// So many calls of the last answer have no result. What they did is unknown.
    Calls(usize),
    /// The results of all calls were not answered.
    Results,
}

impl CutOff {
    /// Returns where the run of `messages` was cut off; `None` if it ended, if only in an error or an abort.
    fn of(messages: &[AgentMessage]) -> Option<Self> {
        let mut results = 0;
        for message in messages.iter().rev() {
            return match message {
                AgentMessage::ToolResult(_) => {
                    results += 1;
                    continue;
                }
                // Commands of the user and notes of extensions are not answered.
                AgentMessage::System(_)
                | AgentMessage::BashExecution(_)
                | AgentMessage::Custom(_)
                | AgentMessage::Unknown(_) => continue,
                AgentMessage::User(_) => Some(Self::Prompt),
                AgentMessage::Assistant(answer) if answer.stop_reason == StopReason::ToolUse => {
                    match answer.tool_calls().count().saturating_sub(results) {
                        0 if results == 0 => None,
                        0 => Some(Self::Results),
                        open => Some(Self::Calls(open)),
                    }
                }
                AgentMessage::Assistant(_)
                | AgentMessage::BranchSummary(_)
                | AgentMessage::CompactionSummary(_) => None,
            };
        }
        None
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt => f.write_str("The last prompt got no answer"),
            Self::Calls(1) => {
                f.write_str("The last run was cut off during a tool call, which may have done its work")
            }
            Self::Calls(open) => {
                write!(f, "The last run was cut off during {open} tool calls, which may have done their work")
            }
            Self::Results => f.write_str("The last run was cut off after its tool calls"),
        }
    }
}

impl Control {
    /// Returns where the last run of the conversation was cut off; `None` if it ended, or one is under way.
    pub fn cut_off(&self) -> Option<CutOff> {
        if self.is_idle() { CutOff::of(&self.messages()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;
    use serde_json::Value;

    #[track_caller]
    fn check(messages: &[Value], expected: Option<CutOff>) {
        let read = |value: &Value| serde_json::from_value(value.clone()).unwrap();
        let read: Vec<AgentMessage> = messages.iter().map(read).collect();
        assert_eq!(CutOff::of(&read), expected, "{messages:?}");
    }

    #[test]
    fn a_run_is_cut_off_where_something_waits_for_the_model_or_a_tool() {
        let user = json!({"role": "user", "content": "go"});
        let answer = |stop: &str, calls: usize| {
            let call = |id| json!({"type": "toolCall", "id": id, "name": "ls", "arguments": {}});
            let calls: Vec<Value> = (0..calls).map(|id| call(id.to_string())).collect();
            json!({"role": "assistant", "api": "", "provider": "", "model": "", "content": calls, "stopReason": stop})
        };
        let result = json!({"role": "toolResult", "toolCallId": "0", "toolName": "ls", "content": [], "isError": false});
        let shell = json!({"role": "bashExecution", "command": "ls", "output": ""});
        let summary = json!({"role": "compactionSummary", "summary": "s", "tokensBefore": 1});
        let (user, result, shell) = (&user, &result, &shell);
        check(&[], None);
        check(std::slice::from_ref(user), Some(CutOff::Prompt));
        check(&[user.clone(), shell.clone()], Some(CutOff::Prompt));
        check(std::slice::from_ref(shell), None);
        for stop in ["stop", "length", "error", "aborted"] {
            check(&[user.clone(), answer(stop, 1)], None);
        }
        check(&[user.clone(), answer("toolUse", 2)], Some(CutOff::Calls(2)));
        check(&[user.clone(), answer("toolUse", 2), result.clone()], Some(CutOff::Calls(1)));
        check(&[user.clone(), answer("toolUse", 1), result.clone()], Some(CutOff::Results));
        check(&[user.clone(), answer("toolUse", 0)], None);
        check(&[summary], None);
    }
}
