//! `pi agents`: lists agents, shows one, and takes over those of other programs.

use super::flags::Mode;
use super::resource::with_inputs;
use crate::base::json::json;
use crate::mode::{exit, report};
use crate::resources::agent::{Agent, Agents};
use crate::resources::place::tidy;
use crate::resources::settings;
use crate::runtime::config::Inputs;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

const USAGE: &str = "\
Usage: pi agents [list] [--json]      all agents, and the definitions that others take the place of
       pi agents show NAME [--json]   the definition of one
       pi agents import               folders of other programs with agents, and whether they are read
       pi agents import PROGRAM [-l]  read the agents of one from now on: a line in your settings, or with -l in
                                      this project's

-a, --approve  trust the project in this run
";

/// Folders in which other programs look for agents, below the home folder and below that of a project.
const PROGRAMS: [(&str, &[&str], &[&str]); 6] = [
    ("claude", &[".claude/agents"], &[".claude/agents"]),
    ("copilot", &[".copilot/agents"], &[".github/agents"]),
    ("cursor", &[".cursor/agents"], &[".cursor/agents"]),
    ("gemini", &[".gemini/agents"], &[".gemini/agents"]),
    ("omp", &[".omp/agent/agents"], &[".omp/agents"]),
    (
        "opencode",
        &[".config/opencode/agents", ".config/opencode/agent"],
        &[".opencode/agents", ".opencode/agent"],
    ),
];

/// Runs `pi agents`. Returns the exit code.
pub fn run(words: &[OsString]) -> u8 {
    let is_local = |word: &OsString| *word == "-l" || *word == "--local";
    let local = words.iter().any(is_local);
    let words: Vec<OsString> = words.iter().filter(|word| !is_local(word)).cloned().collect();
    with_inputs(&words, USAGE, |words, args, inputs| {
        let is_json = args.run.mode == Some(Mode::Json);
        let (agents, diagnostics) = inputs.agents();
        diagnostics.iter().for_each(report::warning);
        match words {
            [] | ["list"] => Some(super::say::say_plain(&match is_json {
                true => {
                    let all = agents.all().iter().map(|agent| json_row(&agents, agent));
                    format!("{}\n", Value::Array(all.collect()))
                }
                false => agents.all().iter().map(|agent| row(&agents, agent)).collect(),
            })),
            ["show", name] => Some(match agents.find(name) {
                Some(agent) if is_json => super::say::say_plain(&format!("{}\n", agent.to_json())),
                Some(agent) => super::say::say_plain(&page(agent)),
                None => {
                    report::error(format_args!("There is no agent {name}. pi agents lists all."));
                    exit::FAILED
                }
            }),
            ["import"] => Some(super::say::say_plain(&importable(inputs))),
            ["import", program] => Some(import(inputs, program, local).unwrap_or_else(|text| {
                report::error(text);
                exit::FAILED
            })),
            _ => None,
        }
    })
}

/// A folder of another program.
struct Folder {
    program: &'static str,
    path: PathBuf,
    /// As it is written in the settings.
    entry: String,
    is_project: bool,
    /// Number of definitions.
    count: usize,
    is_read: bool,
}

/// The folders of other programs that have agents.
fn folders(inputs: &Inputs) -> Vec<Folder> {
    let (user, project) = inputs.settings.resources("agents");
    let config = inputs.cwd.join(".pi");
    let mut found = Vec::new();
    for (program, of_user, of_project) in PROGRAMS {
        let own = of_user
            .iter()
            .flat_map(|below| inputs.dirs.home().map(|home| (home.join(below), format!("~/{below}"), false)));
        let here = of_project.iter().map(|below| (inputs.cwd.join(below), format!("../{below}"), true));
        for (path, entry, is_project) in own.chain(here) {
            let files = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let count = files.filter(|file| file.path().extension().is_some_and(|end| end == "md")).count();
            let is_same =
                |base: &std::path::Path, entry: &String| tidy(&inputs.dirs.resolve(entry, base)) == path;
            let is_read = user.iter().any(|entry| is_same(inputs.dirs.agent(), entry))
                || project.iter().any(|entry| is_same(&config, entry));
            // The home folder as a project has its folders once.
            if count > 0 && !found.iter().any(|known: &Folder| known.path == path) {
                found.push(Folder { program, path, entry, is_project, count, is_read });
            }
        }
    }
    found
}

fn importable(inputs: &Inputs) -> String {
    let mut text = String::new();
    for folder in folders(inputs) {
        let (program, path, count) = (folder.program, folder.path.display(), folder.count);
        let state = match (folder.is_read, folder.is_project) {
            (true, _) => "read".to_owned(),
            (false, false) => format!("not read: pi agents import {program}"),
            (false, true) => format!("not read: pi agents import {program} -l"),
        };
        let plural = if count == 1 { "" } else { "s" };
        let _ = writeln!(text, "{program}: {path}, {count} agent{plural}\n  {state}");
    }
    match text.is_empty() {
        true => "No other program has agents here.\n".to_owned(),
        false => text,
    }
}

/// Adds the folders of a program to the setting `agents`.
fn import(inputs: &Inputs, program: &str, local: bool) -> Result<u8, String> {
    if !PROGRAMS.iter().any(|(name, ..)| *name == program) {
        let names = PROGRAMS.map(|(name, ..)| name).join(", ");
        return Err(format!(
            "{program} is not known; known are {names}. Any folder can stand in the setting agents."
        ));
    }
    if local && !inputs.is_trusted {
        return Err("The project is not trusted: its settings are changed with --approve only".into());
    }
    let is_meant = |folder: &Folder| folder.program == program && folder.is_project == local;
    let folders: Vec<Folder> = folders(inputs).into_iter().filter(is_meant).collect();
    if folders.is_empty() {
        let place = if local { "in this project" } else { "of yours" };
        return Err(format!("{program} has no agents {place}. pi agents import lists what there is."));
    }
    let new: Vec<&Folder> = folders.iter().filter(|folder| !folder.is_read).collect();
    let path = if local { settings::project_path(&inputs.cwd) } else { inputs.settings.path().to_owned() };
    if !new.is_empty() {
        settings::update(&path, |values| match values.entry("agents").or_insert_with(|| json!([])) {
            Value::Array(entries) => {
                entries.extend(new.iter().map(|folder| json!(folder.entry)));
                Ok(())
            }
            _ => Err(format!("{}: agents is not a list; the file was left as it is", path.display())),
        })?;
    }
    let from = match !local || super::package::agree(inputs) {
        true => "from now on",
        false => "once the project is trusted",
    };
    let lines = folders.iter().map(|folder| match folder.is_read {
        true => format!("{} is read already\n", folder.path.display()),
        false => format!("{} is read {from} ({})\n", folder.path.display(), path.display()),
    });
    Ok(super::say::say_plain(&lines.collect::<String>()))
}

fn json_row(agents: &Agents, agent: &Agent) -> Value {
    let mut row = agent.to_json();
    row["shadowedBy"] = json!(agents.shadowing(agent).map(Agent::origin));
    row
}

fn row(agents: &Agents, agent: &Agent) -> String {
    let shadowed = agents.shadowing(agent).map(|first| format!("; not used: {} counts", first.origin()));
    let (name, scope, about) = (&agent.name, agent.scope(), &agent.description);
    format!("{name} ({scope}{}): {about}\n  {}\n", shadowed.unwrap_or_default(), agent.origin())
}

fn page(agent: &Agent) -> String {
    let or = |items: Option<&[String]>, otherwise: &str| match items {
        Some(items) => items.join(", "),
        None => otherwise.to_owned(),
    };
    let some = |items: &'_ [String]| (!items.is_empty()).then(|| items.join(", "));
    let mut text = format!("{}: {}\n{}\n\n", agent.name, agent.description, agent.origin());
    let _ = writeln!(text, "Tools: {}", or(agent.tools.as_deref(), "those of the session"));
    if !agent.excluded.is_empty() {
        let _ = writeln!(text, "Without: {}", agent.excluded.join(", "));
    }
    if agent.is_read_only {
        let _ = writeln!(text, "Changes nothing (read-only)");
    }
    let _ = writeln!(text, "Model: {}", some(&agent.models).unwrap_or_else(|| "that of the session".into()));
    if let Some(level) = agent.thinking {
        let _ = writeln!(text, "Thinking: {}", level.name());
    }
    let _ = writeln!(text, "Skills: {}", or(agent.skills.as_deref(), "all"));
    let _ = writeln!(text, "Gives tasks to: {}", some(&agent.spawns).unwrap_or_else(|| "nobody".into()));
    if let Some(schema) = &agent.output {
        let _ = writeln!(text, "Result: {schema}");
    }
    let _ = writeln!(text, "\n{}", agent.prompt.trim_end());
    text
}
