//! Expands prompts of the form `/skill:name arguments` and `/template arguments`.
//!
//! A prompt is expanded once, before it is sent or queued; the result is not expanded again. A prompt that
//! names no known skill or template is sent unchanged.

use crate::base::json::json;
use crate::resources::Diagnostic;
use crate::resources::skill::Skill;
use crate::resources::template::{Template, is_space};
use serde_json::Value;

/// Skills and prompt templates, which the user calls with a slash.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    pub templates: Vec<Template>,
    pub skills: Vec<Skill>,
}

impl Commands {
    /// Expands a call of a skill or template. If a skill cannot be read, `text` is returned with a
    /// diagnostic.
    pub fn expand(&self, text: String) -> (String, Option<Diagnostic>) {
        if let Some(call) = text.strip_prefix("/skill:") {
            let (name, arguments) = call.split_once(' ').unwrap_or((call, ""));
            if let Some(skill) = self.skills.iter().find(|skill| skill.name == name) {
                return match skill.call(arguments.trim()) {
                    Ok(called) => (called, None),
                    Err(diagnostic) => (text, Some(diagnostic)),
                };
            }
        }
        let template = text.strip_prefix('/').and_then(|call| {
            let (name, arguments) = call.split_once(is_space).unwrap_or((call, ""));
            Some(self.template(name)?.fill(arguments))
        });
        (template.unwrap_or(text), None)
    }

    pub fn template(&self, name: &str) -> Option<&Template> {
        self.templates.iter().find(|template| template.name == name)
    }

    /// Returns all commands in the JSON form of RPC mode.
    pub fn list(&self) -> Vec<Value> {
        let templates = self.templates.iter().map(|template| {
            json!({"name": template.name, "description": template.description, "source": "prompt",
                "sourceInfo": template.source.to_json()})
        });
        let skills = self.skills.iter().map(|skill| {
            json!({"name": format!("skill:{}", skill.name), "description": skill.description, "source": "skill",
                "sourceInfo": skill.source.to_json()})
        });
        templates.chain(skills).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::source::{Found, Scope, Source};
    use crate::resources::text_file::Bounds;

    fn source(path: &str) -> Source {
        Source {
            path: path.into(),
            found: Found::Looked,
            scope: Scope::User,
            base: Some("/agent".into()),
            bounds: Bounds::anywhere(),
        }
    }

    fn commands() -> Commands {
        let template = |name: &str, content: &str| Template {
            name: name.into(),
            description: format!("About {name}"),
            hint: None,
            content: content.into(),
            source: source("/agent/prompts/x.md"),
        };
        Commands {
            templates: vec![template("t", "<$1|$@>"), template("call", "/skill:gone and /t x")],
            skills: vec![Skill {
                name: "gone".into(),
                description: "Gone".into(),
                folder: "/nowhere".into(),
                is_hidden: false,
                source: source("/nowhere/SKILL.md"),
            }],
        }
    }

    #[test]
    fn known_names_are_expanded_once_and_the_rest_stays() {
        let rows = [
            ("/t", "<|>"),
            ("/t a b", "<a|a b>"),
            ("/t\na\n'b c'", "<a|a b c>"),
            ("/t /t", "</t|/t>"),
            ("/call", "/skill:gone and /t x"),
            ("/unknown a", "/unknown a"),
            ("/tx", "/tx"),
            (" /t", " /t"),
            ("/", "/"),
            ("/ t", "/ t"),
            ("t a", "t a"),
            ("/skill:unknown a", "/skill:unknown a"),
        ];
        for (text, expected) in rows {
            let (expanded, said) = commands().expand(text.to_owned());
            assert_eq!((expanded.as_str(), said), (expected, None), "{text}");
        }
    }

    #[test]
    fn a_skill_that_cannot_be_read_leaves_the_text() {
        let (text, said) = commands().expand("/skill:gone x".into());
        assert_eq!(text, "/skill:gone x");
        assert!(said.unwrap().to_string().starts_with("/nowhere/SKILL.md: could not be read"));
    }

    #[test]
    fn commands_are_listed_as_other_programs_expect() {
        let list = commands().list();
        assert_eq!(
            list[0],
            json!({"name": "t", "description": "About t", "source": "prompt", "sourceInfo":
                {"path": "/agent/prompts/x.md", "source": "auto", "scope": "user", "origin": "top-level", "baseDir": "/agent"}})
        );
        let names: Vec<&Value> = list.iter().map(|command| &command["name"]).collect();
        assert_eq!(names, ["t", "call", "skill:gone"]);
    }
}
