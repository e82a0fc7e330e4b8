//! The head of an agent's definition: pi's own words, and those that the same things have in other programs.
//!
//! Definitions of Claude Code, opencode, Gemini CLI, Copilot and Cursor are read as they are. What such a head forbids
//! is forbidden here; its hooks, colours and temperatures do not count.

use super::Agent;
use crate::llm::model::ThinkingLevel;
use crate::resources::frontmatter;
use serde_json::{Map, Value};
use std::path::Path;

const NAME_MAX: usize = 48;

/// Names that other programs have for tools. A session's own tool of the name takes precedence.
const ALIASES: [(&str, &[&str]); 26] = [
    ("Read", &["read"]),
    ("read_file", &["read"]),
    ("read_many_files", &["read"]),
    ("view", &["read"]),
    ("Write", &["write"]),
    ("write_file", &["write"]),
    ("Create", &["write"]),
    ("Edit", &["edit"]),
    ("MultiEdit", &["edit"]),
    ("replace", &["edit"]),
    ("patch", &["edit"]),
    ("Bash", &["bash"]),
    ("shell", &["bash"]),
    ("execute", &["bash"]),
    ("run_shell_command", &["bash"]),
    ("Grep", &["grep"]),
    ("grep_search", &["grep"]),
    ("search_file_content", &["grep"]),
    ("search", &["grep", "find"]),
    ("Glob", &["find"]),
    ("glob", &["find"]),
    ("LS", &["ls"]),
    ("list", &["ls"]),
    ("list_directory", &["ls"]),
    ("TodoWrite", &["todo"]),
    ("todowrite", &["todo"]),
];

/// Names of the tool by which tasks are given.
const TASK: [&str; 3] = ["task", "Task", "Agent"];

/// Returns the tools for which the name of one stands. `is_there` tells if the session has a tool.
pub fn tools_of<'a>(name: &'a str, is_there: &dyn Fn(&str) -> bool) -> Vec<&'a str> {
    let aliases = ALIASES.iter().find(|(alias, _)| *alias == name).filter(|_| !is_there(name));
    aliases.map_or_else(|| vec![name], |(_, tools)| tools.to_vec())
}

/// The name of an agent whose head has none: that of its file.
pub(super) fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.strip_suffix(".agent").map_or(stem.clone(), str::to_owned)
}

/// Reads a definition. `None` if its head switches it off.
pub(super) fn parse(text: &str, file_name: &str) -> Result<Option<Agent>, String> {
    let document = frontmatter::parse(text).map_err(|error| error.to_string())?;
    let head = &document.head;
    let is = |key: &str, value: &str| text_of(head, key) == Some(value);
    let is_on = |key: &str| head.get(key) == Some(&Value::Bool(true));
    if is_on("disable") || is_on("disabled") {
        return Ok(None);
    }
    let name = text_of(head, "name").unwrap_or(file_name).replace(' ', "-");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) {
        return Err(format!("name \"{name}\" must be 1 to {NAME_MAX} letters, digits, \"_\" or \"-\""));
    }
    let thinking = match head.get("thinking").or_else(|| head.get("thinking-level")) {
        None | Some(Value::Null) => None,
        Some(level) => {
            let known = level.as_str().and_then(ThinkingLevel::parse);
            let valid = || ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
            Some(known.ok_or_else(|| format!("thinking must be one of {}", valid()))?)
        }
    };
    let output = match head.get("output") {
        None | Some(Value::Null) => None,
        Some(schema @ Value::Object(_)) => Some(schema.clone()),
        Some(_) => return Err("output must be a JSON schema".into()),
    };
    let mut excluded = list(head, "disallowedTools")?.unwrap_or_default();
    let mut spawns = list(head, "spawns")?.unwrap_or_default();
    let tools = match head.get("tools") {
        Some(Value::Object(switches)) => switched(switches, &mut excluded)?,
        _ => list(head, "tools")?.filter(|tools| !tools.iter().any(|tool| tool == "*")),
    };
    if let Some(Value::Object(permissions)) = head.get("permission") {
        excluded.extend(permissions.iter().filter(|(_, how)| *how == "deny").map(|(tool, _)| tool.clone()));
    }
    let tools = tools.map(|tools| without_task(tools, &mut spawns));
    Ok(Some(Agent {
        description: text_of(head, "description").ok_or("description is required")?.to_owned(),
        name,
        tools,
        excluded,
        is_read_only: is_on("readonly") || is("permissionMode", "plan"),
        models: list(head, "model")?
            .unwrap_or_default()
            .into_iter()
            .filter(|model| model != "inherit")
            .collect(),
        thinking,
        output,
        skills: list(head, "skills")?,
        spawns,
        prompt: document.body,
        source: None,
    }))
}

/// Reads opencode's `tools`, each name with true or false. What is false is excluded; `*: false` leaves what is true.
fn switched(
    switches: &Map<String, Value>,
    excluded: &mut Vec<String>,
) -> Result<Option<Vec<String>>, String> {
    if !switches.values().all(Value::is_boolean) {
        return Err("tools must be a list of names, or each name with true or false".into());
    }
    let names = |wanted: bool| {
        let all = switches.iter().filter(move |(_, is_on)| **is_on == Value::Bool(wanted));
        all.map(|(name, _)| name.clone()).filter(|name| name != "*")
    };
    excluded.extend(names(false));
    Ok((switches.get("*") == Some(&Value::Bool(false))).then(|| names(true).collect()))
}

/// Takes the tool by which tasks are given out of `tools`: `Task` means any agent, `Task(a, b)` these two.
fn without_task(tools: Vec<String>, spawns: &mut Vec<String>) -> Vec<String> {
    let mut left = Vec::new();
    let (mut is_any, mut named) = (false, Vec::new());
    for tool in tools {
        match tool.split_once('(') {
            _ if TASK.contains(&&*tool) => is_any = true,
            Some((name, agents)) if TASK.contains(&name) => {
                named.extend(agents.trim_end_matches(')').split(',').map(|agent| agent.trim().to_owned()));
            }
            _ => left.push(tool),
        }
    }
    if spawns.is_empty() {
        *spawns = if is_any { vec!["*".to_owned()] } else { named };
    }
    left
}

fn text_of<'a>(head: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    head.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Reads a list, or a text whose items are separated by commas. Commas in brackets belong to an item.
fn list(head: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let trimmed = |text: &str| text.trim().to_owned();
    let mut depth = 0_usize;
    let is_between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    let items: Vec<String> = match head.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.split(is_between).map(trimmed).collect(),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).map(trimmed).collect()
        }
        Some(_) => return Err(format!("{key} must be a list of names")),
    };
    Ok(Some(items.into_iter().filter(|item| !item.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::json;

    #[test]
    fn a_head_says_what_an_agent_may_use() {
        let rows: &[(&str, Result<Agent, &str>)] = &[
            ("", Err("description is required")),
            (
                "description: d\ntools: read, grep\nmodel: [a/b, c]\nthinking: low\nspawns: '*'\nskills: x",
                Ok(Agent {
                    tools: Some(vec!["read".into(), "grep".into()]),
                    models: vec!["a/b".into(), "c".into()],
                    thinking: Some(ThinkingLevel::Low),
                    spawns: vec!["*".into()],
                    skills: Some(vec!["x".into()]),
                    ..Agent::default()
                }),
            ),
            (
                "description: d\ntools: [read, task]",
                Ok(Agent { tools: Some(vec!["read".into()]), spawns: vec!["*".into()], ..Agent::default() }),
            ),
            (
                "description: d\ntools: task\nspawns: explore\noutput: {type: object}",
                Ok(Agent {
                    tools: Some(Vec::new()),
                    spawns: vec!["explore".into()],
                    output: Some(json!({"type": "object"})),
                    ..Agent::default()
                }),
            ),
            ("description: d\nthinking: much", Err("thinking must be one of off, minimal,")),
            ("description: d\noutput: text", Err("output must be a JSON schema")),
            ("description: d\ntools: {a: b}", Err("tools must be a list of names")),
            // Claude Code.
            (
                "description: d\ntools: Read, Bash(git log:*), Task(explore, reviewer), mcp__git__*\nmodel: inherit",
                Ok(Agent {
                    tools: Some(["Read", "Bash(git log:*)", "mcp__git__*"].map(Into::into).into()),
                    spawns: vec!["explore".into(), "reviewer".into()],
                    ..Agent::default()
                }),
            ),
            (
                "description: d\ndisallowedTools: Write, Edit\npermissionMode: plan\nmodel: haiku\ncolor: red",
                Ok(Agent {
                    excluded: vec!["Write".into(), "Edit".into()],
                    is_read_only: true,
                    models: vec!["haiku".into()],
                    ..Agent::default()
                }),
            ),
            // opencode.
            (
                "description: d\nmode: subagent\ntools:\n  write: false\n  read: true\npermission:\n  bash: deny\n  edit: ask",
                Ok(Agent { excluded: vec!["write".into(), "bash".into()], ..Agent::default() }),
            ),
            (
                "description: d\ntools:\n  '*': false\n  read: true",
                Ok(Agent { tools: Some(vec!["read".into()]), ..Agent::default() }),
            ),
            // Copilot, Cursor.
            (
                "description: d\ntools: ['*']\nreadonly: true",
                Ok(Agent { is_read_only: true, ..Agent::default() }),
            ),
            ("description: d\nx: *a", Err("line 4: ")),
        ];
        for (head, expected) in rows {
            let found = parse(&format!("---\nname: a\n{head}\n---\nBody\n"), "").map(Option::unwrap);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    let same = Agent {
                        name: "a".into(),
                        description: "d".into(),
                        prompt: "Body".into(),
                        ..expected.clone()
                    };
                    assert_eq!(found, same, "{head}");
                }
                (Err(fault), Err(expected)) => assert!(fault.starts_with(expected), "{head}: {fault}"),
                (found, _) => panic!("{head}: {found:?}"),
            }
        }
        let fault = parse("---\nname: a/b\ndescription: d\n---\n", "").unwrap_err();
        assert!(fault.starts_with("name \"a/b\" must be"), "{fault}");
    }

    #[test]
    fn a_file_names_an_agent_whose_head_does_not() {
        for (path, head, expected) in [
            ("x/review.md", "description: d", Some("review")),
            ("x/code-review.agent.md", "description: d", Some("code-review")),
            ("x/a.md", "name: Front End\ndescription: d", Some("Front-End")),
            ("x/a.md", "description: d\ndisable: true", None),
        ] {
            let found = parse(&format!("---\n{head}\n---\n"), &name_of(Path::new(path))).unwrap();
            assert_eq!(found.map(|agent| agent.name).as_deref(), expected, "{path} {head}");
        }
    }

    #[test]
    fn names_of_other_programs_stand_for_tools() {
        let is_there = |name: &str| ["read", "execute"].contains(&name);
        for (name, expected) in [
            ("Read", vec!["read"]),
            ("search", vec!["grep", "find"]),
            ("execute", vec!["execute"]),
            ("x", vec!["x"]),
        ] {
            assert_eq!(tools_of(name, &is_there), expected);
        }
    }
}
