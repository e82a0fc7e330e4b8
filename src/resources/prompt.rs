//! The system prompt, as named sections in a fixed order.
//!
//! The prompt contains nothing that changes by itself, such as the time, so that a provider's cache stays
//! valid. After a change, only the changed sections are sent.

use super::Diagnostic;
use super::context_file::ContextFile;
use super::dirs::Dirs;
use super::skill;
use super::text_file::{self, Bounds};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The parts of the system prompt, with the reference's names: handlers of extensions see and change them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptOptions {
    /// Replaces the preamble and the sections on tools, rules and the manual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    /// Is sent in place of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_system_prompt: Option<String>,
    /// Names of the active tools.
    pub selected_tools: Vec<String>,
    /// Names of active tools that no request declares.
    pub hidden_tools: Vec<String>,
    /// A line for the list of tools, by the tool's name; a tool without a line is not listed.
    pub tool_snippets: BTreeMap<String, String>,
    /// Rules by the tool's name.
    pub tool_guidelines: BTreeMap<String, Vec<String>>,
    /// Rules that belong to no tool.
    pub prompt_guidelines: Vec<String>,
    pub append_system_prompt: String,
    /// Texts of further sections, by their names.
    pub sections: Map<String, Value>,
    pub cwd: String,
    pub context_files: Vec<PromptFile>,
    pub skills: Vec<PromptSkill>,
}

/// A context file, as the system prompt shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptFile {
    pub path: String,
    pub content: String,
}

/// A skill, as the system prompt lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptSkill {
    pub name: String,
    pub description: String,
    pub file_path: String,
    pub base_dir: String,
    pub source_info: Value,
    /// True if the system prompt does not list the skill.
    pub disable_model_invocation: bool,
}

/// What a tool is good for, where the system prompt depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purposes {
    /// True if the model can read a skill with the tool.
    pub reads: bool,
    /// True if the model can list or search files with the tool.
    pub searches: bool,
    /// True if the model can run shell commands with the tool.
    pub runs_commands: bool,
}

impl From<&ContextFile> for PromptFile {
    fn from(file: &ContextFile) -> Self {
        Self { path: file.path.to_string_lossy().into_owned(), content: file.content.clone() }
    }
}

impl PromptOptions {
    /// Refuses further sections that the prompt cannot have.
    pub fn check(&self) -> Result<(), String> {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        for (name, text) in &self.sections {
            let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_of_name);
            if !is_name || name == "preamble" {
                return Err(format!("Not a name for a section of the system prompt: {name:?}"));
            }
            if !text.is_string() && !text.is_null() {
                return Err(format!("The system prompt section {name} must be a string"));
            }
        }
        Ok(())
    }

    /// Makes the sections of the prompt. All sections but the preamble are enclosed in a tag with their name.
    /// `purposes` are those of the tool with a name.
    pub fn sections(&self, purposes: impl Fn(&str) -> Purposes) -> Map<String, Value> {
        let declared = self.selected_tools.iter().filter(|name| !self.hidden_tools.contains(name));
        let declared: Vec<(&str, Purposes)> = declared.map(|name| (name.as_str(), purposes(name))).collect();
        let shell = declared.iter().find(|(_, tool)| tool.runs_commands).map(|(name, _)| *name);
        let mut sections = Map::new();
        match self.custom_prompt.as_deref().filter(|custom| !custom.is_empty()) {
            Some(custom) => {
                sections.insert("preamble".into(), custom.into());
            }
            None => {
                let preamble = "You are pi, a coding agent in the user's terminal. You read, search, change and run \
                                what is in the working folder until the task is done.";
                sections.insert("preamble".into(), preamble.into());
                insert(&mut sections, "tools", &self.tools(&declared));
                insert(&mut sections, "rules", &self.rules(&declared, shell));
                insert(&mut sections, "docs", docs(shell));
            }
        }
        if !self.append_system_prompt.is_empty() {
            insert(&mut sections, "addendum", &self.append_system_prompt);
        }
        if !self.context_files.is_empty() {
            insert(&mut sections, "project_context", &project_context(&self.context_files));
        }
        // Without a tool that reads files, the model could not read a skill.
        let reader = declared.iter().find(|(_, tool)| tool.reads).map(|(name, _)| *name).or(shell);
        if let Some(skills) = reader.and_then(|tool| skill::section(&self.skills, tool)) {
            insert(&mut sections, "skills", &skills);
        }
        insert(&mut sections, "cwd", &self.cwd);
        for (name, text) in &self.sections {
            if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
                insert(&mut sections, name, text);
            }
        }
        sections
    }

    fn tools(&self, declared: &[(&str, Purposes)]) -> String {
        let line = |name: &str| {
            let snippet = self.tool_snippets.get(name).filter(|snippet| !snippet.is_empty())?;
            Some(format!("- {name}: {snippet}"))
        };
        let lines: Vec<String> = declared.iter().filter_map(|(name, _)| line(name)).collect();
        if lines.is_empty() { "(none)".into() } else { lines.join("\n") }
    }

    fn rules(&self, declared: &[(&str, Purposes)], shell: Option<&str>) -> String {
        let mut rules = Vec::new();
        let of_tools = declared.iter().filter_map(|(name, _)| self.tool_guidelines.get(*name)).flatten();
        let shell = shell.filter(|_| !declared.iter().any(|(_, tool)| tool.searches));
        let search = shell.map(|tool| format!("Use {tool} to list and search files: ls, rg, find."));
        let last = ["Be brief.", "Name files by their path."];
        let own = of_tools.chain(&self.prompt_guidelines).map(String::as_str);
        for rule in search.as_deref().into_iter().chain(own).chain(last) {
            let rule = format!("- {}", rule.trim());
            if rule.len() > 2 && !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules.join("\n")
    }
}

/// Returns the changed sections by name, with `null` for a removed section; `None` if nothing changed.
pub fn diff(previous: &Map<String, Value>, current: &Map<String, Value>) -> Option<Map<String, Value>> {
    let changed = current.iter().filter(|(name, text)| previous.get(*name) != Some(*text));
    let gone = previous.keys().filter(|name| !current.contains_key(*name));
    let patch: Map<String, Value> = changed
        .map(|(name, text)| (name.clone(), text.clone()))
        .chain(gone.map(|name| (name.clone(), Value::Null)))
        .collect();
    (!patch.is_empty()).then_some(patch)
}

/// The user's prompt texts. A flag comes first, then `SYSTEM.md` or `APPEND_SYSTEM.md` of a trusted project,
/// then that of the agent folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserPrompts {
    pub custom: Option<String>,
    pub addendum: Option<String>,
}

/// Finds the user's prompt texts. Each flag is a text, or the path of a file relative to `started_in`.
/// `project` is a trusted folder.
pub fn user_prompts(
    dirs: &Dirs,
    project: Option<&Path>,
    started_in: &Path,
    custom: Option<&str>,
    addenda: &[String],
) -> (UserPrompts, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut file = |name: &str| {
        let path = prompt_file(dirs, project, name)?;
        let bounds = match project.filter(|project| path.starts_with(project.join(".pi"))) {
            Some(project) => {
                Bounds::project(project, dirs.home()).and_project(&project.join(".pi"), dirs.home())
            }
            None => Bounds::anywhere(),
        };
        read(path, &bounds, &mut diagnostics)
    };
    let mut prompts = UserPrompts {
        custom: if custom.is_none() { file("SYSTEM.md") } else { None },
        addendum: if addenda.is_empty() { file("APPEND_SYSTEM.md") } else { None },
    };
    let mut source = |given: &str| {
        let path = dirs.resolve(given, started_in);
        let text = path.is_file().then(|| read(path, &Bounds::anywhere(), &mut diagnostics)).flatten();
        text.unwrap_or_else(|| given.to_owned())
    };
    if let Some(custom) = custom {
        prompts.custom = Some(source(custom));
    }
    if !addenda.is_empty() {
        let texts: Vec<String> = addenda.iter().map(|given| source(given)).collect();
        prompts.addendum = Some(texts.join("\n\n"));
    }
    prompts.custom = prompts.custom.filter(|text| !text.is_empty());
    prompts.addendum = prompts.addendum.filter(|text| !text.is_empty());
    (prompts, diagnostics)
}

/// Returns the file of a prompt text, in the trusted project or else in the agent folder.
pub fn prompt_file(dirs: &Dirs, project: Option<&Path>, name: &str) -> Option<PathBuf> {
    let of_project = project.map(|project| project.join(".pi").join(name));
    let of_agent = dirs.agent().join(name);
    let mut paths = of_project.into_iter().chain([of_agent]);
    paths.find(|path| path.is_file())
}

fn read(path: PathBuf, bounds: &Bounds, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    let text = text_file::read(&path, bounds);
    text.map_err(|message| diagnostics.push(Diagnostic { path, message })).ok()
}

fn insert(sections: &mut Map<String, Value>, name: &str, content: &str) {
    let text = format!("<{name}>\n{content}\n</{name}>");
    sections.insert(name.to_owned(), text.into());
}

fn docs(shell: Option<&str>) -> &'static str {
    if shell.is_some() {
        "When the user asks about pi itself, read its manual: `pi docs` lists the topics, `pi docs TOPIC` shows one."
    } else {
        "When the user asks about pi itself, name its manual: `pi docs` lists the topics."
    }
}

fn project_context(files: &[PromptFile]) -> String {
    let mut parts = vec!["Instructions from the user and the project, the nearest last:".to_owned()];
    parts.extend(files.iter().map(|file| {
        let PromptFile { path, content } = file;
        format!("<project_instructions path=\"{path}\">\n{content}\n</project_instructions>")
    }));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn options(tools: &[&str]) -> PromptOptions {
        PromptOptions {
            selected_tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
            tool_snippets: tools.iter().map(|&tool| (tool.to_owned(), "Does it".to_owned())).collect(),
            cwd: "/work".into(),
            ..PromptOptions::default()
        }
    }

    fn sections(options: &PromptOptions) -> Map<String, Value> {
        options.sections(|name| Purposes {
            reads: name == "read",
            searches: name == "ls",
            runs_commands: name == "bash",
        })
    }

    fn text(sections: &Map<String, Value>, name: &str) -> String {
        sections.get(name).and_then(Value::as_str).unwrap_or("").to_owned()
    }

    #[test]
    fn sections_stand_in_their_order() {
        let file = PromptFile { path: "/project/AGENTS.md".into(), content: "Be kind.".into() };
        let further = r#"{"own":"Mine.","empty":"","gone":null,"docs":"Other."}"#;
        let all = PromptOptions {
            append_system_prompt: "More.".into(),
            context_files: vec![file],
            sections: serde_json::from_str(further).unwrap(),
            ..options(&["read", "bash"])
        };
        let made = sections(&all);
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["preamble", "tools", "rules", "docs", "addendum", "project_context", "cwd", "own"]
        );
        assert_eq!(text(&made, "tools"), "<tools>\n- read: Does it\n- bash: Does it\n</tools>");
        assert_eq!(text(&made, "addendum"), "<addendum>\nMore.\n</addendum>");
        assert_eq!(text(&made, "cwd"), "<cwd>\n/work\n</cwd>");
        assert_eq!(text(&made, "own"), "<own>\nMine.\n</own>");
        assert_eq!(text(&made, "docs"), "<docs>\nOther.\n</docs>");
        assert!(text(&made, "project_context").contains(
            "\n\n<project_instructions path=\"/project/AGENTS.md\">\nBe kind.\n</project_instructions>\n"
        ));
        assert_eq!(made, sections(&all));

        let custom = PromptOptions { custom_prompt: Some("Mine.".into()), sections: Map::new(), ..all };
        let made = sections(&custom);
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(names, ["preamble", "addendum", "project_context", "cwd"]);
        assert_eq!(text(&made, "preamble"), "Mine.");
    }

    #[test]
    fn further_sections_have_names_of_tags_and_texts() {
        for (further, fits) in [
            (r#"{"a-b_1":"x","b":null}"#, true),
            (r#"{"Big":"x"}"#, false),
            (r#"{"1a":"x"}"#, false),
            (r#"{"":"x"}"#, false),
            (r#"{"preamble":"x"}"#, false),
            (r#"{"a":5}"#, false),
        ] {
            let sections = serde_json::from_str(further).unwrap();
            assert_eq!(PromptOptions { sections, ..options(&[]) }.check().is_ok(), fits, "{further}");
        }
    }

    #[test]
    fn the_prompt_is_short() {
        let made = sections(&options(&["read", "bash", "edit", "write"]));
        let length: usize = made.values().map(|text| text.to_string().len()).sum();
        // Characters; some four make a token.
        assert!(length < 1000, "{length}");
    }

    #[test]
    fn rules_follow_the_tools() {
        let own = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect::<Vec<_>>();
        let edit = PromptOptions {
            tool_guidelines: [("edit".to_owned(), own(&["Look twice.", " Be brief. ", " "]))].into(),
            tool_snippets: BTreeMap::new(),
            ..options(&["edit", "edit"])
        };
        let rows = [
            (options(&[]), "- Be brief.\n- Name files by their path."),
            (
                options(&["bash"]),
                "- Use bash to list and search files: ls, rg, find.\n- Be brief.\n- Name files by their path.",
            ),
            (options(&["bash", "ls"]), "- Be brief.\n- Name files by their path."),
            (
                PromptOptions { hidden_tools: own(&["bash"]), ..options(&["bash"]) },
                "- Be brief.\n- Name files by their path.",
            ),
            (
                PromptOptions { prompt_guidelines: own(&["Look twice.", "Say so."]), ..edit.clone() },
                "- Look twice.\n- Be brief.\n- Say so.\n- Name files by their path.",
            ),
        ];
        for (options, expected) in rows {
            let made = sections(&options);
            assert_eq!(text(&made, "rules"), format!("<rules>\n{expected}\n</rules>"));
        }
        assert_eq!(text(&sections(&edit), "tools"), "<tools>\n(none)\n</tools>");
    }

    #[test]
    fn a_difference_turns_one_prompt_into_the_other() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let rows = [
            (r#"{"a":"1"}"#, r#"{"a":"1"}"#, None),
            (r#"{}"#, r#"{}"#, None),
            (r#"{"a":"1","b":"2"}"#, r#"{"b":"3","c":"4"}"#, Some(r#"{"b":"3","c":"4","a":null}"#)),
        ];
        for (previous, current, patch) in rows {
            assert_eq!(diff(&map(previous), &map(current)), patch.map(map));
        }
    }

    #[test]
    fn flags_go_before_the_files_of_the_agent_folder() {
        let scratch = TempDir::create();
        let dirs = Dirs::at(scratch.path());
        let none: &[String] = &[];
        let find = |custom: Option<&str>, addenda: &[&str]| {
            let addenda: Vec<String> = addenda.iter().map(|text| (*text).to_owned()).collect();
            let (prompts, diagnostics) = user_prompts(&dirs, None, scratch.path(), custom, &addenda);
            assert_eq!(diagnostics, []);
            (prompts.custom, prompts.addendum)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(user_prompts(&dirs, None, scratch.path(), None, none).0, UserPrompts::default());
        scratch.write("SYSTEM.md", "\u{feff}system");
        scratch.write("APPEND_SYSTEM.md", "append");
        scratch.write("mine.md", "from a file");
        assert_eq!(find(None, &[]), (some("system"), some("append")));
        assert_eq!(find(Some("flag"), &["one", "mine.md"]), (some("flag"), some("one\n\nfrom a file")));
        assert_eq!(find(Some("mine.md"), &[""]), (some("from a file"), None));
        assert_eq!(find(Some(""), &[]), (None, some("append")));
        let long = "x".repeat(100_000);
        assert_eq!(find(Some(&long), &[]).0, Some(long));
    }
}
