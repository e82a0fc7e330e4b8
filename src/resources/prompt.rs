//! The system prompt, as named sections in a fixed order.
//!
//! The prompt contains nothing that changes by itself, such as the time, so that a provider's cache stays
//! valid. After a change, only the changed sections are sent.

use super::Diagnostic;
use super::context_file::ContextFile;
use super::dirs::Dirs;
use super::skill::{self, Skill};
use super::text_file::{self, Bounds};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// A tool, as the system prompt describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptTool<'a> {
    pub name: &'a str,
    /// One line for the list of tools; a tool without a snippet is not listed.
    pub snippet: Option<&'a str>,
    pub rules: &'a [String],
    /// True if the model can read a skill with the tool.
    pub reads: bool,
    /// True if the model can list or search files with the tool.
    pub searches: bool,
    /// True if the model can run shell commands with the tool.
    pub runs_commands: bool,
}

/// The parts of the system prompt.
#[derive(Clone, Copy, Debug)]
pub struct PromptOptions<'a> {
    /// Replaces the preamble and the sections on tools, rules and the manual.
    pub custom: Option<&'a str>,
    pub addendum: Option<&'a str>,
    /// The active tools.
    pub tools: &'a [PromptTool<'a>],
    pub context_files: &'a [ContextFile],
    pub skills: &'a [Skill],
    pub cwd: &'a Path,
}

/// The user's prompt texts. A flag comes first, then `SYSTEM.md` or `APPEND_SYSTEM.md` of a trusted project,
/// then that of the agent folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserPrompts {
    pub custom: Option<String>,
    pub addendum: Option<String>,
}

/// Makes the sections of the prompt. All sections but the preamble are enclosed in a tag with their name.
pub fn sections(options: &PromptOptions<'_>) -> Map<String, Value> {
    let mut sections = Map::new();
    match options.custom {
        Some(custom) => {
            sections.insert("preamble".into(), custom.into());
        }
        None => {
            let preamble = "You are pi, a coding agent in the user's terminal. You read, search, change and run \
                            what is in the working folder until the task is done.";
            sections.insert("preamble".into(), preamble.into());
            insert(&mut sections, "tools", &tools(options.tools));
            insert(&mut sections, "rules", &rules(options.tools));
            insert(&mut sections, "docs", docs(options.tools));
        }
    }
    if let Some(addendum) = options.addendum {
        insert(&mut sections, "addendum", addendum);
    }
    if !options.context_files.is_empty() {
        insert(&mut sections, "project_context", &project_context(options.context_files));
    }
    // Without a tool that reads files, the model could not read a skill.
    let reader = options.tools.iter().find(|tool| tool.reads).or_else(|| runs_commands(options.tools));
    if let Some(skills) = reader.and_then(|tool| skill::section(options.skills, tool.name)) {
        insert(&mut sections, "skills", &skills);
    }
    insert(&mut sections, "cwd", &options.cwd.to_string_lossy());
    sections
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

fn runs_commands<'a>(tools: &'a [PromptTool<'a>]) -> Option<&'a PromptTool<'a>> {
    tools.iter().find(|tool| tool.runs_commands)
}

fn tools(tools: &[PromptTool<'_>]) -> String {
    let lines: Vec<String> =
        tools.iter().filter_map(|tool| Some(format!("- {}: {}", tool.name, tool.snippet?))).collect();
    if lines.is_empty() { "(none)".into() } else { lines.join("\n") }
}

fn rules(tools: &[PromptTool<'_>]) -> String {
    let mut rules = Vec::new();
    let of_tools = tools.iter().flat_map(|tool| tool.rules).map(String::as_str);
    let shell = runs_commands(tools).filter(|_| !tools.iter().any(|tool| tool.searches));
    let search = shell.map(|tool| format!("Use {} to list and search files: ls, rg, find.", tool.name));
    let last = ["Be brief.", "Name files by their path."];
    for rule in search.as_deref().into_iter().chain(of_tools).chain(last) {
        let rule = format!("- {}", rule.trim());
        if rule.len() > 2 && !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.join("\n")
}

fn docs(tools: &[PromptTool<'_>]) -> &'static str {
    if runs_commands(tools).is_some() {
        "When the user asks about pi itself, read its manual: `pi docs` lists the topics, `pi docs TOPIC` shows one."
    } else {
        "When the user asks about pi itself, name its manual: `pi docs` lists the topics."
    }
}

fn project_context(files: &[ContextFile]) -> String {
    let mut parts = vec!["Instructions from the user and the project, the nearest last:".to_owned()];
    parts.extend(files.iter().map(|file| {
        let (path, content) = (file.path.display(), &file.content);
        format!("<project_instructions path=\"{path}\">\n{content}\n</project_instructions>")
    }));
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::TempDir;

    fn options<'a>(tools: &'a [PromptTool<'a>]) -> PromptOptions<'a> {
        PromptOptions {
            custom: None,
            addendum: None,
            tools,
            context_files: &[],
            skills: &[],
            cwd: Path::new("/work"),
        }
    }

    fn tool(name: &'static str) -> PromptTool<'static> {
        PromptTool {
            name,
            snippet: Some("Does it"),
            reads: name == "read",
            searches: name == "ls",
            runs_commands: name == "bash",
            ..PromptTool::default()
        }
    }

    fn text(sections: &Map<String, Value>, name: &str) -> String {
        sections.get(name).and_then(Value::as_str).unwrap_or("").to_owned()
    }

    #[test]
    fn sections_stand_in_their_order() {
        let files = [ContextFile {
            path: "/project/AGENTS.md".into(),
            content: "Be kind.".into(),
            imports: Vec::new(),
        }];
        let tools = [tool("read"), tool("bash")];
        let all = PromptOptions { addendum: Some("More."), context_files: &files, ..options(&tools) };
        let made = sections(&all);
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(names, ["preamble", "tools", "rules", "docs", "addendum", "project_context", "cwd"]);
        assert_eq!(text(&made, "tools"), "<tools>\n- read: Does it\n- bash: Does it\n</tools>");
        assert_eq!(text(&made, "addendum"), "<addendum>\nMore.\n</addendum>");
        assert_eq!(text(&made, "cwd"), "<cwd>\n/work\n</cwd>");
        assert!(text(&made, "project_context").contains(
            "\n\n<project_instructions path=\"/project/AGENTS.md\">\nBe kind.\n</project_instructions>\n"
        ));
        assert_eq!(made, sections(&all));

        let made = sections(&PromptOptions { custom: Some("Mine."), ..all });
        let names: Vec<&str> = made.keys().map(String::as_str).collect();
        assert_eq!(names, ["preamble", "addendum", "project_context", "cwd"]);
        assert_eq!(text(&made, "preamble"), "Mine.");
    }

    #[test]
    fn the_prompt_is_short() {
        let tools = ["read", "bash", "edit", "write"].map(tool);
        let length: usize = sections(&options(&tools)).values().map(|text| text.to_string().len()).sum();
        // Characters; some four make a token.
        assert!(length < 1000, "{length}");
    }

    #[test]
    fn rules_follow_the_tools() {
        let own = ["Look twice.".to_owned(), " Be brief. ".to_owned(), " ".to_owned()];
        let edit = PromptTool { name: "edit", rules: &own, ..PromptTool::default() };
        let rows: &[(&[PromptTool<'_>], &str)] = &[
            (&[], "- Be brief.\n- Name files by their path."),
            (
                &[tool("bash")],
                "- Use bash to list and search files: ls, rg, find.\n- Be brief.\n- Name files by their path.",
            ),
            (&[tool("bash"), tool("ls")], "- Be brief.\n- Name files by their path."),
            (&[edit, edit], "- Look twice.\n- Be brief.\n- Name files by their path."),
        ];
        for (tools, expected) in rows {
            let made = sections(&options(tools));
            assert_eq!(text(&made, "rules"), format!("<rules>\n{expected}\n</rules>"));
        }
        assert_eq!(text(&sections(&options(&[edit])), "tools"), "<tools>\n(none)\n</tools>");
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
