//! Definitions of agents: Markdown files that say what a helper is for, what it may use and how it works.
//!
//! The head names the agent; the body is added to its system prompt. The first definition of a name wins: project,
//! user, built in. Definitions that lost are kept, so that they can be shown.

mod head;

pub use head::tools_of;

use super::place::{Kind, Places};
use super::source::Source;
use super::{Diagnostic, text_file};
use crate::base::json::json;
use crate::llm::model::ThinkingLevel;
use serde_json::Value;

const BUILTIN: [&str; 3] =
    [include_str!("general.md"), include_str!("explore.md"), include_str!("reviewer.md")];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub name: String,
    pub description: String,
    /// Names of its tools, of which `*` at the end stands for any rest; `None` for the tools of the session.
    pub tools: Option<Vec<String>>,
    /// Names of tools that it does not have.
    pub excluded: Vec<String>,
    /// True if it may change nothing.
    pub is_read_only: bool,
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
            "disallowedTools": self.excluded, "readonly": self.is_read_only, "spawns": self.spawns, "prompt": self.prompt, "scope": self.scope(),
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
        match text.and_then(|text| head::parse(&text, &head::name_of(&path))) {
            Ok(None) => {}
            Ok(Some(agent)) => agents.push(Agent { source: Some(source), ..agent }),
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    agents.extend(BUILTIN.iter().filter_map(|text| head::parse(text, "").ok().flatten()));
    (Agents(agents), diagnostics)
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;
    use crate::base::testing::TempDir;

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
            assert_eq!(diagnostics[0].message, "description is required");
        }
    }
}
