//! Definitions of agents: Markdown files that say what a helper is for, what it may use and how it works.
//!
//! The head names the agent; the body is added to its system prompt. The first definition of a name wins: project,
//! user, built in. Definitions that lost are kept, so that they can be shown.

use super::place::{Kind, Places};
use super::source::Source;
use super::{Diagnostic, frontmatter, text_file};
use crate::base::json::json;
use crate::llm::model::ThinkingLevel;
use serde_json::{Map, Value};

const BUILTIN: [&str; 3] = [
    include_str!("agents/general.md"),
    include_str!("agents/explore.md"),
    include_str!("agents/reviewer.md"),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub name: String,
    pub description: String,
    /// Names of its tools; `None` for the tools of the session.
    pub tools: Option<Vec<String>>,
    /// Patterns of its model, best first; empty for the model of the session.
    pub models: Vec<String>,
    pub thinking: Option<ThinkingLevel>,
    /// JSON schema of its result.
    pub output: Option<Value>,
    /// Names of its skills; `None` for all.
    pub skills: Option<Vec<String>>,
    /// Names of agents that it may give tasks to; `*` is any.
    pub spawns: Vec<String>,
    pub prompt: String,
    /// `None` for an agent that is built in.
    pub source: Option<Source>,
}

/// All definitions, in order of precedence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agents(Vec<Agent>);

impl Agents {
    pub fn find(&self, name: &str) -> Option<&Agent> {
        self.0.iter().find(|agent| agent.name == name)
    }

    /// Definitions that are used: the first of each name.
    pub fn used(&self) -> impl Iterator<Item = &Agent> {
        self.0.iter().filter(|agent| self.shadowing(agent).is_none())
    }

    pub fn all(&self) -> &[Agent] {
        &self.0
    }

    /// The definition that is used in place of `agent`; `None` if `agent` itself is used.
    pub fn shadowing(&self, agent: &Agent) -> Option<&Agent> {
        self.find(&agent.name).filter(|first| !std::ptr::eq(*first, agent))
    }
}

impl Agent {
    /// True if the agent may give tasks to the agent `name`.
    pub fn may_spawn(&self, name: &str) -> bool {
        self.spawns.iter().any(|known| known == "*" || known == name)
    }

    /// Path of the definition, or `built in`.
    pub fn origin(&self) -> String {
        self.source.as_ref().map_or_else(|| "built in".to_owned(), |source| source.path.display().to_string())
    }

    pub fn scope(&self) -> &'static str {
        self.source.as_ref().map_or("builtin", |source| source.scope.name())
    }

    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name, "description": self.description, "tools": self.tools, "model": self.models,
            "thinking": self.thinking.map(ThinkingLevel::name), "output": self.output, "skills": self.skills,
            "spawns": self.spawns, "prompt": self.prompt, "scope": self.scope(),
            "path": self.source.as_ref().map(|source| &source.path),
        })
    }
}

/// Loads the definitions of `places` and those that are built in.
pub fn load(places: &Places<'_>) -> (Agents, Vec<Diagnostic>) {
    let (mut agents, mut diagnostics) = (Vec::new(), Vec::new());
    for source in places.files(Kind::Agents, false) {
        let path = source.path.clone();
        let text = text_file::read(&path, &source.bounds);
        match text.and_then(|text| parse(&text)) {
            Ok(agent) => agents.push(Agent { source: Some(source), ..agent }),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    agents.extend(BUILTIN.iter().filter_map(|text| parse(text).ok()));
    (Agents(agents), diagnostics)
}

fn parse(text: &str) -> Result<Agent, String> {
    let document = frontmatter::parse(text).map_err(|error| error.to_string())?;
    let head = &document.head;
    let name = needed(head, "name")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.len() > 48 || !name.chars().all(is_plain) {
        return Err(format!("name \"{name}\" must be 1 to 48 letters, digits, \"_\" or \"-\""));
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
    let mut tools = list(head, "tools")?;
    let mut spawns = list(head, "spawns")?.unwrap_or_default();
    // A definition may ask for the tool by which tasks are given.
    if let Some(tools) = &mut tools
        && tools.iter().any(|tool| tool == "task")
    {
        tools.retain(|tool| tool != "task");
        if spawns.is_empty() {
            spawns.push("*".into());
        }
    }
    Ok(Agent {
        description: needed(head, "description")?,
        name,
        tools,
        models: list(head, "model")?.unwrap_or_default(),
        thinking,
        output,
        skills: list(head, "skills")?,
        spawns,
        prompt: document.body,
        source: None,
    })
}

fn needed(head: &Map<String, Value>, key: &str) -> Result<String, String> {
    let text = head.get(key).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| format!("{key} is required"))
}

/// Reads a list, or a text whose items are separated by commas.
fn list(head: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let trimmed = |text: &str| text.trim().to_owned();
    let items: Vec<String> = match head.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.split(',').map(trimmed).collect(),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).map(trimmed).collect()
        }
        Some(_) => return Err(format!("{key} must be a list of names")),
    };
    Ok(Some(items.into_iter().filter(|item| !item.is_empty()).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;
    use crate::base::testing::TempDir;

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
            ("description: d\nx: *a", Err("line 4: ")),
        ];
        for (head, expected) in rows {
            let found = parse(&format!("---\nname: a\n{head}\n---\nBody\n"));
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
        let fault = parse("---\nname: a/b\ndescription: d\n---\n").unwrap_err();
        assert!(fault.starts_with("name \"a/b\" must be"), "{fault}");
    }

    #[test]
    fn the_first_definition_of_a_name_is_used_and_the_others_are_known() {
        let scratch = TempDir::create();
        let definition = |about: &str| format!("---\nname: explore\ndescription: {about}\n---\n{about}");
        scratch.write("p/.pi/agents/a.md", definition("project"));
        scratch.write("agent/agents/a.md", definition("user"));
        scratch.write("agent/agents/bad.md", "no head");
        let (agent, cwd) = (scratch.path().join("agent"), scratch.path().join("p"));
        let settings = Settings::default();
        let loaded = |is_trusted: bool| {
            load(&Places {
                agent: &agent,
                home: None,
                cwd: &cwd,
                settings: &settings,
                is_trusted,
                packages: &[],
                named_packages: &[],
            })
        };
        for (is_trusted, first) in [(true, "project"), (false, "user")] {
            let (agents, diagnostics) = loaded(is_trusted);
            assert_eq!(agents.find("explore").unwrap().prompt, first);
            assert_eq!(agents.used().count(), BUILTIN.len());
            let shadowed = agents.all().iter().filter(|agent| agents.shadowing(agent).is_some());
            assert_eq!(shadowed.count(), 1 + usize::from(is_trusted));
            assert_eq!(diagnostics.len(), 1);
            assert_eq!(diagnostics[0].message, "name is required");
        }
    }
}
