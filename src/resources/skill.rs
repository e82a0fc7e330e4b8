//! Skills in the Agent Skills format: a folder with a `SKILL.md`, or a single Markdown file.
//!
//! The system prompt lists the skills. The model reads a skill's file when a task needs it, and the user
//! calls a skill with `/skill:name`.

use super::place::{Kind, Places};
use super::prompt::PromptSkill;
use super::source::Source;
use super::{Diagnostic, frontmatter, text_file};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const NAME_MAX: usize = 64;
const DESCRIPTION_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The skill's folder, to which paths in the skill are relative.
    pub folder: PathBuf,
    /// True if the system prompt does not list the skill.
    pub is_hidden: bool,
    pub source: Source,
}

/// Loads skills from `places`, unless `only_named` is set, and from the paths `named` on the command line.
pub fn load(places: &Places<'_>, only_named: bool, named: &[PathBuf]) -> (Vec<Skill>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut sources = places.files(Kind::Skills, only_named);
    for path in named {
        let message = match places.named(Kind::Skills, path) {
            None => "skill path does not exist",
            Some(files) if path.is_file() && !is_markdown(path) => {
                drop(files);
                "skill path is not a markdown file"
            }
            Some(files) => {
                sources.extend(files);
                continue;
            }
        };
        diagnostics.push(Diagnostic { path: path.clone(), message: message.into() });
    }
    let mut skills: Vec<Skill> = Vec::new();
    let mut by_name: HashMap<String, PathBuf> = HashMap::new();
    let mut seen = HashSet::new();
    let mut collisions = Vec::new();
    for source in sources {
        let real = source.path.canonicalize().unwrap_or_else(|_| source.path.clone());
        if seen.contains(&real) {
            continue;
        }
        let Some(skill) = read_skill(source, &mut diagnostics) else {
            continue;
        };
        if let Some(winner) = by_name.get(&skill.name) {
            let message = format!("name \"{}\" collision; {} is used", skill.name, winner.display());
            collisions.push(Diagnostic { path: skill.source.path, message });
            continue;
        }
        seen.insert(real);
        by_name.insert(skill.name.clone(), skill.source.path.clone());
        skills.push(skill);
    }
    diagnostics.extend(collisions);
    (skills, diagnostics)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "md")
}

fn read_skill(source: Source, diagnostics: &mut Vec<Diagnostic>) -> Option<Skill> {
    let path = source.path.clone();
    let mut tell = |message: String| {
        diagnostics.push(Diagnostic { path: path.clone(), message });
    };
    // Other Markdown files need not be skills.
    let is_declared = source.path.ends_with("SKILL.md");
    let content = match text_file::read(&source.path, &source.bounds) {
        Ok(content) => content,
        Err(message) => {
            tell(message);
            return None;
        }
    };
    let head = match frontmatter::parse(&content) {
        Ok(document) => document.head,
        Err(error) => {
            if is_declared {
                tell(error.to_string());
            }
            return None;
        }
    };
    let text_of = |name: &str| head.get(name).and_then(Value::as_str);
    let description = text_of("description").filter(|text| !text.trim().is_empty());
    if description.is_none() && !is_declared {
        return None;
    }
    match description.map(units) {
        None => tell("description is required".into()),
        Some(length) if length > DESCRIPTION_MAX => {
            tell(format!("description exceeds {DESCRIPTION_MAX} characters ({length})"));
        }
        Some(_) => {}
    }
    let folder = source.path.parent()?.to_owned();
    let name = match text_of("name").filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => folder.file_name()?.to_string_lossy().into_owned(),
    };
    faults_of_name(&name).into_iter().for_each(&mut tell);
    Some(Skill {
        description: description?.to_owned(),
        name,
        folder,
        is_hidden: head.get("disable-model-invocation") == Some(&Value::Bool(true)),
        source,
    })
}

/// Returns the length of `text` in UTF-16 units, as JavaScript counts.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn faults_of_name(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let length = units(name);
    if length > NAME_MAX {
        faults.push(format!("name exceeds {NAME_MAX} characters ({length})"));
    }
    if !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        faults.push("name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push("name must not start or end with a hyphen".into());
    }
    if name.contains("--") {
        faults.push("name must not contain consecutive hyphens".into());
    }
    faults
}

/// Returns the prompt section that lists the skills, and tells the model to read them with `tool`. `None` if
/// no skill is to be listed.
pub fn section(skills: &[PromptSkill], tool: &str) -> Option<String> {
    let mut visible = skills.iter().filter(|skill| !skill.disable_model_invocation).peekable();
    visible.peek()?;
    let mut text = format!(
        "Instructions for special tasks. When a task fits a description, read that file with {tool} first; \
         relative paths in it begin at its folder.\n<available_skills>\n"
    );
    for skill in visible {
        let _ = writeln!(
            text,
            "<skill>\n<name>{}</name>\n<description>{}</description>\n<location>{}</location>\n</skill>",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.file_path),
        );
    }
    text.push_str("</available_skills>");
    Some(text)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

impl From<&Skill> for PromptSkill {
    fn from(skill: &Skill) -> Self {
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            file_path: skill.source.path.to_string_lossy().into_owned(),
            base_dir: skill.folder.to_string_lossy().into_owned(),
            source_info: skill.source.to_json(),
            disable_model_invocation: skill.is_hidden,
        }
    }
}

impl Skill {
    /// Returns the text for the model when the user calls the skill with `arguments`. An unreadable file is
    /// an error.
    pub fn call(&self, arguments: &str) -> Result<String, Diagnostic> {
        let path = &self.source.path;
        let content = text_file::read(path, &self.source.bounds)
            .map_err(|message| Diagnostic { path: path.clone(), message })?;
        let mut text = format!(
            "<skill name=\"{}\" location=\"{}\">\nReferences are relative to {}.\n\n{}\n</skill>",
            self.name,
            path.display(),
            self.folder.display(),
            frontmatter::body(&content)
        );
        if !arguments.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::super::source::{Found, Scope};
    use super::*;
    use crate::base::testing::TempDir;

    /// A skill's file with a description.
    fn file(scratch: &TempDir, path: &str) -> PathBuf {
        scratch.write(path, format!("---\ndescription: About {path}\n---\nBody of {path}\n"))
    }

    fn loaded(
        scratch: &TempDir,
        is_trusted: bool,
        only_named: bool,
        named: &[&str],
    ) -> (Vec<Skill>, Vec<String>) {
        let root = scratch.path();
        let (agent, home, cwd) = (root.join("home/.pi/agent"), root.join("home"), root.join("r/p"));
        let (mut settings, _) = Settings::load(&agent);
        if is_trusted {
            settings.add_project(&cwd);
        }
        let places = Places {
            agent: &agent,
            home: Some(&home),
            cwd: &cwd,
            settings: &settings,
            is_trusted,
            packages: &[],
            named_packages: &[],
        };
        let named: Vec<PathBuf> = named.iter().map(|name| root.join(name)).collect();
        let (skills, diagnostics) = load(&places, only_named, &named);
        let prefix = format!("{}/", root.display());
        let said = diagnostics.iter().map(|said| said.to_string().replace(&prefix, ""));
        (skills, said.collect())
    }

    fn names(skills: &[Skill]) -> Vec<&str> {
        skills.iter().map(|skill| skill.name.as_str()).collect()
    }

    #[test]
    fn skills_are_found_in_all_their_places() {
        let scratch = TempDir::create();
        for path in [
            "home/.pi/agent/skills/b/SKILL.md",
            "home/.pi/agent/skills/deep/er/a/SKILL.md",
            "home/.pi/agent/skills/b/inner/SKILL.md",
            "home/.pi/agent/skills/.hidden/SKILL.md",
            "home/.pi/agent/skills/node_modules/n/SKILL.md",
            "home/.pi/agent/skills/deep/other.md",
            "home/.agents/skills/c/SKILL.md",
            "home/.agents/skills/top.md",
            "r/p/.pi/skills/d/SKILL.md",
            "r/p/.agents/skills/e/SKILL.md",
            "r/.agents/skills/f/SKILL.md",
            ".agents/skills/g/SKILL.md",
            "named/h/SKILL.md",
            "named/i.md",
            "lists/j/SKILL.md",
        ] {
            file(&scratch, path);
        }
        scratch.write("home/.pi/agent/skills/x.md", "---\nname: x\ndescription: x\n---\n");
        scratch.write("home/.pi/agent/skills/readme.md", "no skill");
        scratch.write("home/.agents/skills/in/k.md", "---\nname: k\ndescription: k\n---\n");
        scratch.write("r/.git/HEAD", "x");
        scratch.write("r/p/.pi/settings.json", "{\"skills\":[\"../../../lists\"]}");
        let (skills, said) = loaded(&scratch, true, false, &["named"]);
        assert_eq!(said, [""; 0]);
        assert_eq!(names(&skills), ["j", "d", "e", "f", "b", "a", "x", "c", "k", "h", "named"]);
        let found: Vec<_> = ["j", "d", "b", "h"]
            .iter()
            .filter_map(|name| skills.iter().find(|skill| skill.name == *name))
            .map(|skill| (skill.source.found.clone(), skill.source.scope, skill.source.base.is_some()))
            .collect();
        assert_eq!(
            found,
            [
                (Found::Named, Scope::Project, false),
                (Found::Looked, Scope::Project, true),
                (Found::Looked, Scope::User, true),
                (Found::Named, Scope::Temporary, true),
            ]
        );
        let (skills, _) = loaded(&scratch, false, false, &[]);
        assert_eq!(names(&skills), ["b", "a", "x", "c", "k"]);
        let (skills, said) = loaded(&scratch, true, true, &["named/i.md", "nope", "r/.git/HEAD"]);
        assert_eq!(names(&skills), ["named"]);
        assert_eq!(
            said,
            ["nope: skill path does not exist", "r/.git/HEAD: skill path is not a markdown file"]
        );
    }

    #[test]
    fn settings_and_ignore_files_switch_skills_off() {
        let scratch = TempDir::create();
        for name in ["a", "b", "c", "d"] {
            file(&scratch, &format!("home/.pi/agent/skills/{name}/SKILL.md"));
        }
        scratch.write("home/.pi/agent/skills/.gitignore", "/d/\n");
        let check = |settings: &str, expected: &[&str]| {
            scratch.write("home/.pi/agent/settings.json", settings);
            let (skills, _) = loaded(&scratch, true, false, &[]);
            assert_eq!(names(&skills), expected, "{settings}");
        };
        check("{}", &["a", "b", "c"]);
        check(r#"{"skills":["!b"]}"#, &["a", "c"]);
        check(r#"{"skills":["!*","+skills/b"]}"#, &["b"]);
        check(r#"{"skills":["-skills/a/SKILL.md"]}"#, &["b", "c"]);
        // A project's rules are not about the user's skills.
        scratch.write("r/p/.pi/settings.json", r#"{"skills":["!*"]}"#);
        check("{}", &["a", "b", "c"]);
    }

    #[test]
    fn two_of_one_name_are_told_and_one_file_counts_once() {
        let scratch = TempDir::create();
        file(&scratch, "home/.pi/agent/skills/a/SKILL.md");
        file(&scratch, "r/p/.pi/skills/a/SKILL.md");
        let link = scratch.path().join("home/.pi/agent/skills/b");
        std::os::unix::fs::symlink(scratch.path().join("r/p/.pi/skills/a"), link).unwrap();
        // A folder that holds itself.
        let loops = scratch.path().join("home/.pi/agent/skills/c");
        std::os::unix::fs::symlink(scratch.path().join("home/.pi/agent/skills"), loops).unwrap();
        let (skills, said) = loaded(&scratch, true, false, &[]);
        assert_eq!(names(&skills), ["a"]);
        assert_eq!(
            said,
            ["home/.pi/agent/skills/a/SKILL.md: name \"a\" collision; r/p/.pi/skills/a/SKILL.md is used"]
        );
    }

    #[test]
    fn what_is_wrong_with_a_skill_has_a_name() {
        let long = "x".repeat(1025);
        let rows: &[(&str, &str, &[&str])] = &[
            ("description: fine", "a", &[]),
            ("name: other\ndescription: fine", "other", &[]),
            ("name: 12\ndescription: fine", "a", &[]),
            (
                "name: Big_One-\ndescription: x",
                "Big_One-",
                &[
                    "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)",
                    "name must not start or end with a hyphen",
                ],
            ),
            ("name: a--b\ndescription: x", "a--b", &["name must not contain consecutive hyphens"]),
            (
                "name: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\ndescription: x",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                &["name exceeds 64 characters (65)"],
            ),
            (&format!("description: {long}"), "a", &["description exceeds 1024 characters (1025)"]),
            ("name: a", "", &["description is required"]),
            ("description: 5", "", &["description is required"]),
            ("description: ' '", "", &["description is required"]),
            (
                "description: a: b",
                "",
                &["line 2: a colon and a space inside a value: put the value in quotes"],
            ),
        ];
        for (head, name, messages) in rows {
            let scratch = TempDir::create();
            scratch.write("home/.pi/agent/skills/a/SKILL.md", format!("---\n{head}\n---\nBody"));
            let (skills, said) = loaded(&scratch, true, false, &[]);
            assert_eq!(names(&skills).concat(), *name, "{head}");
            let expected: Vec<String> = messages
                .iter()
                .map(|message| format!("home/.pi/agent/skills/a/SKILL.md: {message}"))
                .collect();
            assert_eq!(said, expected, "{head}");
        }
        let scratch = TempDir::create();
        scratch.write("home/.pi/agent/skills/a/SKILL.md", vec![b'x'; (1 << 20) + 1]);
        let (_, said) = loaded(&scratch, true, false, &[]);
        assert_eq!(said, ["home/.pi/agent/skills/a/SKILL.md: is larger than 1 MiB"]);
    }

    #[test]
    fn the_model_is_told_of_skills_that_are_not_hidden() {
        let scratch = TempDir::create();
        scratch.write("home/.pi/agent/skills/a/SKILL.md", "---\ndescription: \"<x> & 'y'\"\n---\n");
        scratch.write(
            "home/.pi/agent/skills/b/SKILL.md",
            "---\ndescription: b\ndisable-model-invocation: true\n---\nBody\n",
        );
        let (skills, _) = loaded(&scratch, true, false, &[]);
        let listed: Vec<PromptSkill> = skills.iter().map(PromptSkill::from).collect();
        let text = section(&listed, "read").unwrap();
        assert!(text.contains("<name>a</name>\n<description>&lt;x&gt; &amp; &apos;y&apos;</description>"));
        assert!(!text.contains("<name>b</name>"), "{text}");
        assert!(text.starts_with("Instructions") && text.contains(" with read first"));
        assert!(section(&listed[1..], "read").is_none());
        let called = skills[1].call("do it").unwrap();
        let folder = skills[1].folder.display();
        assert_eq!(
            called,
            format!(
                "<skill name=\"b\" location=\"{folder}/SKILL.md\">\nReferences are relative to {folder}.\n\nBody\n</skill>\n\ndo it"
            )
        );
    }
}
