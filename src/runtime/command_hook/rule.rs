//! The setting `hooks`: commands for events, with what they are for. The form is the one of Claude Code.

use regex::Regex;
use serde_json::Value;
use std::time::Duration;

/// Time for a command that sets no limit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An event that commands can run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    UserPromptSubmit,
    SessionStart,
    SessionEnd,
    Stop,
    PreCompact,
    Notification,
}

const EVENTS: &[(HookEvent, &str)] = &[
    (HookEvent::PreToolUse, "PreToolUse"),
    (HookEvent::PostToolUse, "PostToolUse"),
    (HookEvent::PostToolUseFailure, "PostToolUseFailure"),
    (HookEvent::UserPromptSubmit, "UserPromptSubmit"),
    (HookEvent::SessionStart, "SessionStart"),
    (HookEvent::SessionEnd, "SessionEnd"),
    (HookEvent::Stop, "Stop"),
    (HookEvent::PreCompact, "PreCompact"),
    (HookEvent::Notification, "Notification"),
];

impl HookEvent {
    pub fn name(self) -> &'static str {
        EVENTS.iter().find(|(event, _)| *event == self).map_or("", |(_, name)| name)
    }
}

/// A command of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    pub command: String,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
struct Rule {
    event: HookEvent,
    /// Matches the whole of a name; none for every name.
    matcher: Option<Regex>,
    /// Patterns that arguments of a tool call contain, by the names of the arguments.
    arguments: Vec<(String, Regex)>,
    commands: Vec<HookCommand>,
}

/// The hooks of the settings.
#[derive(Clone, Debug, Default)]
pub struct HookRules {
    rules: Vec<Rule>,
    /// Why an entry of `PreToolUse` cannot be used. It may be the one that keeps calls back, so that none is made.
    broken_gate: Option<String>,
}

impl HookRules {
    /// Reads the hooks of the user and of a trusted project, in this order. Gives what is wrong with others.
    pub fn parse<'a>(settings: impl IntoIterator<Item = &'a Value>) -> (Self, Vec<String>) {
        let (mut rules, mut problems, mut broken_gate) = (Vec::new(), Vec::new(), None);
        for hooks in settings {
            for (name, groups) in hooks.as_object().into_iter().flatten() {
                let Some((event, _)) = EVENTS.iter().find(|(_, known)| known == name) else {
                    let known: Vec<&str> = EVENTS.iter().map(|(_, name)| *name).collect();
                    problems.push(format!("hooks: there is no event {name}. Known: {}", known.join(", ")));
                    continue;
                };
                let Some(groups) = groups.as_array() else {
                    problems.push(format!("hooks.{name} must be a list"));
                    continue;
                };
                for group in groups {
                    match Rule::parse(*event, group) {
                        Ok(rule) => rules.push(rule),
                        Err(why) if *event == HookEvent::PreToolUse => {
                            problems
                                .push(format!("hooks.{name}: {why}; no tool is called until that is mended"));
                            broken_gate = Some(why);
                        }
                        Err(why) => problems.push(format!("hooks.{name}: {why}; the entry is not used")),
                    }
                }
            }
        }
        (Self { rules, broken_gate }, problems)
    }

    pub fn has(&self, event: HookEvent) -> bool {
        (event == HookEvent::PreToolUse && self.broken_gate.is_some())
            || self.rules.iter().any(|rule| rule.event == event)
    }

    /// Why no tool may be called: an entry of `PreToolUse` cannot be used.
    pub fn broken_gate(&self) -> Option<&str> {
        self.broken_gate.as_deref()
    }

    /// The commands for an event, each once, in order. `names` are what matchers are compared with: none if the event
    /// has no names. `arguments` are those of a tool call.
    pub fn commands(&self, event: HookEvent, names: &[&str], arguments: &Value) -> Vec<&HookCommand> {
        let mut commands: Vec<&HookCommand> = Vec::new();
        let rules = self.rules.iter().filter(|rule| rule.event == event && rule.matches(names, arguments));
        for command in rules.flat_map(|rule| &rule.commands) {
            if !commands.iter().any(|known| known.command == command.command) {
                commands.push(command);
            }
        }
        commands
    }
}

impl Rule {
    fn parse(event: HookEvent, group: &Value) -> Result<Self, String> {
        let pattern = |text: &str| Regex::new(text).map_err(|_| format!("{text:?} is no regular expression"));
        let matcher = match &group["matcher"] {
            Value::Null => None,
            Value::String(text) if text.is_empty() || text == "*" => None,
            Value::String(text) => Some(pattern(&format!("^(?:{text})$"))?),
            _ => return Err("\"matcher\" must be a text".into()),
        };
        let mut arguments = Vec::new();
        match &group["arguments"] {
            Value::Null => {}
            Value::Object(fields) => {
                for (name, text) in fields {
                    let text =
                        text.as_str().ok_or_else(|| format!("the pattern of {name} must be a text"))?;
                    arguments.push((name.clone(), pattern(text)?));
                }
            }
            _ => return Err("\"arguments\" must be an object of patterns".into()),
        }
        let hooks = group["hooks"].as_array().ok_or("\"hooks\" must be a list of commands")?;
        let commands = hooks.iter().map(HookCommand::parse).collect::<Result<_, _>>()?;
        Ok(Self { event, matcher, arguments, commands })
    }

    fn matches(&self, names: &[&str], arguments: &Value) -> bool {
        let is_named = self
            .matcher
            .as_ref()
            .is_none_or(|matcher| names.is_empty() || names.iter().any(|name| matcher.is_match(name)));
        is_named
            && self.arguments.iter().all(|(name, pattern)| match &arguments[name.as_str()] {
                Value::Null => false,
                Value::String(text) => pattern.is_match(text),
                other => pattern.is_match(&other.to_string()),
            })
    }
}

impl HookCommand {
    fn parse(hook: &Value) -> Result<Self, String> {
        match hook["type"].as_str() {
            None | Some("command") => {}
            Some(other) => return Err(format!("hooks of type {other} are not known, only commands")),
        }
        let command = hook["command"].as_str().filter(|command| !command.trim().is_empty());
        let timeout = match &hook["timeout"] {
            Value::Null => TIMEOUT,
            seconds => seconds
                .as_f64()
                .filter(|seconds| *seconds > 0.0)
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or("\"timeout\" must be a number of seconds, more than 0")?,
        };
        Ok(Self { command: command.ok_or("\"command\" is missing")?.to_owned(), timeout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    fn rules(value: &Value) -> (HookRules, Vec<String>) {
        HookRules::parse([value])
    }

    #[test]
    fn matchers_choose_by_name_and_arguments() {
        let group = |matcher: &Value, arguments: &Value| {
            let hooks = json!([{"type": "command", "command": "x"}, {"command": "x", "timeout": 0.5}]);
            json!({"PreToolUse": [{"matcher": matcher, "arguments": arguments, "hooks": hooks}]})
        };
        let call = json!({"command": "rm -rf x", "n": 7});
        for (matcher, arguments, expected) in [
            (json!(null), json!(null), true),
            (json!(""), json!({}), true),
            (json!("*"), json!({}), true),
            (json!("Bash"), json!({}), true),
            (json!("bash"), json!({}), true),
            (json!("Edit|Bash"), json!({}), true),
            (json!("B.*"), json!({}), true),
            (json!("Bas"), json!({}), false),
            (json!("Write"), json!({}), false),
            (json!("Bash"), json!({"command": r"\brm\b"}), true),
            (json!("Bash"), json!({"command": "^rm$"}), false),
            (json!("Bash"), json!({"command": "rm", "n": "7"}), true),
            (json!("Bash"), json!({"gone": ""}), false),
        ] {
            let (rules, problems) = rules(&group(&matcher, &arguments));
            assert_eq!(problems, [""; 0]);
            let found = rules.commands(HookEvent::PreToolUse, &["Bash", "bash"], &call);
            assert_eq!(found.len(), usize::from(expected), "{matcher} {arguments}");
            assert!(rules.commands(HookEvent::Stop, &[], &Value::Null).is_empty());
        }
    }

    #[test]
    fn what_is_wrong_is_said_and_the_rest_is_used() {
        let good = json!([{"hooks": [{"command": "x"}]}]);
        for (value, said) in [
            (json!({"Stopp": [], "Stop": good}), "there is no event Stopp. Known: PreToolUse"),
            (json!({"PreToolUse": {}, "Stop": good}), "hooks.PreToolUse must be a list"),
            (json!({"PreToolUse": [{"matcher": "("}], "Stop": good}), "is no regular expression"),
            (json!({"PreToolUse": [{"matcher": 7}], "Stop": good}), "\"matcher\" must be a text"),
            (json!({"PreToolUse": [{"hooks": [{"type": "prompt"}]}], "Stop": good}), "type prompt"),
            (json!({"PreToolUse": [{"hooks": [{}]}], "Stop": good}), "\"command\" is missing"),
            (
                json!({"PreToolUse": [{"hooks": [{"command": "x", "timeout": 0}]}], "Stop": good}),
                "\"timeout\"",
            ),
            (json!({"PreToolUse": [{"arguments": [], "hooks": []}], "Stop": good}), "\"arguments\""),
            (json!({"PreToolUse": [{}], "Stop": good}), "\"hooks\" must be a list"),
        ] {
            let (rules, problems) = rules(&value);
            // A gate that cannot be read stays shut.
            let is_shut = value["PreToolUse"].is_array();
            assert!(rules.has(HookEvent::Stop) && rules.has(HookEvent::PreToolUse) == is_shut, "{value}");
            assert_eq!(rules.broken_gate().is_some(), is_shut, "{value}");
            assert!(problems.len() == 1 && problems[0].contains(said), "{problems:?}");
        }
    }
}
